"""What a constraint becomes for one factual: a condition on the counterfactual, checked and solved from the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from mace.constraints.views import View, why_not_domains, why_not_inequalities
from mace.constraints.words import name_text
from mace.errors import InvalidConstraint, did_you_mean, listed
from mace.language import characteristic, holds, run, syntax
from mace.language.linearity import why_not_linear
from mace.space import Categorical, Feature, FeatureSpace, Point, Value

Values = dict[str, Fraction | None]


class Condition(Protocol):
    """A condition on a counterfactual. A class that inherits from it has, unless it says otherwise, a formula and is asked about rows."""

    __slots__ = ()

    is_slow: ClassVar[bool] = False
    """Whether a row is quicker asked of most models than of this condition."""

    search: ClassVar[str] = ""
    """The name of the search for answers that fulfil it, where no lane takes it (:data:`~mace.solvers.choose.CONDITION_SEARCHES`).

    What checks its proofs has the same name (:data:`~mace.certify.proofs.SEARCH_CHECKERS`).
    """

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the condition as a formula; its own variables begin with ``prefix``."""

    def holds(self, values: Values) -> bool:
        """Return whether it holds of a row, exactly; of ``robust``, whether a search has proved that it does."""

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why it cannot be taken in a view; empty where it can."""
        if view is View.PIECEWISE:
            return why_not_linear(self.formula(""), "a constraint")
        return "" if view in (View.FORMULA, View.ROWS) else view.value


@dataclass(frozen=True, slots=True)
class GuardCondition(Condition):
    """A guard over the features."""

    guard: syntax.Guard

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the guard."""
        return self.guard

    def holds(self, values: Values) -> bool:
        """Evaluate the guard."""
        return holds(self.guard, values)

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the guard cannot be taken in a view."""
        match view:
            case View.DOMAINS:
                return why_not_domains(self.guard)
            case View.INEQUALITIES:
                return why_not_inequalities(self.guard, space)
            case View.GUARD:
                return ""
        return Condition.why_not(self, view, space)


@dataclass(frozen=True, slots=True)
class AtLeast(Condition):
    """A program over the features returns at least ``bound``."""

    program: syntax.Program
    bound: Fraction

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the program's characteristic formula with its result bounded."""
        result = f"{prefix}result"
        return syntax.conjunction(
            [
                characteristic(self.program, result=result, prefix=prefix),
                syntax.Compare(">=", syntax.Variable(result), syntax.constant(self.bound)),
            ]
        )

    def holds(self, values: Values) -> bool:
        """Run the program."""
        return run(self.program, values) >= self.bound

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the program cannot be taken in a view."""
        return (
            why_not_linear(self.program, "a constraint")
            if view is View.PIECEWISE
            else Condition.why_not(self, view, space)
        )


class Constraint(Protocol):
    """What may change and how, in the user's words."""

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition for one factual, or raise :class:`InvalidConstraint`."""


Constraints = Iterable[Constraint | str | Mapping[str, Any]] | Constraint | str | Mapping[str, Any] | None
"""Constraints as users give them: objects, texts, dicts of ranges and levels, one or several."""


FOR_OLD = ("current", "now", "today", "original", "factual", "before", "present", "self", "same")
"""Words that people write for the row as it is."""


def feature_of(space: FeatureSpace, name: str, constraint: str) -> Feature:
    """Return a feature by name, or raise with a suggestion."""
    if not isinstance(name, str):
        raise InvalidConstraint(
            f"{constraint}: {name!r} is not a name. Name the features one by one: fixed('age', 'sex')."
        )
    if name not in space:
        raise InvalidConstraint(
            f"{constraint}: there is no feature {name!r}.{_meant(space, name)} Features: {listed(space)}."
        )
    return space[name]


def _meant(space: FeatureSpace, name: str) -> str:
    """Return what was meant by the name of a feature that there is not."""
    owner = next((each for each, feature in space.items() if name in getattr(feature, "levels", ())), None)
    if owner is not None:
        return f" It is a level of {owner!r}: in a text levels stand between quotes, {name_text(owner)} == {name!r}."
    if name.lower() in FOR_OLD:
        return " The value as it is now is written old.age, with the feature's name."
    return f"{did_you_mean(name, space)}{_in_back_quotes(space, name)}"


def _in_back_quotes(space: FeatureSpace, name: str) -> str:
    """Return how features are written of whose names only a word was read."""
    meant = [name_text(other) for other in space if name in re.split(r"\W+", other) and name_text(other) != other]
    return f" In a text such a name is written between back quotes: {', '.join(meant[:3])}." if meant else ""


def ordered_feature(space: FeatureSpace, name: str, constraint: str) -> Feature:
    """Return a feature that has an order, or raise."""
    feature = feature_of(space, name, constraint)
    if isinstance(feature, Categorical):
        raise InvalidConstraint(
            f"{constraint}: {name!r} is categorical and has no order. Use one_of({name!r}, levels), or make it ordinal."
        )
    return feature


def compare(space: FeatureSpace, name: str, sign: str, value: Value) -> syntax.Guard:
    """Return ``feature sign value``; a comparison with a missing value holds only where both are missing."""
    feature = space[name]
    if value is None:
        return syntax.Missing(name)
    guard: syntax.Guard = syntax.Compare(sign, syntax.Variable(name), syntax.constant(value))  # type: ignore[arg-type]
    return syntax.conjunction([syntax.Not(syntax.Missing(name)), guard]) if feature.missing else guard


def changed(space: FeatureSpace, name: str, factual: Point) -> syntax.Guard:
    """Return that a feature differs from the factual's; becoming missing, or ceasing to be, is a change too."""
    return syntax.negation(compare(space, name, "==", factual[space.index(name)]))


def present(space: FeatureSpace, names: Iterable[str]) -> list[syntax.Guard]:
    """Return that none of the features is missing, as far as they can be."""
    return [syntax.Not(syntax.Missing(name)) for name in names if space[name].missing]

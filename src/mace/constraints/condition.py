"""What a constraint becomes for one factual: a condition on the counterfactual, checked and solved from the same text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from mace.errors import InvalidConstraint, did_you_mean
from mace.language import characteristic, holds, run, syntax
from mace.space import Categorical, Feature, FeatureSpace, Point, Value

Values = dict[str, Fraction | None]


class Condition(Protocol):
    """A condition on a counterfactual."""

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the condition as a formula; its own variables begin with ``prefix``."""
        ...

    def holds(self, values: Values) -> bool:
        """Return whether it holds of a row, exactly."""
        ...


@dataclass(frozen=True, slots=True)
class GuardCondition:
    """A guard over the features."""

    guard: syntax.Guard

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the guard."""
        return self.guard

    def holds(self, values: Values) -> bool:
        """Evaluate the guard."""
        return holds(self.guard, values)


@dataclass(frozen=True, slots=True)
class AtLeast:
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


class Constraint(Protocol):
    """What may change and how, in the user's words."""

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition for one factual, or raise :class:`InvalidConstraint`."""
        ...


def feature_of(space: FeatureSpace, name: str, constraint: str) -> Feature:
    """Return a feature by name, or raise with a suggestion."""
    if not isinstance(name, str):
        raise InvalidConstraint(
            f"{constraint}: {name!r} is not a name. Name the features one by one: fixed('age', 'sex')."
        )
    if name not in space:
        raise InvalidConstraint(
            f"{constraint}: there is no feature {name!r}.{did_you_mean(name, space)} Features: {', '.join(space)}."
        )
    return space[name]


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

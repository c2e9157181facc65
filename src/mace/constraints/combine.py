"""and, or, not of constraints: what every constraint can do, and implies, either and together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mace.constraints.condition import Condition, Constraint, GuardCondition, changed, feature_of
from mace.constraints.words import in_parentheses, name_text, named, names_text
from mace.errors import InvalidConstraint, cut
from mace.language import syntax
from mace.space import FeatureSpace, Point


class Combinable(ABC):
    """A constraint that ``&``, ``|`` and ``~`` work on, and that has a text form which reads back as the same."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str:
        """The constraint in the text form; :func:`mace.rule` reads it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the constraint as plain data."""
        return {"kind": "rule", "arguments": [self.text]}

    def __and__(self, other: object) -> AllOf:
        return AllOf((as_constraint(self), as_constraint(other)))

    def __or__(self, other: object) -> Either:
        return Either((as_constraint(self), as_constraint(other)))

    def __invert__(self) -> Negation:
        return Negation(as_constraint(self))

    def __str__(self) -> str:
        return f"rule({self.text!r})"

    def __repr__(self) -> str:
        return cut(str(self))


def as_constraint(given: object) -> Constraint:
    """Return a constraint: itself, or what a text or a function says."""
    if (
        callable(given)
        and not hasattr(given, "bind")
        and getattr(given, "__module__", "").startswith("mace.constraints.")
    ):
        name = getattr(given, "__name__", "it")
        raise InvalidConstraint(
            f"mace.{name} is not called: write mace.{name}({'...' if name != 'fixed' else repr('age')})."
        )
    if isinstance(given, str) or (callable(given) and not hasattr(given, "bind")):
        from mace.constraints.rule import rule

        return rule(given)
    if hasattr(given, "bind"):
        return given
    if isinstance(given, Mapping):
        raise InvalidConstraint(
            f"{given!r:.80}: a dict of ranges and levels is one of the list of constraints, or all of them; it is not part of another. "
            "Use mace.within or mace.one_of there."
        )
    raise InvalidConstraint(
        f"{given!r} is not a constraint. Use mace.fixed, mace.increases, mace.within, ... or a text."
    )


def guard_of(constraint: Constraint, space: FeatureSpace, factual: Point) -> syntax.Guard:
    """Return the guard of a constraint that is to be combined with others."""
    condition = constraint.bind(space, factual)
    if isinstance(condition, GuardCondition):
        return condition.guard
    raise InvalidConstraint(
        f"{constraint}: only a single expression can be combined with and, or, not. Write the rule as one expression."
    )


def text_of(constraint: Constraint) -> str:
    """Return the text form of a constraint."""
    text = getattr(constraint, "text", None)
    if not isinstance(text, str):
        raise InvalidConstraint(f"{constraint!r:.80} has no text form.")
    return text


@dataclass(frozen=True, slots=True, repr=False)
class _Junction(Combinable):
    """Parts joined by a word of the text form."""

    parts: tuple[Constraint, ...]
    word: ClassVar[str]
    join: ClassVar[Callable[[Iterable[syntax.Guard]], syntax.Guard]]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the parts' guards, joined."""
        return GuardCondition(type(self).join(guard_of(part, space, factual) for part in self.parts))

    @property
    def text(self) -> str:
        """The parts joined by the word."""
        return f" {self.word} ".join(in_parentheses(text_of(part), part) for part in self.parts)


class AllOf(_Junction):
    """Every part holds."""

    __slots__ = ()
    word, join = "and", syntax.conjunction


class Either(_Junction):
    """Some part holds."""

    __slots__ = ()
    word, join = "or", syntax.disjunction


@dataclass(frozen=True, slots=True, repr=False)
class Negation(Combinable):
    """The part does not hold."""

    part: Constraint

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the negation."""
        return GuardCondition(syntax.negation(guard_of(self.part, space, factual)))

    @property
    def text(self) -> str:
        """The part after ``not``."""
        return f"not {in_parentheses(text_of(self.part), self.part)}"


@dataclass(frozen=True, slots=True, repr=False)
class Implies(Combinable):
    """Where the condition holds, so does the consequence."""

    condition: Constraint
    consequence: Constraint

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return "not the condition, or the consequence"."""
        condition = guard_of(self.condition, space, factual)
        return GuardCondition(
            syntax.disjunction([syntax.negation(condition), guard_of(self.consequence, space, factual)])
        )

    @property
    def text(self) -> str:
        """``if ... then ...``."""
        then = in_parentheses(text_of(self.consequence), self.consequence, only=Implies)
        return f"if {in_parentheses(text_of(self.condition), self.condition, only=Implies)} then {then}"


@dataclass(frozen=True, slots=True, repr=False)
class OnFeatures(Combinable):
    """A constraint on features that are named one by one."""

    features: tuple[str, ...]

    def bind(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return what it says of the features, all of which the space must have."""
        for name in self.features:
            feature_of(space, name, str(self))
        return self._bound(space, factual)

    @abstractmethod
    def _bound(self, space: FeatureSpace, factual: Point) -> Condition:
        """Return the condition for one factual."""


class Together(OnFeatures):
    """All of the features change, or none does."""

    __slots__ = ()

    def _bound(self, space: FeatureSpace, factual: Point) -> Condition:
        each = [changed(space, name, factual) for name in self.features]
        return GuardCondition(
            syntax.disjunction([syntax.conjunction(each), syntax.conjunction(map(syntax.negation, each))])
        )

    @property
    def text(self) -> str:
        """``a, b change together``."""
        return f"{names_text(self.features)} change together"


class Changes(OnFeatures):
    """Each of the features changes."""

    __slots__ = ()

    def _bound(self, space: FeatureSpace, factual: Point) -> Condition:
        return GuardCondition(syntax.conjunction(changed(space, name, factual) for name in self.features))

    @property
    def text(self) -> str:
        """``a changes``."""
        return f"{names_text(self.features)} {'changes' if len(self.features) == 1 else 'change'}"


def implies(condition: object, consequence: object) -> Implies:
    """Where a condition holds of the counterfactual, a consequence must; both are constraints or their texts.

    Examples
    --------
    >>> print(implies("education changes", "age >= old.age + 2"))
    rule('if education changes then age >= old.age + 2')
    """
    return Implies(as_constraint(condition), as_constraint(consequence))


def either(*constraints: object) -> Either:
    """At least one of some constraints holds.

    Examples
    --------
    >>> print(either("savings >= 1000", "guarantor == 'yes'"))
    rule("savings >= 1000 or guarantor == 'yes'")
    """
    if not constraints:
        raise InvalidConstraint("either() names no constraint; give at least one.")
    return Either(tuple(as_constraint(constraint) for constraint in constraints))


def together(*features: str) -> Together:
    """Change all of these features, or none.

    Examples
    --------
    >>> print(together("job", "income"))
    rule('job, income change together')
    """
    if len(named("together", features)) < 2:
        raise InvalidConstraint("together() needs at least two features, as in together('job', 'income').")
    return Together(features)


def changes(*features: str) -> Changes:
    """Each of these features differs from the factual's; mostly a condition inside :func:`implies`.

    Examples
    --------
    >>> print(~changes("job"))
    rule('not job changes')
    """
    return Changes(named("changes", features))


def as_constraints(constraints: object, space: FeatureSpace) -> tuple[Constraint, ...]:
    """Return the constraints as objects: a single one, a text, a function and a dict may be given as they are."""
    from mace.constraints.ranges import ranges

    if constraints is None:
        return ()
    if isinstance(constraints, str | Mapping) or hasattr(constraints, "bind") or callable(constraints):
        return as_constraints([constraints], space)
    if not isinstance(constraints, Iterable):
        raise InvalidConstraint(f"constraints={constraints!r}; give a list, e.g. [mace.fixed('age')].")
    made: list[Constraint] = []
    for given in constraints:
        if isinstance(given, str) and given.strip() in space:
            name = given.strip()
            raise InvalidConstraint(
                f"constraints: {name!r} alone does not say what of it. Write mace.fixed({name!r}), or {name_text(name) + ' stays'!r}."
            )
        made += ranges(given, space) if isinstance(given, Mapping) else [as_constraint(given)]
    return tuple(made)

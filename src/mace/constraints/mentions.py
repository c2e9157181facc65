"""Which features a constraint speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from mace.constraints.budget import ChangesAtMost
from mace.constraints.combine import AllOf, Combinable
from mace.constraints.condition import AtLeast, Condition, Constraint, GuardCondition
from mace.constraints.fixed import Fixed, Only
from mace.constraints.rule import FunctionRule
from mace.constraints.terms import Feature
from mace.language import syntax
from mace.space import FeatureSpace


def mentioned(constraint: Constraint, condition: Condition) -> frozenset[str]:
    """Return the features that a constraint is about.

    They are those that it names, other than as ``old.age``; of ``only``, of a function and of constraints from elsewhere, those that its
    condition reads too. A budget that counts every feature, and a constraint on whole rows (``near_data``, ``typical``, ``robust``), is
    about none.
    """
    parts = list(_parts(constraint)) if isinstance(constraint, Combinable) else []
    named = frozenset(name for part in parts for name in _names(part))
    if parts and not any(isinstance(part, FunctionRule | Only) for part in parts):
        return named
    match condition:
        case GuardCondition(guard):
            return named | syntax.variables(guard)
        case AtLeast(program):
            return named | syntax.variables(program.body)
    return named


def held(space: FeatureSpace, constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Return the features that constraints keep by name, in the space's order; not those that ``only`` leaves out."""
    left, named = list(constraints), set[str]()
    while left:
        each = left.pop()
        left += each.parts if isinstance(each, AllOf) else ()
        named |= set(each.features) if isinstance(each, Fixed) else set()
    return tuple(name for name in space if name in named)


def _parts(value: object) -> Iterator[object]:
    """Yield a constraint and all that it is made of."""
    if isinstance(value, tuple):
        for each in value:
            yield from _parts(each)
    elif is_dataclass(value):
        yield value
        for field in fields(value):
            yield from _parts(getattr(value, field.name))


def _names(part: object) -> tuple[str, ...]:
    if isinstance(part, Feature):
        return () if part.is_old else (part.name,)
    if isinstance(part, ChangesAtMost):
        return tuple(name for name, _ in part.weights)
    several, alone = getattr(part, "features", ()), getattr(part, "feature", None)
    return tuple(name for name in (*(several if isinstance(several, tuple) else ()), alone) if isinstance(name, str))

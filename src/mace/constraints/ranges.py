"""Constraints as a dict: for each feature its range, or the levels that it may take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mace.constraints.condition import Constraint, feature_of
from mace.constraints.numbers import plain_number
from mace.constraints.one_of import one_of
from mace.constraints.within import within
from mace.errors import InvalidConstraint
from mace.space import Categorical, Date, FeatureSpace, Ordinal
from mace.space.dates import as_text
from mace.space.features import plain_scalar

VERBS = {
    **dict.fromkeys(("fixed", "fix", "stay", "stays", "immutable", "frozen", "same", "constant"), "fixed"),
    **dict.fromkeys(("increase", "increases", "increasing", "up", "only up", "+"), "increases"),
    **dict.fromkeys(("decrease", "decreases", "decreasing", "down", "only down", "-"), "decreases"),
}
"""Words for which there is a constraint."""


def ranges(given: Mapping[Any, Any], space: FeatureSpace) -> list[Constraint]:
    """Return the constraints that a dict says: two numbers for a number are its range, levels are those allowed.

    Raises
    ------
    InvalidConstraint
        Anything else, with what to write.

    Examples
    --------
    >>> from mace.space import FeatureSpace, categorical, integer
    >>> space = FeatureSpace({"age": integer(18, 90), "housing": categorical(["own", "rent", "free"])})
    >>> print(*ranges({"age": [20, 30], "housing": ["own", "rent"]}, space), sep="; ")
    within('age', 20, 30); one_of('housing', ['own', 'rent'])
    """
    return [_constraint(name, allowed, space) for name, allowed in given.items()]


def _constraint(name: Any, allowed: Any, space: FeatureSpace) -> Constraint:
    where = f"constraints={{{name!r}: {allowed!r:.80}}}"
    feature = feature_of(space, name, where)
    call = VERBS.get(allowed.lower()) if isinstance(allowed, str) else None
    if call is not None and allowed not in getattr(feature, "levels", ()):
        raise InvalidConstraint(f"{where}: a dict holds ranges and levels; write mace.{call}({name!r}).")
    has_levels = isinstance(feature, Ordinal | Categorical)
    values = _listed(allowed, plain_scalar if has_levels else plain_number)
    if isinstance(feature, Ordinal | Categorical):
        if values:
            return one_of(name, values)
        levels = list(feature.levels)
        is_level = isinstance(allowed, str | int | float) and allowed in levels
        shown = {name: [allowed] if is_level else levels[:2]}
        raise InvalidConstraint(f"{where}: {name!r} has levels; list those allowed, e.g. {shown!r}.")
    if isinstance(feature, Date):
        if len(values) == 2 and all(isinstance(value, str) for value in values):
            return within(name, *values)
        ends = [feature.text(end) for end in (feature.low, feature.high)]
        raise InvalidConstraint(
            f"{where}: {name!r} is a date; give the first and the last, e.g. {{{name!r}: {ends!r}}}."
        )
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if len(values) == 2 and are_numbers:
        return within(name, *values)
    instead = f", or mace.one_of({name!r}, {values!r:.80}) for single values" if values[2:] and are_numbers else ""
    raise InvalidConstraint(
        f"{where}: {name!r} is a number; give its least and its greatest value, "
        f"e.g. {{{name!r}: [{feature.low}, {feature.high}]}}{instead}."
    )


def _listed(allowed: Any, plain: Callable[[object], object]) -> list[Any]:
    """Return the values of a list, tuple or array as plain ones; none of anything else."""
    is_array = hasattr(allowed, "tolist")
    if is_array and allowed.dtype.kind in "Mf":
        allowed, is_array = list(allowed), False
    listed = allowed.tolist() if is_array else allowed
    return [plain(as_text(value)) for value in listed] if isinstance(listed, list | tuple) else []

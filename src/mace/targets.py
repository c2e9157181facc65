"""Targets: what the counterfactual must be predicted as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.errors import InvalidTarget
from mace.forms import Goal
from mace.models.reading import Reading


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several labels."""

    labels: tuple[object, ...]


def becomes(label: object) -> AnyOf:
    """Ask for one label.

    Examples
    --------
    >>> becomes("good")
    AnyOf(labels=('good',))
    """
    return AnyOf((label,))


def any_of(labels: Sequence[object]) -> AnyOf:
    """Ask for any of several labels."""
    if isinstance(labels, str) or not len(labels):
        raise InvalidTarget(f"any_of({labels!r}): give a list of labels, at least one.")
    return AnyOf(tuple(labels))


def as_goal(target: object, reading: Reading, current: Fraction) -> Goal:
    """Return the outcomes that a target asks for.

    Parameters
    ----------
    target : None, a label, or a target made by :func:`becomes` or :func:`any_of`
        ``None`` asks for any outcome but the current one.
    reading : Reading
        The model.
    current : Fraction
        The code of the row's own outcome.

    Raises
    ------
    InvalidTarget
        A label is unknown, or the row is there already.
    """
    if target is None:
        goal = Goal(frozenset([current]), negated=True)
        if reading.classes is not None and len(reading.classes) == 1:
            raise InvalidTarget(
                f"The model knows a single class, {reading.classes[0]!r}; there is nothing else to become."
            )
        return goal
    wanted = target if isinstance(target, AnyOf) else AnyOf((target,))
    goal = Goal(frozenset(reading.code(label) for label in wanted.labels))
    if goal.accepts(current):
        raise InvalidTarget(
            f"The row is already predicted {reading.label(current)!r}, which is what the target asks for; nothing to change. "
            "Ask for another target, or None for any other outcome."
        )
    return goal

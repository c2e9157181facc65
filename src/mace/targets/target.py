"""Targets as users write them: what the counterfactual must be predicted as."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.errors import InvalidTarget
from mace.slips import about_target
from mace.space.features import plain_scalar

MOST_CALLS = 5
"""Of how many labels an error writes the call that is meant."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several labels, whose probability leads every other label's by at least ``margin``."""

    labels: tuple[object, ...]
    margin: float = 0.0

    def __str__(self) -> str:
        return " or ".join(map(str, self.labels)) + (f" by {self.margin:g}" if self.margin else "")


@dataclass(frozen=True, slots=True)
class Between:
    """The number that the model reports, a probability or a prediction, lies in ``[low, high]``, at least ``margin`` inside."""

    low: float | None
    high: float | None
    label: object = None
    margin: float = 0.0

    def __post_init__(self) -> None:
        low, high = self.ends
        if low is not None and high is not None and low > high:
            raise InvalidTarget(f"{self}: the lower bound is above the upper. Swap them, or lower the margin.")

    @property
    def ends(self) -> tuple[Fraction | None, Fraction | None]:
        """The bounds, moved inside by the margin."""
        margin = Fraction(self.margin)
        return (
            None if self.low is None else Fraction(self.low) + margin,
            None if self.high is None else Fraction(self.high) - margin,
        )

    def __str__(self) -> str:
        inside = f" with a margin of {_number(self.margin)}" if self.margin else ""
        if self.label is None:
            bounds = [] if self.low is None else [f"at least {_number(self.low)}"]
            bounds += [] if self.high is None else [f"at most {_number(self.high)}"]
            return " and ".join(bounds) + inside
        chance = f"P({self.label})"
        if self.low is None:
            return f"{chance} <= {_number(self.high)}{inside}"
        if self.high is None:
            return f"{chance} >= {_number(self.low)}{inside}"
        return f"{_number(self.low)} <= {chance} <= {_number(self.high)}{inside}"

    def call(self, label: object) -> str:
        """Return how to write the same of a label; of ``None``, of a prediction."""
        name = "between" if None not in (self.low, self.high) else "at_most" if self.low is None else "at_least"
        given = [_number(end) for end in (self.low, self.high) if end is not None]
        given += [] if label is None else [repr(label)]
        given += [f"margin={_number(self.margin)}"] if self.margin else []
        return f"mace.{name}({', '.join(given)})"


def becomes(label: object, margin: float = 0.0) -> AnyOf:
    """Ask for one label; with ``margin``, for a probability of it that leads every other label's by at least so much.

    Examples
    --------
    >>> becomes("good")
    AnyOf(labels=('good',), margin=0.0)
    """
    return AnyOf((label,), _margin(margin, "becomes", most=1.0))


def any_of(labels: Sequence[object], margin: float = 0.0) -> AnyOf:
    """Ask for any of several labels; with ``margin``, for one that leads every label not among them by at least so much."""
    try:
        wanted = () if isinstance(labels, str) else tuple(labels)
    except TypeError:
        wanted = ()
    if not wanted:
        raise InvalidTarget(f"any_of({labels!r}): give a list of labels, at least one.")
    return AnyOf(wanted, _margin(margin, "any_of", most=1.0))


def at_least(number: float, label: object = None, margin: float = 0.0) -> Between:
    """Ask for a probability of ``label``, or for a prediction, of at least ``number``, plus ``margin``.

    Parameters
    ----------
    number : float
        The least probability, or prediction of a regressor.
    label : optional
        Whose probability. It may be left out where the labels are 0 and 1, or booleans: that of 1, or ``True``, is meant then. A
        regressor has none.
    margin : float
        By how much more.

    Examples
    --------
    >>> print(at_least(0.8, "approve"))
    P(approve) >= 0.8
    """
    return Between(_finite(number, "at_least"), None, label, _margin(margin, "at_least"))


def at_most(number: float, label: object = None, margin: float = 0.0) -> Between:
    """Ask for a probability of ``label``, or for a prediction, of at most ``number``, less ``margin``; see :func:`at_least`.

    Examples
    --------
    >>> print(at_most(0.2, "refuse"))
    P(refuse) <= 0.2
    """
    return Between(None, _finite(number, "at_most"), label, _margin(margin, "at_most"))


def between(low: float, high: float, label: object = None, margin: float = 0.0) -> Between:
    """Ask for a probability of ``label``, or for a prediction, from ``low`` to ``high``, and ``margin`` inside of both.

    Both ends are included. When the label may be left out is said at :func:`at_least`.

    Examples
    --------
    >>> print(between(0.4, 0.6, "approve"))
    0.4 <= P(approve) <= 0.6
    """
    return Between(_finite(low, "between"), _finite(high, "between"), label, _margin(margin, "between"))


def _margin(margin: object, name: str, most: float = math.inf) -> float:
    number = _finite(margin, f"{name}: margin")
    if not 0 <= number <= most:
        raise InvalidTarget(f"{name}: margin is {margin!r}; it must be {'from 0 to 1' if most == 1 else 'at least 0'}.")
    return number


def _finite(given: object, name: str) -> float:
    number = plain_scalar(given)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        order = ""
        if isinstance(number, str) and name in ("at_least", "at_most"):
            order = f" The number comes first, then the label: mace.{name}(0.7, {number!r})."
        raise InvalidTarget(f"{name}({number!r}): give a finite number.{order}")
    return float(number)


def _number(number: float | None) -> str:
    return f"{number:.12g}"


def of_label(target: object, classes: Sequence[object] | None) -> object:
    """Return a target with the label whose probability it bounds.

    Parameters
    ----------
    target : object
        Anything that is no bound on a probability or prediction is returned as it is.
    classes : labels, optional
        The model's; ``None`` where it predicts numbers.

    Raises
    ------
    InvalidTarget
        The label is left out, and the labels are not 0 and 1, or booleans; or there is one, and the model predicts numbers. Or the target
        is none, and looks like one that is written otherwise.
    """
    if not isinstance(target, Between):
        slip = about_target(target, list(classes or ()))
        if slip:
            raise InvalidTarget(f"target={target!r:.80}: {slip}")
        return target
    if classes is None:
        if target.label is None:
            return target
        raise InvalidTarget(f"{target}: the model predicts numbers, which have no label. Write {target.call(None)}.")
    if target.label is not None:
        return target
    if tuple(classes) == (0, 1):
        return replace(target, label=classes[1])
    calls = [target.call(label) for label in classes[:MOST_CALLS]]
    more = f", or of another of its {len(classes)} labels" if len(classes) > MOST_CALLS else ""
    raise InvalidTarget(
        f"{target.call(None)} does not say of which outcome, and the model's labels are not 0 and 1. "
        f"Write {' or '.join(calls)}{more}."
    )

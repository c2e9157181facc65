"""Targets: what the counterfactual must be predicted as."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.errors import InvalidTarget
from mace.exact import UNIT
from mace.forms import FunctionForm, Goal, Interval, Network, Outcomes, TreeEnsemble
from mace.models.reading import Ask, Reading
from mace.space import Point


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of several labels."""

    labels: tuple[object, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.labels))


@dataclass(frozen=True, slots=True)
class Between:
    """The number that the model reports lies in ``[low, high]``: the probability of a label, or a prediction."""

    low: float | None
    high: float | None
    label: object = None

    def __str__(self) -> str:
        bounds = [] if self.low is None else [f"at least {self.low:g}"]
        bounds += [] if self.high is None else [f"at most {self.high:g}"]
        return " and ".join(bounds) + (f" for {self.label}" if self.label is not None else "")


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
    try:
        wanted = () if isinstance(labels, str) else tuple(labels)
    except TypeError:
        wanted = ()
    if not wanted:
        raise InvalidTarget(f"any_of({labels!r}): give a list of labels, at least one.")
    return AnyOf(wanted)


def at_least(number: float, label: object = None) -> Between:
    """Ask for a probability (of ``label``, by default the second class) or a prediction of at least ``number``.

    Examples
    --------
    >>> print(at_least(0.8))
    at least 0.8
    """
    return Between(_finite(number, "at_least"), None, label)


def at_most(number: float, label: object = None) -> Between:
    """Ask for a probability or a prediction of at most ``number``."""
    return Between(None, _finite(number, "at_most"), label)


def between(low: float, high: float, label: object = None) -> Between:
    """Ask for a probability or a prediction from ``low`` to ``high``, both included."""
    if _finite(low, "between") > _finite(high, "between"):
        raise InvalidTarget(f"between({low}, {high}): the lower bound is above the upper. Swap them.")
    return Between(float(low), float(high), label)


def _finite(number: object, name: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise InvalidTarget(f"{name}({number!r}): give a finite number.")
    return float(number)


def as_goal(target: object, reading: Reading, factual: Point, current: Fraction) -> tuple[Goal, Ask]:
    """Return the outcomes that a target asks for, and how to ask the real model for an outcome.

    Parameters
    ----------
    target : None, a label, or a target made by one of the functions of this module
        ``None`` asks for any outcome but the current one.
    reading : Reading
        The model.
    factual : Point
        The row, which must not be there already.
    current : Fraction
        The code of the row's own outcome.

    Raises
    ------
    InvalidTarget
        A label is unknown, the model reports no such number, or the row is there already.
    """
    if target is None:
        return _any_other(reading, current), reading.ask
    if isinstance(target, Between):
        goal, ask = _interval(target, reading)
        reported = float(ask([factual])[0])
        shown = f"{reported:.6g}"
        there = goal.accepts(Fraction(reported))
    else:
        if reading.is_regressor:
            raise InvalidTarget(
                f"{reading.family} predicts numbers: ask for mace.at_least, mace.at_most or mace.between."
            )
        wanted = target if isinstance(target, AnyOf) else AnyOf((target,))
        goal, ask = Outcomes(frozenset(reading.code(label) for label in wanted.labels)), reading.ask
        shown = repr(reading.label(current))
        there = goal.accepts(current)
    if there:
        raise InvalidTarget(
            f"The row is already predicted {shown}, which is what the target asks for; nothing to change. "
            "Ask for another target, or None for any other outcome."
        )
    return goal, ask


def _any_other(reading: Reading, current: Fraction) -> Goal:
    if reading.is_regressor:
        raise InvalidTarget(f"{reading.family} predicts numbers: ask for mace.at_least, mace.at_most or mace.between.")
    if reading.classes is not None and len(reading.classes) == 1:
        raise InvalidTarget(f"The model knows a single class, {reading.classes[0]!r}; there is nothing else to become.")
    return Outcomes(frozenset([current]), negated=True)


def _interval(target: Between, reading: Reading) -> tuple[Goal, Ask]:
    low = None if target.low is None else Fraction(target.low)
    high = None if target.high is None else Fraction(target.high)
    form = reading.form
    if isinstance(form, FunctionForm) and reading.classes is None:
        return Interval(low, high, 0, low, high), reading.ask
    if not isinstance(form, TreeEnsemble | Network) or form.link == "none":
        raise InvalidTarget(
            f"{reading.family} reports no number that a bound can be put on here. Ask for a label, or None for any other outcome."
        )
    if form.is_regressor:
        scale = Fraction(len(form.roots)) if isinstance(form, TreeEnsemble) and form.link == "mean" else Fraction(1)
        return Interval(
            low, high, 0, _times(low, scale), _times(high, scale), slack=_division_slack(form, high, low)
        ), reading.ask
    return _probability(target, reading, form, low, high)


def _probability(
    target: Between, reading: Reading, form: TreeEnsemble | Network, low: Fraction | None, high: Fraction | None
) -> tuple[Goal, Ask]:
    assert reading.classes is not None
    if target.label is None and len(reading.classes) != 2:
        raise InvalidTarget(
            f"{target}: the model has {len(reading.classes)} classes; say which one, e.g. label={reading.classes[0]!r}."
        )
    code = 1 if target.label is None else int(reading.code(target.label))
    for bound in (low, high):
        if bound is not None and not 0 <= bound <= 1:
            raise InvalidTarget(f"{target}: a probability lies between 0 and 1.")
    if reading.rate is None:
        raise InvalidTarget(f"{reading.family} reports no probability. Ask for a label.")
    rate = reading.rate

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return rate(points, code)

    if isinstance(form, TreeEnsemble) and form.link == "mean":
        trees = Fraction(len(form.roots))
        goal = Interval(
            low, high, code, _times(low, trees), _times(high, trees), slack=_division_slack(form, low, high)
        )
        return goal, ask
    if form.link == "clip":
        return _clipped(form, code, low, high), ask
    slack = max(
        (_logit_slack(reading, target, bound) for bound in (low, high) if bound is not None), default=Fraction(0)
    )
    ends = (_logit(low), _logit(high)) if code == 1 else (_negated(_logit(high)), _negated(_logit(low)))
    return Interval(low, high, 0, *ends, slack=slack), ask


def _clipped(form: TreeEnsemble | Network, code: int, low: Fraction | None, high: Fraction | None) -> Interval:
    """Return the bounds on a score whose probability is (clip(score, -1, 1) + 1) / 2, or 1 less that for the first class.

    Two sums and an exact halving of numbers up to 2 lose at most 3 units of roundoff, 6 in the unit of the score. A bound of 0 from
    below, or of 1 from above, says nothing.
    """
    at_low = None if low is None or low <= 0 else 2 * low - 1
    at_high = None if high is None or high >= 1 else 2 * high - 1
    ends = (at_low, at_high) if code == 1 else (_negated(at_high), _negated(at_low))
    return Interval(low, high, 0, *ends, slack=8 * form.unit)


def _times(bound: Fraction | None, scale: Fraction) -> Fraction | None:
    return None if bound is None else bound * scale


def _negated(bound: Fraction | None) -> Fraction | None:
    return None if bound is None else -bound


def _division_slack(form: TreeEnsemble | Network, *bounds: Fraction | None) -> Fraction:
    """Return what the final division of a mean may lose, in the unit of the sum."""
    if isinstance(form, Network):
        return Fraction(0)
    largest = max((abs(bound) for bound in bounds if bound is not None), default=Fraction(0))
    return 4 * form.unit * largest * len(form.roots) if form.link == "mean" else Fraction(0)


def _logit(probability: Fraction | None) -> Fraction | None:
    return None if probability is None else Fraction(_exact_logit(probability))


def _logit_slack(reading: Reading, target: Between, probability: Fraction) -> Fraction:
    """Return a bound on the error of a computed sigmoid near ``probability``, and of the logarithm here, in the unit of the score.

    A sigmoid that is good to 16 units of roundoff (of 1: libraries compute small ones from 1/2 down) moves the score by at most as
    much as the logit moves there.
    """
    form = reading.form
    assert isinstance(form, TreeEnsemble | Network)
    reach = 16 * form.unit
    if not 2 * reach < probability < 1 - 2 * reach:
        raise InvalidTarget(
            f"{target}: {reading.family}'s probability is not told from 0 or 1 there but by rounding. Choose one between."
        )
    at, below, above = (_exact_logit(end) for end in (probability, probability - reach, probability + reach))
    return Fraction(max(above - at, at - below)) + 32 * UNIT * Fraction(1 + max(abs(above), abs(below)))


def _exact_logit(probability: Fraction) -> float:
    return math.log(probability / (1 - probability))

"""Goals: the outcomes that a target asks for of a model as read, and how the real model is asked for one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from mace.errors import InvalidTarget
from mace.exact import UNIT
from mace.forms import (
    Composite,
    FunctionForm,
    Goal,
    Interval,
    Lead,
    Network,
    ObliqueTrees,
    Outcomes,
    TreeEnsemble,
    UnreadForm,
    divisor,
    is_unread,
)
from mace.forms.polyline import logit
from mace.forms.sets import MOST_WAYS, Agreement, of_members, packed, plurality
from mace.models.reading import Ask, Reading
from mace.models.sets import how_many
from mace.space import Point
from mace.targets.target import AnyOf, Between, of_label


def goal_of(target: object, reading: Reading, current: Fraction) -> tuple[Goal, Ask]:
    """Return the outcomes that a target asks for, and how to ask the real model for an outcome.

    Parameters
    ----------
    target : None, a label, or a target made by one of the functions of this module
        ``None`` asks for any outcome but the current one.
    reading : Reading
        The model.
    current : Fraction
        The code of the row's own outcome.

    Raises
    ------
    InvalidTarget
        A label is unknown, or the model reports no such number.
    """
    if reading.members:
        return _agreed(target, reading, current)
    if target is None:
        return _any_other(reading, current), reading.ask
    if isinstance(reading.form, ObliqueTrees):
        # What a probability or prediction is made of are the sums of its trees.
        reading = replace(reading, form=reading.form.trees)
    if isinstance(target, Between):
        return _interval(target, reading)
    if reading.is_regressor:
        raise InvalidTarget(f"{reading.family} predicts numbers: ask for mace.at_least, mace.at_most or mace.between.")
    wanted = target if isinstance(target, AnyOf) else AnyOf((target,))
    if wanted.margin:
        return _lead(wanted, reading)
    return Outcomes(frozenset(reading.code(label) for label in wanted.labels)), reading.ask


def reached(target: object, reading: Reading, factual: Point, current: Fraction) -> str:
    """Return what the model says of a row that is at its target already, in the words of the target; empty where it is not."""
    goal, ask = goal_of(target, reading, current)
    if target is None and not reading.members:
        return ""
    outcome = current if ask is reading.ask else ask([factual])[0]
    if isinstance(goal, Agreement) and goal.accepts(outcome):
        return _held(goal, reading, outcome)
    return _shown(target, goal, reading, current, outcome) if goal.accepts(outcome) else ""


def _shown(target: object, goal: Goal, reading: Reading, current: Fraction, outcome: Fraction) -> str:
    """Return what the model says of a row, in the words of the target."""
    if isinstance(target, Between):
        of = "" if target.label is None else f"P({target.label}) = "
        return f"{of}{float(outcome):.6g}"
    label = repr(reading.label(current))
    if not isinstance(target, AnyOf) or not target.margin:
        return label
    return (
        f"{label} by {float(outcome):.6g}"
        if isinstance(goal, Lead)
        else f"{label} with probability {float(outcome):.6g}"
    )


def _agreed(target: object, reading: Reading, current: Fraction) -> tuple[Goal, Ask]:
    """Return the goal that at least a number of the models of a set reach the target, and how to ask them.

    Without a target, that they predict another label than most of them do of the row itself.
    """
    row = plurality(reading.said(current)) if target is None else None
    each = [
        goal_of(target, member, own) if row is None else (_any_other(member, row), member.ask)
        for member, own in zip(reading.members, reading.said(current), strict=True)
    ]
    goals, asks = tuple(goal for goal, _ in each), [ask for _, ask in each]
    of_each = () if is_unread(reading.form) else of_members(reading.form, goals)
    slack = max(goal.slack for goal in goals)
    agreement = Agreement(goals, reading.at_least, reading.base, of_each, slack)
    if agreement.ways > MOST_WAYS:
        raise InvalidTarget(
            f"{reading.family} reach this target in more than {MOST_WAYS:,} ways. Ask for one label, or of all models."
        )
    if all(ask is member.ask for ask, member in zip(asks, reading.members, strict=True)):
        return agreement, reading.ask

    def ask_whether(points: Sequence[Point]) -> list[Fraction]:
        said = [[Fraction(goal.accepts(outcome)) for outcome in ask(points)] for goal, ask in each]
        return [packed(own, 2) for own in zip(*said, strict=True)]

    whether = (Outcomes(frozenset([Fraction(1)])),) * len(each)
    return replace(agreement, goals=whether, base=2), ask_whether


def _held(goal: Agreement, reading: Reading, outcome: Fraction) -> str:
    """Return which models of a set have a row at the target already, in words."""
    held = goal.holders(outcome)
    return f"so by {how_many(len(held), len(reading.members))} models"


def _any_other(reading: Reading, current: Fraction) -> Goal:
    if reading.is_regressor:
        raise InvalidTarget(f"{reading.family} predicts numbers: ask for mace.at_least, mace.at_most or mace.between.")
    if reading.classes is not None and len(reading.classes) == 1:
        raise InvalidTarget(f"The model knows a single class, {reading.classes[0]!r}; there is nothing else to become.")
    return Outcomes(frozenset([current]), negated=True)


def _lead(target: AnyOf, reading: Reading) -> tuple[Goal, Ask]:
    """Return that some wanted label's probability leads every other's by the margin.

    Of two classes the lead of one is twice its probability less 1. Of several, a lead is a difference of
    a forest's shares, or of the probabilities of a form of several models.
    """
    codes = frozenset(reading.code(label) for label in target.labels)
    form, classes = reading.form, reading.classes
    is_rated = isinstance(form, UnreadForm) or getattr(form, "link", "none") != "none"
    if classes is None or reading.rate is None or not is_rated:
        raise InvalidTarget(
            f"{target}: {reading.family} reports no probability that a margin can be put on here. Leave the margin out."
        )
    if len(codes) == len(classes):
        raise InvalidTarget(f"{target}: every label of the model is wanted, so none is left to lead.")
    if len(classes) == 2:
        (code,) = codes
        return _interval(Between((1 + target.margin) / 2, None, classes[int(code)]), reading)
    rate, trees, slack = reading.rate, Fraction(1), Fraction(0)
    if isinstance(form, Composite):
        slack = 32 * form.unit
    elif not isinstance(form, UnreadForm):
        assert isinstance(form, TreeEnsemble)
        assert form.link == "mean"
        trees = Fraction(len(form.roots))
        slack = 8 * form.unit * trees
    others = [k for k in range(len(classes)) if k not in codes]

    def ask(points: Sequence[Point]) -> list[Fraction]:
        shares = [rate(points, k) for k in range(len(classes))]
        return [
            max(shares[int(c)][row] for c in codes) - max(shares[k][row] for k in others) for row in range(len(points))
        ]

    return Lead(codes, Fraction(target.margin), trees, slack), ask


def _interval(target: Between, reading: Reading) -> tuple[Goal, Ask]:
    low, high = target.ends
    form = reading.form
    if isinstance(form, FunctionForm | UnreadForm) and reading.classes is None:
        return Interval(low, high, 0, low, high), reading.ask
    if isinstance(form, UnreadForm):
        return _probability(target, reading, form, low, high)
    if not isinstance(form, TreeEnsemble | Network | Composite) or form.link == "none":
        raise InvalidTarget(
            f"{reading.family} reports no number that a bound can be put on here. Ask for a label, or None for any other outcome."
        )
    if form.is_regressor:
        scale = Fraction(divisor(form))
        return Interval(
            low, high, 0, _times(low, scale), _times(high, scale), slack=_division_slack(form, high, low)
        ), reading.ask
    return _probability(target, reading, form, low, high)


def _probability(
    target: Between,
    reading: Reading,
    form: TreeEnsemble | Network | Composite | UnreadForm,
    low: Fraction | None,
    high: Fraction | None,
) -> tuple[Goal, Ask]:
    assert reading.classes is not None
    if target.label is None and len(reading.classes) != 2:
        of_label(target, reading.classes)
    # Certificates of 0.1 may leave out the label of any two; questions are asked with it.
    code = 1 if target.label is None else int(reading.code(target.label))
    for bound in (low, high):
        if bound is not None and not 0 <= bound <= 1:
            share = f" Write {float(bound) / 100:g} for {float(bound):g} %." if 1 < bound <= 100 else ""
            raise InvalidTarget(f"{target}: a probability lies between 0 and 1.{share}")
    if reading.rate is None:
        raise InvalidTarget(f"{reading.family} reports no probability. Ask for a label.")
    rate = reading.rate

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return rate(points, code)

    if isinstance(form, UnreadForm):
        return Interval(low, high, code, low, high), ask
    if isinstance(form, TreeEnsemble) and form.link == "mean":
        trees = Fraction(len(form.roots))
        goal = Interval(
            low, high, code, _times(low, trees), _times(high, trees), slack=_division_slack(form, low, high)
        )
        return goal, ask
    if isinstance(form, Composite) and form.outputs > 1:
        return Interval(low, high, code, low, high, slack=16 * form.unit), ask
    if isinstance(form, Composite):
        half = Fraction(1, 2)
        at_low, at_high = (None if end is None else end - half for end in (low, high))
        return Interval(low, high, 0, *_of_second(code, at_low, at_high), slack=16 * form.unit), ask
    if form.link == "clip":
        return _clipped(form, code, low, high), ask
    slack = max(
        (_logit_slack(reading, target, bound) for bound in (low, high) if bound is not None), default=Fraction(0)
    )
    return Interval(low, high, 0, *_of_second(code, _logit(low), _logit(high)), slack=slack), ask


def _clipped(form: TreeEnsemble | Network, code: int, low: Fraction | None, high: Fraction | None) -> Interval:
    """Return the bounds on a score whose probability is (clip(score, -1, 1) + 1) / 2, or 1 less that for the first class.

    Two sums and an exact halving of numbers up to 2 lose at most 3 units of roundoff, 6 in the unit of the score. A bound of 0 from
    below, or of 1 from above, says nothing.
    """
    at_low = None if low is None or low <= 0 else 2 * low - 1
    at_high = None if high is None or high >= 1 else 2 * high - 1
    return Interval(low, high, 0, *_of_second(code, at_low, at_high), slack=8 * form.unit)


def _times(bound: Fraction | None, scale: Fraction) -> Fraction | None:
    return None if bound is None else bound * scale


def _of_second(code: int, low: Fraction | None, high: Fraction | None) -> tuple[Fraction | None, Fraction | None]:
    """Return bounds on the score of the second class; those given are on the score of the class ``code``."""
    return (low, high) if code == 1 else (_times(high, Fraction(-1)), _times(low, Fraction(-1)))


def _division_slack(form: TreeEnsemble | Network | Composite, *bounds: Fraction | None) -> Fraction:
    """Return what the final division of a mean may lose, in the unit of the sum."""
    if not isinstance(form, TreeEnsemble):
        return Fraction(0)
    largest = max((abs(bound) for bound in bounds if bound is not None), default=Fraction(0))
    return 4 * form.unit * largest * len(form.roots) if form.link == "mean" else Fraction(0)


def _logit(probability: Fraction | None) -> Fraction | None:
    return None if probability is None else Fraction(logit(probability))


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
    at, below, above = (logit(end) for end in (probability, probability - reach, probability + reach))
    return Fraction(max(above - at, at - below)) + 32 * UNIT * Fraction(1 + max(abs(above), abs(below)))

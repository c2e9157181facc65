"""Asking the model for the scores of explanations: which number, and of how many rows in one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction

from mace.answer.explanation import Explanation
from mace.answer.score import SCORE_DIGITS, AnswerScores, Threshold
from mace.errors import MaceError
from mace.forms import ObliqueTrees
from mace.models import Reading
from mace.models.reading import Rate
from mace.models.sets import how_many
from mace.space import FeatureSpace, Point
from mace.targets import AnyOf, Between


@dataclass(frozen=True, slots=True)
class Measure:
    """What is scored, and how.

    Attributes
    ----------
    of : str
        ``"P(good)"``, ``"score of good"`` or ``"prediction"``.
    threshold : float, pair of floats, optional
        Where the target begins.
    ask : callable, optional
        Asks the real model about rows, in one call; ``None`` where the prediction itself is the score.
    code : int, optional
        Of the label whose probability, or score, it is.
    """

    of: str
    threshold: Threshold
    ask: Callable[[Sequence[Point]], list[float]] | None
    code: int | None = None

    @classmethod
    def to_reach(cls, target: object, reading: Reading, prediction: object) -> Measure | None:
        """Return what to score for a target and a row of some prediction; ``None`` where the model reports nothing but labels.

        The label that is asked for is scored; of two labels the other one; where several would do, the row's own, which must be left.
        """
        threshold = _ends(target) if isinstance(target, Between) else None
        if reading.members:
            return _of_set(target, reading, prediction)
        if reading.classes is None:
            is_number = reading.is_regressor or isinstance(target, Between)
            return cls("prediction", threshold, None) if is_number else None
        rate = reading.rate or reading.score
        if rate is None:
            return None
        code = _code(target, reading, prediction)
        if not isinstance(target, Between) and len(reading.classes) == 2:
            threshold = _decides(target, reading, code)
        label = reading.classes[code]
        of = f"P({label})" if reading.rate else f"score of {label}"
        return cls(of, threshold, _rounded(rate, code), code)


def _of_set(target: object, reading: Reading, prediction: object) -> Measure | None:
    """Return what to score for a set of models: of the numbers that they give, the one that decides whether enough reach the target."""
    each = [Measure.to_reach(target, member, prediction) for member in reading.members]
    measures = [measure for measure in each if measure is not None]
    if len(measures) < len(each):
        return None
    asks = [
        _number(member) if measure.ask is None else measure.ask
        for member, measure in zip(reading.members, measures, strict=True)
    ]
    is_least = isinstance(target, Between) and target.low is None
    place = reading.at_least - 1 if is_least else -reading.at_least

    def ask(points: Sequence[Point]) -> list[float]:
        said = zip(*(one(points) for one in asks), strict=True)
        return [sorted(numbers)[place] for numbers in said]

    first, thresholds = measures[0], {measure.threshold for measure in measures}
    names = {measure.of for measure in measures}
    if len(names) > 1:
        return None
    of = f"{first.of} of {how_many(reading.at_least, len(measures))} models"
    return Measure(of, thresholds.pop() if len(thresholds) == 1 else None, ask)


def _number(reading: Reading) -> Callable[[Sequence[Point]], list[float]]:
    return lambda points: [float(f"{float(found):.{SCORE_DIGITS}g}") for found in reading.ask(points)]


def _rounded(rate: Rate, code: int) -> Callable[[Sequence[Point]], list[float]]:
    return lambda points: list(map(_shortened, rate(points, code)))


def _shortened(score: Fraction) -> float:
    return float(f"{float(score):.{SCORE_DIGITS}g}")


def _code(target: object, reading: Reading, prediction: object) -> int:
    """Return the code of the label that is scored."""
    assert reading.classes is not None
    if isinstance(target, Between):
        return 1 if target.label is None else int(reading.code(target.label))
    labels = target.labels if isinstance(target, AnyOf) else () if target is None else (target,)
    if len(labels) == 1:
        return int(reading.code(labels[0]))
    own = int(reading.code(prediction))
    return 1 - own if len(reading.classes) == 2 else own


def _ends(target: Between) -> Threshold:
    low, high = (None if end is None else float(end) for end in target.ends)
    return high if low is None else low if high is None else (low, high)


def _decides(target: object, reading: Reading, code: int) -> float | None:
    """Return from which score on a model of two labels says the label of a code."""
    margin = target.margin if isinstance(target, AnyOf) else 0.0
    if reading.rate is None:
        own = reading.threshold or 0.0
        return own if code == 1 else -own
    if reading.ask_rated is not None:
        return (1 + margin) / 2
    form = reading.form.trees if isinstance(reading.form, ObliqueTrees) else reading.form
    if getattr(form, "link", "none") != "none":
        return (1 + margin) / 2
    if reading.threshold is None:
        return None
    return reading.threshold if code == 1 else 1 - reading.threshold


def with_scores(
    explanations: Sequence[Explanation],
    measures: Sequence[Measure | None],
    space: FeatureSpace,
    watched: Callable[[], AbstractContextManager[None]],
    known: Callable[[Sequence[Point], int], list[Fraction] | None],
    *,
    at_once: bool,
) -> list[Explanation]:
    """Return explanations with their scores.

    Parameters
    ----------
    explanations : sequence of Explanation
        Without scores.
    measures : sequence of Measure, optional
        What to score of each; ``None`` for nothing.
    space : FeatureSpace
        The features.
    watched : callable
        Gives the context in which the model is asked, which raises where it has changed.
    known : callable
        Gives the probabilities, or scores, that the model has said already, so that it is not asked again; ``None`` where one is missing.
    at_once : bool
        Whether to ask now, about all rows in one call for each number that is scored, rather than when a score is first wanted.
    """
    made: list[AnswerScores | None] = []
    pending: dict[str, list[int]] = {}
    for number, (each, measure) in enumerate(zip(explanations, measures, strict=True)):
        if measure is None:
            made.append(None)
        elif measure.ask is None:
            said = [each.prediction, *(one.prediction for one in each)]
            made.append(AnswerScores(measure.of, measure.threshold, [float(one) for one in said]))  # type: ignore[arg-type]
        elif (
            not at_once
            and measure.code is not None
            and (rates := known(_points(each, space), measure.code)) is not None
        ):
            made.append(AnswerScores(measure.of, measure.threshold, list(map(_shortened, rates))))
        else:
            made.append(AnswerScores(measure.of, measure.threshold, ask=_later(each, measure, space, watched)))
            pending.setdefault(measure.of, []).append(number)
    for numbers in pending.values() if at_once else ():
        group = [_points(explanations[number], space) for number in numbers]
        ask = measures[numbers[0]].ask  # type: ignore[union-attr]
        assert ask is not None
        try:
            with watched():
                found = iter(ask([point for points in group for point in points]))
        except MaceError:  # the answers hold; what was changed meanwhile is said where it is asked about
            continue
        for number, points in zip(numbers, group, strict=True):
            scores = made[number]
            assert scores is not None
            made[number] = AnswerScores(scores.of, scores.threshold, tuple(next(found) for _ in points))
    return [each.with_scores(scores) for each, scores in zip(explanations, made, strict=True)]


def _points(explanation: Explanation, space: FeatureSpace) -> list[Point]:
    return [space.point(row) for row in (explanation.factual, *(one.values for one in explanation))]


def _later(
    explanation: Explanation, measure: Measure, space: FeatureSpace, watched: Callable[[], AbstractContextManager[None]]
) -> Callable[[], list[float]]:
    def ask() -> list[float]:
        assert measure.ask is not None
        with watched():
            return measure.ask(_points(explanation, space))

    return ask

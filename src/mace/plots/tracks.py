"""One change as it is drawn: numbers and ordered levels on a line, categories as categories."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.answer.counterfactual import Change, Counterfactual, real_dtype, show_value
from mace.answer.score import Threshold
from mace.plots.display import name_of, texts_of
from mace.space import Categorical, Date, FeatureSpace, Integer, Real
from mace.space.features import is_missing

Place = Callable[[Any], float]

MOST_SIGNS = 10
"""A number that is longer is shortened in a picture; the answer itself has all its digits."""

NOWHERE: NDArray[np.float64] = np.empty(0)


@dataclass(frozen=True, slots=True)
class Track:
    """One change, or the score: where the person is, where the answer is, where others are.

    Attributes
    ----------
    change : Change
        What changes.
    name : str
        What it is called.
    texts : pair of str
        Both values, as they are written.
    before, after : float
        Their places on a line from 0 to 1; NaN where missing, and of a category.
    others : array of float
        The places of other people.
    ticks : tuple of (float, str)
        The ends of the line, and what they are called; none for categories, which have no line.
    levels : tuple of float
        The places of ordered levels.
    wanted : pair of float, optional
        Of a score: the part of the line that is asked for.
    about : str
        Small print: the threshold of a score, how many other people have each category.
    """

    change: Change
    name: str
    texts: tuple[str, str]
    before: float
    after: float
    others: NDArray[np.float64]
    ticks: tuple[tuple[float, str], ...]
    levels: tuple[float, ...] = ()
    wanted: tuple[float, float] | None = None
    about: str = ""

    @property
    def is_category(self) -> bool:
        """Whether the values have no order, and so no line."""
        return not self.ticks


def track_of(change: Change, answer: Counterfactual, space: FeatureSpace, population: Any = None) -> Track:
    """Return a change of an answer as it is drawn; ``population`` is a frame of people to compare with."""
    feature = space[change.feature]
    name = answer.named(change).replace(change.feature, name_of(change.feature, space), 1)
    values = [] if population is None else population[change.feature].tolist()
    if isinstance(feature, Categorical):
        about = _shares(change, values, space)
        return Track(change, name, texts_of(change, space), math.nan, math.nan, NOWHERE, (), about=about)
    place, ticks, levels = line_of(change.feature, space)
    found = np.array([place(value) for value in values], dtype=float)
    others = found[(found >= 0) & (found <= 1)]
    return Track(change, name, _short(change, space), place(change.before), place(change.after), others, ticks, levels)


def _short(change: Change, space: FeatureSpace) -> tuple[str, str]:
    """Return the values as a picture shows them: long decimals with six digits, unless these would be the same."""
    ends = zip((change.before, change.after), change.texts, strict=True)
    short = [f"{end:.6g}" if isinstance(end, float) and len(text) > MOST_SIGNS else text for end, text in ends]
    before, after = change.texts if short[0] == short[1] else short
    value = space.wording.value
    return value(change.feature, before), value(change.feature, after)


def line_of(name: str, space: FeatureSpace) -> tuple[Place, tuple[tuple[float, str], ...], tuple[float, ...]]:
    """Return where values of a feature are on its line, the ends of the line, and the places of levels."""
    feature = space[name]
    if isinstance(feature, Real | Integer):
        is_plain = not isinstance(feature, Date)
        ends = [
            show_value(end, real_dtype(feature)) if is_plain else feature.text(end)
            for end in (feature.low, feature.high)
        ]
        inside = _number_place(float(feature.low), float(feature.high))
        return (_date_place(feature, inside) if isinstance(feature, Date) else inside), _ticks(*ends), ()
    places = {level: index / max(len(feature.levels) - 1, 1) for index, level in enumerate(feature.levels)}
    ends = [space.wording.level(name, feature.levels[place]) for place in (0, -1)]
    return lambda value: places.get(value, math.nan), _ticks(*ends), tuple(places.values())


def _ticks(low: str, high: str) -> tuple[tuple[float, str], ...]:
    return (0.0, low), (1.0, high)


def _number_place(low: float, high: float) -> Place:
    def place(value: Any) -> float:
        try:
            return (float(value) - low) / (high - low) if high > low else 0.5
        except (TypeError, ValueError):
            return math.nan

    return place


def _date_place(feature: Date, inside: Place) -> Place:
    def place(value: Any) -> float:
        try:
            return inside(feature.number(value))
        except ValueError:
            return math.nan

    return place


def _shares(change: Change, values: list[Any], space: FeatureSpace) -> str:
    """Return how many other people have either category."""
    if not values:
        return ""
    said = []
    for end, text in zip((change.before, change.after), texts_of(change, space), strict=True):
        count = sum(map(is_missing, values)) if is_missing(end) else values.count(end)
        said.append(f"{count / len(values):.0%} {text}")
    return f"of others: {', '.join(said)}"


def score_track(answer: Counterfactual, space: FeatureSpace) -> Track | None:
    """Return the score before and after as a track with the part that is asked for; ``None`` where the model reports none."""
    before, after, texts = answer.score_before, answer.score, answer.score_texts
    if before is None or after is None or not texts:
        return None
    known = [end for end in _ends(answer.threshold) if end is not None]
    low, high = (0.0, 1.0) if answer.score_of.startswith("P(") else _around([before, after, *known])
    place = _number_place(low, high)
    about = f"threshold {' to '.join(f'{end:.6g}' for end in known)}" if known else ""
    return Track(
        Change(answer.score_of, before, after),
        space.wording.target(answer.score_of),
        texts,
        place(before),
        place(after),
        NOWHERE,
        _ticks(f"{low:.4g}", f"{high:.4g}"),
        wanted=_wanted(answer.threshold, before, after, place),
        about=about,
    )


def _ends(threshold: Threshold) -> tuple[float | None, ...]:
    return threshold if isinstance(threshold, tuple) else (threshold,)


def _around(values: list[float]) -> tuple[float, float]:
    """Return a range around some numbers, wider by a tenth on either side."""
    least, most = min(values), max(values)
    room = 0.1 * (most - least) or 0.1 * abs(most) or 1.0
    return least - room, most + room


def _wanted(threshold: Threshold, before: float, after: float, place: Place) -> tuple[float, float] | None:
    """Return the part of the line that is asked for: between two ends, or from one on to the side of the answer."""
    if threshold is None:
        return None
    if isinstance(threshold, tuple):
        return place(threshold[0]), place(threshold[1])
    is_above = after > threshold or (after == threshold and after >= before)
    return (place(threshold), 1.0) if is_above else (0.0, place(threshold))

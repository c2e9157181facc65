"""What to change: a person's changes, each against the range of its feature and the people around."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.answer.counterfactual import Change, show_value
from mace.answer.explanation import Explanation
from mace.errors import InvalidOption
from mace.plots.display import BLUE, GREY, ORANGE, Display, plain
from mace.space import Date, FeatureSpace, Integer, Real


@dataclass(frozen=True, slots=True)
class Track:
    """One feature on a line from 0 to 1: where the person is, where the answer is, where others are.

    Attributes
    ----------
    change : Change
        What changes.
    before, after : float
        The two places; NaN where missing.
    others : array of float
        The places of other people.
    ticks : tuple of (float, str)
        The labels and where they are: the ends of a range, or the levels.
    """

    change: Change
    before: float
    after: float
    others: NDArray[np.float64]
    ticks: tuple[tuple[float, str], ...]


class ChangesDisplay(Display):
    """What to change, feature by feature.

    Parameters
    ----------
    tracks : sequence of Track
        One a change.
    title : str
        What is above the plot.
    """

    def __init__(self, tracks: Sequence[Track], title: str = "") -> None:
        self.tracks = tuple(tracks)
        self.title = title
        self.size = (8.0, 0.9 + 0.85 * max(len(self.tracks), 1))

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, number: int = 1, *, space: FeatureSpace | None = None, population: Any = None
    ) -> ChangesDisplay:
        """Return the display of one counterfactual; ``population`` is a frame of people to compare with."""
        if not explanation:
            raise InvalidOption(f"plot: there is no counterfactual to draw. {explanation.headline()}")
        if not 1 <= number <= len(explanation):
            raise InvalidOption(f"plot: number={number}; there are {len(explanation)} counterfactuals.")
        if space is None:
            raise InvalidOption("plot: an explanation that was read from JSON does not know its features; give space=.")
        answer = explanation[number - 1]
        tracks = [_track(change, space, population) for change in answer.changes]
        proved = f"proved at least {answer.lower:.4g}" if answer.lower else "not proved nearest"
        proved = "proved nearest" if answer.status == "optimal" else proved
        before, after = (_short(show_value(label)) for label in (explanation.prediction, answer.prediction))
        title = f"{before} \u2192 {after}, distance {answer.distance:.4g}"
        return cls(tracks, f"{title} ({proved})" if number == 1 else title)

    def plot(self, ax: Any = None) -> ChangesDisplay:
        """Draw a line a feature, other people as marks on it, and an arrow from the person to the answer."""
        ax = self._axes(ax)
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        places = range(len(self.tracks))[::-1]
        for place, track in zip(places, self.tracks, strict=True):
            self._draw(ax, place, track)
        ax.set_yticks(list(places), [plain(track.change.feature) for track in self.tracks])
        ax.set_xticks([])
        ax.set_xlim(-0.05, 1.05)
        ax.set_ylim(-0.6, len(self.tracks) - 0.4)
        ax.set_title(plain(self.title, most=120), loc="left", fontsize=11)
        return self

    def _draw(self, ax: Any, place: int, track: Track) -> None:
        ax.plot([0, 1], [place, place], color=GREY, lw=1, zorder=1)
        if len(track.others):
            spread = np.random.default_rng(0).uniform(-0.1, 0.1, len(track.others))
            ax.plot(track.others, place + spread, "|", color=GREY, alpha=0.35, ms=7, zorder=1, rasterized=True)
        for where, label in track.ticks:
            ax.text(where, place - 0.2, plain(label), ha="center", va="top", fontsize=8, color="#666666")
        if math.isfinite(track.before) and math.isfinite(track.after):
            style = {"arrowstyle": "-|>", "color": BLUE, "lw": 2.2, "shrinkA": 3, "shrinkB": 0}
            ax.annotate("", xy=(track.after, place), xytext=(track.before, place), arrowprops=style, zorder=3)
        near = abs(track.after - track.before) < 0.12
        shift = 0.0 if not near else math.copysign(0.03, track.after - track.before)
        for where, value, colour, move, side in (
            (track.before, track.change.texts[0], ORANGE, -shift, "right" if near and shift > 0 else "left"),
            (track.after, track.change.texts[1], BLUE, shift, "left" if near and shift > 0 else "right"),
        ):
            x = 0.5 if math.isnan(where) else where
            ax.plot([x], [place], "o", color=colour, ms=6, zorder=4)
            ax.text(
                x + move / 2,
                place + 0.16,
                plain(value),
                ha=side if near else "center",
                va="bottom",
                color=colour,
                fontsize=10,
                fontweight="bold",
            )


def _track(change: Change, space: FeatureSpace, population: Any) -> Track:
    feature = space[change.feature]
    ticks: tuple[tuple[float, str], ...]
    place: Callable[[Any], float]
    if isinstance(feature, Date):
        place = _date_place(feature)
        ticks = ((0.0, feature.text(feature.low)), (1.0, feature.text(feature.high)))
    elif isinstance(feature, Real | Integer):
        place = _number_place(float(feature.low), float(feature.high))
        dtype = feature.dtype if isinstance(feature, Real) else None
        ticks = ((0.0, show_value(feature.low, dtype)), (1.0, show_value(feature.high, dtype)))
    else:
        place = _level_place(feature.levels)
        shown = feature.levels if len(feature.levels) <= 5 else ()
        ticks = tuple(
            (place(level), _short(str(level))) for level in shown if level not in (change.before, change.after)
        )
    values = [] if population is None else population[change.feature].tolist()
    others = np.array([place(value) for value in values], dtype=float)
    return Track(change, place(change.before), place(change.after), others[np.isfinite(others)], ticks)


def _date_place(feature: Date) -> Callable[[Any], float]:
    inside = _number_place(float(feature.low), float(feature.high))

    def place(value: Any) -> float:
        try:
            return float(inside(feature.number(value)))
        except ValueError:
            return math.nan

    return place


def _number_place(low: float, high: float) -> Any:
    def place(value: Any) -> float:
        try:
            return (float(value) - low) / (high - low) if high > low else 0.5
        except (TypeError, ValueError):
            return math.nan

    return place


def _level_place(levels: tuple[Any, ...]) -> Any:
    places = {level: index / max(len(levels) - 1, 1) for index, level in enumerate(levels)}
    return lambda value: places.get(value, math.nan)


def _short(text: str) -> str:
    return text if len(text) <= 18 else text[:17] + "\u2026"

"""What to change: the changes of a person's answers, side by side, each against the range of its feature and the people around."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mace.answer.counterfactual import Counterfactual, shortened_list
from mace.answer.explanation import Explanation
from mace.distances import distance_text
from mace.errors import InvalidOption
from mace.plots.display import BLUE, GREEN, GREY, PALE, RUST, VERMILION
from mace.plots.sheet import SMALL_SIZE, Sheet, SheetDisplay
from mace.plots.tracks import Track, score_track, track_of
from mace.problem import Status
from mace.space import FeatureSpace
from mace.space.frames import as_pandas

ANSWERS_DRAWN = 12
"""Answers in one picture; further ones are counted."""

PAGE_MARGIN, GAP = 0.15, 0.2
"""Inches around everything, and between columns."""

LEAST_COLUMN = 1.55
"""Inches that the column of an answer needs beside others."""

BETWEEN = 0.28
"""Inches for the arrow between two values."""

BECOMES = "\u2192"


@dataclass(frozen=True, slots=True)
class DrawnAnswer:
    """An answer as it is drawn: a title, a line about its distance, its score, and a track a change."""

    title: str
    about: str
    tracks: tuple[Track, ...]
    score: Track | None = None


class ChangesDisplay(SheetDisplay):
    """What to change, feature by feature: answers side by side, or below each other where they are many.

    Numbers and ordered levels lie on a line from the least to the most; categories have no order and are chips.

    Parameters
    ----------
    answers : sequence of DrawnAnswer
        Nearest first.
    more : int
        How many further answers are not drawn.
    """

    def __init__(self, answers: Sequence[DrawnAnswer], more: int = 0) -> None:
        self.answers = tuple(answers)
        self.more = more

    @property
    def tracks(self) -> tuple[Track, ...]:
        """What the first answer changes."""
        return self.answers[0].tracks

    @classmethod
    def from_explanation(
        cls,
        explanation: Explanation,
        number: int | None = None,
        *,
        space: FeatureSpace | None = None,
        population: Any = None,
    ) -> ChangesDisplay:
        """Return the display of one counterfactual, or of all; ``population`` is a frame of people to compare with."""
        if not explanation:
            raise InvalidOption(f"plot: there is no counterfactual to draw. {explanation.headline()}")
        numbers, more = drawn_of("counterfactuals", len(explanation), number)
        space = space or explanation.space
        if space is None:
            raise InvalidOption("plot: an explanation that was read from JSON does not know its features; give space=.")
        population = None if population is None else as_pandas(population)
        absent = [name for name in space if population is not None and name not in population.columns]
        if absent:
            raise InvalidOption(
                f"plot: population has no column {absent[0]!r:.80}. Give a frame with every feature: {shortened_list(list(space), 200)}."
            )
        return cls([_drawn(explanation, each, space, population) for each in numbers], more)

    def _draw(self, sheet: Sheet) -> float:
        inside = sheet.width - 2 * PAGE_MARGIN
        rooms = [sheet.room_of(track.name, bold=True) for answer in self.answers for track in _rows(answer)]
        names = min(max(rooms, default=0.0) + 0.02, (0.32 if len(self.answers) == 1 else 0.24) * inside)
        columns = max(1, min(3, int((inside - names) / (LEAST_COLUMN + GAP))))
        blocks = math.ceil(len(self.answers) / columns)
        columns = math.ceil(len(self.answers) / blocks)
        y, order = (
            PAGE_MARGIN,
            tuple(dict.fromkeys(track.change.feature for each in self.answers for track in each.tracks)),
        )
        for start in range(0, len(self.answers), columns):
            block = self.answers[start : start + columns]
            y = _Block(sheet, block, names, (inside - names) / columns - GAP, is_alone=columns == 1).draw(y, order)
            y += 0.1
        if self.more:
            y += sheet.text(PAGE_MARGIN, y, f"and {self.more} more counterfactuals", inside, colour=GREY) + 0.05
        return self._legend(sheet, y) + PAGE_MARGIN

    def _legend(self, sheet: Sheet, y: float) -> float:
        """Say what the marks mean, in as many lines as that takes."""
        tracks = [track for answer in self.answers for track in _rows(answer)]
        has_lines = any(not track.is_category for track in tracks)
        has_chips = any(track.is_category for track in tracks)
        entries = [("now", VERMILION), ("instead", BLUE)]
        entries += [("other people", GREY)] if any(len(track.others) for track in tracks) else []
        entries += [("asked for", GREEN)] if any(track.wanted for track in tracks) else []
        x, middle = PAGE_MARGIN, y + 0.1
        for text, colour in entries:
            has_chip = has_chips and text in ("now", "instead")
            marks = 0.16 * (has_lines or not has_chip) + 0.3 * has_chip
            room = marks + 0.08 + sheet.room_of(text, size=SMALL_SIZE) + 0.25
            if x > PAGE_MARGIN and x + room > sheet.width:
                x, middle = PAGE_MARGIN, middle + 0.2
            if has_lines or not has_chip:
                _mark(sheet, x + 0.08, middle, text, colour)
            if has_chip:
                sheet.chip_frame(x + marks - 0.24, middle - 0.06, 0.24, 0.12, is_new=text == "instead")
            sheet.text(x + marks + 0.08, middle - 0.07, text, room, size=SMALL_SIZE, colour=GREY)
            x += room
        return middle + 0.1


class _Block:
    """Answers beside each other: a column of names, and a column an answer."""

    def __init__(
        self, sheet: Sheet, answers: Sequence[DrawnAnswer], names: float, room: float, *, is_alone: bool
    ) -> None:
        self.sheet, self.answers, self.is_alone = sheet, answers, is_alone
        self.names, self.room = names, room
        rooms = [self._natural(track) for answer in answers for track in _rows(answer) if is_alone]
        self.values = min(max([0.3 * room, *(each for each in rooms if each <= 0.6 * room)]), 0.6 * room)
        self.starts = [PAGE_MARGIN + names + GAP + column * (room + GAP) for column in range(len(answers))]

    def draw(self, y: float, order: Sequence[str]) -> float:
        """Draw everything from ``y`` on, features in an order that all blocks share, and return where it ends."""
        y = self._titles(y)
        scores = [answer.score for answer in self.answers]
        if any(scores):
            y = self._row(y, scores)
        found = [{track.change.feature: track for track in answer.tracks} for answer in self.answers]
        for feature in order:
            if any(feature in tracks for tracks in found):
                y = self._row(y, [tracks.get(feature) for tracks in found])
        return y

    def _titles(self, y: float) -> float:
        heights = []
        starts = [PAGE_MARGIN] if self.is_alone else self.starts
        room = self.room + (self.names + GAP if self.is_alone else 0.0)
        for x, answer in zip(starts, self.answers, strict=False):
            height = self.sheet.text(x, y, answer.title, room, most=3, size=10.5, bold=True)
            heights.append(height + self.sheet.text(x, y + height, answer.about, room, most=3, size=8.5, colour=GREY))
        return y + max(heights) + 0.1

    def _row(self, y: float, tracks: Sequence[Track | None]) -> float:
        """Draw what becomes of one feature in each answer, below a thin line."""
        sheet = self.sheet
        sheet.line([PAGE_MARGIN, sheet.width - PAGE_MARGIN], [y, y], color=PALE, lw=0.7, zorder=0)
        y += 0.08
        first = next(track for track in tracks if track is not None)
        height = sheet.text(PAGE_MARGIN, y, first.name, self.names, most=3, bold=True)
        if not self.is_alone:
            now = f"now {first.texts[0]}"
            height += sheet.text(PAGE_MARGIN, y + height, now, self.names, most=3, size=SMALL_SIZE, colour=RUST)
        if first.about and (first.wanted or not self.is_alone):
            height += sheet.text(PAGE_MARGIN, y + height, first.about, self.names, most=3, size=SMALL_SIZE, colour=GREY)
        heights = [height]
        for x, track in zip(self.starts, tracks, strict=True):
            if track is None:
                sheet.text(x, y, "stays", self.room, colour=GREY)
            else:
                heights.append(self._wide(x, y, track) if self.is_alone else self._narrow(x, y, track))
        return y + max(heights) + 0.06

    def _wide(self, x: float, y: float, track: Track) -> float:
        """Draw both values, and beside them the line."""
        room = self.room if track.is_category and not track.about else self.values
        height = self._both(x, y, track, room)
        rest = x + room + GAP
        if not track.is_category:
            return max(height, draw_line(self.sheet, rest, x + self.room, y, track))
        if track.about:
            about = self.sheet.text(
                rest, y + 0.03, track.about, x + self.room - rest, most=3, size=SMALL_SIZE, colour=GREY
            )
            return max(height, about)
        return height

    def _both(self, x: float, y: float, track: Track, room: float) -> float:
        """Draw the old and the new value, beside each other or else below each other."""
        sheet = self.sheet
        if self._natural(track) <= room:
            height, x = self._value(x, y, track, 0, room)
            sheet.text(x + BETWEEN / 2, y + 0.03, BECOMES, BETWEEN, align="center", colour=GREY)
            return max(height, self._value(x + BETWEEN, y, track, 1, room)[0])
        top = self._value(x, y, track, 0, room)[0] + 0.04
        sheet.text(x + 0.08, y + top + 0.03, BECOMES, BETWEEN, colour=GREY)
        return top + self._value(x + BETWEEN, y + top, track, 1, room - BETWEEN)[0]

    def _natural(self, track: Track) -> float:
        """Return the room that both values take beside each other."""
        chips = sum(track.is_category or text == "missing" for text in track.texts)
        texts = sum(self.sheet.room_of(text, bold=bool(which)) for which, text in enumerate(track.texts))
        return texts + 0.16 * chips + BETWEEN + 0.02

    def _value(self, x: float, y: float, track: Track, which: int, room: float) -> tuple[float, float]:
        """Draw one of the values; return its height and where it ends."""
        sheet, text = self.sheet, track.texts[which]
        if track.is_category or text == "missing":
            width, height = sheet.chip(x, y, text, room, is_new=bool(which))
            return height, x + width
        colour, bold = (BLUE, True) if which else (RUST, False)
        height = sheet.text(x, y + 0.03, text, room, most=2, bold=bold, colour=colour)
        return height + 0.06, x + min(room, sheet.room_of(text, bold=bold))

    def _narrow(self, x: float, y: float, track: Track) -> float:
        """Draw the new value, and below it the line."""
        height = self._value(x, y, track, 1, self.room)[0]
        if track.is_category:
            return height
        return height + draw_line(self.sheet, x, x + self.room, y + height, track)


def drawn_of(what: str, count: int, number: int | None) -> tuple[Sequence[int], int]:
    """Return which of several answers, or reasons, are drawn, counted from 1, and how many further ones are not."""
    if number is None:
        return range(1, count + 1)[:ANSWERS_DRAWN], max(count - ANSWERS_DRAWN, 0)
    if isinstance(number, str | os.PathLike):
        raise InvalidOption(f"plot: number={str(number)!r:.80}; to write a picture, plot().save({str(number)!r:.80}).")
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
        raise InvalidOption(f"plot: number={number!r:.80}; there are {count} {what}. Give which, counted from 1.")
    return [number], 0


def draw_line(sheet: Sheet, left: float, right: float, y: float, track: Track) -> float:
    """Draw a track between two ends and return how high it is: other people as ticks, the change from a ring to a diamond."""
    middle, start, room = y + 0.1, left + 0.06, right - left - 0.12
    before, after = (start + room * min(max(place, 0.0), 1.0) for place in (track.before, track.after))
    if track.wanted:
        low, high = (start + room * min(max(place, 0.0), 1.0) for place in track.wanted)
        sheet.box(low, middle - 0.09, high - low, 0.18, facecolor=GREEN, alpha=0.22, lw=0, zorder=0.5)
        for place, edge in zip((low, high), track.wanted, strict=True):
            if 0 < edge < 1:
                sheet.line([place, place], [middle - 0.11, middle + 0.11], color=GREEN, lw=1.4, ls="--", zorder=1)
    sheet.line([start, start + room], [middle, middle], color=PALE, lw=1.2, zorder=1, solid_capstyle="butt")
    if len(track.others):
        places = start + room * np.unique(track.others.round(3))
        sheet.line(places, np.full(len(places), middle), color=GREY, alpha=0.35, ls="", marker="|", ms=7, zorder=1)
    if 2 < len(track.levels) <= 40:
        places = start + room * np.array(track.levels)
        sheet.line(places, np.full(len(places), middle), color=GREY, ls="", marker="o", ms=2.5, zorder=1.5)
    if math.isfinite(before) and math.isfinite(after):
        sheet.line([before, after], [middle, middle], color=BLUE, lw=2.0, zorder=2, solid_capstyle="butt")
    if math.isfinite(before):
        _mark(sheet, before, middle, "now", VERMILION)
    if math.isfinite(after):
        _mark(sheet, after, middle, "instead", BLUE)
    heights = [0.0]
    for place, text in track.ticks:
        x, align = (left, "left") if place == 0 else (right, "right")
        share = 0.48 * (right - left)
        heights.append(sheet.text(x, middle + 0.1, text, share, size=SMALL_SIZE, colour=GREY, align=align))
    return 0.2 + max(heights)


def _mark(sheet: Sheet, x: float, y: float, text: str, colour: str) -> None:
    """Draw one of the marks that the legend explains."""
    looks: dict[str, dict[str, Any]] = {
        "now": {"marker": "o", "ms": 7.5, "mfc": "white", "mew": 1.8, "zorder": 3},
        "instead": {"marker": "D", "ms": 5.0, "zorder": 4},
        "other people": {"marker": "|", "ms": 7},
        "asked for": {"marker": "s", "ms": 8, "alpha": 0.4, "mew": 0},
    }
    sheet.line([x], [y], color=colour, ls="", **looks[text])


def _rows(answer: DrawnAnswer) -> tuple[Track, ...]:
    return answer.tracks if answer.score is None else (answer.score, *answer.tracks)


def _drawn(explanation: Explanation, number: int, space: FeatureSpace, population: Any) -> DrawnAnswer:
    answer = explanation[number - 1]
    tracks = tuple(track_of(change, answer, space, population) for change in answer.changes)
    before, after = (space.wording.outcome(label) for label in (explanation.prediction, answer.prediction))
    title = f"{before} {BECOMES} {after}"
    is_first = number == 1
    proved = f", {_proved(answer)}{explanation.among if answer.status == Status.OPTIMAL else ''}" if is_first else ""
    about = f"{distance_text(explanation.distance)} {answer.distance:.4g}{proved}"
    return DrawnAnswer(
        f"{number}. {title}" if len(explanation) > 1 else title, about, tracks, score_track(answer, space)
    )


def _proved(answer: Counterfactual) -> str:
    if answer.status == Status.OPTIMAL:
        return "proved nearest"
    return f"proved at least {answer.lower:.4g}" if answer.lower else "not proved nearest"

"""Why: the features of a reason, each with the range that holds the decision, and where the row is in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mace.answer.counterfactual import Change
from mace.answer.reasons import Reasons
from mace.errors import InvalidOption
from mace.plots.changes import GAP, PAGE_MARGIN, draw_line, drawn_of
from mace.plots.display import GREEN, GREY, PALE, VERMILION, name_of, texts_of
from mace.plots.sheet import SMALL_SIZE, Sheet, SheetDisplay
from mace.plots.tracks import NOWHERE, Track, line_of
from mace.space import Categorical, FeatureSpace

NAMES_SHARE, VALUES_SHARE = 0.3, 0.25
"""What of the width the names of features take, and of the rest their values."""


@dataclass(frozen=True, slots=True)
class DrawnReason:
    """A reason as it is drawn: a title, a line about it, a track a feature, and the levels of categories that hold the decision."""

    title: str
    about: str
    tracks: tuple[Track, ...]
    levels: tuple[tuple[str, ...], ...]


class ReasonsDisplay(SheetDisplay):
    """Reasons below each other.

    Parameters
    ----------
    reasons : sequence of DrawnReason
        What to draw.
    more : int
        How many further reasons are not drawn.
    """

    def __init__(self, reasons: Sequence[DrawnReason], more: int = 0) -> None:
        self.reasons = tuple(reasons)
        self.more = more

    @classmethod
    def from_reasons(
        cls, reasons: Reasons, number: int | None = None, *, space: FeatureSpace | None = None
    ) -> ReasonsDisplay:
        """Return the display of one reason, or of all."""
        if not reasons:
            raise InvalidOption(f"plot: there is no reason to draw: {reasons.reason}.")
        numbers, more = drawn_of("reasons", len(reasons), number)
        space = space or reasons.space
        if space is None:
            raise InvalidOption("plot: reasons that were read from JSON do not know their features; give space=.")
        return cls([_drawn(reasons, each, space) for each in numbers], more)

    def _draw(self, sheet: Sheet) -> float:
        y, inside = PAGE_MARGIN, sheet.width - 2 * PAGE_MARGIN
        for each in self.reasons:
            y += sheet.text(PAGE_MARGIN, y, each.title, inside, most=3, size=10.5, bold=True)
            y += sheet.text(PAGE_MARGIN, y, each.about, inside, most=3, size=8.5, colour=GREY) + 0.08
            for track, levels in zip(each.tracks, each.levels, strict=True):
                y = self._row(sheet, y, track, levels)
            y += 0.1
        if self.more:
            y += sheet.text(PAGE_MARGIN, y, f"and {self.more} more reasons", inside, colour=GREY) + 0.05
        sheet.line([PAGE_MARGIN + 0.08], [y + 0.1], color=VERMILION, ls="", marker="o", ms=7.5, mfc="white", mew=1.8)
        sheet.text(PAGE_MARGIN + 0.2, y + 0.03, "now", 0.5, size=SMALL_SIZE, colour=GREY)
        sheet.box(PAGE_MARGIN + 0.65, y + 0.02, 0.2, 0.16, facecolor=GREEN, alpha=0.22, lw=0)
        sheet.text(PAGE_MARGIN + 0.92, y + 0.03, "the decision is the same", 3.0, size=SMALL_SIZE, colour=GREY)
        return y + 0.2 + PAGE_MARGIN

    def _row(self, sheet: Sheet, y: float, track: Track, levels: tuple[str, ...]) -> float:
        """Draw a feature below a thin line: its name, its value, and the line or the levels."""
        inside = sheet.width - 2 * PAGE_MARGIN
        sheet.line([PAGE_MARGIN, sheet.width - PAGE_MARGIN], [y, y], color=PALE, lw=0.7, zorder=0)
        y += 0.08
        names, values = NAMES_SHARE * inside, VALUES_SHARE * (1 - NAMES_SHARE) * inside
        heights = [sheet.text(PAGE_MARGIN, y, track.name, names - GAP, most=3, bold=True)]
        x = PAGE_MARGIN + names
        _, height = sheet.chip(x, y, track.texts[0], values - GAP, is_new=False, most=3)
        heights.append(height)
        x, end = x + values, sheet.width - PAGE_MARGIN
        if not track.is_category:
            heights.append(draw_line(sheet, x, end, y, track))
            return y + max(heights) + 0.06
        return y + max(*heights, sheet.chips(x, y, levels, end, 0.05)) + 0.06


def _drawn(reasons: Reasons, number: int, space: FeatureSpace) -> DrawnReason:
    reason = reasons[number - 1]
    title = reasons.decision if len(reasons) == 1 else f"{number}. {reasons.decision}"
    about = "this alone holds the decision, and none of it can be left out: proved"
    about = about if reason.features else f"{reason}: proved"
    made = [_track(reasons, number, name, space) for name in reason.features]
    return DrawnReason(title, about, tuple(track for track, _ in made), tuple(levels for _, levels in made))


def _track(reasons: Reasons, number: int, name: str, space: FeatureSpace) -> tuple[Track, tuple[str, ...]]:
    """Return a feature of a reason as a track without a change; of a category, the levels that hold the decision."""
    reason, feature = reasons[number - 1], space[name]
    value, shown = reason.values[name], name_of(name, space)
    change = Change.of(space, name, value, value)
    ends = None if reason.ranges is None else reason.ranges.get(name)
    if isinstance(feature, Categorical):
        levels = (value,) if ends is None or ends.levels is None else ends.levels
        track = Track(change, shown, texts_of(change, space), math.nan, math.nan, NOWHERE, ())
        return track, tuple(space.wording.level(name, level) for level in levels)
    place, ticks, steps = line_of(name, space)
    held = (value, value) if ends is None else (ends.low, ends.high)
    wanted = (place(held[0]), place(held[1]))
    is_known = all(math.isfinite(end) for end in wanted)
    track = Track(
        change,
        shown,
        texts_of(change, space),
        place(value),
        math.nan,
        NOWHERE,
        ticks,
        steps,
        wanted if is_known else None,
    )
    return track, ()

"""A menu: alternatives below each other, how far each is and what it changes."""

from __future__ import annotations

from collections.abc import Sequence

from mace.answer.counterfactual import AS_IN_DATA, Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.levers import Levers
from mace.errors import InvalidOption
from mace.plots.changes import BECOMES, GAP, PAGE_MARGIN
from mace.plots.display import BLUE, GREY, PALE
from mace.plots.sheet import CHIP_HEIGHT, SMALL_SIZE, Sheet, SheetDisplay
from mace.space import FeatureSpace, Wording

LONGEST_BAR = 1.1
"""Inches, of the alternative that is farthest."""


class MenuDisplay(SheetDisplay):
    """Alternatives below each other: a bar for the distance, and a chip a change.

    Parameters
    ----------
    answers : sequence of Counterfactual
        Nearest first.
    space : FeatureSpace, optional
        The features.
    wording : Wording, optional
        What people call them, where the space is not known.
    """

    def __init__(
        self, answers: Sequence[Counterfactual], space: FeatureSpace | None = None, wording: Wording = AS_IN_DATA
    ) -> None:
        if not answers:
            raise InvalidOption("plot: there is no counterfactual to draw.")
        self.answers = tuple(answers)
        self.space, self.wording = space, wording if space is None else space.wording
        seen = dict.fromkeys(change.feature for answer in self.answers for change in answer.changes)
        self.features = tuple(seen)

    @classmethod
    def from_explanation(cls, explanation: Explanation) -> MenuDisplay:
        """Return the menu of an explanation with several counterfactuals."""
        return cls(tuple(explanation), explanation.space)

    @classmethod
    def from_levers(cls, levers: Levers) -> MenuDisplay:
        """Return the menu of the smallest sets of features that suffice."""
        return cls(tuple(lever.counterfactual for lever in levers.levers), wording=levers.wording)

    def _draw(self, sheet: Sheet) -> float:
        bars = PAGE_MARGIN + 0.35
        chips = bars + LONGEST_BAR + 0.75
        y = PAGE_MARGIN
        sheet.text(bars, y, "distance", LONGEST_BAR + 0.6, size=SMALL_SIZE, colour=GREY)
        room = sheet.width - PAGE_MARGIN - chips
        y += sheet.text(chips, y, f"what changes: feature, now {BECOMES} instead", room, size=SMALL_SIZE, colour=GREY)
        longest = max(answer.distance for answer in self.answers) or 1.0
        y += 0.06
        for number, answer in enumerate(self.answers, start=1):
            sheet.line([PAGE_MARGIN, sheet.width - PAGE_MARGIN], [y, y], color=PALE, lw=0.7, zorder=0)
            y += 0.07
            sheet.text(PAGE_MARGIN, y + 0.03, f"{number}.", 0.35, bold=True)
            length = LONGEST_BAR * answer.distance / longest
            sheet.box(bars, y + 0.03, length, 0.15, facecolor=BLUE, lw=0)
            sheet.text(bars + length + 0.07, y + 0.03, f"{answer.distance:.3g}", 0.6)
            wording = self.wording
            texts = (
                f"{wording.name(change.feature)} {f' {BECOMES} '.join(change.called(wording))}"
                for change in answer.changes
            )
            height = sheet.chips(chips, y, texts, sheet.width - PAGE_MARGIN, 0.5 * GAP)
            y += max(height, CHIP_HEIGHT) + 0.07
        return y + PAGE_MARGIN - 0.05

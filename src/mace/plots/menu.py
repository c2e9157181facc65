"""A menu: alternatives side by side, what each changes and how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.levers import Levers
from mace.errors import InvalidOption
from mace.plots.display import BLUE, GREY, Display, plain


class MenuDisplay(Display):
    """Alternatives side by side.

    Parameters
    ----------
    answers : sequence of Counterfactual
        Nearest first.
    """

    def __init__(self, answers: Sequence[Counterfactual]) -> None:
        if not answers:
            raise InvalidOption("plot: there is no counterfactual to draw.")
        self.answers = tuple(answers)
        seen = dict.fromkeys(change.feature for answer in self.answers for change in answer.changes)
        self.features = tuple(seen)
        self.size = (2.2 + 1.5 * len(self.answers), 1.6 + 0.45 * len(self.features))

    @classmethod
    def from_explanation(cls, explanation: Explanation) -> MenuDisplay:
        """Return the menu of an explanation with several counterfactuals."""
        return cls(tuple(explanation))

    @classmethod
    def from_levers(cls, levers: Levers) -> MenuDisplay:
        """Return the menu of the smallest sets of features that suffice."""
        return cls(tuple(lever.counterfactual for lever in levers.levers))

    def plot(self, ax: Any = None) -> MenuDisplay:
        """Draw a column an alternative: its distance above, and below what each feature becomes."""
        ax = self._axes(ax)
        for side in ("left", "bottom"):
            ax.spines[side].set_visible(False)
        rows = {feature: -1 - number for number, feature in enumerate(self.features)}
        longest = max(answer.distance for answer in self.answers) or 1.0
        for column, answer in enumerate(self.answers):
            ax.bar(column, 0.9 * answer.distance / longest, bottom=-0.3, color=BLUE, width=0.5)
            ax.text(
                column,
                0.9 * answer.distance / longest - 0.25,
                f"{answer.distance:.3g}",
                ha="center",
                va="bottom",
                fontsize=9,
            )
            for change in answer.changes:
                text = f"{change.arrow} {_short(change.texts[1])}"
                ax.text(column, rows[change.feature], plain(text), ha="center", va="center", fontsize=9, color=BLUE)
        for feature, height in rows.items():
            ax.axhline(height + 0.5, color=GREY, lw=0.5)
            before = next(c.texts[0] for a in self.answers for c in a.changes if c.feature == feature)
            said = f"{plain(feature)}\nnow {plain(_short(before))}"
            ax.text(-0.75, height, said, ha="right", va="center", fontsize=9)
        ax.text(-0.75, 0.1, "distance", ha="right", va="center", fontsize=9)
        ax.set_xticks(range(len(self.answers)), [f"{number}." for number in range(1, len(self.answers) + 1)])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.set_yticks([])
        ax.set_xlim(-0.7, len(self.answers) - 0.3)
        ax.set_ylim(-len(self.features) - 0.6, 0.95)
        return self


def _short(text: str) -> str:
    return text if len(text) <= 14 else text[:13] + "\u2026"

"""What every display shares: the axes, the colours, a missing matplotlib."""

from __future__ import annotations

import re
from typing import Any

from mace.models.package import optional

BLUE, ORANGE, GREEN, RED, GREY = "#3b6fb6", "#e08a1e", "#2e8b57", "#b5423c", "#9aa0a6"
"""Colours that are told apart also by those who see few of them, each with a lightness of its own."""


_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: object, most: int = 40) -> str:
    """Return a text such that matplotlib draws it as it is written: ``$`` begins no mathematics, ``_`` hides nothing.

    Control characters are question marks, and what is longer than ``most`` characters is cut.
    """
    shown = _OBEYED.sub("?", str(text))
    shown = shown if len(shown) <= most else shown[: most - 1] + "\u2026"
    shown = shown.replace("$", "\\$")
    return f" {shown}" if shown.startswith("_") else shown


class Display:
    """A plot with its data.

    Attributes
    ----------
    size : tuple of float
        Width and height in inches that suit the data.
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    """

    size: tuple[float, float] = (7.0, 4.0)
    ax_: Any
    figure_: Any

    def _axes(self, ax: Any) -> Any:
        """Return the axes to draw on: those given, or new ones of a size that suits."""
        if ax is None:
            pyplot = optional("matplotlib.pyplot", extra="plot")
            _, ax = pyplot.subplots(figsize=self.size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax

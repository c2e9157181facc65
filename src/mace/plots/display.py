"""What every display shares: the axes, the colours, names and texts, files, a missing matplotlib."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mace.answer.counterfactual import Change
from mace.disk import whole_file
from mace.errors import InvalidOption, legible
from mace.models.package import optional
from mace.space import FeatureSpace

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#56b4e9", "#cc79a7"
"""The colours of Okabe and Ito, which are told apart also by those who see few colours."""

INK, GREY, PALE, RUST = "#1a1a1a", "#63676d", "#d5d8dc", "#ab4400"
"""Of texts, of small print, of lines behind, and of texts about what is marked in vermilion."""

PICTURES = (".svg", ".png", ".pdf")
"""The kinds of files that a display is saved to."""

PAGE_WIDTH = 7.5
"""Inches: what fits a page."""


def name_of(feature: str, space: FeatureSpace | None = None) -> str:
    """Return what people call a feature; its name in the data where the space is not known."""
    return feature if space is None else space.wording.name(feature)


def texts_of(change: Change, space: FeatureSpace | None) -> tuple[str, str]:
    """Return the values of a change as people call them: levels by their names, numbers with their units."""
    return change.texts if space is None else change.called(space.wording)


def clean(text: object, most: int = 200) -> str:
    """Return a text in which control characters are question marks, cut where it is longer than ``most`` characters."""
    shown = legible(str(text)).replace("\n", "?")
    return shown if len(shown) <= most else shown[: most - 1] + "\u2026"


def plain(text: object, most: int = 40) -> str:
    """Return a text such that matplotlib draws it as it is written: ``$`` begins no mathematics, ``_`` hides nothing.

    Control characters are question marks, and what is longer than ``most`` characters is cut.
    """
    shown = clean(text, most).replace("$", "\\$")
    return f" {shown}" if shown.startswith("_") else shown


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Return the path of a picture; refuse a kind of file that is none."""
    file = Path(path)
    if file.suffix not in PICTURES:
        raise InvalidOption(f"{file.name}: unknown kind of picture. Accepted: {', '.join(PICTURES)}.")
    return file


class Display:
    """A plot with its data.

    Attributes
    ----------
    size : tuple of float
        Width and height in inches that suit the data.
    ax_, figure_ : matplotlib objects
        Where it was drawn last.
    """

    size: tuple[float, float] = (PAGE_WIDTH, 4.0)
    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Any:
        """Draw on the axes given, or on new ones, and return the display."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draw anew, in the size that suits, and write an ``.svg``, ``.png`` or ``.pdf`` file: the same bytes for the same data.

        The file is for its owner alone and appears once it is whole. No window is needed.
        """
        file = check_picture(path)
        matplotlib = optional("matplotlib", extra="plot")
        figure = optional("matplotlib.figure", extra="plot").Figure(figsize=self.size, layout="constrained")
        with matplotlib.rc_context({"svg.hashsalt": "mace", "svg.fonttype": "none"}):
            self.plot(self._new_axes(figure))
            dated = (
                {"CreationDate": None} if file.suffix == ".pdf" else {"Date": None} if file.suffix == ".svg" else None
            )
            with whole_file(file) as whole:
                figure.savefig(whole, format=file.suffix[1:], dpi=150, metadata=dated)

    def _new_axes(self, figure: Any) -> Any:
        """Return axes that fill a figure."""
        return figure.subplots()

    def _axes(self, ax: Any) -> Any:
        """Return the axes to draw on: those given, or new ones of a size that suits."""
        if ax is None:
            pyplot = optional("matplotlib.pyplot", extra="plot")
            ax = self._new_axes(pyplot.figure(figsize=self.size, layout="constrained"))
        self.ax_, self.figure_ = ax, ax.figure
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return ax

"""A sheet on which every text is measured before it is set, so that none runs into another or over the edge."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from mace.models.package import optional
from mace.plots.display import BLUE, GREY, INK, PAGE_WIDTH, VERMILION, Display, clean

TEXT_SIZE, SMALL_SIZE = 9.0, 7.5
"""Of letters, in points."""

CHIP_HEIGHT = 0.21
"""Of a chip of one line, in inches."""

FURTHER_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)
"""Where glyphs are looked for that the usual font does not have."""

_BREAK = re.compile(r"[\s_/,;-]")
_LEADING = 1.25 / 72
_SAFE = 1.03


@lru_cache(maxsize=1)
def _further_fonts() -> tuple[str, ...]:
    manager = optional("matplotlib.font_manager", extra="plot")
    known = {font.name for font in manager.fontManager.ttflist}
    return tuple(name for name in FURTHER_FONTS if name in known)


@lru_cache(maxsize=20_000)
def _room(text: str, size: float, bold: bool, families: tuple[str, ...]) -> float:
    manager = optional("matplotlib.font_manager", extra="plot")
    font = manager.FontProperties(family=list(families), size=size, weight="bold" if bold else "normal")
    measure = optional("matplotlib.textpath", extra="plot").text_to_path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that no font has is said when it is drawn
        points, _, _ = measure.get_text_width_height_descent(text, font, ismath=False)
    return float(_SAFE * points / 72)


class Sheet:
    """Axes in inches, counted from the top left corner, to the right and down; without axes it only measures.

    Parameters
    ----------
    width : float
        Of the sheet, in inches.
    ax : matplotlib axes, optional
        Where to draw.
    """

    def __init__(self, width: float, ax: Any = None) -> None:
        self.width = width
        self.ax = ax
        self._families = (*optional("matplotlib", extra="plot").rcParams["font.family"], *_further_fonts())

    def room_of(self, text: str, *, size: float = TEXT_SIZE, bold: bool = False) -> float:
        """Return how wide a line is, in inches."""
        return _room(text, size, bold, self._families)

    def lines(
        self, text: object, room: float, *, most: int = 1, size: float = TEXT_SIZE, bold: bool = False
    ) -> list[str]:
        """Return a text in lines that fit into so many inches, at most ``most``; what is left over ends in an ellipsis."""
        left = clean(text)
        made: list[str] = []

        def fits(line: str) -> bool:
            return self.room_of(line, size=size, bold=bold) <= room

        while left and len(made) < most - 1 and not fits(left):
            end = _longest(left, fits)
            cuts = [found.end() for found in _BREAK.finditer(left, 0, end) if found.end() > end / 3]
            end = cuts[-1] if cuts else end
            made.append(left[:end].rstrip())
            left = left[end:].lstrip()
        if left and not fits(left):
            end = _longest(left, lambda line: fits(line.rstrip() + "\u2026"))
            left = left[:end].rstrip() + "\u2026"
        return [*made, left] if left else made

    def text(
        self,
        x: float,
        y: float,
        text: object,
        room: float,
        *,
        most: int = 1,
        size: float = TEXT_SIZE,
        bold: bool = False,
        colour: str = INK,
        align: str = "left",
    ) -> float:
        """Set a text whose first line begins at ``y``, and return the height of its lines.

        ``x`` is its left end, its middle or its right end, as ``align`` says.
        """
        lines = self.lines(text, room, most=most, size=size, bold=bold)
        for number, line in enumerate(lines if self.ax is not None else ()):
            self.ax.text(
                x,
                y + (number + 0.5) * size * _LEADING,
                line,
                ha=align,
                va="center_baseline",
                fontsize=size,
                fontweight="bold" if bold else "normal",
                color=colour,
                family=list(self._families),
                parse_math=False,
                zorder=5,
            )
        return len(lines) * size * _LEADING

    def chip(
        self, x: float, y: float, text: object, room: float, *, is_new: bool | None, most: int = 2
    ) -> tuple[float, float]:
        """Draw a text as a chip and return its width and height: a value filled where it is new, dashed where it is not."""
        bold = bool(is_new)
        lines = self.lines(text, room - 0.16, most=most, bold=bold)
        width = max(self.room_of(line, bold=bold) for line in lines) + 0.16 if lines else 0.3
        height = CHIP_HEIGHT + (max(len(lines), 1) - 1) * TEXT_SIZE * _LEADING
        self.chip_frame(x, y, width, height, is_new=is_new)
        self.text(x + 0.08, y + 0.03, text, room - 0.16, most=most, bold=bold, colour="white" if is_new else INK)
        return width, height

    def chips(self, x: float, y: float, texts: Iterable[str], end: float, gap: float) -> float:
        """Draw texts as chips beside each other, in as many lines as that takes up to ``end``, and return their height."""
        left, top, line = x, 0.0, 0.0
        for text in texts:
            width = min(self.room_of(text) + 0.2, end - left)
            if x > left and x + width > end:
                x, top, line = left, top + line + 0.05, 0.0
            _, height = self.chip(x, y + top, text, end - left, is_new=None, most=3)
            x, line = x + width + gap, max(line, height)
        return top + line

    def chip_frame(self, x: float, y: float, width: float, height: float, *, is_new: bool | None) -> None:
        """Draw a chip without its text."""
        if self.ax is None:
            return
        patches = optional("matplotlib.patches", extra="plot")
        style = patches.BoxStyle.Round(pad=0, rounding_size=0.06)
        looks: dict[bool | None, dict[str, Any]] = {
            True: {"facecolor": BLUE, "edgecolor": BLUE, "linewidth": 1.1},
            False: {"facecolor": "white", "edgecolor": VERMILION, "linewidth": 1.1, "linestyle": "--"},
            None: {"facecolor": "white", "edgecolor": GREY, "linewidth": 0.8},
        }
        self.ax.add_patch(patches.FancyBboxPatch((x, y), width, height, boxstyle=style, zorder=3, **looks[is_new]))

    def line(self, xs: Any, ys: Any, **style: Any) -> None:
        """Draw a line, or marks."""
        if self.ax is not None:
            self.ax.plot(xs, ys, **style)

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Fill a rectangle."""
        if self.ax is not None:
            patches = optional("matplotlib.patches", extra="plot")
            self.ax.add_patch(patches.Rectangle((x, y), width, height, **style))


def _longest(text: str, fits: Any) -> int:
    """Return the length of the longest beginning of a text that fits, at least 1."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


class SheetDisplay(Display):
    """A display that is set on a sheet: of the width of a page, and as high as it needs."""

    @property
    def size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height in inches that suit the data."""
        return PAGE_WIDTH, self._draw(Sheet(PAGE_WIDTH))

    def plot(self, ax: Any = None) -> Any:
        """Draw on the axes given, which lose their frame, or on new ones of a size that suits."""
        ax = self._axes(ax)
        ax.axis("off")
        whole = ax.figure.figure  # where the axes are in a part of a figure, the whole of it
        if whole.get_layout_engine() is not None:
            whole.get_layout_engine().execute(whole)
        box = ax.get_window_extent()
        width, height = box.width / whole.dpi, box.height / whole.dpi
        ax.set_xlim(0, width)
        ax.set_ylim(max(height, self._draw(Sheet(width))), 0)
        self._draw(Sheet(width, ax))
        return self

    def _new_axes(self, figure: Any) -> Any:
        figure.set_layout_engine("none")
        return figure.add_axes((0, 0, 1, 1))

    def _draw(self, sheet: Sheet) -> float:
        """Draw on a sheet and return how high all of it is."""
        raise NotImplementedError

"""The terminal: what files and names hold is shown, never obeyed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from mace.errors import legible

MOST_SHOWN = 2000
"""Characters of an error or a note: a file can make one of any length."""


def shortened(text: str) -> str:
    """Return a text of others as it is shown."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(text):,} characters)"


def note(kind: str, texts: Iterable[str]) -> None:
    """Print texts to the standard error, each once, behind what they are."""
    for text in dict.fromkeys(texts):
        PlainConsole(stderr=True, soft_wrap=True).print(f"{kind}: {shortened(text)}")


def in_width(text: str, width: int) -> str:
    """Return lines broken between words so that none is longer than ``width``; what goes on of an item of a list is indented.

    Examples
    --------
    >>> print(in_width("1. age, income\\nThere may be others.", 12))
    1. age,
       income
    There may be
    others.
    """
    made = []
    for line in text.split("\n"):
        indent = " " * len(_LISTED.match(line)[0])  # type: ignore[index]
        made.append(
            textwrap.fill(
                line,
                max(width, len(indent) + 1),
                subsequent_indent=indent,
                replace_whitespace=False,
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
    return "\n".join(made)


_LISTED = re.compile(r"(\d+\. | *)")
"""What stands before the text of an item."""


class PlainConsole(Console):
    """A console for texts that others wrote: no markup, no emoji codes, and a question mark for what a terminal would obey."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"markup": False, "emoji": False, "highlight": False} | options))

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(legible(segment.text), segment.style)

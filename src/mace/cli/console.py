"""The terminal: what files and names hold is shown, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

_OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but the line feed, and those that turn the direction of writing."""


class PlainConsole(Console):
    """A console for texts that others wrote: no markup, no emoji codes, and a question mark for what a terminal would obey."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"markup": False, "emoji": False, "highlight": False} | options))

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_OBEYED.sub("?", segment.text), segment.style)

"""An explanation for a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from mace.answer.explanation import Explanation


def as_rich(explanation: Explanation) -> Group:
    """Return the explanation for a terminal."""
    parts: list[Any] = [Text(explanation.headline(), style="bold")]
    wording = explanation.wording
    for number, counterfactual in enumerate(explanation, start=1):
        # In a narrow terminal names go on in the next line: none is cut.
        table = Table(*(Column(head, overflow="fold") for head in ("feature", "now", "instead")))
        for change in counterfactual.changes:
            before, after = map(Text, change.called(wording))
            after.stylize("bold green")
            table.add_row(Text(counterfactual.named(change, wording)), before, after)
        parts += [Text(f"\n{number}.")] if len(explanation) > 1 else []
        parts += [table, Text(counterfactual.summary(wording))]
    if explanation.no_further():
        parts.append(Text(explanation.no_further()))
    if explanation.known_margin is not None:
        parts.append(Text(f"\n{explanation.known_margin}"))
    return Group(*parts)

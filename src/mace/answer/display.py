"""An explanation for a terminal and for a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from mace.answer.counterfactual import Change, Counterfactual
from mace.answer.explanation import Explanation
from mace.problem import Status

PROVED_COLOUR, OPEN_COLOUR, CHANGE_COLOUR = "#1f8a5b", "#c77414", "#3d7fd9"
"""Of middling lightness, so that they are read on white and on black."""


def as_rich(explanation: Explanation) -> Group:
    """Return the explanation for a terminal."""
    parts: list[Any] = [Text(explanation.headline(), style="bold")]
    for number, counterfactual in enumerate(explanation, start=1):
        table = Table("feature", "now", "instead")
        for change in counterfactual.changes:
            before, after = map(Text, change.texts)
            after.stylize("bold green")
            table.add_row(Text(counterfactual.named(change)), before, after)
        parts += [Text(f"\n{number}.")] if len(explanation) > 1 else []
        parts += [table, Text(counterfactual.summary())]
    if explanation.no_further():
        parts.append(Text(explanation.no_further()))
    return Group(*parts)


def as_html(explanation: Explanation) -> str:
    """Return the explanation for a notebook."""
    parts = [f'<p style="margin:.25em 0"><b>{escape(explanation.headline())}</b></p>']
    for counterfactual in explanation:
        heads = "".join(f'<th style="text-align:left">{head}</th>' for head in ("feature", "now", "", "instead"))
        rows = "".join(_html_row(counterfactual.named(change), change) for change in counterfactual.changes)
        parts.append(
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f'<p style="margin:.25em 0">{_badges(counterfactual, explanation.among)} {_lines(counterfactual.summary())}</p>'
        )
    if explanation.no_further():
        parts.append(f'<p style="margin:.25em 0">{escape(explanation.no_further())}</p>')
    if explanation.status == Status.INFEASIBLE:
        parts.append(_badge("proved: none exists", PROVED_COLOUR))
    return f"<div>{''.join(parts)}</div>"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _html_row(name: str, change: Change) -> str:
    before, after = map(escape, change.texts)
    arrow = f'<span style="color:{CHANGE_COLOUR}">{change.arrow}</span>'
    cells = [escape(name), before, arrow, f"<b>{after}</b>"]
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _badges(counterfactual: Counterfactual, among: str) -> str:
    is_proved = counterfactual.status == Status.OPTIMAL
    made = _badge(f"proved nearest{among}", PROVED_COLOUR) if is_proved else _badge("not proved nearest", OPEN_COLOUR)
    return made if counterfactual.certificate is None else f"{made} {_badge('certificate', PROVED_COLOUR)}"


def _badge(text: str, colour: str) -> str:
    style = f"color:{colour};border:1px solid {colour};border-radius:.6em;padding:0 .5em;white-space:nowrap"
    return f'<span style="{style}">{escape(text)}</span>'

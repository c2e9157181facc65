"""An audit as one HTML page: its tables, and its plots as SVG inside."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mace.audits.people import RECOURSE
from mace.audits.report import Section, headline, sections

if TYPE_CHECKING:
    from mace.audits.audit import Audit

STYLE = """
.mace-audit { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
.mace-audit h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
.mace-audit p { margin: .25rem 0 .75rem; }
.mace-audit table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.mace-audit .wide { overflow-x: auto; }
.mace-audit th, .mace-audit td { padding: .25rem .75rem; text-align: right; border-bottom: 1px solid #ccc; white-space: nowrap; }
.mace-audit th:first-child, .mace-audit td:first-child { text-align: left; }
.mace-audit figure { margin: 1rem 0; background: #fff; }
.mace-audit svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .mace-audit { color: #e8e8e8; background: #16181c; }
  .mace-audit th, .mace-audit td { border-color: #444; }
}
"""


def as_html(audit: Audit) -> str:
    """Return the whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Audit</title></head>'
        f'<body style="margin:0">{body(audit, plots=True)}</body></html>\n'
    )


def body(audit: Audit, *, plots: bool) -> str:
    """Return the report without the page around it."""
    figures = _figures(audit) if plots else {}
    parts = [f"<style>{STYLE}</style>", '<div class="mace-audit"><h1>Audit</h1>', f"<p>{escape(headline(audit))}</p>"]
    for section in sections(audit):
        parts += [_section(section), figures.get(section.title, "")]
    parts.append(
        f"<p>Intervals: {audit.resamples} bootstrap resamples, seed {audit.seed}. Distances in hand are rounded up, lower bounds are "
        "proved and rounded down; each counterfactual was confirmed by the model itself.</p></div>"
    )
    return "".join(parts)


def _section(section: Section) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in section.heads)
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in section.rows)
    return (
        f"<h2>{escape(section.title)}</h2><p>{escape(section.about)}</p>"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _figures(audit: Audit) -> dict[str, str]:
    """Return the plots by the title of their section."""
    from mace.plots import DistancesDisplay, LeversDisplay, OutcomesDisplay

    groups = [audit.everyone, *audit.groups]
    members = {
        group.name: [p for p in audit.people if not group.column or p.groups[group.column] == group.value]
        for group in groups
    }
    found = {name: [p for p in people if p.outcome == RECOURSE] for name, people in members.items()}
    distances = {name: np.array([p.distance for p in people]) for name, people in found.items() if people}
    lowers = {name: np.array([p.lower for p in people]) for name, people in found.items() if people}
    made = {"Coverage": _svg(OutcomesDisplay({group.name: group.outcomes for group in groups}))}
    if distances:
        made["Distance"] = _svg(DistancesDisplay(distances, lowers, unit=f"{audit.distance} distance"))
        levers = {group.name: group.levers for group in groups if group.levers}
        made["What must change"] = _svg(LeversDisplay(levers, protected=audit.protected))
    return made


def _svg(display: Any) -> str:
    """Return a plot as an SVG element, the same for the same data."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    text = io.StringIO()
    with rc_context({"svg.hashsalt": "mace", "svg.fonttype": "none"}):
        figure = Figure(figsize=display.size, layout="constrained")
        display.plot(figure.subplots())
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    drawn = text.getvalue()
    return f"<figure>{drawn[drawn.index('<svg') :]}</figure>"

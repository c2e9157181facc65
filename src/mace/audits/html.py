"""An audit as one HTML page: its tables, and its plots as SVG inside."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from mace.audits.people import RECOURSE
from mace.audits.report import Section, sections
from mace.audits.summary import EVERYONE, LEAST_FOR_INTERVAL
from mace.distances import distance_text
from mace.errors import MissingPackage, for_page
from mace.models.package import optional

if TYPE_CHECKING:
    from mace.audits.audit import Audit

STYLE = """
.mace-audit { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
.mace-audit h1 { font-size: 1.6rem; margin: 0 0 .5rem; }
.mace-audit h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
.mace-audit p { margin: .25rem 0 .75rem; max-width: 46rem; }
.mace-audit .lead { font-size: 1.1rem; }
.mace-audit table { border-collapse: collapse; font-variant-numeric: tabular-nums; max-width: 100%; }
.mace-audit th, .mace-audit td { padding: .25rem .6rem; text-align: right; vertical-align: top; border-bottom: 1px solid #ccc; }
.mace-audit td.text { overflow-wrap: anywhere; }
.mace-audit th { vertical-align: bottom; }
.mace-audit .text { text-align: left; min-width: 7rem; }
.mace-audit .about th { text-align: left; vertical-align: top; white-space: nowrap; }
.mace-audit figure { margin: 1rem 0; padding: .5rem; background: #fff; max-width: 46rem; }
.mace-audit svg { width: 100%; height: auto; }
@media (max-width: 40rem) {
  .mace-audit { padding: 1rem; }
  .mace-audit table, .mace-audit tbody, .mace-audit tr, .mace-audit td { display: block; }
  .mace-audit thead { display: none; }
  .mace-audit tr { padding: .5rem 0; border-bottom: 1px solid #ccc; }
  .mace-audit td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0; text-align: right; }
  .mace-audit td::before { content: attr(data-head); text-align: left; opacity: .7; overflow-wrap: normal; }
  .mace-audit td:first-child { font-weight: 600; }
  .mace-audit td:first-child::before { content: none; }
  .mace-audit .about tr, .mace-audit .about th { display: block; }
  .mace-audit .about th, .mace-audit .about td { border: 0; padding: 0; }
  .mace-audit .about td { display: block; font-weight: 400; text-align: left; }
  .mace-audit figure { overflow-x: auto; }
}
@media screen and (max-width: 40rem) { .mace-audit svg { min-width: 34rem; } }
@media (prefers-color-scheme: dark) {
  .mace-audit { color: #e8e8e8; background: #16181c; }
  .mace-audit th, .mace-audit td, .mace-audit tr { border-color: #444; }
}
@media print {
  @page { size: A4; margin: 15mm; }
  .mace-audit { color: #000; background: #fff; font-size: 9.5pt; max-width: none; padding: 0; }
  .mace-audit th, .mace-audit td { padding: .15rem .4rem; border-color: #999; }
  .mace-audit .text { min-width: 5rem; }
  .mace-audit h2, .mace-audit p { break-after: avoid; }
  .mace-audit tr, .mace-audit figure { break-inside: avoid; }
}
"""

TEXTS = ("group", "against", "measure", "most often", "groups", "row")
"""Columns that hold words rather than numbers."""


def as_html(audit: Audit, *, pictures: bool = True) -> str:
    """Return the whole page."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>Audit of {for_page(audit.setting.data)}, {for_page(audit.setting.date)}</title>"
        "<style>body { margin: 0; background: #fff; } @media (prefers-color-scheme: dark) { body { background: #16181c; } }</style></head>"
        f"<body>{body(audit, plots=pictures)}</body></html>\n"
    )


def body(audit: Audit, *, plots: bool) -> str:
    """Return the report without the page around it."""
    figures = _figures(audit) if plots else {}
    said = " ".join(map(for_page, audit.summary))
    parts = [f"<style>{STYLE}</style>", f'<div class="mace-audit"><h1>Audit</h1><p class="lead">{said}</p>']
    about, *rest = sections(audit)
    parts.append(_about(about))
    for section in rest:
        parts += [_section(section), figures.get(section.title, "")]
    return "".join([*parts, "</div>"])


def _about(section: Section) -> str:
    """Return the table of what the report is about, whose rows have heads."""
    rows = "".join(
        f'<tr><th scope="row">{for_page(name)}</th><td class="text">{for_page(said)}</td></tr>'
        for name, said in section.rows
    )
    return f'<h2>{for_page(section.title)}</h2><p>{for_page(section.about)}</p><table class="about"><tbody>{rows}</tbody></table>'


def _section(section: Section) -> str:
    kinds = [' class="text"' if head in TEXTS else "" for head in section.heads]
    heads = "".join(
        f'<th scope="col"{kind}>{for_page(head)}</th>' for head, kind in zip(section.heads, kinds, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td{kind} data-head="{for_page(head)}">{for_page(cell)}</td>'
            for head, kind, cell in zip(section.heads, kinds, row, strict=True)
        )
        + "</tr>"
        for row in section.rows
    )
    return (
        f"<h2>{for_page(section.title)}</h2><p>{for_page(section.about)}</p>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _figures(audit: Audit) -> dict[str, str]:
    """Return the plots by the title of their section; small groups have no curve, and no levers of their own."""
    try:
        optional("matplotlib", extra="plot")
    except MissingPackage as error:
        raise MissingPackage(f"{error}, or leave the pictures out: to_html(pictures=False), --no-pictures.") from error
    from mace.plots import DistancesDisplay, LeversDisplay, OutcomesDisplay

    groups = {audit.names.group(group.column, group.value): group for group in (audit.everyone, *audit.groups)}
    members = {
        name: [p for p in audit.people if not group.column or p.groups[group.column] == group.value]
        for name, group in groups.items()
    }
    found = {name: [p for p in people if p.outcome == RECOURSE] for name, people in members.items()}
    large = {
        name: people
        for name, people in found.items()
        if people and (name == EVERYONE or len(people) >= LEAST_FOR_INTERVAL)
    }
    distances = {name: np.array([p.distance for p in people]) for name, people in large.items()}
    lowers = {name: np.array([p.lower for p in people]) for name, people in large.items()}
    made = {"Coverage": _svg(OutcomesDisplay({name: group.outcomes for name, group in groups.items()}))}
    if distances:
        made["Distance"] = _svg(DistancesDisplay(distances, lowers, unit=distance_text(audit.distance)))
        levers = {name: group.levers for name, group in groups.items() if name in large}
        made["What must change"] = _svg(LeversDisplay(levers, protected=audit.protected, wording=audit.wording))
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

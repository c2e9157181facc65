"""An audit in words and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mace.audits.people import ERROR, GRANTED, NO_RECOURSE, RECOURSE, UNKNOWN, Person
from mace.audits.summary import MEASURES, Disparity, GroupSummary

if TYPE_CHECKING:
    from rich.console import Group

    from mace.audits.audit import Audit

MOST_LEVERS = 4
ROWS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report: a title, what it says, heads and rows."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def headline(audit: Audit) -> str:
    """Return the audit in one paragraph."""
    outcomes, total = audit.everyone.outcomes, audit.everyone
    parts = [f"{total.people} people, {outcomes[GRANTED]} of them at {audit.target} already."]
    if total.asked:
        parts.append(
            f"Of the other {total.asked}, {outcomes[RECOURSE]} have recourse in hand ({total.proved_nearest} proved nearest), "
            f"{outcomes[NO_RECOURSE]} are proved to have none, {outcomes[UNKNOWN]} are undecided."
        )
    if outcomes[ERROR]:
        parts.append(f"{outcomes[ERROR]} rows cannot be explained.")
    rules = f" under {'; '.join(audit.constraints)}" if audit.constraints else ""
    parts.append(f"Distance: {audit.distance}{rules}.")
    return " ".join(parts)


def sections(audit: Audit) -> list[Section]:
    """Return the tables of the report."""
    groups = [audit.everyone, *audit.groups]
    made = [_coverage(groups), _distances(groups), _levers(groups)]
    if audit.protected:
        made.append(_protected(groups, audit.protected))
    if audit.disparities:
        made.append(_disparities(audit.disparities))
    fixed = [_fixed_section("Decisions that are fixed", "Proved: no counterfactual exists.", audit.fixed)]
    if audit.protected:
        held = ", ".join(audit.protected)
        fixed.append(
            _fixed_section(
                "Fixed unless a protected feature changes",
                f"Recourse exists, and proved: none that leaves {held} alone.",
                audit.fixed_when_held,
            )
        )
    return made + [section for section in fixed if section.rows]


def _coverage(groups: Sequence[GroupSummary]) -> Section:
    heads = ("group", "people", "granted", "recourse", "proved nearest", "none: proved", "undecided", "errors")
    rows = [
        (
            group.name,
            str(group.people),
            _count(group.outcomes[GRANTED], group.people),
            _count(group.outcomes[RECOURSE], group.asked),
            str(group.proved_nearest),
            _count(group.outcomes[NO_RECOURSE], group.asked),
            str(group.outcomes[UNKNOWN]),
            str(group.outcomes[ERROR]),
        )
        for group in groups
    ]
    about = "Granted as a share of all; recourse and none as shares of those who are not."
    return Section("Coverage", about, heads, tuple(rows))


def _distances(groups: Sequence[GroupSummary]) -> Section:
    heads = ("group", "mean (95 % interval)", "10%", "50%", "90%", "most", "proved mean at least")
    rows = []
    for group in groups:
        quantiles = [_number(group.distances.get(name)) for name in ("10%", "50%", "90%", "most")]
        rows.append((group.name, str(group.measures["distance"]), *quantiles, _number(group.lowers.get("mean"))))
    about = "Of the nearest counterfactual in hand, among those who have one; the last column is over the proven lower bounds."
    return Section("Distance", about, heads, tuple(rows))


def _levers(groups: Sequence[GroupSummary]) -> Section:
    rows = [
        (
            group.name,
            _number(group.measures["changes"].value),
            ", ".join(f"{name} {share:.0%}" for name, share in list(group.levers.items())[:MOST_LEVERS]) or "-",
        )
        for group in groups
    ]
    about = "How many features the nearest counterfactual changes on average, and which most often."
    return Section("What must change", about, ("group", "features", "most often"), tuple(rows))


def _protected(groups: Sequence[GroupSummary], protected: Sequence[str]) -> Section:
    heads = (
        "group",
        "touch one",
        *protected,
        "held: recourse",
        "held: none, proved",
        "further (mean)",
        "further (relative)",
    )
    rows = []
    for group in groups:
        shares = [f"{group.protected[name]:.1%}" if name in group.protected else "-" for name in protected]
        touching = sum(group.held.values())
        relative = "-" if math.isnan(group.relative_price) else f"{group.relative_price:+.1%}"
        rows.append(
            (
                group.name,
                _count(touching, group.outcomes[RECOURSE]),
                *shares,
                _count(group.held[RECOURSE], touching),
                _count(group.held[NO_RECOURSE], touching),
                str(group.measures["price"]),
                relative,
            )
        )
    about = (
        f"How many nearest counterfactuals touch {', '.join(protected)}; what is left to those people when it is held; "
        "how much farther that is, over everyone with recourse, and relative to the distance among those who are touched."
    )
    return Section("The price of protection", about, heads, tuple(rows))


def _disparities(disparities: Sequence[Disparity]) -> Section:
    rows = [
        (
            f"{each.column} {each.value}",
            each.reference,
            MEASURES[each.measure][0],
            str(each.difference),
            "yes" if each.is_clear else "no",
        )
        for each in disparities
        if not math.isnan(each.difference.value) and (each.difference.value or each.is_clear)
    ]
    about = "A group less the largest group of its column, with a 95 % bootstrap interval; clear where the interval leaves 0 out."
    return Section("Disparities", about, ("group", "against", "measure", "difference", "clear"), tuple(rows))


def _fixed_section(title: str, about: str, people: Sequence[Person]) -> Section:
    rows = [
        (str(person.row), ", ".join(f"{column} {value}" for column, value in person.groups.items()))
        for person in people[:ROWS_SHOWN]
    ]
    if len(people) > ROWS_SHOWN:
        rows.append((f"and {len(people) - ROWS_SHOWN} more", "see the JSON"))
    return Section(f"{title}: {len(people)}", about, ("row", "groups"), tuple(rows))


def _count(number: int, of: int) -> str:
    return f"{number} ({number / of:.0%})" if of else str(number)


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4g}"


def as_text(audit: Audit) -> str:
    """Return the report as plain text."""
    blocks = [headline(audit)]
    for section in sections(audit):
        rows = [section.heads, *section.rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(section.heads))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        blocks.append("\n".join([section.title, section.about, *lines]))
    return "\n\n".join(blocks)


def as_rich(audit: Audit) -> Group:
    """Return the report for a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(headline(audit), style="bold")]
    for section in sections(audit):
        table = Table(
            title=Text(section.title), caption=Text(section.about), title_justify="left", caption_justify="left"
        )
        for number, head in enumerate(section.heads):
            table.add_column(Text(head), justify="left" if number == 0 else "right")
        for row in section.rows:
            table.add_row(*map(Text, row))
        parts += [Text(""), table]
    return Group(*parts)

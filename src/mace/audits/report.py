"""An audit in words and tables."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mace.audits.names import ReportNames
from mace.audits.people import ERROR, GRANTED, NO_RECOURSE, RECOURSE, UNKNOWN, Person
from mace.audits.summary import CLEAR, CORRECTION, LEAST_FOR_INTERVAL, MEASURES, ConfidenceInterval, GroupSummary
from mace.audits.words import SHARES

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderResult
    from rich.table import Table

    from mace.audits.audit import Audit

MOST_LEVERS = 5
ROWS_SHOWN = 20
TEXT_WIDTH = 80
"""Columns of the report as text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the report: a title, what it says, heads and rows."""

    title: str
    about: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def without_zeros(self, *heads: str) -> Section:
        """Return the table without those of some columns in which every cell is 0."""
        kept = [
            place
            for place, head in enumerate(self.heads)
            if head not in heads or any(row[place] not in ("0", "-") for row in self.rows)
        ]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Section(self.title, self.about, tuple(self.heads[place] for place in kept), rows)


def headline(audit: Audit) -> str:
    """Return the audit in three sentences."""
    return " ".join(audit.summary)


def sections(audit: Audit) -> list[Section]:
    """Return the tables of the report."""
    groups, names = [audit.everyone, *audit.groups], audit.names
    made = [_setting(audit, names), _coverage(groups, names), _distances(groups, names), _levers(groups, names)]
    if audit.protected:
        made += [_touched(groups, audit.protected, names), _held(groups, audit.protected, names)]
    if audit.disparities:
        made.append(_disparities(audit, names))
    fixed = [_fixed_section("Decisions that are fixed", "Proved: no counterfactual exists.", audit.fixed, names)]
    if audit.protected:
        held = names.features(audit.protected)
        fixed.append(
            _fixed_section(
                "Fixed unless a protected feature changes",
                f"Recourse exists, and proved: none that leaves {held} alone.",
                audit.fixed_when_held,
                names,
            )
        )
    return made + [section for section in fixed if section.rows]


def _setting(audit: Audit, names: ReportNames) -> Section:
    """Return what the report is about, and by which rules it was made."""
    small = [names.group(group.column, group.value) for group in audit.groups if group.is_small]
    called = names.target(audit.target)
    rows = [
        ("model", audit.setting.model),
        ("people", audit.setting.data),
        ("wanted", called if called == audit.target else f"{called} (in the data: {audit.target})"),
        ("distance", audit.distance),
        ("constraints", "; ".join(audit.constraints) or "none"),
        ("protected", names.features(audit.protected) or "none"),
        ("day", audit.setting.date),
        ("made with", f"MACE {audit.setting.version}"),
        ("intervals", f"95 %, {audit.resamples:,} bootstrap resamples of the people, seed {audit.seed}"),
    ]
    if audit.groups:
        told = f": {', '.join(small)}" if small else "; here there are none"
        rows.append(
            (
                "small groups",
                f"of fewer than {LEAST_FOR_INTERVAL} people; they get no interval and no curve, and are not compared{told}",
            )
        )
        rows.append(
            (
                "comparisons",
                f"{audit.comparisons}; p-values are corrected by the method of {CORRECTION}, so that the chance of even one false alarm "
                f"among all of them is at most {CLEAR:.0%}",
            )
        )
    about = "Each counterfactual was confirmed by the model itself. Distances are rounded up; lower bounds are proved, and rounded down."
    return Section("About this audit", about, ("", "what it is about"), tuple(rows))


def _coverage(groups: Sequence[GroupSummary], names: ReportNames) -> Section:
    heads = ("group", "people", "granted", "recourse", "proved nearest", "none: proved", "undecided", "errors")
    rows = [
        (
            names.row(group),
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
    return Section("Coverage", about, heads, tuple(rows)).without_zeros("undecided", "errors")


def _distances(groups: Sequence[GroupSummary], names: ReportNames) -> Section:
    heads = ("group", "mean", "95 % interval", "10 %", "50 %", "90 %", "most", "proved mean at least")
    rows = []
    for group in groups:
        quantiles = [_number(group.distances.get(name)) for name in ("10%", "50%", "90%", "most")]
        is_open = group.proved_nearest < group.outcomes[RECOURSE]
        lower = _number(group.lowers.get("mean")) if is_open else "-"
        mean = group.measures["distance"]
        rows.append((names.row(group), _number(mean.value), _interval(mean), *quantiles, lower))
    about = "Of the nearest counterfactual in hand, among those who have one."
    made = Section("Distance", about, heads, tuple(rows)).without_zeros("proved mean at least")
    rest = (
        " All are proved nearest."
        if len(made.heads) < len(heads)
        else " The last column is over the proven lower bounds."
    )
    return Section(made.title, about + rest, made.heads, made.rows)


def _levers(groups: Sequence[GroupSummary], names: ReportNames) -> Section:
    rows = [
        (
            names.row(group),
            _number(group.measures["changes"].value),
            ", ".join(f"{names.feature(name)} {share:.0%}" for name, share in list(group.levers.items())[:MOST_LEVERS])
            or "-",
        )
        for group in groups
    ]
    about = f"How many features the nearest counterfactual changes on average, and the {MOST_LEVERS} that it changes most often."
    return Section("What must change", about, ("group", "features", "most often"), tuple(rows))


def _touched(groups: Sequence[GroupSummary], protected: Sequence[str], names: ReportNames) -> Section:
    rows = []
    for group in groups:
        shares = [f"{group.protected[name]:.0%}" if name in group.protected else "-" for name in protected]
        rows.append((names.row(group), _count(sum(group.held.values()), group.outcomes[RECOURSE]), *shares))
    about = "How many of the nearest counterfactuals change a protected feature, and which."
    return Section("Protected features", about, ("group", "change one", *map(names.feature, protected)), tuple(rows))


def _held(groups: Sequence[GroupSummary], protected: Sequence[str], names: ReportNames) -> Section:
    heads = ("group", "still have recourse", "none: proved", "farther, mean", "95 % interval", "farther, relative")
    rows = []
    for group in groups:
        touching, price = sum(group.held.values()), group.measures["price"]
        relative = "-" if math.isnan(group.relative_price) else f"{group.relative_price:+.0%}"
        rows.append(
            (
                names.row(group),
                _count(group.held[RECOURSE], touching),
                _count(group.held[NO_RECOURSE], touching),
                _number(price.value),
                _interval(price),
                relative,
            )
        )
    about = (
        f"What is left to those people when {names.features(protected)} must stay; how much farther it is over everyone with recourse, and "
        "relative to the distance among those people."
    )
    return Section("The price of protection", about, heads, tuple(rows))


def _disparities(audit: Audit, names: ReportNames) -> Section:
    rows = []
    for each in audit.disparities:
        if math.isnan(each.difference.value) or not (each.difference.value or each.is_clear):
            continue
        is_share = each.measure in SHARES
        rows.append(
            (
                names.group(each.column, each.value),
                names.value(each.column, each.reference),
                MEASURES[each.measure][0],
                _points(each.difference.value) if is_share else _number(each.difference.value),
                _interval(each.difference, points=is_share),
                "-" if math.isnan(each.corrected) else "< 0.001" if each.corrected < 0.001 else f"{each.corrected:.3f}",
                "yes" if each.is_clear else "no" if each.is_compared else "small",
            )
        )
    compared = f"{audit.comparisons} comparison{'' if audit.comparisons == 1 else 's'}"
    about = (
        f"A group less the largest group of its column; shares in points of 100. p is how often people dealt to the two groups at random "
        f"differ as much, after the correction for {compared}; a difference is clear where that is at most {CLEAR:g}."
    )
    heads = ("group", "against", "measure", "difference", "95 % interval", "p", "clear")
    return Section("Differences between groups", about, heads, tuple(rows))


def _fixed_section(title: str, about: str, people: Sequence[Person], names: ReportNames) -> Section:
    rows = [
        (str(person.row), ", ".join(names.group(column, value) for column, value in person.groups.items()))
        for person in people[:ROWS_SHOWN]
    ]
    if len(people) > ROWS_SHOWN:
        rows.append((f"and {len(people) - ROWS_SHOWN} more", "see the JSON"))
    return Section(f"{title}: {len(people)}", about, ("row", "groups"), tuple(rows))


def _count(number: int, of: int) -> str:
    return f"{number} ({number / of:.0%})" if of else str(number)


def _number(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value + 0.0:.3g}"


def _points(value: float) -> str:
    points = round(100 * value, 1)
    return f"{points:+.1f}" if points else "0.0"


def _interval(interval: ConfidenceInterval, *, points: bool = False) -> str:
    """Return the ends of an interval; how few people there are where it has none."""
    if not interval.people or math.isnan(interval.value):
        return "-"
    if math.isnan(interval.low):
        return f"few: {interval.people}"
    shown = _points if points else _number
    return f"{shown(interval.low)} to {shown(interval.high)}"


def as_text(audit: Audit) -> str:
    """Return the report as plain text of 80 columns."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=TEXT_WIDTH, color_system=None, markup=False, emoji=False, highlight=False
    )
    with console.capture() as captured:
        console.print(as_rich(audit))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _by_column(section: Section, audit: Audit) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table of groups, below a heading for each column that makes groups: the names are short then."""
    names = audit.names
    known = {
        name: group for group in audit.groups for name in (names.row(group), names.group(group.column, group.value))
    }
    column = ""
    for row in section.rows:
        group = known.get(row[0])
        if group is None:
            yield row
            continue
        if group.column != column:
            column = group.column
            yield (names.feature(column),)
        yield (f"  {row[0].removeprefix(f'{names.feature(column)} ')}", *row[1:])


_MARK = "\ue000"
"""Stands in a table where a heading goes over its whole width; of no file's or name's letters."""


class _WithHeadings:
    """A table whose columns are not made narrow by long headings between its rows, and that breaks none of these."""

    def __init__(self, table: Table) -> None:
        self.table, self.headings = table, list[str]()

    def add_heading(self, text: str) -> None:
        self.table.add_row(_MARK)
        self.headings.append(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines of the table, with each heading in the place that was marked for it."""
        from rich.segment import Segment
        from rich.text import Text

        headings = iter(self.headings)
        for line in console.render_lines(self.table, options, pad=False):
            if "".join(segment.text for segment in line).strip() == _MARK:
                yield Text(next(headings))
            else:
                yield from [*line, Segment.line()]


def as_rich(audit: Audit) -> Group:
    """Return the report for a terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(sentence, style="bold") for sentence in audit.summary]
    for section in sections(audit):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        is_prose = len(section.heads) == 2
        for number, head in enumerate(section.heads):
            is_text = number == 0 or is_prose or head in ("most often", "against", "measure")
            table.add_column(Text(head), justify="left" if is_text else "right", overflow="fold")
        shown = _WithHeadings(table)
        for row in _by_column(section, audit) if section.heads[0] == "group" else section.rows:
            if len(row) == 1:
                shown.add_heading(row[0])
            else:
                table.add_row(*map(Text, row))
        parts += [Text(""), Text(section.title, style="bold"), Text(section.about, style="dim"), shown]
    return Group(*parts)

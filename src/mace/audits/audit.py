"""The audit of a model over people, and what it says in words, JSON and HTML."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mace.answer.counterfactual import AS_IN_DATA
from mace.answer.question import Question
from mace.audits.names import ReportNames
from mace.audits.people import NO_RECOURSE, Person, in_order, people_of, plain_fields
from mace.audits.summary import CORRECTION, EVERYONE, Disparity, GroupSummary, all_disparities, summary_of
from mace.batch import Batch, OnProgress
from mace.batch.stream import Stream
from mace.constraints import Constraints
from mace.disk import whole_text
from mace.errors import InvalidOption, did_you_mean, listed
from mace.explainer import Explainer
from mace.space import Wording

if TYPE_CHECKING:
    from rich.console import Group

SCHEMA_VERSION = 2
"""Of what is written: 2 has the setting, the summary, and p-values with their correction."""


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """What a report is about.

    Attributes
    ----------
    model, data : str
        The model and the people, in words.
    date : str
        The day of the audit, as in 2026-02-28.
    version : str
        Of MACE.
    """

    model: str
    data: str
    date: str
    version: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Who would have to change what, by group.

    Attributes
    ----------
    target, distance, constraints : str
        What was asked for, in words.
    columns, protected : tuple of str
        The columns that make groups, and the features that are protected.
    everyone : GroupSummary
        All people together.
    groups : tuple of GroupSummary
        Each group of each column.
    disparities : tuple of Disparity
        How groups differ from the largest of their column.
    people : tuple of Person
        What became of each row.
    resamples, seed : int
        Of the bootstrap.
    setting : AuditSetting
        The model, the people, the day and the version of MACE.
    wording : Wording
        What the space calls features, levels and outcomes, for reports; not in the JSON, which has the names of the data.
    """

    target: str
    distance: str
    constraints: tuple[str, ...]
    columns: tuple[str, ...]
    protected: tuple[str, ...]
    everyone: GroupSummary
    groups: tuple[GroupSummary, ...]
    disparities: tuple[Disparity, ...]
    people: tuple[Person, ...]
    resamples: int
    seed: int
    setting: AuditSetting
    wording: Wording = field(default=AS_IN_DATA, repr=False, compare=False)

    @property
    def names(self) -> ReportNames:
        """What reports call features, groups and the target."""
        return ReportNames(self.wording, self.groups)

    @property
    def comparisons(self) -> int:
        """How many comparisons between groups the p-values are corrected for."""
        return sum(each.is_compared for each in self.disparities)

    @property
    def summary(self) -> tuple[str, str, str]:
        """The audit in three sentences: who has a way, which groups differ, what it takes."""
        from mace.audits.words import three_sentences

        return three_sentences(self)

    @property
    def fixed(self) -> tuple[Person, ...]:
        """The people for whom the decision is fixed: proved that no counterfactual exists."""
        return tuple(person for person in self.people if person.is_fixed)

    @property
    def fixed_when_held(self) -> tuple[Person, ...]:
        """The people who have recourse, but proved none that leaves the protected features alone."""
        return tuple(p for p in self.people if not p.is_fixed and p.held_outcome == NO_RECOURSE)

    def __str__(self) -> str:
        from mace.audits.report import as_text

        return as_text(self)

    def __rich__(self) -> Group:
        from mace.audits.report import as_rich

        return as_rich(self)

    def __repr__(self) -> str:
        return f"<Audit of {len(self.people)} people, groups by {', '.join(self.columns) or 'nothing'}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain data; the keys are in ``docs/audits.md``."""
        return {
            "version": SCHEMA_VERSION,
            "setting": plain_fields(self.setting),
            "summary": list(replace(self, wording=AS_IN_DATA).summary),
            "target": self.target,
            "distance": self.distance,
            "constraints": list(self.constraints),
            "columns": list(self.columns),
            "protected": list(self.protected),
            "resamples": self.resamples,
            "seed": self.seed,
            "comparisons": self.comparisons,
            "correction": CORRECTION,
            "everyone": self.everyone.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "disparities": [disparity.to_dict() for disparity in self.disparities],
            "people": [person.to_dict() for person in self.people],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the audit as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_html(self, *, pictures: bool = True) -> str:
        """Return the audit as one HTML page that needs no other file, with its plots in it where ``pictures`` are wanted.

        Raises
        ------
        MissingPackage
            Pictures are wanted, and matplotlib is not installed.
        """
        from mace.audits.html import as_html

        return as_html(self, pictures=pictures)

    def _repr_html_(self) -> str:
        from mace.audits.report import headline, sections
        from mace.notebook import card, paragraph, table

        parts = [paragraph(headline(self), kind="title")]
        for each in sections(self):
            parts += [
                paragraph(each.title, kind="title"),
                paragraph(each.about, kind="quiet"),
                table(each.heads, each.rows),
            ]
        return card(*parts)

    def save(self, path: str | os.PathLike[str], *, pictures: bool = True) -> None:
        """Write the audit to an ``.html`` or a ``.json`` file, for its owner alone; it appears once it is whole."""
        file = Path(path)
        makers: dict[str, Callable[[], str]] = {
            ".html": partial(self.to_html, pictures=pictures),
            ".json": self.to_json,
        }
        if file.suffix not in makers:
            raise InvalidOption(f"{file.name}: unknown kind of report. Accepted: {', '.join(makers)}.")
        text = makers[file.suffix]()
        with whole_text(file) as whole:
            whole.write(text)


def audit(
    explainer: Explainer,
    frame: Any,
    groups: Sequence[str] = (),
    *,
    target: object,
    distance: object = "l1",
    constraints: Constraints = (),
    protected: Sequence[str] | None = None,
    accuracy: float = 1e-6,
    time_limit: float | None = None,
    solver: str = "auto",
    n_jobs: int | None = None,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    progress: bool = False,
    model_name: str = "",
    data_name: str = "",
    date: str | datetime.date | None = None,
) -> Audit:
    """Explain everyone who is not at the target, and compare groups.

    Parameters
    ----------
    explainer : Explainer
        The model.
    frame : data frame
        The people; further columns may make groups.
    groups : names
        Columns of the frame whose values make groups, features or not; more than ten numbers, or dates, are put into four
        bands of about as many people each.
    target : label or target
        The outcome that is wanted.
    distance, constraints, accuracy, time_limit, solver
        As for :meth:`Explainer.explain`, a row.
    protected : names, optional
        Features that should not have to change; where not given, the groups that are features and those that the space protects.
    n_jobs, on_progress, progress
        As for :meth:`Explainer.explain_many`.
    resamples, seed : int
        Of the bootstrap; the same seed gives the same intervals.
    model_name, data_name : str
        What the report calls the model and the people, beside what is known of them: names of files, say.
    date : date or str, optional
        The day that the report bears, as in ``"2026-02-28"``; today where not given.
    """
    from mace.space.frames import as_pandas

    people = as_pandas(frame)
    _check(explainer, people, target, resamples, seed)
    columns = (groups,) if isinstance(groups, str) else tuple(groups)
    held = _held(explainer, protected, columns)
    day = _day(date)
    search: Any = {"accuracy": accuracy, "time_limit": time_limit, "solver": solver}
    question = Question(explainer.space, target, distance, constraints, classes=explainer.classes, **search)

    def explain(rows: Any, asked: Question) -> Batch:
        stream = Stream(explainer, asked, n_jobs=n_jobs, on_progress=on_progress, progress=progress)
        batch = Batch.of(stream, rows)
        if batch.interrupted:
            raise KeyboardInterrupt
        return batch

    found = people_of(explainer, people, columns, held, question, explain)
    by_column = {column: _grouped(found, column) for column in columns}
    return Audit(
        target=str(question.target),
        distance=str(question.distance),
        constraints=tuple(map(str, question.constraints)),
        columns=columns,
        protected=held,
        everyone=summary_of("", EVERYONE, found, held, resamples, seed),
        groups=tuple(
            summary_of(column, value, members, held, resamples, seed)
            for column, values in by_column.items()
            for value, members in values.items()
        ),
        disparities=all_disparities(by_column, resamples, seed),
        people=found,
        resamples=resamples,
        seed=seed,
        setting=_setting(explainer, len(people), model_name, data_name, day),
        wording=explainer.space.wording,
    )


MOST_RESAMPLES = 100_000


def _day(date: str | datetime.date | None) -> str:
    """Return a day as it is written, today where none is given."""
    try:
        given = datetime.date.fromisoformat(date) if isinstance(date, str) else date
        return (datetime.date.today() if given is None else given).strftime("%Y-%m-%d")
    except (ValueError, AttributeError) as error:
        raise InvalidOption(f"date={date!r:.40}; give a day, e.g. date='2026-02-28'.") from error


def _setting(explainer: Explainer, people: int, model: str, data: str, day: str) -> AuditSetting:
    from mace import __version__

    known = repr(explainer).removeprefix("<Explainer: ").removesuffix(">")
    count = f"{people:,} rows"
    return AuditSetting(
        model=f"{model}: {known}" if model else known,
        data=f"{data}, {count}" if data else count,
        date=day,
        version=__version__,
    )


def _check(explainer: Explainer, people: Any, target: object, resamples: int, seed: int) -> None:
    """Refuse what no audit can be made of."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InvalidOption(f"seed={seed!r:.40}; it must be a whole number from 0 to 2**32 - 1.")
    if not hasattr(people, "columns"):
        raise InvalidOption(f"audit: frame is a {type(people).__name__}; give a data frame.")
    if target is None:
        raise InvalidOption("audit: target=None; say which outcome is wanted, e.g. target='good'.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or not 1 <= resamples <= MOST_RESAMPLES:
        raise InvalidOption(f"resamples={resamples!r:.40}; it must be a whole number from 1 to {MOST_RESAMPLES:,}.")
    absent = [name for name in explainer.space if name not in people.columns]
    if absent:
        raise InvalidOption(f"audit: the frame has no column {listed(map(repr, absent))}.")


def _held(explainer: Explainer, protected: Sequence[str] | None, columns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the protected features: those named, or the groups that are features and those that the space protects."""
    if protected is None:
        grouping = [name for name in columns if name in explainer.space]
        return tuple(dict.fromkeys([*grouping, *explainer.space.protected]))
    held = (protected,) if isinstance(protected, str) else tuple(protected)
    for name in held:
        if name not in explainer.space:
            raise InvalidOption(f"protected: there is no feature {name!r}.{did_you_mean(name, explainer.space)}")
    return held


def _grouped(people: Sequence[Person], column: str) -> dict[str, list[Person]]:
    made: dict[str, list[Person]] = {}
    for person in people:
        made.setdefault(person.groups[column], []).append(person)
    return dict(sorted(made.items(), key=lambda pair: in_order(pair[0])))

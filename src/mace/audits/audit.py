"""The audit of a model over people, and what it says in words, JSON and HTML."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mace.answer.question import Question
from mace.audits.people import NO_RECOURSE, Person, people_of
from mace.audits.summary import EVERYONE, Disparity, GroupSummary, disparities_of, summary_of
from mace.batch import Batch, OnProgress
from mace.batch.stream import Stream
from mace.constraints import Constraints
from mace.disk import whole_text
from mace.errors import InvalidOption, did_you_mean
from mace.explainer import Explainer

if TYPE_CHECKING:
    from rich.console import Group

SCHEMA_VERSION = 1


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
            "target": self.target,
            "distance": self.distance,
            "constraints": list(self.constraints),
            "columns": list(self.columns),
            "protected": list(self.protected),
            "resamples": self.resamples,
            "seed": self.seed,
            "everyone": self.everyone.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "disparities": [disparity.to_dict() for disparity in self.disparities],
            "people": [person.to_dict() for person in self.people],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the audit as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        """Return the audit as one HTML page that needs no other file, with its plots in it."""
        from mace.audits.html import as_html

        return as_html(self)

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the audit to an ``.html`` or a ``.json`` file, for its owner alone; it appears once it is whole."""
        file = Path(path)
        makers = {".html": self.to_html, ".json": self.to_json}
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
) -> Audit:
    """Explain everyone who is not at the target, and compare groups.

    Parameters
    ----------
    explainer : Explainer
        The model.
    frame : data frame
        The people; further columns may make groups.
    groups : names
        Columns of the frame whose values make groups, features or not.
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
    """
    from mace.space.frames import as_pandas

    people = as_pandas(frame)
    _check(explainer, people, target, resamples, seed)
    columns = (groups,) if isinstance(groups, str) else tuple(groups)
    held = _held(explainer, protected, columns)
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
        disparities=tuple(
            each
            for column, values in by_column.items()
            if len(values) > 1
            for each in disparities_of(column, values, resamples, seed)
        ),
        people=found,
        resamples=resamples,
        seed=seed,
    )


MOST_RESAMPLES = 100_000


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
        raise InvalidOption(f"audit: the frame has no column {', '.join(map(repr, absent))}.")


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
    return dict(sorted(made.items()))

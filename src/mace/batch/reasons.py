"""Why, of many rows: reasons in the order of the rows, as a frame, and how often a feature is in them."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict, Unpack

from mace.answer.listed import Listed
from mace.answer.plain import plain
from mace.answer.reasons import Reasons
from mace.batch.protocol import Explains
from mace.batch.rows import BatchRow, RowLabels, cells_of, check_batch, point_of, rows_of, values_of
from mace.constraints import Constraints
from mace.errors import MaceError
from mace.problem import LATE
from mace.space import Row, Scalar

ROWS_A_TASK = 8
"""Rows that a process is given at one time."""

BEFORE_ANY = "the time limit of the whole batch was reached before"


class ReasonsOptions(TypedDict, total=False):
    """What is asked of every row; as for :meth:`mace.Explainer.reasons`."""

    target: object
    constraints: Constraints
    count: int
    smallest: bool
    ranges: bool
    time_limit: float | None
    solver: str
    certify: bool


class SaysWhy(Explains, Protocol):
    """What such a batch needs of an explainer."""

    def reasons(self, row: Row, **options: Unpack[ReasonsOptions]) -> Reasons:
        """Return the reasons of a row."""
        ...


@dataclass(frozen=True, slots=True)
class ReasonsBatch(Listed[Reasons]):
    """The reasons of many rows, in their order; a row that could not be asked about has an ``error``.

    Attributes
    ----------
    answers : tuple of Reasons
        One a row.
    labels : RowLabels
        The index of the rows, and what identifies them.
    """

    answers: tuple[Reasons, ...]
    labels: RowLabels = field(default_factory=RowLabels)

    @property
    def _entries(self) -> tuple[Reasons, ...]:
        return self.answers

    def __str__(self) -> str:
        complete, found = sum(each.complete for each in self), sum(bool(each) for each in self)
        errors = sum(bool(each.error) for each in self)
        return f"{len(self)} rows: {found} with reasons, {complete} complete" + (f", {errors} errors" if errors else "")

    def __repr__(self) -> str:
        return f"<ReasonsBatch: {self}>"

    @property
    def first_shares(self) -> dict[str, float]:
        """The share of the rows with a reason whose first reason holds a feature, greatest first: on what the decisions rest."""
        known = [each for each in self if each]
        names = dict.fromkeys(name for each in known for name in each.factual)
        count = {name: sum(name in each[0].features for each in known) / len(known) for name in names}
        return dict(sorted(count.items(), key=lambda each: -each[1]))

    def to_frame(self) -> Any:
        """Return a pandas frame with one line a reason, and one for a row without any."""
        import pandas as pd

        lines = [line for number, each in enumerate(self) for line in self._lines(number, each)]
        return pd.DataFrame(lines, columns=self._columns())

    def _columns(self) -> list[str]:
        known = [] if self.labels.name is None else [self.labels.name]
        return [*known, "row", "reason", "features", "as_long_as", "necessary", "complete", "note", "error"]

    def _lines(self, number: int, each: Reasons) -> Iterator[dict[str, Any]]:
        own = {} if self.labels.name is None else {self.labels.name: self.labels.ids[number]}
        whole = {"necessary": ", ".join(each.necessary), "complete": each.complete, "error": each.error or None}
        for place, reason in enumerate(each, start=1):
            said = {"reason": place, "features": ", ".join(reason.features), "as_long_as": reason.as_long_as}
            yield {**own, "row": number, **said, **whole, "note": reason.note or each.note}
        if not each:
            yield {**own, "row": number, "reason": None, "features": None, **whole, "note": each.note or each.reason}

    def to_json(self, indent: int | None = None) -> str:
        """Return the reasons as a JSON array."""
        made = [each.to_dict() for each in self]
        if self.labels.name is not None:
            made = [{"id": plain(own), **each} for own, each in zip(self.labels.ids, made, strict=True)]
        return json.dumps(made, indent=indent, ensure_ascii=False, allow_nan=False)

    @classmethod
    def of(
        cls,
        explainer: SaysWhy,
        data: Any,
        options: ReasonsOptions,
        *,
        id: str | None,  # noqa: A002
        total_time_limit: float | None,
        n_jobs: int | None,
    ) -> ReasonsBatch:
        """Return the reasons of the rows of a frame, or of rows; ``id`` is a column that identifies them."""
        check_batch(data)
        data = data if hasattr(data, "columns") else list(data)
        labels = RowLabels.of(data, id)
        until = math.inf if total_time_limit is None else time.time() + total_time_limit
        return cls(tuple(each_reasons(explainer, data, options, until=until, n_jobs=n_jobs)), labels)


def each_reasons(
    explainer: SaysWhy, data: Any, options: ReasonsOptions, *, until: float = math.inf, n_jobs: int | None = None
) -> Iterator[Reasons]:
    """Yield the reasons of each row, in order; ``until`` is the end of the batch by ``time.time()``."""
    from joblib import Parallel, delayed, effective_n_jobs

    rows = rows_of(data, explainer.space)
    if effective_n_jobs(n_jobs) == 1:
        yield from _answers(explainer, rows, options, until)
        return
    parts = iter(lambda: list(itertools.islice(rows, ROWS_A_TASK)), [])
    work = Parallel(n_jobs=n_jobs, return_as="generator")
    for answers in work(delayed(_listed)(explainer, part, options, until) for part in parts):
        yield from answers


def _listed(explainer: SaysWhy, rows: Iterable[Any], options: ReasonsOptions, until: float) -> list[Reasons]:
    return list(_answers(explainer, rows, options, until))


def _answers(explainer: SaysWhy, rows: Iterable[Any], options: ReasonsOptions, until: float) -> Iterator[Reasons]:
    known: dict[BatchRow, Reasons] = {}
    for row in rows:
        point = point_of(explainer, row)
        if isinstance(point, MaceError):
            yield _failed(cells_of(explainer.space, row), point)
            continue
        if point not in known or known[point].reason.startswith((BEFORE_ANY, LATE)):
            known[point] = _answer(explainer, values_of(explainer.space, point), options, until)
        yield known[point]


def _answer(explainer: SaysWhy, row: dict[str, Scalar], options: ReasonsOptions, until: float) -> Reasons:
    left, own = until - time.time(), options.get("time_limit")
    if left <= 0:
        return Reasons((), complete=False, reason=BEFORE_ANY, necessary=(), prediction=None, target="", factual=row)
    limited = options
    if left < math.inf:
        limited = {**options, "time_limit": left if own is None else min(left, own)}
    try:
        return explainer.reasons(row, **limited)
    except MaceError as error:
        return _failed(row, error)


def _failed(row: dict[str, Scalar], error: MaceError) -> Reasons:
    said = f"{type(error).__name__}: {error}"
    return Reasons((), complete=False, reason="", necessary=(), prediction=None, target="", factual=row, error=said)

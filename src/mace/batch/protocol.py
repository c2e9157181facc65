"""What batches need of an explainer, and the options of a batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol, TypedDict

from mace.answer.explanation import Explanation
from mace.answer.outside import Outside
from mace.answer.question import Options, Question
from mace.batch.progress import OnProgress
from mace.certify.statement import Statement
from mace.models.live import Block
from mace.space import FeatureSpace, Point, Row, Scalar


class RunningOptions(TypedDict, total=False):
    """How a batch is run."""

    total_time_limit: float | None
    n_jobs: int | None
    checkpoint: str | os.PathLike[str] | None
    on_progress: OnProgress | None
    progress: bool


class BatchOptions(Options, RunningOptions, total=False):
    """How a batch is run, and what it asks of every row."""


class Explains(Protocol):
    """What batches need of an explainer."""

    @property
    def space(self) -> FeatureSpace:
        """The plausible domain."""
        ...

    @property
    def classes(self) -> tuple[Scalar, ...] | None:
        """The model's labels."""
        ...

    @property
    def outside(self) -> Outside:
        """What is done with rows outside the space."""
        ...

    def _answer(self, row: Row, question: Question) -> Explanation: ...

    def _space_of(self, row: Row) -> FeatureSpace: ...

    def _block(self, points: Sequence[Point]) -> Block: ...

    def _scored(self, explanations: Sequence[Explanation], question: Question) -> list[Explanation]: ...

    def _check(self, factual: Point, question: Question) -> None: ...

    def _statement(self, factual: Point, question: Question) -> Statement: ...

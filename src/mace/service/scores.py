"""Decisions and scores of many rows, asked of the model in few calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mace.answer.scoring import Measure
from mace.errors import MaceError
from mace.explainer import Explainer
from mace.space import Point
from mace.targets import becomes, goal_of, of_label

BLOCK = 4096
"""Rows that the model is asked about in one call."""


class RowScores:
    """What the model says of rows, measured for one target.

    Parameters
    ----------
    explainer : Explainer
        The model.
    target : object
        What is wanted; ``None`` scores the second of two labels, and nothing where there are more.
    """

    def __init__(self, explainer: Explainer, target: object) -> None:
        self.explainer, self.target = explainer, of_label(target, explainer.classes)
        classes = explainer.classes
        scored = (
            becomes(classes[1]) if self.target is None and classes is not None and len(classes) == 2 else self.target
        )
        is_unscored = scored is None and classes is not None
        # Of one label, or of a bound, what is scored is the same for every row.
        self.measure = None if is_unscored else Measure.to_reach(scored, explainer._reading, None)

    @property
    def head(self) -> dict[str, Any]:
        """What is scored, and from where on the target is reached."""
        measure = self.measure
        threshold = None if measure is None else measure.threshold
        return {
            "score_of": None if measure is None else measure.of,
            "threshold": list(threshold) if isinstance(threshold, tuple) else threshold,
        }

    def of(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        """Return decision, score and whether the target is reached, of each row."""
        made: list[dict[str, Any]] = []
        for begin in range(0, len(points), BLOCK):
            made += self._block(points[begin : begin + BLOCK])
        return made

    def _block(self, points: Sequence[Point]) -> list[dict[str, Any]]:
        reading = self.explainer._reading
        with self.explainer._live.question():
            codes = reading.ask(points)
            labels = [reading.label(code) for code in codes]
            scores: Sequence[Any] = [None] * len(points)
            if self.measure is not None:
                scores = labels if self.measure.ask is None else self.measure.ask(points)
            is_there = [False] * len(points)
            if self.target is not None:
                goal, ask = goal_of(self.target, reading, codes[0])
                is_there = [goal.accepts(outcome) for outcome in (codes if ask is reading.ask else ask(points))]
        return [
            {"decision": label, "score": score, "reached": there}
            for label, score, there in zip(labels, scores, is_there, strict=True)
        ]

    def of_rows(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the same of rows as they are; one that does not fit the space has no decision and says why in ``error``."""
        points: list[Point] = []
        errors: list[str | None] = []
        for row in rows:
            try:
                points.append(self.explainer.space.point(row))
                errors.append(None)
            except MaceError as error:
                errors.append(str(error))
        found = iter(self.of(points))
        nothing = {"decision": None, "score": None, "reached": False}
        return [(nothing if error else next(found)) | {"error": error} for error in errors]

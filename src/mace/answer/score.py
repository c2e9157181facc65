"""What the model reports of a row and of its answers: a probability, a score or a prediction, before and after."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mace.answer.plain import part
from mace.errors import MaceError
from mace.space import Wording

Threshold = float | tuple[float, float] | None
"""Where the target begins: one number, both ends of a range, or ``None`` where there is none."""

NEAR_SURE = 0.0001
"""A probability nearer than this to 0 or 1 is shown by this bound."""

SCORE_DIGITS = 9
"""Significant digits of a score that is asked for in a block: beyond them the size of the block may show."""


_OF_A_SET = re.compile(r"(.*) of (both|the|all \d+|\d+ of \d+) models", re.DOTALL)


def of_models(score_of: str) -> tuple[str, str]:
    """Return what is scored, and by how many of a set of models, in words; these are empty of one model.

    Examples
    --------
    >>> of_models("P(good) of all 5 models"), of_models("P(good)")
    (('P(good)', 'all 5'), ('P(good)', ''))
    """
    found = _OF_A_SET.fullmatch(score_of)
    return (score_of, "") if found is None else (found[1], found[2])


def read_scores(data: Mapping[str, Any]) -> AnswerScores:
    """Return the scores of an explanation as plain data."""
    get = partial(part, data, "an explanation")
    threshold = get("threshold", float | list | None)
    after = [partial(part, each, "a counterfactual")("score", float) for each in data["counterfactuals"]]
    if isinstance(threshold, list):
        ends = dict(zip(("low", "high"), threshold, strict=False))
        low, high = (part(ends, "a threshold", end, float) for end in ("low", "high"))
        threshold = (low, high)
    return AnswerScores(get("score_of", str), threshold, (get("score", float), *after))


class AnswerScores:
    """The scores of a row and of its answers; the model is asked when they are first wanted, once, about all of them.

    Parameters
    ----------
    of, threshold
        As in :class:`Measure`.
    values : sequence of float, optional
        That of the row, then that of each answer.
    ask : callable, optional
        Gives them, where they are not known yet.
    """

    __slots__ = ("_ask", "_texts", "_values", "of", "threshold")

    def __init__(
        self,
        of: str,
        threshold: Threshold,
        values: Sequence[float] | None = None,
        ask: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        self.of, self.threshold = of, threshold
        self._values, self._ask = values, ask
        self._texts: dict[int, str] = {}

    @property
    def values(self) -> Sequence[float]:
        """The scores; none where the model has changed since, or fails."""
        if self._values is None:
            assert self._ask is not None
            try:
                self._values = tuple(self._ask())
            except MaceError:
                self._values = ()
            self._ask = None
        return self._values

    @property
    def ends(self) -> tuple[float, ...]:
        """Where the target begins and ends on the scale of the score, as far as there are such numbers."""
        known = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        return tuple(end for end in known if end is not None)

    def at(self, place: int) -> float | None:
        """Return the score of the row (0) or of an answer, counted from 1."""
        return self.values[place] if place < len(self.values) else None

    def __reduce__(self) -> tuple[Any, ...]:
        return AnswerScores, (self.of, self.threshold, self.values)

    def text(self, place: int) -> str:
        """Return ``P(good) 0.38 -> 0.56, threshold 0.5`` for an answer, ``P(good) 0.38`` for the row; empty where not known."""
        if place not in self._texts:
            self._texts[place] = self._text(place)
        return self._texts[place]

    def said(self, place: int, wording: Wording) -> str:
        """Return the text with the outcome by the name that people know."""
        text = self.text(place)
        return f"{wording.target(self.of)}{text.removeprefix(self.of)}" if text else ""

    def _text(self, place: int) -> str:
        before, after = self.at(0), self.at(place)
        if before is None or after is None:
            return ""
        if place == 0:
            return f"{self.of} {self.shown(before)}"
        beyond = " to ".join(f"{end:.6g}" for end in self.ends)
        threshold = f", threshold {beyond}" if beyond else ""
        return f"{self.of} {self.shown(before)} -> {self.shown(after)}{threshold}"

    def shown(self, score: float) -> str:
        """Return a score in as many digits as tell it from the threshold, at least four; a probability next to 0 or 1 by a bound."""
        if self.of.startswith("P(") and (0 < score < NEAR_SURE or 1 - NEAR_SURE < score < 1):
            return f"under {NEAR_SURE:g}" if score < 0.5 else f"over {1 - NEAR_SURE:g}"
        for digits in range(4, SCORE_DIGITS):
            text = f"{score:.{digits}g}"
            if not any(float(text) == end != score for end in self.ends):
                return text
        return f"{score:.{SCORE_DIGITS}g}"

"""The question: the options of ``Explainer.explain`` but the row, checked once and handed to whatever answers them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypedDict

from mace.answer.explanation import Explanation
from mace.answer.rounding import RoundTo, decimals_of, steps_of
from mace.answer.words import ANY_OTHER
from mace.certify.statement import Statement, as_target
from mace.constraints import Constraint, Constraints, as_constraints
from mace.constraints.causal import Causal
from mace.constraints.differ import Differ, differ
from mace.constraints.robust import Robust
from mace.distances import as_distance
from mace.errors import InvalidOption
from mace.models import Reading
from mace.problem import Limits, Problem, Progress, Status
from mace.space import FeatureSpace, Point, Scalar
from mace.targets import goal_of, of_label, reached

MOST_ANSWERS = 10_000
"""The most counterfactuals of one row: each is searched for, and must differ from all before."""

MOST_SECONDS = 1e9


class Options(TypedDict, total=False):
    """The options of a question for a type checker; names, types and defaults are those of :class:`Question`."""

    target: object
    distance: object
    constraints: Constraints
    count: int
    diversity: Differ | None
    accuracy: float
    time_limit: float | None
    solver: str
    certify: bool
    digits: int | Mapping[str, int] | None
    round_to: RoundTo


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


class Question:
    """What is asked of a row of a space; the parameters are documented at :meth:`mace.Explainer.explain`.

    ``classes`` are the model's labels, ``None`` where it predicts numbers. ``kept`` are further constraints, part of the space and none
    of the user's: they keep answers in ranges that are narrower than those of ``space``.

    Raises
    ------
    InvalidOption, InvalidTarget, InvalidDistance, InvalidConstraint
        An option is outside of what is accepted.
    """

    def __init__(
        self,
        space: FeatureSpace,
        target: object = None,
        distance: object = "l1",
        constraints: Constraints = (),
        *,
        count: int = 1,
        diversity: Differ | None = None,
        accuracy: float = 1e-6,
        time_limit: float | None = None,
        solver: str = "auto",
        certify: bool = False,
        digits: int | Mapping[str, int] | None = None,
        round_to: RoundTo = "auto",
        on_progress: Progress | None = None,
        classes: tuple[Scalar, ...] | None = None,
        kept: tuple[Constraint, ...] = (),
    ) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_ANSWERS:
            given = "a number of many digits" if isinstance(count, int) and count.bit_length() > 99 else repr(count)
            raise InvalidOption(
                f"count={given:.40}; it must be a whole number from 1 to {MOST_ANSWERS:,}, e.g. count=3."
            )
        if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 1e-15 <= accuracy <= 1e6:
            raise InvalidOption(f"accuracy={accuracy!r}; it must be a number from 1e-15 to 1e6, e.g. 1e-6.")
        if not is_seconds(time_limit):
            raise InvalidOption(
                f"time_limit={time_limit!r}; it must be a positive number of seconds (at most 1e9), e.g. 30, or None."
            )
        if not isinstance(certify, bool):
            raise InvalidOption(f"certify={certify!r}; it must be True or False.")
        if not isinstance(solver, str):
            raise InvalidOption(f"solver={solver!r}; give a name, e.g. 'auto'.")
        if diversity is not None and not isinstance(diversity, Differ):
            raise InvalidOption(
                f"diversity={diversity!r:.80}; make it with mace.differ, e.g. mace.differ(sets='incomparable'), "
                "mace.differ(features=2) or mace.differ(distance=0.1)."
            )
        if on_progress is not None and not callable(on_progress):
            raise InvalidOption(f"on_progress={on_progress!r}; give a function (lower, upper, calls).")
        self.space, self.classes, self.kept = space, classes, kept
        self.target, self.distance = of_label(target, classes), as_distance(distance)
        self.constraints, self.count = as_constraints(constraints, space), count
        self.diversity = diversity or differ(sets="incomparable")
        self.accuracy, self.time_limit, self.solver = float(accuracy), time_limit, solver
        self.certify, self.digits, self.on_progress = certify, digits, on_progress
        self.round_to = round_to
        _ = self.steps

    def but(self, **changes: Any) -> Question:
        """Return the question with some options changed."""
        return Question(**{**vars(self), **changes})

    @property
    def decimals(self) -> dict[str, float]:
        """Of what ``digits`` makes the answers of real features multiples, by name."""
        return {name: float(f"1e{-number}") for name, number in decimals_of(self.space, self.digits).items()}

    @property
    def steps(self) -> dict[str, float]:
        """Of what the answers of numbers shall be multiples, by name.

        Noise is of any size, whatever the answers are rounded to: with ``robust`` there is no such space.
        """
        steps = steps_of(self.space, self.round_to, self.digits)
        if not any(isinstance(constraint, Robust) for constraint in self.constraints):
            return steps
        self.check_can_only_shorten("robust")
        return {}

    @property
    def is_rounding_given(self) -> bool:
        """Whether the caller has said of what answers shall be multiples."""
        return self.round_to is not None and self.round_to != "auto"

    def check_can_only_shorten(self, what: str) -> None:
        """Raise where values shall be rounded to given steps beside something that does not allow it."""
        if self.is_rounding_given:
            raise InvalidOption(
                f"round_to={self.round_to!r:.60} cannot be asked for with {what}; digits=, which rounds afterwards, can."
            )

    def over(self, space: FeatureSpace, kept: tuple[Constraint, ...], **changes: Any) -> Question:
        """Return the question over another space, in which constraints keep the answers in the first one's ranges."""
        return self.but(space=space, kept=(*self.kept, *kept), **changes)

    @property
    def in_words(self) -> tuple[str, str]:
        """Target and distance as an explanation names them."""
        return ANY_OTHER if self.target is None else str(self.target), str(self.distance)

    def limits(self, since: float) -> Limits:
        """Return what bounds the search of an answer whose clock started at a moment of ``time.monotonic``."""
        return Limits.of(self.time_limit, self.on_progress, record=self.certify, since=since)

    def problem(self, reading: Reading, factual: Point, current: Fraction) -> Problem:
        """Return the problem of a row; ``current`` is the model's outcome of the row itself."""
        goal, ask = goal_of(self.target, reading, current)
        return Problem(
            space=self.space,
            form=reading.form,
            ask=ask,
            goal=goal,
            factual=factual,
            metric=self.distance.from_factual(self.space, factual),
            conditions=tuple(each.bind(self.space, factual) for each in (*self.constraints, *self.kept)),
            accuracy=Fraction(self.accuracy),
        )

    def if_reached(self, reading: Reading, factual: Point, current: Fraction, started: float) -> Explanation | None:
        """Return the answer about a row that is at the target already; ``None`` where it is not."""
        said = reached(self.target, reading, factual, current)
        if not said:
            return None
        target, distance = self.in_words
        return Explanation(
            counterfactuals=(),
            status=Status.REACHED,
            factual=self.space.values_of(factual),
            prediction=reading.label(current),
            target=target,
            distance=distance,
            lower=0.0,
            reason=f"the row is already predicted {said}, and {target} is asked for",
            seconds=time.monotonic() - started,
            space=self.space,
            classes=reading.classes,
        )

    def statement(self, model: dict[str, str], factual: Point, causes: Causal | None) -> Statement:
        """Return the question about a row as a certificate states it; ``model`` is the model's fingerprint."""
        return Statement(
            model=model,
            space=self.space,
            factual=factual,
            target=as_target(self.target),
            distance=self.distance,
            constraints=(*self.constraints, *self.kept),
            diversity=self.diversity,
            earlier=(),
            accuracy=self.accuracy,
            causes=causes,
        )

    def to_dict(self, statement: Statement) -> dict[str, Any]:
        """Return the question of a batch as plain data, by which a checkpoint recognises it; ``statement`` is that of any row."""
        stated = statement.to_dict()
        del stated["factual"], stated["earlier"]
        stated["diversity"] = str(self.diversity) if self.count > 1 else None
        options = {name: getattr(self, name) for name in ("count", "time_limit", "solver", "certify", "digits")}
        return stated | options | ({"round_to": self.steps} if self.steps else {})


def is_seconds(limit: object) -> bool:
    """Return whether a time limit is a positive number of seconds, or ``None``."""
    is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
    return limit is None or (is_number and 0 < limit <= MOST_SECONDS)  # type: ignore[operator]

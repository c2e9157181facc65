"""How much noise an answer stands: the greatest share of a noise that never takes it out of the target, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction
from functools import partial

from mace.answer.plain import part, plain, scalars
from mace.constraints.numbers import as_written
from mace.constraints.robust import Robust, RobustCondition, ends_apart
from mace.exact import float_down, float_up
from mace.problem import Bounds, Limits, Problem
from mace.reductions.noise_box import counterexample_question
from mace.solvers import choose
from mace.space import Feature, Point, Scalar, Value
from mace.space.decimals import decimal_of

MARGIN_PRECISION = Fraction(1, 2**20)
"""To what share of itself a margin is found."""

LEAST_SHARE = Fraction(1, 2**40)
"""The least share that is asked about."""

MOST_MARGINS = 60
"""The most questions."""

RANGES = "each feature's range"
"""Of what a margin is a share where no other noise is named."""

Ask = Callable[[Fraction], Bounds]


@dataclass(frozen=True, slots=True)
class NoiseMargin:
    """How much noise an answer stands.

    Attributes
    ----------
    share : float
        Proved: every plausible row within this share of the noise is in the target. Rounded down.
    undone_at : float, optional
        A share at which a row is known that is not; rounded up. ``None`` where the whole noise was proved.
    undone_by : dict, optional
        That row.
    noise : str
        Of what it is a share.
    radii : dict of str to float
        How much that is of each feature, rounded down.
    reason : str
        Why it is not known more exactly, where it is not; empty otherwise.
    """

    share: float
    undone_at: float | None
    undone_by: dict[str, Scalar] | None
    noise: str
    radii: dict[str, float]
    reason: str = ""

    def __float__(self) -> float:
        return self.share

    def __str__(self) -> str:
        text = f"Noise of up to {_times(self.share, self.noise, ROUND_DOWN)} never takes the answer out of the target: proved."
        if self.undone_by is not None and self.undone_at is not None:
            text += (
                f"\nNoise of {_times(self.undone_at, self.noise, ROUND_UP)} can: it leads to a row that is not in it."
            )
        return text + (f" Not known more exactly: {self.reason}." if self.reason else "")

    def to_dict(self) -> dict[str, object]:
        """Return the margin as plain data."""
        by = None if self.undone_by is None else {name: plain(value) for name, value in self.undone_by.items()}
        return {
            "share": self.share,
            "undone_at": self.undone_at,
            "undone_by": by,
            "noise": self.noise,
            "radii": self.radii,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, data: object) -> NoiseMargin:
        """Return the margin that :meth:`to_dict` wrote."""
        get = partial(part, data, "a margin")
        by, radii = get("undone_by", dict | None), get("radii", dict)
        return cls(
            share=get("share", float),
            undone_at=None if get("undone_at", Scalar | None) is None else get("undone_at", float),
            undone_by=None if by is None else scalars(by),
            noise=get("noise", str),
            radii={name: part(radii, "radii", name, float) for name in radii},
            reason=get("reason", str),
        )


def margin_of(problem: Problem, point: Point, noise: Robust, solver: str, limits: Limits) -> NoiseMargin:
    """Return how much of a noise a point of the goal stands; ``problem`` is that of the row, without the noise."""
    whole, space = noise.radii(problem.space), problem.space

    def ask(share: Fraction) -> Bounds:
        lesser = RobustCondition(space, {name: share * radius for name, radius in whole.items()})
        question = counterexample_question(problem, lesser, point)
        return choose(solver, question).solve(question, limits)

    def share_of(row: Point) -> Fraction:
        """Return the least share of the noise that leads to a row."""
        apart = [
            _apart(feature, value, new) / whole[name]
            for (name, feature), value, new in zip(space.items(), point, row, strict=True)
            if new != value
        ]
        return max(apart)

    # Noise that is larger than the ranges leads to no further row.
    everything = max(
        (ends_apart(space[name]) / radius for name, radius in whole.items() if radius), default=Fraction(1)
    )
    everything = max(everything, Fraction(1))
    proved, undone, row, reason = _bisected(ask, share_of, everything)
    share = _written_down(proved)
    return NoiseMargin(
        share=share,
        undone_at=None if undone is None else _written_up(undone),
        undone_by=None if row is None else space.values_of(row),
        noise=RANGES if (noise.share_of, noise.share) == ("range", 1.0) else str(noise),
        radii={name: _written_down(as_written(share) * radius) for name, radius in whole.items()},
        reason=reason,
    )


def _bisected(
    ask: Ask, share_of: Callable[[Point], Fraction], most: Fraction
) -> tuple[Fraction, Fraction | None, Point | None, str]:
    """Return the greatest share that is proved, one at which a row is known that leaves the target, that row, and why no more is known.

    The whole noise is asked about first, then the ``most`` that leads to further rows. The nearest row that leaves the target is known as
    soon as there is one: just below its share the question is asked next, and in the middle where that was in vain.
    """
    proved, undone, row = Fraction(0), None, None
    share, is_near = Fraction(1), False
    for _ in range(MOST_MARGINS):
        found = ask(share)
        if found.is_infeasible:
            proved = share
            if undone is None and share < most:
                share = most
                continue
        elif found.point is None:
            return proved, undone, row, found.reason
        else:
            undone, row = share_of(found.point), found.point
        if undone is None or undone - proved <= MARGIN_PRECISION * undone or undone < LEAST_SHARE:
            return proved, undone, row, ""
        is_near = not is_near
        share = undone * (1 - MARGIN_PRECISION) if is_near else (proved + undone) / 2
        if share <= proved:
            share = (proved + undone) / 2
    return proved, undone, row, "the questions were too many"


def _apart(feature: Feature, value: Value, other: Value) -> Fraction:
    """Return how far two values are apart, as they are written."""
    assert value is not None
    assert other is not None
    return abs(decimal_of(feature, value) - decimal_of(feature, other))


def _written_down(value: Fraction) -> float:
    """Return the greatest float that is not above a number, read as the decimal that it is written as."""
    made = float_down(value)
    while as_written(made) > value:
        made = math.nextafter(made, -math.inf)
    return made


def _written_up(value: Fraction) -> float:
    """Return the least float that is not below a number, read as the decimal that it is written as."""
    made = float_up(value)
    while as_written(made) < value:
        made = math.nextafter(made, math.inf)
    return made


def _times(share: float, noise: str, rounding: str) -> str:
    """Return a share in four digits, rounded to the side on which what is said of it holds."""
    digits, written = Context(prec=4, rounding=rounding), Decimal(repr(share))
    if noise == RANGES:
        return f"{digits.create_decimal(written * 100).normalize():f} % of {noise}"
    return f"{digits.create_decimal(written).normalize():f} times {noise}"

"""From an oracle's exact witness to a row of floats, and what a refused row rules out."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product

from mace.constraints.condition import compare
from mace.exact import float_down, float_up
from mace.language import holds, syntax
from mace.problem import Problem
from mace.solvers.domains import is_narrow, rounded_to_dtype
from mace.space import Point, Real

MOST_CANDIDATES = 64


def candidates(problem: Problem, values: dict[str, Fraction | None]) -> Iterator[Point]:
    """Yield rows near an exact witness: each real that is no float of its dtype rounded up or down, up first, or to fewer digits.

    Up first, because an edge of a tree is a float e with ``x <= e`` on one side: the next float up from a witness lies on the
    witness's side of every edge. Fewer digits, because an oracle knows decimals within half an ulp only, and rules meet at short ones.
    """
    choices = [_roundings(problem, name, values[name]) for name in problem.space]
    yield from islice(product(*choices), MOST_CANDIDATES)


def _roundings(problem: Problem, name: str, value: Fraction | None) -> tuple[int | float | None, ...]:
    if value is None:
        return (None,)
    feature = problem.space[name]
    if not isinstance(feature, Real):
        return (int(value),)
    up, down = float_up(value), float_down(value)
    if is_narrow(feature):
        return tuple(dict.fromkeys((rounded_to_dtype(feature, up, up=True), rounded_to_dtype(feature, down, up=False))))
    return tuple(dict.fromkeys((up,) if up == down else (up, down, float(f"{up:.14g}"))))


def exclusion(problem: Problem, point: Point, values: dict[str, Fraction | None]) -> syntax.Guard | None:
    """Return a region that shares the outcome of a refused row for certain; ``None`` where there is none to gain by.

    The witness that the row was rounded from must lie in it, or the oracle would give it again.
    """
    region = can_exclude(problem, point)
    return region if region is not None and holds(region, values) else None


def can_exclude(problem: Problem, point: Point) -> syntax.Guard | None:
    """Return the cell of a point (trees), or the point itself on a finite space."""
    cell = problem.form.cell(point)
    if cell is not None:
        return cell
    if not is_finite(problem) or not problem.form.is_settled(point, problem.goal):
        return None
    return point_region(problem, point)


def implausible(problem: Problem, values: dict[str, Fraction | None]) -> syntax.Guard | None:
    """Return the region of a witness none of whose rows is plausible, on a finite space."""
    return point_region(problem, next(candidates(problem, values))) if is_finite(problem) else None


def is_finite(problem: Problem) -> bool:
    """Return whether the space has finitely many points."""
    return all(feature.size is not None for feature in problem.space.values())


def point_region(problem: Problem, point: Point) -> syntax.Guard:
    """Return the region that holds a single point."""
    return syntax.conjunction(
        compare(problem.space, name, "==", value) for name, value in zip(problem.space, point, strict=True)
    )

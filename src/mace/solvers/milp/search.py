"""The search of one question: a first point, then balls around the factual, each smaller than the last."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mace.clock import OutOfTime
from mace.forms import FunctionForm
from mace.problem import INTERRUPTED, LATE, Bounds, Limits, Problem
from mace.solvers.milp.ball import BallSearch, Ending
from mace.solvers.milp.incumbent import MilpIncumbent
from mace.solvers.milp.polish import polish
from mace.solvers.milp.seek import seek

FIRST_NODES = 200
"""Nodes spent on finding a first point that rounding cannot disturb, before anything is proved."""


def search(problem: Problem, limits: Limits) -> Bounds:
    """Search until lower and upper are within ε, or time or memory runs out."""
    incumbent = MilpIncumbent(problem, limits)
    return incumbent.finished(is_infeasible=any(steps(incumbent)))


def steps(incumbent: MilpIncumbent) -> Iterator[bool]:
    """Search node after node for as long as the caller goes on; a true one, the last, says that no point is proved to exist."""
    try:
        yield from _steps(incumbent)
    except OutOfTime:
        incumbent.reason = LATE
    except KeyboardInterrupt:
        incumbent.reason = INTERRUPTED
    except OverflowError:
        incumbent.reason = "numbers are too large for a linear program"


def _steps(incumbent: MilpIncumbent) -> Iterator[bool]:
    if incumbent.limits.remaining() <= 0:
        raise OutOfTime
    if incumbent.upper is None:
        first = seek(incumbent.problem, incumbent.limits)
        if first is not None:
            incumbent.offer_rounded(first)
        else:
            yield from BallSearch(incumbent, None, certain=True, most=FIRST_NODES).steps()
    while True:
        ball = BallSearch(incumbent, incumbent.upper)
        match (yield from ball.steps()):
            case Ending.SMALLER:
                continue
            case Ending.STOPPED:
                return
            case Ending.DONE:
                if incumbent.upper is None and ball.undecided == math.inf:
                    yield True
                elif incumbent.is_closed():
                    _settle(incumbent)
                else:
                    yield from _come_nearer(incumbent)
                return


def _come_nearer(incumbent: MilpIncumbent) -> Iterator[bool]:
    """Where rounding leaves a region undecided, look for the nearest point that it cannot disturb."""
    ending = Ending.SMALLER
    while ending is Ending.SMALLER:
        ending = yield from BallSearch(incumbent, incumbent.upper, certain=True).steps()


def _settle(incumbent: MilpIncumbent) -> None:
    """Move a point that another order of summation might disturb inside, where that costs less than ε."""
    problem = incumbent.problem
    if incumbent.point is None or incumbent.upper is None or isinstance(problem.form, FunctionForm):
        return
    if problem.form.cell(incumbent.point) is not None:
        return
    if problem.form.is_beyond_rounding(incumbent.point, problem.goal, problem.box(incumbent.upper)):
        return
    moved = polish(problem, incumbent.point, incumbent.lower + incumbent.share * problem.accuracy, incumbent.limits)
    if (
        moved is not None
        and incumbent.is_valid(moved)
        and problem.distance(moved) <= incumbent.lower + problem.accuracy
    ):
        incumbent.take(moved)

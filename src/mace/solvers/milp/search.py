"""The search of one question: a first point, then balls around the factual, each smaller than the last."""

from __future__ import annotations

import math

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
    try:
        return _search(incumbent)
    except OutOfTime:
        incumbent.reason = LATE
    except KeyboardInterrupt:
        incumbent.reason = INTERRUPTED
    except OverflowError:
        incumbent.reason = "numbers are too large for a linear program"
    return incumbent.finished()


def _search(incumbent: MilpIncumbent) -> Bounds:
    if incumbent.limits.remaining() <= 0:
        raise OutOfTime
    first = seek(incumbent.problem, incumbent.limits)
    if first is not None:
        incumbent.offer_rounded(first)
    else:
        BallSearch(incumbent, None, certain=True, most=FIRST_NODES).search()
    while True:
        ball = BallSearch(incumbent, incumbent.upper)
        match ball.search():
            case Ending.SMALLER:
                continue
            case Ending.STOPPED:
                return incumbent.finished()
            case Ending.DONE:
                if incumbent.upper is None and ball.undecided == math.inf:
                    return incumbent.finished(is_infeasible=True)
                if incumbent.is_closed():
                    _settle(incumbent)
                else:
                    _come_nearer(incumbent)
                return incumbent.finished()


def _come_nearer(incumbent: MilpIncumbent) -> None:
    """Where rounding leaves a region undecided, look for the nearest point that it cannot disturb."""
    while BallSearch(incumbent, incumbent.upper, certain=True).search() is Ending.SMALLER:
        pass


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

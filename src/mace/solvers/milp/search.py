"""The search of one question: a first point, then balls around the factual, each made anew when the point in hand has come much nearer."""

from __future__ import annotations

import math

from mace.clock import OutOfTime
from mace.forms import FunctionForm
from mace.problem import INTERRUPTED, LATE, Bounds, Limits, Problem
from mace.solvers.bisection import BAND
from mace.solvers.milp.ball import Ball, Outcome
from mace.solvers.milp.incumbent import SHARE, Hand
from mace.solvers.milp.polish import polish
from mace.solvers.milp.seek import seek

FIRST_NODES = 200
"""Nodes spent on finding a first point that rounding cannot disturb, before anything is proved."""


def search(problem: Problem, limits: Limits) -> Bounds:
    """Search until lower and upper are within ε, or time or memory runs out."""
    hand = Hand(problem, limits)
    try:
        return _search(hand)
    except OutOfTime:
        hand.reason = LATE
    except KeyboardInterrupt:
        hand.reason = INTERRUPTED
    except OverflowError:
        hand.reason = "numbers are too large for a linear program"
    return hand.bounds()


def _search(hand: Hand) -> Bounds:
    if hand.limits.remaining() <= 0:
        raise OutOfTime
    first = seek(hand.problem, hand.limits)
    if first is not None:
        hand.accept(first)
    else:
        Ball(hand, None, certain=True, most=FIRST_NODES).search()
    while True:
        ball = Ball(hand, hand.upper)
        match ball.search():
            case Outcome.SMALLER:
                continue
            case Outcome.STOPPED:
                return hand.bounds()
            case Outcome.DONE:
                if hand.upper is None and ball.undecided == math.inf:
                    return hand.bounds(is_infeasible=True)
                if hand.is_closed():
                    _settle(hand)
                else:
                    _come_nearer(hand)
                hand.reason = "" if hand.is_closed() else hand.reason or BAND
                return hand.bounds()


def _come_nearer(hand: Hand) -> None:
    """Where rounding leaves a region undecided, look for the nearest point that it cannot disturb."""
    while Ball(hand, hand.upper, certain=True).search() is Outcome.SMALLER:
        pass


def _settle(hand: Hand) -> None:
    """Move a point that another order of summation might disturb inside, where that costs less than ε."""
    problem = hand.problem
    if hand.point is None or hand.upper is None or isinstance(problem.form, FunctionForm):
        return
    if problem.form.cell(hand.point) is not None:
        return
    if problem.form.is_robust(hand.point, problem.goal, problem.box(hand.upper)):
        return
    moved = polish(problem, hand.point, hand.lower + SHARE * problem.accuracy, hand.limits)
    if moved is not None and hand.is_valid(moved) and problem.distance(moved) <= hand.lower + problem.accuracy:
        hand.point, hand.upper = moved, problem.distance(moved)

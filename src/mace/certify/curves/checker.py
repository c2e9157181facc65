"""Checking a proof of the lane of curves: polylines above or below the sigmoids, and a proof of another lane about the model with them.

The evidence holds a polyline above (below) each sigmoid. The checker shows that it is one, over all scores that the model can have nearer
than ``lower``. Put in place of each sigmoid the polyline that makes the sum larger (smaller, where a small sum is sought). The model
becomes piecewise linear, and every point that the real model puts in the goal fulfils its margins, widened by the rounding of the real
model. So it is enough that nothing nearer than ``lower`` fulfils these margins. The proof of that is another lane's, and that lane's
checker checks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.curves.polylines import as_network
from mace.certify.curves.sigmoid import ExactLine, is_above, is_below
from mace.certify.network import checker as network
from mace.certify.proofs import CHECKERS, check_lane
from mace.certify.smt.checker import as_point
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints.differ import CountDifferent
from mace.forms import Alternatives, Box, Composite, Curved, Margin, Part, Polyline, Stated, Voting, Weighted
from mace.problem import Problem
from mace.space import Point

MOST_KNOTS = 20_000
MOST_CUTS_OF_CURVES = 4096
"""How many boxes of a network the checker cuts itself: many hinges of one score are bounded less well than other units."""

OF_NETWORKS = ("network", "boxes")
"""The kinds of proof that are about one network; others are about the models with polylines as they are."""

OF_OTHER_MODELS = ("trees", "curves")

MOST_POINTS_EXCLUDED = 10_000


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` (at any distance, where ``None``) reaches the goal."""
    form = problem.form
    if not isinstance(form, Composite) or not form.is_curved:
        raise Refuted("evidence.lane: the model is no mean of sigmoids")
    if form.outputs != 1:
        raise Unchecked("a proof with polylines is about a single sum, and this model has several")
    proof = evidence.get("proof")
    lane = proof.get("lane") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or lane not in CHECKERS or lane in OF_OTHER_MODELS:
        raise Unchecked(f"the lane {lane!r:.60} proves nothing about polylines")
    box = problem.box(lower)
    stated, sides = _stated(problem, form, box)
    whole = _with_polylines(form, sides, _polylines(form, sides, box, evidence.get("curves")))
    asked = replace(
        problem,
        form=as_network(whole, sides, box) if lane in OF_NETWORKS else whole,
        ask=_asked_alone(problem),
        goal=Stated(stated),
        conditions=(*problem.conditions, *excluded_rows(problem, evidence.get("excluded", []))),
    )
    if lane == "network":
        network.check(asked, lower, proof, progress, most_cuts=MOST_CUTS_OF_CURVES)
    else:
        check_lane(asked, lower, proof, progress)


def _asked_alone(problem: Problem) -> Callable[[Sequence[Point]], list[Fraction]]:
    """Return a function that asks the real model about each row alone whether it is in the goal; a row that rounding decides counts as
    one that is."""

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [Fraction(int(may_count(problem, point))) for point in points]

    return ask


def may_count(problem: Problem, point: Point) -> bool:
    """Return whether the real model puts a row in the goal, or rounding decides whether it does."""
    return problem.accepts(point) or not problem.form.is_settled(point, problem.goal)


def excluded_rows(problem: Problem, rows: object) -> list[CountDifferent]:
    """Return that a point is none of some rows, which the real model, asked again, refuses."""
    if not isinstance(rows, list) or len(rows) > MOST_POINTS_EXCLUDED:
        raise Refuted(f"evidence.excluded: a list of at most {MOST_POINTS_EXCLUDED} rows")
    found = []
    for number, row in enumerate(rows):
        where = f"evidence.excluded[{number}]"
        point = as_point(problem, row, where)
        if problem.is_plausible(point) and may_count(problem, point):
            raise Refuted(f"{where}: the model may put this row in the target")
        found.append(CountDifferent(problem.space, point, 1, Fraction(0)))
    return found


# ---- the model with polylines


def _stated(problem: Problem, form: Composite, box: Box) -> tuple[Alternatives, tuple[int, ...]]:
    """Return margins over the outputs of the model with polylines, and whether each of these is made larger (1) or smaller (-1)."""
    alternatives = form.alternatives(problem.goal)
    margins = [margin for each in alternatives for margin in each]
    sides = tuple(
        side
        for side, is_used in (
            (1, any(m.plus is not None for m in margins)),
            (-1, any(m.minus is not None for m in margins)),
        )
        if is_used
    )
    wider = form.rounding(box) + problem.goal.slack

    def restated(m: Margin) -> Margin:
        plus = None if m.plus is None else sides.index(1)
        minus = None if m.minus is None else sides.index(-1)
        return Margin(plus, minus, m.shift + m.slack + wider)

    return tuple(tuple(map(restated, each)) for each in alternatives), sides


def _with_polylines(form: Composite, sides: tuple[int, ...], polylines: dict[tuple[int, int], Polyline]) -> Composite:
    """Return the model with polylines in place of sigmoids. It has an output for each side; parts without a sigmoid are the same in all
    outputs."""
    parts: list[Part] = []
    for number, part in enumerate(form.parts):
        match part:
            case Weighted():
                parts.append(Weighted(part.form, np.repeat(part.factors, len(sides), axis=0)))
            case Voting():
                parts.append(Voting(part.form, np.repeat(part.added, len(sides), axis=1)))
            case Curved(curve=None):
                for k, side in enumerate(sides):
                    factors = np.zeros(len(sides))
                    factors[k] = part.factors[0]
                    parts.append(Curved(part.form, polylines[number, side], factors))
            case Curved():
                parts.append(Curved(part.form, part.curve, np.repeat(part.factors, len(sides))))
    return Composite(form.space, tuple(parts), np.repeat(form.base, len(sides)), fixed_order=form.fixed_order)


def _polylines(form: Composite, sides: tuple[int, ...], box: Box, curves: object) -> dict[tuple[int, int], Polyline]:
    """Return the polyline of each sigmoid, by part and side, each shown to lie on the side of its sigmoid that it must lie on."""
    sigmoids = [k for k, part in enumerate(form.parts) if isinstance(part, Curved) and part.curve is None]
    if not isinstance(curves, list) or len(curves) != len(sigmoids):
        raise Refuted(f"evidence.curves: the model has {len(sigmoids)} sigmoids, and each needs polylines")
    found: dict[tuple[int, int], Polyline] = {}
    for position, number in enumerate(sigmoids):
        part = form.parts[number]
        assert isinstance(part, Curved)
        low, high = (float(end[0]) for end in part.form.score_bounds(box))
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise Unchecked("the scores of a model are too large for floats")
        for side in sides:
            name, is_bound = ("above", is_above) if side * part.factors[0] > 0 else ("below", is_below)
            where = f"evidence.curves[{position}].{name}"
            made = _polyline(curves[position].get(name) if isinstance(curves[position], dict) else None, where)
            if not is_bound(ExactLine(made.knots, tuple(map(Fraction, made.heights))), low, high):
                raise Refuted(f"{where}: it is not {name} the sigmoid everywhere from {low!r} to {high!r}")
            found[number, side] = made
    return found


def _polyline(entry: object, where: str) -> Polyline:
    if not isinstance(entry, dict):
        raise Refuted(f"{where}: a polyline is a dict with 'knots' and 'heights'")
    knots, heights = (np.asarray(entry.get(name)) for name in ("knots", "heights"))
    if any(each.ndim != 1 or each.dtype.kind not in "fiu" for each in (knots, heights)):
        raise Refuted(f"{where}: 'knots' and 'heights' are lists of numbers")
    if not 0 < len(knots) == len(heights) <= MOST_KNOTS:
        raise Refuted(f"{where}: each knot has one height, and there are 1 to {MOST_KNOTS}")
    knots, heights = knots.astype(np.float64), heights.astype(np.float64)
    if not (np.isfinite(knots).all() and np.isfinite(heights).all() and (np.diff(knots) > 0).all()):
        raise Refuted(f"{where}: knots ascend, and all numbers are finite")
    return Polyline(tuple(knots.tolist()), tuple(heights.tolist()))

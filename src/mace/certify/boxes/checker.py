"""Checking a proof by boxes: conditions across features, which the proofs of a lane leave out.

The evidence is a list of boxes, each with a proof of the lane that nothing in it nearer than ``lower`` is in the goal. What is left to
show is that the boxes hold every row nearer than ``lower`` that fulfils the conditions. To that end the domain is cut along the boxes until
each piece lies in one of them, is too far from the factual, or fails a condition in all its rows.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mace.certify.boxes.cover import Box, check_cover, span_of_levels
from mace.certify.boxes.ranges import Span
from mace.certify.proofs import check_box
from mace.certify.verdict import Progress, Refuted
from mace.constraints.condition import GuardCondition
from mace.constraints.near_data import Neighbour, Neighbours
from mace.constraints.typical import USUAL, Usual
from mace.distances import PartsMetric
from mace.language import syntax
from mace.problem import Problem
from mace.space import Feature, Integer, Ordinal


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` is in the goal."""
    if not isinstance(problem.metric, PartsMetric):
        raise Refuted("evidence: a proof by boxes is about norms")
    boxes = [read_box(problem, entry["ranges"]) for entry in evidence["boxes"]]
    rows = [read_neighbours(problem, entry.get("neighbours", [])) for entry in evidence["boxes"]]
    check_cover(problem, lower, boxes, rows)
    for number, (box, entry) in enumerate(zip(boxes, evidence["boxes"], strict=True)):
        about = problem if entry.get("forest") is None else _about_forest(problem, entry["forest"])
        check_box(number, near(inside(about, box), rows[number]), lower, entry["proof"])
        progress((number + 1) / len(boxes))


def _about_forest(problem: Problem, number: object) -> Problem:
    """Return the question for the nearest row that an isolation forest calls usual. Every counterfactual is such a row, so none is
    nearer."""
    forests, rest = problem.apart(Usual)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(forests):
        raise Refuted(f"evidence.boxes: there is no isolation forest {number!r:.40}")
    reading = forests[number].reading
    return replace(rest, form=reading.form, ask=reading.ask, goal=USUAL)


# ---- boxes


def read_box(problem: Problem, ranges: dict[str, Any]) -> Box:
    """Return the box of an entry of the evidence, which lists the ranges of its features."""
    unknown = [name for name in ranges if name not in problem.space]
    if unknown:
        raise Refuted(f"evidence.boxes: there is no feature {unknown[0]!r:.60}")
    return tuple(
        _read_span(feature, ranges[name]) if name in ranges else None for name, feature in problem.space.items()
    )


def read_neighbours(problem: Problem, pairs: list[list[int]]) -> frozenset[tuple[int, int]]:
    """Return the rows of data that all points of an entry of the evidence are near: the number of each ``near_data``, and the row's."""
    known = [len(condition.rows) for condition in problem.conditions if isinstance(condition, Neighbours)]
    found = frozenset((int(number), int(row)) for number, row in pairs)
    if any(not (0 <= number < len(known) and 0 <= row < known[number]) for number, row in found):
        raise Refuted("evidence.boxes: there is no such row of near_data")
    return found


def near(problem: Problem, rows: frozenset[tuple[int, int]]) -> Problem:
    """Return a problem about the points that are near some rows of data."""
    data = [condition for condition in problem.conditions if isinstance(condition, Neighbours)]
    made = [Neighbour(data[number], row) for number, row in sorted(rows)]
    return replace(problem, conditions=(*problem.conditions, *made))


def inside(problem: Problem, box: Box) -> Problem:
    """Return a problem about the rows of a box."""
    limits = [_guard(name, span) for name, span in zip(problem.space, box, strict=True) if span is not None]
    return replace(problem, conditions=(*problem.conditions, *map(GuardCondition, limits)))


def _read_span(feature: Feature, entry: dict[str, Any]) -> Span:
    missing = bool(entry["missing"])
    if "levels" in entry:
        return span_of_levels(entry["levels"], missing)
    low, high = float(entry["low"]), float(entry["high"])
    if not (math.isfinite(low) and math.isfinite(high)):
        raise Refuted("evidence.boxes: the end of a range is no number")
    if isinstance(feature, Ordinal):
        return span_of_levels((k for k in range(len(feature.levels)) if low <= k <= high), missing)
    if isinstance(feature, Integer):
        return Span(math.ceil(low), math.floor(high), None, True, missing)
    return Span(low, high, None, False, missing)


def _guard(name: str, span: Span) -> syntax.Guard:
    """Return the guard that a feature lies in a span."""
    variable = syntax.Variable(name)
    if not span.has_values:
        within: syntax.Guard = syntax.Truth(False)
    elif span.levels is not None:
        within = syntax.disjunction(syntax.Compare("==", variable, syntax.constant(k)) for k in sorted(span.levels))
    else:
        within = syntax.between(variable, span.low, span.high)
    return (
        syntax.disjunction([syntax.Missing(name), within])
        if span.missing
        else syntax.conjunction([syntax.Not(syntax.Missing(name)), within])
    )

"""Checking a proof of the lane of ratios: boxes, in each of which linear functions of scores lie above the probabilities.

The evidence is a list of boxes. Each has, for every model, a linear function of its scores for each margin of the goal, and a proof of
another lane. The checker shows that the boxes leave out no row nearer than ``lower``, and that in each box the linear functions lie above
what the models add to the margins. Every row of the box that the real model puts in the goal then fulfils the margins of these functions,
widened by the rounding of the real model; the proof about them goes to the checker of its lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.certify.boxes.checker import inside, read_box
from mace.certify.boxes.cover import Box as Spans
from mace.certify.boxes.cover import check_cover
from mace.certify.curves.checker import excluded_rows, may_count
from mace.certify.curves.polylines import as_network
from mace.certify.network import checker as network
from mace.certify.proofs import CHECKERS, check_lane
from mace.certify.ratios.ends import Bracket
from mace.certify.ratios.linear import is_above
from mace.certify.verdict import Progress, Refuted, Unchecked, silent
from mace.distances import PartsMetric
from mace.exact import Floats, float_up, gamma
from mace.forms import (
    Alternatives,
    Box,
    Composite,
    Curved,
    Margin,
    Network,
    Normalised,
    Part,
    Stated,
    TreeEnsemble,
    Voting,
    Weighted,
)
from mace.forms.reach import scores_in
from mace.models.ensembles.votes import join_forms
from mace.problem import Problem
from mace.space import Point

MOST_ENTRIES = 100_000

NEVER_INSIDE = ("curves", "ratios")

LEAST_OUTPUTS = 3
"""An ensemble of one or two sums would be read as the scores of classes."""

Pair = tuple[int | None, int | None]


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless it is shown that no plausible point nearer than ``lower`` (at any distance, where ``None``) reaches the goal."""
    form = problem.form
    if not isinstance(form, Composite) or not form.is_curved:
        raise Refuted("evidence.lane: the model is no sum of probabilities of several classes")
    if any(feature.missing for feature in problem.space.values()) or None in problem.factual:
        raise Unchecked("a proof by linear functions is about rows in which nothing is missing")
    if not isinstance(problem.metric, PartsMetric):
        raise Unchecked("a proof by boxes is about norms")
    entries = evidence.get("boxes")
    if (
        not isinstance(entries, list)
        or len(entries) > MOST_ENTRIES
        or not all(isinstance(each, dict) for each in entries)
    ):
        raise Refuted(f"evidence.boxes: a list of at most {MOST_ENTRIES} boxes")
    boxes = [read_box(problem, entry["ranges"]) for entry in entries]
    check_cover(problem, lower, boxes)
    about = replace(problem, conditions=(*problem.conditions, *excluded_rows(problem, evidence.get("excluded", []))))
    for number, (spans, entry) in enumerate(zip(boxes, entries, strict=True)):
        _check_box(number, about, spans, lower, entry)
        progress((number + 1) / len(boxes))


def _check_box(number: int, problem: Problem, spans: Spans, lower: Fraction | None, entry: dict[str, Any]) -> None:
    """Check the linear functions of a box, and the proof about them."""
    form, where = problem.form, f"evidence.boxes[{number}]"
    assert isinstance(form, Composite)
    proof = entry.get("proof")
    lane = proof.get("lane") if isinstance(proof, dict) else None
    if not isinstance(proof, dict) or lane not in CHECKERS or lane in NEVER_INSIDE:
        raise Unchecked(f"{where}: the lane {lane!r:.60} proves nothing about linear functions")
    box = _numbers(problem, spans)
    if box is None:
        return
    alternatives = form.alternatives(problem.goal)
    pairs = tuple(dict.fromkeys((m.plus, m.minus) for margins in alternatives for m in margins))
    whole = _with_linear(form, pairs, box, entry.get("linear"), where)
    asked = replace(
        inside(problem, spans),
        form=_as_one(whole, box),
        ask=_asked_alone(problem),
        goal=Stated(_stated(alternatives, pairs, form.rounding(box) + problem.goal.slack)),
    )
    if lane == "network":
        network.check(asked, lower, proof, silent)
    else:
        check_lane(asked, lower, proof, silent)


def _asked_alone(problem: Problem) -> Callable[[Sequence[Point]], list[Fraction]]:
    """Return a function that asks the real model about each row alone; a row that rounding decides counts as one in the goal."""

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [Fraction(int(may_count(problem, point))) for point in points]

    return ask


def _numbers(problem: Problem, spans: Spans) -> Box | None:
    """Return between which numbers each feature lies in a box; ``None`` where it holds nothing."""
    found = []
    for span, whole in zip(spans, problem.box(), strict=True):
        if span is None:
            found.append(whole)
            continue
        if not span.has_values:
            return None
        ends = (min(span.levels), max(span.levels)) if span.levels is not None else (span.low, span.high)
        found.append((Fraction(ends[0]), Fraction(ends[1])))
    return tuple(found)


def _stated(alternatives: Alternatives, pairs: Sequence[Pair], wider: Fraction) -> Alternatives:
    """Return the margins over the outputs, one for each pair, widened."""
    return tuple(
        tuple(Margin(pairs.index((m.plus, m.minus)), None, m.shift + m.slack + wider) for m in margins)
        for margins in alternatives
    )


# ---- linear functions


def _with_linear(form: Composite, pairs: Sequence[Pair], box: Box, linear: object, where: str) -> Composite:
    """Return a composite with an output for each pair that is at least the difference of these outputs of a form, in a box."""
    if not isinstance(linear, list) or len(linear) != len(form.parts):
        raise Refuted(f"{where}.linear: the model has {len(form.parts)} parts, and each needs an entry")
    parts: list[Part] = []
    starts = [_difference(form.base, pair) for pair in pairs]
    for number, (part, given) in enumerate(zip(form.parts, linear, strict=True)):
        factors = np.asarray(part.added.T if isinstance(part, Voting) else part.factors)
        rows = [[_difference(column, pair) for column in factors.reshape(len(factors), -1).T] for pair in pairs]
        if isinstance(part, Voting):
            added = np.array([[float_up(value) for value in row] for row in rows]).T
            parts.append(Voting(part.form, added))
            continue
        slopes, shifts = _functions(given, (len(pairs), len(rows[0])), f"{where}.linear[{number}]")
        scores = [Bracket(float(a), float(b)) for a, b in zip(*scores_in(part.form, box), strict=True)]
        if not np.isfinite(scores).all():
            raise Unchecked("the scores of a model are too large for floats")
        for row, slope, shift in zip(rows, slopes.tolist(), shifts.tolist(), strict=True):
            if not _lies_above(part, scores, row, slope, shift):
                raise Refuted(f"{where}.linear[{number}]: it is not above what the model adds everywhere in the box")
        parts.append(Weighted(part.form, slopes))
        starts = [start + Fraction(shift) for start, shift in zip(starts, shifts.tolist(), strict=True)]
    return Composite(form.space, tuple(parts), np.array(list(map(float_up, starts))))


def _lies_above(
    part: Weighted | Curved | Normalised,
    scores: Sequence[Bracket],
    row: Sequence[Fraction],
    slope: Sequence[float],
    shift: float,
) -> bool:
    """Return whether a linear function is shown to be at least what a part adds to a margin."""
    if not isinstance(part, Weighted):
        return is_above(part, scores, row, slope, shift)
    apart = [weight - Fraction(a) for weight, a in zip(row, slope, strict=True)]
    most = sum((max(w * Fraction(end) for end in z) for w, z in zip(apart, scores, strict=True)), Fraction(0))
    return most <= Fraction(shift)


def _difference(numbers: Floats, pair: Pair) -> Fraction:
    plus, minus = (Fraction(0) if each is None else Fraction(float(numbers[each])) for each in pair)
    return plus - minus


def _functions(entry: object, shape: tuple[int, int], where: str) -> tuple[Floats, Floats]:
    if not isinstance(entry, dict):
        raise Refuted(f"{where}: linear functions are a dict with 'slopes' and 'shifts'")
    slopes, shifts = (np.asarray(entry.get(name)) for name in ("slopes", "shifts"))
    if any(each.dtype.kind not in "fiu" for each in (slopes, shifts)):
        raise Refuted(f"{where}: 'slopes' and 'shifts' are numbers")
    if slopes.shape != shape or shifts.shape != shape[:1]:
        raise Refuted(f"{where}: there are {shape[0]} margins and {shape[1]} scores")
    slopes, shifts = slopes.astype(np.float64), shifts.astype(np.float64)
    if not (np.isfinite(slopes).all() and np.isfinite(shifts).all()):
        raise Refuted(f"{where}: all numbers are finite")
    return slopes, shifts


# ---- what the proof of the other lane is about


def _as_one(whole: Composite, box: Box) -> Composite | Network | TreeEnsemble:
    """Return weighted scores of trees as one ensemble, those of networks as one network; of others as they are."""
    forms = [part.form for part in whole.parts]
    if any(isinstance(part, Voting) for part in whole.parts):
        return whole
    if all(isinstance(form, TreeEnsemble) for form in forms):
        return _as_trees(whole)
    if all(isinstance(form, Network) and form.unit == forms[0].unit for form in forms):
        return as_network(whole, (1,) * whole.outputs, box)
    return whole


def _as_trees(whole: Composite) -> TreeEnsemble:
    """Return weighted sums of trees as one ensemble, with a bound on what the products and sums here may be off."""
    forms, values, sizes = list[TreeEnsemble](), list[Floats](), np.zeros(whole.outputs)
    starts = [Fraction(float(start)) for start in whole.base]
    for part in whole.parts:
        assert isinstance(part, Weighted)
        assert isinstance(part.form, TreeEnsemble)
        forms.append(part.form)
        values.append(part.form.value @ part.factors.T)
        sizes += np.abs(part.factors) @ part.form.magnitude
        for k, row in enumerate(part.factors):
            starts[k] += sum(
                (Fraction(float(f)) * Fraction(float(b)) for f, b in zip(row, part.form.base, strict=True)), Fraction(0)
            )
    widest = max(form.outputs for form in forms)
    wrong = 4 * gamma(widest + 4) * Fraction(float(sizes.max())) * (1 + Fraction(1, 2**20))
    room = max(LEAST_OUTPUTS - whole.outputs, 0)
    base = np.array([*map(float_up, starts), *[0.0] * room])
    made = join_forms(forms, [np.pad(value, ((0, 0), (0, room))) for value in values], base)
    return replace(made, squash=wrong, link="none")

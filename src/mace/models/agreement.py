"""Whether a model answers as its form says: a quick look in floats, for noticing that a model was changed after it was read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.forms import (
    Composite,
    Curved,
    Form,
    Network,
    Normalised,
    ObliqueTrees,
    Scored,
    TreeEnsemble,
    Voting,
    Weighted,
    divisor,
)
from mace.forms.polyline import sigmoid
from mace.forms.scoring import column_values
from mace.forms.sets import base_of, members_of, unpacked
from mace.space import Point

WITHIN_ROUNDING = 1e-4
"""Numbers that differ by less than this share may differ by rounding alone, float32 included."""

FEW_TREES = 24
"""So few trees are walked faster one by one than together."""


def agrees(form: Form, points: Sequence[Point], outcomes: Sequence[Fraction]) -> bool:
    """Return whether a form gives these outcomes, computed in floats.

    True is a strong hint and no proof. False may be a matter of rounding, at a boundary between two outcomes.
    """
    if members := members_of(form):
        said = zip(*(unpacked(outcome, base_of(form), len(members)) for outcome in outcomes), strict=True)
        return all(agrees(member, points, own) for member, own in zip(members, said, strict=False))
    if isinstance(form, Network | TreeEnsemble):
        return all(map(_fits, [form] * len(points), float_scores(form, points), outcomes))
    if isinstance(form, Composite):
        found = zip(points, _sums(form, points), outcomes, strict=True)
        return all(_fits_about(form, sums, code) or _fits_exactly(form, point, code) for point, sums, code in found)
    if isinstance(form, ObliqueTrees):
        return all(map(_fits_exactly, [form] * len(points), points, outcomes))
    return True


def agrees_on_probabilities(form: Form, points: Sequence[Point], code: int, outcomes: Sequence[Fraction]) -> bool:
    """Return whether a form gives a class these probabilities, as :func:`agrees` does for outcomes."""
    if not isinstance(form, Network | TreeEnsemble):
        return True
    found = [_probability(form, score, code) for score in float_scores(form, points)]
    return all(
        p is None or abs(p - float(outcome)) <= WITHIN_ROUNDING for p, outcome in zip(found, outcomes, strict=True)
    )


def float_scores(form: Network | TreeEnsemble, points: Sequence[Point]) -> NDArray[np.float64]:
    """Return the scores of points in floats, points x outputs: nothing may rest on their last bits."""
    if isinstance(form, Network):
        return form.float_scores(column_values(form.columns, points))
    if len(form.roots) < FEW_TREES:
        leaves = np.array([[form.leaf(root, point) for root in form.roots] for point in points])
    else:
        leaves = form.leaves(points)
    scores: NDArray[np.float64] = form.base + form.value[leaves].sum(axis=1)
    return scores


def _fits(form: Network | TreeEnsemble, score: NDArray[np.float64], outcome: Fraction) -> bool:
    if form.is_regressor:
        number = score[0] / divisor(form)
        return bool(abs(number - outcome) <= WITHIN_ROUNDING * (1 + abs(number)))
    return predicted(form, score) == outcome


def predicted(form: Scored, score: NDArray[np.float64]) -> int:
    """Return the class of a row's scores."""
    return int(score.argmax() if len(score) > 1 else score[0] > 0 or (form.ties_last and score[0] == 0))


def _sums(form: Composite, points: Sequence[Point]) -> NDArray[np.float64]:
    """Return the outputs of a vote or mean of models, which in exact arithmetic take a hundred times as long."""
    sums = np.tile(np.asarray(form.base, dtype=np.float64), (len(points), 1))
    for part in form.parts:
        scores = float_scores(part.form, points)
        match part:
            case Weighted(_, factors):
                sums += scores @ factors.T
            case Voting(inner, added):
                sums += added[[predicted(inner, score) for score in scores]]
            case Curved(_, curve, factors):
                heights = [sigmoid(z) if curve is None else float(curve.value(Fraction(z))) for (z,) in scores.tolist()]
                sums += np.outer(heights, factors)
            case Normalised():
                sums += part.chances(scores) @ part.factors.T
    return sums


def _fits_about(form: Composite, sums: NDArray[np.float64], outcome: Fraction) -> bool:
    if form.is_regressor:
        return bool(abs(sums[0] - outcome) <= WITHIN_ROUNDING * (1 + abs(sums[0])))
    return int(sums.argmax() if len(sums) > 1 else sums[0] > 0) == outcome


def _fits_exactly(form: Composite | ObliqueTrees, point: Point, outcome: Fraction) -> bool:
    if not form.is_regressor:
        return form.predicted(point) == outcome
    number = form.exact_scores(point)[0] / divisor(form.trees if isinstance(form, ObliqueTrees) else form)
    return abs(number - outcome) <= WITHIN_ROUNDING * (1 + abs(number))


def _probability(form: Network | TreeEnsemble, score: NDArray[np.float64], code: int) -> float | None:
    """Return the probability of a class; ``None`` where it does not follow from one score."""
    if form.link == "mean" and isinstance(form, TreeEnsemble):
        return float(score[code] / len(form.roots)) if len(score) > 1 else None
    if len(score) > 1 or form.link not in ("logistic", "clip"):
        return None
    second = (min(max(score[0], -1.0), 1.0) + 1) / 2 if form.link == "clip" else _sigmoid(float(score[0]))
    return float(second if code == 1 else 1 - second)


def _sigmoid(score: float) -> float:
    return 1 / (1 + math.exp(-score)) if score > -700 else 0.0

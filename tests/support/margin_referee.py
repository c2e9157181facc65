"""How much noise an answer stands, by going through every row of a finite space."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from random_problems import Case
from random_reasons import Reached, plausible

import mace
from mace.constraints.robust import ends_apart
from mace.space import Categorical, Point
from mace.space.decimals import decimal_of
from mace.space.features import is_missing


def margin_fault(case: Case, reached: Reached) -> str | None:
    """Return what is wrong with the margin of the nearest answer; ``None`` where nothing is, ``"skipped"`` where there is no question.

    ``reached`` says which points are in the target.
    """
    explainer = mace.Explainer(case.model, case.space)
    explanation = explainer.explain(case.row, **case.question)
    if not explanation or any(map(is_missing, explanation[0].values.values())):
        return "skipped"
    margin, least = explanation.margin, least_share(case, case.space.point(explanation[0].values), reached)
    if margin is None:
        return "there is none"
    if least is None:
        return None if (margin.undone_at, margin.share) == (None, 1) else f"{margin}, and brute force finds no row"
    if margin.undone_at is None or not margin.share < least <= Fraction(margin.undone_at):
        return f"{margin}, brute force {float(least)}"
    if Fraction(margin.undone_at) - Fraction(margin.share) > Fraction(margin.undone_at) / 10**5:
        return f"{margin} is too wide"
    is_undone = not all(reached([case.space.point(margin.undone_by)]))
    return None if is_undone else "what undoes it does not"


def least_share(case: Case, answer: Point, reached: Reached) -> Fraction | None:
    """Return the least share of the ranges that brings an answer to a row out of the target; ``None`` where none does."""
    free = Case(case.family, case.model, case.space, case.row, case.question | {"constraints": []})
    shares = {point: share for point in plausible(free) if (share := _share(case.space, answer, point)) is not None}
    outside = [share for share, is_in in zip(shares.values(), reached(list(shares)), strict=True) if not is_in]
    return min(outside, default=None)


def _share(space: mace.FeatureSpace, answer: Point, point: Point) -> Fraction | None:
    """Return the share of the ranges by which noise moves an answer to a point; ``None`` where it cannot."""
    share = Fraction(0)
    for feature, value, new in zip(space.values(), answer, point, strict=True):
        if value == new:
            continue
        if value is None or new is None or isinstance(feature, Categorical):
            return None
        apart: Any = abs(decimal_of(feature, new) - decimal_of(feature, value))
        share = max(share, apart / ends_apart(feature))
    return share

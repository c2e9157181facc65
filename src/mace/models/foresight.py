"""What a model should answer by its form: for asking it later, about many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mace.exact import float_up
from mace.forms import Composite, Form, FunctionForm, Network, ObliqueTrees, Outcomes, TreeEnsemble
from mace.forms.form import box_at
from mace.forms.scoring import column_values
from mace.forms.sets import base_of, members_of, packed
from mace.models.agreement import float_scores, predicted
from mace.space import Point

SAFETY = 3
"""How many times the rounding of the library two scores must be apart: its own, that of the sums here, and room for their difference."""


def is_row_by_row(form: Form) -> bool:
    """Return whether the model says the same of a row among others as of the row alone, to the last bit."""
    if isinstance(form, TreeEnsemble):
        return form.fixed_order and not form.is_blockwise
    return isinstance(form, FunctionForm)


def foreseen(form: Form, points: Sequence[Point]) -> list[Fraction | None]:
    """Return the code of the class that the model should give each point; ``None`` where it may say another one alone than among others.

    That may be within the rounding band, unless the model is asked row by row, and of what is no class: a prediction of a number, what a
    function returns. Of several models it is the code of all.
    """
    if members := members_of(form):
        each = zip(*(foreseen(member, points) for member in members), strict=True)
        base = base_of(form)
        return [None if None in said else packed([code for code in said if code is not None], base) for said in each]
    if isinstance(form, TreeEnsemble | Network) and not form.is_regressor:
        if isinstance(form, Network):
            columns = column_values(form.columns, points)
            scores = form.float_scores(columns)
            errors = form.errors_at(columns).max(axis=1)
            is_sure = _lead(scores) > SAFETY * ((1 if form.is_binary else 2) * errors + float_up(form.squash))
        else:
            scores = float_scores(form, points)
            has_band = form.rounding and not is_row_by_row(form)
            is_sure = _lead(scores) > (float_up(SAFETY * form.rounding) if has_band else -1.0)
        return [Fraction(predicted(form, score)) if sure else None for score, sure in zip(scores, is_sure, strict=True)]
    if isinstance(form, Composite | ObliqueTrees) and not form.is_regressor:
        return [_exactly(form, point) for point in points]
    return [None] * len(points)


def _lead(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by how much the greatest score of each row is ahead; a single score, of 0."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    ordered = np.sort(scores, axis=1)
    lead: NDArray[np.float64] = ordered[:, -1] - ordered[:, -2]
    return lead


def _exactly(form: Composite | ObliqueTrees, point: Point) -> Fraction | None:
    code = Fraction(form.predicted(point))
    return code if form.is_beyond_rounding(point, Outcomes(frozenset([code])), box_at(point)) else None

"""Reading ``CalibratedClassifierCV(ensemble=True)`` of single trees, of any number of classes.

A tree gives one row of shares a leaf, so that a calibration of it, divided by its sum, is a row a leaf too, whatever the method: the mean
of the calibrated trees is a forest with these leaves. They are what the library's own calibrators say of each leaf; only the sum by
which they are divided is added here, in an order that may be another, which ``squash`` covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mace.exact import UNIT, Floats
from mace.forms import TreeEnsemble
from mace.models.ensembles.votes import is_share, join_forms
from mace.space import Column, FeatureSpace

ROUNDINGS_OF_A_MEAN = 64
"""What sums and divisions of probabilities, which are at most 1, may be off, in roundings of 1, for each tree."""


def of_single_trees(
    calibrated: Sequence[Any], estimators: Sequence[Any], classes: int, space: FeatureSpace, columns: tuple[Column, ...]
) -> TreeEnsemble | None:
    """Return the forest of calibrated trees; ``None`` where some calibrated model is no single tree, or does not know every class."""
    from mace.models import form_of

    forms: list[TreeEnsemble] = []
    for estimator in estimators:
        form = form_of(estimator, space, columns)
        if not (is_share(form) and len(form.roots) == 1) or len(estimator.classes_) != classes:
            return None
        forms.append(form)
    leaves = [_calibrated(each, form.value) for each, form in zip(calibrated, forms, strict=True)]
    made = join_forms(forms, leaves, np.zeros(classes))
    return replace(made, squash=ROUNDINGS_OF_A_MEAN * len(forms) * UNIT, link="mean")


def _calibrated(calibrated: Any, shares: Floats) -> Floats:
    """Return the calibrated probabilities of rows of shares, as the library makes them."""
    classes = shares.shape[1]
    if calibrated.method == "temperature":
        made = np.asarray(calibrated.calibrators[0].predict(shares), dtype=np.float64)
    elif classes == 2:
        second = calibrated.calibrators[0].predict(shares[:, 1])
        made = np.column_stack([1.0 - second, second])
    else:
        made = np.column_stack([each.predict(shares[:, k]) for k, each in enumerate(calibrated.calibrators)])
        total = made.sum(axis=1, keepdims=True)
        made = np.divide(made, total, out=np.full_like(made, 1 / classes), where=total != 0)
    made[(made > 1.0) & (made <= 1.0 + 1e-5)] = 1.0
    return made

"""Reading probabilities that are divided by their sums: softmaxes of three or more classes, and ``CalibratedClassifierCV(ensemble=True)``.

The mean of several such models is a :class:`~mace.forms.Composite` whose parts are :class:`~mace.forms.Normalised`. No formula says it: the
lane of ratios answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats
from mace.forms import Composite, Form, Network, Normalised, Polyline, Sigmoid, TreeEnsemble
from mace.models.ensembles.calibrated_classes import (
    VANISHING_SCORE,
    greatest_score,
    is_softmax,
    of_classes,
    whole_box,
)
from mace.models.ensembles.threshold import CHANCE
from mace.space import FeatureSpace


def softmax_of(form: Network | TreeEnsemble, factors: Floats) -> Normalised:
    """Return the softmax of a form's scores, times factors (outputs x classes)."""
    return Normalised(form, True, (), factors)


def mean_of_calibrations(members: Sequence[tuple[Any, Any, str, Form]], space: FeatureSpace, classes: int) -> Composite:
    """Return the mean of calibrated models of three or more classes.

    Parameters
    ----------
    members : sequence of (calibrated, estimator, response, form)
        Each calibrated model, what it calibrates, by which method that is asked, and what that was read as, over the features.
    space : FeatureSpace
        The features.
    classes : int
        How many classes there are.
    """
    factors = np.eye(classes) / len(members)
    parts = tuple(_calibrated(*member, factors, space) for member in members)
    return Composite(space, parts, np.zeros(classes), link="chance")


def _calibrated(
    calibrated: Any, estimator: Any, kind: str, form: Form, factors: Floats, space: FeatureSpace
) -> Normalised:
    """Return what one calibrated model adds to the mean."""
    method, calibrators = calibrated.method, calibrated.calibrators
    through_softmax = kind == CHANCE and method != "temperature" and is_softmax(estimator, form)
    if through_softmax:
        assert isinstance(form, Network | TreeEnsemble)
        scores = form
    else:
        scores = of_classes(estimator, form, kind, method)
    if method == "temperature":
        slope = np.full(len(factors), float(calibrators[0].beta_))
        return softmax_of(greatest_score(scores, slope, np.zeros(len(factors)), space, is_softmax=True), factors)
    if method == "isotonic":
        return Normalised(scores, through_softmax, tuple(map(polyline, calibrators)), factors)
    curves = tuple(Sigmoid(-float(each.a_), -float(each.b_)) for each in calibrators)
    made = Normalised(scores, through_softmax, curves, factors)
    _check_told_apart(made, space)
    return made


def polyline(calibrator: Any) -> Polyline:
    """Return an isotonic calibration: the line through its points, constant beyond them."""
    knots, first = np.unique(np.asarray(calibrator.X_thresholds_, dtype=np.float64), return_index=True)
    heights = np.asarray(calibrator.y_thresholds_, dtype=np.float64)[first]
    if (np.diff(heights) < 0).any() or (heights < 0).any():
        raise UnsupportedModel("an isotonic calibration falls, or is below 0. Fit it again.")
    return Polyline(tuple(knots.tolist()), tuple(heights.tolist()))


def _check_told_apart(part: Normalised, space: FeatureSpace) -> None:
    """Refuse calibrations that may all be rounded to 0, or are not fitted."""
    slopes = np.array([[curve.slope, curve.shift] for curve in part.curves if isinstance(curve, Sigmoid)])
    if not np.isfinite(slopes).all():
        raise UnsupportedModel("the calibration is not fitted: a parameter of it is no finite number. Fit it again.")
    ends = np.array([slopes[:, 0] * numbers + slopes[:, 1] for numbers in part.numbers_in(whole_box(space))])
    if ends.min(axis=0).max() < VANISHING_SCORE:
        raise UnsupportedModel(
            f"cannot read CalibratedClassifierCV: all of its scores may be below {VANISHING_SCORE:g} on this space, where calibrated "
            "probabilities are not told from 0. Narrow the space, or leave the calibration out."
        )

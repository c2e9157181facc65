"""Reading scikit-learn's ``CalibratedClassifierCV``; here of binary models, of others in :mod:`mace.models.ensembles.calibrated_classes`.

The calibrated probability is expit(z) in float64, and the second class is predicted where it is above its complement.
With T the model's score,

- ``method="sigmoid"``: z = -(a T + b);
- ``method="temperature"``: the softmax of (-βT, βT), so z = 2βT.

Both are the model's last layer scaled and moved: two more roundings, and parts as large as |a| |T| + |b|. A model
without ``decision_function`` (an ``MLPClassifier``) is calibrated on its probability p, and a p + b changes its sign at
p = -b/a: the decision is a threshold on the score of the model, at logit(-b/a). There p is good to 4 units of roundoff,
a p + b to 3 u (|a| + |b|), and z must be 32 u from 0 to be told from it, so the decision is sure where p is farther
than u (7 + (3 |b| + 32) / |a|) from -b/a.

An isotonic calibration is monotone, so its decision too is a threshold, found by asking it; and where trees are calibrated, by a
sigmoid or isotonically, the threshold is one on their sum of scores, or of shares.

The mean of several calibrated models (``ensemble=True``) is a form of several models: each score goes through its sigmoid, or through
the polyline of its isotonic calibration, and their mean is compared with one half. Of single trees it is a forest
(:mod:`mace.models.ensembles.calibrated_trees`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import UNIT, gamma
from mace.forms import Composite, Curved, Form, Network, TreeEnsemble
from mace.forms.network import SQUASH_UNITS
from mace.forms.polyline import logit
from mace.models.ensembles.calibrated_classes import greatest_polyline, greatest_score, is_softmax, of_classes
from mace.models.ensembles.calibrated_trees import of_single_trees
from mace.models.ensembles.normalised import mean_of_calibrations, polyline
from mace.models.ensembles.threshold import CHANCE, SCORE, Threshold, response, thresholded
from mace.models.estimator import check_width
from mace.space import Column, FeatureSpace


def read_calibrated(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``CalibratedClassifierCV``."""
    from mace.models import form_of

    check_width(type(model).__name__, int(getattr(model, "n_features_in_", len(columns))), columns)
    calibrated = model.calibrated_classifiers_
    if len(calibrated) > 1:
        estimators = [_thawed(each.estimator) for each in calibrated]
        forest = of_single_trees(calibrated, estimators, len(model.classes_), space, columns)
        if forest is not None:
            return forest
    if len(model.classes_) != 2:
        return _of_classes(model, space, columns)
    if len(calibrated) > 1:
        parts = tuple(_part(each, len(calibrated), space, columns) for each in calibrated)
        return Composite(space, parts, np.array([-0.5]), link="chance")
    method, calibrator = calibrated[0].method, calibrated[0].calibrators[0]
    estimator = _thawed(calibrated[0].estimator)
    kind = response(estimator, (SCORE, CHANCE))
    form = form_of(estimator, space, columns)
    family = type(estimator).__name__
    is_network = isinstance(form, Network) and form.is_binary and not form.is_regressor
    if method == "isotonic":
        return thresholded(form, family, kind, _isotonic(calibrator, _unit(form)))
    if method == "sigmoid" and isinstance(form, TreeEnsemble):
        return thresholded(form, family, kind, _sigmoid(float(calibrator.a_), float(calibrator.b_), _unit(form)))
    if method not in ("sigmoid", "temperature") or not is_network or (method == "temperature" and kind != SCORE):
        raise UnsupportedModel(
            f"cannot read CalibratedClassifierCV(method={method!r}) of {family}. Supported: 'sigmoid' and 'isotonic' of binary linear "
            "models, networks and trees, and 'temperature' of those linear models with a decision_function. Fit it with method='sigmoid'."
        )
    assert isinstance(form, Network)
    if method == "temperature":
        return _scaled(form, 2 * float(calibrator.beta_), 0.0)
    slope, shift = float(calibrator.a_), float(calibrator.b_)
    return _scaled(form, -slope, -shift) if kind == SCORE else _threshold(form, slope, shift)


def _of_classes(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of calibrated models of three or more classes."""
    from mace.models import form_of, ground

    count, calibrated = len(model.classes_), model.calibrated_classifiers_
    if any(len(_thawed(each.estimator).classes_) != count for each in calibrated):
        raise UnsupportedModel("a calibrated model was fitted on rows without some class. Fit it on more rows.")
    if len(calibrated) > 1:
        estimators = [_thawed(each.estimator) for each in calibrated]
        forms = [ground(form_of(each, space, columns), space) for each in estimators]
        kinds = [response(each, (SCORE, CHANCE)) for each in estimators]
        return mean_of_calibrations(list(zip(calibrated, estimators, kinds, forms, strict=True)), space, count)
    method, estimator = calibrated[0].method, _thawed(calibrated[0].estimator)
    kind = response(estimator, (SCORE, CHANCE))
    read_as = ground(form_of(estimator, space, columns), space)
    if kind == CHANCE and method != "temperature" and is_softmax(estimator, read_as):
        return mean_of_calibrations([(calibrated[0], estimator, kind, read_as)], space, count)
    form = of_classes(estimator, read_as, kind, method)
    calibrators = calibrated[0].calibrators
    if method == "isotonic":
        return greatest_polyline(form, list(map(polyline, calibrators)), space)
    if method == "sigmoid":
        slopes, shifts = (np.array([-float(getattr(each, name)) for each in calibrators]) for name in ("a_", "b_"))
        return greatest_score(form, slopes, shifts, space, is_softmax=False)
    slope = float(calibrators[0].beta_)
    return greatest_score(form, np.full(count, slope), np.zeros(count), space, is_softmax=True)


def _part(calibrated: Any, count: int, space: FeatureSpace, columns: tuple[Column, ...]) -> Curved:
    """Return what one of several calibrated models adds to the mean."""
    from mace.models import form_of

    method, calibrator = calibrated.method, calibrated.calibrators[0]
    estimator = _thawed(calibrated.estimator)
    kind, form, family = (
        response(estimator, (SCORE, CHANCE)),
        form_of(estimator, space, columns),
        type(estimator).__name__,
    )
    if len(estimator.classes_) != 2:
        raise UnsupportedModel(
            "a calibrated model was fitted on rows of a single class. Fit it on more rows, or with another cv."
        )
    share = np.array([1 / count])
    score = _score(form, kind)
    if (
        score is None
        or method not in ("sigmoid", "isotonic", "temperature")
        or (method == "temperature" and kind != SCORE)
    ):
        raise UnsupportedModel(
            f"cannot read CalibratedClassifierCV(method={method!r}, ensemble=True) of {family}. Supported: 'sigmoid' and 'isotonic' of "
            "linear models with a decision_function, trees and forests, 'temperature' of those with a decision_function. "
            "Fit it with ensemble=False."
        )
    if method == "isotonic":
        return Curved(score, polyline(calibrator), share)
    if method == "temperature":
        return Curved(_times(score, 2 * float(calibrator.beta_), 0.0), None, share)
    return Curved(_times(score, -float(calibrator.a_), -float(calibrator.b_)), None, share)


def _score(form: Form, kind: str) -> TreeEnsemble | Network | None:
    """Return the form of the one number that is calibrated: a score, or a forest's share of the second class."""
    if isinstance(form, Network) and form.is_binary and not form.is_regressor and kind == SCORE:
        return form
    if isinstance(form, TreeEnsemble) and form.outputs == 1 and not form.is_regressor and kind == SCORE:
        return form
    if isinstance(form, TreeEnsemble) and form.outputs == 2 and form.link == "mean" and kind == CHANCE:
        trees = len(form.roots)
        wrong = 2 * gamma(2 * trees + 16, form.unit)
        return replace(form, value=form.value[:, 1:] / trees, base=np.zeros(1), squash=wrong, link="none")
    return None


def _times(form: TreeEnsemble | Network, factor: float, shift: float) -> TreeEnsemble | Network:
    """Return the form whose score is factor·score + shift."""
    if isinstance(form, Network):
        return _scaled(form, factor, shift)
    if not math.isfinite(factor) or not math.isfinite(shift):
        raise _not_fitted()
    wrong = Fraction(abs(factor)) * form.rounding + 8 * form.unit * Fraction(
        float(form.magnitude.max()) * abs(factor) + abs(shift)
    )
    return replace(form, value=form.value * factor, base=form.base * factor + shift, squash=wrong, link="none")


def _not_fitted() -> UnsupportedModel:
    return UnsupportedModel("the calibration ignores the model: every row has the same probability. Fit it again.")


def _unit(form: Form) -> float:
    """Return the unit roundoff of what a model hands to its calibration."""
    return float(form.unit if isinstance(form, TreeEnsemble | Network) else UNIT)


def _sigmoid(slope: float, shift: float, unit: float) -> Threshold:
    """Return where slope·T + shift changes its sign; the second class is where it is below 0."""
    if slope == 0 or not math.isfinite(slope) or not math.isfinite(shift):
        raise _not_fitted()
    slack = unit * ((8 * abs(shift) + 64) / abs(slope) + 8)
    return Threshold(-shift / slope, slack, is_above=slope < 0)


def _isotonic(calibrator: Any, unit: float) -> Threshold:
    """Return the number above which an isotonic calibration is above one half.

    It interpolates between its points, which is good to a few roundings of 1: the boundary lies between a number whose calibration
    is below one half by more than that, or a point at which it is one half exactly, and one above it by more.
    """
    points, heights = np.asarray(calibrator.X_thresholds_), np.asarray(calibrator.y_thresholds_)
    if not (heights[0] <= 0.5 < heights[-1]):
        raise UnsupportedModel(
            "the isotonic calibration takes every row to the same side of one half: every row has the same class. Fit it again."
        )
    doubt = 32 * unit
    low = _last_at_most(calibrator, points, 0.5 - doubt)
    high = _last_at_most(calibrator, points, 0.5 + doubt)
    halves = points[heights == 0.5]
    if len(halves) > 1:
        low = float(halves[-1])
    high = math.nextafter(high, math.inf)
    return Threshold((low + high) / 2, (high - low) * 0.6 + 4 * math.ulp(max(abs(low), abs(high))))


def _last_at_most(calibrator: Any, points: Any, height: float) -> float:
    """Return a number calibrated to at most ``height`` whose successor is above it."""
    low, high = float(points[0]), float(points[-1])
    while math.nextafter(low, math.inf) < high:
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        if float(calibrator.predict(np.array([middle]))[0]) <= height:
            low = middle
        else:
            high = middle
    return low


def _thawed(estimator: Any) -> Any:
    while type(estimator).__name__ == "FrozenEstimator":
        estimator = estimator.estimator
    return estimator


def _scaled(form: Network, factor: float, shift: float) -> Network:
    """Return the form whose score is factor·score + shift, before a sigmoid."""
    if factor == 0 or not math.isfinite(factor) or not math.isfinite(shift):
        raise _not_fitted()
    return form.rescaled(factor, shift, steps=5, squash=SQUASH_UNITS * form.unit, link="sigmoid")


def _threshold(form: Network, slope: float, shift: float) -> Network:
    """Return the form whose score is above 0 where slope·p + shift is below 0, p being the sigmoid of the score."""
    unit = float(form.unit)
    middle = -shift / slope if slope else math.inf
    radius = unit * (7 + (3 * abs(shift) + 32) / abs(slope)) if slope else math.inf
    if not (2 * radius < middle < 1 - 2 * radius):
        raise UnsupportedModel(
            "the calibration takes every probability of the model to the same side: every row has the same class. Fit it again."
        )
    at = logit(middle)
    wrong = max(logit(middle + radius) - at, at - logit(middle - radius)) + 16 * unit * (1 + abs(at))
    sign = -1.0 if slope > 0 else 1.0
    return form.rescaled(sign, -sign * at, steps=2, squash=Fraction(wrong), ties_last=False, link="none")

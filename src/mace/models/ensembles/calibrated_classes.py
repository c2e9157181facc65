"""Reading ``CalibratedClassifierCV(ensemble=False)`` of three or more classes.

Each class has a calibration of its own, of the model's score (or share of trees) for that class; the calibrated numbers are divided by
their sum, which changes no order, and the greatest wins. Sigmoids: the greatest is that of the greatest z = -(a T + b), but for large
z, whose sigmoids are rounded to the same number. Isotonic calibrations are polylines, of which the greatest wins. A temperature
multiplies all scores before one softmax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats, gamma
from mace.forms import Box, Composite, Curved, Form, Network, Polyline, TreeEnsemble
from mace.forms.network import SQUASH_UNITS
from mace.models.ensembles.threshold import CHANCE, SCORE
from mace.space import Categorical, FeatureSpace, Ordinal

SATURATED_SCORE = 30.0
"""Scores that may be larger are not told apart once their sigmoids are rounded to 1."""

VANISHING_SCORE = -600.0
"""Where all scores may be below, their sigmoids may all be rounded to 0."""

SCORED = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")
"""Trees whose decision_function is the sums that are read."""


SOFTMAX = (
    *SCORED,
    "LogisticRegression",
    "LogisticRegressionCV",
    "LinearDiscriminantAnalysis",
    "MLPClassifier",
    "XGBClassifier",
    "LGBMClassifier",
    "CatBoostClassifier",
)
"""Models whose probabilities of three or more classes are the softmax of the scores that are read."""


def is_softmax(model: Any, form: Form) -> bool:
    """Return whether the probabilities of a model of three or more classes are the softmax of its form's scores."""
    while hasattr(model, "steps") or hasattr(model, "estimator") or hasattr(model, "best_estimator_"):
        model = (
            model.steps[-1][1]
            if hasattr(model, "steps")
            else getattr(model, "best_estimator_", None) or model.estimator
        )
    is_one_by_one = (
        getattr(model, "multi_class", "") == "ovr" or getattr(model, "solver", "") == "liblinear"
        if type(model).__name__.startswith("LogisticRegression")
        else getattr(model, "objective_", "") == "multiclassova"
    )
    scores = len(form.biases[-1]) if isinstance(form, Network) else getattr(form, "outputs", 0)
    is_plain = isinstance(form, Network | TreeEnsemble) and not form.is_regressor and form.link == "none"
    return is_plain and scores > 2 and type(model).__name__ in SOFTMAX and not is_one_by_one


def of_classes(estimator: Any, form: Form, kind: str, method: str) -> TreeEnsemble | Network:
    """Return the numbers that are calibrated, one a class; a model that gives others is refused."""
    family = type(estimator).__name__
    if isinstance(form, Network) and kind == SCORE and not form.is_regressor and len(form.biases[-1]) > 2:
        return replace(form, link="none", squash=Fraction(0))
    if isinstance(form, TreeEnsemble) and kind == SCORE and is_softmax(estimator, form):
        return replace(form, link="none")
    if isinstance(form, TreeEnsemble) and kind == CHANCE and form.link == "mean" and method != "temperature":
        trees = len(form.roots)
        wrong = 2 * gamma(2 * trees + 16, form.unit)
        return replace(form, value=form.value / trees, squash=wrong, link="none")
    raise UnsupportedModel(
        f"cannot read CalibratedClassifierCV(method={method!r}) of {family} with {len(estimator.classes_)} classes. Supported: scores of "
        "linear models and boosted trees, and for 'sigmoid' and 'isotonic' shares of trees. Explain the model without the calibration."
    )


def greatest_score(
    form: TreeEnsemble | Network, slopes: Floats, shifts: Floats, space: FeatureSpace, *, is_softmax: bool
) -> TreeEnsemble | Network:
    """Return scores slope·T + shift, which are compared after a softmax, or after a sigmoid each."""
    if not np.isfinite([slopes, shifts]).all():
        raise UnsupportedModel("the calibration is not fitted: a parameter of it is no finite number. Fit it again.")
    steepest = float(np.abs(slopes).max())
    if isinstance(form, Network):
        made: TreeEnsemble | Network = form.rescaled(slopes, shifts, steps=5)
    else:
        rounded = 16 * form.unit * Fraction(float(form.magnitude.max()) * steepest + float(np.abs(shifts).max()))
        made = replace(
            form,
            value=form.value * slopes,
            base=form.base * slopes + shifts,
            squash=Fraction(steepest) * form.rounding + rounded,
        )
    if is_softmax:
        return replace(made, squash=made.squash + SQUASH_UNITS * made.unit)
    low, high = made.score_bounds(whole_box(space))
    largest = float(max(high.max(), 0.0))
    if largest > SATURATED_SCORE or low.max() < VANISHING_SCORE:
        raise UnsupportedModel(
            f"cannot read CalibratedClassifierCV: its scores may be {low.min():.3g} to {high.max():.3g} on this space; "
            f"above {SATURATED_SCORE:g} or all below {VANISHING_SCORE:g}, calibrated probabilities are not told from 1 or 0. "
            "Narrow the space, or leave the calibration out."
        )
    return replace(made, squash=made.squash + 256 * made.unit * Fraction(1 + math.exp(largest)))


def greatest_polyline(form: TreeEnsemble | Network, lines: Sequence[Polyline], space: FeatureSpace) -> Composite:
    """Return the polylines of each class's number, of which the greatest wins."""
    classes = len(lines)
    parts = tuple(Curved(_alone(form, k), line, np.eye(classes)[k]) for k, line in enumerate(lines))
    return Composite(space, parts, np.zeros(classes))


def _alone(form: TreeEnsemble | Network, k: int) -> TreeEnsemble | Network:
    """Return one of several scores."""
    if isinstance(form, TreeEnsemble):
        return replace(form, value=form.value[:, [k]], base=form.base[[k]])
    return replace(
        form,
        weights=(*form.weights[:-1], form.weights[-1][[k]]),
        biases=(*form.biases[:-1], form.biases[-1][[k]]),
        sizes=None if form.sizes is None else (*form.sizes[:-1], form.sizes[-1][[k]]),
    )


def whole_box(space: FeatureSpace) -> Box:
    """Return the range of each feature's number."""
    return tuple(
        (Fraction(0), Fraction(len(feature.levels) - 1))
        if isinstance(feature, Ordinal | Categorical)
        else (Fraction(feature.low), Fraction(feature.high))
        for feature in space.values()
    )

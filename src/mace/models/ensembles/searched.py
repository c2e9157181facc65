"""Reading models that hand every row to another one: searches, frozen models, and classifiers with a threshold of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.forms import Form
from mace.models.ensembles.threshold import CHANCE, SCORE, Threshold, response, thresholded
from mace.space import Column, FeatureSpace


def read_search(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of the best estimator of a ``GridSearchCV`` or its like."""
    from mace.models import form_of

    return form_of(inner_of(model), space, columns)


def inner_of(model: Any) -> Any:
    """Return the model that a search, a threshold or a freezer hands its rows to."""
    if not getattr(model, "refit", True):
        raise UnsupportedModel(
            f"{type(model).__name__}(refit={model.refit!r}) has no best estimator. Fit it with refit=True, or explain a model of its own."
        )
    for name in ("best_estimator_", "estimator_", "estimator"):
        if hasattr(model, name):
            return getattr(model, name)
    raise UnsupportedModel(f"{type(model).__name__} holds no fitted model.")


def read_threshold(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a ``FixedThresholdClassifier`` or ``TunedThresholdClassifierCV``.

    The positive class is predicted where its number is at least the threshold. The probability of the first class is one less
    that of the second, up to a rounding.
    """
    from mace.models import form_of

    inner = inner_of(model)
    names = (CHANCE, SCORE) if model.response_method == "auto" else (model.response_method,)
    kind = response(inner, names)
    at, positive = _decision(model, kind)
    form = form_of(inner, space, columns)
    if positive == 1:
        threshold = Threshold(at, 0.0, ties_second=True)
    else:
        threshold = Threshold(1 - at if kind == CHANCE else -at, 4e-16, ties_second=False)
    return thresholded(form, type(inner).__name__, kind, threshold)


def threshold_of(model: Any) -> float | None:
    """Return from which probability (score, where it reports none) on a model with a threshold predicts the second class.

    ``None`` where it has no threshold, or has it on something else than what it reports.
    """
    names = (CHANCE, SCORE) if model.response_method == "auto" else (model.response_method,)
    kind = response(inner_of(model), names)
    if (kind == CHANCE) != hasattr(model, CHANCE):
        return None
    at, positive = _decision(model, kind)
    return at if positive == 1 else 1 - at if kind == CHANCE else -at


def _decision(model: Any, kind: str) -> tuple[float, int]:
    """Return the threshold, and the position of the class that is predicted from it on."""
    if hasattr(model, "best_threshold_"):
        at, label = float(model.best_threshold_), model._curve_scorer._get_pos_label()
    else:
        at = (0.5 if kind == CHANCE else 0.0) if model.threshold == "auto" else float(model.threshold)
        label = model.pos_label
    return at, 1 if label is None else int(np.flatnonzero(model.classes_ == label)[0])

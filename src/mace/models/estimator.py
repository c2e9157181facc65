"""What the scikit-learn readers share: checks, classes, and asking the fitted object."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.models.deployed import Deployed
from mace.space import Column, FeatureSpace, Scalar
from mace.space.features import plain_scalar


def check_fitted(model: Any) -> None:
    """Refuse a model that is not fitted."""
    if not hasattr(model, "fit"):  # a bare booster exists only once it is trained
        return
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        if not hasattr(model, "is_fitted"):
            check_is_fitted(model)
        elif not model.is_fitted():
            raise NotFittedError(type(model).__name__)
    except NotFittedError as error:
        raise UnsupportedModel(
            f"{type(model).__name__} is not fitted. Call model.fit(X, y) before explaining it."
        ) from error


def class_labels(model: Any) -> tuple[Scalar, ...] | None:
    """Return the classes as Python scalars, ``None`` for a regressor; several outputs are refused."""
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) == 0:
        return None
    if isinstance(classes, list) or np.ndim(classes) != 1:
        raise several_outputs(model)
    labels = tuple(plain_scalar(label) for label in classes)
    if len({(isinstance(label, str), label) for label in labels if label == label}) != len(labels):
        raise UnsupportedModel(
            f"{type(model).__name__} has a class twice, or one that is NaN: it is damaged. Fit it again."
        )
    return labels  # type: ignore[return-value]


def several_outputs(model: Any) -> UnsupportedModel:
    """Return the refusal of a model that predicts several things at once."""
    return UnsupportedModel(
        f"{type(model).__name__} has several outputs; one target at a time can be explained. Fit one model an output."
    )


def check_width(family: str, width: int, columns: Sequence[Column | str]) -> None:
    """Refuse a model whose number of columns differs."""
    if width != len(columns):
        names = (column if isinstance(column, str) else column.name for column in columns[:20])
        raise UnsupportedModel(
            f"{family} was fitted on {width} columns; the space gives {len(columns)}: "
            f"{', '.join(names)}. Use the space that the model was fitted with."
        )


def check_columns(model: Any, columns: Sequence[Column], space: FeatureSpace, *, missing: bool) -> None:
    """Refuse a model whose number of columns differs, or that cannot take a missing value that the space allows."""
    check_width(type(model).__name__, int(model.n_features_in_), columns)
    if not missing:
        check_no_missing(type(model).__name__, space)


def check_no_missing(family: str, space: FeatureSpace) -> None:
    """Refuse a space with missing values for a model that cannot take them."""
    absent = next((name for name, feature in space.items() if feature.missing), None)
    if absent is not None:
        raise UnsupportedModel(
            f"{absent!r} may be missing, and {family} does not accept NaN. "
            f"Set missing=False for it, or use a model that accepts missing values."
        )


BY_PROBABILITY = frozenset(f"sklearn:{name}Classifier" for name in ("RandomForest", "ExtraTrees"))
"""Models whose ``predict`` is the first class with the greatest ``predict_proba``, by the source of every version that is supported."""

BY_ORDER = frozenset(
    [
        *(
            "LogisticRegression",
            "LogisticRegressionCV",
            "SGDClassifier",
            "RidgeClassifier",
            "RidgeClassifierCV",
            "LinearSVC",
        ),
        *("Perceptron", "LinearDiscriminantAnalysis", "MLPClassifier", "DecisionTreeClassifier", "ExtraTreeClassifier"),
        *("GradientBoostingClassifier", "HistGradientBoostingClassifier", "AdaBoostClassifier", "BaggingClassifier"),
        *("CalibratedClassifierCV", "VotingClassifier"),
    ]
)
"""Models of scikit-learn whose ``predict`` is the greatest of the numbers of which ``predict_proba`` makes its own, in their order.

Not so: support vector machines with ``probability=True``, whose probabilities are fitted apart, and neighbours, whose votes are counted.
"""


def deployed(model: Any) -> Deployed:
    """Return how a scikit-learn estimator is asked."""
    names = getattr(model, "feature_names_in_", None)
    package, family = type(model).__module__.partition(".")[0], type(model).__name__
    return Deployed(
        predict=model.predict,
        probabilities=getattr(model, "predict_proba", None),
        decision=getattr(model, "decision_function", None),
        classes=class_labels(model),
        labels=partial(class_labels, model),
        names=None if names is None else tuple(map(str, names)),
        is_by_probability=f"{package}:{family}" in BY_PROBABILITY,
        is_by_order=package == "sklearn" and _is_by_order(model),
    )


def _is_by_order(model: Any) -> bool:
    """Return whether a model of scikit-learn, or the last of a stack, predicts in the order of its probabilities."""
    final = model.final_estimator_ if type(model).__name__ == "StackingClassifier" else model
    own = type(final).__module__.partition(".")[0] == "sklearn"
    return own and type(final).__name__ in BY_ORDER | {key.partition(":")[2] for key in BY_PROBABILITY}


def overridden(model: Any, base: type, methods: Sequence[str]) -> str | None:
    """Return the first of ``methods`` that a subclass or the object itself redefines, else ``None``."""
    for method in methods:
        own = getattr(model, "__dict__", {}).get(method)
        # scikit-learn itself leaves a bound method of the class on the object after some fits.
        if own is not None and getattr(own, "__func__", own) is not getattr(type(model), method, None):
            return method
        if inspect.getattr_static(type(model), method, None) is not inspect.getattr_static(base, method, None):
            return method
    return None

"""What the scikit-learn readers share: checks, classes, and asking the fitted object."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mace.errors import UnsupportedModel
from mace.forms.scoring import column_values
from mace.models.reading import Ask
from mace.space import Column, FeatureSpace, Point, Scalar, numeric_columns
from mace.space.features import plain_scalar


def check_fitted(model: Any) -> None:
    """Refuse a model that is not fitted."""
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise UnsupportedModel(f"{type(model).__name__} is not fitted. Call fit before explaining it.") from error


def class_labels(model: Any) -> tuple[Scalar, ...]:
    """Return the classes as Python scalars; several outputs are refused."""
    classes = model.classes_
    if isinstance(classes, list) or np.ndim(classes) != 1:
        raise UnsupportedModel(
            f"{type(model).__name__} has several outputs; one target at a time can be explained. Fit one model an output."
        )
    return tuple(plain_scalar(label) for label in classes)  # type: ignore[misc]


def bare_columns(model: Any, space: FeatureSpace) -> tuple[Column, ...]:
    """Return the columns of an estimator fitted directly on numeric columns in the space's order."""
    columns = numeric_columns(space)
    if columns is None:
        text = next(
            name for name, feature in space.items() if any(isinstance(v, str) for v in getattr(feature, "levels", ()))
        )
        raise UnsupportedModel(
            f"{type(model).__name__} takes numbers, and {text!r} has text levels. "
            "Put an encoder before it: make_pipeline(mace.Encoder(space), model)."
        )
    named = getattr(model, "feature_names_in_", None)
    if named is not None and tuple(named) != space.names:
        raise UnsupportedModel(
            f"{type(model).__name__} was fitted on the columns {', '.join(named)}; the space has {', '.join(space)}. "
            "Write the space in the model's order."
        )
    return columns


def check_columns(model: Any, columns: Sequence[Column], space: FeatureSpace, *, missing: bool) -> None:
    """Refuse a model whose number of columns differs, or that cannot take a missing value that the space allows."""
    if model.n_features_in_ != len(columns):
        raise UnsupportedModel(
            f"{type(model).__name__} was fitted on {model.n_features_in_} columns; the space gives {len(columns)}: "
            f"{', '.join(column.name for column in columns[:20])}. Use the space that the model was fitted with."
        )
    absent = next((name for name, feature in space.items() if feature.missing), None)
    if absent is not None and not missing:
        raise UnsupportedModel(
            f"{absent!r} may be missing, and {type(model).__name__} does not accept NaN. "
            f"Set missing=False for it, or use a model that accepts missing values."
        )


def ask_estimator(
    model: Any, space: FeatureSpace, classes: tuple[Scalar, ...], *, columns: tuple[Column, ...] | None
) -> Ask:
    """Return a function that asks ``model.predict``.

    Parameters
    ----------
    model : estimator
        The user's own object: an estimator, or a pipeline that takes the original features.
    space : FeatureSpace
        The features.
    classes : tuple of labels
        The labels by code.
    columns : tuple of Column, optional
        Given where the model takes numeric columns itself; ``None`` where it takes the original features.
    """
    codes = {label: Fraction(code) for code, label in enumerate(classes)}
    names = getattr(model, "feature_names_in_", None)

    def ask(points: Sequence[Point]) -> list[Fraction]:
        if columns is not None:
            X: Any = column_values(columns, points)
            if names is not None:
                X = _frame(X, names)
        else:
            X = space.frame_of(points)
            X = X[list(names)] if names is not None else X.to_numpy(dtype=object)
        predictions = model.predict(X)
        return [codes[plain_scalar(prediction)] for prediction in predictions]  # type: ignore[index]

    return ask


def _frame(X: Any, names: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=list(names))


def overridden(model: Any, base: type, methods: Sequence[str]) -> str | None:
    """Return the first of ``methods`` that a subclass or the object itself redefines, else ``None``."""
    for method in methods:
        if method in getattr(model, "__dict__", {}):
            return method
        if inspect.getattr_static(type(model), method, None) is not inspect.getattr_static(base, method, None):
            return method
    return None

"""Readers: one small file a family, one line in the table.

A reader is a function ``(model, space, columns) -> Form``. The table's keys are ``package:class``; a subclass is read as its base
where it overrides nothing that decides.
"""

from __future__ import annotations

from typing import Any

from mace.errors import UnsupportedModel
from mace.models.reading import Ask, Reading
from mace.registry import Registry
from mace.space import FeatureSpace

MODELS = Registry(
    "models",
    {
        "sklearn:DecisionTreeClassifier": "mace.models.tree:read_tree",
        "sklearn:RandomForestClassifier": "mace.models.tree:read_forest",
        "sklearn:ExtraTreesClassifier": "mace.models.tree:read_forest",
        "sklearn:LogisticRegression": "mace.models.linear:read_linear",
        "sklearn:LinearSVC": "mace.models.linear:read_linear",
        "sklearn:MLPClassifier": "mace.models.mlp:read_mlp",
    },
    UnsupportedModel,
)

DECIDING = ("predict", "predict_proba", "decision_function", "_forward_pass_fast", "_validate_X_predict", "apply")
"""Methods that a subclass must not override to be read as its base."""


def read(model: Any, space: FeatureSpace) -> Reading:
    """Read a fitted model exactly, or refuse it.

    Parameters
    ----------
    model : estimator, pipeline or function
        The model as deployed.
    space : FeatureSpace
        Its features.

    Raises
    ------
    UnsupportedModel
        It cannot be read exactly; the message says why and what to do.
    """
    if isinstance(model, type):
        raise UnsupportedModel(
            f"{model.__name__} is a class, not a fitted model. Pass an object: {model.__name__}().fit(X, y)."
        )
    pipeline = next((base for base in type(model).__mro__ if _key(base) == "sklearn:Pipeline"), None)
    if pipeline is None and not hasattr(model, "predict"):
        return _read_callable(model, space)
    from mace.models.estimator import ask_estimator, bare_columns, check_fitted, class_labels

    columns = None
    final = model
    if pipeline is not None:
        _refuse_overrides(model, pipeline)
        final, columns = _open_pipeline(model, space)
    reader = MODELS.load(_registered(final))
    check_fitted(final)
    classes = class_labels(final)
    own = columns if columns is not None else bare_columns(final, space)
    ask = ask_estimator(model, space, classes, columns=None if columns is not None else own)
    return Reading(family=type(final).__name__, form=reader(final, space, own), ask=ask, classes=classes)


def _open_pipeline(model: Any, space: FeatureSpace) -> tuple[Any, Any]:
    from mace.models.estimator import check_fitted
    from mace.models.pipeline import encoder_columns, split_pipeline

    encoder, final = split_pipeline(model)
    if encoder is None:
        return final, None
    check_fitted(encoder)
    return final, encoder_columns(encoder, space)


def _read_callable(model: Any, space: FeatureSpace) -> Reading:
    if not callable(model):
        raise UnsupportedModel(
            f"cannot read {model!r:.80}, a {type(model).__name__}. Supported: {', '.join(_supported())}, and Python functions."
        )
    from mace.models.function import read_function

    return read_function(model, space)


def _key(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]}:{kind.__name__}"


def _registered(model: Any) -> str:
    """Return the table's key for a model: its own class's, or that of a base from which it only inherits."""
    for base in type(model).__mro__:
        if _key(base) in MODELS:
            _refuse_overrides(model, base)
            return _key(base)
    raise UnsupportedModel(
        f"cannot read {type(model).__module__.partition('.')[0]}.{type(model).__name__}: there is no exact reader for it. "
        f"Supported: {', '.join(_supported())}, a Pipeline of mace.Encoder and one of these, and Python functions."
    )


def _refuse_overrides(model: Any, base: type) -> None:
    from mace.models.estimator import overridden

    method = overridden(model, base, DECIDING)
    if method is not None:
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}: it overrides {base.__name__}.{method}, so its decisions are its own code. "
            f"Explain a plain {base.__name__}, or write the decision as a Python function."
        )


def _supported() -> list[str]:
    return [name.partition(":")[2] for name in MODELS]


__all__ = ["MODELS", "Ask", "Reading", "read"]

"""Readers: one small file a family, one line in the table (:mod:`mace.models.table`).

A reader is a function ``(model, space, columns) -> Form``. The table's keys are ``package:class``; a subclass is read as its base
where it overrides nothing that decides. A second table says how an object that is no scikit-learn estimator, or that takes more
than numbers, is asked.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mace.errors import MaceError, UnsupportedModel, in_a_line
from mace.forms import Form
from mace.models.reading import Ask, Reading
from mace.models.sets import is_set, read_set
from mace.models.table import DECIDING, DEPLOYED, MODELS, REFUSED_MODELS, SEARCHES, THRESHOLDS
from mace.registry import resolve
from mace.space import Column, FeatureSpace

if TYPE_CHECKING:
    from mace.models.deployed import Deployed
    from mace.models.wrapped import Wrapped


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
    if is_set(model):
        return read_set(model, space, read)
    if isinstance(model, type):
        raise UnsupportedModel(
            f"{model.__name__} is a class, not a fitted model. Pass an object: {model.__name__}().fit(X, y)."
        )
    is_wrapped = _key(type(model)) == "mace:Wrapped"
    if not is_wrapped and not _is_pipeline(model) and not hasattr(model, "predict") and not _is_known(model):
        return _read_callable(model, space)
    try:
        return _read_wrapped(model, space) if is_wrapped else _read_estimator(model, space)
    except MaceError:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}: its parts do not fit together ({in_a_line(error)}). "
            "It is damaged, or was saved by another version of its library; if neither, please report it."
        ) from error


def deployed_of(model: Any, *, is_read: bool = True) -> Deployed:
    """Return how a fitted model is asked; one that no reader knows is refused where ``is_read``."""
    from mace.models.estimator import check_fitted

    if is_read:
        key = _registered(model)
        check_fitted(model)
    else:
        key = next((_key(base) for base in type(model).__mro__ if _key(base) in DEPLOYED), "")
    found: Deployed = resolve(DEPLOYED.get(key, "mace.models.estimator:deployed"))(model)
    return found


def _read_estimator(model: Any, space: FeatureSpace) -> Reading:
    from mace.models.deployed import bare_columns, rows_of
    from mace.models.preprocessing.pipeline import encoder_columns, input_columns, pipeline_rows, split_pipeline

    core = core_of(model)
    family = type(core).__name__
    deployed = deployed_of(core)
    if core is not model:
        deployed = replace(
            deployed,
            predict=model.predict,
            probabilities=getattr(model, "predict_proba", None),
            decision=getattr(model, "decision_function", None),
            threshold=_threshold(model),
            is_by_probability=deployed.is_by_probability and _is_pipeline(model) and split_pipeline(model)[1] is core,
        )
    encoder = _only_encoder(model)
    if encoder is not None:
        form = form_of(core, space, encoder_columns(_fitted(encoder), space))
        return _reading(family, form, deployed, pipeline_rows(model, space))
    if has_preprocessing(model):
        form = ground(form_of(model, space, input_columns(model, space)), space)
        return _reading(family, form, deployed, pipeline_rows(model, space), is_probed=True)
    columns = bare_columns(family, deployed, space)
    form = form_of(model, space, columns)
    return _reading(
        family, form, deployed, partial(rows_of, deployed, columns, space=space), is_probed=core is not model
    )


def core_of(model: Any) -> Any:
    """Return the model that answers in the end, inside pipelines and whatever else hands every row on."""
    from mace.models.ensembles.searched import inner_of
    from mace.models.preprocessing.pipeline import split_pipeline

    if _is_pipeline(model):
        _refuse_overrides(model, _base(model, "sklearn:Pipeline"))
        return core_of(split_pipeline(model)[1])
    handing = any(_base(model, key) for key in (*SEARCHES, *THRESHOLDS))
    if not handing:
        return model
    _registered(model)
    return core_of(inner_of(_fitted(model)))


def _threshold(model: Any) -> float | None:
    """Return the threshold that the user chose, of a model in pipelines and whatever else hands every row on; ``None`` where none."""
    from mace.models.ensembles.searched import inner_of, threshold_of
    from mace.models.preprocessing.pipeline import split_pipeline

    if _is_pipeline(model):
        return _threshold(split_pipeline(model)[1])
    if any(_base(model, key) for key in THRESHOLDS):
        return threshold_of(model)
    return _threshold(inner_of(model)) if any(_base(model, key) for key in SEARCHES) else None


def _only_encoder(model: Any) -> Any:
    """Return the encoder of a pipeline of an encoder and a plain model; ``None`` of anything else."""
    from mace.models.preprocessing.pipeline import split_pipeline

    if not _is_pipeline(model):
        return None
    before, final = split_pipeline(model)
    is_plain = core_of(final) is final and not has_preprocessing(final)
    return before[0][1] if is_plain and [_key(type(step)) for _, step in before] == ["mace:Encoder"] else None


def has_preprocessing(model: Any) -> bool:
    """Return whether a model, or one inside it, is a pipeline with steps before its model."""
    from mace.models.preprocessing.pipeline import split_pipeline

    if _is_pipeline(model):
        before, final = split_pipeline(model)
        return bool(before) or has_preprocessing(final)
    inside = [getattr(model, name, None) for name in ("best_estimator_", "estimator_")]
    if _base(model, "sklearn:FrozenEstimator"):
        inside.append(model.estimator)
    parts = getattr(model, "estimators_", None)
    if isinstance(parts, list):
        inside += parts
    inside += [part.estimator for part in getattr(model, "calibrated_classifiers_", [])]
    return any(has_preprocessing(part) for part in inside if part is not None and part is not model)


def ground(form: Form, space: FeatureSpace) -> Form:
    """Return a form over the features themselves, where its columns come out of preprocessing."""
    from mace.forms import Composite, Network, ObliqueTrees, TreeEnsemble
    from mace.models.preprocessing.ground_networks import ground_network
    from mace.models.preprocessing.ground_steps import ground_steps
    from mace.models.preprocessing.ground_trees import ground_trees
    from mace.models.preprocessing.traced import Traced

    if isinstance(form, Composite):
        parts: Any = tuple(replace(part, form=ground(part.form, space)) for part in form.parts)  # type: ignore[arg-type]
        if not all(isinstance(part.form, TreeEnsemble | Network) for part in parts):
            raise UnsupportedModel(
                "cannot read a vote or mean of other models with trees behind a projection (PCA). Put the projection before linear models "
                "only, or vote among trees."
            )
        return replace(form, space=space, parts=parts)
    if isinstance(form, ObliqueTrees):
        return form
    assert isinstance(form, TreeEnsemble | Network)
    if not any(isinstance(column, Traced) for column in form.columns):
        return form
    if isinstance(form, TreeEnsemble):
        return ground_trees(form, space)
    multiplies = any(isinstance(column, Traced) and column.joint is not None for column in form.columns)
    if multiplies and (steps := ground_steps(form, space)) is not None:
        return steps
    try:
        return ground_network(form, space)
    except UnsupportedModel:
        steps = None if multiplies else ground_steps(form, space)
        return ground_network(form, space, is_wide=True) if steps is None else steps


def _read_wrapped(model: Wrapped, space: FeatureSpace) -> Reading:
    from mace.models.deployed import bare_columns, rows_of

    family, columns = type(model.model).__name__, model.columns(space)
    if columns is None:
        columns = bare_columns(family, model.deployed, space)
        rows: Any = partial(rows_of, model.deployed, columns, space=space)
    else:
        rows = model.rows(space)
    return _reading(family, model.relabelled(form_of(model.model, space, columns)), model.deployed, rows)


def _reading(family: str, form: Form, deployed: Deployed, rows: Any, *, is_probed: bool = False) -> Reading:
    from mace.forms import Composite, Network, TreeEnsemble
    from mace.models.deployed import ask_deployed, ask_rated_deployed, on_own_floats, rate_deployed, score_deployed

    form = on_own_floats(form)
    if isinstance(form, Composite):
        form.prepare()
    if deployed.classes is not None and isinstance(form, Network | TreeEnsemble):
        labels, scores = len(deployed.classes), len(form.biases[-1]) if isinstance(form, Network) else form.outputs
        if labels > max(2, scores) or labels < scores:
            raise UnsupportedModel(f"cannot read {family}: it has {labels} labels and {scores} scores. It is damaged.")
    reading = Reading(
        family=family,
        form=form,
        ask=ask_deployed(deployed, rows),
        classes=deployed.classes,
        is_regressor=deployed.classes is None,
        rate=rate_deployed(deployed, rows),
        score=score_deployed(deployed, rows),
        threshold=deployed.threshold,
        ask_rated=ask_rated_deployed(deployed, rows),
    )
    return resolve("mace.models.probe:check_agrees")(reading) if deployed.is_probed or is_probed else reading


def form_of(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    """Return the form of a fitted model that is part of another one, over these columns."""
    from mace.models.estimator import check_fitted

    if _is_pipeline(model):
        return _form_of_pipeline(model, space, columns)
    key = _registered(model)
    check_fitted(model)
    form: Form = MODELS.load(key)(model, space, columns)
    if not np.isfinite(getattr(form, "base", 0.0)).all():
        raise UnsupportedModel(f"cannot read {type(model).__name__}: what its sums start from is no finite number.")
    return form


def _form_of_pipeline(model: Any, space: FeatureSpace, columns: tuple[Column, ...]) -> Form:
    from mace.models.preprocessing.pipeline import preprocessed, split_pipeline
    from mace.models.preprocessing.traced import Traced

    _refuse_overrides(model, _base(model, "sklearn:Pipeline"))
    before, final = split_pipeline(model)
    if not before:
        return form_of(final, space, columns)
    if not all(isinstance(column, Traced) for column in columns):
        raise UnsupportedModel(
            "cannot read a Pipeline inside another model. Put the encoder before the whole: make_pipeline(mace.Encoder(space), model)."
        )
    made, inner = preprocessed(model, columns, space)  # type: ignore[arg-type]
    form: Any = form_of(final, inner, made)
    found: Form = replace(form, space=space)
    return found


def _is_pipeline(model: Any) -> bool:
    return _base(model, "sklearn:Pipeline") is not None


def _base(model: Any, key: str) -> Any:
    """Return the class of a model, or a base of it, with this key in the tables; ``None`` where there is none."""
    return next((base for base in type(model).__mro__ if _key(base) == key), None)


def _fitted(model: Any) -> Any:
    from mace.models.estimator import check_fitted

    check_fitted(model)
    return model


def _read_callable(model: Any, space: FeatureSpace) -> Reading:
    if not callable(model):
        raise UnsupportedModel(
            f"cannot read {model!r:.80}, a {type(model).__name__}. Supported: {_supported()}, and Python functions."
        )
    from mace.models.function import read_function

    return read_function(model, space)


def _key(kind: type) -> str:
    return f"{kind.__module__.partition('.')[0]}:{kind.__name__}"


def is_registered(model: Any) -> bool:
    """Return whether there is a reader for a class of the model."""
    return any(_key(base) in MODELS for base in type(model).__mro__)


def _is_known(model: Any) -> bool:
    """Return whether a class of the model is in the tables, so that it is no function though it may be called like one."""
    return any(_key(base) in MODELS or _key(base) in REFUSED_MODELS for base in type(model).__mro__)


def _registered(model: Any) -> str:
    """Return the table's key for a model: its own class's, or that of a base from which it only inherits."""
    for base in type(model).__mro__:
        if _key(base) in MODELS:
            _refuse_overrides(model, base)
            return _key(base)
    named = f"cannot read {type(model).__module__.partition('.')[0]}.{type(model).__name__}"
    for base in type(model).__mro__:
        if _key(base) in REFUSED_MODELS:
            raise UnsupportedModel(f"{named}: {REFUSED_MODELS[_key(base)]}.")
    raise UnsupportedModel(
        f"{named}: there is no exact reader for it. "
        f"Supported: {_supported()}, a Pipeline of mace.Encoder and one of these, and Python functions."
    )


def _refuse_overrides(model: Any, base: type) -> None:
    from mace.models.estimator import overridden

    method = overridden(model, base, DECIDING)
    if method is not None:
        raise UnsupportedModel(
            f"cannot read {type(model).__name__}: it overrides {base.__name__}.{method}, so its decisions are its own code. "
            f"Explain a plain {base.__name__}, or write the decision as a Python function."
        )


def _supported() -> str:
    """Return the best-known models by name, and where all of them are listed."""
    names = [name.removeprefix("sklearn:").replace(":", ".") for name in MODELS]
    return f"{', '.join(names[:12])} and others ({len(names)} in all; mace list models prints them)"


__all__ = ["DEPLOYED", "MODELS", "REFUSED_MODELS", "Ask", "Reading", "deployed_of", "form_of", "is_registered", "read"]

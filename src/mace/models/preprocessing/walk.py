"""Walking the steps before a model: pipelines, column transformers and unions of the steps that are read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from mace.errors import UnsupportedModel, did_you_mean
from mace.models.estimator import check_fitted, overridden
from mace.models.preprocessing.steps import REFUSED_STEPS, STEPS
from mace.models.preprocessing.traced import Step, Traced, all_values, dense, floats_of, is_leveled
from mace.space import FeatureSpace
from mace.space.dtypes import FloatType

DECIDES = ("transform", "_transform", "get_support", "_get_support_mask")
"""Methods of a step that a subclass must not override to be read as its base."""


def walk(
    fitted: Any, columns: Sequence[Traced], sample: Any, space: FeatureSpace, path: str
) -> tuple[list[Traced], Any]:
    """Return the columns that a fitted step makes, and what it makes of the sample row.

    Parameters
    ----------
    fitted : transformer
        A step, pipeline, column transformer or union.
    columns : sequence of Traced
        What it is given.
    sample : frame, array or sparse matrix
        One row as it is given.
    space : FeatureSpace
        The features.
    path : str
        Its place, for messages.

    Raises
    ------
    UnsupportedModel
        A step is not read; the message names it.
    """
    if fitted is None or (isinstance(fitted, str) and fitted == "passthrough"):
        return list(columns), sample
    kind = _kind(fitted)
    where = f"{path}, {type(fitted).__name__}" if path else type(fitted).__name__
    check_fitted(fitted)
    step = Step(fitted, tuple(columns), sample, space, where)
    if kind == "Pipeline":
        for name, inner in fitted.steps:
            columns, sample = walk(inner, columns, sample, space, _below(path, name))
        return list(columns), sample
    if kind == "ColumnTransformer":
        return _columns(step, path)
    if kind == "FeatureUnion":
        return _union(step, path)
    if kind not in STEPS:
        raise _unread(fitted, where)
    _refuse_dates(step, kind)
    made = STEPS[kind](step)
    out = _real_output(step)
    _check_width(step, made, out)
    return [_on_floats(step, column, floats) for column, floats in zip(made, floats_of(out), strict=True)], out


def _refuse_dates(step: Step, kind: str) -> None:
    """Refuse a step that is given dates and does not make days of them."""
    named = next((column.name for m, column in enumerate(step.inputs) if step.date(m) is not None), None)
    if named is not None and kind not in ("mace:Encoder", "sklearn:FunctionTransformer"):
        raise step.refuse(
            f"it is given {named!r}, a date. Make numbers of it first, for such columns: FunctionTransformer of mace.days, mace.years, "
            "mace.months or mace.weekdays; or mace.Encoder."
        )


def tabled(columns: Sequence[Traced], space: FeatureSpace) -> tuple[Traced, ...]:
    """Return columns with the tables of those that read levels; what is not a number by then is refused."""
    features = list(space.values())
    found = []
    for column in columns:
        feature = features[column.feature]
        if column.is_mixed or not is_leveled(feature):
            found.append(column)
            continue
        values = column.values(all_values(feature))
        try:
            table = tuple(float(value) for value in values)
        except (TypeError, ValueError):
            raise UnsupportedModel(
                f"{column.where} hands {space.names[column.feature]!r} to the model as text. "
                "Put a OneHotEncoder or OrdinalEncoder before the model."
            ) from None
        if column.zero_is_missing:
            table = tuple(value if value else math.nan for value in table)
        found.append(replace(column, table=table))
    return tuple(found)


def _columns(step: Step, path: str) -> tuple[list[Traced], Any]:
    """Return the columns of a ``ColumnTransformer``: each part with its own inputs, in the order of its outputs."""
    fitted, found = step.fitted, []
    if fitted.transformer_weights:
        raise step.refuse("transformer_weights is set. Put the weights into a scaler.")
    given = list(step.sample.columns) if isinstance(step.sample, pd.DataFrame) else None
    known = getattr(fitted, "feature_names_in_", None)
    for name, part, _ in fitted.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [int(i) for i in fitted._transformer_to_input_indices[name]]
        if not chosen:
            continue
        if given is not None and known is not None:
            chosen = [_position(str(known[i]), given, step.where) for i in chosen]
        rows = step.sample.iloc[:, chosen] if given is not None else step.sample[:, chosen]
        made, _ = walk(part, [step.inputs[i] for i in chosen], rows, step.space, _below(path, name))
        found += made
    out = _real_output(step)
    _check_width(step, found, out)
    return found, out


def _position(name: str, given: Sequence[Any], where: str) -> int:
    if name not in given:
        raise UnsupportedModel(
            f"{where} needs the column {name!r}, which it is not given.{did_you_mean(name, map(str, given))}"
        )
    return list(given).index(name)


def _union(step: Step, path: str) -> tuple[list[Traced], Any]:
    """Return the columns of a ``FeatureUnion``: every part's, one after the other."""
    if step.fitted.transformer_weights:
        raise step.refuse("transformer_weights is set. Put the weights into a scaler.")
    found: list[Traced] = []
    for name, part in step.fitted.transformer_list:
        if isinstance(part, str) and part == "drop":
            continue
        found += walk(part, step.inputs, step.sample, step.space, _below(path, name))[0]
    out = _real_output(step)
    _check_width(step, found, out)
    return found, out


def _on_floats(step: Step, column: Traced, floats: FloatType) -> Traced:
    """Return an output column with the floats that it holds; one that a step hands on keeps its own."""
    if not any(column is given for given in step.inputs):
        return replace(column, floats=floats)
    if np.finfo(floats).nmant < np.finfo(column.floats).nmant:
        raise step.refuse(f"it rounds {column.name!r} to {floats.__name__}. Cast the frame before fitting.")
    return column


def _real_output(step: Step) -> Any:
    """Return what the fitted step really makes of the sample, in its own container."""
    step.transformed(step.sample)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return step.fitted.transform(step.sample)


def _check_width(step: Step, made: Sequence[Traced], out: Any) -> None:
    width = dense(out).shape[1] if dense(out).ndim == 2 else -1
    if len(made) != width:
        raise step.refuse(f"it makes {width} columns where {len(made)} were expected.")


def _below(path: str, name: str) -> str:
    return f"{path} > {name!r}" if path else f"step {name!r}"


def _kind(fitted: Any) -> str:
    """Return the class that a step is read as: its own, or a base of which it overrides nothing."""
    for base in type(fitted).__mro__:
        package = base.__module__.partition(".")[0]
        key = f"{package}:{base.__name__}"
        if package == "sklearn" and base.__name__ in ("Pipeline", "ColumnTransformer", "FeatureUnion"):
            key = base.__name__
        elif key not in STEPS:
            continue
        changed = overridden(fitted, base, DECIDES)
        if changed is not None:
            raise UnsupportedModel(
                f"cannot read {type(fitted).__name__}: it overrides {base.__name__}.{changed}: code of its own. Use {base.__name__}."
            )
        return key
    return type(fitted).__name__


def _unread(fitted: Any, where: str) -> UnsupportedModel:
    name = type(fitted).__name__
    reason = next(
        (REFUSED_STEPS[base.__name__] for base in type(fitted).__mro__ if base.__name__ in REFUSED_STEPS), None
    )
    if reason is not None:
        return UnsupportedModel(f"cannot read {where}: {reason}.")
    supported = ", ".join(key.partition(":")[2] for key in list(STEPS)[:14])
    return UnsupportedModel(
        f"cannot read {where}: there is no exact reader for {name}. Supported before the model: {supported} and others (docs/pipelines.md)."
    )

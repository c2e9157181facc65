"""Reading a scikit-learn ``Pipeline``: an encoder or other preprocessing, and a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mace.errors import UnsupportedModel
from mace.models.deployed import array_of, handed
from mace.models.estimator import check_width
from mace.models.preprocessing.ground_trees import fills_missing
from mace.models.preprocessing.traced import Traced, first_value, raw_columns, values_at
from mace.models.preprocessing.walk import tabled, walk
from mace.models.reading import check_features
from mace.space import Categorical, Column, Date, Feature, FeatureSpace, Integer, Ordinal, Point, Real
from mace.space.frames import column_of

if TYPE_CHECKING:
    from mace.space.encoder import Encoder


def split_pipeline(pipeline: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Return the steps before the model, by name, and the model."""
    steps = [(name, step) for name, step in pipeline.steps if not _is_nothing(step)]
    if not steps or not hasattr(steps[-1][1], "predict"):
        raise UnsupportedModel("The pipeline has no model: its last step must be one.")
    *before, (_, model) = steps
    return before, model


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def encoder_columns(encoder: Encoder, space: FeatureSpace) -> tuple[Column, ...]:
    """Return the encoder's columns over ``space``, whose features and levels must be among the encoder's own."""
    own: FeatureSpace = encoder.space_
    check_features("the pipeline's encoder", own.names, space.names)
    positions = {name: _level_positions(name, own[name], space[name]) for name in space}
    return tuple(_moved(column, own, space, positions) for column in encoder.columns_)


def pipeline_rows(pipeline: Any, space: FeatureSpace) -> Callable[[Sequence[Point]], Any]:
    """Return how points become the rows that a pipeline with an encoder takes: the original features, in a frame or an array."""
    names = getattr(pipeline, "feature_names_in_", None)

    def rows(points: Sequence[Point]) -> Any:
        frame = space.frame_of(points)
        return frame[list(names)] if names is not None else array_of(frame, space)

    return rows


def input_columns(model: Any, space: FeatureSpace) -> tuple[Traced, ...]:
    """Return the features as a model with preprocessing takes them: by name where it was fitted on a frame, else in order."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        check_width(type(model).__name__, int(model.n_features_in_), space.names)
        return tuple(raw_columns(space, space.names, _handed(model, space)))
    check_features(type(model).__name__, list(map(str, names)), space.names)
    return tuple(raw_columns(space, list(map(str, names)), _handed(model, space)))


def _handed(model: Any, space: FeatureSpace) -> str:
    return handed(pipeline_rows(model, space)([space.some_point()])) if space.has_dtypes else "float64"


def preprocessed(
    pipeline: Any, columns: Sequence[Traced], space: FeatureSpace
) -> tuple[tuple[Traced, ...], FeatureSpace]:
    """Return the columns that the steps before the model make, and the space as the model sees it: without the missing values that
    they fill."""
    before, final = split_pipeline(pipeline)
    made, sample = list(columns), _first_row(pipeline, columns, space)
    for name, step in before:
        made, sample = walk(step, made, sample, space, f"step {name!r}")
    if hasattr(sample, "toarray") and type(final).__module__.startswith("xgboost"):
        # XGBoost takes what a sparse matrix does not hold for missing, and zeros are not held.
        made = [replace(column, zero_is_missing=True) for column in made]
    kind = handed(sample)
    found = tabled([replace(column, handed=kind) for column in made], space)
    filled = fills_missing(found, space)
    inner: dict[str, Feature] = {
        name: replace(feature, missing=False) if name in filled and isinstance(feature, Real | Integer) else feature
        for name, feature in space.items()
    }
    return found, FeatureSpace(inner)


def _first_row(pipeline: Any, columns: Sequence[Traced], space: FeatureSpace) -> Any:
    """Return one row as the pipeline is given it: the features, or what the steps before it make of them."""
    features, point = list(space.values()), space.some_point()
    cells: list[Any] = [
        values_at(column, {j: first_value(features[j]) for j in column.reads or (column.feature,)})
        if column.parents
        else column_of(features[column.feature], [point[column.feature]])
        for column in columns
    ]
    names = getattr(pipeline, "feature_names_in_", None)
    if names is not None:
        frame = pd.DataFrame(dict(enumerate(cells)))
        frame.columns = list(names)
        return frame
    has_text = any(
        isinstance(level, str)
        for column in columns
        if not column.parents
        for level in getattr(features[column.feature], "levels", ())
    )
    kind = object if has_text or any(isinstance(cell[0], str) for cell in cells) else columns[0].handed
    return np.array([[cell[0] for cell in cells]], dtype=kind)


def _level_positions(name: str, own: Feature, given: Feature) -> list[int] | None:
    if getattr(own, "unit", None) != getattr(given, "unit", None):
        kinds = [f"a date in {each.unit}s" if isinstance(each, Date) else "no date" for each in (own, given)]
        raise UnsupportedModel(f"{name!r} is {kinds[0]} to the encoder and {kinds[1]} in the space.")
    leveled = isinstance(own, Ordinal | Categorical)
    if leveled != isinstance(given, Ordinal | Categorical):
        raise UnsupportedModel(
            f"{name!r} is {type(own).__name__} to the encoder and {type(given).__name__} in the space."
        )
    if not isinstance(own, Ordinal | Categorical) or not isinstance(given, Ordinal | Categorical):
        return None
    unknown = [level for level in given.levels if level not in own.levels]
    if unknown:
        raise UnsupportedModel(f"{name!r}: level {unknown[0]!r} of the space is unknown to the pipeline's encoder.")
    return [own.levels.index(level) for level in given.levels]


def _moved(column: Column, own: FeatureSpace, space: FeatureSpace, positions: dict[str, list[int] | None]) -> Column:
    name = own.names[column.feature]
    chosen = positions[name]
    table = column.table if column.table is None or chosen is None else tuple(column.table[k] for k in chosen)
    return Column(column.name, space.index(name), table)

"""Reading a scikit-learn ``Pipeline`` of an encoder and a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mace.errors import UnsupportedModel
from mace.space import Categorical, Column, Feature, FeatureSpace, Ordinal, Point
from mace.space.encoder import Encoder


def split_pipeline(pipeline: Any) -> tuple[Encoder | None, Any]:
    """Return the encoder (if any) and the final estimator of a pipeline; any other step is refused by name."""
    steps = [(name, step) for name, step in pipeline.steps if step is not None and step != "passthrough"]
    if not steps:
        raise UnsupportedModel("The pipeline has no step. Its last step must be a model.")
    *before, (_, model) = steps
    encoder = None
    for name, step in before:
        if type(step) is not Encoder or encoder is not None:
            raise UnsupportedModel(
                f"cannot read step {name!r} of the pipeline, {type(step).__name__}. "
                "Supported before the model: one mace.Encoder."
            )
        encoder = step
    return encoder, model


def encoder_columns(encoder: Encoder, space: FeatureSpace) -> tuple[Column, ...]:
    """Return the encoder's columns over ``space``, whose features and levels must be among the encoder's own."""
    own: FeatureSpace = encoder.space_
    if set(own) != set(space):
        stray = sorted(set(own) ^ set(space))
        raise UnsupportedModel(
            f"The pipeline's encoder and the space differ in the features {', '.join(stray)}. Use the encoder's own space."
        )
    positions = {name: _level_positions(name, own[name], space[name]) for name in space}
    return tuple(_moved(column, own, space, positions) for column in encoder.columns_)


def pipeline_rows(pipeline: Any, space: FeatureSpace) -> Callable[[Sequence[Point]], Any]:
    """Return how points become the rows that a pipeline with an encoder takes: the original features, in a frame or an array."""
    names = getattr(pipeline, "feature_names_in_", None)

    def rows(points: Sequence[Point]) -> Any:
        frame = space.frame_of(points)
        return frame[list(names)] if names is not None else frame.to_numpy(dtype=object)

    return rows


def _level_positions(name: str, own: Feature, given: Feature) -> list[int] | None:
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

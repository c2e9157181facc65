"""Distances: one file a norm, one line in the table."""

from mace.distances.distance import (
    NORMS,
    Distance,
    FunctionDistance,
    Metric,
    NormMetric,
    as_distance,
    distance_down,
    distance_up,
    point_values,
)

__all__ = [
    "NORMS",
    "Distance",
    "FunctionDistance",
    "Metric",
    "NormMetric",
    "as_distance",
    "distance_down",
    "distance_up",
    "point_values",
]

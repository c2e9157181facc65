"""Distances: norms, mixtures and functions; one line a norm in the table."""

from mace.distances.distance import (
    NORMS,
    Distance,
    FunctionDistance,
    as_distance,
    distance_text,
    point_values,
)
from mace.distances.metric import Metric, NormMetric, PartsMetric, distance_down, distance_up
from mace.distances.percentile import PercentileMetric

__all__ = [
    "NORMS",
    "Distance",
    "FunctionDistance",
    "Metric",
    "NormMetric",
    "PartsMetric",
    "PercentileMetric",
    "as_distance",
    "distance_down",
    "distance_text",
    "distance_up",
    "point_values",
]

"""Features, feature spaces and their encodings (:mod:`mace.space.encoder` needs scikit-learn; nothing else here does)."""

from mace.space.columns import Column, Filled, encoded_columns, numeric_columns
from mace.space.dates import Date, date, days, months, weekdays, years
from mace.space.features import Categorical, Feature, Integer, Level, Number, Ordinal, Real, Value, grid_values
from mace.space.making import categorical, integer, ordinal, real
from mace.space.space import RESERVED, FeatureSpace, Point, Row, Scalar
from mace.space.wording import Wording

__all__ = [
    "RESERVED",
    "Categorical",
    "Column",
    "Date",
    "Feature",
    "FeatureSpace",
    "Filled",
    "Integer",
    "Level",
    "Number",
    "Ordinal",
    "Point",
    "Real",
    "Row",
    "Scalar",
    "Value",
    "Wording",
    "categorical",
    "date",
    "days",
    "encoded_columns",
    "grid_values",
    "integer",
    "months",
    "numeric_columns",
    "ordinal",
    "real",
    "weekdays",
    "years",
]

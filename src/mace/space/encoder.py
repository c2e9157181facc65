"""The encoder: a scikit-learn transformer from the original features to a model's columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from mace.errors import InvalidRow, did_you_mean
from mace.exact import Floats
from mace.space.columns import CategoricalEncoding, Column, OrdinalEncoding, encoded_columns
from mace.space.dates import Date
from mace.space.features import Categorical, Feature, Level, Ordinal, is_missing, plain_scalar
from mace.space.frames import as_pandas
from mace.space.space import FeatureSpace


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn rows over the original features into float64 columns.

    Numbers stay as they are, missing values NaN. Dates become days since 1970-01-01, or so many of the unit that they are counted in.
    Levels become one-hot columns (one column where there are two levels), thermometer columns (column k is 1 where the level is k or
    above), or their position.

    Parameters
    ----------
    space : FeatureSpace, optional
        The features; inferred from the data at ``fit`` where not given.
    categorical : {"onehot", "codes"}
        How a categorical feature is encoded.
    ordinal : {"thermometer", "codes"}
        How an ordinal feature is encoded.

    Attributes
    ----------
    space_ : FeatureSpace
        The space in use.
    columns_ : tuple of Column
        What each output column reads.

    Examples
    --------
    >>> import pandas as pd
    >>> from mace.space import FeatureSpace, categorical, integer
    >>> space = FeatureSpace({"age": integer(18, 90), "housing": categorical(["rent", "own", "free"])})
    >>> Encoder(space).fit_transform(pd.DataFrame({"age": [30], "housing": ["own"]}))
    array([[30.,  0.,  1.,  0.]])
    """

    def __init__(
        self,
        space: FeatureSpace | None = None,
        *,
        categorical: CategoricalEncoding = "onehot",
        ordinal: OrdinalEncoding = "thermometer",
    ) -> None:
        self.space = space
        self.categorical = categorical
        self.ordinal = ordinal

    def fit(self, X: Any, y: Any = None) -> Encoder:
        """Check the data against the space (or infer the space), and fix the columns."""
        X = _as_frame_or_array(self, X, reset=True)
        self.space_ = self.space if self.space is not None else _inferred(X)
        self.columns_ = encoded_columns(self.space_, categorical=self.categorical, ordinal=self.ordinal)
        _features_of(X, self.space_)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the columns of ``X`` as float64.

        Raises
        ------
        InvalidRow
            A column is missing, a level is unseen, or NaN stands where the feature has no missing state.
        """
        check_is_fitted(self)
        X = _as_frame_or_array(self, X, reset=False)
        numbers = _features_of(X, self.space_)
        return np.column_stack([_encode(column, numbers[column.feature]) for column in self.columns_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the columns' names; a feature of one column keeps its own."""
        check_is_fitted(self)
        return np.array([column.name for column in self.columns_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _as_frame_or_array(encoder: Encoder, X: Any, *, reset: bool) -> Any:
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        if X.shape[0] == 0:
            raise InvalidRow("Found array with 0 sample(s); the encoder needs at least one row.")
        validate_data(encoder, X, reset=reset, skip_check_array=True)
        return X
    X = check_array(X, dtype=None, ensure_all_finite=False, estimator=encoder)
    validate_data(encoder, X, reset=reset, skip_check_array=True)
    return X


def _inferred(X: Any) -> FeatureSpace:
    if isinstance(X, pd.DataFrame):
        return FeatureSpace.from_frame(X)
    frame = pd.DataFrame(X).infer_objects()
    frame.columns = [f"x{position}" for position in range(frame.shape[1])]
    numeric = frame.select_dtypes("number").astype(float)
    if np.isinf(numeric.to_numpy()).any() or numeric.isna().to_numpy().any():
        raise InvalidRow("Input contains NaN or infinity; give the encoder a space that says what may be missing.")
    frame[numeric.columns] = numeric
    return FeatureSpace.from_frame(frame)


def _features_of(X: Any, space: FeatureSpace) -> list[Floats]:
    if isinstance(X, pd.DataFrame):
        absent = [name for name in space if name not in X.columns]
        if absent:
            raise InvalidRow(
                f"Column {absent[0]!r} is missing from the frame.{did_you_mean(absent[0], X.columns)} "
                f"The space has: {', '.join(space)}."
            )
        columns: list[Any] = [X[name].to_numpy() for name in space]
    else:
        if X.shape[1] != len(space):
            raise InvalidRow(f"X has {X.shape[1]} features, but the space has {len(space)}: {', '.join(space)}.")
        columns = [X[:, position] for position in range(len(space))]
    return [_numbers(name, feature, column) for (name, feature), column in zip(space.items(), columns, strict=True)]


def _numbers(name: str, feature: Feature, column: Any) -> Floats:
    if isinstance(feature, Ordinal | Categorical):
        return _positions(name, feature.levels, column)
    try:
        numbers = (
            feature.numbers(column)
            if isinstance(feature, Date)
            else np.asarray(pd.to_numeric(column), dtype=np.float64)
        )
    except (TypeError, ValueError) as error:
        kind = "date" if isinstance(feature, Date) else "number"
        raise InvalidRow(f"{name!r} holds a value that is not a {kind}: {error}.") from error
    if np.isinf(numbers).any():
        raise InvalidRow(f"{name!r} contains infinity; finite numbers only.")
    if not feature.missing and np.isnan(numbers).any():
        raise InvalidRow(f"{name!r} contains NaN, and the feature has no missing state. Fill it, or set missing=True.")
    return numbers


def _positions(name: str, levels: tuple[Level, ...], column: Any) -> Floats:
    position = {None if is_missing(level) else level: code for code, level in enumerate(levels)}
    cells = [None if is_missing(value) else plain_scalar(value) for value in column]
    try:
        return np.array([position[cell] for cell in cells], dtype=np.float64)  # type: ignore[index]
    except (KeyError, TypeError):
        unseen = next(cell for cell in cells if cell not in position)
        shown = ", ".join(map(repr, levels[:20]))
        raise InvalidRow(
            f"{name!r} is {unseen!r}, which is not one of its levels: {shown}.{did_you_mean(unseen, levels)}"
        ) from None


def _encode(column: Column, numbers: Floats) -> Floats:
    if column.table is None:
        return numbers
    encoded: Floats = np.array(column.table)[numbers.astype(np.intp)]
    return encoded

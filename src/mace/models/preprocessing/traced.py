"""Columns on their way to the model: which feature each one reads, and how.

A preprocessing step is walked once, with the fitted object itself at hand. Every column between two steps is kept as a
:class:`Traced`: the one feature that it depends on, a function that asks the fitted steps for its values, and what is
known of that function. What is known decides how few questions suffice:

- levels, and whole numbers of a moderate range, are asked one by one, so nothing need be known;
- of a real feature every step must be monotone between known cuts. It is so in floating point by construction where it is
  a correctly rounded monotone operation (a difference, a quotient, a comparison, a clip). Where it is computed less exactly
  (a logarithm, a power), a bound on its error says how near to a threshold the floats must be asked one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Floats
from mace.space import Categorical, Column, Date, Feature, FeatureSpace, Integer, Ordinal, Real
from mace.space.dtypes import FloatType
from mace.space.features import Level

if TYPE_CHECKING:
    from mace.models.networks.rows import Tensor
    from mace.models.preprocessing.ground_networks import Ground

Values = Callable[[NDArray[Any]], NDArray[Any]]
"""The column's values at values of its feature: numbers (NaN where missing), or levels."""

Given = Mapping[int, NDArray[Any]]
"""Values of several features, by their positions: one array each, of one length."""

Error = Callable[[Floats], Floats]
"""A bound on how far a computed value near t is from the value of a monotone function."""

Lower = Callable[["Ground"], "Tensor"]
"""The column as a row of a network over the features."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a column as a function of the column that it is made from.

    Attributes
    ----------
    error : callable, optional
        ``None`` where it is monotone in floating point, by construction, between its cuts; otherwise a bound on how far it is from a
        monotone function.
    cuts : tuple of float
        Numbers after which it may jump or turn, in order.
    unknown : str
        Why nothing is known; empty where something is.
    is_flat : bool
        Whether it is constant between its cuts.
    """

    error: Error | None = None
    cuts: tuple[float, ...] = ()
    unknown: str = ""
    is_flat: bool = False


MONOTONE = Shape()


@dataclass(frozen=True, slots=True, eq=False)
class Traced(Column):
    """A column that depends on one feature, or (``is_mixed``) on several.

    Attributes
    ----------
    values : callable
        Asks the fitted steps for its values at values of its feature.
    local : callable, optional
        Asks the last step alone for its values at values of ``parents[0]``.
    shape : Shape
        What is known of ``local``.
    lower : callable, optional
        The column as an affine (or clipped) function, for networks.
    line : pair of float arrays, optional
        Knots and heights, where ``local`` interpolates between these and is constant beyond, to within a few roundings of the heights.
    parents : tuple of Traced
        The columns that the last step made it from; none for a feature itself.
    where : str
        The last step, for messages.
    is_mixed : bool
        Whether it depends on several features.
    reads : tuple of int
        The features that a product reads, where it reads several.
    joint : callable, optional
        Asks the fitted steps for a product's values at values of all features that it reads.
    factors : tuple of (Traced, int)
        The columns that a product multiplies, each with its power.
    along : callable, optional
        A product as a column of one of its features, the others having the values given (arrays of length one).
    zero_is_missing : bool
        Whether the model takes 0 for a missing value, as XGBoost does in a sparse matrix.
    floats : type
        The floats that its numbers are.
    """

    values: Values = lambda x: x
    local: Values | None = None
    shape: Shape = MONOTONE
    lower: Lower | None = None
    line: tuple[Floats, Floats] | None = None
    parents: tuple[Traced, ...] = ()
    where: str = ""
    is_mixed: bool = False
    reads: tuple[int, ...] = ()
    joint: Callable[[Given], NDArray[Any]] | None = None
    factors: tuple[tuple[Traced, int], ...] = ()
    along: Callable[[int, Given], Traced] | None = None
    zero_is_missing: bool = False
    floats: FloatType = np.float64

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def values_at(column: Traced, given: Given) -> NDArray[Any]:
    """Return a column's values at values of the features that it reads."""
    return column.joint(given) if column.joint is not None else column.values(given[column.feature])


def raw_columns(space: FeatureSpace, names: Sequence[str], handed: str) -> list[Traced]:
    """Return the features themselves, in the model's order, and in the dtype of an array of them."""
    return [_raw(space[name], name, space.index(name), handed) for name in names]


def _raw(feature: Feature, name: str, index: int, handed: str) -> Traced:
    return Traced(
        name,
        index,
        None,
        lower=lambda ground: ground.feature(index),
        where="the pipeline's input",
        floats=feature.floats if isinstance(feature, Real) else np.float64,
        handed=handed,
    )


def is_leveled(feature: Feature) -> bool:
    """Return whether a feature's values are levels."""
    return isinstance(feature, Ordinal | Categorical)


def all_values(feature: Feature) -> NDArray[Any]:
    """Return the levels of a feature, or its whole numbers."""
    if isinstance(feature, Ordinal | Categorical):
        return as_objects(feature.levels)
    assert isinstance(feature, Integer)
    return np.arange(feature.low, feature.high + 1, dtype=dtype_of(feature))


def as_objects(levels: Sequence[Level]) -> NDArray[Any]:
    """Return levels as an array of Python objects."""
    found = np.empty(len(levels), dtype=object)
    found[:] = levels
    return found


def first_value(feature: Feature) -> NDArray[Any]:
    """Return one value of a feature, as an array."""
    if isinstance(feature, Ordinal | Categorical):
        return as_objects(feature.levels[:1])
    return np.array([feature.low], dtype=dtype_of(feature))


def dtype_of(feature: Real | Integer) -> type[np.float64 | np.int64]:
    """Return how a frame holds a feature's numbers: whole ones as integers, unless some may be missing."""
    return np.int64 if isinstance(feature, Integer) and not feature.missing else np.float64


def ends_of(feature: Real | Integer) -> Floats:
    """Return the least and the greatest value of a numeric feature."""
    return np.array([feature.low, feature.high], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A fitted transformer with the columns that it is given.

    Attributes
    ----------
    fitted : transformer
        The user's own object.
    inputs : tuple of Traced
        What it is given, in order.
    sample : frame, array or sparse matrix
        One row as it is really given, for the kind of container and the dtypes.
    space : FeatureSpace
        The features.
    where : str
        Its place in the pipeline, for messages.
    """

    fitted: Any
    inputs: tuple[Traced, ...]
    sample: Any
    space: FeatureSpace
    where: str

    def output(self, k: int, i: int, name: str, *, shape: Shape, lower: Lower | None = None) -> Traced:
        """Return the output column ``k``, which depends on the input ``i`` alone."""
        source = self.inputs[i]

        def local(column: NDArray[Any]) -> NDArray[Any]:
            return self.ask({i: column})[:, k]

        made = Traced(
            name,
            source.feature,
            source.table if source.is_mixed else None,
            values=lambda x: local(source.values(x)),
            local=local,
            shape=shape,
            lower=lower,
            parents=(source,),
            where=self.where,
            is_mixed=source.is_mixed,
            reads=source.reads,
        )
        if source.joint is None:
            return made

        def along(feature: int, given: Given) -> Traced:
            assert source.along is not None
            below = source.along(feature, given)
            return replace(
                made,
                feature=feature,
                table=None,
                values=lambda x: local(below.values(x)),
                parents=(below,),
                is_mixed=False,
                reads=(),
                floats=self.floats_out[k],
            )

        return replace(made, joint=lambda given: local(values_at(source, given)), along=along)

    def constant(self, value: float, name: str) -> Traced:
        """Return a column that depends on nothing."""
        return Traced(
            name,
            0,
            None,
            values=lambda x: np.full(len(x), value),
            local=lambda x: np.full(len(x), value),
            shape=Shape(is_flat=True),
            parents=(Traced("", 0, None),) if self.inputs else (),
            lower=lambda ground: ground.lowering.constant(np.array([[value]])),
            where=self.where,
        )

    def ask(self, columns: Mapping[int, NDArray[Any]]) -> NDArray[Any]:
        """Return what the transformer makes of some columns, by their positions, the others being at rest."""
        rows = max(map(len, columns.values()))
        block = [
            self._cells(m, columns[m]) if m in columns else at_rest(self.sample, m, rows)
            for m in range(len(self.inputs))
        ]
        return self.transformed(contained(block, self.sample))

    def date(self, m: int) -> Date | None:
        """Return the feature of an input that is one of dates, as it is; ``None`` of any other."""
        feature = list(self.space.values())[self.inputs[m].feature]
        return feature if isinstance(feature, Date) and not self.inputs[m].parents else None

    def _cells(self, m: int, column: NDArray[Any]) -> NDArray[Any]:
        """Return numbers of an input as the step is given them: dates, where it is one."""
        feature = self.date(m)
        return column if feature is None else feature.moments(column)

    @property
    def floats_out(self) -> list[FloatType]:
        """The floats in each output column."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return floats_of(self.fitted.transform(self.sample))

    def roundoff(self, k: int) -> float:
        """Return the unit roundoff of the floats in an output column."""
        return 2.0 ** -(1 + np.finfo(self.floats_out[k]).nmant)

    def least(self, k: int) -> float:
        """Return more than underflow loses in an output column."""
        floats = self.floats_out[k]
        return 1e-300 if floats is np.float64 else 4 * float(np.finfo(floats).tiny)

    def as_held(self, i: int, number: float) -> float:
        """Return a number as numpy takes it beside an input column: rounded to the column's floats."""
        dtypes = list(self.sample.dtypes) if isinstance(self.sample, pd.DataFrame) else [self.sample.dtype]
        joint = np.result_type(*(d if isinstance(d, np.dtype) and d.kind != "M" else np.float64 for d in dtypes))
        return float(joint.type(number)) if joint.kind == "f" else float(number)

    def transformed(self, rows: Any) -> NDArray[Any]:
        """Return the dense output of the fitted transformer; its refusals are ours."""
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return dense(self.fitted.transform(rows))
        except Exception as error:
            raise UnsupportedModel(
                f"{self.where} does not take every value of the space: {type(error).__name__}: {str(error)[:300]}. "
                "Narrow the space to what the pipeline accepts."
            ) from error

    def refuse(self, why: str) -> UnsupportedModel:
        """Return the refusal of this step."""
        return UnsupportedModel(f"cannot read {self.where}: {why}")


def floats_of(output: Any) -> list[FloatType]:
    """Return the floats that each column of a transformer's output holds."""
    dtypes = list(output.dtypes) if isinstance(output, pd.DataFrame) else [output.dtype] * output.shape[1]
    narrow = (np.dtype(np.float16), np.dtype(np.float32))
    return [dtype.type if isinstance(dtype, np.dtype) and dtype in narrow else np.float64 for dtype in dtypes]


def dense(output: Any) -> NDArray[Any]:
    """Return a transformer's output as a dense array."""
    if hasattr(output, "toarray"):
        return np.asarray(output.toarray())
    if hasattr(output, "to_numpy"):
        return np.asarray(output.to_numpy())
    return np.asarray(output)


def at_rest(sample: Any, position: int, rows: int) -> NDArray[Any]:
    """Return a column of the sample row, repeated."""
    cell: Any = sample.iloc[0, position] if isinstance(sample, pd.DataFrame) else sample[0, position]
    if isinstance(cell, str | bool) or sample_dtype(sample) == np.dtype(object):
        return as_objects([cell] * rows)
    return np.full(rows, cell)


def sample_dtype(sample: Any) -> Any:
    """Return the dtype of a row, ``None`` where it is a frame."""
    return None if isinstance(sample, pd.DataFrame) else sample.dtype


def _is_between(column: NDArray[Any], dtype: Any) -> bool:
    """Return whether a column holds fractions where a frame has whole numbers: thresholds are sought between these too."""
    return column.dtype.kind == "f" and pd.api.types.is_integer_dtype(dtype) and not np.isnan(column).any()


def contained(block: Sequence[NDArray[Any]], sample: Any) -> Any:
    """Return columns in the container that a sample row came in."""
    if isinstance(sample, pd.DataFrame):
        made = pd.DataFrame(
            {
                position: column if _is_between(column, dtype) else pd.Series(column, dtype=dtype)
                for position, (column, dtype) in enumerate(zip(block, sample.dtypes, strict=True))
            }
        )
        made.columns = sample.columns
        return made
    if hasattr(sample, "toarray"):
        from scipy import sparse

        return sparse.csr_matrix(np.column_stack([column.astype(np.float64) for column in block]))
    if sample.dtype == np.dtype(object):
        made_array = np.empty((len(block[0]), len(block)), dtype=object)
        for position, column in enumerate(block):
            made_array[:, position] = column
        return made_array
    return np.column_stack([column.astype(np.float64) for column in block]).astype(sample.dtype)

"""real, integer, ordinal and categorical: how users make features; date is in :mod:`mace.space.dates`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mace.errors import InvalidSpace
from mace.space.dtypes import Category
from mace.space.features import Categorical, Integer, Level, Ordinal, Real, check_missing, is_missing


def real(
    low: float, high: float, step: float | None = None, missing: bool = False, *, dtype: str | None = None
) -> Real:
    """Return a real feature.

    Parameters
    ----------
    low, high : float
        The range, both ends included.
    step : float, optional
        Counterfactuals take only ``low + k * step`` or the factual's own value.
    missing : bool
        Whether NaN is a value of the feature.
    dtype : str, optional
        The dtype of its column where it is not float64: ``"float32"``, ``"float16"``, ``"Float32"``, ``"Float64"``. Values are numbers of
        that dtype, the ends of the range among them, and the model is asked with it.

    Examples
    --------
    >>> real(0, 250_000, step=100)
    real(0.0, 250000.0, step=100.0)
    >>> real(0, 0.1, dtype="float32").high
    0.10000000149011612
    """
    return Real(low, high, step, missing, dtype)


def integer(
    low: int, high: int, step: int | None = None, missing: bool = False, *, dtype: str | None = None
) -> Integer:
    """Return an integer feature; parameters as for :func:`real`.

    Without ``dtype`` the model is asked with int64, or float64 where values may be missing.

    Examples
    --------
    >>> integer(18, 90)
    integer(18, 90)
    """
    return Integer(low, high, step, missing, dtype)


def ordinal(levels: Sequence[Level], *, dtype: str | Category | None = None) -> Ordinal:
    """Return an ordinal feature with ``levels`` in ascending order; ``dtype`` as for :func:`categorical`.

    Examples
    --------
    >>> ordinal(["primary", "secondary", "degree"]).size
    3
    """
    return Ordinal(_as_levels(levels, "ordinal"), dtype)


def categorical(levels: Sequence[Level], missing: bool = False, *, dtype: str | Category | None = None) -> Categorical:
    """Return a categorical feature; two levels make it binary.

    Parameters
    ----------
    levels : sequence
        Text, numbers or booleans; ``None`` or NaN is the level of missing values, given to the model as it stands here.
    missing : bool
        Whether NaN is a further level.
    dtype : str or Category, optional
        The dtype of its column, ``"category"`` or ``"string"``, say; as pandas makes a column of the levels where not given.

    Examples
    --------
    >>> categorical(["rent", "own", "free"]).range
    Fraction(1, 1)
    >>> categorical(["rent", "own"], missing=True).size
    3
    """
    given_second: object = missing
    if isinstance(levels, str) and isinstance(given_second, str):
        raise InvalidSpace(f"categorical: the levels are a list: mace.categorical([{levels!r}, {given_second!r}]).")
    check_missing(missing)
    given = _as_levels(levels, "categorical")
    return Categorical((*given, math.nan) if missing and not any(map(is_missing, given)) else given, dtype)


def _as_levels(levels: Sequence[Level], kind: str) -> tuple[Level, ...]:
    if isinstance(levels, str):
        raise InvalidSpace(f"{kind}: levels is the text {levels!r}; give a list of levels, e.g. {kind}([{levels!r}]).")
    try:
        return tuple(levels)
    except TypeError as error:
        raise InvalidSpace(f"{kind}: levels is {levels!r}; give a list of levels.") from error

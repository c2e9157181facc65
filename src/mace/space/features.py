"""The kinds of features: real, integer (and, in :mod:`mace.space.dates`, dates), ordinal, categorical.

Inside MACE a feature's value is a *number*: a real or integer feature its own, an ordinal or categorical feature the position of
its level; a missing value is ``None``. Distances, programs and solvers see numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from mace.errors import InvalidSpace, cut
from mace.exact import decimal_fraction
from mace.registry import resolve
from mace.space.dtypes import FLOAT_DTYPES, Category, FloatType, check_category, check_integer, check_real

Level = str | int | float | bool | None
"""A level; ``None`` or NaN is the level of missing values."""
Number = int | float
Value = Number | None
"""A feature's value as a number; ``None`` is missing."""

MOST_LEVELS = 10_000
"""Levels of one feature: more are an identifier, not something that could have been different."""


def restore(record: Any, state: Sequence[object]) -> None:
    """Fill a frozen record from a pickle's state; the last fields, which earlier versions did not write, have their defaults."""
    own = _in_order(record)
    later = [each.default if each.default_factory is MISSING else each.default_factory() for each in own[len(state) :]]
    for each, value in zip(own, [*state, *later], strict=True):
        object.__setattr__(record, each.name, value)


def state_of(record: Any) -> list[object]:
    """Return what a pickle holds of a frozen record, as :func:`restore` takes it."""
    return [getattr(record, each.name) for each in _in_order(record)]


def _in_order(record: Any) -> list[Field[Any]]:
    """Return a record's fields, those last that are given by name only: a later version added them."""
    return sorted(fields(record), key=lambda each: bool(each.kw_only))


def _shown(feature: Feature) -> str:
    """Return the call that makes a feature, cut where it is long."""
    said: str = resolve("mace.space.saved:show_feature")(feature)
    return cut(said)


@dataclass(frozen=True, slots=True, repr=False)
class Real:
    """A real number in ``[low, high]``; with ``step``, only ``low + k * step`` and the factual's own value.

    With ``dtype``, only numbers that a column of this dtype holds; the ends are rounded to it. ``observed`` is the range whose width
    distances divide by, where that is another one. ``round_to`` is what its values in the data are multiples of, which is no part of the
    domain: a space made of this feature prefers such answers.
    """

    low: float
    high: float
    step: float | None = None
    missing: bool = False
    dtype: str | None = None
    observed: tuple[float, float] | None = None
    round_to: float | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", check_real(self.dtype))
        object.__setattr__(self, "observed", _check_observed(self.observed, "real"))
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if value is not None or name != "step":
                number = _finite(value, name, "real")
                object.__setattr__(
                    self, name, number if name == "step" else _finite(self.nearest(number), name, "real")
                )
        _check_range(self.low, self.high, self.step, "real")
        check_missing(self.missing)
        if self.step is not None and self.step < 2 * self.spacing(max(abs(self.low), abs(self.high))):
            raise InvalidSpace(
                f"real: step is {self.step}, finer than {self.dtype or 'floats'} are near {self.high}. Leave the step out."
            )

    __getstate__, __setstate__ = state_of, restore
    __repr__ = _shown

    @property
    def floats(self) -> FloatType:
        """The floats that its values are."""
        return np.float64 if self.dtype is None else FLOAT_DTYPES[self.dtype]

    @property
    def is_single(self) -> bool:
        """Whether its values are floats of fewer digits than float64's."""
        return self.dtype is not None and self.floats is not np.float64

    def nearest(self, value: float) -> float:
        """Return the number that a column of its dtype holds for ``value``."""
        if not self.is_single:
            return value
        with np.errstate(over="ignore", under="ignore"):
            return float(self.floats(value))

    def spacing(self, value: float) -> float:
        """Return how far the floats of its dtype are apart at ``value``."""
        return math.ulp(value) if not self.is_single else abs(float(np.spacing(self.floats(value))))

    def text(self, value: float) -> str:
        """Return the shortest decimal that its dtype reads as ``value``."""
        return repr(value) if not self.is_single else str(self.floats(value))

    def decimal(self, value: float) -> Fraction:
        """Return the number that a person means by one of its values: the shortest decimal."""
        return Fraction(self.text(float(value)))

    @property
    def range(self) -> Fraction:
        """What distances divide by: the exact width of the range, or of the one observed."""
        return _width(*(self.observed or (self.low, self.high)))

    @property
    def size(self) -> int | None:
        """How many values there are (missing not counted); ``None`` when infinitely many."""
        if self.low == self.high:
            return 1
        return None if self.step is None else _grid(self)[0]

    @property
    def is_exact_grid(self) -> bool:
        """Whether every ``low + k * step`` is a float, so that the grid is an arithmetic progression of floats."""
        return self.step is not None and _grid(self)[1]

    @property
    def decimals(self) -> tuple[Fraction, Fraction]:
        """``low`` and ``step`` as the decimals they are written as."""
        return _decimals(self)

    def value_at(self, k: int) -> float:
        """Return the float nearest to ``low + k * step``, with low and step as the decimals they are written as."""
        low, step, unit = _whole_units(self)
        return self.nearest((low + k * step) / unit)

    def has(self, value: Number) -> bool:
        """Return whether ``value`` is in range and on the grid."""
        if not self.low <= value <= self.high or self.nearest(float(value)) != value:
            return False
        if self.step is None or self.low == self.high:
            return True
        if _grid(self)[0] <= MOST_COUNTED:
            return self.value_at(round((value - self.low) / self.step)) == value
        low, step = self.decimals
        k: int = round((self.decimal(value) - low) / step)
        return self.value_at(k) == value


@lru_cache(maxsize=10_000)
def _width(low: float, high: float) -> Fraction:
    return Fraction(high) - Fraction(low)


MOST_COUNTED = 2**40
"""Of so many values of a grid floats tell the place."""


@lru_cache(maxsize=10_000)
def _whole_units(feature: Real) -> tuple[int, int, int]:
    """Return ``low`` and ``step`` as whole numbers of a unit, and how many such units 1 is: a quotient of them is rounded once."""
    low, step = _decimals(feature)
    unit = math.lcm(low.denominator, step.denominator)
    return int(low * unit), int(step * unit), unit


@lru_cache(maxsize=10_000)
def _decimals(feature: Real) -> tuple[Fraction, Fraction]:
    assert feature.step is not None, "a grid needs a step"
    return feature.decimal(feature.low), decimal_fraction(feature.step)


@lru_cache(maxsize=10_000)
def _grid(feature: Real) -> tuple[int, bool]:
    """Return how many values a grid has, and whether all are floats."""
    low, step = _decimals(feature)
    size = int((feature.decimal(feature.high) - low) // step) + 1
    last = low + step * (size - 1)
    if low != Fraction(feature.low) or step != Fraction(feature.step or 0):
        return size, False
    quantum = math.lcm(low.denominator, step.denominator)
    digits = 1 + int(np.finfo(feature.floats).nmant)
    return size, max(abs(low), abs(last)) * quantum <= 1 << digits


@dataclass(frozen=True, slots=True, repr=False)
class Integer:
    """A whole number in ``[low, high]``; with ``step``, only ``low + k * step`` and the factual's own value.

    ``dtype`` is that of its column, which must hold every whole number of the range. ``observed`` is the range whose width
    distances divide by, where that is another one. ``round_to`` is as for :class:`Real`.
    """

    low: int
    high: int
    step: int | None = None
    missing: bool = False
    dtype: str | None = None
    observed: tuple[float, float] | None = None
    round_to: float | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "observed", _check_observed(self.observed, "integer"))
        for name in ("low", "high", "step"):
            value = getattr(self, name)
            if value is None and name == "step":
                continue
            number = _finite(value, name, "integer")
            if number != int(number) or abs(number) > 2**53:
                raise InvalidSpace(
                    f"integer: {name} is {value!r}; it must be a whole number below 2**53. Use real(...) for fractions."
                )
            object.__setattr__(self, name, int(number))
        _check_range(self.low, self.high, self.step, "integer")
        check_missing(self.missing)
        object.__setattr__(self, "dtype", self._checked_dtype())

    def _checked_dtype(self) -> str | None:
        return check_integer(self.dtype, self.low, self.high, self.missing)

    __getstate__, __setstate__ = state_of, restore
    __repr__ = _shown

    @property
    def range(self) -> Fraction:
        """What distances divide by: the width of the range, or of the one observed."""
        return _width(*(self.observed or (self.low, self.high)))

    @property
    def size(self) -> int:
        """How many values there are (missing not counted)."""
        return (self.high - self.low) // (self.step or 1) + 1

    def value_at(self, k: int) -> int:
        """Return ``low + k * step``."""
        return self.low + k * (self.step or 1)

    def text(self, value: Number) -> str:
        """Return a value for people."""
        return str(value)

    def has(self, value: Number) -> bool:
        """Return whether ``value`` is whole, in range and on the grid."""
        return self.low <= value <= self.high and (value - self.low) % (self.step or 1) == 0


@dataclass(frozen=True, slots=True, repr=False)
class Leveled:
    """One of several levels. ``dtype`` is that of its column."""

    levels: tuple[Level, ...]
    dtype: str | Category | None = None

    __repr__ = _shown

    @property
    def size(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    @property
    def missing(self) -> bool:
        """Levels have no missing state beside them: without order, being missing is a level like the others."""
        return False


@dataclass(frozen=True, slots=True, repr=False)
class Ordinal(Leveled):
    """One of several levels in order; its distance counts levels. ``dtype`` is that of its column."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", _check_levels(self.levels, "ordinal"))
        object.__setattr__(self, "dtype", check_category(self.dtype, self.levels, ordered=True))

    __setstate__ = restore

    @property
    def range(self) -> Fraction:
        """The number of levels less one."""
        return Fraction(len(self.levels) - 1)


@dataclass(frozen=True, slots=True, repr=False)
class Categorical(Leveled):
    """One of several levels without order; any change has distance 1.

    One of them, the last, may be ``None`` or NaN: the value is missing, and the model is asked with just that. ``dtype`` is that of its
    column.
    """

    def __post_init__(self) -> None:
        checked = _check_levels(self.levels, "categorical", may_miss=True)
        object.__setattr__(self, "levels", tuple(sorted(checked, key=is_missing)))
        known = tuple(level for level in self.levels if not is_missing(level))
        object.__setattr__(self, "dtype", check_category(self.dtype, known, ordered=False))

    def __reduce__(self) -> tuple[type[Categorical], tuple[Any, ...]]:
        """Pickle by what makes it: a NaN among the levels stays the same object, and so equal to itself."""
        return Categorical, (self.levels, self.dtype)

    @property
    def range(self) -> Fraction:
        """1, or 0 where there is a single level."""
        return Fraction(min(1, len(self.levels) - 1))

    @property
    def missing_level(self) -> int | None:
        """The position of the level of missing values."""
        return next((k for k, level in enumerate(self.levels) if is_missing(level)), None)


Feature = Real | Integer | Ordinal | Categorical


def with_dtype(feature: Feature, dtype: str | Category | None) -> Feature:
    """Return a feature in a column of a dtype, where it has none of its own and that dtype holds its values."""
    if dtype is None or feature.dtype is not None:
        return feature
    try:
        return replace(feature, dtype=dtype)  # type: ignore[arg-type]
    except InvalidSpace:
        return feature


def with_decimals(feature: Feature, step: float | None) -> Feature:
    """Return a feature that notes of what its values in the data are multiples; of levels, as it is."""
    if not isinstance(feature, Real | Integer) or feature.round_to == step:
        return feature
    return replace(feature, round_to=step)


def grid_values(feature: Feature) -> Iterator[Number]:
    """Yield every value of a finite feature in ascending order, missing not included."""
    match feature:
        case Ordinal(levels) | Categorical(levels):
            yield from range(len(levels))
        case Integer():
            yield from (feature.value_at(k) for k in range(feature.size))
        case Real():
            if feature.size == 1:
                yield feature.low
            else:
                assert feature.size is not None, "an unstepped real feature has no list of values"
                yield from (feature.value_at(k) for k in range(feature.size))


def _finite(value: object, name: str, kind: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool | str | bytes) or not math.isfinite(number):
        raise InvalidSpace(f"{kind}: {name} is {value!r}; it must be a finite number.")
    return number


def _check_observed(observed: object, kind: str) -> tuple[float, float] | None:
    if observed is None:
        return None
    ends = [_finite(end, "observed", kind) for end in observed] if isinstance(observed, tuple | list) else []
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise InvalidSpace(f"{kind}: observed is {observed!r:.60}; give two numbers in order, or None for the range.")
    return ends[0], ends[1]


def _check_range(low: float, high: float, step: float | None, kind: str) -> None:
    if low > high:
        raise InvalidSpace(f"{kind}: low is {low}, above high, {high}. Swap them: {kind}({high}, {low}).")
    if step is not None and step <= 0:
        raise InvalidSpace(f"{kind}: step is {step}; it must be positive, or None for no grid.")


def check_missing(missing: object) -> None:
    """Raise unless ``missing`` is True or False."""
    if not isinstance(missing, bool):
        raise InvalidSpace(f"missing is {missing!r}; it must be True or False.")


def _check_levels(levels: Sequence[Level], kind: str, *, may_miss: bool = False) -> tuple[Level, ...]:
    if len(levels) > MOST_LEVELS:
        raise InvalidSpace(
            f"{kind}: {len(levels):,} levels; at most {MOST_LEVELS:,} are accepted. Group them, or leave the feature out."
        )
    plain = tuple(_one_nan(plain_scalar(level)) for level in levels)
    if not plain:
        raise InvalidSpace(f"{kind}: no levels; give at least one.")
    if sum(map(is_missing, plain)) > may_miss:
        raise InvalidSpace(
            f"{kind}: one level may stand for missing values, not several."
            if may_miss
            else f"{kind}: missing values have no place in an order. Name one, e.g. 'missing', or make the feature categorical."
        )
    for level in plain:
        if is_missing(level):
            continue
        if not isinstance(level, str | int | float | bool) or (isinstance(level, float) and not math.isfinite(level)):
            raise InvalidSpace(
                f"{kind}: level {level!r} is a {type(level).__name__}; use text, finite numbers or booleans."
            )
    if len(set(plain)) < len(plain):
        seen: set[object] = set()
        doubled = next(level for level in plain if level in seen or seen.add(level))  # type: ignore[func-returns-value]
        raise InvalidSpace(f"{kind}: level {doubled!r} stands twice; each level once.")
    return plain  # type: ignore[return-value]


def is_missing(value: object) -> bool:
    """Return whether a cell or level says that there is no value: ``None``, NaN, or pandas' own."""
    if isinstance(value, (float, np.datetime64)):
        return bool(value != value)
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def shown_level(level: Level) -> str | int | float | bool:
    """Return a level as answers hold it: NaN where it is missing."""
    return math.nan if level is None else level


def _one_nan(value: object) -> object:
    """Return a missing value as ``None`` or as the one NaN that levels hold, so that tuples of levels can be compared."""
    return math.nan if value is not None and is_missing(value) else value


def position_of(levels: Sequence[Level], value: object) -> int | None:
    """Return the position of a level; ``None`` where it is none. Text and numbers differ; all missing values are alike."""
    if is_missing(value):
        return next((position for position, level in enumerate(levels) if is_missing(level)), None)
    try:
        return levels.index(value)
    except ValueError:
        return None


def plain_scalar(value: object) -> object:
    """Return a numpy scalar as the Python scalar that it is; anything else unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value

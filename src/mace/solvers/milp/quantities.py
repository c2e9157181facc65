"""Columns, and linear forms of columns: what a relaxation bounds.

A column is a feature's number, the indicator of a level, or a variable of the model; a form is a sum Σ a·x of columns. Both
are *quantities* with a number. Coefficients are exact; their floats are used with a bound on the error.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from mace.exact import float_down
from mace.space import Integer, Real, Value

KEY_BITS = 40
"""Forms whose coefficients agree to this many bits count as one; what they differ by is kept as a remainder."""

MOST_LISTED = 4096

ZERO_OR_ONE = (0.0, 1.0)
"""The domain of an indicator."""

Domain = Sequence[float]
"""The values that a column can take, ascending."""


@dataclass(slots=True)
class Affine:
    """Σ a·x + shift."""

    terms: dict[int, Fraction] = field(default_factory=dict)
    shift: Fraction = Fraction(0)

    def plus(self, other: Affine, factor: Fraction = Fraction(1)) -> Affine:
        """Return the sum of this and ``factor`` times the other."""
        terms = dict(self.terms)
        for column, a in other.terms.items():
            terms[column] = terms.get(column, Fraction(0)) + factor * a
        return Affine({column: a for column, a in terms.items() if a}, self.shift + factor * other.shift)

    def times(self, factor: Fraction) -> Affine:
        """Return the product with a number."""
        if not factor:
            return Affine()
        return Affine({column: factor * a for column, a in self.terms.items()}, factor * self.shift)


class GridDomain(Sequence[float]):
    """The values of a feature on a grid, and the factual's own value where that lies off it."""

    def __init__(self, feature: Integer | Real, own: float | None) -> None:
        assert feature.size is not None
        self._feature, self._size, self._own = feature, feature.size, own
        self._place = self._size if own is None else bisect.bisect(range(self._size), own, key=self._value)

    def _value(self, k: int) -> float:
        return float(self._feature.low if self._size == 1 else self._feature.value_at(k))

    def __len__(self) -> int:
        return self._size + (self._own is not None)

    def __getitem__(self, index: int) -> float:  # type: ignore[override]
        if not 0 <= index < len(self):
            raise IndexError(index)
        if self._own is not None and index == self._place:
            return self._own
        return self._value(index - (self._own is not None and index > self._place))


def domain_of(feature: Integer | Real, own: Value) -> Domain | None:
    """Return the values that a numeric feature can take; ``None`` where it can take every float of its range."""
    if feature.size is None:
        return None
    grid = GridDomain(feature, None if own is None or feature.has(own) else float(own))
    return tuple(grid) if len(grid) <= MOST_LISTED else grid


def greatest(domain: Domain | None, limit: Fraction | float, *, strict: bool) -> float:
    """Return the greatest value of a domain (``None``: of all floats) that is at most, or below, ``limit``; -inf where there is none."""
    if domain is None:
        return _float_below(Fraction(limit), strict)
    index = bisect.bisect_left(domain, limit) if strict else bisect.bisect_right(domain, limit)
    return domain[index - 1] if index else -math.inf


def least(domain: Domain | None, limit: Fraction | float, *, strict: bool) -> float:
    """Return the least value of a domain that is at least, or above, ``limit``; inf where there is none."""
    if domain is None:
        return -_float_below(-Fraction(limit), strict)
    index = bisect.bisect_right(domain, limit) if strict else bisect.bisect_left(domain, limit)
    return domain[index] if index < len(domain) else math.inf


def _float_below(limit: Fraction, strict: bool) -> float:
    nearest = float_down(limit)
    return math.nextafter(nearest, -math.inf) if strict and nearest == limit else nearest


@dataclass(frozen=True, slots=True)
class Scaled:
    """A form with a factor: factor · (form + remainder), where the remainder is small."""

    form: int
    factor: Fraction
    remainder: tuple[tuple[int, float], ...]


class Quantities:
    """All columns and forms of one problem.

    Attributes
    ----------
    low, high : list of float
        Bounds before anything is asked.
    domain : list of Domain or None
        The values of a discrete column.
    terms : list of tuples (column, coefficient), or None for a column
        The form, its coefficients rounded to floats.
    exact : list of dict, or None for a column
        The coefficients themselves.
    is_feature : list of bool
        Whether the column is the number of a numeric feature, so that its values are floats.
    """

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.domain: list[Domain | None] = []
        self.is_feature: list[bool] = []
        self.terms: list[tuple[tuple[int, float], ...] | None] = []
        self.exact: list[dict[int, Fraction] | None] = []
        self._forms: dict[tuple[tuple[int, int, int], ...], int] = {}

    def __len__(self) -> int:
        return len(self.low)

    def column(
        self, low: float = -math.inf, high: float = math.inf, domain: Domain | None = None, *, is_feature: bool = False
    ) -> int:
        """Return a new column."""
        self.low.append(low)
        self.high.append(high)
        self.domain.append(domain)
        self.is_feature.append(is_feature)
        self.terms.append(None)
        self.exact.append(None)
        return len(self.low) - 1

    def binary(self) -> int:
        """Return a new column with the values 0 and 1."""
        return self.column(0.0, 1.0, ZERO_OR_ONE)

    def form(self, terms: dict[int, Fraction]) -> Scaled:
        """Return the form of at least two columns, scaled by a power of two, new or known."""
        ordered = sorted(terms.items())
        lead = ordered[0][1]
        factor = Fraction(2) ** _exponent(lead) * (1 if lead > 0 else -1)
        scaled = {column: a / factor for column, a in ordered}
        key = tuple((column, *_digits(a)) for column, a in scaled.items())
        if key not in self._forms:
            self._forms[key] = self.column()
            self.terms[-1] = tuple((column, float(a)) for column, a in scaled.items())
            self.exact[-1] = scaled
        known = self._forms[key]
        exact = self.exact[known]
        assert exact is not None
        differences = ((column, a - exact[column]) for column, a in scaled.items())
        remainder = tuple((column, _up(abs(d))) for column, d in differences if d)
        return Scaled(known, factor, remainder)


def _up(value: Fraction) -> float:
    return math.nextafter(float(value), math.inf)


def _exponent(value: Fraction) -> int:
    """Return the greatest power of two below a number, or so little above it that they count as equal."""
    return math.frexp(float(value) * (1 + 2.0**-KEY_BITS))[1] - 1


def _digits(value: Fraction) -> tuple[int, int]:
    """Return the leading bits of a number, and its exponent."""
    exponent = _exponent(value)
    return round(math.ldexp(float(value), KEY_BITS - exponent)), exponent

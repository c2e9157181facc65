"""From an answer to a region: the widest ranges around it in which every row is proved to reach the target."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mace.answer.conflicts import Undecided
from mace.constraints import Constraint, fixed, one_of, within
from mace.errors import cut
from mace.exact import decimal_fraction, greatest_float, least_float
from mace.space import Categorical, Date, Feature, FeatureSpace, Integer, Ordinal, Point, Real, Scalar, Value
from mace.space.decimals import decimal_of, dtype_of
from mace.space.features import is_missing, shown_level

if TYPE_CHECKING:
    from mace.answer.counterfactual import Change
    from mace.answer.nearest import Find
    from mace.problem import Limits, Problem

END_PRECISION = 2.0**-20
"""A real end is found to this share of the feature's range."""

IsSafe = Callable[[list[Constraint]], bool]
"""Whether every row that fulfils some constraints is proved to reach the target."""


@dataclass(frozen=True, slots=True)
class Ends:
    """What one feature may be: from ``low`` to ``high``, or one of ``levels``."""

    low: Scalar | None = None
    high: Scalar | None = None
    levels: tuple[Scalar, ...] | None = None

    def __str__(self) -> str:
        if self.levels is not None:
            return "one of " + ", ".join(map(str, self.levels))
        return f"{self.low} to {self.high}"

    def constraint(self, name: str) -> Constraint:
        """Return that a feature is so."""
        if self.levels is not None:
            return one_of(name, self.levels)
        assert self.low is not None
        return within(name, self.low, self.high)


@dataclass(frozen=True, slots=True)
class RecourseRegion(Mapping[str, Ends]):
    """Ranges of features in which every plausible row, all other features as in the answer, is proved to reach the target.

    Where the space knows how its data are rounded the ends are such values, rounded inward; of columns of float32 and float16 they are
    the decimals of values. A value off the grid, from which the answer moved away, is in no range. No single range can be widened
    otherwise without losing the proof (a real end: by more than a millionth of the feature's range, or such a step), unless
    ``complete`` is False, because time ran out.
    """

    ends: dict[str, Ends]
    complete: bool = True

    def __getitem__(self, name: str) -> Ends:
        return self.ends[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __repr__(self) -> str:
        return f"<RecourseRegion: {cut(str(self), 150)}{'' if self.complete else '; not complete'}>"

    def __str__(self) -> str:
        return " and ".join(f"{name} {ends}" for name, ends in self.ends.items())


class Widening:
    """The search for a region around one point; all features but ``names`` and ``free`` ones stay as they are.

    No range holds what its feature is in ``before``.
    """

    def __init__(
        self,
        space: FeatureSpace,
        point: Point,
        names: list[str],
        is_safe: IsSafe,
        free: Collection[str] = (),
        before: Mapping[str, int | float] | None = None,
    ) -> None:
        self.space, self.names, self.is_safe, self.before = space, names, is_safe, before or {}
        self.at = at = dict(zip(space, point, strict=True))
        self.fixed = [name for name in space if name not in names and name not in free]
        self.ranges: dict[str, tuple[int | float, int | float]] = {}
        self.levels: dict[str, list[int]] = {}
        for name in names:
            value = at[name]
            assert value is not None
            if isinstance(space[name], Categorical):
                self.levels[name] = [int(value)]
            else:
                self.ranges[name] = (value, value)

    def run(self) -> None:
        """Widen one feature after the other, as far as the proof goes."""
        for name in self.names:
            feature = self.space[name]
            if isinstance(feature, Categorical):
                for level in range(len(feature.levels)):
                    if level not in self.levels[name]:
                        self._try_level(name, level)
            else:
                self._push_end(name, feature, up=True)
                self._push_end(name, feature, up=False)

    def _try_level(self, name: str, level: int) -> None:
        more = sorted([*self.levels[name], level])
        if self.is_safe(self._constraints(self.ranges, self.levels | {name: more})):
            self.levels[name] = more

    def _push_end(self, name: str, feature: Feature, *, up: bool) -> None:
        """Find the farthest end on one side by halving."""
        inside, outside = self.ranges[name][up], _ends(feature)[up]
        if inside == outside or self._try_end(name, outside, up=up):
            return
        if isinstance(feature, Real | Integer) and feature.step is not None:
            self._push_along_grid(name, feature, inside, up=up)
            return
        finest = END_PRECISION * float(feature.range) if isinstance(feature, Real) else 1
        while abs(outside - inside) > finest:
            middle = (inside + outside) / 2 if isinstance(feature, Real) else (inside + outside) // 2
            if middle in (inside, outside):
                break
            if self._try_end(name, middle, up=up):
                inside = middle
            else:
                outside = middle
        if isinstance(feature, Real) and inside != (own := self.at[name]) and own is not None:
            self._try_end(name, _plainest(*sorted((inside, outside))), up=up)

    def _push_along_grid(self, name: str, feature: Real | Integer, own: int | float, *, up: bool) -> None:
        """Find the farthest value of a grid on one side, where its last value on that side is known to be too far."""
        places = range(feature.size or 0)
        near = (bisect_right if up else bisect_left)(places, own, key=feature.value_at)
        near, far = (near - 1, places[-1]) if up else (near, 0)
        while abs(far - near) > 1:
            middle = (near + far) // 2
            if self._try_end(name, feature.value_at(middle), up=up):
                near = middle
            else:
                far = middle

    def _try_end(self, name: str, end: int | float, *, up: bool) -> bool:
        """Take a wider end where the proof goes that far; return whether it does."""
        low, high = self.ranges[name]
        wider = (low, end) if up else (end, high)
        if name in self.before and wider[0] < self.before[name] < wider[1]:
            return False
        if not self.is_safe(self._constraints(self.ranges | {name: wider}, self.levels)):
            return False
        self.ranges[name] = wider
        return True

    def _constraints(
        self, ranges: dict[str, tuple[int | float, int | float]], chosen: dict[str, list[int]]
    ) -> list[Constraint]:
        """Return the constraints that say what a region is."""
        made: list[Constraint] = [fixed(*self.fixed)] if self.fixed else []
        for name, (low, high) in ranges.items():
            feature = self.space[name]
            levels = feature.levels if isinstance(feature, Ordinal) else None
            ends = (
                Ends(levels[int(low)], levels[int(high)]) if levels else Ends(meant(feature, low), meant(feature, high))
            )
            made.append(ends.constraint(name))
        for name, numbers in chosen.items():
            feature = self.space[name]
            assert isinstance(feature, Categorical)
            made.append(one_of(name, [feature.levels[k] for k in numbers]))
        return made

    def region(self, *, complete: bool) -> RecourseRegion:
        """Return what has been proved so far."""
        ends, at = dict[str, Ends](), self.at
        for name in self.names:
            feature = self.space[name]
            if isinstance(feature, Categorical):
                ends[name] = Ends(levels=tuple(shown_level(feature.levels[k]) for k in self.levels[name]))
            else:
                low, high = self.ranges[name]
                if isinstance(feature, Real) and feature.is_single:
                    dtype = dtype_of(feature)
                    low = least_float(decimal_fraction(meant(feature, low)), dtype)
                    high = greatest_float(decimal_fraction(meant(feature, high)), dtype)
                if isinstance(feature, Real | Integer) and feature.step is not None:
                    pass  # they are values of the grid already
                elif name in self.space.round_to and not isinstance(feature, Ordinal):
                    low, high = _rounded_in(feature, self.space.round_to[name], (low, at[name], high))
                elif isinstance(feature, Real) and not feature.is_single:
                    low, high = _plain_in(feature, (low, at[name], high))
                ends[name] = Ends(_shown(feature, low), _shown(feature, high))
        return RecourseRegion(ends, complete)


def widened(
    problem: Problem,
    names: Iterable[str],
    find: Find,
    limits: Limits,
    free: Collection[str] = (),
    before: Mapping[str, int | float] | None = None,
) -> RecourseRegion:
    """Return the region around the row of a problem in which no row of its goal lies, as far as is proved in time.

    Of the features ``names`` vary, in this order, those that are missing left out; the ``free`` ones may be anything; others stay.
    ``before`` are values off the grid of a feature, from which an answer has changed it: no range holds them: nothing is proved of them.
    """
    space, point = problem.space, problem.factual

    def is_safe(constraints: list[Constraint]) -> bool:
        found = find(problem, tuple(each.bind(space, point) for each in constraints), limits).bounds
        if not found.is_infeasible and found.point is None and limits.remaining() <= 0:
            raise Undecided
        return found.is_infeasible

    known = [name for name in names if point[space.index(name)] is not None]
    widening = Widening(space, point, known, is_safe, free, before)
    try:
        widening.run()
    except Undecided:
        return widening.region(complete=False)
    return widening.region(complete=True)


def off_grid(space: FeatureSpace, changes: Iterable[Change]) -> dict[str, int | float]:
    """Return by feature, of those that change, the values before that lie on no grid: only the row itself may have them."""
    found: dict[str, int | float] = {}
    for change in changes:
        feature, value = space[change.feature], change.before
        if isinstance(feature, Real | Integer) and feature.step is not None and not is_missing(value):
            number: Any = feature.number(value) if isinstance(feature, Date) else value
            found |= {} if feature.has(number) else {change.feature: number}
    return found


def _rounded_in(
    feature: Real | Integer, step: float, ends: tuple[int | float, Value, int | float]
) -> tuple[int | float, int | float]:
    """Return the ends of a range as multiples of a step inside it, the answer's own value included; ends of the feature stay."""
    (low, own, high), unit = ends, decimal_fraction(step)
    assert own is not None
    number: type[int] | Callable[[float], float] = feature.nearest if isinstance(feature, Real) else int
    first, last = (
        number(float(up * unit))
        for up in (math.ceil(decimal_of(feature, low) / unit), math.floor(decimal_of(feature, high) / unit))
    )
    return (
        low if low == feature.low else min(first, own),
        high if high == feature.high else max(last, own),
    )


def _plain_in(feature: Real, ends: tuple[int | float, Value, int | float]) -> tuple[int | float, int | float]:
    """Return the ends of a range as decimals of few digits inside it, the answer's own value included; ends of the feature stay."""
    (low, own, high), finest = ends, END_PRECISION * float(feature.range)
    assert own is not None
    return (
        low if low in (own, feature.low) else min(_plainest(low, min(low + finest, own)), own),
        high if high in (own, feature.high) else max(_plainest(max(high - finest, own), high), own),
    )


def _plainest(low: float, high: float) -> float:
    """Return the decimal of fewest digits that is at least ``low`` and at most ``high``.

    Examples
    --------
    >>> _plainest(0.6999993, 0.7000017), _plainest(0.6999993, 0.7), _plainest(4160.2, 4161.7)
    (0.7, 0.7, 4161.0)
    """
    least, most = decimal_fraction(low), decimal_fraction(high)
    for digits in range(-20, 20):
        unit = Fraction(10) ** -digits
        first = math.ceil(least / unit) * unit
        if first <= most:
            return float(first)
    return low


def _ends(feature: Feature) -> tuple[int | float, int | float]:
    if isinstance(feature, Real | Integer):
        return feature.low, feature.high
    return 0, len(feature.levels) - 1


def _shown(feature: Feature, end: int | float) -> Scalar:
    if isinstance(feature, Ordinal):
        return shown_level(feature.levels[int(end)])
    if isinstance(feature, Date):
        return feature.text(end)
    return int(end) if isinstance(feature, Integer) else meant(feature, float(end))


def meant(feature: Feature, end: int | float) -> int | float:
    """Return a number as an end of a range: of a column of float32 or float16 the decimal of its value, as which constraints read it.

    Examples
    --------
    >>> from mace.space import real
    >>> meant(real(0, 1, dtype="float32"), 0.10000000149011612)
    0.1
    """
    if isinstance(feature, Real) and feature.is_single and feature.nearest(float(end)) == end:
        return float(feature.text(float(end)))
    return end

"""Where a column crosses thresholds: the exact floats of the original feature on which the fitted steps change sides.

A threshold is carried back step by step. One step's column is at most a threshold on some stretches of the column before it,
whose ends are floats; where the column before is at most each of these ends is the same question, one step nearer to the
feature. The feature itself is at most an end up to that end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Flags, Floats, Ints, rounded_in
from mace.models.preprocessing.traced import Traced, all_values, dtype_of, ends_of
from mace.space import FeatureSpace, Integer, Real
from mace.space.dtypes import FloatType

LONGEST_RANGE = 200_000
"""Whole numbers of a range up to this long are asked one by one."""

MOST_NEAR = 4096
"""The most floats around one threshold that are asked one by one."""

MOST_ALONE = 12
"""How many values of a step that is not correctly rounded are asked one by one as well."""

LARGEST_SINGLE = 3.4e38
"""Trees compare in float32, beyond which scikit-learn refuses a row."""


@dataclass(frozen=True, slots=True)
class Sides:
    """On which side of each threshold a column is, from the least value of something to the greatest.

    Attributes
    ----------
    first : bool array
        Whether the column is at most the threshold at the least value.
    edges : list of float arrays
        For each threshold, the values after which the side changes, in order.
    """

    first: Flags
    edges: list[Floats]


def sides(column: Traced, space: FeatureSpace, thresholds: Floats) -> Sides:
    """Return where a column of a numeric feature is at most each threshold.

    Raises
    ------
    UnsupportedModel
        The column is not known to be monotone between cuts, gives no finite number somewhere, or is so flat near a
        threshold that rounding decides too many floats.
    """
    feature = list(space.values())[column.feature]
    assert isinstance(feature, Real | Integer)
    if isinstance(feature, Integer) and feature.high - feature.low < LONGEST_RANGE:
        numbers = all_values(feature)
        return _listed(finite(column, space, numbers), numbers.astype(np.float64), thresholds)
    found = _carried(column, space, thresholds)
    _confirm(column, space, thresholds, found)
    return found


def finite(column: Traced, space: FeatureSpace, x: NDArray[Any]) -> Floats:
    """Return a column's values, which must be finite."""
    return _finite(column, space, np.asarray(column.values(x), dtype=np.float64), x)


def _finite(column: Traced, space: FeatureSpace, values: Floats, x: NDArray[Any]) -> Floats:
    wrong = ~(np.abs(values) < LARGEST_SINGLE)
    if wrong.any():
        raise UnsupportedModel(
            f"{column.where} makes {values[wrong][0]} of {x[wrong][0]} in {space.names[column.feature]!r}. Narrow the feature's range."
        )
    return values


def _listed(values: Floats, numbers: Floats, thresholds: Floats) -> Sides:
    """Return the sides of a column whose every value is known."""
    steps = np.diff(values)
    first = np.asarray(values[0] <= thresholds)
    if (steps >= 0).all() or (steps <= 0).all():
        rising = not (steps < 0).any()
        count = np.searchsorted(values if rising else values[::-1], thresholds, side="right")
        changes = count if rising else len(values) - count
        inside = (changes > 0) & (changes < len(values))
        return Sides(first, [numbers[[c - 1]] if ok else np.empty(0) for c, ok in zip(changes, inside, strict=True)])
    edges = []
    for threshold in thresholds:
        below = values <= threshold
        edges.append(numbers[:-1][below[1:] != below[:-1]])
    return Sides(first, edges)


# ---- carrying thresholds back


def _carried(column: Traced, space: FeatureSpace, thresholds: Floats) -> Sides:
    """Return the sides of a column over its feature, by those of the column that it is made from."""
    if not len(thresholds):
        return Sides(np.empty(0, dtype=bool), [])
    if not column.parents:
        low, high = ends_of(list(space.values())[column.feature])  # type: ignore[arg-type]
        inside = (low <= thresholds) & (thresholds < high)
        return Sides(
            low <= thresholds, [t[None] if ok else np.empty(0) for t, ok in zip(thresholds, inside, strict=True)]
        )
    source = column.parents[0]
    here = _local(column, space, thresholds)
    ends, which = np.unique(np.concatenate([*here.edges, np.empty(0)]), return_inverse=True)
    before = _carried(source, space, ends)
    first, edges, at = here.first.copy(), [], 0
    for k, own in enumerate(here.edges):
        chosen = which[at : at + len(own)]
        at += len(own)
        # Past every end the side changes; where two ends are passed at once, it stays.
        first[k] ^= bool(np.count_nonzero(~before.first[chosen]) % 2)
        joined = np.concatenate([*(before.edges[c] for c in chosen), np.empty(0)])
        distinct, times = np.unique(joined, return_counts=True)
        edges.append(distinct[times % 2 == 1])
    return Sides(first, edges)


def _confirm(column: Traced, space: FeatureSpace, thresholds: Floats, found: Sides) -> None:
    """Ask the fitted steps, all of them together, on both sides of every edge."""
    counts = np.array([len(edges) for edges in found.edges], dtype=np.int64)
    if not counts.sum():
        return
    edges = np.concatenate(found.edges)
    turn = np.concatenate([np.arange(count) for count in counts])
    below = np.repeat(found.first, counts) ^ (turn % 2 == 1)
    limit = np.repeat(thresholds, counts)
    feature = list(space.values())[column.feature]
    if isinstance(feature, Integer):
        edges = np.floor(edges).astype(dtype_of(feature))
        after = edges + 1
    else:
        assert isinstance(feature, Real)
        edges = rounded_in(edges, edges, feature.floats)[1]
        after = _beside(edges, 1, feature.floats)
    _confirm_alone(column, space, edges)
    for x, side in ((edges, below), (after, ~below)):
        if not np.array_equal(finite(column, space, x) <= limit, side):
            raise UnsupportedModel(
                f"cannot read {column.where} of {space.names[column.feature]!r}: asked as a whole, the steps before the model do not give "
                "what they give one by one. Please report it."
            )


def _confirm_alone(column: Traced, space: FeatureSpace, edges: Floats) -> None:
    """Ask a step that is not correctly rounded about some values one by one: a library may compute many at once in another way."""
    if not _is_rough(column):
        return
    chosen = edges[:: max(1, len(edges) // MOST_ALONE)]
    together = finite(column, space, chosen)
    alone = np.concatenate([finite(column, space, chosen[k : k + 1]) for k in range(len(chosen))])
    if not np.array_equal(together, alone):
        raise UnsupportedModel(
            f"cannot read {column.where} of {space.names[column.feature]!r}: it gives a value alone another number than among others. "
            "Leave this step out."
        )


def _is_rough(column: Traced) -> bool:
    return column.shape.error is not None or any(map(_is_rough, column.parents))


def _span(column: Traced, space: FeatureSpace) -> tuple[float, float]:
    """Return numbers between which a column stays."""
    if not column.parents:
        low, high = ends_of(list(space.values())[column.feature])  # type: ignore[arg-type]
        return float(low), float(high)
    begins, ends = _pieces(column, space)
    values = _ask(column, space, np.concatenate([begins, ends]))
    error = np.zeros(len(values)) if column.shape.error is None else 2 * column.shape.error(values)
    least, most = (values - error).min(keepdims=True), (values + error).max(keepdims=True)
    above, below = rounded_in(most, least, column.floats)
    return float(below[0]), float(above[0])


def _pieces(column: Traced, space: FeatureSpace) -> tuple[Floats, Floats]:
    """Return the stretches of the column before, between the cuts."""
    floats = column.parents[0].floats
    low, high = _span(column.parents[0], space)
    inner = np.array([cut for cut in cuts_on(column.shape.cuts, floats).tolist() if low <= cut < high])
    return np.concatenate([[low], _beside(inner, 1, floats)]), np.concatenate([inner, [high]])


def cuts_on(cuts: tuple[float, ...], floats: FloatType) -> Floats:
    """Return cuts on the floats that a column holds; with the neighbours of each, since a library may round the number itself first."""
    at = np.array(cuts, dtype=np.float64)
    if floats is np.float64 or not len(at):
        return at
    below = rounded_in(at, at, floats)[1]
    return np.unique(np.concatenate([_beside(below, -1, floats), below, _beside(below, 1, floats)]))


def _ask(column: Traced, space: FeatureSpace, s: Floats) -> Floats:
    """Return what the last step makes of values of the column before it."""
    assert column.local is not None
    return _finite(column, space, np.asarray(column.local(s), dtype=np.float64), s)


# ---- one step


def _local(column: Traced, space: FeatureSpace, thresholds: Floats) -> Sides:
    """Return the sides of a column over the column that it is made from."""
    shape = column.shape
    if shape.unknown:
        kind = type(list(space.values())[column.feature]).__name__.lower()
        raise UnsupportedModel(
            f"cannot read {column.where} of {space.names[column.feature]!r}, which is {kind}: {shape.unknown}. "
            "Declare it as integer in a narrower range, or as levels, if that is what it is."
        )
    begins, ends = _pieces(column, space)
    values = _ask(column, space, np.concatenate([begins, ends])).reshape(2, -1)
    if shape.error is None:
        return _exact(column, space, begins, ends, values, thresholds)
    parts = [
        _rough(column, space, float(begin), float(end), bool(low <= high), thresholds)
        for begin, end, low, high in zip(begins, ends, *values, strict=True)
    ]
    return _joined(parts, ends)


def _exact(
    column: Traced, space: FeatureSpace, begins: Floats, ends: Floats, values: Floats, thresholds: Floats
) -> Sides:
    """Return the sides of a column that is monotone on each piece."""
    at_begin, at_end = (each[:, None] <= thresholds[None, :] for each in values)
    piece, which = np.nonzero(at_begin != at_end)
    crossed = _bisect(column, space, begins[piece], ends[piece], values[0][piece], values[1][piece], thresholds[which])
    piece_jump, which_jump = np.nonzero(at_end[:-1] != at_begin[1:])
    where = np.concatenate([which, which_jump])
    edge = np.concatenate([crossed, ends[piece_jump]])
    order = np.lexsort((edge, where))
    counts = np.bincount(where, minlength=len(thresholds))
    return Sides(at_begin[0], list(np.split(edge[order], np.cumsum(counts)[:-1])))


def _joined(parts: list[Sides], ends: Floats) -> Sides:
    """Return the sides over pieces that follow each other."""
    first, last = parts[0].first, parts[0].first
    edges: list[list[Floats]] = [[] for _ in first]
    for number, part in enumerate(parts):
        for k, own in enumerate(part.edges):
            if number and last[k] != part.first[k]:
                edges[k].append(ends[[number - 1]])
            edges[k].append(own)
        last = np.array([side ^ (len(own) % 2 == 1) for side, own in zip(part.first, part.edges, strict=True)])
    return Sides(first, [np.concatenate(each) for each in edges])


def _rough(column: Traced, space: FeatureSpace, low: float, high: float, rising: bool, thresholds: Floats) -> Sides:
    """Return the sides of a piece that is monotone but for its error: floats nearer to a threshold are asked one by one.

    Where a computed value is beyond the threshold by twice the error, every float farther on is beyond it too.
    """
    assert column.shape.error is not None
    error = 2 * column.shape.error(thresholds)
    if not np.isfinite(error).all():
        raise UnsupportedModel(
            f"cannot read {column.where} of {space.names[column.feature]!r}: its rounding is not bounded on this range."
        )
    # Up to `sure` every float is on the side of the least one, after `other` every float is on the other side.
    sign = 1.0 if rising else -1.0
    sure = _last(column, space, low, high, sign, sign * thresholds - error)
    other = _last(column, space, low, high, sign, sign * thresholds + error)
    floats = column.parents[0].floats
    begin = _key(sure, floats) + 1
    counts = np.maximum(_key(other, floats) - begin + 1, 0)
    if (counts > MOST_NEAR).any():
        where = float(_value(begin[[int(np.argmax(counts))]], floats)[0])
        raise UnsupportedModel(
            f"cannot read {column.where} of {space.names[column.feature]!r}: near {where!r} it is so flat that rounding decides "
            f"{int(counts.max()):,} floats. Leave this step out, or declare the feature as integer or levels."
        )
    keys = np.concatenate([np.arange(b, b + c) for b, c in zip(begin, counts, strict=True)]).astype(np.int64)
    near = _value(keys, floats)
    below = (_ask(column, space, near) if len(near) else np.empty(0)) <= np.repeat(thresholds, counts)
    first, edges, at = np.empty(len(thresholds), dtype=bool), [], 0
    for k, count in enumerate(counts):
        before = [rising] if sure[k] >= low else []
        after = [not rising] if other[k] < high else []
        walk = np.array([*before, *below[at : at + count], *after])
        points = np.array([*([sure[k]] if before else []), *near[at : at + count]])
        at += count
        first[k] = walk[0]
        edges.append(points[np.flatnonzero(walk[1:] != walk[:-1])])
    return Sides(first, edges)


def _last(column: Traced, space: FeatureSpace, low: float, high: float, sign: float, limits: Floats) -> Floats:
    """Return for each limit a float whose sign·value is at most the limit, and whose successor's is above it.

    Just below ``low`` where even its value is above the limit, ``high`` where none is.
    """
    at_low, at_high = sign * _ask(column, space, np.array([low, high]))
    found = np.where(at_low > limits, _beside(np.array([low]), -1, column.parents[0].floats), high)
    inside = np.flatnonzero((at_low <= limits) & (at_high > limits))
    count = len(inside)
    found[inside] = _bisect(
        column,
        space,
        np.full(count, low),
        np.full(count, high),
        np.full(count, at_low),
        np.full(count, at_high),
        limits[inside],
        sign=sign,
    )
    return found


def _bisect(
    column: Traced,
    space: FeatureSpace,
    begin: Floats,
    end: Floats,
    at_begin: Floats,
    at_end: Floats,
    thresholds: Floats,
    sign: float = 1.0,
) -> Floats:
    """Return for each threshold a float on the side of ``begin`` whose successor is on the side of ``end``.

    The sides are those of sign·value: at most the threshold, or above it. Floats beside the straight line between the ends are tried,
    then the middle.
    """
    floats = column.parents[0].floats
    begin, end, at_begin, at_end = begin.copy(), end.copy(), at_begin.copy(), at_end.copy()
    first = at_begin <= thresholds

    def look(x: Floats, chosen: NDArray[np.intp]) -> None:
        inside = (x > begin[chosen]) & (x < end[chosen])
        x, chosen = x[inside], chosen[inside]
        if not len(x):
            return
        found = sign * _ask(column, space, x)
        stays = (found <= thresholds[chosen]) == first[chosen]
        for ends, heights, moves in ((begin, at_begin, stays), (end, at_end, ~stays)):
            ends[chosen[moves]], heights[chosen[moves]] = x[moves], found[moves]

    while (open_ := np.flatnonzero(_key(begin, floats) + 1 < _key(end, floats))).size:
        a, b, rise = begin[open_], end[open_], at_end[open_] - at_begin[open_]
        with np.errstate(all="ignore"):
            guess = a + (thresholds[open_] - at_begin[open_]) / rise * (b - a)
            size = 2.0 ** -np.finfo(floats).nmant * (np.abs(guess) + np.abs(a) + np.abs(b))
            beside = [x.astype(floats).astype(np.float64) for x in (guess - size, guess + size)]
        for x in beside:
            look(x, open_)
        left, right = _key(begin[open_], floats), _key(end[open_], floats)
        look(_value((left >> 1) + (right >> 1) + (left & right & 1), floats), open_)
    return begin


WHOLE_OF: dict[FloatType, tuple[type[np.signedinteger[Any]], int]] = {
    np.float64: (np.int64, 63),
    np.float32: (np.int32, 31),
    np.float16: (np.int16, 15),
}
"""Whole numbers as wide as floats, and their highest bit."""


def _key(x: Floats, floats: FloatType) -> Ints:
    """Return whole numbers in the order of the floats, neighbours for neighbours."""
    kind, bit = WHOLE_OF[floats]
    bits = np.ascontiguousarray(x, dtype=np.float64).astype(floats).view(kind).astype(np.int64)
    keys: Ints = np.where(bits >= 0, bits, np.int64(-(2**bit)) - bits)
    return keys


def _value(keys: Ints, floats: FloatType) -> Floats:
    """Return the floats of keys."""
    kind, bit = WHOLE_OF[floats]
    bits = np.where(keys >= 0, keys, np.int64(-(2**bit)) - keys)
    values: Floats = np.ascontiguousarray(bits.astype(kind)).view(floats).astype(np.float64)
    return values


def _beside(x: Floats, by: int, floats: FloatType) -> Floats:
    """Return the floats that come a number of places after others."""
    return _value(_key(x, floats) + by, floats) if len(x) else x

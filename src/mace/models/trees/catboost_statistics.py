"""CatBoost's statistics of categories: of a level, or of a combination of levels, sides of splits of numbers, and single levels.

The model keeps a table for each such combination, from a hash of it to counts of the training rows. The statistic is computed from
these counts in float32, (count + prior) / (total + 1), shifted and scaled, and a split compares it with a border. On a space with finitely
many levels every combination is asked of the table once; a split of a combination becomes splits of its features one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import Flags, Ints
from mace.models.preprocessing.ground_products import LEFT, RIGHT, ProductSplit

MULTIPLIER = 0x4906BA494954CB65
"""By which CatBoost's hashes of combinations are made."""

WORD = 2**64

MOST_COMBINATIONS = 65_536
"""The most combinations that are asked of one table."""

MEANS, COUNTERS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue"), ("Counter", "FeatureFreq")
CLASS_STATISTICS = ("Borders", "Buckets")


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a combination.

    Attributes
    ----------
    feature : int
        The feature of the space.
    codes : tuple of int
        What goes into the hash: of each level; or of a number up to the edge, and above it.
    edge : float, optional
        The greatest number of the first side; ``None`` of levels.
    missing_first : bool
        Whether a missing number is on the first side.
    """

    feature: int
    codes: tuple[int, ...]
    edge: float | None = None
    missing_first: bool = True


def statistics(entry: Mapping[str, Any], table: Mapping[str, Any], elements: Sequence[Element]) -> NDArray[np.float32]:
    """Return the statistic of every combination of the elements' states, in float32 as the library computes it."""
    shape = [len(element.codes) for element in elements]
    if np.prod(shape, dtype=float) > MOST_COMBINATIONS:
        raise UnsupportedModel(
            f"cannot read CatBoost's statistics of a combination of {len(elements)} features with {np.prod(shape, dtype=float):,.0f} "
            f"combinations of levels, above {MOST_COMBINATIONS:,}. Fit it with max_ctr_complexity=1, or declare fewer levels."
        )
    rows = _rows(table)
    found = [_value(entry, table, rows.get(key)) for key in _hashes(elements)]
    return np.array(found, dtype=np.float32).reshape(shape)


def _hashes(elements: Sequence[Element]) -> list[int]:
    hashes = [0]
    for element in elements:
        hashes = [MULTIPLIER * (before + MULTIPLIER * code) % WORD for before in hashes for code in element.codes]
    return hashes


def _rows(table: Mapping[str, Any]) -> dict[int, list[float]]:
    stride, numbers = int(table["hash_stride"]), table["hash_map"]
    rows = {int(numbers[at]): numbers[at + 1 : at + stride] for at in range(0, len(numbers), stride)}
    rows.pop(WORD - 1, None)  # marks a place of the table that is not taken
    return rows


def _value(entry: Mapping[str, Any], table: Mapping[str, Any], row: Sequence[float] | None) -> np.float32:
    """Return the statistic of one row of a table, or of none."""
    kind, border = entry["ctr_type"], int(entry["target_border_idx"])
    if kind in COUNTERS:
        good, total = (0 if row is None else row[0]), table["counter_denominator"]
    elif row is None:
        good, total = 0, 0
    elif kind in MEANS:
        good, total = row[0], row[1]
    elif kind == "Buckets":
        good, total = row[border], sum(row)
    elif kind == "Borders":
        good, total = (row[1] if len(row) == 2 else sum(row[border + 1 :])), sum(row)
    else:
        raise UnsupportedModel(
            f"cannot read CatBoost's statistics of the type {kind!r}. Supported: {', '.join((*CLASS_STATISTICS, *MEANS, *COUNTERS))}."
        )
    one = np.float32
    share = (one(good) + one(entry["prior_numerator"])) / (one(total) + one(entry["prior_denomerator"]))
    return (share + one(entry["shift"])) * one(entry["scale"])


# ---- splits of combinations


def routed(elements: Sequence[Element], lefts: Flags) -> tuple[int, list[ProductSplit]]:
    """Return the splits that send each combination to its side, one feature after the other, and where they begin."""
    block: list[ProductSplit] = []

    def two(element: Element, levels: Flags | None, low: Callable[[], int], high: Callable[[], int]) -> int:
        place, edge = len(block), 0.0 if element.edge is None else element.edge
        chosen = None if levels is None else tuple(levels.tolist())
        block.append(ProductSplit(element.feature, edge, chosen, 0, 0))
        block[place] = ProductSplit(element.feature, edge, chosen, low(), high(), element.missing_first)
        return place

    def put(depth: int, sides: Flags) -> int:
        if (sides == sides.flat[0]).all():
            return LEFT if sides.flat[0] else RIGHT
        element = elements[depth]
        if element.edge is not None:
            return (
                put(depth + 1, sides[0])
                if np.array_equal(sides[0], sides[1])
                else two(element, None, lambda: put(depth + 1, sides[0]), lambda: put(depth + 1, sides[1]))
            )
        return among(depth, sides, np.arange(len(sides)))

    def among(depth: int, sides: Flags, positions: Ints) -> int:
        """Split some levels until each set has one course."""
        _, first, course = np.unique(
            sides[positions].reshape(len(positions), -1), axis=0, return_index=True, return_inverse=True
        )
        if len(first) == 1:
            return put(depth + 1, sides[positions[0]])
        low, high = (
            positions[part] for part in (course.reshape(-1) < len(first) // 2, course.reshape(-1) >= len(first) // 2)
        )
        levels = np.isin(np.arange(len(sides)), low)
        return two(elements[depth], levels, lambda: among(depth, sides, low), lambda: among(depth, sides, high))

    return put(0, lefts), block

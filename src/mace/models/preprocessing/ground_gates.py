"""Products of features before networks, as units that open for some values of the others.

A product of one number s with columns of features that have finitely many values is piecewise linear once these are decided. Each such
column t is a sum over its distinct values, t = t0 + Σ (t_g - t0) [x in g], so that a product of them is a sum of terms: a constant, times
s, times some *gates* that are 0 or 1. With L <= s <= L + R, a term is

    s · [all q gates are 1]  =  relu(s - L + R (gates - q)) + L · [all q gates are 1],    [all] = relu(gates - q + 1)

where ``gates`` is their sum. Both hold exactly of the number s that the library computes, as of a clip
(:mod:`mace.models.networks.piecewise`). The library rounds once for each factor after the first; the constants of the terms are exact
fractions, each rounded once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats
from mace.models.networks.rows import Tensor
from mace.models.preprocessing.ground_products import combinations, products, states
from mace.models.preprocessing.traced import Traced, is_leveled
from mace.space import Column, Feature, FeatureSpace

if TYPE_CHECKING:
    from mace.models.preprocessing.ground_networks import Ground

MOST_GATES = 64
"""A feature whose column takes more values than this opens no gates."""

MOST_PRODUCT_TERMS = 256
"""The most terms of a product."""

Members = tuple[int, ...]
"""The positions of a feature's values at which a gate is open."""


@dataclass(frozen=True, slots=True)
class Gate:
    """1 where a feature has one of some values, by their positions; 0 elsewhere."""

    feature: int
    members: Members


@dataclass(frozen=True, slots=True)
class Gated:
    """A product as terms.

    Attributes
    ----------
    moving : Traced, optional
        The number; ``None`` where all factors have finitely many values.
    terms : tuple of (float, tuple of Gate)
        The constant and the gates of each.
    factors : int
        How many columns are multiplied, powers counted.
    """

    moving: Traced | None
    terms: tuple[tuple[float, tuple[Gate, ...]], ...]
    factors: int


def gated(column: Traced, space: FeatureSpace) -> Gated:
    """Return the terms of a product.

    Raises
    ------
    UnsupportedModel
        It multiplies more than one number with many values, or has too many terms; the message names them.
    """
    moving = _moving(column, space)
    sums = [_steps(column, space, j) for j in column.reads if moving is None or j != moving.feature]
    if np.prod([len(each) for each in sums], dtype=float) > MOST_PRODUCT_TERMS:
        raise _refused(column, space, f"that makes more than {MOST_PRODUCT_TERMS} terms")
    terms = []
    for chosen in itertools.product(*sums):
        constant = Fraction(1)
        for value, _ in chosen:
            constant *= value
        if constant:
            terms.append((float(constant), tuple(gate for _, gate in chosen if gate is not None)))
    return Gated(moving, tuple(terms), sum(power for _, power in column.factors))


def gates_of(columns: Sequence[Traced], space: FeatureSpace) -> dict[Gate, Column]:
    """Return the gates of levels that products need, as columns of a network."""
    features, found = list(space.values()), dict[Gate, Column]()
    for column in columns:
        if column.factors:
            for gate in (gate for _, gates in gated(column, space).terms for gate in gates):
                if is_leveled(features[gate.feature]):
                    size = len(states(features[gate.feature]))
                    table = tuple(float(k in gate.members) for k in range(size))
                    found[gate] = Column(f"{space.names[gate.feature]} in {gate.members}", gate.feature, table)
        elif column.is_mixed:
            found |= gates_of(column.parents, space)
    return found


def product_row(ground: Ground, column: Traced) -> Tensor:
    """Return a product as a row over units."""
    made, lowering = gated(column, ground.space), ground.lowering
    if not made.terms:
        return lowering.constant(np.array([[0.0]]))
    moving = None if made.moving is None else ground.of(made.moving)
    parts, constants = [], []
    for constant, gates in made.terms:
        rows = [_row(ground, gate) for gate in gates]
        for part, factor in _opened(ground, moving, rows):
            parts.append(part)
            constants.append(constant * factor)
    return lowering.dense(
        lowering.concatenate(parts, 1), np.array(constants)[:, None], steps=made.factors + 3 * len(column.reads)
    )


def _opened(ground: Ground, moving: Tensor | None, gates: Sequence[Tensor]) -> list[tuple[Tensor, float]]:
    """Return what a number times some gates is the sum of: numbers, each with what it is multiplied by."""
    lowering, count = ground.lowering, len(gates)
    if not gates:
        return [(lowering.constant(np.array([[1.0]])) if moving is None else moving, 1.0)]
    both = gates[0] if count == 1 else lowering.gate(None, gates, 1.0, float(count - 1))
    if moving is None:
        return [(both, 1.0)]
    low, high = ground.range_of(moving)
    width = float(np.nextafter(high - low, np.inf))
    return [(lowering.gate(moving, gates, width, low + width * count), 1.0), (both, low)]


def _row(ground: Ground, gate: Gate) -> Tensor:
    """Return a gate as a row: a column of levels, or hinges of a whole number."""
    if gate in ground.gates:
        return ground.gates[gate]
    feature, x = list(ground.space.values())[gate.feature], ground.feature(gate.feature)
    size = len(states(feature))
    values = np.array([float(k in gate.members) for k in range(-1, size + 1)])
    values[0], values[-1] = values[1], values[-2]
    changes = np.diff(values, 2)
    at = np.flatnonzero(changes)
    hinges = ground.lowering.hinges(x, feature.low + at.astype(np.float64))  # type: ignore[union-attr]
    ground.gates[gate] = ground.lowering.dense(hinges, changes[at][:, None], values[:1])
    return ground.gates[gate]


# ---- the factors


def _moving(column: Traced, space: FeatureSpace) -> Traced | None:
    """Return the factor that is a number with many values; ``None`` where there is none."""
    features = list(space.values())
    if any(source.joint is not None for source, _ in column.factors):
        raise _refused(column, space, "one of them is a product itself")
    for j in column.reads:
        if not is_leveled(features[j]) and features[j].missing:
            raise _refused(column, space, f"{space.names[j]!r} may be missing")
    wide = [j for j in column.reads if not _is_few(features[j])]
    if not wide:
        return None
    if len(wide) > 1:
        raise _refused(column, space, "more than one of them is real or has many values")
    own = [(source, power) for source, power in column.factors if source.feature == wide[0]]
    if len(own) > 1 or own[0][1] > 1:
        raise _refused(column, space, f"{space.names[wide[0]]!r} more than once")
    return own[0][0]


def _is_few(feature: Feature) -> bool:
    """Return whether a feature has few values."""
    count = len(states(feature)) if is_leveled(feature) else _count(feature)
    return count is not None and count <= MOST_GATES


def _count(feature: Any) -> int | None:
    return feature.high - feature.low + 1 if combinations(FeatureSpace({"x": feature}), [0]) is not None else None


def _steps(column: Traced, space: FeatureSpace, j: int) -> list[tuple[Fraction, Gate | None]]:
    """Return the factors of one feature as a constant, and a difference for each gate."""
    axis = states(list(space.values())[j])
    made = [Fraction(1)] * len(axis)
    for source, power in column.factors:
        if source.feature == j:
            values: Floats = products(source, {j: axis})
            made = [old * Fraction(float(value)) ** power for old, value in zip(made, values, strict=True)]
    distinct = sorted(set(made), key=lambda value: (value != 0, -made.count(value)))
    first = [(distinct[0], None)] if distinct[0] else []
    others = [
        (value - distinct[0], Gate(j, tuple(k for k, one in enumerate(made) if one == value))) for value in distinct[1:]
    ]
    return [*first, *others]


def _refused(column: Traced, space: FeatureSpace, why: str) -> UnsupportedModel:
    named = ", ".join(repr(space.names[j]) for j in column.reads)
    return UnsupportedModel(
        f"cannot read {column.where} before a linear model or network: it multiplies {named}, and {why}, which is not piecewise "
        f"linear. One factor may be real or have more than {MOST_GATES} values, once; the others are levels and whole numbers, none of "
        "them missing. Leave that product out, or use trees."
    )

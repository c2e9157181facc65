"""What is made once for a model: its grid, and the values of its leaves for the margins that were asked about."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from mace.exact import UNIT, float_up
from mace.forms import Goal, Margin, TreeEnsemble
from mace.recent import Recent
from mace.solvers.domains import Allowed, whole_domain
from mace.solvers.trees import kernels
from mace.solvers.trees.arrays import BallArrays
from mace.solvers.trees.grid import Floats, Grid, Ints, make_grid
from mace.solvers.trees.question import CellRefinement, plain_view
from mace.space import Categorical, Integer, Real

MOST_GOALS = 8
"""The most goals for which the values of all leaves are kept."""

Ends = tuple[Floats, Floats, Ints]
"""See :func:`allowed_ends`."""


@dataclass(slots=True)
class PreparedTrees:
    """What is made once for a model: its grid, and the values of its leaves for the margins that were asked about.

    Goals share the values of the margins that they have in common: those in ``values`` last as long as some goal in ``alternatives``.
    """

    grid: Grid
    view: CellRefinement
    inverse: Floats
    is_category: NDArray[np.bool_]
    mask_of: Ints
    free: list[Allowed]
    ends: Ends
    stepped: tuple[tuple[int, Real | Integer], ...]
    values: weakref.WeakValueDictionary[tuple[tuple[Margin, ...], Fraction], Values] = field(
        default_factory=weakref.WeakValueDictionary
    )
    alternatives: Recent[Goal, list[tuple[int, Values]]] = field(default_factory=lambda: Recent(MOST_GOALS))
    arrays: list[BallArrays] = field(default_factory=list)


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Values:
    """The margins of one alternative: the most and the least that each leaf adds, and what the sums start from.

    A point whose least sums reach ``sure`` is in the goal; one whose most do not reach ``need`` is not; in between, the real
    model decides.
    """

    most: Floats
    least: Floats
    base: Floats
    need: Floats
    sure: Floats
    pad: float


_PREPARED: weakref.WeakKeyDictionary[TreeEnsemble, PreparedTrees] = weakref.WeakKeyDictionary()


def prepared(form: TreeEnsemble) -> PreparedTrees:
    """Return what is made once for a model."""
    made = _PREPARED.get(form)
    if made is None:
        grid = make_grid(form)
        features = list(form.space.values())
        free = [whole_domain(feature) for feature in features]
        _PREPARED[form] = made = PreparedTrees(
            grid,
            plain_view(grid),
            inverse=np.array([float(1 / feature.range) if feature.range else 0.0 for feature in features]),
            is_category=np.array([isinstance(feature, Categorical) for feature in features]),
            mask_of=(np.cumsum(grid.is_mask) - 1).astype(np.int64),
            free=free,
            ends=allowed_ends(free, grid.is_mask),
            stepped=tuple(
                (j, feature)
                for j, feature in enumerate(features)
                if isinstance(feature, Real | Integer) and feature.step is not None
            ),
        )
    return made


def allowed_ends(allowed: list[Allowed], is_mask: NDArray[np.bool_]) -> Ends:
    """Return the least and the greatest allowed number of each feature, and the allowed levels of those kept as sets, as bits."""
    levels = [_bits(each) if masked else 0 for each, masked in zip(allowed, is_mask, strict=True)]
    return (
        np.array([each.spans[0][0] if each.spans else np.inf for each in allowed]),
        np.array([each.spans[-1][1] if each.spans else -np.inf for each in allowed]),
        np.array(levels, dtype=np.int64),
    )


def _bits(allowed: Allowed) -> int:
    return sum(1 << k for first, last in allowed.spans for k in range(int(np.ceil(first)), int(last) + 1))


COARSEST_SCALE = 2.0**24
"""Leaf values that are multiples of 1 / COARSEST_SCALE add up exactly; among themselves they make real ties, which need no
rounding to be decided."""

ABOVE_ZERO = 5e-324


def margin_values(form: TreeEnsemble, margins: tuple[Margin, ...], band: Fraction) -> Values:
    """Return the values of the leaves for some margins, given how far apart rounding may move two sums."""
    value = np.column_stack([_difference(form.value, margin) for margin in margins])
    value[form.left >= 0] = 0.0
    base = np.array([_difference(form.base[None, :], margin)[0] + float(margin.shift) for margin in margins])
    sizes = np.maximum.reduceat(np.abs(value), form.roots, axis=0).sum(axis=0) + np.abs(base)
    most, least = value.copy(), value.copy()
    need = np.array([ABOVE_ZERO if margin.strict else 0.0 for margin in margins])
    sure = need.copy()
    coarse: NDArray[np.bool_] = np.asarray(_is_coarse(form.value).all(axis=1))
    for k, margin in enumerate(margins):
        starts_at_zero = base[k] == 0 and margin.shift == 0
        is_exact_start = bool(_is_coarse(base[k : k + 1]).all()) and form.squash == 0 and margin.shift.denominator == 1
        error = float_up(band + margin.slack + 32 * (len(form.roots) + 4) * UNIT * Fraction(float(sizes[k])))
        if margin.slack:
            need[k], sure[k] = -error, error
        elif band == 0 and is_exact_start and coarse[form.left < 0].all():
            need[k] = sure[k] = _least_in_goal(form, value[:, k], base[k], strict=margin.strict)
        elif band == 0 and starts_at_zero and len(form.roots) == 1:
            # The only sum is a leaf's own difference, whose sign is exact.
            continue
        elif band > 0 and form.unit == UNIT and is_exact_start and coarse[form.left < 0].any():
            # Ties between coarse leaves are real; every other leaf may bring rounding into the sum.
            rough = (form.left < 0) & ~coarse
            most[rough, k] += error
            least[rough, k] -= error
        else:
            need[k], sure[k] = -error, error
    return Values(most, least, base, need, sure, pad=1e-11 * float(sizes.max()))


def _is_coarse(values: Floats) -> NDArray[np.bool_]:
    """Return which values are multiples of 1 / COARSEST_SCALE, small enough for sums of very many to be exact."""
    scaled = values * COARSEST_SCALE
    coarse: NDArray[np.bool_] = (scaled == np.floor(scaled)) & (np.abs(values) < 2.0**10)
    return coarse


def _difference(value: Floats, margin: Margin) -> Floats:
    zero = np.zeros(len(value))
    ahead = value[:, margin.plus] if margin.plus is not None else zero
    behind = value[:, margin.minus] if margin.minus is not None else zero
    difference: Floats = ahead - behind
    return difference


def _least_in_goal(form: TreeEnsemble, value: Floats, base: float, *, strict: bool) -> float:
    """Return a float just below the least sum in the goal, for exact sums.

    The sums are congruent modulo the greatest common divisor of the differences between the leaves of each tree: a
    forest whose leaves are -1 and 1 has sums of one parity, so that the least sum above 0 is 1 or 2.
    """
    leaf = form.left < 0
    ends = [*form.roots[1:], len(value)]
    step, offset = 0, int(base * COARSEST_SCALE)
    for start, end in zip(form.roots, ends, strict=True):
        own = [int(v) for v in np.unique(value[start:end][leaf[start:end]] * COARSEST_SCALE)]
        offset += own[0]
        for v in own[1:]:
            step = gcd(step, v - own[0])
    least = 1 if strict else 0
    if step:
        least += (offset - least) % step
    elif offset >= least:
        least = offset
    return (least - (step or 1) / 4) / COARSEST_SCALE


def kernel_goal(values: Values) -> kernels.KernelGoal:
    """Return the kernels' goal of some margins."""
    return kernels.KernelGoal(values.base, values.need, values.sure, values.pad)

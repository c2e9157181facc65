"""What is made once for a model: its arrays, the layout of its features, and scratch space for searches."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric
from mace.exact import UNIT, float_up, gamma
from mace.forms import Network
from mace.forms.network import UNDERFLOW, UNDERFLOW_SINGLE
from mace.solvers.allowed import Allowed, whole_domain
from mace.solvers.network import kernels
from mace.space import Categorical, Integer, Ordinal, Real

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

WIDEN = 1 + 2.0**-20
"""Bounds on rounding are themselves computed in floats."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each feature stands: a slot for a number, one slot a level for a feature with levels.

    Attributes
    ----------
    slot_from, levels : int arrays
        Each feature's first slot, and its number of levels (0 for a number).
    is_table, is_category, is_grid : bool arrays
        What sort it is.
    base, step, inverse : float arrays
        The grid, and one over the range.
    slots : int
        How many slots there are.
    """

    slot_from: Ints
    levels: Ints
    is_table: Flags
    is_category: Flags
    is_grid: Flags
    base: Floats
    step: Floats
    inverse: Floats
    slots: int


@dataclass(slots=True)
class Prepared:
    """What is made once for a model; scratch space is handed out and given back."""

    net: kernels.Net
    layout: Layout
    free: list[Allowed]
    costs: dict[object, tuple[Floats, Floats, Floats, Floats, Ints]] = field(default_factory=dict)
    work: list[kernels.Work] = field(default_factory=list)


_PREPARED: weakref.WeakKeyDictionary[Network, Prepared] = weakref.WeakKeyDictionary()


def prepared(form: Network) -> Prepared:
    """Return what is made once for a model."""
    if form not in _PREPARED:
        layout = make_layout(form)
        free = [whole_domain(feature) for feature in form.space.values()]
        _PREPARED[form] = Prepared(make_net(form, layout), layout, free)
    return _PREPARED[form]


def make_layout(form: Network) -> Layout:
    """Return where each feature stands."""
    features = list(form.space.values())
    levels = [len(f.levels) if isinstance(f, Ordinal | Categorical) else 0 for f in features]
    ends = np.cumsum([max(1, n) for n in levels])
    steps = [
        1.0 if isinstance(f, Integer) and f.step is None else float(getattr(f, "step", None) or 0.0) for f in features
    ]
    return Layout(
        slot_from=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        levels=np.array(levels, dtype=np.int64),
        is_table=np.array([n > 0 for n in levels]),
        is_category=np.array([isinstance(f, Categorical) for f in features]),
        is_grid=np.array([step > 0 for step in steps]),
        base=np.array([float(f.low) if isinstance(f, Real | Integer) else 0.0 for f in features]),
        step=np.array(steps),
        inverse=np.array([float(1 / f.range) if f.range else 0.0 for f in features]),
        slots=int(ends[-1]),
    )


def make_net(form: Network, layout: Layout) -> kernels.Net:
    """Return a model as the kernels read it."""
    first, first_size = _first_layer(form, layout)
    widths = [len(bias) for bias in form.biases]
    deepest, widest = len(widths), max(widths)
    offset, size, bend = (np.zeros((deepest, widest)) for _ in range(3))
    weight = np.zeros((deepest, widest, widest))
    sizes = form.sizes if form.sizes is not None else tuple(np.abs(bias) for bias in form.biases)
    for k, bias in enumerate(form.biases):
        offset[k, : widths[k]] = bias
        size[k, : widths[k]] = np.maximum(sizes[k], np.abs(bias))
        if k:
            weight[k, : widths[k], : widths[k - 1]] = form.weights[k]
        if k < deepest - 1:
            bend[k, : widths[k]] = form.slopes[k]
    inputs = [weights.shape[1] for weights in form.weights]
    terms = max(*inputs, *widths, layout.slots)
    single = form.unit != UNIT
    return kernels.Net(
        first=first,
        first_size=first_size,
        offset=offset,
        size=size,
        weight=weight,
        bend=bend,
        width=np.array(widths, dtype=np.int64),
        relative=np.array([float(gamma(n + 3 + form.steps, form.unit)) * WIDEN for n in inputs]),
        tiny=(UNDERFLOW_SINGLE if single else UNDERFLOW) * (1 + max(inputs)),
        single=float(form.unit) * WIDEN if single else 0.0,
        squash=float_up(form.squash),
        own=16.0 * (terms + 16) * 2.0**-53,
    )


def _first_layer(form: Network, layout: Layout) -> tuple[Floats, Floats]:
    """Return what each slot adds to the first layer's units, and the sum of the absolute values of what it adds."""
    units = len(form.biases[0])
    first, size = np.zeros((layout.slots, units)), np.zeros((layout.slots, units))
    for column, weights in zip(form.columns, form.weights[0].T, strict=True):
        start = layout.slot_from[column.feature]
        values = np.ones(1) if column.table is None else np.array(column.table)
        added = np.outer(values, weights)
        if column.table is None and layout.is_table[column.feature]:
            added = np.outer(np.arange(layout.levels[column.feature]), weights)
        first[start : start + len(added)] += added
        size[start : start + len(added)] += np.abs(added)
    return first, size


def costs(made: Prepared, metric: NormMetric) -> tuple[Floats, Floats, Floats, Floats, Ints]:
    """Return each feature's jump, slope, square and peak, and how they add up; made once for a distance."""
    key = (tuple((type(norm), share) for norm, share in metric.norms), metric.weights)
    if key not in made.costs:
        jump, slope, square, peak = (
            np.array([float(getattr(part, name)) for part in metric.parts])
            for name in ("jump", "slope", "square", "peak")
        )
        if peak.any():
            sort = kernels.MIXED if jump.any() or slope.any() or square.any() else kernels.PEAK
        else:
            sort = kernels.SQUARE if square.any() else kernels.SUM
        made.costs[key] = (jump, slope, square, peak, np.array([sort, 0], dtype=np.int64))
    return made.costs[key]


def lend_work(made: Prepared, rows: int) -> kernels.Work:
    """Return scratch space for a search with so many rows; give it back with ``made.work.append``."""
    while made.work:
        work = made.work.pop()
        if len(work.constants) >= rows:
            return work
    return _make_work(made, max(rows, 4))


def _make_work(made: Prepared, rows: int) -> kernels.Work:
    features, columns = len(made.layout.levels), made.layout.slots + 1
    deepest, widest = made.net.offset.shape
    grid = (deepest, widest)
    return kernels.Work(
        low=np.zeros(grid),
        high=np.zeros(grid),
        size=np.zeros(grid),
        error=np.zeros(grid),
        z=np.zeros(grid),
        lam=np.zeros(widest),
        mu=np.zeros(widest),
        begin=np.zeros(widest),
        column_entry=np.zeros(columns, dtype=np.int64),
        columns_from=np.zeros(features + 1, dtype=np.int64),
        feature=np.zeros(features, dtype=np.int64),
        near=np.zeros(features),
        delta=np.zeros(features),
        base=np.zeros(2),
        gains=np.zeros(columns),
        matrix=np.zeros((widest, columns)),
        unit_gain=np.zeros((deepest, widest, columns)),
        rows=np.zeros((rows, columns)),
        constants=np.zeros(rows),
        lean=np.zeros(columns, dtype=np.int64),
        ratio=np.zeros(columns),
        cost=np.zeros(columns),
        gain=np.zeros(columns),
        start=np.zeros(columns, dtype=np.int64),
        stop=np.zeros(columns, dtype=np.int64),
        order=np.zeros(columns, dtype=np.int64),
        x=np.zeros(columns),
        best_x=np.zeros(columns),
        mix=np.zeros((2, columns)),
        extra=np.zeros(features),
        point=np.zeros(features),
        other=np.zeros(features),
        score=np.zeros(features),
        trial=np.zeros((4, deepest, max(widest, columns))),
    )

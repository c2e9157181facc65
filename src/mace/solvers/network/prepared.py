"""What is made once for a model: its arrays, the layout of its features, and the arrays of its searches."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.distances import NormMetric
from mace.distances.norm import Parts
from mace.exact import UNIT, float_up, gamma
from mace.forms import Alternatives, Goal, Network
from mace.forms.network import UNDERFLOW, UNDERFLOW_SINGLE
from mace.recent import Recent
from mace.solvers.domains import Allowed, whole_domain
from mace.solvers.network import kernels
from mace.space import Categorical, Feature, Integer, Ordinal, Real

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FIRST_BOXES = 256
LOG = 64

MOST_COSTS_KEPT, MOST_GOALS_KEPT = 16, 64
"""The most distances of which costs and arrays of searches are kept, and the most goals of which the alternatives are."""

WIDEN = 1 + 2.0**-20
"""Bounds on rounding are themselves computed in floats."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The slots of each feature: one for a number, one a level for a feature with levels.

    Attributes
    ----------
    slot_from, levels : int arrays
        Each feature's first slot, and its number of levels (0 for a number).
    is_table, is_category, is_grid : bool arrays
        What sort it is.
    digits : int array
        The binary digits of a number of narrower floats than float64; 0 of others.
    base, step, inverse : float arrays
        The grid, and one over the range.
    slots : int
        How many slots there are.
    grid_error : float array
        How far the values of the grid, as the kernels compute them, may be from its own.
    spacing : float array
        How far neighbouring floats of a real feature are apart at most.
    has_grid_errors : bool
        Whether any of ``grid_error`` is above 0.
    """

    slot_from: Ints
    levels: Ints
    is_table: Flags
    is_category: Flags
    is_grid: Flags
    digits: NDArray[np.int64]
    base: Floats
    step: Floats
    inverse: Floats
    slots: int
    grid_error: Floats
    spacing: Floats
    has_grid_errors: bool


class BoxArrays:
    """Room for open boxes, doubled when it is full."""

    def __init__(self, room: int, features: int) -> None:
        self.arrays = (
            np.zeros((room, features)),
            np.zeros((room, features)),
            np.zeros(room),
            np.zeros(room, dtype=np.int64),
            np.zeros(room, dtype=np.int64),
        )
        self.tree = kernels.BranchTree(*self.arrays)

    @property
    def room(self) -> int:
        """How many boxes there is room for."""
        return len(self.arrays[2])

    def start(self, lo: Floats, hi: Floats, registers: Ints) -> None:
        """Begin with a single box."""
        self.arrays[0][0], self.arrays[1][0], self.arrays[2][0], self.arrays[3][0] = lo, hi, 0.0, 0
        registers[kernels.HEAP] = registers[kernels.USED] = 1

    def least_bound(self) -> float:
        """Return the least bound of the open boxes."""
        return float(self.arrays[2][self.arrays[3][0]])

    def doubled(self) -> BoxArrays:
        """Return the same boxes with twice the room."""
        larger = BoxArrays(2 * self.room, self.arrays[0].shape[1])
        for old, new in zip(self.arrays, larger.arrays, strict=True):
            new[: self.room] = old
        return larger


@dataclass(slots=True)
class Workspace:
    """The arrays of a search.

    Attributes
    ----------
    fields, scratch : dict
        The arrays of the task and of the scratch space, by name.
    task, work : objects of the kernels
        The question and scratch space.
    lo, hi : float arrays
        The box that is searched.
    state : kernels.NetworkState
        Registers, incumbent, and points that only the real model can decide.
    tree : BoxArrays
        The open boxes.
    """

    fields: dict[str, NDArray[Any]]
    scratch: dict[str, NDArray[Any]]
    task: kernels.Task
    work: kernels.Work
    lo: Floats
    hi: Floats
    state: kernels.NetworkState
    tree: BoxArrays


@dataclass(frozen=True, slots=True)
class Costs:
    """A distance as floats, by feature; ``parts`` is kept so that its identity stays its own.

    ``workspaces`` are reused from one question without conditions to the next, by the number of margins.
    """

    parts: tuple[Parts, ...]
    jump: Floats
    slope: Floats
    square: Floats
    peak: Floats
    form: Ints
    workspaces: dict[int, list[Workspace]] = field(default_factory=dict)


@dataclass(slots=True)
class PreparedNetwork:
    """What is made once for a model; of distances and goals the last few are kept."""

    net: kernels.Net
    arrays: dict[str, Any]
    shape: tuple[int, int, int]
    layout: Layout
    free: list[Allowed]
    features: tuple[Feature, ...]
    stepped: tuple[int, ...]
    first_budget: int
    costs: Recent[int, Costs] = field(default_factory=lambda: Recent(MOST_COSTS_KEPT))
    alternatives: Recent[Goal, Alternatives] = field(default_factory=lambda: Recent(MOST_GOALS_KEPT))


_PREPARED: weakref.WeakKeyDictionary[Network, PreparedNetwork] = weakref.WeakKeyDictionary()


def prepared(form: Network) -> PreparedNetwork:
    """Return what is made once for a model."""
    if form not in _PREPARED:
        layout = make_layout(form)
        features = tuple(form.space.values())
        free = [whole_domain(feature) for feature in features]
        stepped = tuple(j for j, f in enumerate(features) if isinstance(f, Real | Integer) and f.step is not None)
        widths = [len(bias) for bias in form.biases]
        shape = (len(widths), max(widths), widths[0])
        arrays = net_arrays(form, layout)
        net = kernels.Net(*(arrays[name] for name in kernels.NET))
        _PREPARED[form] = PreparedNetwork(net, arrays, shape, layout, free, features, stepped, _first_budget(widths))
    return _PREPARED[form]


def _first_budget(widths: list[int]) -> int:
    """Return how many boxes fit into a pause before their time is known: every unit is bounded back through all layers before it."""
    through = np.cumsum([0, *(a * b for a, b in pairwise(widths))])
    steps = 1 + sum(2 * width * int(below) for width, below in zip(widths, through, strict=True))
    return max(1, min(32, 10_000_000 // steps))


def make_layout(form: Network) -> Layout:
    """Return the slots of each feature, and what the kernels need to know of it."""
    features = list(form.space.values())
    levels = [len(f.levels) if isinstance(f, Ordinal | Categorical) else 0 for f in features]
    ends = np.cumsum([max(1, n) for n in levels])
    steps = [
        1.0 if isinstance(f, Integer) and f.step is None else float(getattr(f, "step", None) or 0.0) for f in features
    ]
    grid_errors = np.array([grid_error(f) for f in features])
    return Layout(
        slot_from=np.concatenate([[0], ends[:-1]]).astype(np.int64),
        levels=np.array(levels, dtype=np.int64),
        is_table=np.array([n > 0 for n in levels]),
        is_category=np.array([isinstance(f, Categorical) for f in features]),
        is_grid=np.array([step > 0 for step in steps]),
        base=np.array([float(f.low) if isinstance(f, Real | Integer) else 0.0 for f in features]),
        step=np.array(steps),
        digits=np.array([_digits(f) for f in features], dtype=np.int64),
        inverse=np.array([float(1 / f.range) if f.range else 0.0 for f in features]),
        slots=int(ends[-1]),
        grid_error=grid_errors,
        spacing=np.array([f.spacing(max(abs(f.low), abs(f.high))) if isinstance(f, Real) else 0.0 for f in features]),
        has_grid_errors=bool(grid_errors.any()),
    )


def _digits(feature: Feature) -> int:
    """Return how many binary digits the floats of a real feature without step have; 0 where they are float64's."""
    is_narrow = isinstance(feature, Real) and feature.step is None and feature.is_single and feature.range > 0
    return 1 + int(np.finfo(feature.floats).nmant) if is_narrow and isinstance(feature, Real) else 0


def grid_error(feature: Feature) -> float:
    """Return how far low + k·step in floats may be from the grid's own value, the float nearest to it in decimals; 0 where it is exact."""
    if not isinstance(feature, Real) or feature.step is None or feature.is_exact_grid:
        return 0.0
    largest = max(abs(feature.low), abs(feature.high))
    return feature.spacing(largest) if feature.is_single else 2.0**-50 * largest


def _feature_of_slot(layout: Layout) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(layout.levels)), np.maximum(1, layout.levels))


def net_arrays(form: Network, layout: Layout) -> dict[str, Any]:
    """Return a model as the kernels read it, by name."""
    first, first_size = _first_layer(form, layout)
    widths = [len(bias) for bias in form.biases]
    deepest, widest = len(widths), max(widths)
    offset, size, bend = (np.zeros((deepest, widest)) for _ in range(3))
    begin, end = (np.zeros((deepest, widest), dtype=np.int64) for _ in range(2))
    weight = np.zeros((deepest, widest, widest))
    for k, bias in enumerate(form.biases):
        offset[k, : widths[k]] = bias
        size[k, : widths[k]] = np.maximum(form.magnitudes[k], np.abs(bias))
        if k:
            weight[k, : widths[k], : widths[k - 1]] = form.weights[k]
            begin[k, : widths[k]], end[k, : widths[k]] = _not_zero(form.weights[k])
        if k < deepest - 1:
            bend[k, : widths[k]] = form.slopes[k]
    inputs = [weights.shape[1] for weights in form.weights]
    terms = max(*inputs, *widths, layout.slots)
    single = form.unit != UNIT
    return {
        "first": first,
        "first_size": first_size,
        "twin": _first_alike(first),
        "offset": offset,
        "size": size,
        "weight": weight,
        "begin": begin,
        "end": end,
        "bend": bend,
        "width": np.array(widths, dtype=np.int64),
        "relative": np.array([float(gamma(n + 3 + form.steps, form.unit)) * WIDEN for n in inputs]),
        "tiny": (UNDERFLOW_SINGLE if single else UNDERFLOW) * (1 + max(inputs)),
        "single": float(form.unit) * WIDEN if single else 0.0,
        "grid_error": layout.grid_error[_feature_of_slot(layout)] @ first_size * WIDEN,
        "squash": float_up(form.squash),
        "own": 16.0 * (terms + 16) * 2.0**-53,
    }


def _not_zero(weights: Floats) -> tuple[Ints, Ints]:
    """Return for each unit the place of its first weight that is not 0, and the one after its last: of copies side by side a block."""
    places = np.arange(weights.shape[1])
    is_any = weights != 0
    begin = np.where(is_any, places, weights.shape[1]).min(axis=1, initial=weights.shape[1])
    end = np.where(is_any, places + 1, 0).max(axis=1, initial=0)
    return np.minimum(begin, end), end


def _first_alike(first: Floats) -> Ints:
    """Return for each unit the first one to which all slots add the same."""
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(column.tobytes(), i) for i, column in enumerate(first.T)], dtype=np.int64)


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


def costs(made: PreparedNetwork, metric: NormMetric) -> Costs:
    """Return each feature's jump, slope, square and peak, and how they add up; made once for a distance, while it is kept."""
    parts = metric.parts
    found = made.costs.get(id(parts))
    return found or made.costs.put(id(parts), Costs(parts, *metric.costs, form_of(metric)))


def form_of(metric: NormMetric) -> Ints:
    """Return how the costs of features add up, as the kernels say it."""
    jump, slope, square, peak = metric.costs
    if peak.any():
        form = kernels.MIXED if jump.any() or slope.any() or square.any() else kernels.PEAK
    else:
        form = kernels.SQUARE if square.any() else kernels.SUM
    return np.array([form, 0], dtype=np.int64)


def make_workspace(made: PreparedNetwork, fields: dict[str, NDArray[Any]]) -> Workspace:
    """Return the arrays of a search over the arrays of its task."""
    features = len(made.layout.levels)
    scratch = _make_scratch(made, len(fields["plus"]) + len(fields["row_base"]))
    return Workspace(
        fields=fields,
        scratch=scratch,
        task=kernels.Task(*(fields[name] for name in kernels.TASK)),
        work=kernels.Work(*scratch.values()),
        lo=np.zeros(features),
        hi=np.zeros(features),
        state=kernels.NetworkState(
            registers=np.zeros(9, dtype=np.int64),
            reals=np.zeros(5),
            best=np.zeros(features),
            log=np.zeros((LOG, features)),
            log_cost=np.zeros(LOG),
        ),
        tree=BoxArrays(FIRST_BOXES, features),
    )


def _make_scratch(made: PreparedNetwork, rows: int) -> dict[str, NDArray[Any]]:
    features, columns = len(made.layout.levels), made.layout.slots + 1
    deepest, widest, _ = made.shape
    units = (deepest, widest)
    wide = {"lam", "mu", "first_at_near"}
    by_unit = {"low", "high", "size", "error", "z", "point_size", "point_error"}
    by_column = ("column_entry", "piece_feature", "piece_from", "piece_to", "order")
    whole_numbers = dict.fromkeys(by_column, columns) | {"columns_from": features + 1, "feature": features}
    by_feature = {"near", "delta", "extra", "point", "other", "score"}
    shapes: dict[str, tuple[int, ...]] = {
        "near_cost": (2,),
        "first_gain": (2, widest),
        "matrix": (widest, columns),
        "unit_gain": (deepest, widest, columns),
        "rows": (rows, columns),
        "constants": (rows,),
        "mix": (2, columns),
    }
    arrays: dict[str, NDArray[Any]] = {}
    for name in kernels.WORK:
        if name in whole_numbers:
            arrays[name] = np.zeros(whole_numbers[name], dtype=np.int64)
        elif name in wide:
            arrays[name] = np.zeros(widest)
        elif name in by_unit:
            arrays[name] = np.zeros(units)
        else:
            arrays[name] = np.zeros(shapes.get(name, (features,) if name in by_feature else (columns,)))
    return arrays

"""The arrays of one question, as the kernels read them, and points of the kernels as rows."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.constraints.differ import CountDifferent
from mace.exact import UNIT, float_up
from mace.forms import Margin
from mace.problem import Problem
from mace.solvers.domains import Allowed, Span, alike, values_between
from mace.solvers.network import kernels
from mace.solvers.network.conditions import Row, linear_rows
from mace.solvers.network.parts import NetworkPart
from mace.solvers.network.prepared import Flags, Floats, Workspace, make_workspace
from mace.space import Feature, Integer, Point, Real, Value

UNSEARCHED_SHARE = 0.8
"""How much of the accuracy the search leaves unsearched below the best point; the rest is for the rounding of its own sums."""

GRID_TOLERANCE = 1e-4
"""In steps of a grid: more than the rounding of the kernels' own values, less than how far a factual off the grid lies from it."""


class QuestionArrays:
    """The arrays of one question, or of one part of it.

    Attributes
    ----------
    is_plain : bool
        Whether they are those of every question without conditions, and may be used again.
    """

    def __init__(self, problem: Problem, part: NetworkPart) -> None:
        self.problem, self.part = problem, part
        self.made, self.costs, self.factual = part.made, part.costs, part.factual
        self.features = self.made.features
        self.is_plain = part.is_plain and not any(self._is_off_grid(j) for j in self.made.stepped)

    def workspace(self, margins: tuple[Margin, ...]) -> Workspace:
        """Return the arrays of a search, those of an earlier one where there are no conditions."""
        workspace = None
        if self.is_plain:
            with suppress(KeyError, IndexError):  # another thread may have it
                workspace = self.costs.workspaces[len(margins)].pop()
        workspace = workspace or make_workspace(self.made, self._fields(len(margins)))
        workspace.fields["digits"][:] = np.where(self._are_apart(), 1, -1) * self.made.layout.digits
        slack = self.problem.goal.slack
        for r, margin in enumerate(margins):
            workspace.fields["plus"][r] = -1 if margin.plus is None else margin.plus
            workspace.fields["minus"][r] = -1 if margin.minus is None else margin.minus
            workspace.fields["shift"][r] = float(margin.shift)
            workspace.fields["slack"][r] = float_up(slack + abs(margin.shift) * UNIT) if margin.shift or slack else 0.0
        return workspace

    def _are_apart(self) -> Flags:
        """Return of which features neighbouring floats may cost more than the accuracy tells apart."""
        cost, layout = self.costs, self.made.layout
        weight = np.maximum(cost.slope + cost.square + cost.peak, 1e-3 * cost.jump)
        apart: Flags = layout.spacing * layout.inverse * weight > UNSEARCHED_SHARE / 4 * float(self.problem.accuracy)
        return apart

    def keep(self, workspace: Workspace, margins: tuple[Margin, ...]) -> None:
        """Keep the arrays for the next question, where it may use them."""
        if self.is_plain:
            self.costs.workspaces.setdefault(len(margins), []).append(workspace)

    def _fields(self, margins: int) -> dict[str, NDArray[Any]]:
        problem, layout = self.problem, self.made.layout
        size, units = len(self.features), self.made.shape[2]
        allowed = self.made.free if self.part.allowed is None else self.part.allowed
        rows = linear_rows(problem)
        earlier = sum(isinstance(condition, CountDifferent) for condition in problem.conditions)
        spans = [_spans(*each) for each in zip(self.features, allowed, self.factual, strict=True)]
        flat = np.array([span for each in spans for span in each], dtype=np.float64).reshape(-1, 2)
        cost = self.costs
        is_allowed = np.ones(layout.slots, dtype=np.bool_)
        for j in np.flatnonzero(layout.is_table):
            for k in range(layout.levels[j]):
                is_allowed[layout.slot_from[j] + k] = any(a <= k <= b for a, b in allowed[j].spans)
        return {
            "own": np.zeros(size),
            "slot": np.zeros(size, dtype=np.int64),
            "inverse": layout.inverse,
            "is_table": layout.is_table,
            "is_grid": layout.is_grid,
            "base": layout.base,
            "step": layout.step,
            "digits": layout.digits.copy(),
            "off": np.zeros(size + 1, dtype=np.int64),
            "entry_slot": np.zeros(layout.slots, dtype=np.int64),
            "entry_delta": np.zeros(layout.slots),
            "by_delta": np.zeros(layout.slots, dtype=np.int64),
            "nearest": np.zeros(size),
            "span_off": np.cumsum([0, *map(len, spans)]),
            "span_lo": np.ascontiguousarray(flat[:, 0]),
            "span_hi": np.ascontiguousarray(flat[:, 1]),
            "jump": cost.jump,
            "slope": cost.slope,
            "square": cost.square,
            "peak": cost.peak,
            "form": cost.form.copy(),
            "plus": np.zeros(margins, dtype=np.int64),
            "minus": np.zeros(margins, dtype=np.int64),
            "shift": np.zeros(margins),
            "slack": np.zeros(margins),
            "row": self._row_slots(rows),
            "row_base": np.array([float(self._row_at_factual(row)) for row in rows]),
            "row_error": np.array([row.error for row in rows]),
            "alike_lo": np.zeros((earlier, size)),
            "alike_hi": np.zeros((earlier, size)),
            "at_least": np.zeros(earlier, dtype=np.int64),
            "factual": np.zeros(units),
            "factual_size": np.zeros(units),
            "is_allowed": is_allowed,
        }

    def _row_slots(self, rows: list[Row]) -> Floats:
        """Return the coefficients of the linear conditions by slot."""
        layout, names = self.made.layout, self.problem.space.names
        slots = np.zeros((len(rows), layout.slots))
        for r, row in enumerate(rows):
            for name, value in row.coefficients.items():
                j = names.index(name)
                start, levels = layout.slot_from[j], layout.levels[j]
                slots[r, start : start + max(1, levels)] = float(value) * (np.arange(levels) if levels else 1.0)
        return slots

    def _row_at_factual(self, row: Row) -> Fraction:
        own = dict(zip(self.problem.space.names, self.factual, strict=False))
        terms = (value * Fraction(own[name] or 0) for name, value in row.coefficients.items())
        return row.constant + sum(terms, Fraction(0))

    def is_empty(self, workspace: Workspace) -> bool:
        """Write the question into its arrays; return whether some feature has no allowed value."""
        layout, fields = self.made.layout, workspace.fields
        factual = np.array(self.factual, dtype=np.float64)
        is_allowed: Flags = fields["is_allowed"]
        if not kernels.lay_out(
            factual,
            layout.slot_from,
            layout.levels,
            layout.is_category,
            is_allowed,
            self.made.net,
            workspace.task,
            workspace.lo,
            workspace.hi,
        ):
            return True
        earlier = [condition for condition in self.problem.conditions if isinstance(condition, CountDifferent)]
        for c, condition in enumerate(earlier):
            fields["at_least"][c] = condition.features
            for j in range(len(self.features)):
                fields["alike_lo"][c, j], fields["alike_hi"][c, j] = self._alike(fields, condition, j)
        return False

    def _alike(self, fields: dict[str, NDArray[Any]], condition: CountDifferent, j: int) -> tuple[float, float]:
        """Return the range of feature j, in entries where it is a table, that counts as alike."""
        pattern = self.part.pattern
        if pattern is not None and (j >= len(pattern) or pattern[j]):
            is_alike = j >= len(pattern) or condition.earlier[j] is None
            return (-math.inf, math.inf) if is_alike else (math.inf, -math.inf)
        span = alike(self.features[j], j, condition)
        if span is None:
            return math.inf, -math.inf
        if not fields["is_table"][j]:
            return self._around(span, j) if self.made.layout.grid_error[j] else span
        slot = self.made.layout.slot_from[j] + int(span[0])
        entries = np.flatnonzero(fields["entry_slot"][fields["off"][j] : fields["off"][j + 1]] == slot)
        return (float(entries[0]), float(entries[0])) if len(entries) else (math.inf, -math.inf)

    def _around(self, span: Span, j: int) -> Span:
        """Return a range about the values of a grid that lie in a span, with room for how the kernels round them."""
        feature, own = self.features[j], self.factual[j]
        assert isinstance(feature, Real)
        ends, room = values_between(feature, *span, own), GRID_TOLERANCE * float(feature.step or 0.0)
        return (math.inf, -math.inf) if ends is None else (ends[0] - room, ends[1] + room)

    def _is_off_grid(self, j: int) -> bool:
        """Return whether a factual's own number lies off the feature's grid."""
        feature, own = self.features[j], self.factual[j]
        return isinstance(feature, Real | Integer) and own is not None and not feature.has(own)

    def point(self, v: Floats, workspace: Workspace) -> Point:
        """Return a point of the kernels as numbers of the features."""
        slot, off = workspace.fields["entry_slot"], workspace.fields["off"]
        found = tuple(
            self._number(feature, value, j)
            if isinstance(feature, Real | Integer)
            else int(slot[off[j] + int(value)] - self.made.layout.slot_from[j])
            for j, (feature, value) in enumerate(zip(self.features, v.tolist(), strict=True))
        )
        pattern = self.part.pattern
        if pattern is None:
            return found
        return tuple(None if is_missing else each for each, is_missing in zip(found, pattern, strict=False))

    def _number(self, feature: Real | Integer, value: float, j: int) -> int | float:
        own = self.factual[j]
        assert own is not None
        if value == own:
            return own
        if isinstance(feature, Integer):
            return int(value)
        if feature.step is None:
            return value
        k = round((value - feature.low) / feature.step)
        return min((feature.value_at(i) for i in (k - 1, k, k + 1)), key=lambda g: abs(g - value))


def _spans(feature: Feature, allowed: Allowed, own: Value) -> list[Span]:
    """Return the ranges that a number may lie in, their ends among its values; none for a feature with levels."""
    if not isinstance(feature, Real | Integer):
        return []
    if isinstance(feature, Integer) and feature.step is None:
        return [(math.ceil(a), math.floor(b)) for a, b in allowed.spans if math.ceil(a) <= math.floor(b)]
    if allowed.spans == ((own, own),):
        return [(float(own), float(own))]  # type: ignore[arg-type]
    return [span for a, b in allowed.spans if (span := values_between(feature, a, b, own)) is not None]

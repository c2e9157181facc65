"""The linear program of a node: where its ascent stalls, the program's dual values are better multipliers, and its point a candidate.

Nothing that the solver says is trusted: a point counts when it is judged, multipliers give whatever bound they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mace.solvers.network import kernels
from mace.solvers.network.prepared import Flags, Floats, PreparedNetwork, Workspace

VIOLATION_PENALTY = 1e3
"""What a unit of violation costs, in radii: so the program always has a solution, and its dual values exclude the node where it holds no
point."""

WORK_OF_A_PROGRAM = 2**15
"""What a linear program counts in turns with a rival, in the unit of boxes."""

BANDS_INSIDE = 2.5
"""In bands: how far inside of the goal the program looks for points."""

SideRow = tuple[Floats, float, bool]
"""A row that is at most a limit, or at most the limit and the greatest change."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A point over the columns, multipliers, and by unit how strongly its sign holds the point back."""

    x: Floats
    alpha: Floats
    beta: Floats
    mix: Floats
    hold: Floats


class NodeProgram:
    """The linear programs of one network and one question."""

    def __init__(self, made: PreparedNetwork, workspace: Workspace) -> None:
        self.arrays, self.widths = made.arrays, made.arrays["width"].tolist()
        self.fields, self.scratch = workspace.fields, workspace.scratch
        self.task, self.work = workspace.task, workspace.work

    def solve(
        self, low: Floats, high: Floats, is_free: Flags, radius: float, box: kernels.InputBox, seconds: float
    ) -> Solution | None:
        """Return what the program over a box says whose units have ranges; ``None`` where the solver fails, or takes so many seconds.

        Ranges of decided units are rows of the program only where ``is_free``: the box itself keeps the others.
        """
        columns = self._columns(box, radius)
        rows = _Rows(columns.shape[1], low, high, is_free)
        begin = self.scratch["first_at_near"][: self.widths[0]]
        form, constant = self.scratch["matrix"][: self.widths[0], : box.columns] @ columns, begin.copy()
        for k, width in enumerate(self.widths[:-1]):
            form, constant = rows.bent(k, form, constant, self.arrays["bend"][k, :width])
            weight = self.arrays["weight"][k + 1, : self.widths[k + 1], :width]
            form, constant = weight @ form, weight @ constant + self.arrays["offset"][k + 1, : self.widths[k + 1]]
        self._goal(rows, form, constant, columns, box)
        found = rows.optimum(*self._costs(box, radius), seconds)
        if found is None:
            return None
        values, dual = found
        return rows.read(columns @ values[: columns.shape[1]], dual)

    def _columns(self, box: kernels.InputBox, radius: float) -> Floats:
        """Return the columns as sums of variables: a number by its two directions in radii of its range, an entry by its weight."""
        made = np.zeros((box.columns, 2 * box.columns))
        for f in range(box.free):
            j = int(self.scratch["feature"][f])
            first, last = (int(self.scratch["columns_from"][f + n]) for n in range(2))
            for c in range(first, last):
                if self.fields["is_table"][j]:
                    made[c, 2 * c] = 1.0
                else:
                    share = radius / self.fields["inverse"][j]
                    made[c, 2 * c], made[c, 2 * c + 1] = share, -share
        return made

    def _goal(self, rows: _Rows, form: Floats, constant: Floats, columns: Floats, box: kernels.InputBox) -> None:
        """Add the rows of the goal, a little inside."""
        fields = self.fields
        for r in range(len(fields["plus"])):
            line, value, band = np.zeros(form.shape[1]), float(fields["shift"][r]), float(fields["slack"][r])
            for unit, sign in ((int(fields["plus"][r]), 1.0), (int(fields["minus"][r]), -1.0)):
                if unit >= 0:
                    line, value = line + sign * form[unit], value + sign * constant[unit]
                    band += float(self.scratch["error"][len(self.widths) - 1, unit])
            rows.goal(line, value - BANDS_INSIDE * (band + float(self.arrays["squash"])))
        for q in range(len(fields["row_base"])):
            gains = np.zeros(box.columns)
            for f in range(box.free):
                j = int(self.scratch["feature"][f])
                for c in range(int(self.scratch["columns_from"][f]), int(self.scratch["columns_from"][f + 1])):
                    gains[c] = self._condition_gain(q, j, c)
            value = float(kernels.linear_row(q, self.scratch["near"], self.task))
            line = np.zeros(form.shape[1])
            line[: columns.shape[1]] = gains @ columns
            rows.goal(line, value - BANDS_INSIDE * float(fields["row_error"][q]))

    def _condition_gain(self, q: int, j: int, c: int) -> float:
        fields = self.fields
        if not fields["is_table"][j]:
            return float(fields["row"][q, fields["slot"][j]])
        here = kernels.slot_of(j, self.scratch["near"][j], self.task)
        there = fields["entry_slot"][fields["off"][j] + self.scratch["column_entry"][c]]
        return float(fields["row"][q, there] - fields["row"][q, here])

    def _costs(self, box: kernels.InputBox, radius: float) -> tuple[Floats, Floats, list[SideRow]]:
        """Return what the variables cost in radii, how large they may be, and rows beside: the weights of entries, the greatest change."""
        fields, scratch = self.fields, self.scratch
        size = 2 * box.columns
        cost, upper = np.zeros(size), np.zeros(size)
        beside: list[SideRow] = []
        is_peak = int(fields["form"][0]) == kernels.PEAK
        for f in range(box.free):
            j = int(scratch["feature"][f])
            first, last = (int(scratch["columns_from"][f + n]) for n in range(2))
            rate = float(fields["peak" if is_peak else "slope"][j])
            reach = np.zeros(size)
            if fields["is_table"][j]:
                entries = fields["off"][j] + scratch["column_entry"][first:last]
                reach[2 * first : 2 * last : 2] = rate * (fields["entry_delta"][entries] - scratch["delta"][j]) / radius
                upper[2 * first : 2 * last : 2] = 1.0
                beside.append((upper * (np.arange(size) // 2 >= first) * (np.arange(size) // 2 < last), 1.0, False))
            else:
                near, share = scratch["near"][j], fields["inverse"][j] / radius
                upper[2 * first], upper[2 * first + 1] = (box.hi[j] - near) * share, (near - box.lo[j]) * share
                reach[2 * first : 2 * last] = rate
            cost += reach
            if is_peak:
                beside.append((reach, -rate * float(scratch["delta"][j]) / radius, True))
        return (np.zeros(size) if is_peak else cost), upper, beside


class _Rows:
    """The rows of a program in the making: over the columns' variables, then the activations of bent units."""

    def __init__(self, size: int, low: Floats, high: Floats, is_free: Flags) -> None:
        self.size, self.low, self.high, self.is_free = size, low, high, is_free
        self.units: list[tuple[int, int, str]] = []
        self.lines: list[Floats] = []
        self.limits: list[float] = []
        self.goals: list[int] = []
        self.bent_units = 0

    def bent(self, k: int, form: Floats, constant: Floats, bend: Floats) -> tuple[Floats, Floats]:
        """Return the activations of a layer; where a unit is bent, a new variable between its lines."""
        low, high = self.low[k, : len(bend)], self.high[k, : len(bend)]
        is_bent = (low < 0) & (high > 0) & (bend != 1)
        slope = np.where((low >= 0) | (bend == 1), 1.0, bend)
        out = np.hstack([slope[:, None] * form, np.zeros((len(bend), int(is_bent.sum())))])
        level = slope * constant
        new = form.shape[1]
        for i in range(len(bend)):
            if bend[i] == 1 or not (is_bent[i] or self.is_free[k, i]):
                continue
            line = np.append(form[i], np.zeros(out.shape[1] - form.shape[1]))
            if not is_bent[i]:
                is_on = low[i] >= 0
                self._add(k, i, "on" if is_on else "off", -line if is_on else line, constant[i] * (1 if is_on else -1))
                self.limits[-1] += -low[i] if is_on else high[i]
                continue
            own = np.zeros(out.shape[1])
            own[new] = 1.0
            chord = (high[i] - bend[i] * low[i]) / (high[i] - low[i])
            self._add(k, i, "one", line - own, -constant[i])
            self._add(k, i, "bend", bend[i] * line - own, -bend[i] * constant[i])
            self._add(k, i, "chord", own - chord * line, chord * (constant[i] - low[i]) + bend[i] * low[i])
            out[i], level[i] = own, 0.0
            new += 1
        self.bent_units += int(is_bent.sum())
        return out, level

    def _add(self, k: int, i: int, name: str, line: Floats, limit: float) -> None:
        self.units.append((k, i, name))
        self.lines.append(line)
        self.limits.append(float(limit))

    def goal(self, line: Floats, value: float) -> None:
        """Add a row of the goal: line + value is at least 0."""
        self.goals.append(len(self.lines))
        self.units.append((-1, len(self.goals) - 1, "goal"))
        self.lines.append(-line)
        self.limits.append(value)

    def optimum(
        self, cost: Floats, upper: Floats, beside: list[SideRow], seconds: float
    ) -> tuple[Floats, Floats] | None:
        """Return the solution and the dual values of the rows; ``None`` where the solver fails."""
        count, size = len(self.lines), self.size + self.bent_units
        matrix = np.zeros((count + len(beside), size + 2))
        for row, line in zip(matrix, self.lines, strict=False):
            row[: len(line)] = line
        scale = np.maximum(np.abs(matrix[:count, : self.size]).max(axis=1, initial=0.0), 1e-12)
        matrix[:count] /= scale[:, None]
        matrix[:count, size] = -1.0
        limits = np.append(np.array(self.limits) / scale, [limit for _, limit, _ in beside])
        for row, (line, _, is_change) in zip(matrix[count:], beside, strict=True):
            row[: self.size], row[size + 1] = line, -1.0 * is_change
        is_peak = any(is_change for _, _, is_change in beside)
        objective = np.concatenate([cost, np.zeros(self.bent_units), [VIOLATION_PENALTY, 1.0 * is_peak]])
        least = np.concatenate([np.zeros(self.size), np.full(self.bent_units, -np.inf), np.zeros(2)])
        most = np.concatenate([upper, np.full(self.bent_units + 2, np.inf)])
        found = _solved(objective, matrix, limits, least, most, seconds)
        return None if found is None else (found[0], np.maximum(-found[1][:count], 0.0) / scale)

    def read(self, x: Floats, dual: Floats) -> Solution:
        """Return the dual values of the rows as multipliers of a combination."""
        alpha, beta, hold = (np.zeros_like(self.low) for _ in range(3))
        mix = dual[self.goals] + 1e-9 * dual.max(initial=1e-9)
        scale = 1.0 / math.fsum(mix)
        by_unit: dict[tuple[int, int], dict[str, float]] = {}
        for (k, i, name), value in zip(self.units, dual.tolist(), strict=True):
            if k >= 0:
                by_unit.setdefault((k, i), {})[name] = value * scale
        for (k, i), values in by_unit.items():
            if "one" not in values:
                beta[k, i] = values.get("on", 0.0) - values.get("off", 0.0)
                hold[k, i] = abs(beta[k, i])
            elif values["one"] + values["bend"] > 0:
                alpha[k, i] = values["one"] / (values["one"] + values["bend"])
        return Solution(x, alpha, beta, mix * scale, hold)


def _solved(
    cost: Floats, matrix: Floats, limits: Floats, low: Floats, high: Floats, seconds: float
) -> tuple[Floats, Floats] | None:
    """Return the point and the dual values that HiGHS gives for: least cost·x with matrix·x <= limits, low <= x <= high."""
    from mace.solvers.linear_program import SIMPLEX_OPTIONS, loaded, rows_of

    options = {**SIMPLEX_OPTIONS, "time_limit": max(seconds, 1e-3)}
    highs = loaded(options, cost, low, high, rows_of(matrix), np.full(len(limits), -np.inf), limits)
    highs.run()
    solution = highs.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)
    is_usable = len(x) == len(cost) and len(dual) == len(limits) and np.isfinite(x).all() and np.isfinite(dual).all()
    return (x, dual) if is_usable else None

"""Models over actions: the equations taken into trees and networks, exactly or with a bound on the difference.

A tree that asks for an effect of a single feature asks for that feature instead, at the float where the computed effect crosses the
edge. A network passes the weights of an effect on to the actions that it is a sum of.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mace.certify.effects.actions import OnRow, asked_of_rows
from mace.certify.effects.causes import Causes
from mace.certify.effects.conditions import OverActions
from mace.certify.verdict import Refuted
from mace.constraints.typical import Usual
from mace.forms import EffectsForm, Interval, Network, Outcomes, TreeEnsemble
from mace.problem import Problem
from mace.space import Column, Filled

CANNOT = "evidence.lane: the equations cannot be taken into the model, which the proof is about"


def over_actions(asked: Problem) -> Problem:
    """Return a question about actions with a plain model: every answer of the one is an answer of the other, at the same distance.

    What the conditions say of the actions is added to them. Raises where the equations cannot be taken into the model.
    """
    form, goal = asked.form, asked.goal
    assert isinstance(form, EffectsForm)
    causes = Causes(asked, form.effects)
    guards = OverActions(causes)
    forests = [
        _forest(each.condition, causes)
        for each in asked.conditions
        if isinstance(each, OnRow) and isinstance(each.condition, Usual)
    ]
    implied = [found for each in asked.conditions for found in guards.implied(each)]
    conditions = (*asked.conditions, *implied, *forests)
    if isinstance(form.inner, TreeEnsemble):
        return replace(asked, form=trees_over_actions(form.inner, causes), conditions=conditions)
    if isinstance(form.inner, Network) and isinstance(goal, Outcomes | Interval):
        network, off = network_over_actions(form.inner, causes)
        slack = goal.slack + off + form.inner.rounding(form.effects.widened(asked.box()))
        return replace(asked, form=network, goal=replace(goal, slack=slack), conditions=conditions)
    raise Refuted(CANNOT)


def _forest(usual: Usual, causes: Causes) -> Usual:
    """Return what an isolation forest says of the row that actions lead to."""
    reading = usual.reading
    assert isinstance(reading.form, TreeEnsemble)
    form, ask = trees_over_actions(reading.form, causes), asked_of_rows(reading.ask, causes.effects)
    return Usual(usual.space, replace(reading, form=form, ask=ask))


def _is_plain(column: Column) -> bool:
    return column.table is None and not isinstance(column, Filled)


def _position(columns: list[Column], feature: int, name: str, table: tuple[float, ...] | None) -> int:
    """Return the position of a column that reads a feature so; it is added where there is none."""
    for position, column in enumerate(columns):
        if (column.feature, column.table) == (feature, table) and not isinstance(column, Filled):
            return position
    columns.append(Column(name, feature, table))
    return len(columns) - 1


# ---- trees


def trees_over_actions(form: TreeEnsemble, causes: Causes) -> TreeEnsemble:
    """Return an ensemble that takes actions to the leaves that the given one takes their rows to."""
    columns, space = list(form.columns), causes.space
    column, edge = form.column.copy(), form.edge.copy()
    left, right = form.left.copy(), form.right.copy()
    crossings: dict[tuple[str, float], tuple[float, bool, bool]] = {}
    for node in np.flatnonzero(form.left >= 0).tolist():
        asks = form.columns[form.column[node]]
        name, at = space.names[asks.feature], float(form.edge[node])
        if name not in causes.names:
            continue
        if not _is_plain(asks) or form.subset[node] >= 0 or math.isinf(at):
            raise Refuted(CANNOT)
        if name in causes.constants:
            # Actions leave the effect at the factual's own value; the edge is put on the side of it where the constant lies.
            own = float(causes.problem.factual[asks.feature] or 0)
            edge[node] = own if causes.constants[name] <= at else math.nextafter(own, -math.inf)
            continue
        if name not in causes.roots:
            raise Refuted(CANNOT)
        root = causes.roots[name]
        column[node] = _position(columns, space.index(root.name), root.name, root.table)
        if root.table is not None:
            continue
        if (name, at) not in crossings:
            crossings[name, at] = causes.crossing(name, Fraction(at))
        edge[node], before, after = crossings[name, at]
        if not before and not after:
            edge[node] = math.nextafter(causes.ends(root.name)[0], -math.inf)
        elif not before:
            left[node], right[node] = form.right[node], form.left[node]
    return replace(form, columns=tuple(columns), column=column, edge=edge, left=left, right=right)


# ---- networks


def network_over_actions(network: Network, causes: Causes) -> tuple[Network, Fraction]:
    """Return a network over actions, and by how much the difference of two of its scores may be off that of the row's.

    Its first weights are computed in fractions and rounded once; what that and the rounding of the effects move is carried through
    the layers, whose units change by at most as much as their inputs.
    """
    columns = [column for column in network.columns if causes.space.names[column.feature] not in causes.names]
    units = [_Unit(network, number, causes, columns) for number in range(len(network.biases[0]))]
    largest = [_largest(column, causes) for column in columns]
    weight = np.array([[float(unit.weights.get(k, 0)) for k in range(len(columns))] for unit in units])
    bias = np.array([float(unit.bias) for unit in units])
    off = [
        unit.off
        + abs(unit.bias - Fraction(float(bias[number])))
        + sum(abs(exact - Fraction(float(weight[number, k]))) * largest[k] for k, exact in unit.weights.items())
        for number, unit in enumerate(units)
    ]
    for later in network.weights[1:]:
        off = [
            sum((abs(Fraction(float(w))) * e for w, e in zip(row, off, strict=True) if w), Fraction(0)) for row in later
        ]
    made = replace(
        network,
        columns=tuple(columns),
        weights=(weight.reshape(len(units), len(columns)), *network.weights[1:]),
        biases=(bias, *network.biases[1:]),
        sizes=None,
    )
    return made, 2 * max(off)


class _Unit:
    """A unit of the first layer over actions: exact weights by position of their column, a bias, and how far effects are rounded."""

    def __init__(self, network: Network, number: int, causes: Causes, columns: list[Column]) -> None:
        self.weights: dict[int, Fraction] = {}
        self.bias, self.off = Fraction(float(network.biases[0][number])), Fraction(0)
        space, positions = causes.space, iter(range(len(network.columns)))
        for share, column in zip(network.weights[0][number], network.columns, strict=True):
            weight, name = Fraction(float(share)), space.names[column.feature]
            if name not in causes.names:
                self._add(next(positions), weight)
                continue
            if not _is_plain(column):
                raise Refuted(CANNOT)
            total, root = causes.sums.get(name), causes.roots.get(name)
            if total is not None:
                self.bias += weight * total.form[1]
                self.off += abs(weight) * total.rounding
                for cause, part in total.form[0].items():
                    self._add(_position(columns, space.index(cause), cause, None), weight * part)
            elif root is not None and root.table is not None:
                self._add(_position(columns, space.index(root.name), root.name, root.table), weight)
            else:
                raise Refuted(CANNOT)

    def _add(self, position: int, weight: Fraction) -> None:
        self.weights[position] = self.weights.get(position, Fraction(0)) + weight


def _largest(column: Column, causes: Causes) -> Fraction:
    """Return the greatest absolute value of a column."""
    if column.table is not None:
        return Fraction(max(map(abs, column.table)))
    known = max(abs(Fraction(end)) for end in causes.ends(causes.space.names[column.feature]))
    return max(known, Fraction(abs(column.missing))) if isinstance(column, Filled) else known

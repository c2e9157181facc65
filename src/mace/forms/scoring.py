"""What tree ensembles and networks share: columns in programs, and the choice of the class."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mace.exact import Floats
from mace.language import syntax
from mace.space import RESERVED, Column, FeatureSpace, Filled, Point, Value

FEW = 4
"""The columns of so few rows are made faster cell by cell."""


def split_guard(space: FeatureSpace, column: Column, edge: float, missing_left: bool) -> syntax.Guard:
    """Return the guard ``column <= edge`` over the feature that the column reads."""
    name = space.names[column.feature]
    if column.table is not None:
        return positions_guard(name, [value <= edge for value in column.table])
    # Where a tree splits off missing values only, its edge is infinite.
    guard: syntax.Guard = (
        syntax.TRUE if math.isinf(edge) else syntax.Compare("<=", syntax.Variable(name), syntax.constant(edge))
    )
    if not space[name].missing:
        return guard
    return (
        syntax.Or((syntax.Missing(name), guard))
        if missing_left
        else syntax.And((syntax.Not(syntax.Missing(name)), guard))
    )


def positions_guard(name: str, inside: Sequence[bool]) -> syntax.Guard:
    """Return the guard that the position of a level is one of those inside, in its shortest form."""
    size, variable = len(inside), syntax.Variable(name)
    chosen = [position for position in range(size) if inside[position]]
    if not chosen or len(chosen) == size:
        return syntax.disjunction([]) if not chosen else syntax.negation(syntax.disjunction([]))
    if chosen[-1] - chosen[0] + 1 == len(chosen):
        if len(chosen) == 1:
            return syntax.Compare("==", variable, syntax.constant(chosen[0]))
        if chosen[0] == 0:
            return (
                syntax.Compare("<=", variable, syntax.constant(chosen[-1]))
                if size - len(chosen) > 1
                else _differs(name, size - 1)
            )
        if chosen[-1] == size - 1:
            return syntax.Compare(">=", variable, syntax.constant(chosen[0])) if chosen[0] > 1 else _differs(name, 0)
    if size - len(chosen) == 1:
        return _differs(name, next(position for position in range(size) if not inside[position]))
    return syntax.disjunction(syntax.Compare("==", variable, syntax.constant(position)) for position in chosen)


def _differs(name: str, position: int) -> syntax.Guard:
    return syntax.Compare("!=", syntax.Variable(name), syntax.constant(position))


def score_names(count: int) -> tuple[str, ...]:
    """Return the names of the variables of scores, by how many there are."""
    return (f"{RESERVED}score",) if count == 1 else tuple(f"{RESERVED}score_{k}" for k in range(count))


def outcome_command(names: Sequence[str], *, is_regressor: bool, ties_last: bool = False) -> syntax.Command:
    """Return the command that returns the outcome of scores: the only one itself, or the class that they choose."""
    if is_regressor:
        return syntax.Return(syntax.Variable(names[0]))
    if len(names) > 1:
        return _pick_class(names)
    sign: syntax.CompareName = ">=" if ties_last else ">"
    return syntax.Return(syntax.Indicator(syntax.Compare(sign, syntax.Variable(names[0]), syntax.ZERO)))


def _pick_class(names: Sequence[str]) -> syntax.Command:
    """Return the command that returns the position of the greatest score, the first of equals."""
    best, greatest = f"{RESERVED}best", f"{RESERVED}greatest"
    steps: list[syntax.Command] = [syntax.Assign(best, syntax.ZERO), syntax.Assign(greatest, syntax.Variable(names[0]))]
    for k, name in enumerate(names[1:], start=1):
        ahead = syntax.sequence(
            [syntax.Assign(best, syntax.constant(k)), syntax.Assign(greatest, syntax.Variable(name))]
        )
        steps.append(
            syntax.If(syntax.Compare(">", syntax.Variable(name), syntax.Variable(greatest)), ahead, syntax.Skip())
        )
    return syntax.sequence([*steps, syntax.Return(syntax.Variable(best))])


def column_values(columns: Sequence[Column], points: Sequence[Point]) -> Floats:
    """Return the float64 columns of points, NaN where missing."""
    if len(points) < FEW:
        return np.array([[_cell(column, point[column.feature]) for column in columns] for point in points], np.float64)
    numbers = np.array([[np.nan if value is None else value for value in point] for point in points], dtype=np.float64)
    return encode_numbers(columns, numbers)


def _cell(column: Column, value: Value) -> float:
    if column.table is not None and value is not None:
        return column.table[int(value)]
    number = math.nan if value is None else float(value)
    if not isinstance(column, Filled):
        return number
    return column.missing if value is None else 0.0 if column.is_flag else number


def encode_numbers(columns: Sequence[Column], numbers: Floats) -> Floats:
    """Return the columns of a matrix of features' numbers."""
    return np.column_stack([_encoded(column, numbers[:, column.feature]) for column in columns])


def _encoded(column: Column, numbers: Floats) -> Floats:
    if column.table is not None:
        return np.array(column.table)[numbers.astype(np.intp)]
    if not isinstance(column, Filled):
        return numbers
    return np.where(np.isnan(numbers), column.missing, 0.0 if column.is_flag else numbers)

"""What is known while reading: whole numbers, and truths about whole numbers.

Only whole numbers are ever calculated ahead; a float keeps its operations, for its rounding is analysed later.
"""

from __future__ import annotations

from mace.language import syntax
from mace.language.run import evaluate, holds


def whole(expression: syntax.Expression) -> int | None:
    """Return the value of an expression over whole constants; None for any other."""
    return int(evaluate(expression, {})) if _is_whole(expression) else None


def decided(guard: syntax.Guard) -> bool | None:
    """Return whether a guard over whole constants holds; None for any other."""
    return holds(guard, {}) if _is_whole(guard) else None


LARGEST = 2**53
"""Whole numbers up to here are the same in floats and in integers."""


def _is_whole(node: syntax.Expression | syntax.Guard) -> bool:
    """Whether a node is made of whole constants, so small that Python decides it alike in floats and in integers."""
    return _has_whole_constants(node) and _size(node) < LARGEST


def _size(node: syntax.Expression | syntax.Guard) -> int:
    """Return a bound on every number that evaluating a node of whole constants gives."""
    match node:
        case syntax.Constant(value):
            return abs(int(value))
        case syntax.Unary(_, inner) | syntax.Indicator(inner) | syntax.Not(inner):
            return max(1, _size(inner))
        case syntax.Binary("*", left, right):
            return max(_size(left), _size(right), _size(left) * _size(right))
        case syntax.Binary("min" | "max", left, right) | syntax.Compare(_, left, right):
            return max(_size(left), _size(right))
        case syntax.Binary(_, left, right):
            return _size(left) + _size(right)
        case syntax.And(parts) | syntax.Or(parts):
            return max((_size(part) for part in parts), default=1)
        case _:
            return 1


def _has_whole_constants(node: syntax.Expression | syntax.Guard) -> bool:
    pending: list[syntax.Expression | syntax.Guard] = [node]
    while pending:
        match pending.pop():
            case syntax.Variable() | syntax.Missing() | syntax.Binary("/", _, _):
                return False
            case syntax.Constant(value):
                if value.denominator != 1:
                    return False
            case syntax.Unary(_, inner) | syntax.Indicator(inner) | syntax.Not(inner):
                pending.append(inner)
            case syntax.Binary(_, left, right) | syntax.Compare(_, left, right):
                pending += (left, right)
            case syntax.And(parts) | syntax.Or(parts):
                pending.extend(parts)
            case syntax.Truth():
                pass
    return True

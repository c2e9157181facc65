"""What is known while reading: whole numbers, and truths about whole numbers.

Only whole numbers are ever calculated ahead; a float keeps its operations, for its rounding is analysed later.
"""

from __future__ import annotations

import math

from mace.exact import WHOLE
from mace.language import syntax
from mace.language.run import evaluate, holds
from mace.language.walk import fold


def whole(expression: syntax.Expression) -> int | None:
    """Return the value of an expression over whole constants; None for any other."""
    return int(evaluate(expression, {})) if _is_whole(expression) else None


def decided(guard: syntax.Guard) -> bool | None:
    """Return whether a guard over whole constants holds; None for any other."""
    return holds(guard, {}) if _is_whole(guard) else None


def _is_whole(node: syntax.Expression | syntax.Guard) -> bool:
    """Whether a node is made of whole constants, so small that Python decides it alike in floats and in integers."""
    return all(map(_may_be_whole, syntax.nodes(node))) and fold(node, _size) < WHOLE


def _may_be_whole(node: syntax.Node) -> bool:
    match node:
        case syntax.Variable() | syntax.Missing() | syntax.Binary("/", _, _):
            return False
        case syntax.Constant(value):
            return value.denominator == 1
        case _:
            return True


def _size(node: syntax.Node, sizes: list[int]) -> int:
    """Return a bound on every number that evaluating a node of whole constants gives, from those of its children."""
    match node:
        case syntax.Constant(value):
            return abs(int(value))
        case syntax.Binary("*", _, _):
            return max(*sizes, math.prod(sizes))
        case syntax.Binary("+" | "-", _, _):
            return sum(sizes)
        case syntax.Binary():
            return max(sizes)
        case _:
            return max([1, *sizes])

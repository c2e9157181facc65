"""What is known while reading: whole numbers, and truths about whole numbers.

Only whole numbers are ever calculated ahead; a float keeps its operations, for its rounding is analysed later.
"""

from __future__ import annotations

from mace.language.run import evaluate, holds
from mace.language.syntax import (
    And,
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
    Indicator,
    Missing,
    Not,
    Or,
    Truth,
    Unary,
    Variable,
)


def whole(expression: Expression) -> int | None:
    """Return the value of an expression over whole constants; None for any other."""
    return int(evaluate(expression, {})) if _is_whole(expression) else None


def decided(guard: Guard) -> bool | None:
    """Return whether a guard over whole constants holds; None for any other."""
    return holds(guard, {}) if _is_whole(guard) else None


def _is_whole(node: Expression | Guard) -> bool:
    pending: list[Expression | Guard] = [node]
    while pending:
        match pending.pop():
            case Variable() | Missing() | Binary("/", _, _):
                return False
            case Constant(value):
                if value.denominator != 1:
                    return False
            case Unary(_, inner) | Indicator(inner) | Not(inner):
                pending.append(inner)
            case Binary(_, left, right) | Compare(_, left, right):
                pending += (left, right)
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Truth():
                pass
    return True

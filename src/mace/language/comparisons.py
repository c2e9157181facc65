"""Comparisons of the source: numbers with numbers, levels with levels."""

from __future__ import annotations

import ast
from fractions import Fraction

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.scope import Scope
from mace.language.values import Fields, Items, Label, Level, Number, Test, Text, Value, is_numeric, position

_NAMES: dict[type[ast.cmpop], syntax.CompareName] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def compare_values(scope: Scope, node: ast.AST, operator: ast.cmpop, left: Value, right: Value) -> syntax.Guard:
    """Return the guard of one comparison."""
    match operator:
        case ast.In():
            return _member(scope, node, left, right)
        case ast.NotIn():
            return syntax.Not(_member(scope, node, left, right))
        case ast.Is() | ast.IsNot():
            raise scope.refuse(node, "`is` compares objects", "Values may be compared. Write == or !=, or isnan(x).")
        case _:
            return _compare(scope, node, _NAMES[type(operator)], left, right)


def _member(scope: Scope, node: ast.AST, item: Value, container: Value) -> syntax.Guard:
    if not isinstance(container, Items):
        raise scope.refuse(node, "`in` needs a list", "A tuple, list or set is accepted. Write x in (1, 2).")
    parts = [_compare(scope, node, "==", item, other) for other in container.items]
    if not parts:
        return syntax.FALSE
    return parts[0] if len(parts) == 1 else syntax.Or(tuple(parts))


def _compare(scope: Scope, node: ast.AST, name: syntax.CompareName, left: Value, right: Value) -> syntax.Guard:
    match left, right:
        case Level(), Level() if not (is_numeric(left.levels) and is_numeric(right.levels)):
            return _between_levels(scope, node, name, left, right)
        case Level(), (Text() | Number() | Test()):
            return _with_constant(scope, node, name, left, right)
        case ((Text() | Number() | Test()), Level()):
            return _with_constant(scope, node, syntax.MIRRORED[name], right, left)
        case ((Text() | Label()), (Text() | Label())):
            return _between_texts(scope, node, name, left, right)
        case (Items() | Fields() | Text() | Label(), _) | (_, Items() | Fields() | Text() | Label()):
            raise scope.refuse(
                node,
                "values of different kinds are compared",
                "Numbers compare with numbers, levels with their own levels, strings with strings. Compare one entry.",
            )
        case _:
            return syntax.Compare(name, scope.numeric(node, left), scope.numeric(node, right))


def _with_constant(scope: Scope, node: ast.AST, name: syntax.CompareName, level: Level, other: Value) -> syntax.Guard:
    place = position(level.levels, other)
    numeric = is_numeric(level.levels)
    if place is not None and (name in ("==", "!=") or not numeric):
        if name not in ("==", "!="):
            _need_order(scope, node, level)
        return syntax.Compare(name, level.expression, syntax.Constant(Fraction(place)))
    if numeric and not isinstance(other, Text):
        return syntax.Compare(name, scope.numeric(node, level), scope.numeric(node, other))
    raise _unknown_level(scope, node, level, other)


def _unknown_level(scope: Scope, node: ast.AST, level: Level, other: Value) -> InvalidProgram:
    shown = ", ".join(map(repr, level.levels))
    if isinstance(other, Text):
        found = f"{other.text!r} is not a level"
        hint = did_you_mean(other.text, level.levels)
    else:
        found, hint = "a level is compared with a number", ""
    return scope.refuse(node, found, f"The levels are {shown}.{hint} Compare with one of them.")


def _between_levels(scope: Scope, node: ast.AST, name: syntax.CompareName, left: Level, right: Level) -> syntax.Guard:
    if left.levels != right.levels:
        raise scope.refuse(
            node,
            "features with different levels are compared",
            "Features with equal levels may be compared. Compare each with a level.",
        )
    if name not in ("==", "!="):
        _need_order(scope, node, left)
        _need_order(scope, node, right)
    return syntax.Compare(name, left.expression, right.expression)


def _need_order(scope: Scope, node: ast.AST, level: Level) -> None:
    if not level.ordered:
        shown = ", ".join(map(repr, level.levels))
        raise scope.refuse(
            node,
            "levels without an order are compared by size",
            f"The levels {shown} may be compared with ==, != and in. Name the levels, or make the feature ordinal.",
        )


def _between_texts(
    scope: Scope, node: ast.AST, name: syntax.CompareName, left: Text | Label, right: Text | Label
) -> syntax.Guard:
    if name not in ("==", "!="):
        raise scope.refuse(node, "strings are compared by size", "== and != are accepted. Compare numbers.")
    if isinstance(left, Text) and isinstance(right, Text):
        return syntax.Truth((left.text == right.text) == (name == "=="))
    return syntax.Compare(name, scope.stored(node, left), scope.stored(node, right))


def truth(scope: Scope, node: ast.AST, value: Value) -> syntax.Guard:
    """Return the guard of a value used as a condition: a number is true unless it is 0."""
    match value:
        case Test(guard):
            return guard
        case Level(expression, levels, _) if is_numeric(levels):
            places = [place for place, level in enumerate(levels) if level]
            return syntax.disjunction(
                syntax.Compare("==", expression, syntax.Constant(Fraction(place))) for place in places
            )
        case _:
            return syntax.Compare("!=", scope.numeric(node, value), syntax.Constant(Fraction(0)))

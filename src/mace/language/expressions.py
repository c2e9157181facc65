"""Translate Python expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mace.errors import did_you_mean
from mace.language import syntax
from mace.language.comparisons import compare_values, truth
from mace.language.folding import decided, whole
from mace.language.scope import Scope, describe
from mace.language.trampoline import Steps, each
from mace.language.values import (
    Fields,
    Items,
    Level,
    Number,
    Test,
    Text,
    Value,
    as_float,
    as_number,
    from_object,
    from_symbol,
)

_OPERATORS: dict[type[ast.operator], syntax.BinaryName] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_LARGEST_POWER = 16
_LARGEST_RANGE = 1_000_000
_ACCEPTED_CALLS = "abs, min, max, sum, len, any, all, bool, float and isnan are accepted. Write the steps in full."

Store = Callable[[ast.expr, Value], None]


class Expressions:
    """Translates expressions; what cannot stand inside one is put before it, in the scope's block."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def value(self, node: ast.expr) -> Steps[Value]:
        """Return what an expression stands for."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self.scope.lookup(node)
            case ast.Attribute(base, field):
                return self._field(node, (yield self.value(base)), field)
            case ast.UnaryOp(ast.USub() | ast.UAdd() as sign, operand):
                return self._signed(sign, operand, (yield self.number(operand)))
            case ast.BoolOp():
                return Test((yield self._junction(node, self._boolean)))
            case ast.Compare() | ast.UnaryOp(ast.Not(), _):
                return Test((yield self.test(node)))
            case ast.List(items) | ast.Tuple(items) | ast.Set(items):
                listed: list[Value] = yield each(map(self.value, items))
                return Items(tuple(listed))
            case _:
                other: Value = yield self._compound(node)
                return other

    def _compound(self, node: ast.expr) -> Steps[Value]:
        match node:
            case ast.BinOp():
                return Number((yield self._binary(node)))
            case ast.IfExp():
                chosen: Value = yield self.choice(node, self.scope.fresh("t"))
                return chosen
            case ast.Subscript():
                item: Value = yield self._subscript(node)
                return item
            case ast.ListComp(element, generators) | ast.GeneratorExp(element, generators):
                found: list[Value] = []
                yield self._comprehend(element, generators, found)
                return Items(tuple(found))
            case ast.Call():
                result: Value = yield self._call(node)
                return result
            case _:
                raise self.scope.refuse(
                    node,
                    f"{describe(node)} is not accepted",
                    "Numbers, names, + - * /, comparisons, and/or/not, conditional expressions, lists and "
                    f"{_ACCEPTED_CALLS}",
                )

    def number(self, node: ast.expr) -> Steps[syntax.Expression]:
        """Return an expression as a number."""
        value: Value = yield self.value(node)
        return self.scope.numeric(node, value)

    def test(self, node: ast.expr) -> Steps[syntax.Guard]:
        """Return an expression as a condition."""
        match node:
            case ast.BoolOp():
                guard: syntax.Guard = yield self._junction(node, self.test)
                return guard
            case ast.UnaryOp(ast.Not(), operand):
                return syntax.Not((yield self.test(operand)))
            case ast.Compare(left, operators, others):
                seen: list[Value] = [(yield self.value(left))]
                links = [self._link(node, *pair, seen) for pair in zip(operators, others, strict=True)]
                chain: syntax.Guard = yield self._short(syntax.And, links)
                return chain
            case _:
                return truth(self.scope, node, (yield self.value(node)))

    def into(self, node: ast.expr, store: Store) -> Steps[None]:
        """Give the value of ``node`` to ``store``, once in each branch of a conditional expression."""
        if not isinstance(node, ast.IfExp):
            value: Value = yield self.value(node)
            store(node, value)
            return
        guard: syntax.Guard = yield self.test(node.test)
        known = decided(guard)
        if known is not None:
            yield self.into(node.body if known else node.orelse, store)
            return
        with self.scope.captured() as then:
            yield self.into(node.body, store)
        with self.scope.captured() as otherwise:
            yield self.into(node.orelse, store)
        self.scope.emit(syntax.If(guard, syntax.sequence(then), syntax.sequence(otherwise)))

    def choice(self, node: ast.expr, variable: str) -> Steps[Value]:
        """Assign the value of ``node`` to ``variable``; return what the variable stands for then."""
        values: list[Value] = []

        def store(place: ast.expr, value: Value) -> None:
            self.scope.emit(syntax.Assign(variable, self.scope.stored(place, value)))
            values.append(value)

        yield self.into(node, store)
        return self.scope.bound(node, variable, values)

    def items(self, node: ast.expr) -> Steps[tuple[Value, ...]]:
        """Return what a loop or comprehension runs over."""
        match node:
            case ast.Call(ast.Name("range"), arguments, []) if self.scope.is_builtin("range"):
                turns: range = yield self.turns(node, arguments)
                return tuple(Number(syntax.constant(turn)) for turn in turns)
            case ast.Call(ast.Name("enumerate"), [inner], []) if self.scope.is_builtin("enumerate"):
                listed: tuple[Value, ...] = yield self.items(inner)
                return tuple(Items((Number(syntax.constant(place)), item)) for place, item in enumerate(listed))
            case ast.Call(ast.Name("zip"), arguments, []) if self.scope.is_builtin("zip"):
                columns: list[tuple[Value, ...]] = yield each(map(self.items, arguments))
                return tuple(Items(row) for row in zip(*columns, strict=False))
            case _:
                value: Value = yield self.value(node)
                if not isinstance(value, Items):
                    raise self.scope.refuse(
                        node,
                        "the length of a loop is not known",
                        "range with whole constants, and lists, are accepted. Write for i in range(3).",
                    )
                return value.items

    def turns(self, node: ast.AST, arguments: list[ast.expr]) -> Steps[range]:
        """Return the range of a call of ``range``."""
        bounds: list[int] = []
        for argument in arguments:
            bound = whole((yield self.number(argument)))
            if bound is None:
                raise self.scope.refuse(
                    argument, "a bound of range is not a whole constant", "Write the number of turns, as in range(3)."
                )
            bounds.append(bound)
        if not 1 <= len(bounds) <= 3 or bounds[2:] == [0]:
            raise self.scope.refuse(node, "range does not accept this", "range(n), range(a, b) and range(a, b, step).")
        if len(range(*bounds)) > _LARGEST_RANGE:
            raise self.scope.refuse(
                node,
                f"a loop of {len(range(*bounds)):,} turns",
                f"At most {_LARGEST_RANGE:,} are accepted. Shorten it.",
            )
        return range(*bounds)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Give the target of a loop or comprehension its value for one turn."""
        match target, value:
            case ast.Name(name), _:
                self.scope.names[name] = value
            case ((ast.Tuple(parts) | ast.List(parts)), Items(items)) if len(parts) == len(items):
                for part, item in zip(parts, items, strict=True):
                    self.bind(part, item)
            case _:
                raise self.scope.refuse(
                    target, "the target of a loop does not fit its items", "A name, or one name for each entry."
                )

    def _constant(self, node: ast.Constant) -> Value:
        value = from_object(node.value, self.scope.reads)
        if value is None:
            raise self.scope.refuse(
                node, f"{node.value!r} is no constant of the language", "Finite numbers and strings are accepted."
            )
        return value

    def _field(self, node: ast.expr, base: Value, field: str) -> Value:
        if not isinstance(base, Fields):
            raise self.scope.refuse(
                node, f"an attribute {field!r} of something that is no row", "Name the value itself, without a dot."
            )
        if field not in base.fields:
            known = ", ".join(map(repr, base.fields))
            raise self.scope.refuse(
                node, f"{field!r} is not a feature", f"The features are {known}.{did_you_mean(field, base.fields)}"
            )
        return from_symbol(base.fields[field])

    def _signed(self, sign: ast.unaryop, operand: ast.expr, value: syntax.Expression) -> Value:
        if isinstance(sign, ast.UAdd):
            return Number(value)
        if isinstance(value, syntax.Constant) and isinstance(operand, ast.Constant):
            return Number(syntax.Constant(-value.value))
        return Number(syntax.Unary("neg", value))

    def _binary(self, node: ast.BinOp) -> Steps[syntax.Expression]:
        if isinstance(node.op, ast.Pow):
            power: syntax.Expression = yield self._power(node)
            return power
        if type(node.op) not in _OPERATORS:
            raise self.scope.refuse(
                node, f"the operator of {ast.unparse(node)!r}", "+ - * / and ** are accepted. Write it with them."
            )
        left: syntax.Expression = yield self.number(node.left)
        right: syntax.Expression = yield self.number(node.right)
        return syntax.Binary(_OPERATORS[type(node.op)], left, right)

    def _power(self, node: ast.BinOp) -> Steps[syntax.Expression]:
        base: syntax.Expression = yield self.number(node.left)
        exponent = whole((yield self.number(node.right)))
        if exponent is None or not 0 <= exponent <= _LARGEST_POWER:
            raise self.scope.refuse(
                node, "this power", f"A whole constant from 0 to {_LARGEST_POWER} is accepted. Multiply instead."
            )
        if exponent > 1 and not isinstance(base, syntax.Variable | syntax.Constant):
            name = self.scope.fresh("t")
            self.scope.emit(syntax.Assign(name, base))
            base = syntax.Variable(name)
        result: syntax.Expression = base if exponent else syntax.ONE
        for _ in range(exponent - 1):
            result = syntax.Binary("*", result, base)
        return result

    def _subscript(self, node: ast.Subscript) -> Steps[Value]:
        base: Value = yield self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            raise self.scope.refuse(node, "a slice of a list", "One entry is accepted, as in w[0]. Name each entry.")
        index: Value = yield self.value(node.slice)
        match base, index:
            case Fields(), Text(field):
                return self._field(node, base, field)
            case Items(items), _:
                place = whole(self.scope.numeric(node, index))
                if place is not None and -len(items) <= place < len(items):
                    return items[place]
                found = "this index is no whole constant" if place is None else f"there is no entry {place}"
                raise self.scope.refuse(
                    node, found, f"The list has {len(items)} entries. Use a constant or the variable of a loop."
                )
            case _:
                raise self.scope.refuse(
                    node, "an index of something that is no list", "Lists by number and rows by name are accepted."
                )

    def _boolean(self, node: ast.expr) -> Steps[syntax.Guard]:
        value: Value = yield self.value(node)
        if isinstance(value, Test):
            return value.guard
        raise self.scope.refuse(
            node,
            "`and` and `or` between numbers, used as a value",
            "Conditions are accepted there. Write a conditional expression, as in a if a else b.",
        )

    def _junction(self, node: ast.BoolOp, read: Callable[[ast.expr], Steps[syntax.Guard]]) -> Steps[syntax.Guard]:
        kind = syntax.And if isinstance(node.op, ast.And) else syntax.Or
        guard: syntax.Guard = yield self._short(kind, [read(part) for part in node.values])
        return guard

    def _link(self, node: ast.Compare, operator: ast.cmpop, other: ast.expr, seen: list[Value]) -> Steps[syntax.Guard]:
        right: Value = yield self.value(other)
        guard = compare_values(self.scope, node, operator, seen[-1], right)
        seen.append(right)
        return guard

    def _short(
        self, kind: type[syntax.And] | type[syntax.Or], operands: list[Steps[syntax.Guard]]
    ) -> Steps[syntax.Guard]:
        """Join operands; the commands that a later one needs run only where the earlier ones do not decide."""
        parts: list[syntax.Guard] = []
        for operand in operands:
            with self.scope.captured() as needed:
                guard: syntax.Guard = yield operand
            if not (needed and parts):
                self.scope.emit(*needed)
                parts.append(guard)
                continue
            name = self.scope.fresh("t")
            run = syntax.sequence([*needed, syntax.Assign(name, as_number(guard))])
            before = parts[0] if len(parts) == 1 else kind(tuple(parts))
            if kind is syntax.And:
                self.scope.emit(syntax.If(before, run, syntax.Assign(name, syntax.ZERO)))
            else:
                self.scope.emit(syntax.If(before, syntax.Assign(name, syntax.ONE), run))
            parts = [syntax.Compare("==", syntax.Variable(name), syntax.ONE)]
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _comprehend(self, element: ast.expr, generators: list[ast.comprehension], found: list[Value]) -> Steps[None]:
        if not generators:
            found.append((yield self.value(element)))
            return
        first, *others = generators
        outer = dict(self.scope.names)
        for item in (yield self.items(first.iter)):
            self.bind(first.target, item)
            if (yield self._passes(first.ifs)):
                yield self._comprehend(element, others, found)
        self.scope.names = outer

    def _passes(self, conditions: list[ast.expr]) -> Steps[bool]:
        for condition in conditions:
            known = decided((yield self.test(condition)))
            if known is None:
                raise self.scope.refuse(
                    condition,
                    "the condition of a comprehension depends on the inputs",
                    "Whole constants are accepted there. Write value * (condition), or a conditional expression.",
                )
            if not known:
                return False
        return True

    def _call(self, node: ast.Call) -> Steps[Value]:
        match node.func:
            case ast.Name("isnan") | ast.Attribute(ast.Name("math" | "np" | "numpy"), "isnan") if self.scope.is_isnan(
                node.func
            ):
                return Test(self._missing(node, (yield each(map(self.value, node.args)))))
            case ast.Name(name) if self.scope.is_builtin(name):
                if not node.keywords and not any(isinstance(argument, ast.Starred) for argument in node.args):
                    result: Value = yield self._builtin(node, name)
                    return result
            case _:
                pass
        raise self.scope.refuse(node, f"the call of {ast.unparse(node.func)}", f"Only {_ACCEPTED_CALLS}")

    def _builtin(self, node: ast.Call, name: str) -> Steps[Value]:
        match name, node.args:
            case "abs", [argument]:
                return Number(syntax.Unary("abs", (yield self.number(argument))))
            case "float", [argument]:
                return Number(as_float((yield self.number(argument)), self.scope.reads))
            case "bool", [argument]:
                return Test((yield self.test(argument)))
            case "len", [argument]:
                return Number(syntax.constant(len((yield self.items(argument)))))
            case (("any" | "all"), [argument]):
                items: tuple[Value, ...] = yield self.items(argument)
                kind = syntax.And if name == "all" else syntax.Or
                return Test(kind(tuple(truth(self.scope, argument, item) for item in items)))
            case (("min" | "max" | "sum"), [_, *_]):
                return Number((yield self._folded(node, name)))
            case _:
                raise self.scope.refuse(
                    node, f"the call of {name} with {len(node.args)} arguments", f"Only {_ACCEPTED_CALLS}"
                )

    def _folded(self, node: ast.Call, name: str) -> Steps[syntax.Expression]:
        values: list[Value]
        if name == "sum":
            values = [*(yield each(map(self.value, node.args[1:]))), *(yield self.items(node.args[0]))]
            return syntax.total(self.scope.numeric(node, value) for value in values)
        alone = len(node.args) == 1
        values = [*(yield self.items(node.args[0]) if alone else each(map(self.value, node.args)))]
        if not values:
            raise self.scope.refuse(node, f"{name} of nothing", "One value or more is accepted.")
        result, *others = [self.scope.numeric(node, value) for value in values]
        for other in others:
            result = syntax.Binary("min" if name == "min" else "max", result, other)
        return result

    def _missing(self, node: ast.Call, arguments: list[Value]) -> syntax.Guard:
        match arguments:
            case [Number(syntax.Variable(name)) | Level(syntax.Variable(name), _, _)] if name in self.scope.inputs:
                return syntax.Missing(name)
            case _:
                raise self.scope.refuse(
                    node, "isnan of a calculated value", "Only an input can be missing. Ask isnan(input)."
                )

"""Translate Python statements."""

from __future__ import annotations

import ast

from mace.language import syntax
from mace.language.expressions import Expressions
from mace.language.folding import decided
from mace.language.scope import Scope, merged
from mace.language.trampoline import Steps
from mace.language.values import Fields, Items, Label, Level, Number, Test, Text, Value

_INSTEAD: dict[type[ast.stmt], tuple[str, str]] = {
    ast.While: ("a while loop", "Bounded loops are accepted. Write for i in range(n), with a constant n."),
    ast.Break: ("break", "Loops run to their end. Put the rest of the body under an if."),
    ast.Continue: ("continue", "Loops run to their end. Put the rest of the body under an if."),
    ast.Try: ("try", "Nothing is caught. Test the condition with an if."),
    ast.Raise: ("raise", "Every path must return. Return a value."),
    ast.Assert: ("assert", "Every path must return. Use an if."),
    ast.With: ("with", "Plain calculations are accepted. Write the steps in full."),
    ast.Import: ("an import", "Functions of modules are not accepted. Write the steps in full."),
    ast.ImportFrom: ("an import", "Functions of modules are not accepted. Write the steps in full."),
    ast.FunctionDef: ("a function inside the function", "One function is accepted. Write its steps in full."),
    ast.ClassDef: ("a class", "Plain calculations are accepted. Write the steps in full."),
    ast.Match: ("match", "if, elif and else are accepted. Write it with them."),
    ast.Global: ("global", "A program has no outside effects. Use parameters."),
    ast.Nonlocal: ("nonlocal", "A program has no outside effects. Use parameters."),
    ast.Delete: ("del", "Variables stay. Leave it out."),
}


class Statements(Expressions):
    """Translates statements into the scope's block; each method tells whether the next statement is reached."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.returns: list[Value] = []

    def body(self, statements: list[ast.stmt]) -> Steps[bool]:
        """Translate statements in order; those after a sure return are never reached."""
        for statement in statements:
            reached: bool = yield self.statement(statement)
            if not reached:
                return False
        return True

    def statement(self, node: ast.stmt) -> Steps[bool]:
        """Translate one statement."""
        match node:
            case ast.Pass() | ast.Expr(ast.Constant()) | ast.AnnAssign(value=None):
                return True
            case ast.Return(ast.expr() as value):
                yield self.into(value, self.give)
                return False
            case ast.Assign(targets, value):
                yield self._assign(targets, value)
                return True
            case ast.AnnAssign(target, _, ast.expr() as value):
                yield self._assign([target], value)
                return True
            case ast.AugAssign(ast.Name() as target, operator, value):
                read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
                yield self._assign([target], ast.copy_location(ast.BinOp(read, operator, value), node))
                return True
            case ast.If():
                reached: bool = yield self._if(node)
                return reached
            case ast.For(orelse=[]):
                ended: bool = yield self._for(node)
                return ended
            case _:
                found, instead = _INSTEAD.get(
                    type(node),
                    (f"{ast.unparse(node)!r}", "Assignments to names, if, for over range, and return are accepted."),
                )
                raise self.scope.refuse(node, f"{found} is not accepted", instead)

    def give(self, node: ast.expr, value: Value) -> None:
        """Return ``value`` from the program."""
        expression = self.scope.stored(node, value)
        is_text = isinstance(value, Text | Label)
        if self.returns and isinstance(self.returns[0], Text | Label) != is_text:
            raise self.scope.refuse(
                node,
                "a number is returned in one place and a string in another",
                "One kind is accepted. Return strings everywhere, or numbers everywhere.",
            )
        self.returns.append(value)
        self.scope.emit(syntax.Return(expression))

    def _assign(self, targets: list[ast.expr], node: ast.expr) -> Steps[None]:
        first, *others = [self._target(target) for target in targets]
        if isinstance(node, ast.IfExp):
            self.scope.names[first] = yield self.choice(node, self.scope.variable(first))
        else:
            self._keep(node, first, (yield self.value(node)))
        for other in others:
            self._keep(node, other, self.scope.names[first])

    def _target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self.scope.refuse(
                node,
                f"an assignment to {ast.unparse(node)}",
                "Single names are accepted. Write one assignment for each.",
            )
        if node.id in self.scope.loops:
            raise self.scope.refuse(
                node, f"the loop assigns its own variable {node.id!r}", "It only counts. Assign to another name."
            )
        return node.id

    def _keep(self, node: ast.expr, name: str, value: Value) -> None:
        """Bind ``name`` to ``value``; what the program calculates goes into a variable."""
        match value:
            case Fields():
                self.scope.names[name] = value
            case Items():
                self.scope.names[name] = self._kept_items(node, name, value)
            case Level(expression, levels, ordered):
                variable = self.scope.variable(name)
                self.scope.emit(syntax.Assign(variable, expression))
                self.scope.names[name] = Level(syntax.Variable(variable), levels, ordered)
            case Number() | Test() | Text() | Label():
                variable = self.scope.variable(name)
                self.scope.emit(syntax.Assign(variable, self.scope.stored(node, value)))
                self.scope.names[name] = self.scope.bound(node, variable, [value])

    def _kept_items(self, node: ast.expr, name: str, items: Items) -> Items:
        """Return the list with its calculated entries in variables: it must not change when their parts do."""
        kept: list[Value] = []
        for place, item in enumerate(items.items):
            match item:
                case Items():
                    kept.append(self._kept_items(node, f"{name}_{place}", item))
                case Number(expression) if self.scope.is_lasting(expression):
                    kept.append(item)
                case Number() | Test() | Label():
                    variable = self.scope.fresh(f"{name}_{place}")
                    self.scope.emit(syntax.Assign(variable, self.scope.stored(node, item)))
                    kept.append(self.scope.bound(node, variable, [item]))
                case Level(expression, levels, ordered) if not self.scope.is_lasting(expression):
                    variable = self.scope.fresh(f"{name}_{place}")
                    self.scope.emit(syntax.Assign(variable, expression))
                    kept.append(Level(syntax.Variable(variable), levels, ordered))
                case Level() | Text() | Fields():
                    kept.append(item)
        return Items(tuple(kept))

    def _if(self, node: ast.If) -> Steps[bool]:
        guard: syntax.Guard = yield self.test(node.test)
        known = decided(guard)
        if known is not None:
            reached: bool = yield self.body(node.body if known else node.orelse)
            return reached
        before = dict(self.scope.names)
        with self.scope.captured() as then:
            first: bool = yield self.body(node.body)
        after_then, self.scope.names = self.scope.names, before
        with self.scope.captured() as otherwise:
            second: bool = yield self.body(node.orelse)
        self.scope.emit(syntax.If(guard, syntax.sequence(then), syntax.sequence(otherwise)))
        if first:
            self.scope.names = merged(after_then, self.scope.names) if second else after_then
        return first or second

    def _for(self, node: ast.For) -> Steps[bool]:
        targets = [part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)]
        for name in targets:
            if name in self.scope.loops:
                raise self.scope.refuse(
                    node, f"two loops, one in the other, over {name!r}", "Each needs its own variable. Rename one."
                )
        self.scope.loops.extend(targets)
        bounds = _plain_bounds(node)
        turns: range = (yield self.turns(node.iter, bounds)) if bounds else range(0)
        reached: bool | None = (yield self._loop(node, turns)) if turns and turns.step == 1 else None
        if reached is None:
            reached = yield self._repeat(node)
        del self.scope.loops[-len(targets) :]
        for name in targets:
            self.scope.names.pop(name, None)
        return reached

    def _loop(self, node: ast.For, turns: range) -> Steps[bool | None]:
        """Translate the body once, as a loop; None where its turns differ in more than the number of the turn."""
        assert isinstance(node.target, ast.Name)
        before = dict(self.scope.names)
        counter = self.scope.counter(node.target.id)
        self.scope.names[node.target.id] = Number(syntax.Variable(counter))
        inside = dict(self.scope.names)
        with self.scope.captured() as block:
            reached: bool = yield self.body(node.body)
        if any(self.scope.names.get(name) != value for name, value in inside.items()) and reached:
            self.scope.names = before
            return None
        self.scope.emit(syntax.For(counter, turns.start, turns.stop, syntax.sequence(block)))
        return reached

    def _repeat(self, node: ast.For) -> Steps[bool]:
        """Translate the body once a turn."""
        items = Items((yield self.items(node.iter)))
        for item in self._kept_items(node.iter, "item", items).items:
            self.bind(node.target, item)
            reached: bool = yield self.body(node.body)
            if not reached:
                return False
        return True


def _plain_bounds(node: ast.For) -> list[ast.expr]:
    """Return the arguments of ``range`` where the body needs no number ahead (an index, a bound, a power, a list)."""
    match node.target, node.iter:
        case ast.Name(), ast.Call(ast.Name("range"), arguments, []):
            parts = [part for statement in node.body for part in ast.walk(statement)]
            return [] if any(_needs_number(part) for part in parts) else arguments
        case _:
            return []


def _needs_number(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.Constant(str())):
            return False
        case ast.Call(ast.Name("range"), _, _) | ast.BinOp(_, ast.Pow(), _):
            return True
        case _:
            return isinstance(node, ast.Subscript | ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp)

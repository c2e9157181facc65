"""What is known at one place of the source while it is translated: names, values, and the commands so far."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.naming import Fresh
from mace.language.source import Source
from mace.language.values import (
    Fields,
    Items,
    Label,
    Level,
    Number,
    Reads,
    Test,
    Text,
    Value,
    as_number,
    from_object,
    numeric_value,
)


class Scope:
    """The state of a translation.

    ``names`` holds the names that surely have a value here; ``block`` receives the commands.
    """

    def __init__(
        self, source: Source, inputs: tuple[str, ...], assigned: frozenset[str], reads: Reads = Fraction
    ) -> None:
        self.source = source
        self.reads = reads
        self.inputs = inputs
        self.assigned = assigned
        self.names: dict[str, Value] = {}
        self.block: list[syntax.Command] = []
        self.labels: list[str] = []
        self.loops: list[str] = []
        self.kept: set[str] = set()
        self.fresh = Fresh(inputs)
        self._variables: dict[str, str] = {}

    def refuse(self, node: ast.AST, found: str, instead: str) -> InvalidProgram:
        """Return the error for ``node``."""
        return self.source.refuse(node, found, instead)

    def emit(self, *commands: syntax.Command) -> None:
        """Add commands to the block at hand."""
        self.block.extend(commands)

    @contextmanager
    def captured(self) -> Iterator[list[syntax.Command]]:
        """Collect the commands of the ``with`` block apart."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def variable(self, name: str) -> str:
        """Return the program's variable for a name that the source assigns."""
        if name not in self._variables:
            self._variables[name] = name if name in self.kept else self.fresh(name)
        return self._variables[name]

    def counter(self, name: str) -> str:
        """Return the program's variable for a loop over ``name``; never one that is assigned."""
        key = f"for {name}"
        if key not in self._variables:
            self._variables[key] = self.fresh(name)
        return self._variables[key]

    def lookup(self, node: ast.Name) -> Value:
        """Return what a name stands for here."""
        name = node.id
        if name in self.names:
            return self.names[name]
        if name in self.assigned:
            raise self.refuse(
                node,
                f"{name!r} may have no value here",
                "A variable must be assigned on every path to its use, the same kind of value on each; "
                f"a loop's variable ends with its loop. Assign {name!r} before.",
            )
        if name in self.source.outside:
            return self._outside(node)
        known = [*self.names, *self.assigned]
        raise self.refuse(
            node,
            f"{name!r} is not known",
            f"Parameters, assigned variables and constants are accepted.{did_you_mean(name, known)} "
            f"Known here: {', '.join(sorted(self.names))}.",
        )

    def _outside(self, node: ast.Name) -> Value:
        item = self.source.outside[node.id]
        value = from_object(item, self.reads)
        if value is None:
            raise self.refuse(
                node,
                f"{node.id!r} is from outside the function, a value of type {type(item).__name__}",
                "Finite numbers of Python, float64 arrays, strings and lists of them are accepted: float32 and numpy's integers compute "
                "in their own way. Write the number, or float(...) or int(...) of it, outside the function.",
            )
        return value

    def is_builtin(self, name: str) -> bool:
        """Whether ``name`` still means what Python means by it."""
        if name in self.names or name in self.assigned:
            return False
        return name not in self.source.outside or self.source.outside[name] is getattr(builtins, name, None)

    def is_isnan(self, node: ast.expr) -> bool:
        """Whether a call's function is really the library's ``isnan``."""
        root = node.value if isinstance(node, ast.Attribute) else node
        if not isinstance(root, ast.Name) or root.id in self.names or root.id in self.assigned:
            return False
        if root.id not in self.source.outside:
            return True
        found = self.source.outside[root.id]
        function = getattr(found, "isnan", None) if isinstance(node, ast.Attribute) else found
        return getattr(function, "__name__", "") == "isnan" and not hasattr(function, "__code__")

    def is_lasting(self, expression: syntax.Expression) -> bool:
        """Whether no later command changes the value of ``expression``."""
        match expression:
            case syntax.Constant():
                return True
            case syntax.Variable(name):
                return name in self.inputs and name not in self.kept
            case _:
                return False

    def numeric(self, node: ast.AST, value: Value) -> syntax.Expression:
        """Return ``value`` as a number, or refuse."""
        match value:
            case Number(expression):
                return expression
            case Test(guard):
                return as_number(guard)
            case Level(_, levels, _):
                number = numeric_value(value)
                if number is not None:
                    return number
                shown = ", ".join(map(repr, levels))
                raise self.refuse(
                    node,
                    f"a feature with the levels {shown} is used as a number",
                    "Levels may be compared, not calculated with. Compare with ==, != or in.",
                )
            case Text() | Label():
                raise self.refuse(
                    node,
                    "a string is used as a number",
                    "Strings may be compared, assigned and returned. Use a number.",
                )
            case Items() | Fields():
                what = "a list" if isinstance(value, Items) else "a whole row"
                raise self.refuse(
                    node, f"{what} is used as a number", "Numbers are accepted. Name one entry, as in w[0] or row.age."
                )

    def stored(self, node: ast.AST, value: Value) -> syntax.Expression:
        """Return what a variable holds for ``value``: a number, or the position of a string among the labels."""
        match value:
            case Text(text):
                return syntax.Constant(Fraction(self.label(text)))
            case Label(expression):
                return expression
            case _:
                return self.numeric(node, value)

    def label(self, text: str) -> int:
        """Return the position of a string among those that the program assigns or returns."""
        if text not in self.labels:
            self.labels.append(text)
        return self.labels.index(text)

    def bound(self, node: ast.AST, variable: str, values: list[Value]) -> Value:
        """Return what ``variable`` stands for after it was given one of ``values``."""
        if all(isinstance(value, Text | Label) for value in values):
            return Label(syntax.Variable(variable))
        if any(isinstance(value, Text | Label) for value in values):
            raise self.refuse(
                node, "a number in one case and a string in the other", "One kind is accepted. Use numbers or strings."
            )
        if all(isinstance(value, Test) for value in values):
            return Test(syntax.Compare("==", syntax.Variable(variable), syntax.ONE))
        return Number(syntax.Variable(variable))


def merged(first: dict[str, Value], second: dict[str, Value]) -> dict[str, Value]:
    """Return the names that have one meaning after either of two branches."""
    joined: dict[str, Value] = {}
    for name, value in first.items():
        other = second.get(name)
        if other is value or other == value:
            joined[name] = value
        elif other is not None and _holder(value) is not None and _holder(value) == _holder(other):
            joined[name] = Number(syntax.Variable(str(_holder(value))))
    return joined


def _holder(value: Value) -> str | None:
    match value:
        case Number(syntax.Variable(name)) | Test(
            syntax.Compare("==", syntax.Variable(name), syntax.Constant(Fraction(numerator=1)))
        ):
            return name
        case _:
            return None


def describe(node: ast.AST) -> str:
    """Return what a piece of Python that is not accepted is called."""
    return {
        ast.Lambda: "a function inside the function",
        ast.NamedExpr: "an assignment inside an expression",
        ast.Dict: "a dictionary",
        ast.JoinedStr: "a formatted string",
        ast.Starred: "a starred expression",
        ast.Await: "await",
        ast.Yield: "yield",
    }.get(type(node), f"{type(node).__name__} ({ast.unparse(node)})")

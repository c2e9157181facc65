"""Print programs as Python and formulas as logic."""

from __future__ import annotations

import keyword
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction

from mace.exact import is_float
from mace.language import syntax
from mace.language.naming import Fresh, all_names, assigned, commands
from mace.language.trampoline import Steps, each, finish

_RESERVED = {"abs", "min", "max", "sum", "len", "float", "range", "isnan", "math", "any", "all", "bool"}
_SUM, _PRODUCT, _SIGN, _ATOM = 1, 2, 3, 4
_COMPARISON, _NOT, _AND, _OR, _TIGHT = 4, 3, 2, 1, 5


def show(program: syntax.Program, name: str = "model") -> str:
    """Return ``program`` as the source of a Python function, which :func:`~mace.language.parse` reads back.

    A name that is no identifier is replaced by one that is. A number that is a float is printed as that float; any
    other as the exact quotient of two integers.

    Examples
    --------
    >>> from mace.language import parse
    >>> print(show(parse("lambda x: 0.5 if x > 1 else -x").program, "half"), end="")
    def half(x):
        if x > 1:
            return 0.5
        else:
            return -x
    """
    writer = _Writer(_identifiers(program, name))
    inputs = ", ".join(writer.names[item] for item in program.inputs)
    lines = finish(writer.command(program.body, 1))
    return "\n".join([f"def {name}({inputs}):", *lines]) + "\n"


def show_formula(guard: syntax.Guard) -> str:
    """Return ``guard`` in infix notation.

    Examples
    --------
    >>> from mace.language.syntax import ONE, And, Compare, Missing, Not, Variable
    >>> show_formula(And((Compare("<=", Variable("x"), ONE), Not(Missing("x")))))
    'x ≤ 1 ∧ ¬missing(x)'
    """
    return finish(_Logic().guard(guard, 0))


def show_number(value: Fraction) -> str:
    """Return an exact number: an integer, the shortest decimal of a float, or a quotient of integers."""
    if value.denominator == 1:
        return str(value.numerator)
    if is_float(value):
        return repr(float(value))
    return f"{value.numerator} / {value.denominator}"


def _bare(name: str) -> str:
    word = re.sub(r"\W", "_", name)
    if not word.isidentifier():
        word = "_" + word
    return word + "_" if keyword.iskeyword(word) or keyword.issoftkeyword(word) else word


def _identifiers(program: syntax.Program, function: str) -> dict[str, str]:
    """Return an identifier for each name; names that are identifiers keep themselves."""
    loops = {part.name for part in commands(program.body) if isinstance(part, syntax.For)}
    own = [*program.inputs, *assigned(program.body)]
    ordinary = list(dict.fromkeys([*own, *sorted(all_names(program) - loops)]))
    fine = {name for name in ordinary if name.isidentifier() and name == _bare(name)} - _RESERVED - {function}
    fresh = Fresh([*fine, *_RESERVED, function])
    return {name: name if name in fine else fresh(_bare(name)) for name in ordinary}


class _Expressions(ABC):
    """Infix printing, shared by Python and logic."""

    names: Mapping[str, str]

    def name(self, name: str) -> str:
        return name

    def expression(self, expression: syntax.Expression, outer: int) -> Steps[str]:
        """Return the text, in parentheses where its operator binds less than ``outer``."""
        match expression:
            case syntax.Variable(name):
                return self.name(name)
            case syntax.Constant(value):
                return _wrapped(show_number(value), _strength(value), outer)
            case syntax.Unary("neg", operand):
                inner: str = yield self.expression(operand, _ATOM)
                return _wrapped(f"-{inner}", _SIGN, outer)
            case syntax.Unary(name, operand):
                return f"{name}({(yield self.expression(operand, 0))})"
            case syntax.Binary(("min" | "max") as name, left, right):
                return f"{name}({(yield self.expression(left, 0))}, {(yield self.expression(right, 0))})"
            case syntax.Binary(name, left, right):
                level = _SUM if name in "+-" else _PRODUCT
                first: str = yield self.expression(left, level)
                second: str = yield self.expression(right, level + 1)
                return _wrapped(f"{first} {name} {second}", level, outer)
            case syntax.Indicator(guard):
                text: str = yield self.indicator(guard)
                return text

    @abstractmethod
    def indicator(self, guard: syntax.Guard) -> Steps[str]:
        """Return an indicator in this kind of text."""


def _strength(value: Fraction) -> int:
    if value.denominator != 1 and not is_float(value):
        return 0
    return _SIGN if value < 0 else _ATOM


def _wrapped(text: str, strength: int, outer: int) -> str:
    return f"({text})" if strength < outer else text


class _Writer(_Expressions):
    """Python source, line by line."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self._fresh = Fresh([*names.values(), *_RESERVED])
        self._loops: list[str] = []
        self._counters: dict[tuple[str, int], str] = {}

    def name(self, name: str) -> str:
        if name in self._loops:
            return self._counters[name, self._loops.count(name)]
        return self.names.get(name, name)

    def indicator(self, guard: syntax.Guard) -> Steps[str]:
        return f"({(yield self.guard(guard, 0))})"

    def guard(self, guard: syntax.Guard, outer: int) -> Steps[str]:
        match guard:
            case syntax.Truth(value):
                return str(value)
            case syntax.Missing(name):
                return f"isnan({self.name(name)})"
            case syntax.Compare(name, left, right):
                first: str = yield self.expression(left, 0)
                second: str = yield self.expression(right, 0)
                return _wrapped(f"{first} {name} {second}", _COMPARISON, outer)
            case syntax.Not(part):
                return _wrapped(f"not {(yield self.guard(part, _TIGHT))}", _NOT, outer)
            case syntax.And(()) | syntax.Or(()):
                return str(isinstance(guard, syntax.And))
            case syntax.And(parts) | syntax.Or(parts):
                word, level = (" and ", _AND) if isinstance(guard, syntax.And) else (" or ", _OR)
                texts: list[str] = yield each(self.guard(part, level + 1) for part in parts)
                return _wrapped(word.join(texts), level, outer)

    def command(self, command: syntax.Command, depth: int) -> Steps[list[str]]:
        indent = "    " * depth
        match command:
            case syntax.Skip() | syntax.Sequence(()):
                return [indent + "pass"]
            case syntax.Assign(name, value):
                return [f"{indent}{self.name(name)} = {finish(self.expression(value, 0))}"]
            case syntax.Return(value):
                return [f"{indent}return {finish(self.expression(value, 0))}"]
            case syntax.Sequence(parts):
                lines: list[str] = []
                for part in parts:
                    lines.extend((yield self.command(part, depth)))
                return lines
            case syntax.If():
                choice: list[str] = yield self.choice(command, depth, "if")
                return choice
            case syntax.For():
                loop: list[str] = yield self.loop(command, depth)
                return loop

    def choice(self, choice: syntax.If, depth: int, word: str) -> Steps[list[str]]:
        indent = "    " * depth
        lines = [f"{indent}{word} {finish(self.guard(choice.guard, 0))}:"]
        lines.extend((yield self.command(choice.then, depth + 1)))
        match choice.otherwise:
            case syntax.Skip() | syntax.Sequence(()):
                pass
            case syntax.If() as further:
                lines.extend((yield self.choice(further, depth, "elif")))
            case other:
                lines.append(indent + "else:")
                lines.extend((yield self.command(other, depth + 1)))
        return lines

    def loop(self, loop: syntax.For, depth: int) -> Steps[list[str]]:
        """Print a loop; its variable gets a name of its own, for Python's loop variables outlive their loop."""
        if loop.start >= loop.stop:
            return ["    " * depth + "pass"]
        self._loops.append(loop.name)
        key = loop.name, self._loops.count(loop.name)
        if key not in self._counters:
            self._counters[key] = self._fresh(_bare(loop.name))
        variable = self._counters[key]
        lines: list[str] = yield self.command(loop.body, depth + 1)
        self._loops.pop()
        start = f"{loop.start}, " if loop.start else ""
        return ["    " * depth + f"for {variable} in range({start}{loop.stop}):", *lines]


_SIGNS = {"==": "=", "!=": "≠", "<=": "≤", ">=": "≥", "<": "<", ">": ">"}


class _Logic(_Expressions):
    """Formulas with the signs of logic."""

    def indicator(self, guard: syntax.Guard) -> Steps[str]:
        return f"[{(yield self.guard(guard, 0))}]"

    def guard(self, guard: syntax.Guard, outer: int) -> Steps[str]:
        match guard:
            case syntax.Truth(value):
                return "true" if value else "false"
            case syntax.Missing(name):
                return f"missing({name})"
            case syntax.Compare(name, left, right):
                first: str = yield self.expression(left, 0)
                second: str = yield self.expression(right, 0)
                return f"{first} {_SIGNS[name]} {second}"
            case syntax.Not(part):
                inner: str = yield self.guard(part, 1)
                return f"¬({inner})" if isinstance(part, syntax.Compare) else f"¬{inner}"
            case syntax.And(parts) | syntax.Or(parts):
                texts: list[str] = yield each(self.guard(part, 1) for part in parts)
                return _joined(" ∧ " if isinstance(guard, syntax.And) else " ∨ ", texts, outer)


def _joined(sign: str, texts: Iterable[str], outer: int) -> str:
    text = sign.join(texts)
    return f"({text})" if outer else text

"""Run a program exactly: the reference that everything else is measured against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TypeAlias

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.roundings import rounded
from mace.language.trampoline import Steps, finish

Values: TypeAlias = Mapping[str, Fraction | None]


def run(program: syntax.Program, values: Values) -> Fraction:
    """Return what ``program`` returns on ``values``, in exact arithmetic.

    Parameters
    ----------
    program
        Any program: loops, early returns and repeated assignments are allowed.
    values
        A number for each input; None where the input is missing.

    Raises
    ------
    InvalidProgram
        If an input has no entry, a missing or unassigned variable is read, or the program ends without a return.
    ZeroDivisionError
        If the program divides by zero.

    Examples
    --------
    >>> from mace.language import parse
    >>> run(parse("lambda x: max(0, x) / 2").program, {"x": Fraction(3)})
    Fraction(3, 2)
    """
    absent = [name for name in program.inputs if name not in values]
    if absent:
        raise InvalidProgram(
            f"no value for the input {absent[0]!r}.{did_you_mean(absent[0], values)} "
            f"A program needs one for each of {', '.join(program.inputs)}. Pass None for a missing one."
        )
    result = finish(_execute(program.body, {name: values[name] for name in program.inputs}), is_timed=False)
    if result is None:
        raise InvalidProgram("the program ended without a return. Every path must return. Add a return at its end.")
    return result


def evaluate(expression: syntax.Expression, values: Values) -> Fraction:
    """Return the value of ``expression``.

    Examples
    --------
    >>> evaluate(syntax.Binary("/", syntax.ONE, syntax.Variable("x")), {"x": Fraction(3)})
    Fraction(1, 3)
    """
    return finish(_value(expression, values), is_timed=False)


def holds(guard: syntax.Guard, values: Values) -> bool:
    """Whether ``guard`` holds; conjunctions and disjunctions stop at the first part that decides.

    Examples
    --------
    >>> holds(syntax.Compare("<", syntax.Variable("x"), syntax.ONE), {"x": Fraction(0)})
    True
    """
    answer = _at_once(guard, values)
    return finish(_truth(guard, values), is_timed=False) if answer is None else answer


def _execute(command: syntax.Command, values: dict[str, Fraction | None]) -> Steps[Fraction | None]:
    match command:
        case syntax.Skip():
            return None
        case syntax.Assign(name, value):
            values[name] = finish(_value(value, values), is_timed=False)
            return None
        case syntax.Return(value):
            return finish(_value(value, values), is_timed=False)
        case syntax.Sequence(parts):
            for part in parts:
                result: Fraction | None = yield _execute(part, values)
                if result is not None:
                    return result
            return None
        case syntax.If(guard, then, otherwise):
            branch = then if finish(_truth(guard, values), is_timed=False) else otherwise
            chosen: Fraction | None = yield _execute(branch, values)
            return chosen
        case syntax.For():
            last: Fraction | None = yield _loop(command, values)
            return last


def _loop(loop: syntax.For, values: dict[str, Fraction | None]) -> Steps[Fraction | None]:
    """Run the body once a turn; the variable lives inside the loop only, and hides another of its name."""
    outer = {loop.name: values[loop.name]} if loop.name in values else {}
    for turn in range(loop.start, loop.stop):
        values[loop.name] = Fraction(turn)
        result: Fraction | None = yield _execute(loop.body, values)
        if result is not None:
            return result
        if values[loop.name] != turn:
            raise InvalidProgram(
                f"the loop over {loop.name!r} assigns its own variable. A loop variable only counts. "
                "Assign to another name."
            )
    values.pop(loop.name, None)
    values.update(outer)
    return None


def _value(expression: syntax.Expression, values: Values) -> Steps[Fraction]:
    match expression:
        case syntax.Constant(number):
            return number
        case syntax.Variable(name):
            return _read(name, values)
        case syntax.Unary(name, operand):
            inner: Fraction = yield _value(operand, values)
            return apply(name, inner)
        case syntax.Binary(name, left, right):
            first: Fraction = yield _value(left, values)
            second: Fraction = yield _value(right, values)
            return calculate(name, first, second)
        case syntax.Indicator(guard):
            return Fraction((yield _truth(guard, values)))


def _read(name: str, values: Values) -> Fraction:
    if name not in values:
        raise InvalidProgram(
            f"the variable {name!r} is read before it is assigned.{did_you_mean(name, values)} "
            "A variable must be assigned on every path to its use. Assign it first."
        )
    value = values[name]
    if value is None:
        raise InvalidProgram(
            f"the value of {name!r} is missing, and the program reads it. "
            f"Only isnan({name}) may be asked of a missing value. Test isnan({name}) first."
        )
    return value


def apply(name: syntax.UnaryName, value: Fraction) -> Fraction:
    """Return the exact result of a unary function."""
    match name:
        case "neg":
            return -value
        case "abs":
            return abs(value)
        case _:
            return rounded(name, value)


def calculate(name: syntax.BinaryName, left: Fraction, right: Fraction) -> Fraction:
    """Return the exact result of a binary function."""
    return _CALCULATE[name](left, right)


_CALCULATE: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "min": min,
    "max": max,
}


def _truth(guard: syntax.Guard, values: Values) -> Steps[bool]:
    match guard:
        case syntax.Truth(value):
            return value
        case syntax.Missing(name):
            return name in values and values[name] is None
        case syntax.Compare(name, left, right):
            first: Fraction = yield _value(left, values)
            second: Fraction = yield _value(right, values)
            return compare(name, first, second)
        case syntax.Not(part):
            inner: bool = yield _truth(part, values)
            return not inner
        case syntax.And(parts) | syntax.Or(parts):
            decisive = isinstance(guard, syntax.Or)
            for part in parts:
                answer = _at_once(part, values)
                if answer is None:
                    answer = yield _truth(part, values)
                if answer is decisive:
                    return decisive
            return not decisive


def _at_once(guard: syntax.Guard, values: Values) -> bool | None:
    """Whether a variable that is known compares so with a constant; ``None`` of any other guard."""
    bound = syntax.bound(guard)
    if bound is None:
        return None
    name, sign, number = bound
    value = values.get(name)
    return None if value is None else compare(sign, value, number)


def compare(name: syntax.CompareName, left: Fraction, right: Fraction) -> bool:
    """Whether the comparison holds of two numbers."""
    return _COMPARE[name](left, right)


_COMPARE: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}

"""Whether a program of one number rises or falls with it: its straight pieces, found exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from mace.language import syntax
from mace.language.run import compare, run
from mace.language.unroll import unroll

MOST_MONOTONE_PIECES = 200

Line = tuple[Fraction, Fraction]
"""Slope and height at 0."""


class _Turns(Exception):
    """A comparison changes inside of the range."""

    def __init__(self, at: Fraction) -> None:
        self.at = at


class _NotStraight(Exception):
    """The program multiplies or divides by its variable."""


def direction(program: syntax.Program, name: str, low: Fraction, high: Fraction) -> int | None:
    """Return 1 where a program never falls as its variable goes from ``low`` to ``high``, -1 where it never rises, 0 where it stays.

    ``None`` where it does both, or where that is not known: the program is not piecewise linear, or has very many pieces.
    """
    body = unroll(program).body
    try:
        heights = _heights(program, body, name, low, high)
    except _NotStraight:
        return None
    if heights is None:
        return None
    rises = any(a < b for a, b in pairwise(heights))
    falls = any(a > b for a, b in pairwise(heights))
    return None if rises and falls else int(rises) - int(falls)


def _heights(
    program: syntax.Program, body: syntax.Command, name: str, low: Fraction, high: Fraction
) -> list[Fraction] | None:
    """Return the values of a program at the ends of its pieces, and what it comes near to just inside of them, in order."""
    nothing: dict[str, Fraction | None] = dict.fromkeys(program.inputs)
    found = [run(program, {**nothing, name: low})]
    waiting = [(low, high)] if low < high else []
    pieces = 0
    while waiting:
        begin, end = waiting.pop()
        pieces += 1
        if pieces > MOST_MONOTONE_PIECES:
            return None
        try:
            slope, height = _Piece(name, begin, end).result(body)
        except _Turns as turn:
            waiting += [(turn.at, end), (begin, turn.at)]
            continue
        found += [slope * begin + height, slope * end + height, run(program, {**nothing, name: end})]
    return found


class _Piece:
    """Runs a program on lines, over an open range of its variable in which no comparison changes."""

    def __init__(self, name: str, low: Fraction, high: Fraction) -> None:
        self.low, self.high = low, high
        self.values: dict[str, Line] = {name: (Fraction(1), Fraction(0))}

    def result(self, body: syntax.Command) -> Line:
        made = self._run(body)
        if made is None:
            raise _NotStraight
        return made

    def _run(self, command: syntax.Command) -> Line | None:
        match command:
            case syntax.Return(value):
                return self._line(value)
            case syntax.Assign(name, value):
                self.values[name] = self._line(value)
            case syntax.Sequence(parts):
                for part in parts:
                    if (made := self._run(part)) is not None:
                        return made
            case syntax.If(guard, then, otherwise):
                return self._run(then if self._holds(guard) else otherwise)
            case syntax.Skip():
                pass
            case syntax.For():
                raise _NotStraight
        return None

    def _line(self, expression: syntax.Expression) -> Line:
        match expression:
            case syntax.Constant(value):
                return Fraction(0), value
            case syntax.Variable(name):
                if name not in self.values:
                    raise _NotStraight
                return self.values[name]
            case syntax.Indicator(guard):
                return Fraction(0), Fraction(self._holds(guard))
            case syntax.Unary(("neg" | "abs") as name, operand):
                slope, height = self._line(operand)
                is_kept = name == "abs" and self._compares(">=", (slope, height))
                return (slope, height) if is_kept else (-slope, -height)
            case syntax.Binary(name, left, right):
                return self._joined(name, self._line(left), self._line(right))
            case syntax.Unary():
                raise _NotStraight

    def _joined(self, name: str, a: Line, b: Line) -> Line:
        match name:
            case "+":
                return a[0] + b[0], a[1] + b[1]
            case "-":
                return a[0] - b[0], a[1] - b[1]
            case "min" | "max":
                first_is_less = self._compares("<=", (a[0] - b[0], a[1] - b[1]))
                return a if first_is_less == (name == "min") else b
            case "*" if not a[0]:
                return a[1] * b[0], a[1] * b[1]
            case "*" if not b[0]:
                return b[1] * a[0], b[1] * a[1]
            case "/" if not b[0] and b[1]:
                return a[0] / b[1], a[1] / b[1]
        raise _NotStraight

    def _holds(self, guard: syntax.Guard) -> bool:
        match guard:
            case syntax.Truth(value):
                return value
            case syntax.Missing():
                return False
            case syntax.Not(part):
                return not self._holds(part)
            case syntax.And(parts):
                return all(self._holds(part) for part in parts)
            case syntax.Or(parts):
                return any(self._holds(part) for part in parts)
            case syntax.Compare(sign, left, right):
                a, b = self._line(left), self._line(right)
                return self._compares(sign, (a[0] - b[0], a[1] - b[1]))

    def _compares(self, sign: str, line: Line) -> bool:
        """Return whether a line compares so with 0 all over the open range; where it crosses 0, the range must be cut."""
        slope, height = line
        if slope and self.low < -height / slope < self.high:
            raise _Turns(-height / slope)
        middle = (self.low + self.high) / 2
        return compare(sign, slope * middle + height, Fraction(0))  # type: ignore[arg-type]

"""Linear inequalities across features, as the rows that the kernels read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm

from mace.exact import float_up
from mace.language import syntax
from mace.language.linear import add, nearly_linear, room
from mace.problem import Problem
from mace.space import Feature, Real


@dataclass(frozen=True, slots=True)
class Row:
    """Σ coefficient · number + constant is at least 0; ``error`` is how far floats may be off."""

    coefficients: dict[str, Fraction]
    constant: Fraction
    error: float


def linear_rows(problem: Problem) -> list[Row]:
    """Return the inequalities across features, a strict one closed."""
    return [row for part in problem.guards if len(syntax.variables(part)) > 1 for row in _rows(problem, part)]


def _rows(problem: Problem, part: syntax.Guard) -> Iterator[Row]:
    assert isinstance(part, syntax.Compare)
    expression = nearly_linear(part)
    assert expression is not None
    for sign in {">=": (1,), ">": (1,), "<=": (-1,), "<": (-1,), "==": (1, -1)}[part.name]:
        coefficients, constant = add(({}, Fraction(0)), expression, Fraction(sign))
        sizes = {name: _size(problem.space[name]) for name in coefficients}
        yield _row(problem, coefficients, constant, sizes, room(part, sizes), strict=part.name in ("<", ">"))


def _size(feature: Feature) -> Fraction:
    low, high = (0, feature.size) if hasattr(feature, "levels") else (feature.low, feature.high)
    return max(abs(Fraction(low or 0)), abs(Fraction(high or 0)))


def _row(
    problem: Problem,
    coefficients: dict[str, Fraction],
    constant: Fraction,
    sizes: dict[str, Fraction],
    room: Fraction,
    *,
    strict: bool,
) -> Row:
    """Return a row; over whole numbers its bound lies half way between two values, so that floats decide it."""
    features = [problem.space[name] for name in coefficients]
    size = abs(constant) + sum(abs(value) * sizes[name] for name, value in coefficients.items())
    if all(not isinstance(feature, Real) for feature in features):
        scale = lcm(*(value.denominator for value in coefficients.values()))
        least = -constant * scale
        least = Fraction(least.numerator // least.denominator + 1) if strict else Fraction(ceil(least))
        if size * scale < 2**40:
            whole = {name: value * scale for name, value in coefficients.items()}
            return Row(whole, Fraction(1, 2) - least, error=0.125)
    return Row(coefficients, constant, error=float_up(room + size * (len(coefficients) + 8) * Fraction(1, 2**50)))

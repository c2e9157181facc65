"""Conditions across features that are linear inequalities, widened by their roundings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mace.certify.network.missing import Way
from mace.language import syntax
from mace.language.linear import Linear, add, linear_expression, nearly_linear, unrounded
from mace.language.roundings import ROUNDINGS, unit
from mace.problem import Problem
from mace.space import Real

LARGEST_FACTOR = 2**50
"""Whole numbers whose products floats can hold."""


@dataclass(frozen=True, slots=True)
class Inequality:
    """A condition across features: Σ coefficient·number + constant is at least 0."""

    coefficients: dict[int, Fraction]
    constant: Fraction


def linear_conditions(problem: Problem, missing: Way = frozenset()) -> list[Inequality]:
    """Return the linear inequalities across features that are known; other conditions are left out, which makes the claim to be proved
    stronger."""
    found = []
    unknown = {problem.space.names[j] for j in missing}
    for part in problem.guards:
        if len(syntax.variables(part)) > 1 and not syntax.variables(part) & unknown:
            found += _inequalities(problem, part)
    return found


def _inequalities(problem: Problem, part: syntax.Guard) -> list[Inequality]:
    if not isinstance(part, syntax.Compare) or part.name == "!=":
        return []
    difference = nearly_linear(part)
    if difference is None:
        return []
    room = _off(problem, part.left) + _off(problem, part.right)
    signs = {">=": (1,), ">": (1,), "<=": (-1,), "<": (-1,), "==": (1, -1)}[part.name]
    return [_inequality(problem, add(({}, room), difference, Fraction(sign)), part.name in "<>") for sign in signs]


def _off(problem: Problem, expression: syntax.Expression) -> Fraction:
    """Return how far the roundings in a linear expression may move it: each by half an ulp of the most that it can be."""
    match expression:
        case syntax.Unary(name, inner):
            return _off(problem, inner) + (_half_ulp(name, _most(problem, inner)) if name in ROUNDINGS else 0)
        case syntax.Binary("*", left, right):
            return _off(problem, left) * _most(problem, right) + _off(problem, right) * _most(problem, left)
        case syntax.Binary("/", left, right):
            divisor = linear_expression(unrounded(right))
            assert divisor is not None
            return _off(problem, left) / abs(divisor[1])
        case syntax.Binary(_, left, right):
            return _off(problem, left) + _off(problem, right)
        case _:
            return Fraction(0)


def _half_ulp(name: str, size: Fraction) -> Fraction:
    share, least = unit(name)
    return share * size + least


def _most(problem: Problem, expression: syntax.Expression) -> Fraction:
    """Return a number that a linear expression does not exceed in size, roundings included."""
    found = linear_expression(unrounded(expression))
    assert found is not None
    return 2 * (abs(found[1]) + sum(abs(factor) * _largest(problem.space[name]) for name, factor in found[0].items()))


def _inequality(problem: Problem, expression: Linear, is_strict: bool) -> Inequality:
    """Return expression >= 0; over whole numbers its constant is moved to the last value that counts."""
    factors, constant = expression
    names = list(problem.space)
    coefficients = {names.index(name): factor for name, factor in factors.items()}
    features = [problem.space[name] for name in factors]
    if any(isinstance(feature, Real) for feature in features):
        return Inequality(coefficients, constant)
    scale = math.lcm(*(factor.denominator for factor in factors.values()))
    least = math.floor(-constant * scale) + 1 if is_strict else math.ceil(-constant * scale)
    size = abs(least) + sum(abs(f) * scale * _largest(problem.space[name]) for name, f in factors.items())
    if size > LARGEST_FACTOR:
        return Inequality(coefficients, constant)
    return Inequality({j: factor * scale for j, factor in coefficients.items()}, Fraction(-least))


def _largest(feature: Any) -> Fraction:
    ends = (0, len(feature.levels)) if hasattr(feature, "levels") else (feature.low, feature.high)
    return max(abs(Fraction(end)) for end in ends)

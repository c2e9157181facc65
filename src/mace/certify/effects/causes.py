"""What effects follow from: nothing, one feature, or a sum of features. Found anew from the equations, in exact numbers.

Where an effect is wanted at a value of its cause, the equations themselves are run.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from mace.constraints.causal import inputs_of
from mace.forms import Effects, Equation
from mace.language.linear import Linear, add
from mace.language.monotone import direction
from mace.language.partial import given
from mace.problem import Problem
from mace.space import Point

LEAST_NORMAL = Fraction(1, 2**1022)
"""More than the rounding of a float can lose by underflow."""


@dataclass(frozen=True, slots=True)
class SingleCause:
    """The one feature that an effect follows from.

    Attributes
    ----------
    name : str
        The feature.
    table : tuple of float, optional
        The effect at each of its levels, where it has levels.
    direction : int
        Where it is a number: 1 if the effect never falls as it rises, -1 if it never rises, 0 if it stays the same.
    """

    name: str
    table: tuple[float, ...] | None = None
    direction: int = 0


@dataclass(frozen=True, slots=True)
class Sum:
    """An effect as a sum over actions, and how far the computed effect may be off the exact sum."""

    form: Linear
    rounding: Fraction = Fraction(0)


class Causes:
    """The effects of a question about actions, and what each follows from.

    Attributes
    ----------
    names : set of str
        The effects.
    constants : dict
        Effects that no action moves, and their values.
    roots : dict
        Effects of one feature, on which they depend in one direction or through a table.
    sums : dict
        Effects that are sums over actions, the constants included.
    """

    def __init__(self, problem: Problem, effects: Effects) -> None:
        self.problem, self.effects, self.space = problem, effects, problem.space
        self.names = {equation.name for equation in effects.equations}
        self.constants: dict[str, Fraction] = {}
        self.roots: dict[str, SingleCause] = {}
        self.sums: dict[str, Sum] = {}
        for equation in effects.equations:
            known = {name: self.constants[name] for name in inputs_of(equation.program) & set(self.constants)}
            made = replace(equation, program=given(equation.program, known))
            causes = sorted(inputs_of(made.program) & set(self.space))
            if not causes:
                value = Fraction(made.value(dict.fromkeys(self.space)))
                self.constants[made.name], self.sums[made.name] = value, Sum(({}, value))
                continue
            if (root := self._root(made, causes)) is not None:
                self.roots[made.name] = root
            if (total := self._sum(made)) is not None:
                self.sums[made.name] = total

    # ---- one feature

    def _root(self, equation: Equation, causes: list[str]) -> SingleCause | None:
        """Return the one feature behind all causes of an effect; ``None`` where there are more, or the effect turns back."""
        if any(cause in self.names and cause not in self.roots for cause in causes):
            return None
        behind = [self.roots.get(cause, SingleCause(cause, direction=1)) for cause in causes]
        names = {root.name for root in behind}
        if len(names) != 1:
            return None
        (name,) = names
        levels = getattr(self.space[name], "levels", None)
        if levels is not None:
            return SingleCause(name, tuple(self.value(equation.name, name, k) for k in range(len(levels))))
        signs: set[int] = set()
        if len(causes) == 1:
            ends = sorted(Fraction(self.value(causes[0], name, end)) for end in self.ends(name))
            found = direction(equation.program, causes[0], *ends)
            signs = set() if found is None else {found * behind[0].direction}
        elif equation.sum is not None:
            shares = equation.sum[0]
            signs = {
                (1 if shares.get(cause, 0) > 0 else -1) * root.direction if shares.get(cause) else 0
                for cause, root in zip(causes, behind, strict=True)
            }
            signs = signs - {0} or {0}
        return SingleCause(name, direction=signs.pop()) if len(signs) == 1 else None

    def ends(self, name: str) -> tuple[float, float]:
        """Return the least and the greatest value of a number, the factual's own included."""
        index = self.space.index(name)
        low, high = self.problem.box()[index]
        own = self.problem.factual[index] or 0
        return float(min(low, own)), float(max(high, own))

    def value(self, name: str, root: str, at: float) -> float:
        """Return a feature of the row that the factual leads to with its ``root`` set to a value."""
        factual, index = self.problem.factual, self.space.index(root)
        acted: Point = (*factual[:index], at, *factual[index + 1 :])
        value = self.effects.row(acted)[self.space.index(name)]
        assert value is not None
        return float(value)

    def crossing(self, name: str, number: Fraction, *, below: bool = False) -> tuple[float, bool, bool]:
        """Return where ``effect <= number`` (``<``, with ``below``) changes as the effect's root rises.

        Returns
        -------
        last, before, after
            The last float of the root up to which the comparison is as at its least value (its greatest value, where it never
            changes); and whether the comparison holds up to there, and after it.
        """
        root = self.roots[name].name
        low, high = self.ends(root)

        def holds(at: float) -> bool:
            effect = self.value(name, root, at)
            return effect < number if below else effect <= number

        before, after = holds(low), holds(high)
        if before == after:
            return high, before, after
        first, rise = self.value(name, root, low), self.value(name, root, high) - self.value(name, root, low)
        guess = low + (float(number) - first) / rise * (high - low)
        guess = min(max(guess, low), high) if math.isfinite(guess) else low
        return _last_float(lambda at: holds(at) == before, low, high, guess), before, after

    # ---- sums

    def _sum(self, equation: Equation) -> Sum | None:
        """Return an effect as a sum over actions; ``None`` where it is none.

        Inside of its range a computed effect differs from its equation by at most half a unit in the last place, plus what its causes add.
        """
        if equation.sum is None or equation.is_rounded:
            return None
        total = self.through(equation.sum)
        if total is None or any(hasattr(self.space[name], "levels") for name in total.form[0]):
            return None
        rounding = max(map(abs, self.effects.ends(equation.name))) / 2**53 + LEAST_NORMAL
        return Sum(add(total.form, ({}, equation.shift), Fraction(1)), total.rounding + rounding)

    def through(self, form: Linear) -> Sum | None:
        """Return a sum over the row as one over actions; ``None`` where an effect in it is none."""
        made = Sum(({}, form[1]))
        for name, share in form[0].items():
            if name in self.names and name not in self.sums:
                return None
            inner = self.sums.get(name, Sum(({name: Fraction(1)}, Fraction(0))))
            made = Sum(add(made.form, inner.form, share), made.rounding + abs(share) * inner.rounding)
        return made


# ---- floats in order


def _last_float(is_before: Callable[[float], bool], low: float, high: float, guess: float) -> float:
    """Return the last float that is before a change. ``low`` is before it, ``high`` after; a good guess saves questions, no more.

    Ever longer steps are taken away from the guess until the change is passed; then ranges are halved.
    """
    begin, end = _rank(low), _rank(high)
    at, step = _rank(guess), 1
    while end - begin > 1:
        if not begin < at < end:
            at = (begin + end) // 2
        if is_before(_of_rank(at)):
            begin, at = at, at + step
        else:
            end, at = at, at - step
        step *= 2
    return _of_rank(begin)


def _rank(number: float) -> int:
    """Return the position of a float among all floats in their order."""
    bits: int = struct.unpack("<q", struct.pack("<d", number + 0.0))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _of_rank(rank: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<q", abs(rank)))[0]
    return number if rank >= 0 else -number

"""From scores to an outcome: what a goal says about the scores, exactly, widened or narrowed.

A goal over scores is a disjunction of conjunctions of *margins*, linear inequalities between two scores or a score and a number. Every
lane works with these, so a decision rule is written once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from mace.exact import Floats
from mace.language import syntax


@dataclass(frozen=True, slots=True)
class Margin:
    """score[plus] - score[minus] + shift is at least 0 (above 0 where ``strict``); a missing side counts 0.

    ``slack`` is how far these scores may be off, in addition to the rounding of the form.
    """

    plus: int | None
    minus: int | None
    shift: Fraction = Fraction(0)
    strict: bool = False
    slack: Fraction = Fraction(0)

    def value(self, scores: Sequence[Fraction]) -> Fraction:
        """Return how far the inequality is from equality, less its slack on either side."""
        ahead = scores[self.plus] if self.plus is not None else Fraction(0)
        behind = scores[self.minus] if self.minus is not None else Fraction(0)
        value = ahead - behind + self.shift
        return value - self.slack if value > self.slack else min(value + self.slack, Fraction(0))

    def moved(self, plus: int, minus: int | None = None) -> Margin:
        """Return the margin with its outputs moved by ``plus`` places; those on the right by ``minus`` places, where that is given."""
        return replace(
            self,
            plus=None if self.plus is None else self.plus + plus,
            minus=None if self.minus is None else self.minus + (plus if minus is None else minus),
        )

    def formula(self, scores: Sequence[syntax.Expression], slack: Fraction) -> syntax.Guard:
        """Return the inequality over expressions, with ``slack`` added to its left side."""
        terms: list[syntax.Expression] = []
        if self.plus is not None:
            terms.append(scores[self.plus])
        if self.minus is not None:
            terms.append(syntax.Unary("neg", scores[self.minus]))
        slack += self.slack if slack >= 0 else -self.slack
        sign: syntax.CompareName = ">" if (self.strict and slack == 0) or slack < 0 else ">="
        return syntax.Compare(sign, syntax.total(terms), syntax.constant(-self.shift - slack))


Alternatives = tuple[tuple[Margin, ...], ...]
"""Some alternative must hold, each with all of its margins."""


class Goal(Protocol):
    """The outcomes that count."""

    @property
    def slack(self) -> Fraction:
        """How uncertain the boundary is in the unit of the scores, in addition to the rounding of the scores themselves."""

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether an outcome of the real model counts."""

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return what the goal says of the scores of a model with this many outputs."""

    def of_result(self, result: str) -> syntax.Guard:
        """Return the formula that the variable ``result`` holds an outcome that counts."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes in ``codes``, or (``negated``) all others.

    A code is the position of a class, or, for a model that is a function, the number it returns.
    """

    codes: frozenset[Fraction]
    negated: bool = False
    slack: Fraction = Fraction(0)

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether an outcome counts."""
        return (outcome in self.codes) != self.negated

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return that some wanted class is ahead of every unwanted one.

        The class with the greatest score wins, the first of equals. One output decides between two classes: the second where
        it is above 0 (at least 0 with ``ties_last``).
        """
        classes = max(outputs, 2)
        wanted = [k for k in range(classes) if self.accepts(Fraction(k))]
        others = [k for k in range(classes) if not self.accepts(Fraction(k))]
        return tuple(tuple(_ahead(c, k, outputs, ties_last) for k in others) for c in wanted)

    def of_result(self, result: str) -> syntax.Guard:
        """Return the formula that ``result`` is (or is not) one of the codes."""
        variable = syntax.Variable(result)
        ordered = [syntax.Constant(code) for code in sorted(self.codes)]
        if self.negated:
            return syntax.conjunction(syntax.Compare("!=", variable, code) for code in ordered)
        return syntax.disjunction(syntax.Compare("==", variable, code) for code in ordered)


def _ahead(c: int, k: int, outputs: int, ties_last: bool) -> Margin:
    strict = (c > k) != (ties_last and outputs == 1)
    if outputs == 1:
        return Margin(0, None, strict=strict) if c == 1 else Margin(None, 0, strict=strict)
    return Margin(c, k, strict=strict)


@dataclass(frozen=True, slots=True)
class Lead:
    """Some class of ``codes`` is ahead of every other by at least ``least``, in the unit that the model reports.

    Attributes
    ----------
    codes : frozenset of Fraction
        The wanted classes.
    least : Fraction
        How far ahead, above 0: in shares, each the sum of a score over ``scale``.
    scale : Fraction
        What the model divides its scores by.
    slack : Fraction
        How uncertain a difference of scores is, in addition to their own rounding.
    """

    codes: frozenset[Fraction]
    least: Fraction
    scale: Fraction
    slack: Fraction = Fraction(0)

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether a reported lead counts."""
        return outcome >= self.least

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return that some wanted class is far enough ahead of every unwanted one."""
        others = [k for k in range(outputs) if k not in self.codes]
        # A tie of the sums is none of the reported shares, which are rounded one by one: a fraction keeps lanes from taking it for exact.
        shift = -self.least * self.scale + Fraction(1, 2**80)
        return tuple(tuple(Margin(int(c), k, shift) for k in others) for c in sorted(self.codes))

    def of_result(self, result: str) -> syntax.Guard:
        """Return the bound on a result that is itself the lead."""
        return syntax.Compare(">=", syntax.Variable(result), syntax.constant(self.least))


@dataclass(frozen=True, slots=True)
class Interval:
    """A number that the model reports (a probability, a prediction) lies in ``[low, high]``; ``None`` is no bound.

    Attributes
    ----------
    low, high : Fraction, optional
        The bounds in the unit that the model reports.
    output : int
        Which score it is made from.
    score_low, score_high : Fraction, optional
        The same bounds in the unit of the score.
    slack : Fraction
        How uncertain these are.
    """

    low: Fraction | None
    high: Fraction | None
    output: int
    score_low: Fraction | None
    score_high: Fraction | None
    slack: Fraction = Fraction(0)

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether a reported number counts."""
        return (self.low is None or outcome >= self.low) and (self.high is None or outcome <= self.high)

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return the one or two inequalities on the score."""
        margins = []
        if self.score_low is not None:
            margins.append(Margin(self.output, None, -self.score_low))
        if self.score_high is not None:
            margins.append(Margin(None, self.output, self.score_high))
        return (tuple(margins),)

    def of_result(self, result: str) -> syntax.Guard:
        """Return the bounds on ``result``."""
        return syntax.between(syntax.Variable(result), self.low, self.high)


@dataclass(frozen=True, slots=True)
class Negated:
    """All outcomes that do not count for another goal."""

    goal: Goal

    @property
    def slack(self) -> Fraction:
        """The slack of the goal."""
        return self.goal.slack

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether an outcome does not count for the goal."""
        return not self.goal.accepts(outcome)

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return that of each alternative of the goal some margin fails."""
        return missed(self.goal.alternatives(outputs, ties_last=ties_last))

    def of_result(self, result: str) -> syntax.Guard:
        """Return the formula that ``result`` holds no outcome of the goal."""
        return syntax.negation(self.goal.of_result(result))


def missed(alternatives: Alternatives) -> Alternatives:
    """Return that of each alternative some margin fails."""
    return tuple(tuple(map(_failing, chosen)) for chosen in itertools.product(*alternatives))


def _failing(margin: Margin) -> Margin:
    return Margin(margin.minus, margin.plus, -margin.shift, not margin.strict, margin.slack)


@dataclass(frozen=True, slots=True)
class Stated:
    """The goal of a question that is made from another: margins over the scores of its form, as they are. An outcome of 1 counts.

    Attributes
    ----------
    stated : Alternatives
        The margins.
    slack : Fraction
        As of any goal.
    goal : Goal, optional
        The goal of the first question.
    """

    stated: Alternatives
    slack: Fraction = Fraction(0)
    goal: Goal | None = None

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether an outcome counts."""
        return outcome == 1

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return the margins."""
        return self.stated

    def of_result(self, result: str) -> syntax.Guard:
        """Return the formula of the first goal, or that an outcome counts."""
        if self.goal is not None:
            return self.goal.of_result(result)
        return syntax.Compare("==", syntax.Variable(result), syntax.ONE)


def negated(goal: Goal) -> Goal:
    """Return the goal of all other outcomes; a goal of several models says its own, which has far fewer alternatives."""
    if isinstance(goal, Outcomes):
        return replace(goal, negated=not goal.negated)
    opposite: Goal | None = goal.opposite() if hasattr(goal, "opposite") else None
    return Negated(goal) if opposite is None else opposite


def innermost(goal: Goal) -> Goal:
    """Return what a goal made of another is about in the end."""
    while (inner := getattr(goal, "goal", None)) is not None:
        goal = inner
    return goal


def winner(scores: Sequence[Fraction], *, ties_last: bool = False) -> int:
    """Return the class of the greatest score, the first of equals; the second one of a score above 0, or at 0 where ``ties_last``."""
    if len(scores) == 1:
        return int(scores[0] > 0 or (ties_last and scores[0] == 0))
    return max(range(len(scores)), key=lambda k: (scores[k], -k))


def reaches(scores: Sequence[syntax.Expression], alternatives: Alternatives, slack: Fraction) -> syntax.Guard:
    """Return the formula that the scores fulfil some alternative.

    With ``slack`` 0 this is the decision itself. A positive slack widens it: it holds wherever scores that differ from these by less
    than the slack (in each margin) may fulfil it. A negative slack narrows it: wherever it holds, all such scores fulfil it.
    """
    return syntax.disjunction(syntax.conjunction(m.formula(scores, slack) for m in margins) for margins in alternatives)


def separated(alternatives: Alternatives, grain: Fraction) -> Alternatives:
    """Return the same margins over scores that are multiples of ``grain``, each half a grain away from what it tells apart.

    An exact tie then needs no strict inequality, which a lane with tolerances could not keep.
    """
    half = grain / 2
    return tuple(
        tuple(
            replace(m, shift=-half if m.strict else half, strict=False) if m.shift == 0 and grain else m
            for m in margins
        )
        for margins in alternatives
    )


def grain_of(values: Floats) -> Fraction:
    """Return a power of two, from 1 down to 2^-24, that all values are multiples of; 0 where there is none."""
    for bits in (0, 1, 2, 4, 8, 16, 24):
        scaled = values * 2.0**bits
        if (scaled == np.round(scaled)).all():
            return Fraction(1, 2**bits)
    return Fraction(0)


def clearance(scores: Sequence[Fraction], alternatives: Alternatives) -> Fraction:
    """Return how far inside (positive) or outside (negative) of the goal the scores are."""
    return max((min((m.value(scores) for m in margins), default=_SURE) for margins in alternatives), default=-_SURE)


_SURE = Fraction(2**60)

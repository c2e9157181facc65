"""From scores to a class: what a target says about the scores, exactly, widened or narrowed.

A scored model predicts the class with the greatest score, the first of them where several are equal. A binary model
with one score s > 0 is the same with the scores (0, s).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.language.syntax import (
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
    Variable,
    conjunction,
    constant,
    disjunction,
)


@dataclass(frozen=True, slots=True)
class Goal:
    """The outcomes that count: those in ``codes``, or (``negated``) all others.

    A code is the position of a class, or, for a model that is a function, the number it returns.
    """

    codes: frozenset[Fraction]
    negated: bool = False

    def accepts(self, code: Fraction) -> bool:
        """Return whether an outcome counts."""
        return (code in self.codes) != self.negated

    def of_result(self, result: str) -> Guard:
        """Return the formula that the variable ``result`` holds an outcome that counts."""
        variable = Variable(result)
        ordered = [Constant(code) for code in sorted(self.codes)]
        if self.negated:
            return conjunction(Compare("!=", variable, code) for code in ordered)
        return disjunction(Compare("==", variable, code) for code in ordered)


def winner(scores: Sequence[Fraction]) -> int:
    """Return the position of the greatest score, the first of equals."""
    return max(range(len(scores)), key=lambda k: (scores[k], -k))


def reaches(scores: Sequence[Expression], goal: Goal, slack: Fraction) -> Guard:
    """Return the formula that the scores win for a class of ``goal``.

    Some wanted class is ahead of every unwanted one. With ``slack`` 0 this is the decision itself, ties to the first class. A
    positive slack widens it: it holds wherever scores that differ from these by less than the slack (in each difference) may
    win. A negative slack narrows it: wherever it holds, all such scores win.
    """
    wanted = [k for k in range(len(scores)) if goal.accepts(Fraction(k))]
    others = [k for k in range(len(scores)) if not goal.accepts(Fraction(k))]
    return disjunction(conjunction(_ahead(scores, c, k, slack) for k in others) for c in wanted)


def _ahead(scores: Sequence[Expression], c: int, k: int, slack: Fraction) -> Guard:
    strict = (slack == 0 and k < c) or slack < 0
    left = scores[c] if slack == 0 else Binary("+", scores[c], constant(slack))
    return Compare(">" if strict else ">=", left, scores[k])


def margin(scores: Sequence[Fraction], goal: Goal) -> Fraction:
    """Return how far the best wanted class is ahead of the best unwanted one; negative where it is behind."""
    wanted = [score for k, score in enumerate(scores) if goal.accepts(Fraction(k))]
    others = [score for k, score in enumerate(scores) if not goal.accepts(Fraction(k))]
    if not wanted or not others:
        return Fraction(1 if wanted else -1) * 2**60
    return max(wanted) - max(others)

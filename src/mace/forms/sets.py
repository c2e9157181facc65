"""Several models that are asked together: their scores beside each other in one form, and how many must reach the goal.

What is said of the members holds of the whole: each margin of the goal is about the scores of one member, so that rounding moves it by
no more than it moves that member's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from mace.errors import InvalidTarget
from mace.forms.composite import Composite
from mace.forms.decision import Alternatives, Goal, missed, negated
from mace.forms.form import Box, Form
from mace.forms.network import Network
from mace.forms.trees import TreeEnsemble
from mace.language import syntax

Member = TreeEnsemble | Network | Composite


MOST_WAYS = 2000
"""The most ways in which several models may reach a target, or miss it: each is a search of its own."""

# ---- outcomes


def packed(outcomes: Sequence[Fraction], base: int) -> Fraction:
    """Return the outcomes of all members as one: they are the digits of a number, the first the lowest."""
    code = 0
    for outcome in reversed(outcomes):
        code = code * base + _digit(outcome, base)
    return Fraction(code)


def unpacked(outcome: Fraction, base: int, members: int) -> list[Fraction]:
    """Return the outcomes of the members, of which :func:`packed` made one."""
    code, found = int(outcome), []
    for _ in range(members):
        code, digit = divmod(code, base)
        found.append(_outcome(digit, base))
    return found


NUMBERS = 2**64
"""The base for members that predict numbers: the digits are the bits of a float64."""


def _digit(outcome: Fraction, base: int) -> int:
    return int(np.float64(outcome).view(np.uint64)) if base == NUMBERS else int(outcome)


def _outcome(digit: int, base: int) -> Fraction:
    return Fraction(float(np.uint64(digit).view(np.float64))) if base == NUMBERS else Fraction(digit)


# ---- the goal


@dataclass(frozen=True, slots=True)
class Agreement:
    """At least ``least`` members reach their goal; an outcome is those of all members, packed into one number.

    Attributes
    ----------
    goals : tuple of Goal
        One a member, of its own outcome.
    least : int
        How many must reach theirs.
    base : int
        Of the outcomes, see :func:`packed`.
    each : tuple of Alternatives
        The goal of each member over the scores of the joint form; none where the models are only asked.
    slack : Fraction
        The greatest of the members' goals.
    """

    goals: tuple[Goal, ...]
    least: int
    base: int
    each: tuple[Alternatives, ...]
    slack: Fraction = Fraction(0)

    def holders(self, outcome: Fraction) -> tuple[int, ...]:
        """Return the positions of the members that reach their goal."""
        each = unpacked(outcome, self.base, len(self.goals))
        return tuple(k for k, (goal, own) in enumerate(zip(self.goals, each, strict=True)) if goal.accepts(own))

    def accepts(self, outcome: Fraction) -> bool:
        """Return whether enough members reach their goal."""
        return len(self.holders(outcome)) >= self.least

    def alternatives(self, outputs: int, *, ties_last: bool) -> Alternatives:
        """Return every choice of so many members, with an alternative of each one's goal."""
        return tuple(
            tuple(margin for margins in taken for margin in margins)
            for chosen in itertools.combinations(self.each, self.least)
            for taken in itertools.product(*chosen)
        )

    @property
    def ways(self) -> int:
        """The number of alternatives."""
        found = [1] + [0] * self.least
        for count in map(len, self.each):
            found = [own + (found[k - 1] * count if k else 0) for k, own in enumerate(found)]
        return found[self.least]

    def opposite(self) -> Agreement:
        """Return that fewer members reach their goals: that so many others miss theirs.

        Raises
        ------
        InvalidTarget
            That can be in too many ways.
        """
        least = len(self.goals) - self.least + 1
        made = replace(self, goals=tuple(map(negated, self.goals)), each=tuple(map(missed, self.each)), least=least)
        if made.ways > MOST_WAYS:
            raise InvalidTarget(
                f"{len(self.goals)} models can miss this target in more than {MOST_WAYS:,} ways, too many for noise, margins and regions. "
                "Ask for one label, or of fewer models."
            )
        return made

    def of_result(self, result: str) -> syntax.Guard:
        """Return that the result is an outcome that counts; no program of several models returns one."""
        return syntax.Compare("==", syntax.Variable(result), syntax.ONE)


def of_members(form: Form, goals: Sequence[Goal]) -> tuple[Alternatives, ...]:
    """Return the alternatives of each member, over the outputs of the joint form; what is uncertain in its goal is so in its margins."""
    members = members_of(form)
    begins = itertools.accumulate(map(outputs_of, members), initial=0)
    return tuple(
        tuple(
            tuple(replace(margin.moved(begin), slack=margin.slack + goal.slack) for margin in margins)
            for margins in member.alternatives(goal)
        )
        for member, goal, begin in zip(members, goals, begins, strict=False)
    )


# ---- forms


@dataclass(frozen=True, eq=False)
class TreeSet(TreeEnsemble):
    """Tree ensembles beside each other, each with outputs of its own."""

    members: tuple[TreeEnsemble, ...] = ()

    @cached_property
    def has_exact_sums(self) -> bool:
        """Whether the sums of every member are exact."""
        return all(member.has_exact_sums for member in self.members)

    @cached_property
    def rounding(self) -> Fraction:
        """The most by which rounding may change a margin of some member."""
        return max(member.rounding for member in self.members)

    @property
    def _as_difference(self) -> bool:
        """Whether two outputs are folded into their difference: no two of several models are."""
        return False


@dataclass(frozen=True, eq=False)
class NetworkSet(Network):
    """Networks beside each other, each with scores of its own; those with fewer layers hand their scores on."""

    members: tuple[Network, ...] = ()

    def rounding(self, box: Box) -> Fraction:
        """Return the most by which rounding may change a margin of some member."""
        return max(member.rounding(box) for member in self.members)


@dataclass(frozen=True, eq=False)
class MixedSet(Composite):
    """Models of several kinds beside each other."""

    members: tuple[Member, ...] = ()

    def rounding(self, box: Box) -> Fraction:
        """Return the most by which rounding may change a margin of some member."""
        return max(
            member.rounding if isinstance(member, TreeEnsemble) else member.rounding(box) for member in self.members
        )


def members_of(form: Form) -> tuple[Member, ...]:
    """Return the models that a form holds beside each other; none of a form of one model."""
    return form.members if isinstance(form, TreeSet | NetworkSet | MixedSet) else ()


def base_of(form: Form) -> int:
    """Return the base in which the outcomes of a form's members are packed."""
    members = members_of(form)
    if any(member.is_regressor for member in members):
        return NUMBERS
    return max(2, *map(outputs_of, members))


def outputs_of(member: Member) -> int:
    """Return how many scores a member has."""
    return len(member.biases[-1]) if isinstance(member, Network) else member.outputs


# ---- what a set says


def plurality(outcomes: Sequence[Fraction]) -> Fraction:
    """Return the code that most members give, the lowest of equals."""
    return max(sorted(set(outcomes)), key=outcomes.count)


def middle(outcomes: Sequence[Fraction]) -> Fraction:
    """Return the median of numbers, the lower of two."""
    return sorted(outcomes)[math.ceil(len(outcomes) / 2) - 1]

"""What a read model is: the protocol that every form follows."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

from mace.forms.decision import Goal
from mace.language import syntax
from mace.space import RESERVED, Point

Box = tuple[tuple[Fraction, Fraction], ...]
"""Bounds on each feature's number, in the space's order."""

RESULT = f"{RESERVED}model"
"""The variable that holds a model's outcome in a formula; its other variables begin with :data:`RESULT_PREFIX`."""

RESULT_PREFIX = f"{RESULT}."


def box_at(point: Point) -> Box:
    """Return the box of a single point; a missing value counts as 0."""
    return tuple((Fraction(value or 0), Fraction(value or 0)) for value in point)


class Form(Protocol):
    """A model as mathematics, with a bound on how far the deployed arithmetic strays from it.

    A class that inherits from it knows nothing of a point's neighbours or of how near a point is to another outcome, and is always computed
    in the same way, unless it says otherwise.
    """

    def program(self) -> syntax.Program:
        """Return the model in the core language: a program over the features that returns the outcome's code."""

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the model's variables in terms of the features: what holds of every point, in the goal or not."""

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return a formula that, with the definitions, holds of every point of ``box`` that the deployed model may put in ``goal``."""

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return a formula that, with the definitions, holds only of points that stay in ``goal`` whatever the rounding."""

    def cell(self, point: Point) -> syntax.Guard | None:
        """Return a formula for points that surely share the outcome of ``point``, or ``None`` where no such set is known."""
        return None

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether the deployed model gives this one point the same outcome every time it is asked."""
        return True

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether no order of summation can change the outcome of ``point``."""
        return False

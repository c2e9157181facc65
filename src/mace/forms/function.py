"""A model that is a Python function: its program is the form."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mace.forms.decision import Goal
from mace.forms.form import RESULT, RESULT_PREFIX, Box, Form
from mace.language import floating, ranges_of, robust, syntax
from mace.space import FeatureSpace, Real

MARGIN = Fraction(1, 2**36)
"""By how much, relative to the widest range, every comparison of a certain point must hold."""


@dataclass(frozen=True, eq=False)
class FunctionForm(Form):
    """A program over the features that returns the outcome.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    code : Program
        The function in the core language, operation for operation as Python executes it.
    """

    space: FeatureSpace
    code: syntax.Program

    def program(self) -> syntax.Program:
        """Return the function's program."""
        return self.code

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return true: all that the formula says depends on the box."""
        return syntax.TRUE

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return a formula for every outcome that Python's float arithmetic may give."""
        formula = floating(
            self.code, ranges=self._ranges(box), integers=self._integers, result=RESULT, prefix=RESULT_PREFIX
        )
        return syntax.conjunction([formula, goal.of_result(RESULT)])

    def ranges(self, box: Box) -> dict[str, tuple[Fraction | float, Fraction | float]]:
        """Return the ends of the variables of both formulas."""
        return ranges_of(
            self.code, ranges=self._ranges(box), integers=self._integers, result=RESULT, prefix=RESULT_PREFIX
        )

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return the function's formula, in which every comparison of rounded values holds by a margin."""
        widest = max((max(abs(low), abs(high)) for low, high in box), default=Fraction(1))
        formula = robust(
            self.code,
            margin=MARGIN * max(Fraction(1), widest),
            ranges=self._ranges(box),
            integers=self._integers,
            result=RESULT,
            prefix=RESULT_PREFIX,
        )
        return syntax.conjunction([formula, goal.of_result(RESULT)])

    @property
    def _integers(self) -> frozenset[str]:
        return frozenset(name for name, feature in self.space.items() if not isinstance(feature, Real))

    def _ranges(self, box: Box) -> dict[str, tuple[Fraction, Fraction]]:
        return dict(zip(self.space.names, box, strict=True))

"""The question about one box that another lane is asked: linear functions of scores in the place of probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.exact import Floats, float_down, float_up, gamma
from mace.forms import Alternatives, Box, Composite, Margin, Network, TreeEnsemble, Weighted
from mace.models.ensembles.votes import join_forms
from mace.problem import Problem
from mace.reductions.polylines import lowered
from mace.reductions.regions import Range, Region
from mace.solvers.ratios.bounds import linear_parts, weights_of

Pair = tuple[int | None, int | None]

FEWEST_OUTPUTS = 3
"""Ensembles of one or two sums are read as the scores of a class; those of a question are margins, each by itself."""


@dataclass(frozen=True, slots=True)
class Margins:
    """The margins of a goal: each pair of outputs that it compares once, and its alternatives."""

    pairs: tuple[Pair, ...]
    weights: Floats
    alternatives: Alternatives

    @classmethod
    def of(cls, form: Composite, alternatives: Alternatives) -> Margins:
        """Return the margins of a goal's alternatives over the outputs of a form."""
        pairs = tuple(dict.fromkeys((m.plus, m.minus) for margins in alternatives for m in margins))
        return cls(pairs, weights_of(pairs, form.outputs), alternatives)

    def stated(self, rounding: Fraction) -> Alternatives:
        """Return the alternatives over the weighted sums, widened by what rounding may move a margin."""
        return tuple(
            tuple(Margin(self.pairs.index((m.plus, m.minus)), None, m.shift + m.slack + rounding) for m in margins)
            for margins in self.alternatives
        )


@dataclass(frozen=True, slots=True)
class BoxQuestion:
    """A question about a box, and the linear functions in it as they are written down: of each part that votes ``None``."""

    form: TreeEnsemble | Network | Composite
    stated: Alternatives
    linear: tuple[dict[str, Any] | None, ...]


def question_of(problem: Problem, margins: Margins, box: Box) -> BoxQuestion:
    """Return the question for the points of a box that may reach the goal."""
    form = problem.form
    assert isinstance(form, Composite)
    whole, linear = linear_parts(form, margins.weights, box)
    stated = margins.stated(form.rounding(box) + problem.goal.slack)
    written = tuple(None if each is None else {"slopes": each.slope, "shifts": each.shift} for each in linear)
    return BoxQuestion(as_trees(whole) or lowered(whole) or whole, stated, written)


def as_trees(form: Composite) -> TreeEnsemble | None:
    """Return weighted scores of trees as one ensemble; ``None`` where some part is something else.

    Values of leaves are rounded when they are weighted and added: by at most γ of the sizes of the terms.
    """
    forms, values, size = [], [], np.zeros(form.outputs)
    base = form.base.copy()
    for part in form.parts:
        if not isinstance(part, Weighted) or not isinstance(part.form, TreeEnsemble):
            return None
        forms.append(part.form)
        values.append(part.form.value @ part.factors.T)
        base += part.factors @ part.form.base
        size += np.abs(part.factors) @ part.form.magnitude
    steps = 2 * (len(forms) + max(each.outputs for each in forms) + 4)
    wrong = gamma(steps) * Fraction(float((size + np.abs(form.base)).max())) * 4
    added = max(FEWEST_OUTPUTS - form.outputs, 0)
    values = [np.pad(value, ((0, 0), (0, added))) for value in values]
    made = join_forms(forms, values, np.pad(base, (0, added)))
    return replace(made, squash=wrong, link="none")


def in_floats(region: Region) -> Region:
    """Return a region whose ends are floats: values between are no values of a row."""
    return {name: _in_floats(left) for name, left in region.items()}


def _in_floats(left: Range) -> Range:
    if left.levels is not None:
        return left
    return replace(left, low=Fraction(float_up(left.low)), high=Fraction(float_down(left.high)))


def box_of(region: Region) -> Box:
    """Return the numbers of each feature between which a region lies."""
    return tuple(left.interval() for left in region.values())

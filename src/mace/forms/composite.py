"""Several models as one: weighted sums of their scores, their counted votes, the mean of their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import Floats, gamma
from mace.forms.decision import Alternatives, Goal, Interval, Outcomes, clearance, grain_of, reaches, separated, winner
from mace.forms.form import RESULT, RESULT_PREFIX, Box, Form, box_at
from mace.forms.normalised import Normalised
from mace.forms.parts import Curved, Part, Scored, Voting
from mace.forms.scoring import outcome_command, score_names
from mace.forms.trees import TreeEnsemble
from mace.language import characteristic, syntax
from mace.language.naming import assigned
from mace.language.substitute import rename, substitute
from mace.space import RESERVED, FeatureSpace, Point

_EACH = Interval(None, None, 0, None, None)
"""A goal that asks for each score by itself."""

_FORMULAS: WeakKeyDictionary[Scored, dict[tuple[int, bool], tuple[syntax.Guard, tuple[syntax.Expression, ...]]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class Composite(Form):
    """Outputs that are sums over several models, and how they decide.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    parts : tuple of Weighted, Voting, Curved or Normalised
        The models, each over the features themselves, and what they add.
    base : float array, one entry an output
        What the sums start from. One output decides between two classes, the second where it is above 0; of several the greatest wins,
        the first of equals.
    link : {"none", "chance", "identity"}
        How an output becomes the number that the model reports: not at all; as the probability of the second class, less one half
        (one output), or of its class; as it is.
    is_regressor : bool
        Whether the output is the outcome.
    fixed_order : bool
        Whether the library adds the models in the same order every time.
    further_steps : int
        Further roundings of every sum, where the library adds up more numbers than there are models.
    """

    space: FeatureSpace
    parts: tuple[Part, ...]
    base: Floats
    link: Literal["none", "chance", "identity"] = "none"
    is_regressor: bool = False
    fixed_order: bool = True
    further_steps: int = 0

    @property
    def outputs(self) -> int:
        """How many sums there are."""
        return len(self.base)

    @property
    def unit(self) -> Fraction:
        """The coarsest unit roundoff among the models."""
        return max(part.form.unit for part in self.parts)

    @property
    def is_curved(self) -> bool:
        """Whether some part is a sigmoid or divides probabilities by their sum, so that no formula is exact."""
        return self.has_ratios or any(isinstance(part, Curved) and part.curve is None for part in self.parts)

    @property
    def has_ratios(self) -> bool:
        """Whether some part divides probabilities by their sum."""
        return any(isinstance(part, Normalised) for part in self.parts)

    # ---- rounding

    def rounding(self, box: Box) -> Fraction:
        """Return the most by which rounding may change a difference of two outputs, or of one and a number, in ``box``.

        Each model's score has its own bound; a sigmoid's slope is at most 1/4, a polyline's its steepest. The sum of n terms, in any
        order, weighted and divided, adds γ_{n+8+further_steps} of their sizes. Counted votes of whole weights, or halves, are exact.
        """
        if self._grain:
            return Fraction(0)
        error, size = Fraction(0), Fraction(float(np.abs(self.base).max()))
        for part in self.parts:
            wrong, largest = part.error(box)
            error, size = error + wrong, size + largest
        return (
            2
            * (error + gamma(len(self.parts) + 8 + self.further_steps, self.unit) * (error + size))
            * (1 + Fraction(1, 2**20))
        )

    @cached_property
    def _grain(self) -> Fraction:
        """What counted votes are multiples of, where they are counted exactly; otherwise 0."""
        if not all(isinstance(part, Voting) for part in self.parts):
            return Fraction(0)
        numbers = np.concatenate([self.base, *(part.added.ravel() for part in self.parts)])  # type: ignore[union-attr]
        grain = grain_of(numbers)
        return grain if np.abs(numbers).max() * len(self.parts) < 2**20 * grain * 2**8 else Fraction(0)

    # ---- programs and formulas

    def program(self) -> syntax.Program:
        """Return the models one after the other, their votes or curves, the sums, and the outcome."""
        if self.is_curved:
            raise UnsupportedModel(
                "a mean of sigmoids or softmaxes has no program: the core language has no exponential. Ask for its counterfactuals instead."
            )
        outcome = outcome_command(score_names(self.outputs), is_regressor=self.is_regressor)
        return syntax.Program(self.space.names, syntax.sequence([self.computed()[0], outcome]))

    def computed(self) -> tuple[syntax.Command, tuple[syntax.Expression, ...]]:
        """Return the commands that compute the outputs, and the outputs in their variables."""
        commands, terms = [command for command, _ in self._computed], []
        for number, part in enumerate(self.parts):
            command, added = part.commands(self._computed[number][1], f"{RESERVED}{number}")
            commands.append(command)
            terms.append(added)
        names = score_names(self.outputs)
        for k, name in enumerate(names):
            start: list[syntax.Expression] = [syntax.constant(float(self.base[k]))]
            commands.append(syntax.Assign(name, syntax.total([*start, *(added[k] for added in terms)])))
        return syntax.sequence(commands), tuple(map(syntax.Variable, names))

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the characteristic formulas of every model's scores."""
        return syntax.conjunction({id(formula): formula for formula, _ in self._formulas}.values())

    def prepare(self) -> None:
        """Make the formulas of trees, which takes a while where they are many, before any question is asked."""
        if any(isinstance(part.form, TreeEnsemble) for part in self.parts):
            _ = self._formulas

    @cached_property
    def _formulas(self) -> tuple[tuple[syntax.Guard, tuple[syntax.Expression, ...]], ...]:
        """For each part the formula of its model's scores, and these; a model that occurs twice has the same variables."""
        numbers: dict[tuple[int, bool], int] = {}
        found = []
        for part in self.parts:
            is_folded = isinstance(part, Voting)
            number = numbers.setdefault((id(part.form), is_folded), len(numbers))
            found.append(_formula(part.form, number, is_folded))
        return tuple(found)

    @cached_property
    def _computed(self) -> list[tuple[syntax.Command, tuple[syntax.Expression, ...]]]:
        """The commands of each model, its variables renamed apart from the others', and its scores."""
        found = []
        for number, part in enumerate(self.parts):
            command, scores = part.form.computed(_asked(isinstance(part, Voting)))
            new = {name: f"{RESERVED}{number} {name.removeprefix(RESERVED)}" for name in assigned(command)}
            values: dict[str, syntax.Expression] = {name: syntax.Variable(other) for name, other in new.items()}
            found.append((rename(command, new), tuple(substitute(score, values) for score in scores)))
        return found

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of what the models may add, widened by the rounding of the sums over ``box``."""
        parts, outputs = self.sums(box, 1)
        slack = self.rounding(box) + goal.slack
        return syntax.conjunction([*parts, reaches(outputs, separated(self.alternatives(goal), self._grain), slack)])

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of what the models surely add, narrowed by four times the rounding over ``box``."""
        parts, outputs = self.sums(box, -4)
        slack = -4 * (self.rounding(box) + goal.slack)
        return syntax.conjunction([*parts, reaches(outputs, separated(self.alternatives(goal), self._grain), slack)])

    def sums(self, box: Box, widen: int) -> tuple[list[syntax.Guard], list[syntax.Expression]]:
        """Return guards on what the parts add, and the outputs; a vote may differ by ``widen`` times its model's rounding."""
        guards: list[syntax.Guard] = []
        terms: list[list[syntax.Expression]] = [[syntax.constant(float(start))] if start else [] for start in self.base]
        for number, part in enumerate(self.parts):
            guard, added = part.formula(self._formulas[number][1], f"{RESULT_PREFIX}{number}", box, widen)
            guards.append(guard)
            for each, term in zip(terms, added, strict=True):
                each.append(term)
        return guards, [syntax.total(each) for each in terms]

    def alternatives(self, goal: Goal) -> Alternatives:
        """Return a goal as alternatives, of each of which all margins must be reached."""
        return goal.alternatives(self.outputs, ties_last=False)

    # ---- evaluation

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return the outputs in exact arithmetic, but for sigmoids, which are computed in floats."""
        sums = [Fraction(float(start)) for start in self.base]
        for part in self.parts:
            for k, added in enumerate(part.contribution(point)):
                sums[k] += added
        return tuple(sums)

    def predicted(self, point: Point) -> int:
        """Return the class of a point, rounding aside."""
        return winner(self.exact_scores(point))

    def cell(self, point: Point) -> syntax.Guard | None:
        """Return the box of the point's leaves, where all models are trees; otherwise ``None``."""
        if not self.fixed_order or not all(isinstance(part.form, TreeEnsemble) for part in self.parts):
            return None
        cells = [part.form.cell(point) for part in self.parts]
        return (
            None
            if any(cell is None for cell in cells)
            else syntax.conjunction(cell for cell in cells if cell is not None)
        )

    @property
    def is_in_order(self) -> bool:
        """Whether the library always adds everything in the same order."""
        return self.fixed_order and all(getattr(part.form, "fixed_order", True) for part in self.parts)

    def has_sure_votes(self, point: Point, box: Box) -> bool:
        """Return whether every vote is farther from changing at a point than rounding in ``box`` can move it."""
        return all(part.is_sure(point, box) for part in self.parts if isinstance(part, Voting))

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether one row alone is always computed in the same way, or rounding cannot matter at this point."""
        return self.is_in_order or self.is_beyond_rounding(point, goal, box_at(point))

    def is_beyond_rounding(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether every vote, and the goal, are farther from changing than rounding can move them."""
        if not self.has_sure_votes(point, box):
            return False
        band = self.rounding(box) + goal.slack
        return abs(clearance(self.exact_scores(point), self.alternatives(goal))) > band or (band == 0)


def _asked(is_folded: bool) -> Goal:
    """Return a goal by which scores are folded: votes of two classes need their difference only; or one that needs each."""
    return Outcomes(frozenset([Fraction(0)])) if is_folded else _EACH


def _formula(form: Scored, number: int, is_folded: bool) -> tuple[syntax.Guard, tuple[syntax.Expression, ...]]:
    """Return the characteristic formula of a model's scores, and these in its variables; made once for a model and a number."""
    made = _FORMULAS.setdefault(form, {})
    if (number, is_folded) not in made:
        command, scores = form.computed(_asked(is_folded))
        prefix = f"{RESULT_PREFIX}{number} "
        program = syntax.Program(form.space.names, syntax.sequence([command, syntax.Return(syntax.ZERO)]))
        made[number, is_folded] = (
            characteristic(program, result=RESULT, prefix=prefix),
            tuple(
                syntax.Variable(prefix + score.name) if isinstance(score, syntax.Variable) else score
                for score in scores
            ),
        )
    return made[number, is_folded]

"""Several models as one: weighted sums of their scores, their counted votes, the mean of their probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import gamma
from mace.forms.decision import Alternatives, Goal, Interval, Outcomes, clearance, grain_of, reaches, separated, winner
from mace.forms.form import PREFIX, RESULT, Box
from mace.forms.network import Network
from mace.forms.polyline import Polyline, sigmoid
from mace.forms.scoring import pick_class
from mace.forms.trees import TreeEnsemble
from mace.language import characteristic, syntax
from mace.language.naming import assigned
from mace.language.substitute import rename, substitute
from mace.space import RESERVED, FeatureSpace, Point

Floats = NDArray[np.float64]
Scored = Network | TreeEnsemble

SIGMOID = 64
"""In units of roundoff of 1: what a computed probability may be off beside the error of its score."""

_EACH = Interval(None, None, 0, None, None)
"""A goal that asks for each score by itself."""

_FORMULAS: WeakKeyDictionary[Scored, dict[tuple[int, bool], tuple[syntax.Guard, tuple[syntax.Expression, ...]]]] = (
    WeakKeyDictionary()
)


@dataclass(frozen=True, eq=False)
class Weighted:
    """A model whose scores are added: ``factors`` (outputs x scores) times its scores."""

    form: Scored
    factors: Floats


@dataclass(frozen=True, eq=False)
class Voting:
    """A model that votes: the class that it predicts adds its row of ``added`` (classes x outputs)."""

    form: Scored
    added: Floats


@dataclass(frozen=True, eq=False)
class Curved:
    """A model of one score that goes through a curve before it is multiplied by ``factors`` (one an output) and added.

    ``curve`` is ``None`` for the sigmoid, the one curve that is not piecewise linear.
    """

    form: Scored
    curve: Polyline | None
    factors: Floats


Part = Weighted | Voting | Curved


@dataclass(frozen=True, eq=False)
class Composite:
    """Outputs that are sums over several models, and how they decide.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    parts : tuple of Weighted, Voting or Curved
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
    """

    space: FeatureSpace
    parts: tuple[Part, ...]
    base: Floats
    link: Literal["none", "chance", "identity"] = "none"
    is_regressor: bool = False
    fixed_order: bool = True

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
        """Whether some part is a sigmoid, so that no formula is exact."""
        return any(isinstance(part, Curved) and part.curve is None for part in self.parts)

    # ---- rounding

    def rounding(self, box: Box) -> Fraction:
        """Return the most by which rounding may change a difference of two outputs, or of one and a number, in ``box``.

        Each model's score has its own bound; a sigmoid's slope is at most 1/4, a polyline's its steepest. The sum of n terms, in any
        order, weighted and divided, adds γ_{n+8} of their absolute values. Counted votes of whole weights, or halves, are exact.
        """
        if self._grain:
            return Fraction(0)
        error, size = Fraction(0), Fraction(float(np.abs(self.base).max()))
        for part in self.parts:
            wrong, largest = _error(part, box)
            error, size = error + wrong, size + largest
        return 2 * (error + gamma(len(self.parts) + 8, self.unit) * (error + size)) * (1 + Fraction(1, 2**20))

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
                "a mean of sigmoids has no program: the core language has no exponential. Ask for its counterfactuals instead."
            )
        commands, terms = [command for command, _ in self._computed], []
        for number, part in enumerate(self.parts):
            command, added = self._added(number, part)
            commands.append(command)
            terms.append(added)
        names = _output_names(self.outputs)
        for k, name in enumerate(names):
            start: list[syntax.Expression] = [syntax.constant(float(self.base[k]))]
            commands.append(syntax.Assign(name, syntax.total([*start, *(added[k] for added in terms)])))
        return syntax.Program(self.space.names, syntax.sequence([*commands, self._outcome(names)]))

    def _outcome(self, names: tuple[str, ...]) -> syntax.Command:
        if self.is_regressor:
            return syntax.Return(syntax.Variable(names[0]))
        if self.outputs == 1:
            return syntax.Return(syntax.Indicator(syntax.Compare(">", syntax.Variable(names[0]), syntax.ZERO)))
        return pick_class(names)

    def _added(self, number: int, part: Part) -> tuple[syntax.Command, list[syntax.Expression]]:
        """Return the commands that compute what a part adds, and that, one expression an output."""
        scores = self._computed[number][1]
        match part:
            case Weighted():
                return syntax.sequence([]), [_weighted(part, scores, k) for k in range(self.outputs)]
            case Voting():
                name = f"{RESERVED}{number} votes for"
                command: syntax.Command = syntax.Assign(name, syntax.constant(_classes(part.form) - 1))
                for c in reversed(range(_classes(part.form) - 1)):
                    ahead = reaches(scores, _wins(part.form, c), Fraction(0))
                    command = syntax.If(ahead, syntax.Assign(name, syntax.constant(c)), command)
                return command, [_chosen(part, syntax.Variable(name), k) for k in range(self.outputs)]
            case Curved():
                assert part.curve is not None
                name = f"{RESERVED}{number} curved"
                *inner, last = part.curve.pieces
                command = syntax.Assign(name, _line(last.slope, scores[0], last.shift))
                for piece in reversed(inner):
                    value = syntax.Assign(name, _line(piece.slope, scores[0], piece.shift))
                    command = syntax.If(
                        syntax.Compare("<=", scores[0], syntax.Constant(piece.high or Fraction(0))), value, command
                    )
                return command, [_times(float(factor), syntax.Variable(name)) for factor in part.factors]

    def definitions(self, goal: Goal) -> syntax.Guard:
        """Return the characteristic formulas of every model's scores."""
        return syntax.conjunction({id(formula): formula for formula, _ in self._formulas}.values())

    def prepare(self) -> None:
        """Make the formulas of trees, which takes a while where they are many, before any question is asked."""
        if any(isinstance(part.form, TreeEnsemble) for part in self.parts):
            _ = self._formulas

    @cached_property
    def _formulas(self) -> tuple[tuple[syntax.Guard, tuple[syntax.Expression, ...]], ...]:
        """For each part the formula of its model's scores, and these; models are told apart by number, one that comes again is not."""
        numbers: dict[tuple[int, bool], int] = {}
        found = []
        for part in self.parts:
            is_folded = isinstance(part, Voting)
            number = numbers.setdefault((id(part.form), is_folded), len(numbers))
            found.append(_formula(part.form, number, is_folded))
        return tuple(found)

    def _scores(self, number: int) -> tuple[syntax.Expression, ...]:
        """Return the scores of a part's model in the variables of the definitions."""
        return self._formulas[number][1]

    @cached_property
    def _computed(self) -> list[tuple[syntax.Command, tuple[syntax.Expression, ...]]]:
        """The commands of each model, its variables told apart from the others', and its scores."""
        found = []
        for number, part in enumerate(self.parts):
            command, scores = part.form.computed(_asked(isinstance(part, Voting)))
            new = {name: f"{RESERVED}{number} {name.removeprefix(RESERVED)}" for name in assigned(command)}
            values: dict[str, syntax.Expression] = {name: syntax.Variable(other) for name, other in new.items()}
            found.append((rename(command, new), tuple(substitute(score, values) for score in scores)))
        return found

    def possible(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of what the models may add, widened by the rounding of the sums over ``box``."""
        parts, outputs = self._sums(box, 1)
        slack = self.rounding(box) + goal.slack
        return syntax.conjunction([*parts, reaches(outputs, separated(self._alternatives(goal), self._grain), slack)])

    def certain(self, goal: Goal, box: Box) -> syntax.Guard:
        """Return ``goal`` over the sums of what the models surely add, narrowed by four times the rounding over ``box``."""
        parts, outputs = self._sums(box, -4)
        slack = -4 * (self.rounding(box) + goal.slack)
        return syntax.conjunction([*parts, reaches(outputs, separated(self._alternatives(goal), self._grain), slack)])

    def _sums(self, box: Box, widen: int) -> tuple[list[syntax.Guard], list[syntax.Expression]]:
        """Return what holds of what the parts add, and the outputs; a vote is widened by so many times its model's rounding."""
        guards: list[syntax.Guard] = []
        terms: list[list[syntax.Expression]] = [[syntax.constant(float(start))] if start else [] for start in self.base]
        for number, part in enumerate(self.parts):
            scores = self._scores(number)
            match part:
                case Weighted():
                    for k in range(self.outputs):
                        terms[k].append(_weighted(part, scores, k))
                case Voting():
                    names = [f"{PREFIX}{number} votes {k}" for k in range(self.outputs)]
                    guards.append(_votes(part, scores, names, widen * _own_rounding(part.form, box)))
                    for k, name in enumerate(names):
                        terms[k].append(syntax.Variable(name))
                case Curved():
                    name = f"{PREFIX}{number} curved"
                    guards.append(_on_curve(part, scores[0], name))
                    for k, factor in enumerate(part.factors):
                        terms[k].append(_times(float(factor), syntax.Variable(name)))
        return guards, [syntax.total(each) for each in terms]

    def _alternatives(self, goal: Goal) -> Alternatives:
        return goal.alternatives(self.outputs, ties_last=False)

    # ---- evaluation

    def exact_scores(self, point: Point) -> tuple[Fraction, ...]:
        """Return the outputs in exact arithmetic, but for sigmoids, which are computed in floats."""
        sums = [Fraction(float(start)) for start in self.base]
        for part in self.parts:
            for k, added in enumerate(_contribution(part, point)):
                sums[k] += added
        return tuple(sums)

    def predicted(self, point: Point) -> int:
        """Return the class of a point, rounding aside."""
        scores = self.exact_scores(point)
        return winner(scores) if self.outputs > 1 else int(scores[0] > 0)

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

    def is_settled(self, point: Point, goal: Goal) -> bool:
        """Return whether one row alone is always computed in the same way, or rounding cannot matter at this point."""
        in_order = self.fixed_order and all(getattr(part.form, "fixed_order", True) for part in self.parts)
        return in_order or self.is_robust(point, goal, _around(point))

    def is_robust(self, point: Point, goal: Goal, box: Box) -> bool:
        """Return whether every vote, and the goal, are farther from changing than rounding can move them."""
        votes = [part for part in self.parts if isinstance(part, Voting)]
        if not all(_is_sure(part, point, box) for part in votes):
            return False
        band = self.rounding(box) + goal.slack
        return abs(clearance(self.exact_scores(point), self._alternatives(goal))) > band or (band == 0)


def _output_names(outputs: int) -> tuple[str, ...]:
    return (f"{RESERVED}score",) if outputs == 1 else tuple(f"{RESERVED}score_{k}" for k in range(outputs))


def _classes(form: Scored) -> int:
    return max(2, len(form.biases[-1]) if isinstance(form, Network) else form.outputs)


def _asked(is_folded: bool) -> Goal:
    """Return a goal by which scores are folded: votes of two classes need their difference only; or one that needs each."""
    return Outcomes(frozenset([Fraction(0)])) if is_folded else _EACH


def _formula(form: Scored, number: int, is_folded: bool) -> tuple[syntax.Guard, tuple[syntax.Expression, ...]]:
    """Return the characteristic formula of a model's scores, and these in its variables; made once for a model and a number."""
    made = _FORMULAS.setdefault(form, {})
    if (number, is_folded) not in made:
        command, scores = form.computed(_asked(is_folded))
        prefix = f"{PREFIX}{number} "
        program = syntax.Program(form.space.names, syntax.sequence([command, syntax.Return(syntax.ZERO)]))
        made[number, is_folded] = (
            characteristic(program, result=RESULT, prefix=prefix),
            tuple(
                syntax.Variable(prefix + score.name) if isinstance(score, syntax.Variable) else score
                for score in scores
            ),
        )
    return made[number, is_folded]


def _wins(form: Scored, c: int) -> Alternatives:
    outputs = len(form.biases[-1]) if isinstance(form, Network) else form.outputs
    return Outcomes(frozenset([Fraction(c)])).alternatives(outputs, ties_last=form.ties_last)


def _own_rounding(form: Scored, box: Box) -> Fraction:
    return form.rounding(box) if isinstance(form, Network) else form.band(Outcomes(frozenset([Fraction(0)])))


def _error(part: Part, box: Box) -> tuple[Fraction, Fraction]:
    """Return by how much rounding may change what a part adds to an output, and how large that may be."""
    match part:
        case Voting(_, added):
            return Fraction(0), Fraction(float(np.abs(added).max()))
        case Weighted(form, factors):
            weight = Fraction(float(np.abs(factors).sum(axis=1).max()))
            low, high = form.score_bounds(box)
            largest = Fraction(float(max(np.abs(low).max(), np.abs(high).max())))
            return weight * (_rounding_of(form, box) + 8 * form.unit * largest), weight * largest
        case Curved(form, curve, factors):
            weight = Fraction(float(np.abs(factors).max()))
            slope = Fraction(1, 4) if curve is None else curve.steepest
            greatest = Fraction(1) if curve is None else Fraction(curve.greatest)
            return weight * (slope * _rounding_of(form, box) + SIGMOID * form.unit * (1 + greatest)), weight * greatest


def _rounding_of(form: Scored, box: Box) -> Fraction:
    return form.rounding(box) if isinstance(form, Network) else form.rounding


def _weighted(part: Weighted, scores: tuple[syntax.Expression, ...], k: int) -> syntax.Expression:
    return syntax.total(
        [_times(float(factor), score) for factor, score in zip(part.factors[k], scores, strict=True) if factor]
    )


def _times(factor: float, expression: syntax.Expression) -> syntax.Expression:
    return syntax.Binary("*", syntax.constant(factor), expression)


def _line(slope: Fraction, z: syntax.Expression, shift: Fraction) -> syntax.Expression:
    return (
        syntax.Binary("+", syntax.Binary("*", syntax.Constant(slope), z), syntax.Constant(shift))
        if slope
        else syntax.Constant(shift)
    )


def _chosen(part: Voting, choice: syntax.Expression, k: int) -> syntax.Expression:
    terms = [
        _times(float(row[k]), syntax.Indicator(syntax.Compare("==", choice, syntax.constant(c))))
        for c, row in enumerate(part.added)
        if row[k]
    ]
    return syntax.total(terms)


def _votes(part: Voting, scores: tuple[syntax.Expression, ...], names: list[str], slack: Fraction) -> syntax.Guard:
    """Return that a model votes for some class that it may predict, and what the vote adds."""
    return syntax.disjunction(
        syntax.conjunction(
            [
                reaches(scores, _wins(part.form, c), slack),
                *(
                    syntax.Compare("==", syntax.Variable(name), syntax.constant(float(row[k])))
                    for k, name in enumerate(names)
                ),
            ]
        )
        for c, row in enumerate(part.added)
    )


def _on_curve(part: Curved, z: syntax.Expression, name: str) -> syntax.Guard:
    assert part.curve is not None, "a sigmoid has no formula"
    cases = []
    for piece in part.curve.pieces:
        within: list[syntax.Guard] = [syntax.Compare("==", syntax.Variable(name), _line(piece.slope, z, piece.shift))]
        if piece.low is not None:
            within.append(syntax.Compare(">=", z, syntax.Constant(piece.low)))
        if piece.high is not None:
            within.append(syntax.Compare("<=", z, syntax.Constant(piece.high)))
        cases.append(syntax.conjunction(within))
    return syntax.disjunction(cases)


def _contribution(part: Part, point: Point) -> list[Fraction]:
    scores = part.form.exact_scores(point)
    match part:
        case Weighted(_, factors):
            return [
                sum((Fraction(float(f)) * score for f, score in zip(row, scores, strict=True) if f), Fraction(0))
                for row in factors
            ]
        case Voting(form, added):
            return [Fraction(float(value)) for value in added[_predicted(form, scores)]]
        case Curved(_, curve, factors):
            height = Fraction(sigmoid(float(scores[0]))) if curve is None else curve.value(scores[0])
            return [Fraction(float(factor)) * height for factor in factors]


def _predicted(form: Scored, scores: tuple[Fraction, ...]) -> int:
    if len(scores) > 1:
        return winner(scores)
    return int(scores[0] > 0 or (form.ties_last and scores[0] == 0))


def _is_sure(part: Voting, point: Point, box: Box) -> bool:
    band = _own_rounding(part.form, box)
    scores = part.form.exact_scores(point)
    ahead = _wins(part.form, _predicted(part.form, scores))
    return band == 0 or clearance(scores, ahead) > band


def _around(point: Point) -> Box:
    return tuple((Fraction(value or 0), Fraction(value or 0)) for value in point)

"""Causal: structural equations, by which a change of causes moves their effects."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from mace.constraints.condition import Condition
from mace.constraints.files import read_toml
from mace.distances import point_values
from mace.errors import InvalidConstraint, InvalidProgram, InvalidRow, did_you_mean
from mace.forms import Effects, Equation
from mace.language import Symbol, characteristic, divides_by_variable, parse, run, syntax
from mace.language.partial import given
from mace.language.source import find_source
from mace.space import RESERVED, FeatureSpace, Integer, Point, Real

MOST_EFFECTS = 8
"""Every choice of the effects that are acted upon is tried."""


class Causal:
    """A structural causal model with additive noise: each effect is a function of its causes, plus what is the person's own.

    Acting upon a feature sets it, whatever its causes; every effect that is not acted upon moves with its causes. Only actions cost.

    Parameters
    ----------
    equations : mapping of names to functions
        For each effect, a real or integer feature, a function of the row in the core language, ``lambda x: 0.3 * x.income``, its text, or
        an expression over the features, ``"0.3 * income"``. It is parsed, never executed. What it leaves unexplained of the factual is
        kept. An effect with whole numbers, or a step, takes the value of its grid that is nearest to the sum, the greater of two.

    Examples
    --------
    >>> Causal({"savings": "0.3 * income", "debt": "max(0, 20 - savings)"})
    Causal(savings, debt)
    """

    def __init__(self, equations: Mapping[str, Callable[..., object] | str]) -> None:
        if not isinstance(equations, Mapping) or not equations:
            raise InvalidConstraint(f"Causal({equations!r}): give a dict from effects to functions of the row.")
        if len(equations) > MOST_EFFECTS:
            raise InvalidConstraint(f"Causal: {len(equations)} effects; at most {MOST_EFFECTS} can be gone through.")
        self.equations = dict(equations)

    @classmethod
    def load(cls, path: str | Path) -> Causal | None:
        """Return the equations of the table ``[causes]`` of a TOML file, ``savings = "0.3 * income"``; ``None`` where it has none.

        The file may be one of constraints, which :func:`mace.constraints.files.load_constraints` reads.
        """
        table = read_toml(path).get("causes")
        if table is None:
            return None
        if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
            raise InvalidConstraint(f'{path}: [causes] must have lines such as savings = "0.3 * income".')
        return cls(table)

    def __repr__(self) -> str:
        return f"Causal({', '.join(self.equations)})"

    def __reduce__(self) -> tuple[type[Causal], tuple[dict[str, str]]]:
        """Pickle the texts of the equations, which are read anew, and refused there where they need names from outside."""
        return type(self), ({name: _text_of(equation) for name, equation in self.equations.items()},)

    def programs(self, space: FeatureSpace) -> dict[str, syntax.Program]:
        """Return the equations as programs, each after its causes."""
        read = {name: self._read(name, space) for name in self.equations}
        causes = {name: inputs_of(program) & set(space) for name, program in read.items()}
        for name, parents in causes.items():
            lost = [each for each in (name, *sorted(parents)) if space[each].missing]
            if lost:
                raise InvalidConstraint(
                    f"Causal: {lost[0]!r} may be missing, which an equation cannot take. Set missing=False."
                )
        try:
            order = list(
                TopologicalSorter({name: parents & set(read) for name, parents in causes.items()}).static_order()
            )
        except CycleError as error:
            raise InvalidConstraint(
                f"Causal: the equations go round in a circle: {', '.join(error.args[1])}."
            ) from error
        return {name: read[name] for name in order}

    def texts(self, space: FeatureSpace) -> dict[str, str]:
        """Return the text of each equation; it must mean the same without the names around it."""
        made = {name: _text_of(equation) for name, equation in self.equations.items()}
        try:
            same = Causal(made).programs(space) == self.programs(space)
        except InvalidConstraint:
            same = False
        if not same:
            raise InvalidConstraint(
                "certify: an equation uses names from outside of it, so its text alone does not say what it is. "
                "Write the numbers into it, or pass it as text."
            )
        return made

    def _read(self, name: str, space: FeatureSpace) -> syntax.Program:
        if name not in space:
            raise InvalidConstraint(f"Causal: there is no feature {name!r}.{did_you_mean(name, space)}")
        feature = space[name]
        if not isinstance(feature, Real | Integer):
            raise InvalidConstraint(
                f"Causal: the effect {name!r} has levels, and an equation gives numbers. Declare it as mace.real or mace.integer."
            )
        if isinstance(feature, Real) and feature.is_single:
            raise InvalidConstraint(
                f"Causal: the effect {name!r} is {feature.dtype}, and what an equation gives is known to float64. Cast the column before "
                'fitting: frame.astype({"' + name + '": "float64"}).'
            )
        symbols = {each: Symbol.of(space[each], syntax.Variable(each)) for each in space}
        try:
            parsed = parse(_as_function(self.equations[name], space), records=[symbols])
        except InvalidProgram as error:
            raise InvalidConstraint(f"Causal: cannot read the equation of {name!r}: {error}") from error
        if parsed.labels is not None or divides_by_variable(parsed.program):
            raise InvalidConstraint(
                f"Causal: the equation of {name!r} must return a number, and divide by numbers only."
            )
        return given(syntax.Program(space.names, parsed.program.body), {})


class _OfRecord(ast.NodeTransformer):
    """Turns the names of features into fields of a record; names of functions stay."""

    def __init__(self, space: FeatureSpace, record: str) -> None:
        self.space, self.record = space, record

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.space:
            return node
        return ast.Attribute(ast.Name(self.record, ast.Load()), node.id, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(each) for each in node.args]
        return node


def _as_function(equation: Callable[..., object] | str, space: FeatureSpace) -> Callable[..., object] | str:
    """Return an expression over the features as the text of a function of the row; anything else as it is."""
    if not isinstance(equation, str) or equation.lstrip().startswith(("lambda", "def ", "@")):
        return equation
    try:
        tree = ast.parse(equation.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidProgram(f"{equation!r:.80} is not an expression: {error}") from error
    record = "row"
    while record in space:
        record += "_"
    try:
        return f"lambda {record}: {ast.unparse(_OfRecord(space, record).visit(tree))}"
    except RecursionError as error:
        raise InvalidProgram(f"{equation!r:.80} is nested too deeply.") from error


def _text_of(equation: Callable[..., object] | str) -> str:
    return equation if isinstance(equation, str) else ast.unparse(find_source(equation).node)


def inputs_of(program: syntax.Program) -> frozenset[str]:
    """Return the features that a program reads."""
    return syntax.variables(characteristic(program, result=f"{RESERVED}result", prefix=f"{RESERVED}result."))


def effects_of(programs: Mapping[str, syntax.Program], space: FeatureSpace, factual: Point) -> Iterator[Effects]:
    """Yield what follows from actions for every choice of the effects that are acted upon, the fewest first.

    An effect's own part is abducted from the factual: what its equation leaves unexplained.
    """
    values = point_values(space, factual)
    equations = []
    for name, program in programs.items():
        feature, own = space[name], Fraction(values[name] or 0)
        assert isinstance(feature, Real | Integer)
        if not feature.has(float(own)):
            raise InvalidRow(f"{name!r} is {float(own)!r}, off the grid of its feature, and an effect cannot be that.")
        equations.append(Equation(name, program, own - run(program, values), feature))
    for count in range(len(equations) + 1):
        for acted in itertools.combinations(equations, count):
            yield Effects(space, tuple(equation for equation in equations if equation not in acted))


def check_conditions(conditions: tuple[Condition, ...]) -> None:
    """Refuse conditions that cannot be put on the row that actions lead to."""
    searched = next((condition.search for condition in conditions if condition.search), "")
    if searched:
        raise InvalidConstraint(
            f"with causes, {searched} cannot be kept: no search proves it of what follows from actions. Leave one of the two out."
        )

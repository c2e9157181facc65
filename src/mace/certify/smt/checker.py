"""The checker of the SMT lane, and of the general one: another solver must find that the formula has no model.

Nothing of the question comes from the evidence. The formula is written anew from the model's form: the domain, the model, the distance
below ``lower``, the conditions, and the target widened by the rounding of the deployed arithmetic. The evidence only lists rows that the
search ruled out because the real model refuses them; the model is asked about each again, and a row (its cell, where the form knows that
the outcome is the same all over it) is left out of the formula.

The general lane's own tree of linear programs is not recorded: its rows are made by a long translation that a checker would have to
share. So its claim is checked in this way too. Where no solver decides in time, the certificate stays unchecked.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

from mace.certify.smt.script import Script
from mace.certify.verdict import Progress, Refuted, Unchecked
from mace.constraints.condition import compare
from mace.language import characteristic, holds, syntax
from mace.problem import Problem
from mace.space import RESERVED, Point, Real

SOLVER_SECONDS = 100
"""How long the solvers may take together."""

MOST_ROWS_EXCLUDED = 100_000

DISTANCE = f"{RESERVED}distance"

RUNNERS = {
    "cvc5": """
import sys, cvc5
solver = cvc5.Solver()
parser = cvc5.InputParser(solver)
parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, sys.stdin.read(), "script")
while not (command := parser.nextCommand()).isNull():
    print(command.invoke(solver, parser.getSymbolManager()), end="")
""",
    "z3": """
import sys, z3
asserted, _, asked = sys.stdin.read().partition("(check-sat)")
solver = z3.Solver()
solver.from_string(asserted)
answer = solver.check()
print(answer)
if answer == z3.sat:
    values = {d.name(): solver.model()[d].sexpr() for d in solver.model().decls()}
    print("".join(f"({name} {value})" for name, value in values.items()))
""",
}
"""How an installed solver is run on a script, in a process of its own: it prints its answer and, where that is *sat*, values."""

MOST_WITNESSES = 64
"""How many points of the formula the checker looks at itself, to find that the real model refuses them."""


def check(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless a second solver finds that no point nearer than ``lower`` (at any distance, where ``None``) may reach the goal."""
    used = evidence.get("solver")
    if not isinstance(used, str):
        raise Refuted("evidence.solver: it names the solver that was used")
    refute(problem, lower, evidence.get("excluded", []), [name for name in RUNNERS if name != used], progress)


def check_linear(problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Progress) -> None:
    """Raise unless an SMT solver finds the same for the general lane, with which none of them has anything in common."""
    refute(problem, lower, evidence.get("excluded", []), list(RUNNERS), progress)


def refute(problem: Problem, lower: Fraction | None, excluded: object, solvers: list[str], progress: Progress) -> None:
    """Ask solvers one after another whether the formula has a model, until one decides; what they say is trusted.

    The formula allows a little more than the question, so the real model may refuse a point that fulfils it. Such a point is left out,
    and the solver is asked again.
    """
    installed = [name for name in solvers if importlib.util.find_spec(name) is not None]
    if not installed:
        raise Unchecked("a second SMT solver must find that there is no such point: pip install mace-xai[cvc5]")
    made = script(problem, lower, excluded)
    answers = []
    for number, name in enumerate(installed):
        deadline = time.monotonic() + SOLVER_SECONDS / len(installed)
        for witness in range(MOST_WITNESSES):
            progress((number + witness / MOST_WITNESSES) / len(installed))
            answer, values = run(name, made.text(), deadline - time.monotonic())
            if answer == "unsat":
                return
            if answer != "sat":
                answers.append(f"{name}: {answer}")
                break
            made.add(syntax.negation(_refused(problem, lower, made, values, name)))
    raise Unchecked(f"the formula was not decided ({'; '.join(answers) or 'too many points are refused one by one'})")


def _refused(
    problem: Problem, lower: Fraction | None, made: Script, values: dict[str, str], solver: str
) -> syntax.Guard:
    """Return the region about a point of the formula that the real model refuses, asked about it; or raise, where it does not.

    The formula knows no floats. Its point says nothing where it is no row, and the row next to it is refused.
    """
    found = f"{solver} finds a point that the model may put in the target {_where(lower)}"
    exact = made.read(values)
    if exact is None:
        raise Unchecked(found)
    is_finite = all(feature.size is not None for feature in problem.space.values())
    point: Point = tuple(
        None if value is None else feature.nearest(float(value)) if isinstance(feature, Real) else int(value)
        for value, feature in zip(exact.values(), problem.space.values(), strict=True)
    )
    region = _region(problem, lower, point)
    if region is None:
        raise Refuted(f"{found}: {problem.space.values_of(point)}")
    if not is_finite and not holds(region, exact):
        raise Unchecked(f"{found}, and that is no row")
    return region


def _where(lower: Fraction | None) -> str:
    return "somewhere in the space" if lower is None else f"at a distance below {float(lower)!r}"


def script(problem: Problem, lower: Fraction | None, excluded: object) -> Script:
    """Return the question whether a point nearer than ``lower`` may reach the goal, as an SMT-LIB 2 script."""
    made = Script(problem)
    made.add(problem.form.definitions(problem.goal))
    made.add(characteristic(problem.metric.program(), result=DISTANCE, prefix=f"{DISTANCE}."))
    for number, condition in enumerate(problem.conditions):
        made.add(condition.formula(f"{RESERVED}condition {number}."))
    made.add(_nearer(problem, lower))
    made.add(problem.form.possible(problem.goal, problem.box(lower)))
    for region in _regions(problem, lower, excluded):
        made.add(syntax.negation(region))
    return made


def _nearer(problem: Problem, lower: Fraction | None) -> syntax.Guard:
    """Return that a point is nearer than ``lower``, with the ranges of single features that follow from it."""
    if lower is None:
        return syntax.conjunction([])
    parts: list[syntax.Guard] = [
        syntax.Compare("<", syntax.Variable(DISTANCE), syntax.constant(lower**problem.metric.power))
    ]
    for (name, feature), (low, high), whole in zip(
        problem.space.items(), problem.box(lower), problem.box(), strict=True
    ):
        if feature.missing or (low, high) == whole:
            continue
        parts.append(syntax.between(syntax.Variable(name), low, high))
    return syntax.conjunction(parts)


def _regions(problem: Problem, lower: Fraction | None, excluded: object) -> list[syntax.Guard]:
    """Return the regions that the real model refuses, asked again: the factual's, and those of the listed rows."""
    if not isinstance(excluded, list) or len(excluded) > MOST_ROWS_EXCLUDED:
        raise Refuted(f"evidence.excluded: a list of at most {MOST_ROWS_EXCLUDED} rows")
    regions = []
    for number, row in enumerate([list(problem.factual), *excluded]):
        where = "the factual" if number == 0 else f"evidence.excluded[{number - 1}]"
        region = _region(problem, lower, as_point(problem, row, where))
        if region is not None:
            regions.append(region)
        elif number:
            raise Refuted(f"{where}: the model puts this row in the target, and it is nearer than lower")
    return regions


def _region(problem: Problem, lower: Fraction | None, point: Point) -> syntax.Guard | None:
    """Return the region about a row that is left out: its cell where the model refuses it, else the row alone, where it does not count."""
    if problem.form.is_settled(point, problem.goal) and not problem.accepts(point):
        return problem.form.cell(point) or _alone(problem, point)
    is_far = lower is not None and problem.metric.measure(point) >= lower**problem.metric.power
    return _alone(problem, point) if is_far or not problem.is_plausible(point) else None


def _alone(problem: Problem, point: Point) -> syntax.Guard:
    return syntax.conjunction(
        compare(problem.space, name, "==", value) for name, value in zip(problem.space, point, strict=True)
    )


def as_point(problem: Problem, row: object, where: str) -> Point:
    """Return a row of the evidence as a point, or raise where it is none."""
    if not isinstance(row, list) or len(row) != len(problem.space):
        raise Refuted(f"{where}: a row has {len(problem.space)} numbers")
    for value, (name, feature) in zip(row, problem.space.items(), strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise Refuted(f"{where}: the value of {name!r} is no number")
        levels = getattr(feature, "levels", None)
        if levels is not None and value not in range(len(levels)):
            raise Refuted(f"{where}: {name!r} has no level {value!r:.40}")
    return tuple(row)


def run(solver: str, text: str, seconds: float) -> tuple[str, dict[str, str]]:
    """Return what an installed solver answers to a script, ``"unsat"``, ``"sat"`` or why it does not, and the values that it gives."""
    command = [sys.executable, "-I", "-c", RUNNERS[solver]]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=max(seconds, 1e-3))
    except subprocess.TimeoutExpired:
        return f"{seconds:.3g} seconds were not enough", {}
    answer, _, values = done.stdout.strip().partition("\n")
    if answer not in ("sat", "unsat"):
        return (answer or done.stderr.strip() or "no answer")[-200:], {}
    return answer, dict(re.findall(r"\((\w+) ([^()]+|\((?:[^()]|\([^()]*\))*\))\)", values))

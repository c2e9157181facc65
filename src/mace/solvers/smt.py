"""The SMT lane: the paper's algorithm with any solver that pySMT drives, Z3 by default."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pysmt.environment import Environment
from pysmt.exceptions import InternalSolverError, NoSolverAvailableError, SolverReturnedUnknownResultError

from mace.errors import InvalidOption, MissingPackage
from mace.forms import Composite, EffectsForm
from mace.language import characteristic
from mace.language.syntax import Compare, CompareName, Guard, Variable, conjunction, constant, negation
from mace.problem import Answer, Bounds, Limits, Problem, Sat, Unknown, Unsat
from mace.solvers.bisection import Bisection
from mace.solvers.narrowed import narrowed, sizes_of
from mace.solvers.terms import OutOfTime, Translator
from mace.space import RESERVED, Categorical

DISTANCE = f"{RESERVED}distance"
LATE = "time limit reached"
BACK_ENDS = ("z3", "cvc5", "msat", "yices", "optimathsat")
"""Solvers of pySMT with rational arithmetic."""


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem: a sigmoid has no formula; it takes every other one."""
    form = problem.form.inner if isinstance(problem.form, EffectsForm) else problem.form
    curved = isinstance(form, Composite) and form.is_curved
    return "a mean of sigmoids has no formula" if curved else ""


def solve(problem: Problem, limits: Limits, *, back_end: str = "z3") -> Bounds:
    """Find the nearest counterfactual by Algorithm 1."""
    try:
        oracle = SmtOracle(problem, limits, back_end)
    except OutOfTime:
        return Bounds(Fraction(0), reason=LATE)
    try:
        search = Bisection(problem, oracle, limits)
        bounds = search.run()
        if not limits.record:
            return bounds
        excluded = [list(point) for point in search.excluded]
        return replace(bounds, evidence={"lane": "smt", "solver": back_end, "excluded": excluded})
    finally:
        oracle.close()


class SmtOracle:
    """One incremental solver that holds the domain, the model, the distance and the conditions; the goal and the bound come and go."""

    def __init__(self, problem: Problem, limits: Limits, back_end: str) -> None:
        self.problem = problem
        self.limits = limits
        self.back_end = back_end
        environment = Environment()
        self.translator = Translator(environment, problem, limits)
        self.solver = _open_solver(environment, back_end)
        for term in self.translator.domain:
            self.solver.add_assertion(term)
        self._assert(problem.form.definitions(problem.goal))
        self._assert(characteristic(problem.metric.program(), result=DISTANCE, prefix=f"{DISTANCE}."))
        self.inner: list[Guard] = []
        sizes = sizes_of(problem.space)
        for number, condition in enumerate(problem.conditions):
            formula = condition.formula(f"{RESERVED}condition {number}.")
            self._assert(formula)
            if (inner := narrowed(formula, sizes)) != formula:
                self.inner.append(inner)

    def possible(self, bound: Fraction | None) -> Answer:
        """Ask for a point that the deployed model may put in the goal."""
        return self._check(self.problem.form.possible(self.problem.goal, self.problem.box(bound)), bound)

    def certain(self, bound: Fraction | None) -> Answer:
        """Ask for a point that the deployed model puts in the goal whatever the rounding."""
        return self._check(
            conjunction([self.problem.form.certain(self.problem.goal, self.problem.box(bound)), *self.inner]), bound
        )

    def exclude(self, region: Guard) -> None:
        """Leave a region out of all further answers."""
        self._assert(negation(region))

    def close(self) -> None:
        """Free the solver."""
        self.solver.exit()

    def _assert(self, guard: Guard) -> None:
        term = self.translator.guard(guard)
        for definition in self._new_definitions():
            self.solver.add_assertion(definition)
        self.solver.add_assertion(term)

    def _new_definitions(self) -> list[Any]:
        definitions, self.translator.definitions = self.translator.definitions, []
        return definitions

    def _check(self, goal: Guard, bound: Fraction | None) -> Answer:
        try:
            question = self.translator.guard(conjunction([goal, self._within(bound)]))
        except OutOfTime:
            return Unknown(LATE)
        for definition in self._new_definitions():
            self.solver.add_assertion(definition)
        remaining = self.limits.remaining()
        if remaining <= 0:
            return Unknown(LATE)
        self.solver.push()
        try:
            self.solver.add_assertion(question)
            _set_time_limit(self.solver, self.back_end, remaining)
            if not self.solver.solve():
                return Unsat()
            return Sat(self.translator.read(self.solver))
        except (SolverReturnedUnknownResultError, InternalSolverError):
            late = self.limits.remaining() <= 0.05 * max(remaining, 0.1)
            return Unknown(LATE if late else f"{self.back_end} could not decide")
        finally:
            self.solver.pop()

    def _within(self, bound: Fraction | None) -> Guard:
        """Return the bound on the distance, with the bounds on single features that follow from it."""
        if bound is None:
            return conjunction([])
        parts: list[Guard] = [Compare("<=", Variable(DISTANCE), constant(bound**self.problem.metric.power))]
        whole = self.problem.box()
        for (name, feature), range_, full in zip(
            self.problem.space.items(), self.problem.box(bound), whole, strict=True
        ):
            if feature.missing or range_ == full:
                continue
            sides: tuple[CompareName, ...] = ("==",) if isinstance(feature, Categorical) else (">=", "<=")
            parts += [Compare(side, Variable(name), constant(end)) for side, end in zip(sides, range_, strict=False)]
        return conjunction(parts)


def _open_solver(environment: Environment, back_end: str) -> Any:
    if back_end not in BACK_ENDS:
        raise InvalidOption(f"solver {back_end!r} is not known to the SMT lane. Known: {', '.join(BACK_ENDS)}.")
    try:
        if back_end == "z3":
            return _own_context(environment, environment.factory.Solver(name=back_end))
        return environment.factory.Solver(name=back_end, logic="QF_NIRA")
    except NoSolverAvailableError as error:
        raise MissingPackage(
            f"the SMT solver {back_end!r} is not installed. Install it (pip install mace-xai[{back_end}] where PyPI has it, "
            f"else pysmt-install --{back_end}), or use solver='smt' for Z3."
        ) from error


def _own_context(environment: Environment, solver: Any) -> Any:
    """Give a Z3 solver a context of its own, so that its answers do not depend on what the process asked before."""
    import z3
    from pysmt.solvers.z3 import Z3Converter

    solver.z3 = z3.Solver(ctx=z3.Context())
    solver.options(solver)
    solver.converter = Z3Converter(environment, z3_ctx=solver.z3.ctx)
    return solver


def _set_time_limit(solver: Any, back_end: str, seconds: float) -> None:
    milliseconds = 2**31 if math.isinf(seconds) else max(1, int(seconds * 1000))
    if back_end == "z3":
        solver.z3.set("timeout", min(milliseconds, 2**31))
    elif back_end == "cvc5" and not math.isinf(seconds):
        solver.cvc5.setOption("tlimit-per", str(milliseconds))

"""The SMT lane: the paper's algorithm with any solver that pySMT drives, Z3 by default."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from threading import Lock
from typing import Any

from pysmt.environment import Environment
from pysmt.exceptions import InternalSolverError, NoSolverAvailableError, SolverReturnedUnknownResultError

from mace.clock import check, until
from mace.constraints.views import View
from mace.errors import InvalidOption, MissingPackage
from mace.forms import Composite, EffectsForm
from mace.language import characteristic, syntax
from mace.problem import LATE, Answer, Bounds, Limits, Problem, Sat, Unknown, Unsat, timed, within
from mace.solvers.bisection import Bisection
from mace.solvers.roundings import narrowed, sizes_of
from mace.solvers.smt.terms import SmtTranslator
from mace.space import RESERVED

DISTANCE = f"{RESERVED}distance"
TAKES = (View.FORMULA,)
CUTS_BOXES, IS_AUTOMATIC = False, True

BACK_ENDS = ("z3", "cvc5", "msat", "yices", "optimathsat")
"""Solvers of pySMT with rational arithmetic."""

MOST_OF_LIMIT = 5 / 6
"""The share of a time limit that making formulas may take. Freeing them takes up to a sixth of that, and without all of them nothing is
proved."""

_FACTORY = Lock()
"""pySMT looks for every solver it knows by importing what is not installed, anew for each question: two threads must not do so at once."""


def supports(problem: Problem) -> str:
    """Return why the lane cannot take a problem: a sigmoid has no formula; it takes every other one."""
    form = problem.form.inner if isinstance(problem.form, EffectsForm) else problem.form
    curved = isinstance(form, Composite) and form.is_curved
    return "a mean of sigmoids has no formula" if curved else ""


@timed
def solve(problem: Problem, limits: Limits, *, back_end: str = "z3") -> Bounds:
    """Find the nearest counterfactual by Algorithm 1."""
    oracle = SmtOracle(problem, limits, back_end)
    try:
        with until(time.monotonic() + limits.remaining() * MOST_OF_LIMIT):
            oracle.begin()
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
        self.translator = SmtTranslator(environment, problem)
        self.solver = _open_solver(environment, back_end)

    def begin(self) -> None:
        """Assert what holds in every question."""
        problem = self.problem
        for term in self.translator.domain:
            self.solver.add_assertion(term)
        self._assert(problem.form.definitions(problem.goal))
        self._assert(characteristic(problem.metric.program(), result=DISTANCE, prefix=f"{DISTANCE}."))
        self.inner: list[syntax.Guard] = []
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
            syntax.conjunction([self.problem.form.certain(self.problem.goal, self.problem.box(bound)), *self.inner]),
            bound,
        )

    def exclude(self, region: syntax.Guard) -> None:
        """Leave a region out of all further answers."""
        self._assert(syntax.negation(region))

    def close(self) -> None:
        """Free the solver."""
        self.solver.exit()

    def _assert(self, guard: syntax.Guard) -> None:
        term = self.translator.guard(guard)
        for definition in self._new_definitions():
            self.solver.add_assertion(definition)
        self.solver.add_assertion(term)

    def _new_definitions(self) -> list[Any]:
        definitions, self.translator.definitions = self.translator.definitions, []
        return definitions

    def _check(self, goal: syntax.Guard, bound: Fraction | None) -> Answer:
        """Ask one question; after an *unknown* no other may be asked."""
        question = self.translator.guard(syntax.conjunction([goal, self._within(bound)]))
        for definition in self._new_definitions():
            self.solver.add_assertion(definition)
        self.solver.push()
        self.solver.add_assertion(question)
        remaining = self.limits.remaining()
        if remaining <= 0:
            return Unknown(LATE)
        try:
            _set_time_limit(self.solver, self.back_end, remaining - _reserve(remaining))
            answer = Sat(self.translator.read(self.solver)) if self.solver.solve() else Unsat()
        except (SolverReturnedUnknownResultError, InternalSolverError):
            late = self.limits.remaining() <= 0.05 * max(remaining, 0.1) + _reserve(remaining)
            return Unknown(LATE if late else f"{self.back_end} could not decide")
        self.solver.pop()
        return answer

    def _within(self, bound: Fraction | None) -> syntax.Guard:
        """Return the bound on the distance, with the bounds on single features that follow from it."""
        if bound is None:
            return syntax.conjunction([])
        measured = syntax.between(syntax.Variable(DISTANCE), None, bound**self.problem.metric.power)
        return syntax.conjunction([measured, *within(self.problem, bound)])


def _open_solver(environment: Environment, back_end: str) -> Any:
    if back_end not in BACK_ENDS:
        raise InvalidOption(f"solver {back_end!r} is not known to the SMT lane. Known: {', '.join(BACK_ENDS)}.")
    if back_end == "z3":
        return _own_z3()(environment)
    try:
        with _FACTORY:
            solver = environment.factory.Solver(name=back_end, logic="QF_NIRA")
    except NoSolverAvailableError as error:
        raise MissingPackage(
            f"the SMT solver {back_end!r} is not installed. Install it (pip install mace-xai[{back_end}] where PyPI has it, "
            f"else pysmt-install --{back_end}), or use solver='smt' for Z3."
        ) from error
    solver._assert_is_boolean = _trust
    return solver


def _trust(formula: object) -> None:
    """Take a formula for Boolean, as all of ours are: pySMT looks it up in tables that all threads share, and that are never emptied."""


@cache
def _own_z3() -> Callable[[Environment], Any]:
    """Return pySMT's Z3 solver with a context of its own, so that its answers do not depend on what the process asks before or besides.

    Its terms are made one by one, and each is a look at the clock.
    """
    import z3
    from pysmt.logics import QF_NIRA
    from pysmt.solvers.solver import IncrementalTrackingSolver
    from pysmt.solvers.z3 import Z3Converter, Z3Solver

    class TimedConverter(Z3Converter):  # type: ignore[misc]
        def _compute_node_result(self, formula: Any, **options: Any) -> None:
            check()
            super()._compute_node_result(formula, **options)

    class OwnZ3(Z3Solver):  # type: ignore[misc]
        def __init__(self, environment: Environment) -> None:
            # Not that of Z3Solver, which begins in the context that all threads share.
            IncrementalTrackingSolver.__init__(self, environment=environment, logic=QF_NIRA)
            context = z3.Context()
            # Python's garbage collection may run in another thread.
            z3.Z3_enable_concurrent_dec_ref(context.ref())
            self.z3 = z3.Solver(ctx=context)
            self.options(self)
            self.converter = TimedConverter(environment, context)
            self.mgr = environment.formula_manager

        def _assert_is_boolean(self, formula: object) -> None:
            _trust(formula)

        def get_value(self, item: Any) -> Any:
            model = self.z3.model()
            value = self.converter.back(model.eval(self.converter.convert(item), model_completion=True), model)
            return value if value.is_constant() else self.environment.simplifier.simplify(value)

        def _exit(self) -> None:
            # The converter refers to itself: without its tables it is freed here, and not by a garbage collection in somebody else's time.
            self.converter.functions.clear()
            self.converter._back_fun.clear()
            super()._exit()

    return OwnZ3


def _reserve(seconds: float) -> float:
    """Return what is kept of a time limit: a solver that is told to stop takes up to 0.3 seconds to do so."""
    return min(0.35, seconds / 5)


def _set_time_limit(solver: Any, back_end: str, seconds: float) -> None:
    milliseconds = 2**31 if math.isinf(seconds) else max(1, int(seconds * 1000))
    if back_end == "z3":
        solver.z3.set("timeout", min(milliseconds, 2**31))
    elif back_end == "cvc5" and not math.isinf(seconds):
        solver.cvc5.setOption("tlimit-per", str(milliseconds))

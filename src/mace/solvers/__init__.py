"""Solvers: one module each with ``supports(problem)`` and ``solve(problem, limits)``, one line in the table.

A module may have ``prepare()``, which is on no clock: it loads the lane's kernels, or compiles them, once in a process.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from mace.constraints.robust import Sturdy
from mace.errors import InvalidOption, did_you_mean
from mace.problem import Bounds, Limits, Problem
from mace.registry import Registry
from mace.solvers.boxes import search as across

SOLVERS = Registry(
    "solvers",
    {
        "trees": "mace.solvers.trees",
        "network": "mace.solvers.network",
        "curves": "mace.solvers.curves",
        "milp": "mace.solvers.milp",
        "smt": "mace.solvers.smt",
        "enumerate": "mace.solvers.enumerate",
    },
)

AUTOMATIC = ("trees", "network", "curves", "milp", "smt")
"""The lanes that ``solver="auto"`` tries, in this order."""


CUTTING = ("trees", "network", "milp")
"""The lanes that are asked about box after box where a condition is not one that they take themselves."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A chosen solver: its name, how to run it, why it was chosen, and how many seconds it took to be prepared."""

    name: str
    solve: Callable[[Problem, Limits], Bounds]
    why: str
    preparing: float = 0.0


def choose(solver: str, problem: Problem) -> Lane:
    """Return the lane for a problem.

    Parameters
    ----------
    solver : str
        ``"auto"``, a name of the table, or the name of an SMT solver that pySMT drives.
    problem : Problem
        What is to be solved.

    Raises
    ------
    InvalidOption
        The name is unknown, or that solver cannot take this problem.
    """
    if any(isinstance(condition, Sturdy) for condition in problem.conditions):
        return _despite_noise(solver, problem)
    if solver == "auto":
        return _first_that_can(problem)
    if solver in SOLVERS:
        obstacle, lane = _lane(solver, problem, "asked for by name")
        if obstacle:
            raise InvalidOption(f"solver={solver!r} cannot take this problem: {obstacle}. Use solver='auto'.")
        return lane
    from mace.solvers.smt import BACK_ENDS, solve, supports

    if solver in BACK_ENDS:
        if obstacle := supports(problem):
            raise InvalidOption(f"solver={solver!r} cannot take this problem: {obstacle}. Use solver='auto'.")
        return Lane(f"smt:{solver}", partial(solve, back_end=solver), "asked for by name")
    known = ["auto", *SOLVERS, *BACK_ENDS]
    raise InvalidOption(f"solver={solver!r} is not known. Known: {', '.join(known)}.{did_you_mean(solver, known)}")


def _despite_noise(solver: str, problem: Problem) -> Lane:
    """Return the lane for a problem whose answers must stand noise: that of the problem without, asked again and again."""
    from mace.solvers.robust import search as sturdy

    obstacle = sturdy.unsupported(problem)
    if obstacle:
        raise InvalidOption(f"{obstacle}.")
    others = tuple(condition for condition in problem.conditions if not isinstance(condition, Sturdy))
    lane = choose(solver, replace(problem, conditions=others))
    solve = partial(sturdy.solve, choose=lambda asked: choose(solver, asked).solve, lane=lane.name)
    return Lane(lane.name, solve, f"{lane.why}; the box around each answer proved by the same", lane.preparing)


def _first_that_can(problem: Problem) -> Lane:
    """Return the first lane of ``AUTOMATIC`` that takes a problem; its ``why`` says what kept the earlier ones from it."""
    passed: list[str] = []
    for name in AUTOMATIC:
        obstacle, lane = _lane(name, problem, f"the first lane that can{''.join(passed)}")
        if not obstacle:
            return lane
        passed.append(f"; not {name}: {obstacle}")
    raise InvalidOption(
        f"no solver can take this problem{''.join(passed)}. Leave a constraint out, or explain a part of the model."
    )


def _lane(name: str, problem: Problem, why: str) -> tuple[str, Lane]:
    """Return what keeps a lane from a problem (empty where nothing does), and the lane, ready."""
    module = importlib.import_module(SOLVERS[name])
    obstacle: str = module.supports(problem)
    solve = module.solve
    if obstacle and name in CUTTING and across.divided(problem, module) is not None:
        obstacle, solve = "", partial(across.solve, lane=module)
        why += "; conditions across features by cutting boxes"
    begun = time.monotonic()
    if not obstacle and hasattr(module, "prepare"):
        module.prepare()
    return obstacle, Lane(name, solve, why, time.monotonic() - begun)


__all__ = ["AUTOMATIC", "SOLVERS", "Lane", "choose"]

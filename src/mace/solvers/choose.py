"""The choice of a lane: the solver for a question."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mace.constraints.robust import RobustCondition
from mace.errors import InvalidOption, did_you_mean
from mace.forms import is_unread
from mace.problem import Bounds, Limits, Problem
from mace.registry import Registry, resolve
from mace.solvers.abilities import obstacle
from mace.solvers.boxes import search as boxes

SOLVERS = Registry(
    "solvers",
    {
        "trees": "mace.solvers.trees",
        "network": "mace.solvers.network",
        "curves": "mace.solvers.curves",
        "milp": "mace.solvers.milp",
        "smt": "mace.solvers.smt",
        "enumerate": "mace.solvers.enumerate",
        "search": "mace.solvers.search",
    },
)
"""``solver="auto"`` takes the first that can, those of other packages before ours; :data:`ASKS` where the model could not be read."""

ASKS = "search"
"""The lane that needs no more of a model than its answers, and proves nothing."""


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
    if any(isinstance(condition, RobustCondition) for condition in problem.conditions):
        return _robust_lane(solver, problem)
    if solver == "auto":
        return _asking(problem) if is_unread(problem.form) else _first_that_can(problem)
    if solver in SOLVERS:
        reason, lane = _lane(solver, problem, "asked for by name")
    else:
        from mace.solvers import smt

        if solver not in smt.BACK_ENDS:
            known = ["auto", *SOLVERS, *smt.BACK_ENDS]
            raise InvalidOption(
                f"solver={solver!r} is not known. Known: {', '.join(known)}.{did_you_mean(solver, known)}"
            )
        reason = obstacle(smt, problem)
        lane = Lane(f"smt:{solver}", partial(smt.solve, back_end=solver), "asked for by name")
    if reason:
        raise InvalidOption(f"solver={solver!r} cannot take this problem: {reason}. Use solver='auto'.")
    return lane


def _asking(problem: Problem) -> Lane:
    """Return the lane for a model that could not be read."""
    reason, lane = _lane(ASKS, problem, "the model could not be read")
    if reason:
        raise InvalidOption(f"the model could not be read, and the search cannot take this problem: {reason}.")
    return lane


def _robust_lane(solver: str, problem: Problem) -> Lane:
    """Return the lane for a problem with robust answers: that of the problem without, asked again and again."""
    if solver == ASKS or is_unread(problem.form):
        raise InvalidOption(
            "robust() is proved of every row around an answer, and a search that only asks the model proves nothing. Leave robust() out."
        )
    from mace.solvers.robust import search as robust

    noisy, rest = problem.apart(RobustCondition)
    if len(noisy) > 1:
        raise InvalidOption("robust() is given twice; put all noise into one.")
    lane = choose(solver, rest)
    solve = partial(robust.solve, choose=lambda asked: choose(solver, asked).solve, lane=lane.name)
    return Lane(lane.name, solve, f"{lane.why}; the box around each answer proved by the same", lane.preparing)


def _first_that_can(problem: Problem) -> Lane:
    """Return the first lane that takes a problem; its ``why`` says what kept the earlier ones from it."""
    passed: list[str] = []
    for name in SOLVERS:
        if not _module(name).IS_AUTOMATIC:
            continue
        reason, lane = _lane(name, problem, f"the first lane that can{''.join(passed)}")
        if not reason:
            return _beside_its_rival(lane)
        passed.append(f"; not {name}: {reason}")
    raise InvalidOption(
        f"no solver can take this problem{''.join(passed)}. Leave a constraint out, or explain a part of the model."
    )


def _beside_its_rival(lane: Lane) -> Lane:
    """Return a lane that takes turns with the one that it names as its rival, if it names one and searches by itself."""
    module = _module(lane.name)
    searches_itself = lane.solve == module.solve
    if not searches_itself or not hasattr(module, "RIVAL"):
        return lane
    return replace(lane, solve=partial(module.solve, rival=partial(_asked, module.RIVAL)))


def _asked(rival: str, problem: Problem, limits: Limits) -> Any:
    """Return a rival's search, which is loaded only now."""
    return resolve(rival)(problem, limits)


def _lane(name: str, problem: Problem, why: str) -> tuple[str, Lane]:
    """Return what keeps a lane from a problem (empty where nothing does), and the lane, ready."""
    module = _module(name)
    reason, solve = obstacle(module, problem), module.solve
    cuts_boxes = module.CUTS_BOXES and not is_unread(problem.form)
    if reason and cuts_boxes and boxes.divided(problem, module) is not None:
        reason, solve = "", partial(boxes.solve, lane=module)
        why += "; conditions across features by cutting boxes"
    begun = time.monotonic()
    if not reason and hasattr(module, "prepare"):
        module.prepare()
    return reason, Lane(name, solve, why, time.monotonic() - begun)


def _module(name: str) -> Any:
    return importlib.import_module(SOLVERS[name])

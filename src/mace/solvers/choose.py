"""The choice of a lane: the solver for a question."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mace.constraints import Condition
from mace.errors import InvalidOption, did_you_mean
from mace.forms import is_unread
from mace.problem import Problem
from mace.registry import Registry, resolve
from mace.solvers.abilities import Lane, obstacle, why_not_taken
from mace.solvers.boxes import search as boxes
from mace.space import FeatureSpace

SOLVERS = Registry(
    "solvers",
    {
        "trees": "mace.solvers.trees",
        "network": "mace.solvers.network",
        "curves": "mace.solvers.curves",
        "ratios": "mace.solvers.ratios",
        "milp": "mace.solvers.milp",
        "smt": "mace.solvers.smt",
        "enumerate": "mace.solvers.enumerate",
        "search": "mace.solvers.search",
    },
)
"""``solver="auto"`` takes the first that can, those of other packages before ours; :data:`ASKS` where the model could not be read."""

ASKS = "search"
"""The lane that needs no more of a model than its answers, and proves nothing."""

CONDITION_SEARCHES = Registry("searches", {"robust": "mace.solvers.robust.search:solve"})
"""Searches for answers that fulfil a condition that no lane takes, by the name that the condition gives: functions ``(problem, limits,
choose, lane)``, where ``lane`` is that of the problem without the condition, and ``choose`` gives that of any other."""


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
    searched, rest = problem.searched
    if searched:
        return _search_around(solver, rest, [condition.search for condition in searched])
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
        lane = Lane(f"smt:{solver}", smt, partial(smt.solve, back_end=solver), "asked for by name")
    if reason:
        raise InvalidOption(f"solver={solver!r} cannot take this problem: {reason}. Use solver='auto'.")
    return lane


def is_lane_for(lane: Lane, solver: str, space: FeatureSpace, further: Sequence[Condition]) -> bool:
    """Return whether the lane of a problem is known to be that of the problem with further conditions, without a look at all lanes.

    It is where there are none, or ``auto`` chose the lane that it looks at first, to be run as it is, which takes each of them.
    """
    if not further:
        return True
    is_first = solver == "auto" and lane.name == next(iter(SOLVERS)) and lane.solve == lane.solver.solve
    return is_first and not any(each.search or why_not_taken(each, lane.solver.TAKES, space) for each in further)


def _asking(problem: Problem) -> Lane:
    """Return the lane for a model that could not be read."""
    reason, lane = _lane(ASKS, problem, "the model could not be read")
    if reason:
        raise InvalidOption(f"the model could not be read, and the search cannot take this problem: {reason}.")
    return lane


def _search_around(solver: str, rest: Problem, names: list[str]) -> Lane:
    """Return a search for what no lane takes, around the lane of the problem without it."""
    if solver == ASKS or is_unread(rest.form):
        raise InvalidOption(
            f"{names[0]}() has to be proved of every answer, and a search that only asks the model proves nothing. Leave {names[0]}() out."
        )
    if len(names) > 1:
        each = f"{names[0]}() is given twice" if len(set(names)) == 1 else f"{'(), '.join(names)}() are given together"
        raise InvalidOption(
            f"{each}, and answers are searched for one of them. Put all of it into one, or leave one out."
        )
    lane = choose(solver, rest)
    solve = partial(CONDITION_SEARCHES.load(names[0]), choose=partial(choose, solver), lane=lane)
    return replace(lane, solve=solve, why=f"{lane.why}; asked again and again by the search for {names[0]} answers")


def _first_that_can(problem: Problem) -> Lane:
    """Return the first lane that takes a problem; its ``why`` says what kept the earlier ones from it."""
    passed: list[str] = []
    for name in SOLVERS:
        if not SOLVERS.load(name).IS_AUTOMATIC:
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
    solver: Any = lane.solver
    if not hasattr(solver, "RIVAL") or lane.solve != solver.solve:
        return lane
    # The rival is loaded only where its turn comes.
    return replace(lane, solve=partial(solver.solve, rival=lambda *asked: resolve(solver.RIVAL)(*asked)))


def _lane(name: str, problem: Problem, why: str) -> tuple[str, Lane]:
    """Return why a lane cannot take a problem (empty where it can), and the lane, prepared."""
    module = SOLVERS.load(name)
    reason, solve = obstacle(module, problem), module.solve
    cuts_boxes = module.CUTS_BOXES and not is_unread(problem.form)
    if reason and cuts_boxes and not module.supports(problem) and boxes.divided(problem, module) is not None:
        reason, solve = "", partial(boxes.solve, lane=module)
        why += "; conditions across features by cutting boxes"
    begun = time.monotonic()
    if not reason and hasattr(module, "prepare"):
        module.prepare()
    return reason, Lane(name, module, solve, why, time.monotonic() - begun)

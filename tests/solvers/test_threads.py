"""Every lane gives the same answers from threads that share an explainer, from asyncio, and in forked and spawned processes."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pysmt.environment import Environment, get_env
from small_models import SPACE, model_of, people

import mace
from mace.solvers.smt.search import _open_solver

THREADS = 8
ROWS = 8
NOISE = (mace.robust({"a": 1}),)

LANES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "trees": ("forest", "trees", {}),
    "trees, robust": ("forest", "trees", {"constraints": NOISE}),
    "trees, a rule across features": ("forest", "trees", {"constraints": ["a + b <= old.a + old.b + 3"]}),
    "network": ("mlp", "network", {}),
    "network, two answers": ("mlp", "network", {"count": 2, "diversity": mace.differ()}),
    "network, robust": ("mlp", "network", {"constraints": NOISE}),
    "network, near rows": ("mlp", "network", {"constraints": (mace.near_data(people()[0][:15], k=2, radius=0.1),)}),
    "curves": ("vote", "curves", {}),
    "milp": ("function", "milp", {}),
    "milp of trees": ("forest", "milp", {}),
    "smt": ("function", "smt", {}),
    "smt of trees": ("forest", "smt", {}),
    "cvc5": ("function", "cvc5", {}),
    "enumerate": ("function", "enumerate", {}),
}


def explainer_of(lane: str) -> mace.Explainer:
    """Return an explainer that has not been asked yet."""
    return mace.Explainer(model_of(LANES[lane][0]), SPACE)


def said(explainer: mace.Explainer, lane: str, row: int, *, certify: bool = False) -> Any:
    """Return everything that an explanation of one row says, but how long it took."""
    _, solver, options = LANES[lane]
    made = explainer.explain(people()[0].iloc[row], solver=solver, certify=certify, time_limit=300, **options)
    verdicts = [mace.verify(each.certificate, explainer.model).outcome for each in made] if certify else []
    timeless = replace(
        made, counterfactuals=tuple(replace(each, seconds=0.0, _widen=None) for each in made), seconds=0.0
    )
    return timeless.to_dict(), verdicts


def said_of_all(lane: str) -> list[Any]:
    """Return what a new explainer says of every row."""
    explainer = explainer_of(lane)
    return [said(explainer, lane, row) for row in range(ROWS)]


one_after_the_other = cache(said_of_all)


@pytest.mark.parametrize("lane", LANES)
def test_threads_that_share_an_explainer_get_the_same_answers(lane: str) -> None:
    explainer = explainer_of(lane)
    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(lambda row: said(explainer, lane, row % ROWS), range(3 * ROWS)))
    assert made == 3 * one_after_the_other(lane)


@pytest.mark.slow
def test_threads_with_explainers_of_their_own_get_the_same_answers_in_all_lanes_at_once() -> None:
    asked = [lane for lane in LANES for _ in range(2)]
    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(said_of_all, asked))
    assert made == [one_after_the_other(lane) for lane in asked]


@pytest.mark.parametrize("lane", LANES)
def test_certificates_of_threads_are_the_same_and_valid(lane: str) -> None:
    explainer, rows = explainer_of(lane), range(4)
    with ThreadPoolExecutor(THREADS) as pool:
        made = list(pool.map(lambda row: said(explainer, lane, row, certify=True), rows))
    assert made == [said(explainer, lane, row, certify=True) for row in rows]
    assert {outcome for _, verdicts in made for outcome in verdicts} <= {"valid"}


@pytest.mark.slow
def test_the_executor_of_asyncio_gets_the_same_answers() -> None:
    async def ask() -> list[Any]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, said_of_all, lane) for lane in LANES))

    with ThreadPoolExecutor(1) as apart:  # a browser of other tests may have left an event loop running in this thread
        found = apart.submit(asyncio.run, ask()).result()
    assert found == [one_after_the_other(lane) for lane in LANES]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_get_the_same_answers(method: str) -> None:
    expected = [one_after_the_other(lane) for lane in LANES]
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map_async(said_of_all, LANES).get(timeout=600) == expected


@pytest.mark.slow
def test_an_explainer_that_threads_have_used_can_be_used_after_a_fork() -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(said_of_all, ["smt", "cvc5", "milp", "trees"]))
    test_processes_get_the_same_answers("fork")


def test_a_solver_is_freed_with_its_question_and_leaves_nothing_in_tables_of_the_process() -> None:
    gc.collect()
    gc.disable()
    try:
        environment = Environment()
        solver = _open_solver(environment, "z3")
        manager = environment.formula_manager
        known = len(get_env().stc.memoization)
        solver.add_assertion(manager.Or(manager.Symbol("p"), manager.Symbol("q")))
        assert solver.solve()
        converter, context = weakref.ref(solver.converter), weakref.ref(solver.z3.ctx)
        solver.exit()
        assert converter() is None
        assert context() is None
        assert len(get_env().stc.memoization) == known
    finally:
        gc.enable()

"""A deadline may pass at any look at the clock: what was proved until then holds, and nothing else is claimed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from threading import Barrier, Thread
from typing import Any

import pytest
from small_models import SPACE, model_of, people
from tiers import interpreted

import mace
from mace.answer.question import Question
from mace.clock import NO_COLLECTION, OutOfTime, check, until, without_pauses
from mace.constraints.near_data import Neighbours
from mace.language import characteristic, parse
from mace.problem import LATE, Limits
from mace.solvers import choose
from mace.solvers.milp.model import build

LOOKS = (0, 1, 2, 3, 5, 8, 13, 21, 40, 80, 200, 1000, 4000, 10**9)
"""After how many looks at the clock the deadline passes."""

MORE_LOOKS = (*LOOKS[:-1], 300, 500, 1500, 2500, 6000, 10_000, 20_000, 50_000, 10**9)
"""Interpreted kernels look at it, too."""

KERNELS = ("trees", "network", "curves")
"""Lanes with kernels."""

NEAR = mace.near_data(people()[0].iloc[:40], k=2, radius=0.1)
NOISE = mace.robust({"a": 1})
RULE = "a + b <= old.a + old.b + 3"
CAUSES = mace.Causal({"b": "0.5 * a"})

QUESTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "trees": ("forest", "trees", {}),
    "trees, near data": ("forest", "trees", {"constraints": [NEAR]}),
    "trees, typical": ("forest", "trees", {"constraints": [mace.typical(people()[0], 0.1)]}),
    "trees, robust": ("forest", "trees", {"constraints": [NOISE]}),
    "trees, rule": ("forest", "trees", {"constraints": [RULE]}),
    "trees, three answers": ("forest", "trees", {"count": 3, "diversity": mace.differ()}),
    "network": ("mlp", "network", {}),
    "network, near data": ("mlp", "network", {"constraints": [NEAR]}),
    "network, typical": ("mlp", "network", {"constraints": [mace.typical(people()[0], 0.1)]}),
    "network, robust": ("mlp", "network", {"constraints": [NOISE]}),
    "curves": ("vote", "curves", {}),
    "ratios": ("vote of three classes", "ratios", {}),
    "milp": ("function", "milp", {}),
    "milp of trees": ("forest", "milp", {"constraints": [RULE]}),
    "smt": ("function", "smt", {}),
    "smt, near data": ("function", "smt", {"constraints": [mace.near_data(people()[0].iloc[:5], radius=0.2)]}),
    "enumerate": ("mlp", "enumerate", {}),
}


class Ringing:
    """A clock that stands still, and jumps far ahead at one of the looks at it."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> float:
        self.left -= 1
        return 0.0 if self.left >= 0 else 1e6


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda looks: monkeypatch.setattr(time, "monotonic", Ringing(looks))


def asked(question: str, causes: mace.Causal | None = None) -> tuple[mace.Explainer, Any, str, dict[str, Any]]:
    model, solver, options = QUESTIONS[question]
    return mace.Explainer(model_of(model), SPACE, causes), people()[0].iloc[3], solver, options


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_true_whenever_the_deadline_passes(
    question: str, certify: bool, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers_are_true(question, certify, LOOKS, ring, monkeypatch)


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("question", [each for each, (_, lane, _) in QUESTIONS.items() if lane in KERNELS])
def test_an_answer_is_true_whenever_the_deadline_stops_an_interpreted_kernel(
    question: str, certify: bool, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with interpreted():
        answers_are_true(question, certify, MORE_LOOKS, ring, monkeypatch)


def answers_are_true(
    question: str,
    certify: bool,
    looks_at_the_clock: tuple[int, ...],
    ring: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explainer, row, solver, options = asked(question)
    nearest = explainer.explain(row, solver="enumerate", **options)
    forests = [
        each for each in options.get("constraints", ()) if isinstance(each, type(mace.typical(people()[0], 0.1)))
    ]
    for looks in looks_at_the_clock:
        explainer, row, solver, options = asked(question)
        ring(looks)
        late = explainer.explain(row, solver=solver, certify=certify, time_limit=60, **options)
        monkeypatch.undo()
        where = f"after {looks} looks: {late}"
        assert late.status in ("optimal", "feasible", "unknown"), where
        assert late.lower <= nearest[0].distance, where
        assert late.status == "optimal" or late.reason, where
        for answer, first in zip(late, nearest, strict=False):
            assert answer.distance >= first.distance or len(nearest) > 1, where
            assert (answer.status == "optimal") == (answer.distance - answer.lower <= 1e-6), where
            if answer.certificate is not None:
                verdict = mace.verify(answer.certificate, explainer.model, forests=forests)
                assert verdict.outcome != "refuted", f"{where}: {verdict}"
    assert late.status == "optimal"


@pytest.mark.slow
@pytest.mark.parametrize("question", ["trees", "network", "milp", "smt"])
def test_infeasible_is_never_said_because_time_ran_out(
    question: str, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    constraints = ["a stays", "b stays", "c stays", "d <= old.d"]
    explainer, row, solver, _ = asked(question)
    truth = explainer.explain(row, solver="enumerate", constraints=constraints)
    for looks in LOOKS:
        ring(looks)
        late = asked(question)[0].explain(row, solver=solver, constraints=constraints, time_limit=60)
        monkeypatch.undo()
        assert late.status in (truth.status, "unknown", "feasible")
        assert late.status == "infeasible" or late.reason.startswith(LATE)


@pytest.mark.parametrize("certify", [False, True])
@pytest.mark.parametrize("question", ["trees", "network", "milp"])
def test_interventions_are_valid_and_bounded_whenever_the_deadline_passes(
    question: str, certify: bool, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, row, _, _ = asked(question, CAUSES)
    truth = explainer.explain(row)
    for looks in LOOKS:
        explainer, row, _, _ = asked(question, CAUSES)
        ring(looks)
        late = explainer.explain(row, certify=certify, time_limit=60)
        monkeypatch.undo()
        assert late.lower <= truth[0].distance
        assert late.status == "optimal" or late.reason
        assert all(answer.distance >= truth[0].lower for answer in late)
        for answer in late if certify else ():
            assert mace.verify(answer.certificate, explainer.model).outcome != "refuted"
    assert late.status == "optimal"


@pytest.mark.parametrize("question", ["trees", "network", "milp", "smt"])
def test_a_menu_of_levers_is_true_as_far_as_it_goes(
    question: str, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, row, solver, _ = asked(question)
    menu = explainer.levers(row, solver=solver)
    enough = [set(lever.features) for lever in menu]
    assert menu.complete
    for looks in LOOKS:
        ring(looks)
        late = asked(question)[0].levers(row, solver=solver, time_limit=60)
        monkeypatch.undo()
        assert late.complete == (not late.reason)
        assert not late.complete or [set(lever.features) for lever in late] == enough
        assert all(any(each <= set(lever.features) for each in enough) for lever in late)
        assert not any(each <= set(names) for each in enough for names in late.insufficient)


@pytest.mark.slow
@pytest.mark.parametrize("question", ["trees", "network", "milp", "smt"])
def test_a_region_that_is_not_complete_says_so_and_every_row_in_it_is_predicted_alike(
    question: str, ring: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, row, solver, _ = asked(question)
    answer = explainer.explain(row)[0]
    if explainer.classes is None:
        return
    whole = explainer.region(answer, list(SPACE), solver=solver)
    for looks in LOOKS:
        ring(looks)
        late = asked(question)[0].region(answer, list(SPACE), solver=solver, time_limit=60)
        monkeypatch.undo()
        assert not late.complete or late == whole
        ranges = [range(late[name].low, late[name].high + 1) for name in SPACE]  # type: ignore[arg-type, operator]
        rows = [dict(zip(SPACE, values, strict=True)) for values in product(*ranges)]
        assert set(explainer.predict_many(rows)) == {answer.prediction}


@pytest.mark.slow
@pytest.mark.parametrize("question", ["trees", "network", "milp"])
def test_an_interrupted_step_leaves_nothing_behind(question: str) -> None:
    explainer, row, _, _ = asked(question)
    problem, _ = explainer._problem(row, Question(explainer.space, constraints=NEAR))
    condition = problem.conditions[0]
    assert isinstance(condition, Neighbours)
    program = parse("lambda x: x if x > 1 else 2 * x").program
    steps: dict[str, Callable[[], object]] = {
        "clock": check,
        "characteristic": lambda: characteristic(program),
        "neighbours": lambda: condition.program,
        "definitions": lambda: problem.form.definitions(problem.goal),
        "build": lambda: build(problem, lower=Fraction(0), radius=None),
    }
    late = time.monotonic() - 1
    for name, step in steps.items():
        with until(late):
            try:
                step()
            except OutOfTime:
                continue
        assert (question, name) == ("milp", "definitions"), "the formula of a function depends on the box"
    assert choose("milp", problem).solve(problem, Limits(late)).reason == LATE
    for step in steps.values():
        step()
    assert choose("milp", problem).solve(problem, Limits()).upper is not None


@pytest.mark.parametrize(("limit", "is_put_off"), [(5, True), (5.0, True), (60, False), (None, False)])
def test_full_garbage_collections_wait_for_the_end_of_a_short_question(limit: float | None, is_put_off: bool) -> None:
    before, seen = gc.get_threshold(), list[int]()
    explainer = mace.Explainer(model_of("forest"), SPACE)
    row = people()[0].iloc[0]
    explainer.explain(row, time_limit=limit, solver="smt", on_progress=lambda *_: seen.append(gc.get_threshold()[2]))
    assert seen
    assert {number == NO_COLLECTION for number in seen} == {is_put_off}
    with pytest.raises(mace.InvalidRow):
        explainer.explain({"a": "no number"}, time_limit=limit)
    assert gc.get_threshold() == before


def test_full_garbage_collections_wait_for_the_last_of_several_threads() -> None:
    before, together, seen = gc.get_threshold(), Barrier(8), set[tuple[int, ...]]()

    def ask() -> None:
        together.wait()
        for _ in range(200):
            with without_pauses(1):
                seen.add(gc.get_threshold())

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {(*before[:2], NO_COLLECTION)}
    assert gc.get_threshold() == before


def test_thresholds_that_somebody_sets_meanwhile_stay() -> None:
    before = gc.get_threshold()
    try:
        with without_pauses(1):
            gc.set_threshold(500, 5, 5)
        assert gc.get_threshold() == (500, 5, 5)
    finally:
        gc.set_threshold(*before)

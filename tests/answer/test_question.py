"""The question: one definition of the options, which every public signature repeats word for word."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier

import mace
import mace.answer.asked
import mace.answer.nearest
from mace.answer.question import Options, Question
from mace.audits import audit
from mace.baselines import Baseline
from mace.batch.stream import BatchOptions, RunningOptions, Stream

SPACE = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.real(0, 100)})
MODEL = DecisionTreeClassifier(random_state=0).fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
ROW = {"age": 35, "income": 25.0}


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


DEFINED = {name: each for name, each in parameters(Question).items() if name not in ("space", "classes", "kept")}


def test_explain_takes_exactly_the_options_of_a_question_in_their_order() -> None:
    assert list(parameters(mace.Explainer.explain)) == ["self", "row", *DEFINED]


@pytest.mark.parametrize(
    "function", [mace.Explainer.explain, mace.Explainer.levers, mace.Explainer.region, Baseline.explain, audit]
)
def test_an_option_has_one_type_and_one_default_everywhere(function: Callable[..., Any]) -> None:
    shared = parameters(function).keys() & DEFINED.keys() - {"on_progress"}
    assert shared
    for name in shared:
        given, defined = parameters(function)[name], DEFINED[name]
        assert given.annotation == defined.annotation, name
        assert given.default in (defined.default, inspect.Parameter.empty), name


def test_what_a_type_checker_sees_of_a_batch_is_what_it_takes() -> None:
    shown = {name: each.__forward_arg__ for name, each in Options.__annotations__.items()}
    assert shown == {name: each.annotation for name, each in DEFINED.items() if name != "on_progress"}
    assert set(BatchOptions.__annotations__) == set(shown) | set(RunningOptions.__annotations__)
    taken = {name: each.annotation for name, each in parameters(Stream).items()}
    running = {name: each.__forward_arg__ for name, each in RunningOptions.__annotations__.items()}
    assert running.items() <= taken.items()


def test_the_command_line_has_the_defaults_of_a_question_and_a_deadline_of_its_own() -> None:
    commands = importlib.import_module("mace.cli.commands")

    batches = importlib.import_module("mace.cli.batches")
    for command in (commands.explain, batches.batch, importlib.import_module("mace.cli.audits").audit):
        taken = parameters(command)
        assert taken["time_limit"].default == 30
        for name in taken.keys() & DEFINED.keys() - {"constraints", "target", "time_limit"}:
            assert taken[name].default == DEFINED[name].default, name


def test_a_question_survives_being_changed_pickled_and_asked_again() -> None:
    asked = Question(SPACE, 1, "l2", ["age >= old.age"], count=2, digits={"income": 1}, accuracy=1e-3, certify=True)
    again = pickle.loads(pickle.dumps(asked.but()))
    assert vars(again) == vars(asked)
    assert asked.but(time_limit=2.0).time_limit == 2.0
    explainer = mace.Explainer(MODEL, SPACE)
    one, other = explainer._answer(ROW, again), explainer.explain(ROW, 1, "l2", ["age >= old.age"], count=2, digits=1)
    assert [each.values for each in one] == [each.values for each in other]


@pytest.mark.parametrize(("solver", "count", "asked"), [("auto", 1, [0]), ("auto", 3, [0]), ("trees", 3, [0, 1, 2])])
def test_the_lane_of_a_question_is_chosen_once(
    solver: str, count: int, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for each number of conditions where a lane is asked for by name, once in all where the first lane takes them."""
    chosen: list[int] = []
    choose = mace.answer.asked.choose

    def counting(solver: str, problem: Any) -> Any:
        chosen.append(len(problem.conditions))
        return choose(solver, problem)

    monkeypatch.setattr("mace.answer.asked.choose", counting)
    monkeypatch.setattr("mace.answer.nearest.choose", counting)
    explanation = mace.Explainer(MODEL, SPACE).explain(ROW, count=count, diversity=mace.differ(), solver=solver)
    assert len(explanation) == count
    assert chosen == asked


def test_robust_is_refused_beside_causes_for_levers_too() -> None:
    causes = mace.Causal({"income": "2 * age"})
    explainer = mace.Explainer(MODEL, SPACE, causes)
    for ask in (explainer.explain, explainer.levers):
        with pytest.raises(mace.InvalidConstraint, match="robust cannot be kept"):
            ask(ROW, constraints=[mace.robust({"age": 1})])

"""The search that only asks the model: valid answers, no claims, the same every time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import problem_of
from random_constraints import random_constrained
from random_ensembles import random_ensemble
from random_problems import random_case
from sklearn.ensemble import IsolationForest
from small_models import SPACE, model_of, people

import mace
from mace.solvers.search.trials import MOST_ROWS_TRIED, ROWS_A_TRIAL

REFUSED = {"a": 2, "b": 2, "c": 3, "d": 5}


class Counted:
    """A model over a frame that counts what it is asked."""

    def __init__(self, rule: Any, seconds: float = 0.0) -> None:
        self.rule, self.seconds = rule, seconds
        self.rows = self.calls = 0

    def __call__(self, frame: pd.DataFrame) -> Any:
        time.sleep(self.seconds * len(frame))
        self.rows += len(frame)
        self.calls += 1
        return np.where(self.rule(frame), "yes", "no")


def asked(rule: Any, space: mace.FeatureSpace, seconds: float = 0.0) -> tuple[mace.Explainer, Counted]:
    model = Counted(rule, seconds)
    explainer = mace.Explainer(mace.wrap(predict=model, classes=["no", "yes"]), space, unread="search")
    model.rows = model.calls = 0
    return explainer, model


# ---- random problems, of which the truth is known


def check(explainer: mace.Explainer, row: Any, question: dict[str, Any], *, is_found: bool) -> float | None:
    """Check an answer of the search against the proved one; return how many times as far it is."""
    found = explainer.explain(row, solver="search", **question)
    if found.status == "reached":
        return None
    truth = explainer.explain(row, time_limit=20, **question)
    assert found.status == ("feasible" if found else "unknown")
    assert found.lower == 0
    assert "not proved: " in found.reason
    if not found:
        assert not truth or not is_found
        return None
    assert truth.status != "infeasible"
    constraints = mace.constraints.as_constraints(question.get("constraints", ()), explainer.space)
    problem = problem_of(explainer, row, question | {"constraints": constraints})
    assert problem.is_valid(explainer.space.point(found[0].values))
    assert found[0].distance >= truth.lower
    return found[0].distance / truth[0].distance if truth and truth[0].distance else None


@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize("finite", [True, False])
def test_answers_are_valid_and_never_nearer_than_what_is_proved(seed: int, finite: bool) -> None:
    case = random_case(seed, finite=finite)
    check(mace.Explainer(case.model, case.space), case.row, case.question, is_found=finite)


@pytest.mark.parametrize("seed", range(18))
@pytest.mark.parametrize("finite", [True, False])
def test_constraints_across_features_are_kept(seed: int, finite: bool) -> None:
    case = random_constrained(seed, finite=finite)
    if case is not None:
        question = {"distance": case.distance, "constraints": case.constraints}
        check(case.explainer, case.row, question, is_found=finite)


@pytest.mark.parametrize("seed", range(12))
def test_missing_values_are_values(seed: int) -> None:
    case = random_ensemble(seed)
    check(mace.Explainer(case.model, case.space), case.row, case.question, is_found=False)


@pytest.mark.parametrize("distance", ["l0", "l1", "l2", "linf", mace.Distance(l0=0.3, l1=0.4, linf=0.3)])
@pytest.mark.parametrize("name", ["forest", "mlp"])
def test_answers_are_near_the_optimum(name: str, distance: Any) -> None:
    explainer = mace.Explainer(model_of(name), SPACE)
    rows = people()[0].head(10).to_dict("records")
    ratios = [check(explainer, row, {"distance": distance}, is_found=True) for row in rows]
    assert np.median([ratio for ratio in ratios if ratio is not None]) <= 1.001


# ---- the same every time, counted, and in time


def test_without_a_limit_the_answer_is_always_the_same() -> None:
    space = mace.FeatureSpace({name: mace.real(0, 1) for name in "abcdef"})

    def rule(frame: pd.DataFrame) -> Any:
        return (np.sin(7 * frame).sum(axis=1) > 2.5) & (frame.a > frame.b)

    row = dict.fromkeys(space, 0.1)
    found = []
    for _ in range(2):
        explainer, model = asked(rule, space)
        explanation = explainer.explain(row, count=3, diversity=mace.differ())
        found.append(([each.values for each in explanation], [each.calls for each in explanation], model.rows))
    assert found[0] == found[1]
    assert len(found[0][0]) == 3


def test_rows_are_counted_and_asked_in_blocks() -> None:
    explainer, model = asked(lambda frame: frame.a + frame.b * frame.c > 30, SPACE)
    best = explainer.explain(REFUSED)[0]
    # Beside the search the row itself is asked, and single rows when the answer is tidied and confirmed.
    assert best.calls <= model.rows <= best.calls + 20
    assert model.calls < 60


def test_a_search_for_what_does_not_exist_ends_and_is_unknown() -> None:
    explainer, model = asked(
        lambda frame: frame.a > 99, mace.FeatureSpace({"a": mace.real(0, 9), "b": mace.real(0, 9)})
    )
    explanation = explainer.explain({"a": 1.0, "b": 1.0})
    assert (explanation.status, explanation.lower, explanation.exhausted) == ("unknown", 0.0, False)
    assert "none found among" in explanation.reason
    assert explanation.reason.endswith("not proved: the model could not be read")
    assert "Proved" not in str(explanation)
    assert model.rows <= MOST_ROWS_TRIED + ROWS_A_TRIAL


def test_a_deadline_ends_the_search_with_what_it_has() -> None:
    def rule(frame: pd.DataFrame) -> Any:
        return frame.a + frame.b * frame.c > 30

    explainer, model = asked(rule, SPACE, seconds=0.002)
    whole = explainer.explain(REFUSED)[0].calls
    model.rows = 0
    explanation = explainer.explain(REFUSED, time_limit=0.4)
    assert explanation.reason.endswith("time limit reached")
    assert model.rows < whole
    if explanation:
        assert rule(pd.DataFrame([explanation[0].values])).all()


def test_an_interrupt_gives_what_was_found() -> None:
    space = mace.FeatureSpace({name: mace.real(0, 1) for name in "abcd"})
    explainer, model = asked(lambda frame: frame.sum(axis=1) > 2, space)
    best = explainer.explain(dict.fromkeys(space, 0.2))[0]
    stopped = model.rows = 0

    def rule(frame: pd.DataFrame) -> Any:
        nonlocal stopped
        if model.rows > best.calls / 2 and not stopped:
            stopped = 1
            raise KeyboardInterrupt
        return frame.sum(axis=1) > 2

    model.rule = rule
    explanation = explainer.explain(dict.fromkeys(space, 0.2))
    assert explanation.reason == "not proved: the model could not be read; interrupted"
    assert explanation[0].distance >= best.distance


def test_progress_is_reported_with_a_lower_bound_of_0() -> None:
    seen: list[tuple[float, float, int]] = []
    explainer, _ = asked(lambda frame: frame.a + frame.b * frame.c > 30, SPACE)
    best = explainer.explain(REFUSED, on_progress=lambda *each: seen.append(each))[0]
    assert {lower for lower, _, _ in seen} == {0.0}
    assert [upper for _, upper, _ in seen] == sorted((upper for _, upper, _ in seen), reverse=True)
    assert seen[-1][1] == pytest.approx(best.distance)


# ---- what counts is the model's word on the row alone


def test_a_row_that_is_valid_only_among_others_is_not_returned() -> None:
    space = mace.FeatureSpace({"a": mace.integer(0, 100)})
    explainer, _ = asked(lambda frame: frame.a > (50 if len(frame) > 1 else 60), space)
    assert explainer.explain({"a": 10})[0].values["a"] > 60


def test_an_answer_that_is_nearer_than_the_accuracy_is_not_called_optimal() -> None:
    explainer, _ = asked(lambda frame: frame.a > 5, mace.FeatureSpace({"a": mace.real(0, 10)}))
    explanation = explainer.explain({"a": 5.0}, accuracy=0.5)
    assert explanation[0].distance < 0.5
    assert explanation.status == explanation[0].status == "feasible"


def test_a_probability_that_is_hard_to_reach_is_climbed_to() -> None:
    space = mace.FeatureSpace({name: mace.real(0, 1) for name in "abcdefgh"})

    def chances(frame: pd.DataFrame) -> Any:
        chance = np.exp(-4 * (1 - frame).sum(axis=1))
        return np.column_stack([1 - chance, chance])

    model = mace.wrap(predict=lambda frame: chances(frame).argmax(axis=1), predict_proba=chances, classes=[0, 1])
    explainer = mace.Explainer(model, space, unread="search")
    found = explainer.explain(dict.fromkeys(space, 0.1), mace.at_least(0.9, 1))
    assert chances(found.to_frame()[list(space)].iloc[[1]])[0, 1] >= 0.9


# ---- constraints of every kind that a row can be asked about


def within_frame(frame: pd.DataFrame, values: dict[str, Any], radius: float) -> bool:
    """Return whether a row of the small space lies within an l1 distance of some row of a frame."""
    return bool(((frame - pd.Series(values)).abs() / 9).mean(axis=1).min() <= radius + 1e-12)


def test_near_data_and_budgets_and_rules_are_kept() -> None:
    frame = people()[0].head(25)
    explainer, model = asked(lambda rows: rows.a + rows.b * rows.c > 30, SPACE)
    wanted = [
        mace.near_data(frame, radius=0.12),
        mace.changes_at_most(2),
        mace.rule("a + d <= old.a + old.d + 3"),
        mace.decreases("d"),
    ]
    best = explainer.explain(REFUSED, constraints=wanted)[0].values
    assert model.rule(pd.DataFrame([best])).all()
    assert within_frame(frame, best, 0.12)
    assert sum(best[name] != REFUSED[name] for name in SPACE) <= 2
    assert best["a"] + best["d"] <= 10
    assert best["d"] <= 5


def test_typical_is_kept() -> None:
    forest = IsolationForest(n_estimators=20, random_state=0, contamination=0.4).fit(people()[0])
    explainer, _ = asked(lambda rows: rows.a + rows.b * rows.c > 60, SPACE)
    free, kept = (explainer.explain(REFUSED, constraints=["b > c", *each])[0] for each in ([], [mace.typical(forest)]))
    assert forest.predict(pd.DataFrame([kept.values]))[0] == 1
    assert forest.predict(pd.DataFrame([free.values]))[0] == -1


@pytest.mark.parametrize("diversity", [mace.differ(), mace.differ(features=2), mace.differ(distance=0.2)])
def test_further_answers_differ(diversity: Any) -> None:
    explainer, _ = asked(lambda rows: rows.a + rows.b * rows.c > 30, SPACE)
    found = explainer.explain(REFUSED, count=3, diversity=diversity)
    points = [SPACE.point(each.values) for each in found]
    for k, point in enumerate(points):
        for earlier in points[:k]:
            conditions = diversity.bind(SPACE, SPACE.point(REFUSED), earlier, mace.Distance(l1=1))
            assert all(each.holds(mace.distances.point_values(SPACE, point)) for each in conditions)
    assert len(points) == 3


def test_sets_of_changes_differ_and_what_is_left_out_is_not_called_exhausted() -> None:
    explainer, _ = asked(lambda rows: (rows.a > 6) | (rows.b > 6), SPACE)
    found = explainer.explain(REFUSED, count=5, diversity=mace.differ(in_sets=True))
    assert {frozenset(change.feature for change in each.changes) for each in found} == {frozenset("a"), frozenset("b")}
    assert not found.exhausted
    assert found.reason.endswith("after 2 of 5 counterfactuals") or "not proved" in found.reason


def test_a_row_that_breaks_a_constraint_is_explained_all_the_same() -> None:
    explainer, _ = asked(lambda rows: rows.a + rows.b > 12, SPACE)
    best = explainer.explain({"a": 1, "b": 1, "c": 1, "d": 1}, constraints=[mace.within("c", 4, 6)])[0]
    assert 4 <= best.values["c"] <= 6


def test_constraints_that_leave_nothing_are_unknown() -> None:
    explainer, model = asked(lambda rows: rows.a > 5, SPACE)
    found = explainer.explain(REFUSED, constraints=[mace.rule("a <= 3"), mace.rule("a >= 4")])
    assert found.status == "unknown"
    assert model.rows <= 2


def test_interventions_are_searched_for_too() -> None:
    space = mace.FeatureSpace({"income": mace.real(0, 100), "savings": mace.real(0, 100), "age": mace.integer(18, 90)})
    model = Counted(lambda rows: rows.income + rows.savings > 80)
    explainer = mace.Explainer(
        mace.wrap(predict=model, classes=["no", "yes"]),
        space,
        causes=mace.Causal({"savings": "0.5 * income"}),
        unread="search",
    )
    best = explainer.explain({"income": 30.0, "savings": 20.0, "age": 40})[0]
    assert best.actions == ("income",)
    assert best.values["income"] == pytest.approx(50, abs=0.01)
    assert best.values["savings"] == pytest.approx(30, abs=0.01)
    assert best.status == "feasible"


# ---- what it cannot do


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"certify": True}, "nothing can be proved of it. Leave certify out"),
        ({"constraints": [mace.robust({"a": 1})]}, "robust"),
        ({"solver": "smt"}, "the model could not be read"),
        ({"solver": "z3"}, "the model could not be read"),
        ({"solver": "trees"}, "the model could not be read"),
        ({"solver": "milp"}, "the model could not be read"),
    ],
)
def test_what_needs_a_proof_is_refused_by_name(options: dict[str, Any], says: str) -> None:
    explainer, _ = asked(lambda rows: rows.a > 5, SPACE)
    with pytest.raises(mace.InvalidOption, match=says):
        explainer.explain(REFUSED, **options)


def test_levers_and_regions_are_refused_by_name() -> None:
    explainer, _ = asked(lambda rows: rows.a > 5, SPACE)
    with pytest.raises(mace.InvalidOption, match="levers: the model could not be read"):
        explainer.levers(REFUSED)
    with pytest.raises(mace.InvalidOption, match="region: the model could not be read"):
        explainer.explain(REFUSED)[0].region()
    readable = mace.Explainer(model_of("forest"), SPACE)
    for refused in (readable.levers, lambda row, solver: readable.explain(row, solver=solver, certify=True)):
        with pytest.raises(mace.InvalidOption, match="solver='search' proves nothing"):
            refused(REFUSED, solver="search")


def test_small_spaces_can_be_enumerated_and_that_is_a_proof() -> None:
    explainer, _ = asked(lambda rows: rows.a + rows.b > 12, mace.FeatureSpace({name: SPACE[name] for name in "ab"}))
    searched, enumerated = (explainer.explain({"a": 1, "b": 1}, solver=solver) for solver in ("auto", "enumerate"))
    assert (searched.status, enumerated.status) == ("feasible", "optimal")
    assert searched[0].distance == enumerated[0].distance

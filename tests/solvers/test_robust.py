"""Answers that noise does not undo: against brute force over finite spaces, their certificates, and what becomes of changed ones."""

from __future__ import annotations

import itertools
import time
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_ensembles import random_ensemble
from realistic import explainer_of, rows_of
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from tampering import every_point, is_true, noise_around, outcome_of, parts_of, without_noise

import mace
from mace.answer.question import Question
from mace.certify.certificate import Certificate
from mace.certify.robust.copies import read_cell, with_copies
from mace.certify.statement import Statement
from mace.certify.verdict import Refuted
from mace.constraints.robust import RobustCondition
from mace.problem import Problem
from mace.reductions.tree_copies import Copies, Place, cell
from mace.solvers.robust import trees as places
from mace.space import Categorical, Integer, Ordinal, grid_values

SEEDS = [0, 1, 3, 4, 6, 9, 10, 11, 13, 14, 16, 19, 21, 24, 27, 29, 33, 36, 52, 58, 60, 71, 388]


def random_question(seed: int) -> tuple[mace.Explainer, Any, dict[str, Any]] | None:
    """Return a random ensemble over a small space, a row, and a question with noise; ``None`` where there can be none."""
    case = random_ensemble(seed)
    rng = np.random.default_rng([seed, 5])
    ordered = [name for name, feature in case.space.items() if not isinstance(feature, Categorical)]
    if not ordered or prod((feature.size or 0) + 1 for feature in case.space.values()) > 3000:
        return None
    noise = {str(name): _radius(case.space[str(name)], rng) for name in rng.permutation(ordered)[: rng.integers(1, 3)]}
    question = {**case.question, "constraints": [*case.question.get("constraints", ()), mace.robust(noise)]}
    return mace.Explainer(case.model, case.space), case.row, question


def _radius(feature: Any, rng: np.random.Generator) -> float:
    step = 1.0 if isinstance(feature, Ordinal) else float(feature.step or (1 if isinstance(feature, Integer) else 0.5))
    return step * float(rng.choice([0.5, 1, 1, 2]))


@cache
def robust_certificates(seed: int) -> tuple[Any, list[Certificate]]:
    """Return a model and the certificates of the answers to a random question."""
    made = random_question(seed)
    if made is None:
        return None, []
    explainer, row, question = made
    answer = explainer.explain(row, **question, certify=True)
    if answer.status == "reached":
        return None, []
    assert answer.status in ("optimal", "infeasible"), answer.reason
    assert answer.exhausted or len(answer) == question.get("count", 1)
    found = [each.certificate for each in answer] + [answer.certificate]
    return explainer.model, [Certificate.from_json(each.to_json()) for each in found if each is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_robust_answers_of_random_ensembles_are_true_and_their_certificates_valid(seed: int) -> None:
    model, certificates = robust_certificates(seed)
    for certificate in certificates:
        assert is_true(certificate, model)
        assert str(mace.verify(certificate, model)) == "valid"


def test_random_questions_have_robust_answers_of_both_sorts() -> None:
    """The sample above would prove little if none of its answers needed copies, or all were infeasible."""
    found = [each for seed in SEEDS for each in robust_certificates(seed)[1]]
    assert any(each.claim["status"] == "optimal" and each.evidence["places"] for each in found)
    assert any(each.claim["status"] == "infeasible" and each.evidence["places"] for each in found)


# ---- the copies themselves, the solver's and the checker's


def noisy_problem(seed: int) -> tuple[Problem, RobustCondition] | None:
    made = random_question(seed)
    if made is None:
        return None
    explainer, row, question = made
    try:
        statement = explainer._statement(
            explainer.space.point(row),
            Question(explainer.space, question.get("target"), constraints=question["constraints"][-1:]),
        )
        problem, _ = statement.problem(explainer.model)
    except (mace.MaceError, Refuted):
        return None
    rest, sturdy = without_noise(problem)
    assert sturdy is not None
    return rest, sturdy


@pytest.mark.parametrize("seed", [0, 3, 6, 9, 12, 18, 21, 24, 30, 33])
def test_copies_say_what_the_ensemble_says_at_the_places_that_noise_can_reach(seed: int) -> None:
    made = noisy_problem(seed)
    if made is None:
        return
    problem, sturdy = made
    rng = np.random.default_rng(seed)
    points = list(every_point(problem))
    form = problem.form
    noisy = tuple(problem.space.index(name) for name in sturdy.radii)
    chosen = []
    for _ in range(3):
        at = points[int(rng.integers(len(points)))]
        chosen.append(
            Place(noisy, tuple(None if at[j] is None else cell(form, j, float(at[j])) for j in noisy))  # type: ignore[arg-type]
        )
    try:
        mine = Copies(problem, sturdy).at(chosen[:1])
    except ValueError:
        return
    names = problem.space.names
    entries = [
        {names[j]: None if ends is None else list(ends) for j, ends in zip(place.features, place.ranges, strict=True)}
        for place in chosen[:1]
    ]
    theirs = with_copies(problem, [read_cell(problem, sturdy, entry) for entry in entries])
    for point in [points[int(k)] for k in rng.integers(len(points), size=12)]:
        near = [place for place in chosen[:1] if place.is_near(point, place.gate(sturdy))]
        rows = [point, *(place.of(point) for place in near)]
        around = set(noise_around(problem, sturdy, point))
        assert all(row in around for row in rows[1:])
        expected = all(problem.goal.accepts(problem.ask([row])[0]) for row in rows)
        for asked in (mine, theirs):
            assert asked.goal.accepts(asked.ask([point])[0]) == expected
            clear = asked.form.is_beyond_rounding(point, asked.goal, problem.box())
            if clear:
                scores = asked.form.exact_scores(point)  # type: ignore[attr-defined]
                alternatives = asked.goal.alternatives(asked.form.outputs, ties_last=asked.form.ties_last)  # type: ignore[attr-defined]
                reached = any(all(_holds(margin, scores) for margin in margins) for margins in alternatives)
                assert reached == expected


def _holds(margin: Any, scores: Any) -> bool:
    ahead = scores[margin.plus] if margin.plus is not None else 0
    behind = scores[margin.minus] if margin.minus is not None else 0
    value = ahead - behind + margin.shift
    return bool(value > 0 if margin.strict else value >= 0)


# ---- changed certificates


def finite_certificate(kind: str = "forest") -> tuple[Any, Certificate]:
    explainer = explainer_of(kind)
    for row in rows_of(explainer, 0, 8):
        answer = explainer.explain(row, target=1, constraints=[mace.robust({"a": 1, "b": 0.25})], certify=True)
        if len(answer) and answer[0].certificate.evidence["places"]:
            return explainer.model, answer[0].certificate
    raise AssertionError("no answer needed a copy")


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_a_certificate_with_less_noise_places_or_proof_is_not_valid_unless_true(kind: str) -> None:
    model, certificate = finite_certificate(kind)
    assert mace.verify(certificate, model).valid

    def after(change: Any) -> tuple[str, str, bool]:
        data = parts_of(certificate)
        change(data)
        outcome, reason = outcome_of(data, model)
        return outcome, reason, outcome != "valid" or is_true(Certificate(**data), model)

    def claim_more_noise(data: Any) -> None:
        data["statement"]["constraints"][-1]["arguments"] = [{"a": 2, "b": 0.75}]

    def claim_none(data: Any) -> None:
        data["statement"]["constraints"].pop()

    def leave_places_out(data: Any) -> None:
        data["evidence"]["places"] = []

    def widen_a_place(data: Any) -> None:
        data["evidence"]["places"][0] = {"a": [0, 6], "b": [0.0, 2.0]}

    def name_a_quiet_feature(data: Any) -> None:
        data["evidence"]["places"][0] = {"c": [0, 2]}

    def no_proof_of_the_box(data: Any) -> None:
        data["evidence"]["around"] = None

    def another_box(data: Any) -> None:
        data["evidence"]["around"] = data["evidence"]["proof"]

    def no_proof(data: Any) -> None:
        data["evidence"]["proof"] = None

    def nearer(data: Any) -> None:
        data["claim"]["lower"] = data["claim"]["upper"] = data["claim"]["upper"] * 0.9

    assert after(claim_more_noise)[::2] in {("refuted", True), ("unchecked", True)}
    assert after(claim_none)[2]
    assert after(leave_places_out)[0] == "refuted"
    assert "apart" in after(widen_a_place)[1]
    assert "no noise" in after(name_a_quiet_feature)[1]
    assert after(no_proof_of_the_box)[0] == "unchecked"
    assert after(another_box)[2]
    assert after(no_proof)[0] == "unchecked"
    assert after(nearer)[0] == "refuted"


def test_whatever_stands_where_places_should_is_refuted_not_a_crash() -> None:
    model, certificate = finite_certificate()
    for odd in (
        "no",
        5,
        None,
        [5],
        [{"a": 3}],
        [{"a": ["x", "y"]}],
        [{"a": [3, 1]}],
        [{"a": [1, 1, 1]}],
        [{"zz": [1, 1]}],
    ):
        data = parts_of(certificate)
        data["evidence"]["places"] = odd
        outcome, _ = outcome_of(data, model)
        assert outcome in ("refuted", "unchecked") or is_true(Certificate(**data), model)
        for key in ("proof", "around"):
            data = parts_of(certificate)
            data["evidence"][key] = odd
            assert outcome_of(data, model)[0] in ("refuted", "unchecked")


def test_a_search_that_takes_a_point_without_looking_beside_it_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken search returns the nearest point of all and calls the box around it proved."""

    def blind(self: places.RobustTreeSearch, point: Any) -> None:
        self.noise.remember(point)
        self.incumbent.take(point)
        self.around = {"lane": "trees", "parts": []}

    monkeypatch.setattr(places.RobustTreeSearch, "_refused", blind)
    explainer = explainer_of("forest")
    noise = mace.robust({"a": 1, "b": 0.25})
    verdicts = []
    for row in rows_of(explainer, 0, 6):
        certificate = explainer.explain(row, target=1, constraints=[noise], certify=True)[0].certificate
        assert certificate is not None
        verdicts.append((mace.verify(certificate, explainer.model).valid, is_true(certificate, explainer.model)))
    assert (False, False) in verdicts
    assert all(is_so or not said for said, is_so in verdicts)


def test_a_search_whose_copies_are_of_another_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies that ask too much make the search overlook nearer answers."""
    whole = Place.of

    def gate(self: Place, noise: Any) -> Any:
        return tuple((Fraction(-100), Fraction(100)) for _ in self.features)

    monkeypatch.setattr(Place, "gate", gate)
    explainer = explainer_of("forest")
    noise = mace.robust({"a": 1})
    found = []
    for row in rows_of(explainer, 0, 8):
        answer = explainer.explain(row, target=1, constraints=[noise], certify=True)
        certificate = answer[0].certificate if len(answer) else answer.certificate
        assert certificate is not None
        found.append((mace.verify(certificate, explainer.model).valid, is_true(certificate, explainer.model)))
    assert Place.of is whole
    assert (False, False) in found
    assert all(is_so or not said for said, is_so in found)


# ---- with everything else


def test_noise_goes_with_other_constraints_targets_and_several_answers() -> None:
    explainer = explainer_of("forest")
    row = rows_of(explainer, 0, 3)[2]
    noise = mace.robust({"a": 1})
    frame = pd.DataFrame(rows_of(explainer, 1, 40))
    questions: list[dict[str, Any]] = [
        {"constraints": [noise, "at most 2 features change"]},
        {"constraints": [noise, "a + 2 * b <= 7"]},
        {"constraints": [noise, mace.near_data(frame, k=1, radius=0.2)]},
        {"constraints": [noise], "count": 2, "diversity": mace.differ()},
        {"constraints": [noise], "count": 2, "diversity": mace.differ(in_sets=True)},
        {"constraints": [noise], "target": mace.at_least(0.6)},
        {"constraints": [noise], "target": mace.between(0.55, 0.9)},
        {"constraints": [noise], "target": mace.any_of([1], margin=0.2)},
    ]
    for question in questions:
        answer = explainer.explain(row, **{"target": 1, **question}, certify=True)
        assert answer.status in ("optimal", "infeasible"), (question, answer.reason)
        for each in [*answer, answer]:
            if each.certificate is not None:
                certificate = Certificate.from_json(each.certificate.to_json())
                assert is_true(certificate, explainer.model), question
                assert str(mace.verify(certificate, explainer.model)) == "valid", question


@pytest.mark.parametrize("solver", ["enumerate", "smt", "milp"])
def test_every_solver_finds_the_same_robust_answer(solver: str) -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    noise = mace.robust({"a": 1})
    best = explainer.explain(row, target=1, constraints=[noise])[0]
    other = explainer.explain(row, target=1, constraints=[noise], solver=solver, certify=True)[0]
    assert other.distance == pytest.approx(best.distance, abs=1e-6)
    if solver == "enumerate":
        assert str(mace.verify(other.certificate, explainer.model)) == "valid"


def test_noise_is_stated_and_read_back() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    answer = explainer.explain(row, target=1, constraints=[mace.robust({"b": 0.25, "a": 1})], certify=True)
    stated = answer[0].certificate.statement["constraints"]
    assert stated == [{"kind": "robust", "arguments": [{"b": 0.25, "a": 1}]}]
    assert str(Statement.from_dict(answer[0].certificate.statement).constraints[0]) == "robust({'b': 0.25, 'a': 1})"


# ---- networks

NETS = mace.FeatureSpace(
    {
        "a": mace.integer(0, 8),
        "b": mace.real(0, 2, step=0.25),
        "c": mace.ordinal(["low", "mid", "high"]),
        "e": mace.integer(-3, 3),
    }
)


def network_question(seed: int) -> tuple[mace.Explainer, dict[str, Any], Any, mace.constraints.robust.Robust]:
    """Return a network or linear model over a finite space, a row, a target and noise."""
    rng = np.random.default_rng(seed)
    points = list(itertools.product(*map(grid_values, NETS.values())))
    frame = NETS.frame_of([points[int(k)] for k in rng.integers(len(points), size=200)])
    weights = rng.normal(size=3)
    score = weights[0] * frame.a + 3 * weights[1] * frame.b + weights[2] * frame.e + 2 * np.sin(frame.a)
    network: dict[str, Any] = {"hidden_layer_sizes": (5,), "solver": "lbfgs", "max_iter": 300, "random_state": seed}
    estimator, labels, target = [
        (MLPClassifier(**network), (score > np.median(score)).astype(int), None),
        (MLPClassifier(**network), np.digitize(score, np.quantile(score, [0.33, 0.66])), None),
        (MLPRegressor(**network), score, mace.at_least(float(np.quantile(score, 0.7)))),
        (LogisticRegression(), (score > np.median(score)).astype(int), mace.at_least(0.6)),
    ][seed % 4]
    model = make_pipeline(mace.Encoder(NETS), estimator).fit(frame, labels)
    noise = {name: radius for name, radius in (("a", 1), ("e", 1), ("b", 0.25), ("c", 1)) if rng.random() < 0.45}
    return mace.Explainer(model, NETS), frame.iloc[0].to_dict(), target, mace.robust(noise or {"a": 1})


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 7, 9])
def test_robust_answers_of_networks_are_true_and_their_certificates_not_refuted(seed: int) -> None:
    explainer, row, target, noise = network_question(seed)
    answer = explainer.explain(row, target, constraints=[noise], certify=True)
    if answer.status == "reached":
        return
    assert answer.status in ("optimal", "infeasible"), answer.reason
    certificate = answer[0].certificate if len(answer) else answer.certificate
    assert certificate is not None
    certificate = Certificate.from_json(certificate.to_json())
    assert is_true(certificate, explainer.model)
    verdict = mace.verify(certificate, explainer.model)
    assert verdict.valid or ("no proof of lower" in verdict.reason and verdict.outcome == "unchecked")


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("seed", [11, *range(61, 100)])
def test_where_the_only_real_feature_stays_robust_answers_are_those_of_brute_force(seed: int) -> None:
    """Boxes end at single rows then, of which only the model knows that it refuses them."""
    rng = np.random.default_rng(seed)
    numbers = np.column_stack([rng.uniform(0, 1, 200), rng.integers(0, 9, 200), rng.integers(0, 9, 200)])
    score = numbers @ (rng.normal(size=3) * [1, 0.3, 0.3]) + 0.6 * np.sin(numbers[:, 1]) * rng.normal()
    score += 0.5 * np.cos(numbers[:, 2] * 2)
    network = MLPClassifier((8,), random_state=seed, max_iter=400).fit(numbers, score > np.quantile(score, 0.6))
    x, k, m = numbers[rng.integers(0, 200)].tolist()
    if network.predict([[x, k, m]])[0]:
        return
    says = network.predict([[x, a, b] for a in range(9) for b in range(9)]).reshape(9, 9)
    robust = {
        (abs(a - k) + abs(b - m)) / 24
        for a, b in itertools.product(range(9), repeat=2)
        if says[max(0, a - 1) : a + 2, max(0, b - 1) : b + 2].all()
    }
    space = mace.FeatureSpace({"x": mace.real(0, 1), "k": mace.integer(0, 8), "m": mace.integer(0, 8)})
    answer = mace.Explainer(network, space).explain(
        [x, int(k), int(m)], constraints=[mace.fixed("x"), mace.robust({"k": 1, "m": 1})], certify=True
    )
    assert [best.distance for best in answer] == pytest.approx([min(robust)] if robust else [])
    assert answer.status == ("optimal" if robust else "infeasible")
    certificate = answer[0].certificate if robust else answer.certificate
    assert certificate is not None
    assert mace.verify(certificate, network).outcome != "refuted"


def test_on_a_finite_space_any_model_has_a_certificate_by_enumeration() -> None:
    explainer, row, target, noise = network_question(4)
    answer = explainer.explain(row, target, constraints=[noise], certify=True, solver="enumerate")
    certificate = answer[0].certificate
    assert str(mace.verify(certificate, explainer.model)) == "valid"
    data = parts_of(certificate)
    data["claim"]["counterfactual"] = certificate.statement["factual"]
    assert outcome_of(data, explainer.model)[0] == "refuted"
    data = parts_of(certificate)
    data["statement"]["constraints"][0]["arguments"] = [{"a": 8}]
    outcome, _ = outcome_of(data, explainer.model)
    assert outcome != "valid" or is_true(Certificate(**data), explainer.model)


# ---- real features


REALS = mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(0, 10), "c": mace.integer(0, 4, missing=False)})


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(10, random_state=0),
        GradientBoostingClassifier(n_estimators=10, random_state=0),
    ],
    ids=["tree", "forest", "boosting"],
)
def test_deep_trees_over_real_features_are_answered_and_proved(estimator: Any) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 400), "b": rng.uniform(0, 10, 400), "c": rng.integers(0, 5, 400)})
    labels = (frame.a + 0.5 * frame.b + frame.c + rng.normal(0, 1, 400) > 9).astype(int)
    model = estimator.fit(frame, labels)
    explainer = mace.Explainer(model, REALS)
    noise = {"a": 0.4, "b": 0.3}
    for row in [row for row in frame.to_dict("records") if explainer.predict(row) == 0][:2]:
        begun = time.process_time()
        answer = explainer.explain(row, target=1, constraints=[mace.robust(noise)], certify=True, time_limit=20)
        assert time.process_time() - begun < 20.5
        assert answer.status == "optimal", answer.reason
        assert str(mace.verify(answer[0].certificate, model)) == "valid"
        edges = {name: np.unique(np.concatenate([_edges(model, k), [0.0, 10.0]])) for k, name in enumerate(["a", "b"])}
        at = answer[0].values
        grids = []
        for name, radius in noise.items():
            low, high = max(0.0, at[name] - radius), min(10.0, at[name] + radius)
            inside = [e for edge in edges[name] for e in (edge, np.nextafter(edge, np.inf)) if low <= e <= high]
            grids.append([at[name], low + 1e-12, high - 1e-12, *inside])
        around = pd.DataFrame(list(itertools.product(*grids)), columns=["a", "b"]).assign(c=at["c"])
        assert set(model.predict(around)) == {1}


def _edges(model: Any, feature: int) -> Any:
    trees = [model] if hasattr(model, "tree_") else np.ravel(model.estimators_)
    return np.concatenate([tree.tree_.threshold[tree.tree_.feature == feature] for tree in trees])


def test_a_deadline_ends_the_search_with_what_is_proved() -> None:
    rng = np.random.default_rng(4)
    space = mace.FeatureSpace({name: mace.real(0, 1) for name in "abcdef"})
    frame = pd.DataFrame(rng.random((1500, 6)), columns=list("abcdef"))
    labels = (frame.sum(axis=1) + rng.normal(0, 0.6, 1500) > 3.2).astype(int)
    explainer = mace.Explainer(RandomForestClassifier(30, random_state=0).fit(frame, labels), space)
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    noise = mace.robust(dict.fromkeys("abc", 0.15))
    explainer.explain(row, constraints=[noise], time_limit=0.01)
    begun = time.process_time()
    answer = explainer.explain(row, constraints=[noise], time_limit=0.3)
    assert time.process_time() - begun < 0.3 + 0.25
    assert answer.status in ("unknown", "feasible", "optimal")
    assert answer.lower >= 0


# ---- rows between the values of a grid, and decimals


def between(a, b):  # type: ignore[no-untyped-def]
    if 2.25 < a < 2.75:
        return 1 if b >= 1 else 0
    return 1 if b <= 1 else 0


def pierced(a, b):  # type: ignore[no-untyped-def]
    if b >= 1:
        return 0 if b == 3 and 2.25 < a < 2.75 else 1
    return 0


def test_noise_on_many_features_keeps_the_time_limit() -> None:
    """A box was cut at the ends of every feature at once: into 2 to the power of 30 parts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200, 30)), columns=[f"x{k}" for k in range(30)])
    model = LogisticRegression().fit(frame, frame.sum(axis=1) > 15)
    row = frame[model.predict(frame) == 0].iloc[0]
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    explainer.explain(row)
    begun = time.process_time()
    answer = explainer.explain(row, constraints=[mace.robust(0.01)], time_limit=1, round_to=None)
    assert time.process_time() - begun < 3
    assert answer.status in ("optimal", "feasible", "unknown")
    assert 0 < answer.lower < 1


@pytest.mark.parametrize("solver", ["auto", "smt", "enumerate"])
@pytest.mark.parametrize(
    ("model", "noise", "values"),
    [(between, {"b": 2}, {"a": 2.5, "b": 3}), (pierced, {"a": 0.6, "b": 1}, {"a": 2.0, "b": 2})],
)
def test_a_row_between_the_values_of_a_grid_is_neither_lost_nor_made_by_noise(
    model: Any, noise: dict[str, float], values: dict[str, float], solver: str
) -> None:
    space = mace.FeatureSpace({"a": mace.real(0, 6, step=1.0), "b": mace.integer(0, 6)})
    answer = mace.Explainer(model, space).explain(
        {"a": 2.5, "b": 0}, target=1, constraints=[mace.robust(noise)], solver=solver
    )
    assert answer.status == "optimal"
    assert answer[0].values == values


def test_a_step_of_decimals_is_a_step_up_and_down() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1, step=0.1)})
    explainer = mace.Explainer(lambda x: 1 if x <= 0.35 else 0, space)
    assert explainer.explain({"x": 0.9}, target=1, constraints=[mace.robust({"x": 0.1})])[0].values == {"x": 0.2}
    rows = [{"x": 0.4}]
    assert explainer.explain({"x": 0.9}, target=1, constraints=[mace.near_data(rows, 1, 0.1)])[0].values == {"x": 0.3}


def hair(x, y):  # type: ignore[no-untyped-def]
    return 1 if x <= 6.6 and y >= 1 else 0


def test_a_box_that_ends_between_two_floats_has_a_proof() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 10), "y": mace.integer(0, 3)})
    noise = mace.robust({"x": 0.25482569887815515})
    answer = mace.Explainer(hair, space).explain({"x": 6.345174301121845, "y": 0}, constraints=[noise], certify=True)
    assert answer[0].certificate is not None
    assert str(mace.verify(answer[0].certificate, hair)) == "valid"


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_a_split_by_whether_a_value_is_missing_is_kept_in_copies(kind: type) -> None:
    """Found by a campaign: such a split has an infinite edge, and copies took all rows to go its other way."""
    space = mace.FeatureSpace({"a": mace.integer(0, 2), "m": mace.real(0, 1, missing=True)})
    rows = pd.DataFrame({"a": [0, 1, 2] * 40, "m": [0.0, 1.0, None, 0.5] * 30}).astype(float)
    model = kind(random_state=0, **({"n_estimators": 5} if kind is RandomForestClassifier else {}))
    model.fit(rows, (rows.a == 2) | rows.m.isna())
    assert any(np.isinf(tree.tree_.threshold).any() for tree in getattr(model, "estimators_", [model]))
    explainer, row, asked = mace.Explainer(model, space), {"a": 1, "m": 0.5}, {"constraints": [mace.robust({"a": 2})]}
    found = explainer.explain(row, True, **asked, certify=True)
    assert str(found.status) == "optimal"
    assert pd.isna(found[0].values["m"])
    assert mace.verify(found[0].certificate, model).valid
    assert str(explainer.explain(row, True, constraints=[*asked["constraints"], "m stays"]).status) == "infeasible"

"""Certificates of conditions across features: boxes with a proof each, and a check that they leave nothing out."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from box_proofs import proof_of
from box_questions import MODELS, OLD, QUESTIONS, SPACE, TEXTS, rows
from problems import problem_of
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tampering import outcome_of, parts_of

import mace
from mace.certify.boxes.cover import check_cover
from mace.certify.boxes.guards import may_hold
from mace.certify.trees.ranges import Span
from mace.certify.verdict import Refuted
from mace.distances import point_values
from mace.language import holds
from mace.reductions.regions import Region
from mace.solvers.boxes import guards
from mace.space import Point


@pytest.fixture(scope="module", params=MODELS)
def explainer(request: pytest.FixtureRequest) -> mace.Explainer:
    return MODELS[request.param]()


@pytest.mark.parametrize("constraints", QUESTIONS, ids=lambda question: " & ".join(question))
@pytest.mark.parametrize("distance", ["l1", "linf", mace.Distance(l0=0.3, l1=0.7)], ids=["l1", "linf", "mixture"])
def test_answers_over_real_features_are_proved(
    explainer: mace.Explainer, constraints: list[str], distance: Any
) -> None:
    proof = proof_of(explainer.explain(OLD, target=1, constraints=constraints, distance=distance, certify=True))
    assert proof.claim["status"] == "optimal"
    assert proof.evidence["lane"] in ("boxes", "network", "trees")
    assert str(mace.verify(proof, explainer.model)) == "valid"


@pytest.mark.parametrize("constraints", [["a + b <= 1"], ["a <= b", "a >= b + 0.5"], ["at most 0 features change"]])
def test_that_nothing_is_possible_is_proved(explainer: mace.Explainer, constraints: list[str]) -> None:
    proof = proof_of(explainer.explain(OLD, target=1, constraints=constraints, certify=True))
    assert proof.claim["status"] == "infeasible"
    assert str(mace.verify(proof, explainer.model)) == "valid"


def test_missing_values_and_all_kinds_of_features() -> None:
    frame = pd.DataFrame(rows(300, 7))
    labels = frame["a"] + frame["b"].fillna(2) + frame["c"] + 2 * (frame["e"] == "y") > 9
    model = make_pipeline(mace.Encoder(SPACE), HistGradientBoostingClassifier(max_iter=8, max_depth=3)).fit(
        frame, labels
    )
    explainer = mace.Explainer(model, SPACE)
    checked = 0
    for row in rows(2, 11):
        for text in TEXTS:
            answer = explainer.explain(row, constraints=[text], certify=True, time_limit=20)
            if len(answer) and answer[0].lower == 0:
                continue
            proof = proof_of(answer)
            assert str(mace.verify(proof, model)) == "valid", (text, row)
            checked += proof.evidence["lane"] == "boxes"
    assert checked > 15


# ---- false claims

FINITE = mace.FeatureSpace(
    {
        "a": mace.integer(0, 6),
        "b": mace.integer(0, 6),
        "c": mace.ordinal(["low", "mid", "high"]),
        "e": mace.categorical(["x", "y", "z"]),
    }
)
FINITE_TEXTS = [
    "a <= b",
    "a + b <= old.a + old.b",
    "at most 1 features change",
    "at most 2 features change",
    "e changes and at most 2 features change",
    "if e changes then b >= old.b + 1",
    "a, c change together",
    "a >= 2 * b or e == 'y'",
    "abs(a - old.b) <= 2 and c != 'mid'",
]


def finite_case(seed: int) -> tuple[mace.Explainer, dict[str, Any], str]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 7, 120),
            "b": rng.integers(0, 7, 120),
            "c": rng.choice(["low", "mid", "high"], 120),
            "e": rng.choice(["x", "y", "z"], 120),
        }
    )
    labels = frame["a"] * rng.normal() + frame["b"] * rng.normal() + 2 * (frame["e"] == "y") + rng.normal(size=120) > 1
    labels[:2] = [False, True]
    estimator = RandomForestClassifier(5, max_depth=3, random_state=seed) if seed % 2 else LogisticRegression()
    model = make_pipeline(mace.Encoder(FINITE), estimator).fit(frame, labels)
    return mace.Explainer(model, FINITE), frame.iloc[5].to_dict(), FINITE_TEXTS[seed % len(FINITE_TEXTS)]


@pytest.mark.parametrize("seed", range(24))
def test_a_proof_does_not_serve_a_looser_question(seed: int) -> None:
    """The boxes of a question with a condition do not prove the same bound where the condition is left out."""
    explainer, row, text = finite_case(seed)
    distance = ["l1", "linf", "l0"][seed % 3]
    bound = explainer.explain(row, distance=distance, constraints=[text], certify=True)
    free = explainer.explain(row, distance=distance, solver="enumerate")
    proof = proof_of(bound)
    assert str(mace.verify(proof, explainer.model)) == "valid"
    data = parts_of(proof)
    data["statement"]["constraints"] = []
    is_false = len(free) > 0 and (len(bound) == 0 or bound[0].lower > free[0].distance)
    if is_false:
        assert outcome_of(data, explainer.model)[0] == "refuted"


def _lost_box(boxes: list[Any]) -> None:
    boxes.pop()


def _narrowed(boxes: list[Any]) -> None:
    for box in boxes:
        for span in box["ranges"].values():
            if "low" in span and span["low"] < span["high"]:
                span["high"] -= 1
                return


def _widened(boxes: list[Any]) -> None:
    for box in boxes:
        box["ranges"] = {}


@pytest.mark.slow
@pytest.mark.parametrize("change", [_lost_box, _narrowed, _widened])
def test_changed_boxes_prove_no_more_than_the_truth(change: Callable[[list[Any]], None]) -> None:
    """A proof with other boxes is refused, or the claim is true all the same; with a lost box of a tight proof it is refused."""
    refused = 0
    for seed in range(48):
        explainer, row, text = finite_case(seed)
        proof = proof_of(explainer.explain(row, constraints=[text], certify=True))
        if proof.evidence["lane"] != "boxes" or not proof.evidence["boxes"]:
            continue
        data = parts_of(proof)
        change(data["evidence"]["boxes"])
        refused += outcome_of(data, explainer.model)[0] in ("refuted", "unchecked")
    assert refused >= 3


@pytest.mark.parametrize(
    "ranges",
    [{"a": {"low": None, "high": 3, "missing": False}}, {"zz": {"low": 1, "high": 3, "missing": False}}, {"a": {}}, 7],
)
def test_a_damaged_box_is_refuted_and_no_crash(ranges: Any) -> None:
    explainer, row, text = finite_case(1)
    data = parts_of(proof_of(explainer.explain(row, constraints=[text], certify=True)))
    data["evidence"]["boxes"][0]["ranges"] = ranges
    assert outcome_of(json.loads(json.dumps(data, default=lambda array: array.tolist())), explainer.model)[0] != "valid"


@pytest.mark.slow
def test_the_wrong_answers_of_a_broken_solver_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where narrowing loses rows, some bounds are above the truth, and no such bound has a valid proof."""
    honest = guards.narrow

    def careless(guard: Any, region: Region) -> Region | None:
        left = honest(guard, region)
        if left is None or left["a"].low >= left["a"].high:
            return left
        return left | {"a": left["a"].between(left["a"].low + 1, left["a"].high)}

    monkeypatch.setattr(guards, "narrow", careless)
    wrong = 0
    for seed in range(40):
        explainer, row, text = finite_case(seed)
        answer = explainer.explain(row, constraints=[text], certify=True)
        truth = explainer.explain(row, constraints=[text], solver="enumerate")
        claim = proof_of(answer).claim
        is_false = len(truth) > 0 and (claim["status"] == "infeasible" or claim["lower"] > truth[0].distance)
        if is_false:
            wrong += 1
            assert mace.verify(proof_of(answer), explainer.model).outcome == "refuted"
    assert wrong >= 3


def test_rows_up_to_the_very_bound_must_lie_in_a_box() -> None:
    """A box with all rows nearer than two steps of ``a`` covers a bound of two steps, and not one a little above."""
    explainer, row, _ = finite_case(1)
    problem = problem_of(explainer, row | {"a": 3}, {"distance": "l1", "constraints": [mace.fixed("b", "c", "e")]})
    step = Fraction(1, 4 * 6)
    for reach in (0, 1, 2):
        near = (Span(3 - reach, 3 + reach, None, True, False), None, None, None)
        check_cover(problem, step * (reach + 1) * (1 - Fraction(1, 10**9)), [near])
        with pytest.raises(Refuted, match="lie in no box"):
            check_cover(problem, step * (reach + 1) * Fraction(101, 100), [near])


# ---- conditions on a piece


@pytest.mark.parametrize("text", TEXTS)
def test_what_may_hold_in_a_piece_holds_or_fails_in_it(text: str) -> None:
    rng = np.random.default_rng(3)
    points = [SPACE.point(row) for row in rows(200, 5)]
    decided = 0
    for old in points[:4]:
        condition: Any = mace.rule(text).bind(SPACE, old)
        for _ in range(25):
            piece = random_piece(rng)
            may, may_not = may_hold(condition.guard, piece)
            decided += not (may and may_not)
            for point in points:
                if in_piece(point, piece):
                    assert may if holds(condition.guard, point_values(SPACE, point)) else may_not
    assert decided


def random_piece(rng: np.random.Generator) -> dict[str, Span]:
    made = {}
    for name, feature in SPACE.items():
        missing = feature.missing and bool(rng.random() < 0.3)
        if hasattr(feature, "levels"):
            size = len(feature.levels)
            kept = rng.choice(size, int(rng.integers(1, size + 1)), replace=False)
            made[name] = Span(1.0, 0.0, frozenset(map(int, kept)), False, missing)
        else:
            low, high = sorted(rng.uniform(float(feature.low), float(feature.high), 2))
            low, high = (float(feature.low), float(feature.high)) if rng.random() < 0.4 else (low, high)
            made[name] = Span(float(low), float(high), None, False, missing)
    return made


def in_piece(point: Point, piece: dict[str, Span]) -> bool:
    return all(
        span.missing
        if value is None
        else (value in span.levels if span.levels is not None else span.low <= value <= span.high)
        for value, span in zip(point, piece.values(), strict=True)
    )


def _evidence_of_boxes() -> tuple[mace.Explainer, dict[str, Any]]:
    for seed in range(20):
        explainer, row, text = finite_case(seed)
        data = parts_of(proof_of(explainer.explain(row, constraints=[text], certify=True)))
        if data["evidence"]["lane"] == "boxes" and data["evidence"]["boxes"]:
            return explainer, data
    raise AssertionError("no case is proved by boxes")


def test_the_proof_of_a_box_may_be_of_any_kind_that_is_not_a_whole_question_by_itself() -> None:
    """A box may be proved by boxes in turn; not by kinds of proof one of which takes as long as a certificate may."""
    explainer, data = _evidence_of_boxes()
    own = data["evidence"]["boxes"][0]
    inner = dict(own)
    own["proof"] = {"lane": "boxes", "boxes": [inner]}
    assert outcome_of(data, explainer.model) == ("valid", "")
    own["proof"] = {"lane": "boxes", "boxes": []}
    assert outcome_of(data, explainer.model)[0] == "refuted"
    for lane in ("smt", "milp", "enumerate", "curves"):
        own["proof"] = {"lane": lane, "solver": "z3"}
        outcome, reason = outcome_of(data, explainer.model)
        assert (outcome, "proves no boxes" in reason) == ("unchecked", True)
    own["proof"] = {"lane": "unheard of"}
    assert outcome_of(data, explainer.model)[0] == "unchecked"

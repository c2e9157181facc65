"""Certificates of near_data and typical: what holds is valid, what does not is refuted, whatever was changed in between."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from box_proofs import proof_of
from outliers import NEAR, outlier_forest
from problems import problem_of
from random_realism import fault_of, random_realistic, tampered_fault
from realistic import SPACE, explainer_of, frame_of, rows_of
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from tampering import is_true, outcome_of, parts_of

import mace
from mace.certify.boxes.cover import Box, check_cover
from mace.certify.boxes.neighbours import DataRows, NeighbourSet
from mace.certify.boxes.ranges import Piece, Span
from mace.certify.verdict import Refuted
from mace.cli.main import run
from mace.problem import Problem
from mace.space import Point, grid_values

# ---- that boxes leave out no row with enough neighbours

GAPS = mace.FeatureSpace(
    {
        "a": mace.integer(0, 3),
        "b": mace.real(0, 1, step=0.5, missing=True),
        "c": mace.ordinal(["low", "mid", "high"]),
        "d": mace.categorical(["x", "y", "z", math.nan]),
    }
)
NORMS: list[Any] = ["l0", "l1", "l2", "linf", mace.Distance(l0=0.2, l1=0.5, linf=0.3, weights={"a": 3.0})]


def gaps_points() -> list[Point]:
    return list(itertools.product(*([*grid_values(each), *([None] if each.missing else [])] for each in GAPS.values())))


@cache
def gaps_explainer() -> mace.Explainer:
    points = gaps_points()
    model = make_pipeline(mace.Encoder(GAPS), HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2))
    return mace.Explainer(model.fit(GAPS.frame_of(points), [point[0] > 1 for point in points]), GAPS)


def near_problem(seed: int) -> tuple[Problem, Fraction | None]:
    """Return a question with one or two ``near_data`` and perhaps a rule, and a bound up to which boxes must cover it."""
    rng = np.random.default_rng(seed)
    points = gaps_points()

    def some(count: int) -> pd.DataFrame:
        return pd.DataFrame([GAPS.values_of(points[int(rng.integers(len(points)))]) for _ in range(count)])

    explainer = gaps_explainer()
    distance = NORMS[int(rng.integers(len(NORMS)))]
    constraints: list[Any] = []
    for _ in range(1 + (seed % 4 == 0)):
        count = int(rng.integers(1, 9))
        norm = distance if rng.random() < 0.6 else NORMS[int(rng.integers(len(NORMS)))]
        radius = float(rng.choice([0.0, 0.125, 0.25, 1 / 3, 0.5, 0.75]))
        constraints.append(mace.near_data(some(count), int(rng.integers(1, min(count, 3) + 1)), radius, norm))
    if seed % 3 == 0:
        constraints.append(mace.rule("at most 2 features change"))
    row = GAPS.values_of(points[int(rng.integers(len(points)))])
    problem = problem_of(explainer, row, {"distance": distance, "constraints": constraints})
    lower = None if rng.random() < 0.2 else Fraction(float(rng.choice([0.25, 0.375, 0.5, 0.8, 1.0])))
    return problem, lower


def must_be_covered(problem: Problem, lower: Fraction | None) -> list[Point]:
    power = problem.metric.power
    return [
        point
        for point in gaps_points()
        if (lower is None or problem.metric.measure(point) < lower**power) and problem.is_plausible(point)
    ]


def around(points: list[Point]) -> Box:
    """Return the smallest box with some points."""
    spans = []
    for feature, values in zip(GAPS.values(), zip(*points, strict=True), strict=True):
        known = [value for value in values if value is not None]
        if hasattr(feature, "levels"):
            spans.append(Span(1.0, 0.0, frozenset(known), False, None in values))
        else:
            low, high = (min(known), max(known)) if known else (1.0, 0.0)
            spans.append(Span(low, high, None, isinstance(feature, type(GAPS["a"])), None in values))
    return tuple(spans)


def is_covered(problem: Problem, lower: Fraction | None, boxes: list[Box]) -> bool:
    try:
        check_cover(problem, lower, boxes)
    except Refuted as refuted:
        assert "lie in no box" in str(refuted)  # noqa: PT017
        return False
    return True


def disagreements(seeds: range) -> tuple[int, int, int]:
    """Return how often the cover and brute force differ, and how many questions had nothing, and something, to cover."""
    wrong = nothing = something = 0
    for seed in seeds:
        problem, lower = near_problem(seed)
        rng = np.random.default_rng([seed, 1])
        inside = must_be_covered(problem, lower)
        nothing, something = nothing + (not inside), something + bool(inside)
        wrong += is_covered(problem, lower, []) != (not inside)
        if inside:
            order = rng.permutation(len(inside))
            parts = [[inside[i] for i in part] for part in np.array_split(order, min(3, len(inside)))]
            wrong += not is_covered(problem, lower, [around(part) for part in parts])
            # One row alone is left out of every box.
            lone, rest = inside[int(order[0])], [inside[i] for i in order[1:]]
            wrong += is_covered(problem, lower, [around([point]) for point in rest if point != lone])
    return wrong, nothing, something


@pytest.mark.slow
def test_boxes_cover_exactly_the_rows_with_enough_neighbours() -> None:
    wrong, nothing, something = disagreements(range(40))
    assert wrong == 0
    assert nothing >= 8
    assert something >= 8


def _one_too_few(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: DataRows, piece: Piece, crowd: NeighbourSet) -> Any:
        self.least += 1
        try:
            return settled(self, piece, crowd)
        finally:
            self.least -= 1

    return careless


def _short_of_the_radius(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: DataRows, piece: Piece, crowd: NeighbourSet) -> Any:
        limit, self.limit = self.limit, self.limit - 1000
        try:
            return settled(self, piece, crowd)
        finally:
            self.limit = limit

    return careless


def _without_the_radius(settled: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: DataRows, piece: Piece, crowd: NeighbourSet) -> Any:
        way, self.way = self.way, None if self.way is None else self.way // 2
        try:
            return settled(self, piece, crowd)
        finally:
            self.way = way

    return careless


def _within_the_radius(meet: Callable[..., Any]) -> Callable[..., Any]:
    def careless(self: DataRows, row: int, others: Any) -> Any:
        limit, self.limit = self.limit, self.limit // 2
        try:
            return meet(self, row, others)
        finally:
            self.limit = limit

    return careless


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "broken"),
    [
        ("settled", _one_too_few),
        ("settled", _short_of_the_radius),
        ("settled", _without_the_radius),
        ("_meet", _within_the_radius),
    ],
)
def test_a_checker_that_counts_rows_wrongly_is_found_out(
    step: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DataRows, step, broken(getattr(DataRows, step)))
    assert disagreements(range(20))[0] > 0


# ---- near data

NEAR_CASES = [(("forest", "linear", "network")[number % 3], *case) for number, case in enumerate([*NEAR, *NEAR[:4]])]


@pytest.mark.parametrize(("kind", "k", "radius", "norm"), NEAR_CASES)
def test_answers_near_data_are_proved(kind: str, k: int, radius: float, norm: str) -> None:
    explainer = explainer_of(kind)
    constraint = mace.near_data(frame_of(11, 25), k=k, radius=radius, distance=norm)
    (row,) = rows_of(explainer, 0, 1)
    for distance, more in (("l1", []), (norm, ["at most 2 features change"])):
        answer = explainer.explain(row, target=1, constraints=[constraint, *more], distance=distance, certify=True)
        proof = proof_of(answer)
        assert proof.evidence["lane"] == "boxes"
        assert str(mace.verify(proof, explainer.model)) == "valid"
        assert is_true(proof, explainer.model)


@pytest.mark.slow
def test_diverse_answers_near_data_are_proved() -> None:
    for kind in ("forest", "network"):
        explainer = explainer_of(kind)
        (row,) = rows_of(explainer, 0, 1)
        near = mace.near_data(frame_of(5, 30), k=2, radius=0.1)
        question = {"target": 1, "constraints": [near, "a + b <= 6"], "count": 3, "diversity": mace.differ()}
        answer = explainer.explain(row, **question, certify=True)
        assert len(answer) == 3
        for each in answer:
            assert each.certificate is not None
            assert str(mace.verify(each.certificate, explainer.model)) == "valid"


@pytest.mark.slow
def test_missing_values_near_data_are_proved() -> None:
    space = mace.FeatureSpace(
        {"a": mace.real(0, 10), "b": mace.real(0, 10, missing=True), "c": mace.categorical(["p", "q"])}
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.uniform(0, 10, 300),
            "b": np.where(rng.random(300) < 0.3, np.nan, rng.uniform(0, 10, 300)),
            "c": rng.choice(["p", "q"], 300),
        }
    )
    labels = frame.a + frame.b.fillna(3) + 2 * (frame.c == "q") > 12
    model = make_pipeline(mace.Encoder(space), HistGradientBoostingClassifier(max_iter=8, max_depth=3))
    explainer = mace.Explainer(model.fit(frame, labels), space)
    for number, row in enumerate(row for row in frame.to_dict("records") if not explainer.predict(row)):
        if number == 4:
            break
        near = mace.near_data(frame[labels].iloc[:60], k=1 + number % 2, radius=0.04)
        answer = explainer.explain(row, target=True, constraints=[near], certify=True)
        assert answer.status == "optimal"
        assert str(mace.verify(proof_of(answer), model)) == "valid"


# ---- all kinds of questions


@pytest.mark.parametrize("seed", [*range(10), 18])
def test_every_certificate_is_valid_and_every_claim_what_brute_force_finds(seed: int) -> None:
    assert fault_of(random_realistic(seed)) == ("valid", None)


@pytest.mark.slow
def test_what_makes_a_claim_false_is_refuted() -> None:
    refuted: dict[str, int] = {}
    for seed in range(1007, 1014):
        found, fault = tampered_fault(random_realistic(seed), seed)
        assert fault is None
        refuted = {name: refuted.get(name, 0) + count for name, count in found.items()}
    # A row less leaves most claims true, and near no rows there is mostly nothing either.
    assert all(count for name, count in refuted.items() if name not in ("dropped_row", "forgotten_rows")), refuted


# ---- typical rows


def usual_question(kind: str = "forest", **more: Any) -> tuple[mace.Explainer, Any, mace.Certificate]:
    explainer, forest = explainer_of(kind), outlier_forest(1)
    row = rows_of(explainer, 0, 2)[1]
    answer = explainer.explain(row, target=1, constraints=[mace.typical(forest)], certify=True, **more)
    return explainer, forest, proof_of(answer)


def test_the_forest_is_found_by_its_fingerprint() -> None:
    explainer, forest, proof = usual_question()
    stated = proof.statement["constraints"][0]
    assert stated["kind"] == "typical"
    assert stated["arguments"][0]["shown"] == "typical(an isolation forest)"
    others = [outlier_forest(2), explainer.model]
    assert mace.verify(proof, explainer.model, forests=[*others, forest]).valid
    assert mace.verify(proof, explainer.model, forests=[mace.typical(forest)]).valid
    lacking = mace.verify(proof, explainer.model)
    assert lacking.outcome == "unchecked"
    assert "forests=[...]" in lacking.reason
    swapped = mace.verify(proof, explainer.model, forests=others)
    assert swapped.outcome == "refuted"
    assert "another isolation forest" in swapped.reason


@pytest.mark.slow
def test_a_forest_with_another_quantile_is_another_forest() -> None:
    explainer, frame = explainer_of("forest"), frame_of(3)
    made = mace.typical(frame, 0.3)
    (row,) = rows_of(explainer, 0, 1)
    proof = proof_of(explainer.explain(row, target=1, constraints=[made], certify=True))
    assert proof.statement["constraints"][0]["arguments"][0]["shown"] == "typical(a frame, quantile=0.3)"
    saved = pickle.loads(pickle.dumps(made.fitted(SPACE)))
    for given in (made, saved, mace.typical(frame, 0.3)):
        assert mace.verify(proof, explainer.model, forests=[given]).valid
    assert mace.verify(proof, explainer.model, forests=[mace.typical(frame, 0.2)]).outcome == "refuted"


@pytest.mark.parametrize("solver", ["enumerate", "milp", "smt"])
def test_the_other_lanes_prove_what_is_typical(solver: str) -> None:
    forest = outlier_forest(1, n_estimators=3, max_samples=10)
    explainer = explainer_of("function" if solver == "milp" else "linear")
    row = rows_of(explainer, 0, 3)[2]
    answer = explainer.explain(row, target=1, constraints=[mace.typical(forest)], certify=True, solver=solver)
    proof = proof_of(answer)
    assert proof.evidence["lane"] == solver
    assert str(mace.verify(proof, explainer.model, forests=[forest])) == "valid"
    assert is_true(proof, explainer.model, [forest])


def test_a_fingerprint_that_is_none_is_unreadable() -> None:
    explainer, forest, proof = usual_question()
    for damaged in (
        {},
        {"form": 1, "parameters": "p", "shown": "s"},
        {"form": "f" * 999, "parameters": "p", "shown": "s"},
    ):
        data = parts_of(proof)
        data["statement"]["constraints"][0]["arguments"] = [damaged]
        assert outcome_of(data, explainer.model, [forest])[0] == "unreadable"
    data["statement"]["constraints"][0]["arguments"] = [{"form": "f", "parameters": "p", "shown": "s"}]
    assert outcome_of(data, explainer.model, [forest])[0] == "refuted"
    with pytest.raises(mace.InvalidConstraint, match="only its fingerprint is known"):
        mace.typical({"form": "f", "parameters": "p", "shown": "s"}).fitted(SPACE)


@pytest.mark.parametrize("forest", [-1, 1, "0", True, 1.0])
def test_a_box_about_no_forest_is_refuted(forest: Any) -> None:
    explainer, real, proof = usual_question("linear")
    data = parts_of(proof)
    assert data["evidence"]["boxes"]
    for box in data["evidence"]["boxes"]:
        box["forest"] = forest
    assert outcome_of(data, explainer.model, [real])[0] == "refuted"


def test_a_batch_with_typical_keeps_a_checkpoint(tmp_path: Path) -> None:
    explainer = explainer_of("forest")
    frame, path = frame_of(7).iloc[:6], tmp_path / "answers.jsonl"
    options: dict[str, Any] = {"target": 1, "checkpoint": path}
    first = explainer.explain_many(frame, constraints=[mace.typical(outlier_forest(1))], **options)
    again = explainer.explain_many(frame, constraints=[mace.typical(outlier_forest(1))], **options)
    assert [each.status for each in again] == [each.status for each in first]
    with pytest.raises(mace.InvalidOption, match="checkpoint"):
        explainer.explain_many(frame, constraints=[mace.typical(outlier_forest(2))], **options)


def test_the_command_line_takes_the_forest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from skops import io

    explainer, forest, proof = usual_question("linear")
    proof.save(tmp_path / "c.json")
    io.dump(explainer.model, tmp_path / "model.skops")
    for name, each in (("forest", forest), ("other", outlier_forest(2))):
        io.dump(each, tmp_path / f"{name}.skops")
    command = ["verify", str(tmp_path / "c.json"), "--model", str(tmp_path / "model.skops")]
    files = {name: ["--forest", str(tmp_path / f"{name}.skops")] for name in ("forest", "other")}
    assert run([*command, *files["other"], *files["forest"]]) == 0
    assert run([*command, *files["other"]]) == 1
    assert run(command) == 3
    assert "forests=[...]" in capsys.readouterr().out


def test_a_row_near_data_without_a_value_is_unreadable() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    answer = explainer.explain(row, target=1, constraints=[mace.near_data(frame_of(5, 12), 2, 0.12)], certify=True)
    certificate = answer[0].certificate
    assert certificate is not None
    damaged = certificate.to_dict()
    damaged["statement"]["constraints"][0]["arguments"][0]["rows"][0].pop()
    with pytest.raises(mace.InvalidCertificate, match="one value for each of 4 columns"):
        mace.verify(damaged, explainer.model)

"""Certificates of linear models and networks behind imputers: a proof for each way of being missing, found by the checker itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from certified_networks import place, small
from gaps import FILLERS, SPACE, fitted, gap_filler, random_gaps, split
from random_problems import Case
from sklearn.linear_model import LogisticRegression
from tampering import REFUTED, TRUE_OR_REFUSED, Data, Tampering, every_point, is_true, parts_of

import mace
from mace import FeatureSpace, integer, real
from mace.certify.network import checker
from mace.certify.network import missing as gaps
from mace.certify.network.ball import Field, make_ball
from mace.certify.network.relaxation import BoxRelaxation
from mace.certify.statement import Statement
from mace.certify.verdict import Refuted
from mace.distances import NormMetric
from mace.forms import Network
from mace.problem import Bounds, Limits, Problem
from mace.solvers import network
from mace.space import Column

VALID = mace.Verdict("valid")


def certificates(case: Case) -> Iterator[mace.Certificate]:
    """Yield the certificates of a question, read back from text."""
    explanation = mace.Explainer(case.model, case.space).explain(
        case.row, solver="network", certify=True, **{"diversity": mace.differ(), **case.question}
    )
    for certificate in [*(answer.certificate for answer in explanation), explanation.certificate]:
        if certificate is not None:
            yield mace.Certificate.from_json(certificate.to_json())


@pytest.mark.parametrize("finite", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_certificates_of_models_that_fill_gaps_are_valid(seed: int, finite: bool) -> None:
    case = random_gaps(seed, finite=finite)
    for certificate in certificates(case):
        assert certificate.evidence["lane"] == "network"
        assert mace.verify(certificate, case.model) == VALID
        if finite:
            assert is_true(certificate, case.model)


@dataclass(frozen=True)
class Honest:
    """A certificate whose proof has several ways of being missing, and its question over a finite space."""

    problem: Problem
    certificate: mace.Certificate

    def outcome(self, claim: Data, evidence: Data) -> tuple[str, str]:
        """Return what becomes of a claim with some evidence."""
        lower = claim["lower"]
        try:
            checker.check(self.problem, None if lower is None else Fraction(lower), evidence, lambda share: None)
        except Refuted as refused:
            return REFUTED, str(refused)
        return "valid", ""

    def is_true(self, claim: Data) -> bool:
        """Return whether nothing is nearer than a claim says, by looking at every point."""
        lower = claim["lower"]
        nearer = [
            point
            for point in every_point(self.problem)
            if (lower is None or self.problem.distance(point) < Fraction(lower)) and self.problem.is_plausible(point)
        ]
        return not nearer or not any(map(self.problem.goal.accepts, self.problem.ask(nearer)))


@pytest.fixture(scope="module")
def honest() -> list[Honest]:
    """Certificates on finite spaces, where brute force can tell what is true."""
    found = []
    for seed in range(16):
        case = random_gaps(seed, finite=True)
        several = [each for each in certificates(case) if len(each.evidence.get("ways", ())) > 1]
        found += [Honest(Statement.from_dict(each.statement).problem(case.model)[0], each) for each in several]
    assert len(found) >= 6
    return found


def falsehoods(certificate: mace.Certificate) -> Iterator[Data]:
    """Yield claims that go beyond a certificate: a lower bound above the optimum, and that there is nothing at all."""
    if certificate.claim["upper"] is not None:
        for lower in (certificate.claim["upper"] + 1e-9, certificate.claim["upper"] + 0.3, None):
            yield {"lower": lower}


def believed(honest: list[Honest]) -> int:
    """Return how many false claims the checker believes, each with the proof of the true one and ways for all that may be missing."""
    count = 0
    for each in honest:
        evidence = parts_of(each.certificate)["evidence"]
        tree = [{"feature": np.array([-1]), "at": np.zeros(0)} for _ in evidence["ways"][0]["parts"]]
        known = {tuple(way["missing"]) for way in evidence["ways"]}
        features = range(len(each.problem.space))
        subsets = [tuple(j for j in features if bits >> j & 1) for bits in range(2 ** len(features))]
        evidence["ways"] += [{"missing": list(s), "parts": tree} for s in subsets if s not in known]
        count += sum(each.outcome(claim, evidence)[0] == "valid" for claim in falsehoods(each.certificate))
    return count


@pytest.mark.slow
def test_no_claim_beyond_the_truth_is_believed(honest: list[Honest]) -> None:
    assert believed(honest) == 0


def only_the_own_way(problem: Problem, lower: Fraction | None) -> list[frozenset[int]]:
    return [frozenset(j for j, own in enumerate(problem.factual) if own is None)]


def doubled(problem: Problem, missing: frozenset[int]) -> gaps.Part:
    """Return a part in which filling and losing values costs twice what it does."""
    part = gaps.part_of(problem, missing)
    costs = [
        each if j < len(problem.space) and j not in missing else replace(each, jump=2 * each.jump, slope=2 * each.slope)
        for j, each in enumerate(part.costs)
    ]
    return replace(part, costs=costs)


def without_stand_ins(problem: Problem, missing: frozenset[int]) -> gaps.Part:
    """Return a part in which the model is given nothing for a missing value."""
    part = gaps.part_of(problem, missing)
    columns = tuple(replace(c, table=(0.0, 0.0)) if c.feature in missing else c for c in part.form.columns)
    return replace(part, form=replace(part.form, columns=columns))


@pytest.mark.parametrize(
    ("name", "broken"), [("ways", only_the_own_way), ("part_of", doubled), ("part_of", without_stand_ins)]
)
def test_a_checker_broken_on_purpose_is_caught(
    name: str, broken: Any, honest: list[Honest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker, name, broken)
    assert believed(honest) > 0


# ---- tampering


def a_way_left_out(data: Data, rng: np.random.Generator) -> Data | None:
    ways = data["evidence"]["ways"]
    ways.pop(int(rng.integers(len(ways))))
    return data


def a_way_twice(data: Data, rng: np.random.Generator) -> Data | None:
    ways = data["evidence"]["ways"]
    ways.append(ways[0])
    return data


def ways_exchanged(data: Data, rng: np.random.Generator) -> Data | None:
    first, second = data["evidence"]["ways"][:2]
    first["missing"], second["missing"] = second["missing"], first["missing"]
    return data


def trees_of_a_way_lost(data: Data, rng: np.random.Generator) -> Data | None:
    data["evidence"]["ways"][0]["parts"] = data["evidence"]["ways"][0]["parts"][:-1]
    return data


def a_feature_that_there_is_not(data: Data, rng: np.random.Generator) -> Data | None:
    data["evidence"]["ways"][0]["missing"] = [99]
    return data


def ways_of_another_type(data: Data, rng: np.random.Generator) -> Data | None:
    data["evidence"]["ways"] = [None, 3, [None], [[1]], {"missing": []}, [{"missing": "a"}]][int(rng.integers(6))]
    return data


def no_ways(data: Data, rng: np.random.Generator) -> Data | None:
    data["evidence"] = {"lane": "network", "parts": data["evidence"]["ways"][0]["parts"]}
    return data


WAYS = [
    Tampering("a way left out", REFUTED, a_way_left_out, "missing"),
    Tampering("a way twice", REFUTED, a_way_twice, "stands twice"),
    Tampering("ways exchanged", TRUE_OR_REFUSED, ways_exchanged),
    Tampering("trees of a way lost", REFUTED, trees_of_a_way_lost, "each needs a tree"),
    Tampering("a feature that there is not", REFUTED, a_feature_that_there_is_not, "positions of features"),
    Tampering("ways of another type", REFUTED, ways_of_another_type, "evidence.ways"),
    Tampering("no ways", REFUTED, no_ways, "evidence.ways"),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_tampering_is_refused_with_a_reason_that_names_it(way: Tampering, honest: list[Honest]) -> None:
    rng = np.random.default_rng(3)
    for each in honest:
        data = parts_of(each.certificate)
        changed = way.change(data, rng)
        assert isinstance(changed, dict)
        outcome, reason = each.outcome(changed["claim"], changed["evidence"])
        if way.kind == REFUTED:
            # A way that the solver wrote to be on the safe side is not asked for.
            assert outcome == REFUTED or way.change is a_way_left_out, (outcome, reason)
            assert outcome == "valid" or way.words in reason
        assert outcome != "valid" or each.is_true(changed["claim"])


# ---- ways


@pytest.mark.parametrize("seed", range(8))
def test_the_ways_are_those_in_which_some_row_is_near_enough(seed: int) -> None:
    case = random_gaps(seed, finite=True)
    certificate = next(certificates(case))
    problem = replace(Statement.from_dict(certificate.statement).problem(case.model)[0], conditions=())
    near: dict[frozenset[int], Fraction] = {}
    for point in every_point(problem):
        way = frozenset(j for j, value in enumerate(point) if value is None)
        measure = problem.metric.measure(point)
        near[way] = min(near.get(way, measure), measure)
    for lower in (None, Fraction(1, 7), *sorted(set(near.values()))):
        expected = {way for way, least in near.items() if lower is None or least < lower**problem.metric.power}
        assert set(gaps.ways(problem, lower)) == expected


@pytest.mark.slow
def test_costs_along_the_axes_of_a_way_are_those_of_the_distance() -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        case = random_gaps(seed, finite=False)
        certificate = next(certificates(case))
        problem, _ = Statement.from_dict(certificate.statement).problem(case.model)
        assert isinstance(problem.metric, NormMetric)
        for missing in gaps.ways(problem, None):
            part = gaps.part_of(problem, missing)
            if any(not len(axis.spans) for axis in part.axes):
                continue
            places = np.array([place(rng, axis) for axis in part.axes])
            point = part.point(problem, places)
            ball = make_ball(problem.metric, part.axes, Fraction(3), part.costs)
            field = Field(part.axes, ball)
            view = field.view(places[None], places[None])
            assert view.is_open[0]
            assert abs(ball.radius - view.left[0] - float(problem.metric.measure(point))) < 1e-9
            units = BoxRelaxation(part.form, field, problem.goal.slack).units(view)
            scores = problem.form.exact_scores(point)  # type: ignore[union-attr]
            if len(part.form.weights) == 1:
                assert np.allclose(units.begin[0], [float(score) for score in scores], rtol=1e-12, atol=1e-12)


def test_conditions_across_features_that_may_be_missing_are_proved_by_boxes() -> None:
    model, frame = fitted(split(FILLERS["median and flags, robust"]), LogisticRegression(max_iter=500))
    explainer = mace.Explainer(model, SPACE)
    rule = mace.linear({"a": 1, "z": 1}, "<=", 14)
    lanes = set()
    for position in (0, 2, 5, 9):
        explanation = explainer.explain(
            frame.iloc[[position]], constraints=[rule], accuracy=1e-3, time_limit=20, certify=True
        )
        certificate = explanation[0].certificate
        assert certificate is not None
        lanes.add(certificate.evidence["lane"])
        assert mace.verify(certificate, model) == VALID
    assert "boxes" in lanes


def test_a_value_that_must_be_filled_and_one_that_must_go() -> None:
    model = gap_filler()
    space = FeatureSpace({"a": real(0, 10, missing=True), "z": real(-3, 5)})
    explainer = mace.Explainer(model, space)
    for row, constraints in (
        ({"a": None, "z": 0.0}, [mace.within("a", 2, 3)]),
        ({"a": 4.0, "z": 0.0}, []),
        ({"a": 4.0, "z": 0.0}, [mace.fixed("a")]),
    ):
        explanation = explainer.explain(row, constraints=constraints, certify=True)
        certificate = explanation[0].certificate if explanation else explanation.certificate
        assert certificate is not None
        assert mace.verify(certificate, model) == VALID


def test_a_gap_that_must_stay_and_a_value_that_must_not_go_need_no_proof_of_other_ways() -> None:
    model, frame = fitted(split(FILLERS["mean, standard"]), LogisticRegression(max_iter=500))
    row = frame[frame["a"].isna() & frame["b"].notna()].iloc[[0]]
    explanation = mace.Explainer(model, SPACE).explain(
        row, constraints=[mace.fixed("a"), mace.fixed("b")], certify=True, distance="l0"
    )
    certificate = explanation[0].certificate if explanation else explanation.certificate
    assert certificate is not None
    assert [way["missing"] for way in certificate.evidence["ways"]] == [[0]]
    assert mace.verify(certificate, model) == VALID


def test_where_nothing_is_read_for_a_missing_value_the_proof_is_refused() -> None:
    space = FeatureSpace({"x": integer(0, 5, missing=True)})
    form = Network(space, (Column("x", 0, None),), (np.array([[1.0]]),), (np.array([-3.0]),))
    tree = [{"feature": np.array([-1]), "at": np.zeros(0)}]
    ways = [{"missing": [], "parts": tree}, {"missing": [0], "parts": tree}]
    problem = small(form, (0,), 1)
    with pytest.raises(Refuted, match="not read where"):
        checker.check(problem, None, {"lane": "network", "ways": ways}, lambda share: None)
    with pytest.raises(Refuted, match="values may be missing"):
        checker.check(problem, None, {"lane": "network", "parts": tree}, lambda share: None)


def test_a_deadline_leaves_a_proof_or_says_that_there_is_none() -> None:
    case = random_gaps(3, finite=False)
    problem, _ = Statement.from_dict(next(certificates(case)).statement).problem(case.model)
    network.prepare()
    bounds: Bounds = network.solve(problem, Limits.of(1e-9, record=True))
    evidence = bounds.evidence
    assert evidence is None or "missing" in evidence or bounds.reason == ""

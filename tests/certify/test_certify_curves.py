"""Certificates of means of sigmoids: polylines that are shown to lie beside them, and the proof of another lane about what they make."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pipeline_cases import training
from random_composites import random_composite
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from small_composites import GRID, SPACE, draw, fitted
from tampering import REFUTED, Data, every_point, is_true, parts_of

import mace
from mace import FeatureSpace, categorical, integer, real
from mace.certify.curves import checker as curves
from mace.certify.curves.polylines import as_network
from mace.certify.curves.sigmoid import ExactLine, is_above, is_below, sigmoid_between
from mace.certify.statement import Statement
from mace.certify.verdict import Refuted, Unchecked
from mace.forms import Composite, Curved, Network, Polyline, Weighted
from mace.forms.form import box_at
from mace.forms.polyline import above_sigmoid, below_sigmoid
from mace.models import read
from mace.problem import Problem

VALID = mace.Verdict("valid")
CURVED = ["calibrated svcs", "bagged logistics", "soft votes, one an mlp", "soft votes, one a forest"]


# ---- the sigmoid


def summed_exponential(z: Fraction, terms: int = 90) -> Fraction:
    """Return exp(z) of a number of at most 4, by its series; what is left out is below 1e-60."""
    total = term = Fraction(1)
    for k in range(1, terms):
        term = term * z / k
        total += term
    return total


def test_the_sigmoid_lies_between_its_bounds() -> None:
    rng = np.random.default_rng(0)
    for z in [0.0, *rng.uniform(-4, 4, 30).tolist(), 5e-324, -1e-300]:
        low, high = sigmoid_between(z)
        truth = 1 / (1 + summed_exponential(-Fraction(z)))
        assert low - Fraction(1, 10**55) <= truth <= high + Fraction(1, 10**55)
        assert high - low < Fraction(1, 10**48)
    for z in (-1e300, -2001.0, -1999.0, 1999.0, 2001.0, 1e300):
        low, high = sigmoid_between(z)
        assert 0 <= low < high <= 1


def exact(line: Polyline) -> ExactLine:
    return ExactLine(line.knots, tuple(map(Fraction, line.heights)))


def random_range(rng: np.random.Generator) -> tuple[float, float, list[float]]:
    low, high = np.sort(rng.normal(0, rng.choice([0.3, 3, 30, 300]), 2)).tolist()
    touching = rng.uniform(low, high, int(rng.integers(0, 12))).tolist()
    return low, high, touching + [z + 1e-7 for z in touching[:2]]


def test_the_polylines_of_the_lane_are_found_to_lie_beside_the_sigmoid() -> None:
    rng = np.random.default_rng(1)
    for _ in range(150):
        low, high, touching = random_range(rng)
        assert is_above(exact(above_sigmoid(touching, low, high)), low, high)
        assert is_below(exact(below_sigmoid(touching, low, high)), low, high)


def test_no_line_that_is_found_above_the_sigmoid_crosses_it() -> None:
    """Lines that are moved a little at random: what is accepted is above the sigmoid wherever we look, and both happen."""
    rng = np.random.default_rng(2)
    accepted = refused = 0
    for _ in range(300):
        low, high, touching = random_range(rng)
        line = exact(above_sigmoid(touching, low, high))
        moved = rng.normal(0, 10.0 ** rng.integers(-14, -1), len(line.knots)) * (rng.random(len(line.knots)) < 0.3)
        shifted = ExactLine(line.knots, tuple(h + Fraction(float(m)) for h, m in zip(line.heights, moved, strict=True)))
        looked = [low, high, *(k for k in line.knots if low <= k <= high), *rng.uniform(low, high, 20).tolist()]
        is_crossed = any(shifted.value(z) < sigmoid_between(z)[0] for z in looked)
        is_accepted = is_above(shifted, low, high)
        assert not (is_accepted and is_crossed)
        accepted += is_accepted
        refused += not is_accepted
        assert is_below(shifted.mirrored(), -high, -low) == is_accepted
    assert accepted > 50
    assert refused > 50


# ---- the network of polylines


@pytest.mark.parametrize("name", ["bagged logistics", "soft votes, one an mlp", "isotonic svcs"])
def test_the_network_lies_beside_the_models_with_polylines(name: str) -> None:
    model, _ = fitted(name)
    form = read(model, SPACE).form
    assert isinstance(form, Composite)
    rng = np.random.default_rng(3)
    points = [draw(SPACE, rng) for _ in range(25)]
    box = tuple(
        (min(low for low, _ in ends), max(high for _, high in ends))
        for ends in zip(*(box_at(point) for point in points), strict=True)
    )
    parts: list[Any] = []
    for part in form.parts:
        if isinstance(part, Curved):
            low, high = (float(end[0]) for end in part.form.score_bounds(box))
            curve = part.curve or above_sigmoid(rng.uniform(low, high, 5).tolist(), low, high)
            parts.append(Curved(part.form, curve, np.repeat(part.factors, 2)))
            parts.append(Weighted(part.form, np.array([[0.125], [0.125]])))
        else:
            assert isinstance(part, Weighted)
            parts.append(Weighted(part.form, np.repeat(part.factors, 2, axis=0)))
    whole = Composite(SPACE, tuple(parts), np.repeat(form.base, 2))
    made = as_network(whole, (1, -1), box)
    assert isinstance(made, Network)
    for point in points:
        larger, smaller = made.exact_scores(point)
        truth = whole.exact_scores(point)
        assert truth[0] <= larger <= truth[0] + Fraction(1, 10**12)
        assert truth[1] - Fraction(1, 10**12) <= smaller <= truth[1]


# ---- honest answers


RANGE = {"distance": "linf", "target": mace.between(0.45, 0.55, "yes")}


@pytest.mark.parametrize(
    ("name", "question"), [*((name, {"distance": "l1"}) for name in CURVED), *((name, RANGE) for name in CURVED[1:3])]
)
def test_certificates_of_means_of_sigmoids_are_valid(name: str, question: dict[str, Any]) -> None:
    model, frame = fitted(name)
    explanation = mace.Explainer(model, SPACE).explain(
        frame.iloc[1], certify=True, count=2, diversity=mace.differ(), constraints=[mace.fixed("n")], **question
    )
    found = [*(answer.certificate for answer in explanation), explanation.certificate]
    assert any(found)
    for certificate in found:
        if certificate is not None:
            assert certificate.evidence["lane"] == "curves"
            assert mace.verify(mace.Certificate.from_json(certificate.to_json()), model) == VALID


@pytest.mark.parametrize("seed", range(10))
def test_certificates_of_random_composites_are_valid_and_true(seed: int) -> None:
    case = random_composite(seed, finite=seed % 2 == 0)
    if case is None:
        return
    explanation = mace.Explainer(case.model, case.space).explain(case.row, certify=True, **case.question)
    for certificate in [*(answer.certificate for answer in explanation), explanation.certificate]:
        if certificate is not None:
            assert mace.verify(certificate, case.model) == VALID
            assert seed % 2 or is_true(certificate, case.model)


def test_conditions_across_features_and_l2_are_proved_too() -> None:
    model, frame = fitted("bagged logistics")
    explainer = mace.Explainer(model, SPACE)
    for question in (
        {"constraints": [mace.either(mace.fixed("x"), mace.fixed("y"))]},
        {"distance": "l2", "constraints": [mace.linear({"x": 1, "y": 1}, "<=", 2)]},
    ):
        certificate = explainer.explain(frame.iloc[4], certify=True, **question)[0].certificate
        assert certificate is not None
        assert certificate.evidence["lane"] == "curves"
        assert mace.verify(certificate, model) == VALID


@pytest.mark.slow
def test_calibrated_models_that_fill_gaps_are_proved() -> None:
    space = FeatureSpace(
        {"a": real(0, 2, missing=True), "b": integer(0, 4, missing=True), "c": categorical(["u", "v"])}
    )
    frame, labels = training(space)
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    before = ColumnTransformer([("numbers", numbers, ["a", "b"]), ("levels", OneHotEncoder(), ["c"])])
    model = CalibratedClassifierCV(make_pipeline(before, LogisticRegression()), cv=3)
    model.fit(frame, np.where(labels == "no", "no", "yes"))
    for position in (3,):
        certificate = mace.Explainer(model, space).explain(frame.iloc[[position]], certify=True)[0].certificate
        assert certificate is not None
        assert certificate.evidence["lane"] == "curves"
        assert mace.verify(certificate, model) == VALID


def test_a_deadline_leaves_a_proof_or_says_that_there_is_none() -> None:
    model, frame = fitted("bagged logistics")
    explanation = mace.Explainer(model, SPACE).explain(frame.iloc[0], certify=True, time_limit=0.05)
    for certificate in [*(answer.certificate for answer in explanation), explanation.certificate]:
        assert certificate is None or mace.verify(certificate, model).outcome in ("valid", "unchecked")


# ---- false claims


@dataclass(frozen=True)
class Honest:
    """A certificate, and its question over a finite space."""

    problem: Problem
    certificate: mace.Certificate

    def outcome(self, lower: float | None, evidence: Data) -> tuple[str, str]:
        """Return what becomes of a claim with some evidence."""
        try:
            curves.check(self.problem, None if lower is None else Fraction(lower), evidence, lambda share: None)
        except (Refuted, Unchecked) as found:
            return type(found).__name__.lower(), str(found)
        return "valid", ""

    def is_true(self, lower: float | None) -> bool:
        """Return whether nothing is nearer, by looking at every point."""
        nearer = [
            point
            for point in every_point(self.problem)
            if (lower is None or self.problem.distance(point) < Fraction(lower)) and self.problem.is_plausible(point)
        ]
        return not nearer or not any(map(self.problem.goal.accepts, self.problem.ask(nearer)))

    def evidence(self) -> Data:
        """Return the evidence, to be changed."""
        return copy.deepcopy(parts_of(self.certificate)["evidence"])


@pytest.fixture(scope="module")
def honest() -> list[Honest]:
    found = []
    for name in CURVED[:3]:
        model, _ = fitted(name)
        for row in (2, 6):
            values = GRID.values_of((0.5 * (row - 3), row, row % 3, -0.5))
            certificate = mace.Explainer(model, GRID).explain(values, certify=True)[0].certificate
            assert certificate is not None
            found.append(Honest(Statement.from_dict(certificate.statement).problem(model)[0], certificate))
    return found


def widened(evidence: Data, by: float = 0.0, knots: int = 33) -> Data:
    """Return evidence with fine (or coarse) polylines for all scores there are, moved by so much to the wrong side."""
    touching = np.linspace(-8, 8, knots).tolist()
    sides = {"above": (above_sigmoid(touching, -90, 90), -by), "below": (below_sigmoid(touching, -90, 90), by)}
    curve = {
        side: {"knots": np.array(line.knots), "heights": np.array(line.heights) + moved}
        for side, (line, moved) in sides.items()
    }
    return evidence | {"curves": [copy.deepcopy(curve) for _ in evidence["curves"]]}


def believed(honest: list[Honest], by: float, knots: int = 33) -> int:
    """Return how many false claims the checker believes, with polylines that are moved to the wrong side."""
    return sum(
        each.outcome(lower, widened(each.evidence(), by, knots))[0] == "valid"
        for each in honest
        for lower in (each.certificate.claim["upper"] + 1e-9, each.certificate.claim["upper"] + 0.02)
    )


@pytest.mark.slow
def test_fine_polylines_of_ones_own_do_as_well(honest: list[Honest]) -> None:
    for each in honest:
        assert each.outcome(0.9 * each.certificate.claim["lower"], widened(each.evidence())) == ("valid", "")


@pytest.mark.parametrize("by", [0.0, 1e-12, 1e-3, 0.2])
def test_no_claim_beyond_the_truth_is_believed(honest: list[Honest], by: float) -> None:
    assert believed(honest, by) == 0


def test_a_checker_that_does_not_look_at_the_polylines_is_caught(
    honest: list[Honest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curves, "is_above", lambda line, low, high: True)
    monkeypatch.setattr(curves, "is_below", lambda line, low, high: True)
    assert believed(honest, 0.2) > 0


def test_a_checker_that_exchanges_larger_and_smaller_is_caught(
    honest: list[Honest], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchanged(problem: Problem, form: Composite, box: Any) -> Any:
        stated, sides = stated_rightly(problem, form, box)
        return stated, tuple(-side for side in sides)

    stated_rightly = curves._stated
    monkeypatch.setattr(curves, "_stated", exchanged)
    assert believed(honest, 0.0, knots=0) > 0


# ---- tampering


def lines(evidence: Data) -> Iterator[Data]:
    for curve in evidence["curves"]:
        yield from curve.values()


def a_knot_below_the_sigmoid(evidence: Data, rng: np.random.Generator) -> None:
    line = next(iter(evidence["curves"][0].items()))
    at = len(line[1]["heights"]) // 2
    line[1]["heights"][at] += -1e-6 if line[0] == "above" else 1e-6


def knots_moved(evidence: Data, rng: np.random.Generator) -> None:
    for side, line in evidence["curves"][0].items():
        line["knots"] = line["knots"] + (0.01 if side == "above" else -0.01)


def knots_out_of_order(evidence: Data, rng: np.random.Generator) -> None:
    for line in lines(evidence):
        line["knots"] = line["knots"][::-1].copy()


def a_height_lost(evidence: Data, rng: np.random.Generator) -> None:
    for line in lines(evidence):
        line["heights"] = line["heights"][:-1]


def an_end_lost(evidence: Data, rng: np.random.Generator) -> None:
    for side, line in evidence["curves"][0].items():
        kept = slice(None, 1) if side == "above" else slice(-1, None)
        line["knots"], line["heights"] = line["knots"][kept], line["heights"][kept]


def a_curve_lost(evidence: Data, rng: np.random.Generator) -> None:
    evidence["curves"].pop()


def curves_of_another_type(evidence: Data, rng: np.random.Generator) -> None:
    evidence["curves"] = [None, 3, [None] * len(evidence["curves"]), [{"above": 1}] * len(evidence["curves"])][
        int(rng.integers(4))
    ]


def no_number(evidence: Data, rng: np.random.Generator) -> None:
    for line in lines(evidence):
        line["heights"][0] = rng.choice([np.nan, np.inf])


def a_tree_lost(evidence: Data, rng: np.random.Generator) -> None:
    evidence["proof"]["parts"] = evidence["proof"]["parts"][:-1]


def rows_of_another_type(evidence: Data, rng: np.random.Generator) -> None:
    evidence["excluded"] = [3, [3], [[1.0]], [["a", 0, 0, 0.0]]][int(rng.integers(4))]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        (a_knot_below_the_sigmoid, "the sigmoid everywhere"),
        (knots_moved, "the sigmoid everywhere"),
        (an_end_lost, "the sigmoid everywhere"),
        (knots_out_of_order, "knots ascend"),
        (a_height_lost, "one height"),
        (a_curve_lost, "each needs polylines"),
        (curves_of_another_type, "evidence.curves"),
        (no_number, "finite"),
        (a_tree_lost, "needs a tree of cuts"),
        (rows_of_another_type, "evidence.excluded"),
    ],
)
def test_tampering_is_refused_with_a_reason_that_names_it(
    way: Callable[[Data, np.random.Generator], None], words: str, honest: list[Honest]
) -> None:
    rng = np.random.default_rng(4)
    for each in honest:
        evidence = each.evidence()
        way(evidence, rng)
        outcome, reason = each.outcome(each.certificate.claim["lower"], evidence)
        assert outcome == REFUTED, (outcome, reason)
        assert words in reason


def test_rows_that_the_model_accepts_cannot_be_left_out(honest: list[Honest]) -> None:
    each = honest[0]
    row = each.problem.space.point(each.certificate.claim["counterfactual"])
    evidence = widened(each.evidence()) | {"excluded": [list(row)]}
    assert "may put this row in the target" in each.outcome(each.certificate.claim["upper"] + 1e-9, evidence)[1]
    refused = each.evidence() | {"excluded": [list(each.problem.factual)]}
    assert each.outcome(each.certificate.claim["lower"], refused) == ("valid", "")


def test_a_proof_of_a_lane_without_a_checker_is_unchecked_and_one_of_another_model_refused(
    honest: list[Honest],
) -> None:
    each = honest[0]
    for proof in (None, {"lane": "trees"}, {"lane": 3}, {}):
        assert each.outcome(0.1, each.evidence() | {"proof": proof})[0] == "unchecked"
    for name, words in (("soft votes, one a forest", "not all models"), ("hard votes of linear models", "no mean")):
        model, _ = fitted(name)
        explanation = mace.Explainer(model, GRID).explain({"x": 0.5, "n": 3, "cat": "a", "y": 0.5}, certify=True)
        certificate = explanation[0].certificate
        assert certificate is not None
        problem, _ = Statement.from_dict(certificate.statement).problem(model)
        evidence = {**certificate.evidence, "lane": "curves", "proof": each.evidence()["proof"]}
        outcome, reason = Honest(problem, certificate).outcome(certificate.claim["lower"], evidence)
        assert (outcome, words in reason) == (REFUTED, True), reason


def test_whatever_is_believed_of_changed_proofs_is_true(honest: list[Honest]) -> None:
    rng = np.random.default_rng(5)
    for each in honest:
        for _ in range(6):
            evidence = each.evidence()
            for line in lines(evidence):
                line["heights"] = line["heights"] + rng.normal(0, 10.0 ** rng.integers(-12, -2), len(line["heights"]))
            lower = float(each.certificate.claim["upper"] * rng.uniform(0.5, 1.3))
            if each.outcome(lower, evidence)[0] == "valid":
                assert each.is_true(lower)

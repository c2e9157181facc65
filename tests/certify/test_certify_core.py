"""Certificates as such: what they state, how they are written and read, and what checking says without a proof."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_problems import from_source, random_case
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from tampering import outcome_of, parts_of

import mace
from mace.certify.arrays import pack
from mace.certify.certificate import DEEPEST_CERTIFICATE, Certificate
from mace.certify.statement import Statement
from mace.models import read
from mace.models.fingerprint import fingerprint

SPACE = mace.FeatureSpace(
    {"age": mace.integer(18, 90), "income": mace.real(0, 100), "home": mace.categorical(["own", "rent", "free"])}
)
ROWS = [(20 + 3 * k % 60, float(7 * k % 100), k % 3) for k in range(80)]
LABELS = np.array(["no" if age + income < 70 or home == 2 else "yes" for age, income, home in ROWS])


@pytest.fixture(scope="module")
def model() -> Any:
    encoder = mace.Encoder(SPACE)
    return make_pipeline(encoder, DecisionTreeClassifier(random_state=0)).fit(SPACE.frame_of(ROWS), LABELS)


@pytest.fixture(scope="module")
def certificate(model: Any) -> Certificate:
    row = {"age": 25, "income": 10.0, "home": "free"}
    made = mace.Explainer(model, SPACE).explain(row, constraints=[mace.fixed("age")], certify=True)[0].certificate
    assert made is not None
    return made


# ---- what is stated


@pytest.mark.parametrize("seed", range(63))
def test_a_statement_read_back_asks_the_same_question(seed: int) -> None:
    case = random_case(seed)
    try:
        explanation = mace.Explainer(case.model, case.space).explain(
            case.row, **case.question, certify=True, time_limit=5
        )
    except mace.InvalidTarget:
        return
    if explanation.status == "reached":
        return
    made = explanation[0].certificate if explanation else explanation.certificate
    assert made is not None
    stated = Statement.from_dict(json.loads(json.dumps(made.statement)))
    assert stated.to_dict() == made.statement
    problem, _ = stated.problem(case.model)
    assert problem.factual == case.space.point(case.row)
    assert problem.accuracy == Fraction(1e-6)
    if explanation:
        point = case.space.point(explanation[0].values)
        assert problem.is_plausible(point)
        assert problem.is_reached(point)
        assert float(problem.distance(point)) == pytest.approx(explanation[0].distance, abs=1e-15)


def test_a_distance_function_is_stated_as_its_text() -> None:
    model = from_source("def model(age, income): return 1 if age + income > 70 else 0\n", "model")
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 60)})
    far = from_source("def far(new, old): return abs(new.age - old.age) + 2 * abs(new.income - old.income)\n", "far")
    made = mace.Explainer(model, space).explain((30, 10), distance=far, certify=True)[0].certificate
    assert made is not None
    assert made.statement["distance"]["text"].startswith("def far(new, old)")
    assert mace.verify(made, model).outcome in ("valid", "unchecked")


def test_a_distance_that_needs_names_from_outside_is_refused() -> None:
    model = from_source("def model(age, income): return 1 if age + income > 70 else 0\n", "model")
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 60)})
    far = from_source("K = 3\ndef far(new, old): return K * abs(new.age - old.age)\n", "far")
    with pytest.raises(mace.InvalidDistance, match="names from outside"):
        mace.Explainer(model, space).explain((30, 10), distance=far, certify=True)


def test_a_constraint_that_cannot_be_written_down_is_refused(model: Any) -> None:
    class Odd:
        def bind(self, space: mace.FeatureSpace, factual: Any) -> Any:
            return mace.fixed("age").bind(space, factual)

    explainer, row = mace.Explainer(model, SPACE), {"age": 25, "income": 10.0, "home": "free"}
    assert explainer.explain(row, constraints=[Odd()])
    with pytest.raises(mace.InvalidConstraint, match="to_dict"):
        explainer.explain(row, constraints=[Odd()], certify=True)


# ---- the fingerprint


def test_a_fingerprint_survives_copies_and_tells_models_apart(model: Any) -> None:
    own = fingerprint(read(model, SPACE))
    assert fingerprint(read(pickle.loads(pickle.dumps(model)), SPACE)) == own
    other = make_pipeline(mace.Encoder(SPACE), DecisionTreeClassifier(max_depth=2, random_state=0))
    assert fingerprint(read(other.fit(SPACE.frame_of(ROWS), LABELS), SPACE))["form"] != own["form"]
    renamed = make_pipeline(mace.Encoder(SPACE), DecisionTreeClassifier(random_state=0))
    renamed.fit(SPACE.frame_of(ROWS), np.where(LABELS == "no", "never", "sure"))
    assert fingerprint(read(renamed, SPACE))["form"] == own["form"]
    assert fingerprint(read(renamed, SPACE))["parameters"] != own["parameters"]


def test_every_array_of_a_form_counts(model: Any) -> None:
    reading = read(model, SPACE)
    own = fingerprint(reading)["form"]
    form: Any = reading.form
    for name in ("column", "edge", "left", "right", "value", "base", "roots"):
        array = getattr(form, name).copy()
        array.flat[-1] += 1
        assert fingerprint(replace(reading, form=replace(form, **{name: array})))["form"] != own, name
    for name, value in (("unit", Fraction(1, 2**24)), ("ties_last", True), ("link", "mean"), ("squash", Fraction(1))):
        changed = fingerprint(replace(reading, form=replace(form, **{name: value})))["form"]
        assert (changed != own) == (getattr(form, name) != value), name


# ---- writing and reading


def test_a_certificate_is_the_same_after_writing_and_reading(certificate: Certificate, tmp_path: Path) -> None:
    certificate.save(tmp_path / "c.json")
    for back in (
        Certificate.load(tmp_path / "c.json"),
        Certificate.from_json(certificate.to_json()),
        Certificate.from_json(certificate.to_json().encode()),
        Certificate.from_dict(certificate.to_dict()),
        Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))),
    ):
        assert back.to_dict() == certificate.to_dict()
    assert set(certificate.to_dict()) == {"version", "statement", "claim", "evidence"}


@pytest.mark.parametrize(
    "array",
    [
        np.arange(10),
        np.array([-1, 300]),
        np.array([2**40]),
        np.zeros((0,), dtype=np.int64),
        np.linspace(-1, 1, 7).reshape(7, 1),
        np.array([True, False]),
        np.arange(300_000) * 977 % 65_521,
    ],
)
def test_arrays_survive(array: Any, certificate: Certificate) -> None:
    made = replace(certificate, evidence={"lane": "none", "inner": [{"array": array}]})
    back = Certificate.from_json(made.to_json()).evidence["inner"][0]["array"]
    np.testing.assert_array_equal(back, array)
    assert back.shape == array.shape
    assert made.to_dict()["evidence"]["inner"][0]["array"] == pack(array)


def test_a_certificate_about_narrow_floats_is_read_back(tmp_path: Path) -> None:
    """A feature with a dtype is no array."""
    space = mace.FeatureSpace({"p": mace.real(0, 5, dtype="float32"), "dtype": mace.integer(0, 3)})
    rows = np.random.default_rng(0).uniform(0, 5, (60, 2)).astype(np.float32)
    frame = pd.DataFrame({"p": rows[:, 0], "dtype": rows[:, 1].astype(int) % 4})
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier()).fit(frame, (frame.p > 2.5).astype(int))
    made = mace.Explainer(model, space).explain(dict(frame.iloc[0]), certify=True)[0].certificate
    assert made is not None
    made.save(tmp_path / "made.json")
    assert mace.verify(mace.Certificate.load(tmp_path / "made.json"), model).valid


def test_nesting_has_a_limit(certificate: Certificate) -> None:
    deep: Any = 1
    for _ in range(DEEPEST_CERTIFICATE):
        deep = [deep]
    with pytest.raises(mace.InvalidCertificate, match="deep"):
        Certificate.from_json(replace(certificate, evidence={"lane": "x", "deep": deep}).to_json())


def test_a_file_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(mace.InvalidCertificate, match="cannot read"):
        Certificate.load(tmp_path / "nothing.json")
    (tmp_path / "image.json").write_bytes(bytes(range(256)))
    with pytest.raises(mace.InvalidCertificate, match="JSON"):
        Certificate.load(tmp_path / "image.json")
    for odd in ("", "[]", "1", '"text"', "null"):
        with pytest.raises(mace.InvalidCertificate):
            Certificate.from_json(odd)


def test_the_reader_survives_whatever_is_in_the_file(certificate: Certificate, model: Any) -> None:
    rng = np.random.default_rng(11)
    text = certificate.to_json().encode()
    outcomes = set()
    for _ in range(400):
        noisy = bytearray(text)
        for _ in range(int(rng.integers(1, 6))):
            at, kind = int(rng.integers(len(noisy))), rng.random()
            if kind < 0.5:
                noisy[at] = int(rng.integers(256))
            elif kind < 0.8:
                del noisy[at : at + int(rng.integers(1, 30))]
            else:
                noisy[at:at] = bytes(rng.choice(list(b'{}[]",:0123456789eE+-.ntf'), int(rng.integers(1, 20))).tolist())
        try:
            read_back = Certificate.from_json(bytes(noisy))
            outcomes.add(mace.verify(read_back, model).outcome)
        except mace.InvalidCertificate:
            outcomes.add("unreadable")
    assert {"unreadable", "refuted"} <= outcomes


def test_the_reader_survives_other_values_in_any_place(certificate: Certificate, model: Any) -> None:
    rng = np.random.default_rng(12)
    odd = [None, True, 0, -1, 10**30, 1.5, -0.0, 1e308, "", "text", [], [[]], {}, {"dtype": "|u1"}, {"a": None}]
    for _ in range(600):
        data = json.loads(json.dumps(certificate.to_dict()))
        place = data
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = keys[int(rng.integers(len(keys)))]
            if not isinstance(place[key], dict | list) or not place[key] or rng.random() < 0.2:
                place[key] = odd[int(rng.integers(len(odd)))]
                break
            place = place[key]
        assert outcome_of(json.dumps(data), model)[0] in ("unreadable", "refuted", "unchecked", "valid")


# ---- verdicts


def test_an_honest_certificate_is_valid(certificate: Certificate, model: Any) -> None:
    shares: list[float] = []
    verdict = mace.verify(certificate, model, progress=shares.append)
    assert verdict.valid
    assert str(verdict) == "valid"
    assert shares[-1] == 1.0


def test_without_a_proof_nothing_is_confirmed(certificate: Certificate, model: Any) -> None:
    without = replace(certificate, evidence={"lane": "trees", "missing": "the dog ate it"})
    verdict = mace.verify(without, model)
    assert (verdict.outcome, verdict.valid) == ("unchecked", False)
    assert "the dog ate it" in str(verdict)


def test_a_lower_bound_of_0_needs_no_proof(certificate: Certificate, model: Any) -> None:
    claim = certificate.claim | {"lower": 0.0, "status": "feasible"}
    assert mace.verify(replace(certificate, claim=claim, evidence={"lane": "hope"}), model).valid


def test_plain_data_is_welcome(certificate: Certificate, model: Any) -> None:
    assert mace.verify(certificate.to_dict(), model).valid
    with pytest.raises(mace.InvalidCertificate):
        mace.verify([1], model)  # type: ignore[arg-type]


def test_an_off_grid_counterfactual_is_refuted(model: Any) -> None:
    space = SPACE.replace(income=mace.real(0, 100, step=0.5))
    row = {"age": 25, "income": 10.0, "home": "free"}
    made = mace.Explainer(model, space).explain(row, certify=True)[0].certificate
    assert made is not None
    data = parts_of(made)
    data["claim"]["counterfactual"]["income"] += 0.25
    outcome, reason = outcome_of(data, model)
    assert outcome == "refuted"
    assert "grid" in reason


def test_an_infeasible_question_has_a_certificate(model: Any) -> None:
    row = {"age": 25, "income": 10.0, "home": "free"}
    explanation = mace.Explainer(model, SPACE).explain(
        row, constraints=[mace.fixed("age", "income", "home")], certify=True
    )
    assert explanation.status == "infeasible"
    assert explanation.certificate is not None
    assert explanation.certificate.claim["lower"] is None
    assert mace.verify(explanation.certificate, model).valid


def test_that_no_further_answer_exists_has_a_certificate(model: Any) -> None:
    row = {"age": 25, "income": 10.0, "home": "free"}
    explanation = mace.Explainer(model, SPACE).explain(
        row, constraints=[mace.fixed("age", "income")], count=3, diversity=mace.differ(), certify=True
    )
    if not explanation.exhausted:
        pytest.fail("the question was meant to have fewer answers")
    assert explanation.certificate is not None
    assert len(explanation.certificate.statement["earlier"]) == len(explanation)
    for made in [*(counterfactual.certificate for counterfactual in explanation), explanation.certificate]:
        assert made is not None
        assert mace.verify(made, model).valid


def test_a_certificate_is_written_only_on_request(model: Any) -> None:
    explanation = mace.Explainer(model, SPACE).explain({"age": 25, "income": 10.0, "home": "free"})
    assert explanation[0].certificate is None
    assert explanation.certificate is None


def test_bounds_of_a_claim_are_rounded_outward(certificate: Certificate) -> None:
    assert isinstance(certificate.claim["lower"], float)
    assert certificate.claim["lower"] <= certificate.claim["upper"]
    assert math.isfinite(certificate.claim["upper"])

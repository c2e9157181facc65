"""Every endpoint of a question gives what docs/service.md says."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import pytest
from running_service import ROW

import mace
from mace.answer.reasons import Reasons
from mace.cli.demo import PROTECTED, RISING, demo_model
from mace.service.answers import throttled


@pytest.fixture(scope="module")
def explainer() -> mace.Explainer:
    model, data = demo_model()
    return mace.Explainer(model, data.space)


CONSTRAINTS = [mace.fixed(*PROTECTED), mace.increases(*RISING)]


def test_the_model_is_described_with_its_people_and_rules(client: httpx.Client) -> None:
    about = client.get("/v1/model").json()
    assert about["classes"] == ["bad", "good"]
    assert (about["target"], about["score_of"], about["threshold"]) == ("good", "P(good)", 0.5)
    features = {each["name"]: each for each in about["features"]}
    assert list(features) == list(mace.datasets.load("german").space)
    age, housing, job = features["age"], features["housing"], features["job"]
    assert (age["kind"], age["low"], age["high"], age["locked"], age["protected"]) == ("integer", 19, 75, True, True)
    assert sum(age["population"]["counts"]) == 1000
    assert len(age["population"]["edges"]) == len(age["population"]["counts"]) + 1
    assert age["population"]["quartiles"] == sorted(age["population"]["quartiles"])
    assert housing["levels"] == ["rent", "own", "free"]
    assert housing["population"]["counts"] == [179, 713, 108]
    assert (job["direction"], job["locked"]) == ("up", False)
    assert about["people"] == {"count": 1000, "id": None}
    assert mace.FeatureSpace.from_dict(about["space"]).protected == tuple(about["protected"])


def test_an_answer_is_the_explainers_own(client: httpx.Client, explainer: mace.Explainer) -> None:
    found = client.post("/v1/explain", json={"row": ROW}).json()
    own = explainer.explain(ROW, "good", constraints=CONSTRAINTS).to_dict()
    for changing in ("seconds",):
        del found[changing], own[changing]
    for answers in (found, own):
        del answers["counterfactuals"][0]["seconds"]
    assert {name: found[name] for name in own} == own
    assert set(found) - set(own) == {"conflict_rules", "why", "certificate"}
    assert found["certificate"] is None


def test_a_request_adds_rules_and_cannot_take_any_away(client: httpx.Client) -> None:
    body = {
        "row": ROW,
        "target": {"label": "good", "at_least": 0.6},
        "count": 3,
        "constraints": ["duration_months stays"],
    }
    found = client.post("/v1/explain", json=body).json()
    assert found["target"] == "P(good) >= 0.6"
    assert found["counterfactuals"]
    for each in found["counterfactuals"]:
        assert each["score"] >= 0.6
        assert not {change["feature"] for change in each["changes"]} & {"duration_months", *PROTECTED}
    answer = client.post("/v1/explain", json={"row": ROW, "constraints": ["age changes"]}).json()
    assert answer["status"] == "infeasible"
    assert {each["from"] for each in answer["conflict_rules"]} == {"service", "request"}


def test_no_way_and_no_need_are_answers(client: httpx.Client) -> None:
    none = client.post("/v1/explain", json={"row": ROW, "constraints": ["savings stays", "only telephone changes"]})
    assert (none.status_code, none.json()["status"]) == (200, "infeasible")
    assert none.json()["conflict_rules"] == [{"text": "only telephone changes", "from": "request", "number": 1}]
    reached = client.post("/v1/explain", json={"row": ROW, "target": "bad"})
    assert (reached.status_code, reached.json()["status"]) == (200, "reached")


def test_a_certificate_is_given_and_verified_and_a_forged_one_refuted(client: httpx.Client) -> None:
    found = client.post("/v1/explain", json={"row": ROW, "certify": True}).json()
    certificate = found["counterfactuals"][0]["certificate"]
    verdict = client.post("/v1/verify", json={"certificate": certificate}).json()
    assert (verdict["outcome"], verdict["valid"]) == ("valid", True)
    certificate["claim"]["lower"] = certificate["claim"]["upper"] = 0.5
    assert client.post("/v1/verify", json={"certificate": certificate}).json()["outcome"] == "refuted"
    bad = client.post("/v1/verify", json={"certificate": {"version": 2}})
    assert (bad.status_code, bad.json()["error"]) == (422, "InvalidCertificate")


def test_a_stream_gives_bounds_and_then_the_same_answer(client: httpx.Client) -> None:
    with client.stream("POST", "/v1/explain/stream", json={"row": ROW}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = _events(answer.read().decode())
    kinds = [kind for kind, _ in events]
    assert kinds[-1] == "answer"
    assert set(kinds[:-1]) == {"progress"}
    plain = client.post("/v1/explain", json={"row": ROW}).json()
    assert events[-1][1]["counterfactuals"][0]["values"] == plain["counterfactuals"][0]["values"]
    assert all(0 <= data["lower"] <= plain["counterfactuals"][0]["distance"] for _, data in events[:-1])


def test_a_stream_says_what_is_wrong_with_a_question(client: httpx.Client) -> None:
    answer = client.post("/v1/explain/stream", json={"row": {"age": 1}})
    kind, data = _events(answer.text)[-1]
    assert (answer.status_code, kind, data["error"], data["status"]) == (200, "error", "InvalidRow", 422)


def test_a_stream_whose_bound_is_infinite_is_json_all_the_same() -> None:
    told: list[dict[str, Any]] = []
    throttled(told.append)(math.inf, math.inf, 3)
    assert (told[0]["lower"], told[0]["upper"], told[0]["calls"]) == (None, None, 3)
    json.dumps(told, allow_nan=False)


def _events(text: str) -> list[tuple[str, Any]]:
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.strip().split("\n\n")]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


def test_predictions_are_the_models(client: httpx.Client) -> None:
    model, data = demo_model()
    rows = [{name: row[name] for name in data.space} for row in data.frame.head(5).to_dict("records")]
    found = client.post("/v1/predict", json={"rows": rows}).json()
    assert [each["decision"] for each in found["predictions"]] == model.predict(data.frame.head(5)).tolist()
    probabilities = model.predict_proba(data.frame.head(5))[:, 1]
    assert [each["score"] for each in found["predictions"]] == pytest.approx(probabilities.tolist(), abs=1e-9)
    assert [each["reached"] for each in found["predictions"]] == [p >= 0.5 for p in probabilities]
    sure = client.post("/v1/predict", json={"row": rows[0], "target": {"label": "good", "at_least": 0.9999}}).json()
    assert (sure["threshold"], sure["predictions"][0]["reached"]) == (0.9999, False)


def test_people_are_paged_filtered_searched_and_sorted(client: httpx.Client) -> None:
    first = client.get("/v1/people", params={"limit": 3, "decision": "bad", "sort": "-score"}).json()
    assert first["total"] == 1000
    assert [each["decision"] for each in first["people"]] == ["bad"] * 3
    scores = [each["score"] for each in first["people"]]
    assert scores == sorted(scores, reverse=True)
    second = client.get("/v1/people", params={"limit": 3, "offset": 3, "decision": "bad", "sort": "-score"}).json()
    assert not {each["number"] for each in first["people"]} & {each["number"] for each in second["people"]}
    found = client.post("/v1/people", json={"search": "Education rent", "limit": 200}).json()
    assert 0 < found["matching"] < 100
    row = client.get(f"/v1/people/{found['people'][0]['number']}").json()["row"]
    assert (row["purpose"], row["housing"]) == ("education", "rent")
    assert client.get("/v1/people/1000").status_code == 404


def test_levers_and_a_region_are_proved(client: httpx.Client) -> None:
    levers = client.post("/v1/levers", json={"row": ROW, "most": 2}).json()
    assert [each["features"] for each in levers["levers"]] == [["duration_months"], levers["levers"][1]["features"]]
    answer = levers["levers"][0]["counterfactual"]["values"]
    region = client.post("/v1/region", json={"row": answer, "features": ["duration_months", "telephone"]}).json()
    assert (region["prediction"], region["complete"]) == ("good", True)
    ends = region["ends"]["duration_months"]
    rows = [answer | {"duration_months": each} for each in (ends["low"], ends["high"], ends["high"] + 1)]
    said = [each["decision"] for each in client.post("/v1/predict", json={"rows": rows}).json()["predictions"]]
    assert said == ["good", "good", "bad"]


def test_reasons_are_those_of_the_explainer_with_certificates(client: httpx.Client) -> None:
    asked = {"row": ROW, "count": 2, "certify": True, "time_limit": 20}
    found = client.post("/v1/reasons", json=asked).json()
    reasons = Reasons.from_dict({name: value for name, value in found.items() if name != "text"})
    assert found["text"] == str(reasons)
    assert len(reasons) == 2
    assert reasons.target == "good"
    verdict = client.post("/v1/verify", json={"certificate": found["reasons"][0]["certificate"]}).json()
    assert verdict["outcome"] == "valid"
    held = {name: ROW[name] for name in reasons[0].features}
    kept = [f"`{name}` stays" for name in held]
    again = client.post("/v1/explain", json={"row": ROW, "constraints": kept}).json()
    assert again["status"] == "infeasible"
    letter = client.post("/v1/letter", json={"row": ROW, "about": "reasons", "language": "de"}).json()
    assert "Ausschlaggebend" in letter["letter"]


def test_noise_is_asked_in_words_and_its_margin_is_told(client: httpx.Client) -> None:
    asked = {"row": ROW, "constraints": ["only duration_months changes", "robust 5% of sd"], "margin": True}
    found = client.post("/v1/explain", json=asked).json()
    assert found["status"] == "optimal"
    assert found["margin"]["share"] >= 1
    assert found["margin"]["text"].startswith("Noise of up to ")
    sturdy = {"constraints": ["only duration_months changes", "robust to duration_months by 2"], "margin": True}
    letter = client.post("/v1/letter", json={"row": ROW} | sturdy).json()["letter"]
    assert "higher or lower" in letter
    assert "margin" not in client.post("/v1/explain", json={"row": ROW}).json()


def test_a_letter_says_what_the_answer_says(client: httpx.Client) -> None:
    made = client.post("/v1/letter", json={"row": ROW, "name": "Ms <Miller>", "names": {"duration_months": "duration"}})
    assert "duration: 11 instead of 24" in made.json()["letter"]
    html = client.post("/v1/letter", json={"row": ROW, "name": "Ms <Miller>", "html": True}).json()["letter"]
    assert "Ms &lt;Miller&gt;" in html
    there = client.post("/v1/letter", json={"row": ROW, "target": "bad"})
    assert "no change is needed" in there.json()["letter"]


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "a feature is missing": ({"row": {"age": 40}}, 422, "InvalidRow"),
    "a value is out of range": ({"row": ROW | {"age": 400}}, 422, "InvalidRow"),
    "an unknown label": ({"row": ROW, "target": "splendid"}, 422, "InvalidTarget"),
    "a bound without a label": ({"row": ROW, "target": {"at_least": 0.6}}, 422, "InvalidTarget"),
    "a rule that is none": ({"row": ROW, "constraints": ["age stays young"]}, 422, "InvalidConstraint"),
    "a rule that is a function": ({"row": ROW, "constraints": ["lambda new, old: True"]}, 422, "InvalidConstraint"),
    "a rule that defines one": (
        {"row": ROW, "constraints": ["def f(new, old): return True"]},
        422,
        "InvalidConstraint",
    ),
    "a rule about nothing": ({"row": ROW, "constraints": ["height stays"]}, 422, "InvalidConstraint"),
    "a distance that is a function": ({"row": ROW, "distance": "lambda new, old: 0"}, 422, "InvalidRequest"),
    "shares that are too few": ({"row": ROW, "distance": {"l1": 0.5}}, 422, "InvalidDistance"),
    "a weight of nothing": ({"row": ROW, "weights": {"height": 2}}, 422, "InvalidDistance"),
    "too many answers": ({"row": ROW, "count": 11}, 422, "InvalidRequest"),
    "too much time": ({"row": ROW, "time_limit": 61}, 422, "InvalidRequest"),
    "too many rules": ({"row": ROW, "constraints": ["age stays"] * 51}, 422, "InvalidRequest"),
    "too long a rule": ({"row": ROW, "constraints": ["age stays and " * 200 + "age stays"]}, 422, "InvalidRequest"),
    "an unknown key": ({"row": ROW, "solver": "smt"}, 422, "InvalidRequest"),
    "two kinds of diversity": (
        {"row": ROW, "count": 2, "diversity": {"features": 2, "distance": 0.1}},
        422,
        "InvalidOption",
    ),
}


@pytest.mark.parametrize(("body", "status", "error"), BAD.values(), ids=BAD)
def test_a_question_that_cannot_be_asked_says_why(client: httpx.Client, body: Any, status: int, error: str) -> None:
    answer = client.post("/v1/explain", json=body)
    said = answer.json()
    assert (answer.status_code, said["error"]) == (status, error), said
    assert set(said) == {"error", "message"}
    assert len(said["message"]) > 10


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"row": NaN}', b'{"row": 1, "row": 2}', b"\xff", b"[" * 5000, b'{"row": 1' + b"0" * 50 + b"}"],
)
def test_a_body_that_is_not_json_is_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/v1/explain", content=content, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"] == "InvalidRequest"

"""The schema is what the service does: its examples are answered, and bodies made from it never break anything."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_service import ROW, Service, running

from mace.service import bodies

BODIES = {
    "/v1/predict": bodies.PredictBody,
    "/v1/explain": bodies.ExplainBody,
    "/v1/explain/stream": bodies.ExplainBody,
    "/v1/levers": bodies.LeversBody,
    "/v1/reasons": bodies.ReasonsBody,
    "/v1/region": bodies.RegionBody,
    "/v1/letter": bodies.LetterBody,
    "/v1/people": bodies.PeopleBody,
    "/v1/batch": bodies.BatchBody,
    "/v1/audit": bodies.AuditBody,
}
EXAMPLES = [
    (path, number, example)
    for path, body in BODIES.items()
    for number, example in enumerate(body.model_config["json_schema_extra"]["examples"])  # type: ignore[index,call-overload]
]
DOCS = Path(__file__).parents[2] / "docs" / "service.md"


@pytest.mark.parametrize(("path", "number", "body"), EXAMPLES, ids=[f"{path} {number}" for path, number, _ in EXAMPLES])
def test_every_example_of_the_schema_is_answered(client: httpx.Client, path: str, number: int, body: Any) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code in (200, 201, 202), answer.text
    if answer.status_code != 200:
        assert client.delete(f"/v1/jobs/{answer.json()['id']}").status_code == 204


def test_every_body_has_an_example_and_every_address_is_documented(client: httpx.Client) -> None:
    schema = client.get("/openapi.json").json()
    text = DOCS.read_text()
    for path, methods in schema["paths"].items():
        shown = path.replace("{name}", "{id}")
        for method, about in methods.items():
            assert f"`{method.upper()} {shown}" in text, f"{method} {path} is not in docs/service.md"
            assert about["summary"]
            if method == "post" and "requestBody" in about:
                assert path in BODIES or path == "/v1/verify"


def test_every_error_of_the_documentation_is_in_the_schema(client: httpx.Client) -> None:
    stated = client.get("/openapi.json").json()["paths"]["/v1/explain"]["post"]["responses"]
    listed = set(re.findall(r"^\| (\d{3}) \|", DOCS.read_text(), re.MULTILINE))
    assert {"200", *(listed - {"405"})} == set(stated)


def test_limits_of_the_documentation_are_those_in_force(client: httpx.Client) -> None:
    (shown,) = re.findall(r'"limits": (\{.*?\})', DOCS.read_text(), re.DOTALL)
    assert json.loads(shown) == client.get("/v1/model").json()["limits"]


@pytest.mark.parametrize("block", re.findall(r"```json\n(.*?)```", DOCS.read_text(), re.DOTALL))
def test_every_json_of_the_documentation_is_json(block: str) -> None:
    json.loads(block)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/v1/model", "GET /v1/model"),
        ("/v1/people/4", "GET /v1/people/{number}"),
        ("/v1/people?limit=1", "GET /v1/people`, `POST"),
    ],
)
def test_the_documented_answers_have_the_keys_of_the_real_ones(client: httpx.Client, path: str, key: str) -> None:
    section = DOCS.read_text().split(f"### `{key}", 1)[1]
    documented = json.loads(re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0])
    real = client.get(path).json()
    assert set(documented) == set(real)
    if "features" in real:
        kinds = {each["kind"]: each for each in real["features"]}
        for each in documented["features"]:
            assert set(each) == set(kinds[each["kind"]])
            assert set(each["population"]) == set(kinds[each["kind"]]["population"])


VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    -0.0,
    "",
    "good",
    "age",
    "\u0000",
    "é" * 50,
    "x" * 3000,
    [],
    {},
    [[]],
    {"a": 1},
]
WORDS = (
    "age",
    "stays",
    "savings",
    "within",
    "[",
    "]",
    "1",
    "if",
    "then",
    "or",
    "not",
    "(",
    ")",
    "old.age",
    ">=",
    "*",
    "'x'",
    "%",
    "§",
    "\\",
)


def broken(rng: random.Random, body: Any) -> Any:
    """Return a body with something of it changed, left out, added or put inside another thing."""
    made = json.loads(json.dumps(body))
    for _ in range(rng.randint(1, 3)):
        place = made
        while isinstance(place, dict | list) and place and rng.random() < 0.6:
            inner = place[rng.choice(list(place))] if isinstance(place, dict) else rng.choice(place)
            if not isinstance(inner, dict | list):
                break
            place = inner
        key = rng.choice([*place, "row", "target", "constraints", "x"]) if isinstance(place, dict) else None
        match rng.randint(0, 3):
            case 0 if isinstance(place, dict) and place:
                place.pop(rng.choice(list(place)))
            case 1 if isinstance(place, dict):
                place[key] = rng.choice([*VALUES, rng.randint(-(10**20), 10**20)])
            case 2 if isinstance(place, dict):
                place["constraints"] = [
                    " ".join(rng.choices(WORDS, k=rng.randint(0, 12))) for _ in range(rng.randint(1, 3))
                ]
            case _ if isinstance(place, list):
                place.append(rng.choice(VALUES))
            case _:
                made = {**made, "time_limit": rng.choice([0.01, 0.1, "1", -1])} if isinstance(made, dict) else made
    return made


@pytest.mark.slow
def test_five_hundred_broken_bodies_give_no_error_of_the_service(tmp_path: Path) -> None:
    rng = random.Random(7)
    with running(tmp_path) as service, service.client() as client:
        certificate = client.post("/v1/explain", json={"row": ROW, "certify": True}).json()["counterfactuals"][0]
        examples = [
            *((path, body) for path, _, body in EXAMPLES),
            ("/v1/verify", {"certificate": certificate["certificate"]}),
        ]
        seen: dict[int, int] = {}
        for _ in range(500):
            path, example = rng.choice(examples)
            body = broken(rng, {**example, "time_limit": 0.2} if "row" in example else example)
            answer = client.post(path, json=body)
            seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (path, body, answer.text)
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error", "message"}, (path, body)
            elif answer.status_code in (201, 202):
                client.delete(f"/v1/jobs/{answer.json()['id']}")
        assert service.backend.searchers.died == service.backend.searchers.ended == 0
        assert seen[422] > 100
        assert seen[200] > 30


@pytest.mark.slow
def test_requests_made_from_the_schema_give_no_error_of_the_service(service: Service) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    quiet = settings(max_examples=32, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    asked: list[str] = []

    def call(case: Any) -> None:
        answer = case.call(base_url=service.url, timeout=60)
        asked.append(case.operation.label)
        assert answer.status_code < 500, (case.operation.label, answer.text)

    for result in schema.get_all_operations():
        quiet(given(case=result.ok().as_strategy())(call))()
    assert len(asked) >= 500

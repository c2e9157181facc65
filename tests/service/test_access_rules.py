"""Who may ask, how much, and what every answer carries."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from running_service import ROW, Service, running

from mace.service.guard import Access
from mace.service.limits import ServiceLimits
from mace.service.server import JsonLines


def test_every_answer_has_the_headers_that_keep_a_page_to_itself(client: httpx.Client) -> None:
    for path in ("/", "/health", "/v1/model", "/nothing", "/v1/people/x"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers
    assert client.get("/v1/model").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:8000"])
def test_another_host_is_refused(client: httpx.Client, host: str) -> None:
    answer = client.get("/v1/model", headers={"host": host})
    assert (answer.status_code, answer.json()["error"]) == (421, "WrongHost")


@pytest.mark.parametrize("host", ["localhost", "localhost:9999", "LOCALHOST:1", "[::1]:80", "127.0.0.1"])
def test_this_host_is_let_in_whatever_the_port(client: httpx.Client, host: str) -> None:
    assert client.get("/health", headers={"host": host}).status_code == 200


def test_a_page_of_another_origin_is_refused_and_gets_no_leave(client: httpx.Client, service: Service) -> None:
    answer = client.post("/v1/explain", json={"row": ROW}, headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.json()["error"]) == (403, "WrongOrigin")
    asked = client.options(
        "/v1/explain", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert asked.status_code == 403
    assert client.get("/v1/model", headers={"origin": service.url}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""]
)
def test_only_json_is_taken(client: httpx.Client, kind: str) -> None:
    answer = client.post("/v1/predict", content=b"{}", headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]) == (415, "WrongContentType")


def test_a_large_body_is_refused_by_its_header_and_by_its_bytes(client: httpx.Client) -> None:
    large = b" " * (ServiceLimits().body + 1)
    head = {"content-type": "application/json"}
    said = client.post("/v1/predict", content=large, headers=head)
    assert (said.status_code, said.json()["error"]) == (413, "TooLarge")
    silent = client.post("/v1/predict", content=iter([large]), headers=head)
    assert (silent.status_code, silent.json()["error"]) == (413, "TooLarge")


def test_a_request_keeps_its_id_and_gets_one_where_it_has_none_or_a_strange_one(client: httpx.Client) -> None:
    assert client.get("/health", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    for given in ("", "a b", "x" * 100, "<script>"):
        made = client.get("/health", headers={"x-request-id": given}).headers["x-request-id"]
        assert made != given
        assert len(made) == 16


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_logs_are_lines_of_json_without_personal_data(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="mace.service"):
        client.post("/v1/explain", json={"row": ROW, "constraints": ["savings stays secret"]})
        client.get("/v1/people/4")
        client.get("/secret-name", params={"who": "secret"})
        eventually(lambda: len(caplog.records) == 3)  # a line is written once the answer is sent
    lines = [JsonLines().format(record) for record in caplog.records]
    assert {json.loads(line)["route"] for line in lines} >= {"/v1/explain", "/v1/people/{number}"}
    text = "\n".join(lines)
    for private in ("secret", "below 0 DM", "4870", '/v1/people/4"'):
        assert private not in text
    assert {"time", "level", "id", "method", "route", "status", "seconds"} <= set(json.loads(lines[0]))


def test_figures_are_those_of_prometheus_and_grow(client: httpx.Client) -> None:
    def count(text: str) -> int:
        named = 'mace_requests_total{method="POST",route="/v1/predict",status="200"} '
        return sum(int(line.removeprefix(named)) for line in text.splitlines() if line.startswith(named))

    before = client.get("/metrics").text
    client.post("/v1/predict", json={"row": ROW})
    eventually(lambda: count(client.get("/metrics").text) == count(before) + 1)
    after = client.get("/metrics").text
    for line in after.splitlines():
        assert line.startswith("#") or float(line.rpartition(" ")[2]) >= 0
    assert "mace_waiting 0" in after


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("jobs"), keys="first-key, second-key") as made:
        yield made


def test_keys_are_needed_where_there_are_some_but_for_probes_and_the_page(locked: Service) -> None:
    with locked.client() as client:
        for path in ("/v1/model", "/metrics", "/openapi.json", "/v1/jobs/x"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]) == (401, "Unauthorized")
        assert client.get("/v1/model", headers={"x-api-key": "first-kez"}).status_code == 401
        assert client.get("/v1/model", headers={"x-api-key": ""}).status_code == 401
        assert client.get("/v1/model", headers={"x-api-key": "first-key"}).status_code == 200
        assert client.get("/v1/model", headers={"authorization": "Bearer second-key"}).status_code == 200
        assert client.get("/ready").status_code == client.get("/health").status_code == 200


def test_a_job_is_its_owners_alone(locked: Service) -> None:
    with locked.client() as client:
        mine, other = {"x-api-key": "first-key"}, {"x-api-key": "second-key"}
        job = client.post("/v1/batch", json={}, headers=mine).json()["id"]
        assert client.get(f"/v1/jobs/{job}", headers=mine).status_code == 200
        assert client.get(f"/v1/jobs/{job}", headers=other).status_code == 404
        assert client.delete(f"/v1/jobs/{job}", headers=other).status_code == 404
        assert client.delete(f"/v1/jobs/{job}", headers=mine).status_code == 204


def test_keys_are_not_shown() -> None:
    assert "hush" not in repr(Access.of("127.0.0.1", [], "hush", ServiceLimits()))


def test_a_service_for_every_address_still_knows_its_names() -> None:
    assert "0.0.0.0" not in Access.of("0.0.0.0", ["Bank.example"], "", ServiceLimits()).hosts
    assert "bank.example" in Access.of("0.0.0.0", ["Bank.example"], "", ServiceLimits()).hosts


def test_the_pages_files_stay_in_their_folder(client: httpx.Client) -> None:
    for path in ("/../source.py", "/%2e%2e/source.py", "/..%2fsource.py", "/static/../../source.py"):
        assert client.get(path).status_code == 404


def test_the_page_has_no_script_of_its_own_in_its_text() -> None:
    page = Path(__file__).parents[2] / "src/mace/service/page"
    for file in page.rglob("*.html"):
        text = file.read_text().lower()
        assert "<script>" not in text
        assert " onclick=" not in text
        assert " style=" not in text

"""The client asks a real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running_service import ROW, Service, running

import mace
from mace.client import Client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("jobs"), keys="sesame") as made:
        yield made


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service.url, key="sesame")


def test_an_explanation_comes_back_with_its_certificates(client: Client) -> None:
    assert client.ready()
    explanation = client.explain(ROW, certify=True, count=2)
    assert explanation.status == "optimal"
    assert len(explanation) == 2
    assert explanation[0].certificate is not None
    assert client.verify(explanation[0].certificate).valid
    assert client.predict([explanation[0].values])[0].decision == "good"
    none = client.explain(ROW, constraints=["only telephone changes"], certify=True)
    assert none.status == "infeasible"
    assert none.certificate is not None
    assert client.verify(none.certificate).valid


def test_bounds_come_as_they_close(client: Client) -> None:
    seen: list[dict[str, Any]] = []
    explanation = client.explain_live(ROW, seen.append)
    assert explanation[0].values == client.explain(ROW)[0].values
    assert seen
    assert all(each["lower"] <= explanation[0].distance for each in seen)
    with pytest.raises(mace.InvalidRow):
        client.explain_live({"age": 1}, seen.append)


def test_everything_else_that_can_be_asked(client: Client) -> None:
    assert client.model()["classes"] == ["bad", "good"]
    page = client.people("rent", decision="bad", sort="-score", limit=2)
    assert [each["decision"] for each in page["people"]] == ["bad", "bad"]
    row = client.person(4)["row"]
    assert row == ROW
    assert client.levers(row, most=1)["levers"][0]["features"] == ["duration_months"]
    assert client.region(row, ["telephone"])["ends"]["telephone"]["levels"]
    assert "\n\nDear Mr Smith,\n\n" in client.letter(row, name="Mr Smith")


def test_a_batch_and_an_audit_are_jobs(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    mace.datasets.load("german").frame.head(3).to_csv(file, index=False)
    job = client.batch(file, time_limit=10)
    assert job.wait(60)["state"] == "done"
    assert [json.loads(line)["row"] for line in job.result("jsonl").splitlines()] == [0, 1, 2]
    with pytest.raises(mace.ServiceError, match="only one that is queued or running") as caught:
        job.cancel()
    assert caught.value.status == 409
    job.remove()
    with pytest.raises(mace.ServiceError, match="no such job"):
        job.status()
    audit = client.audit(["foreign_worker"], rows=5, resamples=5)
    assert audit.wait(60)["state"] == "done"
    assert len(json.loads(audit.result())["people"]) == 5


def test_errors_are_maces_own(client: Client, service: Service, tmp_path: Path) -> None:
    with pytest.raises(mace.InvalidRow, match="missing from the row"):
        client.explain({"age": 40})
    with pytest.raises(mace.InvalidConstraint):
        client.explain(ROW, constraints=["age stays young"])
    with pytest.raises(mace.ServiceError, match="a key is needed") as caught:
        Client(service.url).model()
    assert caught.value.status == 401
    with pytest.raises(mace.ServiceError, match="does not answer"):
        Client("http://127.0.0.1:1").model()
    with pytest.raises(mace.ServiceError, match="begins with http"):
        Client("file:///etc/passwd")
    with pytest.raises(mace.ServiceError, match=r"\.csv or \.parquet"):
        client.batch(tmp_path / "people.xlsx")

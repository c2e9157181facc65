"""Jobs: a file in, answers out, ended, gone on with, and nobody else's."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_service import Service, running, until

import mace
from mace.answer.reasons import Reasons
from mace.cli.demo import PROTECTED, RISING, demo_model
from mace.service.limits import ServiceLimits

CSV = {"content-type": "text/csv"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Path]]:
    folder = tmp_path_factory.mktemp("jobs")
    with running(folder) as made:
        yield made, folder


MANY = 1000
"""People whose batch takes some seconds, so that it can be cut short."""


def people(count: int) -> Any:
    frame = mace.datasets.load("german").frame.head(count)
    return frame.assign(customer=[f"c{number}" for number in range(len(frame))])


def begin(client: httpx.Client, data: bytes, kind: dict[str, str] = CSV, **options: Any) -> str:
    name: str = client.post("/v1/batch", json=options).json()["id"]
    sent = client.put(f"/v1/jobs/{name}/data", content=data, headers=kind)
    assert sent.status_code == 202, sent.text
    return name


def ended(client: httpx.Client, name: str) -> dict[str, Any]:
    states = ("done", "failed", "cancelled")
    until(lambda: client.get(f"/v1/jobs/{name}").json()["state"] in states, 60)
    found: dict[str, Any] = client.get(f"/v1/jobs/{name}").json()
    return found


def test_a_batch_gives_the_answers_of_the_explainer_in_every_format(own: tuple[Service, Path]) -> None:
    frame = people(12)
    with own[0].client() as client:
        name = begin(client, frame.to_csv(index=False).encode(), id="customer", time_limit=30)
        status = ended(client, name)
        assert (status["state"], status["done"], status["total"], status["errors"]) == ("done", 12, 12, 0)
        found = {kind: client.get(f"/v1/jobs/{name}/result", params={"format": kind}) for kind in status["results"]}
    model, data = demo_model()
    rules = [mace.fixed(*PROTECTED), mace.increases(*RISING)]
    batch = mace.Explainer(model, data.space).explain_many(frame, target="good", constraints=rules)
    lines = [json.loads(line) for line in found["jsonl"].text.splitlines()]
    assert [line["id"] for line in lines] == frame["customer"].tolist()
    assert [line["status"] for line in lines] == [str(each.status) for each in batch]
    values = [[one["values"] for one in line["counterfactuals"]] for line in lines]
    assert values == [[one.values for one in each] for each in batch]
    rows = list(csv.DictReader(io.StringIO(found["csv"].text)))
    assert [row["customer"] for row in rows] == frame["customer"].tolist()
    pytest.importorskip("pyarrow")
    import pandas as pd

    table = pd.read_parquet(io.BytesIO(found["parquet"].content))
    assert table["customer"].tolist() == frame["customer"].tolist()
    assert table["status"].tolist() == [row["status"] for row in rows]


def test_a_batch_of_reasons_gives_those_of_the_explainer_in_every_format(own: tuple[Service, Path]) -> None:
    frame = people(5)
    with own[0].client() as client:
        name = begin(client, frame.to_csv(index=False).encode(), id="customer", about="reasons", count=2, time_limit=30)
        status = ended(client, name)
        assert (status["state"], status["done"], status["errors"], status["message"]) == ("done", 5, 0, "")
        found = {kind: client.get(f"/v1/jobs/{name}/result", params={"format": kind}) for kind in status["results"]}
        for body in ({"about": "reasons", "distance": "l2"}, {"smallest": True}):
            assert client.post("/v1/batch", json=body).status_code == 422
    model, data = demo_model()
    rules = [mace.fixed(*PROTECTED), mace.increases(*RISING)]
    batch = mace.Explainer(model, data.space).reasons_many(frame, target="good", constraints=rules, count=2)
    lines = [json.loads(line) for line in found["jsonl"].text.splitlines()]
    assert [line["id"] for line in lines] == frame["customer"].tolist()
    assert [str(Reasons.from_dict(line)) for line in lines] == [str(each) for each in batch]
    rows = list(csv.DictReader(io.StringIO(found["csv"].text)))
    assert [row["features"] for row in rows] == batch.to_frame()["features"].fillna("").tolist()


def test_a_batch_of_parquet_is_the_same(own: tuple[Service, Path]) -> None:
    pytest.importorskip("pyarrow")
    frame, kept = people(6), io.BytesIO()
    frame.to_parquet(kept)
    with own[0].client() as client:
        columns = begin(client, kept.getvalue(), {"content-type": "application/vnd.apache.parquet"}, id="customer")
        plain = begin(client, frame.to_csv(index=False).encode(), id="customer")
        both = []
        for name in (columns, plain):
            assert ended(client, name)["state"] == "done"
            text = client.get(f"/v1/jobs/{name}/result", params={"format": "jsonl"}).text
            both.append([{**json.loads(line), "seconds": 0} for line in text.splitlines()])
    for lines in both:
        for line in lines:
            for one in line["counterfactuals"]:
                one["seconds"] = 0
    assert both[0] == both[1]


def test_files_of_jobs_are_their_owners_alone_and_go_when_told_to(own: tuple[Service, Path]) -> None:
    service, folder = own
    with service.client() as client:
        name = begin(client, people(2).to_csv(index=False).encode())
        assert ended(client, name)["state"] == "done"
        (place,) = folder.rglob(name)
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()} == {0o600}
        assert client.delete(f"/v1/jobs/{name}").status_code == 204
        assert not place.exists()
        assert client.get(f"/v1/jobs/{name}").status_code == 404


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"", "text/csv", "empty"),
        (b"age,height\n1,2\n", "text/csv", "has no column"),
        (b"a,b\n1\n", "text/csv", "line 2"),
        (b"\xff\xfe\x00", "text/csv", "UTF-8"),
        (b"PAR1 and nothing more", "application/vnd.apache.parquet", "Parquet"),
    ],
)
def test_a_file_that_is_none_fails_with_a_reason(
    own: tuple[Service, Path], content: bytes, kind: str, said: str
) -> None:
    with own[0].client() as client:
        status = ended(client, begin(client, content, {"content-type": kind}))
    assert status["state"] == "failed"
    assert said in status["message"]


def test_a_job_does_only_what_its_state_allows(own: tuple[Service, Path]) -> None:
    with own[0].client() as client:
        name = client.post("/v1/batch", json={}).json()["id"]
        assert client.get(f"/v1/jobs/{name}/result").status_code == 409
        assert client.post(f"/v1/jobs/{name}/cancel", json={}).status_code == 409
        assert client.post(f"/v1/jobs/{name}/resume", json={}).status_code == 409
        wrong = client.put(f"/v1/jobs/{name}/data", content=b"x", headers={"content-type": "application/json"})
        assert wrong.status_code == 415
        client.put(f"/v1/jobs/{name}/data", content=people(1).to_csv(index=False).encode(), headers=CSV)
        assert client.put(f"/v1/jobs/{name}/data", content=b"x", headers=CSV).status_code == 409
        assert ended(client, name)["state"] == "done"
        assert client.get(f"/v1/jobs/{name}/result", params={"format": "exe"}).status_code == 422
        assert client.get("/v1/jobs/unknown").status_code == 404


def test_an_audit_compares_groups(own: tuple[Service, Path]) -> None:
    with own[0].client() as client:
        body = {"groups": ["foreign_worker"], "rows": 20, "resamples": 20}
        name = client.post("/v1/audit", json=body).json()["id"]
        assert ended(client, name)["state"] == "done"
        made = client.get(f"/v1/jobs/{name}/result").json()
        assert len(made["people"]) == 20
        assert made["columns"] == ["foreign_worker"]
        wrong = client.post("/v1/audit", json={"groups": ["height"], "rows": 5}).json()["id"]
        assert "height" in ended(client, wrong)["message"]


@pytest.mark.slow
def test_a_job_is_ended_gone_on_with_and_survives_the_death_of_its_worker(own: tuple[Service, Path]) -> None:
    service, folder = own
    job_workers = service.backend.job_workers
    with service.client() as client:
        name = begin(client, people(MANY).to_csv(index=False).encode(), count=9, time_limit=20)
        until(lambda: (client.get(f"/v1/jobs/{name}").json()["done"] or 0) > 20, 60)
        assert client.post(f"/v1/jobs/{name}/cancel", json={}).json()["state"] == "cancelled"
        (checkpoint,) = next(folder.rglob(name)).glob("checkpoint")
        kept = checkpoint.read_bytes().count(b"\n")
        assert kept > 20
        client.post(f"/v1/jobs/{name}/resume", json={})
        until(lambda: (client.get(f"/v1/jobs/{name}").json()["done"] or 0) > kept, 60)
        for one in list(job_workers._all):
            os.kill(one.process.pid, signal.SIGKILL)
        status = ended(client, name)
        assert (status["state"], status["done"]) == ("done", MANY)


@pytest.mark.slow
def test_a_service_that_is_started_again_goes_on_with_its_jobs_and_old_ones_go(tmp_path: Path) -> None:
    with running(tmp_path) as service, service.client() as client:
        name = begin(client, people(MANY).to_csv(index=False).encode(), count=9, time_limit=20)
        until(lambda: (client.get(f"/v1/jobs/{name}").json()["done"] or 0) > 20, 60)
    with running(tmp_path) as service, service.client() as client:
        status = ended(client, name)
        assert (status["state"], status["done"], status["errors"]) == ("done", MANY, 0)
        rows = [
            json.loads(line)["row"] for line in client.get(f"/v1/jobs/{name}/result?format=jsonl").text.splitlines()
        ]
        assert rows == list(range(MANY))
    (noted,) = tmp_path.rglob("job.json")
    old = json.loads(noted.read_text())
    noted.write_text(json.dumps({**old, "created": time.time() - 3600 * (replace(ServiceLimits()).keep_hours + 1)}))
    with running(tmp_path):
        until(lambda: not list(tmp_path.rglob("job.json")))

"""Workers that hang, die or are no longer waited for: one request is lost at most, and its client is told."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from running_service import ROW, Service, running, until, until_ready

from mace.service import backend
from mace.service.limits import ServiceLimits
from mace.service.source import Served

LIMITS = ServiceLimits(grace=0.5, waiting=2, patience=20)


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("jobs"), limits=LIMITS) as made:
        yield made


def ask(service: Service, seconds: float = 0.5) -> httpx.Response:
    with service.client() as client:
        return client.post("/v1/explain", json={"row": ROW, "time_limit": seconds})


def test_a_worker_that_hangs_is_ended_and_replaced(frail: Service) -> None:
    with frail.frozen() as numbers:
        answer = ask(frail)
    assert (answer.status_code, answer.json()["error"]) == (503, "Overran")
    until_ready(frail)
    assert not set(numbers) & set(frail.searching)
    assert ask(frail).json()["status"] == "optimal"
    assert frail.backend.searchers.ended >= 1


def test_a_worker_that_dies_loses_one_request_and_says_so(frail: Service) -> None:
    with ThreadPoolExecutor(2) as pool, frail.frozen() as numbers:
        first = pool.submit(ask, frail, 30)
        until(lambda: frail.backend.searchers.busy == 1)
        second = pool.submit(ask, frail, 30)
        until(lambda: frail.backend.searchers.waiting == 1)
        os.kill(numbers[0], signal.SIGKILL)
        assert (first.result().status_code, first.result().json()["error"]) == (503, "WorkerDied")
        assert second.result().json()["status"] == "optimal"
    until_ready(frail)


def test_a_full_queue_says_when_to_ask_again_and_quick_questions_are_answered_all_the_same(frail: Service) -> None:
    with ThreadPoolExecutor(4) as pool, frail.client() as client:
        with frail.frozen():
            waiting = [pool.submit(ask, frail, 30) for _ in range(3)]
            until(lambda: frail.backend.searchers.waiting == 2)
            answer = ask(frail)
            assert (answer.status_code, answer.json()["error"]) == (429, "Busy")
            assert int(answer.headers["retry-after"]) >= 1
            assert client.post("/v1/predict", json={"row": ROW}).status_code == 200
            assert client.get("/health").status_code == 200
        assert [each.result().json()["status"] for each in waiting] == ["optimal"] * 3


def test_a_client_that_leaves_ends_its_question(frail: Service) -> None:
    with frail.frozen() as numbers:
        with pytest.raises(httpx.ReadTimeout), frail.client(timeout=0.3) as client:
            client.post("/v1/explain", json={"row": ROW, "time_limit": 50})
        until(lambda: not set(numbers) & set(frail.searching))
    until_ready(frail)
    assert ask(frail).status_code == 200


def test_a_client_that_leaves_the_queue_makes_room(frail: Service) -> None:
    with ThreadPoolExecutor(1) as pool, frail.frozen():
        first = pool.submit(ask, frail, 30)
        until(lambda: frail.backend.searchers.busy == 1)
        with pytest.raises(httpx.ReadTimeout), frail.client(timeout=0.3) as client:
            client.post("/v1/explain", json={"row": ROW, "time_limit": 50})
        until(lambda: frail.backend.searchers.waiting == 0)
        os.kill(frail.searching[0], signal.SIGCONT)
        assert first.result().status_code == 200


def test_a_reader_that_leaves_a_stream_ends_its_question(frail: Service) -> None:
    with frail.frozen() as numbers:
        with (
            pytest.raises(httpx.ReadTimeout),
            frail.client(timeout=0.3) as client,
            client.stream("POST", "/v1/explain/stream", json={"row": ROW, "time_limit": 50}) as answer,
        ):
            answer.read()
        until(lambda: not set(numbers) & set(frail.searching))
    until_ready(frail)


def test_half_a_request_holds_nobody_up(frail: Service) -> None:
    host, port = frail.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(
            b"POST /v1/explain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
        )
        assert ask(frail).status_code == 200


@pytest.mark.slow
def test_a_service_that_is_stopped_lets_questions_end(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        with running(tmp_path, limits=LIMITS) as service:
            numbers = service.searching
            for number in numbers:
                os.kill(number, signal.SIGSTOP)
            asked = pool.submit(ask, service, 30)
            until(lambda: service.backend.searchers.busy == 1)
            later = threading.Timer(1.0, lambda: [os.kill(number, signal.SIGCONT) for number in numbers])
            later.start()
        assert asked.result().json()["status"] == "optimal"
    for number in numbers:
        until(lambda number=number: not Path(f"/proc/{number}").exists(), 10)


def test_requests_that_the_end_of_the_service_cuts_off_are_told_so_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(backend, "STOPPING", 1.0)
    with ThreadPoolExecutor(2) as pool:
        with running(tmp_path, limits=LIMITS) as service:
            for number in service.searching:
                os.kill(number, signal.SIGSTOP)
            answered = pool.submit(ask, service, 50)
            until(lambda: service.backend.searchers.busy == 1)
            waits = pool.submit(ask, service, 50)
            until(lambda: service.backend.searchers.waiting == 1)
        for each in (waits, answered):
            answer = each.result()
            assert (answer.status_code, answer.json()["error"]) == (503, "Stopping")
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
def test_a_model_that_cannot_be_read_is_said_and_not_tried_for_ever(tmp_path: Path) -> None:
    (tmp_path / "m.skops").write_bytes(b"no model")
    (tmp_path / "s.json").write_text("{}")
    with running(tmp_path, Served(tmp_path / "m.skops", tmp_path / "s.json"), wait=False) as service:
        until(lambda: service.failures, 60)
        assert service.failures[0][0] in ("UnsupportedModel", "InvalidSpace")
        with service.client() as client:
            assert (client.get("/ready").status_code, client.get("/health").status_code) == (503, 200)

"""``mace serve`` as people start it: a process of its own, which says where it is and ends when it is told to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import skops.io
from running_service import until

import mace
from mace.cli.demo import demo_model
from mace.cli.main import run
from mace.client import Client


def started(*options: str, folder: Path, **around: str) -> tuple[subprocess.Popen[str], str]:
    """Start the command and return the process and the address that it says."""
    code = "from mace.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--workers", "1", "--jobs", str(folder), *options]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **around},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    if found is None:
        process.kill()
        raise AssertionError(process.communicate())
    return process, found[0]


@pytest.mark.slow
def test_the_demo_starts_answers_and_ends_quietly(tmp_path: Path) -> None:
    process, url = started(folder=tmp_path)
    try:
        client = Client(url)
        until(client.ready, 120)
        assert client.explain(client.person(4)["row"]).status == "optimal"
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert process.returncode == 0
        assert {json.loads(line)["message"] for line in log.splitlines()} == {"request"}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_model_of_ones_own_is_served_with_its_data_rules_and_target(tmp_path: Path) -> None:
    model, data = demo_model()
    skops.io.dump(model, tmp_path / "m.skops")
    (tmp_path / "space.json").write_text(data.space.to_json())
    (tmp_path / "rules.toml").write_text(
        'constraints = ["age, foreign_worker stay"]\n[[constraint]]\nrule = "savings stays"\n'
    )
    names = [f"client-{number:03}" for number in range(30)]
    data.frame.head(30).assign(customer=names, age=[200, *data.frame["age"][1:30]]).to_csv(
        tmp_path / "people.csv", index=False
    )
    files = [str(tmp_path / name) for name in ("m.skops", "space.json", "people.csv", "rules.toml")]
    given = [
        part for pair in zip(("--model", "--space", "--data", "--constraints"), files, strict=True) for part in pair
    ]
    process, url = started(
        *given, "--target", "good >= 0.6", "--id", "customer", folder=tmp_path, MACE_API_KEYS="k1,k2"
    )
    try:
        client = Client(url, key="k2")
        until(client.ready, 120)
        about = client.model()
        assert [each["text"] for each in about["rules"]] == ["age, foreign_worker stay", "savings stays"]
        assert (about["target"], about["threshold"]) == ({"label": "good", "at_least": 0.6}, 0.6)
        assert about["people"] == {"count": 30, "id": "customer"}
        page = client.people("CLIENT-007")
        assert [each["id"] for each in page["people"]] == ["client-007"]
        assert "outside its range" in client.person(0)["error"]
        found = client.explain(client.person(4)["row"])
        assert found.target == "P(good) >= 0.6"
        assert found[0].score is not None
        assert found[0].score >= 0.6
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_files_that_do_not_belong_together_are_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["serve", "--model", __file__]) == 2
    assert "together" in capsys.readouterr().err
    assert run(["serve", "--data", "nowhere.csv"]) == 2
    assert "there is no file nowhere.csv" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_that_cannot_be_read_ends_the_service_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "m.skops").write_bytes(b"no model")
    (tmp_path / "space.json").write_text(mace.datasets.load("german").space.to_json())
    process, _ = started("--model", str(tmp_path / "m.skops"), "--space", str(tmp_path / "space.json"), folder=tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "UnsupportedModel: m.skops cannot be read as a skops file" in said


def test_without_its_extra_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert run(["serve"]) == 2
    assert (
        "MissingPackage: fastapi is not installed. Install it with: pip install 'mace-xai[service]'"
        in capsys.readouterr().err
    )


def test_a_port_that_is_taken_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run(["serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot listen at" in capsys.readouterr().err

"""Batches as processes: ended, killed, without room on the disk; nothing is lost, and nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace

ROWS = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its space, and rows of which no two are equal."""
    path = tmp_path_factory.mktemp("processes")
    data = mace.datasets.load("german")
    model = make_pipeline(mace.Encoder(data.space), DecisionTreeClassifier(max_depth=5, random_state=0))
    skops.io.dump(model.fit(data.frame, data.labels), path / "model.skops")
    mace.Explainer(model, data.space).explain_many(data.frame.head(1), checkpoint=path / "begun")
    (path / "space.json").write_text(data.space.to_json())
    data.frame.head(ROWS).to_csv(path / "rows.csv", index=False)
    data.frame.head(60).to_csv(path / "few.csv", index=False)
    return path


class Run:
    """``mace batch`` in a process of its own, with a temporary folder of its own."""

    def __init__(
        self, folder: Path, home: Path, *options: str, data: str = "rows.csv", out: str = "answers.jsonl"
    ) -> None:
        self.out = home / out
        self.checkpoint = home / f"{out}.checkpoint"
        self.temporary = home / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.command = [sys.executable, "-c", "from mace.cli import main; main()", "batch"]
        self.command += ["--data", str(folder / data), "--model", str(folder / "model.skops")]
        self.command += ["--space", str(folder / "space.json"), "--out", str(self.out), *options]
        self.process: Any = None
        self.folder = folder

    def begin(self) -> None:
        """Leave the answer of an earlier run: all other rows are left to workers then."""
        shutil.copy(self.folder / "begun", self.checkpoint)

    def start(self, **options: Any) -> None:
        around = {**os.environ, "TMPDIR": str(self.temporary)}
        self.process = subprocess.Popen(
            self.command, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )

    def wait_for_answers(self, count: int = 20) -> None:
        until = time.monotonic() + 120
        while self.process.poll() is None and time.monotonic() < until:
            if self.checkpoint.exists() and self.checkpoint.read_bytes().count(b"\n") > count:
                return
            time.sleep(0.01)
        raise AssertionError(f"it was over too soon: {self.process.communicate()}")

    def end(self) -> tuple[int, str, str]:
        out, error = self.process.communicate(timeout=120)
        return self.process.returncode, out, error

    def whole(self, **options: Any) -> tuple[int, str, str]:
        self.start(**options)
        return self.end()

    def workers(self) -> list[int]:
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                is_worker = b"LokyProcess" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == self.process.pid and is_worker:
                found.append(int(entry.name))
        return found


@pytest.fixture
def batch(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Makes runs, and ends what is left of them."""
    made: list[Run] = []

    def make(*options: str, **kinds: str) -> Run:
        made.append(Run(folder, tmp_path, *options, **kinds))
        return made[-1]

    yield make
    for run in made:
        if run.process is not None and run.process.poll() is None:
            run.process.kill()
            run.process.communicate()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone_within(processes: list[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while any(map(is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_alive, processes))


def without_scores(explanation: dict[str, Any]) -> dict[str, Any]:
    """Return an explanation without what is asked of the model for all rows at the end."""
    scores = ("score", "score_of", "threshold")
    made = {key: value for key, value in explanation.items() if key not in scores}
    return made | {"counterfactuals": [each | {"score": None} for each in made["counterfactuals"]]}


def check_complete(run: Run, count: int) -> None:
    answers = [json.loads(line) for line in run.out.read_text().splitlines()]
    assert [answer["row"] for answer in answers] == list(range(count))
    assert not run.checkpoint.exists()
    assert not list(run.temporary.glob("mace-*"))


@pytest.mark.slow
def test_sigterm_ends_a_batch_as_ctrl_c_does(batch: Callable[..., Run]) -> None:
    run = batch("--jobs", "2", "--resume")
    run.begin()
    run.start()
    run.wait_for_answers()
    workers = run.workers()
    assert len(workers) == 2
    run.process.send_signal(signal.SIGTERM)
    code, out, error = run.end()
    assert (code, out) == (3, "")
    assert error.startswith(f"Interrupted. The answers so far are in {run.checkpoint}; go on with --resume.\n")
    assert gone_within(workers, 5)
    assert not list(run.temporary.glob("mace-*"))
    assert stat.S_IMODE(run.checkpoint.stat().st_mode) == 0o600
    assert run.whole()[0] == 0
    check_complete(run, ROWS)
    assert stat.S_IMODE(run.out.stat().st_mode) == 0o600


@pytest.mark.slow
def test_sigterm_ends_a_batch_in_one_process_too(batch: Callable[..., Run]) -> None:
    run = batch()
    run.start()
    run.wait_for_answers()
    run.process.send_signal(signal.SIGTERM)
    code, _, error = run.end()
    assert code == 3
    assert "go on with --resume" in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_workers_die_with_a_killed_parent_and_its_files_go_at_the_next_start(batch: Callable[..., Run]) -> None:
    run = batch("--jobs", "2", "--resume")
    run.begin()
    run.start()
    run.wait_for_answers()
    workers = run.workers()
    run.process.kill()
    run.end()
    assert gone_within(workers, 5)
    assert list(run.temporary.glob("mace-batch-*/explainer.pickle"))
    assert list(run.out.parent.glob(".answers.jsonl.*.part"))
    code, _, error = run.whole()
    assert code == 0
    assert error.startswith("Hint: ")
    check_complete(run, ROWS)
    assert not list(run.out.parent.glob(".*"))


@pytest.mark.slow
def test_a_killed_worker_costs_no_row_and_no_traceback(batch: Callable[..., Run]) -> None:
    run = batch("--jobs", "2", "--resume")
    run.begin()
    run.start()
    run.wait_for_answers()
    os.kill(run.workers()[0], signal.SIGKILL)
    code, out, error = run.end()
    assert code == 0
    assert f"{ROWS} rows" in out
    assert "Traceback" not in error
    assert len(error.splitlines()) <= 1
    check_complete(run, ROWS)


# ---- no room


def limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_checkpoint_that_finds_no_room_keeps_what_it_has(batch: Callable[..., Run], jobs: str) -> None:
    run = batch("--jobs", jobs, "--resume")
    run.begin()
    code, _, error = run.whole(preexec_fn=limited(100_000))
    assert code == 2, error
    assert len(error.splitlines()) == 1
    assert "cannot write" in error
    assert "File too large" in error
    kept = [json.loads(line) for line in run.checkpoint.read_bytes().split(b"\n")[1:-1]]
    assert len(kept) > 20
    assert not run.out.exists()
    assert run.whole()[0] == 0
    check_complete(run, ROWS)
    answers = [json.loads(line) for line in run.out.read_text().splitlines()]
    for line in kept:
        kept_answer = {"row": line["row"], **line["explanation"]}
        assert without_scores(answers[line["row"]]) == without_scores(kept_answer), "an answer was made twice"


@pytest.mark.slow
@pytest.mark.parametrize("out", ["answers.jsonl", "answers.csv", "answers.parquet"])
def test_answers_that_find_no_room_are_in_the_checkpoint(batch: Callable[..., Run], tmp_path: Path, out: str) -> None:
    run = batch("--resume", data="few.csv", out=out)
    run.out.symlink_to("/dev/full")
    code, _, error = run.whole()
    assert code == 2, error
    assert len(error.splitlines()) == 1
    assert f"cannot write {run.out}: No space left on device" in error
    assert run.checkpoint.read_bytes().count(b"\n") == 61
    run.out.unlink()
    assert run.whole()[0] == 0
    assert run.out.stat().st_size > 1000
    assert not run.checkpoint.exists()


@pytest.mark.slow
def test_a_checkpoint_on_a_device_or_in_place_of_a_folder_is_refused(batch: Callable[..., Run]) -> None:
    run = batch("--resume", data="few.csv")
    run.checkpoint.symlink_to("/dev/full")
    code, _, error = run.whole()
    assert code == 2
    assert "device" in error
    run.checkpoint.unlink()
    run.checkpoint.mkdir()
    code, _, error = run.whole()
    assert code == 2
    assert "cannot write" in error
    assert len(error.splitlines()) == 1

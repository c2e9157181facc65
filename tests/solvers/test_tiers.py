"""Interpreted and compiled kernels give the same answers, and a process of low priority compiles them by the way."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_ensembles import random_ensemble
from random_networks import random_network
from random_problems import random_case
from small_models import SPACE, model_of, people
from tiers import interpreted

import mace
from mace.clock import OutOfTime, until
from mace.disk import lock
from mace.problem import Limits
from mace.solvers import compiling, network, trees
from mace.solvers.compiled import KernelRecord, kernel
from mace.solvers.ready import LANES

CAMPAIGNS = Path(__file__).parents[1] / "campaigns"
sys.path.insert(0, str(CAMPAIGNS))
import interpreted as campaign  # noqa: E402

# ---- the same numbers


def said(explanation: mace.Explanation) -> Any:
    """Return everything that an explanation says, but how long it took."""
    answers = tuple(replace(each, seconds=0.0, _widen=None) for each in explanation)
    return replace(explanation, counterfactuals=answers, seconds=0.0).to_dict()


@pytest.mark.parametrize("seed", range(0, 400, 10))
@pytest.mark.parametrize("finite", [True, False])
def test_both_tiers_say_the_same_of_random_ensembles(seed: int, finite: bool) -> None:
    case = random_ensemble(seed, finite=finite)
    assert_both_say_the_same(case)


@pytest.mark.parametrize("seed", range(24))
def test_both_tiers_say_the_same_of_random_models(seed: int) -> None:
    assert_both_say_the_same(random_case(seed))


def assert_both_say_the_same(case: Any) -> None:
    explainer = mace.Explainer(case.model, case.space)
    try:
        compiled = explainer.explain(case.row, **case.question)
    except mace.MaceError:
        return
    with interpreted():
        assert said(mace.Explainer(case.model, case.space).explain(case.row, **case.question)) == said(compiled)


@pytest.mark.parametrize("seed", range(0, 240, 8))
@pytest.mark.parametrize("finite", [True, False])
def test_both_tiers_say_the_same_of_random_networks(seed: int, finite: bool) -> None:
    problem = random_network(seed, finite=finite).problem
    network.prepare()
    compiled = network.solve(problem, Limits())
    with interpreted():
        found = network.solve(problem, Limits())
    assert (found.lower, found.upper, found.point, found.reason) == (
        compiled.lower,
        compiled.upper,
        compiled.point,
        compiled.reason,
    )


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_both_tiers_say_the_same_where_prices_bound(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mace.solvers.trees.search.NODES_BEFORE_PRICES", 0)
    assert_both_say_the_same(random_ensemble(seed, finite=True))


GROUPS = [(name, group) for name in campaign.NAMES for group in campaign.groups_of(name)]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_campaigns_find_nothing_with_interpreted_kernels(name: str, group: str, number: int) -> None:
    first = campaign.groups_of(name)[group].first
    _, fault = campaign.examine(name, group, first + 7 * number)
    assert fault in (None, "skipped")


def test_a_search_may_change_over_in_the_middle() -> None:
    explainer, row = mace.Explainer(model_of("mlp"), SPACE), people()[0].iloc[3]
    truth = said(explainer.explain(row))
    seen: list[int] = []

    def change(*_: object) -> None:
        seen.append(1)
        compiling.change_tier(network.__name__, compiled=len(seen) % 2 == 0)

    with interpreted():
        assert said(explainer.explain(row, on_progress=change)) == truth
    assert len(seen) > 1
    assert said(explainer.explain(row)) == truth


# ---- interpreted kernels


@kernel
def spin(rounds: int, step: float) -> float:
    """Return the sum of many steps."""
    total = 0.0
    for _ in range(rounds):
        for _ in range(1000):
            total += step
    return total


@kernel
def halved(values: Any) -> Any:
    """Return a quotient that is out of range, and one by the first value."""
    return values[1] * 1e300, 1.0 / values[0]


class Pair2(KernelRecord):
    """Two fields."""

    FIELDS = ("one", "two")


def test_a_deadline_ends_an_interpreted_kernel_in_the_middle() -> None:
    begun = time.process_time()
    with until(time.monotonic() + 0.1), pytest.raises(OutOfTime):
        spin.interpret(10**7, 1.0)
    assert time.process_time() - begun < 0.5
    assert spin.interpret(3, 0.5) == 1500


def test_what_leaves_the_range_is_silent_and_a_division_by_zero_is_not() -> None:
    assert halved.interpret(np.array([2.0, 1e300])) == (np.inf, 0.5)
    with pytest.raises(ArithmeticError):
        halved.interpret(np.array([0.0, 1.0]))


def test_a_record_takes_all_its_fields() -> None:
    assert Pair2(1, 2).two == 2
    with pytest.raises(ValueError, match="shorter"):
        Pair2(1)


# ---- who compiles, and when


SCRIPT = """
import logging, sys, time
import numpy as np, mace
from sklearn.tree import DecisionTreeClassifier
X = np.random.default_rng(0).random((50, 2)); y = (X.sum(axis=1) > 1).astype(int)
space = mace.FeatureSpace({'a': mace.real(0, 1), 'b': mace.real(0, 1)})
explainer = mace.Explainer(DecisionTreeClassifier(random_state=0).fit(X, y), space)
from mace.solvers import compiling
def ask():
    status = explainer.explain([0.1, 0.1]).status
    lane = compiling._LANES['mace.solvers.trees']
    return status, lane.is_compiled, 'numba' in sys.modules, lane.child.pid if lane.child else None
"""


def run(script: str, folder: Path, mode: str = "background", **more: str) -> str:
    """Run a script whose kernels are not compiled yet, and whose lock is its own; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + script],
        env=environment(folder, mode, **more),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def environment(folder: Path, mode: str, **more: str) -> dict[str, str]:
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    own = {"NUMBA_CACHE_DIR": str(folder / "cache"), "TMPDIR": str(temporary), "MACE_COMPILE": mode}
    paths = os.pathsep.join(each for each in sys.path if each)
    return {**os.environ, "PYTHONPATH": paths, **own, **more}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for the cache and the lock; what still compiles for it is ended."""
    yield tmp_path
    for pid in (tmp_path / "pids").read_text().split() if (tmp_path / "pids").exists() else ():
        if is_alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_locked(path: Path) -> bool:
    with path.open("a") as file:
        return not lock(file.fileno())


def seen(what: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Return whether something becomes true before long."""
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.1)
    return what()


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")


@needs_proc
def test_a_first_question_is_answered_at_once_and_one_process_compiles_meanwhile(folder: Path) -> None:
    script = "print(*ask()); print(*ask()[:3]); open({!r}, 'w').write(str(ask()[3]))"
    first, second = run(script.format(str(folder / "pids")), folder).splitlines()
    *about, pid = first.split()
    assert about == second.split() == ["optimal", "False", "False"], "numba is not even imported"
    file = folder / "temporary" / f"mace-compile-{os.getuid()}.lock"
    assert seen(lambda: is_locked(file)), "it outlives the process that started it"
    assert os.getpriority(os.PRIO_PROCESS, int(pid)) == 19
    assert run("print(ask()[3])", folder) == "None", "one a machine"
    os.kill(int(pid), signal.SIGKILL)
    assert seen(lambda: not is_alive(int(pid)))
    other = run(f"pid = ask()[3]; print(pid); open({str(folder / 'pids')!r}, 'w').write(str(pid))", folder)
    assert is_alive(int(other)), "the lock of a process that was killed is free"


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_after_the_process_that_started_it(folder: Path, number: signal.Signals) -> None:
    script = """
import subprocess, sys, time
from mace.solvers import compiling
code = "import os, mace.solvers.compiling as c; c.OUTLIVES = 0.5; c.work('mace.solvers.trees', %d, background=True)"
import os
print(subprocess.Popen([sys.executable, "-c", code % os.getpid()], start_new_session=True).pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(folder, "now"), stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    (folder / "pids").write_text(str(pid))
    file = folder / "temporary" / f"mace-compile-{os.getuid()}.lock"
    assert seen(lambda: is_locked(file))
    time.sleep(1)
    assert is_alive(pid)
    parent.send_signal(number)
    parent.wait()
    parent.stdout.close()
    assert seen(lambda: not is_alive(pid))


@pytest.mark.slow
def test_the_changeover_comes_with_the_next_question(folder: Path) -> None:
    script = """
assert ask()[1] is False
lane = compiling._LANES['mace.solvers.trees']
compiling.cores = lambda: 1
compiling.wait_if_quicker(1e9, 1)
print(*ask()[:3], lane.child.wait())
"""
    assert run(script, folder) == "optimal True True 0"
    assert run("print(*ask())", folder, "never") == "optimal True True None", "what is in the cache is used"


def test_nothing_is_compiled_where_that_is_not_wanted(folder: Path) -> None:
    assert run("print(*ask())", folder, "never") == "optimal False False None"


def test_a_value_of_the_variable_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACE_COMPILE", "later")
    monkeypatch.setattr(compiling, "_LANES", {})
    with pytest.raises(mace.InvalidOption, match="MACE_COMPILE='later' is not known"):
        mace.Explainer(model_of("forest"), SPACE).explain(people()[0].iloc[3])


def test_it_ends_quietly_where_nothing_can_be_written(tmp_path: Path) -> None:
    own = {"NUMBA_CACHE_DIR": "/proc/nowhere", "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    code = (
        "import os; from mace.solvers.compiling import work; work('mace.solvers.trees', os.getppid(), background=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment(tmp_path, "now"), **own}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    refused = subprocess.run(
        [sys.executable, "-c", "import mace; mace.warm_up()"],
        env={**environment(tmp_path, "now"), **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "InvalidOption: compiled kernels cannot be kept" in refused.stderr


class Started(Exception):
    """A process would have been started."""


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> Iterator[mace.Explainer]:
    """An explainer whose kernels are not compiled; starting a process raises."""
    with interpreted():
        monkeypatch.setenv("MACE_COMPILE", "background")
        monkeypatch.setattr(compiling, "_is_free", lambda: True)
        monkeypatch.setattr(compiling, "start", _start)
        yield mace.Explainer(model_of("forest"), SPACE)


def _start(package: str) -> None:
    raise Started(package)


def test_workers_and_services_start_no_process(cold: mace.Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    row = people()[0].iloc[3]
    for name in compiling.SERVICES:  # other tests start services in this process
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(Started, match="trees"):
        cold.explain(row)
    with compiling.as_worker():
        assert cold.explain(row).status == "optimal"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "gunicorn.arbiter", sys)
        assert cold.explain(row).status == "optimal"
    with monkeypatch.context() as patch:
        patch.setattr(multiprocessing, "parent_process", lambda: object())
        assert cold.explain(row).status == "optimal"
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_IMPORTED_IN", -1)
        assert cold.explain(row).status == "optimal"
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "_is_writable", lambda folder: False)
        assert cold.explain(row).status == "optimal"


def test_a_batch_starts_one_process_and_its_workers_none(folder: Path) -> None:
    script = """
frame = [[0.1, 0.1 + k / 100] for k in range(20)]
found = explainer.explain_many(frame, n_jobs=2)
lane = compiling._LANES['mace.solvers.trees']
print(found.counts, lane.child is not None)
open(PIDS, 'w').write(str(lane.child.pid))
"""
    printed = run(f"PIDS = {str(folder / 'pids')!r}" + script, folder)
    assert printed == "{'optimal': 20} True"


class Compiling:
    """A process that compiles for so many looks at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def poll(self) -> int | None:
        self.looks -= 1
        return None if self.looks > 0 else 0


@pytest.mark.parametrize(
    ("seconds", "processes", "waits"), [(1000.0, 2, True), (1000.0, 1, False), (10.0, 2, False), (0.0, 2, False)]
)
def test_a_batch_waits_only_where_that_is_quicker(
    seconds: float, processes: int, waits: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lane = compiling.KernelLane("tree", trees.kernels.advance, lambda: None)
    child = Compiling(5)
    lane.child, lane.started = child, time.monotonic()  # type: ignore[assignment]
    monkeypatch.setattr(compiling, "_LANES", {LANES[0]: lane})
    monkeypatch.setattr(compiling, "is_marked", lambda package: False)
    monkeypatch.setattr(compiling, "cores", lambda: 2)
    with caplog.at_level(logging.WARNING, "mace"):
        compiling.wait_if_quicker(seconds, processes)
    assert (child.looks <= 0) == waits
    assert ("Waiting until the tree lane" in caplog.text) == waits


def test_a_note_without_the_kernels_is_taken_back(folder: Path) -> None:
    script = """
import mace.solvers.trees
compiling.mark('mace.solvers.trees')
print(*ask()[:3], compiling.is_marked('mace.solvers.trees'))
"""
    assert run(script, folder, "never") == "optimal False True False"


def test_warming_up_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    from mace.cli.main import run as command

    assert command(["warmup"]) == 0
    assert "compiled and load" in capsys.readouterr().out
    assert all(compiling.is_compiled(name) for name in LANES)

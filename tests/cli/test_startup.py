"""What a command does not import or load: most of the time to a first answer would be theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from saved_models import fitted, unfitted
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mace
from mace.solvers import compiling, network, trees
from mace.solvers.compiling import PATIENCE, KernelLane, loading_late

ROOT = Path(__file__).parents[2]

EXPLAINED = """
import json, sys
from mace.cli.main import run
code = run(["explain", *sys.argv[1:], "--json"])
print("\\n" + json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""

ALL_LOADED = """
import sys, warnings
from pathlib import Path
import sklearn.utils
from mace.models.files.load import in_own_process, load_model
warnings.simplefilter("ignore")
with in_own_process():
    for path in sorted(Path(sys.argv[1]).glob("*.skops")):
        load_model(path)
import skops.io._trusted_types as types
print(len(types.SKLEARN_ESTIMATOR_TYPE_NAMES), len(sklearn.utils.all_estimators()) > 100)
"""


def said(code: str, *arguments: object, timeout: int = 100) -> str:
    """Return what a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "MACE_COMPILE": "background"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(folder: Path, model: Any, name: str) -> tuple[list[object], Any]:
    """Save a model and a row; return the options of a command, and what the library says of it."""
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.real(0, 100)})
    rows = [[20 + i % 60, i % 97] for i in range(300)]
    model.fit(rows, [int(age + 2 * income > 130) for age, income in rows])
    if name.endswith(".onnx"):
        made = to_onnx(model, initial_types=[("X", FloatTensorType([None, 2]))], options={"zipmap": False})
        (folder / name).write_bytes(made.SerializeToString())
        model = mace.load_model(folder / name)
    else:
        skops.io.dump(model, folder / name)
    (folder / "space.json").write_text(space.to_json())
    (folder / "people.csv").write_text("age,income\n30,20\n")
    files = ["--model", folder / name, "--space", folder / "space.json", "--data", folder / "people.csv"]
    return files, mace.Explainer(model, space).explain((30, 20), time_limit=30)


@pytest.mark.parametrize(
    ("model", "name", "absent"),
    [
        (LogisticRegression(), "linear.onnx", {"sklearn", "joblib", "skops", "numba"}),
        (RandomForestClassifier(5, max_depth=3, random_state=0), "forest.skops", {"dask", "pytest", "numba"}),
    ],
)
def test_an_answer_imports_no_more_than_it_needs(model: Any, name: str, absent: set[str], tmp_path: Path) -> None:
    files, explanation = asked(tmp_path, model, name)
    lines = said(EXPLAINED, *files).splitlines()
    code, modules = json.loads(lines[-1])
    answer = json.loads("\n".join(lines[:-1]))
    assert code == 0
    assert answer["counterfactuals"][0]["values"] == explanation.to_dict()["counterfactuals"][0]["values"]
    assert not absent & set(modules)


def test_files_of_every_family_load_where_skops_lists_no_types(tmp_path: Path) -> None:
    for number, name in enumerate(unfitted()):
        skops.io.dump(fitted(name)[0], tmp_path / f"{number}.skops")
    drawing = RandomForestClassifier(2).fit([[0], [1]], [0, 1])
    drawing.random_state = np.random.default_rng(0)
    skops.io.dump(drawing, tmp_path / "drawing.skops")
    assert said(ALL_LOADED, tmp_path).split() == ["0", "True"]


@pytest.mark.parametrize(("lane", "name"), [(trees, "trees"), (network, "network")])
def test_kernels_are_loaded_once_a_single_question_takes_long(
    lane: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MACE_COMPILE", "now")
    kept = compiling._LANES.get(lane.__name__)
    lane.prepare()  # they are in the cache now
    monkeypatch.setenv("MACE_COMPILE", "background")
    monkeypatch.setattr(compiling, "is_marked", lambda package: True)
    entry = compiling._LANES[lane.__name__].entry
    now = [100.0]
    monkeypatch.setattr(compiling.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(compiling.time, "process_time", lambda: now[0])
    made = KernelLane(name, entry, lambda: None)
    with loading_late(30):
        made.prepare()
        assert not made.is_compiled
        now[0] += PATIENCE / 2
        made.prepare()
        made.change_over(now[0] + 29)
        assert not made.is_compiled
        now[0] += PATIENCE
        made.change_over(now[0] + 29)
        assert made.is_compiled
    short = KernelLane(name, entry, lambda: None)
    with loading_late(5):
        short.prepare()
        assert short.is_compiled
    if kept is not None:
        compiling._LANES[lane.__name__] = kept

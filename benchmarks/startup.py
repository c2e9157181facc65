"""From pressing return to the answer: ``mace explain`` as a process of its own, on files of several kinds, with warm kernels.

    python benchmarks/startup.py [--times 5]

Each command runs several times, in turns with ``python -c "import sklearn.ensemble"``, which no user of these models is spared. CPU is
that of the process and its children, user and system; "ratio" divides the median by that of the import. The least wall time is given
too: on a shared machine the median of wall times says more about the neighbours. German credit data. Modules are compiled to bytecode
before, as ``pip install`` does, even where the environment (``PYTHONDONTWRITEBYTECODE``) keeps sources from being compiled for good.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

IMPORT = [sys.executable, "-c", "import sklearn.ensemble"]
MACE = [sys.executable, "-c", "from mace.cli import main; main()"]


def files(folder: Path) -> dict[str, list[str]]:
    """Fit and save models, and return the command of each."""
    import lightgbm
    import skops.io
    import xgboost
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import mace

    data = mace.datasets.load("german")
    people = data.frame.select_dtypes("number")
    space, labels = mace.FeatureSpace.from_frame(people), (data.labels == "good").astype(int)
    people.to_csv(folder / "people.csv", index=False)
    (folder / "space.json").write_text(space.to_json())
    forest = RandomForestClassifier(100, max_depth=6, random_state=0).fit(people, labels)
    linear = make_pipeline(StandardScaler(), LogisticRegression()).fit(people, labels)
    skops.io.dump(forest, folder / "forest.skops")
    skops.io.dump(linear, folder / "linear.skops")
    booster = xgboost.XGBClassifier(n_estimators=100, max_depth=4).fit(people, labels)
    booster.save_model(folder / "xgboost.json")
    leaves = lightgbm.LGBMClassifier(n_estimators=100, num_leaves=15, verbose=-1).fit(people, labels)
    leaves.booster_.save_model(folder / "lightgbm.txt")
    (folder / "linear.onnx").write_bytes(_onnx(linear, people.shape[1]))
    shared = ["explain", "--data", "people.csv", "--space", "space.json", "--row", "1"]
    names = ("forest.skops", "linear.skops", "linear.onnx", "xgboost.json", "lightgbm.txt")
    return {name: [*MACE, *shared, "--model", name] for name in names}


def _onnx(model: Any, width: int) -> bytes:
    """Return a pipeline as ONNX."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    options = {id(model[-1]): {"zipmap": False}}
    made = to_onnx(model, initial_types=[("X", FloatTensorType([None, width]))], options=options)
    return bytes(made.SerializeToString())


def spent(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command and return its CPU and its wall seconds."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    installed = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=installed)
    wall, after = time.perf_counter() - begun, os.times()
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    return (after.children_user + after.children_system) - (before.children_user + before.children_system), wall


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    subprocess.run([*MACE, "warmup"], check=True, capture_output=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        commands = {"import sklearn": IMPORT, "mace --version": [*MACE, "--version"], **files(folder)}
        for command in commands.values():
            spent(command, folder)
        runs = [{name: spent(command, folder) for name, command in commands.items()} for _ in range(times)]
    base = statistics.median(run["import sklearn"][0] for run in runs)
    sys.stdout.write(f"{'':16} {'CPU s':>6} {'ratio':>6} {'least wall s':>13}\n")
    for name in commands:
        cpu, wall = statistics.median(run[name][0] for run in runs), min(run[name][1] for run in runs)
        sys.stdout.write(f"{name:16} {cpu:6.2f} {cpu / base:6.2f} {wall:13.2f}\n")


if __name__ == "__main__":
    main()

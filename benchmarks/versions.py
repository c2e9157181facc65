"""Two versions of MACE side by side: the same questions to both, in turns, each in a process of its own.

    git worktree add ../before v0.1.0
    python benchmarks/versions.py ../before/src [--rows 30] [--data adult,compas,credit] [--models tree,forest10,forest100,lr,mlp10x10]

The paper's data, models of scikit-learn, held-out rows that they refuse, l1 and linf, any numbers (no round answers). Both processes
fit the same model. "all" is CPU time of the whole ``explain``, "without predict" the same less what the model's own methods took; medians
over the rows, and the ratio of this version's to the other's. "work" is how many steps the search counted. Distances must agree within
the accuracy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MACE_COMPILE", "now")

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace

MODELS: dict[str, Any] = {
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "forest10": lambda: RandomForestClassifier(10, random_state=0),
    "forest100": lambda: RandomForestClassifier(100, random_state=0),
    "lr": lambda: LogisticRegression(max_iter=1000),
    "mlp10x10": lambda: MLPClassifier((10, 10), random_state=0),
}
DISTANCES = ("l1", "linf")
OURS = Path(__file__).parents[1] / "src"


class PredictClock:
    """CPU seconds in the methods by which a pipeline is asked."""

    def __init__(self) -> None:
        self.seconds, self._is_inside = 0.0, False
        for name in ("predict", "predict_proba", "decision_function"):
            self._watch(name, vars(Pipeline)[name])

    def _watch(self, name: str, method: Any) -> None:
        def timed(pipeline: Any, *given: Any, **options: Any) -> Any:
            asked, begun = method.__get__(pipeline, type(pipeline)), time.process_time()
            if self._is_inside:
                return asked(*given, **options)
            self._is_inside = True
            try:
                return asked(*given, **options)
            finally:
                self._is_inside = False
                self.seconds += time.process_time() - begun

        setattr(Pipeline, name, timed)


def answer(data_name: str, model_name: str, rows: int, limit: float) -> Iterator[dict[str, Any]]:
    """Yield the answer to each question: one line to begin with, then one whenever the next is wanted."""
    data = mace.datasets.load(data_name)
    order = np.random.default_rng(0).permutation(len(data.frame))
    train, test = order[: min(5000, 7 * len(order) // 10)], order[7 * len(order) // 10 :]
    codes = {} if model_name in ("lr", "mlp10x10") else {"categorical": "codes", "ordinal": "codes"}
    model = make_pipeline(mace.Encoder(data.space, **codes), MODELS[model_name]())
    model.fit(data.frame.iloc[train], data.labels.iloc[train])
    frame = data.frame.iloc[test]
    refused = frame[model.predict(frame) == 0].iloc[:rows]
    clock = PredictClock()
    explainer = mace.Explainer(model, data.space)
    try:
        explainer.explain(refused.iloc[0], round_to=None)
        asked: dict[str, Any] = {"round_to": None}
    except TypeError:  # 0.1 knew no round answers
        explainer.explain(refused.iloc[0])
        asked = {}
    yield {"rows": len(refused)}
    for _, row in refused.iterrows():
        for distance in DISTANCES:
            clock.seconds, begun = 0.0, time.process_time()
            made = explainer.explain(row, distance=distance, time_limit=limit, **asked)
            seconds = time.process_time() - begun
            found = {"distance": distance, "status": str(made.status), "lower": made.lower}
            found |= {"found": made[0].distance if made else None, "work": made[0].calls if made else 0}
            yield found | {"all": 1e3 * seconds, "search": 1e3 * (seconds - clock.seconds)}


class Version:
    """A process that answers with one version, a question whenever it is asked for the next."""

    def __init__(self, source: Path, options: list[str]) -> None:
        around = os.environ | {"PYTHONPATH": str(source)}
        command = [sys.executable, __file__, "--answer", *options]
        self._process = subprocess.Popen(
            command, env=around, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def next(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("next\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a version ended with {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def compare(other: Path, data_name: str, model_name: str, arguments: argparse.Namespace) -> None:
    options = [data_name, model_name, str(arguments.rows), str(arguments.limit)]
    versions = Version(OURS, options), Version(other, options)
    try:
        rows = {version.next()["rows"] for version in versions}
        assert len(rows) == 1, "the versions were asked about other rows"
        pairs = [[version.next() for version in versions] for _ in range(rows.pop() * len(DISTANCES))]
    finally:
        for version in versions:
            version.end()
    for distance in DISTANCES:
        some = [pair for pair in pairs if pair[0]["distance"] == distance]
        apart = [
            pair
            for pair in some
            if all(each["status"] == "optimal" for each in pair) and abs(pair[0]["found"] - pair[1]["found"]) > 2e-6
        ]
        cells = [sum(pair[side]["status"] in ("optimal", "infeasible") for pair in some) for side in (0, 1)]
        line = f"{data_name:8}{model_name:11}{distance:6}{cells[0]:8}{cells[1]:8}"
        for what in ("all", "search", "work"):
            ours, theirs = (float(np.median([pair[side][what] for pair in some])) for side in (0, 1))
            line += f"{ours:10.2f}{theirs:10.2f}{ours / max(theirs, 1e-9):7.2f}"
        print(line + (f"   {len(apart)} DISAGREE" if apart else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="the folder src of the other version")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--answer", nargs=4, metavar=("DATA", "MODEL", "ROWS", "LIMIT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.answer:
        data_name, model_name, rows, limit = arguments.answer
        answers = answer(data_name, model_name, int(rows), float(limit))
        for _ in sys.stdin:
            print(json.dumps(next(answers)), flush=True)
        return
    if arguments.other is None:
        parser.error("name the folder src of the other version")
    print(f"{'data':8}{'model':11}{'dist.':6}{'proved':>8}{'other':>8}", end="")
    for what in ("all ms", "without predict ms", "work"):
        print(f"{what:>19}  ratio", end="")
    print()
    for data_name in arguments.data.split(","):
        for model_name in arguments.models.split(","):
            compare(arguments.other.resolve(), data_name, model_name, arguments)


if __name__ == "__main__":
    main()

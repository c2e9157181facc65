"""By how much calls outlast their ``time_limit``: every lane and every kind of question, on models too hard for it.

    python benchmarks/deadlines.py [--limits 0.05,0.5,2] [--rows 3] [--only smt,levers] [--quick] [--interpreted] [--verbose] [--cache DIR]

Overrun is what passes between the deadline and the end of the call, less what the model's own ``predict`` and ``predict_proba`` take
of it. It is printed as wall time, and as the calling thread's CPU time after the deadline, which is comparable on a busy machine too.
Every call has an explainer of its own, so that nothing is prepared before the clock starts but kernels, which one question a lane
compiles or loads first. A call that ends within its limit has no overrun, and is counted as "in time". Audits are of one person, whose
limit begins with their row. Models are fitted on invented data (seed 0) and kept in ``--cache``, a temporary folder where none is named.
``--quick`` is one row and limits of 0.05 and 0.5 s.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
import pandas as pd
import sklearn
from lightgbm import LGBMClassifier
from sklearn.ensemble import IsolationForest, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mace
from mace import audits

RESULTS = Path(__file__).parent / "results"
ROWS = 2000
EQUATIONS = {"x1": "0.5 * x0", "x2": "0.3 * x1 + 0.2 * x3", "x5": "10 + 0.4 * x4"}


def frame_of(width: int, rows: int = ROWS) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return invented people and labels that no simple rule explains."""
    rng = np.random.default_rng(0)
    values = rng.uniform(0, 100, (rows, width)).round(3)
    frame = pd.DataFrame(values, columns=[f"x{k}" for k in range(width)])
    hidden = np.sin(values[:, : width // 2] / 12).sum(axis=1) + rng.normal(0, 1, (width, 4)).T[0] @ values.T / 100
    return frame, (hidden + rng.normal(0, 0.3, rows) > np.median(hidden)).astype(int)


def space_of(width: int) -> mace.FeatureSpace:
    """Return the space of invented people."""
    return mace.FeatureSpace({f"x{k}": mace.real(0, 100) for k in range(width)})


def scorecard(x0, x1, x2, x3, x4, x5):  # type: ignore[no-untyped-def]
    """Return a decision with many branches."""
    total = 0
    for value in (x0, x1, x2, x3, x4, x5):
        part = 3 * value if value < 17 else 2 * value + 17 if value < 41 else 90 - value
        total = total + (part if value < 77 else 0.5 * value)
        if total > 230:
            total = total - 0.7 * x3
    return "yes" if abs(total - 333) < 2 and min(x0, x3) > 20 else "no"


MAKERS: dict[str, tuple[int, Callable[[], Any]]] = {
    "lightgbm": (50, lambda: LGBMClassifier(n_estimators=500, random_state=0, n_jobs=1, verbose=-1)),
    "forest": (20, lambda: RandomForestClassifier(200, max_depth=12, random_state=0)),
    "small forest": (8, lambda: RandomForestClassifier(40, max_depth=8, random_state=0)),
    "mlp": (20, lambda: make_pipeline(StandardScaler(), MLPClassifier((100, 100, 100), max_iter=60, random_state=0))),
    "small mlp": (8, lambda: make_pipeline(StandardScaler(), MLPClassifier((20, 20), max_iter=200, random_state=0))),
    "soft vote": (20, lambda: VotingClassifier(_voters(), voting="soft")),
    "hard vote": (20, lambda: VotingClassifier(_voters(), voting="hard")),
}


def _voters() -> list[tuple[str, Any]]:
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    network = make_pipeline(StandardScaler(), MLPClassifier((20,), max_iter=200, random_state=0))
    return [("a", scaled), ("b", RandomForestClassifier(30, max_depth=6, random_state=0)), ("c", network)]


@dataclass(frozen=True)
class Case:
    """A hard question: the lane, the kind, the model, and the options, of which constraints may be made from the frame."""

    lane: str
    kind: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    ask: Callable[..., Any] = mace.Explainer.explain
    has_causes: bool = False

    @property
    def name(self) -> str:
        """The case in words."""
        parts = [f"{key}={value if not callable(value) else value.__name__}" for key, value in self.options.items()]
        return ", ".join([self.lane, self.kind, self.model, *(part[:40] for part in parts)])


def region(explainer: mace.Explainer, row: Any, **options: Any) -> Any:
    """Ask for the region around a row, as if it were an answer that changes all features."""
    values = {name: float(row[name]) for name in explainer.space}
    answer = mace.Counterfactual(values, (), 0.0, 0.0, "feasible", explainer.predict(row), "none", 0.0)  # type: ignore[arg-type]
    return explainer.region(answer, list(explainer.space), **options)


def audit(explainer: mace.Explainer, row: Any, **options: Any) -> Any:
    """Audit one person, whose limit is that of a row."""
    target = next(label for label in explainer.classes or () if label != explainer.predict(row))
    return audits.audit(explainer, pd.DataFrame([row]), target=target, resamples=10, **options)


def near(frame: pd.DataFrame) -> list[Any]:
    """Return a constraint to be near data."""
    return [mace.near_data(frame.iloc[:1000], k=3, radius=0.2)]


def typical(frame: pd.DataFrame) -> list[Any]:
    """Return a constraint to be no outlier."""
    return [mace.typical(forest_of_outliers(len(frame.columns)))]


@cache
def forest_of_outliers(width: int) -> IsolationForest:
    """Return a fitted forest of outliers."""
    return IsolationForest(n_estimators=100, contamination=0.3, random_state=0).fit(frame_of(width)[0])


NOISE = [mace.robust({"x0": 2.0, "x1": 2.0, "x3": 1.5})]
CONFLICT = ["x0 + x1 + x2 >= 290", "x0 <= 5", "x3 + x4 <= old.x3 + old.x4 - 1", "x2 * 2 <= x5 + 40"]


def cases() -> Iterator[Case]:
    """Yield every case."""
    levers = mace.Explainer.levers
    for model in MAKERS:
        yield Case("auto", "plain", model)
        yield Case("auto", "certify", model, {"certify": True})
        yield Case("auto", "count", model, {"count": 5})
        yield Case("auto", "levers", model, ask=levers)
        yield Case("auto", "region", model, ask=region)
        yield Case("auto", "audit", model, ask=audit)
        yield Case("auto", "near_data", model, {"constraints": near})
        yield Case("auto", "robust", model, {"constraints": NOISE})
        if model != "soft vote":
            yield Case("auto", "causes", model, has_causes=True)
            yield Case("smt", "plain", model)
            yield Case("milp", "plain", model)
    for model in ("lightgbm", "forest", "mlp", "small forest", "small mlp"):
        yield Case("auto", "typical", model, {"constraints": typical})
        yield Case("auto", "rules", model, {"constraints": CONFLICT})
        yield Case("auto", "certify", model, {"certify": True, "constraints": near})
        yield Case("auto", "certify", model, {"certify": True, "constraints": NOISE})
        yield Case("auto", "causes", model, {"certify": True}, has_causes=True)
        yield Case("auto", "causes", model, ask=levers, has_causes=True)
        yield Case("auto", "digits", model, {"digits": 1})
        yield Case("auto", "l2", model, {"distance": "l2"})
    for model in ("small forest", "small mlp", "hard vote", "function"):
        for lane in ("smt", "milp"):
            yield Case(lane, "certify", model, {"certify": True})
            yield Case(lane, "levers", model, ask=levers)
            yield Case(lane, "region", model, ask=region)
            yield Case(lane, "near_data", model, {"constraints": near})
            yield Case(lane, "count", model, {"count": 5})
            yield Case(lane, "rules", model, {"constraints": CONFLICT})
    for lane in ("auto", "milp", "smt"):
        yield Case(lane, "plain", "function")
    for options in ({}, {"certify": True}, {"count": 3}, {"constraints": NOISE}):
        kind = {"constraints": "robust"}.get(next(iter(options), "plain"), next(iter(options), "plain"))
        yield Case("enumerate", kind, "whole numbers", options)


@dataclass(frozen=True)
class Setting:
    """A fitted model, its space and what it was fitted on."""

    model: Any
    space: mace.FeatureSpace
    frame: pd.DataFrame


def setting_of(name: str, folder: Path) -> Setting:
    """Return a model, fitted now or before."""
    if name == "function":
        return Setting(scorecard, space_of(6), frame_of(6)[0])
    if name == "whole numbers":
        space = mace.FeatureSpace({f"x{k}": mace.integer(0, 10) for k in range(6)})
        frame = frame_of(6)[0].mul(0.1).astype(int)
        labels = frame_of(6)[1]
        return Setting(
            _kept(name, folder, lambda: RandomForestClassifier(20, random_state=0).fit(frame, labels)), space, frame
        )
    width, make = MAKERS[name]
    frame, labels = frame_of(width)
    return Setting(_kept(name, folder, lambda: make().fit(frame, labels)), space_of(width), frame)


def _kept(name: str, folder: Path, make: Callable[[], Any]) -> Any:
    path = folder / f"{name.replace(' ', '-')}.joblib"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        joblib.dump(make(), path)
    return joblib.load(path)


class Predicting:
    """How long models have been predicting, by spans of ``time.monotonic`` and of the thread's CPU time."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float, float, float]] = []
        self._depth = 0

    @contextmanager
    def watched(self, classes: list[type]) -> Iterator[None]:
        """Note what the prediction methods of some classes take."""
        kept = [
            (c, n, getattr(c, n))
            for c in classes
            for n in ("predict", "predict_proba", "decision_function")
            if n in vars(c)
        ]
        for owner, name, method in kept:
            setattr(owner, name, self._timed(method))
        try:
            yield
        finally:
            for owner, name, method in kept:
                setattr(owner, name, method)

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            begun, cpu = time.monotonic(), time.thread_time()
            self._depth += 1
            try:
                return method(*arguments, **options)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.spans.append((begun, time.monotonic(), cpu, time.thread_time()))

        return timed

    def after(self, deadline: float, cpu: float) -> tuple[float, float]:
        """Return wall and CPU seconds of predicting after a deadline."""
        wall = sum(max(0.0, end - max(begun, deadline)) for begun, end, _, _ in self.spans)
        return wall, sum(max(0.0, end - max(begun, cpu)) for _, _, begun, end in self.spans)


WATCHED = [LGBMClassifier, RandomForestClassifier, IsolationForest, MLPClassifier, Pipeline, VotingClassifier]


class Clock:
    """The wall time at which a limit begins, and the thread's CPU time when it ends."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.begun = self.at_deadline = math.inf
        self._cpu = time.pthread_getcpuclockid(threading.get_ident())
        self._timer = threading.Timer(limit, self._ring)

    def _ring(self) -> None:
        self.at_deadline = time.clock_gettime(self._cpu)

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self.begun == math.inf:
            self._timer.start()
            self.begun = time.monotonic()

    def overrun(self, predicting: Predicting) -> dict[str, Any]:
        """End, and return what has passed since the deadline without predicting, in milliseconds."""
        ended, cpu = time.monotonic(), time.clock_gettime(self._cpu)
        self._timer.cancel()
        deadline, since = self.begun + self.limit, min(self.at_deadline, cpu)
        wall, cpu_of_predicting = predicting.after(deadline, since)
        return {
            "wall": 1e3 * max(0.0, ended - deadline - wall),
            "cpu": 1e3 * max(0.0, cpu - since - cpu_of_predicting),
            "in_time": ended <= deadline,
        }


def measured(case: Case, setting: Setting, row: Any, limit: float) -> dict[str, Any]:
    """Ask once, and return by how much the limit was overrun."""
    causes = mace.Causal(EQUATIONS) if case.has_causes else None
    options = {key: value(setting.frame) if callable(value) else value for key, value in case.options.items()}
    explainer = mace.Explainer(setting.model, setting.space, causes)
    predicting, clock = Predicting(), Clock(limit)
    if case.ask is audit:
        _start_with_first_row(explainer, clock)
    with predicting.watched(WATCHED):
        if case.ask is not audit:
            clock.start()
        answer = case.ask(explainer, row, **options, solver=case.lane, time_limit=limit)
        del answer
        return clock.overrun(predicting)


def _start_with_first_row(explainer: Any, clock: Clock) -> None:
    """Have a clock start when an explainer is first asked for an explanation: the limit of an audit is one of each row."""
    explain = explainer.explain

    def timed(*arguments: Any, **options: Any) -> Any:
        clock.start()
        return explain(*arguments, **options)

    explainer.explain = timed


def all_records(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a record of every call."""
    limits = [float(limit) for limit in options.limits.split(",")]
    only = [word for word in options.only.split(",") if word]
    settings: dict[str, Setting] = {}
    for case in cases():
        words = (case.lane, case.kind, case.model)
        if not all(word in words for word in only):
            continue
        if case.model not in settings:
            settings[case.model] = setting_of(case.model, folder)
        setting = settings[case.model]
        for number in range(options.rows):
            for limit in limits:
                record = measured(case, setting, setting.frame.iloc[number], limit)
                record |= {"kind": case.kind, "case": case.name, "row": number, "limit": limit}
                if options.verbose:
                    print(f"{record['wall']:8.0f} {record['cpu']:8.0f}  {limit:<5} {case.name}", flush=True)
                yield record


def warm_up(folder: Path) -> None:
    """Ask every lane one question, so that its kernels are compiled or loaded."""
    for model, solver in (
        ("small forest", "trees"),
        ("small mlp", "network"),
        ("function", "milp"),
        ("function", "smt"),
    ):
        setting = setting_of(model, folder)
        explainer = mace.Explainer(setting.model, setting.space)
        explainer.explain(setting.frame.iloc[0], solver=solver, time_limit=0.2)
        audit(explainer, setting.frame.iloc[0], solver=solver, time_limit=0.2)


def show(records: list[dict[str, Any]]) -> None:
    """Print the distribution, by kind and over all."""
    numbers = f"{'median':>7}{'p99':>7}{'worst':>7}"
    print(f"{'':<12}{'':>6}{'':>9}{'wall':>14}{'':>12}{'CPU':>9}")
    print(f"{'':<12}{'calls':>6}{'in time':>9}{numbers}  {numbers}  the worst, by CPU")
    kinds = list(dict.fromkeys(record["kind"] for record in records))
    for kind in [*kinds, "all"]:
        group = [record for record in records if kind in (record["kind"], "all")]
        wall, cpu = (np.array([record[clock] for record in group]) for clock in ("wall", "cpu"))
        worst = max(group, key=lambda record: record["cpu"])
        in_time = sum(record["in_time"] for record in group)
        shown = [f"{np.median(each):>7.0f}{np.quantile(each, 0.99):>7.0f}{each.max():>7.0f}" for each in (wall, cpu)]
        where = f"{worst['case']}; row {worst['row']}, {worst['limit']} s"
        print(f"{kind:<12}{len(group):>6}{in_time:>9}{'  '.join(shown)}  {where}")


def main() -> None:
    """Print the distribution and write JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", default="")
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--only", default="", help="words of which a case must have all: a lane, a kind, a model")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--interpreted", action="store_true", help="with kernels that are not compiled")
    parser.add_argument("--verbose", action="store_true", help="print every call")
    parser.add_argument("--cache", default=str(Path(tempfile.gettempdir()) / "mace-deadlines"))
    options = parser.parse_args()
    if options.interpreted:
        os.environ |= {"MACE_COMPILE": "never", "NUMBA_CACHE_DIR": tempfile.mkdtemp()}
    else:
        mace.warm_up()
    options.limits = options.limits or ("0.05,0.5" if options.quick else "0.05,0.5,2")
    options.rows = options.rows or (1 if options.quick else 3)
    warnings.simplefilter("ignore")
    folder = Path(options.cache) / sklearn.__version__
    warm_up(folder)
    about = {"python": platform.python_version(), "sklearn": sklearn.__version__, "mace": mace.__version__}
    RESULTS.mkdir(exist_ok=True)
    records = []
    with (RESULTS / "deadlines.jsonl").open("a", encoding="utf-8") as file:
        for record in all_records(options, folder):
            records.append(record)
            file.write(json.dumps({**about, **record}) + "\n")
    print("Overrun in milliseconds of calls whose limits are", options.limits, "seconds")
    show(records)


if __name__ == "__main__":
    main()

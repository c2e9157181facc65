"""Our lanes beside their rivals: the same rows, the same l1 cost, one run.

    python benchmarks/peers.py [--rows 5] [--limit 60] [--settings "adult forest10"] [--peers cpsat,treecf] [--most 3]

Each rival works in a process of its own, asked for one row after the other; a rival that crashes or does not come back is
recorded as such, and started again for the next row. Every answer is judged here: does the real model flip, does the point
lie in the domain, how far is it, and does a rival's proof agree with ours. A valid point nearer than our lower bound ends
the run and is saved.

Times are CPU milliseconds of a rival's process over its whole call. Ours are given twice: inside the solver, and over the
whole ``explain``, which asks the real model too.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import math
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pandas as pd
from hard_trees import hard_setting
from sklearn.neural_network import MLPClassifier
from trees import CLOCK, RESULTS, Setting, paper_setting, versions

import mace
from mace.problem import in_domain
from mace.space import Categorical

Answer = tuple[str, Any, float]
"""A claim (optimal, feasible, infeasible, unknown, guess), a point or a row of values, and a lower bound."""

Solve = Callable[[Any, float], Answer]

SETTINGS: dict[str, Callable[[int], Setting]] = {
    **{
        f"{data} {model}": lambda rows, data=data, model=model: paper_setting(data, model, rows)
        for model in ("forest10", "forest100")
        for data in ("compas", "adult", "credit")
    },
    **{
        f"{data} mlp10x10": lambda rows, data=data: paper_setting(data, "mlp10x10", rows, make=network, codes=False)
        for data in ("adult", "compas", "credit")
    },
    "xgboost 100 x depth 5": lambda rows: shuffled(hard_setting("xgboost 100 x depth 5, 20 features", rows)),
}


NETWORK_PEERS = ("mace", "mace smt", "dice genetic", "mace search")
"""Who takes a network; the others are made for trees."""


def network() -> MLPClassifier:
    """Return the paper's network."""
    return MLPClassifier((10, 10), random_state=0)


def shuffled(setting: Setting) -> Setting:
    """Return the rows in another order, so that a rival that gets only the first ones does not get the farthest ones."""
    return dataclasses.replace(setting, rows=setting.rows.sample(frac=1, random_state=0))


# ---- the rivals


def mace_lane(setting: Setting, solver: str) -> Solve:
    explainer = mace.Explainer(setting.model, setting.space)
    explainer.explain(setting.rows.iloc[0], distance="l0", time_limit=60)

    def solve(row: Any, limit: float) -> Answer:
        answer = explainer.explain(row, distance="l1", solver=solver, time_limit=limit)
        return str(answer.status), setting.space.point(answer[0].values) if answer else None, answer.lower

    return solve


def asking(setting: Setting) -> Solve:
    """Return the search that only asks the model."""
    explainer = mace.Explainer(setting.model, setting.space, unread="search")
    explainer.explain(setting.rows.iloc[0], solver="search", time_limit=60)

    def solve(row: Any, limit: float) -> Answer:
        answer = explainer.explain(row, solver="search")
        return str(answer.status), setting.space.point(answer[0].values) if answer else None, 0.0

    return solve


def cpsat(setting: Setting, *, ball: bool) -> Solve:
    """Return CP-SAT, with or without a ball around the row that holds the nearest accepted row of the training data."""
    import peer_cpsat

    form = mace.models.read(setting.model, setting.space).form
    accepted = setting.train[setting.model.predict(setting.train) == 1]
    known = np.array([setting.space.point(row) for row in accepted.to_dict("records")], dtype=float)
    features = list(setting.space.values())
    is_category = np.array([isinstance(feature, Categorical) for feature in features])
    ranges = np.array([float(feature.range or 1) for feature in features])

    def solve(row: Any, limit: float) -> Answer:
        factual = setting.space.point(row)
        moved = known - np.array(factual, dtype=float)
        nearest = np.where(is_category, moved != 0, np.abs(moved) / ranges).mean(axis=1).min()
        return peer_cpsat.solve(form, factual, limit, nearest * (1 + 1e-9) if ball else math.inf)

    return solve


def treecf(setting: Setting, *, warm_start: bool) -> Solve:
    import peer_treecf

    return peer_treecf.make(setting, warm_start=warm_start)


def dice(setting: Setting) -> Solve:
    import peer_dice

    return peer_dice.make(setting)


OURS = "mace"
PEERS: dict[str, tuple[Callable[[Setting], Solve], str]] = {
    OURS: (lambda setting: mace_lane(setting, "auto"), "mace-xai"),
    "mace smt": (lambda setting: mace_lane(setting, "smt"), "z3-solver"),
    "cpsat": (lambda setting: cpsat(setting, ball=False), "ortools"),
    "cpsat ball": (lambda setting: cpsat(setting, ball=True), "ortools"),
    "treecf": (lambda setting: treecf(setting, warm_start=True), "treecf"),
    "treecf cold": (lambda setting: treecf(setting, warm_start=False), "treecf"),
    "dice genetic": (dice, "dice-ml"),
    "mace search": (asking, "mace-xai"),
}
"""Who is asked, and the package whose version is recorded. "cold": without the warm start, whose point need not keep treecf's
own integer policy."""

GRACE = 60.0
"""Seconds that a rival may take beyond its limit, to build what it solves, before it is ended."""


# ---- one process a rival


def serve(peer: str, setting: Setting, pipe: Connection) -> None:
    """Answer row after row; what goes wrong is an answer too."""
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress bars of the rivals
    started = time.process_time()
    solve = PEERS[peer][0](setting)
    pipe.send(time.process_time() - started)
    while (question := pipe.recv()) is not None:
        row, limit = question
        CLOCK.read()
        wall, cpu = time.monotonic(), time.process_time()
        try:
            claim, point, lower = solve(row, limit)
            reply = {"claim": claim, "point": point, "lower": lower}
        except Exception as error:  # a rival's own failure, of whatever kind, is its result
            reply = {"claim": "error", "error": f"{type(error).__name__}: {error}"[:300]}
        reply |= {"cpu": time.process_time() - cpu, "wall": time.monotonic() - wall, "solver": CLOCK.read()}
        pipe.send(reply)


class Worker:
    """A rival in its own process, started when it is first asked and again after a crash."""

    def __init__(self, peer: str, setting: Setting) -> None:
        self.peer, self.setting = peer, setting
        self.process: Any = None
        self.preparing = math.nan

    def ask(self, row: Any, limit: float) -> dict[str, Any]:
        try:
            if self.process is None:
                self._start()
            self.pipe.send((row, limit))
            if self.pipe.poll(limit + GRACE):
                return self.pipe.recv()
            reply = {"claim": "did not come back", "cpu": limit + GRACE, "wall": limit + GRACE}
        except (EOFError, OSError) as error:
            reply = {"claim": "crashed", "error": repr(error), "cpu": math.nan, "wall": math.nan}
        self.stop()
        return reply

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.peer, self.setting, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.preparing = self.pipe.recv()

    def stop(self, *, patience: float = 0.0) -> None:
        """End the process, with some seconds to end by itself where it is only waiting for a row."""
        if self.process is None:
            return
        if patience:
            self.pipe.send(None)
            self.process.join(patience)
        self.process.kill()
        self.process.join()
        self.process = None


# ---- judging


def judge(setting: Setting, row: Any, reply: dict[str, Any]) -> dict[str, Any]:
    """Return the reply with what it is worth: valid, flips, distance."""
    point = reply.pop("point", None)
    if point is None:
        return reply
    factual = setting.space.point(row)
    if isinstance(point, dict):
        reply["values"] = point
        try:
            point = setting.space.point(point)
        except mace.InvalidRow as error:
            return reply | {"in_domain": False, "flips": None, "error": str(error)[:200]}
    features = setting.space.values()
    inside = all(in_domain(feature, value, own) for feature, value, own in zip(features, point, factual, strict=True))
    frame = setting.space.frame_of([point]) if inside else pd.DataFrame([point], columns=list(setting.space))
    model = setting.model if inside or not hasattr(setting.model, "steps") else setting.model[-1]
    flips = bool(model.predict(frame if model is setting.model else frame.to_numpy(dtype=float))[0] == 1)
    metric = mace.Distance(l1=1).from_factual(setting.space, factual)
    return reply | {
        "point": [float(value) for value in point],
        "in_domain": inside,
        "flips": flips,
        "distance": float(metric.measure(point)),
    }


def check_ours(setting: Setting, row: Any, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """End the run where a rival's valid point lies below our bound, or its proof below our point."""
    valid = theirs.get("in_domain") and theirs.get("flips")
    if valid and theirs["distance"] < ours["lower"] * (1 - 1e-12):
        case = {"setting": setting.name, "row": row.to_dict(), "ours": ours, "theirs": theirs}
        path = RESULTS / "wrong.json"
        path.write_text(json.dumps(case, default=str, indent=1))
        raise AssertionError(f"a rival is nearer than our lower bound; the case is in {path}")


# ---- the table


def summary(records: list[dict[str, Any]], ours: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one rival's figures over its rows, beside ours on the same rows."""
    cpu = 1000 * np.array([record["cpu"] for record in records])
    same = ours[: len(records)]
    solver = 1000 * np.array([record["solver"] for record in same])
    whole = 1000 * np.array([record["cpu"] for record in same])
    found = [record for record in records if record.get("distance") is not None]
    proofs = [
        (mine, theirs)
        for mine, theirs in zip(same, records, strict=True)
        if theirs["claim"] == mine["claim"] == "optimal"
    ]
    valid = [
        (mine["distance"], theirs["distance"])
        for mine, theirs in zip(same, records, strict=True)
        if theirs.get("flips") and theirs.get("in_domain") and mine["claim"] == "optimal"
    ]
    nearest, given = np.array(valid).reshape(-1, 2).T
    return {
        "rows": len(records),
        "median_ms": float(np.nanmedian(cpu)),
        "worst_ms": float(np.nanmax(cpu)),
        "ratio_solver": float(np.nanmedian(cpu) / np.median(solver)),
        "ratio_call": float(np.nanmedian(cpu) / np.median(whole)),
        "claimed": sum(record["claim"] in ("optimal", "infeasible") for record in records),
        "agree": sum(abs(mine["distance"] - theirs["distance"]) <= 1e-6 for mine, theirs in proofs),
        "difference": max((abs(mine["distance"] - theirs["distance"]) for mine, theirs in proofs), default=math.nan),
        "outside": sum(not record.get("in_domain", True) for record in records),
        "not_flipped": sum(record.get("flips") is False for record in records),
        "none": len(records) - len(found) - sum(record.get("in_domain") is False and "distance" not in record for record in records),
        "failed": [record["claim"] for record in records if record["claim"] in ("error", "crashed", "did not come back")],
        "farther": float(given.mean() / nearest.mean()) if valid else math.nan,
        "farthest": float((given / np.maximum(nearest, 1e-6)).max()) if valid else math.nan,
    }  # fmt: skip


HEADS = {
    "rows": 6,
    "median ms": 12,
    "worst ms": 12,
    "x solver": 11,
    "x call": 9,
    "claimed": 9,
    "agree": 7,
    "outside": 9,
    "no flip": 9,
    "none": 6,
    "farther": 10,
}
"""What is printed: CPU times; their ratio to ours, in the solver and over the whole call; proofs claimed, and those that agree
with ours; points outside of the domain or on the wrong side; rows without a point; and how far the valid points are, as a
multiple of ours."""


def line(peer: str, figures: dict[str, Any]) -> str:
    f = figures
    times = f"{f['rows']:6d}{f['median_ms']:12.1f}{f['worst_ms']:12.1f}{f['ratio_solver']:11.1f}{f['ratio_call']:9.1f}"
    counts = f"{f['claimed']:9d}{f['agree']:7d}{f['outside']:9d}{f['not_flipped']:9d}{f['none']:6d}"
    return f"  {peer:13}{times}{counts}   {f['farther']:.3g} (worst {f['farthest']:.3g}) {' '.join(f['failed'])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--most", type=int, default=3, help="rows for a rival once it has spent the limit on one")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a row")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--peers", default=",".join(PEERS))
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    peers = [OURS, *(peer for peer in arguments.peers.split(",") if peer != OURS and is_here(peer))]
    print(f"  {'':13}" + "".join(f"{head:>{width}}" for head, width in HEADS.items()))
    with (RESULTS / "peers.jsonl").open("w") as out:
        for name in arguments.settings.split(","):
            try:
                setting = SETTINGS[name](arguments.rows)
            except (mace.DatasetUnavailable, ImportError) as error:
                print(f"{name}: LEFT OUT, {error}")
                continue
            print(name, flush=True)
            ours: list[dict[str, Any]] = []
            for peer in peers:
                if "mlp" in name and peer not in NETWORK_PEERS:
                    continue
                records = run(peer, setting, ours, arguments)
                if peer == OURS:
                    ours = records
                figures = summary(records, ours)
                for record in records:
                    out.write(json.dumps({"setting": name, "peer": peer, **record}, default=float) + "\n")
                head = {"setting": name, "peer": peer, "limit": arguments.limit, "version": version(peer), **versions()}
                out.write(json.dumps(head | {"summary": figures}) + "\n")
                out.flush()
                print(line(peer, figures), flush=True)


def run(peer: str, setting: Setting, ours: list[dict[str, Any]], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    worker = Worker(peer, setting)
    records: list[dict[str, Any]] = []
    for position, (_, row) in enumerate(setting.rows.iterrows()):
        slow = sum(not record["wall"] < 0.9 * arguments.limit for record in records)
        if slow and len(records) >= arguments.most:
            break
        records.append(judge(setting, row, worker.ask(row, arguments.limit)))
        records[-1] |= {"row": position, "preparing": worker.preparing}
        if ours:
            check_ours(setting, row, ours[position], records[-1])
    worker.stop(patience=5.0)
    return records


def is_here(peer: str) -> bool:
    package = {"ortools": "ortools", "treecf": "treecf", "dice-ml": "dice_ml"}.get(PEERS[peer][1])
    if package is None or importlib.util.find_spec(package) is not None:
        return True
    print(f"{peer}: LEFT OUT, {PEERS[peer][1]} is NOT INSTALLED; `make bench-peers` installs it apart from the project")
    return False


def version(peer: str) -> str:
    return f"{PEERS[peer][1]} {importlib.metadata.version(PEERS[peer][1])}"


if __name__ == "__main__":
    main()

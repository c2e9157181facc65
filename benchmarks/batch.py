"""Batches: milliseconds a row beside a loop over ``explain``, speed-up with processes and memory, DiCE on the same rows; a long CSV file.

    python benchmarks/batch.py [--rows 20000] [--models pipeline-lr,pipeline-mlp10x10,forest100] [--jobs 1,2] [--loop 300] [--dice 100]
        [--csv 10000,100000]

Adult's held-out and training rows, whatever the model says of them, asked for the other class, l1. Each line is a process of its own with
its workers: "ms/row" is over all rows, from the call to its end, "alone" of a loop over ``explain`` about the first ``--loop`` of them in
the same process, whose answers must be equal to those of the batch; "late" is ms a row over the second half of the rows, when all processes
have started. "calls" is how often the model's own ``predict`` was called for 1,000 rows. "MB" is the most memory that the process and its
workers held at one time, by their resident sets. DiCE is timed on the first rows only, in one process, where it is installed
(``make bench-batch``). A model's name with ``-unrounded`` behind it is asked for any numbers: Adult's answers are round otherwise.

The CSV part puts distinct rows, as many as asked for, through ``mace batch`` (a tree of depth 8: Adult's rows, each number moved by a
little where there are too few) and samples its memory as it runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace

RESULTS = Path(__file__).parent / "results"
MODELS: dict[str, Any] = {
    "tree8": lambda: DecisionTreeClassifier(max_depth=8, random_state=0),
    "forest100": lambda: RandomForestClassifier(100, random_state=0),
    "mlp10x10": lambda: MLPClassifier((10, 10), random_state=0),
    "pipeline-lr": lambda: LogisticRegression(max_iter=1000),
    "pipeline-mlp10x10": lambda: MLPClassifier((10, 10), random_state=0),
}


UNROUNDED = "-unrounded"
"""Behind a model's name: answers need not be round."""


def fitted(name: str) -> tuple[Any, mace.datasets.Dataset]:
    """Return a model fitted on 10,000 rows of Adult, and Adult in an order of its own."""
    data = mace.datasets.load("adult")
    order = np.random.default_rng(0).permutation(len(data.frame))
    chosen = order[:10_000]
    encoder: Any
    if name.startswith("pipeline"):
        levels = (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number"))
        encoder = make_column_transformer(levels, (StandardScaler(), make_column_selector(dtype_include="number")))
    elif name.startswith("mlp"):
        encoder = mace.Encoder(data.space)
    else:
        encoder = mace.Encoder(data.space, categorical="codes", ordinal="codes")
    model = make_pipeline(encoder, MODELS[name]()).fit(data.frame.iloc[chosen], data.labels.iloc[chosen])
    return model, data


def rows_of(data: mace.datasets.Dataset, rows: int) -> pd.DataFrame:
    """Return so many distinct rows: Adult's own, then copies of them with other numbers."""
    rng = np.random.default_rng(1)
    frame, numbers = data.frame.drop_duplicates(), [name for name in data.frame if data.frame[name].dtype.kind == "i"]
    parts = [frame.iloc[rng.permutation(len(frame))]]
    while sum(map(len, parts)) < rows:
        moved = parts[0].copy()
        for name in numbers:
            feature = data.space[name]
            moved[name] = (moved[name] + rng.integers(-9, 10, len(moved))).clip(feature.low, feature.high)
        parts.append(moved)
        parts = [pd.concat(parts).drop_duplicates()]
    return pd.concat(parts).head(rows).reset_index(drop=True)


# ---- memory


def resident(pid: int) -> int:
    """Return the bytes that a process and its descendants hold."""
    page = os.sysconf("SC_PAGE_SIZE")
    try:
        total = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = {child for task in tasks for child in (task / "children").read_text().split()}
    except (OSError, IndexError, ValueError):  # it has just ended
        return 0
    return total + sum(resident(int(child)) for child in children)


def watched(command: list[str]) -> tuple[float, list[tuple[float, int]], str]:
    """Run a command; return its seconds, its memory over time, and what it printed."""
    started = time.monotonic()
    samples: list[tuple[float, int]] = []
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed)
        while process.poll() is None:
            samples.append((time.monotonic() - started, resident(process.pid)))
            time.sleep(0.2)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        printed.seek(0)
        return time.monotonic() - started, samples, printed.read()


# ---- one measurement, in a process of its own


def measure(model_name: str, rows: int, jobs: int, loop: int) -> dict[str, Any]:
    name = model_name.removesuffix(UNROUNDED)
    asked: dict[str, Any] = {} if name == model_name else {"round_to": None}
    model, data = fitted(name)
    explainer = mace.Explainer(model, data.space)
    frame = rows_of(data, rows)
    explainer.explain(frame.iloc[0], **asked)
    begun = time.monotonic()
    alone = [explainer.explain(row, **asked) for row in frame.head(loop).to_dict("records")]
    each = (time.monotonic() - begun) / max(loop, 1)
    calls = counted_calls(explainer, frame.head(1000), asked)
    stamps: list[float] = []
    started = time.monotonic()
    batch = explainer.explain_many(
        frame, n_jobs=jobs, on_progress=lambda _: stamps.append(time.monotonic() - started), **asked
    )
    for one, other in zip(alone, batch, strict=False):
        assert (one.status, one.lower, one.score, one.prediction) == (
            other.status,
            other.lower,
            other.score,
            other.prediction,
        )
        assert [(c.values, c.distance, c.lower, c.score) for c in one] == [
            (c.values, c.distance, c.lower, c.score) for c in other
        ]
    half = rows // 2
    return {
        "model": model_name,
        "rows": rows,
        "jobs": jobs,
        "first_s": stamps[0],
        "ms": 1000 * batch.seconds / rows,
        "late_ms": 1000 * (stamps[-1] - stamps[half]) / (rows - 1 - half),
        "alone_ms": 1000 * each,
        "calls": calls,
        "seconds": batch.seconds,
        "proved": batch.proved_share,
        "counts": batch.counts,
    }


def counted_calls(explainer: mace.Explainer, frame: pd.DataFrame, asked: dict[str, Any]) -> int:
    """Return how often the model is asked what it predicts, rows in one call counted once."""
    live, calls = explainer._live, 0
    before = live._asked

    def ask(points: Any) -> Any:
        nonlocal calls
        calls += 1
        return before.ask(points)

    live._asked = replace(before, ask=ask)
    explainer.explain_many(frame, **asked)
    live._asked = before
    return calls


def dice(model_name: str, rows: int) -> dict[str, Any]:
    """Return DiCE's rate, and ours in one process, on the same rows."""
    import peer_dice
    from trees import Setting

    model, data = fitted(model_name)
    frame = rows_of(data, rows)
    train = np.random.default_rng(0).permutation(len(data.frame))[:10_000]
    setting = Setting(model_name, model, data.space, data.frame.iloc[train], data.labels.iloc[train], frame)
    guess = peer_dice.make(setting)
    before = model.predict(frame)
    started, valid, distances = time.monotonic(), 0, []
    explainer = mace.Explainer(model, data.space)
    guesses: list[Any] = []
    for _, row in frame.iterrows():
        try:
            guesses.append(guess(row, 0.0)[1])
        except Exception as error:  # its own failure, of whatever kind, is its result
            guesses.append(error)
    seconds = time.monotonic() - started
    explainer.explain(frame.iloc[0])
    ours = explainer.explain_many(frame)
    for (_, row), found, answer, label in zip(frame.iterrows(), guesses, ours, before, strict=True):
        try:
            point = data.space.point(found)
        except (mace.InvalidRow, TypeError):
            continue
        if model.predict(data.space.frame_of([point]))[0] != label:
            valid += 1
            metric = mace.Distance(l1=1).from_factual(data.space, data.space.point(row))
            distances.append((float(metric.measure(point)), answer[0].distance))
    theirs, nearest = np.array(distances).reshape(-1, 2).mean(axis=0) if distances else (np.nan, np.nan)
    return {
        "model": model_name,
        "rows": rows,
        "dice_rows_per_s": rows / seconds,
        "mace_rows_per_s": rows / ours.seconds,
        "dice_valid": valid,
        "mace_proved": ours.proved_share,
        "dice_farther": float(theirs / nearest),
    }


# ---- the long file


def long_file(rows: int, jobs: int) -> dict[str, Any]:
    """Put so many rows through ``mace batch`` and watch its memory."""
    model, data = fitted("tree8")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        skops.io.dump(model, place / "model.skops")
        (place / "space.json").write_text(data.space.to_json())
        rows_of(data, rows).to_csv(place / "rows.csv", index=False)
        command = [
            sys.executable,
            "-c",
            "from mace.cli import main; main()",
            "batch",
            "--data",
            str(place / "rows.csv"),
        ]
        command += ["--model", str(place / "model.skops"), "--space", str(place / "space.json")]
        command += ["--out", str(place / "answers.parquet"), "--jobs", str(jobs)]
        seconds, samples, printed = watched(command)
        found = pd.read_parquet(place / "answers.parquet", columns=["row", "status"])
    assert found["row"].tolist() == list(range(rows))
    held = np.array([size for _, size in samples]) / 1e6
    late = held[len(held) // 10 :]
    return {
        "rows": rows,
        "jobs": jobs,
        "seconds": seconds,
        "rows_per_s": rows / seconds,
        "peak_mb": float(held.max()),
        "first_half_mb": float(np.median(late[: len(late) // 2])),
        "second_half_mb": float(np.median(late[len(late) // 2 :])),
        "printed": printed.split(". Answers")[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--models", default="pipeline-lr,pipeline-mlp10x10,forest100")
    parser.add_argument("--jobs", default="1,2")
    parser.add_argument("--loop", type=int, default=300, help="rows of the loop over explain")
    parser.add_argument("--dice", type=int, default=100, help="rows for DiCE; 0 leaves it out")
    parser.add_argument("--csv", default="10000,100000", help="lengths of the CSV files; empty leaves them out")
    parser.add_argument("--one", nargs=4, metavar=("MODEL", "ROWS", "JOBS", "LOOP"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    if arguments.one:
        model, *numbers = arguments.one
        print(json.dumps(measure(model, *map(int, numbers))))
        return
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "batch.jsonl").open("a") as out:

        def keep(kind: str, record: dict[str, Any]) -> None:
            out.write(json.dumps({"kind": kind, **record}) + "\n")
            out.flush()

        print(
            f"{'model':20}{'rows':>7}{'jobs':>5}{'ms/row':>8}{'alone':>8}{'times':>7}{'late':>7}{'speed-up':>10}{'calls':>7}"
            f"{'proved':>8}{'MB':>7}"
        )
        for model in filter(None, arguments.models.split(",")):
            first = None
            for jobs in arguments.jobs.split(","):
                command = [sys.executable, __file__, "--one", model, str(arguments.rows), jobs, str(arguments.loop)]
                _, samples, printed = watched(command)
                record = json.loads(printed) | {"peak_mb": max(size for _, size in samples) / 1e6}
                first = first or record["late_ms"]
                keep("rate", record)
                times = record["alone_ms"] / record["ms"]
                print(
                    f"{model:20}{arguments.rows:7d}{jobs:>5}{record['ms']:8.2f}{record['alone_ms']:8.2f}{times:7.1f}"
                    f"{record['late_ms']:7.2f}{first / record['late_ms']:10.2f}{record['calls']:7d}"
                    f"{record['proved']:8.1%}{record['peak_mb']:7.0f}",
                    flush=True,
                )
        if arguments.dice:
            for model in filter(None, arguments.models.split(",")):
                try:
                    record = dice(model, arguments.dice)
                except ImportError as error:
                    print(f"DiCE LEFT OUT: {error}")
                    break
                keep("dice", record)
                print(
                    f"{model}: DiCE {record['dice_rows_per_s']:.2f} rows/s, {record['dice_valid']} of {record['rows']} valid, "
                    f"{record['dice_farther']:.2f} times as far; MACE {record['mace_rows_per_s']:.1f} rows/s in one process, "
                    f"{record['mace_proved']:.0%} proved",
                    flush=True,
                )
        for rows in map(int, filter(None, arguments.csv.split(","))):
            record = long_file(rows, int(arguments.jobs.split(",")[-1]))
            keep("csv", record)
            print(
                f"CSV of {rows} rows: {record['seconds']:.0f} s, {record['rows_per_s']:.0f} rows/s, peak {record['peak_mb']:.0f} MB, "
                f"median {record['first_half_mb']:.0f} MB in the first half, {record['second_half_mb']:.0f} MB in the second; "
                f"{record['printed']}",
                flush=True,
            )


if __name__ == "__main__":
    main()

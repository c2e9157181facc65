"""A back-test: how many nearest answers survive when the model is fitted again, and what it costs in distance to have them survive.

    python benchmarks/retrain.py [--rows 40] [--refits 20] [--limit 10]     # measures, then draws docs/retrain.svg
    python benchmarks/retrain.py --draw                                     # draws the last measurement again
    python benchmarks/retrain.py --speed [--rows 15]                        # ratios of CPU time, sets beside one model

Half of the people of Adult or German train the models, and refused people of the other half are explained, l1, any feature free. An
answer is asked of the model of today alone, of it with a margin on the probability, and of sets: the model of today and bootstraps of
it, all of which must agree. Then the recipe is fitted again, on bootstraps of the training half that no set has seen, or on windows of
it by age, each a little later than the one before ("shifted"), of which the model of today knows the first. Survival is the share of
answers and refits in which the answer is predicted as the target; cost is the mean distance over that of the nearest answers of one
model, for the people whom every way answers.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trees import RESULTS, versions

import mace

PICTURE = Path(__file__).parent.parent / "docs" / "retrain.svg"
MEASURED = RESULTS / "retrain.jsonl"
WANTED = {"adult": 1, "german": "good"}
MARGINS = (0.6, 0.7)
SIZES = (3, 5, 10)
ONE = "one model"
WINDOW = 0.6
"""The share of the training people, by age, of which a model knows in the shifted splits."""
MOST_TRAINED = 6000


def recipe(name: str, space: mace.FeatureSpace) -> Any:
    """Return an unfitted model."""
    if name == "forest":
        return make_pipeline(mace.Encoder(space), RandomForestClassifier(20, max_depth=8, random_state=0))
    return make_pipeline(mace.Encoder(space), StandardScaler(), LogisticRegression(max_iter=2000))


def windows(frame: pd.DataFrame, count: int) -> list[Any]:
    """Return the rows of windows by age, with some noise, the first for the model of today."""
    age = frame["age"] + np.random.default_rng(1).normal(0, 10, len(frame))
    order, width = np.argsort(age.to_numpy(), kind="stable"), round(WINDOW * len(frame))
    begins = np.linspace(0, len(frame) - width, count + 1).round().astype(int)
    return [order[begin : begin + width] for begin in begins]


def refitted(way: str, name: str, data: Any, train: Any, refits: int) -> tuple[Any, pd.DataFrame, Any, list[Any]]:
    """Return the model of today, the rows and labels that it was fitted on, and the models of later."""
    frame, labels, made = data.frame.iloc[train], data.labels.iloc[train], recipe(name, data.space)
    if way == "bootstraps":
        return (
            made.fit(frame, labels),
            frame,
            labels,
            list(mace.bootstrap(made, frame, labels, refits, random_state=99)),
        )
    first, *later = windows(frame, refits)
    models = [clone(made).fit(frame.iloc[rows], labels.iloc[rows]) for rows in later]
    return made.fit(frame.iloc[first], labels.iloc[first]), frame.iloc[first], labels.iloc[first], models


def ways(
    today: Any, frame: pd.DataFrame, labels: Any, space: mace.FeatureSpace, wanted: Any
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each way of asking: its name, the explainer, and the target."""
    alone = mace.Explainer(today, space)
    yield ONE, alone, wanted
    for margin in MARGINS:
        yield f"P >= {margin}", alone, mace.at_least(margin, wanted)
    others = list(mace.bootstrap(clone(today), frame, labels, max(SIZES) - 1, random_state=0))
    for size in SIZES:
        yield f"{size} models", mace.Explainer([today, *others[: size - 1]], space), wanted


def back_test(data_name: str, name: str, way: str, rows: int, refits: int, limit: float) -> Iterator[dict[str, Any]]:
    """Measure every way of asking on one data set, recipe and kind of refit."""
    data, wanted = mace.datasets.load(data_name), WANTED[data_name]
    mixed = np.random.default_rng(0).permutation(len(data.frame))
    half = len(mixed) // 2
    today, frame, labels, later = refitted(way, name, data, np.sort(mixed[:half][:MOST_TRAINED]), refits)
    tested = data.frame.iloc[mixed[half:]]
    refused = tested[today.predict(tested) != wanted][:rows]
    found: dict[str, list[Any]] = {}
    seconds: dict[str, float] = {}
    for asked, explainer, target in ways(today, frame, labels, data.space, wanted):
        begun = time.process_time()
        found[asked] = [
            explainer.explain(row, target, time_limit=limit, round_to=None) for _, row in refused.iterrows()
        ]
        seconds[asked] = time.process_time() - begun
    everybody = [k for k in range(len(refused)) if all(len(each[k]) for each in found.values())]
    near = np.mean([found[ONE][k][0].distance for k in everybody])
    for asked, answers in found.items():
        table = data.space.frame_of([data.space.point(answer[0].values) for answer in answers if answer])
        survived = np.array([model.predict(table) == wanted for model in later])
        yield {
            "data": data_name,
            "model": name,
            "refits": way,
            "asked": asked,
            "people": len(answers),
            "answered": len(table),
            "proved": float(np.mean([answer.status.is_final for answer in answers])),
            "survival": float(survived.mean()),
            "all_refits": float(survived.all(axis=0).mean()),
            "cost": float(np.mean([answers[k][0].distance for k in everybody]) / near),
            "seconds": seconds[asked] / len(answers),
        }


# ---- speed


def speed(rows: int) -> None:
    """Print how long sets take beside one model, in one run."""
    data = mace.datasets.load("adult")
    frame, labels = data.frame[:MOST_TRAINED], data.labels[:MOST_TRAINED]
    encoder, lines = mace.Encoder(data.space), recipe("logistic", data.space)
    pairs = {
        "5 forests of 20 : one of 100": (
            mace.bootstrap(
                make_pipeline(encoder, RandomForestClassifier(20, random_state=0)), frame, labels, 5, random_state=0
            ),
            make_pipeline(encoder, RandomForestClassifier(100, random_state=0)).fit(frame, labels),
        ),
        "5 logistic regressions : one": (
            mace.bootstrap(lines, frame, labels, 5, random_state=0),
            clone(lines).fit(frame, labels),
        ),
    }
    for name, models in pairs.items():
        times = []
        for model in models:
            explainer = mace.Explainer(model, data.space)
            each = frame[
                [label == 0 for label in explainer.predict_many([row for _, row in frame[: 4 * rows].iterrows()])]
                + [False] * (len(frame) - 4 * rows)
            ][:rows]
            explainer.explain(each.iloc[0], 1)
            own = []
            for _, row in each.iterrows():
                begun = time.process_time()
                explainer.explain(row, 1)
                own.append(time.process_time() - begun)
            times.append(np.array(own))
        several, one = times
        print(
            f"{name}: median {1000 * np.median(several):.1f} : {1000 * np.median(one):.1f} ms, ratio of medians "
            f"{np.median(several) / np.median(one):.2f}, of sums {several.sum() / one.sum():.2f}",
            flush=True,
        )


# ---- drawing


def draw(records: list[dict[str, Any]]) -> None:
    """Draw survival over cost: a panel for each data set and kind of refit."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "mace", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"}
    panels = list(dict.fromkeys((record["data"], record["refits"]) for record in records))
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.6), sharey=True, layout="constrained")
    for axis, (data, refits) in zip(axes.flat, panels, strict=False):
        mine = [record for record in records if (record["data"], record["refits"]) == (data, refits)]
        for colour, model in zip(
            ("#0072b2", "#d55e00"), dict.fromkeys(record["model"] for record in mine), strict=False
        ):
            for style, label, kind, place in (
                ("o-", "sets of", "models", (-3, 5)),
                ("s--", "P at least", "P >=", (2, -9)),
            ):
                line = [
                    each for each in mine if each["model"] == model and (kind in each["asked"] or each["asked"] == ONE)
                ]
                xs, ys = [record["cost"] for record in line], [record["survival"] for record in line]
                axis.plot(xs, ys, style, color=colour, ms=4, label=f"{model}: {label} ...")
                for record in line[1:]:
                    number = record["asked"].removesuffix(" models").removeprefix("P >= ")
                    at = record["cost"], record["survival"]
                    axis.annotate(number, at, place, textcoords="offset points", fontsize=7, color=colour)
        axis.set_title(f"{data}, {refits}", fontsize=9)
        axis.set_xlabel("distance, nearest of one model = 1")
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("answers that survive a refit")
    axes[0, 0].legend(fontsize=7)
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--refits", type=int, default=20)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.speed:
        mace.warm_up()
        speed(options.rows)
        return
    if not options.draw:
        mace.warm_up()
        RESULTS.mkdir(exist_ok=True)
        print("| data | model | refits | asked of | survive a refit | all refits | distance | proved | s |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        with MEASURED.open("w") as out:
            for data in WANTED:
                for way in ("bootstraps", "shifted"):
                    for model in ("forest", "logistic"):
                        for record in back_test(data, model, way, options.rows, options.refits, options.limit):
                            out.write(json.dumps(record | versions()) + "\n")
                            out.flush()
                            print(
                                f"| {data} | {model} | {way} | {record['asked']} | {record['survival']:.0%} | {record['all_refits']:.0%} | "
                                f"{record['cost']:.2f} | {record['proved']:.0%} | {record['seconds']:.2f} |",
                                flush=True,
                            )
    draw([json.loads(line) for line in MEASURED.read_text().splitlines()])


if __name__ == "__main__":
    main()

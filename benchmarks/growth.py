"""How the tree lane's cost grows: with trees, depth, free features and the distance.

    python benchmarks/growth.py [--rows 15] [--limit 10]     # measures, then draws docs/growth-trees.svg
    python benchmarks/growth.py --draw                       # draws the last measurement again

CPU time in the solver, median and worst over the rows, l1 where not said otherwise. Where the limit ended a row, its time
counts as it is and the proved share says so. Drawing needs matplotlib, which is for the benchmarks only.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from hard_trees import classification, xgb
from sklearn.ensemble import RandomForestClassifier
from trees import CLOCK, RESULTS, Setting, paper_setting, versions

import mace

PICTURE = Path(__file__).parent.parent / "docs" / "growth-trees.svg"
MEASURED = RESULTS / "growth.jsonl"
FULL = 40
"""Where "full depth" is drawn."""

PANELS = {
    "trees": "trees (forests at full depth, boosting at depth 5)",
    "depth": "depth (100 trees; the forests' last point is full depth)",
    "free": "free features (100 trees, the others fixed)",
    "distance": "distance (100 trees)",
}
DISTANCES = ("l0", "l1", "l2", "linf")


def boosting(trees: int, depth: int | None, rows: int) -> Setting:
    """Return XGBoost over 20 numeric features, and refused rows in the order of the data."""
    frame, labels = classification(10_000, 20, 10)
    model = xgb(trees, depth or 6).fit(frame, labels)
    refused = frame[model.predict(frame) == 0][:rows]
    return Setting("boosting", model, mace.FeatureSpace.from_frame(frame), frame, labels, refused)


def forest(data: str, trees: int, depth: int | None, rows: int) -> Setting:
    make = partial(RandomForestClassifier, trees, max_depth=depth, random_state=0)
    return paper_setting(data, f"forest{trees}", rows, make)


SERIES: dict[str, Callable[[int, int | None, int], Setting]] = {
    "Adult, forest": partial(forest, "adult"),
    "Credit, forest": partial(forest, "credit"),
    "synthetic, XGBoost": boosting,
}
USUAL: dict[str, int | None] = {"Adult, forest": None, "Credit, forest": None, "synthetic, XGBoost": 5}
DEPTHS: dict[str, tuple[int | None, ...]] = {
    "Adult, forest": (2, 4, 8, 16, None),
    "Credit, forest": (2, 4, 8, 16, None),
    "synthetic, XGBoost": (2, 3, 4, 5, 6, 8),
}


def points(series: str, rows: int, limit: float) -> Iterator[dict[str, Any]]:
    """Measure one series, panel after panel."""
    make = SERIES[series]
    for trees in (10, 30, 100, 300):
        yield {"panel": "trees", "x": trees} | measure(make(trees, USUAL[series], rows), limit)
    for depth in DEPTHS[series]:
        yield {"panel": "depth", "x": depth or FULL} | measure(make(100, depth, rows), limit)
    setting = make(100, USUAL[series], rows)
    for free in (1, 2, 4, 8, len(setting.space), *((12,) if len(setting.space) > 12 else ())):
        yield {"panel": "free", "x": free} | measure(setting, limit, free=free)
    for distance in DISTANCES:
        yield {"panel": "distance", "x": distance} | measure(setting, limit, distance=distance)


def measure(setting: Setting, limit: float, distance: str = "l1", free: int | None = None) -> dict[str, Any]:
    """Return the CPU milliseconds in the solver; ``free`` features, those of most weight in the model, may change."""
    explainer = mace.Explainer(setting.model, setting.space)
    constraints = [mace.fixed(*ranked(setting)[free:])] if free is not None and free < len(setting.space) else []
    explainer.explain(setting.rows.iloc[0], time_limit=limit, constraints=constraints)
    seconds, statuses, distances = [], [], []
    for _, row in setting.rows.iterrows():
        CLOCK.read()
        answer = explainer.explain(row, distance=distance, constraints=constraints, time_limit=limit)
        seconds.append(CLOCK.read())
        statuses.append(str(answer.status))
        distances += [best.distance for best in answer]
    times = 1000 * np.array(seconds)
    return {
        "median_ms": float(np.median(times)),
        "worst_ms": float(times.max()),
        "proved": float(np.mean([status in ("optimal", "infeasible") for status in statuses])),
        "infeasible": statuses.count("infeasible"),
        "median_distance": float(np.median(distances)) if distances else None,
    }


def ranked(setting: Setting) -> list[str]:
    """Return the features by their weight in the model, the weightiest first."""
    model = setting.model[-1] if hasattr(setting.model, "steps") else setting.model
    return [list(setting.space)[k] for k in np.argsort(-model.feature_importances_, kind="stable")]


# ---- drawing


def draw(records: list[dict[str, Any]]) -> None:
    """Draw a panel for each dimension: a line for the median, a fainter one for the worst row, a ring where not all is proved."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.hashsalt": "mace", "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"}
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 6.6), sharey=True, layout="constrained")
    for axis, (panel, title) in zip(axes.flat, PANELS.items(), strict=True):
        for colour, series in zip(("#0072b2", "#d55e00", "#009e73"), SERIES, strict=True):
            mine = [record for record in records if record["panel"] == panel and record["series"] == series]
            mine.sort(key=lambda record: DISTANCES.index(record["x"]) if panel == "distance" else record["x"])
            xs = [record["x"] for record in mine]
            worst = [record["worst_ms"] for record in mine]
            axis.plot(xs, [record["median_ms"] for record in mine], "o-", color=colour, ms=4, label=f"{series}: median")
            axis.plot(xs, worst, "--", color=colour, lw=1, alpha=0.6, label=f"{series}: worst row")
            open_ends = [(x, y) for x, y, record in zip(xs, worst, mine, strict=True) if record["proved"] < 1]
            axis.plot(*zip(*open_ends, strict=True), "o", color=colour, mfc="none", ms=8) if open_ends else None
        axis.set_yscale("log")
        axis.set_yticks([1, 10, 100, 1000, 10_000], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"])
        axis.set_title(title, fontsize=9)
        axis.grid(alpha=0.3)
        if panel != "distance":
            axis.set_xscale("log")
            ticks = sorted({record["x"] for record in records if record["panel"] == panel})
            axis.set_xticks(ticks, ["full" if tick == FULL and panel == "depth" else str(tick) for tick in ticks])
        axis.minorticks_off()
    figure.suptitle(
        "CPU time in the solver, l1 where not said otherwise; rings: not every row proved in time", fontsize=9
    )
    axes[0, 0].legend(fontsize=7)
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=15)
    parser.add_argument("--limit", type=float, default=10.0)
    parser.add_argument("--draw", action="store_true", help="only draw the last measurement")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    if not arguments.draw:
        measure_all(arguments.rows, arguments.limit)
    records = [json.loads(text) for text in MEASURED.read_text().splitlines()]
    draw(records)
    print(f"{PICTURE.name} is drawn from {len(records)} points")


def measure_all(rows: int, limit: float) -> None:
    print(
        f"{'series':20}{'panel':10}{'at':>6}{'median ms':>12}{'worst ms':>12}{'proved':>8}{'none':>6}{'distance':>12}"
    )
    with MEASURED.open("w") as out:
        for series in SERIES:
            try:
                for record in points(series, rows, limit):
                    record |= {"series": series, "rows": rows, "limit": limit, **versions()}
                    out.write(json.dumps(record) + "\n")
                    times = f"{record['median_ms']:12.2f}{record['worst_ms']:12.1f}{record['proved']:8.0%}"
                    far = f"{record['infeasible']:6d}{record['median_distance'] or np.nan:12.6f}"
                    print(f"{series:20}{record['panel']:10}{record['x']:>6}{times}{far}", flush=True)
            except (mace.DatasetUnavailable, ImportError) as error:
                print(f"{series}: LEFT OUT, {error}")


if __name__ == "__main__":
    main()

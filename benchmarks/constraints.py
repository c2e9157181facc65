"""What constraints cost: the median time of each kind over that of the same rows without, on the paper's data sets and models.

    python benchmarks/constraints.py [--rows 20] [--datasets adult,compas] [--models tree,forest,lr,mlp] [--kinds fixed,linear] [--limit 5]

Process CPU time of ``explain`` in one process, kernels warm, l1, any other class. "ratio" is the median with the constraint over the median
without, both measured in turn on the same held-out rows that the model refuses; "slowest" is the slowest row; "proved" the share of rows
that are proved (optimal or infeasible) within the limit, "feasible" of those that have an answer. Constraints are made from the space
alone: the same rule for every data set.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import sklearn

import mace
from mace.experiments.setting import Setting, setting_of
from mace.space import Categorical, Integer, Real

RESULTS = Path(__file__).parent / "results"


def constraints_of(setting: Setting) -> dict[str, list[Any]]:
    """Return the constraints of each kind, over the first features of each sort."""
    space = setting.data.space
    numbers = [name for name, feature in space.items() if isinstance(feature, Real | Integer)]
    ordered = [name for name, feature in space.items() if not isinstance(feature, Categorical)]
    categories = [name for name in space if isinstance(space[name], Categorical)]
    first, last = numbers[0], ordered[-1] if ordered[-1] != numbers[0] else ordered[0]
    width = {name: float(space[name].range) for name in space}
    low, high = (float(end) for end in (space[first].low, space[first].high))
    levels = space[categories[0]].levels
    second = next((name for name in numbers if name != first), None)
    made: dict[str, list[Any]] = {
        "fixed": [mace.fixed(*list(space)[:2])],
        "increases": [mace.increases(first)],
        "within": [mace.within(first, low + width[first] / 10, high - width[first] / 10)],
        "one_of": [mace.one_of(categories[0], list(levels[:2]))],
        "at_most_change": [mace.at_most_change(first, width[first] / 4)],
        "steps": [mace.steps(first, max(round(width[first] / 50), 1))],
        "transitions": [mace.transitions(categories[0], {levels[0]: [levels[1]]})],
        "budget": ["at most 3 features change"],
        "implies": [mace.implies(mace.changes(first), mace.changes(last))],
        "together": [mace.together(first, last)],
        "either": [mace.either(mace.increases(first), mace.fixed(last))],
        "near_data": [mace.near_data(setting.train_frame.iloc[:300], k=1, radius=0.15)],
        "typical": [mace.typical(setting.train_frame, 0.05)],
        "robust": [
            mace.robust({first: max(width[first] / 50, 1) if isinstance(space[first], Integer) else width[first] / 50})
        ],
    }
    if second is not None:
        one, other = f"`{first}` / {width[first]!r}", f"`{second}` / {width[second]!r}"
        old = f"old.`{first}` / {width[first]!r} + old.`{second}` / {width[second]!r}"
        made["linear"] = [f"{one} + {other} <= {old} + 0.02"]
        made["rule"] = [
            f"abs({one} - old.`{first}` / {width[first]!r}) <= 0.1 or {other} <= old.`{second}` / {width[second]!r}"
        ]
    return made


def timed(setting: Setting, row: Any, constraints: list[Any], limit: float) -> tuple[float, mace.Explanation]:
    """Return the process time of one question in milliseconds, and its answer."""
    begun = time.process_time()
    answer = setting.explainer.explain(row, constraints=constraints, time_limit=limit)
    return 1e3 * (time.process_time() - begun), answer


def main() -> None:
    """Print a table and write JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--datasets", default="adult,compas")
    parser.add_argument("--models", default="tree,forest,lr,mlp")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--limit", type=float, default=5.0)
    options = parser.parse_args()
    mace.warm_up()
    RESULTS.mkdir(exist_ok=True)
    about = {"python": platform.python_version(), "sklearn": sklearn.__version__, "mace": mace.__version__}
    print(
        f"{'data set':<9} {'model':<8} {'kind':<15} {'ms':>8} {'plain':>8} {'ratio':>6} {'slowest':>8} {'proved':>7} {'feasible':>8}"
    )
    with (RESULTS / "constraints.jsonl").open("a", encoding="utf-8") as file:
        for dataset in options.datasets.split(","):
            for model in options.models.split(","):
                for record in measured(setting_of(dataset, model), options):
                    file.write(json.dumps({**about, "seed": 0, **record}) + "\n")


def measured(setting: Setting, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every kind on one model."""
    rows = [setting.data.frame.iloc[number] for number in setting.factuals[: options.rows]]
    records = []
    for kind, constraints in constraints_of(setting).items():
        if options.kinds and kind not in options.kinds.split(","):
            continue
        timed(setting, rows[0], [], options.limit)
        timed(setting, rows[0], constraints, options.limit)
        plain, bound, answers = [], [], []
        for row in rows:
            plain.append(timed(setting, row, [], options.limit)[0])
            taken, answer = timed(setting, row, constraints, options.limit)
            bound.append(taken)
            answers.append(answer)
        record = {
            "dataset": setting.dataset,
            "model": setting.model_name,
            "kind": kind,
            "rows": len(rows),
            "ms": float(np.median(bound)),
            "plain_ms": float(np.median(plain)),
            "ratio": float(np.median(bound) / np.median(plain)),
            "slowest_ms": float(max(bound)),
            "proved": float(np.mean([answer.status in ("optimal", "infeasible") for answer in answers])),
            "feasible": float(np.mean([len(answer) > 0 for answer in answers])),
        }
        records.append(record)
        print(
            f"{setting.dataset:<9} {setting.model_name:<8} {kind:<15} {record['ms']:8.1f} {record['plain_ms']:8.1f} {record['ratio']:6.1f} "
            f"{record['slowest_ms']:8.1f} {record['proved']:7.0%} {record['feasible']:8.0%}",
            flush=True,
        )
    return records


if __name__ == "__main__":
    main()

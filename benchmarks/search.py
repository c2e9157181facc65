"""The search that only asks the model, beside DiCE's genetic method and beside the proved optimum.

    python benchmarks/search.py [--rows 100] [--settings "adult knn"] [--distances l1]

The same rows and the same models for both, each in a process of its own; every answer is judged here, and distances are l1 of our space. Of
models that can be read, the search is asked on purpose, and its distance is compared with the one that is proved least, under several
distances. A row counts as nearer where our point is valid, and DiCE's is farther or not valid.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from peers import Worker, is_here, judge, network, version
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trees import RESULTS, Setting, paper_setting, versions

import mace

LIMIT = 60.0
OURS, THEIRS = "mace search", "dice genetic"

UNREAD: dict[str, Callable[[], Any]] = {
    "adult knn": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
    "adult naive bayes": GaussianNB,
}
READ: dict[str, Callable[[], Any] | None] = {"adult forest10": None, "adult mlp10x10": network}


def setting_of(name: str, rows: int) -> Setting:
    """Return a model on the Adult data, and rows that it refuses."""
    make = (UNREAD | READ)[name]
    return paper_setting("adult", name.removeprefix("adult "), rows, make=make, codes=make is None)


def beside_dice(setting: Setting) -> list[dict[str, Any]]:
    """Ask both about every row."""
    workers = {peer: Worker(peer, setting) for peer in (OURS, THEIRS)}
    records = []
    for _, row in setting.rows.iterrows():
        replies = {peer: judge(setting, row, worker.ask(row, LIMIT)) for peer, worker in workers.items()}
        records.append({peer: reply | {"valid": is_valid(reply)} for peer, reply in replies.items()})
    for worker in workers.values():
        worker.stop(patience=5.0)
    return records


def is_valid(reply: dict[str, Any]) -> bool:
    """Return whether a point is in the domain, and the model puts it on the other side."""
    return bool(reply.get("in_domain") and reply.get("flips"))


def compared(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of a comparison."""
    pairs = [(record[OURS], record[THEIRS]) for record in records]
    both = np.array([(a["distance"], b["distance"]) for a, b in pairs if a["valid"] and b["valid"]]).reshape(-1, 2)
    nearer = [a["valid"] and (not b["valid"] or a["distance"] < b["distance"]) for a, b in pairs]
    cpu = 1000 * np.array([(a["cpu"], b["cpu"]) for a, b in pairs])
    return {
        "rows": len(pairs),
        "nearer": sum(nearer),
        "faster": int((cpu[:, 0] < cpu[:, 1]).sum()),
        "cpu_ms": np.median(cpu, axis=0).tolist(),
        "valid": [sum(pair[k]["valid"] for pair in pairs) for k in (0, 1)],
        "distance": np.median(both, axis=0).tolist(),
        "farther": float(np.median(both[:, 1] / np.maximum(both[:, 0], 1e-9))),
    }


def beside_proof(setting: Setting, distance: str) -> dict[str, Any]:
    """Return how far the search's answers are, as multiples of the distance that is proved least."""
    explainer = mace.Explainer(setting.model, setting.space)
    ratios, asked, hits = [], [], 0
    for _, row in setting.rows.iterrows():
        proved = explainer.explain(row, distance=distance, time_limit=LIMIT)
        found = explainer.explain(row, distance=distance, solver="search", time_limit=LIMIT)
        if not found or proved.status != "optimal":
            continue
        assert found[0].distance >= proved.lower, "a search is nearer than our lower bound"
        ratios.append(found[0].distance / proved[0].distance)
        asked.append(found[0].calls)
        hits += found[0].distance <= proved[0].distance + 1e-5
    return {
        "distance": distance,
        "rows": len(ratios),
        "median": float(np.median(ratios)),
        "tenth": float(np.quantile(ratios, 0.9)),
        "worst": float(np.max(ratios)),
        "optimal": hits,
        "asked": float(np.median(asked)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--settings", default=",".join([*UNREAD, *READ]))
    parser.add_argument("--distances", default="l0,l1,l2,linf")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "search.jsonl").open("a") as out:
        for name in arguments.settings.split(","):
            setting = setting_of(name, arguments.rows)
            head = {"setting": name, **versions()}
            if is_here(THEIRS):
                figures = compared(beside_dice(setting))
                out.write(json.dumps(head | {"dice": version(THEIRS), "beside dice": figures}) + "\n")
                cpu, valid = figures["cpu_ms"], figures["valid"]
                print(
                    f"{name}: nearer {figures['nearer']} of {figures['rows']}, faster {figures['faster']}; CPU {cpu[0]:.0f} ms and "
                    f"{cpu[1]:.0f} ms; valid {valid[0]} and {valid[1]}; DiCE's are {figures['farther']:.3g} times as far (median)",
                    flush=True,
                )
            for distance in arguments.distances.split(",") if name in READ else ():
                figures = beside_proof(setting, distance)
                out.write(json.dumps(head | {"beside proof": figures}) + "\n")
                print(
                    f"{name}, {distance}: {figures['median']:.4f} times the optimum (median), nine of ten up to "
                    f"{figures['tenth']:.3f}, worst {figures['worst']:.3f}; optimal in {figures['optimal']} of {figures['rows']} rows; "
                    f"{figures['asked']:.0f} rows asked",
                    flush=True,
                )


if __name__ == "__main__":
    main()

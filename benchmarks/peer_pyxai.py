"""PyXAI on its own decision trees and forests: the same reasons of the same rows, and the ratio of times in one run.

    pyxai-python benchmarks/peer_pyxai.py theirs rows.json theirs.json     # in an environment that has pyxai
    python benchmarks/peer_pyxai.py ours rows.json theirs.json             # in ours: compares, and prints the table

`python benchmarks/peer_pyxai.py make rows.json` comes first: it draws the problems. A reason of PyXAI is a set of literals, each a
comparison with a threshold, so that the two say the same where each feature has one threshold: all features are yes or no here. Labels
follow a rule without noise, so that all leaves are pure and a mean of shares is a majority of votes, which is how PyXAI reads a forest.
Trees are asked for all reasons, forests for one (PyXAI has no other question for them), which must be among all of ours. Both fit the same
model from the same rows; times are CPU milliseconds of one thread, of the question alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

KINDS = {"tree": 1, "forest5": 5, "forest25": 25}
FEATURES, PEOPLE = 10, 400
NAMES = [f"f{number + 1}" for number in range(FEATURES)]


def fitted(problem: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Return the model of a problem, fitted, and its rows."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    rows = np.array(problem["rows"])
    trees = KINDS[problem["kind"]]
    forest = RandomForestClassifier(trees, random_state=0)
    return (DecisionTreeClassifier(random_state=0) if trees == 1 else forest).fit(rows, problem["labels"]), rows


def make(path: Path, count: int) -> None:
    """Draw problems: rows, labels by a random rule, and rows to ask about."""
    problems = []
    for kind in KINDS:
        for seed in range(count):
            rng = np.random.default_rng(seed)
            rows = rng.integers(0, 2, (PEOPLE, FEATURES))
            weights = rng.integers(-3, 4, FEATURES)
            labels = (rows @ weights + (rows[:, 0] & rows[:, 1]) > weights.sum() / 2).astype(int)
            if 0 < labels.sum() < PEOPLE:
                asked = rng.choice(PEOPLE, 3, replace=False).tolist()
                problems.append({"kind": kind, "rows": rows.tolist(), "labels": labels.tolist(), "asked": asked})
    path.write_text(json.dumps(problems))


def theirs(path: Path, out: Path) -> None:
    """Ask PyXAI, and write its reasons with its times."""
    from pyxai import Explaining, Learning

    found = []
    for problem in json.loads(path.read_text()):
        model, rows = fitted(problem)
        _, read = Learning.ModelIO.import_models(model, instances_type="tabular")
        explainer = Explaining.initialize(read)
        explainer._visualisation.add_history = lambda *_: None  # what its pictures show is not on the clock
        for number in problem["asked"]:
            explainer.set_instance(rows[number].astype(float))
            started = time.process_time()
            is_tree = problem["kind"] == "tree"
            made = explainer.sufficient_reason(n=Explaining.ALL) if is_tree else [explainer.sufficient_reason()]
            spent = time.process_time() - started
            meant = read.map_id_binaries_to_features
            named = [sorted(NAMES[meant[abs(literal)][0] - 1] for literal in each) for each in made]
            found.append({"reasons": named, "seconds": spent})
    out.write_text(json.dumps(found))


def ours(path: Path, answers: Path) -> int:
    """Ask MACE, compare, and print the table; return the exit code."""
    import mace

    mace.warm_up()
    known = iter(json.loads(answers.read_text()))
    spent: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    same = dict.fromkeys(KINDS, 0)
    space = mace.FeatureSpace({name: mace.integer(0, 1) for name in NAMES})
    for problem in json.loads(path.read_text()):
        model, rows = fitted(problem)
        explainer, kind = mace.Explainer(model, space), problem["kind"]
        for number in problem["asked"]:
            row, other = rows[number].tolist(), next(known)
            started = time.process_time()
            made = explainer.reasons(row, count=10_000 if kind == "tree" else 1, ranges=False)
            spent[kind].append((time.process_time() - started, other["seconds"]))
            whole = made if kind == "tree" else explainer.reasons(row, count=10_000, ranges=False)
            all_of_ours = {tuple(sorted(each.features)) for each in whole}
            all_of_theirs = {tuple(each) for each in other["reasons"]}
            is_same = all_of_ours == all_of_theirs if kind == "tree" else all_of_theirs <= all_of_ours
            same[kind] += whole.complete and is_same
    print(f"{'model':10}{'rows':>6}{'same':>6}{'ours ms':>10}{'PyXAI ms':>10}{'ratio':>8}")
    for kind, times in spent.items():
        mine, others = (1000 * statistics.median(each) for each in zip(*times, strict=True))
        print(f"{kind:10}{len(times):6}{same[kind]:6}{mine:10.2f}{others:10.2f}{mine / others:8.2f}")
    return int(any(same[kind] != len(times) for kind, times in spent.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("make", "theirs", "ours"))
    parser.add_argument("rows", type=Path)
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=20, help="problems of each kind")
    arguments = parser.parse_args()
    if arguments.step == "make":
        make(arguments.rows, arguments.count)
        return 0
    if arguments.step == "theirs":
        theirs(arguments.rows, arguments.answers)
        return 0
    return ours(arguments.rows, arguments.answers)


if __name__ == "__main__":
    raise SystemExit(main())

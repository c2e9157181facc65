"""The network lane on the paper's data sets: solver time, nodes and proved share, beside the SMT lane and HiGHS's MIP on the same rows.

    python benchmarks/networks.py [--rows 500] [--data adult,compas,credit] [--models lr,mlp10x10,std50x50] [--milp 5] [--smt 1]

`mlp` networks are trained on the encoder's columns as they are (the paper's setting), `std` networks on standardised columns with the
scaler folded into the first layer. Times are CPU milliseconds of one thread inside the solver, kernels warm, calls of the real model's
``predict`` not counted. HiGHS gets the same problem inside the ball of the point that the lane finds in its first box, with the
lane's own bounds on every unit; the ratio to it, and to the SMT lane with a cap, is measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy
import sklearn
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from trees import split

import mace
from mace.distances import as_distance
from mace.problem import Limits, Problem
from mace.solvers import network
from mace.solvers.network import kernels
from mace.solvers.network.search import NetworkSearch
from mace.solvers.smt import search as smt
from mace.targets import goal_of

RESULTS = Path(__file__).parent / "results" / "networks.jsonl"
MODELS = "lr,mlp10x10,std50x50,std100x100,std50x50x50"
INSIDE = 1e-9
"""How far inside of the boundary HiGHS's points must lie."""


def fitted(name: str, X: Any, y: Any) -> Any:
    """Return a model by its name: ``lr``, or ``mlp`` or ``std`` with the widths of the layers."""
    if name == "lr":
        return LogisticRegression(max_iter=1000).fit(X, y)
    widths = tuple(map(int, name[3:].split("x")))
    if name.startswith("mlp"):
        return MLPClassifier(widths, random_state=0).fit(X, y)
    scaler = StandardScaler().fit(X)
    model = MLPClassifier(widths, max_iter=30, random_state=0).fit(scaler.transform(X), y)
    model.intercepts_[0] = model.intercepts_[0] - (scaler.mean_ / scaler.scale_) @ model.coefs_[0]
    model.coefs_[0] = model.coefs_[0] / scaler.scale_[:, None]
    return model


def prepared_rows(data: Any, name: str, rows: int) -> tuple[mace.Explainer, Any]:
    """Return an explainer of a fitted model, and rows that it refuses."""
    train, test = split(data.labels, seed=0)
    encoder = mace.Encoder(data.space)
    X = encoder.fit_transform(data.frame.iloc[train])
    model = make_pipeline(encoder, fitted(name, X, data.labels.iloc[train]))
    frame = data.frame.iloc[test]
    return mace.Explainer(model, data.space), frame[model.predict(frame) == 0].iloc[:rows]


def problem_of(explainer: mace.Explainer, row: Any, distance: Any) -> tuple[Problem, list[float]]:
    """Return the problem of a row, and a list of one number: the CPU seconds spent in ``predict``."""
    factual = explainer.space.point(row)
    reading = explainer._reading
    goal, ask = goal_of(None, reading, reading.ask([factual])[0])
    spent = [0.0]

    def timed(points: Any) -> Any:
        started = time.process_time()
        outcomes = ask(points)
        spent[0] += time.process_time() - started
        return outcomes

    metric = as_distance(distance).from_factual(explainer.space, factual)
    return Problem(explainer.space, reading.form, timed, goal, factual, metric), spent


def timed_solve(lane: Any, problem: Problem, spent: list[float], limit: float) -> tuple[float, Any]:
    before, started = spent[0], time.process_time()
    bounds = lane.solve(problem, Limits.of(limit))
    return time.process_time() - started - (spent[0] - before), bounds


# ---- HiGHS


class Program:
    """A mixed integer program, written row by row."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.whole: list[int] = []
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def variable(self, low: float, high: float, whole: bool = False) -> int:
        self.low.append(low)
        self.high.append(high)
        self.whole.append(int(whole))
        return len(self.low) - 1

    def add(self, terms: dict[int, float], low: float, high: float = np.inf) -> None:
        self.rows.append((terms, low, high))

    def solve(self, objective: dict[int, float], limit: float) -> Any:
        entries = [(r, c, value) for r, (terms, _, _) in enumerate(self.rows) for c, value in terms.items()]
        r, c, values = zip(*entries, strict=True)
        matrix = csr_matrix((values, (r, c)), shape=(len(self.rows), len(self.low)))
        cost = np.zeros(len(self.low))
        for variable, value in objective.items():
            cost[variable] = value
        lows, highs = (np.array([row[side] for row in self.rows]) for side in (1, 2))
        options = {"time_limit": limit, "mip_rel_gap": 1e-9}
        constraint = LinearConstraint(matrix, lows, highs)
        return milp(
            cost, integrality=self.whole, bounds=Bounds(self.low, self.high), constraints=constraint, options=options
        )


def first_radius(search: NetworkSearch, workspace: Any) -> float:
    """Return the cost of the incumbent after the lane's first box."""
    state = workspace.state
    state.registers[:] = 0
    state.reals[:] = (np.inf, np.inf, 1e-6, 1e-8, 1e-9)
    workspace.tree.start(workspace.lo, workspace.hi, state.registers)
    kernels.advance(
        1, state, workspace.tree.tree, workspace.lo, workspace.hi, search.made.net, workspace.task, workspace.work
    )
    return min(float(state.reals[kernels.BEST]) * (1 + 1e-9) + 1e-9, kernels.WHOLE)


def solve_milp(problem: Problem, distance: str, limit: float) -> tuple[float, float | None]:
    """Return CPU seconds and the optimum that HiGHS finds inside the lane's first ball; ``None`` where it does not finish."""
    search = NetworkSearch(problem, Limits())
    margins = problem.goal.alternatives(len(search.form.biases[-1]), ties_last=False)[0]
    workspace = search._workspace(margins)
    search._is_empty(workspace)
    radius = first_radius(search, workspace)
    search._is_empty(workspace)
    kernels.clip(workspace.lo, workspace.hi, radius, workspace.task, workspace.work)
    box = kernels.open_box(workspace.lo, workspace.hi, search.made.net, workspace.task, workspace.work)
    kernels.propagate(radius, box, search.made.net, workspace.task, workspace.work)
    started = time.process_time()
    program, objective, inputs = _input_program(search, workspace, distance)
    score, constant = _network_rows(program, search, workspace, inputs)
    sign = 1.0 if margins[0].plus == 0 else -1.0
    program.add({c: sign * value for c, value in score.items()}, INSIDE - sign * constant)
    result = program.solve(objective, limit)
    return time.process_time() - started, float(result.fun) if result.status == 0 else None


def _input_program(search: NetworkSearch, workspace: Any, distance: str) -> tuple[Program, dict[int, float], Any]:
    """Return the features, their costs, and what each slot holds as terms."""
    program, objective = Program(), {}
    size = len(workspace.lo)
    top = program.variable(0.0, 1.0) if distance == "linf" else -1
    if top >= 0:
        objective[top] = 1.0
    slots: list[tuple[int, dict[int, float]]] = []
    for j in range(size):
        delta = program.variable(0.0, 1.0)
        own = workspace.fields["own"][j]
        if workspace.fields["is_table"][j]:
            first = workspace.fields["off"][j]
            chosen = {}
            for entry in range(int(workspace.lo[j]), int(workspace.hi[j]) + 1):
                chosen[entry] = program.variable(0.0, 1.0, whole=True)
                slots.append((int(workspace.fields["entry_slot"][first + entry]), {chosen[entry]: 1.0}))
            program.add(dict.fromkeys(chosen.values(), 1.0), 1.0, 1.0)
            terms = {chosen[e]: float(workspace.fields["entry_delta"][first + e]) for e in chosen}
            program.add({delta: 1.0} | {c: -value for c, value in terms.items()}, 0.0)
        else:
            inverse = float(workspace.fields["inverse"][j])
            number = program.variable(workspace.lo[j], workspace.hi[j], whole=bool(workspace.fields["is_grid"][j]))
            slots.append((int(workspace.fields["slot"][j]), {number: 1.0}))
            program.add({delta: 1.0, number: -inverse}, -inverse * own)
            program.add({delta: 1.0, number: inverse}, inverse * own)
        if distance == "l0":
            changed = program.variable(0.0, 1.0, whole=True)
            program.add({changed: 1.0, delta: -1.0}, 0.0)
            objective[changed] = 1.0 / size
        elif distance == "l1":
            objective[delta] = 1.0 / size
        else:
            program.add({top: 1.0, delta: -1.0}, 0.0)
    return program, objective, slots


def _network_rows(
    program: Program, search: NetworkSearch, workspace: Any, slots: Any
) -> tuple[dict[int, float], float]:
    """Write the units, big-M with the lane's bounds, and return the score as terms and a constant."""
    form, layout = search.form, search.made.layout
    first = np.zeros((layout.slots, len(form.biases[0])))
    for column, weights in zip(form.columns, form.weights[0].T, strict=True):
        start = layout.slot_from[column.feature]
        values = np.ones(1) if column.table is None else np.array(column.table)
        first[start : start + len(values)] += np.outer(values, weights)
    low, high = workspace.scratch["low"], workspace.scratch["high"]
    previous: list[dict[int, float]] = []
    for k, (weight, bias) in enumerate(zip(form.weights, form.biases, strict=True)):
        current: list[dict[int, float]] = []
        for i in range(len(bias)):
            terms: dict[int, float] = {}
            sources = (
                [(terms_of, first[slot, i]) for slot, terms_of in slots]
                if k == 0
                else list(zip(previous, weight[i], strict=True))
            )
            for source, factor in sources:
                for variable, value in source.items():
                    terms[variable] = terms.get(variable, 0.0) + factor * value
            if k == len(form.weights) - 1:
                return terms, float(bias[i])
            current.append(_unit(program, terms, float(bias[i]), float(low[k, i]), float(high[k, i])))
        previous = current
    raise AssertionError


def _unit(program: Program, terms: dict[int, float], bias: float, low: float, high: float) -> dict[int, float]:
    if high <= 0:
        return {}
    unit = program.variable(0.0, high)
    above = {unit: 1.0} | {c: -value for c, value in terms.items()}
    if low >= 0:
        program.add(above, bias, bias)
        return {unit: 1.0}
    active = program.variable(0.0, 1.0, whole=True)
    program.add(above, bias)
    program.add(above | {active: -low}, -np.inf, bias - low)
    program.add({unit: 1.0, active: -high}, -np.inf, 0.0)
    return {unit: 1.0}


# ---- the table


def measure(explainer: mace.Explainer, frame: Any, distance: str, arguments: argparse.Namespace) -> dict[str, Any]:
    seconds, nodes, unproved = [], [], 0
    milp_seconds, milp_ours, milp_capped, farthest_apart = 0.0, 0.0, 0, 0.0
    smt_seconds, smt_ours, smt_capped = 0.0, 0.0, 0
    for number, (_, row) in enumerate(frame.iterrows()):
        problem, spent = problem_of(explainer, row, distance)
        taken, bounds = timed_solve(network, problem, spent, arguments.limit)
        seconds.append(taken)
        nodes.append(bounds.calls)
        unproved += bounds.status(problem.accuracy) not in ("optimal", "infeasible")
        if number < arguments.milp and bounds.upper is not None:
            theirs, optimum = solve_milp(problem, distance, arguments.limit)
            milp_seconds, milp_ours = milp_seconds + theirs, milp_ours + taken
            milp_capped += optimum is None
            if optimum is not None:
                farthest_apart = max(farthest_apart, abs(optimum - float(bounds.upper)))
        if number < arguments.smt:
            theirs, answer = timed_solve(smt, problem, spent, arguments.cap)
            smt_seconds, smt_ours = smt_seconds + theirs, smt_ours + taken
            smt_capped += answer.status(problem.accuracy) not in ("optimal", "infeasible")
    times = 1000 * np.array(seconds)
    record = {
        "rows": len(frame),
        "median_ms": float(np.median(times)),
        "p99_ms": float(np.percentile(times, 99)),
        "max_ms": float(times.max()),
        "median_nodes": float(np.median(nodes)),
        "max_nodes": int(max(nodes)),
        "proved": 1 - unproved / len(frame),
    }
    if milp_ours:
        record |= {"milp_ratio": milp_seconds / milp_ours, "milp_capped": milp_capped, "milp_apart": farthest_apart}
    if smt_ours:
        record |= {"smt_ratio": smt_seconds / smt_ours, "smt_capped": smt_capped}
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--distances", default="l0,l1,linf")
    parser.add_argument("--milp", type=int, default=5, help="rows for HiGHS")
    parser.add_argument("--smt", type=int, default=0, help="rows for the SMT lane")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--cap", type=float, default=30.0, help="seconds for the SMT lane")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.parent.mkdir(exist_ok=True)
    heads = ("median ms", "p99 ms", "max ms", "nodes", "max nodes", "proved", "HiGHS", "SMT")
    print(f"{'data':8}{'model':13}{'distance':9}" + "".join(f"{head:>10}" for head in heads))
    with RESULTS.open("a") as out:
        for name in arguments.data.split(","):
            try:
                data = mace.datasets.load(name)
            except mace.DatasetUnavailable as error:
                print(f"{name}: LEFT OUT, {error}")
                continue
            for model in arguments.models.split(","):
                explainer, frame = prepared_rows(data, model, arguments.rows)
                warm, _ = problem_of(explainer, frame.iloc[0], "l1")
                network.solve(replace(warm, accuracy=Fraction(1, 100)), Limits.of(10))
                for distance in arguments.distances.split(","):
                    record = measure(explainer, frame, distance, arguments)
                    record |= {"data": name, "model": model, "distance": distance, "scipy": scipy.__version__}
                    record |= {
                        "sklearn": sklearn.__version__,
                        "python": platform.python_version(),
                        "machine": platform.machine(),
                    }
                    out.write(json.dumps(record) + "\n")
                    out.flush()
                    times = f"{record['median_ms']:10.2f}{record['p99_ms']:10.2f}{record['max_ms']:10.1f}"
                    counts = f"{record['median_nodes']:10.0f}{record['max_nodes']:10d}{record['proved']:10.1%}"
                    ratios = [
                        f"{'>' if record[f'{peer}_capped'] else ''}{record[f'{peer}_ratio']:.0f}x"
                        if f"{peer}_ratio" in record
                        else ""
                        for peer in ("milp", "smt")
                    ]
                    print(f"{name:8}{model:13}{distance:9}{times}{counts}{ratios[0]:>10}{ratios[1]:>10}", flush=True)


if __name__ == "__main__":
    main()

"""Splits on the signs of units: equal to brute force, to SMT and to the milp lane; sound whatever the multipliers are; limits."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_networks import DISTANCES, FAMILIES, NetworkCase, disagreement, random_network, real_network, without
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_network_lane import drawn, exact_units

import mace
from mace import Explainer, FeatureSpace
from mace.answer.question import Question
from mace.constraints.differ import CountDifferent
from mace.problem import Bounds, Limits, Problem
from mace.solvers import milp, network
from mace.solvers.network import kernels
from mace.solvers.network.proof import Unfinished
from mace.solvers.network.search import NetworkSearch
from mace.solvers.network.units import dual, handover
from mace.solvers.network.units.search import SignSearch

BENT = [name for name in FAMILIES if name != "linear"]
SPLIT = ("l1", "linf", "weighted")


def split_at_once(problem: Problem, limits: Limits) -> Bounds:
    """Search by splitting units from the start on."""
    return NetworkSearch(problem, limits, splits_first=True).run()


def cases(first: int, count: int, *, finite: bool) -> list[int]:
    """Return seeds of networks with hidden layers under distances that units are split for."""
    of = range(first, first + 40 * count)
    kept = [n for n in of if FAMILIES[n % 9] in BENT and DISTANCES[n // 9 % 6] in SPLIT]
    return kept[:count]


def alone(case: NetworkCase) -> NetworkCase:
    return without(case, CountDifferent)


@pytest.mark.parametrize("seed", cases(0, 60, finite=True))
def test_it_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    assert disagreement(alone(random_network(seed)), "enumerate", solve=split_at_once) in (None, "skipped")


@pytest.mark.parametrize("seed", cases(10_000, 24, finite=False))
def test_it_agrees_with_smt_on_random_mixed_problems(seed: int) -> None:
    case = alone(random_network(seed, finite=False))
    assert disagreement(case, "smt", seconds=10, solve=split_at_once) in (None, "skipped")


@pytest.mark.parametrize("seed", range(24))
def test_it_agrees_with_the_milp_lane_on_networks_over_many_real_features(seed: int) -> None:
    assert disagreement(real_network(seed), "milp", seconds=10) in (None, "skipped")


# ---- bounds


def node(seed: int, limit: float) -> tuple[NetworkSearch, Any, SignSearch, kernels.InputBox] | None:
    """Return a search over signs whose root is opened in a ball."""
    problem = replace(random_network(seed, finite=False).problem, conditions=())
    search = NetworkSearch(problem, Limits())
    margins = search.alternatives[0]
    workspace = search.arrays.workspace(margins)
    assert not search.arrays.is_empty(workspace)
    workspace.state.reals[kernels.BEST] = np.inf
    if not handover.may_split(search.made, workspace, search.costs):
        return None
    domain = workspace.lo.copy(), workspace.hi.copy()
    splits = SignSearch(search.made, workspace, domain, Limits(), lambda: None)
    splits.radius = limit
    if splits._root() is None:
        return None
    box = kernels.open_box(workspace.lo, workspace.hi, search.made.net, workspace.task, workspace.work)
    return search, workspace, splits, box


def columns_of(v: Any, workspace: Any, box: kernels.InputBox) -> list[Fraction]:
    """Return a point over the columns of a box."""
    x = [Fraction(0)] * box.columns
    scratch, fields = workspace.scratch, workspace.fields
    for f in range(box.free):
        j = scratch["feature"][f]
        for c in range(scratch["columns_from"][f], scratch["columns_from"][f + 1]):
            if fields["is_table"][j]:
                x[c] = Fraction(int(scratch["column_entry"][c] == v[j]))
            else:
                x[c] = Fraction(float(v[j])) - Fraction(float(scratch["near"][j]))
    return x


SEEDS = [n for n in range(0, 540, 7) if FAMILIES[n % 9] in BENT and DISTANCES[n // 9 % 6] in SPLIT]


@pytest.mark.parametrize("limit", [0.05, 0.3])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_combination_holds_at_every_point_whatever_the_multipliers_are(seed: int, limit: float) -> None:
    made = node(seed, limit)
    if made is None:
        return
    search, workspace, splits, box = made
    rng = np.random.default_rng(seed)
    many, scratch = splits.many, workspace.scratch
    many.alpha[:] = rng.random(many.alpha.shape)
    many.beta[:] = np.where(rng.random(many.beta.shape) < 0.5, rng.normal(size=many.beta.shape), 0.0)
    many.mix[:] = rng.random(len(many.mix))
    value = dual.combine_rows(box.columns, many, splits.ascent, search.made.net, workspace.task, workspace.work)
    gains = splits.ascent.gains.copy()
    low, high = scratch["low"].copy(), scratch["high"].copy()
    depth = len(search.form.weights) - 1
    inside = []
    for v in drawn(search, workspace, limit, rng, 20):
        layers = exact_units(search.form, search.arrays.point(v, workspace))
        total = sum(
            (Fraction(float(share)) * margin.value(layers[depth]))
            for share, margin in zip(many.mix, search.alternatives[0], strict=True)
        )
        for k in range(depth):
            for i, z in enumerate(layers[k]):
                beta = Fraction(float(many.beta[k, i]))
                total += beta * (z - Fraction(float((low if beta > 0 else high)[k, i])))
        bound = Fraction(float(value)) + sum(
            (Fraction(float(g)) * x for g, x in zip(gains, columns_of(v, workspace, box), strict=False)), Fraction(0)
        )
        assert total <= bound
        if bound >= 0:
            inside.append(layers)
    for k in range(depth):
        width = int(search.made.arrays["width"][k])
        assert dual.tighten(
            k, 0, width, value, limit, many, splits.gains, splits.ascent, box, search.made.net, workspace.task,
            workspace.work,
        ) or not inside  # fmt: skip
        for layers in inside:
            for i, z in enumerate(layers[k]):
                assert Fraction(scratch["low"][k, i]) <= z <= Fraction(scratch["high"][k, i])


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_no_sampled_point_nearer_than_lower_flips_the_real_model(norm: str) -> None:
    model, space, X = breast((12, 8))
    row = X.iloc[2]
    explanation = Explainer(model, space).explain(row, distance=norm, solver="network", time_limit=60)
    assert explanation.status == "optimal"
    rng = np.random.default_rng(0)
    low, high = X.min().to_numpy(), X.max().to_numpy()
    own, best = row.to_numpy(), np.array(list(explanation[0].values.values()), dtype=float)
    moves = rng.normal(size=(20_000, len(own))) * (rng.random((20_000, len(own))) < 0.3)
    moves[::2] = (best - own) / (high - low) * rng.uniform(0.9, 1.1, (10_000, len(own)))
    size = np.abs(moves).mean(axis=1) if norm == "l1" else np.abs(moves).max(axis=1)
    moves *= (explanation.lower * rng.uniform(0.9, 0.9999, len(moves)) / np.maximum(size, 1e-12))[:, None]
    points = np.clip(own + moves * (high - low), low, high)
    assert (model.predict(pd.DataFrame(points, columns=X.columns)) == model.predict(row.to_frame().T)[0]).all()


# ---- real data


def breast(widths: tuple[int, ...]) -> tuple[Any, FeatureSpace, pd.DataFrame]:
    data = load_breast_cancer(as_frame=True)
    model = make_pipeline(StandardScaler(), MLPClassifier(widths, max_iter=500, random_state=0))
    return model.fit(data.data, data.target), FeatureSpace.from_frame(data.data), data.data


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_thirty_real_features_are_proved_where_boxes_of_inputs_do_not_end(norm: str) -> None:
    model, space, X = breast((10, 10))
    explainer = Explainer(model, space)
    for n in (0, 1, 2):
        found = explainer.explain(X.iloc[n], distance=norm, time_limit=30, round_to=None, certify=True)
        assert found.status == "optimal"
        assert mace.verify(found[0].certificate, model).outcome == "valid"
        other = explainer.explain(X.iloc[n], distance=norm, solver="milp", time_limit=10, round_to=None)
        assert found.lower <= other[0].distance
        assert other.lower <= found[0].distance


@pytest.mark.parametrize("seconds", [1e-6, 0.005, 0.02, 0.05])
def test_a_deadline_before_or_in_the_proof_leaves_an_answer_without_one(seconds: float) -> None:
    model, space, X = breast((10, 10))
    search = NetworkSearch(
        Explainer(model, space)._problem(X.iloc[0], Question(space, time_limit=seconds, certify=True))[0], Limits()
    )
    with pytest.raises(Unfinished, match="no time for the proof"):
        search.cuts(search.alternatives[0], 0.05, Limits.of(seconds, None, since=time.monotonic() - seconds), 1000)
    found = Explainer(model, space).explain(X.iloc[0], time_limit=seconds, certify=True)
    assert found.status in ("optimal", "feasible", "unknown")


def test_the_same_question_gives_the_same_answer_again() -> None:
    model, space, X = breast((10,))
    explainer = Explainer(model, space)
    first, other = (explainer.explain(X.iloc[0], solver="network") for _ in range(2))
    assert first[0].values == other[0].values
    assert first.lower == other.lower


def test_weights_conditions_and_fixed_features_count() -> None:
    model, space, X = breast((10,))
    names = list(space)
    explainer = Explainer(model, space)
    asked: dict[str, Any] = {
        "distance": mace.Distance(l1=1.0, weights={names[0]: 3.0, names[7]: 0.5}),
        "constraints": [mace.fixed(names[20]), f"`{names[2]}` >= 3 * `{names[0]}`"],
    }
    found = explainer.explain(X.iloc[1], time_limit=30, **asked)
    other = explainer.explain(X.iloc[1], time_limit=30, solver="milp", **asked)
    assert found.status == other.status == "optimal"
    assert abs(found[0].distance - other[0].distance) < 2e-6


# ---- limits


def test_the_deadline_is_honoured_with_bounds_that_hold() -> None:
    model, space, X = breast((50, 50))
    explainer = Explainer(model, space)
    explainer.explain(X.iloc[40], time_limit=5)
    told: list[tuple[float, float, int]] = []
    started = time.process_time()
    found = explainer.explain(X.iloc[0], time_limit=1.0, on_progress=lambda *bounds: told.append(bounds))
    assert time.process_time() - started < 3
    assert found.status == "feasible"
    assert found.reason == "time limit reached"
    assert 0.03 < found.lower < found[0].distance < 0.09
    assert [bounds[0] for bounds in told] == sorted(bounds[0] for bounds in told)


def test_an_ascent_takes_as_many_steps_as_there_is_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = next(found for seed in range(20) if (found := node(seed, 0.5)) is not None)
    _, _, search, box = made
    taken: list[int] = []
    ascend = dual.ascend
    monkeypatch.setattr(dual, "ascend", lambda steps, *given: taken.append(steps) or ascend(steps, *given))
    search._ascend(60, 0.1, box)
    search.limits = Limits.of(60)
    search._slowest_step = 0.0
    search._ascend(60, 0.1, box)
    search._slowest_step = 10.0
    search._ascend(60, 0.1, box)
    assert taken[:2] == [60, 1], "without a limit all at once; with one, the first step is timed"
    assert taken[-1] <= 6


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    model, space, X = breast((30, 30))
    monkeypatch.setattr("mace.solvers.network.units.search.MOST_MEMORY", 2**16)
    found = Explainer(model, space).explain(X.iloc[0], distance="linf", solver="network", time_limit=60)
    assert found.reason == "memory limit reached"
    assert found.lower < found[0].distance


def test_what_is_not_split_goes_to_boxes() -> None:
    case = real_network(0)
    for distance in ("l0", "l2", mace.Distance(l1=0.5, linf=0.5)):
        metric = mace.distances.as_distance(distance).from_factual(case.problem.space, case.problem.factual)
        search = NetworkSearch(replace(case.problem, metric=metric), Limits())
        workspace = search.arrays.workspace(search.alternatives[0])
        assert not search.arrays.is_empty(workspace)
        assert not handover.may_split(search.made, workspace, search.costs)


def test_none_exists_is_proved() -> None:
    case = real_network(1)
    form = case.problem.form
    biases = (*form.biases[:-1], form.biases[-1] - 1e6)
    problem = replace(case.problem, form=replace(form, biases=biases), ask=lambda points: [Fraction(0)] * len(points))
    problem = replace(problem, goal=mace.forms.Outcomes(frozenset([Fraction(1)])))
    for solve in (network.solve, split_at_once, milp.solve):
        assert solve(problem, Limits.of(30)).is_infeasible

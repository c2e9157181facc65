"""The tree lane: equal to brute force on finite spaces and to SMT on mixed ones, for every library; limits and faults."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import raw_referee
from problems import problem_of
from random_ensembles import BOOSTERS, FAMILIES, random_ensemble
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from trees_referee import compare

import mace
from mace import Explainer, FeatureSpace, categorical, integer, ordinal, real
from mace.distances import as_distance, distance_up
from mace.solvers.compiled import is_on_disk
from mace.solvers.trees import kernels
from mace.solvers.trees.grid import make_grid


@pytest.mark.parametrize("levels", [False, True])
def test_of_values_on_both_sides_of_one_that_is_ruled_out_the_one_past_fewer_people_is_nearest(levels: bool) -> None:
    """From 6, 9 is next, but most people lie between."""
    feature = ordinal(list(range(10))) if levels else integer(0, 9)
    frame = pd.DataFrame({"a": list(range(10))})
    model = make_pipeline(mace.Encoder(FeatureSpace({"a": feature}), ordinal="codes"), DecisionTreeClassifier())
    model.fit(frame, (frame.a == 6).astype(int))
    people = pd.DataFrame({"a": [5] + [9] * 30})
    answer = Explainer(model, FeatureSpace({"a": feature})).explain(
        {"a": 6},
        distance=mace.Distance(l1=1, weights="percentile", data=people),
        constraints=[mace.one_of("a", [1, 9])],
        certify=True,
    )
    assert (answer.status, answer[0].values) == ("optimal", {"a": 1})
    assert mace.verify(answer[0].certificate, model).valid


def test_no_bound_that_is_told_is_above_the_answer_by_its_rounding() -> None:
    """The distance is the square root of 1/2, and the float next to it is greater."""
    space = FeatureSpace({"a": categorical(["only"]), "b": categorical(["x", "y"])})
    frame = pd.DataFrame({"a": ["only"] * 2, "b": ["x", "y"]})
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier()).fit(frame, [0, 1])
    told: list[float] = []
    answer = Explainer(model, space).explain(
        {"a": "only", "b": "x"}, distance="l2", on_progress=lambda lower, *_: told.append(lower)
    )
    assert answer.status == "optimal"
    assert told
    assert all(Fraction(lower) ** 2 <= Fraction(1, 2) for lower in told)


@pytest.mark.parametrize("seed", range(8 * len(FAMILIES)))
def test_it_equals_brute_force_on_random_finite_problems(seed: int) -> None:
    assert compare(random_ensemble(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("seed", range(5000, 5000 + 2 * len(FAMILIES)))
def test_it_equals_smt_on_random_mixed_problems(seed: int) -> None:
    assert compare(random_ensemble(seed, finite=False), "smt", 1.1e-6) is None


@pytest.mark.parametrize("seed", range(300_000, 300_000 + 2 * len(FAMILIES)))
def test_it_equals_brute_force_over_raw_values(seed: int) -> None:
    """Real features too: the floats where the real model changes its mind are found by bisecting it."""
    assert raw_referee.disagreement(random_ensemble(seed, finite=False), seed) in (None, "skipped")


@pytest.mark.parametrize("seed", [490, 534, 579, 635, 644, 678, 688, 695, 757, 840, 894, 908])
def test_cases_that_a_bound_too_tight_by_a_tenth_gets_wrong(seed: int) -> None:
    """Found by breaking the lane on purpose."""
    assert compare(random_ensemble(seed), "enumerate", 1e-12) is None


@pytest.mark.parametrize("seed", [232, 590, 1091, 1252, 1387])
def test_features_that_may_only_stay_missing(seed: int) -> None:
    """Cases on which the lanes once disagreed."""
    assert compare(random_ensemble(seed), "enumerate", 1e-12) is None


def test_the_boosters_take_part() -> None:
    assert BOOSTERS == ("xgboost", "lightgbm", "catboost"), "make test installs all three"


# ---- exactness


def forest(trees: int = 30, depth: int | None = None) -> tuple[Any, FeatureSpace, pd.DataFrame]:
    X, y = make_classification(600, 6, n_informative=4, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = RandomForestClassifier(trees, max_depth=depth, random_state=0).fit(frame, y)
    return model, FeatureSpace.from_frame(frame), frame


@pytest.mark.parametrize("distance", ["l0", "l1", "l2", "linf", mace.Distance(l0=1 / 3, l1=1 / 3, linf=1 / 3)], ids=str)
def test_no_sampled_point_nearer_than_the_answer_flips_a_larger_forest(distance: Any) -> None:
    model, space, frame = forest()
    explainer = Explainer(model, space)
    rng = np.random.default_rng(0)
    for row in frame[model.predict(frame) == 0].index[:3]:
        best = explainer.explain(frame.loc[row], distance=distance)[0]
        assert best.status == "optimal"
        factual = frame.loc[row].to_numpy()
        moved = np.where(rng.random((4000, 6)) < 0.5, factual, 0.0)
        noise = (
            rng.normal(size=(4000, 6))
            * rng.choice([0.3, 0.05, 0.005], (4000, 1))
            * (frame.max() - frame.min()).to_numpy()
        )
        sample = np.clip(np.where(moved != 0, factual, factual + noise), frame.min(), frame.max())
        flipped = model.predict(pd.DataFrame(sample, columns=frame.columns)) == 1
        metric = as_distance(distance).from_factual(space, tuple(map(float, factual)))
        for point in sample[flipped][:400]:
            assert distance_up(metric, metric.measure(tuple(map(float, point)))) >= Fraction(best.lower)


def test_the_answer_sits_on_the_float_where_the_tree_changes_its_mind() -> None:
    model, space, frame = forest(1)
    explainer = Explainer(model, space)
    row = frame[model.predict(frame) == 0].iloc[0]
    best = explainer.explain(row)[0]
    assert model.predict(pd.DataFrame([best.values]))[0] == 1
    for change in best.changes:
        nearer = math.nextafter(change.after, change.before)
        values = best.values | {change.feature: nearer}
        assert model.predict(pd.DataFrame([values]))[0] == 0


def test_cells_hold_only_values_that_can_be_reached() -> None:
    space = FeatureSpace(
        {
            "n": integer(0, 10, step=3),
            "x": real(0, 1, step=0.3),
            "o": ordinal(["a", "b", "c"]),
            "c": categorical(["p", "q", "r"]),
        }
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "n": rng.choice([0, 3, 6, 9], 80),
            "x": rng.choice([0, 0.3, 0.6, 0.9], 80),
            "o": rng.choice(list("abc"), 80),
            "c": rng.choice(list("pqr"), 80),
        }
    )
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0)).fit(
        frame, rng.integers(0, 2, 80)
    )
    grid = make_grid(Explainer(model, space)._reading.form)  # type: ignore[arg-type]
    for j, (name, feature) in enumerate(space.items()):
        for low, high in zip(
            grid.low[grid.off[j] : grid.off[j + 1]], grid.high[grid.off[j] : grid.off[j + 1]], strict=True
        ):
            assert low <= high
            if name in "nx":
                assert feature.has(low)  # type: ignore[union-attr]
                assert feature.has(high)  # type: ignore[union-attr]
    assert list(grid.is_mask) == [False, False, False, True]


def test_a_factual_off_the_grid_keeps_its_own_value() -> None:
    space = FeatureSpace({"n": integer(0, 30, step=10), "m": integer(0, 30)})
    X = np.array([[n, m] for n in range(31) for m in range(31)])
    model = DecisionTreeClassifier(random_state=0).fit(X, (X.sum(axis=1) > 33).astype(int))
    explainer = Explainer(model, space)
    for row in ([7, 3], [13, 11], [25, 2]):
        answers = [
            explainer.explain(row, solver=solver, distance=distance)
            for solver in ("trees", "enumerate")
            for distance in ("l1",)
        ]
        assert answers[0][0].distance == pytest.approx(answers[1][0].distance, abs=1e-12)
        assert answers[0][0].values["n"] in {row[0], 0, 10, 20, 30}


def test_auto_takes_the_lane_for_trees_and_leaves_functions_to_others() -> None:
    model, space, frame = forest(3)
    assert Explainer(model, space).explain(frame.iloc[0])[0].solver == "trees"
    answer = Explainer(model, space).explain(
        frame.iloc[0], distance="lambda new, old: abs(new.a - old.a)", time_limit=20
    )
    assert answer.solver.startswith("milp")


# ---- limits


def hard() -> tuple[Any, FeatureSpace, Any]:
    X, y = make_classification(3000, 30, n_informative=20, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(30)])
    model = HistGradientBoostingClassifier(max_iter=150, random_state=0).fit(frame, y)
    far = np.argmin(model.decision_function(frame))
    return model, FeatureSpace.from_frame(frame), frame.iloc[int(far)]


def test_the_deadline_is_honoured_with_bounds_that_hold() -> None:
    model, space, row = hard()
    explainer = Explainer(model, space)
    explainer.explain(row, time_limit=0.2)
    started = time.process_time()
    told: list[tuple[float, float, int]] = []
    explanation = explainer.explain(row, time_limit=1.0, on_progress=lambda *bounds: told.append(bounds))
    assert time.process_time() - started < 3
    assert explanation.status in ("feasible", "unknown", "optimal")
    if explanation.status != "optimal":
        assert explanation.reason == "time limit reached"
    lowers = [bounds[0] for bounds in told]
    assert lowers == sorted(lowers)
    assert explanation.lower >= 0


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_found() -> None:
    script = (
        f"import signal, sys; sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1] / 'support')]!r}\n"
        "from test_trees_lane import hard\n"
        "import mace\n"
        "model, space, row = hard()\n"
        "explainer = mace.Explainer(model, space)\n"
        "explainer.explain(row, time_limit=0.1)\n"
        "def interrupt(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGALRM, interrupt)\n"
        # Not before the search has begun: an interrupt of the model's own predict is the user's.
        "begun = []\n"
        "begin = lambda *_: begun or begun.append(signal.setitimer(signal.ITIMER_REAL, 0.05))\n"
        "explanation = explainer.explain(row, time_limit=60, on_progress=begin)\n"
        "assert begun\n"
        "print(explanation.status, '|', explanation.reason)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    status, reason = (part.strip() for part in result.stdout.split("|"))
    assert status == "optimal" or reason == "interrupted"


@pytest.mark.slow
def test_compilation_is_announced_and_counts_against_no_limit(tmp_path: Path) -> None:
    script = (
        "import logging, mace, numpy as np\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "X = np.random.default_rng(0).random((50, 2)); y = (X.sum(axis=1) > 1).astype(int)\n"
        "space = mace.FeatureSpace({'a': mace.real(0, 1), 'b': mace.real(0, 1)})\n"
        "e = mace.Explainer(DecisionTreeClassifier(random_state=0).fit(X, y), space).explain([0.1, 0.1], time_limit=2)\n"
        "print(e.status, e[0].seconds < 2)\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    for announced in (True, False):
        result = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
        )
        assert result.stdout.split() == ["optimal", "True"]
        assert ("Compiling the tree lane" in result.stderr) == announced


def test_kernels_are_found_on_disk_after_the_first_use() -> None:
    forest_model, space, frame = forest(2)
    Explainer(forest_model, space).explain(frame.iloc[0])
    assert is_on_disk(kernels.advance)


def test_many_features_that_may_be_missing_are_no_explosion() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((300, 20))
    X[rng.random(X.shape) < 0.2] = np.nan
    labels = (np.nan_to_num(X, nan=0.5)[:, :5].sum(axis=1) > 2.5).astype(int)
    space = FeatureSpace({f"x{k}": real(0, 1, missing=True) for k in range(20)})
    model = RandomForestClassifier(10, random_state=0).fit(X, labels)
    explainer = Explainer(model, space)
    for distance in ("l0", "l1", "l2", "linf"):
        explanation = explainer.explain(list(X[model.predict(X) == 0][0]), distance=distance)
        assert explanation.status == "optimal"


def test_a_search_that_cannot_try_every_way_of_being_missing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_ensemble(232)
    explainer = Explainer(case.model, case.space)
    monkeypatch.setattr("mace.solvers.missing.MOST_PATTERNS", 0)
    explanation = explainer.explain(case.row, solver="trees")
    assert explanation.status == "unknown"
    assert "ways of being missing" in explanation.reason


# ---- what an attack found


def test_an_accuracy_beyond_floats_is_an_honest_gap() -> None:
    model, space, frame = forest(2)
    explanation = Explainer(model, space).explain(frame.iloc[0], distance="l1", accuracy=1e-15)
    assert explanation.status == "feasible"
    assert "finer than the rounding" in explanation.reason


def test_nothing_is_in_hand_where_nothing_was_found() -> None:
    X, y = make_classification(300, 8, n_informative=6, random_state=0)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = RandomForestRegressor(30, max_depth=6, random_state=0).fit(frame, y)
    explanation = Explainer(model, FeatureSpace.from_frame(frame)).explain(
        frame.iloc[0], target=mace.at_least(1.0), time_limit=3
    )
    assert explanation.status in ("infeasible", "unknown", "optimal", "feasible")


def test_a_target_that_a_regressor_attains_exactly_is_reached() -> None:
    frame = pd.DataFrame({"a": np.arange(10).repeat(20)})
    labels = np.random.default_rng(59).normal(0, 3, 10)[frame["a"]]
    model = GradientBoostingRegressor(n_estimators=1, init="zero", max_depth=5).fit(frame, labels)
    explainer = Explainer(model, FeatureSpace({"a": integer(0, 9)}))
    for value in np.unique(model.predict(frame)):
        if value == model.predict(frame)[0]:
            continue
        target = mace.between(float(value), float(value))
        trees, truth = (explainer.explain({"a": 0}, target=target, solver=solver) for solver in ("trees", "enumerate"))
        assert (trees.status, trees[0].distance) == (truth.status, truth[0].distance)


@pytest.mark.parametrize(
    "constraint",
    [mace.within("x", 0, 4.5), mace.within("x", 0.5, 4.5), mace.one_of("x", [2.5]), mace.within("x", 1.2, 1.8)],
    ids=str,
)
def test_fractional_bounds_on_integers(constraint: Any) -> None:
    space = FeatureSpace({"x": integer(0, 10), "y": integer(0, 7)})
    frame = pd.DataFrame([(x, y) for x in range(11) for y in range(8)], columns=["x", "y"])
    model = DecisionTreeClassifier(random_state=0).fit(
        frame, ((frame.x <= 3) | ((frame.x <= 6) & (frame.y >= 1))).astype(int)
    )
    explainer = Explainer(model, space)
    for row in ({"x": 9, "y": 0}, {"x": 8, "y": 5}):
        trees, truth = (
            explainer.explain(row, constraints=[constraint], solver=solver) for solver in ("trees", "enumerate")
        )
        assert (trees.status, [c.distance for c in trees]) == (truth.status, [c.distance for c in truth])


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.95), (0.55, 0.6)])
def test_a_grid_of_one_value_or_bounds_between_grid_values(low: float, high: float) -> None:
    space = FeatureSpace({"x": real(0.5, 1.2, step=1), "y": integer(0, 3)})
    frame = pd.DataFrame({"x": [0.5, 0.9] * 20, "y": [0, 1, 2, 3] * 10})
    model = DecisionTreeClassifier(random_state=0).fit(frame, (frame.x < 0.7).astype(int))
    explainer = Explainer(model, space)
    trees, truth = (
        explainer.explain(
            {"x": 0.9, "y": 1},
            constraints=[mace.within("x", low, high)],
            solver=solver,
            count=6,
            diversity=mace.differ(),
        )
        for solver in ("trees", "enumerate")
    )
    assert (trees.status, len(trees), trees.exhausted) == (truth.status, len(truth), truth.exhausted)


def test_many_points_on_the_boundary_do_not_break_the_deadline() -> None:
    X, y = make_classification(400, 6, n_informative=4, random_state=1)
    model = RandomForestClassifier(100, max_depth=2, random_state=0).fit(X, y)
    for number, tree in enumerate(model.estimators_):
        values = [1 / 3, 2 / 3] if number % 2 else [2 / 3, 1 / 3]
        tree.tree_.value[:, 0, :] = values
    explainer = Explainer(model, FeatureSpace.from_frame(pd.DataFrame(X, columns=list("abcdef"))))
    explainer.explain(list(X[0]), time_limit=0.3)
    started = time.process_time()
    explanation = explainer.explain(list(X[0]), time_limit=0.3)
    assert time.process_time() - started < 3
    assert explanation.status in ("infeasible", "unknown", "feasible", "optimal")


def test_an_ordinal_of_many_levels_without_order_goes_to_another_lane() -> None:
    values = [float((37 * k) % 70) for k in range(70)]
    space = FeatureSpace({"o": ordinal(values), "n": integer(0, 3)})
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(values, 300), rng.integers(0, 4, 300)])
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, (X[:, 0] > 33).astype(int))
    assert Explainer(model, space).explain([values[0], 1], time_limit=30)[0].solver == "milp"


def some_part(seed: int) -> tuple[Any, Any] | None:
    """Return the tables of a random question and one of its parts, if it has any."""
    from mace.solvers.trees.parts import Tables

    case = random_ensemble(seed)
    asked = {k: v for k, v in case.question.items() if k in ("target", "distance", "constraints")}
    try:
        tables = Tables(problem_of(Explainer(case.model, case.space), case.row, asked))
    except mace.InvalidTarget:
        return None
    alternatives = tables.alternatives()
    part = tables.part(tables.patterns.factual, alternatives[0]) if alternatives else None
    return None if part is None else (tables, part)


@pytest.mark.parametrize("seed", range(0, 68, 4))
def test_the_ball_holds_every_leaf_that_reaches_into_it(seed: int) -> None:
    """Walk every tree in plain Python and compare with what the kernel collects."""
    from mace.solvers.trees.local import Local

    found = some_part(seed)
    if found is None:
        return
    tables, part = found
    costs = sorted(leaf_cost(tables, part, path) for _, path in leaf_paths(tables.grid))
    for radius in (
        0.05,
        0.2,
        0.5,
        *(cost * factor for cost in costs[::3] for factor in (0.995, 1.005) if 0 < cost < 1e200),
    ):
        local = Local(tables, part, radius)
        if costs[0] < radius:
            assert (
                sum(cost < radius for cost in costs)
                <= local.count
                <= sum(cost <= radius * (1 + 1e-9) for cost in costs)
            )


@pytest.mark.parametrize("seed", range(0, 68, 4))
def test_a_ball_is_made_as_small_as_the_best_leaves_of_all_trees_allow(seed: int) -> None:
    """Where no size will do, it is empty: the sums in plain Python say when."""
    from mace.solvers.trees.local import BEYOND, Local

    found = some_part(seed)
    if found is None:
        return
    tables, part = found
    leaves = [(leaf_cost(tables, part, path), node) for node, path in leaf_paths(tables.grid)]
    costs = sorted({cost for cost, _ in leaves if cost < 1e200})
    roots, most = tables.grid.roots, part.values.most

    def is_open(limit: float) -> bool:
        """Return whether the leaves that cost at most so much reach every margin."""
        sums = part.values.base.copy()
        for root, after in zip(roots, [*roots[1:], len(most)], strict=True):
            near = [most[node] for cost, node in leaves if root <= node < after and cost <= limit * (1 + 1e-9)]
            if not near:
                return False
            sums += np.max(near, axis=0)
        return bool((sums >= part.values.need).all())

    opening = next(filter(is_open, costs), None)
    for radius in (cost * factor for cost in costs[::3] for factor in (0.99, 1.01, 3.0) if cost > 0):
        local = Local(tables, part, radius, 1e-9)
        if opening is None or opening > radius:
            assert local.count == 0
        else:
            assert local.radius == pytest.approx(min(radius, max(BEYOND * opening, 1e-9)))
            count, smaller = local.count, Local(tables, part, local.radius)
            assert (count, local.next_radius) == (smaller.count, pytest.approx(smaller.next_radius))


def leaf_paths(grid: Any) -> list[tuple[int, list[tuple[int, bool]]]]:
    """Return each leaf of each tree, the nodes on the way to it and whether it goes left at them."""
    found: list[tuple[int, list[tuple[int, bool]]]] = []
    pending: list[tuple[int, list[tuple[int, bool]]]] = [(int(root), []) for root in grid.roots]
    while pending:
        node, path = pending.pop()
        if grid.feature[node] < 0:
            found.append((node, path))
        else:
            pending += [(int(grid.left[node]), [*path, (node, True)]), (int(grid.right[node]), [*path, (node, False)])]
    return found


def leaf_cost(tables: Any, part: Any, path: list[tuple[int, bool]]) -> float:
    """Return the least cost of an allowed point in a leaf; infinite where there is none."""
    grid, view, cells = tables.grid, tables.view, part.cells
    total = peak = 0.0
    for j in range(len(part.box.lo)):
        chosen = []
        for k in range(view.off[j + 1] - view.off[j]):
            inside = (part.box.mask[j] >> k) & 1 if cells.is_mask[j] else part.box.lo[j] <= k <= part.box.hi[j]
            for node, left in path:
                if grid.feature[node] == j:
                    if part.pattern[j]:
                        goes = bool(grid.missing_left[node])
                    elif cells.is_mask[j]:
                        goes = bool((grid.subset[node] >> k) & 1)
                    else:
                        goes = bool(view.base[view.off[j] + k] < grid.bound[node])
                    inside = inside and goes == left
            if inside:
                chosen.append(view.off[j] + k)
        if not chosen:
            return math.inf
        best = min(chosen, key=lambda c: cells.add[c] + cells.top[c])
        total += cells.add[best]
        peak = max(peak, cells.top[best])
    return float(total + peak)


def test_a_label_and_a_probability_of_one_half_have_rounding_bands_of_their_own() -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    from mace.solvers.trees.prepared import prepared

    space = mace.FeatureSpace({"a": mace.integer(0, 30), "b": mace.integer(0, 30)})
    rows = [(k * 7 % 31, k * 11 % 31) for k in range(120)]
    labels = [int(a + b > 30) for a, b in rows]
    model = make_pipeline(mace.Encoder(space), GradientBoostingClassifier(n_estimators=20, random_state=0))
    explainer = mace.Explainer(model.fit(space.frame_of(rows), labels), space)
    for target in (1, mace.at_least(0.5)):
        assert explainer.explain((2, 3), target=target).status == "optimal"
    form = explainer._reading.form
    assert len({float(values.need[0]) for values in prepared(form).values.values()}) == 2  # type: ignore[arg-type]

"""The engine with prices: equal to brute force and to the plain engine, on easy and on hard questions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from problems import problem_of
from random_ensembles import FAMILIES, random_ensemble
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from trees_referee import compare

import mace
from mace import Explainer, FeatureSpace, differ
from mace.solvers import compiled
from mace.solvers.trees import dual, kernels, search
from mace.solvers.trees.engines import Priced
from mace.solvers.trees.local import Local
from mace.solvers.trees.parts import Tables, TreePart

PLAIN_ONLY, PRICES_ONLY = 10**9, 0


@pytest.mark.parametrize("seed", range(20_000, 20_000 + 6 * len(FAMILIES)))
def test_prices_alone_equal_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "NODES_BEFORE_PRICES", PRICES_ONLY)
    assert compare(random_ensemble(seed), "enumerate", 1e-12) is None


def question(seed: int, most_features: int = 11) -> tuple[Explainer, pd.Series, dict[str, Any]]:
    """Return an ensemble of some size, a row on its lesser side, and a question."""
    rng = np.random.default_rng(seed)
    features = int(rng.integers(3, most_features + 1))
    X, y = make_classification(
        600, features, n_informative=features // 2 + 1, n_redundant=0, n_clusters_per_class=1, random_state=seed
    )
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(features)])
    frame["x0"] = pd.cut(frame["x0"], 4, labels=["a", "b", "c", "d"]).astype(str)
    frame["x1"] = (10 * frame["x1"]).round().astype(int)
    space = FeatureSpace.from_frame(frame)
    encoder = mace.Encoder(space)
    kinds = (
        HistGradientBoostingClassifier(max_iter=25, max_depth=4, random_state=seed),
        GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=seed),
        RandomForestClassifier(9, max_depth=int(rng.integers(3, 7)), random_state=seed),
        RandomForestClassifier(8, random_state=seed),
    )
    model = make_pipeline(encoder, kinds[seed % len(kinds)]).fit(frame, y)
    refused = np.flatnonzero(model.predict(frame) == 0)
    row = frame.iloc[int(rng.choice(refused))]
    distances = ("l1", "l2", "l0", mace.Distance(l1=0.7, linf=0.3), mace.Distance(l0=0.2, l1=0.8), "linf")
    asked: dict[str, Any] = {"distance": distances[seed // len(kinds) % len(distances)]}
    if seed % 3 == 0:
        asked |= {"count": 2, "diversity": differ(features=2)}
    return Explainer(model, space), row, asked


@pytest.mark.parametrize("seed", range(24))
def test_both_engines_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, row, asked = question(seed)
    found = []
    for patience in (PLAIN_ONLY, PRICES_ONLY, 3):
        monkeypatch.setattr(search, "NODES_BEFORE_PRICES", patience)
        found.append(explainer.explain(row, solver="trees", time_limit=30, **asked))
    assert [each.status for each in found] == [found[0].status] * 3
    for each in found[1:]:
        assert each[0].distance == pytest.approx(found[0][0].distance, abs=1e-12)
        assert [one.lower == pytest.approx(one.distance, abs=1e-9) for one in each] == [True] * len(each)


def priced_ball(explainer: Explainer, row: pd.Series, distance: object, radius: float) -> tuple[Priced, TreePart]:
    """Return the engine with prices at the start of one ball."""
    problem = problem_of(explainer, row, {"distance": distance})
    tables = Tables(problem)
    part = tables.part(tables.patterns.factual, tables.alternatives()[0])
    assert part is not None
    radius = float(Fraction(radius) ** problem.metric.power)
    local = Local(tables, part, radius)
    multipliers = 0.8 * search.first_multipliers(part, radius)
    return Priced(local, part.trees, part.values, radius, 64 * local.count + 4096, multipliers), part


def counterfactuals(engine: Priced, part: TreePart) -> list[tuple[int, ...]]:
    """Return, by looking at all of them, the points of a ball that may be in the goal and cost less than the limit."""
    cells, goal = engine.local.cells, engine.goal
    sizes = [range(int(n)) for n in np.diff(engine.local.off)]
    if np.prod([float(len(size)) for size in sizes]) > 30_000:
        return []
    found, most, least = [], np.empty(1), np.empty(1)
    for point in itertools.product(*sizes):
        at = cells.off[:-1] + np.array(point)
        cost = cells.add[at].sum() + cells.top[at].max()
        if cost < engine.reals[kernels.LIMIT]:
            kernels.scores_at(cells.base_cell[at], cells, part.trees, goal, most, least)
            if most[0] >= goal.need[0]:
                found.append(point)
    return found


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_no_cell_or_leaf_of_a_counterfactual_is_dropped(seed: int) -> None:
    """Tighten the whole ball as far as it goes, then look whether every counterfactual in it is still there."""
    explainer, row, asked = question(seed, most_features=4)
    nearest = explainer.explain(row, distance=asked["distance"], solver="trees")[0].distance
    for share in (0.003, 0.05, 0.5):
        engine, part = priced_ball(explainer, row, asked["distance"], (1 + share) * nearest)
        while engine.registers[kernels.DEPTH] == 0 and engine.nodes <= 1 and not engine.found:
            engine.advance(1)
        alive, boxes, leaves = engine.boxes.alive[0], engine.boxes, engine.local.leaves
        for point in counterfactuals(engine, part):
            assert all(alive[engine.local.off[j] + k] for j, k in enumerate(point))
            for t in range(engine.local.trees):
                kept = boxes.arena[boxes.first[0, t] : boxes.last[0, t]]
                assert any(holds(leaves, engine.local.cells, i, point) for i in kept)


def holds(leaves: kernels.LeafTable, cells: kernels.CellTable, i: int, point: tuple[int, ...]) -> bool:
    return all(
        leaves.box_mask[i, cells.mask_of[j]] >> k & 1
        if cells.is_mask[j]
        else leaves.box_lo[i, j] <= k <= leaves.box_hi[i, j]
        for j, k in enumerate(point)
    )


def leaf_at(part: TreePart, root: int, point: np.ndarray[Any, Any]) -> int:
    """Return the leaf of a tree that a point, given by its base cells, falls into."""
    trees, node = part.trees, root
    while trees.feature[node] >= 0:
        j = trees.feature[node]
        is_left = trees.subset[node] >> point[j] & 1 if part.cells.is_mask[j] else point[j] < trees.bound[node]
        node = trees.left[node] if is_left else trees.right[node]
    return int(node)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("distance", ["linf", "l1"])
def test_a_ball_that_ends_at_the_cost_of_a_cell_has_no_leaf_outside_of_it(distance: str, seed: int) -> None:
    """Rounding lets leaves in that only touch such a ball; once they counted as if they held cells of it."""
    explainer, row, _ = question(seed, most_features=7)
    problem = problem_of(explainer, row, {"distance": distance})
    tables = Tables(problem)
    part = tables.part(tables.patterns.factual, tables.alternatives()[0])
    assert part is not None
    costs = np.unique(part.cells.add + part.cells.top)
    for radius in costs[(costs > 0) & (costs < 1)][:: max(1, len(costs) // 20)]:
        local = Local(tables, part, float(radius))
        for t in range(local.trees if local.count else 0):
            for i in range(local.tree_start[t], local.tree_start[t + 1]):
                low, high = local.leaves.box_lo[i].astype(np.int64), local.leaves.box_hi[i].astype(np.int64)
                blocks = np.clip(local.cells.own, low, high)
                for j in np.flatnonzero(local.cells.is_mask):
                    levels = int(local.leaves.box_mask[i, local.cells.mask_of[j]] & local.box.mask[j])
                    assert levels
                    blocks[j] = (levels & -levels).bit_length() - 1
                point = local.cells.base_cell[local.off[:-1] + blocks]
                assert part.values.most[leaf_at(part, tables.grid.roots[t], point), 0] == local.leaves.gain[i, 0]


@pytest.mark.parametrize("seed", range(30))
def test_a_ball_just_large_enough_is_not_closed_empty(seed: int) -> None:
    explainer, row, asked = question(seed, most_features=7)
    nearest = explainer.explain(row, distance=asked["distance"], solver="trees")[0].distance
    engine, _ = priced_ball(explainer, row, asked["distance"], (1 + 1e-7) * nearest)
    while engine.registers[kernels.DEPTH] >= 0 and engine.status == kernels.RUNNING:
        engine.advance(100)
    assert engine.found


@pytest.mark.slow
def test_a_maximum_over_features_is_closed_by_prices_alone() -> None:
    """Prices among the trees, and none of distance: many times fewer boxes, and the balls need no incumbent from the search."""
    X, y = make_classification(3000, 30, n_informative=15, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(30)])
    model = HistGradientBoostingClassifier(max_iter=150, early_stopping=False, random_state=0).fit(frame, y)
    explainer = Explainer(model, FeatureSpace.from_frame(frame))
    score = model.predict_proba(frame)[:, 1]
    refused = np.flatnonzero(model.predict(frame) == 0)
    for number in refused[np.argsort(score[refused])][[0, len(refused) // 2]]:
        explanation = explainer.explain(frame.iloc[int(number)], distance="linf", time_limit=60, certify=True)
        assert explanation.status == "optimal"
        assert explanation[0].calls < 1500
        certificate = explanation[0].certificate
        assert certificate is not None
        assert len(certificate.to_json()) < 500_000
        assert mace.verify(certificate, model) == mace.Verdict("valid")


def test_a_question_that_the_plain_engine_does_not_finish() -> None:
    import xgboost

    X, y = make_classification(10_000, 20, n_informative=10, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(20)])
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=5, n_jobs=1).fit(frame, y)
    score = model.predict_proba(frame)[:, 1]
    refused = np.flatnonzero(model.predict(frame) == 0)
    middle = refused[np.argsort(score[refused])][len(refused) // 2]
    explanation = Explainer(model, FeatureSpace.from_frame(frame)).explain(
        frame.iloc[middle], distance="l1", time_limit=60
    )
    assert explanation.status == "optimal"
    assert explanation[0].calls < 4000
    changed = {**frame.iloc[middle], **explanation[0].values}
    assert model.predict(pd.DataFrame([changed])[list(frame)])[0] == 1


def test_a_deadline_leaves_a_bound_for_several_classes() -> None:
    X, y = make_classification(2000, 12, n_informative=8, n_classes=4, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    model = RandomForestClassifier(60, random_state=0).fit(frame, y)
    explanation = Explainer(model, FeatureSpace.from_frame(frame)).explain(frame.iloc[0], distance="l1", time_limit=0.3)
    assert explanation.status == "optimal" or explanation.lower > 0


def test_a_kernel_on_disk_is_stale_when_any_file_with_kernels_changes(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("\n@kernel\ndef f(): ...\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    compiled.sources.cache_clear()
    before = compiled.sources(tmp_path)
    (tmp_path / "plain.py").write_text("x = 2\n")
    compiled.sources.cache_clear()
    assert compiled.sources(tmp_path) == before
    (tmp_path / "two.py").write_text("\n@kernel\ndef g(): ...\n")
    compiled.sources.cache_clear()
    assert compiled.sources(tmp_path) != before
    compiled.sources.cache_clear()
    assert dual.sweep.compiled._cache._cache_file._source_stamp == compiled.sources(Path(dual.__file__).parent)

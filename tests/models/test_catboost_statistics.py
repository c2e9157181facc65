"""CatBoost's statistics of categories, its default: what is read is what it computes, to the bit of a statistic, on thousands of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conformance import check, random_points, same
from random_problems import Case
from referee import disagreement
from test_boosters import bare_margins, estimator

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, real
from mace.models import read
from mace.models.trees import catboost_statistics

SPACE = FeatureSpace(
    {
        "x": real(-3, 3, missing=True),
        "k": categorical([*"pqrst"]),
        "z": real(0, 1),
        "m": categorical([*"abcdefg"]),
        "j": categorical(["u", "v", "w"]),
        "b": categorical(["0", "1"]),
    }
)
CATEGORIES = ["k", "m", "j", "b"]
SMALL = {"cat_features": CATEGORIES, "iterations": 12, "depth": 4}
COMBINED = {**SMALL, "model_size_reg": 0, "max_ctr_complexity": 4, "iterations": 20, "depth": 5}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": SMALL,
    "combinations": COMBINED,
    "no one-hot": {**COMBINED, "one_hot_max_size": 1},
    "buckets": {**COMBINED, "combinations_ctr": ["Buckets:CtrBorderCount=20", "Counter"], "simple_ctr": ["Buckets"]},
    "means": {**COMBINED, "simple_ctr": ["BinarizedTargetMeanValue"], "combinations_ctr": ["BinarizedTargetMeanValue"]},
    "priors": {**COMBINED, "simple_ctr": ["Borders:Prior=0.37/1:Prior=2/1", "Counter:Prior=0.1/1"]},
    "missing high": {**COMBINED, "nan_mode": "Max"},
    "depthwise": {**COMBINED, "grow_policy": "Depthwise"},
    "lossguide": {**COMBINED, "grow_policy": "Lossguide"},
    "all rows": {**SMALL, "counter_calc_method": "Full"},
}


def data(space: FeatureSpace, classes: int | None, rows: int = 800) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows whose labels depend on combinations of categories and numbers."""
    frame = space.frame_of(random_points(space, rows, 1))
    code = {name: pd.factorize(frame[name], sort=True)[0] for name in CATEGORIES}
    score = ((3 * code["k"] + 5 * code["m"]) % 4 > 1) + ((code["j"] + code["b"]) % 2) * (frame["x"].fillna(0) > 0.3)
    score = score + (code["m"] % 2) * (frame["z"] > 0.5) + np.random.default_rng(0).normal(0, 0.3, rows)
    if classes is None:
        return frame, score.to_numpy()
    return frame, np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)


def elements(model: Any, tmp_path: Path) -> set[str]:
    """Return of what the statistics of a model are made: kinds of elements, and their types."""
    model.save_model(str(tmp_path / "m.json"), format="json")
    saved = json.loads((tmp_path / "m.json").read_text())["features_info"].get("ctrs") or []
    kinds = {element["combination_element"] for entry in saved for element in entry["elements"]}
    return kinds | {entry["ctr_type"] for entry in saved} | {f"of {len(entry['elements'])}" for entry in saved}


@pytest.mark.parametrize("classes", [2, 3, None])
@pytest.mark.parametrize("name", OPTIONS)
def test_statistics_of_categories_are_read_as_they_are_computed(name: str, classes: int | None, tmp_path: Path) -> None:
    frame, labels = data(SPACE, classes)
    model = estimator("catboost", classes, **OPTIONS[name]).fit(frame, labels)
    found = elements(model, tmp_path)
    assert "cat_feature_value" in found
    if name == "combinations":
        assert {"of 1", "of 2", "of 3", "float_feature"} <= found
    if name in ("buckets", "means"):
        assert found & {"Buckets", "BinarizedTargetMeanValue"}
    form: Any = read(model, SPACE).form
    points = random_points(SPACE, 2000, 7)
    sums = np.asarray(bare_margins("catboost", model, SPACE)(points)).reshape(len(points), -1)
    scores = np.array([[float(score) for score in form.exact_scores(point)] for point in points])
    assert np.abs(scores - sums).max() <= float(form.rounding)


@pytest.mark.parametrize("classes", [2, 3, None])
def test_every_threshold_and_the_program_are_right(classes: int | None, tmp_path: Path) -> None:
    frame, labels = data(SPACE, classes)
    model = estimator("catboost", classes, **COMBINED | {"iterations": 8, "depth": 3}).fit(frame, labels)
    reading = check(model, SPACE, bare_margins("catboost", model, SPACE))
    fewer = SPACE.replace(k=categorical(["s", "p"]), m=categorical(["a", "never seen", "c"]))
    check(model, fewer, bare_margins("catboost", model, fewer))
    model.save_model(str(tmp_path / "m.cbm"))
    same(read(mace.load_model(tmp_path / "m.cbm"), SPACE), reading)


FINITE = SPACE.replace(x=real(-2, 2, step=1.0, missing=True), z=real(0, 1, step=0.5), m=categorical([*"abc"]))


@pytest.mark.parametrize("seed", range(8))
def test_the_answer_is_that_of_brute_force_and_its_certificate_valid(seed: int) -> None:
    classes = 3 if seed % 4 == 3 else 2
    frame, labels = data(FINITE, classes)
    labels = np.random.default_rng(seed).permutation(classes)[labels]
    model = estimator("catboost", classes, **COMBINED, random_seed=seed).fit(frame, labels)
    row = frame.iloc[seed].to_dict()
    question = {
        "distance": ["l1", "l0", "linf", "l2"][seed % 4],
        "constraints": [mace.fixed("x", "z")] if seed > 3 else [],
    }
    assert disagreement(Case("catboost", model, FINITE, row, question), "auto") is None
    found = mace.Explainer(model, FINITE).explain(row, **question, certify=True)
    if found:
        assert mace.verify(found[0].certificate, model).outcome == "valid"


@pytest.mark.parametrize("onehot", [1, 10])
def test_levels_that_are_numbers_or_flags_or_in_order_are_read(onehot: int) -> None:
    space = FeatureSpace(
        {
            "n": categorical([3, 5, 8, -2]),
            "flag": categorical([False, True]),
            "grade": mace.ordinal(["low", "mid", "high"]),
            "z": real(0, 1),
        }
    )
    frame = space.frame_of(random_points(space, 600, 1))
    flips = (frame["n"].astype(int) > 4) ^ frame["flag"].astype(bool) ^ (frame["grade"].astype(str) == "mid")
    options = COMBINED | {
        "cat_features": ["n", "flag", "grade"],
        "one_hot_max_size": onehot,
        "iterations": 8,
        "depth": 3,
    }
    model = estimator("catboost", 2, **options).fit(frame, (flips & (frame["z"] > 0.3)).astype(int))
    assert check(model, space, bare_margins("catboost", model, space)).form.subsets  # type: ignore[attr-defined]


def test_a_space_in_another_order_reads_the_same_combinations() -> None:
    frame, labels = data(SPACE, 2)
    model = estimator("catboost", 2, **COMBINED).fit(frame, labels)
    other = FeatureSpace(dict(list(SPACE.items())[::-1]))
    forms: list[Any] = [read(model, space).form for space in (SPACE, other)]
    for point in random_points(SPACE, 300, 5):
        assert forms[0].exact_scores(point) == forms[1].exact_scores(point[::-1])


def test_a_combination_of_too_many_levels_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, labels = data(SPACE, 2)
    model = estimator("catboost", 2, **COMBINED).fit(frame, labels)
    monkeypatch.setattr(catboost_statistics, "MOST_COMBINATIONS", 20)
    with pytest.raises(UnsupportedModel, match=r"combinations of levels, above 20\. Fit it with max_ctr_complexity=1"):
        read(model, SPACE)

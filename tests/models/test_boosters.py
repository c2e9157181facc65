"""XGBoost, LightGBM and CatBoost: what MACE read is what they compute, from the object and from its file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conformance import CATEGORIES, GAPS, NUMBERS, as_categories, check, random_points, same, training
from random_problems import Case
from referee import disagreement
from sklearn.pipeline import make_pipeline

import mace
from mace import Encoder, Explainer, FeatureSpace, MissingPackage, UnsupportedModel, categorical, integer, real
from mace.models import read
from mace.models.deployed import bare_columns, rows_of
from mace.registry import resolve

PACKAGES = ("xgboost", "lightgbm", "catboost")
ENCODINGS = [("onehot", "thermometer"), ("codes", "codes")]
CLASSES = [2, 3, None]


def package(name: str) -> Any:
    return pytest.importorskip(name, reason=f"NOT TESTED: {name} is not installed (pip install mace-xai[{name}])")


def estimator(name: str, classes: int | None, **options: Any) -> Any:
    library = package(name)
    suffix = "Regressor" if classes is None else "Classifier"
    if name == "xgboost":
        return getattr(library, f"XGB{suffix}")(**{"n_estimators": 6, "max_depth": 3, "n_jobs": 1} | options)
    if name == "lightgbm":
        small = {"n_estimators": 6, "num_leaves": 8, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
        return getattr(library, f"LGBM{suffix}")(**small | options)
    small = {"iterations": 6, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return getattr(library, f"CatBoost{suffix}")(**small | options)


def margins(name: str, model: Any, X: Any) -> Any:
    """Return the library's own sums."""
    if name == "xgboost":
        return model.predict(X, output_margin=True)
    if name == "lightgbm":
        trees = (
            model.booster_.current_iteration() if getattr(model, "boosting_type", "") == "rf" else 1
        )  # predict takes the mean
        return model.predict(X, raw_score=True) / trees
    return model.predict(X, prediction_type="RawFormulaVal")


def bare_margins(name: str, model: Any, space: FeatureSpace) -> Any:
    family = type(model).__name__
    table = resolve("mace.models:DEPLOYED")
    deployed = resolve(table[f"{name}:{family}"])(model)
    return lambda points: margins(name, model, rows_of(deployed, bare_columns(family, deployed, space), points))


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("encoding", ENCODINGS, ids="-".join)
@pytest.mark.parametrize("name", PACKAGES)
def test_a_pipeline_is_read_as_it_decides(name: str, encoding: tuple[str, str], classes: int | None) -> None:
    frame, labels = training(GAPS, classes)
    encoder = Encoder(GAPS, categorical=encoding[0], ordinal=encoding[1])
    model = make_pipeline(encoder, estimator(name, classes)).fit(frame, labels)
    check(model, GAPS, lambda points: margins(name, model[-1], model[0].transform(GAPS.frame_of(points))))


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("as_array", [False, True], ids=["frame", "array"])
@pytest.mark.parametrize("name", PACKAGES)
def test_a_bare_estimator_is_read_as_it_decides(name: str, as_array: bool, classes: int | None) -> None:
    frame, labels = training(NUMBERS, classes)
    model = estimator(name, classes).fit(frame.to_numpy(dtype=float) if as_array else frame, labels)
    reading = check(model, NUMBERS, bare_margins(name, model, NUMBERS))
    assert reading.is_regressor == (classes is None)


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "xgboost": [
        {"base_score": 0.3, "n_estimators": 1},
        {"num_parallel_tree": 3, "subsample": 0.7, "n_estimators": 2},
        {"grow_policy": "lossguide", "max_leaves": 7, "tree_method": "hist", "gamma": 0.5},
        {"tree_method": "exact", "gamma": 1.0},
        {"n_estimators": 20, "learning_rate": 0.9, "max_depth": 4},
    ],
    "lightgbm": [
        {"boosting_type": "dart"},
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"use_missing": False},
        {"n_estimators": 1},
        {"n_estimators": 20, "learning_rate": 0.4},
    ],
    "catboost": [
        {"grow_policy": "Lossguide", "max_leaves": 6},
        {"grow_policy": "Depthwise"},
        {"nan_mode": "Max"},
        {"iterations": 1},
        {"iterations": 20, "depth": 5},
    ],
}


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name in PACKAGES for options in OPTIONS[name]],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.items())),
)
def test_options_that_change_the_trees_are_read(name: str, options: dict[str, Any], classes: int | None) -> None:
    frame, labels = training(NUMBERS, classes)
    model = estimator(name, classes, **options).fit(frame, labels)
    check(model, NUMBERS, bare_margins(name, model, NUMBERS))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", PACKAGES)
def test_after_early_stopping_the_best_iterations_are_read(name: str, classes: int | None, tmp_path: Any) -> None:
    library = package(name)
    frame, labels = training(NUMBERS, classes)
    held = (frame[:80], labels[:80])
    if name == "xgboost":
        model = estimator(name, classes, n_estimators=60, learning_rate=1.0, early_stopping_rounds=3)
        model.fit(frame[80:], labels[80:], eval_set=[held], verbose=False)
        best, count = model.best_iteration + 1, model.get_booster().num_boosted_rounds()
    elif name == "lightgbm":
        model = estimator(name, classes, n_estimators=60, learning_rate=1.0)
        stop = library.early_stopping(3, verbose=False)
        model.fit(frame[80:], labels[80:], eval_set=[held], callbacks=[stop])
        best, count = model.best_iteration_, 60
    else:
        model = estimator(name, classes, iterations=60, learning_rate=1.0, early_stopping_rounds=3)
        model.fit(frame[80:], labels[80:], eval_set=held)
        best, count = model.best_iteration_ + 1, 60
    assert best < count
    reading = check(model, NUMBERS, bare_margins(name, model, NUMBERS))
    saved, file = (model.booster_, "m.txt") if name == "lightgbm" else (model, "m.json")
    saved.save_model(str(tmp_path / (file if name != "catboost" else "m.cbm")))
    same(read(mace.load_model(next(tmp_path.iterdir())), NUMBERS), reading)
    assert len(reading.form.roots) == best * (3 if classes == 3 and name != "catboost" else 1)  # type: ignore[attr-defined]


OBJECTIVES: dict[str, list[dict[str, Any]]] = {
    "xgboost": [
        {"objective": "reg:squarederror"},
        {"objective": "reg:absoluteerror"},
        {"objective": "reg:pseudohubererror"},
        {"objective": "reg:quantileerror", "quantile_alpha": 0.3},
    ],
    "lightgbm": [
        *({"objective": name} for name in ("regression", "regression_l1", "huber", "fair", "quantile", "mape")),
    ],
    "catboost": [
        *({"loss_function": name} for name in ("RMSE", "MAE", "Quantile:alpha=0.3", "MAPE", "Huber:delta=1.0")),
        *({"loss_function": name} for name in ("LogCosh", "Expectile:alpha=0.3")),
    ],
}


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name in PACKAGES for options in OBJECTIVES[name]],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_every_objective_whose_prediction_is_the_sum_is_read(name: str, options: dict[str, Any]) -> None:
    frame, numbers = training(NUMBERS, None)
    model = estimator(name, None, **options).fit(frame, np.abs(numbers) + 1)
    check(model, NUMBERS, bare_margins(name, model, NUMBERS))


@pytest.mark.parametrize(
    "options", [{}, {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, {"sigmoid": 0.7}]
)
def test_one_class_against_the_rest_is_read_for_lightgbm(options: dict[str, Any], tmp_path: Path) -> None:
    frame, labels = training(NUMBERS, 3)
    model = estimator("lightgbm", 3, objective="multiclassova", **options).fit(frame, labels)
    scale = options.get("sigmoid", 1.0)
    own = bare_margins("lightgbm", model, NUMBERS)
    reading = check(model, NUMBERS, lambda points: own(points) * scale)
    model.booster_.save_model(tmp_path / "m.txt")
    same(read(mace.load_model(tmp_path / "m.txt"), NUMBERS), reading)
    row = frame.iloc[0].to_dict()
    best = mace.Explainer(model, NUMBERS).explain(row, certify=True)[0]
    assert mace.verify(best.certificate, model).outcome == "valid"


def test_large_sums_of_one_class_against_the_rest_are_refused_by_name() -> None:
    frame, labels = training(NUMBERS, 3)
    model = estimator("lightgbm", 3, objective="multiclassova", n_estimators=60, learning_rate=1.0).fit(frame, labels)
    with pytest.raises(
        UnsupportedModel, match=r"objective='multiclassova'\): its sums may be as large.*objective='multiclass'"
    ):
        read(model, NUMBERS)


@pytest.mark.parametrize("name", ["lightgbm", "catboost"])
def test_labels_are_those_of_the_training_data(name: str) -> None:
    frame, labels = training(NUMBERS, 3)
    model = estimator(name, 3).fit(frame, np.array(["no", "perhaps", "yes"])[labels])
    assert check(model, NUMBERS).classes == ("no", "perhaps", "yes")


@pytest.mark.filterwarnings("ignore:.*is deprecated")  # by later versions of XGBoost, which still fit it
def test_random_forests_of_xgboost_are_read() -> None:
    library = package("xgboost")
    frame, labels = training(NUMBERS, 3)
    check(library.XGBRFClassifier(n_estimators=5, n_jobs=1).fit(frame, labels), NUMBERS)
    check(library.XGBRFRegressor(n_estimators=5, n_jobs=1).fit(frame, labels), NUMBERS)


# ---- categories


NATIVE: dict[str, dict[str, Any]] = {
    "xgboost": {"enable_categorical": True, "max_depth": 4},
    "lightgbm": {"min_data_per_group": 5, "cat_smooth": 1.0, "max_cat_to_onehot": 1},
    "catboost": {"cat_features": ["k", "m"], "one_hot_max_size": 10},
}


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", PACKAGES)
def test_pandas_categories_are_read_and_asked_as_categories(name: str, classes: int | None) -> None:
    frame, labels = training(CATEGORIES, classes)
    model = estimator(name, classes, **NATIVE[name]).fit(as_categories(frame, CATEGORIES), labels)
    reading = check(model, CATEGORIES, bare_margins(name, model, CATEGORIES))
    assert reading.form.subsets  # type: ignore[attr-defined]
    fewer = CATEGORIES.replace(k=categorical(["s", "p"]))
    check(model, fewer, bare_margins(name, model, fewer))


ORDERED = FeatureSpace(
    {
        "x": real(-3, 3, missing=True),
        "k": categorical([*"pqrst"]),
        "grade": mace.ordinal(["low", "mid", "high", "top"]),
        "m": categorical([3, 5, 8]),
        "size": mace.ordinal(["s", "m", "l"]),
    }
)


def ordered(frame: pd.DataFrame, space: FeatureSpace, *, numbers: bool = False) -> pd.DataFrame:
    """Return a frame whose levels are categories, those in order ordered; ``m`` a plain number where ``numbers``."""
    made = as_categories(frame, space)
    for column in ("grade", "size"):
        made[column] = made[column].cat.set_categories(space[column].levels, ordered=True)  # type: ignore[union-attr]
    return made.astype({"m": "int64"}) if numbers else made


@pytest.mark.parametrize("numbers", [False, True], ids=["categories", "numbers"])
@pytest.mark.parametrize("classes", CLASSES)
def test_ordered_categories_are_numbers_to_lightgbm(classes: int | None, numbers: bool, tmp_path: Path) -> None:
    frame, labels = training(ORDERED, classes)
    model = estimator("lightgbm", classes, n_estimators=12, **NATIVE["lightgbm"])
    model.fit(ordered(frame, ORDERED, numbers=numbers), labels)
    reading = check(model, ORDERED, bare_margins("lightgbm", model, ORDERED))
    form: Any = reading.form
    own = {form.columns[c].name for c in form.column[(form.left >= 0) & (form.subset < 0)]}
    assert own & {"grade", "size"}
    model.booster_.save_model(tmp_path / "m.txt")
    same(read(mace.load_model(tmp_path / "m.txt"), ORDERED), reading)
    other: Any = read(model, FeatureSpace(dict(list(ORDERED.items())[::-1]))).form
    for point in random_points(ORDERED, 100, 5):
        assert form.exact_scores(point) == other.exact_scores(point[::-1])
    fewer = ORDERED.replace(grade=mace.ordinal(["mid", "top"]))
    check(model, fewer, bare_margins("lightgbm", model, fewer))
    if classes is not None:
        best = mace.Explainer(model, ORDERED).explain(frame.iloc[0].to_dict(), certify=True)[0]
        assert mace.verify(best.certificate, model).outcome == "valid"


def test_ordered_categories_of_lightgbm_that_fit_two_features_are_refused() -> None:
    frame, labels = training(ORDERED, 2)
    made = ordered(frame, ORDERED, numbers=True).assign(
        m=frame["k"].map(dict(zip("pqrst", (3, 5, 8, 3, 5), strict=True)))
    )
    model = estimator("lightgbm", 2).fit(made.astype({"m": "int64"}), labels)
    with pytest.raises(UnsupportedModel, match="has no ways to place their categories"):
        read(model, ORDERED.replace(grade=mace.ordinal(["low", "else"])))
    alike = FeatureSpace(
        {name: mace.ordinal(["a", "b"]) if name != "x" else real(0, 1) for name in ("x", "one", "two")}
    )
    same_levels = pd.DataFrame(
        {"x": np.linspace(0, 1, 80), "one": pd.Categorical(["a", "b"] * 40, ordered=True), "two": [1, 2] * 40}
    )
    model = estimator("lightgbm", 2).fit(same_levels, np.arange(80) > 40)
    with pytest.raises(UnsupportedModel, match="has 2 ways to place"):
        read(model, alike)


FINITE = FeatureSpace(
    {
        "x": real(-2, 2, step=0.5, missing=True),
        "k": categorical([*"pqr"]),
        "grade": mace.ordinal(["low", "mid", "high"]),
        "m": categorical([3, 5]),
        "size": mace.ordinal(["s", "m", "l"]),
    }
)
VARIANTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "ordered": ("lightgbm", 2, {}),
    "rf": ("lightgbm", 2, {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}),
    "one against the rest": ("lightgbm", 3, {"objective": "multiclassova"}),
    "dart": ("xgboost", 2, {"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "enable_categorical": True}),
}


@pytest.mark.filterwarnings("ignore:.*is deprecated")  # by later versions of XGBoost, which still fit it
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("variant", VARIANTS)
def test_their_answers_are_those_of_brute_force(variant: str, seed: int) -> None:
    name, classes, options = VARIANTS[variant]
    frame, labels = training(FINITE, classes)
    labels = np.random.default_rng(seed).permutation(classes)[labels]
    model = estimator(name, classes, **options, random_state=seed).fit(ordered(frame, FINITE), labels)
    question = {"distance": ["l1", "l0", "linf", "l2"][seed]}
    case = Case(variant, model, FINITE, frame.iloc[seed].to_dict(), question)
    assert disagreement(case, "auto") is None


@pytest.mark.parametrize("onehot", [1, 100])
def test_categories_as_codes_are_read_for_xgboost(onehot: int) -> None:
    frame, labels = training(GAPS, 2)
    types = ["q", "q", "c", "c", "q"]
    final = estimator("xgboost", 2, feature_types=types, enable_categorical=True, max_cat_to_onehot=onehot)
    model = make_pipeline(Encoder(GAPS, categorical="codes", ordinal="codes"), final).fit(frame, labels)
    assert check(model, GAPS).form.subsets  # type: ignore[attr-defined]


def test_categories_as_codes_are_read_for_lightgbm() -> None:
    frame, labels = training(GAPS, 3)
    final = estimator("lightgbm", 3, n_estimators=20, num_leaves=16, min_data_per_group=5, cat_smooth=1.0)
    model = make_pipeline(Encoder(GAPS, categorical="codes", ordinal="codes"), final)
    model.fit(frame, labels, lgbmclassifier__categorical_feature=[2, 3])
    assert check(model, GAPS).form.subsets  # type: ignore[attr-defined]


def test_lightgbm_is_read_though_it_writes_names_without_spaces(tmp_path: Path) -> None:
    """It keeps "mean radius" as mean_radius, in the estimator and in its file; the frame that it is asked with has the user's names."""
    names = {"x": "mean x", "n": "n", "k": "the kind ", "m": " m m"}
    spaced = FeatureSpace({names[name]: feature for name, feature in CATEGORIES.items()})
    frame, labels = training(CATEGORIES, 2)
    model = estimator("lightgbm", 2, **NATIVE["lightgbm"])
    model.fit(as_categories(frame, CATEGORIES).rename(columns=names), labels)
    check(model, spaced, bare_margins("lightgbm", model, spaced))
    model.booster_.save_model(tmp_path / "m.txt")
    loaded = mace.load_model(tmp_path / "m.txt")
    row = as_categories(frame, CATEGORIES).rename(columns=names).iloc[0].to_dict()
    answers = [mace.Explainer(each, spaced).explain(row) for each in (model, loaded)]
    assert [answer.status for answer in answers] == ["optimal"] * 2
    assert answers[0][0].values == answers[1][0].values
    turned = mace.Explainer(model, FeatureSpace(dict(reversed(list(spaced.items()))))).explain(row)
    assert turned[0].distance == answers[0][0].distance
    with pytest.raises(UnsupportedModel, match=r"fitted on the columns mean_x.*cannot tell some apart"):
        read(model, FeatureSpace({**spaced, "mean_x": mace.real(0, 1)}))


# ---- boosters and files


def booster(name: str, frame: Any, labels: Any, classes: int | None) -> Any:
    library = package(name)
    task = {2: "binary", 3: "multi", None: "number"}[classes]
    count = {"num_class": 3} if classes == 3 else {}
    if name == "xgboost":
        objective = {"binary": "binary:logistic", "multi": "multi:softmax", "number": "reg:absoluteerror"}[task]
        data = library.DMatrix(frame, labels, enable_categorical=True)
        return library.train({"objective": objective, "max_depth": 3, "nthread": 1, **count}, data, 5)
    objective = {"binary": "binary", "multi": "multiclass", "number": "regression_l1"}[task]
    parameters = {"objective": objective, "num_leaves": 8, "verbose": -1, "sigmoid": 0.7, "num_threads": 1, **count}
    return library.train(parameters, library.Dataset(frame, labels), 5)


@pytest.mark.parametrize("space", [NUMBERS, CATEGORIES], ids=["numbers", "categories"])
@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", ["xgboost", "lightgbm"])
def test_a_booster_is_read_and_its_file_gives_the_same(
    name: str, classes: int | None, space: FeatureSpace, tmp_path: Any
) -> None:
    package(name)
    frame, labels = training(space, classes)
    if space is CATEGORIES:
        frame = as_categories(frame, space)
    model = booster(name, frame, labels, classes)
    scale = 0.7 if (name, classes) == ("lightgbm", 2) else 1.0
    raw = None if name == "xgboost" else bare_margins(name, model, space)
    reading = check(model, space, None if raw is None else lambda points: scale * raw(points))
    assert reading.classes == (None if classes is None else tuple(range(classes)))
    points = random_points(space, 60, 8)
    for suffix in (".json", ".ubj") if name == "xgboost" else (".txt",):
        model.save_model(tmp_path / f"model{suffix}")
        loaded = read(mace.load_model(tmp_path / f"model{suffix}"), space)
        same(loaded, reading)
        assert loaded.ask(points) == reading.ask(points)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", PACKAGES)
def test_an_estimators_file_gives_the_same_form_and_predictions(name: str, classes: int | None, tmp_path: Any) -> None:
    frame, labels = training(NUMBERS, classes)
    model = estimator(name, classes).fit(frame, labels)
    reading = read(model, NUMBERS)
    points = random_points(NUMBERS, 60, 8)
    for suffix in {"xgboost": (".json", ".ubj"), "lightgbm": (".txt",), "catboost": (".cbm",)}[name]:
        saved = model.booster_ if name == "lightgbm" else model
        saved.save_model(str(tmp_path / f"model{suffix}"))
        loaded = read(mace.load_model(tmp_path / f"model{suffix}"), NUMBERS)
        same(loaded, reading)
        assert loaded.ask(points) == reading.ask(points)


@pytest.mark.parametrize("file", ["model.json", "model.ubj", "model.cbm"])
def test_a_damaged_file_is_refused(file: str, tmp_path: Any) -> None:
    package("catboost" if file.endswith("cbm") else "xgboost")
    (tmp_path / file).write_bytes(b"{ not a model")
    with pytest.raises(UnsupportedModel, match="cannot be read"):
        mace.load_model(tmp_path / file)


@pytest.mark.parametrize(
    ("name", "file", "start"),
    [("xgboost", "m.json", b"{}"), ("lightgbm", "m.txt", b"tree"), ("catboost", "m.cbm", b"CBM1")],
)
def test_a_missing_package_says_how_to_install_it(
    name: str, file: str, start: bytes, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_bytes(start)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackage, match=rf"pip install 'mace-xai\[{name}\]'"):
        mace.load_model(tmp_path / file)


# ---- rules at their edges


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_the_float32_link_confuses_only_sums_that_the_form_calls_close(classes: int) -> None:
    """XGBoost's own sigmoid and softmax, on margins around a tie, decide as the sign beyond the form's squash."""
    library = package("xgboost")
    frame, labels = training(NUMBERS, classes)
    model = estimator("xgboost", classes).fit(frame, labels)
    squash = float(read(model, NUMBERS).form.squash)  # type: ignore[attr-defined]
    row = frame.iloc[[0]]
    own = model.predict(row, output_margin=True).reshape(-1)
    for gap in [*np.geomspace(squash, 1e-3, 40), *-np.geomspace(squash, 1e-3, 40)]:
        for level in (0.0, 1.7, -30.0):
            wanted = np.full(len(own), level, dtype=np.float64)
            wanted[-1] = gap if classes == 2 else level + gap
            if classes == 3:
                wanted[0] -= 5
            data = library.DMatrix(row, base_margin=(wanted - own).reshape(1, -1))
            total = model.get_booster().predict(data, output_margin=True).reshape(-1)
            ahead = total[-1] > (0 if classes == 2 else total[1])
            if abs(total[-1] - (0 if classes == 2 else total[1])) <= squash:
                continue
            chance = model.get_booster().predict(data).reshape(-1)
            assert (chance[0] > 0.5 if classes == 2 else chance.argmax() == 2) == ahead


@pytest.mark.parametrize("classes", [2, 3])
def test_catboost_decides_ties_for_the_first_class(classes: int, tmp_path: Any) -> None:
    library = package("catboost")
    X = np.arange(8.0).reshape(-1, 1)
    estimator("catboost", classes, iterations=1, depth=1).fit(X, np.arange(8) % classes).save_model(
        str(tmp_path / "m.json"), format="json"
    )
    saved = json.loads((tmp_path / "m.json").read_text())
    saved["oblivious_trees"][0]["leaf_values"] = [0.0, 5e-324] if classes == 2 else [-1.0, 0.5, 0.5, 0.25, 0.25, 0.0]
    saved["scale_and_bias"] = [1, [0.0] * len(saved["scale_and_bias"][1])]
    (tmp_path / "m.json").write_text(json.dumps(saved))
    model = library.CatBoostClassifier().load_model(str(tmp_path / "m.json"), format="json")
    reading = read(model, FeatureSpace({"a": integer(0, 7)}))
    assert reading.form.rounding == 0  # type: ignore[attr-defined]
    assert reading.ask([(0,), (7,)]) == ([0, 1] if classes == 2 else [1, 0])


def test_lightgbm_takes_tiny_numbers_for_zero() -> None:
    """Splits beside zero are at 1e-35 in float32; the form knows on which float LightGBM changes its mind."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice([-1.0, 0.0, 1.0], 300), rng.random(300)])
    space = FeatureSpace({"a": real(-1, 1, missing=True), "b": real(0, 1)})
    for zero_left in (False, True):
        labels = (X[:, 0] > 0 if zero_left else X[:, 0] >= 0).astype(int)
        model = estimator("lightgbm", 2).fit(X, labels)
        form: Any = check(model, space).form
        assert (np.abs(form.edge[(form.left >= 0) & (form.column == 0)]) < 1e-30).any()


def test_zero_as_missing_is_read_for_levels_and_refused_for_numbers() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 400), rng.random(400)]).astype(float)
    labels = np.isin(X[:, 0], (0, 3)).astype(int)
    model = estimator("lightgbm", 2, zero_as_missing=True).fit(X, labels)
    check(model, FeatureSpace({"a": categorical([0, 1, 2, 3]), "b": real(0.001, 1)}))
    with pytest.raises(UnsupportedModel, match="zero_as_missing=True"):
        read(model, FeatureSpace({"a": integer(0, 3), "b": real(0.001, 1)}))


# ---- explanations


SMALL = FeatureSpace({"x": real(-3, 3), "n": integer(-5, 60), "k": categorical(["p", "q", "r"])})


@pytest.mark.parametrize("name", PACKAGES)
def test_a_classifier_is_explained_by_label_and_by_probability(name: str) -> None:
    options = {"iterations": 3, "depth": 2} if name == "catboost" else {"n_estimators": 3, "max_depth": 2}
    frame = SMALL.frame_of(random_points(SMALL, 200, 2))
    labels = (frame["x"] + frame["n"] / 30 + (frame["k"] == "q") > 1.2).astype(int)
    model = make_pipeline(Encoder(SMALL), estimator(name, 2, **options)).fit(frame, labels)
    explainer = Explainer(model, SMALL)
    rates = explainer_rates(model, frame)
    row = frame.iloc[[int(np.argmin(rates))]]
    best = explainer.explain(row, solver="smt")[0]
    assert (best.status, best.prediction) == ("optimal", 1)
    wanted = float(np.quantile(rates, 0.9))
    sure = explainer.explain(row, target=mace.at_least(wanted), solver="smt")
    assert sure.status == "optimal"
    assert explainer_rates(model, SMALL.frame_of([SMALL.point(sure[0].values)]))[0] >= wanted


def explainer_rates(model: Any, frame: Any) -> Any:
    return model[-1].predict_proba(model[0].transform(frame))[:, 1]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_regressor_with_categories_is_explained_by_an_interval(name: str) -> None:
    options = {"iterations": 3, "depth": 2} if name == "catboost" else {"n_estimators": 3, "max_depth": 2}
    native = NATIVE[name] | ({"cat_features": ["k"]} if name == "catboost" else {})
    frame = SMALL.frame_of(random_points(SMALL, 200, 2))
    score = frame["x"] / 2 + frame["n"] / 30 + 2 * (frame["k"] == "q")
    model = estimator(name, None, **native | options).fit(as_categories(frame, SMALL), score)
    predicted = model.predict(as_categories(frame, SMALL))
    low, high = map(float, np.quantile(predicted, [0.6, 0.8]))
    row = frame.iloc[[int(np.argmin(predicted))]]
    explainer = Explainer(model, SMALL)
    explanation = explainer.explain(row, target=mace.between(low, high), solver="smt")
    assert explanation.status == "optimal"
    assert low <= explainer.predict(explanation[0].values) <= high


# ---- refusals


X = np.random.default_rng(0).random((80, 2)).round(2)
Y = (X.sum(axis=1) > 1).astype(int)
PLAIN = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})


@pytest.mark.filterwarnings("ignore:.*is deprecated")  # by later versions of XGBoost, which still fit it
@pytest.mark.parametrize(
    ("name", "classes", "options", "message"),
    [
        ("xgboost", 2, {"booster": "gblinear", "verbosity": 0}, "booster='gblinear'"),
        ("xgboost", 2, {"objective": "binary:hinge"}, "objective='binary:hinge'.*Supported: binary:logistic"),
        ("xgboost", None, {"objective": "count:poisson"}, "objective='count:poisson'"),
        ("xgboost", 2, {"missing": 0.5}, "missing=0.5.*NaN"),
        ("xgboost", None, {"objective": "binary:logistic"}, "objective='binary:logistic'.*Supported: reg:squarederror"),
        ("xgboost", 2, {"objective": "multi:softprob", "num_class": 2}, "it predicts no class a row"),
        ("xgboost", None, {"objective": lambda y, p: (p - y, np.ones_like(p))}, "an objective that is a function"),
        ("lightgbm", None, {"objective": "binary"}, "objective='binary'.*Supported: regression"),
        ("lightgbm", 2, {"objective": "multiclassova", "num_class": 2}, "objective='multiclassova'"),
        ("lightgbm", None, {"objective": "poisson"}, "objective='poisson'"),
        ("lightgbm", None, {"reg_sqrt": True}, "reg_sqrt=True"),
        ("lightgbm", None, {"linear_tree": True}, "linear_tree=True"),
        ("lightgbm", 2, {"pred_early_stop": True}, "pred_early_stop=True"),
        ("catboost", None, {"loss_function": "Poisson"}, "loss_function='Poisson'.*RMSE"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    name: str, classes: int | None, options: dict[str, Any], message: str
) -> None:
    model = estimator(name, classes, **options)
    model.fit(X, X[:, 0] if classes is None and "binary" not in message else Y)
    with pytest.raises(UnsupportedModel, match=message):
        read(model, PLAIN)


DART = {"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "n_estimators": 12}


@pytest.mark.filterwarnings("ignore:.*is deprecated")  # by later versions of XGBoost, which still fit it
@pytest.mark.parametrize("normalize", ["tree", "forest"])
@pytest.mark.parametrize("classes", CLASSES)
def test_dart_is_read_with_and_without_categories(classes: int | None, normalize: str, tmp_path: Path) -> None:
    frame, labels = training(CATEGORIES, classes)
    model = estimator("xgboost", classes, **DART, enable_categorical=True, normalize_type=normalize)
    model.fit(as_categories(frame, CATEGORIES), labels)
    weights = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]["gradient_booster"]
    assert min(weights.get("weight_drop") or weights["model"]["weight_drop"]) < 1
    reading = check(model, CATEGORIES, bare_margins("xgboost", model, CATEGORIES))
    assert reading.form.subsets  # type: ignore[attr-defined]
    check(model.get_booster(), CATEGORIES)
    model.save_model(tmp_path / "m.json")
    same(read(mace.load_model(tmp_path / "m.json"), CATEGORIES), reading)
    if classes is not None:
        best = mace.Explainer(model, CATEGORIES).explain(frame.iloc[0].to_dict(), certify=True)[0]
        assert mace.verify(best.certificate, model).outcome == "valid"
    frame, labels = training(NUMBERS, classes)
    plain = estimator("xgboost", classes, **DART, base_score=0.3).fit(frame, labels)
    check(plain, NUMBERS, bare_margins("xgboost", plain, NUMBERS))


def test_weights_of_dropped_trees_are_seen_in_files_as_later_versions_write_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """XGBoost 3.4 writes ``weight_drop`` beside the trees of a model that calls itself gbtree; earlier versions write none."""
    frame, labels = training(NUMBERS, 2)
    model = estimator("xgboost", 2).fit(frame, labels)
    booster = model.get_booster()
    saved = json.loads(bytes(booster.save_raw("json")))
    plain: Any = read(model, NUMBERS).form
    trees = booster.num_boosted_rounds()
    saved["learner"]["gradient_booster"]["model"]["weight_drop"] = [1.0] * (trees - 1) + [0.5]
    monkeypatch.setattr(type(booster), "save_raw", lambda self, kind: json.dumps(saved).encode())
    weighted: Any = read(model, NUMBERS).form
    last = plain.roots[-1]
    assert np.array_equal(weighted.value[:last], plain.value[:last])
    assert np.array_equal(weighted.value[last:], plain.value[last:] * 0.5)
    assert weighted.rounding > plain.rounding


@pytest.mark.parametrize("name", PACKAGES)
def test_an_unfitted_model_and_another_width_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedModel, match="not fitted"):
        read(estimator(name, 2), PLAIN)
    model = estimator(name, 2).fit(X, Y)
    with pytest.raises(UnsupportedModel, match="fitted on 2 columns; the space gives 3"):
        read(model, FeatureSpace({"a": real(0, 1), "b": real(0, 1), "c": real(0, 1)}))


def test_a_moved_threshold_is_refused_for_catboost() -> None:
    plain = estimator("catboost", 2).fit(X, Y)
    plain.set_probability_threshold(0.7)
    with pytest.raises(UnsupportedModel, match=r"probability threshold 0.7.*at_least"):
        read(plain, PLAIN)


def test_a_level_that_xgboost_would_refuse_is_refused() -> None:
    frame, labels = training(CATEGORIES, 2)
    model = estimator("xgboost", 2, enable_categorical=True).fit(as_categories(frame, CATEGORIES), labels)
    with pytest.raises(UnsupportedModel, match="level 'zz' of the space is unknown"):
        read(model, CATEGORIES.replace(k=categorical(["p", "zz"])))


def test_lightgbm_sends_an_unknown_level_right() -> None:
    frame, labels = training(CATEGORIES, 2)
    model = estimator("lightgbm", 2, **NATIVE["lightgbm"]).fit(as_categories(frame, CATEGORIES), labels)
    check(model, CATEGORIES.replace(k=categorical(["p", "zz", "s"])))


@pytest.mark.parametrize("name", PACKAGES)
def test_a_subclass_that_decides_itself_is_refused(name: str) -> None:
    base = type(estimator(name, 2))
    harsh = type("Harsh", (base,), {"predict": lambda self, X, **options: np.zeros(len(X), dtype=int)})
    fitted = estimator(name, 2).fit(X, Y)
    fitted.__class__ = harsh
    with pytest.raises(UnsupportedModel, match=rf"overrides {base.__name__}.predict"):
        read(fitted, PLAIN)


@pytest.mark.parametrize("city", ["Köln", "aö"])
def test_categories_that_xgboost_does_not_keep_whole_are_refused_with_what_to_do(city: str) -> None:
    frame = pd.DataFrame({"city": pd.Categorical([city, "b", "Ulm", "Jena"] * 10)})
    model = estimator("xgboost", 2, enable_categorical=True).fit(frame, np.tile([0, 1], 20))
    with pytest.raises(mace.UnsupportedModel, match=r"'city': level .* has letters beyond ASCII.*'codes'"):
        mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    assert mace.Explainer(model, mace.FeatureSpace.from_frame(frame), unread="search").explain(frame.iloc[0])

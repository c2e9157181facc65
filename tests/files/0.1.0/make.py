"""Writes the files of this folder. It was run once, with version 0.1.0, and is kept to show how they came about: never run it again.

python tests/files/0.1.0/make.py FOLDER
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import math
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import skops.io
from asked import FUNCTIONS, batches
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Distance
from mace.solvers.trees import search

PEOPLE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 80),
        "income": mace.real(0, 100),
        "debt": mace.real(0, 50, step=0.5),
        "education": mace.ordinal(["primary", "secondary", "degree"]),
        "housing": mace.categorical(["rent", "own", "free"]),
        "guarantor": mace.categorical([False, True]),
    }
)
GAPS = PEOPLE.replace(
    income=mace.real(0, 100, missing=True),
    age=mace.integer(18, 80, missing=True),
    housing=mace.categorical(["rent", "own", "free"], missing=True),
)
NUMBERS = mace.FeatureSpace(
    {"x": mace.real(-3, 3), "y": mace.real(-3, 3, missing=True), "n": mace.integer(0, 20), "z": mace.real(0, 1)}
)
SPACES = {
    "people": PEOPLE,
    "gaps": GAPS,
    "numbers": NUMBERS,
    "whole": NUMBERS.replace(y=mace.real(-3, 3)),
    "lender": mace.FeatureSpace(
        {"income": mace.real(0, 100), "debt": mace.real(0, 50), "housing": mace.categorical(["rent", "own"])}
    ),
    "nonlinear": mace.FeatureSpace({"x": mace.real(0, 10), "y": mace.real(0, 10)}),
    "points": mace.FeatureSpace(
        {"a": mace.integer(0, 6), "b": mace.real(0, 5, step=1), "c": mace.categorical(["x", "y", "z"])}
    ),
    "price": mace.FeatureSpace({"rooms": mace.integer(1, 8), "area": mace.real(10, 200, step=0.25)}),
    "levels": mace.FeatureSpace(
        {
            "whole": mace.ordinal([1, 2, 5]),
            "odd ümlaut": mace.categorical(["a", "b", "naïve"]),
            "flag": mace.categorical([True, False]),
            "absent": mace.categorical(["p", None]),
            "empty": mace.categorical([1, 2, math.nan]),
            "fraction": mace.real(-1e-300, 1e300),
            "one": mace.integer(3, 3),
            "grid": mace.integer(-9, 90, step=3),
        }
    ),
}
rng = np.random.default_rng(16)


def people(count: int) -> pd.DataFrame:
    income = rng.uniform(0, 100, count).round(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 81, count),
            "income": income,
            "debt": rng.integers(0, 101, count) / 2,
            "education": rng.choice(["primary", "secondary", "degree"], count),
            "housing": rng.choice(["rent", "own", "free"], count),
            "guarantor": rng.choice([False, True], count),
        }
    )


def score_of(frame: pd.DataFrame) -> Any:
    rank = frame.education.map({"primary": 0, "secondary": 1, "degree": 2}).astype(float)
    own = 8.0 * (frame.housing == "own") + 6.0 * frame.guarantor.astype(bool)
    return frame.income.fillna(50) - frame.debt + 8 * rank + own + 0.2 * frame.age.fillna(40)


FRAME = people(300)
CLASSES = np.where(score_of(FRAME) > 55, "good", np.where(score_of(FRAME) > 30, "fair", "bad"))
BINARY = np.where(score_of(FRAME) > 45, "good", "bad")
GAPPED = FRAME.astype({"age": float, "housing": object})
GAPPED.loc[::5, "income"] = math.nan
GAPPED.loc[1::7, "age"] = math.nan
GAPPED.loc[2::9, "housing"] = math.nan
PLAIN = pd.DataFrame(
    {
        "x": rng.uniform(-3, 3, 300).round(3),
        "y": rng.uniform(-3, 3, 300).round(3),
        "n": rng.integers(0, 21, 300),
        "z": rng.random(300).round(3),
    }
)
WIDE = pd.DataFrame(rng.normal(size=(600, 8)).round(3), columns=[f"w{k}" for k in range(8)])
SPACES["wide"] = mace.FeatureSpace.from_frame(WIDE)
SIDE = (PLAIN.x + PLAIN.y**2 / 3 + PLAIN.n / 10 - PLAIN.z > 1.2).astype(int)


def encoded(estimator: Any, space: Any = PEOPLE, **options: Any) -> Any:
    return make_pipeline(mace.Encoder(space, **options), estimator)


def mlp(*sizes: int) -> Any:
    return MLPClassifier(sizes, solver="lbfgs", max_iter=500, random_state=0)


def by_columns() -> ColumnTransformer:
    numbers = make_column_selector(dtype_include=np.number)
    others = make_column_selector(dtype_exclude=np.number)
    return ColumnTransformer(
        [("numbers", StandardScaler(), numbers), ("levels", OneHotEncoder(drop="if_binary"), others)]
    )


def pipelines() -> dict[str, tuple[Any, str, Any, Any]]:
    """Return what is fitted: estimator, name of its space, rows, labels."""
    logistic = encoded(make_pipeline(StandardScaler(), LogisticRegression()))
    made: dict[str, tuple[Any, str, Any, Any]] = {
        name: (estimator, "people", FRAME, BINARY)
        for name, estimator in {
            "tree": encoded(DecisionTreeClassifier(max_depth=4, random_state=0)),
            "codes": encoded(DecisionTreeClassifier(max_depth=4, random_state=0), ordinal="codes"),
            "boosting": encoded(GradientBoostingClassifier(n_estimators=8, max_depth=2, random_state=0)),
            "extra": encoded(ExtraTreesClassifier(4, max_depth=4, random_state=0)),
            "ada": encoded(AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0)),
            "logistic": logistic,
            "svc": encoded(make_pipeline(MinMaxScaler(), LinearSVC())),
            "network": encoded(make_pipeline(StandardScaler(), mlp(5))),
            "deep": encoded(make_pipeline(MinMaxScaler(), mlp(4, 3))),
            "calibrated": CalibratedClassifierCV(encoded(make_pipeline(StandardScaler(), LinearSVC())), cv=2),
            "soft": VotingClassifier([("a", logistic), ("b", encoded(mlp(3)))], voting="soft"),
            "hard": VotingClassifier(
                [("a", logistic), ("b", encoded(DecisionTreeClassifier(max_depth=2))), ("c", encoded(LinearSVC()))],
                voting="hard",
            ),
            "bagged": BaggingClassifier(encoded(LogisticRegression(max_iter=500)), 3, random_state=0),
            "threshold": FixedThresholdClassifier(logistic, threshold=0.3, pos_label="good"),
            "searched": GridSearchCV(
                encoded(DecisionTreeClassifier(random_state=0)),
                {"decisiontreeclassifier__max_depth": [2, 3]},
                cv=2,
                scoring="accuracy",
            ),
            "columns": make_pipeline(by_columns(), SelectKBest(k=5), LogisticRegression()),
            "bins": make_pipeline(
                ColumnTransformer([("bins", KBinsDiscretizer(4, encode="onehot-dense"), ["income", "age"])]),
                RandomForestClassifier(4, max_depth=3, random_state=0),
            ),
            "oblique": encoded(
                make_pipeline(StandardScaler(), PCA(2), DecisionTreeClassifier(max_depth=3, random_state=0))
            ),
        }.items()
    }
    made["forest"] = (encoded(RandomForestClassifier(6, max_depth=4, random_state=0)), "people", FRAME, CLASSES)
    made["softmax"] = (encoded(make_pipeline(StandardScaler(), LogisticRegression())), "people", FRAME, CLASSES)
    score = score_of(FRAME)
    made["regression"] = (encoded(RandomForestRegressor(4, max_depth=4, random_state=0)), "people", FRAME, score)
    made["linear"] = (encoded(make_pipeline(StandardScaler(), LinearRegression())), "people", FRAME, score)
    made["ridge"] = (encoded(Ridge()), "people", FRAME, score)
    made["usual"] = (encoded(IsolationForest(n_estimators=10, max_samples=32, random_state=0)), "people", FRAME, None)
    hist = HistGradientBoostingClassifier(max_iter=6, max_depth=3, random_state=0)
    side = (score_of(GAPPED) > 45).astype(int)
    made["gaps"] = (encoded(hist, GAPS), "gaps", GAPPED, side)
    imputed = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), mlp(4))
    made["imputed"] = (encoded(imputed, GAPS), "gaps", GAPPED, side)
    wide = HistGradientBoostingClassifier(max_iter=20, max_depth=4, random_state=0)
    made["priced"] = (wide, "wide", WIDE, (WIDE.to_numpy() @ rng.normal(size=8) + rng.normal(size=600) > 0).astype(int))
    return made


def saved_models(folder: Path) -> dict[str, dict[str, Any]]:
    """Fit and save every model; return for each its file, its space, and some rows with what is predicted of them."""
    import lightgbm
    import skl2onnx
    import xgboost
    from catboost import CatBoostClassifier

    told: dict[str, dict[str, Any]] = {}

    def tell(name: str, file: str, space: str, frame: pd.DataFrame, model: Any, rows: Any = None) -> None:
        chosen = frame.iloc[:8]
        told[name] = {
            "file": file,
            "space": space,
            "rows": [{key: plain(value) for key, value in row.items()} for row in chosen.to_dict("records")],
            "predictions": [plain(value) for value in model.predict(chosen if rows is None else rows)],
        }

    for name, (estimator, space, frame, labels) in pipelines().items():
        model = estimator.fit(frame, labels)
        skops.io.dump(model, folder / f"{name}.skops", compression=zipfile.ZIP_DEFLATED)
        tell(name, f"{name}.skops", space, frame, model)
        if name in ("tree", "codes", "forest", "logistic", "network", "gaps", "searched", "hard"):
            joblib.dump(model, folder / f"{name}.joblib", compress=9)
            told[name]["joblib"] = f"{name}.joblib"
    boosted = xgboost.XGBClassifier(n_estimators=5, max_depth=3, random_state=0).fit(PLAIN, SIDE)
    boosted.save_model(folder / "xgboost.json")
    tell("xgboost", "xgboost.json", "numbers", PLAIN, boosted)
    light = lightgbm.train(
        {"objective": "binary", "num_leaves": 6, "verbose": -1, "seed": 0}, lightgbm.Dataset(PLAIN, SIDE), 5
    )
    light.save_model(folder / "lightgbm.txt")
    tell("lightgbm", "lightgbm.txt", "numbers", PLAIN, light)
    cat = CatBoostClassifier(iterations=5, depth=3, verbose=False, random_seed=0, allow_writing_files=False)
    cat.fit(PLAIN, SIDE).save_model(str(folder / "catboost.cbm"))
    tell("catboost", "catboost.cbm", "numbers", PLAIN, cat)
    numbers = make_pipeline(StandardScaler(), mlp(4)).fit(PLAIN.to_numpy(np.float32), SIDE)
    graph = skl2onnx.to_onnx(numbers, PLAIN.to_numpy(np.float32)[:1], options={"zipmap": False})
    (folder / "onnx.onnx").write_bytes(graph.SerializeToString())
    tell("onnx", "onnx.onnx", "whole", PLAIN, numbers, PLAIN.iloc[:8].to_numpy(np.float32))
    return told


def plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and math.isnan(value) else value


# ---- what is asked

KINDS: dict[str, list[Any]] = {
    "fixed": [mace.fixed("age", "housing")],
    "increases": [mace.increases("education"), mace.decreases("debt")],
    "within": [mace.within("income", 20, 70)],
    "one_of": [mace.one_of("housing", ["own", "free"])],
    "at_most_change": [mace.at_most_change("income", 40)],
    "share": [mace.at_most_change("income", "75%"), "debt changes by at most 50%"],
    "steps": [mace.steps("income", 2.5)],
    "transitions": [mace.transitions("housing", {"rent": ["own"], "free": ["own", "rent"]})],
    "linear": [mace.linear("debt <= 0.4 * income")],
    "linear of numbers": [mace.linear({"debt": 1, "income": -0.5, "age": 0.25}, "<=", 10)],
    "budget": [mace.changes_at_most(2)],
    "budget of some": [mace.changes_at_most(1, of=["income", "debt", "age"])],
    "budget by weight": [mace.changes_at_most(3, weights={"income": 2.5, "debt": 1, "education": 1.5})],
    "implies": [mace.implies("education changes", "age >= old.age + 2")],
    "if else": ["if housing == 'own' then debt >= 5 else income >= old.income + 1"],
    "together": [mace.together("income", "debt")],
    "either": [mace.either("debt <= 10", "guarantor == True")],
    "or, and, not": [
        mace.rule("age increases") & ~mace.changes("guarantor"),
        mace.rule("income >= 50") | mace.fixed("debt"),
    ],
    "rule": ["abs(income - old.income) + debt <= max(60, old.debt + 10)"],
    "function": [mace.rule(lambda new, old: new.debt <= 0.75 * new.income + 5)],
    "near_data": [mace.near_data(FRAME.iloc[:40], k=2, radius=0.2)],
    "near_data, l0": [mace.near_data(FRAME.iloc[40:60], k=1, radius=0.7, distance="l0")],
    "typical": [mace.typical(encoded(IsolationForest(n_estimators=10, max_samples=32, random_state=0)).fit(FRAME))],
    "robust": [mace.robust({"income": 1.5})],
    "robust, several": [mace.robust({"income": 0.5, "age": 1}), mace.fixed("guarantor")],
    "nothing left": [mace.fixed("age", "income", "debt", "education"), "housing, guarantor stay"],
    "too little": [mace.fixed("age", "education", "housing"), mace.at_most_change("income", 0.125), "debt stays"],
}
DISTANCES: dict[str, Any] = {
    "l0": "l0",
    "l2": "l2",
    "linf": "linf",
    "mixture": Distance(l0=0.2, l1=0.5, linf=0.3),
    "weights": Distance(l1=1, weights={"age": 4, "income": 0.5}),
    "weights, l2": Distance(l2=1, weights={"debt": 2.5}),
}
Asked = tuple[str, str, int, dict[str, Any]]


def questions() -> Iterator[Asked]:
    """Yield model, title, number of the row among those that are not at the target, and the arguments of ``explain``."""
    for number, ((kind, constraints), model) in enumerate(
        itertools.product(KINDS.items(), ("tree", "forest", "logistic", "network"))
    ):
        target = mace.becomes("good") if number % 3 else None
        distance = ("l1", "linf", "l1", "l2", Distance(l0=0.3, l1=0.7))[number % 5]
        yield model, kind, number % 7, {"target": target, "distance": distance, "constraints": constraints}
    for model, (name, distance) in itertools.product(("codes", "boosting", "softmax", "deep"), DISTANCES.items()):
        yield model, name, len(name), {"target": "good", "distance": distance}
    for model in ("extra", "ada", "svc", "threshold", "searched", "columns", "bins", "oblique", "hard", "bagged"):
        yield model, "plain", 1, {"target": "good"}
        yield model, "fixed, linf", 2, {"target": "good", "distance": "linf", "constraints": [mace.fixed("age")]}
    yield from of_targets()
    yield from of_missing()
    yield from of_lanes()


def of_targets() -> Iterator[Asked]:
    yield "forest", "any_of", 1, {"target": mace.any_of(["good", "fair"])}
    yield "forest", "any_of with a margin", 2, {"target": mace.any_of(["good", "fair"], 0.2)}
    yield "forest", "becomes with a margin", 3, {"target": mace.becomes("good", 0.1)}
    yield "softmax", "any_of", 1, {"target": mace.any_of(["good", "fair"]), "distance": "l2"}
    for model in ("tree", "boosting", "logistic", "network", "calibrated", "soft", "bagged"):
        yield model, "at_least", 1, {"target": mace.at_least(0.75, "good")}
        yield model, "at_most", 2, {"target": mace.at_most(0.25, "bad"), "distance": "linf"}
    for model in ("regression", "linear", "ridge"):
        yield model, "between", 1, {"target": mace.between(60, 75)}
        yield model, "at_least", 2, {"target": mace.at_least(70.0, margin=1), "distance": "l2"}
        yield model, "at_most", 3, {"target": mace.at_most(20), "constraints": ["education stays"]}
    yield "logistic", "becomes with a margin", 2, {"target": mace.becomes("good", 0.3)}
    yield "usual", "an outlier", 1, {}
    yield "price", "between", 0, {"target": mace.between(300, 320)}
    yield "price", "at_least", 0, {"target": mace.at_least(400), "distance": "linf"}


def of_missing() -> Iterator[Asked]:
    for model in ("gaps", "imputed"):
        for number, constraints in enumerate(
            [
                [],
                ["income is not missing"],
                ["housing is not missing", "age stays"],
                ["if income is missing then age >= 30"],
            ]
        ):
            yield (
                model,
                f"missing {number}",
                2 * number,
                {"constraints": constraints, "distance": ("l1", "l0")[number % 2]},
            )
    yield "gaps", "missing, near data", 1, {"constraints": [mace.near_data(GAPPED.iloc[:20], 1, 0.25)]}
    for model in ("xgboost", "lightgbm", "catboost"):
        target = mace.at_least(0.6) if model == "lightgbm" else None
        yield model, "plain", 1, {"target": target}
        yield model, "linf, a rule", 2, {"target": target, "distance": "linf", "constraints": ["n increases"]}
    yield "onnx", "plain", 1, {}
    yield "onnx", "l2", 2, {"distance": "l2", "constraints": [mace.fixed("z")]}


def of_lanes() -> Iterator[Asked]:
    for model, solver in itertools.product(("tree", "logistic"), ("smt", "milp")):
        yield model, solver, 3, {"target": "good", "solver": solver}
    yield "tree", "cvc5", 3, {"target": "good", "solver": "cvc5"}
    for number, constraints in enumerate(
        [[], ["a <= b"], [mace.near_data([{"a": 6, "b": 5, "c": "x"}, {"a": 5, "b": 4, "c": "y"}], 1, 0.2)]]
    ):
        for solver in ("auto", "enumerate", "smt"):
            yield "points", f"{solver} {number}", number, {"constraints": constraints, "solver": solver}
    robust = [mace.robust({"a": 1, "b": 1})]
    yield "points", "robust", 0, {"constraints": robust, "solver": "enumerate"}
    yield "nonlinear", "smt", 0, {}
    yield "nonlinear", "smt, l0", 0, {"distance": "l0", "constraints": ["x <= 2 * y"]}
    for name, distance in DISTANCES.items():
        if "weights" not in name and name != "l2":
            yield "lender", name, 0, {"target": "yes", "distance": distance}
    yield (
        "lender",
        "function",
        0,
        {"target": "yes", "distance": "def d(new, old): return abs(new.income - old.income) / 100"},
    )
    yield "lender", "rule", 0, {"target": "yes", "constraints": ["debt <= 0.3 * income"]}
    for model in ("calibrated", "soft"):
        yield model, "curves", 4, {"target": "good"}
        yield model, "curves, a rule", 5, {"target": "good", "constraints": ["debt <= 0.5 * income"]}
    for model, title, diversity in (
        ("tree", "differ", mace.differ(features=2)),
        ("tree", "in sets", mace.differ(in_sets=True)),
        ("logistic", "by", mace.differ(features=1, by=0.05)),
        ("lender", "distance", mace.differ(distance=0.05)),
        ("points", "exhausted", mace.differ()),
    ):
        yield (
            model,
            title,
            0,
            {
                "count": 2,
                "diversity": diversity,
                **({"constraints": ["b stays", "c stays"], "count": 9} if model == "points" else {}),
            },
        )
    for model in ("gaps", "imputed", "softmax", "lender"):
        yield model, "robust", 3, {"constraints": [mace.robust({"income": 2.0})]}
    yield "softmax", "robust", 3, {"constraints": [mace.robust({"education": 1})]}
    yield (
        "lender",
        "near data",
        1,
        {"constraints": [mace.near_data(FRAME[FRAME.housing == "own"].iloc[:8, [1, 2, 4]], 2, 0.3)]},
    )
    yield "boosting", "typical, l0", 1, {"distance": "l0", "constraints": KINDS["typical"]}
    yield "deep", "typical, linf", 2, {"distance": "linf", "constraints": KINDS["typical"] + [mace.fixed("age")]}
    yield "forest", "out of time", 4, {"target": "good", "time_limit": 1e-5}
    yield "network", "digits", 4, {"digits": 1}


CAUSES = [
    {"debt": "0.25 * income"},
    {"income": "8 * (education == 'degree') + 0.5 * age"},
    {"income": "max(0.5 * age, 20)", "debt": "0.1 * income"},
    {"income": "0.5 * age + (12 if education == 'degree' else 0) - (5 if housing == 'rent' else 1)"},
    {
        "income": "0.5 * age + (12 if education == 'degree' else 0) - (4 if education == 'primary' else 0)"
        " + (2 if housing == 'own' else 0) - (5 if housing == 'rent' else 1)"
        " + (3 if education != 'primary' else 1) + (1 if housing != 'own' else 2)"
    },
]


def of_causes() -> Iterator[tuple[int, Asked]]:
    for number, model in itertools.product(range(5), ("tree", "logistic", "network")):
        yield number, (model, f"causes {number}", number + 1, {"target": "good"})
    yield (
        0,
        (
            "tree",
            "causes, infeasible",
            1,
            {"target": "good", "constraints": ["age, income, education, housing, guarantor stay", "debt stays"]},
        ),
    )
    yield 0, ("logistic", "causes, two", 2, {"target": "good", "count": 2, "constraints": ["income <= 90"]})
    yield 0, ("lender", "causes, milp", 0, {"target": "yes"})


# ---- writing


class Writer:
    """Asks the questions of the models as they come back from their files, and keeps what is to be written."""

    def __init__(self, folder: Path, told: dict[str, dict[str, Any]]) -> None:
        self.told = told
        self.models = {name: mace.load_model(folder / entry["file"]) for name, entry in told.items()} | FUNCTIONS
        self.certificates: list[dict[str, Any]] = []
        self.explanations: list[dict[str, Any]] = []
        self.explainers: dict[tuple[str, int | None], mace.Explainer] = {}

    def explainer(self, model: str, causes: int | None = None) -> mace.Explainer:
        space = SPACES[self.told[model]["space"] if model in self.told else model]
        key = (model, causes)
        if key not in self.explainers:
            equations = None if causes is None else mace.Causal(CAUSES[causes])
            self.explainers[key] = mace.Explainer(self.models[model], space, equations)
        return self.explainers[key]

    def rows(self, model: str, target: Any) -> list[dict[str, Any]]:
        explainer = self.explainer(model)
        if model == "lender":
            frame = FRAME[FRAME.housing != "free"][["income", "debt", "housing"]]
        elif model in FUNCTIONS:
            firsts = {
                "nonlinear": {"x": 1.5, "y": 2.0},
                "points": {"a": 2, "b": 1.0, "c": "y"},
                "price": {"rooms": 2, "area": 45.5},
            }
            return [firsts[model]] * 5
        else:
            frame = next(each for each in (GAPPED, PLAIN, WIDE, FRAME) if list(each) == list(explainer.space))
            frame = FRAME if explainer.space == PEOPLE else frame
        found = [
            {k: math.nan if plain(v) is None else plain(v) for k, v in row.items()}
            for row in frame.iloc[:60].to_dict("records")
        ]
        return [row for row in found if target is None or not explainer.reaches(row, target)]

    def ask(self, asked: Asked, causes: int | None = None) -> None:
        model, title, number, options = asked
        row = self.rows(model, options.get("target"))[number]
        made = self.explainer(model, causes).explain(row, **({"time_limit": 10.0} | options), certify=True)
        name = f"{model}: {title}"
        self.explanations.append({"name": name, "model": model, "explanation": made.to_dict()})
        typical = [each for each in options.get("constraints", ()) if "Typical" in type(each).__name__]
        for each in [*(answer.certificate for answer in made), made.certificate]:
            if each is not None:
                self.keep(name, model, each, ["usual"] if typical else [])

    def keep(self, name: str, model: str, certificate: mace.Certificate, forests: list[str]) -> None:
        text = certificate.to_json()
        verdict = mace.verify(
            mace.Certificate.from_json(text), self.models[model], forests=[self.models[each] for each in forests]
        )
        if verdict.outcome == "refuted":
            raise AssertionError((name, verdict))
        self.certificates.append(
            {
                "name": name,
                "model": model,
                "forests": forests,
                "outcome": verdict.outcome,
                "reason": verdict.reason,
                "text": text,
            }
        )


def by_prices(writer: Writer) -> None:
    """Let the tree lane go by prices at once, and prove by them, which it else does on large ensembles only."""
    kept = {name: getattr(search, name) for name in ("PATIENCE", "PLAIN_SHARE", "LEAST_PROOF")}
    search.PATIENCE, search.PLAIN_SHARE, search.LEAST_PROOF = 0, -1.0, 60.0
    for number, (model, distance) in enumerate(
        itertools.product(("priced", "boosting", "gaps"), ("l1", "l2", "mixture"))
    ):
        writer.ask((model, f"prices, {distance}", number, {"distance": DISTANCES.get(distance, distance)}))
    for name, value in kept.items():
        setattr(search, name, value)


def checkpoints(writer: Writer, folder: Path) -> dict[str, Any]:
    """Leave a whole checkpoint of each batch, and one that a kill left in the middle of a line; return their rows."""
    rows = {}
    for name, options in batches().items():
        rows[name] = writer.rows(name, None)[:6]
        path = folder / f"{name}.jsonl"
        made = writer.explainer(name).explain_many(rows[name], checkpoint=path, **options)
        writer.explanations += [
            {"name": f"{name}: row {number}", "model": name, "explanation": each.to_dict()}
            for number, each in enumerate(made)
        ]
    whole = (folder / "tree.jsonl").read_bytes()
    cut = whole.splitlines(keepends=True)
    (folder / "torn.jsonl").write_bytes(b"".join(cut[:4]) + cut[4][:50])
    return rows


def pack(folder: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, file.name)


def write(path: Path, data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(text.encode())
    path.write_bytes(buffer.getvalue())


def main(target: Path) -> None:
    warnings.simplefilter("ignore")
    assert mace.__version__ == "0.1.0", "these are the files of 0.1.0"
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        told = saved_models(Path(one))
        writer = Writer(Path(one), told)
        for asked in questions():
            writer.ask(asked)
        for number, asked in of_causes():
            writer.ask(asked, number)
        by_prices(writer)
        rows = checkpoints(writer, Path(two))
        pack(Path(one), target / "models.zip")
        pack(Path(two), target / "checkpoints.zip")
    packages = ("scikit-learn", "skops", "numpy", "pandas", "scipy", "xgboost-cpu", "lightgbm", "catboost", "onnx")
    about = {"models": told, "batches": rows, "versions": {name: version(name) for name in packages}}
    write(target / "about.json.gz", about)
    write(target / "certificates.json.gz", writer.certificates)
    write(target / "explanations.json.gz", writer.explanations)
    write(target / "spaces.json.gz", [{"name": k, "space": v.to_dict(), "shown": repr(v)} for k, v in SPACES.items()])
    lanes = Counter(json.loads(each["text"])["evidence"]["lane"] for each in writer.certificates)
    sys.stdout.write(f"{len(writer.certificates)} certificates: {dict(lanes)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

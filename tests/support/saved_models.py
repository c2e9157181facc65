"""A fitted model of every family and with every step that MACE reads, small, for tests of model files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn import (
    calibration,
    compose,
    decomposition,
    ensemble,
    feature_selection,
    frozen,
    impute,
    linear_model,
    model_selection,
    multiclass,
    neural_network,
    pipeline,
    preprocessing,
    random_projection,
    svm,
    tree,
)
from sklearn.base import clone, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_halving_search_cv  # noqa: F401

import mace
from mace.models.table import LINEAR_CLASSIFIERS, LINEAR_REGRESSORS

ROWS = 80
SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 90),
        "income": mace.real(0, 100, step=0.5),
        "debt": mace.real(-3, 3),
        "school": mace.ordinal(["low", "middle", "high"]),
        "home": mace.categorical(["rent", "own", "free"]),
        "paid": mace.categorical([0, 1]),
    }
)
NUMBERS = mace.FeatureSpace({name: mace.real(-4, 4) for name in "abcd"})

TREE = tree.DecisionTreeClassifier(max_depth=3, random_state=0)
FOREST = ensemble.RandomForestClassifier(3, max_depth=3, random_state=0)
LOGISTIC = linear_model.LogisticRegression()


@cache
def people() -> tuple[pd.DataFrame, Any]:
    """Return rows of the space with levels, and labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 91, ROWS),
            "income": rng.integers(0, 201, ROWS) / 2,
            "debt": rng.uniform(-3, 3, ROWS),
            "school": rng.choice(["low", "middle", "high"], ROWS),
            "home": rng.choice(["rent", "own", "free"], ROWS),
            "paid": rng.integers(0, 2, ROWS),
        }
    )
    return frame, np.where(frame["income"] + 20 * frame["debt"] + 10 * frame["paid"] > 55, "good", "bad")


@cache
def numbers() -> tuple[Any, Any, Any]:
    """Return rows of numbers, labels of three classes, and a number to predict."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-4, 4, (ROWS, 4))
    score = X[:, 0] + X[:, 1] * (X[:, 2] > 0)
    return X, np.digitize(score, [-1, 1]), score + 0.1 * rng.normal(size=ROWS)


def _named(kinds: tuple[str, ...]) -> Iterator[Any]:
    homes = (linear_model, svm)
    for kind in kinds:
        name = kind.partition(":")[2]
        if name == "LinearDiscriminantAnalysis":
            yield LinearDiscriminantAnalysis()
        else:
            yield next(getattr(home, name) for home in homes if hasattr(home, name))()


def _plain() -> dict[str, Any]:
    """Return models that are fitted on numbers."""
    hist = ensemble.HistGradientBoostingClassifier(max_iter=3, early_stopping=False)
    mlp = neural_network.MLPClassifier((4,), max_iter=30, random_state=0)
    models = [
        TREE,
        tree.DecisionTreeRegressor(max_depth=3),
        FOREST,
        ensemble.RandomForestRegressor(3, max_depth=3),
        ensemble.ExtraTreesClassifier(3, max_depth=3, n_jobs=2, class_weight="balanced"),
        ensemble.ExtraTreesRegressor(3, max_depth=3),
        ensemble.GradientBoostingClassifier(n_estimators=3),
        ensemble.GradientBoostingRegressor(n_estimators=3),
        hist,
        ensemble.HistGradientBoostingRegressor(max_iter=3),
        ensemble.IsolationForest(n_estimators=5, max_samples=32, random_state=0),
        ensemble.AdaBoostClassifier(n_estimators=3, random_state=0),
        *_named(LINEAR_CLASSIFIERS),
        *_named(LINEAR_REGRESSORS),
        mlp,
        neural_network.MLPRegressor(hidden_layer_sizes=(4,), max_iter=30),
        multiclass.OneVsRestClassifier(LOGISTIC),
        ensemble.VotingRegressor([("a", tree.DecisionTreeRegressor(max_depth=2)), ("b", linear_model.Ridge())]),
        ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=2), 3),
        ensemble.BaggingClassifier(TREE, 3),
        ensemble.VotingClassifier([("a", TREE), ("b", FOREST)], voting="soft"),
        ensemble.StackingClassifier([("a", TREE), ("b", FOREST)], cv=2),
        ensemble.StackingRegressor([("a", tree.DecisionTreeRegressor(max_depth=2)), ("b", linear_model.Ridge())], cv=2),
    ]
    found = {type(model).__name__: model for model in models}
    losses = ("hinge", "log_loss", "modified_huber", "squared_hinge", "perceptron", "squared_error", "huber")
    for loss in (*losses, "epsilon_insensitive", "squared_epsilon_insensitive"):
        found[f"SGDClassifier, {loss}"] = linear_model.SGDClassifier(loss=loss, early_stopping=loss == "hinge")
    for loss in ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"):
        found[f"SGDRegressor, {loss}"] = linear_model.SGDRegressor(loss=loss, average=loss == "huber")
    for loss in ("absolute_error", "huber", "quantile"):
        found[f"GradientBoostingRegressor, {loss}"] = ensemble.GradientBoostingRegressor(loss=loss, n_estimators=3)
    for loss in ("absolute_error", "quantile"):
        found[f"HistGradientBoostingRegressor, {loss}"] = ensemble.HistGradientBoostingRegressor(
            loss=loss, max_iter=3, quantile=0.5
        )
    found["HistGradientBoostingClassifier, early stopping"] = clone(hist).set_params(early_stopping=True)
    found["GradientBoosting, early stopping"] = ensemble.GradientBoostingClassifier(n_estimators=5, n_iter_no_change=2)
    found["forest, random state"] = clone(FOREST).set_params(random_state=np.random.RandomState(3))
    for solver in ("sgd", "lbfgs"):
        found[f"MLPClassifier, {solver}"] = clone(mlp).set_params(solver=solver)
    found["MLPClassifier, early stopping"] = clone(mlp).set_params(early_stopping=True)
    found["pruned tree"] = tree.DecisionTreeClassifier(ccp_alpha=0.01, class_weight={0: 1, 1: 2, 2: 1})
    found["multinomial regression, elastic"] = linear_model.LogisticRegression(
        C=0.5, l1_ratio=0.5, solver="saga", class_weight="balanced"
    )
    return found


def _binary() -> dict[str, Any]:
    """Return models that are fitted on numbers, with two classes."""
    exponential = ensemble.GradientBoostingClassifier(loss="exponential", n_estimators=3)
    calibrated = calibration.CalibratedClassifierCV
    grid = {"max_depth": [1, 2]}
    found: dict[str, Any] = {
        "exponential": exponential,
        "boosting from zero": ensemble.GradientBoostingClassifier(n_estimators=3, init="zero"),
        "hist": ensemble.HistGradientBoostingClassifier(max_iter=3),
        "isotonic": calibrated(FOREST, method="isotonic", cv=3),
        "sigmoid": calibrated(svm.LinearSVC(), cv=3, ensemble=False),
        "calibrated beforehand": calibrated(frozen.FrozenEstimator(clone(FOREST).fit(*_two())), method="sigmoid"),
        "frozen": frozen.FrozenEstimator(clone(TREE).fit(*_two())),
        "fixed threshold": model_selection.FixedThresholdClassifier(LOGISTIC, threshold=0.3, pos_label=1),
        "hard votes": ensemble.VotingClassifier([("a", TREE), ("b", LOGISTIC), ("c", svm.LinearSVC())]),
        "random search": model_selection.RandomizedSearchCV(TREE, grid, n_iter=2, cv=model_selection.KFold(2)),
        "halving": model_selection.HalvingGridSearchCV(TREE, grid, cv=2, factor=2),
        "halving at random": model_selection.HalvingRandomSearchCV(TREE, grid, cv=2, random_state=0),
        "several scores": model_selection.GridSearchCV(
            TREE, grid, scoring=["accuracy", "roc_auc"], refit="roc_auc", cv=2
        ),
        "logistic CV": linear_model.LogisticRegressionCV(cv=2, Cs=2),
        "ridge CV": linear_model.RidgeClassifierCV(alphas=(0.1, 1.0)),
        "ridge": linear_model.RidgeClassifier(solver="lsqr"),
    }
    scorings = ("accuracy", "balanced_accuracy", "f1", "precision", "recall", "roc_auc", "neg_log_loss", "neg_brier_score",
                "average_precision", "jaccard", "f1_macro", "matthews_corrcoef", "top_k_accuracy")  # fmt: skip
    for scoring in scorings:
        found[f"search, {scoring}"] = model_selection.GridSearchCV(TREE, grid, scoring=scoring, cv=2)
    for scoring in ("balanced_accuracy", "f1", "accuracy"):
        found[f"threshold, {scoring}"] = model_selection.TunedThresholdClassifierCV(LOGISTIC, scoring=scoring, cv=2)
    return found


def _regressions() -> dict[str, Any]:
    grid = {"max_depth": [1, 2]}
    cvs = (
        model_selection.KFold(2),
        model_selection.RepeatedKFold(n_splits=2, n_repeats=1),
        model_selection.ShuffleSplit(2),
        2,
    )
    scorings = ("r2", "neg_mean_squared_error", "neg_mean_absolute_error", "neg_root_mean_squared_error")
    return {
        f"search, {scoring}": model_selection.GridSearchCV(
            tree.DecisionTreeRegressor(random_state=0), grid, scoring=scoring, cv=cv
        )
        for scoring, cv in zip(scorings, cvs, strict=True)
    }


def _steps() -> dict[str, Any]:
    """Return steps over numbers, each put before a model."""
    chosen = feature_selection
    found: dict[str, Any] = {
        name: getattr(preprocessing, name)()
        for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer", "PowerTransformer")
    }
    found |= {
        "KBinsDiscretizer": preprocessing.KBinsDiscretizer(3),
        "KBinsDiscretizer, dense": preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        "KBinsDiscretizer, ordinal": preprocessing.KBinsDiscretizer(3, encode="ordinal", strategy="kmeans"),
        "SimpleImputer": impute.SimpleImputer(),
        "SimpleImputer, flags": impute.SimpleImputer(strategy="most_frequent", add_indicator=True),
        "MissingIndicator": pipeline.make_union(impute.MissingIndicator(features="all"), impute.SimpleImputer()),
        "QuantileTransformer": preprocessing.QuantileTransformer(n_quantiles=5),
        "QuantileTransformer, normal": preprocessing.QuantileTransformer(n_quantiles=5, output_distribution="normal"),
        "PolynomialFeatures": preprocessing.PolynomialFeatures(2),
        "PowerTransformer, plain": preprocessing.PowerTransformer(standardize=False),
        "VarianceThreshold": chosen.VarianceThreshold(),
        "SelectKBest": chosen.SelectKBest(chosen.f_classif, k=2),
        "SelectKBest, chi2": pipeline.make_pipeline(preprocessing.MinMaxScaler(), chosen.SelectKBest(chosen.chi2, k=2)),
        "SelectKBest, information": chosen.SelectKBest(chosen.mutual_info_classif, k=2),
        "SelectPercentile": chosen.SelectPercentile(percentile=60),
        "SelectFpr": chosen.SelectFpr(),
        "SelectFdr": chosen.SelectFdr(),
        "SelectFwe": chosen.SelectFwe(),
        "GenericUnivariateSelect": chosen.GenericUnivariateSelect(mode="k_best", param=2),
        "SelectFromModel": chosen.SelectFromModel(ensemble.ExtraTreesClassifier(3, random_state=0)),
        "RFE": chosen.RFE(LOGISTIC, n_features_to_select=2),
        "RFECV": chosen.RFECV(LOGISTIC, cv=2),
        "SequentialFeatureSelector": chosen.SequentialFeatureSelector(LOGISTIC, n_features_to_select=2, cv=2),
        "PCA": decomposition.PCA(2),
        "IncrementalPCA": decomposition.IncrementalPCA(2),
        "TruncatedSVD": decomposition.TruncatedSVD(2),
        "GaussianRandomProjection": random_projection.GaussianRandomProjection(2, random_state=0),
        "FeatureUnion": pipeline.make_union(preprocessing.StandardScaler(), preprocessing.MinMaxScaler()),
        "slices": compose.ColumnTransformer(
            [("a", preprocessing.StandardScaler(), slice(0, 2)), ("b", "passthrough", [2]), ("c", "drop", [3])]
        ),
        "remainder": compose.make_column_transformer((preprocessing.StandardScaler(), [0]), remainder="passthrough"),
        "mask": compose.make_column_transformer((preprocessing.StandardScaler(), [True, False, True, True])),
    }
    for function in FUNCTIONS:
        found[f"FunctionTransformer, {getattr(function, '__name__', function)}"] = pipeline.make_pipeline(
            preprocessing.MinMaxScaler((0.1, 0.9)), preprocessing.FunctionTransformer(function)
        )
    return found


FUNCTIONS: tuple[Callable[..., Any] | None, ...] = (
    None, np.log1p, np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.arctan, np.tanh, np.sinh, np.arcsinh,
    np.negative, np.positive, np.floor, np.ceil, np.rint, np.trunc, np.absolute, np.fabs, np.square, np.sign, np.reciprocal,
)  # fmt: skip


def _two() -> tuple[Any, Any]:
    X, _, score = numbers()
    return X, (score > 0).astype(int)


def _on_people() -> dict[str, Any]:
    """Return pipelines over numbers and levels."""
    select = compose.make_column_selector
    hot = preprocessing.OneHotEncoder
    code = preprocessing.OrdinalEncoder
    split = [
        ("numbers", preprocessing.StandardScaler(), select(dtype_include=np.number)),
        ("levels", hot(), select(dtype_exclude=np.number)),
    ]

    def levels(step: Any) -> Any:
        return pipeline.make_pipeline(
            compose.make_column_transformer((step, ["school", "home"]), remainder="passthrough"), FOREST
        )

    encoder = mace.Encoder(SPACE)
    return {
        "Encoder, forest": pipeline.make_pipeline(encoder, FOREST),
        "Encoder, logistic": pipeline.make_pipeline(encoder, LOGISTIC),
        "Encoder, inferred": pipeline.make_pipeline(mace.Encoder(categorical="codes", ordinal="codes"), TREE),
        "Encoder, search": model_selection.GridSearchCV(pipeline.make_pipeline(encoder, LOGISTIC), {"logisticregression__C": [1, 2]}, cv=2),
        "selectors": pipeline.make_pipeline(compose.ColumnTransformer(split), LOGISTIC),
        "frames out": pipeline.make_pipeline(
            compose.ColumnTransformer([split[0], ("levels", hot(sparse_output=False), select(pattern="school|home"))]), FOREST
        ).set_output(transform="pandas"),
        "one-hot, drop": levels(hot(drop="first", sparse_output=False)),
        "one-hot, rare": levels(hot(min_frequency=3, handle_unknown="infrequent_if_exist", sparse_output=False)),
        "one-hot, given": levels(hot(categories=[["low", "middle", "high"], ["rent", "own", "free"]], sparse_output=False)),
        "ordinal": levels(code(categories=[["low", "middle", "high"], ["rent", "own", "free"]])),
        "ordinal, unknown": levels(code(handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float32)),
        "target": levels(preprocessing.TargetEncoder(cv=model_selection.StratifiedKFold(3))),
        "imputed levels": levels(pipeline.make_pipeline(impute.SimpleImputer(strategy="most_frequent"), hot(sparse_output=False))),
        "constant": levels(pipeline.make_pipeline(impute.SimpleImputer(strategy="constant", fill_value="none"), code())),
    }  # fmt: skip


@cache
def unfitted() -> dict[str, tuple[Any, Any, Any]]:
    """Return each model with what it is fitted on: rows, and labels or numbers."""
    X, classes, score = numbers()
    frame, labels = people()
    category = frame.astype({"school": "category", "home": "category"})
    dated = frame[["age"]].assign(since=pd.to_datetime("2020-01-01") + pd.to_timedelta(frame["age"], unit="D"))
    days = (preprocessing.FunctionTransformer(mace.days), ["since"])
    hist = ensemble.HistGradientBoostingClassifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = _plain()
    return {
        **{name: (model, X, classes if is_classifier(model) else score) for name, model in plain.items()},
        **{f"binary: {name}": (model, *_two()) for name, model in _binary().items()},
        **{f"regression: {name}": (model, X, score) for name, model in _regressions().items()},
        **{f"step: {name}": (pipeline.make_pipeline(step, LOGISTIC), *_two()) for name, step in _steps().items()},
        **{f"people: {name}": (model, frame, labels) for name, model in _on_people().items()},
        "people: dates": (pipeline.make_pipeline(compose.make_column_transformer(days), LOGISTIC), dated, labels),
        "people: hist of categories": (hist(categorical_features="from_dtype", max_iter=3), category, labels),
        "people: hist of named": (hist(categorical_features=["school", "home"], max_iter=3), category, labels),
    }


@cache
def fitted(name: str) -> tuple[Any, Any]:
    """Return a fitted model, and rows to compare predictions on."""
    model, rows, labels = unfitted()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(rows, labels), rows

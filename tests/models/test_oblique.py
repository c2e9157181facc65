"""Trees behind a projection: splits of mixtures of features, proved by the general lane."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, UnsupportedModel, categorical, integer, real
from mace.forms import ObliqueTrees, Outcomes
from mace.language import run
from mace.models import read
from mace.testing import check_model

SPACE = FeatureSpace({"x": real(0, 4, step=0.25), "n": integer(0, 9), "cat": categorical(["a", "b", "c"])})
LOOSE = SPACE.replace(x=real(0, 4))

FOREST = RandomForestClassifier(6, max_depth=3, random_state=0)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)


def before() -> Any:
    return ColumnTransformer(
        [("numbers", StandardScaler(), ["x", "n"]), ("levels", OneHotEncoder(), ["cat"])], sparse_threshold=0
    )


def behind(projection: Any, model: Any) -> Any:
    return make_pipeline(before(), projection, model)


MODELS: dict[str, Any] = {
    "a tree": behind(PCA(3), TREE),
    "a forest": behind(TruncatedSVD(3, random_state=0), FOREST),
    "boosting, whitened": behind(PCA(2, whiten=True), GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0)),
    "a forest, with levels beside": make_pipeline(
        ColumnTransformer([("numbers", make_pipeline(StandardScaler(), PCA(1)), ["x", "n"]), ("levels", OneHotEncoder(), ["cat"])],
                          sparse_threshold=0),
        FOREST,
    ),
    "soft votes": VotingClassifier([("a", behind(PCA(2), TREE)), ("b", behind(PCA(3), FOREST))], voting="soft"),
}  # fmt: skip
BINARY = MODELS | {
    "a threshold": FixedThresholdClassifier(behind(PCA(2), TREE), threshold=0.3),
    "a calibration": CalibratedClassifierCV(behind(PCA(2), FOREST), ensemble=False, cv=2),
}


def fitted(model: Any, classes: int = 2, rows: int = 200) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(classes)
    frame = pd.DataFrame(
        {
            "x": rng.integers(0, 17, rows) / 4,
            "n": rng.integers(0, 10, rows),
            "cat": rng.choice(["a", "b", "c"], rows),
        }
    )
    score = frame["x"] - frame["n"] / 3 + (frame["cat"] == "b") + rng.normal(0, 0.4, rows)
    labels = np.array(["no", "yes", "zero"])[
        np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(frame, labels), frame


@pytest.mark.parametrize(
    ("name", "classes"), [*((name, 2) for name in BINARY), *((name, 3) for name in MODELS)], ids=lambda v: str(v)
)
def test_trees_behind_a_projection_are_explained_as_brute_force_does(name: str, classes: int) -> None:
    model, frame = fitted(BINARY[name], classes)
    explainer = mace.Explainer(model, SPACE)
    assert isinstance(read(model, SPACE).form, ObliqueTrees)
    for row in (0, 1):
        for distance in ("l1", "linf"):
            found, truth = (
                explainer.explain(frame.iloc[row], distance=distance, solver=s) for s in ("auto", "enumerate")
            )
            assert found.status == truth.status, found.reason
            assert found.solver.startswith("milp")
            if truth:
                assert found[0].distance == truth[0].distance


@pytest.mark.parametrize("name", MODELS)
def test_beyond_its_band_the_form_decides_as_the_model(name: str) -> None:
    model, _ = fitted(MODELS[name], 3)
    reading = read(model, LOOSE)
    form = reading.form
    assert isinstance(form, ObliqueTrees)
    rng = np.random.default_rng(1)
    points = [(float(rng.uniform(0, 4)), int(rng.integers(10)), int(rng.integers(3))) for _ in range(150)]
    program = form.program()
    for point, code in zip(points, reading.ask(points), strict=True):
        box = tuple((Fraction(value), Fraction(value)) for value in point)
        assert form.is_beyond_rounding(point, Outcomes(frozenset([code])), box)
        assert form.predicted(point) == code
        assert run(program, dict(zip(LOOSE, map(Fraction, point), strict=True))) == code
        assert form.inputs.errors(box).max() < 1e-12
    assert check_model(model, LOOSE, count=40).decided > 50


def test_bounds_on_probabilities_and_predictions_are_met() -> None:
    model, frame = fitted(MODELS["a forest"])
    explainer = mace.Explainer(model, SPACE)
    row = frame.iloc[int(np.argmin(model.predict_proba(frame)[:, 1]))]
    for target in (mace.at_least(0.8, model.classes_[1]), mace.between(0.4, 0.6, model.classes_[1])):
        found, truth = (explainer.explain(row, target, solver=solver) for solver in ("auto", "enumerate"))
        assert found.status == truth.status
        assert not truth or found[0].distance == truth[0].distance
    frame["y"] = frame["x"] * 2 - frame["n"]
    regressor = behind(PCA(2), RandomForestRegressor(4, max_depth=3, random_state=0)).fit(
        frame[["x", "n", "cat"]], frame["y"]
    )
    explainer = mace.Explainer(regressor, SPACE)
    goal = float(np.quantile(regressor.predict(frame), 0.8))
    row = frame.iloc[int(np.argmin(regressor.predict(frame)))][["x", "n", "cat"]]
    found, truth = (explainer.explain(row, mace.at_least(goal), solver=solver) for solver in ("auto", "enumerate"))
    assert found[0].distance == truth[0].distance


@pytest.mark.parametrize("distance", ["l0", "l1", "linf"])
def test_a_forest_of_ten_trees_over_six_real_features_is_proved_and_no_sampled_row_is_nearer(distance: str) -> None:
    bunch = load_breast_cancer(as_frame=True)
    X = bunch.data.iloc[:, :6]
    model = make_pipeline(StandardScaler(), PCA(4), RandomForestClassifier(10, max_depth=3, random_state=0)).fit(
        X, bunch.target
    )
    space = FeatureSpace.from_frame(X)
    found = mace.Explainer(model, space).explain(X.iloc[0], distance=distance)
    assert found.status == "optimal", found.reason
    best = found[0]
    metric = mace.Distance(**{distance: 1.0}).from_factual(space, space.point(X.iloc[0]))
    rng = np.random.default_rng(0)
    own, far = X.iloc[0].to_numpy(), np.array(list(best.values.values()))
    spread = X.std().to_numpy()
    rows = own + (far - own) * rng.uniform(0, 1.1, (4000, 1)) + rng.normal(0, 1, (4000, 6)) * spread * 0.05
    rows = np.where(rng.random((4000, 6)) < 0.4, own, np.clip(rows, X.min().to_numpy(), X.max().to_numpy()))
    near = [row for row in rows.tolist() if metric.measure(tuple(row)) < Fraction(best.lower)]
    assert len(near) > 50
    assert (model.predict(pd.DataFrame(near, columns=X.columns)) != best.prediction).all()


def test_its_certificate_is_checked_by_a_solver() -> None:
    model, frame = fitted(MODELS["a tree"])
    answer = mace.Explainer(model, SPACE).explain(frame.iloc[0], certify=True)[0]
    assert mace.verify(answer.certificate, model).valid


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            VotingClassifier([("a", behind(PCA(2), TREE)), ("b", make_pipeline(before(), LogisticRegression()))], voting="soft"),
            r"a vote or mean of other models with trees behind a projection",
        ),
        (
            make_pipeline(
                ColumnTransformer([("curve", FunctionTransformer(np.log1p), ["x"]), ("rest", OneHotEncoder(), ["cat"])],
                                  sparse_threshold=0),
                PCA(2), TREE,
            ),
            r"'pca', PCA before trees: only affine steps, levels and whole numbers can be mixed.*not piecewise linear",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_mixed_is_refused_with_the_way_out(model: Any, message: str) -> None:
    made, _ = fitted(model)
    with pytest.raises(UnsupportedModel, match=message):
        read(made, LOOSE)

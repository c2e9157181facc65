"""The conformance kit tells a good reading from a bad one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

import mace
from mace import FeatureSpace, InvalidOption, integer, real
from mace.testing import check_model

SPACE = FeatureSpace({"x": real(0, 4), "n": integer(0, 9), "z": real(-2, 2)})
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.uniform(0, 4, 300), RNG.integers(0, 10, 300), RNG.uniform(-2, 2, 300)]).astype(float)
Y = (X[:, 0] - X[:, 1] / 3 + X[:, 2] > 0.3).astype(int)

MODELS: dict[str, Any] = {
    "forest": make_pipeline(PowerTransformer(), RandomForestClassifier(5, random_state=0)),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "network": MLPClassifier((4,), random_state=0, max_iter=400),
    "ridge": Ridge(),
    "trees": ExtraTreesRegressor(4, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_good_reading_passes(name: str) -> None:
    model = MODELS[name].fit(X, Y)
    found = check_model(model, SPACE, X[:10], count=90)
    assert found.rows >= 10 + 90 + 30
    assert found.decided > 0.5 * found.rows
    assert found.thresholds > 10 or name == "ridge"


@pytest.mark.parametrize("name", ["forest", "logistic", "trees"])
def test_a_wrong_reading_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name].fit(X, Y)
    reading = mace.models.read(model, SPACE)
    form: Any = reading.form
    changed = {"biases": (form.biases[0] + 1e-9,)} if name == "logistic" else {"edge": np.nextafter(form.edge, np.inf)}
    wrong = replace(form, **changed)
    monkeypatch.setattr("mace.testing.read", lambda *_: replace(reading, form=wrong))
    with pytest.raises(AssertionError, match="the form"):
        check_model(model, SPACE)


def test_a_bad_count_is_refused() -> None:
    with pytest.raises(InvalidOption, match="count=0"):
        check_model(Ridge().fit(X, Y), SPACE, count=0)

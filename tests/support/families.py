"""Model families that the tests of dtypes fit on frames of floats."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import mace


def _forest() -> RandomForestClassifier:
    return RandomForestClassifier(5, max_depth=4, random_state=0)


def _network() -> MLPClassifier:
    return MLPClassifier((5,), max_iter=150, random_state=0)


def _bins(encode: str) -> KBinsDiscretizer:
    return KBinsDiscretizer(6, encode=encode, subsample=None, quantile_method="averaged_inverted_cdf")


FAMILIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "forest": lambda frame: _forest(),
    "boosting": lambda frame: GradientBoostingClassifier(n_estimators=6, random_state=0),
    "histogram boosting": lambda frame: HistGradientBoostingClassifier(max_iter=8),
    "LightGBM": lambda frame: lightgbm.LGBMClassifier(
        n_estimators=8, num_leaves=7, min_child_samples=5, verbose=-1, n_jobs=1
    ),
    "XGBoost": lambda frame: xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1),
    "CatBoost": lambda frame: catboost.CatBoostClassifier(
        iterations=8, depth=3, verbose=0, thread_count=1, allow_writing_files=False
    ),
    "scaler, forest": lambda frame: make_pipeline(StandardScaler(), _forest()),
    "bins, forest": lambda frame: make_pipeline(_bins("ordinal"), _forest()),
    "exponential, forest": lambda frame: make_pipeline(FunctionTransformer(np.exp), _forest()),
    "powers, forest": lambda frame: make_pipeline(PowerTransformer(), _forest()),
    "normal quantiles, forest": lambda frame: make_pipeline(
        QuantileTransformer(n_quantiles=20, output_distribution="normal"), _forest()
    ),
    "logistic regression": lambda frame: LogisticRegression(C=10),
    "scaler, logistic regression": lambda frame: make_pipeline(StandardScaler(), LogisticRegression()),
    "clipped scaler, logistic regression": lambda frame: make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    "bins, logistic regression": lambda frame: make_pipeline(_bins("onehot-dense"), LogisticRegression()),
    "components, logistic regression": lambda frame: make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
    "scaler, pipeline of scaler and logistic regression": lambda frame: make_pipeline(
        StandardScaler(), make_pipeline(MinMaxScaler(), LogisticRegression())
    ),
    "scaler, network": lambda frame: make_pipeline(StandardScaler(), _network()),
    "encoder, scaler, network": lambda frame: make_pipeline(
        mace.Encoder(mace.FeatureSpace.from_frame(frame)), StandardScaler(), _network()
    ),
}
"""Makes a model for a frame."""

FITTED_IN_FLOAT16 = (
    *(name for name in FAMILIES if name.endswith("forest") or "oost" in name or "LightGBM" in name),
    "logistic regression",
    "bins, logistic regression",
    "encoder, scaler, network",
)
"""Those that are read on float16 frames: the others compute in float16, and are refused by name."""


def fitted(family: str, frame: pd.DataFrame, labels: NDArray[Any]) -> Any:
    """Return a fitted model; libraries warn of short training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FAMILIES[family](frame).fit(frame, labels)


def frame_of_floats(dtype: str) -> pd.DataFrame:
    """Return three columns of a float dtype."""
    return pd.DataFrame(np.random.default_rng(1).normal(1.5, 0.8, (160, 3)), columns=list("abc")).astype(dtype)


def labels_of(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return labels that depend on all columns, as fractions of their ranges."""
    wide = frame.astype(np.float64)
    shares = (wide - wide.min()) / (wide.max() - wide.min())
    last = shares.iloc[:, -1]
    return (shares.iloc[:, 0] * 1.3 + last**2 + 0.2 * np.sin(9 * shares.iloc[:, 0]) > 0.9).to_numpy().astype(np.int64)

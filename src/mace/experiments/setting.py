"""The paper's set-up: a data set, its balanced split, a model fitted on it, and the held-out rows that it refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from mace.baselines import Baseline
from mace.datasets import Dataset, load
from mace.errors import InvalidOption, did_you_mean
from mace.exact import Ints
from mace.explainer import Explainer

SEED = 0
DATASETS = ("adult", "credit", "compas")
NORMS_OF_THE_PAPER = ("l0", "l1", "linf")
SAMPLE_MULTIPLE = 250
"""Each class is sampled down to a multiple of this."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of model of the paper.

    Attributes
    ----------
    kind : str
        ``"tree"``, ``"forest"``, ``"lr"`` or ``"mlp"``, as methods declare what they take.
    make : callable
        Gives an unfitted estimator.
    is_coded : bool
        Whether it is trained on one column a feature, rather than on one-hot and thermometer columns.
    """

    kind: str
    make: Callable[[], Any]
    is_coded: bool


def _tree() -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(random_state=SEED)


def _forest(trees: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, random_state=SEED)


def _logistic() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(solver="liblinear", random_state=SEED)


def _network(*widths: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(widths, random_state=SEED)


FAMILIES = {
    "tree": Family("tree", _tree, is_coded=True),
    "forest": Family("forest", lambda: _forest(10), is_coded=True),
    "forest100": Family("forest", lambda: _forest(100), is_coded=True),
    "lr": Family("lr", _logistic, is_coded=False),
    "mlp": Family("mlp", lambda: _network(10, 10), is_coded=False),
    "mlp100": Family("mlp", lambda: _network(100), is_coded=False),
    "mlp100x100": Family("mlp", lambda: _network(100, 100), is_coded=False),
}
"""Models by name. ``forest`` has the 10 trees, and ``lr`` the solver, that were scikit-learn's defaults when the paper was written."""

PAPER_MODELS = ("tree", "forest", "lr", "mlp")


@dataclass(frozen=True, eq=False)
class Setting:
    """A fitted model with what it is explained by; explainers and baselines are made on first use and kept.

    ``warm`` holds what has been asked once without looking at the clock.
    """

    dataset: str
    model_name: str
    data: Dataset
    model: Any
    train: Ints
    test: Ints
    warm: set[object] = field(default_factory=set)
    _baselines: dict[str, Baseline] = field(default_factory=dict)

    @cached_property
    def factuals(self) -> Ints:
        """The held-out rows that the model predicts negative, by their number in the data set."""
        refused: Ints = self.test[self.model.predict(self.data.frame.iloc[self.test]) == 0]
        return refused

    @cached_property
    def explainer(self) -> Explainer:
        """The explainer of the model."""
        return Explainer(self.model, self.data.space)

    @cached_property
    def train_frame(self) -> pd.DataFrame:
        """The rows that the model was fitted on."""
        return self.data.frame.iloc[self.train]

    def baseline(self, name: str) -> Baseline:
        """Return a baseline over the training rows."""
        if name not in self._baselines:
            self._baselines[name] = Baseline(name, self.model, self.data.space, self.train_frame)
        return self._baselines[name]

    def accuracy(self, rows: Ints) -> float:
        """Return the share of rows that the model predicts right."""
        return float(self.model.score(self.data.frame.iloc[rows], self.data.labels.iloc[rows]))

    @cached_property
    def about(self) -> dict[str, Any]:
        """What the results folder keeps of the setting."""
        return {
            "dataset": self.dataset,
            "model": self.model_name,
            "factuals": len(self.factuals),
            "train_accuracy": self.accuracy(self.train),
            "test_accuracy": self.accuracy(self.test),
        }


def balanced_split(labels: pd.Series) -> tuple[Ints, Ints]:
    """Return the paper's split: both classes sampled down to the same multiple of 250, then 70 % train and 30 % test."""
    rng = np.random.default_rng(SEED)
    by_class = [np.flatnonzero(labels.to_numpy() == label) for label in (0, 1)]
    size = min(map(len, by_class)) // SAMPLE_MULTIPLE * SAMPLE_MULTIPLE
    chosen = np.concatenate([rng.choice(rows, size, replace=False) for rows in by_class])
    rng.shuffle(chosen)
    cut = int(0.7 * len(chosen))
    return chosen[:cut], chosen[cut:]


@lru_cache(maxsize=12)
def setting_of(dataset: str, model_name: str) -> Setting:
    """Return a setting, fitted: the same one for the same names, every time; those of the paper's grid are kept."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline

    from mace.space.encoder import Encoder

    family = family_of(model_name)
    data = load(dataset)
    train, test = balanced_split(data.labels)
    encoder = Encoder(data.space, categorical="codes", ordinal="codes") if family.is_coded else Encoder(data.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # default parameters, as in the paper
        model = make_pipeline(encoder, family.make()).fit(data.frame.iloc[train], data.labels.iloc[train])
    return Setting(dataset, model_name, data, model, train, test)


def family_of(model_name: str) -> Family:
    """Return a kind of model by name."""
    if model_name not in FAMILIES:
        raise InvalidOption(
            f"{model_name!r} is not a model of the experiments. Known: {', '.join(FAMILIES)}.{did_you_mean(model_name, FAMILIES)}"
        )
    return FAMILIES[model_name]

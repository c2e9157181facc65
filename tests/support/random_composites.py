"""Random votes, means, calibrations and projections over random spaces, with a question about each."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from random_problems import Case
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.answer.question import Question

ROWS = 120

GAP = "a gap is left"
"""How :func:`against_samples` begins where nothing is wrong but that rounding leaves the answer undecided."""


def random_composite(seed: int, *, finite: bool = True) -> Case | None:
    """Return a fitted model and a question about it; ``None`` where the row is already where the question asks."""
    rng = np.random.default_rng(seed)
    space = _space(rng, finite)
    frame = pd.DataFrame([_row(space, rng) for _ in range(ROWS)])
    columns = np.asarray(mace.Encoder(space).fit_transform(frame))
    score = columns @ rng.normal(size=columns.shape[1]) + rng.normal(0, 0.5, ROWS) + 0.5 * np.abs(columns[:, 0])
    classes = int(rng.choice([2, 2, 2, 3]))
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    family = str(rng.choice(list(_MODELS) if classes == 2 else ["hard votes", "projection"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(mace.Encoder(space), _MODELS[family](rng, columns.shape[1])).fit(frame, labels)
    row = _row(space, rng)
    question = _question(rng, space, has_chances=family in ("soft votes", "soft votes with trees", "calibrations"))
    try:
        asked = mace.Explainer(model, space).explain(row, **question, time_limit=1e-9)
    except mace.InvalidTarget:
        return None
    if asked.status == "reached":
        return None
    return Case(family, model, space, row, question)


def against_brute_force(case: Case) -> str | None:
    """Return what is wrong with the answer on a finite space; ``None`` where nothing is."""
    explainer = mace.Explainer(case.model, case.space)
    found = explainer.explain(case.row, **case.question, time_limit=60)
    truth = explainer.explain(case.row, **case.question, solver="enumerate")
    if found.status != truth.status:
        return f"{found.status} ({found.reason}), brute force says {truth.status}"
    if truth and found[0].distance != truth[0].distance:
        return f"{found[0].distance}, brute force says {truth[0].distance}"
    return None


def against_samples(case: Case, rng: np.random.Generator, count: int = 2000) -> str | None:
    """Return what is wrong with the answer on a space with real features, as far as rows nearer than ``lower`` show it."""
    explainer = mace.Explainer(case.model, case.space)
    found = explainer.explain(case.row, **case.question, time_limit=60)
    problem, _ = explainer._problem(case.row, Question(case.space, **case.question))
    own = problem.factual
    far = own if not found else case.space.point(found[0].values)
    rows = [_between(case.space, own, far, rng) for _ in range(count)]
    near = [
        row
        for row in rows
        if problem.is_plausible(row) and (found.status == "infeasible" or problem.distance(row) < Fraction(found.lower))
    ]
    for row, outcome in zip(near, problem.ask(near) if near else [], strict=True):
        if problem.goal.accepts(outcome):
            return f"{case.space.values_of(row)} is nearer than {found.lower} ({found.status})"
    if found.status == "feasible" and "time limit" not in found.reason:
        return f"{GAP}: {found.reason}"
    return None


def _between(space: mace.FeatureSpace, own: Any, far: Any, rng: np.random.Generator) -> tuple[Any, ...]:
    share = rng.uniform(0, 1.05)
    row = []
    for feature, a, b in zip(space.values(), own, far, strict=True):
        if rng.random() < 0.3:
            row.append(a)
        elif hasattr(feature, "levels"):
            row.append(int(rng.choice([a, b, rng.integers(len(feature.levels))], p=[0.4, 0.4, 0.2])))
        elif feature.size is None:
            moved = a + (b - a) * share + rng.normal() * (feature.high - feature.low) * rng.choice([0.0, 0.01, 0.1])
            row.append(float(min(max(moved, feature.low), feature.high)))
        else:
            row.append(feature.value_at(int(rng.integers(feature.size))) if rng.random() < 0.3 else b)
    return tuple(row)


# ---- spaces and rows


def _space(rng: np.random.Generator, finite: bool) -> mace.FeatureSpace:
    def number() -> Any:
        return mace.real(-2, 2, step=float(rng.choice([0.25, 0.5, 1]))) if finite else mace.real(-2, 2)

    kinds = (
        number,
        lambda: mace.integer(0, int(rng.integers(1, 7))),
        lambda: mace.categorical(list("abcd")[: int(rng.integers(2, 5))]),
        lambda: mace.ordinal(["p", "q", "r"]),
    )
    features = {f"f{j}": kinds[rng.integers(4)]() for j in range(int(rng.integers(2, 5)))}
    return mace.FeatureSpace(features if finite else {"real": number(), **features})


def _row(space: mace.FeatureSpace, rng: np.random.Generator) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, feature in space.items():
        levels = getattr(feature, "levels", None)
        if levels is not None:
            row[name] = levels[rng.integers(len(levels))]
        elif feature.size is None:
            row[name] = float(rng.uniform(feature.low, feature.high))  # type: ignore[union-attr]
        else:
            row[name] = feature.value_at(int(rng.integers(feature.size)))  # type: ignore[union-attr]
    return row


def _question(rng: np.random.Generator, space: mace.FeatureSpace, *, has_chances: bool) -> dict[str, Any]:
    question: dict[str, Any] = {"distance": str(rng.choice(["l0", "l1", "linf"]))}
    if rng.random() < 0.3:
        question["constraints"] = [mace.fixed(next(iter(space)))]
    if has_chances and rng.random() < 0.4:
        chance = float(rng.uniform(0.2, 0.9))
        targets = (mace.at_least(chance), mace.at_most(chance), mace.between(0.45, 0.6))
        question["target"] = targets[rng.integers(3)]
    return question


# ---- models


def _linear(rng: np.random.Generator) -> Any:
    return (LogisticRegression(C=float(10 ** rng.uniform(-2, 2))), SGDClassifier(loss="log_loss", random_state=0))[
        rng.integers(2)
    ]


def _tree(rng: np.random.Generator) -> Any:
    seed = int(rng.integers(9))
    return (
        DecisionTreeClassifier(max_depth=3, random_state=seed),
        RandomForestClassifier(int(rng.integers(2, 5)), max_depth=3, random_state=seed),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
    )[rng.integers(3)]


def _votes(rng: np.random.Generator, models: list[Any], voting: str) -> Any:
    weights = (None, list(map(float, rng.integers(1, 4, len(models)))), list(rng.uniform(0.1, 2, len(models))))
    members = [(str(k), model) for k, model in enumerate(models)]
    return VotingClassifier(members, voting=voting, weights=weights[rng.integers(3)])


def _soft(rng: np.random.Generator, width: int) -> Any:
    return _votes(rng, [_linear(rng) for _ in range(rng.integers(2, 4))], "soft")


def _soft_with_trees(rng: np.random.Generator, width: int) -> Any:
    return _votes(rng, [_linear(rng), _tree(rng)], "soft")


def _hard(rng: np.random.Generator, width: int) -> Any:
    kinds = (_linear, _tree, lambda rng: LinearSVC())
    return _votes(rng, [kinds[rng.integers(3)](rng) for _ in range(rng.integers(2, 5))], "hard")


def _calibrations(rng: np.random.Generator, width: int) -> Any:
    models = (LinearSVC(), _linear(rng), DecisionTreeClassifier(max_depth=3, random_state=0))
    method = str(rng.choice(["sigmoid", "isotonic"]))
    return CalibratedClassifierCV(models[rng.integers(3)], method=method, cv=int(rng.integers(2, 4)))


def _bagging(rng: np.random.Generator, width: int) -> Any:
    return BaggingClassifier((_linear(rng), LinearSVC())[rng.integers(2)], int(rng.integers(2, 5)), random_state=0)


def _projection(rng: np.random.Generator, width: int) -> Any:
    steps = [StandardScaler()] if rng.random() < 0.5 else []
    return make_pipeline(*steps, PCA(min(int(rng.integers(1, 4)), width)), _tree(rng))


_MODELS = {
    "soft votes": _soft,
    "soft votes with trees": _soft_with_trees,
    "hard votes": _hard,
    "calibrations": _calibrations,
    "bagging": _bagging,
    "projection": _projection,
}

"""Random sets of models on finite spaces, compared with asking every model about every row."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import random_problems
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.audits import audit
from mace.distances import as_distance, distance_up
from mace.distances.distance import point_values
from mace.exact import float_up
from mace.space.features import grid_values
from mace.targets import Between

Make = Callable[[int], Any]

TREES: dict[str, Make] = {
    "tree": lambda seed: DecisionTreeClassifier(max_depth=1 + seed % 4, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(1 + seed % 7, max_depth=3, random_state=seed),
    "ties": lambda seed: RandomForestClassifier(6, min_samples_leaf=3, max_depth=2, random_state=seed),
    "boosting": lambda seed: GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
    "histogram": lambda seed: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=seed),
}
NETWORKS: dict[str, Make] = {
    "logistic": lambda seed: LogisticRegression(random_state=seed),
    "svc": lambda seed: LinearSVC(random_state=seed),
    "mlp": lambda seed: MLPClassifier((1 + seed % 4,), max_iter=100, learning_rate_init=0.05, random_state=seed),
    "deep": lambda seed: MLPClassifier((2, 2), max_iter=100, learning_rate_init=0.05, random_state=seed),
}
OTHERS: dict[str, Make] = {
    "votes": lambda seed: VotingClassifier(
        [("tree", TREES["tree"](seed)), ("line", NETWORKS["logistic"](seed)), ("forest", TREES["forest"](seed))]
    )
}
REGRESSORS: dict[str, Make] = {
    "forest of numbers": lambda seed: RandomForestRegressor(1 + seed % 5, max_depth=3, random_state=seed),
    "line of numbers": lambda seed: LinearRegression(),
    "network of numbers": lambda seed: MLPRegressor(
        hidden_layer_sizes=(2,), max_iter=100, learning_rate_init=0.05, random_state=seed
    ),
}
KINDS = {
    "trees": TREES,
    "networks": NETWORKS,
    "mixed": TREES | NETWORKS,
    "voting": TREES | OTHERS,
    "numbers": REGRESSORS,
}


@dataclass(frozen=True)
class SetCase:
    """Models, how many must agree, a row, and a question about it."""

    kind: str
    models: list[Any]
    at_least: int
    space: mace.FeatureSpace
    row: dict[str, Any]
    question: dict[str, Any]


STEPS: tuple[Callable[[], Any], ...] = (
    StandardScaler,
    MinMaxScaler,
    lambda: KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    lambda: PolynomialFeatures(1, include_bias=False),
)


def random_set(seed: int, *, prepared: bool = False) -> SetCase:
    """Return a random problem about a set of models; the same seed gives the same problem.

    Where ``prepared``, each model stands behind a step of its own.
    """
    rng = np.random.default_rng(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    space = random_problems._space(rng, finite=True, functional=False)
    frame = space.frame_of([space.point(random_problems._row(rng, space)) for _ in range(90)])
    columns = mace.Encoder(space).fit_transform(frame)
    score = columns @ rng.normal(size=columns.shape[1]) + np.sin(columns).sum(axis=1)
    classes = int(rng.choice([2, 2, 3]))
    labels: Any = score
    if kind != "numbers":
        codes = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
        codes[:classes] = np.arange(classes)
        labels = np.array(["maybe", "no", "yes"] if rng.random() < 0.5 else [0, 1, 2])[codes]
    names = rng.choice(list(KINDS[kind]), int(rng.integers(2, 5)))
    steps = [STEPS[int(rng.integers(len(STEPS)))]() for _ in names] if prepared else [None] * len(names)
    models = [
        _fitted(rng, KINDS[kind][name], space, frame, labels, step, is_whole=not k)
        for k, (name, step) in enumerate(zip(names, steps, strict=True))
    ]
    known = None if kind == "numbers" else models[0].classes_.tolist()
    question = {
        "target": _target(rng, models, known, score),
        "distance": random_problems._distance(rng, str(rng.choice(["l0", "l1", "linf", "mixed", "weighted"])), space),
        "constraints": random_problems._constraints(rng, space),
    }
    row = random_problems._row(rng, space)
    return SetCase(kind, models, int(rng.integers(1, len(models) + 1)), space, row, question)


def _fitted(
    rng: np.random.Generator,
    make: Make,
    space: mace.FeatureSpace,
    frame: Any,
    labels: Any,
    step: Any = None,
    *,
    is_whole: bool,
) -> Any:
    """Return a model fitted on a bootstrap, behind an encoder and step of its own; unless ``is_whole``, sometimes on fewer features."""
    kept = list(space)
    if len(kept) > 1 and not is_whole and rng.random() < 0.2:
        kept.remove(str(rng.choice(kept)))
    encoder = mace.Encoder(
        space.without(*(name for name in space if name not in kept)) if len(kept) < len(space) else space,
        categorical=str(rng.choice(["onehot", "codes"])),
        ordinal=str(rng.choice(["thermometer", "codes"])),
    )
    while True:
        drawn = rng.integers(len(frame), size=len(frame))
        if len(np.unique(labels[drawn])) == len(np.unique(labels)) or labels.dtype.kind == "f":
            break
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        model = make_pipeline(encoder, *([] if step is None else [step]), make(int(rng.integers(2**20))))
        return model.fit(frame[kept].iloc[drawn], labels[drawn])


def _target(rng: np.random.Generator, models: list[Any], known: list[Any] | None, score: Any) -> Any:
    if known is None:
        low, high = np.quantile(score, [0.4, 0.8]).round(2).tolist()
        return [mace.at_least(high), mace.at_most(low), mace.between(low, high)][int(rng.integers(3))]
    draw = rng.random()
    if draw < 0.3:
        return None
    label = known[int(rng.integers(len(known)))]
    if draw < 0.6 or len(known) > 2 or not all(_has_chances(model) for model in models):
        return label
    low = round(float(rng.uniform(0.2, 0.6)), 2)
    return [mace.at_least(low, label), mace.at_most(low, label), mace.between(low, low + 0.3, label)][
        int(rng.integers(3))
    ]


def _has_chances(model: Any) -> bool:
    return hasattr(model, "predict_proba")


# ---- brute force


def holders(case: SetCase, frame: Any) -> Any:
    """Return which models have each row of a frame in the target, rows x models; asked are the models alone."""
    target = case.question["target"]
    said = np.column_stack([model.predict(frame[list(model[0].space_)]) for model in case.models])
    if isinstance(target, Between):
        low = -np.inf if target.low is None else target.low
        high = np.inf if target.high is None else target.high
        if target.label is not None:
            said = np.column_stack(
                [
                    model.predict_proba(frame[list(model[0].space_)])[:, list(model.classes_).index(target.label)]
                    for model in case.models
                ]
            )
        return (said >= low) & (said <= high)
    if target is not None:
        return said == target
    own = np.array(
        [model.predict(_frame(case, [case.space.point(case.row)])[list(model[0].space_)])[0] for model in case.models]
    )
    labels, counts = np.unique(own, return_counts=True)
    return said != labels[counts.argmax()]


def _frame(case: SetCase, points: list[Any]) -> Any:
    return case.space.frame_of(points)


def accepted(case: SetCase, points: list[Any]) -> list[bool]:
    """Return which points so many of the models have in the target."""
    return (holders(case, _frame(case, points)).sum(axis=1) >= case.at_least).tolist()


def as_case(case: SetCase) -> random_problems.Case:
    """Return the problem with the set as its model."""
    models = mace.agree(case.models, at_least=case.at_least)
    return random_problems.Case(case.kind, models, case.space, case.row, case.question)


def set_fault(case: SetCase, *, certify: bool = True) -> str | None:
    """Return what is wrong with the answer of a set; ``None`` where nothing is, ``"skipped"`` where there is no question."""
    space, models = case.space, mace.agree(case.models, at_least=case.at_least)
    factual = space.point(case.row)
    if holders(case, _frame(case, [factual]))[0].sum() >= case.at_least:
        answer = mace.Explainer(models, space).explain(case.row, **case.question)
        return None if answer.status == "reached" else f"the row is there already, and the answer is {answer.status}"
    metric = as_distance(case.question["distance"]).from_factual(space, factual)
    values = [sorted({*grid_values(each), own}) for each, own in zip(space.values(), factual, strict=True)]
    conditions = [each.bind(space, factual) for each in case.question["constraints"]]
    points = [
        point
        for point in itertools.product(*values)
        if all(each.holds(point_values(space, point)) for each in conditions)
    ]
    held = holders(case, _frame(case, points)).sum(axis=1) >= case.at_least if points else []
    costs = [metric.measure(point) for point, is_held in zip(points, held, strict=True) if is_held]
    answer = mace.Explainer(models, space).explain(case.row, **case.question, certify=certify, round_to=None)
    if not costs:
        fault = None if answer.status == "infeasible" else f"status {answer.status}, and brute force finds no row"
        return fault or (_forged(answer.certificate, case) if certify else None)
    if answer.status != "optimal":
        return f"status {answer.status} ({answer.reason}), and brute force finds rows"
    truth, best = float_up(distance_up(metric, min(costs))), answer[0]
    if best.distance != truth or best.lower > truth:
        return f"distance {best.distance!r}, lower {best.lower!r}, brute force {truth!r}"
    own = holders(case, _frame(case, [space.point(best.values)]))[0]
    if best.held_by != tuple(np.flatnonzero(own).tolist()):
        return f"held by {best.held_by}, brute force {np.flatnonzero(own)}"
    return _forged(best.certificate, case) if certify else None


def _forged(certificate: Any, case: SetCase) -> str | None:
    """Return what is wrong with a certificate: it must be valid, of this set alone, and not with another bound."""
    models = mace.agree(case.models, at_least=case.at_least)
    read = json.loads(certificate.to_json())
    verdict = mace.verify(read, models)
    if verdict.outcome != "valid":
        return f"the certificate is {verdict}"
    other = mace.agree(case.models, at_least=case.at_least % len(case.models) + 1)
    if mace.verify(read, other).outcome != "refuted":
        return "the certificate is believed of another number of models"
    if read["claim"]["lower"]:
        read["claim"] |= {"status": "infeasible", "lower": None, "upper": None, "counterfactual": None}
        if mace.verify(read, models).outcome == "valid":
            return "a forged certificate is believed"
    return None


def batch_fault(case: SetCase) -> str | None:
    """Return what is wrong with a batch, and an audit, of rows beside that of a case: both say what each row's own answer says."""
    rng = np.random.default_rng(0)
    explainer = mace.Explainer(mace.agree(case.models, at_least=case.at_least), case.space)
    rows = [case.row, *(random_problems._row(rng, case.space) for _ in range(3))]
    frame = case.space.frame_of([case.space.point(row) for row in rows])
    alone = [explainer.explain(row, **case.question) for row in rows]
    batch = explainer.explain_many(frame, **case.question)
    for own, each in zip(alone, batch, strict=True):
        if (own.status, own.held_by, [one.values for one in own]) != (
            each.status,
            each.held_by,
            [one.values for one in each],
        ):
            return f"alone {own}, in a batch {each}"
    if case.question["target"] is None:
        return None
    made = audit(explainer, frame, **case.question, resamples=10)
    told = [(person.distance if one else None, person.changed) for one, person in zip(alone, made.people, strict=True)]
    if told != [(one[0].distance, tuple(c.feature for c in one[0].changes)) if one else (None, ()) for one in alone]:
        return f"the audit says {told}"
    return None

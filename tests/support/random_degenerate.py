"""Random questions at the edges of what can be asked, against brute force over all rows: little is left to vary, or nothing.

Features of one value, ranges of a few neighbouring floats, rows off the grid or outside of ranges that constraints set, models that say
the same of every row or tie, weights and ranges of very different sizes, constraints that contradict each other.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from problems import problem_of
from random_problems import from_source
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tampering import outcome_of, parts_of

import mace
from mace.constraints.typical import Typical
from mace.exact import float_down, float_up
from mace.problem import Problem
from mace.space import Categorical, Integer, Point

MOST_ROWS = 4000
FAMILIES = ("tree", "forest", "histogram", "linear", "network", "regressor", "tree regressor", "numbers", "function")
KINDS = [
    "one",
    "integer",
    "big",
    "grid",
    "dot",
    "floats",
    "single",
    "half",
    "few",
    "huge",
    "level",
    "levels",
    "ordinal",
]


@dataclass
class Degenerate:
    """A question, and the values that each feature may have in an answer."""

    family: str
    model: Any
    space: mace.FeatureSpace
    row: dict[str, Any]
    values: list[list[Any]]
    question: dict[str, Any]
    radii: dict[str, Fraction] = field(default_factory=dict)


def degenerate(seed: int) -> Degenerate:
    """Return the question of a seed."""
    rng = np.random.default_rng([seed, 77])
    family = FAMILIES[seed % len(FAMILIES)]
    while True:
        features, values, names = {}, [], "abcde"[: int(rng.choice([1, 2, 3, 4, 5], p=[0.2, 0.25, 0.25, 0.2, 0.1]))]
        may_miss = family in ("tree", "histogram", "linear", "network") and rng.random() < 0.3
        only_levels = rng.random() < 0.1
        for name in names:
            features[name], allowed = _feature(rng, may_miss=may_miss, only_levels=only_levels)
            values.append(allowed)
        if np.prod([len(each) for each in values]) <= MOST_ROWS:
            break
    space = mace.FeatureSpace(features)
    factual = tuple(each[int(rng.integers(len(each)))] for each in values)
    constraints: list[Any] = []
    for j, (name, feature) in enumerate(space.items()):
        if getattr(feature, "step", None) and rng.random() < 0.4 and factual[j] is not None:
            off = (
                feature.low + 1 if isinstance(feature, Integer) else feature.nearest(feature.low + feature.step * 0.37)
            )
            if off <= feature.high:
                factual = (*factual[:j], off, *factual[j + 1 :])
                values[j] = [off, *(v for v in values[j] if v != off)]
        if not _is_all(feature, values[j]):
            constraints.append(mace.one_of(name, [v for v in values[j] if v is not None]))
    row = space.values_of(factual)
    model = _model(rng, family, space, values)
    question: dict[str, Any] = {"distance": _distance(rng, space, values)}
    question["constraints"] = constraints + _constraints(rng, space, factual, values)
    if rng.random() < 0.25:
        question["accuracy"] = float(rng.choice([1e-15, 1e-12, 0.01, 0.3, 1]))
    question["target"] = _target(rng, family, model, space, values)
    case = Degenerate(family, model, space, row, values, question)
    if rng.random() < 0.4:
        _with_noise(rng, case)
    return case


def _is_all(feature: Any, values: list[Any]) -> bool:
    """Return whether a feature has no other values than these."""
    return feature.size is not None or feature.high - feature.low < len(values) * feature.spacing(feature.low)


def _feature(rng: np.random.Generator, *, may_miss: bool, only_levels: bool) -> tuple[Any, list[Any]]:
    """Return a feature, and the values that the question leaves it."""
    kind = str(rng.choice(KINDS[-3:] if only_levels else KINDS))
    missing = bool(may_miss and rng.random() < 0.6)
    none = [None] if missing else []
    low = int(rng.integers(-3, 4))
    if kind == "one":
        return mace.integer(low, low, missing=missing), [low, *none]
    if kind == "integer":
        made = mace.integer(low, low + int(rng.integers(1, 6)), step=rng.choice([None, 1, 2, 3]), missing=missing)
    elif kind == "big":
        made = mace.integer(-(10**12), 10**12, step=10**12 // int(rng.integers(1, 4)), missing=missing)
    elif kind == "grid":
        step = float(rng.choice([0.1, 0.3, 0.25, 1e-9]))
        made = mace.real(
            low,
            low + step * int(rng.integers(1, 6)),
            step=step,
            missing=missing,
            dtype=None if step == 1e-9 else rng.choice([None, "float32"]),
        )
    elif kind == "dot":
        at = float(rng.choice([low, 0.1, 1e12]))
        return mace.real(at, at, missing=missing), [at, *none]
    elif kind in ("floats", "single", "half"):
        dtype, least = {
            "floats": (None, np.float64),
            "single": ("float32", np.float32),
            "half": ("float16", np.float16),
        }[kind]
        at = least(rng.choice([0.1, 1.0, 0.0 if kind == "half" else 0.7, 1e4 / 3]))
        allowed = [float(at)]
        for _ in range(int(rng.integers(1, 5))):
            at = np.nextafter(at, least(np.inf))
            allowed.append(float(at))
        made = mace.real(allowed[0], allowed[-1], missing=missing, dtype=dtype)
        return made, [*allowed, *none]
    elif kind == "few":
        made = mace.real(
            low, low + float(rng.choice([0.5, 1, 100])), missing=missing, dtype=rng.choice([None, "float32"])
        )
        ends = [made.low, made.high] if rng.random() < 0.5 else []
        inner = [
            made.nearest(float(np.round(rng.uniform(made.low, made.high), 2))) for _ in range(int(rng.integers(1, 4)))
        ]
        return made, [*sorted({min(max(v, made.low), made.high) for v in [*ends, *inner]}), *none]
    elif kind == "huge":
        made = mace.real(-1e12, 1e12, missing=missing)
        return made, [*sorted({-1e12, 0.0, float(rng.uniform(-1e12, 1e12)), float(rng.uniform(-1, 1))}), *none]
    elif kind == "level":
        return mace.categorical(["only"]), [0]
    elif kind == "levels":
        made, none = mace.categorical(["x", "y", "z", "w"][: int(rng.integers(2, 5))]), []
    else:
        made, none = mace.ordinal(["low", "mid", "high"][: int(rng.integers(1, 4))]), []
    grid = range(made.size) if hasattr(made, "levels") else map(made.value_at, range(made.size))
    return made, [*grid, *none]


def _rows(rng: np.random.Generator, values: list[list[Any]], count: int) -> list[Point]:
    return [tuple(each[int(rng.integers(len(each)))] for each in values) for _ in range(count)]


def _model(rng: np.random.Generator, family: str, space: mace.FeatureSpace, values: list[list[Any]]) -> Any:
    if family == "function":
        return _function(rng, space, values)
    frame = space.frame_of(_rows(rng, values, 60))
    encoder = mace.Encoder(
        space, categorical=str(rng.choice(["onehot", "codes"])), ordinal=str(rng.choice(["thermometer", "codes"]))
    )
    if family == "numbers":
        # Weights of one digit over the columns as they are: ties and the boundary itself are met.
        columns = encoder.fit(frame).transform(frame).shape[1]
        labels = np.arange(60) % 2
        model = make_pipeline(encoder, LogisticRegression(max_iter=1)).fit(frame, labels)
        model[-1].coef_ = rng.integers(-2, 3, (1, columns)).astype(float)
        model[-1].intercept_ = np.array([float(rng.integers(-2, 3))])
        return model
    columns = np.nan_to_num(encoder.fit_transform(frame).astype(float), nan=-1.0)
    spread = columns.std(axis=0)
    columns = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1)
    score = columns @ rng.normal(size=columns.shape[1]) + np.sin(3 * columns).sum(axis=1) + rng.normal(0, 0.2, 60)
    classes = int(rng.choice([2, 2, 3]))
    labels = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    labels[:classes] = np.arange(classes)
    is_constant = rng.random() < 0.08
    s = int(rng.integers(1000))
    shape = {
        "hidden_layer_sizes": (3,) if rng.random() < 0.7 else (3, 2),
        "solver": "lbfgs",
        "max_iter": 60,
        "random_state": s,
    }
    estimator = {
        "tree": lambda: DecisionTreeClassifier(max_depth=4, random_state=s, ccp_alpha=1.0 if is_constant else 0),
        "forest": lambda: RandomForestClassifier(
            int(rng.choice([2, 4])), max_depth=3, random_state=s, min_samples_leaf=1
        ),
        "histogram": lambda: HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2, random_state=s),
        "linear": lambda: LogisticRegression(random_state=s, C=1e-12 if is_constant else 1.0),
        "network": lambda: MLPClassifier(**shape),
        "regressor": lambda: MLPRegressor(**shape) if rng.random() < 0.5 else LinearRegression(),
        "tree regressor": lambda: DecisionTreeRegressor(max_depth=3, random_state=s),
    }[family]()
    steps = [encoder]
    if family in ("linear", "network") and any(getattr(f, "missing", False) for f in space.values()):
        steps.append(SimpleImputer(strategy="constant", fill_value=0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(*steps, estimator).fit(frame, score if "regressor" in family else labels)


def _function(rng: np.random.Generator, space: mace.FeatureSpace, values: list[list[Any]]) -> Any:
    terms, guards = [], []
    for (name, feature), each in zip(space.items(), values, strict=True):
        value = each[int(rng.integers(len(each)))]
        if hasattr(feature, "levels"):
            guards.append(f"{name} == {feature.levels[value]!r}")
        else:
            terms.append(f"{int(rng.integers(-2, 3))} * {name}")
            guards.append(f"{name} {rng.choice(['>', '>=', '<', '=='])} {value!r}")
    return from_source(
        f"def model({', '.join(space)}):\n"
        f"    score = {' + '.join([str(int(rng.integers(-2, 3))), *terms])}\n"
        f"    if {rng.choice(guards)}:\n        score = max(score, 1) - 1\n"
        f"    elif {rng.choice(guards)}:\n        return 2\n"
        f"    return 1 if abs(score) >= {int(rng.integers(0, 3))} else 0\n",
        "model",
    )


def _distance(rng: np.random.Generator, space: mace.FeatureSpace, values: list[list[Any]]) -> Any:
    norm = str(rng.choice(["l0", "l1", "l2", "linf"]))
    kind = rng.random()
    if kind < 0.5:
        return norm
    if kind < 0.6:
        return mace.Distance(l0=0.25, l1=0.25, linf=0.5)
    if kind < 0.8:
        weights = {name: float(rng.choice([1e-9, 1e-3, 1.0, 7.0, 1e6])) for name in space if rng.random() < 0.7}
        return mace.Distance(**{norm: 1.0}, weights=weights)
    data = space.frame_of(_rows(rng, values, 15))
    return mace.Distance(l1=1.0, weights=str(rng.choice(["mad", "percentile"])), data=data)


def _constraints(
    rng: np.random.Generator, space: mace.FeatureSpace, factual: Point, values: list[list[Any]]
) -> list[Any]:
    made: list[Any] = []
    names = list(space)
    draw = rng.random()
    if draw < 0.2:
        free = set(rng.permutation(names)[: int(rng.integers(1, 3))])
        made += [mace.fixed(name) for name in names if name not in free]
    for name, feature, own, each in zip(names, space.values(), factual, values, strict=True):
        is_ordered = not isinstance(feature, Categorical)
        kind = rng.random()
        if kind < 0.1 and is_ordered:
            made.append(mace.increases(name) if rng.random() < 0.5 else mace.decreases(name))
        elif kind < 0.2 and not hasattr(feature, "levels"):
            known = [v for v in each if v is not None]
            if known:
                ends = sorted((known[int(rng.integers(len(known)))], known[int(rng.integers(len(known)))]))
                made.append(mace.within(name, *ends))
        elif kind < 0.22:
            chosen = [v for v in each if v is not None and (own is None or v != own or rng.random() < 0.3)]
            if chosen:
                made.append(mace.one_of(name, [feature.levels[v] if hasattr(feature, "levels") else v for v in chosen]))
        elif kind < 0.24:
            made.append(mace.changes(name))
    if rng.random() < 0.2:
        made.append(mace.changes_at_most(int(rng.choice([0, 1, 2, 2, 3]))))
    if rng.random() < 0.3:
        rows = space.frame_of(_rows(rng, values, int(rng.integers(1, 6))))
        made.append(
            mace.near_data(
                rows,
                k=int(rng.integers(1, len(rows) + 1)),
                radius=float(rng.choice([0, 0.1, 0.3, 0.5, 1])),
                distance=str(rng.choice(["l1", "linf", "l0", "l2"])),
            )
        )
    if rng.random() < 0.1 and not any(getattr(f, "missing", False) for f in space.values()):
        made.append(mace.typical(space.frame_of(_rows(rng, values, 20)), quantile=float(rng.choice([0.05, 0.3, 0.7]))))
    return made


def _target(
    rng: np.random.Generator, family: str, model: Any, space: mace.FeatureSpace, values: list[list[Any]]
) -> Any:
    rows = space.frame_of(_rows(rng, values, 10))
    if "regressor" in family:
        said = model.predict(rows)
        p, q = sorted(float(v) for v in rng.choice(said, 2))
        return [mace.at_least(q), mace.at_most(p), mace.between(p, q), mace.at_least(q + 1e9)][int(rng.integers(4))]
    if family == "function":
        return None
    labels = [each.item() for each in model.classes_]
    kind = rng.random()
    if kind < 0.5:
        return None
    label = labels[int(rng.integers(len(labels)))]
    if kind < 0.65:
        return label
    if kind < 0.75:
        return mace.any_of(labels[: int(rng.integers(1, len(labels)))])
    said = model.predict_proba(rows)[:, labels.index(label)]
    p, q = sorted(float(v) for v in rng.choice([*said, 0.5], 2))
    return [mace.at_least(q, label), mace.at_most(p, label), mace.between(p, q, label)][int(rng.integers(3))]


def _with_noise(rng: np.random.Generator, case: Degenerate) -> None:
    """Add noise to some features all of whose values are known."""
    noise = {}
    for name, feature, each in zip(case.space, case.space.values(), case.values, strict=True):
        if isinstance(feature, Categorical) or rng.random() < 0.4:
            continue
        known = sorted(v for v in each if v is not None)
        if not _is_all(feature, each):
            continue
        gap = (known[-1] - known[0]) / max(1, len(known) - 1)
        noise[name] = float(gap * rng.choice([0, 0.5, 1, 1.0, 2]))
    if noise:
        case.question["constraints"] = [*case.question["constraints"], mace.robust(noise)]
        case.radii = {name: Fraction(repr(radius)) for name, radius in noise.items()}


# ---- the referee


def disagreement(case: Degenerate) -> str | None:
    """Return what is wrong with an answer, with what the search told on the way or with its certificate; ``None`` where nothing is.

    ``"skipped"`` where there is no question.
    """
    explainer, told = mace.Explainer(case.model, case.space), list[tuple[float, float]]()
    try:
        problem = problem_of(explainer, case.row, case.question)
    except (mace.InvalidTarget, mace.InvalidDistance):
        return "skipped"
    truth = counterfactuals(case, problem)
    answer = explainer.explain(
        case.row, certify=True, on_progress=lambda lower, upper, calls: told.append((lower, upper)), **case.question
    )
    nearest = min(truth.values(), default=None)
    found = _fault(answer, truth, nearest, Fraction(case.question.get("accuracy", 1e-6)), told)
    if found is not None:
        return f"{found}: {answer.status} ({answer.reason}), {answer.lower!r}, {told}; brute force {nearest}"
    proof = answer[0].certificate if len(answer) else answer.certificate
    return None if proof is None else _fault_of_proof(case, proof, truth, nearest)


def _fault(
    answer: mace.Explanation,
    truth: dict[Point, Fraction],
    nearest: Fraction | None,
    accuracy: Fraction,
    told: list[tuple[float, float]],
) -> str | None:
    if nearest is None:
        is_right = not len(answer) and all(upper == math.inf for _, upper in told)
        return None if is_right and (answer.status == "infeasible" or answer.reason) else "there is no answer"
    if answer.status == "infeasible" or max([answer.lower, *(lower for lower, _ in told)]) > nearest:
        return "a lower bound above an answer"
    if not len(answer):
        return None if answer.reason else "no answer was found"
    best, point = answer[0], answer.space.point(answer[0].values)
    if point not in truth:
        return "the row is no answer"
    if not 0 <= Fraction(best.distance) - truth[point] <= Fraction(1, 10**12):
        return "another distance"
    return "not the nearest" if best.status == "optimal" and truth[point] - nearest > accuracy else None


def _fault_of_proof(
    case: Degenerate, proof: mace.Certificate, truth: dict[Point, Fraction], nearest: Fraction | None
) -> str | None:
    """Return what is wrong with a certificate, or with its checker, which must not believe that the farthest row is the nearest."""
    forests = [each.fitted(case.space) for each in case.question["constraints"] if isinstance(each, Typical)]
    verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), case.model, forests=forests)
    if verdict.outcome == "refuted":
        return f"certificate: {verdict}"
    point = max(truth, key=lambda each: truth[each], default=None)
    if point is None or nearest is None or truth[point] - nearest <= Fraction(1, 1000):
        return None
    data = parts_of(proof)
    lower, upper = float_down(truth[point]), float_up(truth[point])
    row = {name: None if value != value else value for name, value in case.space.values_of(point).items()}
    data["claim"] |= {"status": "optimal", "lower": lower, "upper": upper, "counterfactual": row}
    said, _ = outcome_of(data, case.model, forests)
    return "a false certificate is believed" if said == "valid" else None


def counterfactuals(case: Degenerate, problem: Problem) -> dict[Point, Fraction]:
    """Return every row that counts, with its distance."""
    every = list(itertools.product(*case.values))
    said = dict(zip(every, map(problem.goal.accepts, problem.ask(every)), strict=True))
    _, plain = problem.searched
    return {
        point: problem.distance(point)
        for point in every
        if said[point] and plain.is_plausible(point) and all(said[other] for other in _around(case, point))
    }


def _around(case: Degenerate, point: Point) -> Iterator[Point]:
    """Yield the rows to which noise leads; to no value off the grid."""
    ways = []
    for (name, feature), own, values in zip(case.space.items(), point, case.values, strict=True):
        radius = case.radii.get(name, Fraction(0))
        near = [
            v for v in values if None not in (v, own) and abs(_written(feature, v) - _written(feature, own)) <= radius
        ]
        ways.append([own, *(v for v in near if radius and v != own and (hasattr(feature, "levels") or feature.has(v)))])
    return itertools.product(*ways)


def _written(feature: Any, value: Any) -> Fraction:
    return feature.decimal(value) if hasattr(feature, "decimal") else Fraction(value)

"""Random questions that keep answers realistic, or are about causes, over finite spaces: brute force by definition is the referee."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from random_constraints import TOLERANCE, estimator_of, random_constrained, random_row, random_text
from random_problems import from_source
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline

import mace
from mace.distances import as_distance, point_values
from mace.space import Point, grid_values

KINDS = ("near_data", "typical", "robust")
FAMILIES = ("forest", "boosting", "linear", "network")


@dataclass(frozen=True)
class Realistic:
    """A question, and what makes a row an answer beside the prediction.

    Attributes
    ----------
    is_allowed : function
        Whether the realism constraint allows a point, given what the model says of every point.
    text : str, optional
        A further constraint.
    """

    family: str
    explainer: mace.Explainer
    row: dict[str, Any]
    distance: Any
    constraint: Any
    is_allowed: Callable[[Point, Mapping[Point, Any]], bool]
    text: str | None = None
    forests: tuple[Any, ...] = field(default=())


def random_realistic(seed: int, kind: str) -> Realistic | None:
    """Return the question of a seed; ``None`` where there is none."""
    rng = np.random.default_rng([seed, 23])
    case = random_constrained(seed)
    if case is None:
        return None
    space, row = case.explainer.space, dict(case.row)
    family, explainer = case.family, case.explainer
    if family == "vote":
        family, explainer = "function", mace.Explainer(from_source(_source(rng, space), "model"), space)
    if "r" in space and rng.random() < 0.3:
        row["r"] = float(rng.choice([0.2, 0.75, 1.3]))  # between the values of its grid
    text = random_text(rng, space, depth=1) if rng.random() < 0.4 else None
    frame = pd.DataFrame([random_row(rng, space) for _ in range(25)])
    forests: tuple[Any, ...] = ()
    constraint: Any
    if kind == "near_data":
        constraint, is_allowed = _near(rng, space, frame)
    elif kind == "typical":
        forest = make_pipeline(
            mace.Encoder(space), IsolationForest(n_estimators=5, max_samples=12, contamination=0.35, random_state=seed)
        ).fit(frame)
        forests = (forest,)
        points = _points(space, row)
        said = dict(zip(points, forest.predict(space.frame_of(points)), strict=True))
        constraint, is_allowed = mace.typical(forest), lambda point, _: bool(said[point] == 1)
    else:
        made = _robust(rng, space, row)
        if made is None:
            return None
        constraint, is_allowed = made
    return Realistic(family, explainer, row, case.distance, constraint, is_allowed, text, forests)


def _source(rng: np.random.Generator, space: mace.FeatureSpace) -> str:
    """Return a function of two sums, both of which count, or one."""
    sums = []
    for _ in range(2):
        terms = [
            f"{rng.normal():.2f} * ({name} == '{feature.levels[0]}')"
            if hasattr(feature, "levels")
            else f"{rng.normal():.2f} * {name}"
            for name, feature in space.items()
        ]
        sums.append(" + ".join(terms) + f" > {rng.normal():.1f}")
    joint = rng.choice(["and", "or"])
    return f"def model({', '.join(space)}):\n    return 1 if ({sums[0]}) {joint} ({sums[1]}) else 0\n"


def _values(space: mace.FeatureSpace, row: dict[str, Any]) -> list[list[Any]]:
    """Return what each feature may be: the values of its grid, and the row's own."""
    pairs = zip(space.values(), space.point(row), strict=True)
    return [list(dict.fromkeys([*grid_values(feature), own])) for feature, own in pairs]


def _points(space: mace.FeatureSpace, row: dict[str, Any]) -> list[Point]:
    return list(itertools.product(*_values(space, row)))


def _near(rng: np.random.Generator, space: mace.FeatureSpace, frame: pd.DataFrame) -> tuple[Any, Any]:
    k, radius = int(rng.integers(1, 4)), float(rng.choice([0.0, 0.05, 0.1, 0.2]))
    norm = str(rng.choice(["l1", "linf", "l0", "l2"]))
    rows = [space.point(row) for row in frame.to_dict("records")]

    def is_allowed(point: Point, _: Mapping[Point, Any]) -> bool:
        metric = as_distance(norm).from_factual(space, point)
        limit = Fraction(radius) ** (2 if norm == "l2" else 1)
        return sum(metric.measure(row) <= limit for row in rows) >= k

    return mace.near_data(frame, k=k, radius=radius, distance=norm), is_allowed


def _robust(rng: np.random.Generator, space: mace.FeatureSpace, row: dict[str, Any]) -> tuple[Any, Any] | None:
    ordered = [name for name in space if name != "k"]
    chosen = [str(name) for name in rng.permutation(ordered)[: int(rng.integers(1, 3))]]
    if not chosen:
        return None
    noise = {name: float(rng.choice([0.5, 1.0, 1.5])) for name in chosen}
    beside = [
        {
            value: [value, *(other for other in grid_values(space[name]) if abs(other - value) <= noise.get(name, 0))]
            for value in values
        }
        for name, values in zip(space, _values(space, row), strict=True)
    ]

    def is_allowed(point: Point, said: Mapping[Point, Any]) -> bool:
        around = itertools.product(*(near[value] for near, value in zip(beside, point, strict=True)))
        return all(said[other] == said[point] for other in around)

    return mace.robust(noise), is_allowed


def nearest(case: Realistic) -> Fraction | None:
    """Return the least distance of an answer that brute force finds; ``None`` where there is none."""
    space, explainer = case.explainer.space, case.explainer
    points = _points(space, case.row)
    said = dict(zip(points, explainer.predict_many([space.values_of(point) for point in points]), strict=True))
    factual = space.point(case.row)
    texts = [] if case.text is None else [mace.rule(case.text).bind(space, factual)]
    metric = as_distance(case.distance).from_factual(space, factual)
    valid = [
        metric.measure(point)
        for point in points
        if said[point] != said[factual]
        and all(condition.holds(point_values(space, point)) for condition in texts)
        and case.is_allowed(point, said)
    ]
    return min(valid, default=None)


def explained(case: Realistic) -> mace.Explanation:
    """Ask the question, with a certificate."""
    constraints = [case.constraint, *([] if case.text is None else [case.text])]
    return case.explainer.explain(
        case.row, distance=case.distance, constraints=constraints, certify=True, time_limit=60
    )


def fault(case: Realistic) -> str | None:
    """Return what is wrong with the answer or its certificate; ``None`` where nothing is, ``"skipped"`` where it is not decided in time."""
    return compared(explained(case), nearest(case), case.explainer.model, case.forests)


def compared(answer: mace.Explanation, best: Fraction | None, model: Any, forests: tuple[Any, ...] = ()) -> str | None:
    """Return how an answer differs from the least distance that brute force found, or what its certificate lacks."""
    if best is None and len(answer):
        return f"an answer at {answer[0].distance!r}, where brute force finds none"
    if best is not None and (answer.status == "infeasible" or Fraction(answer.lower) > best):
        return f"{answer.status}, lower {answer.lower!r}, above a row at {float(best)!r}"
    if answer.status not in ("optimal", "infeasible"):
        return "skipped"
    if best is not None and abs(answer[0].distance - float(best)) > 2 * TOLERANCE:
        return f"distance {answer[0].distance!r}, brute force {float(best)!r}"
    proof = answer[0].certificate if len(answer) else answer.certificate
    assert proof is not None
    verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), model, forests=forests)
    if verdict.outcome == "refuted":
        return f"certificate: {verdict}"
    if best is not None:
        raised = proof.to_dict()
        raised["claim"] |= {"lower": float(best) + 1e-3, "upper": answer[0].distance, "status": "feasible"}
        if mace.verify(raised, model, forests=forests).valid:
            return "a certificate with a bound beyond the answer is accepted"
    return None


# ---- causes


@dataclass(frozen=True)
class Intervened:
    """A question about actions: the equations of some features of whole numbers as coefficients of others."""

    family: str
    model: Any
    space: mace.FeatureSpace
    row: dict[str, Any]
    equations: dict[str, dict[str, Fraction]]

    @property
    def explainer(self) -> mace.Explainer:
        """The model with its equations."""
        texts = {
            effect: " + ".join(f"{float(share)} * {name}" for name, share in shares.items())
            for effect, shares in self.equations.items()
        }
        return mace.Explainer(self.model, self.space, causes=mace.Causal(texts))


def random_intervention(seed: int) -> Intervened | None:
    """Return the question of a seed; ``None`` where its labels came out all alike."""
    rng = np.random.default_rng([seed, 29])
    names = ["p", "q", "s", "t"][: int(rng.integers(3, 5))]
    space = mace.FeatureSpace({name: mace.integer(0, int(rng.integers(3, 7))) for name in names})
    equations: dict[str, dict[str, Fraction]] = {}
    for place in range(int(rng.integers(1, len(names))), len(names)):
        causes = [str(name) for name in rng.permutation(names[:place])[: int(rng.integers(1, 3))]]
        equations[names[place]] = {name: Fraction(int(rng.integers(-6, 7)), 4) for name in causes}
    frame = pd.DataFrame([random_row(rng, space) for _ in range(100)])
    score = sum(rng.normal() * frame[name] for name in names) + 0.3 * rng.normal(size=100)
    labels = (score > np.median(score)).astype(int)
    if labels.nunique() < 2:
        return None
    family = FAMILIES[seed % len(FAMILIES)]
    model = make_pipeline(mace.Encoder(space), estimator_of(family, seed)).fit(frame, labels)
    return Intervened(family, model, space, random_row(rng, space), equations)


def fault_of_intervention(case: Intervened) -> str | None:
    """Return what is wrong with the answer or its certificate."""
    answer = case.explainer.explain(case.row, certify=True, time_limit=60)
    return compared(answer, nearest_intervention(case), case.model)


def nearest_intervention(case: Intervened) -> Fraction | None:
    """Return the least cost of actions that brute force finds; ``None`` where no actions change the prediction."""
    explainer = case.explainer
    before = explainer.predict(case.row)
    rows = dict(_rows(case))
    said = explainer.predict_many([dict(row) for row in rows])
    return min((cost for (_, cost), label in zip(rows.items(), said, strict=True) if label != before), default=None)


def _rows(case: Intervened) -> list[tuple[tuple[tuple[str, int], ...], Fraction]]:
    """Return every row that actions lead to with the least that it costs."""
    space, row = case.space, case.row
    found: dict[tuple[tuple[str, int], ...], Fraction] = {}
    for acted in itertools.chain.from_iterable(
        itertools.combinations(case.equations, count) for count in range(len(case.equations) + 1)
    ):
        free = [name for name in space if name not in case.equations or name in acted]
        for values in itertools.product(*(grid_values(space[name]) for name in free)):
            made = dict(zip(free, values, strict=True))
            cost = sum(
                (Fraction(abs(value - row[name])) / space[name].range for name, value in made.items()), Fraction(0)
            )
            for name, shares in case.equations.items():
                if name not in made:
                    moved = sum((share * (made[cause] - row[cause]) for cause, share in shares.items()), Fraction(0))
                    made[name] = math.floor(row[name] + moved + Fraction(1, 2))
            if all(space[name].has(value) for name, value in made.items()):
                key = tuple((name, int(made[name])) for name in space)
                found[key] = min(found.get(key, cost / len(space)), cost / len(space))
    return list(found.items())

"""Random problems under random constraints in the text form, nested in each other: brute force or SMT is the referee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from estimators import small
from sklearn.pipeline import make_pipeline

import mace

FAMILIES = ("forest", "boosting", "linear", "network", "vote")
TOLERANCE = 1.1e-6


@dataclass(frozen=True)
class Constrained:
    """A question: a model, a row, a distance and constraints."""

    family: str
    explainer: mace.Explainer
    row: dict[str, Any]
    distance: Any
    constraints: list[str]


def random_constrained(seed: int, *, finite: bool = True) -> Constrained | None:
    """Return the question of a seed; ``None`` where its labels came out all alike."""
    rng = np.random.default_rng([seed, 11])
    space = random_space(rng, finite=finite)
    frame = pd.DataFrame([random_row(rng, space) for _ in range(120)])
    score = sum(rng.normal() * _numbers(space, frame, name) for name in space) + 0.4 * rng.normal(size=120)
    labels = (score > np.median(score)).astype(int)
    if labels.nunique() < 2:
        return None
    family = FAMILIES[seed % len(FAMILIES)]
    model = make_pipeline(mace.Encoder(space), estimator_of(family, seed)).fit(frame, labels)
    distances = ("l1", "linf", "l0", mace.Distance(l0=0.25, l1=0.5, linf=0.25))
    return Constrained(
        family,
        mace.Explainer(model, space),
        random_row(rng, space),
        distances[int(rng.integers(4))],
        [random_text(rng, space, depth=2) for _ in range(int(rng.integers(1, 4)))],
    )


def random_space(rng: np.random.Generator, *, finite: bool) -> mace.FeatureSpace:
    """Return a space of three to five features; with real ones unless ``finite``."""
    features: dict[str, Any] = {
        "a": mace.integer(0, int(rng.integers(2, 7))),
        "b": mace.integer(-2, int(rng.integers(0, 4))),
        "r": mace.real(0, 2, step=0.5 if finite else None),
        "o": mace.ordinal(["low", "mid", "high"]),
        "k": mace.categorical(["x", "y", "z"]),
    }
    if not finite:
        features["s"] = mace.real(-1, 3)
    kept = rng.permutation(list(features))[: int(rng.integers(3, 6))]
    return mace.FeatureSpace({name: features[name] for name in features if name in kept})


def random_row(rng: np.random.Generator, space: mace.FeatureSpace) -> dict[str, Any]:
    """Return a row of a space."""
    return space.values_of(tuple(_value(rng, feature) for feature in space.values()))


def _value(rng: np.random.Generator, feature: Any) -> Any:
    if feature.size is None:
        return float(np.round(rng.uniform(feature.low, feature.high), int(rng.integers(1, 4))))
    k = int(rng.integers(feature.size))
    return k if hasattr(feature, "levels") else feature.value_at(k)


def _numbers(space: mace.FeatureSpace, frame: pd.DataFrame, name: str) -> Any:
    levels = getattr(space[name], "levels", None)
    return frame[name].map(list(levels).index) if levels else frame[name]


def estimator_of(family: str, seed: int) -> Any:
    """Return an estimator of a family, not fitted."""
    settings: dict[str, Any] = {
        "forest": {"n_estimators": 4, "max_depth": 3},
        "boosting": {"n_estimators": 5},
        "network": {"max_iter": 300},
        "vote": {"voting": "soft" if seed % 2 else "hard", "weights": [2, 1]},
    }
    return small(family, seed, **settings.get(family, {}))


# ---- texts


def random_text(rng: np.random.Generator, space: mace.FeatureSpace, depth: int) -> str:
    """Return a constraint in the text form, nested so deep."""
    kind = rng.random()
    if depth == 0 or kind < 0.45:
        return _atom(rng, space)
    first, second = (random_text(rng, space, depth - 1) for _ in range(2))
    if kind < 0.6:
        return f"if {first} then {second}" if "if " not in first + second else first
    if kind < 0.75:
        return f"({first}) or ({second})"
    if kind < 0.9:
        return f"({first}) and ({second})"
    return f"not ({first})"


def _atom(rng: np.random.Generator, space: mace.FeatureSpace) -> str:
    names = list(space)
    name = str(rng.choice(names))
    numbers = [each for each in names if not hasattr(space[each], "levels")]
    kind = int(rng.integers(7))
    if kind == 0:
        ordered = (
            ""
            if isinstance(space[name], type(mace.categorical(["x"])))
            else str(rng.choice(["increases", "decreases"]))
        )
        return f"{name} {ordered or 'changes'}"
    if kind == 1:
        return f"{name} {rng.choice(['stays', 'changes'])}"
    if kind == 2:
        return f"at most {int(rng.integers(0, len(names)))} features change"
    if kind == 3 and len(names) > 2:
        some = ", ".join(map(str, rng.permutation(names)[:2]))
        return f"{some} change together" if rng.random() < 0.5 else f"at most 1 of {some} change"
    if kind == 4 and hasattr(space[name], "levels"):
        level = rng.choice(list(space[name].levels))  # type: ignore[union-attr]
        return f"{name} {rng.choice(['==', '!='])} '{level}'"
    if len(numbers) >= 2:
        first, second = (str(each) for each in rng.permutation(numbers)[:2])
        sign = rng.choice(["<=", "<", ">=", ">"])
        return str(
            rng.choice(
                [
                    f"{first} {sign} {second} + {int(rng.integers(-2, 3))}",
                    f"{first} + {second} {sign} old.{first} + {int(rng.integers(0, 3))}",
                    f"abs({first} - old.{second}) <= {int(rng.integers(1, 4))}",
                    f"2 * {first} - {second} {sign} {int(rng.integers(-2, 6))}",
                    f"max({first}, {second}) {sign} {int(rng.integers(0, 4))}",
                ]
            )
        )
    return f"{name} stays"


# ---- the referee


def disagreement(case: Constrained, *, referee: str = "enumerate", seconds: float = 60) -> str | None:
    """Return how the lane that ``auto`` takes and a referee differ, or what is wrong with the certificate; ``None`` where nothing is.

    ``"skipped"`` where the referee gave up.
    """
    question = {"distance": case.distance, "constraints": case.constraints, "time_limit": seconds}
    answer = case.explainer.explain(case.row, certify=True, **question)
    truth = case.explainer.explain(case.row, solver=referee, **question)
    if len(answer) and truth.status == "infeasible":
        return "an answer where none exists"
    if len(truth) and (answer.status == "infeasible" or answer.lower > truth[0].distance):
        return f"{answer.status}, lower {answer.lower!r}, above a point at {truth[0].distance!r}"
    if len(answer) and truth.lower > answer[0].distance:
        return f"distance {answer[0].distance!r} below a proved bound of {truth.lower!r}"
    if truth.status not in ("optimal", "infeasible"):
        return "skipped"
    if answer.status != truth.status:
        return f"status {answer.status} ({answer.reason}), {referee} {truth.status}"
    if len(truth) and abs(answer[0].distance - truth[0].distance) > 2 * TOLERANCE:
        return f"distance {answer[0].distance!r}, {referee} {truth[0].distance!r}"
    proof = answer[0].certificate if len(answer) else answer.certificate
    if proof is None:
        return None
    verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), case.explainer.model)
    return None if verdict.outcome != "refuted" else f"certificate: {verdict}"

"""Random finite problems under near_data, typical, rules and diversity: certificates as made, and tampered with, against brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from estimators import small
from sklearn.ensemble import IsolationForest
from sklearn.pipeline import make_pipeline
from tampering import is_true, outcome_of, parts_of

import mace

FAMILIES = ("forest", "linear", "boosting", "network")
NORMS: list[Any] = ["l0", "l1", "l2", "linf", mace.Distance(l0=0.2, l1=0.5, linf=0.3, weights={"a": 3.0})]
RULES = ["at most 2 features change", "a + 2 * n <= old.a + 2 * old.n + 2", "if k changes then a >= old.a", "o stays"]


@dataclass(frozen=True)
class Realistic:
    """A question, and the forests that its ``typical`` constraints are about."""

    family: str
    explainer: mace.Explainer
    row: dict[str, Any]
    options: dict[str, Any]
    forests: tuple[Any, ...]
    other_forest: Any


def random_realistic(seed: int) -> Realistic:
    """Return the question of a seed."""
    rng = np.random.default_rng([seed, 23])
    family = FAMILIES[seed % len(FAMILIES)]
    space = mace.FeatureSpace(
        {
            "a": mace.integer(0, int(rng.integers(3, 7))),
            "n": mace.real(0, 2, step=0.5, missing=family == "forest" and bool(rng.random() < 0.3)),
            "o": mace.ordinal(["low", "mid", "high"]),
            "k": mace.categorical(["x", "y", "z"]),
        }
    )
    frame = _frame(rng, space, 90)
    score = (
        frame.a * rng.normal() + frame.n.fillna(1) * 2 * rng.normal() + 2 * (frame.k == "y") + rng.normal(0, 0.5, 90)
    )
    labels = (score > np.median(score)).astype(int)
    forests = [
        make_pipeline(
            mace.Encoder(space),
            IsolationForest(n_estimators=int(rng.integers(1, 12)), contamination=0.4, random_state=seed + n),
        ).fit(_frame(rng, space, 60))
        for n in range(3)
    ]
    kinds = [("near",), ("typical",), ("near", "typical"), ("near", "near"), ("typical", "typical")][seed % 5]
    constraints: list[Any] = []
    distance = NORMS[int(rng.integers(len(NORMS)))]
    used = []
    for kind in kinds:
        if kind == "near":
            rows = int(rng.integers(3, 25))
            norm = distance if rng.random() < 0.5 else NORMS[int(rng.integers(len(NORMS)))]
            radius = float(rng.choice([0.05, 0.1, 0.125, 0.2, 0.25]))
            constraints.append(mace.near_data(_frame(rng, space, rows), int(rng.integers(1, 4)), radius, norm))
        else:
            used.append(forests[len(used)])
            constraints.append(mace.typical(used[-1]))
    if rng.random() < 0.4:
        constraints.append(RULES[int(rng.integers(len(RULES)))])
    return Realistic(
        family,
        mace.Explainer(make_pipeline(mace.Encoder(space), small(family, seed)).fit(frame, labels), space),
        _frame(rng, space, 1).to_dict("records")[0],
        {
            "distance": distance,
            "constraints": constraints,
            "count": int(rng.integers(1, 4)),
            "diversity": mace.differ(),
        },
        tuple(used),
        forests[-1],
    )


def _frame(rng: np.random.Generator, space: mace.FeatureSpace, count: int) -> pd.DataFrame:
    numbers = rng.integers(0, 5, count) / 2
    if space["n"].missing:
        numbers = np.where(rng.random(count) < 0.25, np.nan, numbers)
    return pd.DataFrame(
        {
            "a": rng.integers(0, int(space["a"].range) + 1, count),
            "n": numbers,
            "o": rng.choice(["low", "mid", "high"], count),
            "k": rng.choice(["x", "y", "z"], count),
        }
    )


def certificates(case: Realistic, **options: Any) -> list[mace.Certificate]:
    """Return the certificates of all answers, and of there being no further one."""
    answer = case.explainer.explain(case.row, certify=True, **case.options, **options)
    made = [each.certificate for each in answer] + [answer.certificate]
    return [mace.Certificate.from_json(each.to_json()) for each in made if each is not None]


def fault_of(case: Realistic) -> tuple[str, str | None]:
    """Return the verdicts on a problem's certificates, and what is wrong with one; ``None`` where nothing is.

    Brute force finds every claim true, bounds included; with a status of ``optimal`` or ``infeasible`` that is the answer itself.
    """
    verdicts = []
    for certificate in certificates(case):
        if certificate.claim["status"] not in ("optimal", "infeasible"):
            return "status", f"{certificate.claim}"
        if not is_true(certificate, case.explainer.model, case.forests):
            return "false", f"{certificate.claim}"
        verdict = mace.verify(certificate, case.explainer.model, forests=case.forests)
        verdicts.append(verdict.outcome)
        if verdict.outcome == "refuted":
            return "refuted", str(verdict)
    return ", ".join(sorted(set(verdicts))), None


# ---- tampering

Data = dict[str, Any]


def dropped_box(data: Data, rng: np.random.Generator) -> None:
    """Leave a box out."""
    boxes = data["evidence"].get("boxes", [])
    if boxes:
        boxes.pop(int(rng.integers(len(boxes))))


def widened_box(data: Data, rng: np.random.Generator) -> None:
    """Let a box's proof stand for the whole domain."""
    boxes = data["evidence"].get("boxes", [])
    if boxes:
        boxes[int(rng.integers(len(boxes)))]["ranges"] = {}


def _boxes_near_rows(data: Data) -> list[Data]:
    """Return the boxes of a proof that are about points near rows of data alone."""
    return [box for box in (data["evidence"] or {}).get("boxes", ()) if box.get("neighbours")]


def forgotten_rows(data: Data, rng: np.random.Generator) -> None:
    """Say of a proof that is about points near some rows that it is about all points of its box."""
    for box in _boxes_near_rows(data):
        del box["neighbours"]


def other_rows(data: Data, rng: np.random.Generator) -> None:
    """Say of proofs that are about points near a row that they are about those near another one."""
    count = len(_near(data)[0]["rows"]) if _near(data) else 0
    for box in _boxes_near_rows(data):
        box["neighbours"] = sorted([number, (row + 1) % count] for number, row in box["neighbours"])


def other_question(data: Data, rng: np.random.Generator) -> None:
    """Say that a box's proof is about a forest, or that it is not."""
    for box in data["evidence"].get("boxes", []):
        box["forest"] = None if box.get("forest") is not None else 0


def raised_lower(data: Data, rng: np.random.Generator) -> None:
    """Claim more."""
    claim = data["claim"]
    claim.update(status="unknown", lower=(claim["lower"] or 0.0) + 0.2, upper=None, counterfactual=None)


def nothing_possible(data: Data, rng: np.random.Generator) -> None:
    """Claim that there is none."""
    data["claim"].update(status="infeasible", lower=None, upper=None, counterfactual=None)


def _near(data: Data) -> list[Any] | None:
    stated = [each["arguments"] for each in data["statement"]["constraints"] if each["kind"] == "near_data"]
    return stated[0] if stated else None


def dropped_row(data: Data, rng: np.random.Generator) -> None:
    """Leave a row of the data out."""
    near = _near(data)
    if near is not None and len(near[0]["rows"]) > near[1]:
        near[0]["rows"].pop(int(rng.integers(len(near[0]["rows"]))))


def added_rows(data: Data, rng: np.random.Generator) -> None:
    """Put the factual among the data, as often as is needed."""
    near = _near(data)
    if near is not None:
        factual = data["statement"]["factual"]
        near[0]["rows"] += [[factual[name] for name in near[0]["columns"]]] * near[1]


def wider_radius(data: Data, rng: np.random.Generator) -> None:
    """Count rows that are farther away."""
    near = _near(data)
    if near is not None:
        near[2] += 0.15


def fewer_neighbours(data: Data, rng: np.random.Generator) -> None:
    """Ask for one neighbour only."""
    near = _near(data)
    if near is not None:
        near[1] = 1


def no_forest(data: Data, rng: np.random.Generator) -> None:
    """Leave out that rows are usual."""
    stated = data["statement"]["constraints"]
    data["statement"]["constraints"] = [each for each in stated if each["kind"] != "typical"]


CHANGES = (
    dropped_box,
    widened_box,
    forgotten_rows,
    other_rows,
    other_question,
    raised_lower,
    nothing_possible,
    dropped_row,
    added_rows,
    wider_radius,
    fewer_neighbours,
    no_forest,
)


def tampered_fault(case: Realistic, seed: int) -> tuple[dict[str, int], str | None]:
    """Return how many changes of each kind made a claim false, and which such claim is not refuted; ``None`` where all are."""
    rng = np.random.default_rng([seed, 29])
    false = {change.__name__: 0 for change in CHANGES}
    for certificate in certificates(case)[:1]:
        for change in CHANGES:
            data = parts_of(certificate)
            change(data, rng)
            outcome = outcome_of(data, case.explainer.model, case.forests)[0]
            if outcome == "valid" and not is_true(mace.Certificate(**data), case.explainer.model, case.forests):
                return false, f"{change.__name__}: a false claim is valid"
            false[change.__name__] += outcome == "refuted"
        if case.forests and mace.verify(certificate, case.explainer.model, forests=[case.other_forest]).valid:
            return false, "valid with another forest"
    return false, None

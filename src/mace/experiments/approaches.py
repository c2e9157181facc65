"""The approaches that are compared: how each answers for one person, and what is kept of the answer."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from mace.answer.counterfactual import Change
from mace.answer.explanation import Explanation
from mace.baselines import BASELINES, Traits
from mace.constraints import Constraint, fixed, increases
from mace.distances import NORMS
from mace.experiments.setting import Setting, family_of

NAMED_CONSTRAINTS: dict[str, list[Constraint]] = {
    "": [],
    "age fixed": [fixed("age")],
    "age not reduced": [increases("age")],
}
"""Constraints by the name that the results file has for them."""

OURS = ("mace", "smt", "anytime")
"""``mace``: the automatic lane; ``smt``: the paper's algorithm; ``anytime``: the automatic lane, its progress kept."""

MACE = Traits(
    title="This package (MACE)",
    models=("tree", "forest", "lr", "mlp", "and those of mace list models"),
    data=("heterogeneous",),
    distances=(*NORMS, "mixtures", "functions"),
    is_plausible=True,
    is_optimal=True,
)


def traits_of(approach: str) -> Traits:
    """Return what a method declares."""
    if approach in OURS:
        return MACE
    found: Traits = BASELINES.load(approach).traits
    return found


def applies(approach: str, model_name: str, norm: str) -> bool:
    """Return whether a method takes a model and a distance."""
    traits = traits_of(approach)
    return (not traits.models or family_of(model_name).kind in traits.models) and norm in traits.distances


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One cell of a table: a setting, a norm, and an approach.

    Attributes
    ----------
    accuracy : float
        ε; 0 for a baseline, which has none.
    constraint : str
        A name from :data:`NAMED_CONSTRAINTS`.
    """

    dataset: str
    model: str
    norm: str
    approach: str
    accuracy: float = 0.0
    constraint: str = ""


def answer(cell: Cell, setting: Setting, number: int, limit: float | None) -> dict[str, Any]:
    """Return the line of the results file for one person, the ``number``-th factual of the setting."""
    row = int(setting.factuals[number])
    person = setting.data.frame.iloc[row]
    curve: list[tuple[int, float, float, float | None]] = []
    started, begun = time.monotonic(), time.process_time()

    def note(lower: float, upper: float, calls: int) -> None:
        curve.append((calls, round(time.monotonic() - started, 6), lower, upper if upper < 2 else None))

    constraints = NAMED_CONSTRAINTS[cell.constraint]
    if cell.approach not in OURS:
        explanation = setting.baseline(cell.approach).explain(person, distance=cell.norm, constraints=constraints)
    else:
        explanation = setting.explainer.explain(
            person,
            distance=cell.norm,
            constraints=constraints,
            accuracy=cell.accuracy,
            time_limit=limit if cell.approach == "smt" else None,
            solver="smt" if cell.approach == "smt" else "auto",
            on_progress=note if cell.approach != "mace" else None,
            round_to=None,
        )
    spent = {"cpu": float(f"{time.process_time() - begun:.4g}")}
    return (
        asdict(cell) | {"number": number, "row": row} | _kept(explanation) | spent | ({"curve": curve} if curve else {})
    )


def _kept(explanation: Explanation) -> dict[str, Any]:
    best = explanation[0] if explanation else None
    return {
        "distance": None if best is None else best.distance,
        "lower": explanation.lower,
        "status": str(explanation.status),
        "seconds": float(f"{explanation.seconds:.4g}"),
        "calls": 0 if best is None else best.calls,
        "changed": "" if best is None else ",".join(map(_direction, best.changes)),
    }


def _direction(change: Change) -> str:
    """Return a feature's name, with the sign of its change where it is a number."""
    before, after = change.before, change.after
    if isinstance(before, str) or isinstance(after, str):
        return change.feature
    return change.feature + ("+" if after > before else "-")


def warm_up(cell: Cell, setting: Setting) -> None:
    """Let kernels load and data be asked once, before anything is timed."""
    if cell.approach != "smt":
        answer(cell, setting, 0, None)

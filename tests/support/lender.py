"""A small lender whose answers are drawn, shown and written to people."""

from __future__ import annotations

import mace

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 90),
        "income": mace.real(0, 100),
        "housing": mace.categorical(["rent", "own", "free"]),
    }
)


def decide(age, income, housing):  # type: ignore[no-untyped-def]
    if housing == "own":
        return "grant" if income >= 30 else "refuse"
    return "grant" if income + age >= 100 else "refuse"


EXPLAINER = mace.Explainer(decide, SPACE)
ROW = {"age": 40, "income": 20.1, "housing": "rent"}
EXPLANATION = EXPLAINER.explain(ROW, constraints=["age stays"], digits=1)
SEVERAL = EXPLAINER.explain(ROW, count=3, diversity=mace.differ())
NONE = EXPLAINER.explain(ROW, constraints=["age, income, housing stay"])

"""``mace demo``: a refused applicant of the German credit data, explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from mace.datasets import Dataset

SEED = 0
PROTECTED = ("age", "personal_status_sex", "foreign_worker")
ROW = 4


RISING = ("employment_since", "job")
"""Features that are explained as what may only rise."""


def demo_model() -> tuple[Any, Dataset]:
    """Return a forest behind its encoder, fitted on the German credit data, and these data."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    import mace

    data = mace.datasets.load("german")
    forest = RandomForestClassifier(10, max_depth=5, random_state=SEED)
    return make_pipeline(mace.Encoder(data.space, ordinal="codes"), forest).fit(data.frame, data.labels), data


def run_demo(console: Console) -> int:
    """Fit a forest on the German credit data, explain one refusal, and print the answer with its bounds."""
    import mace
    from mace.constraints import Constraint

    model, data = demo_model()
    forest = model[-1]
    refused = [row for row, label in enumerate(model.predict(data.frame)) if label == "bad"]
    person = data.frame.iloc[refused[ROW]]
    constraints: list[Constraint] = [mace.fixed(*PROTECTED), mace.increases(*RISING)]

    console.print(
        f"Model: random forest of {len(forest.estimators_)} trees on {len(data.frame)} loans, {len(data.space)} features."
    )
    console.print(
        f"Applicant {refused[ROW]}, refused. Fixed: {', '.join(PROTECTED)}. May only rise: employment_since, job.\n"
    )
    explainer = mace.Explainer(model, data.space)
    explanation = explainer.explain(person, target="good", constraints=constraints, count=3, certify=True)
    console.print(explanation)
    best = explanation[0]
    console.print(
        f"\nThe nearest: distance {best.distance:.6f}; nothing nearer than {best.lower:.6f} exists "
        f"(proved in {1000 * best.seconds:.1f} ms)."
    )
    if best.certificate is not None:
        verdict = mace.verify(best.certificate, model)
        kilobytes = len(best.certificate.to_json()) / 1000
        console.print(f"Its certificate, {kilobytes:.1f} kB, checked without the solver: {verdict}.")
    console.print(
        f"The model itself says of the changed row: {model.predict(explanation.to_frame()[list(data.space)].iloc[[1]])[0]}."
    )
    return 0

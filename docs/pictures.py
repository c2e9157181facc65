"""Draw the pictures of docs/reports.md and the README: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.plots import BatchDisplay, BoundaryDisplay, BoundsDisplay, ChangesDisplay, MenuDisplay
from mace.plots.display import Display

HERE = Path(__file__).parent / "pictures"


def keep(name: str, display: Display) -> None:
    """Write a picture."""
    display.save(HERE / f"{name}.svg")
    (HERE / f"{name}.svg").chmod(0o644)


def main() -> None:
    """Draw them all."""
    HERE.mkdir(exist_ok=True)
    data = mace.datasets.load("german")
    encoder = mace.Encoder(data.space, categorical="codes", ordinal="codes")
    forest = RandomForestClassifier(20, max_depth=8, class_weight="balanced", random_state=0)
    model = make_pipeline(encoder, forest).fit(data.frame, data.labels)
    explainer = mace.Explainer(model, data.space)
    refused = data.frame[model.predict(data.frame) == "bad"]
    others = data.frame.sample(300, random_state=0)
    rules = ["age, personal_status_sex, foreign_worker stay"]
    wanted = mace.at_least(0.6, "good")
    several = explainer.explain(refused.iloc[0], target=wanted, distance="l0", constraints=rules, count=3)
    keep("changes", ChangesDisplay.from_explanation(several, 1, population=others))
    keep("several", ChangesDisplay.from_explanation(several))
    person = refused.iloc[2]
    keep("menu", MenuDisplay.from_levers(explainer.levers(person, target="good", constraints=rules, most=5)))
    nearest = explainer.explain(person, target="good", constraints=["age stays"])
    keep("boundary", BoundaryDisplay.from_explanation(explainer, nearest, ("duration_months", "credit_amount")))
    levers = mace.only("duration_months", "credit_amount", "housing", "employment_since")
    batch = explainer.explain_many(
        data.frame.iloc[:300], target=wanted, constraints=[levers, "credit_amount >= 0.5 * old.credit_amount"]
    )
    keep("batch", BatchDisplay.from_batch(batch))
    boosting = GradientBoostingClassifier(n_estimators=100, max_depth=5, random_state=0)
    slower = mace.Explainer(make_pipeline(encoder, boosting).fit(data.frame, data.labels), data.space)
    row = data.frame[slower.model.predict(data.frame) == "bad"].iloc[0]
    slower.explain(row, target="good")
    trace = BoundsDisplay()
    trace.finish(slower.explain(row, target="good", on_progress=trace))
    keep("bounds", trace)


if __name__ == "__main__":
    main()

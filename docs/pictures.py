"""Draw the pictures of docs/reports.md: ``python docs/pictures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.plots import BoundaryDisplay, BoundsDisplay, MenuDisplay
from mace.plots.display import Display

HERE = Path(__file__).parent / "pictures"


def keep(name: str, display: Display) -> None:
    """Write a picture."""
    display.figure_.savefig(HERE / f"{name}.svg", metadata={"Date": None})


def main() -> None:
    """Draw them all."""
    HERE.mkdir(exist_ok=True)
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "mace", "svg.fonttype": "none"})
    data = mace.datasets.load("german")
    encoder = mace.Encoder(data.space, categorical="codes", ordinal="codes")
    forest = RandomForestClassifier(20, max_depth=8, class_weight="balanced", random_state=0)
    model = make_pipeline(encoder, forest).fit(data.frame, data.labels)
    explainer = mace.Explainer(model, data.space)
    person = data.frame[model.predict(data.frame) == "bad"].iloc[2]
    explanation = explainer.explain(person, target="good", constraints=["age stays"])
    keep("changes", explanation.plot(population=data.frame.sample(300, random_state=0)))
    menu = explainer.levers(person, target="good", constraints=["age stays"], most=5)
    keep("menu", MenuDisplay.from_levers(menu).plot())
    names = ("duration_months", "credit_amount")
    keep("boundary", BoundaryDisplay.from_explanation(explainer, explanation, names).plot())
    boosting = GradientBoostingClassifier(n_estimators=100, max_depth=5, random_state=0)
    slower = mace.Explainer(make_pipeline(encoder, boosting).fit(data.frame, data.labels), data.space)
    row = data.frame[slower.model.predict(data.frame) == "bad"].iloc[0]
    slower.explain(row, target="good")
    trace = BoundsDisplay()
    trace.finish(slower.explain(row, target="good", on_progress=trace))
    keep("bounds", trace.plot())


if __name__ == "__main__":
    main()

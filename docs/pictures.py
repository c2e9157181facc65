"""Draw the pictures of docs/reports.md and the README: ``python docs/pictures.py``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
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


def photograph(cards: str) -> None:
    """Take pictures of cards as a notebook shows them, light and dark; where there is no Chromium, those there are stay."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.stderr.write("There is no chromium: the pictures of notebooks are not made anew.\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "cards.html"
        for theme, ground in {"light": "#fff", "dark": "#111"}.items():
            page.write_text(
                f'<!doctype html><html data-theme="{theme}"><head><meta charset="utf-8"></head>'
                f'<body style="background:{ground};margin:8px">{cards}</body></html>'
            )
            quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
            quiet += ["--hide-scrollbars", f"--user-data-dir={folder}/profile", "--window-size=860,1275"]
            picture = f"--screenshot={HERE / f'notebook-{theme}.png'}"
            subprocess.run([browser, *quiet, picture, page.as_uri()], check=True, capture_output=True, timeout=120)


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
    batch = explainer.explain_many(data.frame.iloc[:300], target="good", constraints=[levers])
    keep("batch", BatchDisplay.from_batch(batch))
    few = data.space.without(*list(data.space)[6:]).protect("checking_status")
    shown = [several, batch, few]
    photograph("".join(f'<div style="margin-bottom:8px">{each._repr_html_()}</div>' for each in shown))
    boosting = GradientBoostingClassifier(n_estimators=100, max_depth=5, random_state=0)
    slower = mace.Explainer(make_pipeline(encoder, boosting).fit(data.frame, data.labels), data.space)
    row = data.frame[slower.model.predict(data.frame) == "bad"].iloc[0]
    slower.explain(row, target="good")
    trace = BoundsDisplay()
    trace.finish(slower.explain(row, target="good", on_progress=trace))
    keep("bounds", trace)


if __name__ == "__main__":
    main()

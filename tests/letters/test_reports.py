"""Plots and notebooks: what they show is what the explanation says."""

from __future__ import annotations

import json
import math
from typing import Any

import matplotlib
import numpy as np
import pytest

import mace
from mace.answer.counterfactual import Change
from mace.answer.explanation import Explanation
from mace.plots import (
    BoundaryDisplay,
    BoundsDisplay,
    ChangesDisplay,
    DistancesDisplay,
    LeversDisplay,
    MenuDisplay,
    OutcomesDisplay,
)

matplotlib.use("Agg")

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


def texts(display: Any) -> str:
    return " ".join(text.get_text() for text in display.figure_.findobj(matplotlib.text.Text))


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


# ---- plots


def test_what_to_change_is_drawn_where_it_lies() -> None:
    display = EXPLANATION.plot(population=mace.FeatureSpace.frame_of(SPACE, [SPACE.point(ROW)]))
    assert isinstance(display, ChangesDisplay)
    (track,) = [track for track in display.tracks if track.change.feature == "income"]
    assert track.before == pytest.approx(0.201)
    assert track.after == pytest.approx(EXPLANATION[0].values["income"] / 100)  # type: ignore[operator]
    assert track.others == pytest.approx([0.201])
    assert "income" in texts(display)
    assert "20.1" in texts(display)
    assert "proved nearest" in texts(display)


def test_a_plot_goes_on_the_axes_given() -> None:
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    display = EXPLANATION.plot(ax=ax)
    assert display.ax_ is ax
    assert ax.get_yticklabels()


def test_an_explanation_from_json_needs_its_space() -> None:
    again = Explanation.from_dict(json.loads(EXPLANATION.to_json()))
    with pytest.raises(mace.InvalidOption, match="give space="):
        again.plot()
    assert again.plot(space=SPACE).tracks[0].change == EXPLANATION[0].changes[0]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(mace.InvalidOption, match="no counterfactual"):
        NONE.plot()
    with pytest.raises(mace.InvalidOption, match="number=2"):
        EXPLANATION.plot(2)
    with pytest.raises(mace.InvalidOption, match="no counterfactual"):
        MenuDisplay(())
    with pytest.raises(mace.InvalidOption, match="not a numeric feature"):
        BoundaryDisplay.from_explanation(EXPLAINER, EXPLANATION, ("age", "housing"))
    with pytest.raises(mace.InvalidOption, match="nothing was recorded"):
        BoundsDisplay().plot()


def test_the_boundary_is_what_the_model_says_and_the_ball_is_empty() -> None:
    explanation = EXPLAINER.explain(ROW)
    display = BoundaryDisplay.from_explanation(EXPLAINER, explanation, ("age", "income"), points=20)
    for i, income in enumerate(display.y):
        for j, age in enumerate(display.x):
            assert display.labels[i, j] == decide(age, income, "rent")
    inside = display.distances < display.lower
    assert inside.any()
    assert set(display.labels[inside]) == {"refuse"}
    display.plot()
    assert "proved: nothing inside" in texts(display)
    flipped = EXPLAINER.explain(ROW, constraints=["age stays"], distance="l0")
    other = BoundaryDisplay.from_explanation(EXPLAINER, flipped, ("age", "income"), distance="l0", points=5)
    assert set(other.others) <= {"housing"}
    other.plot()


def test_bounds_are_recorded_as_they_close() -> None:
    trace = BoundsDisplay()
    explanation = EXPLAINER.explain(ROW, solver="smt", on_progress=trace)
    trace.finish(explanation).plot()
    assert trace.lowers[-1] == explanation.lower
    assert trace.uppers[-1] == explanation[0].distance
    assert trace.seconds == sorted(trace.seconds)
    assert len(trace.lowers) > 3
    assert "in hand" in texts(trace)


def test_a_menu_has_a_column_an_alternative() -> None:
    display = MenuDisplay.from_explanation(SEVERAL).plot()
    assert display.features
    shown = texts(display)
    assert all(f"{number}." in shown for number in (1, 2, 3))
    assert f"{SEVERAL[0].distance:.3g}" in shown
    levers = EXPLAINER.levers(ROW)
    assert len(MenuDisplay.from_levers(levers).plot().answers) == len(levers)


def test_groups_are_drawn_each_by_name() -> None:
    distances = {"everyone": np.array([0.1, 0.2, 0.3]), "young": np.array([0.3])}
    lowers = {"everyone": np.array([0.1, 0.2, 0.2]), "young": np.array([0.3])}
    display = DistancesDisplay(distances, lowers, unit="l1 distance").plot()
    lines = display.ax_.get_lines()
    assert len(lines) == 3, "one a group, and the proven bounds of the one whose gap is open"
    assert lines[0].get_ydata()[-1] == 1
    assert "everyone (3)" in texts(display)
    levers = {"everyone": {"age": 0.5, "income": 0.9}, **{f"group {n}": {"age": 0.1} for n in range(12)}}
    drawn = LeversDisplay(levers, protected=["age"]).plot()
    assert drawn.features == ["income", "age"]
    assert "age (protected)" in texts(drawn)
    outcomes = OutcomesDisplay({"everyone": {"granted": 3, "none": 1}, "nobody": {}}).plot()
    assert "none exists: proved" in texts(outcomes)


# ---- notebooks


def test_a_notebook_shows_arrows_and_badges() -> None:
    assert "\u25b2" in EXPLANATION._repr_html_()
    assert ">certificate</span>" not in EXPLANATION._repr_html_()
    certified = EXPLAINER.explain(ROW, certify=True)._repr_html_()
    assert ">certificate</span>" in certified
    assert ">proved: none exists</span>" in NONE._repr_html_()
    late = EXPLAINER.explain(ROW, count=500, diversity=mace.differ(by=0), time_limit=0.2)
    assert isinstance(late._repr_html_(), str)


def test_arrows() -> None:
    assert [Change("x", a, b).arrow for a, b in ((1, 2), (2, 1), ("a", "b"), (math.nan, 2.0))] == list(
        "\u25b2\u25bc\u2192\u2192"
    )

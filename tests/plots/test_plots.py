"""Plots: what they show is what the explanation says, and no label hides another."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from drawn import LONG, answers_to_draw, shown_texts, unreadable
from lender import EXPLAINER, EXPLANATION, NONE, ROW, SEVERAL, SPACE, decide
from matplotlib.patches import FancyBboxPatch

import mace
from mace.answer.counterfactual import Change
from mace.answer.explanation import Explanation
from mace.batch import Batch
from mace.plots import (
    BatchDisplay,
    BoundaryDisplay,
    BoundsDisplay,
    ChangesDisplay,
    DistancesDisplay,
    LeversDisplay,
    MenuDisplay,
    OutcomesDisplay,
)
from mace.plots.tracks import track_of

matplotlib.use("Agg")


def texts(display: Any) -> str:
    return " ".join(text.get_text() for text in display.figure_.findobj(matplotlib.text.Text))


@pytest.fixture(autouse=True)
def closed() -> Any:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


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
    assert "income" in texts(display)


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
    with pytest.raises(mace.InvalidOption, match="population has no column 'age'"):
        EXPLANATION.plot(population=mace.FeatureSpace.frame_of(SPACE, [])[["income"]])
    with pytest.raises(mace.InvalidOption, match=r"Accepted: \.svg, \.png, \.pdf"):
        ChangesDisplay.from_explanation(EXPLANATION).save("changes.jpg")
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


def test_a_menu_has_a_line_an_alternative() -> None:
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
    assert len(lines) == 4, "one a group, the proven bounds of the one whose gap is open, and what dots mean"
    assert lines[0].get_ydata()[-1] == 1
    assert "everyone (3)" in texts(display)
    levers = {"everyone": {"age": 0.5, "income": 0.9}, **{f"group {n}": {"age": 0.1} for n in range(12)}}
    drawn = LeversDisplay(levers, protected=["age"]).plot()
    assert drawn.features == ["income", "age"]
    assert "age (protected)" in texts(drawn)
    outcomes = OutcomesDisplay({"everyone": {"granted": 3, "none": 1}, "nobody": {}}).plot()
    assert "proved that none exists" in texts(outcomes)


# ---- what can be read


@pytest.mark.parametrize(
    ("features", "answers"),
    [(2, 1), (7, 1), (30, 1), (6, 3), *(pytest.param(*n, marks=pytest.mark.slow) for n in ((2, 2), (12, 5), (30, 3)))],
)
def test_no_label_of_many_changes_lies_over_another_or_leaves_the_page(features: int, answers: int) -> None:
    display = answers_to_draw(features, answers).plot()
    assert unreadable(display.figure_) == []
    assert display.figure_.get_size_inches()[0] <= 8
    shown = [text.get_text() for text in shown_texts(display.figure_)]
    assert {"now", "instead", "asked for"} <= set(shown), "the legend"


@pytest.mark.parametrize("width", [3.0, pytest.param(4.5, marks=pytest.mark.slow), 12.0])
def test_answers_stand_below_each_other_where_the_axes_are_narrow(width: float) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 40), layout="constrained")
    answers_to_draw(6, 3).plot(ax=figure.subplots())
    assert unreadable(figure) == []


def test_the_check_of_labels_finds_those_that_cannot_be_read() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    for x in (0.5, 0.52, 0.99):
        figure.text(x, 0.5, "label")
    assert unreadable(figure) == ["'label' lies over 'label'", "'label' leaves the figure"]


@pytest.mark.slow
def test_a_menu_of_fifteen_fits_a_page() -> None:
    display = MenuDisplay.from_explanation(answers_to_draw(8, 15)).plot()
    assert display.figure_.get_size_inches()[0] <= 8
    assert unreadable(display.figure_) == []
    assert "15." in texts(display)


def test_only_a_dozen_answers_are_drawn_and_the_others_counted() -> None:
    display = ChangesDisplay.from_explanation(answers_to_draw(2, 14))
    assert len(display.answers) == 12
    assert "and 2 more counterfactuals" in texts(display.plot())


def test_groups_can_be_read() -> None:
    names = ["everyone", *(f"column_{number} a group of a long name" for number in range(8))]
    rng = np.random.default_rng(0)
    distances = {name: rng.uniform(0, 1, 30) for name in names}
    levers = {name: {f"feature_{number}": 1 / (1 + number) for number in range(20)} for name in names}
    for display in (
        DistancesDisplay(distances, {name: found / 2 for name, found in distances.items()}),
        LeversDisplay(levers, protected=["feature_0"]),
        OutcomesDisplay({name: {"granted": 3, "recourse": 50, "none": 1, "unknown": 2, "error": 1} for name in names}),
    ):
        assert unreadable(display.plot().figure_) == [], type(display).__name__
        assert display.size[0] <= 8


def test_groups_differ_by_more_than_colour() -> None:
    from mace.plots.groups import group_look

    looks = [group_look(number) for number in range(28)]
    assert len(set(map(str, looks))) == 28
    assert len({look[1:] for look in looks[:4]}) == 4


# ---- what is drawn


def test_a_category_has_chips_and_no_line() -> None:
    flipped = EXPLAINER.explain(ROW, constraints=["age, income stay"], target="grant")
    assert not flipped, "own is not enough with this income"
    richer = EXPLAINER.explain({**ROW, "income": 35.0}, constraints=["age, income stay"], target="grant")
    display = richer.plot(population=SPACE.frame_of([SPACE.point(ROW), SPACE.point({**ROW, "housing": "own"})]))
    (track,) = display.tracks
    assert track.is_category
    assert track.about == "of others: 50% rent, 50% own"
    chips = [patch for patch in display.figure_.findobj(FancyBboxPatch) if patch.get_height() > 0.2]
    assert len(chips) == 2
    marks = [line for line in display.ax_.get_lines() if line.get_marker() in ("o", "D")]
    assert not [line for line in marks if line.get_ydata()[0] < 0.8], "marks stand in the legend alone"


def test_names_kept_with_the_space_are_drawn() -> None:
    known = SPACE.describe(
        names={"housing": "home", "income": "yearly income"},
        levels={"housing": {"rent": "rented", "own": "owned"}},
        outcomes={"refuse": "declined", "grant": "approved"},
    )
    richer = EXPLAINER.explain({**ROW, "income": 35.0}, constraints=["age, income stay"], target="grant")
    population = SPACE.frame_of([SPACE.point(ROW), SPACE.point({**ROW, "housing": "own"})])
    display = ChangesDisplay.from_explanation(richer, space=known, population=population)
    (track,) = display.tracks
    assert (track.name, track.texts, track.about) == ("home", ("rented", "owned"), "of others: 50% rented, 50% owned")
    display.plot()
    assert "declined \u2192 approved" in texts(display)
    menu = MenuDisplay(tuple(richer), known)
    menu.plot()
    assert "home rented \u2192 owned" in texts(menu)


def test_every_picture_has_the_names_that_people_know() -> None:
    known = SPACE.describe(
        names={"income": "yearly income"}, levels={"housing": {"own": "owned"}}, outcomes={"grant": "approved"}
    )
    explainer = mace.Explainer(decide, known)
    several = explainer.explain(ROW, "grant", count=3)
    everyone = explainer.explain_many([{"age": 17}, ROW], target="grant", constraints=["age, housing stay"])
    for display in (
        several.plot(),
        everyone.plot(),
        MenuDisplay.from_explanation(several).plot(),
        explainer.levers(ROW, "grant").plot(),
        BoundaryDisplay.from_explanation(explainer, several, ("age", "income"), points=5).plot(),
    ):
        words = texts(display)
        assert "yearly income" in words
        assert "income" not in words.replace("yearly income", "")
    assert "approved" in words
    assert "grant" not in words


def test_ordered_levels_lie_on_a_line_in_their_order() -> None:
    display = ChangesDisplay.from_explanation(answers_to_draw(6))
    (track,) = [track for track in display.tracks if track.levels]
    assert track.levels == pytest.approx((0, 1 / 3, 2 / 3, 1))
    assert {track.before, track.after} <= set(track.levels)


def test_missing_values_and_dates_are_written_and_have_no_place_or_one() -> None:
    found = [
        track for seed in range(6) for track in ChangesDisplay.from_explanation(answers_to_draw(6, seed=seed)).tracks
    ]
    missing = [track for track in found if "missing" in track.texts and not track.is_category]
    assert missing
    assert all(np.isnan(track.before if track.texts[0] == "missing" else track.after) for track in missing)
    dates = [track for track in found if "-" in track.texts[0] and track.texts[0][:2] == "20"]
    assert dates
    assert all(0 <= track.after <= 1 for track in dates)


def test_dollars_underscores_and_letters_are_drawn_as_written() -> None:
    shown = texts(answers_to_draw(5).plot())
    for name in ("income $ per year 0", "größe_Δ_σ 1", "_hidden 4"):
        assert name in shown
    assert LONG[:20] in texts(answers_to_draw(3, seed=1).plot())


def test_the_score_is_drawn_by_the_name_of_the_outcome() -> None:
    drawn = answers_to_draw(2)
    assert drawn.space is not None
    display = ChangesDisplay.from_explanation(drawn, space=drawn.space.describe(outcomes={"good": "approved"}))
    assert display.answers[0].score is not None
    assert display.answers[0].score.name == "P(approved)"


def test_features_have_one_order_in_all_blocks() -> None:
    from matplotlib.figure import Figure

    display = SEVERAL.plot(ax=Figure(figsize=(4, 20)).subplots())
    changed = [[each.change.feature for each in answer.tracks] for answer in display.answers]
    assert changed == [["income"], ["age", "income"], ["age", "income"]]
    names = [text for text in display.figure_.findobj(matplotlib.text.Text) if text.get_text() in SPACE]
    below = sorted(names, key=lambda text: -text.get_window_extent().y0)
    assert [text.get_text() for text in below] == ["income", "income", "age", "income", "age"]


def test_the_score_is_drawn_with_what_is_asked_for() -> None:
    (answer,) = ChangesDisplay.from_explanation(answers_to_draw(2)).answers
    assert answer.score is not None
    assert (answer.score.before, answer.score.after) == (0.38, 0.5)
    assert answer.score.wanted == (0.5, 1.0)
    assert answer.score.about == "threshold 0.5"
    (answer,) = ChangesDisplay.from_explanation(answers_to_draw(2, threshold=(0.4, 0.6))).answers
    assert answer.score is not None
    assert answer.score.wanted == (0.4, 0.6)
    (answer,) = ChangesDisplay.from_explanation(answers_to_draw(2, threshold=None)).answers
    assert answer.score is not None
    assert answer.score.wanted is None
    (answer,) = ChangesDisplay.from_explanation(EXPLANATION).answers
    assert answer.score is None, "a function reports nothing but labels"


def test_the_prediction_of_a_regression_has_a_line_of_its_own() -> None:
    space = mace.FeatureSpace({"area": mace.real(0, 200)})
    priced = mace.Explainer(_price, space).explain({"area": 50.0}, target=mace.at_least(400))
    display = priced.plot()
    score = display.answers[0].score
    assert score.name == "prediction"
    assert 0 < score.before < score.wanted[0] <= score.after < score.wanted[1] == 1
    assert unreadable(display.figure_) == []


def _price(area):  # type: ignore[no-untyped-def]
    return 4 * area + 10


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_a_picture_is_the_same_for_the_same_data(tmp_path: Path, suffix: str) -> None:
    display = ChangesDisplay.from_explanation(EXPLANATION)
    for name in ("one", "two"):
        display.save(tmp_path / f"{name}{suffix}")
    first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert first == second
    assert len(first) > 1000


# ---- batches


def batch_of(rows: int, **question: Any) -> Batch:
    frame = SPACE.frame_of([SPACE.point({**ROW, "age": 18 + n % 60, "income": n % 50}) for n in range(rows)])
    return EXPLAINER.explain_many(frame, target="grant", **question)


def test_a_batch_is_drawn_as_it_is() -> None:
    batch = batch_of(60, constraints=["age stays", "income <= 60"])
    display = batch.plot()
    assert isinstance(display, BatchDisplay)
    assert display.statuses == batch.counts
    assert set(batch.counts) == {"optimal", "infeasible", "reached"} & set(batch.counts)
    answered = [explanation for explanation in batch if explanation]
    assert sorted(display.distances) == sorted(explanation[0].distance for explanation in answered)
    changed = sum(any(change.feature == "income" for change in each[0].changes) for each in answered)
    assert display.levers["income"] == pytest.approx(changed / len(answered))
    shown = texts(display)
    assert f"proved nearest: {batch.counts['optimal']} (" in shown
    assert f"of {len(answered)} nearest answers change it" in shown
    assert unreadable(display.figure_) == []


def test_a_batch_without_answers_or_rows_says_so() -> None:
    display = batch_of(3, constraints=["age, income, housing stay"]).plot()
    assert len(display.ax_) == 1
    assert "proved that none exists: 3 (100.0%)" in texts(display)
    with pytest.raises(mace.InvalidOption, match="no rows"):
        batch_of(0).plot()
    with pytest.raises(mace.InvalidOption, match="1 axes; give 3"):
        batch_of(3).plot(matplotlib.figure.Figure().subplots())


def test_a_large_batch_is_drawn_with_few_corners() -> None:
    distances = np.random.default_rng(0).uniform(0, 1, 200_000)
    levers = {f"feature {number}": 1 / (1 + number) for number in range(500)}
    display = BatchDisplay({"optimal": 200_000}, distances, distances / 2, levers).plot()
    assert all(len(line.get_xdata()) < 1100 for line in display.ax_[1].get_lines())
    assert "200,000 rows" in texts(display)
    assert unreadable(display.figure_) == []


# ---- without matplotlib


DRAWN: dict[str, Callable[[], Any]] = {
    "changes": lambda: EXPLANATION.plot(),
    "menu": lambda: MenuDisplay.from_explanation(SEVERAL).plot(),
    "boundary": lambda: BoundaryDisplay.from_explanation(EXPLAINER, EXPLANATION, ("age", "income"), points=3).plot(),
    "bounds": lambda: BoundsDisplay().finish(EXPLANATION).plot(),
    "batch": lambda: BatchDisplay({"reached": 1}, np.empty(0), np.empty(0), {}).plot(),
    "saved": lambda: ChangesDisplay.from_explanation(EXPLANATION).save("changes.svg"),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_without_matplotlib_the_command_that_installs_it_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(mace.MissingPackage, match=r"matplotlib is not installed.* pip install 'mace-xai\[plot\]'"):
        DRAWN[kind]()


def test_long_decimals_are_shortened_unless_that_makes_them_the_same() -> None:
    space = mace.FeatureSpace({"income": mace.real(0, 100)})
    near, far = (Change("income", 77.75666371002445, after) for after in (77.75666371002447, 12.3456789012345))
    answer = EXPLANATION[0]
    assert track_of(far, answer, space).texts == ("77.7567", "12.3457")
    assert track_of(near, answer, space).texts == ("77.75666371002445", "77.75666371002447")
    assert track_of(Change("income", 20.1, 35.0), answer, space).texts == ("20.1", "35")
    counted = space.describe(units={"income": "EUR a year"})
    assert track_of(far, answer, counted).texts == ("77.7567 EUR a year", "12.3457 EUR a year")

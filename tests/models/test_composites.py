"""Several models as one: polylines beside the sigmoid, sums and votes as forms, and the lane that cuts curves."""

from __future__ import annotations

import warnings
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_composites import against_brute_force, against_samples, random_composite
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_composites import GRID, MODELS, SPACE, draw, fitted

import mace
from mace import FeatureSpace, InvalidOption, real
from mace.forms import Composite, Outcomes, Polyline
from mace.forms.polyline import HEIGHT_ERROR, above_sigmoid, below_sigmoid, sigmoid
from mace.language import run
from mace.models import read
from mace.models.agreement import agrees


def logistic(**settings: Any) -> Any:
    return make_pipeline(mace.Encoder(SPACE), LogisticRegression(**settings))


# ---- polylines


def exact_sigmoid(z: float) -> Fraction:
    getcontext().prec = 60
    return Fraction(1 / (1 + (-Decimal(z)).exp()))


def test_the_polylines_never_cross_the_sigmoid_and_touch_it_where_they_should() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        low = float(rng.choice([-30, -5, -0.3, 0.2, 3, 40])) + float(rng.normal())
        high = low + float(rng.choice([1e-7, 0.01, 1, 12, 80]))
        touching = [float(z) for z in rng.uniform(low, high, int(rng.integers(0, 7)))]
        touching += [z + float(rng.choice([1e-9, 1e-5])) for z in touching[:1]]
        above, below = above_sigmoid(touching, low, high), below_sigmoid(touching, low, high)
        knots = [z for z in (*above.knots, *below.knots, *touching) if low <= z <= high]
        for z in (low, high, *knots, *map(float, rng.uniform(low, high, 20))):
            exact = exact_sigmoid(z)
            assert below.value(Fraction(z)) <= exact <= above.value(Fraction(z)), (z, touching, low, high)
        for z in (z for z in touching if low < z < high):
            assert above.value(Fraction(z)) - below.value(Fraction(z)) <= Fraction(1, 10**9)
    assert abs(sigmoid(-40.0) - float(exact_sigmoid(-40.0))) < HEIGHT_ERROR


def test_the_pieces_of_a_polyline_say_what_its_value_is() -> None:
    line = Polyline((-1.0, 0.5, 2.0), (0.25, 0.5, 2.0))
    for z in (Fraction(-7), Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(9, 8), Fraction(2), Fraction(5)):
        fitting = [
            piece.slope * z + piece.shift
            for piece in line.pieces
            if (piece.low is None or piece.low <= z) and (piece.high is None or z <= piece.high)
        ]
        assert set(fitting) == {line.value(z)}
    assert (line.steepest, line.greatest) == (1, 2.0)


# ---- the form


@pytest.mark.parametrize("name", MODELS)
def test_beyond_its_band_the_form_decides_as_the_model(name: str) -> None:
    model, _ = fitted(name)
    reading = read(model, SPACE)
    form = reading.form
    assert isinstance(form, Composite)
    rng = np.random.default_rng(1)
    points = [draw(SPACE, rng) for _ in range(120)]
    sure = 0
    for point, code in zip(points, reading.ask(points), strict=True):
        box = tuple((Fraction(value), Fraction(value)) for value in point)
        if form.is_beyond_rounding(point, Outcomes(frozenset([code])), box):
            assert form.predicted(point) == code
            sure += 1
        assert form.rounding(box) < Fraction(1, 10**9)
    assert sure > 90
    assert mace.testing.check_model(model, SPACE, count=40).decided > 50


@pytest.mark.parametrize("name", MODELS)
def test_an_answer_is_compared_with_the_form_in_floats_as_it_would_be_exactly(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = fitted(name)
    form = read(model, SPACE).form
    assert isinstance(form, Composite)
    rng = np.random.default_rng(2)
    points = [draw(SPACE, rng) for _ in range(60)]
    codes = [Fraction(form.predicted(point)) for point in points]
    for point, code in zip(points, codes, strict=True):
        assert not agrees(form, [point], [1 - code])
    monkeypatch.setattr(Composite, "exact_scores", lambda *_: pytest.fail("floats do"))
    assert agrees(form, points, codes)


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("soft") or "logistics" in name])
def test_the_form_reports_the_probability_of_the_model_within_its_rounding(name: str) -> None:
    model, _ = fitted(name)
    reading = read(model, SPACE)
    form = reading.form
    assert isinstance(form, Composite)
    assert reading.rate is not None
    rng = np.random.default_rng(2)
    points = [draw(SPACE, rng) for _ in range(100)]
    for point, chance in zip(points, reading.rate(points, 1), strict=True):
        box = tuple((Fraction(value), Fraction(value)) for value in point)
        assert abs(form.exact_scores(point)[0] + Fraction(1, 2) - chance) <= form.rounding(box)


@pytest.mark.parametrize(
    "name", ["hard votes of linear models", "hard votes of a forest and linear models", "isotonic svcs"]
)
def test_the_program_of_a_composite_returns_what_the_model_predicts(name: str) -> None:
    model, _ = fitted(name)
    reading = read(model, SPACE)
    rng = np.random.default_rng(3)
    points = [draw(SPACE, rng) for _ in range(40)]
    program = reading.form.program()
    for point, code in zip(points, reading.ask(points), strict=True):
        values = {name: Fraction(value) for name, value in zip(SPACE, point, strict=True)}
        assert run(program, values) == code


def test_a_mean_of_sigmoids_has_no_program_and_no_formula() -> None:
    model, frame = fitted("calibrated svcs")
    with pytest.raises(mace.UnsupportedModel, match="no program"):
        read(model, SPACE).form.program()
    explainer = mace.Explainer(model, SPACE)
    for solver in ("milp", "smt", "z3"):
        with pytest.raises(InvalidOption, match="mean of sigmoids"):
            explainer.explain(frame.iloc[0], solver=solver)


# ---- answers


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("distance", ["l1", "linf"])
def test_no_sampled_row_is_nearer_than_the_proved_optimum(name: str, distance: str) -> None:
    model, frame = fitted(name)
    explainer = mace.Explainer(model, SPACE)
    row = frame.iloc[1]
    found = explainer.explain(row, distance=distance)
    assert found.status == "optimal", found.reason
    best = found[0]
    assert model.predict(pd.DataFrame([best.values]))[0] == best.prediction != model.predict(frame.iloc[[1]])[0]
    assert best.distance - best.lower <= 1e-6
    metric = mace.Distance(**{distance: 1.0}).from_factual(SPACE, SPACE.point(row))
    rng = np.random.default_rng(4)
    own, far = np.array(SPACE.point(row), dtype=float), np.array(SPACE.point(best.values), dtype=float)
    points = []
    for _ in range(4000):
        moved = own + (far - own) * rng.uniform(0, 1.1) + rng.normal(0, [0.4, 1, 0.3, 0.3]) * rng.choice([0.05, 0.4])
        kept = np.where(rng.random(4) < 0.3, own, moved)
        low, high = np.array([-3, 0, 0, -2]), np.array([3, 6, 2, 2])
        x, n, cat, y = np.clip(kept, low, high).tolist()
        points.append((x, round(n), round(cat), y))
    near = [point for point in points if metric.measure(point) < Fraction(best.lower)]
    assert len(near) > 100
    assert (model.predict(SPACE.frame_of(near)) != best.prediction).all()


@pytest.mark.parametrize("name", ["calibrated svcs", "soft votes, one an mlp", "soft votes, one a forest"])
@pytest.mark.parametrize(
    "target",
    [mace.at_least(0.8, "yes"), mace.at_most(0.15, "yes"),
     mace.between(0.6, 0.7, "yes"), mace.at_least(0.9, "no"), mace.becomes("yes", margin=0.5)],
    ids=str,
)  # fmt: skip
def test_bounds_on_the_mean_probability_are_met_as_brute_force_meets_them(name: str, target: Any) -> None:
    model, _ = fitted(name)
    explainer = mace.Explainer(model, GRID)
    for row in ({"x": 0.5, "n": 3, "cat": "a", "y": 0.5}, {"x": -1.0, "n": 1, "cat": "c", "y": 0.0}):
        try:
            truth = explainer.explain(row, target, solver="enumerate")
        except mace.InvalidTarget:
            continue
        if truth.status == "reached":
            continue
        found = explainer.explain(row, target)
        assert found.status == truth.status, found.reason
        if truth:
            assert found[0].distance == truth[0].distance


@pytest.mark.parametrize(
    "name", ["calibrated svcs", "soft votes, one a forest", "hard votes of a forest and linear models"]
)
def test_constraints_and_diversity_hold_of_composites(name: str) -> None:
    model, _ = fitted(name)
    explainer = mace.Explainer(model, GRID)
    row = {"x": 0.5, "n": 3, "cat": "a", "y": 0.5}
    conditions = [mace.increases("n"), mace.rule(lambda new, old: new.x + new.y <= 2)]
    found = explainer.explain(row, constraints=conditions, count=3)
    truth = explainer.explain(row, constraints=conditions, count=3, solver="enumerate")
    assert [best.distance for best in found] == [best.distance for best in truth]
    fixed = explainer.explain(row, constraints=[mace.fixed("x", "n", "cat", "y")])
    assert fixed.status == "infeasible"


def test_l2_is_answered_by_the_lane_of_curves_too() -> None:
    model, _ = fitted("calibrated svcs")
    explainer = mace.Explainer(model, GRID)
    row = {"x": 0.5, "n": 3, "cat": "a", "y": 0.5}
    found, truth = (explainer.explain(row, distance="l2", solver=solver) for solver in ("auto", "enumerate"))
    assert found[0].distance == truth[0].distance


def test_the_explanation_says_which_lane_answered_and_why() -> None:
    model, frame = fitted("calibrated svcs")
    found = mace.Explainer(model, SPACE).explain(frame.iloc[0])
    assert found.solver.startswith(
        "curves: the first lane that can; not trees: the model is not a tree ensemble; not network"
    )
    model, frame = fitted("hard votes of linear models")
    found = mace.Explainer(model, SPACE).explain(frame.iloc[0])
    assert found.solver.startswith("milp")
    assert "not curves: the model is no mean of sigmoids" in found.solver


def test_a_deadline_leaves_a_bound_and_the_best_point() -> None:
    bunch = load_breast_cancer(as_frame=True)
    model = VotingClassifier(
        [("a", make_pipeline(StandardScaler(), LogisticRegression())), ("b", RandomForestClassifier(60, random_state=0))],
        voting="soft",
    ).fit(bunch.data, bunch.target)  # fmt: skip
    explainer = mace.Explainer(model, FeatureSpace.from_frame(bunch.data))
    found = explainer.explain(bunch.data.iloc[0], time_limit=1.0)
    assert found.status in ("feasible", "unknown")
    assert found.reason == "time limit reached"
    assert found.lower >= 0


def test_an_optimum_by_votes_can_be_certified() -> None:
    model, _ = fitted("hard votes of linear models")
    answer = mace.Explainer(model, GRID).explain({"x": 0.5, "n": 3, "cat": "a", "y": 0.5}, certify=True)[0]
    assert mace.verify(answer.certificate, model).valid


@pytest.mark.parametrize("seed", range(50_000, 50_012))
def test_random_composites_are_answered_as_brute_force_does(seed: int) -> None:
    case = random_composite(seed)
    assert case is None or against_brute_force(case) is None


# The first ones end in ties of counted votes, or of a leaf's shares: no gap may be left there.
@pytest.mark.parametrize("seed", [10_018, 10_051, 10_066, 10_092, *range(60_000, 60_006)])
def test_no_row_nearer_than_lower_reaches_the_target_of_a_random_composite(seed: int) -> None:
    case = random_composite(seed, finite=False)
    assert case is None or against_samples(case, np.random.default_rng(seed)) is None


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_votes_of_boosters_are_counted_in_their_own_arithmetic(voting: str) -> None:
    import lightgbm
    import xgboost

    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)).round(1)
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    space = FeatureSpace({"x": real(-3, 3, step=0.1), "y": real(-3, 3, step=0.1)})
    single = [xgboost.XGBClassifier(n_estimators=n, max_depth=2) for n in (2, 3)]
    mixed = [lightgbm.LGBMClassifier(n_estimators=3, verbose=-1), LogisticRegression()]
    for members in (single, mixed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = VotingClassifier([(str(k), member) for k, member in enumerate(members)], voting=voting).fit(X, y)
            explainer = mace.Explainer(model, space)
            found, truth = (explainer.explain(X[0].tolist(), solver=solver) for solver in ("auto", "enumerate"))
        assert found[0].distance == truth[0].distance

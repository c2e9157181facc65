"""Round answers: proved nearest among the multiples of a step, against brute force; what is rounded by default, and what is not."""

from __future__ import annotations

import itertools
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mace
from mace.answer.counterfactual import show_value
from mace.answer.rounding import rounded, steps_of


def training(seed: int, rows: int = 300) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "rate": rng.integers(-10, 32, rows) / 10,
            "amount": rng.integers(3, 45, rows) * 10,
            "kind": rng.choice(["x", "y", "z"], rows),
            "years": rng.integers(0, 5, rows),
        }
    )
    weights = rng.normal(size=4)
    score = frame.rate * weights[0] + frame.amount / 100 * weights[1] + (frame.kind == "x") * 2 * weights[2]
    score += frame.years * 0.3 * weights[3] + rng.normal(0, 0.3, rows)
    return frame, (score > score.median()).astype(int)


def explained(seed: int, **options: Any) -> tuple[Any, mace.FeatureSpace, dict[str, Any], mace.Explanation]:
    frame, labels = training(seed)
    space = mace.FeatureSpace.from_frame(frame)
    estimator = [RandomForestClassifier(5, max_depth=4, random_state=seed), LogisticRegression(max_iter=1000)][seed % 2]
    model = make_pipeline(mace.Encoder(space), estimator).fit(frame, labels)
    row = frame.iloc[0].to_dict()
    if seed % 5 == 0:
        row["rate"] = row["rate"] - 0.033 if row["rate"] > 0 else row["rate"] + 0.033
    return model, space, row, mace.Explainer(model, space).explain(row, **options)


def multiples(feature: Any, step: float | None) -> list[Any]:
    if step is None:
        return list(range(feature.low, feature.high + 1))
    unit, low, high = (Fraction(repr(number)) for number in (step, feature.low, feature.high))
    return [float(k * unit) for k in range(-(-low // unit), high // unit + 1)]


def nearest(
    model: Any, space: mace.FeatureSpace, row: dict[str, Any], steps: dict[str, float], of: set[str] | None = None
) -> float | None:
    """Return the least distance among round rows, or those that change some features only, that the model puts elsewhere, by trying all."""
    numbers = ("rate", "amount", "years")
    values = {name: sorted({*multiples(space[name], steps.get(name)), row[name]}) for name in numbers}
    values["kind"] = ["x", "y", "z"]
    values |= {name: [row[name]] for name in space if of is not None and name not in of}
    every = pd.DataFrame(list(itertools.product(*(values[name] for name in space))), columns=list(space))
    every = every.astype({"amount": int, "years": int})
    distance = (every.kind != row["kind"]).astype(float)
    for name in numbers:
        feature: Any = space[name]
        distance += abs(every[name] - row[name]) / (feature.high - feature.low)
    found = (distance / len(space))[model.predict(every) != model.predict(pd.DataFrame([row]))[0]]
    return None if found.empty else float(found.min())


@pytest.mark.parametrize("seed", range(12))
def test_an_answer_is_the_nearest_of_all_round_ones(seed: int) -> None:
    round_to: Any = ["auto", {"rate": 0.5, "amount": 50}, {"amount": 7}][seed % 3]
    round_to = {"rate": 0.1} if round_to == "auto" and seed % 2 else round_to
    model, space, row, answer = explained(seed, round_to=round_to, certify=True)
    steps = {"rate": 0.1, "amount": 10, **(round_to if isinstance(round_to, dict) else {})}
    assert answer.round_to == steps
    best = nearest(model, space, row, steps)
    assert best is not None
    assert answer.status == "optimal"
    assert answer[0].distance == pytest.approx(best, abs=2e-6)
    for name, step in steps.items():
        value = Fraction(repr(answer[0].values[name]))
        assert value == Fraction(repr(row[name])) or value % Fraction(repr(step)) == 0
    assert answer[0].certificate is not None
    assert mace.verify(answer[0].certificate, model).valid
    assert answer.lower_unrounded is not None
    assert answer.lower_unrounded <= answer.lower


def test_data_say_what_is_round() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "cents": rng.integers(0, 5000, 100) / 100,
            "hundreds": rng.integers(0, 60, 100) * 100,
            "whole": rng.integers(0, 60, 100).astype(float),
            "float32": (rng.integers(0, 500, 100) / 10).astype("float32"),
            "any": rng.normal(size=100),
            "few": rng.integers(0, 20, 100) / 10,
            "count": rng.integers(0, 60, 100),
            "fine": rng.integers(1, 10**6, 100) * 1e3 + 1e-6,
        }
    )
    space = mace.FeatureSpace.from_frame(frame)
    assert space.round_to == {"cents": 0.01, "hundreds": 100, "whole": 1.0, "float32": 0.1}
    assert "rounded to multiples of 0.01" in space.guesses["cents"]
    assert all(getattr(feature, "step", None) is None for feature in space.values())
    assert mace.FeatureSpace.from_json(space.to_json()).round_to == space.round_to
    assert pickle.loads(pickle.dumps(space)).round_to == space.round_to
    assert space.replace(cents=mace.real(0, 9)).round_to == space.round_to
    assert space.replace(cents=mace.integer(0, 9)).round_to == {"hundreds": 100, "whole": 1.0, "float32": 0.1}
    assert space == mace.FeatureSpace(dict(space))
    wide = space.replace(count=mace.integer(0, 10))
    assert wide.round_to == space.round_to


def test_none_switches_rounding_off_and_digits_are_a_step() -> None:
    _, _, _, raw = explained(2, round_to=None)
    assert raw.round_to == {}
    assert raw.lower_unrounded == raw.lower
    assert "round" not in raw.headline()
    _, _, _, short = explained(2, digits=1)
    assert short.round_to == {"rate": 0.1, "amount": 10}
    assert short.status == "optimal"
    assert "proved nearest among round values" in short.headline()
    _, _, _, one = explained(2, round_to={"rate": None})
    assert one.round_to == {"amount": 10}
    _, _, _, all_reals = explained(2, round_to=0.5)
    assert all_reals.round_to == {"rate": 0.5, "amount": 10}


def test_where_nothing_round_is_an_answer_another_is_given() -> None:
    frame = pd.DataFrame({"x": np.linspace(0, 10, 41)})
    model = RandomForestClassifier(1, bootstrap=False, random_state=0)
    model.fit(frame, ((frame.x > 3.1) & (frame.x < 3.9)).astype(int))
    explainer = mace.Explainer(model, mace.FeatureSpace({"x": mace.real(0, 10)}))
    answer = explainer.explain([1.0], 1, round_to=1)
    assert answer.status == "optimal"
    assert answer.round_to == {}
    assert answer.reason == "no answer has round values only"
    none = explainer.explain([1.0], 1, constraints=["x <= 2"], round_to=1)
    assert none.status == "infeasible"
    assert [str(each) for each in none.conflict] == ["rule('x <= 2')"]


def test_ranges_and_widths_stay_where_their_ends_are_not_round() -> None:
    space = mace.FeatureSpace({"x": mace.real(0.37, 9.51), "n": mace.integer(3, 250)})
    made, kept = rounded(space, {"x": 0.5, "n": 100})
    assert (made["x"].low, made["x"].high, made["n"].low, made["n"].high) == (0.0, 10.0, 0, 300)
    assert made["x"].range == space["x"].range
    assert made["n"].range == space["n"].range
    assert [str(each) for each in kept] == ["within('x', 0.37, 9.51)", "within('n', 3, 250)"]
    assert mace.FeatureSpace.from_json(made.to_json()) == made


def test_bad_steps_are_refused() -> None:
    space = mace.FeatureSpace({"x": mace.real(0, 1), "n": mace.integer(0, 9), "k": mace.categorical(["a", "b"])})
    for round_to, said in [
        ({"y": 1}, "not a feature"),
        ({"k": 1}, "has no numbers"),
        ({"n": 0.5}, "is whole"),
        ({"x": 0}, "positive number"),
        ({"x": True}, "positive number"),
        ("no", "positive number"),
        (-1, "positive number"),
    ]:
        with pytest.raises(mace.InvalidOption, match=said):
            steps_of(space, round_to, None)  # type: ignore[arg-type]


def test_noise_and_causes_are_not_asked_about_round_values() -> None:
    frame, labels = training(1)
    space = mace.FeatureSpace.from_frame(frame)
    model = make_pipeline(mace.Encoder(space), LogisticRegression(max_iter=1000)).fit(frame, labels)
    explainer = mace.Explainer(model, space)
    noise = mace.robust({"rate": 0.05})
    assert explainer.explain(frame.iloc[0], constraints=[noise]).round_to == {}
    with pytest.raises(mace.InvalidOption, match="robust"):
        explainer.explain(frame.iloc[0], constraints=[noise], round_to={"rate": 0.1})
    causal = mace.Explainer(model, space, mace.Causal({"rate": "amount / 100"}))
    assert causal.explain(frame.iloc[0]).round_to == {}
    with pytest.raises(mace.InvalidOption, match="causes"):
        causal.explain(frame.iloc[0], round_to=1)


@pytest.mark.parametrize("seed", range(1, 24, 2))
def test_a_sums_answer_is_the_nearest_round_one_that_changes_no_other_features(seed: int) -> None:
    model, space, row, answer = explained(seed, certify=True)
    raw = mace.Explainer(model, space).explain(row, round_to=None)
    changed = {change.feature for change in raw[0].changes}
    assert {change.feature for change in answer[0].changes} <= changed
    assert answer.status == "optimal"
    assert answer.lower_unrounded == raw.lower <= answer.lower
    if not answer.rounds_changes:
        assert answer[0].values == raw[0].values
        return
    assert answer.round_to == {"rate": 0.1, "amount": 10}
    best = nearest(model, space, row, answer.round_to, changed)
    assert best is not None
    assert answer[0].distance == pytest.approx(best, abs=2e-6)
    assert "proved nearest among round values of the features it changes" in answer.headline()
    assert f"of all rows, that none is nearer than {raw.lower:.6g}" in answer.why()
    assert mace.Explanation.from_json(answer.to_json()).headline() == answer.headline()
    for certificate in (answer[0].certificate, answer.certificate):
        assert certificate is not None
        assert mace.verify(certificate, model).valid
    assert answer[0].certificate.claim["lower"] == answer.lower
    assert answer.certificate.claim["lower"] == raw.lower


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_model_is_asked_about_the_row_and_its_round_answer_alone(norm: str, monkeypatch: Any) -> None:
    """What is nearest of all rows is a step on the way; an answer is one that the model itself was asked about."""
    asked: list[Any] = []
    decide = LinearClassifierMixin.decision_function
    monkeypatch.setattr(
        LinearClassifierMixin, "decision_function", lambda self, X: [asked.append(X), decide(self, X)][1]
    )
    asked_of = set()
    for seed in range(1, 12, 2):
        model, space, row, _ = explained(seed, distance=norm)
        explainer = mace.Explainer(model, space)
        explainer.explain(row, distance=norm)  # reads the model, over round values too
        asked.clear()
        answer = explainer.explain(row, distance=norm)
        rows = model[0].transform(space.frame_of([space.point(row), space.point(answer[0].values)]))
        assert all(any(np.array_equal(np.asarray(X), each[None]) for X in asked) for each in np.asarray(rows))
        if answer.rounds_changes:
            asked_of.add(len(asked))
    assert asked_of == {2}


def test_several_answers_of_a_sum_are_round_and_still_differ() -> None:
    answered = [explained(seed, count=3) for seed in range(1, 30, 2)]
    some = [answer for _, _, _, answer in answered if answer.rounds_changes and len(answer) > 1]
    assert len(some) >= 5
    for answer in some:
        sets = [{change.feature for change in each.changes} for each in answer]
        assert not any(a <= b for a, b in itertools.permutations(sets, 2))
        assert [each.distance for each in answer] == sorted(each.distance for each in answer)
        of = "next to those of the nearest rows" if answer.rounds_next else "of the features each changes"
        assert f"among round values {of}" in answer.headline()
        assert "round" not in answer.no_further()
        for each in answer:
            assert float(each.values["amount"]) % 10 == 0
            assert (
                Fraction(repr(each.values["rate"])) % Fraction(1, 10) == 0
                or each.values["rate"] == answer.factual["rate"]
            )


def test_digits_and_steps_of_sums() -> None:
    short = explained(1, digits=0)[-1]
    assert short.status == "optimal"
    assert short.round_to == {"rate": 1.0, "amount": 10}
    assert explained(1, round_to=None)[-1].round_to == {}
    given = explained(1, round_to={"rate": 0.5})[-1]
    assert given.round_to == {"rate": 0.5, "amount": 10}
    assert not given.rounds_changes


def tenths(features: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 1000, (200, features)) / 10, columns=[f"x{k}" for k in range(features)])
    scores = (frame * rng.normal(size=features)).sum(axis=1)
    return frame, (scores > scores.median()).astype(int)


def next_to(model: Any, space: mace.FeatureSpace, raw: mace.Counterfactual, row: Any, norm: str) -> float:
    """Return the least distance among the rows next to an answer whose changed numbers are tenths, by trying all."""
    around = {name: [value] for name, value in raw.values.items()}
    for change in raw.changes:
        feature: Any = space[change.feature]
        tens = Fraction(feature.text(change.after)) * 10
        ends = {feature.nearest(at / 10) for at in (tens.__floor__(), tens.__ceil__())}
        around[change.feature] = [end for end in ends if feature.low <= end <= feature.high]
    every = pd.DataFrame(list(itertools.product(*around.values())), columns=list(space))
    every = every[model.predict(every) != model.predict(pd.DataFrame([row]))[0]]
    parts = pd.DataFrame({name: abs(every[name] - row[name]) / space[name].range for name in space})  # type: ignore[union-attr]
    found = {"l1": parts.mean(axis=1), "l2": (parts**2).mean(axis=1) ** 0.5, "linf": parts.max(axis=1)}[norm]
    return float(found.min())


@pytest.mark.parametrize(("norm", "solver"), [("linf", "auto"), ("l2", "auto"), ("l1", "milp"), ("linf", "milp")])
def test_of_many_features_and_in_other_lanes_the_nearest_round_row_next_to_the_nearest_is_proved(
    norm: str, solver: str
) -> None:
    for seed in range(3):
        frame, labels = tenths(6, seed)
        model = LogisticRegression(max_iter=5000).fit(frame, labels)
        space = mace.FeatureSpace.from_frame(frame)
        explainer, row = mace.Explainer(model, space), frame.iloc[seed]
        raw = explainer.explain(row, distance=norm, solver=solver, round_to=None)
        answer = explainer.explain(row, distance=norm, solver=solver, certify=True)
        assert answer.status == "optimal"
        assert answer.rounds_next
        assert answer.round_to == dict.fromkeys(space, 0.1)
        assert all(
            float(change.after) * 10 == pytest.approx(round(float(change.after) * 10)) for change in answer[0].changes
        )
        assert answer[0].distance == pytest.approx(next_to(model, space, raw[0], row, norm), abs=2e-6)
        assert answer.lower_unrounded == raw.lower <= answer.lower
        assert "proved nearest among round values next to those of the nearest row" in answer.headline()
        assert f"of all rows, that none is nearer than {raw.lower:.6g}" in answer.why()
        assert mace.Explanation.from_json(answer.to_json()).headline() == answer.headline()
        assert "to the round values next to these" in answer.letter()
        for certificate in (answer[0].certificate, answer.certificate):
            assert certificate is not None
            assert mace.verify(certificate, model).valid


def test_an_answer_that_is_not_proved_is_round_and_keeps_its_bound() -> None:
    frame, labels = tenths(6)
    model = KNeighborsClassifier(3).fit(frame, labels)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame), unread="search")
    for row in frame.head(3).itertuples(index=False):
        answer = explainer.explain(row._asdict())
        assert answer.status == "feasible"
        assert answer.lower == answer[0].lower == 0
        assert answer.headline().endswith("not proved: the model could not be read (l1 distance).")
        assert all(Fraction(repr(change.after)) % Fraction(1, 10) == 0 for change in answer[0].changes)
        assert model.predict(pd.DataFrame([answer[0].values]))[0] == answer[0].prediction


def test_where_no_round_row_is_near_the_answer_stays_as_it_is() -> None:
    frame = pd.DataFrame({"x": np.arange(0, 40) * 0.5, "y": np.arange(40) % 7})
    space = mace.FeatureSpace.from_frame(frame).replace(y=mace.integer(0, 6))
    explainer = mace.Explainer(lambda x, y: 1 if 3.2 <= x <= 3.3 and y <= 6 else 0, space)
    answer = explainer.explain({"x": 1.0, "y": 2}, 1, round_to={"x": None}, digits={"x": 0})
    assert answer.status == "optimal"
    assert answer.round_to == {}
    assert answer[0].values["x"] == pytest.approx(3.2, abs=1e-5)


def test_a_short_time_leaves_a_round_answer_with_what_is_proved_of_all_rows() -> None:
    frame, labels = tenths(6)
    model = LogisticRegression(max_iter=5000).fit(frame, labels)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame))
    best = explainer.explain(frame.iloc[0], distance="l2", round_to=None)
    for limit in (1e-6, 1e-4, 5e-4, 1e-3, 2e-3, 5e-3, 2e-2):
        answer = explainer.explain(frame.iloc[0], distance="l2", time_limit=limit)
        assert answer.lower <= best[0].distance or answer.rounds_next
        values = [Fraction(repr(change.after)) for each in answer for change in each.changes]
        # What is proved of all rows stays as it is where no round row is proved in time.
        assert all(value % Fraction(1, 10) == 0 for value in values) or (
            answer.status == "optimal" and not answer.round_to
        )


def test_batches_files_and_pickles_carry_it() -> None:
    frame, labels = training(1)
    space = mace.FeatureSpace.from_frame(frame)
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(5, max_depth=4, random_state=0)).fit(
        frame, labels
    )
    explainer = mace.Explainer(model, space)
    batch = explainer.explain_many(frame.head(5))
    for row, answer in zip(frame.head(5).itertuples(index=False), batch, strict=True):
        alone = explainer.explain(row._asdict())
        assert [each.values for each in answer] == [each.values for each in alone]
        assert answer.round_to == alone.round_to
    first = batch[0]
    again = mace.Explanation.from_json(first.to_json())
    assert (again.round_to, again.lower_unrounded) == (first.round_to, None)
    assert first.lower_unrounded == json.loads(first.to_json())["lower_unrounded"]
    assert pickle.loads(pickle.dumps(first)).lower_unrounded == first.lower_unrounded


def test_a_missing_value_may_stay_or_come_where_ends_are_not_round() -> None:
    space = mace.FeatureSpace({"x": mace.real(0.37, 9.51, missing=True), "y": mace.integer(0, 9)})
    frame = pd.DataFrame({"x": [0.5, np.nan, 9.0, np.nan, 4.0, 6.0], "y": [0, 1, 8, 9, 2, 7]})
    model = HistGradientBoostingClassifier(min_samples_leaf=1, max_iter=3).fit(frame, [0, 0, 1, 1, 0, 1])
    answer = mace.Explainer(model, space).explain({"x": np.nan, "y": 1}, 1, constraints=["x stays"], round_to={"x": 1})
    assert answer.status == "optimal"
    assert answer.round_to == {"x": 1}
    assert np.isnan(answer[0].values["x"])


def test_the_ends_of_narrow_floats_stay_in_the_range() -> None:
    space = mace.FeatureSpace({"x": mace.real(0.1, 0.7, dtype="float32")})
    _, kept = rounded(space, {"x": 0.5})
    held = kept[0].bind(space, (0.5,))
    assert all(held.holds({"x": Fraction(float(np.float32(value)))}) for value in (0.1, 0.7))


def test_a_sensitive_feature_is_hinted_at_where_its_ends_are_not_round() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(180, 700, 100) / 10, "income": rng.integers(0, 50, 100)})
    model = RandomForestClassifier(3, random_state=0).fit(frame, frame.income > 25)
    answer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame)).explain(frame.iloc[0], round_to={"age": 7})
    assert answer.round_to["age"] == 7
    assert "'age'" in answer.hints[0]


@pytest.mark.parametrize("seed", [2, 3])
def test_a_menu_has_round_answers_and_its_proofs_are_of_all_rows(seed: int) -> None:
    model, space, row, _ = explained(seed)
    explainer = mace.Explainer(model, space)
    menu, raw = explainer.levers(row), explainer.levers(row, round_to=None)
    assert menu.round_to == {"rate": 0.1, "amount": 10}
    assert raw.round_to == {}
    assert {lever.features for lever in menu} == {lever.features for lever in raw}
    assert menu.insufficient == raw.insufficient
    assert menu.complete
    for lever in menu:
        best = nearest(model, space, row, menu.round_to, set(lever.features))
        assert best is not None
        assert lever.counterfactual.distance == pytest.approx(best, abs=2e-6)
        assert {change.feature for change in lever.counterfactual.changes} == set(lever.features)


@pytest.mark.parametrize("seed", [2, 3, 5, 6, 7])
def test_the_ends_of_a_region_are_round_and_inside_what_is_proved(seed: int) -> None:
    model, space, row, answer = explained(seed, constraints=["rate changes", "amount changes"])
    region = answer[0].region(["rate", "amount"])
    assert region == mace.Explainer(model, space).region(answer[0], ["rate", "amount"])
    assert answer[0].values["rate"] != row["rate"]
    for name, step in (("rate", 0.1), ("amount", 10)):
        ends, feature = region[name], space[name]
        assert ends.low <= answer[0].values[name] <= ends.high  # type: ignore[operator]
        assert Fraction(repr(ends.low)) % Fraction(repr(step)) == 0
        assert Fraction(repr(ends.high)) % Fraction(repr(step)) == 0
        grid = [value for value in multiples(feature, step) if ends.low <= value <= ends.high]
        rows = pd.DataFrame([{**answer[0].values, name: value} for value in grid])
        assert set(model.predict(rows.astype({"amount": int}))) == {answer[0].prediction}


WRITTEN = {"whole": 0, "tenths": 1, "hundredths": 2, "thousandths": 3, "single": 2, "hundreds": -2}
"""How many digits behind the point the numbers of a column have."""

FAMILIES: dict[str, Any] = {
    "forest": lambda: RandomForestClassifier(5, max_depth=5, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=6, random_state=0),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
    "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=300, random_state=0)),
    "curves": lambda: make_pipeline(StandardScaler(), CalibratedClassifierCV(LogisticRegression(), cv=2)),
    "several": lambda: VotingClassifier(
        [
            ("trees", RandomForestClassifier(3, max_depth=3, random_state=0)),
            ("line", LogisticRegression(max_iter=9999)),
        ],
        voting="soft",
    ),
    "searched": lambda: KNeighborsClassifier(5),
}


def digits_of(text: str) -> int:
    """Return how many digits behind the point a number is written with, below 0 for zeros at its end."""
    return -int(Decimal(text).normalize().as_tuple().exponent)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("family", FAMILIES)
def test_no_printed_number_has_more_digits_than_its_column(family: str, norm: str) -> None:
    rng = np.random.default_rng(len(family))
    frame = pd.DataFrame(
        {name: np.round(rng.integers(0, 2000, 300) / 10.0**digits, 3) for name, digits in WRITTEN.items()}
    ).astype({"whole": int, "hundreds": int, "single": "float32"})
    score = sum(rng.normal() * frame[name] / frame[name].max() for name in frame)
    labels = (score + np.sin(score) > score.median()).astype(int)
    model = FAMILIES[family]().fit(frame, labels)
    space = mace.FeatureSpace.from_frame(frame)
    explainer = mace.Explainer(model, space, unread="search")
    count = 2 if family in ("forest", "boosting", "linear") and norm in ("l0", "l1") else 1
    for _, row in frame.head(2).iterrows():
        asked = row.to_dict() | {"tenths": row["tenths"] - 0.0375 if row["tenths"] > 1 else row["tenths"]}
        answer = explainer.explain(asked, distance=norm, count=count, time_limit=20)
        assert answer
        longer = [
            (change.feature, after)
            for one in answer
            for change in one.changes
            if digits_of(after := show_value(change.after, change.dtype)) > WRITTEN[change.feature]
        ]
        # What is proved stays proved where no round row is found in time.
        assert longer == [] or (answer.status == "optimal" and not answer.round_to and answer.seconds > 15), longer
        assert all(f" {show_value(change.after, change.dtype)}" in str(answer) for change in answer[0].changes)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_columns_of_float32_have_round_answers_in_time(norm: str) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.integers(0, 1000, (200, 5)) / 10, columns=list("abcde")).astype({"c": "float32"})
    scores = (frame * rng.normal(size=5)).sum(axis=1)
    model = LogisticRegression(max_iter=5000).fit(frame, scores > scores.median())
    space = mace.FeatureSpace.from_frame(frame)
    explainer = mace.Explainer(model, space)
    for number in range(2):
        row = frame.iloc[number]
        raw = explainer.explain(row, distance=norm, round_to=None)
        answer = explainer.explain(row, distance=norm, certify=True, time_limit=60)
        assert answer.status == "optimal"
        assert answer.round_to
        for change in answer[0].changes:
            assert digits_of(show_value(change.after, change.dtype)) <= 1
        if answer.rounds_next:
            assert answer[0].distance == pytest.approx(next_to(model, space, raw[0], row, norm), abs=2e-6)
        for certificate in (answer[0].certificate, answer.certificate):
            assert certificate is not None
            verdict = mace.verify(certificate, model)
            assert verdict.valid, verdict.reason


@pytest.mark.parametrize("option", [{"round_to": 500}, {"digits": -2}])
def test_one_number_for_all_reals_is_refused_where_there_are_none(option: Any) -> None:
    space = mace.FeatureSpace({"amount": mace.integer(0, 9_000), "kind": mace.categorical(["x", "y"])})
    explainer = mace.Explainer(lambda amount, kind: amount >= 4_321, space)
    row = {"amount": 10, "kind": "x"}
    with pytest.raises(
        mace.InvalidOption, match=r"about real features, and the space has none.*round_to=\{'amount': 10\}"
    ):
        explainer.explain(row, **option)
    with pytest.raises(mace.InvalidOption, match="give a positive number"):
        explainer.explain(row, round_to=-1)
    assert explainer.explain(row, round_to={"amount": 500})[0].values["amount"] == 4_500
    assert explainer.explain(row, digits=2)[0].values["amount"] == 4_321
    only_levels = mace.FeatureSpace({"kind": mace.categorical(["x", "y"])})
    with pytest.raises(mace.InvalidOption, match=r"has none\.$"):
        mace.Explainer(lambda kind: kind == "y", only_levels).explain({"kind": "x"}, **option)

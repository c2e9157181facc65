"""Rows outside the space: kept as they are, or the ranges widened for them, against brute force in every lane."""

from __future__ import annotations

import itertools
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators import small
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.models.unread import read_or_ask as READ_OR_ASK  # noqa: N812
from mace.space.outside import admit, roomy

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(2, 8),
        "rate": mace.real(0.5, 2.5, step=0.25),
        "kind": mace.categorical(["x", "y", "z"]),
        "rank": mace.ordinal(["low", "middle", "high"]),
    }
)
STRAY: dict[str, tuple[Any, ...]] = {"age": (-40, 1, 11, 60), "rate": (-0.1, 0.45, 4.0, 30.0)}
FAMILIES = ["tree", "forest", "boosting", "linear", "network", "function"]
LANES = {
    **dict.fromkeys(("tree", "forest", "boosting"), ("trees", "milp", "smt", "enumerate")),
    **dict.fromkeys(("linear", "network"), ("network", "milp", "smt", "enumerate")),
    "function": ("milp", "smt", "enumerate"),
}


def data(seed: int, rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(2, 9, rows),
            "rate": rng.integers(2, 11, rows) / 4,
            "kind": rng.choice(["x", "y", "z"], rows),
            "rank": rng.choice(["low", "middle", "high"], rows),
        }
    )
    # Some people beyond the ranges, so that trees split there too.
    frame.loc[:25, "age"] = rng.integers(-40, 60, 26)
    frame.loc[20:45, "rate"] = rng.integers(-4, 120, 26) / 4
    return frame


def decide(row: Any) -> int:
    score = 3 * row.age - 10 * row.rate
    if row.kind == "x":
        score = score + 4
    if row.rank == "high" and row.rate > 3:
        score = score - 30
    return 1 if score >= 1 else 0


def model_of(family: str, seed: int) -> Any:
    frame, rng = data(seed), np.random.default_rng(seed + 1000)
    weights = rng.normal(size=4)
    ages, rates = np.clip(frame.age, -5, 20), np.clip(frame.rate, -1, 6)
    score = weights[0] * ages / 6 + weights[1] * rates / 2 + weights[2] * (frame.kind == "x")
    score += weights[3] * (frame["rank"] == "high") + np.sin(ages) * 0.7 + rng.normal(0, 0.2, len(frame))
    labels = (score > score.median()).astype(int)
    if family == "function":
        return decide
    settings: dict[str, Any] = {
        "tree": {"max_depth": 5},
        "boosting": {"n_estimators": 5, "max_depth": 3},
        "network": {"solver": "adam", "max_iter": 60},
    }
    return make_pipeline(mace.Encoder(SPACE), small(family, seed, **settings.get(family, {}))).fit(frame, labels)


def stray_row(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed + 50)
    row: dict[str, Any] = data(seed).iloc[int(rng.integers(60, 150))].to_dict()
    for name in [["age"], ["rate"], ["age", "rate"]][seed % 3]:
        row[name] = STRAY[name][int(rng.integers(len(STRAY[name])))]
    return row


def outcomes(explainer: mace.Explainer, rows: list[dict[str, Any]]) -> list[Any]:
    return explainer.predict_many(rows)


def domain(row: dict[str, Any], outside: str) -> dict[str, list[Any]]:
    """Return the values that each feature may have, by the words of the documentation."""
    values: dict[str, list[Any]] = {}
    for name, feature in SPACE.items():
        if not isinstance(feature, mace.space.Integer | mace.space.Real):
            values[name] = list(feature.levels)
            continue
        own = row[name]
        low, high = (
            (min(feature.low, own), max(feature.high, own)) if outside == "widen" else (feature.low, feature.high)
        )
        step = Fraction(repr(feature.step or 1))
        base = Fraction(repr(feature.low))
        first = -int((base - Fraction(repr(low))) // step)
        last = int((Fraction(repr(high)) - base) // step)
        grid = [base + k * step for k in range(first, last + 1)]
        kind = int if isinstance(feature, mace.space.Integer) else float
        values[name] = sorted({*map(kind, grid), own})
    return values


def brute(explainer: mace.Explainer, row: dict[str, Any], outside: str, norm: str) -> Fraction | None:
    """Return the least distance (squared for l2) of rows with another outcome, by trying all."""
    values = domain(row, outside)
    rows = [dict(zip(values, cells, strict=True)) for cells in itertools.product(*values.values())]
    said, own = outcomes(explainer, rows), outcomes(explainer, [row])[0]
    found = [distance(row, each, outside, norm) for each, label in zip(rows, said, strict=True) if label != own]
    return min(found, default=None)


def distance(row: dict[str, Any], other: dict[str, Any], outside: str, norm: str) -> Fraction:
    moved = []
    for name, feature in SPACE.items():
        if isinstance(feature, mace.space.Categorical):
            moved.append(Fraction(int(row[name] != other[name])))
        elif isinstance(feature, mace.space.Ordinal):
            places = [feature.levels.index(each[name]) for each in (row, other)]
            moved.append(Fraction(abs(places[0] - places[1]), 2))
        else:
            ends = [Fraction(feature.low), Fraction(feature.high)]
            ends += [Fraction(row[name])] if outside == "widen" else []
            moved.append(abs(Fraction(row[name]) - Fraction(other[name])) / (max(ends) - min(ends)))
    match norm:
        case "l0":
            return Fraction(sum(delta > 0 for delta in moved), len(moved))
        case "l1":
            return sum(moved, Fraction(0)) / len(moved)
        case "linf":
            return max(moved)
    return sum((delta * delta for delta in moved), Fraction(0)) / len(moved)


def wide_explainer(model: Any) -> mace.Explainer:
    """Return an explainer over all values that any question here may meet, to ask the model about rows."""
    wide = SPACE.replace(age=mace.integer(-1000, 1000), rate=mace.real(-1000, 1000))
    return mace.Explainer(model, wide)


@pytest.mark.parametrize("outside", ["keep", "widen"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_every_lane_finds_the_nearest_and_proves_it(family: str, outside: Any, seed: int) -> None:
    model, row = model_of(family, seed), stray_row(seed)
    asked = wide_explainer(model)
    norm = ["l1", "linf", "l2", "l0"][seed % 4]
    best = brute(asked, row, outside, norm)
    explainer = mace.Explainer(model, SPACE, outside=outside)
    for lane in LANES[family]:
        if norm == "l2" and (lane == "milp" or (family == "function" and lane == "smt")):
            continue
        answer = explainer.explain(row, distance=norm, solver=lane, certify=True, round_to=None, time_limit=60)
        assert answer.outside
        assert answer.outside in answer.reason
        if best is None:
            assert answer.status == "infeasible"
            certificate = answer.certificate
        else:
            assert answer.status == "optimal", (lane, answer.reason)
            expected = float(best) if norm != "l2" else float(best) ** 0.5
            assert answer[0].distance == pytest.approx(expected, rel=1e-6, abs=2e-6), lane
            assert answer[0].lower <= expected * (1 + 1e-12)
            assert all(answer[0].values[name] in values for name, values in domain(row, outside).items())
            assert outcomes(asked, [answer[0].values]) != outcomes(asked, [row])
            certificate = answer[0].certificate
        assert certificate is not None
        verdict = mace.verify(certificate, model)
        assert verdict.valid, (lane, verdict.reason)


@pytest.mark.parametrize("outside", ["keep", "widen"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_an_answer_is_the_same_where_the_model_was_read_for_many_such_rows(
    family: str, outside: Any, seed: int
) -> None:
    model = model_of(family, seed)
    space = SPACE.replace(rate=mace.real(0.5, 2.5, dtype="float32"), age=mace.integer(2, 8, dtype="int8"))
    rng, explainer = np.random.default_rng(seed), mace.Explainer(model, space, outside=outside)
    for norm in ("l1", "l2"):
        for age, rate in ((-40, 1.0), (9, 1.5), (11, 2.25), (4, 30.0), (60, -0.5)):
            row = data(seed).iloc[int(rng.integers(60, 150))].to_dict() | {"age": age, "rate": rate}
            asked: dict[str, Any] = {"distance": norm, "round_to": None, "time_limit": 30}
            if family == "function" and norm == "l2":
                continue
            shared = explainer.explain(row, **asked)
            anew = explainer.explain(row, **asked, certify=True)
            assert shared.status == anew.status
            assert (shared.score, shared.outside) == (anew.score, anew.outside)
            assert [(each.values, each.distance) for each in shared] == [(each.values, each.distance) for each in anew]
            certificate = anew[0].certificate if anew else anew.certificate
            assert certificate is not None
            assert mace.verify(certificate, model).valid


@pytest.mark.parametrize("outside", ["keep", "widen"])
def test_a_model_is_read_a_few_times_for_many_rows_outside(outside: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from mace.models import live

    space = mace.FeatureSpace({"x": mace.real(0, 1), "y": mace.real(-1, 1), "c": mace.categorical(["a", "b"])})
    space.round_to = {"x": 0.1}
    model, read = real_model("linear", 0), []
    monkeypatch.setattr(live, "read_or_ask", lambda *given: (read.append(1), READ_OR_ASK(*given))[1])
    explainer = mace.Explainer(model, space, outside=outside)
    rows = [{"x": 1 + k / 100, "y": (-1) ** k * (1 + k / 50), "c": "ab"[k % 2]} for k in range(1, 41)]
    batch = explainer.explain_many(rows)
    assert all(answer.outside for answer in batch)
    assert len(read) <= 4
    fewer = [mace.Explainer(model, space, outside=outside).explain(row) for row in rows[::8]]
    assert [answer.to_dict()["counterfactuals"][0]["values"] for answer in fewer] == [
        batch[k][0].values for k in range(0, 40, 8)
    ]
    far = explainer.explain({"x": 1e30, "y": 0, "c": "a"})
    assert "outside its range" in far.outside or "widened" in far.outside


def test_a_model_that_changed_is_noticed_for_rows_outside_too() -> None:
    model = LogisticRegression().fit([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0], [0.0, 3.0]], [0, 0, 1, 1])
    explainer = mace.Explainer(model, mace.FeatureSpace({"x": mace.real(0, 1), "y": mace.real(0, 1)}), outside="keep")
    assert explainer.explain([2.0, 0.5])
    model.coef_ = -model.coef_
    for row in ([2.0, 0.5], [2.5, 0.5]):
        with pytest.raises(mace.ModelChanged):
            explainer.explain(row)


REALS = mace.FeatureSpace({"x": mace.real(0, 1), "y": mace.real(-1, 1), "c": mace.categorical(["a", "b"])})


def real_model(family: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(0.5, 2, 300), "y": rng.normal(0, 2, 300), "c": rng.choice(["a", "b"], 300)})
    labels = (frame.x + np.sin(2 * frame.y) + (frame.c == "a") + rng.normal(0, 0.1, 300) > 1).astype(int)
    settings: dict[str, Any] = {
        "forest": {"n_estimators": 7, "max_depth": 5},
        "network": {"hidden_layer_sizes": (5,), "solver": "adam", "max_iter": 150},
    }
    return make_pipeline(mace.Encoder(REALS), small(family, seed, **settings.get(family, {}))).fit(frame, labels)


@pytest.mark.parametrize("family", ["forest", "linear", "network", "calibrated"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_between_the_range_and_a_kept_number_is_an_answer(family: str, seed: int) -> None:
    model = real_model(family, seed)
    row = {"x": [7.5, -3.25, 40.0][seed], "y": 0.25, "c": "a"}
    explainer = mace.Explainer(model, REALS, outside="keep")
    wide = mace.Explainer(model, REALS.replace(x=mace.real(-100, 100)))
    answer = explainer.explain(row, certify=True, time_limit=60)
    other = wide.predict(row)
    grid = [
        {"x": x, "y": y, "c": c}
        for x in [*np.linspace(0, 1, 21), row["x"]]
        for y in np.linspace(-1, 1, 41)
        for c in "ab"
    ]
    said = wide.predict_many(grid)
    near = [_l1(row, each) for each, label in zip(grid, said, strict=True) if label != other]
    if not answer:
        assert answer.status == "infeasible"
        assert not near
        assert mace.verify(answer.certificate, model).valid
        return
    assert answer.status == "optimal", answer.reason
    assert answer[0].values["x"] == row["x"] or 0 <= answer[0].values["x"] <= 1
    assert answer[0].lower <= min(near) + 1e-9
    assert wide.predict(answer[0].values) != other
    assert answer[0].certificate is not None
    assert mace.verify(answer[0].certificate, model).valid
    free = mace.Explainer(model, REALS, outside="widen").explain(row, time_limit=60)
    assert free.space["x"].range == Fraction(max(1, row["x"])) - Fraction(min(0, row["x"]))
    assert free.status in ("optimal", "infeasible")


def _l1(row: dict[str, Any], other: dict[str, Any]) -> float:
    return (abs(row["x"] - other["x"]) + abs(row["y"] - other["y"]) / 2 + (row["c"] != other["c"])) / 3


def test_distances_above_one_are_found_and_proved() -> None:
    """A far row whose only way is back into the range: the answer is many times the range away."""
    frame = pd.DataFrame({"x": [0, 1, 2, 3, 600, 700, 800, 900] * 20, "y": [0, 1, 0, 1, 0, 1, 1, 0] * 20})
    space = mace.FeatureSpace({"x": mace.integer(0, 3), "y": mace.integer(0, 1)})
    labels = [1, 1, 1, 1, 0, 0, 0, 0] * 20
    for estimator in (
        DecisionTreeClassifier(random_state=0),
        LogisticRegression(C=100),
        MLPClassifier((3,), solver="lbfgs", random_state=3),
    ):
        model = make_pipeline(StandardScaler(), estimator).fit(frame, labels)
        explainer = mace.Explainer(model, space, outside="keep")
        for norm, expected in (("l1", 897 / 3 / 2), ("linf", 897 / 3), ("l2", 897 / 3 / 2**0.5), ("l0", 0.5)):
            answer = explainer.explain({"x": 900, "y": 0}, 1, norm, certify=True, time_limit=60)
            assert answer.status == "optimal", (estimator, norm, answer.reason)
            assert answer[0].distance == pytest.approx(expected, rel=1e-9)
            assert answer[0].lower == pytest.approx(expected, rel=1e-6)
            assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]
        stuck = explainer.explain({"x": 900, "y": 0}, 1, constraints=[mace.fixed("x")], certify=True, time_limit=60)
        assert stuck.status == "infeasible"
        assert mace.verify(stuck.certificate, model).valid  # type: ignore[arg-type]


def forged(certificate: mace.Certificate, lower: float) -> mace.Certificate:
    data = certificate.to_dict()
    data["claim"]["lower"] = lower
    data["claim"]["status"] = "feasible"
    return mace.Certificate.from_dict(data)


@pytest.mark.parametrize("lane", ["trees", "enumerate", "milp", "smt"])
def test_a_false_bound_above_one_is_refuted(lane: str) -> None:
    frame = pd.DataFrame({"x": [0, 1, 2, 3, 60, 100, 900], "y": [0, 1, 0, 1, 0, 1, 0]})
    model = DecisionTreeClassifier(random_state=0).fit(frame, [1, 1, 1, 1, 0, 0, 0])
    space = mace.FeatureSpace({"x": mace.integer(0, 3), "y": mace.integer(0, 1)})
    answer = mace.Explainer(model, space, outside="keep").explain([900, 0], 1, solver=lane, certify=True)
    assert answer[0].certificate is not None
    assert mace.verify(answer[0].certificate, model).valid
    claim = answer[0].certificate.to_dict()["claim"]
    false = mace.Certificate.from_dict(
        answer[0].certificate.to_dict()
        | {"claim": claim | {"status": "infeasible", "lower": None, "upper": None, "counterfactual": None}}
    )
    assert not mace.verify(false, model).valid
    higher = forged(answer[0].certificate, claim["lower"] * 1.5)
    assert not mace.verify(higher, model).valid


def test_rows_are_refused_by_default_and_the_option_is_checked() -> None:
    model = model_of("tree", 0)
    explainer = mace.Explainer(model, SPACE)
    assert explainer.outside == "error"
    with pytest.raises(mace.InvalidRow, match="outside its range"):
        explainer.explain(stray_row(0))
    with pytest.raises(mace.InvalidOption, match="accepted: 'error', 'keep', 'widen'"):
        mace.Explainer(model, SPACE, outside="clip")  # type: ignore[arg-type]


@pytest.mark.parametrize("outside", ["keep", "widen"])
def test_what_is_no_matter_of_ranges_is_refused_as_before(outside: Any) -> None:
    explainer = mace.Explainer(model_of("tree", 0), SPACE, outside=outside)
    row = {"age": 5, "rate": 1.0, "kind": "x", "rank": "low"}
    for name, value, said in (
        ("age", 30.5, "a fraction"),
        ("age", "old", "a number is needed"),
        ("age", float("inf"), "a finite number"),
        ("rank", "top", "not one of its levels"),
        ("kind", 3, "not one of its levels"),
        ("kind", "w", "but the model does not take such a row"),
        ("rate", None, "does not take such a row"),
        ("rank", None, "no missing state"),
        ("age", 2**70, "outside its range"),
    ):
        with pytest.raises(mace.InvalidRow, match=said):
            explainer.explain({**row, name: value})
    with pytest.raises(mace.InvalidRow, match="missing from the row"):
        explainer.explain({"age": 70})
    inside = explainer.explain(row)
    assert inside.outside == ""
    assert inside.reason == ""
    narrow = SPACE.replace(age=mace.integer(2, 8, dtype="int8"))
    with pytest.raises(mace.InvalidRow, match="does not fit into int8"):
        mace.Explainer(model_of("tree", 0), narrow, outside=outside).explain({**row, "age": 300})
    dated = mace.FeatureSpace({"since": mace.date("2020-01-01", "2024-12-31")})
    with pytest.raises(mace.InvalidRow, match="'bad', which is no date") as refusal:
        mace.Explainer(lambda since: since > 19_000, dated, outside=outside).explain({"since": "bad"})
    assert str(refusal.value).count("which is no date") == 1


def encoded_model(step: Any) -> tuple[Any, pd.DataFrame]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": rng.integers(0, 10, 200), "kind": rng.choice(["x", "y"], 200)})
    labels = ((frame.n > 4) ^ (frame.kind == "x")).astype(int)
    before = make_column_transformer((step, ["kind"]), remainder="passthrough")
    return make_pipeline(before, DecisionTreeClassifier(random_state=0)).fit(frame, labels), frame


@pytest.mark.parametrize(
    "step",
    [OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)],
)
def test_a_level_that_the_model_takes_is_let_in(step: Any) -> None:
    model, frame = encoded_model(step)
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame), outside="keep")
    for value in ("boat", None):
        row = {"n": 7, "kind": value}
        if value is None and isinstance(step, OrdinalEncoder):
            continue
        answer = explainer.explain(row, certify=True)
        assert answer.status == "optimal"
        every = [{"n": n, "kind": kind} for n in range(10) for kind in ("x", "y", value)]
        own = model.predict(pd.DataFrame([row]))[0]
        best = min(
            (abs(each["n"] - 7) / 9 + (each["kind"] != value)) / 2
            for each in every
            if model.predict(pd.DataFrame([each]))[0] != own
        )
        assert answer[0].distance == pytest.approx(best)
        assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]
        assert ("'boat', which is not one of its levels" if value else "'kind' is missing") in answer.why()
        fixed = explainer.explain(row, constraints=["kind stays"])
        assert fixed
        assert all(change.feature == "n" for change in fixed[0].changes)


def test_a_level_that_the_model_refuses_is_refused_with_its_reason() -> None:
    model, frame = encoded_model(OneHotEncoder())
    explainer = mace.Explainer(model, mace.FeatureSpace.from_frame(frame), outside="keep")
    with pytest.raises(mace.InvalidRow, match=r"'kind' is 'boat', .* but the model does not take such a row"):
        explainer.explain({"n": 7, "kind": "boat"})
    frame["kind"] = frame["kind"].astype("category")
    categories = mace.Explainer(model, mace.FeatureSpace.from_frame(frame), outside="keep")
    with pytest.raises(mace.InvalidRow, match="Nor can it be let in"):
        categories.explain({"n": 7, "kind": "boat"})


def test_constraints_bind_a_kept_value_like_any_other() -> None:
    model = model_of("forest", 1)
    explainer = mace.Explainer(model, SPACE, outside="keep")
    row = {"age": 60, "rate": 1.0, "kind": "x", "rank": "low"}
    for constraint, holds in (
        (mace.fixed("age"), lambda age: age == 60),
        (mace.increases("age"), lambda age: age == 60),
        (mace.decreases("age"), lambda age: age == 60 or 2 <= age <= 8),
        (mace.at_most_change("age", 10), lambda age: age == 60),
        (mace.within("age", 3, 5), lambda age: 3 <= age <= 5),
        ({"age": [3, 5]}, lambda age: 3 <= age <= 5),
        (mace.only("age"), lambda age: 2 <= age <= 8),
        ("age changes", lambda age: 2 <= age <= 8),
        ("age <= 50", lambda age: 2 <= age <= 8),
    ):
        for lane in ("trees", "enumerate"):
            answer = explainer.explain(row, constraints=[constraint], solver=lane, round_to=None)
            assert answer.status in ("optimal", "infeasible")
            assert all(holds(found.values["age"]) for found in answer), constraint
        assert answer.status == explainer.explain(row, constraints=[constraint]).status
    none = explainer.explain(row, constraints=["age >= 9 and age changes", "rate stays"])
    assert none.status == "infeasible"
    assert [str(each) for each in none.conflict] == ["rule('age >= 9 and age changes')"]
    assert "'age' is 60" in none.why()
    assert "'age' is 60" in none.headline()


def test_hints_do_not_take_the_space_for_a_constraint() -> None:
    explainer = mace.Explainer(model_of("forest", 1), SPACE, outside="keep")
    row = {"age": 60, "rate": 1.0, "kind": "x", "rank": "low"}
    assert "'age'" in explainer.explain(row).hints[0]
    assert explainer.explain(row, constraints=["age stays"]).hints == ()


def test_answers_say_it_in_every_form() -> None:
    explainer = mace.Explainer(model_of("forest", 1), SPACE, outside="keep")
    row = {"age": 60, "rate": 1.0, "kind": "x", "rank": "low"}
    answer = explainer.explain(row)
    said = "'age' is 60, outside its range [2, 8], and may stay so"
    assert answer.outside == answer.reason == said
    assert answer.headline().endswith(f"({answer.distance} distance). {said[0].upper()}{said[1:]}.")
    assert f"within the space ({said}) and the constraints" in answer.why()
    again = mace.Explanation.from_json(answer.to_json())
    assert again.outside == said
    assert json.loads(answer.to_json())["outside"] == said
    assert "outside" not in explainer.explain({**row, "age": 5}).to_dict()
    assert answer.to_frame().loc["factual", "age"] == 60
    wider = mace.Explainer(model_of("forest", 1), SPACE, outside="widen").explain(row)
    assert wider.reason == "the range of 'age', [2, 8], is widened to [2, 60] for this row"
    assert answer.score is not None
    assert answer.letter()


def test_levers_regions_costs_and_predictions_take_such_rows() -> None:
    explainer = mace.Explainer(model_of("forest", 1), SPACE, outside="keep")
    wide = wide_explainer(explainer.model)
    row = {"age": 60, "rate": 1.0, "kind": "x", "rank": "low"}
    assert explainer.predict(row) == wide.predict(row)
    assert explainer.predict_many([row, {**row, "age": 4}]) == wide.predict_many([row, {**row, "age": 4}])
    assert explainer.reaches(row, explainer.predict(row))
    table = explainer.cost_table(row).set_index("feature")["distance"]
    assert table["age"] == pytest.approx(1 / 6 / 4)
    levers = explainer.levers(row)
    assert levers.complete
    for lever in levers:
        values = lever.counterfactual.values
        assert values["age"] == 60 or 2 <= values["age"] <= 8
        assert wide.predict(values) != wide.predict(row)
    answer = explainer.explain(row)[0]
    region = answer.region()
    assert region.complete
    for name, ends in region.ends.items():
        if ends.levels is None:
            assert wide.predict({**answer.values, name: ends.low}) == answer.prediction
            assert wide.predict({**answer.values, name: ends.high}) == answer.prediction
    assert pickle.loads(pickle.dumps(explainer)).outside == "keep"


def test_batches_honour_it(tmp_path: Path) -> None:
    model = model_of("forest", 2)
    frame = data(2).iloc[:30].reset_index(drop=True)
    explainer = mace.Explainer(model, SPACE, outside="keep")
    batch = explainer.explain_many(frame, count=2)
    for number, answer in enumerate(batch):
        alone = explainer.explain(frame.iloc[number].to_dict(), count=2)
        assert [each.values for each in answer] == [each.values for each in alone]
        assert (answer.status, answer.reason, answer.outside) == (alone.status, alone.reason, alone.outside)
        assert answer.score == alone.score
    strays = [number for number, answer in enumerate(batch) if answer.outside]
    assert strays == [n for n, row in frame.iterrows() if not (2 <= row.age <= 8 and 0.5 <= row.rate <= 2.5)]
    table = batch.to_frame()
    assert table[table.row.isin(strays)].reason.str.contains("may stay so").all()
    assert table.score_after.notna().all()
    json.loads(batch.to_json())
    path = tmp_path / "answers.jsonl"
    first = explainer.explain_many(frame, count=2, checkpoint=path)
    second = explainer.explain_many(frame, count=2, checkpoint=path)
    assert [each.to_dict() | {"seconds": 0} for each in first] == [each.to_dict() | {"seconds": 0} for each in second]
    assert all(len(each.to_frame()) == len(each) + 1 for each in second)
    with pytest.raises(mace.InvalidOption, match="another question"):
        mace.Explainer(model, SPACE, outside="widen").explain_many(frame, count=2, checkpoint=path)
    errors = mace.Explainer(model, SPACE).explain_many(frame, count=2)
    assert [number for number, answer in enumerate(errors) if answer.status == "error"] == strays
    only = explainer.explain_many(frame.iloc[strays])
    assert all(answer.outside for answer in only)


def test_batches_in_other_processes_honour_it() -> None:
    frame = data(2).iloc[:8].reset_index(drop=True)
    explainer = mace.Explainer(model_of("tree", 2), SPACE, outside="widen")
    there, here = explainer.explain_many(frame, n_jobs=2), explainer.explain_many(frame)
    assert [each.to_dict()["counterfactuals"][0]["values"] for each in there if each] == [
        each.to_dict()["counterfactuals"][0]["values"] for each in here if each
    ]
    assert [each.score for each in there] == [each.score for each in here]
    assert any(each.outside for each in there)


def test_round_answers_of_rows_outside() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"amount": rng.integers(3, 45, 300) * 10.0 + 3, "rate": rng.integers(1, 40, 300) / 10})
    labels = (frame.amount / 100 + frame.rate > 4).astype(int)
    space = mace.FeatureSpace.from_frame(frame)
    model = RandomForestClassifier(7, max_depth=5, random_state=0).fit(frame, labels)
    explainer = mace.Explainer(model, space, outside="keep")
    row = {"amount": 1003.0, "rate": 9.04}
    answer = explainer.explain(row, round_to={"amount": 10}, certify=True)
    assert answer.round_to == {"amount": 10, "rate": 0.1}
    assert answer.status == "optimal"
    assert "outside its range" in answer.reason
    low, high = space["amount"].low, space["amount"].high  # type: ignore[union-attr]
    amounts = [*(10.0 * k for k in range(60) if low <= 10 * k <= high), 1003.0]
    rates = [*(k / 10 for k in range(1, 40)), 9.04]
    every = pd.DataFrame(list(itertools.product(amounts, rates)), columns=["amount", "rate"])
    far = ((every.amount - 1003).abs() / (high - low) + (every.rate - 9.04).abs() / 3.8) / 2
    best = far[model.predict(every) != model.predict(pd.DataFrame([row]))[0]].min()
    assert answer[0].distance == pytest.approx(best)
    assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]
    assert answer.lower_unrounded is not None
    assert answer.lower_unrounded <= answer.lower


def test_several_answers_differ_and_are_certified() -> None:
    model = model_of("forest", 1)
    explainer = mace.Explainer(model, SPACE, outside="keep")
    row = {"age": 60, "rate": 30.0, "kind": "x", "rank": "low"}
    for diversity in (None, mace.differ(distance=0.2), mace.differ(features=1)):
        answer = explainer.explain(row, count=3, diversity=diversity, certify=True, round_to=None)
        assert answer
        for found in answer:
            assert mace.verify(found.certificate, model).valid  # type: ignore[arg-type]
            assert found.values["age"] == 60 or 2 <= found.values["age"] <= 8  # type: ignore[operator]
        by_hand = explainer.explain(row, count=3, diversity=diversity, solver="enumerate", round_to=None)
        assert [each.distance for each in answer] == pytest.approx([each.distance for each in by_hand], abs=1e-6)


@pytest.mark.parametrize("family", ["forest", "linear"])
def test_near_data_and_robust_and_causes(family: str) -> None:
    model = model_of(family, 1)
    explainer = mace.Explainer(model, SPACE, outside="keep")
    row = {"age": 60, "rate": 1.0, "kind": "x", "rank": "low"}
    people = data(1).iloc[60:120]
    near = explainer.explain(row, constraints=[mace.near_data(people, k=2, radius=0.1)], certify=True, time_limit=60)
    referee = explainer.explain(row, constraints=[mace.near_data(people, k=2, radius=0.1)], solver="enumerate")
    assert near.status == referee.status == "optimal"
    assert near[0].distance == pytest.approx(referee[0].distance, abs=1e-6)
    assert mace.verify(near[0].certificate, model).valid  # type: ignore[arg-type]
    sturdy = explainer.explain(row, constraints=[mace.robust({"age": 1})], certify=True, time_limit=60)
    assert sturdy.status in ("optimal", "infeasible"), sturdy.reason
    found = sturdy[0].certificate if sturdy else sturdy.certificate
    assert mace.verify(found, model).valid  # type: ignore[arg-type]
    causes = mace.Causal({"rate": "0.25 * age"})
    causal = mace.Explainer(model, SPACE.replace(rate=mace.real(-20, 20, step=0.25)), causes, outside="keep")
    acted = causal.explain(row, certify=True, time_limit=60)
    assert acted.status in ("optimal", "infeasible"), acted.reason
    assert all(each.values["age"] == 60 or 2 <= each.values["age"] <= 8 for each in acted)  # type: ignore[operator]
    found = acted[0].certificate if acted else acted.certificate
    assert mace.verify(found, model).valid  # type: ignore[arg-type]


def test_models_that_are_only_asked_take_such_rows() -> None:
    frame = data(3).drop(columns=["kind", "rank"])
    model = GaussianNB().fit(frame, (frame.age > 5).astype(int))
    space = SPACE.without("kind", "rank")
    explainer = mace.Explainer(model, space, unread="search", outside="keep")
    answer = explainer.explain({"age": 60, "rate": 1.0})
    assert answer.status == "feasible"
    assert 2 <= answer[0].values["age"] <= 8  # type: ignore[operator]
    assert answer.reason.startswith("not proved")
    assert "'age' is 60" in answer.reason


def test_admitted_spaces() -> None:
    space = mace.FeatureSpace(
        {
            "one": mace.integer(5, 5),
            "grid": mace.integer(10, 30, step=7),
            "float": mace.real(0, 0.1, dtype="float32"),
            "gap": mace.real(0, 1, missing=True),
        }
    ).protect("one")
    inside = {"one": 5, "grid": 10, "float": 0.05, "gap": 0.5}
    assert admit(space, inside, widen=False) is None
    made = admit(space, {"one": 8, "grid": 4, "float": 0.3, "gap": 2.0}, widen=False)
    assert made is not None
    assert made.space.protected == ("one",)
    one, grid, number, gap = made.space.values()
    assert (one.low, one.high, one.range) == (5, 8, 3)  # type: ignore[union-attr]
    assert (grid.low, grid.high, grid.range, grid.step) == (3, 30, 20, 7)  # type: ignore[union-attr]
    assert number.range == space["float"].range
    assert gap.missing
    assert gap.range == 1
    assert set(made.ranges) == {"one", "grid", "float", "gap"}
    wide = admit(space, {"one": 8, "grid": 4, "float": 0.3, "gap": 2.0}, widen=True)
    assert wide is not None
    assert [float(each.range) for each in wide.space.values()] == pytest.approx([3, 26, 0.3, 2], rel=1e-6)
    assert set(wide.ranges) == {"grid"}
    assert mace.FeatureSpace.from_json(made.space.to_json()) == made.space


def test_room_beside_the_ranges_is_the_same_for_rows_alike() -> None:
    space = mace.FeatureSpace(
        {
            "age": mace.integer(18, 90, dtype="int8"),
            "income": mace.real(0, 1000, dtype="float32"),
            "size": mace.real(-1, 1),
            "same": mace.integer(3, 3),
            "grid": mace.real(0, 1, step=0.5),
        }
    )
    row = {"age": 50, "income": 10.0, "size": 0.0, "same": 3, "grid": 0.5}

    def around(**values: Any) -> mace.FeatureSpace | None:
        let_in = admit(space, {**row, **values}, widen=False)
        assert let_in is not None
        return roomy(space, let_in.space)

    first = around(income=1001.0)
    assert first is not None
    assert first == around(income=1999.0, size=2.5) == around(age=95)
    assert [(feature.low, feature.high) for feature in first.values()][:3] == [(0, 127), (0, 2000), (-3, 3)]  # type: ignore[union-attr]
    assert first["grid"] == space["grid"]
    below = around(income=-1500.0)
    assert below is not None
    assert (below["income"].low, below["income"].high) == (-2000, 3000)  # type: ignore[union-attr]
    assert around(same=4) is None
    assert around(size=1e30) is None

"""Distances measured by people: median absolute deviations, and the share of people passed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Distance, FeatureSpace, InvalidDistance, categorical, integer, ordinal, real
from mace.certify.entries import distance_dict, read_distance
from mace.distances import distance_text, distance_up, point_values
from mace.distances.change import change
from mace.distances.people import SHARE
from mace.distances.percentile import PercentileMetric, Percentiles
from mace.language import run
from mace.space import Point

RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame(
    {
        "x": RNG.gamma(2.0, 0.4, 400).round(3) - 1,
        "n": RNG.binomial(10, 0.3, 400),
        "o": pd.Categorical(RNG.choice(["a", "b", "c"], 400, p=[0.6, 0.3, 0.1]), ["a", "b", "c"], ordered=True),
        "c": RNG.choice(["p", "q", "r"], 400),
        "m": np.where(RNG.random(400) < 0.2, np.nan, RNG.random(400)),
        "one": 5,
    }
)
SPACE = FeatureSpace(
    {
        "x": real(-1.5, 4),
        "n": integer(0, 10),
        "o": ordinal(["a", "b", "c"]),
        "c": categorical(["p", "q", "r"]),
        "m": real(0, 1, missing=True),
        "one": integer(5, 5),
    }
)
points = st.tuples(
    st.floats(-1.5, 4),
    st.integers(0, 10),
    st.integers(0, 2),
    st.integers(0, 2),
    st.none() | st.floats(0, 1),
    st.just(5),
)
DISTANCES = [
    Distance(weights="mad", data=PEOPLE),
    Distance(linf=1, weights="mad", data=PEOPLE),
    Distance(weights="percentile", data=PEOPLE),
    Distance(l2=1, weights="percentile", data=PEOPLE),
    Distance(l0=0.25, l1=0.25, linf=0.5, weights="percentile", data=PEOPLE),
]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, new=points)
def test_program_and_exact_value_agree_and_nothing_is_for_free(distance: Distance, old: Point, new: Point) -> None:
    metric = distance.from_factual(SPACE, old)
    exact = metric.measure(new)
    assert run(metric.program(), point_values(SPACE, new)) == exact
    assert 0 <= exact <= 1
    assert (exact == 0) == (new == old)
    bound = distance_up(metric, exact)
    for index, (feature, a, b) in enumerate(zip(SPACE.values(), new, old, strict=True)):
        assert change(feature, a, b) <= metric.reach(index, bound)


@given(old=points, values=st.lists(st.floats(-1.5, 4), min_size=1, max_size=20))
def test_shares_in_floats_are_within_five_roundings(old: Point, values: list[float]) -> None:
    metric = DISTANCES[2].from_factual(SPACE, old)
    assert isinstance(metric, PercentileMetric)
    scale, own = metric.scales[0], old[0]
    assert scale is not None
    assert own is not None
    for value, fast in zip(values, scale.floats(float(own), np.array(values)), strict=True):
        exact = scale.passed(Fraction(value), Fraction(own))
        assert abs(Fraction(float(fast)) - exact) <= exact * 5 * Fraction(2) ** -53


# ---- by hand


def test_a_median_absolute_deviation_costs_what_another_category_does() -> None:
    data = pd.DataFrame({"a": [0, 1, 2, 3, 10], "mostly": [0, 0, 0, 0, 5], "same": 7.0, "c": list("pqrpq")})
    space = FeatureSpace(
        {"a": integer(0, 20), "mostly": integer(0, 5), "same": real(0, 8), "c": categorical(["p", "q"])}
    )
    metric = Distance(weights="mad", data=data).from_factual(space, (5, 0, 7.0, 0))
    category = metric.measure((5, 0, 7.0, 1))
    assert metric.measure((6, 0, 7.0, 0)) == category  # the deviations from 2 are 2, 1, 0, 1, 8
    assert metric.measure((5, 1, 7.0, 0)) == category  # the median deviation is 0, the mean 1
    assert metric.measure((5, 0, 3.0, 0)) == category / 2  # no deviation: half of the range


def test_a_change_costs_the_share_of_people_passed() -> None:
    data = pd.DataFrame({"a": [0, 0, 0, 1, 2, 2, 4, 8], "c": list("ppqqppqq")})
    space = FeatureSpace({"a": integer(0, 8), "c": categorical(["p", "q"])})
    metric = Distance(weights="percentile", data=data).from_factual(space, (1, 0))
    passed = {
        0: Fraction(1, 8),
        1: Fraction(0),
        2: Fraction(2, 8),
        3: Fraction(5, 16),
        4: Fraction(3, 8),
        8: Fraction(4, 8),
    }
    assert {a: 2 * metric.measure((a, 0)) for a in passed} == passed
    assert metric.measure((1, 1)) == Fraction(1, 2)


def test_beyond_the_people_every_step_costs_something() -> None:
    data = pd.DataFrame({"a": [2, 3, 3, 4]})
    metric = Distance(weights="percentile", data=data).from_factual(FeatureSpace({"a": integer(0, 10)}), (3,))
    assert metric.measure((4,)) == Fraction(1, 5)
    assert metric.measure((10,)) == Fraction(2, 5)
    assert metric.measure((2,)) == Fraction(2, 5)
    assert metric.measure((1,)) == Fraction(1, 2)


@pytest.mark.parametrize("levels", [["low", "mid", "high"], [1, 2, 4]])
def test_levels_in_order_are_counted_and_those_that_nobody_has_count_once(levels: list[Any]) -> None:
    column = pd.Series([levels[0]] * 6 + [levels[2]] * 3)
    is_text = isinstance(levels[0], str)
    data = pd.DataFrame({"o": pd.Categorical(column, levels, ordered=True) if is_text else column})
    metric = Distance(weights="percentile", data=data).from_factual(FeatureSpace({"o": ordinal(levels)}), (0,))
    if is_text:
        assert [metric.measure((k,)) for k in range(3)] == [0, Fraction(1, 10), Fraction(4, 10)]
    else:  # a number between two of them: a third of the way
        assert [metric.measure((k,)) for k in range(3)] == [0, Fraction(1, 9), Fraction(3, 9)]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=300))
def test_few_values_are_kept_and_shares_are_off_by_no_more_than_lies_between_two(values: list[int]) -> None:
    made = Distance(weights="percentile", data=pd.DataFrame({"a": values}))
    assert len(made.data["a"]) <= 2 / SHARE + 2
    space = FeatureSpace({"a": integer(min(values), max(max(values), min(values) + 1))})
    metric = made.from_factual(space, (min(values),))
    people = len(values) + (max(values) < space["a"].high)  # type: ignore[union-attr, operator]
    for value in set(values):
        passed = Fraction(sum(min(values) < each <= value for each in values), people)
        assert abs(metric.measure((value,)) - passed) <= SHARE


# ---- in words and files


def test_texts_and_files_say_what_the_distance_is() -> None:
    mad, percentile = DISTANCES[0], DISTANCES[2]
    assert str(mad) == "l1, in median absolute deviations"
    assert str(percentile) == "l1, by the share of people passed"
    assert repr(mad) == "Distance(l1=1, weights='mad')"
    assert mad.data.keys() == {"x", "n", "m", "one"}
    for distance in DISTANCES:
        factual = (0.0, 5, 0, 0, 0.5, 5)
        entry = distance_dict(distance, SPACE, factual)
        again = read_distance(entry)
        assert again == distance
        assert again.from_factual(SPACE, factual) == distance.from_factual(SPACE, factual)


ROW: Point = (0.0, 5, 0, 0, 0.5, 5)
BIT = FeatureSpace({"a": integer(0, 1)})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distance(weights="mad"), "give them, data=X_train"),
        (lambda: Distance(weights="iqr"), "'mad' or 'percentile' with data=X_train"),
        (lambda: Distance(weights={"x": 2}, data=PEOPLE), "leave it out"),
        (lambda: Distance(l1=1, data=PEOPLE), "leave it out"),
        (lambda: Distance(weights="mad", data=3), "data is int"),
        (lambda: Distance(weights="mad", data=PEOPLE[:0]), "data has no rows"),
        (lambda: Distance(weights="mad", data={"x": -1.0}), "deviation of 'x' is -1.0"),
        (lambda: Distance(weights="percentile", data={"x": 1.0}), "give pairs"),
        (lambda: Distance(weights="percentile", data={"x": []}), "give pairs"),
        (lambda: Distance(weights="percentile", data={"x": [[1, 3], [2, 2]]}), "do not fall"),
        (lambda: Distance(weights="percentile", data={"x": [[1, 0]]}), "do not fall"),
        (lambda: Distance(weights="percentile", data={"x": [[1, 2], [1, 3]]}), "each once"),
        (lambda: Distance(weights="percentile", data={"x": [[float("nan"), 2]]}), "each once"),
        (lambda: Distance(weights="mad", data=PEOPLE[["n"]]).from_factual(SPACE, ROW), "no numbers in a column 'x'"),
        (lambda: Distance(weights="percentile", data=PEOPLE.drop(columns="o")).from_factual(SPACE, ROW), "ordered category"),
        (lambda: Distance(weights="percentile", data={"a": [["x", 1]]}).from_factual(BIT, (0,)), "has texts"),
        (lambda: Distance(weights="percentile", data={"a": [[2, 1], [1, 3]]}).from_factual(BIT, (0,)), "do not rise"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises((InvalidDistance, mace.InvalidConstraint), match=message):
        make()


# ---- lanes

GRID = FeatureSpace(
    {"a": integer(0, 9), "b": integer(0, 9, step=3), "d": ordinal(["u", "v", "w"]), "c": categorical(["p", "q"])}
)
CROWD = pd.DataFrame(
    {
        "a": RNG.permutation(np.repeat(range(10), [60, 45, 30, 30, 30, 30, 21, 18, 18, 18])),
        "b": 3 * RNG.integers(0, 4, 300),
        "d": pd.Categorical(RNG.choice(["u", "v", "w"], 300, p=[0.7, 0.2, 0.1]), ["u", "v", "w"], ordered=True),
        "c": RNG.choice(["p", "q"], 300),
    }
)
LABELS = (CROWD.a + CROWD.b / 2 + 2 * (CROWD.d != "u") + 2 * (CROWD.c == "q") + RNG.normal(size=300) > 5).astype(int)


def share(name: str, new: object, old: object) -> float:
    """Return a change as it is defined, of people who have at most twenty different values."""
    if name == "c":
        return float(new != old)
    column = CROWD[name]
    return abs(float((column <= new).mean()) - float((column <= old).mean()))


def by_mad(name: str, new: object, old: object) -> float:
    if name in "cd":
        return float(new != old) if name == "c" else abs("uvw".index(str(new)) - "uvw".index(str(old))) / 2
    apart = (CROWD[name] - CROWD[name].median()).abs()
    return abs(float(new) - float(old)) / (float(apart.median()) or float(apart.mean()))  # type: ignore[arg-type]


@pytest.mark.parametrize(("weights", "meant"), [("percentile", share), ("mad", by_mad)])
@pytest.mark.parametrize(
    ("model", "solver"),
    [
        (DecisionTreeClassifier(max_depth=5, random_state=0), "trees"),
        (RandomForestClassifier(8, max_depth=4, random_state=0), "trees"),
        (DecisionTreeClassifier(max_depth=4, random_state=0), "smt"),
        (LogisticRegression(), "milp"),
        (LogisticRegression(), "smt"),
        (LogisticRegression(), "enumerate"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_lane_finds_the_nearest_as_defined(
    weights: str, meant: Callable[..., float], model: Any, solver: str
) -> None:
    fitted = make_pipeline(mace.Encoder(GRID), model).fit(CROWD, LABELS)
    rows = pd.DataFrame(list(itertools.product(range(10), range(0, 10, 3), "uvw", "pq")), columns=list(GRID))
    said = fitted.predict(rows)
    explainer, distance = mace.Explainer(fitted, GRID), Distance(weights=weights, data=CROWD)
    for row in rows.iloc[[0, 77, 130]].to_dict("records"):
        wanted = 1 - int(fitted.predict(pd.DataFrame([row]))[0])
        costs = [sum(meant(name, other[name], row[name]) for name in GRID) for other in rows.to_dict("records")]
        # Distances are means over features, deviations times what makes the weights' sum 1.
        scale = 1 / len(GRID) if weights == "percentile" else explainer.cost_table(row, distance).distance.iloc[-1]
        best = min(cost for cost, label in zip(costs, said, strict=True) if label == wanted) * scale
        found = explainer.explain(row, distance=distance, solver=solver, certify=True, time_limit=60)
        assert found.status == "optimal"
        assert found[0].distance == pytest.approx(best, abs=1e-6)
        verdict = mace.verify(mace.Certificate.from_json(found[0].certificate.to_json()), fitted)
        assert verdict.valid, verdict.reason


REALS = FeatureSpace({"x": real(-1.5, 4), "m": real(0, 1, missing=True), "c": categorical(["p", "q", "r"])})


@pytest.mark.parametrize("constraints", [(), ("x >= m",)], ids=["free", "boxes"])
def test_trees_over_reals_with_missing_values_are_proved_and_checked(constraints: tuple[str, ...]) -> None:
    frame = PEOPLE[list(REALS)]
    labels = (frame.x + frame.m.fillna(0.7) + (frame.c == "q") > 0.7).astype(int)
    model = make_pipeline(mace.Encoder(REALS), RandomForestClassifier(6, max_depth=4, random_state=1)).fit(
        frame, labels
    )
    explainer, distance = mace.Explainer(model, REALS), Distance(weights="percentile", data=frame)
    for row in frame.iloc[[0, 3, 8]].to_dict("records"):
        options: dict[str, Any] = {"distance": distance, "constraints": constraints, "time_limit": 60}
        found = explainer.explain(row, certify=True, count=2, **options)
        other = explainer.explain(row, solver="smt", **options)
        assert found.status == other.status == "optimal"
        assert found[0].distance == pytest.approx(other[0].distance, abs=2e-6)
        for each in found:
            verdict = mace.verify(mace.Certificate.from_json(each.certificate.to_json()), model)
            assert verdict.valid, verdict.reason


def test_a_network_is_left_to_the_general_lane() -> None:
    frame = PEOPLE[["x", "n"]]
    space = FeatureSpace({"x": real(-1.5, 4), "n": integer(0, 10)})
    network = make_pipeline(mace.Encoder(space), MLPClassifier((3,), max_iter=2000, random_state=0))
    model = network.fit(frame, (frame.x * 3 + frame.n > 3).astype(int))
    found = mace.Explainer(model, space).explain(
        frame.iloc[0].to_dict(), distance=Distance(weights="percentile", data=PEOPLE), time_limit=60
    )
    assert found.status == "optimal"
    assert found.solver.startswith("milp: the first lane that can; not trees")
    assert "counts people" in found.solver


def test_levels_that_are_text_are_counted_in_the_order_of_the_space() -> None:
    """A column of text has no order of its own; the space has one."""
    as_text = Distance(weights="percentile", data=PEOPLE.astype({"o": str}))
    ordered = Distance(weights="percentile", data=PEOPLE)
    for value in range(len(SPACE["o"].levels)):  # type: ignore[union-attr]
        moved = tuple(value if name == "o" else own for name, own in zip(SPACE, ROW, strict=True))
        measures = [each.from_factual(SPACE, ROW).measure(moved) for each in (as_text, ordered)]
        assert measures[0] == measures[1]
    many = PEOPLE.assign(o=[f"person {k}" for k in range(len(PEOPLE))])
    assert len(many) <= 64 or "o" not in (Distance(weights="percentile", data=many).data or {})


DATES = pd.DataFrame(
    {
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.permutation(np.arange(90) ** 2), unit="D"),
        "x": RNG.random(90).round(2),
    }
)


@pytest.mark.parametrize("column", ["moments", "dates", "texts"])
@pytest.mark.parametrize("unit", ["day", "hour"])
@pytest.mark.parametrize("weights", ["mad", "percentile"])
def test_dates_are_measured_by_people_as_their_days_are(weights: str, unit: str, column: str) -> None:
    """The same people with numbers for dates have the same distances, in whatever unit the space counts dates."""
    days = (DATES["since"] - pd.Timestamp("1970-01-01")).dt.days
    of_days = FeatureSpace.from_frame(DATES.assign(since=days))
    since = DATES["since"]
    people = DATES.assign(since={"moments": since, "dates": since.dt.date, "texts": since.astype(str)}[column])
    space = FeatureSpace({"since": mace.date(since.min(), since.max(), unit=unit), "x": of_days["x"]})
    counted, dated = Distance(weights=weights, data=DATES.assign(since=days)), Distance(weights=weights, data=people)
    assert Distance(weights=weights, data=json.loads(json.dumps(dated.data))) == dated
    for row in range(8):
        each = [(int(days[k]), float(DATES["x"][k])) for k in (row, row + 20)]
        units = 24 if unit == "hour" else 1
        own, moved = ((day * units, x) for day, x in each)
        assert dated.from_factual(space, own).measure(moved) == counted.from_factual(of_days, each[0]).measure(each[1])


def test_noise_of_dates_is_a_share_of_what_their_days_spread_by() -> None:
    space = FeatureSpace({"since": mace.date("2024-01-01", "2046-12-31", unit="hour"), "x": real(0, 1)})
    noise = mace.robust("50% of sd", data=DATES)
    days = (DATES["since"] - pd.Timestamp("1970-01-01")).dt.days
    assert float(noise.radii(space)["since"]) == pytest.approx(12 * float(days.std()))


def test_a_text_that_is_no_date_is_refused_for_a_feature_of_dates() -> None:
    people = DATES.assign(since=["early", "late"] * 45)
    space = FeatureSpace({"since": mace.date("2024-01-01", "2024-12-31"), "x": real(0, 1)})
    with pytest.raises(InvalidDistance, match="'since' has a text which is no date"):
        Distance(weights="percentile", data=people).from_factual(space, (19800, 0.5))


def test_what_a_sentence_calls_a_distance() -> None:
    assert distance_text(str(Distance(weights="mad", data=PEOPLE))) == "l1 distance, in median absolute deviations"
    assert distance_text("linf") == "linf distance"
    assert distance_text("lambda new, old: 1") == "lambda new, old: 1 distance"


DAY = 24 * 60 * 60 * 10**6
KNOTS: dict[str, tuple[list[Fraction], list[float]]] = {
    "moments in days": (
        [Fraction(19_000 * DAY + k * DAY // 7 + 1, DAY) for k in range(30)],
        [19_000.0, 19_001.0, 19_002.0],
    ),
    "moments beside days": (
        [Fraction(2_900_000 * DAY + k, DAY) for k in range(-9, 9)],
        [2_899_999.0, 2_900_000.0, 2_900_001.0],
    ),
    "neighbouring floats": (
        [Fraction(0.1) + k * Fraction(1, 2**56) for k in range(9)],
        [0.1 + k * 2.0**-56 for k in range(9)],
    ),
    "smallest floats": ([k * Fraction(5e-324) for k in range(9)], [k * 5e-324 for k in range(9)]),
}


@pytest.mark.parametrize("kind", KNOTS)
def test_shares_of_people_in_floats_are_those_of_fractions(kind: str) -> None:
    """Those that a search and its checker count with."""
    knots, values = KNOTS[kind]
    rng = np.random.default_rng(0)
    for _ in range(40):
        chosen = sorted(rng.choice(len(knots), int(rng.integers(2, 6)), replace=False).tolist())
        counts = np.cumsum(rng.integers(1, 5, len(chosen))).tolist()
        people = Percentiles(tuple(knots[k] for k in chosen), tuple(Fraction(each, counts[-1]) for each in counts))
        own = values[int(rng.integers(len(values)))]
        for value, found in zip(values, people.floats(own, np.array(values)), strict=True):
            exact = people.passed(Fraction(value), Fraction(own))
            assert abs(Fraction(float(found)) - exact) <= 6 * exact / 2**53

"""What keeps answers realistic, compared with brute force over a whole space, in every lane that takes it."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from outliers import NEAR, outlier_forest
from realistic import KINDS, SPACE, agrees, brute, every_point, explainer_of, frame_of, outcomes, rows_of
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.distances import as_distance
from mace.space import Point

# ---- sets of levers


def levers(values: dict[str, Any], row: dict[str, Any]) -> frozenset[str]:
    return frozenset(name for name in SPACE if values[name] != row[name])


@pytest.mark.parametrize("kind", KINDS)
def test_answers_that_differ_in_sets_change_no_superset_of_an_earlier_set(kind: str) -> None:
    explainer = explainer_of(kind)
    for row in rows_of(explainer, 0, 3):
        answer = explainer.explain(row, target=1, count=20, diversity=mace.differ(in_sets=True))
        earlier: list[frozenset[str]] = []
        for each in answer:
            best = brute(
                explainer,
                row,
                1,
                lambda point: not any(old <= levers(SPACE.values_of(point), row) for old in earlier),  # noqa: B023
            )
            assert best is not None
            assert each.status == "optimal"
            assert abs(each.distance - best) < 2e-6
            assert not any(old <= levers(each.values, row) for old in earlier)
            earlier.append(levers(each.values, row))
        assert answer.exhausted
        assert brute(explainer, row, 1, lambda point: not any(old <= levers(SPACE.values_of(point), row) for old in earlier)) is None  # fmt: skip  # noqa: B023, E501


def test_a_certificate_states_that_answers_differ_in_sets() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    answer = explainer.explain(
        row, target=1, count=2, diversity=mace.differ(in_sets=True), certify=True, solver="enumerate"
    )
    certificate = answer[1].certificate
    assert certificate is not None
    assert certificate.statement["diversity"] == {"in_sets": True}
    assert mace.verify(certificate, explainer.model).valid
    claimed = certificate.to_dict()
    claimed["claim"]["counterfactual"] = answer[0].certificate.claim["counterfactual"]  # type: ignore[union-attr]
    assert not mace.verify(claimed, explainer.model).valid
    claimed["statement"]["diversity"] = {"in_sets": False}
    with pytest.raises(mace.InvalidCertificate, match="how counterfactuals differ"):
        mace.verify(claimed, explainer.model)


# ---- incomparable sets


def stated(certificate: mace.Certificate | None, row: dict[str, Any]) -> list[frozenset[str]]:
    """Return the sets of features that the earlier answers of a certificate change."""
    assert certificate is not None
    return [levers(earlier, row) for earlier in certificate.statement["earlier"]]


@pytest.mark.parametrize("kind", KINDS)
def test_by_default_no_answer_changes_all_that_another_changes_or_only_some_of_it(kind: str) -> None:
    explainer = explainer_of(kind)
    for row in rows_of(explainer, 0, 3):
        answer = explainer.explain(row, target=1, count=20, certify=True)
        assert answer.diversity == "differ(sets='incomparable')"
        assert answer.exhausted
        sets = [levers(each.values, row) for each in answer]
        assert not [(a, b) for a, b in itertools.permutations(sets, 2) if a <= b]
        certificates = [*(each.certificate for each in answer), answer.certificate]
        for each, certificate in itertools.zip_longest(answer, certificates):
            earlier = stated(certificate, row)
            best = brute(
                explainer,
                row,
                1,
                lambda point: (
                    not any(
                        old <= new or new <= old
                        for new in [levers(SPACE.values_of(point), row)]  # noqa: B023
                        for old in earlier  # noqa: B023
                    )
                ),
            )
            assert (best is None) == (each is None)
            assert each is None or abs(each.distance - best) < 2e-6  # type: ignore[operator]
            assert mace.verify(certificate, explainer.model).outcome != "refuted"  # type: ignore[arg-type]
            for old in earlier:
                assert old in sets or any(old < shown for shown in sets)
        for number, each in enumerate(answer):
            for shown in sets[:number]:
                kept = {name: each.values[name] if name in shown else row[name] for name in SPACE}
                assert explainer.predict(kept) != 1, "nothing is changed only to be different"


def test_certificates_of_incomparable_sets_are_valid_and_no_others_are_taken_for_them() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    answer = explainer.explain(row, target=1, count=3, certify=True)
    certificate = answer[1].certificate
    assert certificate is not None
    assert certificate.statement["diversity"] == {"sets": "incomparable"}
    assert mace.verify(mace.Certificate.from_json(certificate.to_json()), explainer.model).valid
    claimed = certificate.to_dict()
    claimed["claim"]["counterfactual"] = answer[0].certificate.claim["counterfactual"]  # type: ignore[union-attr]
    assert not mace.verify(claimed, explainer.model).valid
    for wrong in ({"sets": "nested"}, {"sets": "incomparable", "by": 0.1}, {"sets": None}):
        claimed["statement"]["diversity"] = wrong
        with pytest.raises(mace.InvalidCertificate, match="how counterfactuals differ"):
            mace.verify(claimed, explainer.model)


# ---- regions


def test_an_answer_widens_itself_and_pickles_without_its_explainer() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    best = explainer.explain(row, target=1)[0]
    assert best.region() == explainer.region(best)
    assert best.region(["a", "b"]) == explainer.region(best, ["a", "b"])
    copied = pickle.loads(pickle.dumps(best))
    assert copied == best
    assert "widen" not in best.to_dict()
    with pytest.raises(mace.InvalidOption, match=r"explainer\.region"):
        copied.region()
    assert explainer.region(copied) == best.region()


# ---- near data


def near(rows: Any, k: int, radius: float, distance: str) -> Any:
    """Whether a point has enough neighbours, counted in fractions."""
    metrics = [as_distance(distance).from_factual(SPACE, SPACE.point(row)) for row in rows]

    def is_near(point: Point) -> bool:
        return sum(metric.measure(point) <= Fraction(radius) ** metric.power for metric in metrics) >= k

    return is_near


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "radius", "norm"), NEAR)
def test_a_counterfactual_near_data_is_the_nearest_such_row(kind: str, k: int, radius: float, norm: str) -> None:
    explainer = explainer_of(kind)
    people = frame_of(11, 5 if (kind, norm) == ("function", "l2") else 25)
    constraint = mace.near_data(people, k=k, radius=radius, distance=norm)
    is_near = near(people.to_dict("records"), k, radius, norm)
    for distance in ("l1", "linf"):
        for row in rows_of(explainer, 0, 2):
            answer = explainer.explain(row, target=1, constraints=[constraint], distance=distance)
            assert agrees(answer, brute(explainer, row, 1, is_near, distance)), (answer, row)
            assert kind == "function" or answer.solver.startswith(("trees", "network"))


@pytest.mark.parametrize("solver", ["milp", "smt", "enumerate"])
def test_the_other_lanes_keep_to_data_too(solver: str) -> None:
    people = frame_of(11, 8)
    for kind in ("forest", "linear"):
        explainer = explainer_of(kind)
        (row,) = rows_of(explainer, 0, 1)
        answer = explainer.explain(row, 1, constraints=[mace.near_data(people, k=2, radius=0.2)], solver=solver)
        assert agrees(answer, brute(explainer, row, 1, near(people.to_dict("records"), 2, 0.2, "l1")))


def test_data_over_real_and_missing_features() -> None:
    space = mace.FeatureSpace(
        {"a": mace.real(0, 10), "b": mace.real(0, 10, missing=True), "c": mace.categorical(["p", "q"])}
    )
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 200), "b": rng.uniform(0, 10, 200), "c": rng.choice(["p", "q"], 200)})
    frame.loc[::5, "b"] = np.nan
    labels = (frame.a + frame.b.fillna(3) + 2 * (frame.c == "q") > 11).astype(int)
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(5, max_depth=4, random_state=0)).fit(
        frame, labels
    )
    explainer = mace.Explainer(model, space)
    people = frame.iloc[:12]
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    constraint = mace.near_data(people, k=2, radius=0.15)
    answer = explainer.explain(row, target=1, constraints=[constraint])
    other = explainer.explain(row, target=1, constraints=[constraint], solver="smt", time_limit=60)
    assert answer.status == other.status == "optimal", (answer.reason, other.reason)
    assert answer.solver.startswith("trees")
    assert abs(answer[0].distance - other[0].distance) < 2e-6
    free = explainer.explain(row, target=1)
    assert free[0].distance < answer[0].distance, "the data should matter here"


def test_near_data_is_named_in_a_conflict_and_stated_in_a_certificate() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    alone = mace.near_data([row], k=1, radius=0.01)
    answer = explainer.explain(row, target=1, constraints=["a increases", alone])
    assert answer.status == "infeasible"
    assert answer.reason == "no counterfactual fulfils near_data(1 rows, k=1, radius=0.01)"
    wide = mace.near_data(frame_of(11, 5), k=1, radius=0.2)
    best = explainer.explain(row, target=1, constraints=[wide], certify=True, solver="enumerate")[0]
    assert best.certificate is not None
    assert mace.verify(mace.Certificate.from_json(best.certificate.to_json()), explainer.model).valid


@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=4, random_state=0), LogisticRegression()])
@pytest.mark.parametrize(
    ("k", "radius", "norms"), [(2, 0.05, {"l1": 1}), (3, 0.08, {"l1": 0.5, "linf": 0.5}), (1, 0.1, {})]
)
def test_near_data_by_the_share_of_people_passed(model: Any, k: int, radius: float, norms: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "n": rng.integers(0, 8, 60),
            "m": rng.exponential(2, 60).astype(int).clip(0, 6),
            "c": rng.choice(["a", "b", "c"], 60),
        }
    )
    space = mace.FeatureSpace.from_frame(frame)
    distance = mace.Distance(**(norms or {"l0": 1}), weights="percentile", data=frame)
    near = mace.near_data(frame.iloc[5:25], k=k, radius=radius, distance=distance)
    own = space.point(frame.iloc[0].to_dict())
    condition = near.bind(space, own)
    rows = [distance.from_factual(space, space.point(row)) for row in frame.iloc[5:25].to_dict("records")]
    values_of = [range(getattr(f, "low", 0), getattr(f, "low", 0) + (f.size or 0)) for f in space.values()]
    points = list(itertools.product(*values_of))
    for point in points:
        values = dict(zip(space, map(Fraction, point), strict=True))
        assert condition.holds(values) == (sum(row.measure(point) <= Fraction(str(radius)) for row in rows) >= k)
    target = np.asarray(mace.Encoder(space).fit_transform(frame)).sum(axis=1) + rng.normal(0, 1, 60)
    fitted = make_pipeline(mace.Encoder(space), model).fit(frame, (target > np.median(target)).astype(int))
    explainer = mace.Explainer(fitted, space)
    found = explainer.explain(frame.iloc[0], constraints=[near], distance="l1", certify=True, time_limit=120)
    truth = explainer.explain(frame.iloc[0], constraints=[near], distance="l1", solver="enumerate")
    assert (found.status, [each.distance for each in found]) == (truth.status, [each.distance for each in truth])
    for certificate in [each.certificate for each in found] or [found.certificate]:
        assert certificate is not None
        assert mace.verify(mace.Certificate.from_json(certificate.to_json()), fitted).outcome == "valid"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((frame_of(1, 3), 4), "from 1 to the 3 rows"),
        ((frame_of(1, 3), 0), "k is 0"),
        ((frame_of(1, 3), 1, -1), "radius is -1"),
        ((frame_of(1, 3).iloc[:0],), "no row"),
        (("rows",), "no table"),
        ((frame_of(1, 3), 1, 0.1, lambda new, old: new.a - old.a), "is a function"),
        (([{"a": 1}, {"b": 1}],), "same names"),
    ],
)
def test_data_that_makes_no_sense_is_refused(arguments: Any, said: str) -> None:
    with pytest.raises(mace.InvalidConstraint, match=said):
        mace.near_data(*arguments)


def test_rows_outside_the_space_are_refused() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    with pytest.raises(mace.InvalidConstraint, match="row 1 is not of the space"):
        explainer.explain(row, 1, constraints=[mace.near_data([row, row | {"d": "w"}], k=1)])
    with pytest.raises(mace.InvalidConstraint, match="no column 'd'"):
        explainer.explain(row, 1, constraints=[mace.near_data([{"a": 1, "b": 1, "c": "low"}], k=1)])


MIXED = mace.FeatureSpace(
    {
        "real": mace.real(-1, 5),
        "single": mace.real(0, 5, dtype="float32"),
        "gap": mace.real(0, 5, missing=True),
        "whole": mace.integer(0, 9),
        "level": mace.ordinal(["low", "high"]),
        "kind": mace.categorical(["a", "b", None]),
        "number": mace.categorical([1, 2]),
    }
)
CELLS: dict[str, list[Any]] = {
    "real": [0.1, -0.0, 5, True, np.float32(0.1), np.float64(4.5), np.int64(3)],
    "single": [0.1, 0, 4.999999999, np.float32(0.1)],
    "gap": [0.1, None, math.nan, pd.NA, 2],
    "whole": [3, 3.0, np.int8(9), True],
    "level": ["low", "high"],
    "kind": ["a", "b", None, math.nan],
    "number": [1, 2.0, True],
}
OUTSIDE = {"real": 5.1, "single": -1e-9, "gap": math.inf, "whole": 2.5, "level": "b", "kind": 1, "number": "1"}


@pytest.mark.parametrize("seed", range(30))
def test_rows_that_are_read_together_are_what_each_is_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixed = set(rng.choice(list(CELLS), 3, replace=False))
    rows = [
        {name: cells[rng.integers(len(cells)) if name in mixed else 0] for name, cells in CELLS.items()}
        for _ in range(12)
    ]
    constraint = mace.near_data(rows, k=1)
    points = [MIXED.point(row) for row in rows]
    read = constraint.bind(MIXED, points[0]).rows
    assert list(map(repr, read)) == list(map(repr, points))
    for number in (9, 4):
        name = str(rng.choice(list(OUTSIDE)))
        rows[number] = rows[number] | {name: OUTSIDE[name]}
        with pytest.raises(mace.InvalidRow) as alone:
            MIXED.point(rows[number])
        with pytest.raises(mace.InvalidConstraint) as together:
            mace.near_data(rows, k=1).bind(MIXED, points[0])
        assert str(together.value).endswith(f"row {number} is not of the space: {alone.value}")


# ---- typical rows


@pytest.mark.parametrize("seed", range(4))
def test_an_isolation_forest_is_read_as_it_predicts(seed: int) -> None:
    for options in ({}, {"max_features": 0.5}, {"contamination": "auto"}, {"n_estimators": 1}):
        forest = outlier_forest(seed, **options)
        mace.testing.check_model(forest, SPACE, count=200)
        said = outcomes(mace.Explainer(forest, SPACE))
        assert set(said.values()) <= {-1, 1}
        assert [said[point] for point in every_point()[::7]] == list(forest.predict(SPACE.frame_of(every_point()[::7])))


def test_the_nearest_usual_row_of_an_outlier() -> None:
    explainer = mace.Explainer(outlier_forest(0), SPACE)
    for row in rows_of(explainer, -1, 4):
        assert agrees(explainer.explain(row, target=1), brute(explainer, row, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_typical_counterfactual_is_the_nearest_that_the_forest_does_not_call_an_outlier(kind: str, seed: int) -> None:
    explainer, forest = explainer_of(kind), outlier_forest(seed)
    said = outcomes(mace.Explainer(forest, SPACE))
    constraint = mace.typical(forest)
    binding = 0
    for row in rows_of(explainer, 0, 3 if kind == "function" else 8):
        for distance in ("l1", "linf"):
            answer = explainer.explain(row, target=1, constraints=[constraint], distance=distance)
            best = brute(explainer, row, 1, lambda point: said[point] == 1, distance)
            assert agrees(answer, best), (answer, row, best)
            assert not answer or forest.predict(pd.DataFrame([answer[0].values]))[0] == 1
            binding += best != brute(explainer, row, 1, distance=distance)
    assert binding, "the forest should matter"


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["smt", "milp", "enumerate"])
def test_the_other_lanes_keep_to_typical_rows(solver: str) -> None:
    forest = outlier_forest(1, n_estimators=4, max_samples=12)
    said = outcomes(mace.Explainer(forest, SPACE))
    for kind in ("forest", "linear", "function"):
        explainer = explainer_of(kind)
        (row,) = rows_of(explainer, 0, 1)
        answer = explainer.explain(row, 1, constraints=[mace.typical(forest)], solver=solver)
        assert agrees(answer, brute(explainer, row, 1, lambda point: said[point] == 1))


def few_changes(point: Point, old: Point) -> bool:
    return sum(a != b for a, b in zip(point, old, strict=True)) <= 2 and point[2] == old[2]


@pytest.mark.slow
def test_typical_with_other_conditions_and_quantiles() -> None:
    explainer = explainer_of("forest")
    frame = frame_of(3)
    for row in rows_of(explainer, 0, 1):
        for made in (
            mace.typical(frame, 0.3),
            mace.typical(outlier_forest(2), 0.4, frame=frame),
            mace.typical(frame),
        ):
            condition: Any = made.bind(SPACE, SPACE.point(row))
            usual = condition.reading.ask(every_point())
            allowed = {point for point, code in zip(every_point(), usual, strict=True) if code == 1}
            answer = explainer.explain(row, target=1, constraints=[made, "at most 2 features change", "c stays"])
            kept = {point for point in allowed if few_changes(point, SPACE.point(row))}
            assert agrees(answer, brute(explainer, row, 1, kept.__contains__))


@pytest.mark.slow
def test_typical_over_real_features_agrees_with_the_smt_lane() -> None:
    space = mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(0, 10), "c": mace.categorical(["p", "q"])})
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"a": rng.uniform(0, 10, 200), "b": rng.normal(5, 1, 200).clip(0, 10), "c": rng.choice(["p", "q"], 200)}
    )
    labels = (frame.a + 2 * frame.b + 2 * (frame.c == "q") > 17).astype(int)
    forest = make_pipeline(
        mace.Encoder(space), IsolationForest(n_estimators=5, max_samples=20, contamination=0.4, random_state=0)
    ).fit(frame)
    for estimator in (RandomForestClassifier(4, max_depth=4, random_state=0), LogisticRegression()):
        explainer = mace.Explainer(make_pipeline(mace.Encoder(space), estimator).fit(frame, labels), space)
        rows = [row for row in frame.to_dict("records") if explainer.predict(row) == 0][:2]
        for row in rows:
            made: dict[str, Any] = {"target": 1, "constraints": [mace.typical(forest)]}
            answer, other = explainer.explain(row, **made), explainer.explain(row, **made, solver="smt", time_limit=60)
            assert answer.status == "optimal", answer.reason
            assert other[0].lower <= answer[0].distance <= other[0].distance + 2e-6
            assert answer[0].lower <= other[0].distance


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((outlier_forest(0), 0.1), "frame=X_train"),
        ((frame_of(1), 2), "quantile is 2"),
        (("forest",), "neither a fitted"),
    ],
)
def test_a_typical_that_makes_no_sense_is_refused(arguments: Any, said: str) -> None:
    with pytest.raises(mace.InvalidConstraint, match=said):
        mace.typical(*arguments)


def test_only_isolation_forests_say_what_is_typical() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    with pytest.raises(mace.InvalidConstraint, match="no IsolationForest"):
        explainer.explain(row, 1, constraints=[mace.typical(explainer_of("linear").model)])
    with pytest.raises(mace.InvalidConstraint, match="no column 'a'"):
        explainer.explain(row, 1, constraints=[mace.typical(frame_of(1).drop(columns="a"))])


# ---- robust answers

NOISES: list[dict[str, float]] = [{"a": 1}, {"b": 0.3}, {"a": 1, "b": 0.25}, {"a": 0.9, "c": 1}]


def stands(explainer: mace.Explainer, noise: dict[str, float]) -> Any:
    """Whether all rows of the space within the noise of a point are put in class 1."""
    said = outcomes(explainer)
    radii = [Fraction(noise.get(name, 0)) for name in SPACE]

    def is_within(point: Point, other: Point) -> bool:
        pairs: Any = zip(point, other, radii, strict=True)
        return all(abs(Fraction(x) - Fraction(y)) <= radius for x, y, radius in pairs)

    return lambda point: all(said[other] == 1 for other in every_point() if is_within(point, other))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_robust_counterfactual_is_the_nearest_that_noise_does_not_undo(kind: str, noise: dict[str, float]) -> None:
    explainer = explainer_of(kind)
    for row in rows_of(explainer, 0, 1 if kind == "function" else 2):
        answer = explainer.explain(row, target=1, constraints=[mace.robust(noise), "c increases"])
        old = SPACE.point(row)[2]
        is_beyond_rounding = stands(explainer, noise)
        best = brute(explainer, row, 1, lambda point: point[2] >= old and is_beyond_rounding(point))  # noqa: B023
        assert agrees(answer, best), (answer, best)


REALS = mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(0, 10), "c": mace.integer(0, 4)})


def over_reals(estimator: Any) -> tuple[mace.Explainer, list[dict[str, Any]]]:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.uniform(0, 10, 300), "b": rng.uniform(0, 10, 300), "c": rng.integers(0, 5, 300)})
    labels = (frame.a + 0.5 * frame.b + frame.c > 9).astype(int)
    explainer = mace.Explainer(make_pipeline(mace.Encoder(REALS), estimator).fit(frame, labels), REALS)
    return explainer, [row for row in frame.to_dict("records") if explainer.predict(row) == 0][:3]


def test_noise_moves_the_boundary_of_a_linear_model() -> None:
    explainer, rows = over_reals(LogisticRegression())
    weights, bias = explainer.model[-1].coef_[0], explainer.model[-1].intercept_[0]
    noise = {"a": 0.5, "b": 1.0, "c": 1}
    needed = np.abs(weights) @ np.array([0.5, 1.0, 1.0])
    for row in rows:
        answer = explainer.explain(row, target=1, constraints=[mace.robust(noise), "c stays", "b stays"])
        assert answer.status == "optimal"
        at = answer[0].values
        edge = max(1 - row["c"], 0) + max(row["c"] + 1 - 4, 0), max(1 - row["b"], 0), max(row["b"] - 9, 0)
        if not any(edge):
            # Inside of the ranges the worst case is a corner of the box, so the answer lies on the boundary moved by as much.
            assert at["a"] * weights[0] + row["b"] * weights[1] + row["c"] * weights[2] + bias == pytest.approx(
                needed, abs=1e-4
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3, max_depth=3, random_state=0),
        MLPClassifier((3,), solver="lbfgs", max_iter=2000, random_state=1),
    ],
    ids=["forest", "network"],
)
def test_every_row_around_a_robust_answer_reaches_the_target(estimator: Any) -> None:
    explainer, rows = over_reals(estimator)
    noise = {"a": 0.4, "b": 0.7}
    rng = np.random.default_rng(0)
    for row in rows:
        answer = explainer.explain(row, target=1, constraints=[mace.robust(noise)], time_limit=20)
        assert answer, answer.reason
        around = pd.DataFrame([answer[0].values] * 400)
        for name, radius in noise.items():
            ends = rng.choice([-radius, radius], 400) * rng.choice([1.0, rng.random()], 400)
            around[name] = (around[name] + ends * (1 - 1e-12)).clip(0, 10)
        assert set(explainer.model.predict(around)) == {1}
        plain = explainer.explain(row, target=1)[0]
        assert plain.distance <= answer[0].distance
        assert answer.status == "optimal", (answer.reason, answer[0].lower, answer[0].distance)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(4, max_depth=4, random_state=0), LogisticRegression()], ids=str
)
@pytest.mark.parametrize("radius", [2, 3, 7])
def test_noise_keeps_to_the_steps_of_a_grid(estimator: Any, radius: int) -> None:
    """The last step of ``n`` is 9, not its end, 10."""
    space = mace.FeatureSpace({"n": mace.integer(0, 10, step=3), "m": mace.integer(0, 8)})
    points = list(itertools.product([0, 3, 6, 9], range(9)))
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(points * 3, columns=["n", "m"])
    labels = (frame.n + 1.5 * frame.m + rng.normal(0, 2, len(frame)) > 9).astype(int)
    model = estimator.fit(frame, labels)
    explainer = mace.Explainer(model, space)
    said = dict(zip(points, model.predict(pd.DataFrame(points, columns=["n", "m"])), strict=True))
    for row in [point for point in points if said[point] == 0][:6]:
        answer = explainer.explain(row, target=1, constraints=[mace.robust({"n": radius})])
        costs = [
            (abs(n - row[0]) / 10 + abs(m - row[1]) / 8) / 2
            for n, m in points
            if all(said[other, m] == 1 for other in (0, 3, 6, 9) if abs(other - n) <= radius)
        ]
        assert (answer.status == "infeasible") if not costs else answer[0].distance == pytest.approx(min(costs))


def test_what_noise_always_undoes_is_infeasible_and_a_deadline_is_kept() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    hopeless = mace.robust({"a": 6, "b": 2})
    answer = explainer.explain(row, target=1, constraints=[hopeless, "d stays", "c stays"])
    assert answer.status == "infeasible"
    assert "robust({'a': 6, 'b': 2})" in answer.reason
    hurried = explainer.explain(row, target=1, constraints=[mace.robust({"a": 1})], time_limit=1e-9)
    assert hurried.status == "unknown"
    assert "time" in hurried.reason


def test_noise_that_makes_no_sense_is_refused() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    with pytest.raises(mace.InvalidConstraint, match="categorical"):
        explainer.explain(row, 1, constraints=[mace.robust({"d": 1})])
    with pytest.raises(mace.InvalidConstraint, match="radius of 'a' is -1"):
        mace.robust({"a": -1})
    with pytest.raises(mace.InvalidConstraint, match="give a dict"):
        mace.robust({})
    with pytest.raises(mace.InvalidOption, match="is given twice"):
        explainer.explain(row, 1, constraints=[mace.robust({"a": 1}), mace.robust({"b": 0.3})])

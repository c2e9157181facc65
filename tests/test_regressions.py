"""Every bug that was found gets a test: names that clash, numbers of other types, roots, underflow, ugly input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Explainer, FeatureSpace, categorical, integer, real


def linear(coefficients: list[float], intercept: float) -> Any:
    model = LogisticRegression().fit([[0.0] * len(coefficients), [1.0] * len(coefficients)], [0, 1])
    model.coef_, model.intercept_ = np.array([coefficients]), np.array([intercept])
    return model


# ---- names


def test_features_whose_names_extend_each_other_stay_apart() -> None:
    space = FeatureSpace({"house": real(0, 1, step=0.1), "house value": real(0, 1)})
    X = np.random.default_rng(0).uniform(size=(500, 2))
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, ((X[:, 0] > 0.55) & (X[:, 1] < 0.3)).astype(int))
    assert Explainer(model, space).explain([0.9, 0.9], target=1, solver="smt").status == "optimal"


@pytest.mark.parametrize(
    "name", ["model", "model.score", "distance", "score", "best", "y", "delta(b)", "condition 0.result", "b index"]
)
def test_a_feature_may_have_any_ordinary_name(name: str) -> None:
    space = FeatureSpace({name: real(5, 10), "b": integer(0, 1, missing=False)})
    explanation = Explainer(linear([1.0, 0.0], -7.0), space).explain(
        [9.0, 0], solver="smt", count=2, diversity=mace.differ()
    )
    assert explanation.status == "optimal"
    assert explanation[0].values[name] == pytest.approx(7, abs=1e-4)


def test_names_that_begin_like_our_own_variables_are_refused() -> None:
    with pytest.raises(mace.InvalidSpace, match="Rename it"):
        FeatureSpace({"§score": real(0, 1)})


# ---- functions

W32 = np.float32(0.1)
K8 = np.int8(100)
ARRAY = np.array([0.5, 0.25])


@pytest.mark.parametrize(
    "function", [lambda x: 1 if x * W32 >= 0.05 else 0, lambda x: 1 if x * K8 < -5 else 0], ids=["float32", "int8"]
)
def test_numbers_of_other_types_of_numpy_are_refused(function: Any) -> None:
    with pytest.raises(mace.UnsupportedModel, match="compute in their own way"):
        Explainer(function, FeatureSpace({"x": real(0, 1)}))


def test_arrays_of_float64_are_constants() -> None:
    explanation = Explainer(lambda x: 1 if x * ARRAY[0] >= ARRAY[1] else 0, FeatureSpace({"x": real(0, 1)})).explain(
        [0.1]
    )
    assert explanation[0].values["x"] == pytest.approx(0.5, abs=1e-5)


def isnan(x: float) -> bool:
    return x > 0.3


def test_a_users_own_isnan_is_not_the_librarys() -> None:
    with pytest.raises(mace.UnsupportedModel, match="the call of isnan"):
        Explainer(lambda x: 1 if isnan(x) else 0, FeatureSpace({"x": real(0, 1)}))


def rounded(x: float) -> int:
    if 1e16 + 1 == 1e16:
        return 1 if x > 0.5 else 0
    return 0


def converted(x: float) -> int:
    y = float(9007199254740993)
    return 1 if x >= y else 0


def test_large_whole_floats_are_rounded_as_python_rounds_them() -> None:
    assert Explainer(rounded, FeatureSpace({"x": real(0, 1)})).explain([0.2]).status == "optimal"
    space = FeatureSpace({"x": real(9007199254740900, 9007199254741000)})
    explanation = Explainer(converted, space).explain([9007199254740900.0])
    assert explanation.lower <= 0.92


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: 1 if x * 0.1 + y * 0.3 == 0.2 else 0,
        lambda x, y: 1 if 0.7 + x * 1e-20 > 0.7 and x > 0.9 else 0,
        lambda x, y: 1 if x * 3 == 0.3 * 3 else 0,
    ],
)
@pytest.mark.parametrize("accuracy", [1e-6, 2])
def test_a_model_that_only_rounding_decides_is_answered_honestly(function: Any, accuracy: float) -> None:
    explainer = Explainer(function, FeatureSpace({"x": real(0, 1), "y": real(0, 1)}))
    explanation = explainer.explain([0.1, 0.1], distance="linf", accuracy=accuracy, time_limit=20)
    for counterfactual in explanation:
        assert explainer.predict(counterfactual.values) == 1


# ---- bounds


def test_lower_is_never_above_the_distance_of_the_row_itself() -> None:
    space = FeatureSpace({"a": integer(0, 6), "b": categorical([0, 1])})
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit([[0, 0], [2, 0], [3, 0], [6, 1]], [0, 0, 1, 1])
    distance = mace.Distance(l2=1.0, weights={"a": 1e-12})
    for solver in ("smt", "trees", "enumerate"):
        explanation = Explainer(model, space).explain([0, 0], distance=distance, solver=solver)
        metric = distance.from_factual(space, (0, 0))
        assert Fraction(explanation[0].lower) ** 2 <= metric.measure(space.point(explanation[0].values))


def test_a_distance_must_be_defined_everywhere() -> None:
    explainer = Explainer(lambda age: 1 if age > 30 else 0, FeatureSpace({"age": integer(0, 50)}))
    for text in (
        "lambda new, old: abs(new.age - old.age) / (old.age - 20)",
        "lambda new, old: abs(new.age - old.age) / new.age",
    ):
        with pytest.raises(mace.InvalidDistance, match="divides by"):
            explainer.explain({"age": 20}, distance=text)


def test_underflow_is_part_of_the_rounding() -> None:
    explainer = Explainer(linear([1e-200], 0.0), FeatureSpace({"x": real(0, 1e-120)}))
    explanation = explainer.explain([1e-120], target=0)
    assert explanation.lower <= 0.9998


@pytest.mark.parametrize("solver", ["smt", "enumerate"])
def test_diversity_by_distance_is_exact_on_decimal_grids(solver: str) -> None:
    space = FeatureSpace({"a": real(0, 0.7, step=0.7), "b": integer(0, 3)})
    model = DecisionTreeClassifier(random_state=0).fit([[0, 0], [0, 1], [0.7, 0], [0.7, 3]], [0, 1, 0, 1])
    explanation = Explainer(model, space).explain(
        [0.7, 0],
        distance="l0",
        count=4,
        diversity=mace.differ(distance=0.4),
        constraints=[mace.fixed("a")],
        solver=solver,
    )
    assert explanation.status == "optimal"
    assert explanation.exhausted


# ---- ugly input

EXPLAINER = Explainer(
    lambda n, x, c: 1 if n + x > 3 and c == "p" else 0,
    FeatureSpace({"n": integer(0, 5), "x": real(0, 1), "c": categorical(["p", "q"])}),
)
ROW = {"n": 1, "x": 0.5, "c": "p"}


@pytest.mark.parametrize(
    "row",
    [ROW | {"n": 10**400}, ROW | {"x": -(10**400)}, ROW | {"n": b"2"},
     ROW | {"c": np.array(["p", "q"])}, ROW | {"x": [1]}, np.array(3), pd.Series([1, 2, 0.5, "p"], index=["n", "n", "x", "c"])],
    ids=lambda row: type(row).__name__,
)  # fmt: skip
def test_an_ugly_row_is_an_invalid_row(row: Any) -> None:
    with pytest.raises(mace.InvalidRow):
        EXPLAINER.explain(row)


@pytest.mark.parametrize(
    ("error", "ask"),
    [
        (mace.InvalidConstraint, {"constraints": [mace.within("x", 0, math.inf)]}),
        (mace.InvalidConstraint, {"constraints": 5}),
        (mace.InvalidOption, {"diversity": 0.1}),
        (mace.InvalidOption, {"solver": ["smt"]}),
        (mace.InvalidOption, {"on_progress": 5}),
        (mace.InvalidOption, {"accuracy": 10**400}),
        (mace.InvalidOption, {"time_limit": 10**400}),
        (mace.InvalidTarget, {"target": np.array([1])}),
        (mace.InvalidTarget, {"target": math.nan}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_ugly_question_is_an_error_of_ours(error: type[Exception], ask: dict[str, Any]) -> None:
    with pytest.raises(error):
        EXPLAINER.explain(ROW, **ask)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mace.one_of("c", 5),  # type: ignore[arg-type]
        lambda: mace.any_of(5),  # type: ignore[arg-type]
        lambda: mace.any_of(None),  # type: ignore[arg-type]
        lambda: mace.Distance(l1=1, weights=None),  # type: ignore[arg-type]
        lambda: mace.Distance(l1=1, weights=[1]),  # type: ignore[arg-type]
        lambda: integer(0, 10**400),
        lambda: real(None, 1),  # type: ignore[arg-type]
        lambda: real(0, 1, missing="no"),  # type: ignore[arg-type]
        lambda: real(1e16, 1e16 + 400, step=0.1),
        lambda: categorical(5),  # type: ignore[arg-type]
        lambda: categorical(None),  # type: ignore[arg-type]
        lambda: categorical([math.inf]),
        lambda: FeatureSpace.from_frame(pd.DataFrame({"a": [[1], [2]]})),
        lambda: FeatureSpace.from_json("[" * 100_000),
        lambda: FeatureSpace.from_json(None),  # type: ignore[arg-type]
        lambda: FeatureSpace.from_json('{"version": 1, "features": {"a": {"kind": ["real"]}}}'),
        lambda: FeatureSpace.from_json('{"version": 1, "features": {"a": {"kind": "ordinal", "levels": "abc"}}}'),
        lambda: FeatureSpace.from_json(
            '{"version": 1, "features": {"a": {"kind": "real", "low": 0, "high": 1%s}}}' % ("0" * 400)
        ),
        lambda: Explainer(linear([math.nan], 0.0), FeatureSpace({"a": real(0, 1)})),
        lambda: Explainer(linear([1e300], 0.0), FeatureSpace({"a": real(0, 1)})),
    ],
)
def test_ugly_arguments_are_errors_of_ours(make: Any) -> None:
    with pytest.raises(mace.MaceError):
        make()


def test_numpy_scalars_are_welcome_in_constraints_targets_and_weights() -> None:
    constraints = [mace.within("n", np.int64(0), np.float64(4)), mace.one_of("c", np.array(["p"]))]
    distance = mace.Distance(l1=1, weights={"n": np.float32(2)})
    explanation = EXPLAINER.explain(ROW, target=np.int64(1), constraints=constraints, distance=distance)
    assert explanation.status == "optimal"
    assert EXPLAINER.explain(ROW, constraints=None).status == "optimal"


def test_a_sparsified_linear_model_is_read() -> None:
    model = LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    explanation = Explainer(model.sparsify(), FeatureSpace({"a": real(0, 1), "b": real(0, 1)})).explain([0.1, 0.9])
    assert explanation.status == "optimal"


def test_a_function_with_keyword_only_parameters_is_refused() -> None:
    def keyword(*, n: int) -> int:
        return 1 if n > 2 else 0

    with pytest.raises(mace.UnsupportedModel, match="keyword-only"):
        Explainer(keyword, FeatureSpace({"n": integer(0, 5)}))


def test_a_function_that_fails_on_the_row_says_so() -> None:
    explainer = Explainer(lambda n: 1 if 1 / n > 0.4 else 0, FeatureSpace({"n": integer(0, 5)}))
    with pytest.raises(mace.UnsupportedModel, match="fails with ZeroDivisionError"):
        explainer.explain({"n": 0})


@pytest.mark.parametrize("threshold", [math.nan, -math.inf])
def test_a_tree_with_a_threshold_that_is_no_number_is_refused(threshold: float) -> None:
    model = DecisionTreeClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1])
    model.tree_.threshold[0] = threshold
    with pytest.raises(mace.UnsupportedModel, match="threshold is no number"):
        Explainer(model, FeatureSpace({"a": real(0, 1)}))


# ---- the network lane


def test_large_weights_of_levels_do_not_overflow_under_l2() -> None:
    space = FeatureSpace({"c": categorical(["a", "b", "c"]), "d": categorical(["x", "y", "z"])})
    encoder = mace.Encoder(space)
    frame = space.frame_of([(0, 0), (2, 2)])
    model = make_pipeline(encoder, LogisticRegression()).fit(frame, [0, 1])
    model[-1].coef_, model[-1].intercept_ = np.array([[0, 1e9, 3e9, 0, 1e9, 2e9]]), np.array([-3.5e9])
    explanation = Explainer(model, space).explain({"c": "a", "d": "x"}, distance="l2", solver="network")
    assert (explanation.status, explanation[0].distance) == ("optimal", 1.0)


@pytest.mark.parametrize(
    ("low", "step", "own", "wanted", "threshold"),
    [
        (-100.0, 0.1, -0.5, -0.6, -0.5999999999999999),
        (-100.0, 0.1, 0.6, 0.4, 0.4000000000000002),
        (-1e6, 0.1, -0.9, -1.1, -1.0999999999999925),
        (-50.0, 0.01, 0.06, 0.05, 0.050000000000000225),
    ],
)
def test_a_grid_value_that_the_kernels_round_is_not_lost(
    low: float, step: float, own: float, wanted: float, threshold: float
) -> None:
    space = FeatureSpace({"x": real(low, -low, step=step), "n": integer(0, 1)})
    model = linear([-1.0, 0.0], threshold)
    assert model.predict([[own, 0]]) != model.predict([[wanted, 0]])
    explanation = Explainer(model, space).explain([own, 0], distance="linf", solver="network", accuracy=1e-12)
    assert explanation[0].values["x"] == wanted
    exact = abs(Fraction(wanted) - Fraction(own)) / space["x"].range
    assert explanation[0].lower <= exact


@pytest.mark.parametrize(("base", "step"), [(1e11, 1e-3), (1e12, 0.01), (1e15, 0.3)])
def test_a_grid_as_fine_as_floats_is_left_to_other_lanes(base: float, step: float) -> None:
    space = FeatureSpace({"t": real(base, base + 12 * step, step=step), "n": integer(0, 1)})
    first, second = space["t"].value_at(0), space["t"].value_at(1)
    explainer = Explainer(linear([1.0, 0.0], -(first + second) / 2), space)
    assert (
        explainer.explain([first, 0], solver="auto", time_limit=20).lower <= Fraction(second - first) / space["t"].range
    )
    with pytest.raises(mace.InvalidOption, match="too fine"):
        explainer.explain([first, 0], solver="network")


def test_ranges_beyond_the_reach_of_products_are_left_to_other_lanes() -> None:
    for high, weight in ((1e308, 1e-308), (5e-324, 1e100)):
        space = FeatureSpace({"x": real(0, high), "y": real(0, 1)})
        explanation = Explainer(linear([weight, 0.5], -0.4), space).explain([0, 0], time_limit=20)
        assert explanation.solver.startswith(("milp", "smt"))
        assert explanation.lower <= 0.41


def test_weights_of_a_distance_that_underflow_are_left_to_other_lanes() -> None:
    space = FeatureSpace({"x": real(0, 1), "y": real(0, 1)})
    distance = mace.Distance(linf=1.0, weights={"x": 1e-300, "y": 1e300})
    explanation = Explainer(linear([1.0, 1.0], -0.5), space).explain([0, 0], distance=distance, time_limit=20)
    assert explanation.status == "optimal"

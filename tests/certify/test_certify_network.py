"""Certificates of the network lane: proofs of honest answers are accepted, those of broken solvers and changed ones are refused."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from certified_networks import inside, place, small
from random_networks import DISTANCES, FAMILIES, SINGLE, asked, random_network
from random_problems import random_case
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from tampering import REFUTED, TRUE_OR_REFUSED, Data, Tampering, is_true, outcome_of, parts_of

import mace
from mace import FeatureSpace, categorical, integer, ordinal, real
from mace.certify.network import checker
from mace.certify.network.ball import Field, make_ball
from mace.certify.network.coordinates import make_axes
from mace.certify.network.relaxation import BoxRelaxation
from mace.certify.verdict import Refuted
from mace.distances import NormMetric, as_distance
from mace.exact import UNIT, float_down, float_up
from mace.forms import Network
from mace.forms.scoring import column_values
from mace.problem import Bounds, Limits, Problem
from mace.solvers import network
from mace.solvers.abilities import obstacle
from mace.space import Column, Point

ROUNDS = len(FAMILIES) * len(DISTANCES)


def solved(problem: Problem, seconds: float | None = None) -> Bounds:
    """Return what the lane answers, with its proof."""
    network.prepare()
    return network.solve(problem, Limits.of(seconds, record=True))


def claimed(bounds: Bounds) -> Fraction | None:
    """Return the bound as a certificate holds it."""
    return None if bounds.is_infeasible else Fraction(float_down(bounds.lower))


def verdict(problem: Problem, lower: Fraction | None, evidence: Any) -> str:
    """Return why a proof is refused; empty where it is accepted."""
    try:
        checker.check(problem, lower, evidence, lambda share: None)
    except Refuted as refused:
        return str(refused)
    return ""


def nothing(problem: Problem) -> dict[str, Any]:
    """Return evidence without a single cut."""
    assert isinstance(problem.form, Network)
    alternatives = problem.goal.alternatives(len(problem.form.biases[-1]), ties_last=problem.form.ties_last)
    return {"lane": "network", "parts": [{"feature": np.array([-1]), "at": np.zeros(0)} for _ in alternatives]}


# ---- honest answers


@pytest.mark.parametrize("seed", [*range(2 * ROUNDS), *range(10_000, 10_000 + 2 * ROUNDS)])
def test_proofs_of_random_problems_are_accepted(seed: int) -> None:
    problem = random_network(seed, finite=seed < 10_000).problem
    assert not obstacle(network, problem)
    bounds = solved(problem)
    if bounds.is_infeasible or bounds.lower > 0:
        assert bounds.evidence is not None
        assert verdict(problem, claimed(bounds), bounds.evidence) == ""


@pytest.mark.parametrize("seed", [*range(0, ROUNDS, 2), *range(10_000, 10_000 + ROUNDS, 4)])
def test_a_bound_beyond_the_optimum_is_refused(seed: int) -> None:
    """Whatever the cuts are: those of the honest proof, and none at all."""
    problem = random_network(seed, finite=seed < 10_000).problem
    assert not obstacle(network, problem)
    bounds = solved(problem)
    if bounds.upper is None:
        return
    for lower in (
        Fraction(float_up(bounds.upper) + (1e-12 if seed < 10_000 else 1e-9)),
        bounds.upper + Fraction(1, 10**6),
        None,
    ):
        for evidence in (bounds.evidence or nothing(problem), nothing(problem)):
            assert "leaf" in verdict(problem, lower, evidence)


@pytest.mark.parametrize("seed", [k for k in range(120) if k % 9 in (4, 5, 6, 7)])
def test_certificates_of_fitted_models_are_valid(seed: int) -> None:
    case = random_case(seed)
    question = dict(case.question)
    if isinstance(question["distance"], str) and question["distance"].startswith("lambda"):
        question["distance"] = "l1"
    try:
        explanation = mace.Explainer(case.model, case.space).explain(
            case.row, count=2, diversity=mace.differ(), certify=True, **question
        )
    except mace.InvalidTarget:
        return
    for certificate in [*(answer.certificate for answer in explanation), explanation.certificate]:
        if certificate is not None:
            assert certificate.evidence["lane"] == "network"
            assert mace.verify(mace.Certificate.from_json(certificate.to_json()), case.model) == mace.Verdict("valid")


def fitted(hidden: tuple[int, ...], *, classes: int = 2) -> tuple[Any, FeatureSpace, Any]:
    """Return a fitted model over features of all kinds, and its rows."""
    rng = np.random.default_rng(3)
    space = FeatureSpace(
        {
            "age": integer(18, 90),
            "income": real(0, 100),
            "saved": real(0, 50, step=0.1),
            "education": ordinal(["primary", "secondary", "degree"]),
            "housing": categorical(["rent", "own", "free"]),
        }
    )
    points: list[Point] = [
        (
            int(rng.integers(18, 91)),
            float(rng.uniform(0, 100)),
            space["saved"].value_at(int(rng.integers(501))),  # type: ignore[union-attr]
            int(rng.integers(3)),
            int(rng.integers(3)),
        )
        for _ in range(300)
    ]
    frame = space.frame_of(points)
    score = np.array([p[0] / 40 + p[1] / 40 + p[2] / 30 + p[3] + (p[4] == 1) for p in points]) + rng.normal(0, 0.3, 300)  # type: ignore[operator]
    labels = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    last: Any = MLPClassifier(hidden, random_state=0, max_iter=200) if hidden else LogisticRegression(max_iter=1000)
    return make_pipeline(mace.Encoder(space), last).fit(frame, labels), space, frame


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("hidden", "classes", "question"),
    [
        ((), 2, {"distance": "linf"}),
        ((8, 8), 2, {"distance": "l1", "constraints": [mace.fixed("age"), mace.increases("education")]}),
        ((8, 8), 2, {"distance": "l2", "count": 3, "diversity": mace.differ()}),
        ((8,), 2, {"distance": mace.Distance(l0=0.5, l1=0.25, linf=0.25, weights={"income": 3.0}), "count": 2, "diversity": mace.differ()}),
        ((8,), 2, {"distance": "l0", "target": mace.at_least(0.8)}),
        ((8,), 2, {"distance": "linf", "target": mace.between(0.55, 0.6)}),
        ((8, 8), 4, {"distance": "l1"}),
        ((6,), 3, {"distance": "linf", "target": 2, "constraints": [mace.within("income", 10, 60)]}),
        ((8,), 2, {"distance": "l1", "constraints": [mace.fixed("age", "income", "saved", "education", "housing")]}),
    ],
)  # fmt: skip
def test_certificates_of_many_kinds_of_questions_are_valid(hidden: Any, classes: int, question: Any) -> None:
    model, space, frame = fitted(hidden, classes=classes)
    explainer = mace.Explainer(model, space)
    seen = 0
    for number in range(12):
        try:
            explanation = explainer.explain(frame.iloc[number], certify=True, **question)
        except mace.InvalidTarget:
            continue
        for certificate in [*(answer.certificate for answer in explanation), explanation.certificate]:
            if certificate is not None:
                seen += 1
                assert mace.verify(certificate, model) == mace.Verdict("valid")
    assert seen > 3


def test_a_range_of_a_regression_is_certified() -> None:
    _, space, frame = fitted(())
    rng = np.random.default_rng(0)
    outcome = frame["income"].to_numpy() * 0.3 + frame["age"].to_numpy() + rng.normal(0, 1, len(frame))
    model = make_pipeline(mace.Encoder(space), LinearRegression()).fit(frame, outcome)
    answer = mace.Explainer(model, space).explain(frame.iloc[0], target=mace.between(70, 71), certify=True)[0]
    assert answer.certificate is not None
    assert answer.certificate.evidence["lane"] == "network"
    assert mace.verify(answer.certificate, model).valid


@pytest.mark.slow
def test_a_float32_graph_is_certified() -> None:
    """As onnxruntime computes it: asked alone, with float32 rounding in every layer."""
    from onnx import TensorProto, helper, numpy_helper

    space = FeatureSpace({"a": integer(-3, 3), "b": real(0, 2), "c": integer(0, 1), "d": real(-2, 2, step=0.1)})
    seen = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shapes = {"w": (4, 5), "v": (5, 3), "u": (3, 2)}
        tensors = [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n) for n, s in shapes.items()]
        steps = [
            ("MatMul", "x w", "y1"),
            ("Relu", "y1", "h1"),
            ("MatMul", "h1 v", "y2"),
            ("Relu", "y2", "h2"),
            ("MatMul", "h2 u", "y"),
        ]
        nodes = [helper.make_node(kind, inputs.split(), [output]) for kind, inputs, output in steps]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])]
        made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
        graph = helper.make_graph(nodes, "graph", given, made, tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        row = {"a": seed - 2, "b": 1.25, "c": 0, "d": 1.0}
        for distance in ("l1", "linf"):
            explanation = mace.Explainer(model, space).explain(row, distance=distance, certify=True)
            certificate = explanation[0].certificate if explanation else explanation.certificate
            assert certificate is not None
            assert certificate.evidence["lane"] == "network"
            assert mace.verify(certificate, model) == mace.Verdict("valid")
            seen += 1
    assert seen == 12


def test_a_deadline_leaves_a_proof_or_says_that_there_is_none() -> None:
    problem = random_network(10_533, finite=False).problem
    solved(problem, 0.2)
    started = time.process_time()
    bounds = solved(problem, 0.2)
    assert time.process_time() - started < 2.0
    if bounds.evidence is not None and "missing" not in bounds.evidence:
        assert verdict(problem, claimed(bounds), bounds.evidence) == ""


# ---- the bounds of the checker


@pytest.mark.parametrize("seed", [*range(0, 2 * ROUNDS, 3), *range(10_000, 10_000 + ROUNDS, 2)])
def test_no_point_of_a_box_leaves_the_bounds_on_it(seed: int) -> None:
    """Random boxes in random balls: what is cut off by the ball is too far, and what a bound excludes is not there."""
    rng = np.random.default_rng(seed)
    problem = random_network(seed, finite=seed < 10_000).problem
    assert isinstance(problem.form, Network)
    assert isinstance(problem.metric, NormMetric)
    axes = make_axes(replace(problem, conditions=()))
    lower = Fraction(float(rng.uniform(0.05, 0.8)))
    field = Field(axes, make_ball(problem.metric, axes, lower))
    relaxation = BoxRelaxation(problem.form, field, problem.goal.slack)
    ends = np.sort(np.array([[place(rng, axis) for axis in axes] for _ in range(2)]), axis=0)
    view = field.view(ends[:1], ends[1:])
    points = [[place(rng, axis, low, high) for axis, low, high in zip(axes, *ends, strict=True)] for _ in range(40)]
    units = relaxation.units(view)
    for places in points:
        point = tuple(
            axis.value(v) if isinstance(axis.feature, mace.space.Real) else int(axis.value(v))
            for axis, v in zip(axes, places, strict=True)
        )
        if problem.metric.measure(point) >= lower**problem.metric.power:
            continue
        assert view.is_open[0]
        assert (view.low[0] <= places).all()
        assert (places <= view.high[0]).all()
        inside(problem.form, point, units)
        assert_rounding_is_covered(problem.form, point, units)


def assert_rounding_is_covered(form: Network, point: Point, units: Any) -> None:
    """Assert that the scores in the arithmetic of the library are within the error of the box, in two orders of summation."""
    dtype = np.float64 if form.unit == UNIT else np.float32
    exact = form.exact_scores(point)
    for order in (slice(None), slice(None, None, -1)):
        active = column_values(form.columns, [point])[0].astype(dtype)
        for k, (weight, bias) in enumerate(zip(form.weights, form.biases, strict=True)):
            if k:
                active = np.where(active >= 0, active, form.slopes[k - 1].astype(dtype) * active)
            products = weight.astype(dtype) * active
            active = np.array([sum(row[order], dtype(0)) for row in products]) + bias.astype(dtype)
        for i, value in enumerate(exact):
            assert abs(Fraction(float(active[i])) - value) <= Fraction(float(units.error[-1][0, i]))


# ---- broken solvers


def test_a_solver_that_ignores_the_rounding_of_float32_is_refused() -> None:
    ulp = 2.0**-23
    space = FeatureSpace({"x": real(1.0, 1.0 + 20 * ulp)})
    columns = (Column("x", 0, None),)
    form = Network(space, columns, (np.array([[1.0]]),), (np.array([-1.0 - 5 * ulp]),), unit=SINGLE)
    problem = small(form, (1.0 + 10 * ulp,), 0)
    broken = replace(problem, form=replace(form, unit=UNIT), accuracy=Fraction(1, 10**12))
    bounds = solved(replace(broken, ask=asked(broken.form)))  # type: ignore[arg-type]
    lower = claimed(bounds)
    assert lower is not None
    nearer: Point = (1.0 + 5.25 * ulp,)
    assert problem.is_reached(nearer)
    assert problem.distance(nearer) < lower
    assert "leaf 0" in verdict(problem, lower, bounds.evidence)


def test_a_solver_with_the_wrong_tie_rule_is_refused() -> None:
    space = FeatureSpace({"x": integer(0, 10)})
    form = Network(space, (Column("x", 0, None),), (np.array([[1.0]]),), (np.array([-5.0]),), ties_last=True)

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [Fraction(int(point[0] >= 5)) for point in points]  # type: ignore[operator]

    problem = replace(small(form, (0,), 1), ask=ask)
    broken = small(replace(form, ties_last=False), (0,), 1)
    bounds = solved(broken)
    assert bounds.point == (6,)
    assert "the model puts {'x': 5}" in verdict(problem, claimed(bounds), bounds.evidence)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_solver_that_forgets_a_feature_is_refused(seed: int) -> None:
    """One-hot columns that never change: the nearest point is then too far."""
    problem = random_network(seed).problem
    assert not obstacle(network, problem)
    truth = solved(problem)
    if truth.point is None:
        return
    for name, feature, new, old in zip(
        problem.space, problem.space.values(), truth.point, problem.factual, strict=True
    ):
        if new == old or not hasattr(feature, "levels"):
            continue
        fixed = mace.fixed(name).bind(problem.space, problem.factual)
        bounds = solved(replace(problem, conditions=(*problem.conditions, fixed)))
        if bounds.is_infeasible or bounds.lower > truth.upper:  # type: ignore[operator]
            assert "leaf" in verdict(problem, claimed(bounds), bounds.evidence or nothing(problem))


@pytest.mark.slow
@pytest.mark.parametrize("share", [1e-6, 1e-3])
def test_a_solver_whose_bound_is_too_tight_is_refused(share: float) -> None:
    model, space, frame = fitted((8, 8))
    explainer = mace.Explainer(model, space)
    for number in range(5):
        certificate = explainer.explain(frame.iloc[number], certify=True)[0].certificate
        assert certificate is not None
        data = parts_of(certificate)
        data["claim"] |= {
            "lower": data["claim"]["upper"] + share,
            "status": "unknown",
            "upper": None,
            "counterfactual": None,
        }
        assert outcome_of(data, model)[0] == REFUTED


# ---- tampering


def parts(data: Data) -> list[Any]:
    found: list[Any] = data["evidence"].get("parts", [])
    return found


def some_part(data: Data, rng: np.random.Generator, *, cut: bool = True) -> Any:
    fit = [part for part in parts(data) if len(part["feature"]) > (1 if cut else 0)]
    return fit[int(rng.integers(len(fit)))] if fit else None


def leaf_dropped(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["feature"] = np.delete(part["feature"], rng.choice(np.flatnonzero(part["feature"] < 0)))
    return data


def leaf_added(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng, cut=False)
    part["feature"] = np.append(part["feature"], -1)
    return data


def cut_moved(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["at"][int(rng.integers(len(part["at"])))] += float(rng.choice([-1.0, 1.0, 1e-9, 100.0]))
    return data


def another_feature_cut(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    places = np.flatnonzero(part["feature"] >= 0)
    part["feature"][rng.choice(places)] = int(rng.integers(len(data["statement"]["factual"])))
    return data


def a_feature_that_there_is_not(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["feature"][0] = 100
    return data


def sides_swapped(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["feature"], part["at"] = part["feature"][::-1].copy(), part["at"][::-1].copy()
    return data


def no_cuts(data: Data, rng: np.random.Generator) -> Data | None:
    for part in parts(data):
        part["feature"], part["at"] = np.array([-1]), np.zeros(0)
    return data


def a_tree_dropped(data: Data, rng: np.random.Generator) -> Data | None:
    parts(data).pop()
    return data


def a_tree_more(data: Data, rng: np.random.Generator) -> Data | None:
    parts(data).append(copy.deepcopy(parts(data)[0]))
    return data


def cuts_lost(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["at"] = part["at"][:-1]
    return data


def huge_cuts(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng)
    if part is None:
        return None
    part["at"][:] = float(rng.choice([1e308, -1e308]))
    return data


def trees_of_another_type(data: Data, rng: np.random.Generator) -> Data | None:
    data["evidence"]["parts"] = [[1, 2], None, {"feature": "abc", "at": {}}, 3.5, [None]][int(rng.integers(5))]
    return data


def a_tree_that_is_a_table(data: Data, rng: np.random.Generator) -> Data | None:
    parts(data)[0]["feature"] = np.zeros((2, 2), dtype=np.int64)
    return data


def random_tree(data: Data, rng: np.random.Generator) -> Data | None:
    part = some_part(data, rng, cut=False)
    features = len(data["statement"]["factual"])
    part["feature"] = rng.integers(-1, features, 30)
    part["at"] = rng.normal(0, 10, int((part["feature"] >= 0).sum()))
    return data


WAYS = [
    Tampering("leaf dropped", REFUTED, leaf_dropped, "no leaf"),
    Tampering("leaf added", REFUTED, leaf_added, "is over"),
    Tampering("cut moved", TRUE_OR_REFUSED, cut_moved),
    Tampering("another feature cut", TRUE_OR_REFUSED, another_feature_cut),
    Tampering("a feature that there is not", REFUTED, a_feature_that_there_is_not, "names a feature"),
    Tampering("sides swapped", REFUTED, sides_swapped, "evidence.parts"),
    Tampering("no cuts", TRUE_OR_REFUSED, no_cuts),
    Tampering("a tree dropped", REFUTED, a_tree_dropped, "evidence.parts"),
    Tampering("a tree more", REFUTED, a_tree_more, "evidence.parts"),
    Tampering("cuts lost", REFUTED, cuts_lost, "one finite number"),
    Tampering("huge cuts", TRUE_OR_REFUSED, huge_cuts),
    Tampering("trees of another type", REFUTED, trees_of_another_type, "evidence.parts"),
    Tampering("a tree that is a table", REFUTED, a_tree_that_is_a_table, "evidence.parts[0]"),
    Tampering("random tree", TRUE_OR_REFUSED, random_tree),
]


@pytest.fixture(scope="module")
def honest() -> list[tuple[Any, mace.Certificate]]:
    """Certificates on finite spaces, where brute force can tell what is true."""
    found = []
    for seed in range(4, 140):
        case = random_case(seed)
        if case.family not in ("logistic", "svc", "mlp") or case.question["distance"] not in ("l0", "l1", "linf", "l2"):
            continue
        try:
            explanation = mace.Explainer(case.model, case.space).explain(case.row, certify=True, **case.question)
        except mace.InvalidTarget:
            continue
        certificate = explanation[0].certificate if explanation else explanation.certificate
        if certificate is not None and certificate.evidence.get("parts"):
            found.append((case.model, certificate))
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_tampering_is_refused_with_a_reason_that_names_it(
    way: Tampering, honest: list[tuple[Any, mace.Certificate]]
) -> None:
    rng = np.random.default_rng(5)
    tried = 0
    for model, certificate in honest:
        changed = way.change(parts_of(certificate), rng)
        if changed is None:
            continue
        tried += 1
        outcome, reason = outcome_of(changed, model)
        if way.kind == REFUTED:
            assert outcome == REFUTED, (outcome, reason)
            assert way.words in reason
        elif outcome == "valid":
            assert is_true(mace.Certificate(**changed), model)  # type: ignore[arg-type]
        else:
            assert outcome == REFUTED, (outcome, reason)
    assert tried >= 2


def test_a_proof_for_another_kind_of_model_or_distance_is_refused() -> None:
    problem = random_network(0).problem
    function = as_distance("lambda new, old: 1.0").from_factual(problem.space, problem.factual)
    assert "not a norm" in verdict(replace(problem, metric=function), Fraction(1, 2), nothing(problem))
    space = FeatureSpace({"x": integer(0, 5)})
    form = Network(space, (Column("x", 0, None),), (np.array([[1.0]]),), (np.array([-3.0]),))
    huge = replace(form, space=FeatureSpace({"x": real(-1e200, 1e200)}))
    assert "too large" in verdict(small(huge, (0.0,), 1), None, {"parts": []})
    table = replace(form, space=FeatureSpace({"x": integer(0, 1)}), columns=(Column("x", 0, (1.0, 0.0)),))
    assert "through a table" in verdict(small(table, (0,), 1), None, {"parts": []})

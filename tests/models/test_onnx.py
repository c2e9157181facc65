"""ONNX: graphs are read as onnxruntime computes them, on random graphs, on what skl2onnx converts, and on files that mean harm."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from conformance import PLAIN, SCALED, at, check_network, random_points, training
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from sklearn import linear_model as lm
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor, RandomForestClassifier, VotingRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, LinearSVR

import mace
from mace import Encoder, Explainer, FeatureSpace, MaceError, UnsupportedModel, integer, real
from mace.cli.main import run as command
from mace.exact import UNIT
from mace.forms import Network
from mace.models import read
from mace.models.networks.piecewise import UNIT32
from mace.models.onnx.operators import OPERATORS

FLAT = FeatureSpace({"a": real(-3, 3), "b": real(0, 50), "c": real(-1, 1), "d": integer(-5, 20)})


def graph_of(
    nodes: list[Any],
    constants: dict[str, Any] | None = None,
    *,
    outputs: tuple[str, ...] = ("y",),
    width: int = 4,
    kind: int = TensorProto.FLOAT,
    version: int = 17,
    inputs: list[Any] | None = None,
    kinds: dict[str, int] | None = None,
) -> Any:
    """Return a model of some nodes over the input ``x``."""
    given = inputs or [helper.make_tensor_value_info("x", kind, [None, width])]
    made = [helper.make_tensor_value_info(name, (kinds or {}).get(name, kind), None) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", given, made, tensors)
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(operator: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    domain = "ai.onnx.ml" if f"ai.onnx.ml:{operator}" in OPERATORS else ""
    return helper.make_node(operator, inputs.split(), outputs.split(), domain=domain, **attributes)


def session_of(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


# ---- what skl2onnx converts

CLASSIFIERS: dict[str, Any] = {
    "logistic": lm.LogisticRegression(),
    "svc": LinearSVC(),
    "ridge": lm.RidgeClassifier(),
    "sgd": lm.SGDClassifier(random_state=0),
    "perceptron": lm.Perceptron(random_state=0),
    "lda": LinearDiscriminantAnalysis(),
    "mlp": MLPClassifier((5, 4), random_state=0, max_iter=200),
    "identity mlp": MLPClassifier((4,), activation="identity", random_state=0, max_iter=200),
    "standard scaler": make_pipeline(StandardScaler(), lm.LogisticRegression()),
    "min-max scaler": make_pipeline(MinMaxScaler(), lm.LogisticRegression()),
    "columns": make_pipeline(
        ColumnTransformer([("s", StandardScaler(), [0, 2]), ("m", MinMaxScaler(), [1]), ("p", "passthrough", [3])]),
        MLPClassifier((4,), random_state=0, max_iter=200),
    ),
}
REGRESSORS: dict[str, Any] = {
    "linear": lm.LinearRegression(),
    "svr": LinearSVR(),
    "lasso": lm.Lasso(0.01),
    "mlp": MLPRegressor(hidden_layer_sizes=(5,), random_state=0, max_iter=200),
    "robust scaler": make_pipeline(RobustScaler(), lm.Ridge()),
    "clipping scaler": make_pipeline(MinMaxScaler(clip=True), lm.Ridge()),
    "greatest scaler": make_pipeline(MaxAbsScaler(), lm.ElasticNet(0.01)),
    "voting": VotingRegressor([("a", lm.LinearRegression()), ("b", lm.Lasso(0.1))]),
    "bagging": BaggingRegressor(lm.Ridge(), n_estimators=3, random_state=0),
}


def converted(
    estimator: Any, classes: int | None, *, names: bool = False, kind: Any = np.float32, **options: Any
) -> Any:
    """Return a fitted estimator as ONNX."""
    frame, labels = training(FLAT, classes)
    X = frame.to_numpy(dtype=kind)
    y = np.array(["no", "yes", "maybe"])[labels] if names else labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
        if isinstance(estimator, LinearSVC):  # it has no such option
            options = {}
        return to_onnx(estimator, X[:1], options=options or None)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_converted_classifier_decides_as_its_form_says(name: str, classes: int) -> None:
    for zipped in (False, True):
        model = converted(CLASSIFIERS[name], classes, names=zipped, zipmap=zipped)
        reading = check_network(model, FLAT, rows=120)
        assert reading.classes == (tuple(sorted(("no", "yes", "maybe")[:classes])) if zipped else tuple(range(classes)))
        form = reading.form
        assert isinstance(form, Network)
        assert form.is_binary == (classes == 2)
        has_chance = classes == 2 and name not in ("svc", "ridge", "sgd", "perceptron")
        assert form.link == ("sigmoid" if has_chance else "none")


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_converted_regressor_predicts_as_its_form_says(name: str) -> None:
    assert check_network(converted(REGRESSORS[name], None), FLAT, rows=150).is_regressor


def test_a_model_in_double_precision_is_read_with_its_own_rounding() -> None:
    model = converted(MLPRegressor(hidden_layer_sizes=(5,), random_state=0, max_iter=100), None, kind=np.float64)
    reading = check_network(model, FLAT, rows=150)
    assert reading.form.unit == UNIT  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("model", "classes", "message"),
    [
        (RandomForestClassifier(2, max_depth=2), 2, "TreeEnsembleClassifier: trees in ONNX are not read"),
        (make_pipeline(Normalizer(), lm.LogisticRegression()), 2, "Normalizer: it divides by the norm"),
        (MLPClassifier((3,), activation="tanh", max_iter=20), 2, "Tanh is not piecewise linear. Use Relu"),
        (lm.SGDClassifier(loss="log_loss", random_state=0), 3, "Exp is not piecewise linear"),
        (SVC(), 2, "SVMClassifier is not piecewise linear"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_converted_model_that_is_not_piecewise_linear_is_refused_by_node(
    model: Any, classes: int, message: str
) -> None:
    with pytest.raises(UnsupportedModel, match=f"cannot read node '.*' of the ONNX model.*{message}"):
        Explainer(converted(model, classes, zipmap=False), FLAT)


# ---- random graphs


class Builder:
    """Adds random nodes to a graph."""

    def __init__(self, seed: int, kind: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind, self.nodes, self.constants = kind, [], {}
        self.name, self.width = "x", 4

    def constant(self, *shape: int, spread: float = 1.0, positive: bool = False) -> str:
        values = self.rng.normal(0, spread, shape)
        name = f"c{len(self.constants)}"
        self.constants[name] = (np.exp(values / spread) if positive else values).astype(self.kind)
        return name

    def put(self, operator: str, *inputs: str, width: int | None = None, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(operator, " ".join(inputs), name, **attributes))
        self.name, self.width = name, width if width is not None else self.width
        return name

    def step(self) -> None:
        rng, name, width = self.rng, self.name, self.width
        draw = int(rng.integers(16))
        wide = int(rng.integers(1, 6))
        if draw == 0:
            self.put("MatMul", name, self.constant(width, wide), width=wide)
        elif draw == 1:
            flip, bias = bool(rng.integers(2)), self.constant(*((1, wide) if rng.random() < 0.5 else (wide,)), spread=5)
            shape = (wide, width) if flip else (width, wide)
            factors = {"alpha": 0.7, "beta": 1.3} if rng.random() < 0.3 else {}
            self.put("Gemm", name, self.constant(*shape), bias, width=wide, transB=int(flip), **factors)
        elif draw == 2:
            parts = [self.constant(width, positive=k == 3, spread=3 if k < 3 else 1) for k in range(4)]
            self.put("BatchNormalization", name, *parts, epsilon=1e-3)
        elif draw in (3, 4):
            self.put(*(("Relu", name) if draw == 3 else ("Abs", name)))
        elif draw == 5:
            self.put("LeakyRelu", name, alpha=float(rng.choice([0.01, 0.3, 1.7])))
        elif draw == 6:
            self.constants["low"], self.constants["high"] = (np.array(v, dtype=self.kind) for v in (-0.5, 2.5))
            bounds = [("low", "high"), ("", "high"), ("low",)][int(rng.integers(3))]
            self.nodes.append(helper.make_node("Clip", [name, *bounds], [f"v{len(self.nodes)}"]))
            self.name = f"v{len(self.nodes) - 1}"
        elif draw in (7, 8):
            other = self.put("MatMul", name, self.constant(width, width))
            order = (name, other, self.constant(width)) if rng.random() < 0.5 else (other, name)
            self.put("Max" if draw == 7 else "Min", *order)
        elif draw == 9:
            other = self.put("Relu", self.put("MatMul", name, self.constant(width, width)))
            self.put(str(rng.choice(["Add", "Sub", "Sum"])), other, name)
        elif draw == 10:
            operator = str(rng.choice(["Add", "Sub", "Mul", "Div"]))
            self.put(operator, name, self.constant(width, spread=3, positive=operator == "Div"))
        elif draw == 11:
            self.put(str(rng.choice(["Sub", "Mul", "Add"])), self.constant(1, width), name)
        elif draw == 12:
            self.put("Concat", name, self.put("Neg", name), axis=1, width=2 * width)
        elif draw == 13:
            self.constants["all"] = np.array([0, -1], dtype=np.int64)
            self.put("Reshape", self.put("Transpose", name, perm=[0, 1]), "all")
            self.put("Flatten", self.name)
        elif draw == 14:
            self.constants["places"] = np.array([0, width - 1, -1], dtype=np.int64)
            self.put("Gather", name, "places", axis=1, width=3)
        else:
            other = self.put("Relu", self.put("MatMul", name, self.constant(width, 3)))
            self.put("ReduceMean" if rng.random() < 0.5 else "ReduceSum", other, *self._axes(), keepdims=1, width=1)

    def _axes(self) -> tuple[str, ...]:
        self.constants["axis"] = np.array([1], dtype=np.int64)
        return ("axis",)

    def model(self) -> Any:
        kind = TensorProto.FLOAT if self.kind is np.float32 else TensorProto.DOUBLE
        self.put("Identity", self.name)
        self.nodes[-1].output[0] = "y"
        return graph_of(self.nodes, self.constants, kind=kind, version=18)


def random_graph(seed: int, kind: Any = np.float32) -> Any:
    builder = Builder(seed, kind)
    for _ in range(int(builder.rng.integers(1, 7))):
        builder.step()
    return builder.model()


def excess(model: Any, rows: int, seed: int, *, session: Any = None) -> float:
    """Return the greatest error of onnxruntime's numbers, relative to the form's bound."""
    reading = read(model, FLAT)
    form = reading.form
    assert isinstance(form, Network)
    session = session or session_of(model)
    (given,) = session.get_inputs()
    kind = np.float32 if given.type == "tensor(float)" else np.float64
    worst = 0.0
    for point in random_points(FLAT, rows, seed):
        (computed,) = session.run(None, {given.name: np.array([point], dtype=kind)})
        bound = form.rounding(at(point)) / (1 if form.is_binary else 2)
        pairs = zip(form.exact_scores(point), np.ravel(computed), strict=True)
        worst = max(worst, *(float(abs(exact - Fraction(float(number))) / bound) for exact, number in pairs))
    return worst


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_onnxruntime_stays_within_the_bound_on_random_graphs(kind: Any) -> None:
    """With onnxruntime's own optimisations, which fuse and fold nodes."""
    ratios = [excess(random_graph(seed, kind), 12, seed) for seed in range(60)]
    assert max(ratios) <= 1
    assert max(ratios) > 0.02


def test_a_product_with_one_number_counts_as_float32_in_double_precision_too() -> None:
    """onnxruntime takes it into the matrix product as a float32 factor."""
    rng = np.random.default_rng(0)
    constants = {"w": rng.normal(size=(4, 3)), "c": np.array(0.1)}
    for steps in (
        [node("MatMul", "x w", "z"), node("Mul", "z c", "y")],
        [node("Div", "x c", "z"), node("MatMul", "z w", "y")],
    ):
        model = graph_of(steps, constants, kind=TensorProto.DOUBLE)
        assert excess(model, 30, 1) <= 1
        assert read(model, FLAT).form.unit == UNIT32  # type: ignore[attr-defined]


def test_a_normalisation_that_onnxruntime_folds_into_the_weights_stays_within_the_bound() -> None:
    rng = np.random.default_rng(0)
    for seed in range(10):
        constants = {
            "w": rng.normal(size=(4, 6)).astype(np.float32),
            "scale": rng.normal(0, 30, 6).astype(np.float32),
            "offset": rng.normal(0, 500, 6).astype(np.float32),
            "mean": rng.normal(0, 500, 6).astype(np.float32),
            "variance": np.exp(rng.normal(-3, 2, 6)).astype(np.float32),
        }
        nodes = [
            node("MatMul", "x w", "z"),
            node("BatchNormalization", "z scale offset mean variance", "n"),
            node("Relu", "n", "y"),
        ]
        model = graph_of(nodes, constants)
        for level in (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
            onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
        ):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = level
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            assert excess(model, 30, seed, session=session) <= 1


# ---- meanings


def linear(count: int, *after: Any, seed: int = 3, **settings: Any) -> Any:
    rng = np.random.default_rng(seed)
    constants = {"w": rng.normal(size=(4, count)).astype(np.float32), "b": np.zeros(count, dtype=np.float32)}
    constants |= settings.pop("constants", {})
    return graph_of([node("Gemm", "x w b", "s"), *after], constants, **settings)


def test_one_number_is_a_prediction() -> None:
    reading = check_network(linear(1, node("Identity", "s", "y")), FLAT)
    assert reading.is_regressor


def test_a_sigmoid_makes_one_number_a_probability() -> None:
    reading = check_network(linear(1, node("Sigmoid", "s", "y")), FLAT)
    assert reading.classes == (0, 1)
    assert reading.form.link == "sigmoid"  # type: ignore[attr-defined]


@pytest.mark.parametrize("outputs", [2, 3])
def test_several_numbers_are_scores_of_classes(outputs: int) -> None:
    for after in (node("Identity", "s", "y"), node("Softmax", "s", "y", axis=1), node("ArgMax", "s", "y", axis=1)):
        kind = TensorProto.INT64 if after.op_type == "ArgMax" else TensorProto.FLOAT
        reading = check_network(linear(outputs, after, kinds={"y": kind}), FLAT)
        assert reading.classes == tuple(range(outputs))


def test_labels_may_be_looked_up_and_come_in_any_order_of_outputs() -> None:
    for labels in (np.array([30, 10, 20], dtype=np.int64), np.array(["x", "y", "z"], dtype=object)):
        steps = [
            node("Softmax", "s", "p", axis=1),
            node("ArgMax", "p", "k", axis=1, keepdims=0),
            node("Gather", "names k", "label"),
        ]
        kind = TensorProto.INT64 if labels.dtype == np.int64 else TensorProto.STRING
        model = linear(3, *steps, constants={"names": labels}, outputs=("p", "label"), kinds={"label": kind})
        assert check_network(model, FLAT).classes == tuple(labels)


def test_two_outputs_through_a_softmax_have_a_probability_that_can_be_asked_for() -> None:
    explainer = Explainer(linear(2, node("Softmax", "s", "y", axis=-1)), FLAT)
    row = {"a": 0.5, "b": 20.0, "c": 0.5, "d": 3}
    now = explainer._reading.rate([FLAT.point(row)], 1)[0]  # type: ignore[misc]
    wanted = mace.at_most(0.3) if now > 0.5 else mace.at_least(0.7)
    best = explainer.explain(row, target=wanted, accuracy=1e-4)[0]
    assert best.status == "optimal"
    asked = explainer._reading.rate([FLAT.point(best.values)], 1)[0]  # type: ignore[misc]
    assert asked <= 0.3 if now > 0.5 else asked >= 0.7


def test_classes_named_by_wrap_and_an_encoder_before_the_graph() -> None:
    frame, labels = training(SCALED, 2)
    encoder = Encoder(SCALED).fit(frame)
    X = encoder.transform(frame).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPClassifier((4,), random_state=0, max_iter=150).fit(X, labels)
    model = mace.wrap(
        to_onnx(network, X[:1], options={"zipmap": False}), encoder=encoder, classes=["refused", "granted"]
    )
    check_network(model, SCALED)
    row = frame.iloc[[7]]
    explanation = Explainer(model, SCALED).explain(row, accuracy=1e-4, time_limit=60)
    assert explanation.status == "optimal"
    assert {model.predict(row)[0], explanation[0].prediction} == {"refused", "granted"}
    with pytest.raises(mace.InvalidOption, match="labels of its own"):
        mace.wrap(converted(lm.LogisticRegression(), 2, names=True), classes=["a", "b"])


def test_inputs_may_be_one_a_feature_and_whole_numbers() -> None:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 1]) for name in ("a", "b", "c")]
    inputs.append(helper.make_tensor_value_info("d", TensorProto.INT64, [None, 1]))
    steps = [node("Cast", "d", "e", to=TensorProto.FLOAT), node("Concat", "a b c e", "x", axis=1)]
    weights = {"w": np.array([[1.0, -1], [0.1, 0.2], [3, 1], [-0.2, 0.4]], dtype=np.float32)}
    model = graph_of([*steps, node("MatMul", "x w", "y")], weights, inputs=inputs)
    check_network(model, FLAT)
    check_network(model, FeatureSpace({name: FLAT[name] for name in ("b", "a", "c", "d")}))
    with pytest.raises(UnsupportedModel, match="takes 'd' as whole numbers"):
        read(model, FLAT.replace(d=real(0, 1)))


@pytest.mark.slow
def test_a_finite_space_is_answered_as_brute_force_does() -> None:
    space = FeatureSpace({"a": integer(-3, 3), "b": real(0, 2, step=0.25), "c": integer(0, 1), "d": integer(-2, 2)})
    for seed in range(5):
        rng = np.random.default_rng(seed)
        constants = {
            "w": rng.normal(size=(4, 3)).astype(np.float32),
            "v": rng.normal(size=(3, 2)).astype(np.float32),
            "low": np.array(-1, dtype=np.float32),
            "high": np.array(1, dtype=np.float32),
        }
        nodes = [node("MatMul", "x w", "z"), node("Clip", "z low high", "h"), node("MatMul", "h v", "y")]
        explainer = Explainer(graph_of(nodes, constants), space)
        row = {"a": seed - 2, "b": 1.25, "c": 0, "d": 1}
        first, truth = (explainer.explain(row, solver=solver) for solver in ("smt", "enumerate"))
        assert first.status == truth.status
        if truth:
            assert first[0].distance == truth[0].distance


# ---- sessions and files


def test_a_session_is_asked_as_it_is(tmp_path: Path) -> None:
    model = converted(lm.LogisticRegression(), 2, zipmap=False)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    for source in (model.SerializeToString(), str(path)):
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        reading = check_network(session, FLAT, rows=100)
        assert reading.family == "InferenceSession"
    same = read(mace.load_model(path), FLAT)
    np.testing.assert_array_equal(same.form.weights[0], reading.form.weights[0])  # type: ignore[attr-defined]


def test_a_file_is_explained_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, _ = training(FLAT, 2)
    onnx.save(converted(lm.LogisticRegression(), 2), tmp_path / "model.onnx")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "space.json").write_text(FLAT.to_json())
    paths = [
        "--data",
        str(tmp_path / "rows.csv"),
        "--model",
        str(tmp_path / "model.onnx"),
        "--space",
        str(tmp_path / "space.json"),
    ]
    assert command(["explain", *paths, "--row", "2", "--json"]) in (0, 3)
    answer = json.loads(capsys.readouterr().out)
    assert answer["counterfactuals"][0]["prediction"] != answer["prediction"]


def test_a_session_elsewhere_than_on_the_cpu_is_refused() -> None:
    class Elsewhere(onnxruntime.InferenceSession):  # type: ignore[misc]
        def get_providers(self) -> list[str]:
            return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    session = Elsewhere(linear(2, node("Identity", "s", "y")).SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(UnsupportedModel, match="runs on CUDAExecutionProvider"):
        Explainer(session, FLAT)


# ---- refusals

F = np.float32
IN = helper.make_tensor_value_info
REFUSED: dict[str, tuple[Any, str]] = {
    "two computed factors": (graph_of([node("Mul", "x x", "y")]), "Mul: an input that must be a constant is computed"),
    "an unknown operator": (
        graph_of([node("Tan", "x", "y")]),
        "cannot read node 'y' of the ONNX model, Tan. Supported: Gemm",
    ),
    "a hidden sigmoid": (linear(2, node("Sigmoid", "s", "h"), node("Neg", "h", "y")), "Neg: it comes after a sigmoid"),
    "several sigmoids": (linear(3, node("Sigmoid", "s", "y")), "greatest of several sigmoids"),
    "several outputs": (linear(2, node("Neg", "s", "y"), outputs=("s", "y")), "outputs s, y, none of them labels"),
    "the last of equals": (linear(2, node("ArgMax", "s", "y", axis=1, select_last_index=1)), "last of equals"),
    "a softmax over the batch": (linear(2, node("Softmax", "s", "y", axis=0)), "over all outputs of a row"),
    "a constant answer": (graph_of([node("Identity", "c", "y")], {"c": F([1.0])}), "does not depend on its input"),
    "half precision": (
        graph_of([node("Cast", "x", "h", to=TensorProto.FLOAT16), node("Cast", "h", "y", to=TensorProto.FLOAT)]),
        "casts to type 10",
    ),
    "a damaged variance": (
        graph_of([node("BatchNormalization", "x c c c v", "y")], {"c": F([1] * 4), "v": F([-1] * 4)}),
        "variance that is not above 0",
    ),
    "training mode": (
        graph_of([node("BatchNormalization", "x c c c c", "y m v", training_mode=1)], {"c": F([1] * 4)}),
        "outside of training",
    ),
    "not a number": (graph_of([node("Add", "x c", "y")], {"c": F([np.nan] * 4)}), "not finite"),
    "too few coefficients": (
        graph_of(
            [
                node(
                    "LinearClassifier",
                    "x",
                    "y z",
                    coefficients=[1.0, 2.0],
                    intercepts=[0.0, 1.0],
                    classlabels_ints=[0, 1],
                )
            ],
            kinds={"y": TensorProto.INT64},
        ),
        "2 coefficients and 2 intercepts for 2 x 4 numbers",
    ),
    "labels that clash": (
        graph_of(
            [
                node(
                    "LinearClassifier",
                    "x",
                    "y z",
                    coefficients=[1.0] * 8,
                    intercepts=[0.0, 1.0],
                    classlabels_ints=[1, 1],
                )
            ]
        ),
        "same label",
    ),
    "a column that is not there": (
        graph_of([node("ArrayFeatureExtractor", "x c", "y")], {"c": np.array([9], dtype=np.int64)}),
        "inputs do not fit together",
    ),
    "shapes that do not fit": (
        graph_of([node("MatMul", "x w", "y")], {"w": F(np.ones((3, 2)))}),
        "multiplies 4 numbers with 3",
    ),
    "an old version": (graph_of([node("Relu", "x", "y")], version=6), "version 6 of the operators"),
    "text": (graph_of([node("Identity", "x", "y")], kind=TensorProto.STRING), "not float, double, int32 or int64"),
    "an unknown width": (
        graph_of([node("Relu", "x", "y")], inputs=[IN("x", TensorProto.FLOAT, [None, None])]),
        r"has the shape \(\?, \?\)",
    ),
    "a fixed batch": (
        graph_of([node("Relu", "x", "y")], inputs=[IN("x", TensorProto.FLOAT, [7, 4])]),
        r"shape \(7, 4\)",
    ),
    "a wide input beside another": (
        graph_of([node("Add", "x z", "y")], inputs=[IN(name, TensorProto.FLOAT, [None, 2]) for name in "xz"]),
        "2 inputs of several columns",
    ),
    "whole numbers added": (
        graph_of([node("Add", "x c", "y")], {"c": np.array([1], dtype=np.int64)}, kind=TensorProto.INT64),
        "computes with whole numbers",
    ),
    "a wrong axis": (linear(2, node("Softmax", "s", "y", axis=5)), "axis 5 of a tensor with 2"),
    "nothing": (onnx.ModelProto(), "no input or no output"),
    "an exploding sum": (
        graph_of([node("Add", "x c", "y")], {"c": F(np.ones((3_000_000, 1)))}),
        "too large",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_node(name: str) -> None:
    model, message = REFUSED[name]
    with pytest.raises(UnsupportedModel, match=message):
        read(model, FLAT.replace(a=integer(0, 3), b=integer(0, 3), c=integer(0, 3)) if "whole" in name else FLAT)


def test_the_number_of_columns_must_be_the_spaces_and_none_may_be_missing() -> None:
    model = linear(2, node("Identity", "s", "y"))
    with pytest.raises(UnsupportedModel, match="fitted on 4 columns; the space gives 1"):
        read(model, FeatureSpace({"a": real(0, 1)}))
    with pytest.raises(UnsupportedModel, match="'a' may be missing"):
        read(model, FLAT.replace(a=real(0, 1, missing=True)))


# ---- files that mean harm


def survives(data: bytes, path: Path) -> bool:
    """Return whether some bytes can be read; any error but a clear one fails the test."""
    path.write_bytes(data)
    try:
        explainer = Explainer(mace.load_model(path), FLAT)
        explainer.predict({"a": 1.0, "b": 2.0, "c": 0.5, "d": 3})
    except MaceError:
        return False
    return True


@pytest.mark.slow
def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    data = converted(MLPClassifier((3,), random_state=0, max_iter=20), 2).SerializeToString()
    cuts = sorted({*range(0, len(data), max(1, len(data) // 120)), *range(40)})
    read_anyway = sum(survives(data[:cut], tmp_path / "cut.onnx") for cut in cuts)
    assert survives(data, tmp_path / "whole.onnx")
    assert read_anyway <= 3, "only what is lost at the very end may not matter"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make", [lambda: converted(MLPClassifier((3,), random_state=0, max_iter=20), 2), lambda: random_graph(5)]
)
def test_a_file_with_changed_bytes_is_read_or_refused_and_never_crashes(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    data = make().SerializeToString()
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(150):
        changed = bytearray(data)
        for place in rng.integers(len(data), size=int(rng.integers(1, 4))):
            changed[place] = int(rng.integers(256))
        outcomes.add(survives(bytes(changed), tmp_path / "changed.onnx"))
    assert outcomes == {True, False}


@pytest.mark.slow
def test_hostile_graphs_are_refused_in_good_time(tmp_path: Path) -> None:
    chain = [
        node("Relu", "x", "v0"),
        *(node("Relu", f"v{k}", f"v{k + 1}") for k in range(400)),
        node("Neg", "v400", "y"),
    ]
    read(graph_of(chain), FLAT)
    doubling = [
        node("Concat", f"{name} {name}", after, axis=1)
        for name, after in zip(["x", *map(str, range(40))], map(str, range(41)), strict=True)
    ]
    doubling.append(node("Identity", "40", "y"))
    with pytest.raises(UnsupportedModel, match="too large"):
        read(graph_of(doubling), FLAT)
    outside = linear(2, node("Identity", "s", "y"))
    tensor = outside.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../secret")
    assert not survives(outside.SerializeToString(), tmp_path / "outside.onnx")
    with pytest.raises(UnsupportedModel, match="in another file"):
        read(outside, FLAT)
    strange = linear(2, node("Identity", "s", "y"))
    strange.graph.node[0].attribute.add(name="alpha")
    with pytest.raises(UnsupportedModel, match=r"do not fit together|is damaged"):
        read(strange, FLAT)
    huge = linear(2, node("Identity", "s", "y"))
    huge.graph.initializer[0].dims[0] = 2**40
    with pytest.raises(UnsupportedModel):
        read(huge, FLAT)


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x00" * 100, b"\x08\x07", b"\xff" * 50])
def test_bytes_that_are_no_model_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(UnsupportedModel, match=r"m\.onnx"):
        mace.load_model(tmp_path / "m.onnx")


def test_the_form_knows_float32(tmp_path: Path) -> None:
    assert read(linear(2, node("Identity", "s", "y")), PLAIN).form.unit == UNIT32  # type: ignore[attr-defined]

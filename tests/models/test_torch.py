"""Networks of PyTorch: run where torch is installed, and by ``make test-torch``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conformance import PLAIN, SCALED, check_network, training

import mace
from mace import (
    Encoder,
    Explainer,
    FeatureSpace,
    InvalidOption,
    InvalidTarget,
    UnsupportedModel,
    categorical,
    integer,
    real,
)
from mace.exact import UNIT
from mace.models import read
from mace.models.networks.piecewise import UNIT32

torch = pytest.importorskip(
    "torch", reason="torch is not installed: the PyTorch reader is NOT tested (make test-torch)"
)
nn = torch.nn


def trained(network: Any, X: np.ndarray, labels: np.ndarray, loss: str, *, steps: int = 60) -> Any:
    """Return a network after some steps of training, in evaluation mode."""
    torch.manual_seed(0)
    for module in network.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    kind = next(network.parameters()).dtype
    rows = torch.from_numpy(X).to(kind)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.03)
    network.train()
    for _ in range(steps):
        optimiser.zero_grad()
        answer = network(rows)
        if loss == "regression":
            error = ((answer[:, 0] - torch.from_numpy(labels).to(kind)) ** 2).mean()
        elif loss == "logit":
            error = nn.functional.binary_cross_entropy_with_logits(answer[:, 0], torch.from_numpy(labels).to(kind))
        elif loss == "chance":
            error = nn.functional.binary_cross_entropy(answer[:, 0], torch.from_numpy(labels).to(kind))
        elif loss == "softmax":
            error = nn.functional.nll_loss(torch.log(answer + 1e-12), torch.from_numpy(labels))
        else:
            error = nn.functional.cross_entropy(answer, torch.from_numpy(labels))
        error.backward()
        optimiser.step()
    return network.eval()


def encoded(space: FeatureSpace, classes: int | None) -> tuple[Encoder, np.ndarray, np.ndarray]:
    frame, labels = training(space, classes)
    encoder = Encoder(space).fit(frame)
    return encoder, encoder.transform(frame), labels


WIDTH = len(encoded(SCALED, 2)[1][0])
SHARED, UNIT_IN_USE = nn.Linear(4, 4), nn.ReLU()
NETWORKS: dict[str, tuple[Any, str, int | None]] = {
    "linear": (nn.Sequential(nn.Linear(WIDTH, 2)), "scores", 2),
    "relu": (nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)), "scores", 3),
    "nested": (
        nn.Sequential(
            nn.Flatten(),
            nn.Sequential(nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 6), nn.LeakyReLU(0.1), nn.Dropout(0.3)),
            nn.Sequential(nn.Sequential(nn.Linear(6, 4, bias=False), nn.BatchNorm1d(4), nn.ReLU()), nn.Identity()),
            nn.Linear(4, 1),
            nn.Sigmoid(),
        ),
        "chance",
        2,
    ),
    "softmax": (nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU(), nn.Linear(6, 2), nn.Softmax(dim=1)), "softmax", 2),
    "three classes": (
        nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU6(), nn.Linear(6, 3), nn.Softmax(dim=-1)),
        "softmax",
        3,
    ),
    "clipped": (
        nn.Sequential(nn.Linear(WIDTH, 6), nn.Hardtanh(-0.7, 1.3), nn.Linear(6, 5), nn.PReLU(), nn.Linear(5, 2)),
        "scores",
        2,
    ),
    "shared": (
        nn.Sequential(
            nn.Linear(WIDTH, 4), UNIT_IN_USE, SHARED, UNIT_IN_USE, SHARED, nn.Sequential(UNIT_IN_USE), nn.Linear(4, 2)
        ),
        "scores",
        2,
    ),
    "two linear": (nn.Sequential(nn.Linear(WIDTH, 4), nn.Linear(4, 3), nn.BatchNorm1d(3, affine=False)), "scores", 3),
    "regression": (
        nn.Sequential(nn.Linear(WIDTH, 6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 1)),
        "regression",
        None,
    ),
}


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_decides_as_its_form_says(name: str, precision: str) -> None:
    network, loss, classes = NETWORKS[name]
    encoder, X, labels = encoded(SCALED, classes)
    network = trained(network.to(getattr(torch, precision)), X, labels, loss)
    if loss in ("scores", "regression"):
        plain = mace.wrap(network, encoder=encoder)
        raw = lambda points: numbers(network, encoder, points)  # noqa: E731
        reading = check_network(plain, SCALED, raw)
    else:
        reading = check_network(mace.wrap(network, encoder=encoder), SCALED)
    assert reading.form.unit == (UNIT32 if precision == "float32" else UNIT)  # type: ignore[attr-defined]
    assert reading.classes == (None if classes is None else tuple(range(classes)))


def numbers(network: Any, encoder: Encoder, points: Any) -> np.ndarray:
    kind = next(network.parameters()).dtype
    columns = encoder.transform(SCALED.frame_of(points))
    with torch.inference_mode():
        return np.concatenate([network(torch.from_numpy(row[None]).to(kind)).numpy() for row in columns])


def test_a_bare_network_takes_the_features_in_the_spaces_order() -> None:
    frame, labels = training(PLAIN, 2)
    X = frame.to_numpy(dtype=float)
    network = trained(
        nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), X, labels, "scores"
    )
    reading = check_network(network, PLAIN)
    assert reading.family == "Sequential"
    explainer = Explainer(network, PLAIN)
    explanation = explainer.explain(frame.iloc[0], accuracy=1e-4, time_limit=60)
    best = explanation[0]
    with torch.inference_mode():
        row = torch.tensor([[float(value) for value in best.values.values()]])
        assert int(network(row)[0].argmax()) == best.prediction != explanation.prediction
    assert explanation.status == "optimal"


def test_brute_force_and_smt_agree_on_a_finite_space() -> None:
    space = FeatureSpace(
        {"a": integer(-3, 3), "b": real(-1, 1, step=0.25), "c": categorical([0, 1]), "d": integer(0, 4)}
    )
    for seed in range(4):
        torch.manual_seed(seed)
        network = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.05), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
        explainer = Explainer(network, space)
        row = {"a": seed - 3, "b": 0.25, "c": seed % 2, "d": 2}
        first, truth = (explainer.explain(row, solver=solver) for solver in ("smt", "enumerate"))
        assert first.status == truth.status
        if truth:
            assert first[0].distance == truth[0].distance


def test_one_number_is_a_prediction_or_with_classes_a_score() -> None:
    frame, labels = training(PLAIN, 2)
    X = frame.to_numpy(dtype=float)
    network = trained(nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 1)), X, labels, "logit")
    own = float(network(torch.from_numpy(X[:1]).float())[0, 0].detach())
    numeric = Explainer(network, PLAIN)
    assert numeric.classes is None
    with pytest.raises(InvalidTarget, match=r"mace\.at_least"):
        numeric.explain(frame.iloc[0])
    step = numeric.explain(frame.iloc[0], target=mace.at_least(own + 0.5))
    assert numeric.predict(step[0].values) >= own + 0.5
    named = mace.wrap(network, classes=["refused", "granted"])
    check_network(named, PLAIN)
    explanation = Explainer(named, PLAIN).explain(frame.iloc[0])
    assert {explanation.prediction, explanation[0].prediction} == {"refused", "granted"}
    assert named.predict(X[:1])[0] == explanation.prediction == ("granted" if own > 0 else "refused")


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_probability_of_two_classes_can_be_asked_for(outputs: int) -> None:
    frame, labels = training(PLAIN, 2)
    X = frame.to_numpy(dtype=float)
    last, loss = (nn.Sigmoid(), "chance") if outputs == 1 else (nn.Softmax(dim=1), "softmax")
    network = trained(
        nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, outputs), last), X, labels, loss
    )
    model = mace.wrap(network, classes=["no", "yes"])
    chances = model.predict_proba(X)[:, 1]
    start = int(np.abs(chances - 0.3).argmin())
    explanation = Explainer(model, PLAIN).explain(
        frame.iloc[start], target=mace.at_least(0.6, "yes"), accuracy=1e-4, time_limit=60
    )
    assert explanation.status == "optimal"
    row = np.array([[float(value) for value in explanation[0].values.values()]])
    assert model.predict_proba(row)[0, 1] >= 0.6


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, rows: Any) -> Any:
        return self.layer(rows) ** 2


class Squared(nn.Sequential):
    def forward(self, rows: Any) -> Any:
        return super().forward(rows) ** 2


class Twice(nn.Linear):
    def forward(self, rows: Any) -> Any:
        return 2 * super().forward(rows)


def hooked() -> Any:
    network = nn.Sequential(nn.Linear(2, 2)).eval()
    network[0].register_forward_hook(lambda module, rows, answer: answer * 2)
    return network


SMALL = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Own().eval(), "its forward is Python code of its own.*nn.Sequential.*torch.onnx.export"),
        (Squared(nn.Linear(2, 2)).eval(), "overrides Sequential.forward"),
        (nn.Sequential(Twice(2, 2)).eval(), "cannot read layer 0 of the network, .*Twice"),
        (nn.Sequential(nn.Linear(2, 2)), r"training mode.*model.eval\(\)"),
        (
            nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).eval(),
            "layer 1 of the network.*Tanh is not piecewise linear.*ReLU",
        ),
        (nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.GELU())).eval(), r"layer 0\.1 of the network"),
        (nn.Sequential(nn.Linear(2, 3), nn.Sigmoid(), nn.Linear(3, 2)).eval(), "layer 2 .* after a sigmoid"),
        (nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()).eval(), "several sigmoids"),
        (nn.Sequential(nn.Linear(2, 1), nn.Softmax(dim=1)).eval(), "always 1"),
        (nn.Sequential(nn.Linear(2, 2), nn.Softmax(dim=0)).eval(), "over the outputs"),
        (nn.Sequential(nn.Flatten(0), nn.Linear(2, 2)).eval(), "mix the rows"),
        (
            nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False)).eval(),
            "depends on the other rows",
        ),
        (nn.Sequential(nn.Linear(2, 2)).half().eval(), "dtypes torch.float16"),
        (nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double()).eval(), "dtypes torch.float32, torch.float64"),
        (nn.Sequential(nn.ReLU()).eval(), "dtypes none"),
        (nn.Sequential(nn.Linear(3, 2)).eval(), "fitted on 3 columns; the space gives 2"),
        (hooked(), "forward hook"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_network_that_cannot_be_read_is_refused_with_the_reason(network: Any, message: str) -> None:
    with pytest.raises(UnsupportedModel, match=message):
        Explainer(network, SMALL)


def test_a_network_that_is_trained_again_is_not_asked() -> None:
    network = nn.Sequential(nn.Linear(2, 2)).eval()
    explainer = Explainer(network, SMALL)
    network.train()
    with pytest.raises(UnsupportedModel, match="training mode"):
        explainer.explain({"a": 0.5, "b": 0.5})


def test_arithmetic_that_rounds_more_is_refused() -> None:
    network = nn.Sequential(nn.Linear(2, 2)).eval()
    torch.set_float32_matmul_precision("medium")
    try:
        with pytest.raises(UnsupportedModel, match="float32_matmul_precision"):
            Explainer(network, SMALL)
    finally:
        torch.set_float32_matmul_precision("highest")
    with torch.autocast("cpu"), pytest.raises(UnsupportedModel, match="autocast"):
        Explainer(network, SMALL)


def test_numbers_that_are_not_finite_are_refused() -> None:
    network = nn.Sequential(nn.Linear(2, 2)).eval()
    with torch.no_grad():
        network[0].weight[0, 0] = float("nan")
    with pytest.raises(UnsupportedModel, match="not finite"):
        Explainer(network, SMALL)
    with pytest.raises(UnsupportedModel, match="beyond"):
        Explainer(nn.Sequential(nn.Linear(2, 2)).eval(), FeatureSpace({"a": real(0, 1e38), "b": real(0, 1)}))
    with pytest.raises(UnsupportedModel, match="may be missing"):
        Explainer(nn.Sequential(nn.Linear(2, 2)).eval(), SMALL.replace(a=real(0, 1, missing=True)))


def test_text_levels_need_an_encoder_and_the_message_says_how() -> None:
    space = FeatureSpace({"a": real(0, 1), "b": categorical(["x", "y"])})
    with pytest.raises(UnsupportedModel, match=r"mace\.wrap\(model, encoder=\.\.\.\)"):
        Explainer(nn.Sequential(nn.Linear(2, 2)).eval(), space)


def test_labels_must_fit() -> None:
    network = nn.Sequential(nn.Linear(2, 3)).eval()
    for classes in (["a", "b"], ["a", "b", "b"], "abc", ["a"]):
        with pytest.raises(InvalidOption):
            mace.wrap(network, classes=classes)
    with pytest.raises(InvalidOption, match="a score of two classes"):
        mace.wrap(nn.Sequential(nn.Linear(2, 1)).eval(), classes=["a", "b", "c"])
    with pytest.raises(InvalidOption, match="fitted"):
        mace.wrap(network, encoder=Encoder(SMALL))
    assert read(mace.wrap(network, classes=["a", "b", "c"]), SMALL).classes == ("a", "b", "c")

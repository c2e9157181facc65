"""Targets as the command line takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LinearRegression, LogisticRegression

import mace
from mace.cli.main import run
from mace.cli.targets import target_of

ODD = ("approve", "a >= b", "not now", "0.5", "P(x)", "between", "'quoted'", "le <= 3")


@pytest.mark.parametrize("label", ODD)
def test_any_label_can_be_bounded(label: str) -> None:
    assert target_of(label, ODD) == label
    for written in (label, f"P({label})", f"'{label}'", f'"{label}"'):
        assert target_of(f"{written} >= 0.7", ODD) == mace.at_least(0.7, label)
        assert target_of(f" {written}<=.25 ", ODD) == mace.at_most(0.25, label)
        assert target_of(f"{written} between 0.4 and 6e-1", ODD) == mace.between(0.4, 0.6, label)
        assert target_of(f"0.4 <= {written} <= 0.6", ODD) == mace.between(0.4, 0.6, label)
    for target in (mace.at_least(0.7, label), mace.at_most(0.7, label), mace.between(0.2, 0.7, label)):
        assert target_of(str(target), ODD) == target


def test_a_percentage_is_the_share_that_it_says() -> None:
    classes = ("approve", "5%", "refuse")
    assert target_of("approve >= 70%", classes) == mace.at_least(0.7, "approve")
    assert target_of("P(refuse) <= 12.5 %", classes) == mace.at_most(0.125, "refuse")
    assert target_of("29% <= approve <= 57%", classes) == mace.between(0.29, 0.57, "approve")
    assert target_of("5%", classes) == "5%"
    assert target_of("5% >= 5%", classes) == mace.at_least(0.05, "5%")
    with pytest.raises(mace.InvalidTarget, match="bounds are included"):
        target_of("approve > 70%", classes)


def test_a_label_that_looks_like_a_bound_is_a_label() -> None:
    classes = ("x", "x >= 0.7")
    assert target_of("x >= 0.7", classes) == "x >= 0.7"
    assert target_of("P(x) >= 0.7", classes) == mace.at_least(0.7, "x")


def test_labels_are_found_by_what_they_print() -> None:
    assert target_of("1 >= 0.7", (0, 1)) == mace.at_least(0.7, 1)
    assert target_of("True >= 0.7", (False, True)) == mace.at_least(0.7, True)
    assert target_of("0", (0, 1)) == 0
    assert target_of(">= 0.7", (0, 1)) == mace.at_least(0.7)


def test_predictions_are_bounded_without_a_label() -> None:
    for text in (">= -70", "prediction >= -70"):
        assert target_of(text, None) == mace.at_least(-70)
    for text in ("between 60 and 75", "prediction between 60 and 75", "60 <= prediction <= 75"):
        assert target_of(text, None) == mace.between(60, 75)


def test_a_strict_bound_is_refused_with_what_to_write() -> None:
    for text in ("approve > 0.7", "P(approve) < 0.7", "> 0.7"):
        with pytest.raises(mace.InvalidTarget, match="bounds are included"):
            target_of(text, ("approve", "refuse"))
    assert target_of("a > b", ("a > b", "c")) == "a > b"
    assert target_of("nonsense", ("approve", "refuse")) == "nonsense"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("targets")
    frame = pd.DataFrame({"income": [float(k) for k in range(40)], "debt": [float(k % 7) for k in range(40)]})
    frame.head(6).to_csv(path / "rows.csv", index=False)
    (path / "space.json").write_text(mace.FeatureSpace.from_frame(frame).to_json())
    labels = ["refuse it" if k < 20 else "approve" for k in range(40)]
    skops.io.dump(LogisticRegression().fit(frame, labels), path / "labels.skops")
    skops.io.dump(LinearRegression().fit(frame, frame["income"] * 2), path / "numbers.skops")
    return path


def call(home: Path, command: str, model: str, *options: Any) -> int:
    paths = ["--data", home / "rows.csv", "--model", home / f"{model}.skops", "--space", home / "space.json"]
    return run([command, *map(str, [*paths, *options])])


def test_commands_take_a_probability(home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call(home, "explain", "labels", "--target", "approve >= 0.7", "--json") == 0
    assert json.loads(capsys.readouterr().out)["target"] == "P(approve) >= 0.7"
    assert call(home, "explain", "labels", "--target", "refuse it <= 0.3") == 0
    assert "1 way to P(refuse it) <= 0.3, proved nearest" in " ".join(capsys.readouterr().out.split())
    assert call(home, "batch", "labels", "--target", "approve >= 0.7", "--out", tmp_path / "answers.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert {line["target"] for line in lines} == {"P(approve) >= 0.7"}
    assert call(home, "audit", "labels", "--target", "approve >= 0.7", "--resamples", 2) == 0
    assert "target, P(approve) >= 0.7, already" in " ".join(capsys.readouterr().out.split())
    assert call(home, "explain", "numbers", "--target", ">= 70") == 0
    assert "1 way to at least 70" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("model", "target", "message"),
    [
        ("labels", ">= 0.7", 'Write "P(approve) >= 0.7" or "P(refuse it) >= 0.7".'),
        ("labels", "between 0.2 and 0.7", 'Write "0.2 <= P(approve) <= 0.7" or "0.2 <= P(refuse it) <= 0.7".'),
        (
            "labels",
            "aprove >= 0.7",
            "'aprove' is not a class of the model. Classes: 'approve', 'refuse it'. Did you mean",
        ),
        ("labels", "approve >= 70", "a probability lies between 0 and 1"),
        ("labels", "approve > 0.7", "bounds are included"),
        ("numbers", "approve >= 70", 'the model predicts numbers. Write "prediction >= 70".'),
    ],
)
def test_what_is_no_target_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], model: str, target: str, message: str
) -> None:
    for command, options in (("explain", ()), ("audit", ("--resamples", 2))):
        assert call(home, command, model, "--target", target, *options) == 2
        assert message in capsys.readouterr().err


def test_what_people_call_a_label_is_refused_with_the_label() -> None:
    called = {"no": "declined", "yes": "approved"}
    assert target_of("yes", ("no", "yes"), called) == "yes"
    assert target_of("no", ("no", "declined"), {"no": "declined"}) == "no"
    assert target_of("declined", ("no", "declined"), {"no": "declined"}) == "declined", "a label comes first"
    with pytest.raises(mace.InvalidTarget, match=r"this is what 'yes' is called\. Write --target yes\."):
        target_of("approved", ("no", "yes"), called)


def test_a_share_alone_is_refused_with_whose_it_may_be() -> None:
    with pytest.raises(mace.InvalidTarget, match=r'"no >= 0\.7" or "yes >= 0\.7"'):
        target_of("0.7", ("no", "yes"))
    assert target_of("2", (0, 1)) == "2", "which is refused as an unknown label"

"""Names that people know, on the terminal and in cards; what programs read has the names of the data."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

PLAIN = mace.FeatureSpace({"months": mace.integer(1, 72), "home": mace.categorical(["own", "rent"])})
SPACE = PLAIN.describe(
    names={"months": "time to repay", "home": "housing"},
    units={"months": "month|months"},
    outcomes={"bad": "declined", "good": "approved"},
    levels={"home": {"own": "your own home", "rent": "a flat"}},
)
ROW = {"months": 30, "home": "rent"}


def explainer(space: mace.FeatureSpace = SPACE) -> mace.Explainer:
    """Return that of a tree: up to 40 months with a home of one's own, 20 with another, are good."""
    rows = [(months, home) for months in range(1, 73) for home in (0, 1)]
    labels = ["good" if months <= (20 if home else 40) else "bad" for months, home in rows]
    tree = DecisionTreeClassifier(random_state=0)
    return mace.Explainer(make_pipeline(mace.Encoder(PLAIN), tree).fit(PLAIN.frame_of(rows), labels), space)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that name a model, its space and a row in files."""
    folder = tmp_path_factory.mktemp("names")
    skops.io.dump(explainer().model, folder / "model.skops")
    (folder / "space.json").write_text(SPACE.to_json())
    pd.DataFrame([ROW]).to_csv(folder / "rows.csv", index=False)
    given = {"--model": "model.skops", "--space": "space.json", "--data": "rows.csv"}
    return [word for option, name in given.items() for word in (option, str(folder / name))]


def test_the_terminal_shows_the_names_that_people_know(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *files, "--target", "good", "--count", "2"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("Predicted declined, P(approved) 0. 2 ways to approved, proved nearest")
    assert "│ time to repay │ 30 months │ 20 months │" in said
    assert "│ housing │ a flat │ your own home │" in said
    assert "predicted approved: P(approved) 0 -> 1, threshold 0.5" in said
    assert not any(word in said for word in ("home │", "rent", "bad", "good")[1:])


def test_programs_read_the_names_of_the_data(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", *files, "--target", "good", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    plain = explainer(PLAIN).explain(ROW, "good").to_dict()
    assert (read["factual"], read["prediction"], read["target"]) == (ROW, "bad", "good")
    assert read["counterfactuals"][0]["changes"] == plain["counterfactuals"][0]["changes"]
    out = tmp_path / "answers.csv"
    assert run(["batch", *files, "--target", "good", "--out", str(out)]) == 0
    with out.open(newline="") as lines:
        (cells,) = csv.DictReader(lines)
    assert (cells["prediction"], cells["months"], cells["home"]) == ("bad", "20", "rent")
    assert "time to repay" not in out.read_text()


def test_python_shows_the_same_names_and_a_repr_those_of_the_data() -> None:
    explanation = explainer().explain(ROW, mace.at_least(0.7, "good"))
    assert str(explanation).startswith("Predicted declined, P(approved) 0. 1 way to P(approved) >= 0.7, proved nearest")
    assert "time to repay  30 months  20 months" in str(explanation)
    assert "this change alone leads to P(approved) >= 0.7: time to repay: 30 months -> 20 months." in explanation.why()
    assert "P(good) >= 0.7" in repr(explanation)
    assert "months: 30 -> 20" in repr(explanation[0])
    card = explanation._repr_html_()
    assert "time to repay" in card
    assert "30 months" in card
    assert "P(approved)" in card
    assert "P(good)" not in card
    assert "called time to repay, in months" in SPACE._repr_html_()


@pytest.mark.parametrize("target", ["good", mace.at_least(0.7, "good"), None])
def test_a_row_at_its_target_is_said_so_by_the_same_names(target: object) -> None:
    made = explainer().explain({"months": 5, "home": "own"}, target)
    said = f"{made}{made.why()}"
    assert "approved" in said
    assert "good" not in said


def test_without_names_nothing_changes() -> None:
    plain, named = (explainer(space).explain(ROW, "good", certify=True) for space in (PLAIN, SPACE))
    assert str(plain).startswith("Predicted bad, P(good) 0. 1 way to good, proved nearest (l1 distance).")
    assert mace.verify(named[0].certificate, explainer().model).valid
    assert {**plain.to_dict(), "seconds": 0, "counterfactuals": []} == {
        **named.to_dict(),
        "seconds": 0,
        "counterfactuals": [],
    }

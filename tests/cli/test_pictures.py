"""``mace plot``: a picture of the answers of a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that approves an income of at least 55 or savings of at least 21, and people."""
    path = tmp_path_factory.mktemp("pictures")
    people = pd.DataFrame([(a, b) for a in range(0, 100, 5) for b in range(0, 50, 3)], columns=["income", "savings"])
    labels = ["yes" if a >= 55 or b >= 21 else "no" for a, b in people.itertuples(index=False)]
    skops.io.dump(DecisionTreeClassifier(random_state=0).fit(people, labels), path / "model.skops")
    (path / "space.json").write_text(mace.FeatureSpace.from_frame(people).to_json())
    people.to_csv(path / "people.csv", index=False)
    return path


def plot(home: Path, *options: Any) -> int:
    files = {"data": "people.csv", "model": "model.skops", "space": "space.json"}
    given = [text for name, file in files.items() for text in (f"--{name}", str(home / file))]
    return run(["plot", *given, *map(str, options)])


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_a_picture_is_written_in_the_kind_of_its_name(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str, start: bytes
) -> None:
    out = tmp_path / f"changes{suffix}"
    assert plot(home, "--row", 3, "--target", "yes", "--count", 2, "--out", out) == 0
    assert out.read_bytes().startswith(start)
    printed = capsys.readouterr()
    assert "2 ways to yes, proved nearest" in printed.out
    assert f"Picture: {out}" in printed.out
    assert printed.err == ""


def test_the_picture_shows_the_answers_and_the_other_people(home: Path, tmp_path: Path) -> None:
    for name, options in {"all": (), "alone": ("--others", 0), "menu": ("--menu",)}.items():
        assert plot(home, "--target", "yes", "--count", 2, "--out", tmp_path / f"{name}.svg", *options) == 0
    drawn = {path.stem: path.read_text() for path in tmp_path.iterdir()}
    for text in ("income", "savings", ">53<", ">20<", "P(yes)"):
        assert text in drawn["all"]
    assert "other people" in drawn["all"]
    assert "other people" not in drawn["alone"]
    assert "savings 0 \u2192 20" in drawn["menu"]


def test_where_there_is_nothing_to_draw_no_file_is_written(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "none.svg"
    assert plot(home, "--target", "yes", "--fix", "income,savings", "--out", out) == 1
    assert "No counterfactual exists" in capsys.readouterr().out
    assert plot(home, "--row", 339, "--target", "yes", "--out", out) == 0
    assert "Nothing to change" in capsys.readouterr().out
    assert not out.exists()


def test_what_cannot_be_written_is_said_before_anything_is_solved(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plot(home, "--out", tmp_path / "changes.gif") == 2
    assert "changes.gif: unknown kind of picture. Accepted: .svg, .png, .pdf." in capsys.readouterr().err
    assert plot(home, "--out", tmp_path / "nowhere" / "changes.svg") == 2
    assert "--out: there is no folder" in capsys.readouterr().err
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"] or ["matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert plot(home, "--model", tmp_path / "no.skops", "--out", tmp_path / "changes.svg") == 2
    assert "--model: there is no file" in capsys.readouterr().err
    assert plot(home, "--out", tmp_path / "changes.svg") == 2
    assert "matplotlib is not installed. Install it with: pip install 'mace-xai[plot]'" in capsys.readouterr().err

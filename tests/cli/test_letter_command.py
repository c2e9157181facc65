"""``mace letter``: the letter of one row, printed or in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

SPACE = mace.FeatureSpace(
    {"months": mace.integer(1, 72), "housing": mace.categorical(["own", "rent"]), "sex": mace.categorical(["f", "m"])}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its space, and rows."""
    path = tmp_path_factory.mktemp("letter")
    rows = [(months, housing, sex) for months in range(1, 73) for housing in (0, 1) for sex in (0, 1)]
    labels = ["good" if months <= (40 if housing == 0 else 20) else "bad" for months, housing, _ in rows]
    frame = SPACE.frame_of(rows)
    model = make_pipeline(mace.Encoder(SPACE), DecisionTreeClassifier(random_state=0)).fit(frame, labels)
    skops.io.dump(model, path / "model.skops")
    named = SPACE.protect("sex").describe(
        names={"months": "Laufzeit"},
        units={"months": "Monat|Monate"},
        outcomes={"bad": "abgelehnt", "good": "bewilligt"},
    )
    (path / "space.json").write_text(named.to_json())
    (path / "rows.csv").write_text("customer,months,housing,sex\na1,30,rent,f\na2,10,own,m\n")
    return path


def letter(folder: Path, *options: str) -> int:
    paths = ["--data", str(folder / "rows.csv"), "--model", str(folder / "model.skops")]
    return run(["letter", *paths, "--space", str(folder / "space.json"), "--target", "good", *options])


def test_a_letter_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--id", "customer", "--row", "a1", "--fix", "housing,sex", "--language", "de"]
    given = ["--names", "housing=Ihre Wohnung", "--field", "name=Frau Müller", "--field", "date=2026-11-18"]
    assert letter(folder, *options, *given, "--field", r"sender=Die Bank\nHauptstraße 1", "--score") == 0
    said = capsys.readouterr().out
    assert "- Laufzeit: 20\u00a0Monate, bisher 30\u00a0Monate (10\u00a0Monate weniger)" in said
    assert "Ihre Wohnung" in said
    assert "„bewilligt“" in said
    assert "sex" not in said
    assert said.splitlines()[0].endswith("18.\u00a0November 2026")
    assert said.endswith("Die Bank\nHauptstraße 1\n")
    assert "Wahrscheinlichkeit für „bewilligt“" in said


def test_a_letter_goes_into_a_file_as_its_name_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert letter(folder, "--fix", "sex", "--count", "2", "--number", "all", "--out", str(folder / "l.html")) == 0
    assert "Letter: " in capsys.readouterr().out
    page = (folder / "l.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "Option 2" in page
    (folder / "own.txt").write_text("{{ who }} <{{ decision }}>")
    options = ["--fix", "sex", "--template", str(folder / "own.txt"), "--field", "who=<you>"]
    assert letter(folder, *options, "--out", str(folder / "l.txt")) == 0
    assert (folder / "l.txt").read_text() == "<you> <abgelehnt>\n"
    assert letter(folder, *options, "--out", str(folder / "l.html")) == 0
    assert (folder / "l.html").read_text() == "&lt;you&gt; <abgelehnt>\n"


def test_exit_codes_are_those_of_the_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert letter(folder, "--fix", "months,housing,sex", "--names", "sex=Geschlecht") == 1
    assert "unchanged: Laufzeit, housing, Geschlecht" in capsys.readouterr().out
    assert letter(folder, "--row", "1") == 0
    assert "no change is needed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--language", "es"], "--language 'es'; there are"),
        (["--out", "letter.pdf"], "Accepted: .txt, .html"),
        (["--out", "no such folder/letter.txt"], "no folder"),
        (["--names", "month=x"], "no feature 'month'. Did you mean 'months'"),
        (["--units", "housing=m"], "--units: 'housing' is no number"),
        (
            ["--outcomes", "godo=ja"],
            "--outcomes: the model has no label 'godo'. Did you mean 'good'? Labels: 'bad', 'good'.",
        ),
        (["--units", "months"], 'write "name=value"'),
        (["--number", "first"], "counted from 1, or all"),
        (["--number", "3"], "--number 3; there is 1 counterfactual."),
        (["--field", "html=yes"], "choose another name"),
        (["--field", "nmae=you"], "no field 'nmae'. Did you mean 'name'"),
        (["--field", "date=tomorrow"], "write today"),
        (["--template", "no such file"], "no file"),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert letter(folder, "--fix", "sex", *options) == 2
    assert said in capsys.readouterr().err


def test_a_protected_feature_that_would_have_to_change_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = SPACE.protect("housing")
    (folder / "other.json").write_text(space.to_json())
    assert letter(folder, "--space", str(folder / "other.json"), "--only", "housing") == 2
    assert "which the space protects" in capsys.readouterr().err


def test_a_letter_that_calls_the_result_0_is_said_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = mace.FeatureSpace({"months": mace.integer(1, 72)})
    frame = space.frame_of([(months,) for months in range(1, 73)])
    model = DecisionTreeClassifier(random_state=0).fit(frame, [int(months <= 40) for months in range(1, 73)])
    skops.io.dump(model, tmp_path / "model.skops")
    (tmp_path / "space.json").write_text(space.to_json())
    (tmp_path / "rows.csv").write_text("months\n60\n")
    files = [f"--{name}={tmp_path / file}" for name, file in (("data", "rows.csv"), ("model", "model.skops"))]
    asked = ["letter", *files, f"--space={tmp_path / 'space.json'}"]
    assert run(asked) == 0
    assert 'The letter says 0 and 1 of the result. Name it: --outcomes "0=declined".' in capsys.readouterr().err
    assert run([*asked, "--outcomes", "0=declined", "--outcomes", "1=approved"]) == 0
    said = capsys.readouterr()
    assert "The letter says" not in said.err
    assert "\u201capproved\u201d" in said.out

"""``mace space``: what it writes is a space that the other commands take at once."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

PEOPLE = pd.DataFrame(
    {
        "id": [f"c{number}" for number in range(40)],
        "age": [20 + number for number in range(40)],
        "school": ["primary", "secondary", "a=b", "degree"] * 10,
        "rate": [0.5 * (number % 7) for number in range(40)],
        "paid": ["no", "yes"] * 20,
    }
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def test_the_space_is_that_of_the_frame(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ordered = "school=a=b,primary,secondary,degree"
    assert run(["space", str(people), "--label", "paid", "--drop", "id", "--ordered", ordered, "--protect", "age"]) == 0
    said = capsys.readouterr()
    made = mace.FeatureSpace.from_json(said.out)
    levels = mace.ordinal(["a=b", "primary", "secondary", "degree"])
    expected = mace.FeatureSpace.from_frame(PEOPLE.drop(columns=["id", "paid"]), school=levels).protect("age")
    assert json.loads(said.out) == expected.to_dict()
    assert made == expected
    assert made.round_to == expected.round_to
    assert "40 rows, 3 features" in said.err
    assert "a=b < primary < secondary < degree" in said.err
    assert max(map(len, said.err.splitlines()[:4])) <= 80


def test_what_looks_wrong_is_said(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["space", str(people)]) == 0
    said = capsys.readouterr().err
    assert "id: every row has its own value, as an identifier has" in said
    assert "--protect age" in said


def test_the_file_works_with_explain_at_once(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = people.with_name("space.json")
    assert run(["space", str(people), "--label", "paid", "--drop", "id", "--out", str(space)]) == 0
    assert capsys.readouterr().out == ""
    read = mace.FeatureSpace.from_json(space.read_text())
    frame = pd.read_csv(people)
    tree = make_pipeline(mace.Encoder(read), DecisionTreeClassifier(max_depth=3, random_state=0))
    skops.io.dump(tree.fit(frame[list(read)], frame["rate"] > 1), people.with_name("model.skops"))
    files = ["--data", str(people), "--space", str(space), "--model", str(people.with_name("model.skops"))]
    assert run(["explain", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "optimal"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--drop", "idd"], "Did you mean 'id'?"),
        (["--ordered", "school=primary,degree"], "'secondary', 'a=b' of the column is missing"),
        (["--ordered", "school"], "least,...,greatest"),
        (["--drop", "age", "--protect", "age"], "--protect: people.csv has no column 'age'"),
        (["--out", "nowhere/space.json"], "there is no folder nowhere"),
    ],
)
def test_a_wrong_option_is_refused(
    options: list[str], message: str, people: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["space", str(people), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["space", str(tmp_path / "nothing.csv")]) == 2
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "bad.csv").write_text("a,b\n1,2,3\n")
    assert run(["space", str(tmp_path / "bad.csv")]) == 2
    assert "bad.csv, line 2: 3 cells" in capsys.readouterr().err


def test_texts_that_are_all_dates_are_dates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(range(40), unit="D")
    frame = pd.DataFrame(
        {
            "since": days.strftime("%Y-%m-%d"),
            "seen": (days + pd.to_timedelta(range(40), unit="h")).strftime("%Y-%m-%d %H:%M"),
            "bent": ["2021-02-30", *["2021-02-20"] * 39],
            "word": ["soon", *["2021-02-20"] * 39],
            "size": [0, 1] * 20,
        }
    )
    frame.loc[3, "seen"] = None
    data, space, model = (tmp_path / name for name in ("people.csv", "space.json", "model.skops"))
    frame.to_csv(data, index=False)
    assert run(["space", str(data), "--ordered", "word=soon,2021-02-20", "--out", str(space)]) == 0
    said = capsys.readouterr().err
    assert "since, seen: read as dates" in said
    made = mace.FeatureSpace.from_json(space.read_text())
    assert [type(feature).__name__ for feature in made.values()] == [
        "Date",
        "Date",
        "Categorical",
        "Ordinal",
        "Integer",
    ]
    assert made["since"] == mace.date("2021-03-01", "2021-04-09")
    assert made["seen"].missing
    guess = mace.FeatureSpace.from_frame(frame).guesses
    assert "pd.to_datetime(frame['since'])" in guess["since"]
    assert "to_datetime" not in guess["bent"]

    kept = made.without("seen", "bent", "word")
    space.write_text(kept.to_json())
    rows = frame.assign(since=days)[["since", "size"]]
    fitted = make_pipeline(mace.Encoder(kept), DecisionTreeClassifier(random_state=0)).fit(rows, rows.since > days[20])
    skops.io.dump(fitted, model)
    asked = ["--data", str(data), "--model", str(model), "--space", str(space)]
    assert run(["explain", *asked, "--row", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["factual"]["since"] == "2021-03-04"
    assert answer["counterfactuals"][0]["values"]["since"] == "2021-03-22"
    assert run(["batch", *asked, "--out", str(tmp_path / "answers.csv")]) == 0
    assert "2021-03-22" in (tmp_path / "answers.csv").read_text()


def test_numbers_with_a_decimal_comma_are_said_to_be_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "people.csv"
    data.write_text("size;age\n1,5;20\n2,5;20\n1,5;30\n")
    assert run(["space", str(data), "--out", str(tmp_path / "space.json")]) == 0
    assert "size: read as texts, because of their decimal commas; write 3.5, not 3,5." in capsys.readouterr().err
    made = mace.FeatureSpace.from_json((tmp_path / "space.json").read_text())
    assert [type(feature).__name__ for feature in made.values()] == ["Categorical", "Integer"]


def test_that_a_feature_is_protected_is_never_cut_off_and_names_stay_in_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = "personal_status\nand_sex_of_applicants"
    frame = pd.DataFrame({status: [f"a level with many words\n{k % 9}" for k in range(40)], "age": range(20, 60)})
    frame.to_csv(tmp_path / "people.csv", index=False)
    assert (
        run(["space", str(tmp_path / "people.csv"), "--protect", f"{status},age", "--out", str(tmp_path / "s.json")])
        == 0
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "40 rows, 2 features:"
    assert lines[1].startswith("  personal_status and_sex_of_...")
    assert [line.endswith(", protected") for line in lines[1:3]] == [True, True]
    assert max(map(len, lines[:3])) <= 80
    report = mace.FeatureSpace.from_frame(frame).report()
    assert report.splitlines()[0].startswith("personal_status and_sex_of_applicants: categorical")

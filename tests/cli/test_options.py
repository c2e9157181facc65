"""The options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.answer.reasons import Reasons
from mace.cli.main import run
from mace.cli.texts import diversity_of, numbers_of, pairs_of, rounding_of


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that approves an income of at least 55 or savings of at least 21, and two people."""
    path = tmp_path_factory.mktemp("options")
    people = pd.DataFrame([(a, b) for a in range(0, 100, 5) for b in range(0, 50, 3)], columns=["income", "savings"])
    labels = ["yes" if a >= 55 or b >= 21 else "no" for a, b in people.itertuples(index=False)]
    skops.io.dump(DecisionTreeClassifier(random_state=0).fit(people, labels), path / "model.skops")
    (path / "space.json").write_text(mace.FeatureSpace.from_frame(people).to_json())
    people.to_csv(path / "people.csv", index=False)
    pd.DataFrame({"who": ["ann", "bob"], "income": [40, 95], "savings": [3, 3]}).to_csv(path / "rows.csv", index=False)
    return path


def call(home: Path, command: str, *options: Any) -> int:
    files = {"data": "rows.csv", "model": "model.skops", "space": "space.json"}
    given = [text for name, file in files.items() for text in (f"--{name}", str(home / file))]
    return run([command, *given, *map(str, options)])


def changed(home: Path, capsys: pytest.CaptureFixture[str], *options: Any) -> dict[str, Any]:
    """Return what the nearest answer of ann changes."""
    assert call(home, "explain", "--json", "--target", "yes", *options) == 0
    best = json.loads(capsys.readouterr().out)["counterfactuals"][0]
    return {each["feature"]: each["to" if "to" in each else "after"] for each in best["changes"]}


def test_weights_say_what_changes_cost(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(changed(home, capsys)) == {"income"}
    assert set(changed(home, capsys, "--weights", "income=10")) == {"savings"}
    assert set(changed(home, capsys, "--only", "savings")) == {"savings"}
    for way in ("mad", "percentile"):
        assert set(changed(home, capsys, "--weights", way, "--people", home / "people.csv")) == {"income"}


def test_noise_is_said_in_words_and_its_margin_is_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert changed(home, capsys, "--only", "income", "--rule", "robust to income by 2") == {"income": 55}
    by_people = ("--rule", "robust 5% of sd", "--people", home / "people.csv")
    assert changed(home, capsys, "--only", "income", "--round", "none", *by_people) == {"income": 54}
    rules = home / "rules.toml"
    rules.write_text('constraints = ["only income changes", "robust 5% of sd"]')
    files = ("--constraints", rules, "--people", home / "people.csv", "--round", "none")
    assert changed(home, capsys, *files) == {"income": 54}
    assert call(home, "explain", "--target", "yes", "--margin", "--only", "income") == 0
    assert "Noise of up to 1.05" in capsys.readouterr().out
    assert call(home, "explain", "--target", "yes", "--margin", "--json") == 0
    assert json.loads(capsys.readouterr().out)["margin"]["share"] > 0
    assert (
        call(home, "letter", "--target", "yes", "--margin", "--only", "income", "--rule", "robust to income by 2") == 0
    )
    assert "- income: 2" in capsys.readouterr().out


def test_answers_are_rounded_as_asked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(changed(home, capsys, "--round", "income=20,savings=20").values()) == [60]


def test_a_row_is_found_by_its_id(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(home, "explain", "--id", "who", "--row", "bob", "--target", "yes") == 0
    assert "Nothing to change" in capsys.readouterr().out
    assert call(home, "explain", "--id", "who", "--row", "eve") == 2
    assert "rows.csv has no row with this value in 'who'" in capsys.readouterr().err
    assert call(home, "explain", "--row", "bob") == 2
    assert "or --id with the column" in capsys.readouterr().err


def test_rows_outside_are_let_in_where_asked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "rich.csv").write_text("income,savings\n40,-3\n")
    assert call(home, "explain", "--data", home / "rich.csv") == 2
    assert call(home, "explain", "--data", home / "rich.csv", "--outside", "keep") == 0
    assert call(home, "explain", "--outside", "drop") == 2
    assert "accepted: 'error', 'keep', 'widen'" in capsys.readouterr().err


def test_an_audit_takes_weights_and_rows_outside(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(home, "audit", "--target", "yes", "--resamples", 2, "--weights", "income=10", "--outside", "widen") == 0
    assert "savings" in capsys.readouterr().out


def test_a_deadline_that_bites_is_said(home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert call(home, "explain", "--time-limit", "1e-9") == 3
    assert "Note: stopped after the 1e-09 s of --time-limit" in capsys.readouterr().err
    assert call(home, "batch", "--time-limit", "1e-9", "--out", tmp_path / "out.csv") == 3
    assert "Note: 2 rows were stopped after the 1e-09 s of --time-limit" in capsys.readouterr().err
    for command in ("explain", "batch", "audit"):
        assert run([command, "--help"]) == 0
        assert "[default: 30.0]" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weights", "3"), "write income=2,age=0.5, mad or percentile"),
        (("--weights", "incme=3"), "Did you mean 'income'?"),
        (("--weights", "income=x"), "'x' is no number"),
        (("--weights", "income=-1"), "must be a positive number"),
        (("--weights", "income=1,income=2"), "stands twice"),
        (("--weights", "income=1", "--distance", "l7"), "'l7' is not one of the distances"),
        (("--round", "often"), "write auto, none"),
        (("--round", "0"), "positive number"),
        (("--diversity", "much"), "write sets, features=2"),
        (("--diversity", "features=1.5"), "whole number"),
        (("--diversity", "features=1,distance=1"), "not both"),
        (("--outside", "foo"), "InvalidOption: --outside 'foo'; accepted: 'error', 'keep', 'widen'."),
        (("--count", "0"), "InvalidOption: --count 0; it must be a whole number from 1 to 10,000, e.g. --count 3."),
        (("--time-limit", "-1"), "InvalidOption: --time-limit -1.0; it must be"),
        (("--at-least", "2"), "InvalidOption: --at-least 2; it must be"),
        (("--solver", "foo"), "InvalidOption: --solver 'foo' is not known"),
        (("--people", "none.csv"), "--people: there is no file none.csv"),
        (("--certificate", "none/c.json"), "--certificate: there is no folder none"),
    ],
)
def test_what_is_no_option_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert call(home, "explain", *options) == 2
    said = capsys.readouterr().err
    assert message.lower() in said.lower()
    assert len(said.splitlines()) <= 2


def test_texts_of_several_values() -> None:
    assert numbers_of("--x", " a = 2, b=.5", "ab", "") == {"a": 2.0, "b": 0.5}
    assert numbers_of("--x", "a=b=2", ["a=b"], "") == {"a=b": 2.0}
    assert pairs_of("--x", ["a=one, two"]) == {"a": "one, two"}
    space = mace.FeatureSpace({"a": mace.real(0, 9), "b": mace.integer(0, 9)})
    assert rounding_of("auto", space) == "auto"
    assert rounding_of("none", space) is None
    assert rounding_of("10", space) == 10
    assert rounding_of("a=10,b=2", space) == {"a": 10, "b": 2}
    with pytest.raises(mace.InvalidOption, match="rounded by name: --round b=10"):
        rounding_of("10", space.replace(a=mace.categorical(["x", "y"])))
    assert diversity_of("sets") == mace.differ(sets="incomparable")
    assert diversity_of("features=2,by=0.05") == mace.differ(features=2, by=0.05)
    assert diversity_of("distance=0.1") == mace.differ(distance=0.1)


def test_wrong_usage_is_said_in_two_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 2
    assert capsys.readouterr().err.splitlines() == ["Missing option '--data'.", "See mace explain --help."]
    assert run(["explode"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_wrong_path_is_said_before_anything_is_loaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mace.models.files.load.load_model", lambda *_, **__: pytest.fail("loaded"))
    for option in ("--data", "--model", "--space", "--constraints", "--people"):
        assert call(home, "explain", option, home / "none") == 2
        assert call(home, "explain", option, home) == 2


def test_proofs_of_reasons_for_which_no_time_was_left_are_said_to_be_so(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unproved(self: Reasons, *_: object) -> Reasons:
        return self

    monkeypatch.setattr(Reasons, "certified", unproved)
    proof = home / "unproved.json"
    assert call(home, "reasons", "--row", "ann", "--id", "who", "--target", "yes", "--certificate", proof) == 0
    assert "is not written: the time limit left no time for a proof" in " ".join(capsys.readouterr().err.split())
    assert not proof.exists()


def test_reasons_of_a_row_on_the_command_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = home / "reason.json"
    assert call(home, "reasons", "--row", "ann", "--id", "who", "--target", "yes", "--certificate", proof) == 0
    said = capsys.readouterr().out
    assert "1. income, savings\n   as long as income is at most 52 and savings is at most 19\n" in said
    assert run(["verify", str(proof), "--model", str(home / "model.skops")]) == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "30")
    assert call(home, "reasons", "--row", "ann", "--id", "who", "--target", "yes") == 0
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 30
    assert "\n   as long as income is at\n   most 52 and savings is at\n   most 19\n" in narrow
    monkeypatch.setenv("COLUMNS", "200")
    assert call(home, "reasons", "--smallest", "--json") == 0
    assert json.loads(capsys.readouterr().out)["complete"]
    for name, told in (
        ("reason", "as long as income, savings stay as they are, and none can be left out"),
        ("reason-ranges", "as long as this holds: income within [0, 52]; savings within [0, 19].\n"),
        ("reason-all", "every reason of the decision holds one of these sets: income, savings"),
    ):
        assert run(["verify", str(home / f"{name}.json"), "--model", str(home / "model.skops")]) == 0
        assert told in (said := capsys.readouterr().out)
        assert "rules" not in said
    forged = json.loads((home / "reason-ranges.json").read_text())
    del forged["claim"]["ranges"]["income"]
    (home / "fewer.json").write_text(json.dumps(forged))
    assert run(["verify", str(home / "fewer.json"), "--model", str(home / "model.skops")]) == 0
    fewer = "as long as this holds: savings within [0, 19].\nOf rows that keep these rules: income within [0, 52].\n"
    assert fewer in capsys.readouterr().out
    assert call(home, "reasons", "--values", "--row", "ann", "--id", "who") == 0
    assert "as long as income is 40 and" in capsys.readouterr().out
    assert call(home, "reasons", "--out", home / "why.csv", "--id", "who") == 0
    assert (home / "why.csv").read_text().startswith("who,row,reason,features,as_long_as")
    assert not (home / "why.csv.checkpoint").exists()
    assert call(home, "reasons", "--out", home / "why.csv", "--total-time-limit", "1e-9") == 3
    assert "Go on with --resume" in capsys.readouterr().out
    assert call(home, "reasons", "--out", home / "why.csv") == 2
    assert call(home, "reasons", "--out", home / "why.csv", "--resume") == 0
    assert call(home, "reasons", "--resume") == 2
    assert call(home, "reasons", "--out", home / "why.jsonl") == 0
    capsys.readouterr()
    lines = [json.loads(line) for line in (home / "why.jsonl").read_text().splitlines()]
    assert lines
    assert all(line["complete"] for line in lines)
    assert call(home, "reasons", "--out", home / "why.txt") == 2
    assert call(home, "reasons", "--distance", "l2") == 2


def test_a_file_of_a_model_that_is_not_read_can_be_asked_as_the_refusal_says(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = pd.read_csv(home / "people.csv")
    labels = ["yes" if a >= 55 or b >= 21 else "no" for a, b in people.itertuples(index=False)]
    skops.io.dump(SVC().fit(people, labels), home / "kernel.skops")
    asked = ("--model", home / "kernel.skops", "--target", "yes", "--unread", "search")
    assert call(home, "explain", *asked) == 2
    said = capsys.readouterr().err
    assert "--unread search --trust" in said
    assert len(said.splitlines()) == 1
    assert call(home, "explain", *asked, "--trust", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["status"], made["lower"], made["counterfactuals"][0]["prediction"]) == ("feasible", 0, "yes")

"""Hints: features that nobody should be told to change, and what marks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.audits import audit
from mace.cli.main import run
from mace.constraints import as_constraints
from mace.constraints.mentions import mentioned
from mace.constraints.suggest import suggest_constraints
from mace.space.sensitive import is_sensitive

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 90),
        "sex": mace.categorical(["f", "m"]),
        "income": mace.integer(0, 90),
        "savings": mace.integer(0, 9),
        "birth year": mace.integer(1980, 1980),
    }
)
ROW = {"age": 30, "sex": "f", "income": 30, "savings": 4, "birth year": 1980}


def granted(row: Any) -> bool:
    return row.age + row.income + row.savings >= 90  # type: ignore[no-any-return]


EXPLAINER = mace.Explainer(granted, SPACE)


KNOWN = """age Age AGE applicantAge age_in_years age2 date-of-birth personal_status_sex Sex_F gender nationality native-country
foreign_worker race ethnicity marital.status religion is_disabled"""


@pytest.mark.parametrize("name", KNOWN.split())
def test_names_of_sensitive_features_are_known(name: str) -> None:
    assert is_sensitive(name)


@pytest.mark.parametrize(
    "name",
    ["mortgage", "average", "usage", "sextant", "trace", "income", "message", "agent", "grace_period", "pages", ""],
)
def test_words_inside_of_words_do_not_count(name: str) -> None:
    assert not is_sensitive(name)


def test_features_that_are_free_to_change_are_named_in_one_sentence() -> None:
    (hint,) = EXPLAINER.explain(ROW).hints
    assert hint == (
        "Nothing keeps 'age', 'sex' as they are. Where nobody should be asked to change them, fix them: "
        "mace.fixed('age', 'sex'), or --fix age,sex."
    )


@pytest.mark.parametrize(
    ("constraints", "free"),
    [
        ((), "age sex"),
        (mace.fixed("age"), "sex"),
        ([mace.fixed("age"), mace.fixed("sex")], ""),
        ("age increases", "sex"),
        ({"age": [18, 80], "sex": ["f"]}, ""),
        (mace.only("income"), ""),
        (mace.only("age", "income"), ""),
        (mace.only("age", "sex", "income") & mace.fixed("savings"), ""),
        (mace.changes_at_most(2), "age sex"),
        (mace.changes_at_most(1, of=["age", "income"]), "sex"),
        (mace.implies("income changes", "age >= old.age + 2"), "sex"),
        ("if savings changes then not sex changes", "age"),
        (mace.either("income >= 3", "min(age, savings) <= 40"), "sex"),
        ("income >= old.age", "age sex"),
        (lambda new, old: new.age >= old.age, "sex"),
        (lambda new, old: new.income >= old.age, "age sex"),
        (mace.steps("age", 2), "sex"),
        (mace.transitions("sex", {"f": ["m"]}), "age"),
        (mace.at_most_change("age", "10%"), "sex"),
        (mace.near_data([{**ROW, "age": 60, "income": 60}], k=1, radius=1), "age sex"),
        (mace.robust({"age": 1}), "age sex"),
    ],
)
def test_a_constraint_that_speaks_of_a_feature_silences_its_hint(constraints: Any, free: str) -> None:
    explanation = EXPLAINER.explain(ROW, constraints=constraints, time_limit=20)
    named = ", ".join(map(repr, free.split()))
    assert [f"mace.fixed({named})" in hint for hint in explanation.hints] == ([True] if free else [])


def test_mentions_are_of_the_constraint_not_of_its_levels() -> None:
    space = mace.FeatureSpace({"kind": mace.categorical(["sex", "age"]), "sex": mace.categorical(["f", "m"])})
    for given in (mace.one_of("kind", ["sex"]), "kind == 'sex'", mace.transitions("kind", {"sex": ["age"]})):
        (constraint,) = as_constraints(given, space)
        assert mentioned(constraint, constraint.bind(space, (0, 0))) == {"kind"}


def test_protected_features_are_named_whatever_they_are_called() -> None:
    explainer = mace.Explainer(granted, SPACE.protect("savings"))
    (hint,) = explainer.explain(ROW, constraints=[mace.fixed("age", "sex")]).hints
    assert "mace.fixed('savings')" in hint
    assert explainer.explain(ROW).to_dict()["counterfactuals"][0]["values"] == EXPLAINER.explain(ROW)[0].values


def test_hints_are_kept_in_json_and_in_batches() -> None:
    explanation = EXPLAINER.explain(ROW)
    again = mace.Explanation.from_json(explanation.to_json())
    assert again.hints == explanation.hints
    assert "hints" not in EXPLAINER.explain(ROW, constraints=mace.only("income")).to_dict()
    for hints in ("age", [3]):
        with pytest.raises(mace.InvalidOption, match="'hints'"):
            mace.Explanation.from_dict({**explanation.to_dict(), "hints": hints})
    assert [each.hints for each in EXPLAINER.explain_many([ROW, ROW])] == [explanation.hints] * 2


def test_suggestions_fix_protected_features_first() -> None:
    frame = pd.DataFrame({"late_30": [k % 5 for k in range(60)], "late_any": [k % 5 + k % 3 for k in range(60)]})
    space = mace.FeatureSpace.from_frame(frame)
    plain, first = suggest_constraints(frame, space), suggest_constraints(frame, space.protect("late_any"))
    assert str(first[0]) == "protected: late_any stays (100.0% of 60)"
    assert first[1:] == plain


def test_letters_mention_no_protected_feature_unless_asked() -> None:
    explainer = mace.Explainer(granted, SPACE.protect("sex", "age"))
    letter = explainer.explain(ROW, constraints=mace.only("income")).letter()
    assert "income" in letter
    assert "sex" not in letter
    assert "age" not in letter
    shown = "{{ stays|join(' ') }}|{{ factual|join(' ') }}|{{ reason }}"
    kept = explainer.explain(ROW, constraints=mace.only("income"))
    assert kept.letter(shown) == "savings birth year|income savings birth year|\n"
    assert kept.letter(shown, names={"sex": "the sex"}).startswith("the sex savings birth year|the sex income")
    older = explainer.explain(ROW, constraints=mace.only("age"))
    with pytest.raises(mace.InvalidOption, match=r"changes 'age', which the space protects.*mace.fixed\('age'\)"):
        older.letter()
    assert "- age: 56 instead of 30" in older.letter(names={"age": "age"})
    none = explainer.explain(ROW, constraints=[mace.fixed("age", "income", "sex")])
    assert none.status == "infeasible"
    assert "fixed" in none.reason
    assert "age" not in none.letter()


def test_audits_hold_protected_features() -> None:
    frame = pd.DataFrame([ROW, {**ROW, "sex": "m", "age": 40}])
    explainer = mace.Explainer(granted, SPACE.protect("age"))
    assert audit(explainer, frame, ["sex"], target=1, resamples=2).protected == ("sex", "age")
    assert audit(explainer, frame, ["sex"], target=1, resamples=2, protected=["sex"]).protected == ("sex",)


def test_a_batch_shows_hints_once() -> None:
    explainer = mace.Explainer(granted, SPACE.protect("age"))
    frame = pd.DataFrame([ROW, {**ROW, "age": 40}, {**ROW, "age": 41}])
    batch = explainer.explain_many(frame, target=1)
    (hint,) = batch.hints
    assert hint == explainer.explain(ROW, 1).hints[0]
    assert str(batch).splitlines() == [batch.summary(), f"Hint: {hint}"]
    assert batch._repr_html_().count("Hint: Nothing keeps") == 1
    assert repr(batch) == f"<Batch: {batch.summary()}>"
    silent = explainer.explain_many(frame[:1], target=1, constraints=[mace.fixed(*SPACE)])
    assert silent.hints == ()
    assert str(silent).startswith("1 row in ")
    assert "Hint" not in f"{silent}{silent._repr_html_()}"


def test_commands_show_hints_once_and_apart_from_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.DataFrame({"age": range(20, 60), "income": [k * 7 % 40 for k in range(40)]})
    labels = ["yes" if age + income > 60 else "no" for age, income in frame.to_numpy()]
    skops.io.dump(DecisionTreeClassifier(random_state=0).fit(frame, labels), tmp_path / "model.skops")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "space.json").write_text(mace.FeatureSpace.from_frame(frame).to_json())
    files = [
        f"--data={tmp_path / 'rows.csv'}",
        f"--model={tmp_path / 'model.skops'}",
        f"--space={tmp_path / 'space.json'}",
    ]
    assert run(["explain", *files]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("Hint: Nothing keeps 'age' as it is.") == 1
    assert "Hint" not in shown.out
    assert run(["explain", *files, "--json"]) == 0
    shown = capsys.readouterr()
    assert "Hint" not in shown.err
    assert json.loads(shown.out)["hints"][0].startswith("Nothing keeps 'age'")
    assert run(["batch", *files, f"--out={tmp_path / 'out.csv'}"]) == 0
    assert capsys.readouterr().err.count("Hint: Nothing keeps 'age' as it is.") == 1
    assert run(["explain", *files, "--only", "income"]) == 0
    assert "Hint" not in capsys.readouterr().err

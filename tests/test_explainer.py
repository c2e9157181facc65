"""The explainer and the explanation, as a user meets them."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Explainer, FeatureSpace, InvalidOption, InvalidRow, InvalidTarget, categorical, integer, ordinal, real
from mace.answer.counterfactual import Change

SPACE = FeatureSpace(
    {
        "age": integer(18, 90),
        "income": integer(0, 100),
        "education": ordinal(["low", "mid", "high"]),
        "housing": categorical(["rent", "own", "free"]),
    }
)


def decide(age: int, income: int, education: str, housing: str) -> str:
    score = income
    if education == "high":
        score += 25
    if housing == "own":
        score += 20
    if age < 25:
        score -= 10
    return "grant" if score >= 60 else "refuse"


ROW = {"age": 30, "income": 40, "education": "low", "housing": "rent"}
EXPLAINER = Explainer(decide, SPACE)


def test_the_contract_of_an_answer() -> None:
    explanation = EXPLAINER.explain(ROW, target="grant")
    assert explanation.status == "optimal"
    assert explanation.prediction == "refuse"
    assert explanation.factual == ROW
    assert len(explanation) == 1
    best = explanation[0]
    assert best.values == ROW | {"income": 60}
    assert best.changes == (Change("income", 40, 60),)
    assert best.distance == pytest.approx(0.05)
    assert best.lower <= 0.05 <= best.distance
    assert best.status == "optimal"
    assert best.prediction == "grant"
    assert best.solver == "milp"
    assert "not trees" in explanation.solver
    assert best.seconds >= 0
    assert best.calls > 0
    assert list(best.values) == list(SPACE)
    assert explanation.seconds >= best.seconds
    assert explanation.lower == best.lower
    assert not explanation.exhausted
    assert explanation.reason == ""


@pytest.mark.parametrize(
    "row", [pd.Series(ROW), pd.DataFrame([ROW]), list(ROW.values()), ROW | {"age": np.float64(30.0)}]
)
def test_rows_of_every_shape_give_the_same_answer(row: Any) -> None:
    assert EXPLAINER.explain(row)[0].values == ROW | {"income": 60}


def test_constraints_are_respected_and_change_the_answer() -> None:
    frozen = EXPLAINER.explain(ROW, constraints=[mace.fixed("income")])[0]
    assert len(frozen.changes) == 1
    assert frozen.changes[0].feature in {"education", "housing"}
    capped = EXPLAINER.explain(ROW, constraints=[mace.within("income", 0, 50), mace.fixed("housing")])[0]
    assert capped.values == ROW | {"education": "high"}


def test_a_single_constraint_need_not_be_a_list() -> None:
    assert EXPLAINER.explain(ROW, constraints=mace.fixed("housing", "education"))[0].values["income"] == 60


def test_contradictory_constraints_are_infeasible_and_not_an_error() -> None:
    explanation = EXPLAINER.explain(ROW, constraints=[mace.within("income", 0, 10), mace.within("income", 20, 30)])
    assert explanation.status == "infeasible"
    assert len(explanation) == 0
    assert explanation.exhausted
    assert "proved" in str(explanation)


def test_nothing_reaches_the_target_is_proved() -> None:
    explanation = EXPLAINER.explain(ROW, constraints=[mace.fixed("income", "housing", "education")], solver="smt")
    assert explanation.status == "infeasible"
    assert (
        EXPLAINER.explain(ROW, constraints=[mace.fixed("income", "housing", "education")], solver="enumerate").status
        == "infeasible"
    )


def test_a_factual_that_breaks_a_constraint_is_explained_all_the_same() -> None:
    explanation = EXPLAINER.explain(ROW, constraints=[mace.within("age", 50, 60)])
    assert explanation.status == "optimal"
    assert explanation[0].values["age"] == 50


def test_diverse_answers_come_nearest_first_and_differ() -> None:
    explanation = EXPLAINER.explain(ROW, count=4, diversity=mace.differ(features=2))
    assert explanation.status == "optimal"
    distances = [counterfactual.distance for counterfactual in explanation]
    assert distances == sorted(distances)
    rows = [counterfactual.values for counterfactual in explanation]
    for i, a in enumerate(rows):
        assert all(sum(a[name] != b[name] for name in SPACE) >= 2 for b in rows[:i])
        assert EXPLAINER.predict(a) == "grant"


def test_when_no_further_counterfactual_exists_that_is_proved() -> None:
    space = FeatureSpace({"a": categorical(["x", "y"]), "b": categorical(["x", "y"])})
    explainer = Explainer(lambda a, b: 1 if a == "y" else 0, space)
    explanation = explainer.explain({"a": "x", "b": "x"}, count=5, diversity=mace.differ())
    assert len(explanation) == 2
    assert explanation.exhausted
    assert explanation.status == "optimal"
    assert "No further counterfactual exists that differs as asked: proved." in str(explanation)
    alone = explainer.explain({"a": "x", "b": "x"}, count=5)
    assert (len(alone), alone.exhausted, alone.status) == (1, True, "optimal")
    assert str(alone).endswith("\n\nNo further set of features leads there, but more or fewer of these: proved.")


def test_a_deadline_in_the_middle_keeps_what_was_found() -> None:
    explanation = EXPLAINER.explain(ROW, count=10_000, diversity=mace.differ(by=0), time_limit=1.5)
    assert 0 < len(explanation) < 10_000
    assert explanation.status == "feasible"
    assert "time limit reached" in explanation.reason


def test_targets() -> None:
    X = np.random.default_rng(0).uniform(0, 10, (300, 2))
    y = np.digitize(X.sum(axis=1), [5, 10, 15])
    explainer = Explainer(
        DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, y),
        FeatureSpace({"a": real(0, 10), "b": real(0, 10)}),
    )
    row = [1.0, 1.0]
    assert explainer.classes == (0, 1, 2, 3)
    assert explainer.explain(row)[0].prediction == 1
    assert explainer.explain(row, target=3)[0].prediction == 3
    assert explainer.explain(row, target=mace.becomes(2))[0].prediction == 2
    assert explainer.explain(row, target=mace.any_of([3, 2]))[0].prediction == 2
    for there in (0, mace.any_of([3, 0])):
        made = explainer.explain(row, target=there, certify=True)
        assert (made.status, len(made), made.lower, made.prediction) == ("reached", 0, 0.0, 0)
        assert str(made) == f"Nothing to change: the row is already predicted 0, and {there} is asked for."
        assert mace.Explanation.from_json(made.to_json()).status == "reached"
        assert "Nothing to change" in made._repr_html_()
        assert len(made.to_frame()) == 1
        assert str(explainer.levers(row, target=there)) == str(made)
        assert "no change is needed" in made.letter()
    with pytest.raises(InvalidTarget, match=r"7 is not a class of the model\. Classes: 0, 1, 2, 3"):
        explainer.explain(row, target=7)
    with pytest.raises(InvalidTarget, match="at least one"):
        mace.any_of([])


def test_a_model_of_one_class_has_nothing_to_become() -> None:
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], [1, 1])
    with pytest.raises(InvalidTarget, match="a single class"):
        Explainer(model, FeatureSpace({"a": real(0, 1)})).explain([0.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count=0"),
        ({"count": 1.5}, "count=1.5"),
        ({"accuracy": 0}, "accuracy=0"),
        ({"accuracy": math.nan}, "accuracy=nan"),
        ({"time_limit": 0}, "time_limit=0"),
        ({"time_limit": "fast"}, "time_limit='fast'"),
        ({"certify": "yes"}, "certify=.yes."),
        ({"solver": "gurobi"}, "solver='gurobi' is not known"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        EXPLAINER.explain(ROW, **options)


def test_a_wrong_row_constraint_distance_or_space_is_refused() -> None:
    with pytest.raises(InvalidRow, match="'age' is 7"):
        EXPLAINER.explain(ROW | {"age": 7})
    with pytest.raises(mace.InvalidConstraint, match=r"Write mace\.fixed"):
        EXPLAINER.explain(ROW, constraints=["age"])  # type: ignore[list-item]
    with pytest.raises(mace.InvalidDistance):
        EXPLAINER.explain(ROW, distance="l7")
    with pytest.raises(mace.InvalidSpace, match="give a FeatureSpace"):
        Explainer(decide, {"age": integer(0, 1)})  # type: ignore[arg-type]


def test_a_distance_given_as_a_function_decides() -> None:
    def effort(new, old):  # type: ignore[no-untyped-def]
        return (
            abs(new.income - old.income)
            + (3 if new.housing != old.housing else 0)
            + (4 if new.education != old.education else 0)
        )

    best = EXPLAINER.explain(ROW, distance=effort, accuracy=1e-3)[0]
    assert best.values["housing"] == "own"
    assert best.distance == 3


def test_missing_values_may_stay_and_a_change_to_or_from_missing_costs_one() -> None:
    rng = np.random.default_rng(0)
    a = np.where(rng.random(300) < 0.3, np.nan, rng.random(300))
    b = rng.integers(0, 10, 300)
    y = (np.where(np.isnan(a), 0.2, a) * 10 + b > 9).astype(int)
    space = FeatureSpace({"a": real(0, 1, missing=True), "b": integer(0, 9)})
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(max_depth=5, random_state=0))
    frame = pd.DataFrame({"a": a, "b": b})
    model.fit(frame, y)
    explainer = Explainer(model, space)
    row = frame[(model.predict(frame) == 0) & frame["a"].isna()].iloc[0]
    best = explainer.explain(row)[0]
    assert model.predict(pd.DataFrame([best.values]))[0] == 1
    assert math.isnan(best.values["a"]) or best.distance >= 0.5
    frozen = explainer.explain(row, constraints=[mace.fixed("a")])
    assert all(math.isnan(c.values["a"]) for c in frozen)
    assert json.loads(frozen.to_json())["factual"]["a"] is None


# ---- representations


def test_the_text_is_a_small_table() -> None:
    text = str(EXPLAINER.explain(ROW, target="grant"))
    assert text.splitlines()[0] == "Predicted refuse. 1 way to grant, proved nearest (l1 distance)."
    assert "income   40   60" in text


def test_rich_and_html_show_the_same_and_escape() -> None:
    space = FeatureSpace({"<b>": categorical(["<i>", "&"]), "x": real(0, 1)})
    explanation = Explainer(lambda row: 1 if row["<b>"] == "&" else 0, space).explain({"<b>": "<i>", "x": 0.5})
    html = explanation._repr_html_()
    assert ">&lt;b&gt;</td>" in html
    assert ">&lt;i&gt;</span></td>" in html
    assert ">&amp;</span></td>" in html
    assert "<i>" not in html
    assert "\u2192" in html
    assert ">proved nearest</span>" in html
    console = Console(file=io.StringIO(), width=100)
    console.print(explanation)
    assert "proved nearest" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_narrow_terminal_cuts_no_name() -> None:
    console = Console(file=io.StringIO(), width=24)
    console.print(EXPLAINER.explain(ROW, target="grant"))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 24


def test_json_is_the_documented_schema_and_round_trips() -> None:
    from pathlib import Path

    explanation = EXPLAINER.explain(ROW, count=2)
    data = json.loads(explanation.to_json())
    assert data == explanation.to_dict()
    document = (Path(__file__).parent.parent / "docs" / "explanation.md").read_text()
    documented = [line.split("`")[1] for line in document.splitlines() if line.startswith("| `")]
    documented.remove("outside")  # of rows outside the space alone
    documented.remove("fixed")  # where constraints keep features by name
    documented.remove("margin")  # where it was asked for
    assert documented == [*data, *data["counterfactuals"][0]]
    assert [c["distance"] for c in data["counterfactuals"]] == [c.distance for c in explanation]


def test_the_frame_holds_the_factual_and_the_answers() -> None:
    frame = EXPLAINER.explain(ROW, count=2).to_frame()
    assert list(frame.index) == ["factual", 1, 2]
    assert frame.loc["factual", "prediction"] == "refuse"
    assert list(frame.loc[1, list(SPACE)]) == list((ROW | {"income": 60}).values())


def test_an_explanation_is_a_sequence() -> None:
    explanation = EXPLAINER.explain(ROW, count=3)
    assert list(explanation) == [explanation[0], explanation[1], explanation[2]] == list(explanation[:3])
    assert explanation[-1] is explanation[2]
    with pytest.raises(IndexError):
        explanation[3]


def test_unneeded_changes_are_undone() -> None:
    """Under linf every feature may move as far as the farthest for nothing; the answer moves only what it must."""
    best = EXPLAINER.explain(ROW, distance="linf")[0]
    for change in best.changes:
        undone = best.values | {change.feature: change.before}
        assert EXPLAINER.predict(undone) == "refuse"


def test_float32_trained_and_frame_trained_models_are_asked_as_they_were_fitted() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((100, 2)).astype(np.float32)
    y = (X.sum(axis=1) > 1).astype(int)
    space = FeatureSpace({"a": real(0, 1), "b": real(0, 1)})
    for model in (LogisticRegression().fit(X, y), LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b"]), y)):
        explanation = Explainer(model, space).explain([0.1, 0.2])
        assert explanation.status == "optimal"
        assert explanation[0].prediction == 1


def test_an_explainer_says_what_it_explains() -> None:
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 100)})
    tree = DecisionTreeClassifier().fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
    assert repr(mace.Explainer(tree, space)) == "<Explainer: DecisionTreeClassifier, 2 features, predicts 0 or 1>"
    caused = mace.Explainer(tree, space, mace.Causal({"income": "age - 10"}))
    assert repr(caused).endswith("predicts 0 or 1, effects: income>")


def test_every_to_json_takes_an_indent_that_changes_nothing_else() -> None:
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 100)})
    tree = DecisionTreeClassifier().fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
    explainer = mace.Explainer(tree, space)
    made = explainer.explain((35, 25), certify=True)
    for each in (space, made, made[0].certificate, explainer.explain_many([(35, 25)])):
        texts = [each.to_json(indent=indent) for indent in (None, 1, 2)]  # type: ignore[union-attr]
        assert json.loads(texts[0]) == json.loads(texts[1]) == json.loads(texts[2])
        assert "\n " in texts[1]
    read = mace.Certificate.from_json(made[0].certificate.to_json(indent=2))  # type: ignore[union-attr]
    assert mace.verify(read, tree).valid
    assert mace.Explanation.from_json(made.to_json(indent=None)).to_dict() == made.to_dict()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": NaN}', "{'version': 1}", b"\xff", '{"version": 1, "version": 1}']
)
def test_a_text_that_is_no_explanation_is_refused(text: str | bytes) -> None:
    with pytest.raises(mace.InvalidOption, match=r"^from_(json|dict): "):
        mace.Explanation.from_json(text)


def test_every_public_method_stands_in_the_class_itself_which_the_reference_shows() -> None:
    assert not [name for name in dir(mace.Explainer) if name[0] != "_" and name not in vars(mace.Explainer)]

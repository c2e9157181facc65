"""Sets of models: the nearest row that all of them, or so many, accept, compared with asking each about every row."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from random_sets import random_set, set_fault
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run
from mace.models.sets import ModelSet
from mace.testing import check_model

SPACE = mace.FeatureSpace(
    {"age": mace.integer(18, 90), "income": mace.integer(0, 100), "home": mace.categorical(["own", "rent"])}
)
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {"age": RNG.integers(18, 91, 300), "income": RNG.integers(0, 101, 300), "home": RNG.choice(["own", "rent"], 300)}
)
POOR = {"age": 30, "income": 20, "home": "rent"}


def bank(least: int, recipe: Any = None) -> Any:
    """Return a model that approves an income from a number on."""
    model = make_pipeline(mace.Encoder(SPACE), clone(recipe) if recipe else DecisionTreeClassifier(random_state=0))
    return model.fit(PEOPLE, np.where(least <= PEOPLE.income, "yes", "no"))


JANUARY, APRIL, JULY = bank(40), bank(50), bank(60)
QUARTERS = {"january": JANUARY, "april": APRIL, "july": JULY}


@pytest.mark.parametrize("seed", range(25))
def test_a_set_answers_as_asking_every_model_about_every_row(seed: int) -> None:
    assert set_fault(random_set(seed)) is None


def income(models: Any, **question: Any) -> mace.Counterfactual:
    return mace.Explainer(models, SPACE).explain(POOR, "yes", **question)[0]


def test_all_of_a_list_must_agree_and_so_many_of_a_set() -> None:
    each = [income(model).values["income"] for model in QUARTERS.values()]
    assert each == sorted(each)
    for least, wanted in enumerate(each, 1):
        best = income(mace.agree(QUARTERS, at_least=least))
        assert best.values["income"] == wanted
        assert best.held_by == tuple(QUARTERS)[:least]
    assert income(list(QUARTERS.values())).values["income"] == each[-1]
    assert income(QUARTERS).held_by == ("january", "april", "july")
    assert income(JANUARY).held_by is None


def test_the_prediction_is_what_most_models_say_and_the_score_the_one_that_decides() -> None:
    explainer = mace.Explainer(mace.agree(QUARTERS, at_least=1), SPACE)
    answer = explainer.explain(POOR, "yes")
    assert answer.held_by == ("january",)
    assert answer[0].prediction == "no"
    assert (answer[0].score_of, answer[0].score_before, answer[0].score) == ("P(yes) of 1 of 3 models", 0.0, 1.0)
    assert "held by january" in str(answer)
    everybody = mace.Explainer(QUARTERS, SPACE).explain(POOR, "yes")[0]
    assert (everybody.prediction, everybody.score_of) == ("yes", "P(yes) of all 3 models")


def test_the_headline_says_what_as_many_models_give_as_must_agree() -> None:
    person = POOR | {"income": 55}
    named = SPACE.describe(outcomes={"yes": "approved", "no": "declined"})
    found = mace.Explainer(QUARTERS, named).explain(person, "yes")
    assert found.headline().startswith(
        "Together the models predict approved; all 3 give P(approved) 0 or more. 1 way to approved in all 3 models, proved"
    )
    assert "lead to approved in all 3 models" in found.why() or "leads to approved in all 3 models" in found.why()
    assert "Probability of “approved”: 0% now, 100% then" in " ".join(found.letter(score=True).split())
    low = mace.Explainer(QUARTERS, SPACE).explain(person, mace.at_most(0.5, "yes"))
    assert "; all 3 give P(yes) 1 or less. 1 way to P(yes) <= 0.5 in all 3 models" in low.headline()
    two = mace.Explainer(mace.agree(QUARTERS, at_least=2), SPACE).explain(POOR, "yes")
    assert two.headline().startswith(
        "Together the models predict no; 2 of 3 give P(yes) 0 or more. 1 way to yes in 2 of 3"
    )
    alone = mace.Explainer([JANUARY], SPACE).explain(POOR, "yes")
    assert "; it gives P(yes) 0 or more. 1 way to yes, proved" in alone.headline()


def test_people_are_told_that_too_few_models_agree_not_what_most_of_them_say() -> None:
    """Two of three say yes, and all must: "yes, it would have been yes" said nothing."""
    person = POOR | {"income": 55}
    explainer = mace.Explainer(QUARTERS, SPACE)
    for made in (explainer.explain(person, "yes"), explainer.reasons(person, "yes")):
        assert made.prediction == "yes"
        assert "the result is: not “yes”." in " ".join(made.letter().split())
        assert "lautet: nicht „yes“." in " ".join(made.letter(language="de").split())
    assert "would have been “yes” with" in " ".join(explainer.explain(person, "yes").letter().split())
    assert str(explainer.reasons(person, "yes")).startswith("Why not yes:\n1. income\n")
    # One of three suffices, and most say no of the answer still.
    one = mace.Explainer(mace.agree(QUARTERS, at_least=1), SPACE).explain(POOR, "yes")
    assert one[0].prediction == "no"
    assert "the result is: no. The result would have been “yes” with" in " ".join(one.letter().split())


def test_a_row_that_enough_models_accept_is_reached() -> None:
    middle = POOR | {"income": 55}
    assert mace.Explainer(mace.agree(QUARTERS, at_least=2), SPACE).explain(middle, "yes").status == "reached"
    assert "2 of 3 models" in mace.Explainer(mace.agree(QUARTERS, at_least=2), SPACE).explain(middle, "yes").reason
    assert mace.Explainer(QUARTERS, SPACE).explain(middle, "yes").held_by == ("january", "april", "july")


def test_without_a_target_models_leave_what_most_of_them_say() -> None:
    answer = mace.Explainer(mace.agree(QUARTERS, at_least=2), SPACE).explain(POOR | {"income": 95})
    assert answer.prediction == "yes"
    assert answer.held_by == ("april", "july")
    disputed = mace.Explainer(mace.agree(QUARTERS, at_least=1), SPACE).explain(POOR | {"income": 55})
    assert (disputed.prediction, disputed.status) == ("yes", "reached")


def test_members_have_columns_dtypes_and_preprocessing_of_their_own() -> None:
    labels = np.where(PEOPLE.income >= 50, "yes", "no")
    encoded = make_column_transformer((OneHotEncoder(), ["home"]), (StandardScaler(), ["age", "income"]))
    whole = make_pipeline(encoded, LogisticRegression()).fit(PEOPLE, labels)
    turned = LogisticRegression().fit(PEOPLE[["income", "age"]], labels)
    narrow = DecisionTreeClassifier(max_depth=2).fit(PEOPLE[["income"]].astype(np.float32).to_numpy()[:, :1], labels)
    alone = DecisionTreeClassifier(max_depth=2).fit(PEOPLE[["income"]], labels)
    best = income([whole, turned, alone])
    row = pd.DataFrame([best.values])
    assert [model.predict(row[list(model.feature_names_in_)])[0] for model in (whole, turned, alone)] == ["yes"] * 3
    assert best.held_by == (0, 1, 2)
    with pytest.raises(mace.UnsupportedModel, match="model 1 of the set"):
        mace.Explainer([whole, narrow], SPACE)
    with pytest.warns(UserWarning, match="not fitted on 'home'"):
        assert list(mace.Explainer([turned, alone], SPACE).space) == ["age", "income"]


def test_certificates_are_of_the_set_and_of_how_many() -> None:
    models = mace.agree(QUARTERS, at_least=2)
    answer = mace.Explainer(models, SPACE).explain(POOR, "yes", certify=True)
    written = answer[0].certificate.to_json()
    read = mace.Certificate.from_json(written)
    assert mace.verify(read, models).outcome == "valid"
    assert mace.verify(read, mace.agree([JANUARY, APRIL, JULY], at_least=2)).outcome == "valid"
    for other in (QUARTERS, [APRIL, JANUARY, JULY], mace.agree(QUARTERS, at_least=1), JANUARY):
        assert mace.verify(read, other).outcome == "refuted"
    nearer = json.loads(written)
    nearer["claim"]["counterfactual"] = income(JANUARY).values
    assert mace.verify(nearer, models).outcome == "refuted"


@pytest.mark.parametrize("recipe", [None, LogisticRegression(max_iter=1000)])
def test_batches_levers_reasons_and_regions_take_sets(recipe: Any) -> None:
    models = [bank(least, recipe) for least in (40, 50, 60)]
    explainer = mace.Explainer(models, SPACE)
    rows = PEOPLE.head(6)
    batch = explainer.explain_many(rows, target="yes")
    each = [explainer.explain(row, "yes") for _, row in rows.iterrows()]
    assert [answer.to_dict() | {"seconds": 0, "counterfactuals": []} for answer in batch] == [
        answer.to_dict() | {"seconds": 0, "counterfactuals": []} for answer in each
    ]
    assert [[one.values for one in answer] for answer in batch] == [[one.values for one in answer] for answer in each]
    assert ("income",) in [lever.features for lever in explainer.levers(POOR, "yes")]
    reasons = explainer.reasons(POOR, "yes", certify=True)
    assert reasons[0].features == ("income",)
    assert [mace.verify(reason.certificate, models).outcome for reason in reasons] == ["valid"] * len(reasons)
    best = explainer.explain(POOR, "yes", round_to=None)[0]
    low, high = _ends(best.region(["income"]))
    inside = pd.DataFrame([POOR | best.values | {"income": value} for value in range(low, high + 1)])
    assert all((model.predict(inside) == "yes").all() for model in models)


def _ends(region: Any) -> tuple[int, int]:
    ends = region["income"]
    return int(ends.low), int(ends.high)


def test_a_region_is_of_a_set_that_accepts_its_answer() -> None:
    explainer = mace.Explainer(mace.agree(QUARTERS, at_least=2), SPACE)
    best = explainer.explain(POOR, "yes")[0]
    low, _ = _ends(explainer.region(best, ["income"]))
    assert low <= best.values["income"]
    rows = pd.DataFrame([best.values | {"income": low}, best.values | {"income": low - 1}])
    accepted = np.sum([model.predict(rows) == "yes" for model in QUARTERS.values()], axis=0)
    assert accepted[0] >= 2 > accepted[1]
    few = mace.Explainer(mace.agree(QUARTERS, at_least=1), SPACE)
    with pytest.raises(mace.InvalidOption, match="too few models"):
        mace.Explainer(QUARTERS, SPACE).region(few.explain(POOR, "yes")[0])


def test_robust_and_typical_answers_of_a_set() -> None:
    sturdy = [mace.robust({"income": 3}), mace.fixed("age", "home")]
    best = income(QUARTERS, constraints=sturdy, certify=True)
    assert best.values["income"] == income(QUARTERS, constraints=sturdy[1:]).values["income"] + 3
    assert mace.verify(best.certificate, QUARTERS).outcome == "valid"
    usual = mace.typical(PEOPLE, 0.2)
    found = income(QUARTERS, constraints=[usual], certify=True)
    assert found.status == "optimal"
    assert mace.verify(found.certificate, QUARTERS, forests=[usual]).outcome == "valid"


@pytest.mark.parametrize(
    "recipes", [(None, None), (LogisticRegression(max_iter=1000),) * 2, (None, LogisticRegression())]
)
def test_interventions_are_of_a_set_too(recipes: Any) -> None:
    numbers = SPACE.replace(age=mace.real(18, 90), income=mace.real(0, 100))
    models = []
    for least, recipe in zip((40, 50), recipes, strict=True):
        like = bank(least, recipe)
        models.append(make_pipeline(mace.Encoder(numbers), clone(like[-1])).fit(PEOPLE, like.predict(PEOPLE)))
    causes = mace.Causal({"income": "2 * age - 40"})
    best = mace.Explainer(models, numbers, causes).explain(POOR, "yes", certify=True)[0]
    assert best.actions == ("age",)
    assert best.values["income"] == pytest.approx(2 * best.values["age"] - 40)
    assert best.held_by == (0, 1)
    assert mace.verify(best.certificate, models).outcome == "valid"


def test_a_model_of_a_set_that_changes_is_noticed() -> None:
    for recipe in (DecisionTreeClassifier(random_state=0), LogisticRegression(max_iter=1000)):
        models = [bank(40, recipe), bank(60, recipe)]
        explainer = mace.Explainer(models, SPACE)
        explainer.explain(POOR, "yes")
        models[1].fit(PEOPLE, np.where(PEOPLE.income >= 70, "yes", "no"))
        with pytest.raises(mace.ModelChanged):
            explainer.explain(POOR, "yes")
    models = [bank(40, LogisticRegression()), bank(60, LogisticRegression())]
    explainer = mace.Explainer(models, SPACE)
    models[1][-1].coef_[:] = -models[1][-1].coef_
    with pytest.raises(mace.ModelChanged):
        explainer.explain(POOR, "yes")


def test_numbers_are_predicted_as_the_median() -> None:
    models = [LinearRegression().fit(PEOPLE[["age", "income"]], PEOPLE.income * factor) for factor in (1.0, 2.0, 4.0)]
    space = SPACE.without("home")
    explainer = mace.Explainer(mace.agree(models, at_least=2), space)
    answer = explainer.explain({"age": 30, "income": 10}, mace.at_least(100))
    assert answer.prediction == pytest.approx(20)
    assert answer[0].values["income"] in (50, 51)
    assert answer.held_by == (1, 2)
    assert answer[0].score == pytest.approx(2 * answer[0].values["income"])
    with pytest.raises(mace.InvalidTarget):
        explainer.explain({"age": 30, "income": 10})


def test_a_set_is_pickled_and_shown() -> None:
    models = pickle.loads(pickle.dumps(mace.agree(QUARTERS, at_least=2)))
    assert repr(models) == "<ModelSet: 2 of 3 models>"
    explainer = pickle.loads(pickle.dumps(mace.Explainer(models, SPACE)))
    assert repr(explainer).startswith("<Explainer: 2 of 3 models (DecisionTreeClassifier x 3), 3 features")
    again = mace.Explanation.from_json(explainer.explain(POOR, "yes").to_json())
    assert again.held_by == ("january", "april")
    assert check_model(models, SPACE, count=30).rows >= 90


def test_a_model_that_cannot_be_read_makes_a_set_that_is_searched() -> None:
    turned = make_pipeline(mace.Encoder(SPACE), PCA(2), DecisionTreeClassifier(random_state=0))
    turned.fit(PEOPLE, np.where(PEOPLE.income >= 45, "yes", "no"))
    with pytest.raises(mace.UnsupportedModel, match="model 1 of the set"):
        mace.Explainer([JANUARY, turned], SPACE)
    from sklearn.neighbors import KNeighborsClassifier

    asked = bank(50, KNeighborsClassifier())
    answer = mace.Explainer([JANUARY, asked], SPACE, unread="search").explain(POOR, "yes")
    assert answer.held_by == (0, 1)
    assert answer.status == "feasible"


def lender(age: int, income: int, home: str) -> str:
    return "no" if income < 50 else "yes"


def backward(age: int, income: int, home: str) -> str:
    return "yes" if income >= 50 else "no"


def test_a_function_or_trees_behind_a_projection_make_a_set_that_is_searched() -> None:
    turned = make_pipeline(mace.Encoder(SPACE), PCA(2), DecisionTreeClassifier(random_state=0))
    turned.fit(PEOPLE, np.where(PEOPLE.income >= 45, "yes", "no"))
    for other in (turned, lender):
        with pytest.raises(mace.UnsupportedModel, match=r"model 1 of the set.*function, and trees.*unread=\"search\""):
            mace.Explainer([JANUARY, other], SPACE)
        explainer = mace.Explainer([JANUARY, other], SPACE, unread="search")
        answer = explainer.explain(POOR, "yes")
        assert answer.held_by == (0, 1)
        assert answer.status == "feasible"
        with pytest.raises(mace.InvalidOption, match="could not be read"):
            explainer.reasons(POOR, "yes")
    with pytest.raises(mace.UnsupportedModel, match="in the same order"):
        mace.Explainer([JANUARY, backward], SPACE, unread="search")


@pytest.mark.parametrize(
    ("given", "at_least", "said"),
    [
        ([], None, "0 models"),
        (7, None, "no list of models"),
        ([JANUARY], 2, "from 1 to 1"),
        ([JANUARY, APRIL], 0, "from 1 to 2"),
        ([JANUARY, APRIL], True, "from 1 to 2"),
        ({1.5: JANUARY}, None, "names of models"),
    ],
)
def test_what_is_no_set_is_refused(given: Any, at_least: Any, said: str) -> None:
    with pytest.raises(mace.InvalidOption, match=said):
        mace.agree(given, at_least)


def test_models_that_cannot_be_asked_the_same_are_refused() -> None:
    numbers = LinearRegression().fit(PEOPLE[["age", "income"]], PEOPLE.income)
    with pytest.raises(mace.UnsupportedModel, match="predicts numbers"):
        mace.Explainer([JANUARY, numbers], SPACE)
    with pytest.raises(mace.UnsupportedModel, match="itself a set"):
        mace.Explainer([JANUARY, [APRIL]], SPACE)
    many = [bank(40)] * 30
    with pytest.raises(mace.InvalidTarget, match="ways"):
        mace.Explainer(mace.agree(many, at_least=15), SPACE).explain(POOR, "yes")
    with pytest.raises(mace.InvalidTarget, match="not a class"):
        mace.Explainer(QUARTERS, SPACE).explain(POOR, "perhaps")


def test_noise_around_an_answer_of_some_of_many_models_is_asked_about_in_few_ways() -> None:
    """Found by the campaign: 5 of 10 are 252 ways, and their opposite was taken as one of each of these, which never ended."""
    many = [bank(30 + 3 * k) for k in range(10)]
    explainer = mace.Explainer(mace.agree(many, at_least=5), SPACE)
    explanation = explainer.explain(POOR, "yes")
    margin = explanation.margin
    assert margin is not None
    assert margin.undone_by is not None
    said = [model.predict(SPACE.frame_of([SPACE.point(margin.undone_by)]))[0] for model in many]
    assert said.count("yes") < 5
    region = explainer.region(explanation[0], ["income"])
    assert region["income"].low <= explanation[0].values["income"] <= region["income"].high


# ---- bootstraps


def test_a_bootstrap_is_the_same_recipe_fitted_on_other_draws() -> None:
    labels = np.where(PEOPLE.income + RNG.normal(0, 20, 300) >= 50, "yes", "no")
    recipe = make_pipeline(mace.Encoder(SPACE), RandomForestClassifier(5, max_depth=3, random_state=0))
    told: list[tuple[int, int]] = []
    models = mace.bootstrap(
        recipe, PEOPLE, labels, n=4, at_least=3, random_state=7, on_progress=lambda *at: told.append(at)
    )
    again = mace.bootstrap(recipe, PEOPLE, labels, n=4, random_state=7)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert isinstance(models, ModelSet)
    assert (len(models), models.at_least, again.at_least) == (4, 3, 4)
    said = [model.predict_proba(PEOPLE)[:, 1] for model in models]
    assert not any(np.array_equal(said[0], other) for other in said[1:])
    assert all(np.array_equal(own, model.predict_proba(PEOPLE)[:, 1]) for own, model in zip(said, again, strict=True))
    assert not hasattr(recipe[-1], "estimators_")
    assert len(mace.Explainer(models, SPACE).explain(POOR, "yes").held_by) >= 3


def test_every_class_is_drawn() -> None:
    labels = np.array(["no"] * 299 + ["yes"])
    models = mace.bootstrap(DecisionTreeClassifier(), PEOPLE[["age", "income"]], labels, n=8, random_state=0)
    assert all(list(model.classes_) == ["no", "yes"] for model in models)
    with pytest.raises(mace.InvalidOption, match="copied"):
        mace.bootstrap("a recipe", PEOPLE, labels)
    with pytest.raises(mace.InvalidOption, match="n=0"):
        mace.bootstrap(DecisionTreeClassifier(), PEOPLE, labels, n=0)


# ---- networks beside each other


def test_networks_of_other_depths_beside_each_other_keep_their_scores() -> None:
    from mace.models import read
    from mace.models.ensembles.beside import as_set

    recipes = [
        LogisticRegression(),
        MLPClassifier((3, 2), max_iter=50, random_state=0),
        MLPClassifier((2,), max_iter=50),
    ]
    with pytest.warns(UserWarning, match="Maximum iterations"):
        forms = [read(bank(50, recipe), SPACE).form for recipe in recipes]
    joint = as_set(SPACE, forms)  # type: ignore[arg-type]
    assert len(joint.columns) == len(forms[0].columns)  # type: ignore[attr-defined, union-attr]
    for row in PEOPLE.head(20).to_dict("records"):
        point = SPACE.point(row)
        each = tuple(score for form in forms for score in form.exact_scores(point))  # type: ignore[attr-defined]
        assert joint.exact_scores(point) == each
        assert joint.rounding(SPACE_BOX) >= max(form.rounding(SPACE_BOX) for form in forms)  # type: ignore[attr-defined, operator]


SPACE_BOX = tuple((0, 100) for _ in SPACE)


# ---- the command line


def test_several_model_files_are_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = SPACE.without("home")
    for name, least in (("january", 40), ("april", 50), ("july", 60)):
        model = DecisionTreeClassifier(random_state=0).fit(
            PEOPLE[["age", "income"]], np.where(PEOPLE.income >= least, "yes", "no")
        )
        skops.io.dump(model, tmp_path / f"{name}.skops")
    (tmp_path / "space.json").write_text(numbers.to_json())
    pd.DataFrame([{"age": 30, "income": 20}]).to_csv(tmp_path / "rows.csv", index=False)
    files = ",".join(str(tmp_path / f"{name}.skops") for name in ("january", "april", "july"))
    base = ["--model", files, "--space", str(tmp_path / "space.json"), "--data", str(tmp_path / "rows.csv")]
    written = str(tmp_path / "certificate.json")
    asked = ["explain", *base, "--target", "yes", "--at-least", "2", "--json", "--certificate", written]
    assert run(asked) == 0
    assert json.loads(capsys.readouterr().out)["counterfactuals"][0]["held_by"] == ["january", "april"]
    assert run(["verify", written, "--model", files, "--at-least", "2"]) == 0
    assert run(["verify", written, "--model", files]) == 1
    assert run(["verify", written, "--model", str(tmp_path / "april.skops"), "--at-least", "2"]) == 2

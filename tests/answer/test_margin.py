"""How much noise an answer stands, compared with going through every row; noise as a share of ranges and of spreads."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from margin_referee import margin_fault
from random_problems import random_case
from random_reasons import reached
from random_sets import accepted, as_case, random_set
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.constraints.robust import measured

SPACE = mace.FeatureSpace(
    {"income": mace.integer(0, 100), "debt": mace.real(0, 10), "home": mace.categorical(["own", "rent"])}
)
ROW = {"income": 20, "debt": 5.0, "home": "rent"}


def fitted(model: Any) -> mace.Explainer:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 101, 400),
            "debt": rng.uniform(0, 10, 400),
            "home": rng.choice(["own", "rent"], 400),
        }
    )
    said = np.where(frame.income - 5 * frame.debt > 20, "yes", "no")
    return mace.Explainer(make_pipeline(mace.Encoder(SPACE), model).fit(frame, said), SPACE)


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_a_margin_is_that_of_going_through_every_row(seed: int) -> None:
    case = random_case(seed)
    assert margin_fault(case, partial(reached, case)) in (None, "skipped")


@pytest.mark.parametrize("seed", range(80_000, 80_020))
def test_a_margin_of_a_set_is_that_of_asking_every_model_about_every_row(seed: int) -> None:
    case = random_set(seed)
    assert margin_fault(as_case(case), partial(accepted, case)) in (None, "skipped")


@pytest.mark.parametrize("model", [DecisionTreeClassifier(random_state=0), LogisticRegression(max_iter=1000)])
def test_noise_of_the_margin_is_stood_and_a_little_more_is_not(model: Any) -> None:
    explainer = fitted(model)
    explanation = explainer.explain(ROW, target="yes")
    margin = explanation.margin
    assert margin is not None
    assert margin.undone_at is not None
    assert margin.undone_by is not None
    assert explainer.predict(margin.undone_by) == "no"
    best = explanation[0].values
    for share, is_robust in ((margin.share, True), (margin.undone_at, False)):
        asked = explainer.margin(ROW, best, "yes", mace.robust(share))
        assert (asked.share >= 1) == is_robust
    assert str(margin).startswith("Noise of up to ")
    assert json.dumps(margin.to_dict())
    assert pickle.loads(pickle.dumps(explanation)).margin.share == margin.share


def test_with_robust_the_margin_is_a_share_of_its_noise() -> None:
    explainer = fitted(DecisionTreeClassifier(random_state=0))
    explanation = explainer.explain(ROW, target="yes", constraints=[mace.robust({"income": 3})])
    margin = explanation.margin
    assert margin is not None
    assert margin.share >= 1
    assert set(margin.radii) == {"income"}
    assert "times robust({'income': 3})" in str(margin)


def test_noise_that_robust_has_proved_is_stood_whole() -> None:
    """Of a real feature it was said to be 0.9999990 times that."""
    explainer = fitted(DecisionTreeClassifier(random_state=0))
    for noise in (mace.robust({"debt": 0.5}), mace.robust({"debt": 0.1})):
        explanation = explainer.explain(ROW, target="yes", constraints=[noise])
        assert explanation.status == "optimal"
        assert explanation.margin.share >= 1
        assert explanation.margin.undone_at > 1
        assert str(explanation.margin).startswith("Noise of up to 1")


@pytest.mark.parametrize("outside", ["keep", "widen"])
def test_an_answer_to_a_row_outside_has_a_margin(outside: Any) -> None:
    inside = fitted(DecisionTreeClassifier(random_state=0))
    explainer = mace.Explainer(inside.model, SPACE, outside=outside)
    row = {"income": 20, "debt": 12.5, "home": "rent"}
    found = explainer.explain(row, target="yes", constraints=[mace.robust({"debt": 0.25})])
    assert found.outside
    assert found.margin.share >= 1
    assert explainer.explain(row, target="yes").margin.share < 1
    # An answer of one's own may lie outside where the row does not.
    assert explainer.margin(ROW, {"income": 140, "debt": 1.0, "home": "own"}, "yes", {"income": 1}).share > 30


def test_noise_of_dates_is_in_days() -> None:
    space = mace.FeatureSpace({"since": mace.date("2015-01-01", "2025-12-31"), "income": mace.integer(0, 100)})
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2015-01-01") + pd.to_timedelta(rng.integers(0, 4000, 300), unit="D")
    people = pd.DataFrame({"since": days, "income": rng.integers(0, 101, 300)})
    dated = ColumnTransformer([("days", FunctionTransformer(mace.days), ["since"])], remainder="passthrough")
    model = make_pipeline(dated, DecisionTreeClassifier(max_depth=4, random_state=0))
    model.fit(people, np.where((people.since < "2020-01-01") & (people.income > 40), "yes", "no"))
    explainer, row = mace.Explainer(model, space), {"since": "2023-05-01", "income": 20}
    found = explainer.explain(row, "yes", constraints=[mace.robust({"since": 30, "income": 2})])
    assert found.margin.share >= 1
    assert "- since: 30 days" in found.letter(margin=True).replace("\u00a0", " ")
    measured = explainer.explain(row, "yes", constraints=[mace.robust("5% of sd", data=people)])
    assert pd.Timestamp(measured[0].values["since"]) < pd.Timestamp("2020-01-01") - 0.05 * people.since.std()


def test_without_an_answer_or_an_explainer_there_is_no_margin() -> None:
    explainer = fitted(DecisionTreeClassifier(random_state=0))
    there = explainer.explain(ROW, target="no")
    assert (there.status, there.margin) == ("reached", None)
    found = explainer.explain(ROW, target="yes")
    assert mace.Explanation.from_json(found.to_json()).margin is None
    assert pickle.loads(pickle.dumps(found)).margin is None
    with pytest.raises(mace.InvalidOption, match="not in the target"):
        explainer.margin(ROW, ROW, "yes")
    with pytest.raises(mace.InvalidOption, match="causes"):
        mace.Explainer(explainer.model, SPACE, mace.Causal({"debt": "income / 10"})).margin(ROW, ROW, "yes")


def test_a_margin_that_was_asked_for_is_written_down_and_told() -> None:
    explainer = fitted(LogisticRegression(max_iter=1000))
    explanation = explainer.explain(ROW, target="yes", constraints=["only income changes"])
    assert "margin" not in explanation.to_dict()
    assert "Noise" not in str(explanation)
    assert "higher or lower" not in explanation.letter()
    margin = explanation.margin
    assert margin is not None
    assert str(margin) in str(explanation)
    again = mace.Explanation.from_json(explanation.to_json())
    assert again.margin == margin
    assert again.to_dict() == explanation.to_dict()
    with pytest.raises(mace.InvalidOption, match="a margin without"):
        mace.Explanation.from_dict(explanation.to_dict() | {"margin": {}})
    sturdy = explainer.explain(ROW, target="yes", constraints=["only income, debt change", "robust to income by 3"])
    assert sturdy.margin is not None
    told = sturdy.letter(margin=True, names={"income": "monthly income"})
    assert "turned out higher or lower by at most: - monthly income: 3 Everything" in " ".join(told.split())
    assert "höher oder niedriger" in " ".join(sturdy.letter(margin=True, language="de").split())
    with pytest.raises(mace.InvalidOption, match="the nearest answer alone"):
        explainer.explain(ROW, target="yes", count=2).letter(margin=True, number="all")


def test_noise_in_words_is_that_of_the_call() -> None:
    people = pd.DataFrame({"income": [10, 20, 60], "debt": [1.0, 2.0, 6.0], "home": ["own", "rent", "own"]})
    explainer = fitted(LogisticRegression(max_iter=1000))
    for text, same in (
        ("robust 0.01", mace.robust(0.01)),
        ("robust to 1% of range", mace.robust(0.01)),
        ("Robust to income by 3, debt by 0.4", mace.robust({"income": 3, "debt": 0.4})),
        ("robust 5% of sd", mace.robust("5% of sd", people)),
        ("robust 1e-3 mad", mace.robust("0.1% of mad", people)),
    ):
        made = measured(mace.rule(text), lambda: people)
        assert made == same, text
        assert measured(mace.rule(made.text), lambda: people) == same
    by_text = explainer.explain(ROW, target="yes", constraints="robust to income by 3")
    assert by_text[0].values == explainer.explain(ROW, target="yes", constraints=[mace.robust({"income": 3})])[0].values
    with pytest.raises(mace.InvalidConstraint, match="measured by people, and none were given"):
        explainer.explain(ROW, target="yes", constraints="robust 5% of sd")
    for text, said in (
        ("income stays and robust 1%", "a constraint of its own"),
        ("not robust 1%", "a constraint of its own"),
        ("robust 5% of spread", "expected 'range' or 'sd' or 'mad'|expected 'range' or 'mad' or 'sd'"),
        ("robust to income", "expected 'by'"),
        ("robust 2000000", "a share from 0"),
    ):
        with pytest.raises(mace.InvalidConstraint, match=said):
            mace.rule(text)
    assert mace.rule("robust stays") == mace.fixed("robust")
    assert str(mace.rule("robust >= 3")) == "rule('robust >= 3')"


def test_shares_of_ranges_and_of_spreads_are_radii() -> None:
    people = pd.DataFrame({"income": [10, 20, 60], "debt": [1.0, 2.0, 6.0], "home": ["own", "rent", "own"]})
    point = SPACE.point(ROW)

    def radii(noise: Any) -> dict[str, float]:
        return {name: float(radius) for name, radius in noise.bind(SPACE, point).radii.items()}

    assert radii(mace.robust(0.01)) == radii(mace.robust("1% of range")) == {"income": 1.0, "debt": 0.1}
    assert radii(mace.robust("50% of mad", data=people)) == {"income": 5.0, "debt": 0.5}
    spread = people[["income", "debt"]].std()
    assert radii(mace.robust("2 sd", people)) == pytest.approx({name: 2 * spread[name] for name in ("income", "debt")})
    known = mace.robust("10% of sd", data={"income": 30.0, "debt": 4})
    assert radii(known) == {"income": 3.0, "debt": 0.4}
    explainer = fitted(LogisticRegression(max_iter=1000))
    named, shared = (
        explainer.explain(ROW, target="yes", constraints=[noise], certify=True)[0]
        for noise in (mace.robust({"income": 3, "debt": 0.4}), known)
    )
    assert named.values == shared.values
    certificate = mace.Certificate.from_json(shared.certificate.to_json())
    assert certificate.statement["constraints"] == [
        {"kind": "robust", "arguments": ["0.1 of sd", {"income": 30.0, "debt": 4}]}
    ]
    assert mace.verify(certificate, explainer.model).outcome == mace.verify(named.certificate, explainer.model).outcome
    forged = json.loads(shared.certificate.to_json())
    forged["statement"]["constraints"][0]["arguments"][0] = "0.9 of sd"
    assert not mace.verify(forged, explainer.model).valid


@pytest.mark.parametrize(
    ("noise", "data", "said"),
    [
        ("5% of foo", None, "Write '1% of range'"),
        ("5% of sd", None, "give them, data=X_train"),
        ("5% of range", {"income": 1.0}, "leave data out"),
        (0.1, {"income": 1.0}, "leave it out beside other noise"),
        (-0.1, None, "a share from 0"),
        (True, None, "give a dict"),
        ({}, None, "give a dict"),
        ("5% of sd", {"income": -1.0}, "at least 0"),
        ("5% of sd", pd.DataFrame({"income": []}), "no rows"),
    ],
)
def test_noise_that_is_none_is_refused(noise: Any, data: Any, said: str) -> None:
    with pytest.raises(mace.InvalidConstraint, match=said):
        mace.robust(noise, data)


def test_data_without_a_feature_is_refused() -> None:
    with pytest.raises(mace.InvalidConstraint, match="no numbers in a column 'debt'"):
        mace.robust("5% of sd", {"income": 3.0}).bind(SPACE, SPACE.point(ROW))


def test_noise_larger_than_the_ranges_is_stood_whole_where_no_row_undoes() -> None:
    space = mace.FeatureSpace({"flag": mace.integer(0, 1), "income": mace.integer(0, 9)})
    model = DecisionTreeClassifier(max_depth=1).fit([[0, 0], [1, 9]] * 5, [0, 1] * 5)
    model.tree_.feature[0] = 1
    explanation = mace.Explainer(model, space).explain([0, 0], 1, constraints=[mace.robust({"flag": 4})])
    assert explanation.margin is not None
    assert (explanation.margin.share, explanation.margin.undone_at) == (1.0, None)
    assert explanation.margin.radii == {"flag": 4.0}

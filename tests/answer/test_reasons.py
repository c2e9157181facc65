"""Why: sets of features whose values force a decision, compared with going through every row."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_problems import random_case
from random_reasons import fault_of
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace

SPACE = mace.FeatureSpace(
    {"age": mace.integer(18, 90), "income": mace.integer(0, 100), "home": mace.categorical(["own", "rent", "none"])}
)


def fitted(model: Any, said: Any) -> mace.Explainer:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 500),
            "income": rng.integers(0, 101, 500),
            "home": rng.choice(["own", "rent", "none"], 500),
        }
    )
    return mace.Explainer(make_pipeline(mace.Encoder(SPACE), model).fit(frame, said(frame)), SPACE)


def bank() -> mace.Explainer:
    """Approves whoever earns 40 and owns a home, or earns 80."""
    tree = DecisionTreeClassifier(random_state=0)
    return fitted(
        tree, lambda rows: np.where((rows.income >= 80) | ((rows.income >= 40) & (rows.home == "own")), "yes", "no")
    )


POOR = {"age": 30, "income": 20, "home": "rent"}
TENANT = {"age": 30, "income": 60, "home": "rent"}


@pytest.mark.parametrize("seed", range(0, 90, 2))
def test_reasons_are_those_of_going_through_every_row(seed: int) -> None:
    assert fault_of(random_case(seed), smallest=seed % 4 == 0) in (None, "skipped")


def test_a_reason_is_said_with_how_far_it_reaches() -> None:
    reasons = bank().reasons(TENANT, target="yes")
    assert [each.features for each in reasons] == [("income", "home")]
    assert reasons.complete
    assert reasons.necessary == ("income", "home")
    assert reasons.levers == (("income",), ("home",))
    assert reasons.shares == {"income": 1.0, "home": 1.0, "age": 0.0}
    text = str(reasons)
    assert "1. income, home\n   as long as income is at most 7" in text
    assert "and home is one of rent, none" in text
    plain = str(bank().reasons(TENANT, target="yes", ranges=False))
    assert "1. income, home\n   as long as income is 60 and home is rent" in plain
    assert "There is no other reason: proved." in text


def test_the_smallest_reason_comes_first_where_asked_for() -> None:
    reasons = bank().reasons(POOR, target="yes", smallest=True)
    assert [each.features for each in reasons] == [("income",)]
    assert reasons[0].ranges is not None
    assert reasons[0].ranges["income"].low == 0
    assert set(reasons[0].witnesses) == {"income"}


def test_a_constant_model_has_the_one_empty_reason() -> None:
    explainer = fitted(
        DecisionTreeClassifier(max_depth=1), lambda rows: np.where(np.arange(len(rows)) < 5, "yes", "no")
    )
    reasons = explainer.reasons(POOR, certify=True)
    assert [each.features for each in reasons] == [()]
    assert reasons.complete
    assert reasons.levers == ()
    assert "whatever the features are" in str(reasons)
    assert reasons[0].certificate is not None
    assert mace.verify(reasons[0].certificate, explainer.model).valid


def test_a_rule_binds_the_alternatives_and_a_row_that_breaks_it_is_told() -> None:
    free = bank().reasons(TENANT, target="yes", constraints=[mace.fixed("income")])
    assert [each.features for each in free] == [("home",)]
    told = bank().reasons(TENANT, target="yes", constraints=["age >= 50"])
    assert "the row itself breaks a rule" in str(told)
    assert not free.note


def test_a_row_that_is_at_the_target_has_nothing_to_explain() -> None:
    reasons = bank().reasons({"age": 30, "income": 90, "home": "own"}, target="yes")
    assert len(reasons) == 0
    assert reasons.complete
    assert str(reasons).startswith("Nothing holds the row back")


def test_too_few_or_too_little_time_is_said() -> None:
    explainer = fitted(RandomForestClassifier(20, random_state=0), lambda rows: rows.income * rows.age > 3000)
    row = {"age": 30, "income": 20, "home": "own"}
    late = explainer.reasons(row, time_limit=1e-6)
    assert (len(late), late.complete, late.reason) == (0, False, "time limit reached")
    with pytest.raises(mace.InvalidOption, match="Ask for all reasons"):
        _ = late.shares
    few = bank().reasons(TENANT, target="yes", count=1)
    assert "only 1 were asked for" in str(few)


def test_reasons_as_data() -> None:
    reasons = bank().reasons(TENANT, target="yes", certify=True)
    data = json.loads(reasons.to_json())
    assert data["reasons"][0]["features"] == ["income", "home"]
    assert data["reasons"][0]["values"] == {"income": 60, "home": "rent"}
    assert data["reasons"][0]["ranges"]["income"]["low"] == 0
    assert mace.verify(data["reasons"][0]["certificate"], bank().model).valid
    assert repr(reasons) == "<Reasons: 1 (income+home), complete>"


def test_what_cannot_be_asked_is_refused() -> None:
    causes = mace.Causal({"income": "2 * age"})
    with pytest.raises(mace.InvalidOption, match="causes"):
        mace.Explainer(bank().model, SPACE, causes).reasons(POOR)
    with pytest.raises(mace.InvalidOption, match="count=0"):
        bank().reasons(POOR, count=0)
    with pytest.raises(mace.InvalidOption, match="noise"):
        bank().reasons(POOR, constraints=[mace.robust({"age": 1})])
    asked = mace.Explainer(
        mace.wrap(predict=lambda frame: np.where(frame.income > 5, "a", "b"), classes=["a", "b"]),
        SPACE,
        unread="search",
    )
    with pytest.raises(mace.InvalidOption, match="could not be read"):
        asked.reasons(POOR)

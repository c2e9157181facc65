"""Why: sets of features whose values force a decision, compared with going through every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_composites import random_composite
from random_constraints import random_constrained
from random_ensembles import random_ensemble
from random_problems import Case, random_case
from random_realism import random_realistic
from random_reasons import fault_of
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.answer import reason_search
from mace.answer.reason_search import reasons_of
from mace.answer.reasons import Reasons
from mace.constraints import as_constraint
from mace.solvers import pace

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


@pytest.mark.parametrize("seed", [1, 3, 4, 17])
def test_reasons_of_votes_and_calibrated_models_are_those_of_going_through_every_row(seed: int) -> None:
    case = random_composite(seed)
    assert case is not None
    assert fault_of(case, smallest=False) is None


@pytest.mark.parametrize("seed", [11, 12, 28, 30])
def test_reasons_of_boosters_and_rows_with_missing_values_are_those_of_going_through_every_row(seed: int) -> None:
    assert fault_of(random_ensemble(seed), smallest=True) is None


@pytest.mark.parametrize("seed", [3, 7, 24, 5001, 5006])
def test_reasons_under_nested_rules_are_those_of_going_through_every_row(seed: int) -> None:
    case = random_constrained(seed)
    assert case is not None
    rules = [as_constraint(text) for text in case.constraints]
    asked = Case(case.family, case.explainer.model, case.explainer.space, case.row, {"constraints": rules})
    assert fault_of(asked, smallest=True) is None


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_reasons_near_data_are_those_of_going_through_every_row(seed: int) -> None:
    case = random_realistic(seed)
    rules = [as_constraint(each) for each in case.options["constraints"]]
    asked = Case(case.family, case.explainer.model, case.explainer.space, case.row, {"constraints": rules})
    assert fault_of(asked, smallest=False) is None


def test_ranges_have_a_proof_of_their_own_that_bears_no_more() -> None:
    explainer = bank()
    reason = explainer.reasons(TENANT, target="yes", certify=True)[0]
    assert reason.ranges_certificate is not None
    assert mace.verify(reason.ranges_certificate, explainer.model).valid
    made = json.loads(reason.ranges_certificate.to_json())
    assert made["claim"]["ranges"]["home"] == ["rent", "none"]
    high = made["claim"]["ranges"]["income"]["high"]
    for changes, outcome in (
        ({"claim": {"income": {"low": 0, "high": high + 1}}}, "refuted"),
        ({"claim": {"home": ["rent", "none", "own"]}}, "refuted"),
        ({"claim": {"age": None}}, "refuted"),
        ({"claim": {"nothing": None}}, "refuted"),
        ({"row": {"income": high + 1}}, "refuted"),
        ({"statement": f"income within [0, {high + 1}]", "claim": {"income": {"low": 0, "high": high + 1}}}, "refuted"),
        ({"statement": "income within [0, 3]", "claim": {"income": {"low": 0, "high": 3}}}, "refuted"),
        ({"statement": f"income within [3, {high}]", "claim": {"income": {"low": 3, "high": high}}}, "valid"),
    ):
        forged = json.loads(json.dumps(made))
        forged["claim"]["ranges"] |= changes.get("claim", {})
        forged["statement"]["factual"] |= changes.get("row", {})
        if "statement" in changes:
            forged["statement"]["constraints"][0]["arguments"] = [changes["statement"]]
        assert mace.verify(forged, explainer.model).outcome == outcome, changes
    with pytest.raises(mace.InvalidCertificate, match=r"claim\.ranges"):
        mace.verify(made | {"claim": made["claim"] | {"ranges": {"income": {"low": 3}}}}, None)


def test_ranges_are_not_those_of_a_rule_that_is_wider() -> None:
    """Found by the campaign: a rule that is the wider range itself stood for it."""
    explainer = bank()
    rule = mace.one_of("home", ["rent", "none", "own"])
    reason = explainer.reasons(TENANT, target="yes", constraints=[rule], certify=True)[0]
    assert reason.ranges_certificate is not None
    made = json.loads(reason.ranges_certificate.to_json())
    assert made["claim"]["ranges"]["home"] == ["rent", "none"]
    assert mace.verify(made, explainer.model).valid
    made["claim"]["ranges"]["home"] = ["rent", "none", "own"]
    assert mace.verify(made, explainer.model).outcome == "refuted"


def test_rows_that_a_statement_leaves_out_make_no_reason() -> None:
    """Once all ways are named as earlier answers, or noise undoes every one, none is left; that holds no decision."""
    explainer = bank()
    asked: Any = {"target": "yes", "certify": True}
    given = explainer.explain(TENANT, count=5, constraints=[mace.fixed("age")], **asked)
    undone = explainer.explain(TENANT, constraints=[mace.fixed("income"), mace.robust({"income": 60})], **asked)
    for explanation, name, outcome in ((given, "age", "refuted"), (undone, "income", "unchecked")):
        assert explanation.certificate is not None
        made = json.loads(explanation.certificate.to_json())
        assert mace.verify(made, explainer.model).valid
        witness = TENANT | {name: 90}
        for claim in (
            {"reason": {}},
            {"reason": {name: witness}},
            {"ranges": {}},
            {"ranges": {name: None}},
            {"reasons": {"sets": [[name]], "rows": [witness]}},
        ):
            forged = made | {"claim": made["claim"] | claim}
            assert mace.verify(forged, explainer.model).outcome == outcome, claim


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


def test_reasons_and_menus_are_said_by_the_names_that_people_know() -> None:
    named = SPACE.describe(
        names={"income": "yearly income", "home": "where you live"},
        units={"income": "€"},
        outcomes={"yes": "approved", "no": "declined"},
        levels={"home": {"own": "your own home", "rent": "a rented home"}},
    )
    plain = bank()
    tree = DecisionTreeClassifier(random_state=0)
    rows = pd.DataFrame(
        [{"age": 30, "income": income, "home": home} for income in range(101) for home in ("own", "rent", "none")]
    )
    labels = np.where((rows.income >= 80) | ((rows.income >= 40) & (rows.home == "own")), "yes", "no")
    explainer = mace.Explainer(make_pipeline(mace.Encoder(named), tree).fit(rows, labels), named)
    reasons, menu = explainer.reasons(TENANT, "yes"), explainer.levers(TENANT, "yes")
    held = "yearly income is at most 79 € and where you live is one of"
    assert str(reasons).startswith(
        "Why declined, not approved:\n1. yearly income, where you live\n   as long as " + held
    )
    assert "a rented home" in str(reasons)
    assert "In every reason: yearly income, where you live." in str(reasons)
    assert str(menu).startswith("yearly income: distance ")
    for page in (reasons._repr_html_(), menu._repr_html_()):
        assert "yearly income" in page
        assert ">income" not in page
    assert "at most 79 €" in reasons._repr_html_()
    assert "60 € \u2192 80 €" in menu._repr_html_()
    # What programs read has the names of the data.
    assert "income is at most 79 and home" in reasons[0].as_long_as
    assert "yearly" not in reasons.to_json()
    assert Reasons.from_json(reasons.to_json()).decision == "no, not yes"
    assert str(plain.reasons(TENANT, "yes")).startswith("Why no, not yes:\n1. income, home\n")


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
    cut_short = explainer.reasons(row, count=1)
    assert "only 1 was asked for" in str(cut_short)


@pytest.mark.parametrize("certify", [False, True])
def test_half_of_the_time_is_left_for_certificates(certify: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    left = []

    def looked(driver: Any, *args: Any, **options: Any) -> Reasons:
        left.append(driver.limits.remaining())
        return reasons_of(driver, *args, **options)

    monkeypatch.setattr(reason_search, "reasons_of", looked)
    made = bank().reasons(TENANT, target="yes", time_limit=10_000, certify=certify)
    assert made.complete
    assert (left[0] > 9_000) is not certify
    assert left[0] > 4_000


def test_the_last_reason_is_known_to_be_the_last() -> None:
    """As many as were asked for, and what is known by then proves that there is no other."""
    few = bank().reasons(TENANT, target="yes", count=1, certify=True)
    assert few.complete
    assert few.certificate is not None
    stays = bank().reasons(TENANT, target="yes", constraints=[mace.fixed(*SPACE)], count=1)
    assert stays.complete


def test_a_model_of_a_single_class_has_the_one_empty_reason() -> None:
    explainer = fitted(DecisionTreeClassifier(), lambda rows: np.full(len(rows), "no"))
    for reasons in (explainer.reasons(POOR), *explainer.reasons_many([POOR])):
        assert [each.features for each in reasons] == [()]
        assert reasons.complete
        assert "Why no, not any other outcome" in str(reasons)
    assert "no" in explainer.reasons(POOR).letter()
    with pytest.raises(mace.InvalidRow):
        explainer.reasons({"age": 1})


def test_ranges_are_said_in_few_words() -> None:
    space = mace.FeatureSpace(
        {"width": mace.real(0.1, 2.5), "use": mace.categorical(["car", "home", "school", "trip", "other, new"])}
    )

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"width": rng.choice([0.65, 0.75], 400), "use": rng.choice(space["use"].levels, 400)})
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0))
    model.fit(rows, np.where((rows.width > 0.7) | (rows.use == "trip"), "yes", "no"))
    explainer = mace.Explainer(model, space)
    reasons = explainer.reasons({"width": 0.2, "use": "home"}, target="yes", certify=True)
    assert "as long as width is at most 0.7 and use is anything but trip" in str(reasons)
    assert mace.verify(reasons[0].ranges_certificate, model).valid
    assert "use: home (the same with anything but: trip)" in " ".join(reasons.letter().split())
    assert "(ebenso mit allem außer: trip)" in " ".join(reasons.letter(language="de").split())
    assert "(de même avec tout sauf : trip)" in " ".join(reasons.letter(language="fr").split())
    again = Reasons.from_json(reasons.to_json())
    assert "the same with: " in " ".join(again.letter().split())


@pytest.mark.parametrize("edge", [0.7, 1 / 3, 1.2345678, 0.30000000000000004])
def test_real_ends_are_plain_and_proved(edge: float) -> None:
    space = mace.FeatureSpace({"width": mace.real(0.1, 2.5), "height": mace.real(0.0, 1.0)})
    model = DecisionTreeClassifier(max_depth=1).fit([[edge - 0.01, 0], [edge + 0.01, 1]] * 2, [0, 1] * 2)
    model.tree_.threshold[0], model.tree_.feature[0] = edge, 0
    reasons = mace.Explainer(model, space).reasons({"width": 0.2, "height": 0.5}, certify=True)
    assert reasons[0].ranges is not None
    high = reasons[0].ranges["width"].high
    assert isinstance(high, float)
    assert edge - 1e-5 < high <= edge + 1e-7
    assert len(repr(high)) <= 9
    assert mace.verify(reasons[0].ranges_certificate, model).valid


@pytest.mark.parametrize(
    ("feature", "own", "ends"),
    [
        (mace.real(0, 2, step=0.1), 0.4, (0.0, 1.2)),
        (mace.real(0, 2, step=0.1), 1.7, (1.3, 2.0)),
        (mace.integer(0, 30, step=7), 7, (0, 14)),
        (mace.integer(0, 30, step=7), 3, (0, 14)),
        (mace.integer(0, 30, step=7), 30, (21, 30)),
    ],
)
def test_ends_on_a_grid_are_values_of_it(feature: Any, own: float, ends: tuple[float, float]) -> None:
    edge = 1.23 if isinstance(own, float) else 19
    space = mace.FeatureSpace({"width": feature, "height": mace.real(0.0, 1.0)})
    model = DecisionTreeClassifier(max_depth=1).fit([[edge - 0.01, 0], [edge + 0.01, 1]] * 2, [0, 1] * 2)
    model.tree_.threshold[0], model.tree_.feature[0] = edge, 0
    reasons = mace.Explainer(model, space).reasons({"width": own, "height": 0.5}, certify=True)
    assert reasons[0].ranges is not None
    found = reasons[0].ranges["width"]
    assert (found.low, found.high) == ends
    assert mace.verify(reasons[0].ranges_certificate, model).valid


def test_the_level_of_missing_values_may_be_in_a_range_that_is_certified() -> None:
    space = mace.FeatureSpace({"home": mace.categorical(["own", "rent", None]), "income": mace.integer(0, 9)})
    rows = pd.DataFrame({"home": ["own", "rent", None] * 40, "income": np.arange(120) % 10})
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0))
    model.fit(rows, (rows.home == "own") & (rows.income > 4))
    reasons = mace.Explainer(model, space).reasons({"home": "rent", "income": 8}, True, certify=True)
    assert [each.features for each in reasons] == [("home",)]
    assert mace.verify(reasons[0].ranges_certificate, model).valid
    forged = json.loads(reasons[0].ranges_certificate.to_json())
    assert forged["claim"]["ranges"]["home"] == ["rent", None]
    forged["claim"]["ranges"]["home"] = ["rent", "own", None]
    assert mace.verify(forged, model).outcome == "refuted"
    assert "anything" not in str(reasons)
    assert Reasons.from_json(reasons.to_json()).to_json() == reasons.to_json()


def test_reasons_as_data() -> None:
    reasons = bank().reasons(TENANT, target="yes", certify=True)
    data = json.loads(reasons.to_json())
    assert data["reasons"][0]["features"] == ["income", "home"]
    assert data["reasons"][0]["values"] == {"income": 60, "home": "rent"}
    assert data["reasons"][0]["ranges"]["income"]["low"] == 0
    assert mace.verify(data["reasons"][0]["certificate"], bank().model).valid
    assert repr(reasons) == "<Reasons: 1 (income+home), complete>"


def test_levers_have_rows_and_are_known_before_the_end_where_reasons_prove_them() -> None:
    reasons = bank().reasons(TENANT, target="yes")
    assert [way.prediction for way in reasons.ways] == ["yes", "yes"]
    assert [[change.feature for change in way.changes] for way in reasons.ways] == [["income"], ["home"]]
    assert reasons.lever_shares == {"income": 0.5, "home": 0.5, "age": 0.0}
    explainer = fitted(RandomForestClassifier(20, random_state=0), lambda rows: rows.income * rows.age > 3000)
    row = {"age": 30, "income": 20, "home": "own"}
    cut_short = explainer.reasons(row, count=1, certify=True)
    assert not cut_short.complete
    assert set(cut_short.levers) <= set(explainer.reasons(row).levers)
    assert cut_short.certificate is None


def test_what_the_rules_leave_nothing_to_decide_about_is_said() -> None:
    told = bank().reasons(TENANT, target="yes", constraints=["age >= 50"])
    assert {each.features: each.note for each in told} == {
        ("age",): "no row that the rules allow keeps these values",
        ("income", "home"): "",
    }
    stays = bank().reasons(TENANT, target="yes", constraints=[mace.fixed(*SPACE)])
    assert [(each.features, each.note) for each in stays] == [
        ((), "no other row that the rules allow keeps these values")
    ]
    assert "no other row" in str(stays)


def test_certificates_of_others_are_not_believed() -> None:
    explainer = bank()
    reasons = explainer.reasons(TENANT, target="yes", certify=True)
    assert reasons.certificate is not None
    assert mace.verify(reasons.certificate, explainer.model).valid
    told = json.loads(reasons.to_json())
    for path, made in (
        (["certificate", "claim", "reasons", "sets"], [["income"], ["home"]]),
        (["certificate", "claim", "reasons", "sets"], [["income", "home", "age"]]),
        (["certificate", "claim", "reasons", "sets"], [["nothing"]]),
        (["certificate", "claim", "reasons", "rows"], []),
        (["certificate", "statement", "factual", "home"], "own"),
    ):
        forged = json.loads(json.dumps(told))
        place = forged
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = made
        assert mace.verify(forged["certificate"], explainer.model).outcome == "refuted", path
    there = json.loads(json.dumps(told["reasons"][0]["certificate"]))
    there["statement"]["factual"] |= {"income": 90, "home": "own"}
    assert mace.verify(there, explainer.model).outcome == "refuted"
    with pytest.raises(mace.InvalidCertificate, match=r"claim\.reasons"):
        mace.verify(told["certificate"] | {"claim": told["certificate"]["claim"] | {"reasons": {"sets": 3}}}, None)


def test_reasons_are_read_back_as_they_were_written() -> None:
    reasons = bank().reasons(TENANT, target="yes", certify=True)
    again = Reasons.from_json(reasons.to_json())
    assert str(again) == str(reasons)
    assert again.to_dict() == reasons.to_dict()
    assert (again.shares, again.levers) == (reasons.shares, reasons.levers)
    for text, said in (("[", "not JSON"), ("{}", "without 'version'"), ('{"version": 9}', "version 9")):
        with pytest.raises(mace.InvalidOption, match=said):
            Reasons.from_json(text)


def test_a_letter_says_what_decided_in_every_language() -> None:
    reasons = bank().reasons(TENANT, target="yes")
    english = reasons.letter(names={"income": "monthly income"}, outcomes={"no": "declined"}, name="Ms Miller")
    assert "the result is:\ndeclined" in english
    assert "- monthly income: 60 (the same up to 79)" in english
    assert "- home: rent (the same with: rent, none)" in english
    assert "no other items of which this holds" in english
    assert "(ebenso bis 79)" in reasons.letter(language="de")
    assert "jusqu’à 79" in reasons.letter(language="fr")
    assert "<li>income: 60 (the same up to 79)</li>" in reasons.letter(html=True)
    assert reasons.letter("{% for each in held %}{{ each.name }};{% endfor %}").strip() == "income;home;"
    with pytest.raises(mace.InvalidOption, match="number=2"):
        reasons.letter(number=2)
    there = bank().reasons({"age": 30, "income": 90, "home": "own"}, target="yes")
    assert "no change is needed" in there.letter()
    described = mace.Explainer(bank().model, SPACE.protect("home"))
    with pytest.raises(mace.InvalidOption, match="which the space protects"):
        described.reasons(TENANT, target="yes").letter()


def test_reasons_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    reasons = bank().reasons(TENANT, target="yes")
    display = reasons.plot(1)
    assert [track.name for track in display.reasons[0].tracks] == ["income", "home"]
    assert display.reasons[0].tracks[0].wanted == (0.0, 0.79)
    assert display.reasons[0].levels == ((), ("rent", "none"))
    display.save(tmp_path / "why.svg")
    assert "the decision is the same" in (tmp_path / "why.svg").read_text()
    again = Reasons.from_json(reasons.to_json())
    with pytest.raises(mace.InvalidOption, match="give space="):
        again.plot()
    assert again.plot(space=SPACE).reasons == reasons.plot().reasons


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


def test_reasons_of_trees_do_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{number}" for number in range(14)]
    frame = pd.DataFrame(rng.integers(0, 40, (600, 14)), columns=names)
    forest = RandomForestClassifier(20, max_depth=8, random_state=0).fit(frame, frame.sum(axis=1) > 280)
    explainer = mace.Explainer(forest, mace.FeatureSpace.from_frame(frame))
    row = frame[forest.predict(frame) == 0].iloc[0]
    made = []
    for pause in (1e-9, 10.0):
        monkeypatch.setattr(pace, "PAUSE", pause)
        found = explainer.reasons(row, count=4, ranges=False)
        made.append(([each.features for each in found], [way.values for way in found.ways]))
    assert made[0] == made[1]

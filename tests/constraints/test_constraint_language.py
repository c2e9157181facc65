"""The constraint language: text and objects say the same, mean what they say, and bind every lane."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators import small
from sklearn.pipeline import make_pipeline

import mace
from mace.answer.conflicts import Undecided, smallest_conflict
from mace.constraints import as_constraints
from mace.constraints.files import load_constraints
from mace.constraints.suggest import suggest_constraints
from mace.distances import point_values

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 24),
        "income": mace.integer(0, 5),
        "debt": mace.integer(0, 5),
        "education": mace.ordinal(["none", "school", "degree"]),
        "housing": mace.categorical(["rent", "own", "free"]),
        "guarantor": mace.categorical(["no", "yes"]),
    }
)
ROW = {"age": 20, "income": 2, "debt": 3, "education": "school", "housing": "rent", "guarantor": "no"}

LEVEL = {"none": 0, "school": 1, "degree": 2}


def changed(new: Any, old: Any) -> int:
    return sum(new[name] != old[name] for name in SPACE)


Meaning = Callable[[dict[str, Any], dict[str, Any]], bool]

MEANINGS: list[tuple[Any, str, Meaning]] = [
    (
        mace.fixed("age", "housing"),
        "age, housing stay",
        lambda n, o: n["age"] == o["age"] and n["housing"] == o["housing"],
    ),
    (mace.fixed("age"), "age stays", lambda n, o: n["age"] == o["age"]),
    (
        mace.only("age", "debt"),
        "only age, debt change",
        lambda n, o: all(n[name] == o[name] for name in SPACE if name not in ("age", "debt")),
    ),
    (mace.only("debt"), "only debt changes", lambda n, o: all(n[name] == o[name] for name in SPACE if name != "debt")),
    (
        ~mace.only("debt") & mace.fixed("age"),
        "not only debt changes and age stays",
        lambda n, o: n["age"] == o["age"] and any(n[name] != o[name] for name in SPACE if name != "debt"),
    ),
    (mace.increases("education"), "education increases", lambda n, o: LEVEL[n["education"]] >= LEVEL[o["education"]]),
    (mace.decreases("debt", "age"), "debt, age decrease", lambda n, o: n["debt"] <= o["debt"] and n["age"] <= o["age"]),
    (mace.within("age", 19, 22), "age within [19, 22]", lambda n, o: 19 <= n["age"] <= 22),
    (
        mace.within("education", "none", "school"),
        "education within ['none', 'school']",
        lambda n, o: n["education"] != "degree",
    ),
    (
        mace.one_of("housing", ["own", "free"]),
        "housing in ['own', 'free']",
        lambda n, o: n["housing"] in ("own", "free"),
    ),
    (~mace.one_of("housing", ["own"]), "not housing in ['own']", lambda n, o: n["housing"] != "own"),
    (mace.at_most_change("age", 2), "age changes by at most 2", lambda n, o: abs(n["age"] - o["age"]) <= 2),
    (
        mace.at_most_change("debt", "50%"),
        "debt changes by at most 50%",
        lambda n, o: abs(n["debt"] - o["debt"]) <= o["debt"] / 2,
    ),
    (
        mace.at_most_change("debt", 0.5, relative=True),
        "debt changes by at most 50%",
        lambda n, o: 2 * abs(n["debt"] - o["debt"]) <= o["debt"],
    ),
    (mace.steps("age", 2), "age changes in steps of 2", lambda n, o: (n["age"] - o["age"]) % 2 == 0),
    (
        mace.transitions("housing", {"rent": ["own"], "free": ["own", "rent"]}),
        "housing moves 'rent' to 'own'; 'free' to 'own', 'rent'",
        lambda n, o: (
            n["housing"] == o["housing"]
            or n["housing"] in {"rent": ["own"], "free": ["own", "rent"], "own": []}[o["housing"]]
        ),
    ),
    (mace.linear("debt <= income"), "debt <= income", lambda n, o: n["debt"] <= n["income"]),
    (
        mace.linear({"debt": 2, "income": -1}, "<", 3),
        "2 * debt + -1 * income < 3",
        lambda n, o: 2 * n["debt"] - n["income"] < 3,
    ),
    (mace.changes_at_most(2), "at most 2 features change", lambda n, o: changed(n, o) <= 2),
    (
        mace.changes_at_most(1, of=["age", "debt", "housing"]),
        "at most 1 of age, debt, housing change",
        lambda n, o: sum(n[name] != o[name] for name in ("age", "debt", "housing")) <= 1,
    ),
    (
        mace.changes_at_most(2.5, weights={"age": 2, "debt": 1.5, "income": 1}),
        "at most 2.5 of age * 2, debt * 1.5, income change",
        lambda n, o: 2 * (n["age"] != o["age"]) + 1.5 * (n["debt"] != o["debt"]) + (n["income"] != o["income"]) <= 2.5,
    ),
    (
        mace.implies(mace.changes("education"), "age >= old.age + 2"),
        "if education changes then age >= old.age + 2",
        lambda n, o: n["education"] == o["education"] or n["age"] >= o["age"] + 2,
    ),
    (
        mace.implies("housing == 'own'", "income >= 3 and debt <= 2"),
        "if housing == 'own' then income >= 3 and debt <= 2",
        lambda n, o: n["housing"] != "own" or (n["income"] >= 3 and n["debt"] <= 2),
    ),
    (
        mace.together("income", "debt"),
        "income, debt change together",
        lambda n, o: (n["income"] != o["income"]) == (n["debt"] != o["debt"]),
    ),
    (mace.changes("age", "debt"), "age, debt change", lambda n, o: n["age"] != o["age"] and n["debt"] != o["debt"]),
    (
        mace.either("debt <= 0.4 * income", mace.one_of("guarantor", ["yes"])),
        "debt <= 0.4 * income or guarantor in ['yes']",
        lambda n, o: n["debt"] <= 0.4 * n["income"] or n["guarantor"] == "yes",
    ),
    (
        mace.fixed("age") & (mace.increases("income") | mace.decreases("debt")),
        "age stays and (income increases or debt decreases)",
        lambda n, o: n["age"] == o["age"] and (n["income"] >= o["income"] or n["debt"] <= o["debt"]),
    ),
    (
        ~(mace.changes("age") | mace.changes("debt")),
        "not (age changes or debt changes)",
        lambda n, o: n["age"] == o["age"] and n["debt"] == o["debt"],
    ),
    (
        mace.rule("if housing == 'rent' then debt <= 3 else income >= 1"),
        "(if housing == 'rent' then debt <= 3) and (if not housing == 'rent' then income >= 1)",
        lambda n, o: n["debt"] <= 3 if n["housing"] == "rent" else n["income"] >= 1,
    ),
    (mace.rule("18 < age <= old.age + 1"), "18 < age <= old.age + 1", lambda n, o: 18 < n["age"] <= o["age"] + 1),
    (
        mace.rule("(debt + 1) * 2 <= income + old.income"),
        "(debt + 1) * 2 <= income + old.income",
        lambda n, o: (n["debt"] + 1) * 2 <= n["income"] + o["income"],
    ),
    (
        mace.rule("abs(income - old.income) <= max(debt, 1)"),
        "abs(income - old.income) <= max(debt, 1)",
        lambda n, o: abs(n["income"] - o["income"]) <= max(n["debt"], 1),
    ),
    (
        mace.rule("-debt / 2 >= -(income - 1)"),
        "-debt / 2 >= -(income - 1)",
        lambda n, o: -n["debt"] / 2 >= -(n["income"] - 1),
    ),
    (
        mace.rule("education >= old.education"),
        "education >= old.education",
        lambda n, o: LEVEL[n["education"]] >= LEVEL[o["education"]],
    ),
    (mace.rule("housing != old.housing"), "housing != old.housing", lambda n, o: n["housing"] != o["housing"]),
    (mace.rule("income is missing or age = 20"), "income is missing or age == 20", lambda n, o: n["age"] == 20),
]


def rows(count: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            name: feature.levels[int(rng.integers(len(feature.levels)))]
            if hasattr(feature, "levels")
            else int(rng.integers(feature.low, feature.high + 1))
            for name, feature in SPACE.items()
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize(("constraint", "text", "meaning"), MEANINGS, ids=[text for _, text, _ in MEANINGS])
def test_every_constraint_means_what_it_says(constraint: Any, text: str, meaning: Meaning) -> None:
    held = 0
    for old in rows(12, 1):
        condition = constraint.bind(SPACE, SPACE.point(old))
        for new in [*rows(60, 2), old]:
            expected = meaning(new, old)
            held += expected
            assert condition.holds(point_values(SPACE, SPACE.point(new))) == expected, (new, old)
    assert 0 < held < 12 * 61, "the rows do not tell"


@pytest.mark.parametrize(("constraint", "text"), [(c, t) for c, t, _ in MEANINGS], ids=[t for _, t, _ in MEANINGS])
def test_text_and_object_are_one(constraint: Any, text: str) -> None:
    assert constraint.text == text
    assert mace.rule(text) == constraint
    made = constraint.to_dict()
    from mace.constraints import CONSTRAINTS

    assert CONSTRAINTS.load(made["kind"])(*made["arguments"]) == constraint


def test_names_and_levels_of_any_shape_survive_the_text() -> None:
    space = mace.FeatureSpace(
        {
            "credit amount": mace.real(0, 9),
            "if": mace.integer(0, 3),
            "a`b": mace.categorical(["it's", 'say "no"', "back\\slash"]),
        }
    )
    for constraint in (
        mace.fixed("credit amount", "if"),
        mace.one_of("a`b", ["it's", 'say "no"', "back\\slash"]),
        mace.linear({"credit amount": 0.1, "if": -1e-3}, ">=", -2.5),
        mace.transitions("a`b", {"it's": ["back\\slash"]}),
    ):
        assert mace.rule(constraint.text) == constraint
        constraint.bind(space, (1.0, 1, 0))


@pytest.mark.parametrize(
    ("text", "complaint", "at"),
    [
        ("", "empty", 0),
        ("age >=", "expected a feature", 6),
        ("age >= 3 4", "expected the end", 9),
        ("age", "expected a comparison or a verb", 3),
        ("if age changes", "expected 'then'", 14),
        ("age in 'x'", "expected '['", 7),
        ("age within [1 2]", "expected ','", 14),
        ("age, debt", "expected stay, change", 9),
        ("at most x features change", "expected a number", 8),
        ("age changes by at least 3", "expected 'most'", 18),
        ("(age >= 3", "expected ')'", 9),
        ("age >= 3 & debt <= 2", "'&' is not part of a constraint", 9),
        ("age >= 1e999", "too large", 7),
        ("not not", "expected a feature", 7),
        ("age stays or", "expected a feature", 12),
        ("age between 1 or 5", "expected 'and'", 14),
        ("age between 1", "expected 'and'", 13),
        ("age between old.age and 5", "expected a number, a date or a 'level'", 12),
        ("only age stays", "expected 'change' or 'changes'", 9),
        ("only age, 3 change", "expected a feature", 10),
        ("credit amount >= 3", "`monthly income`", 7),
        ("age <= credit amount", "`monthly income`", 14),
        ("monthly.income stays", "`monthly income`", 7),
        ("उम्र stays", "'्' is not part of a constraint (a name with spaces or signs is written between back quotes", 2),
        ("in >= 0.5", "expected a feature (one that is called in is written `in`)", 0),
    ],
)
def test_an_error_points_at_the_place(text: str, complaint: str, at: int) -> None:
    with pytest.raises(mace.InvalidConstraint) as caught:
        mace.rule(text)
    first, line, caret = str(caught.value).splitlines()
    assert complaint in first
    assert line == f"  {text}"
    assert caret == f"  {' ' * at}^"


def test_deep_and_long_texts_are_refused_not_crashed_on() -> None:
    for text in (
        "(" * 5000 + "age" + ")" * 5000 + " > 3",
        "not " * 5000 + "age stays",
        "-" * 5000 + "1 < age",
        "age > 1 or " * 20_000,
    ):
        with pytest.raises(mace.InvalidConstraint):
            mace.rule(text)


@pytest.mark.parametrize(
    ("constraint", "complaint"),
    [
        ("ages >= 3", "Did you mean 'age'"),
        ("housing >= 'own'", "has no order"),
        ("housing == 'castle'", "is not a level of 'housing'"),
        ("housing + 1 == 2", "levels cannot be calculated with"),
        ("housing == education", "have different levels"),
        ("housing == 1", "is not a level"),
        ("age == 'old'", "is not a number"),
        ("debt / income <= 1", "divides by income"),
        ("housing increases", "has no order"),
        ("housing changes in steps of 2", "has no order"),
        ("income changes in steps of 0.5", "give a whole step"),
        ("housing moves 'rent' to 'castle'", "is not a level"),
        (lambda new, old: new.debt / new.income <= 1, "divides"),
        (lambda new, old: "text", "returns text"),
        (lambda new, old: repr("x"), "cannot read the rule"),
        (lambda new: new.debt, "cannot read the rule"),
        (3, "is not a constraint"),
    ],
)
def test_what_does_not_fit_the_space_is_refused(constraint: Any, complaint: str) -> None:
    with pytest.raises(mace.InvalidConstraint, match=complaint):
        function_model().explain(ROW, constraints=[constraint])


def test_arguments_of_the_wrong_kind_are_refused() -> None:
    for call in (
        lambda: mace.at_most_change("age", "much"),
        lambda: mace.at_most_change("age", -1),
        lambda: mace.steps("age", 0),
        lambda: mace.transitions("housing", {}),
        lambda: mace.transitions("housing", {"rent": "own"}),
        lambda: mace.linear("debt * income <= 3"),
        lambda: mace.linear("age stays"),
        lambda: mace.linear({"debt": "x"}, "<=", 3),
        lambda: mace.linear({"debt": 1}, "~", 3),
        lambda: mace.linear({}, "<=", 3),
        lambda: mace.changes_at_most(-1),
        lambda: mace.changes_at_most(1, of="age"),
        lambda: mace.changes_at_most(1, of=[]),
        lambda: mace.changes_at_most(1, of=["age"], weights={"age": 1}),
        lambda: mace.together("age"),
        lambda: mace.either(),
        lambda: mace.changes(),
        lambda: mace.rule(3),
        lambda: mace.implies("age stays", 3),
    ):
        with pytest.raises(mace.InvalidConstraint):
            call()


# ---- rules as functions


def test_a_function_is_a_rule() -> None:
    rule = mace.rule(lambda new, old: new.debt <= 0.4 * new.income or new.guarantor == "yes")
    condition = rule.bind(SPACE, SPACE.point(ROW))
    for row in rows(100, 3):
        expected = row["debt"] <= 0.4 * row["income"] or row["guarantor"] == "yes"
        assert condition.holds(point_values(SPACE, SPACE.point(row))) == expected


def affordable(new: Any, old: Any) -> bool:
    limit = old.debt + 1
    if new.housing == "rent":
        limit = 2
    return new.debt <= limit


def test_a_def_with_several_statements_is_a_rule() -> None:
    condition = mace.rule(affordable).bind(SPACE, SPACE.point(ROW))
    for row in rows(100, 4):
        expected = row["debt"] <= (2 if row["housing"] == "rent" else ROW["debt"] + 1)
        assert condition.holds(point_values(SPACE, SPACE.point(row))) == expected
    with pytest.raises(mace.InvalidConstraint, match="single expression"):
        (~mace.rule(affordable)).bind(SPACE, SPACE.point(ROW))


# ---- missing values


def test_a_comparison_with_a_missing_value_does_not_hold() -> None:
    space = mace.FeatureSpace({"a": mace.integer(0, 5, missing=True), "b": mace.integer(0, 5)})
    for text, row, new, expected in [
        ("a <= b", (1, 2), (None, 2), False),
        ("not a <= b", (1, 2), (None, 2), True),
        ("a is missing", (1, 2), (None, 2), True),
        ("a is not missing", (1, 2), (3, 2), True),
        ("a changes", (None, 2), (3, 2), True),
        ("a changes", (None, 2), (None, 5), False),
        ("a >= old.a", (None, 2), (3, 2), False),
        ("a changes by at most 1", (None, 2), (None, 3), True),
        ("a changes by at most 1", (None, 2), (3, 3), False),
        ("a changes by at most 1", (2, 2), (None, 3), False),
        ("at most 0 of a change", (None, 2), (None, 3), True),
        ("a, b change together", (None, 2), (1, 3), True),
    ]:
        condition = mace.rule(text).bind(space, row)
        assert condition.holds(point_values(space, new)) == expected, text


def test_the_level_of_missing_values_has_a_word() -> None:
    space = mace.FeatureSpace({"home": mace.categorical(["own", "rent", None])})
    for constraint, text, allowed in [
        (mace.one_of("home", ["own", None]), "home in ['own', missing]", [True, False, True]),
        (mace.one_of("home", [float("nan")]), "home in [missing]", [False, False, True]),
        (~mace.one_of("home", ["own", np.nan]), "not home in ['own', missing]", [False, True, False]),
        (mace.transitions("home", {np.nan: ["own"]}), "home moves missing to 'own'", [True, False, True]),
        (
            mace.transitions("home", {None: ["rent", None]}),
            "home moves missing to 'rent', missing",
            [False, True, True],
        ),
    ]:
        assert constraint.text == text
        assert mace.rule(text) == constraint
        condition = mace.rule(text).bind(space, (2,))
        assert [condition.holds(point_values(space, (level,))) for level in range(3)] == allowed, text
    quoted = mace.one_of("home", ["missing"])
    assert quoted.text == "home in ['missing']"
    with pytest.raises(mace.InvalidConstraint, match="expected a number, a date or a 'level'"):
        mace.rule("home within [missing, 'own']")


# ---- lanes


def scorecard(age: int, income: int, debt: int, education: str, housing: str, guarantor: str) -> int:
    score = 2 * income - debt + 0.5 * (age - 18)
    if education == "degree":
        score = score + 2
    if housing == "own":
        score = score + 1.5
    if guarantor == "yes":
        score = score + 1
    return 1 if score >= 7 else 0


def function_model() -> mace.Explainer:
    return mace.Explainer(scorecard, SPACE)


def fitted(estimator: Any) -> mace.Explainer:
    frame = pd.DataFrame(rows(400, 7))
    labels = [scorecard(**row) for row in frame.to_dict("records")]
    return mace.Explainer(make_pipeline(mace.Encoder(SPACE), estimator).fit(frame, labels), SPACE)


MODELS: dict[str, Callable[[], mace.Explainer]] = {
    "function": function_model,
    "forest": lambda: fitted(small("forest", max_depth=5)),
    "linear": lambda: fitted(small("linear", max_iter=2000)),
    "network": lambda: fitted(small("network", hidden_layer_sizes=(5,), solver="adam", max_iter=400)),
}


@pytest.fixture(scope="module", params=MODELS)
def explainer(request: pytest.FixtureRequest) -> mace.Explainer:
    with np.errstate(all="ignore"), pytest.warns() if request.param == "network" else nothing():
        return MODELS[request.param]()


def nothing() -> Any:
    import contextlib

    return contextlib.nullcontext()


@pytest.mark.parametrize(("constraint", "meaning"), [(c, m) for c, _, m in MEANINGS], ids=[t for _, t, _ in MEANINGS])
def test_every_constraint_in_every_lane_equals_brute_force(
    explainer: mace.Explainer, constraint: Any, meaning: Meaning
) -> None:
    old = next(row for row in rows(200, 11) if explainer.predict(row) == 0)
    truth = explainer.explain(old, target=1, constraints=constraint, solver="enumerate")
    answer = explainer.explain(old, target=1, constraints=constraint)
    assert answer.status == truth.status
    if truth:
        assert answer[0].distance == pytest.approx(truth[0].distance, abs=1e-12)
        assert meaning(answer[0].values, old)
        assert explainer.predict(answer[0].values) == 1


@pytest.mark.parametrize("seed", range(12))
def test_several_at_once_equal_brute_force(explainer: mace.Explainer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = [MEANINGS[int(k)] for k in rng.choice(len(MEANINGS), 3, replace=False)]
    old = [row for row in rows(300, 12) if explainer.predict(row) == 0][seed]
    distance = ["l1", "l0", "linf"][seed % 3]
    constraints = [constraint for constraint, _, _ in chosen]
    truth = explainer.explain(old, target=1, constraints=constraints, distance=distance, solver="enumerate")
    answer = explainer.explain(old, target=1, constraints=constraints, distance=distance)
    assert answer.status == truth.status
    if truth:
        assert answer[0].distance == pytest.approx(truth[0].distance, abs=1e-12)
        assert all(meaning(answer[0].values, old) for _, _, meaning in chosen)


# ---- conflicts


def test_a_smallest_conflict_is_named_in_the_users_words(explainer: mace.Explainer) -> None:
    old = next(row for row in rows(200, 11) if explainer.predict(row) == 0)
    everything = [mace.fixed(name) for name in SPACE]
    answer = explainer.explain(old, target=1, constraints=["age increases", *everything, "debt <= 5"])
    assert answer.status == "infeasible"
    assert answer.reason.startswith("no counterfactual fulfils")
    assert "debt <= 5" not in answer.reason
    assert "increases" not in answer.reason
    named = [each for each in everything if str(each) in answer.reason]
    assert explainer.explain(old, target=1, constraints=named).status == "infeasible"
    for left_out in named:
        fewer = [each for each in named if each is not left_out]
        assert explainer.explain(old, target=1, constraints=fewer).status == "optimal"
    alone = explainer.explain(old, target=1, constraints=["income stays", "debt > 5", "age stays"])
    assert alone.reason == "no counterfactual fulfils rule('debt > 5')"
    assert alone.reason[1:] in str(alone)


def test_where_the_target_cannot_be_reached_at_all_no_constraint_is_blamed() -> None:
    def never(a: int) -> int:
        return 1 if a > 100 else 0

    space = mace.FeatureSpace({"a": mace.integer(0, 5)})
    answer = mace.Explainer(never, space).explain({"a": 1}, target=1, constraints=["a increases"])
    assert answer.reason == "no point of the space reaches the target, whatever the constraints"


@pytest.mark.parametrize("seed", range(20))
def test_the_conflict_of_random_families_is_smallest(seed: int) -> None:
    """Parts conflict where they hold one of some random sets."""
    rng = np.random.default_rng(seed)
    hidden = [frozenset(rng.choice(7, int(rng.integers(1, 5)), replace=False).tolist()) for _ in range(3)]
    found, is_smallest = smallest_conflict(range(7), lambda chosen: any(each <= set(chosen) for each in hidden))
    assert is_smallest
    assert len(found) == min(map(len, hidden))
    assert any(each <= set(found) for each in hidden)


def test_a_conflict_that_takes_too_long_is_said_to_be_perhaps_too_large() -> None:
    asked = itertools.count()

    def slow(chosen: Any) -> bool:
        if next(asked) == 3:
            raise Undecided
        return {1, 2} <= set(chosen)

    found, is_smallest = smallest_conflict(range(5), slow)
    assert not is_smallest
    assert {1, 2} <= set(found)


# ---- files


def test_a_file_of_constraints(tmp_path: Any) -> None:
    path = tmp_path / "constraints.toml"
    path.write_text(
        'constraints = ["age stays", "if education changes then age >= old.age + 2"]\n'
        '[[constraint]]\nname = "debt ratio"\nrule = "debt <= 0.4 * income"\n'
    )
    made = load_constraints(path, SPACE)
    assert [constraint.text for constraint in made] == [
        "age stays",
        "if education changes then age >= old.age + 2",
        "debt <= 0.4 * income",
    ]
    for content, complaint in [
        ("constraints = [", "is not TOML"),
        ("constraints = 3", "not a list"),
        ("other = 3", "unknown key 'other'"),
        ("constraints = [3]", "is not a text"),
        ('constraints = ["ages stay"]', "constraint 1: .*Did you mean"),
        ('[[constraint]]\nname = "x"', "Write constraints"),
        ('[[constraint]]\nname = "x"\nrule = "age >"', "'x': expected a feature"),
    ]:
        path.write_text(content)
        with pytest.raises(mace.InvalidConstraint, match=complaint):
            load_constraints(path, SPACE)
    with pytest.raises(mace.InvalidConstraint, match="cannot be read"):
        load_constraints(tmp_path / "none.toml")


# ---- suggestions


def test_suggestions_are_what_holds_in_the_data() -> None:
    rng = np.random.default_rng(0)
    education = rng.choice(["none", "school", "degree"], 500)
    debt = rng.integers(0, 4, 500)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 25, 500),
            "income": np.minimum(debt + rng.integers(0, 3, 500), 5),
            "debt": debt,
            "education": education,
            "housing": np.where(education == "none", "rent", rng.choice(["own", "free", "rent"], 500)),
            "guarantor": np.where(education == "degree", "yes", "no"),
        }
    )
    found = {each.constraint.text: each for each in suggest_constraints(frame, SPACE)}  # type: ignore[attr-defined]
    assert found["debt <= income"].kind == "ordering"
    assert found["debt <= income"].rows == 500
    assert found["if education == 'none' then housing == 'rent'"].kind == "implication"
    assert "income <= debt" not in found
    dependency = next(each for each in found.values() if each.kind == "dependency")
    assert "if education == 'degree' then guarantor == 'yes'" in dependency.constraint.text  # type: ignore[attr-defined]
    for each, row in itertools.product(found.values(), frame.to_dict("records")[:50]):
        if each.kind != "monotone":
            condition = each.constraint.bind(SPACE, SPACE.point(row))
            assert condition.holds(point_values(SPACE, SPACE.point(row)))


def test_pairs_that_move_together_are_suggested() -> None:
    frame = pd.DataFrame({"age": [18 + k % 7 for k in range(200)], "income": [min(k % 7, 5) for k in range(200)]})
    space = mace.FeatureSpace({"age": SPACE["age"], "income": SPACE["income"]})
    texts = [each.constraint.text for each in suggest_constraints(frame, space)]  # type: ignore[attr-defined]
    assert "if age > old.age then income >= old.income" in texts
    with pytest.raises(mace.InvalidOption):
        suggest_constraints(frame, space, support=0.2)


def test_between_says_what_within_says() -> None:
    assert mace.rule("age between 18 and 22") == mace.within("age", 18, 22)
    assert mace.rule("age between -1.5 and 22 and debt stays") == mace.within("age", -1.5, 22) & mace.fixed("debt")
    assert mace.rule("not education between 'none' and 'school'") == ~mace.within("education", "none", "school")


def test_only_and_between_may_be_names_of_features() -> None:
    space = mace.FeatureSpace({name: mace.integer(0, 9) for name in ("only", "between", "age")})
    for text in (
        "only stays",
        "only >= 3",
        "only, age change",
        "between increases",
        "only in [1, 2]",
        "only <= between",
    ):
        mace.rule(text).bind(space, (1, 1, 1))
    assert mace.rule("only only, age change") == mace.only("only", "age")
    assert mace.rule("only between changes") == mace.only("between")
    assert mace.rule("only between 1 and 5") == mace.within("only", 1, 5)
    assert mace.rule("between between 1 and 5") == mace.within("between", 1, 5)
    for constraint in (mace.only("only"), mace.only("between", "only"), mace.fixed("only", "between")):
        assert mace.rule(constraint.text) == constraint


def test_a_name_that_was_cut_at_a_sign_is_shown_between_back_quotes() -> None:
    space = mace.FeatureSpace({"credit-limit": mace.integer(0, 9), "limits": mace.integer(0, 9)})
    with pytest.raises(mace.InvalidConstraint, match="written between back quotes: `credit-limit`"):
        mace.rule("credit-limit >= 3").bind(space, (1, 1))
    for text in ("size (cm) increases", "size [cm] >= 3", "size % stays"):
        with pytest.raises(mace.InvalidConstraint, match="a name with spaces or signs is written between back quotes"):
            mace.rule(text)


# ---- dicts


def asked(constraints: Any) -> tuple[Any, ...]:
    return as_constraints(constraints, SPACE)


def test_a_dict_gives_ranges_and_levels() -> None:
    whole = {"age": [19, 22], "education": ("none", "degree"), "housing": np.array(["own"]), "debt": np.array([1, 2])}
    made = (
        mace.within("age", 19, 22),
        mace.one_of("education", ["none", "degree"]),
        mace.one_of("housing", ["own"]),
        mace.within("debt", 1, 2),
    )
    assert asked(whole) == made
    assert asked([mace.fixed("income"), whole, "guarantor stays"]) == (
        mace.fixed("income"),
        *made,
        mace.fixed("guarantor"),
    )
    assert asked({}) == ()


def test_levels_that_are_numbers_are_levels() -> None:
    space = mace.FeatureSpace({"grade": mace.ordinal([1, 2, 3]), "flag": mace.categorical([False, True])})
    assert as_constraints({"grade": [1, 3], "flag": [True]}, space) == (
        mace.one_of("grade", [1, 3]),
        mace.one_of("flag", [True]),
    )


@pytest.mark.parametrize(
    ("given", "write"),
    [
        ({"age": 20}, "{'age': [18, 24]}"),
        ({"age": [20]}, "give its least and its greatest value, e.g. {'age': [18, 24]}."),
        ({"age": [19, 20, 22]}, "or mace.one_of('age', [19, 20, 22]) for single values"),
        ({"age": ["19", "20"]}, "{'age': [18, 24]}"),
        ({"age": [True, False]}, "{'age': [18, 24]}"),
        ({"age": [20, None]}, "{'age': [18, 24]}"),
        ({"age": {20, 21}}, "{'age': [18, 24]}"),
        ({"age": None}, "{'age': [18, 24]}"),
        ({"age": [22, 20]}, "Swap them"),
        ({"age": [20, math.nan]}, "not a finite number"),
        ({"housing": "own"}, "list those allowed, e.g. {'housing': ['own']}."),
        ({"housing": []}, "list those allowed, e.g. {'housing': ['rent', 'own']}."),
        ({"housing": {"rent": "own"}}, "list those allowed"),
        ({"housing": ["owns"]}, "'owns' is not a level of 'housing': 'rent', 'own', 'free'. Did you mean 'own'"),
        ({"hosing": ["own"]}, "there is no feature 'hosing'. Did you mean 'housing'"),
        ({3: [1, 2]}, "3 is not a name"),
        ([{"age": 20}], "{'age': [18, 24]}"),
    ],
)
def test_a_dict_of_anything_else_is_refused_with_what_to_write(given: Any, write: str) -> None:
    explainer = mace.Explainer(lambda age, income, debt, education, housing, guarantor: age + income >= 25, SPACE)
    with pytest.raises(mace.InvalidConstraint) as refused:
        explainer.explain(ROW, constraints=given)
    assert write in str(refused.value)


def test_a_dict_is_no_part_of_another_constraint() -> None:
    for combine in (lambda: mace.either({"age": [19, 22]}), lambda: mace.fixed("age") & {"age": [19, 22]}):
        with pytest.raises(mace.InvalidConstraint, match=r"Use mace\.within or mace\.one_of"):
            combine()


def test_a_dict_binds_the_answer_and_its_certificate() -> None:
    explainer = mace.Explainer(lambda age, income, debt, education, housing, guarantor: age + income >= 25, SPACE)
    found = explainer.explain(ROW, constraints={"age": [19, 21], "housing": ["own"]}, certify=True)[0]
    assert found.values["age"] <= 21
    assert found.values["housing"] == "own"
    assert mace.verify(found.certificate, explainer.model).valid  # type: ignore[arg-type]
    with pytest.raises(mace.InvalidConstraint, match="'hosing'"):
        explainer.explain_many([ROW], constraints={"hosing": ["own"]})

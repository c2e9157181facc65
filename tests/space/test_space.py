"""Features and feature spaces."""

from __future__ import annotations

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import FeatureSpace, InvalidRow, InvalidSpace, categorical, integer, ordinal, real
from mace.models import read
from mace.models.fingerprint import fingerprint
from mace.space.dtypes import Category

SPACE = FeatureSpace(
    {
        "age": integer(18, 90),
        "income": real(0, 250_000, step=100),
        "debt": real(0, 1e5, missing=True),
        "education": ordinal(["primary", "secondary", "degree"]),
        "housing": categorical(["rent", "own", "free"]),
        "credit amount": integer(0, 10, step=5),
    }
)
ROW = {"age": 30, "income": 1000.0, "debt": 5.5, "education": "degree", "housing": "own", "credit amount": 5}


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        dict(reversed(ROW.items())),
        pd.Series(ROW),
        pd.DataFrame([ROW]),
        list(ROW.values()),
        tuple(ROW.values()),
        np.array(list(ROW.values()), dtype=object),
        ROW | {"age": np.int64(30), "income": np.float32(1000)},
        ROW | {"age": 30.0},
    ],
    ids=lambda row: type(row).__name__,
)
def test_every_shape_of_row_gives_the_same_plain_scalars_in_the_spaces_order(row: object) -> None:
    values = SPACE.validate(row)
    assert values == ROW
    assert list(values) == list(SPACE)
    assert all(type(value) in (int, float, str) for value in values.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"age": 212},
            r"'age' is 212, outside its range \[18, 90\]. Widen it with FeatureSpace.replace\(age=integer\(18, 212\)\)",
        ),
        ({"age": 30.5}, "'age' is 30.5, a fraction; whole numbers only"),
        ({"age": math.nan}, "'age' is missing .* has no missing state"),
        ({"age": None}, "'age' is missing"),
        ({"age": pd.NA}, "'age' is missing"),
        ({"age": "old"}, "'age' is 'old', a str; a number is needed"),
        ({"age": math.inf}, "'age' is inf; a finite number is needed"),
        ({"income": -1}, "outside its range"),
        (
            {"housing": "onw"},
            "'housing' is 'onw', which is not one of its levels: 'rent', 'own', 'free'. Did you mean 'own'",
        ),
        ({"housing": math.nan}, "'housing' is missing .* allow it: .*missing=True"),
        ({"education": 2}, "not one of its levels"),
        ({"credit amount": 11}, r"replace\(\{'credit amount': integer\(0, 11\)\}\)"),
        ({"agee": 3}, "'agee' is not a feature. Did you mean 'age'"),
    ],
)
def test_a_wrong_row_is_refused_with_the_feature_the_value_and_the_way_out(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidRow, match=message):
        SPACE.validate(ROW | change)


def test_a_row_without_a_feature_is_refused_by_name() -> None:
    with pytest.raises(InvalidRow, match="'age', 'housing' missing from the row"):
        SPACE.validate({name: value for name, value in ROW.items() if name not in ("age", "housing")})


@pytest.mark.parametrize("row", ["text", 3, {1, 2}, [1, 2], pd.DataFrame([ROW, ROW]), None])
def test_what_is_no_row_is_refused(row: object) -> None:
    with pytest.raises(InvalidRow):
        SPACE.validate(row)


def test_missing_is_a_value_where_the_feature_says_so() -> None:
    assert math.isnan(SPACE.validate(ROW | {"debt": math.nan})["debt"])
    assert SPACE.point(ROW | {"debt": None})[2] is None


def test_a_value_off_the_grid_is_a_valid_factual() -> None:
    assert SPACE.validate(ROW | {"income": 1234.5, "credit amount": 7})["income"] == 1234.5


def test_json_round_trip_and_equality() -> None:
    again = FeatureSpace.from_json(SPACE.to_json())
    assert again == SPACE
    assert hash(again) == hash(SPACE)
    assert again != SPACE.replace(age=integer(18, 91))
    assert again != FeatureSpace(dict(reversed(list(SPACE.items()))))
    assert FeatureSpace.from_json(FeatureSpace({"flag": categorical([False, True])}).to_json())["flag"].levels == (
        False,
        True,
    )


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 9}', '{"version": 1}', '{"version": 1, "features": {"a": {"kind": "real"}}}',
     '{"version": 1, "features": {"a": {"kind": "reel", "low": 0}}}', '{"version": 1, "features": {"a": 3}}',
     '{"version": 1, "features": {"a": {"kind": "real", "low": 0, "high": 1, "colour": 2}}}'],
)  # fmt: skip
def test_a_damaged_space_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidSpace):
        FeatureSpace.from_json(text)


def test_replace_keeps_the_order_and_refuses_unknown_names() -> None:
    assert list(SPACE.replace({"credit amount": integer(0, 20)})) == list(SPACE)
    with pytest.raises(InvalidSpace, match="Did you mean 'age'"):
        SPACE.replace(agee=integer(0, 1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: real(1, 0),
        lambda: real(0, math.inf),
        lambda: real(math.nan, 1),
        lambda: real(0, 1, step=0),
        lambda: real("0", 1),  # type: ignore[arg-type]
        lambda: integer(0.5, 2),  # type: ignore[arg-type]
        lambda: integer(0, 2**60),
        lambda: integer(0, 5, step=-1),
        lambda: ordinal([]),
        lambda: categorical(["a", "a"]),
        lambda: categorical("abc"),
        lambda: categorical([math.inf]),
        lambda: categorical([math.nan, None]),
        lambda: ordinal(["a", None]),
        lambda: FeatureSpace({}),
        lambda: FeatureSpace({"age": 3}),  # type: ignore[dict-item]
        lambda: FeatureSpace({3: real(0, 1)}),  # type: ignore[dict-item]
    ],
)
def test_a_contradictory_feature_is_refused(make: object) -> None:
    with pytest.raises(InvalidSpace):
        make()  # type: ignore[operator]


def test_a_grid_means_decimals() -> None:
    feature = real(0, 1, step=0.1)
    assert feature.size == 11
    assert [feature.value_at(k) for k in (1, 3, 7)] == [0.1, 0.3, 0.7]
    assert feature.has(0.3)
    assert not feature.has(0.30000000000000004)
    assert not feature.is_exact_grid
    assert real(0, 1, step=0.25).is_exact_grid
    assert real(0, 250_000, step=100).is_exact_grid
    assert integer(1, 9, step=3).size == 3


# ---- from a frame


def test_kinds_follow_the_dtypes_and_every_guess_is_reported() -> None:
    frame = pd.DataFrame(
        {
            "n": [3, 1, 2],
            "x": [0.5, math.nan, 2.0],
            "s": ["b", "a", "b"],
            "o": pd.Categorical(["hi", "lo", "hi"], categories=["lo", "mid", "hi"], ordered=True),
            "c": pd.Categorical(["q", "p", "q"], categories=["q", "p"]),
            "f": [True, False, True],
            "i": pd.array([1, None, 4], dtype="Int64"),
            "t": pd.array(["u", "v", "u"], dtype="string"),
            "m": pd.Series([1, "1", 2], dtype=object),
        }
    )
    space = FeatureSpace.from_frame(frame)
    assert space == FeatureSpace(
        {
            "n": integer(1, 3),
            "x": real(0.5, 2.0, missing=True),
            "s": categorical(["a", "b"]),
            "o": ordinal(["lo", "hi"], dtype=Category(("lo", "mid", "hi"), ordered=True)),
            "c": categorical(["q", "p"], dtype="category"),
            "f": categorical([False, True]),
            "i": integer(1, 4, missing=True, dtype="Int64"),
            "t": categorical(["u", "v"], dtype="string"),
            "m": categorical([1, 2, "1"]),
        }
    )
    assert set(space.guesses) == set(frame.columns)
    assert "observed range [1, 3]" in space.report()


def test_overrides_are_taken_as_given_and_are_no_guess() -> None:
    space = FeatureSpace.from_frame(pd.DataFrame({"a": [1, 2], "b": [0.0, 1.0]}), a=integer(0, 9))
    assert space["a"] == integer(0, 9)
    assert list(space.guesses) == ["b"]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame(), "nothing to infer"),
        (pd.DataFrame({"a": []}), "nothing to infer"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "stands twice"),
        (pd.DataFrame([[1, 2]]), "is not text"),
        (
            pd.DataFrame({"a": pd.Categorical(["x", None], ordered=True)}),
            "missing values, and levels in order have no missing state",
        ),
        (pd.DataFrame({"a": [math.nan, math.nan]}), "has no value at all"),
        (pd.DataFrame({"a": [1.0, math.inf]}), "infinite"),
        (pd.DataFrame({"a": pd.to_timedelta([1], unit="D")}), "dtype timedelta"),
        ([[1, 2]], "needs a data frame"),
    ],
)
def test_a_frame_that_cannot_be_read_is_refused_with_the_column(frame: object, message: str) -> None:
    with pytest.raises(InvalidSpace, match=message):
        FeatureSpace.from_frame(frame)  # type: ignore[arg-type]


def test_an_override_of_no_column_is_refused() -> None:
    with pytest.raises(InvalidSpace, match="no column 'aa'"):
        FeatureSpace.from_frame(pd.DataFrame({"a": [1]}), aa=integer(0, 1))


def test_the_space_prints_as_the_code_that_makes_it() -> None:
    made = eval(str(SPACE), vars(mace) | {name: getattr(mace, name) for name in mace.__all__})
    assert made == SPACE
    assert json.loads(SPACE.to_json())["features"]["debt"]["missing"] is True


# ---- protected features


def test_protected_features_are_marked_and_kept() -> None:
    marked = SPACE.protect("housing", "age")
    assert (SPACE.protected, marked.protected) == ((), ("age", "housing"))
    assert marked.protect("debt").protected == ("age", "debt", "housing")
    assert str(marked) == f"{SPACE}.protect('age', 'housing')"
    assert list(marked.items()) == list(SPACE.items())
    assert marked.validate(ROW) == SPACE.validate(ROW)
    assert marked.replace(age=integer(0, 9)).protected == ("age", "housing")
    for again in (FeatureSpace.from_json(marked.to_json()), pickle.loads(pickle.dumps(marked)), copy.deepcopy(marked)):
        assert again == marked
        assert hash(again) == hash(marked)
        assert again.protected == marked.protected
    assert marked != SPACE
    assert marked == SPACE.protect("age").protect("housing")
    assert "protected" not in SPACE.to_dict()


def test_what_cannot_be_protected_is_refused() -> None:
    with pytest.raises(InvalidSpace, match=r"protect: there is no feature 'ages'\. Did you mean 'age'"):
        SPACE.protect("ages")
    for protected in ("age", [3], {"age": 1}, None):
        with pytest.raises(InvalidSpace, match="'protected' is"):
            FeatureSpace.from_dict({**SPACE.to_dict(), "protected": protected})
    with pytest.raises(InvalidSpace, match="there is no feature 'sex'"):
        FeatureSpace.from_dict({**SPACE.to_dict(), "protected": ["sex"]})


def test_a_space_made_of_the_features_of_another_keeps_their_decimals() -> None:
    frame = pd.DataFrame(
        {"rate": np.arange(40) / 10, "amount": np.arange(40) * 100, "kind": ["a", "b"] * 20, "count": np.arange(40)}
    )
    space = FeatureSpace.from_frame(frame)
    assert space.round_to == {"rate": 0.1, "amount": 100}
    assert FeatureSpace({name: space[name] for name in ("kind", "rate")}).round_to == {"rate": 0.1}
    assert FeatureSpace(dict(reversed(list(space.items())))).round_to == space.round_to
    assert FeatureSpace({"speed": space["rate"]}).round_to == {"speed": 0.1}
    assert FeatureSpace(dict(space), round_to={}).round_to == {}
    assert FeatureSpace(dict(FeatureSpace(dict(space), round_to={}))).round_to == {}
    assert space.replace(kind=categorical(["a", "b", "c"])).round_to == space.round_to
    assert space.replace(rate=real(0, 5)).round_to == space.round_to
    assert space.replace(rate=integer(0, 5)).round_to == {"amount": 100}
    assert space.without("amount").protect("rate").round_to == {"rate": 0.1}
    saved = pickle.loads(pickle.dumps(space["rate"])), FeatureSpace.from_json(space.to_json())["rate"]
    assert [FeatureSpace({"rate": each}).round_to for each in saved] == [{"rate": 0.1}] * 2
    assert space["rate"] == real(0, 3.9)
    assert hash(space["rate"]) == hash(real(0, 3.9))
    assert repr(space["rate"]) == "real(0.0, 3.9)"


def test_decimals_are_no_part_of_a_fingerprint() -> None:
    frame = pd.DataFrame({"rate": np.arange(40) / 10, "amount": np.arange(40) * 100.0})
    space = FeatureSpace.from_frame(frame)
    bare = FeatureSpace(dict(space), round_to={})
    model = DecisionTreeClassifier(max_depth=2).fit(frame, frame["rate"] > 2)
    prints = [fingerprint(read(model, each)) for each in (space, bare)]
    assert prints[0] == prints[1]
    explanation = mace.Explainer(model, space).explain(frame.iloc[0], certify=True)
    assert mace.verify(explanation[0].certificate, model).valid

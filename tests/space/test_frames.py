"""Frames of every kind in and out, guesses with what to check, and answers rounded for people."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mace
from mace import FeatureSpace, InvalidOption, InvalidSpace, categorical, integer, ordinal, real

RNG = np.random.default_rng(0)
SIZES = ["small", "medium", "large"]
PLAIN = pd.DataFrame(
    {
        "amount": RNG.uniform(0, 100, 80).round(3),
        "age": RNG.integers(18, 80, 80),
        "size": pd.Categorical(RNG.choice(SIZES, 80), categories=SIZES, ordered=True),
        "town": RNG.choice(["A", "B", "C"], 80),
        "owns": RNG.choice([True, False], 80),
    }
)
LABELS = np.where(PLAIN["amount"] + PLAIN["age"] / 2 + (PLAIN["town"] == "B") * 20 > 75, "yes", "no")


def as_kind(frame: pd.DataFrame, kind: str) -> Any:
    """Return the same data in another container."""
    match kind:
        case "pandas":
            return frame
        case "nullable":
            return frame.astype({"age": "Int64", "town": "string", "owns": "boolean", "amount": "Float64"})
        case "category":
            return frame.astype({"town": "category"})
        case "object":
            return frame.astype({"town": object, "owns": object})
        case "arrow dtypes":
            plain = {
                "age": pd.ArrowDtype(pa.int64()),
                "town": pd.ArrowDtype(pa.string()),
                "owns": pd.ArrowDtype(pa.bool_()),
            }
            return frame.astype(plain)
        case "polars":
            columns = {name: frame[name].tolist() for name in frame}
            return pl.DataFrame(columns, schema_overrides={"size": pl.Enum(SIZES)})
        case _:
            table = pa.table({name: frame[name].tolist() for name in frame if name != "size"})
            codes = pa.array([SIZES.index(size) for size in frame["size"]], pa.int8())
            return table.add_column(2, "size", pa.DictionaryArray.from_arrays(codes, SIZES, ordered=True))


KINDS = ("pandas", "nullable", "category", "object", "arrow dtypes", "polars", "pyarrow")


@pytest.mark.parametrize("kind", KINDS)
def test_a_space_is_inferred_from_any_frame(kind: str) -> None:
    remembered = FeatureSpace.from_frame(as_kind(PLAIN, kind))
    space = {name: replace(feature, dtype=None) for name, feature in remembered.items()}
    assert space["amount"] == real(PLAIN["amount"].min(), PLAIN["amount"].max())
    assert space["age"] == integer(PLAIN["age"].min(), PLAIN["age"].max())
    assert space["town"] == categorical(["A", "B", "C"])
    assert space["owns"] == categorical([False, True])
    assert space["size"] == (categorical(sorted(SIZES)) if kind == "pyarrow" else ordinal(SIZES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_any_frame_is_explained(kind: str) -> None:
    space = FeatureSpace.from_frame(PLAIN)
    before = ColumnTransformer(
        [("n", StandardScaler(), ["amount", "age"]), ("l", OneHotEncoder(), ["size", "town", "owns"])]
    )
    model = make_pipeline(before, RandomForestClassifier(5, random_state=0)).fit(PLAIN, LABELS)
    frame = as_kind(PLAIN, kind)
    row = frame[:1] if kind == "polars" else frame.slice(0, 1) if kind == "pyarrow" else frame.iloc[[0]]
    explanation = mace.Explainer(model, space).explain(row)
    assert explanation.status == "optimal"
    assert explanation.factual == space.validate(PLAIN.iloc[[0]])
    assert model.predict(pd.DataFrame([explanation[0].values]))[0] == explanation[0].prediction


def test_a_pipeline_fitted_on_polars_is_explained() -> None:
    frame = as_kind(PLAIN, "polars")
    before = ColumnTransformer([("n", StandardScaler(), ["amount", "age"]), ("l", OneHotEncoder(), ["size", "town"])])
    model = make_pipeline(before, LogisticRegression()).fit(frame, LABELS)
    space = FeatureSpace.from_frame(frame)
    explanation = mace.Explainer(model, space).explain(frame[3:4], constraints=[mace.fixed("age")])
    assert explanation.status == "optimal"
    answer = explanation.to_frame("polars")
    flipped = answer[1:2].select(frame.columns).with_columns(pl.col("size").cast(pl.Enum(SIZES)))
    assert model.predict(flipped)[0] == explanation[0].prediction != model.predict(frame[3:4])[0]


def test_an_encoder_takes_polars() -> None:
    space = FeatureSpace.from_frame(PLAIN)
    encoder = mace.Encoder(space).fit(PLAIN)
    np.testing.assert_array_equal(encoder.transform(as_kind(PLAIN, "polars")), encoder.transform(PLAIN))


@pytest.mark.parametrize("library", ["polars", "pyarrow", "pandas"])
def test_answers_come_out_in_any_frame(library: str) -> None:
    model = LogisticRegression().fit(PLAIN[["amount", "age"]], LABELS)
    space = FeatureSpace.from_frame(PLAIN[["amount", "age"]])
    frame = mace.Explainer(model, space).explain(PLAIN[["amount", "age"]].iloc[0]).to_frame(library)
    assert type(frame).__module__.partition(".")[0] == library
    assert frame.shape == (2, 7)


def test_an_unknown_library_is_refused() -> None:
    model = LogisticRegression().fit(PLAIN[["amount", "age"]], LABELS)
    space = FeatureSpace.from_frame(PLAIN[["amount", "age"]])
    with pytest.raises(InvalidOption, match="accepted: 'pandas', 'polars', 'pyarrow'"):
        mace.Explainer(model, space).explain(PLAIN[["amount", "age"]].iloc[0]).to_frame("dask")


def test_missing_values_of_other_libraries_are_missing() -> None:
    frame = pl.DataFrame({"a": [1, None, 3], "b": [0.5, None, 1.5]})
    space = FeatureSpace.from_frame(frame)
    assert space["a"] == integer(1, 3, missing=True, dtype="Int64")
    assert space["b"] == real(0.5, 1.5, missing=True)
    assert space.point(frame[1:2]) == (None, None)


def test_durations_of_other_libraries_are_refused_with_advice() -> None:
    frame = pl.DataFrame({"long": pl.Series([timedelta(days=3)])})
    with pytest.raises(InvalidSpace, match=r"'long' has dtype Duration.*a duration into seconds"):
        FeatureSpace.from_frame(frame)


def test_guesses_say_what_to_check() -> None:
    frame = pd.DataFrame(
        {
            "constant": [1.5] * 30,
            "id": range(30),
            "name": [f"person {k}" for k in range(30)],
            "flag": [0, 1] * 15,
            "whole": [float(k % 7) for k in range(30)],
            "plain": RNG.uniform(0, 1, 30),
        }
    )
    guesses = FeatureSpace.from_frame(frame).guesses
    assert "one value only" in guesses["constant"]
    assert "as an identifier has" in guesses["id"]
    assert "as an identifier has" in guesses["name"]
    assert "categorical([0, 1])" in guesses["flag"]
    assert "integer(0, 6)" in guesses["whole"]
    assert "Check" not in guesses["plain"]
    assert "Check" in FeatureSpace.from_frame(frame).report()


@pytest.mark.parametrize("model", [RandomForestClassifier(7, random_state=0), LogisticRegression()], ids=repr)
@pytest.mark.parametrize("digits", [0, 1, 3, {"amount": 2}])
def test_a_rounded_answer_still_flips_the_model(model: Any, digits: Any) -> None:
    frame = PLAIN[["amount", "age"]].assign(amount=RNG.uniform(0, 100, 80))
    model.fit(frame, LABELS)
    explainer = mace.Explainer(model, FeatureSpace.from_frame(frame))
    places = digits if isinstance(digits, int) else digits["amount"]
    for position in range(4):
        exact = explainer.explain(frame.iloc[position], constraints=[mace.fixed("age")], round_to=None)
        rounded = explainer.explain(frame.iloc[position], constraints=[mace.fixed("age")], digits=digits)
        if not exact:
            continue
        amount = rounded[0].values["amount"]
        assert amount == round(amount, places)
        assert exact[0].lower <= rounded[0].lower <= rounded[0].distance
        assert rounded.lower_unrounded == exact.lower
        assert model.predict(pd.DataFrame([rounded[0].values]))[0] == rounded[0].prediction != exact.prediction
        assert rounded.status == "optimal" or "rounded" in rounded.reason


def test_bad_digits_are_refused() -> None:
    model = LogisticRegression().fit(PLAIN[["amount", "age"]], LABELS)
    explainer = mace.Explainer(model, FeatureSpace.from_frame(PLAIN[["amount", "age"]]))
    with pytest.raises(InvalidOption, match="'amont', which is not a feature"):
        explainer.explain(PLAIN[["amount", "age"]].iloc[0], digits={"amont": 2})
    with pytest.raises(InvalidOption, match=r"digits=2\.5"):
        explainer.explain(PLAIN[["amount", "age"]].iloc[0], digits=2.5)

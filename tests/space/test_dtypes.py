"""Dtypes as deployed: what a space remembers of a frame, and answers that come back in its dtypes and flip there."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from families import FAMILIES, FITTED_IN_FLOAT16, fitted, frame_of_floats, labels_of
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import mace
from mace import FeatureSpace, InvalidConstraint, InvalidRow, InvalidSpace, UnsupportedModel
from mace.models import read
from mace.space.dtypes import Category

RNG = np.random.default_rng(0)
SIZE = 90

COLUMNS: dict[str, Any] = {
    "float16": RNG.uniform(0, 4, SIZE).astype(np.float16),
    "float32": RNG.uniform(0, 4, SIZE).astype(np.float32),
    "float64": RNG.uniform(0, 4, SIZE),
    "Float32": pd.array(RNG.uniform(0, 4, SIZE), dtype="Float32"),
    "Float64": pd.array(RNG.uniform(0, 4, SIZE), dtype="Float64"),
    **{name: RNG.integers(0, 9, SIZE).astype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint64")},
    "Int64": pd.array(RNG.integers(0, 9, SIZE), dtype="Int64"),
    "Int8": pd.array(RNG.integers(0, 9, SIZE), dtype="Int8"),
    "bool": RNG.integers(0, 2, SIZE).astype(bool),
    "boolean": pd.array(RNG.integers(0, 2, SIZE).astype(bool), dtype="boolean"),
    "category of text": pd.Categorical(RNG.choice(list("abc"), SIZE), categories=list("cabd")),
    "category of whole numbers": pd.Categorical(RNG.choice([3, 1, 2], SIZE)),
    "category in order": pd.Categorical(RNG.choice(list("abc"), SIZE), categories=list("cab"), ordered=True),
    "string": pd.array(RNG.choice(list("abc"), SIZE), dtype="string"),
    "object": pd.Series(RNG.choice(list("abc"), SIZE), dtype=object),
}
"""A column of each dtype."""


def frame_with(name: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return a frame of a column of a dtype and of float32, and labels that depend on both."""
    frame = pd.DataFrame({"x": COLUMNS[name], "z": RNG.uniform(0, 4, SIZE).astype(np.float32)})
    codes = pd.Series(pd.factorize(frame["x"], sort=True)[0])
    return frame, (codes / max(1, codes.max()) + frame["z"] / 4 > 1).to_numpy().astype(int)


def put_back(frame: pd.DataFrame, values: dict[str, Any]) -> pd.DataFrame:
    """Return an answer as a row of the user's own frame, by the user's own means."""
    return pd.DataFrame([values])[list(frame.columns)].astype(frame.dtypes.to_dict())


# ---- spaces


@pytest.mark.parametrize("name", COLUMNS)
def test_a_space_remembers_the_dtype_of_each_column(name: str) -> None:
    frame, _ = frame_with(name)
    space = FeatureSpace.from_frame(frame)
    again = space.frame_of([space.point(frame.iloc[[k]]) for k in range(len(frame))])
    pd.testing.assert_frame_equal(again, frame)
    for copy in (FeatureSpace.from_json(space.to_json()), pickle.loads(pickle.dumps(space))):
        assert copy == space
        assert hash(copy) == hash(space)
        assert copy.frame_of([space.point(frame.iloc[[0]])]).dtypes.equals(frame.dtypes)


def test_missing_values_keep_the_dtype() -> None:
    frame = pd.DataFrame(
        {
            "f": np.array([0.1, np.nan, 0.3], dtype=np.float32),
            "n": pd.array([1, None, 3], dtype="Int16"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "s": pd.array(["u", None, "v"], dtype="string"),
            "c": pd.Categorical(["u", None, "v"]),
        }
    )
    space = FeatureSpace.from_frame(frame)
    pd.testing.assert_frame_equal(space.frame_of([space.point(frame.iloc[[k]]) for k in range(3)]), frame)


def test_what_pandas_would_do_by_itself_is_not_stated() -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5], "n": [1, 2], "b": [True, False], "t": ["u", "v"]})
    assert not FeatureSpace.from_frame(frame).has_dtypes
    assert "dtype" not in FeatureSpace.from_frame(frame).to_json()
    assert mace.real(0, 1, dtype="float64") == mace.real(0, 1)


def test_a_category_keeps_its_order_and_what_no_row_has() -> None:
    space = FeatureSpace.from_frame(frame_with("category in order")[0])
    assert space["x"] == mace.ordinal(list("cab"), dtype=Category(("c", "a", "b"), ordered=True))
    unordered = FeatureSpace.from_frame(frame_with("category of text")[0])
    assert unordered["x"] == mace.categorical(list("cab"), dtype=Category(("c", "a", "b", "d"), ordered=False))


def test_a_replaced_feature_stays_in_its_column() -> None:
    frame, _ = frame_with("float32")
    space = FeatureSpace.from_frame(frame)
    assert space.replace(x=mace.real(0, 9))["x"] == mace.real(0, 9, dtype="float32")
    assert FeatureSpace.from_frame(frame, x=mace.real(0, 9))["x"] == mace.real(0, 9, dtype="float32")
    assert space.replace(x=mace.categorical([0.5, 1.5]))["x"].dtype == "float32"


def test_numbers_are_those_of_the_dtype() -> None:
    single = mace.real(0, 0.1, dtype="float32")
    assert single.high == float(np.float32(0.1))
    assert single.has(float(np.float32(0.05)))
    assert not single.has(0.05)
    assert single.text(single.high) == "0.1"
    space = FeatureSpace({"x": single, "h": mace.real(0, 4, dtype="float16")})
    assert space.validate({"x": 0.05, "h": 0.1}) == {"x": float(np.float32(0.05)), "h": float(np.float16(0.1))}
    assert space.validate({"x": np.float32(0.05), "h": np.float64(1e-9)})["h"] == 0.0
    with pytest.raises(InvalidRow, match="is inf; a finite number"):
        FeatureSpace({"h": mace.real(0, 60_000, dtype="float16")}).validate({"h": 1e6})


def test_a_grid_of_decimals_in_float32() -> None:
    grid = mace.real(0.1, 1, step=0.1, dtype="float32")
    assert grid.size == 10
    assert [grid.text(grid.value_at(k)) for k in (0, 2, 9)] == ["0.1", "0.3", "1.0"]
    assert all(grid.has(grid.value_at(k)) for k in range(10))
    assert not grid.has(0.3)


def test_dtypes_that_cannot_be() -> None:
    for wrong in ("int8", "float128", 3):
        with pytest.raises(InvalidSpace, match="dtype"):
            mace.real(0, 1, dtype=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpace, match=r"does not fit into int8, \[-128, 127\]"):
        mace.integer(0, 300, dtype="int8")
    with pytest.raises(InvalidSpace, match="Use dtype='Int8'"):
        mace.integer(0, 3, missing=True, dtype="int8")
    with pytest.raises(InvalidSpace, match="accepted: 'category'"):
        mace.categorical(["a"], dtype="datetime64[ns]")
    with pytest.raises(InvalidSpace, match="finer than float16"):
        mace.real(0, 1000, step=0.1, dtype="float16")
    for wrong in ({"categories": "ab", "ordered": True}, {"categories": ["a", "a"], "ordered": True}, {"ordered": 1}):
        entry = {"kind": "categorical", "levels": ["a"], "dtype": wrong}
        with pytest.raises(InvalidSpace, match="is not a category"):
            FeatureSpace.from_dict({"version": 1, "features": {"c": entry}})


WRITTEN_BY_0_1_0 = (
    "gASVXgEAAAAAAACMEG1hY2Uuc3BhY2Uuc3BhY2WUjAxGZWF0dXJlU3BhY2WUk5QpgZR9lCiMCV9mZWF0dXJlc5R9lCiMAXiUjBNtYWNlLnNwYW"
    "NlLmZlYXR1cmVzlIwEUmVhbJSTlCmBlF2UKEcAAAAAAAAAAEc/8AAAAAAAAE6IZWKMAWeUaAopgZRdlChHAAAAAAAAAABHP/AAAAAAAABHP7mZ"
    "mZmZmZqJZWKMAW6UaAiMB0ludGVnZXKUk5QpgZRdlChLAEsFTollYowBb5RoCIwHT3JkaW5hbJSTlCmBlF2UjAFhlIwBYpSGlGFijAFjlGgIjA"
    "tDYXRlZ29yaWNhbJSTlIwBdZSMAXaUR3/4AAAAAAAAh5SFlFKUdYwHZ3Vlc3Nlc5R9lHVijBBtYWNlLmV4cGxhbmF0aW9ulIwGQ2hhbmdllJOU"
    "KYGUXZQoaAdHP7mZmZmZmZpHP8mZmZmZmZplYoaULg=="
)


def test_pickles_and_files_without_dtypes_load_as_before() -> None:
    with pytest.warns(DeprecationWarning, match="Change is in mace.answer.counterfactual"):
        space, change = pickle.loads(base64.b64decode(WRITTEN_BY_0_1_0))
    assert space == FeatureSpace(
        {
            "x": mace.real(0, 1, missing=True),
            "g": mace.real(0, 1, step=0.1),
            "n": mace.integer(0, 5),
            "o": mace.ordinal(["a", "b"]),
            "c": mace.categorical(["u", "v"], missing=True),
        }
    )
    assert not space.has_dtypes
    assert str(change) == "x: 0.1 -> 0.2"
    assert FeatureSpace.from_json(space.to_json()) == space


# ---- answers


CASES = [
    (family, dtype)
    for family in FAMILIES
    for dtype in ("float16", "float32", "float64")
    # scikit-learn itself cannot fit this one.
    if (family, dtype) != ("powers, forest", "float16")
]


@pytest.mark.parametrize(("family", "dtype"), CASES)
def test_answers_flip_in_the_frame_that_the_model_is_deployed_on(family: str, dtype: str) -> None:
    frame = frame_of_floats(dtype)
    labels = labels_of(frame)
    model = fitted(family, frame, labels)
    space = FeatureSpace.from_frame(frame)
    if dtype == "float16" and family not in FITTED_IN_FLOAT16:
        with pytest.raises(UnsupportedModel, match=r'float16.*frame.astype\("float32"\)'):
            mace.Explainer(model, space)
        return
    explainer = mace.Explainer(model, space)
    for k in (0, 1, 2):
        explanation = explainer.explain(frame.iloc[[k]], certify=k == 0, time_limit=20)
        best = explanation[0]
        back = put_back(frame, best.values)
        assert back.to_dict("records")[0] == best.values
        pd.testing.assert_frame_equal(
            explanation.to_frame().iloc[1:][list(frame)].reset_index(drop=True), back, check_like=True
        )
        assert np.ravel(model.predict(back))[0] == best.prediction != explanation.prediction
        among = pd.concat([frame, back], ignore_index=True)
        assert np.ravel(model.predict(among))[-1] == best.prediction
        assert best.lower <= best.distance
        if k == 0:
            assert mace.verify(best.certificate, model).valid


PREPROCESSING = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "ordinal": lambda: OrdinalEncoder(),
}


@pytest.mark.parametrize("name", [name for name in COLUMNS if "loat" not in name])
@pytest.mark.parametrize("step", PREPROCESSING)
def test_whole_numbers_and_levels_come_back_in_their_dtypes(name: str, step: str) -> None:
    frame, labels = frame_with(name)
    before = ColumnTransformer([("x", PREPROCESSING[step](), ["x"]), ("z", StandardScaler(), ["z"])])
    final = RandomForestClassifier(5, max_depth=4, random_state=0) if step == "ordinal" else LogisticRegression()
    model = make_pipeline(before, final).fit(frame, labels)
    explainer = mace.Explainer(model, FeatureSpace.from_frame(frame))
    for k in range(3):
        explanation = explainer.explain(frame.iloc[[k]])
        answer = explanation.to_frame().iloc[[1]][list(frame)]
        assert answer.dtypes.equals(frame.dtypes)
        assert model.predict(answer)[0] == explanation[0].prediction != explanation.prediction
        assert model.predict(put_back(frame, explanation[0].values))[0] == explanation[0].prediction
        assert all(type(value) in (int, float, str, bool) for value in explanation[0].values.values())


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("string", "object")])
def test_boosting_takes_the_columns_as_they_are(name: str) -> None:
    frame, labels = frame_with(name)
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype").fit(frame, labels)
    space = FeatureSpace.from_frame(frame)
    if name == "boolean":
        space = space.replace(x=mace.integer(0, 1))
    explanation = mace.Explainer(model, space).explain(space.frame_of([space.point(frame.iloc[[0]])]), certify=True)
    answer = explanation.to_frame().iloc[[1]][list(frame)].astype(frame.dtypes.to_dict())
    assert model.predict(answer)[0] == explanation[0].prediction != explanation.prediction
    assert mace.verify(explanation[0].certificate, model).valid


def test_mixed_frames_compute_in_what_numpy_makes_of_them() -> None:
    frame = pd.DataFrame({"x": COLUMNS["float32"], "n": COLUMNS["int16"]})
    labels = (frame["x"] + frame["n"] / 3 > 3).to_numpy().astype(int)
    model = LogisticRegression().fit(frame, labels)
    assert model.coef_.dtype == np.float32
    single = read(model, FeatureSpace.from_frame(frame)).form
    wide = frame.astype({"n": "int64"})
    double = read(LogisticRegression().fit(wide, labels), FeatureSpace.from_frame(wide)).form
    assert (float(single.unit), float(double.unit)) == (2.0**-24, 2.0**-53)  # type: ignore[attr-defined]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_libraries_get_their_dtypes_back(library: str) -> None:
    data = {
        "f": COLUMNS["float32"],
        "n": COLUMNS["int16"],
        "t": [str(level) for level in COLUMNS["object"]],
        "c": [str(level) for level in COLUMNS["string"]],
    }
    labels = (data["f"] + data["n"] / 4 > 3).astype(int)
    frame: Any = pl.DataFrame(data).with_columns(pl.col("c").cast(pl.Categorical))
    if library == "pyarrow":
        frame = pa.table(data).set_column(3, "c", pa.array(data["c"]).dictionary_encode())
    before = ColumnTransformer([("n", StandardScaler(), ["f", "n"]), ("l", OneHotEncoder(), ["t", "c"])])
    plain = pl.DataFrame(data) if library == "polars" else pd.DataFrame(data)
    model = make_pipeline(before, RandomForestClassifier(5, max_depth=4, random_state=0)).fit(plain, labels)
    explanation = mace.Explainer(model, FeatureSpace.from_frame(frame)).explain(frame[:1])
    answer = explanation.to_frame(library)[1:2]
    if library == "polars":
        assert {name: answer.schema[name] for name in data} == dict(frame.schema)
        assert model.predict(answer.select(plain.columns).cast({"c": pl.String}))[0] == explanation[0].prediction
    else:
        kinds = {name: answer.schema.field(name).type for name in data}
        assert [kinds[name] for name in "fnt"] == [pa.float32(), pa.int16(), pa.string()]
        assert pa.types.is_dictionary(kinds["c"])
        assert model.predict(answer.select(list(data)).to_pandas().astype({"c": str}))[0] == explanation[0].prediction


def test_texts_print_the_decimals_of_the_dtype() -> None:
    frame = frame_of_floats("float32")
    model = fitted("forest", frame, labels_of(frame))
    explanation = mace.Explainer(model, FeatureSpace.from_frame(frame)).explain(frame.iloc[[0]])
    change = explanation[0].changes[0]
    assert isinstance(change.after, float)
    assert change.after == float(np.float32(change.after))
    assert str(change) == f"{change.feature}: {np.float32(change.before)!s} -> {np.float32(change.after)!s}"
    assert str(np.float32(change.after)) in str(explanation)
    again = mace.Explanation.from_dict(json.loads(explanation.to_json()))
    assert str(again[0]) == str(explanation[0])
    assert again[0].values == explanation[0].values


def test_a_certificate_is_about_the_dtype_that_it_states() -> None:
    frame = frame_of_floats("float32")
    model = fitted("histogram boosting", frame, labels_of(frame))
    space = FeatureSpace.from_frame(frame)
    certificate = mace.Explainer(model, space).explain(frame.iloc[[0]], certify=True)[0].certificate
    data = json.loads(certificate.to_json())
    assert {each["dtype"] for each in data["statement"]["space"]["features"].values()} == {"float32"}
    assert mace.verify(certificate, model).valid
    for each in data["statement"]["space"]["features"].values():
        del each["dtype"]
    assert not mace.verify(mace.Certificate.from_dict(data), model).valid


def test_a_model_fitted_on_an_array_is_asked_with_that_dtype() -> None:
    frame = frame_of_floats("float32")
    labels = labels_of(frame)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame.to_numpy(), labels)
    explanation = mace.Explainer(model, FeatureSpace.from_frame(frame)).explain(frame.iloc[[0]])
    row = put_back(frame, explanation[0].values).to_numpy()
    assert row.dtype == np.float32
    assert model.predict(row)[0] == explanation[0].prediction != explanation.prediction


def test_an_effect_in_float32_is_refused_by_name() -> None:
    space = FeatureSpace({"x": mace.real(0, 1, dtype="float32"), "y": mace.real(0, 1)})
    model = LogisticRegression().fit(pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]}), [0, 1])
    with pytest.raises(InvalidConstraint, match="the effect 'x' is float32"):
        mace.Explainer(model, space, causes=mace.Causal({"x": lambda y: 0.5 * y}))
    causal = space.replace(x=replace(space["x"], dtype=None))
    assert isinstance(mace.Explainer(model, causal), mace.Explainer)

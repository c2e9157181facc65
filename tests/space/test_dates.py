"""Dates as a kind of feature: in frames, spaces, rows, rules, models and answers."""

from __future__ import annotations

import datetime
import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import mace
from mace.constraints.suggest import suggest_constraints
from mace.space import Date

TRANSFORMER = FunctionTransformer(mace.days)


def frame_of(seed: int = 0, rows: int = 300) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(seed)
    start = pd.to_datetime("2021-11-20") + pd.to_timedelta(rng.integers(0, 60, rows), unit="D")
    frame = pd.DataFrame({"start": start, "n": rng.integers(0, 8, rows), "kind": rng.choice(["a", "b"], rows)})
    late = (frame.start - pd.Timestamp("2021-12-20")).dt.days / 15
    return frame, (late + frame.n / 4 - 1 + (frame.kind == "a") + rng.normal(0, 0.2, rows) > 0).astype(int)


def models(frame: pd.DataFrame, labels: Any) -> dict[str, Any]:
    space = mace.FeatureSpace.from_frame(frame)
    scaled = make_pipeline(TRANSFORMER, StandardScaler())
    before = make_column_transformer((scaled, ["start"]), (OneHotEncoder(), ["kind"]), remainder="passthrough")
    made = {
        "forest": make_pipeline(mace.Encoder(space), RandomForestClassifier(5, max_depth=4, random_state=0)),
        "linear": make_pipeline(mace.Encoder(space), StandardScaler(), LogisticRegression()),
        "columns": make_pipeline(before, GradientBoostingClassifier(n_estimators=5, random_state=0)),
        "days": make_pipeline(before, LogisticRegression()),
        "network": make_pipeline(before, MLPClassifier((4,), solver="lbfgs", max_iter=80, random_state=0)),
    }
    return {name: model.fit(frame, labels) for name, model in made.items()}


@pytest.mark.parametrize("name", ["forest", "linear", "columns", "days", "network"])
def test_answers_are_nearest_of_all_dates(name: str) -> None:
    frame, labels = frame_of()
    model, space = models(frame, labels)[name], mace.FeatureSpace.from_frame(frame)
    every = pd.DataFrame(
        list(itertools.product(pd.date_range(frame.start.min(), frame.start.max()), range(8), ["a", "b"])),
        columns=list(space),
    ).astype(frame.dtypes)
    explainer, said = mace.Explainer(model, space), model.predict(every)
    width = (frame.start.max() - frame.start.min()).days
    for number in range(6):
        row = frame.iloc[number]
        far = (every.start - row.start).dt.days.abs() / width + (every.n - row.n).abs() / 7 + (every.kind != row.kind)
        best = far[said != model.predict(frame.iloc[[number]])[0]].min() / 3
        answer = explainer.explain(row, certify=True, round_to=None, time_limit=60)
        assert answer.status == "optimal"
        assert answer[0].distance == pytest.approx(best, abs=2e-6)
        assert model.predict(answer.to_frame()[list(space)].iloc[[1]])[0] == answer[0].prediction
        assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(5, max_depth=5, random_state=0), LogisticRegression(max_iter=500)]
)
@pytest.mark.parametrize("unit", ["day", "hour"])
def test_years_months_and_days_of_the_week_are_read(unit: str, model: Any) -> None:
    rng = np.random.default_rng(1)
    start = pd.to_datetime("2021-11-20") + pd.to_timedelta(rng.integers(0, 500, 400), unit=unit)  # type: ignore[call-overload]
    frame = pd.DataFrame({"start": start, "n": rng.integers(0, 8, 400)})
    labels = (
        frame.start.dt.month % 12 + frame.start.dt.day_of_week / 2 + frame.n / 3 + rng.normal(0, 0.3, 400) > 4
    ).astype(int)
    months = make_pipeline(FunctionTransformer(mace.months), OneHotEncoder(sparse_output=False))
    calendar = (FunctionTransformer(each) for each in (mace.years, mace.weekdays, mace.days))
    before = make_column_transformer(
        (months, ["start"]), *((each, ["start"]) for each in calendar), remainder="passthrough"
    )
    fitted = make_pipeline(before, StandardScaler(), clone(model)).fit(frame, labels)
    space = mace.FeatureSpace.from_frame(frame)
    assert space["start"].unit == unit  # type: ignore[union-attr]
    dates = pd.date_range(frame.start.min(), frame.start.max(), freq=unit[0].replace("d", "D"))
    every = pd.DataFrame(list(itertools.product(dates, range(8))), columns=list(space)).astype(frame.dtypes)
    said, explainer = fitted.predict(every), mace.Explainer(fitted, space)
    for number in range(5):
        row = frame.iloc[number]
        far = (every.start - row.start).abs() / (frame.start.max() - frame.start.min()) + (every.n - row.n).abs() / 7
        best = far[said != fitted.predict(frame.iloc[[number]])[0]].min() / 2
        answer = explainer.explain(row, certify=True, time_limit=60)
        assert answer.status == "optimal"
        assert answer[0].distance == pytest.approx(best, abs=2e-6)
        assert mace.verify(answer[0].certificate, fitted).valid  # type: ignore[arg-type]


def test_functions_of_dates_say_the_calendar() -> None:
    dates = pd.date_range("1965-01-01", "2001-01-01", freq="13h").to_frame(name="at")
    dates.loc[pd.NaT] = [pd.NaT]
    for function, expected in (
        (mace.years, dates["at"].dt.year),
        (mace.months, dates["at"].dt.month),
        (mace.weekdays, dates["at"].dt.day_of_week),
    ):
        np.testing.assert_array_equal(function(dates)[:, 0], expected.to_numpy(dtype=float))


def test_a_year_of_what_is_no_date_is_refused() -> None:
    frame = pd.DataFrame({"n": [1.0, 2.0, 3.0]})
    model = make_pipeline(FunctionTransformer(np.sqrt), LogisticRegression()).fit(frame, [0, 0, 1])
    model.steps[0] = ("dates", FunctionTransformer(mace.years).fit(frame))
    with pytest.raises(mace.UnsupportedModel, match=r"mace.years is given 'n', which is no date"):
        mace.Explainer(model, mace.FeatureSpace.from_frame(frame))


COLUMNS: dict[str, Any] = {
    **{
        f"datetime64[{unit}]": lambda days, unit=unit: pd.Series(days).astype(f"datetime64[{unit}]")
        for unit in ("s", "ms", "us", "ns")
    },
    "object": lambda days: pd.Series([day.date() for day in days], dtype=object),
    "date32[day][pyarrow]": lambda days: pd.Series([day.date() for day in days], dtype=pd.ArrowDtype(pa.date32())),
    "timestamp[us][pyarrow]": lambda days: pd.Series(days, dtype=pd.ArrowDtype(pa.timestamp("us"))),
}


@pytest.mark.parametrize("dtype", COLUMNS)
def test_columns_of_every_dtype_come_back_as_they_were(dtype: str) -> None:
    days = list(pd.date_range("2022-01-01", periods=40))
    frame = pd.DataFrame({"start": COLUMNS[dtype](days), "n": range(40)})
    space = mace.FeatureSpace.from_frame(frame)
    assert isinstance(space["start"], Date)
    assert space.validate(frame.iloc[3]) == {"start": "2022-01-04", "n": 3}
    assert space.validate(frame.iloc[[3]]) == {"start": "2022-01-04", "n": 3}
    made = space.frame_of([space.point(frame.iloc[3]), space.point(frame.iloc[39])])
    assert made.dtypes.to_dict() == frame.dtypes.to_dict()
    assert made.start.tolist() == [frame.start.tolist()[3], frame.start.tolist()[39]]
    assert mace.FeatureSpace.from_json(space.to_json()) == space
    assert pickle.loads(pickle.dumps(space)) == space
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(3, random_state=0)).fit(
        frame.assign(n=0), frame.n > 20
    )
    answer = mace.Explainer(model, space).explain(frame.iloc[0], constraints=["n stays"])
    assert answer
    assert answer.to_frame().start.dtype == frame.start.dtype
    batch = mace.Explainer(model, space).explain_many(frame.iloc[:3])
    assert [each.status for each in batch] == ["optimal"] * 3


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries(library: str) -> None:
    data = {"day": [datetime.date(2022, 1, 1 + k) for k in range(30)], "n": list(range(30))}
    moments = {"at": [datetime.datetime(2022, 1, 1, 8, k) for k in range(30)], **data}
    frame = pl.DataFrame(moments) if library == "polars" else pa.table(moments)
    space = mace.FeatureSpace.from_frame(frame)
    assert space["day"].unit == "day"  # type: ignore[union-attr]
    assert space["at"].unit == "minute"  # type: ignore[union-attr]
    row = {"at": "2022-01-01 08:03", "day": "2022-01-04", "n": 3}
    assert space.validate(row) == row
    labels = [k > 12 for k in range(30)]
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(3, random_state=0)).fit(frame, labels)
    answer = mace.Explainer(model, space).explain(row, round_to=None)
    back = answer.to_frame(library)
    if library == "polars":
        assert back.schema["day"] == pl.Date
        assert isinstance(back.schema["at"], pl.Datetime)
    else:
        assert pa.types.is_date(back.schema.field("day").type)
        assert pa.types.is_timestamp(back.schema.field("at").type)


def test_units_are_those_of_the_column() -> None:
    base = pd.Timestamp("2024-03-01")
    for unit, shown in (
        ("day", "2024-03-02"),
        ("hour", "2024-03-01 01:00"),
        ("minute", "2024-03-01 00:01"),
        ("second", "2024-03-01 00:00:01"),
        ("millisecond", "2024-03-01 00:00:00.001"),
        ("microsecond", "2024-03-01 00:00:00.000001"),
    ):
        column = base + pd.to_timedelta(np.arange(5), unit=unit)  # type: ignore[call-overload]
        space = mace.FeatureSpace.from_frame(pd.DataFrame({"at": column}))
        assert space["at"].unit == unit  # type: ignore[union-attr]
        assert space.validate({"at": column[1]})["at"] == shown
        assert space.point({"at": shown}) == space.point({"at": column[1]})
        assert space.point({"at": np.datetime64(column[1])}) == space.point({"at": column[1]})
        assert f"counted in {unit}s" in space.guesses["at"]
    fine = pd.DataFrame({"at": pd.to_datetime(["2024-01-01 00:00:00.000000001"] * 2)})
    with pytest.raises(mace.InvalidSpace, match="finer than a microsecond"):
        mace.FeatureSpace.from_frame(fine)
    zoned = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=3, tz="Europe/Berlin")})
    with pytest.raises(mace.InvalidSpace, match="time zone"):
        mace.FeatureSpace.from_frame(zoned)
    with pytest.raises(mace.InvalidSpace, match="time zone"):
        mace.FeatureSpace.from_frame(pl.from_pandas(zoned))
    with pytest.raises(mace.InvalidSpace, match="no value at all"):
        mace.FeatureSpace.from_frame(pd.DataFrame({"at": pd.to_datetime([None, None])}))
    with pytest.raises(mace.InvalidSpace, match="none of number, text, bool, date"):
        mace.FeatureSpace.from_frame(pd.DataFrame({"for": pd.to_timedelta([1, 2], unit="D")}))


def test_the_constructor() -> None:
    made = mace.date("2020-01-01", datetime.date(2024, 12, 31))
    assert (made.low, made.high, made.size) == (18262, 20088, 1827)
    space = mace.FeatureSpace(
        {"start": made, "at": mace.date("2024-01-01 10:30", "2024-01-01 12:00", unit="minute", missing=True)}
    )
    assert str(space) == (
        "FeatureSpace({'start': date('2020-01-01', '2024-12-31'), "
        "'at': date('2024-01-01 10:30', '2024-01-01 12:00', missing=True, unit='minute')})"
    )
    assert mace.FeatureSpace.from_json(space.to_json()) == space
    assert json.loads(space.to_json())["features"]["start"] == {
        "kind": "date", "low": "2020-01-01", "high": "2024-12-31", "unit": "day"
    }  # fmt: skip
    weekly = mace.date("2024-01-01", "2024-02-01", step=7)
    assert [weekly.text(weekly.value_at(k)) for k in range(weekly.size)][:2] == ["2024-01-01", "2024-01-08"]
    for arguments, said in (
        (("2024-13-01", "2024-12-31"), "not in the calendar"),
        (("soon", "2024-12-31"), "no date"),
        (("2024-12-31", "2024-01-01"), "above high"),
        (("2024-01-01 10:30", "2024-12-31"), "finer than a day"),
        ((None, "2024-12-31"), "a date is needed"),
        ((-(10**9), 10), "beyond the years"),
    ):
        with pytest.raises(mace.InvalidSpace, match=said):
            mace.date(*arguments)
    with pytest.raises(mace.InvalidSpace, match="unit is 'week'"):
        mace.date("2024-01-01", "2024-12-31", unit="week")
    with pytest.raises(mace.InvalidSpace, match="accepted: datetime64"):
        mace.date("2024-01-01", "2024-12-31", dtype="float64")
    assert (
        space.validate({"start": "2024-01-01", "at": pd.NaT})["at"]
        != space.validate({"start": "2024-01-01", "at": None})["at"]
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x", "no date"),
        (19000, "a date is needed"),
        (2024.5, "a date is needed"),
        ("2021-02-30", "not in the calendar"),
        ("2021-12-03 10:30", "finer than a day"),
        (pd.Timestamp("2021-12-03", tz="UTC"), "time zone"),
        (None, "no missing state"),
        (pd.NaT, "no missing state"),
        (np.datetime64("NaT"), "no missing state"),
        ("2031-01-01", r"Widen it with FeatureSpace.replace\(start=date\('2021-11-20', '2031-01-01'\)\)"),
    ],
)
def test_what_is_no_date_of_the_range_is_refused(value: Any, said: str) -> None:
    frame, _ = frame_of()
    with pytest.raises(mace.InvalidRow, match=said):
        mace.FeatureSpace.from_frame(frame).validate({"start": value, "n": 3, "kind": "a"})


@pytest.mark.parametrize(
    ("constraint", "first", "last"),
    [
        ("start >= 2021-12-15", "2021-12-15", "2022-01-18"),
        ("start > '2021-12-15'", "2021-12-16", "2022-01-18"),
        ("start < 2021-12-15", "2021-11-20", "2021-12-14"),
        ("2021-12-01 <= start <= 2021-12-24", "2021-12-01", "2021-12-24"),
        ("start between 2021-12-01 and 2021-12-24", "2021-12-01", "2021-12-24"),
        ("start within [2021-12-01, 2021-12-24]", "2021-12-01", "2021-12-24"),
        ({"start": ["2021-12-01", "2021-12-24"]}, "2021-12-01", "2021-12-24"),
        ({"start": [datetime.date(2021, 12, 1), pd.Timestamp("2021-12-24")]}, "2021-12-01", "2021-12-24"),
        ({"start": np.array(["2021-12-01", "2021-12-24"], dtype="datetime64[ns]")}, "2021-12-01", "2021-12-24"),
        (mace.within("start", datetime.date(2021, 12, 1), "2021-12-24"), "2021-12-01", "2021-12-24"),
        ("start == 2021-12-24", "2021-12-24", "2021-12-24"),
        (mace.one_of("start", [datetime.date(2021, 12, 24)]), "2021-12-24", "2021-12-24"),
        ("start in [2021-12-24]", "2021-12-24", "2021-12-24"),
        (mace.increases("start"), "2021-12-10", "2022-01-18"),
        (mace.at_most_change("start", 5), "2021-12-05", "2021-12-15"),
        ("start >= old.start + 30", "2022-01-09", "2022-01-18"),
        ("start - 2021-12-01 >= 3", "2021-12-04", "2022-01-18"),
    ],
)
def test_constraints_name_dates(constraint: Any, first: str, last: str) -> None:
    frame, _ = frame_of()
    space = mace.FeatureSpace.from_frame(frame)
    factual = space.point({"start": "2021-12-10", "n": 3, "kind": "a"})
    made = mace.constraints.as_constraints(constraint, space)
    feature = space["start"]
    assert isinstance(feature, Date)
    held = [
        feature.text(day)
        for day in range(feature.low, feature.high + 1)
        if all(each.bind(space, factual).holds({"start": day, "n": 3, "kind": 0}) for each in made)  # type: ignore[dict-item]
    ]
    assert (held[0], held[-1]) == (first, last)


def test_constraints_with_dates_are_certified_and_bad_ones_refused() -> None:
    frame, labels = frame_of()
    model, space = models(frame, labels)["forest"], mace.FeatureSpace.from_frame(frame)
    explainer, row = mace.Explainer(model, space), {"start": "2021-11-25", "n": 1, "kind": "b"}
    answer = explainer.explain(
        row,
        constraints=[
            "start >= 2021-12-05",
            mace.within("start", "2021-12-01", "2022-01-10"),
            {"start": ["2021-12-01", "2022-01-09"]},
        ],
        certify=True,
    )
    assert "2021-12-05" <= answer[0].values["start"] <= "2022-01-09"  # type: ignore[operator]
    assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]
    again = mace.Certificate.from_json(answer[0].certificate.to_json())  # type: ignore[union-attr]
    assert mace.verify(again, model).valid
    for constraint, said in (
        ("start >= 'soon'", "no date"),
        ("start >= 2021-12-05 10:30", "finer than a day"),
        ("n >= 2021-12-05", "not a number"),
        ("start changes by at most 10%", "a date, which has no share"),
        ({"start": [1, 2]}, "give the first and the last"),
        ({"start": "2021-12-05"}, "give the first and the last"),
    ):
        with pytest.raises(mace.InvalidConstraint, match=said):
            explainer.explain(row, constraints=[constraint])
    assert explainer.explain(row, constraints=["n >= 2 - 1"])
    with pytest.raises(mace.InvalidOption, match="which is date"):
        explainer.explain(row, round_to={"start": 7})


def test_models_that_cannot_take_dates_are_refused_with_the_way() -> None:
    frame, labels = frame_of()
    space = mace.FeatureSpace.from_frame(frame).without("kind")
    numbers = frame[["start", "n"]].assign(start=mace.days(frame[["start"]])[:, 0])
    for model in (RandomForestClassifier(3), LogisticRegression(max_iter=5000)):
        with pytest.raises(mace.UnsupportedModel, match=r"'start' is a date\. Put an encoder before it"):
            mace.Explainer(model.fit(numbers, labels), space)
    before = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["start"]), remainder="passthrough")
    model = make_pipeline(before, RandomForestClassifier(3)).fit(frame[["start", "n"]], labels)
    with pytest.raises(mace.UnsupportedModel, match=r"given 'start', a date\. Make numbers of it first"):
        mace.Explainer(model, space)
    months = make_column_transformer((FunctionTransformer(in_months), ["start"]), remainder="passthrough")
    model = make_pipeline(months, RandomForestClassifier(3, random_state=0)).fit(frame[["start", "n"]], labels)
    with pytest.raises(mace.UnsupportedModel, match="is code of its own"):
        mace.Explainer(model, space)
    found = mace.Explainer(model, space, unread="search").explain({"start": "2021-11-25", "n": 1})
    assert found.status == "feasible"
    assert model.predict(found.to_frame()[["start", "n"]].iloc[[1]])[0] == found[0].prediction
    half = mace.FeatureSpace.from_frame(frame).replace(start=mace.date("2021-11-20", "2022-01-18", unit="hour"))
    with pytest.raises(mace.UnsupportedModel, match="a date in days to the encoder and a date in hours"):
        mace.Explainer(models(frame, labels)["forest"], half)


def in_months(frame: Any) -> Any:
    return np.column_stack([frame.iloc[:, 0].dt.month])


@pytest.mark.parametrize("family", ["forest", "linear"])
def test_moments_within_a_day_become_days_exactly(family: str) -> None:
    rng = np.random.default_rng(1)
    at = pd.Timestamp("2024-03-01 08:00") + pd.to_timedelta(rng.integers(0, 600, 200), unit="min")
    frame = pd.DataFrame({"at": at, "n": rng.integers(0, 3, 200)})
    labels = (frame["at"].dt.hour + frame.n > 13).astype(int)
    before = make_column_transformer((TRANSFORMER, ["at"]), remainder="passthrough")
    estimator: Any = RandomForestClassifier(5, random_state=0) if family == "forest" else LogisticRegression(C=1e4)
    scale = [] if family == "forest" else [StandardScaler()]
    model = make_pipeline(before, *scale, estimator).fit(frame, labels)
    space = mace.FeatureSpace.from_frame(frame)
    assert space["at"].unit == "minute"  # type: ignore[union-attr]
    every = pd.DataFrame(
        list(itertools.product(pd.date_range(frame["at"].min(), frame["at"].max(), freq="min"), range(3))),
        columns=["at", "n"],
    ).astype(frame.dtypes)
    said, explainer = model.predict(every), mace.Explainer(model, space)
    width = (frame["at"].max() - frame["at"].min()) / pd.Timedelta("1min")
    for number in range(4):
        row = frame.iloc[number]
        far = (every["at"] - row["at"]).abs() / pd.Timedelta("1min") / width + (every.n - row.n).abs() / 2
        best = far[said != model.predict(frame.iloc[[number]])[0]].min() / 2
        answer = explainer.explain(row, certify=True, time_limit=60)
        assert answer.status == "optimal"
        assert answer[0].distance == pytest.approx(best, abs=2e-6)
        assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]


def test_answers_show_dates_everywhere(tmp_path: Path) -> None:
    frame, labels = frame_of()
    model, space = models(frame, labels)["forest"], mace.FeatureSpace.from_frame(frame)
    explainer = mace.Explainer(model, space)
    answer = explainer.explain(frame.iloc[0], constraints=["n, kind stay"])
    change = answer[0].changes[0]
    before = f"{frame.start.iloc[0]:%Y-%m-%d}"
    assert change.before == before
    assert f"start: {before} -> {change.after}" in answer.why()
    day, year = frame.start.iloc[0], f"{frame.start.iloc[0]:%B %Y}"
    assert f"instead of {day.day} {year}" in " ".join(answer.letter().split())
    assert json.loads(answer.to_json())["counterfactuals"][0]["values"]["start"] == change.after
    assert mace.Explanation.from_json(answer.to_json())[0].values == answer[0].values
    assert answer.to_frame().start.dtype == frame.start.dtype
    assert answer.plot(population=frame).tracks[0].ticks[0][1] == "2021-11-20"
    region = answer[0].region()
    assert isinstance(region.ends["start"].low, str)
    assert region.ends["start"].low <= change.after <= region.ends["start"].high  # type: ignore[operator]
    table = explainer.cost_table(frame.iloc[0]).set_index("feature")
    assert table.loc["start", "change"] == "+1 day"
    batch = explainer.explain_many(frame.iloc[:5], checkpoint=tmp_path / "c.jsonl")
    assert batch.to_frame().start.str.match(r"\d{4}-\d\d-\d\d").all()
    batch.save(tmp_path / "answers.csv")
    assert pd.read_csv(tmp_path / "answers.csv").start.tolist() == batch.to_frame().start.tolist()
    again = explainer.explain_many(frame.iloc[:5], checkpoint=tmp_path / "c.jsonl")
    assert [each[0].values for each in again] == [each[0].values for each in batch]
    assert explainer.levers(frame.iloc[0])


def test_near_data_typical_and_suggestions_take_dates() -> None:
    frame, labels = frame_of()
    model, space = models(frame, labels)["forest"], mace.FeatureSpace.from_frame(frame)
    explainer = mace.Explainer(model, space)
    for constraint in (mace.near_data(frame, k=3, radius=0.05), mace.typical(frame)):
        answer = explainer.explain(frame.iloc[0], constraints=[constraint], certify=True, time_limit=60)
        assert answer.status == "optimal"
        forests = (
            [constraint] if not isinstance(answer[0].certificate, type(None)) and "typical" in str(constraint) else []
        )
        assert mace.verify(answer[0].certificate, model, forests=forests).valid  # type: ignore[arg-type]
    ends = frame.assign(end=frame.start + pd.to_timedelta(3, unit="D"))
    found = [str(each.constraint) for each in suggest_constraints(ends, mace.FeatureSpace.from_frame(ends))]
    assert "rule('start <= end')" in found
    assert not any("n <= start" in each for each in found)


def test_missing_dates_and_dates_outside() -> None:
    frame, labels = frame_of()
    frame.loc[::7, "start"] = pd.NaT
    space = mace.FeatureSpace.from_frame(frame)
    assert space["start"].missing
    before = make_column_transformer((TRANSFORMER, ["start"]), (OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(before, RandomForestClassifier(5, max_depth=5, random_state=0)).fit(frame, labels)
    explainer = mace.Explainer(model, space, outside="keep")
    for row in (frame.iloc[0], {"start": "2023-05-01", "n": 5, "kind": "a"}):
        answer = explainer.explain(row, certify=True, time_limit=60)
        assert answer.status == "optimal"
        assert mace.verify(answer[0].certificate, model).valid  # type: ignore[arg-type]
    assert answer.reason == "'start' is 2023-05-01, outside its range [2021-11-20, 2022-01-18], and may stay so"
    wide = mace.Explainer(model, space, outside="widen").explain(row)
    assert (
        wide.reason
        == "the range of 'start', [2021-11-20, 2022-01-18], is widened to [2021-11-20, 2023-05-01] for this row"
    )
    with pytest.raises(mace.InvalidRow, match="no date"):
        explainer.explain({"start": "soon", "n": 5, "kind": "a"})


def test_functions_see_numbers_of_units() -> None:
    space = mace.FeatureSpace({"start": mace.date("2021-01-01", "2021-12-31"), "n": mace.integer(0, 9)})
    answer = mace.Explainer(late_or_many, space).explain({"start": "2021-02-01", "n": 0}, constraints=["n stays"])
    assert answer[0].values == {"start": "2021-06-01", "n": 0}


def late_or_many(start: int, n: int) -> bool:
    return start >= 18779 or n > 7

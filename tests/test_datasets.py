"""The data sets have the paper's counts, fit their spaces, and refuse files that are not what they should be."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mace.datasets import Dataset, available, load
from mace.errors import DatasetUnavailable, InvalidOption
from mace.space import Categorical, Integer, Ordinal, Real
from mace.space.encoder import Encoder

EMBEDDED = {
    "adult": "c9505421b1171df066ae7bcff12a88df095bbd8aef35383915fca2dff667e3f1",
    "compas": "cc3a7f9bbe2dc3506458e02d869c9fbe2d0da8f0a6fff959ed7875ec2c882216",
    "german": "11b6bff64e286d9cc8d8dd03a44fecf2cef786f3a5b1d583de3281647a0f8723",
}
COUNTS = {  # rows, features, encoded columns; the paper's but for german
    "adult": (45_222, 12, 51),
    "compas": (5_278, 5, 7),
    "credit": (29_623, 14, 20),
    "german": (1_000, 20, 59),
}
DELAYS = ["PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"]
BILLS = [f"BILL_AMT{month}" for month in range(1, 7)]
PAYMENTS = [f"PAY_AMT{month}" for month in range(1, 7)]
DEFAULT = "default payment next month"


@pytest.fixture(params=sorted(COUNTS))
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return loaded(request.param)


def loaded(name: str) -> Dataset:
    folder = os.environ.get("MACE_DATA")
    if name == "credit" and not (folder and (Path(folder) / "credit.csv").is_file()):
        pytest.skip("MACE_DATA names no folder with credit.csv: the Credit data set is NOT tested")
    return load(name)


def test_the_names_are_those_counted_here() -> None:
    assert available() == tuple(sorted(COUNTS))


def test_rows_features_and_encoded_columns_are_the_papers(dataset: Dataset) -> None:
    encoded = Encoder(dataset.space).fit(dataset.frame).transform(dataset.frame)
    assert (*dataset.frame.shape, encoded.shape[1]) == COUNTS[dataset.name]


def test_the_frame_fits_its_space_tightly(dataset: Dataset) -> None:
    assert dataset.space.names == tuple(dataset.frame.columns)
    for name, feature in dataset.space.items():
        column = dataset.frame[name]
        match feature:
            case Integer(low, high):
                assert column.dtype == "int64"
                assert (low, high) == (column.min(), column.max())
            case Real(low, high):
                assert column.dtype == "float64"
                assert (low, high) == (column.min(), column.max())
            case Ordinal(levels) | Categorical(levels):
                assert all(type(value) is str for value in column)
                assert set(column) == set(levels)


def test_nothing_is_missing_and_labels_share_the_index(dataset: Dataset) -> None:
    assert not dataset.frame.isna().any(axis=None)
    assert not dataset.labels.isna().any()
    assert dataset.frame.index.equals(pd.RangeIndex(len(dataset.frame)))
    assert dataset.labels.index.equals(dataset.frame.index)
    assert dataset.labels.nunique() == 2


def test_columns_are_snake_case(dataset: Dataset) -> None:
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in (*dataset.frame.columns, dataset.labels.name))


def test_about_names_source_licence_labels_and_changes(dataset: Dataset) -> None:
    for heading in ("Source:", "Licence:", f'Labels: "{dataset.labels.name}"', "Changes:", f"{len(dataset.frame):,}"):
        assert heading in dataset.about


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("german", {"good": 700, "bad": 300}),
        ("adult", {1: 11_208, 0: 34_014}),
        ("compas", {1: 2_483, 0: 2_795}),
        ("credit", {1: 23_076, 0: 6_547}),
    ],
)
def test_labels_count_as_documented(name: str, counts: dict[object, int]) -> None:
    assert loaded(name).labels.value_counts().to_dict() == counts


def test_each_load_is_a_fresh_copy_that_may_be_changed() -> None:
    first = load("german")
    first.frame["age"] = 0
    first.frame.loc[0, "housing"] = "rent"
    assert load("german").frame["age"].min() == 19


@pytest.mark.parametrize(("name", "digest"), EMBEDDED.items())
def test_the_embedded_file_is_the_documented_one(name: str, digest: str) -> None:
    packed = files("mace.datasets").joinpath("files", f"{name}.csv.xz").read_bytes()
    assert hashlib.sha256(lzma.decompress(packed)).hexdigest() == digest


def test_only_the_three_sets_are_embedded_and_they_are_small() -> None:
    embedded = list(files("mace.datasets").joinpath("files").iterdir())
    assert sorted(file.name for file in embedded) == [f"{name}.csv.xz" for name in EMBEDDED]
    assert sum(len(file.read_bytes()) for file in embedded) < 600_000


def test_the_papers_order_of_adult_education_is_kept() -> None:
    adult = load("adult")
    levels = adult.space["education_level"].levels
    assert levels[:3] == ("primary-middle", "high school", "HS-grad")
    assert levels[6:] == ("Doctorate", "Assoc-voc", "Assoc-acdm", "Prof-school")


def test_a_level_outside_the_order_makes_a_german_feature_categorical() -> None:
    space = load("german").space
    assert {name for name, feature in space.items() if isinstance(feature, Ordinal)} == {"employment_since", "job"}
    assert isinstance(space["savings"], Categorical)
    assert isinstance(space["checking_status"], Categorical)


def test_the_table_in_the_docs_is_that_of_the_code() -> None:
    text = (Path(__file__).parents[1] / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| `(\w+)`.*\| (embedded|data folder) \|$", text, re.M)
    assert {name: tuple(map(int, counts)) for name, *counts, _, _ in rows} == COUNTS
    assert {name for name, *_, source in rows if source == "embedded"} == set(EMBEDDED)
    assert {name: label for name, *_, label, _ in rows if name in EMBEDDED} == {
        name: load(name).labels.name for name in EMBEDDED
    }


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidOption, match="Did you mean 'german'"):
        load("germann")


# --- Credit without its file: made-up people in the published columns


def people(count: int, *, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "ID": np.arange(count),
            "LIMIT_BAL": random.integers(1, 30, count) * 10_000,
            "SEX": random.integers(1, 3, count),
            "EDUCATION": random.integers(0, 7, count),
            "MARRIAGE": random.integers(0, 4, count),
            "AGE": random.choice([21, 24, 25, 39, 40, 59, 60, 79], count),
            **{name: random.integers(-2, 4, count) for name in DELAYS},
            **{name: random.integers(-20_000, 300_000, count) for name in BILLS},
            **{name: random.integers(0, 100_000, count) for name in PAYMENTS},
            DEFAULT: random.integers(0, 2, count),
        }
    )


def load_credit(folder: Path, table: pd.DataFrame, **options: object) -> Dataset:
    table.to_csv(folder / "credit.csv", index=False, **options)
    return load("credit", data_home=folder)


def prepare_slowly(person: pd.Series) -> dict[str, object]:
    """Prepare one person as the paper words it, one line a feature."""
    dollars = {name: round(person[name] / 32.75 / 10) * 10 for name in ("LIMIT_BAL", *BILLS, *PAYMENTS)}
    bills, payments = [dollars[name] for name in BILLS], [dollars[name] for name in PAYMENTS]
    shares = [bill / dollars["LIMIT_BAL"] for bill in bills]
    overdue = [max(int(person[name]), 0) for name in DELAYS]
    age = int(person["AGE"])
    return {
        "is_male": "yes" if person["SEX"] == 1 else "no",
        "is_married": "yes" if person["MARRIAGE"] == 1 else "no",
        "age_group": "under 25" if age < 25 else "25 to 39" if age < 40 else "40 to 59" if age < 60 else "60 and over",
        "education_level": {1: "graduate", 2: "university", 3: "high school"}.get(int(person["EDUCATION"]), "other"),
        "max_bill_over_6_months": float(max(0, *bills)),
        "max_payment_over_6_months": float(max(0, *payments)),
        "months_with_zero_balance": sum(payment > bill for payment, bill in zip(payments, bills, strict=True)),
        "months_with_low_spending": sum(share < 0.20 for share in shares),
        "months_with_high_spending": sum(share > 0.80 for share in shares),
        "most_recent_bill": float(max(0, bills[0])),
        "most_recent_payment": float(max(0, payments[0])),
        "total_overdue_counts": sum(is_late for is_late, _ in groupby(overdue, key=lambda months: months > 0)),
        "total_months_overdue": sum(overdue),
        "has_history_of_overdue_payments": "yes" if any(overdue) else "no",
    }


def test_credit_is_prepared_person_by_person_as_the_paper_says(tmp_path: Path) -> None:
    table = people(400)
    credit = load_credit(tmp_path, table)
    kept = table[table["MARRIAGE"].isin([1, 2])]
    assert 0 < len(kept) < len(table)
    assert credit.frame.to_dict("records") == [prepare_slowly(person) for _, person in kept.iterrows()]
    assert credit.labels.tolist() == (1 - kept[DEFAULT]).tolist()


def test_credit_spending_at_exactly_a_fifth_or_four_fifths_is_neither_low_nor_high(tmp_path: Path) -> None:
    table = people(1).assign(MARRIAGE=1, LIMIT_BAL=32_750)  # 1,000 dollars
    table[BILLS] = [[6_550, 26_200, 6_222, 26_528, 6_550, 26_200]]  # 200, 800, 190, 810, 200, 800 dollars
    frame = load_credit(tmp_path, table).frame
    assert frame[["months_with_low_spending", "months_with_high_spending"]].to_numpy().tolist() == [[1, 1]]


def test_the_data_folder_may_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load_credit(tmp_path, people(50))
    monkeypatch.setenv("MACE_DATA", str(tmp_path))
    pd.testing.assert_frame_equal(load("credit").frame, expected.frame)


def test_a_copy_saved_by_a_spreadsheet_is_read_alike(tmp_path: Path) -> None:
    plain = load_credit(tmp_path, people(50))
    saved = load_credit(tmp_path, people(50).astype(float), encoding="utf-8-sig", lineterminator="\r\n")
    pd.testing.assert_frame_equal(saved.frame, plain.frame)
    pd.testing.assert_series_equal(saved.labels, plain.labels)


def test_embedded_sets_do_not_look_in_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "german.csv").write_text("nonsense")
    assert len(load("german", data_home=tmp_path).frame) == 1_000


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_data_folder_credit_says_what_to_do(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MACE_DATA", raising=False)
    if value is not None:
        monkeypatch.setenv("MACE_DATA", value)
    with pytest.raises(DatasetUnavailable, match=r"no data folder is given\. Pass data_home=.* MACE_DATA"):
        load("credit")


def test_a_folder_without_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match=re.escape(str(tmp_path / "credit.csv"))):
        load("credit", data_home=tmp_path)


def test_missing_columns_are_listed(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="lacks 2 of 24 columns: 'AGE', 'PAY_AMT3'"):
        load_credit(tmp_path, people(5).drop(columns=["AGE", "PAY_AMT3"]))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("SEX", 3, "'SEX' is 3 in data row 2 .* must be one of 1, 2"),
        ("SEX", "male", "'SEX' is 'male' in data row 2 .* must be one of 1, 2"),
        ("AGE", 24.5, "'AGE' is 24.5 in data row 2 .* must be a whole number"),
        ("AGE", "young", "'AGE' is 'young' in data row 2 .* must be a whole number"),
        ("AGE", None, "'AGE' is empty in data row 2"),
        ("AGE", float("inf"), "'AGE' is inf in data row 2"),
        ("BILL_AMT2", 1e300, "'BILL_AMT2' is 1e.300 in data row 2"),
        (DEFAULT, None, "'default payment next month' is empty in data row 2"),
    ],
)
def test_an_impossible_value_is_named_with_its_row(tmp_path: Path, column: str, value: object, message: str) -> None:
    table = people(5).astype(object)
    table.loc[1, column] = value
    with pytest.raises(DatasetUnavailable, match=message):
        load_credit(tmp_path, table)


@pytest.mark.parametrize("content", [b"", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\xff\xfe", b'a,b\n1,2,3\n"'])
def test_a_file_that_is_not_comma_separated_text_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "credit.csv").write_bytes(content)
    with pytest.raises(DatasetUnavailable, match=r"credit\.csv is not comma-separated text"):
        load("credit", data_home=tmp_path)


def test_a_file_without_usable_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="a header and no rows"):
        load_credit(tmp_path, people(0))
    with pytest.raises(DatasetUnavailable, match="no row with MARRIAGE 1 or 2"):
        load_credit(tmp_path, people(5).assign(MARRIAGE=3))

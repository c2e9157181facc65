"""The data sets have the paper's counts, fit their spaces, and refuse files that are not what they should be."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import http.server
import io
import lzma
import os
import re
import sys
import threading
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from itertools import groupby
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mace.datasets import Dataset, available, credit, german, load
from mace.datasets.source import Download
from mace.errors import DatasetUnavailable, InvalidOption, MissingPackage
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
    text = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| `(\w+)`.*\| (embedded|data folder)[^|]*\|$", text, re.M
    )
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
    with pytest.raises(DatasetUnavailable, match=r"credit\.csv is not a file of this data set"):
        load("credit", data_home=tmp_path)


def test_a_file_without_usable_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="a header and no rows"):
        load_credit(tmp_path, people(0))
    with pytest.raises(DatasetUnavailable, match="no row with MARRIAGE 1 or 2"):
        load_credit(tmp_path, people(5).assign(MARRIAGE=3))


# A user's own copy, as its publisher gives it.

SHEET = Path(__file__).parents[1] / "files" / "invented_people.xls"  # six random people in the publisher's layout


def embedded(name: str) -> str:
    return lzma.decompress(files("mace.datasets").joinpath("files", f"{name}.csv.xz").read_bytes()).decode()


def same(first: Dataset, second: Dataset) -> None:
    pd.testing.assert_frame_equal(first.frame, second.frame)
    pd.testing.assert_series_equal(first.labels, second.labels)


def test_adult_in_its_two_published_parts(tmp_path: Path) -> None:
    lines = [line.replace(",", ", ") for line in embedded("adult").splitlines()[1:]]
    unknown = lines[0].replace("State-gov", "?")
    (tmp_path / "adult.data").write_text("\n".join([*lines[:100], unknown, *lines[100:30_162]]) + "\n\n")
    test_part = ["|1x3 Cross validator", *(f"{line}." for line in lines[30_162:])]
    (tmp_path / "adult.test").write_text("\n".join(test_part) + "\n\n")
    ours = load("adult")
    same(load("adult", files=[tmp_path / "adult.data", tmp_path / "adult.test"]), ours)
    with zipfile.ZipFile(tmp_path / "adult.zip", "w") as archive:
        for name in ("adult.test", "adult.data"):  # rows come in the publisher's order, not the archive's
            archive.write(tmp_path / name, name)
    same(load("adult", files=tmp_path / "adult.zip"), ours)


def test_german_in_its_published_codes(tmp_path: Path) -> None:
    lines = [
        "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1",
        "A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2",
    ]
    (tmp_path / "german.data").write_text("\n".join(lines) + "\n")
    read = load("german", files=tmp_path / "german.data")
    ours = load("german")
    assert read.frame.to_dict("records") == ours.frame.head(2).to_dict("records")
    assert read.labels.tolist() == ["good", "bad"]


def test_every_german_label_has_one_published_code(tmp_path: Path) -> None:
    rows = [line.split(",") for line in embedded("german").splitlines()]
    codes = [{label: code for code, label in german._LABELS.get(name, {}).items()} for name in rows[0]]
    coded = [[known.get(cell, cell) for known, cell in zip(codes, row, strict=True)] for row in rows[1:]]
    assert all(cell.isdigit() or re.fullmatch(r"A\d+", cell) for row in coded for cell in row)
    (tmp_path / "german.data").write_text("\n".join(map(" ".join, coded)))
    same(load("german", files=tmp_path / "german.data"), load("german"))


def test_compas_with_the_columns_that_we_leave_out(tmp_path: Path) -> None:
    table = pd.read_csv(io.StringIO(embedded("compas")))
    table.insert(1, "name", "someone")
    table.insert(14, "priors_count.1", 0)
    table.to_csv(tmp_path / "compas-scores-two-years.csv", index=False)
    same(load("compas", files=tmp_path / "compas-scores-two-years.csv"), load("compas"))


def test_credit_under_all_its_headers(tmp_path: Path) -> None:
    table = people(50)
    plain = load_credit(tmp_path, table)
    names = dict(zip(table.columns[1:], [*(f"X{number}" for number in range(1, 24)), "Y"], strict=True))
    same(load_credit(tmp_path, table.rename(columns=names)), plain)
    same(load_credit(tmp_path, table.rename(columns={DEFAULT: "default.payment.next.month"})), plain)
    same(load_credit(tmp_path, table.rename(columns={"PAY_0": "PAY_1"})), plain)


def test_credit_as_a_spreadsheet_alone_in_an_archive_and_in_the_data_folder(tmp_path: Path) -> None:
    name = "default of credit card clients.xls"
    read = load("credit", files=SHEET)
    same(read, load_credit(tmp_path, people(6, seed=3).assign(MARRIAGE=1)))
    with zipfile.ZipFile(tmp_path / "credit.zip", "w") as archive:
        archive.write(SHEET, name)
    same(load("credit", files=tmp_path / "credit.zip"), read)
    (tmp_path / "credit.csv").unlink()
    (tmp_path / name).write_bytes(SHEET.read_bytes())
    same(load("credit", data_home=tmp_path), read)


def test_own_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match="no file is given"):
        load("adult", files=[])
    with pytest.raises(DatasetUnavailable, match=r"nowhere\.csv cannot be read"):
        load("adult", files=tmp_path / "nowhere.csv")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(DatasetUnavailable, match=r"empty\.zip does not hold 'adult\.data'"):
        load("adult", files=tmp_path / "empty.zip")
    (tmp_path / "broken.zip").write_bytes(b"nonsense")
    with pytest.raises(DatasetUnavailable, match=r"broken\.zip cannot be read"):
        load("adult", files=tmp_path / "broken.zip")
    (tmp_path / "broken.xls").write_bytes(SHEET.read_bytes()[:600])
    with pytest.raises(DatasetUnavailable, match=r"broken\.xls is not a file of this data set"):
        load("credit", files=tmp_path / "broken.xls")


# The download, from a server on this machine.


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve a folder under the URL of the Credit data set, with an empty cache."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.delenv("MACE_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        serve(monkeypatch, f"http://127.0.0.1:{running.server_port}/data.csv", people(50))
        yield folder
        running.shutdown()


def serve(monkeypatch: pytest.MonkeyPatch, url: str, table: pd.DataFrame) -> None:
    digest = hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode()).hexdigest()
    monkeypatch.setattr(load.__globals__["_RECIPES"], "load", lambda _: replaced(Download(url, digest)))


def replaced(download: Download) -> object:
    return dataclasses.replace(credit.RECIPE, download=download)


def test_credit_is_downloaded_once_and_its_hash_is_that_of_the_text_we_make(server: Path, tmp_path: Path) -> None:
    table = people(50)
    names = [*(f"X{number}" for number in range(1, 24)), "Y"]
    table.set_axis(["ID", *names], axis="columns").to_csv(server / "data.csv", index=False)
    first = load("credit")
    (server / "data.csv").unlink()
    same(load("credit"), first)
    same(load_credit(tmp_path, table), first)


def test_another_file_than_the_known_one_is_refused_and_not_kept(server: Path) -> None:
    people(50, seed=1).to_csv(server / "data.csv", index=False)
    for _ in range(2):
        with pytest.raises(DatasetUnavailable, match=r"could not be downloaded .*SHA256.*data_home="):
            load("credit")


def test_no_connection_is_said(server: Path) -> None:
    with pytest.raises(DatasetUnavailable, match=r"could not be downloaded from http://127.*404.*MACE_DATA"):
        load("credit")


def test_without_pooch_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MACE_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackage, match=r"pip install 'mace-xai\[download\]'.*data_home="):
        load("credit")


def test_the_known_hash_is_that_of_the_publishers_file(tmp_path: Path) -> None:
    folder = os.environ.get("MACE_DATA")
    if not (folder and (Path(folder) / "credit.csv").is_file()):
        pytest.skip("MACE_DATA names no folder with credit.csv: the hash of its download is NOT tested")
    content = (Path(folder) / "credit.csv").read_bytes()
    text = credit.RECIPE.published.read(content).to_csv(index=False, lineterminator="\n")
    assert credit.RECIPE.download is not None
    assert hashlib.sha256(text.encode()).hexdigest() == credit.RECIPE.download.sha256


@pytest.mark.parametrize("name", ["adult", "german", "compas"])
def test_answers_about_reals_have_the_decimals_of_the_data(name: str) -> None:
    data = load(name)
    reals = [each for each, feature in data.space.items() if isinstance(feature, Real)]
    assert set(data.space.round_to) == set(reals)
    for each, step in data.space.round_to.items():
        assert not (data.frame[each] % step).any()
    assert f"{len(data.frame)} rows, {len(data.space)} features" in repr(data)

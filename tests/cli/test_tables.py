"""CSV files: what is not a table is refused with its line; what is written opens in a spreadsheet without running."""

from __future__ import annotations

import csv
import io
import math
import time
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.batch.sinks import escaped, is_number
from mace.cli.files import count_rows, read_people, read_row, read_rows

SPACE = mace.FeatureSpace(
    {"a": mace.integer(0, 100), "b": mace.real(0, 100, missing=True), "c": mace.categorical(["x", "y, z", "\u00e9"])}
)


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    return path


SPREADSHEETS = {
    "semicolons, a byte order mark and carriage returns": b"\xef\xbb\xbfa;b;c\r\n1;2.5;y, z\r\n3;;x\r\n",
    "tabs": b"a\tb\tc\n1\t2.5\ty, z\n3\t\tx\n",
    "quoted semicolons": b'"a";"b";"c"\n1;2.5;"y, z"\n3;;"x"\n',
}


@pytest.mark.parametrize("content", SPREADSHEETS.values(), ids=SPREADSHEETS)
def test_tables_that_spreadsheets_write_are_read(content: bytes, tmp_path: Path) -> None:
    first, second = read_rows(written(tmp_path, content), SPACE)
    assert first == {"a": 1, "b": 2.5, "c": "y, z"}
    assert second["a"] == 3
    assert math.isnan(second["b"])


def test_a_decimal_comma_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = written(tmp_path, b"a;b;c\n1;2,5;x\n")
    with pytest.raises(mace.InvalidRow, match=r"'b' is '2,5', a str; .* Write 2\.5, with a point"):
        SPACE.point(read_row(path, 0, SPACE))
    with pytest.raises(mace.InvalidRow, match=r"line 2: 4 cells, .* a semicolon stands between quotes"):
        list(read_rows(written(tmp_path, b"a;b;c\n1;2;3;x\n"), SPACE))


BAD = {
    "one cell too many in every line": (b"a,b,c\n10,40,45,7\n", "line 2: 4 cells, and 3 columns"),
    "one cell too few": (b"a,b,c\n1,2,x\n1,2\n", "line 3: 2 cells"),
    "a comma without quotes": (b"a,b,c\n1,2,y, z\n", "line 2: 4 cells"),
    "a trailing comma": (b"a,b,c\n1,2,x,\n", "line 2: 4 cells"),
    "after a cell of several lines": (b'a,b,c\n1,2,"x\n\n\n"\n1,2\n', "line 6: 2 cells"),
    "a column twice": (b"a,b,c,b\n1,2,x,3\n", "line 1: the column 'b' stands twice"),
    "a NUL": (b"a,b,c\n1,2,x\n1,\0,x\n", "line 3: a NUL"),
    "latin-1": ("a,b,c\n1,2,x\n1,2,\u00e9\n".encode("latin-1"), "line 3: is not UTF-8"),
    "utf-16": ("a,b,c\n1,2,x\n".encode("utf-16"), "line 1: a NUL"),
    "a quote that is not closed": (b'a,b,c\n1,2,x\n1,2,"x\n1,2,x\n', "line 3: a quote is opened and not closed"),
    "text after a quoted cell": (b'a,b,c\n1,2,"x"y\n', "line 2"),
    "a quote that is not closed in a long file": (b'a,b,c\n1,"2,x\n' + b"1,2,x\n" * 50_000, "line 2: a cell of more than"),
    "carriage returns alone": (b"a,b,c\r1,2,x\r", "line 1: a carriage return"),
    "nothing": (b"", "is empty"),
    "a line of 20 MB": (b"a,b,c\n" + b"1" * 20_000_000, "line 2: longer than"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_a_table_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = written(tmp_path, content)
    for read in (lambda: list(read_rows(path, SPACE)), lambda: count_rows(path), lambda: read_people(path, SPACE, [])):
        with pytest.raises(mace.InvalidRow) as caught:
            read()
        assert message in str(caught.value)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", ".", "nowhere.csv"])
def test_only_a_regular_file_is_read(path: str) -> None:
    with pytest.raises(mace.InvalidRow, match="cannot read"):
        list(read_rows(Path(path), SPACE))


def test_a_byte_order_mark_empty_lines_and_line_ends_of_any_kind_are_fine(tmp_path: Path) -> None:
    for content in (
        b'\xef\xbb\xbfa,b,c\r\n1,2,x\r\n\r\n3,,"y, z"\r\n',
        b'a,b,c\n\n1,2,x\n3,,"y, z"',
        b'b,c,id,a\n2,x,7,1\n,"y, z",8,3\n',
    ):
        rows = list(read_rows(written(tmp_path, content), SPACE))
        assert rows[0] == {"a": 1.0, "b": 2.0, "c": "x"}
        assert rows[1]["c"] == "y, z"
        assert math.isnan(rows[1]["b"])  # type: ignore[arg-type]


NUMBERS = ["1", "-1", "+1.5", ".5", "5.", "1e3", "1E-3", " 7 ", "007"]
OTHERS = [
    "2_4",
    "1e5_0",
    "\u0661\u0662",
    "\uff11",
    "\u00b2",
    "inf",
    "-inf",
    "Infinity",
    "0x10",
    "1,5",
    "1 5",
    "--1",
    "1e",
]


def test_numbers_are_plain_decimal_literals(tmp_path: Path) -> None:
    space = mace.FeatureSpace({"x": mace.real(-1e9, 1e9)})
    path = written(tmp_path, ("x\n" + "\n".join(f'"{text}"' for text in [*NUMBERS, *OTHERS])).encode())
    cells = [row["x"] for row in read_rows(path, space)]
    assert cells[: len(NUMBERS)] == [float(text) for text in NUMBERS]
    for text, cell in zip(OTHERS, cells[len(NUMBERS) :], strict=True):
        assert cell == text, "it is not a number, and the row is refused"
        with pytest.raises(mace.InvalidRow, match="'x'"):
            space.point({"x": cell})


@given(st.text())
def test_what_counts_as_a_number_is_what_decimal_and_float_read_too(text: str) -> None:
    if is_number(text):
        float(text)
        assert text.isascii()
        assert "_" not in text


def test_columns_that_make_groups_are_read_with_the_same_reader(tmp_path: Path) -> None:
    path = written(tmp_path, b'a,b,c,town\n1,2,x,"A\nB"\n3,4,x,\n')
    assert read_people(path, SPACE, ["town", "c"])["town"].tolist() == ["A\nB", ""]
    with pytest.raises(mace.InvalidOption, match=r"no column 'twon'. Did you mean 'town'"):
        read_people(path, SPACE, ["twon"])


def test_a_row_that_is_not_there_is_told_with_their_number(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b,c\n1,2,x\n3,4,x\n")
    assert read_row(path, 1, SPACE)["a"] == 3
    with pytest.raises(mace.InvalidRow, match="has 2 rows; there is no row 2"):
        read_row(path, 2, SPACE)


def test_a_hundred_thousand_rows_are_read_within_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b,c\n" + b'1,2.5,"y, z"\n' * 100_000)
    started = time.process_time()
    assert sum(1 for _ in read_rows(path, SPACE)) == count_rows(path) == 100_000
    assert time.process_time() - started < 5


# ---- writing

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "=cmd|' /C calc'!A0",
    "\uff1d1",
    "'=1",
    "''=1",
    "-",
    "-x",
]


def test_what_a_spreadsheet_would_run_is_escaped_and_numbers_are_not() -> None:
    for text in FORMULAS:
        assert escaped(text) == f"'{text}"
    for text in ("-1", "+1.5", "-1e-7", "own", "", "'", "it's", "a=b", "1-2"):
        assert escaped(text) == text


@given(st.text(alphabet="'=+-@\t\r\n1.ae"), st.text(alphabet="'=+-@\t\r\n1.ae"))
def test_no_two_texts_are_escaped_alike(one: str, other: str) -> None:
    assert (escaped(one) == escaped(other)) == (one == other)


@pytest.fixture(scope="module")
def hostile() -> mace.Explainer:
    """An explainer whose features, levels and labels are formulas."""
    space = mace.FeatureSpace({"=name": mace.categorical(FORMULAS[:6]), "-x": mace.integer(-9, 9)})
    frame = pd.DataFrame({"=name": [FORMULAS[x % 6] for x in range(-9, 10)], "-x": range(-9, 10)})
    labels = ["=good" if x >= -3 else "@bad" for x in frame["-x"]]
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0)).fit(frame, labels)
    return mace.Explainer(model, space)


def test_answers_in_csv_run_nothing_and_are_read_back(hostile: mace.Explainer, tmp_path: Path) -> None:
    rows = [{"=name": level, "-x": -9} for level in FORMULAS[:6]]
    hostile.explain_many(rows).save(path := tmp_path / "answers.csv")
    cells = [cell for line in csv.reader(io.StringIO(path.read_text(), newline="")) for cell in line]
    assert not [cell for cell in cells if cell[:1] in set("=+-@\t\r") and not is_number(cell)]
    assert "-3" in cells, "a negative number stays one"
    back = list(read_rows(path, hostile.space))
    assert back == [{"=name": level, "-x": -3.0} for level in FORMULAS[:6]]
    assert pd.read_csv(path)["'-x"].tolist() == [-3] * 6

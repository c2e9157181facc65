"""The command line against ugly files and options: an answer, or a few words and exit 2; never a traceback, within seconds."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

SPACE = mace.FeatureSpace(
    {"a": mace.integer(0, 9), "b": mace.real(0, 9), "c": mace.categorical(["x", "y"]), "d": mace.ordinal(["lo", "hi"])}
)
GOOD = SPACE.to_dict()
CHARACTERS = b'",\n\r\0\xff=\xe9;\t'
PIECES = [b'"', b",", b"\n", b"\0", b"\xc3", b'""', b"1_0", b"\xd9\xa1", b"1e999", b"nan", b"inf", b"-", b"'=1"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its space, and rows."""
    path = tmp_path_factory.mktemp("ugly")
    rows = [(i % 10, float(i % 7), "xy"[i % 2], ["lo", "hi"][i % 3 == 0]) for i in range(100)]
    frame = pd.DataFrame(rows, columns=list(SPACE))
    model = make_pipeline(mace.Encoder(SPACE), DecisionTreeClassifier(max_depth=4, random_state=0))
    skops.io.dump(model.fit(frame, (frame["a"] > 5).astype(int)), path / "model.skops")
    (path / "space.json").write_text(SPACE.to_json())
    frame.head(6).to_csv(path / "rows.csv", index=False)
    return path


def check(home: Path, capsys: pytest.CaptureFixture[str], command: str, *options: object, **files: object) -> int:
    """Run a command, and return its exit code if it behaves."""
    paths = {"data": home / "rows.csv", "model": home / "model.skops", "space": home / "space.json", **files}
    given = [text for name, path in paths.items() for text in (f"--{name}", str(path))]
    started = time.process_time()
    code = run([command, *given, *map(str, options)])
    error = capsys.readouterr().err
    assert code in (0, 1, 2, 3), error
    assert time.process_time() - started < 20
    assert "Traceback" not in error
    assert len(error) < 2500
    assert code != 2 or error
    return code


def spaces() -> Iterator[bytes]:
    ugly: list[Any] = [
        None,
        [],
        {},
        1,
        1.5,
        "x",
        True,
        "\ud800",
        [[]],
        {"kind": {}},
        float("inf"),
        [1, 1],
        {"kind": ["real"]},
    ]
    for value in ugly:
        changed: list[Any] = [
            {**GOOD, "features": value},
            {**GOOD, "features": {"a": value}},
            {**GOOD, "version": value},
        ]
        number = GOOD["features"]["a"]
        changed += [
            {**GOOD, "features": {**GOOD["features"], "a": {**number, key: value}}}
            for key in ("low", "high", "step", "missing", "kind", "levels")
        ]
        yield from (json.dumps(each).encode() for each in changed)
    for name, feature in {
        "c": {"kind": "categorical", "levels": [str(i) for i in range(20_000)]},
        "a": {"kind": "integer", "low": -(10**39), "high": 10**39},
        "b": {"kind": "real", "low": 0, "high": 9, "step": 1e-300},
        "x" * 100_000: {"kind": "real", "low": 0, "high": 9},
    }.items():
        yield json.dumps({**GOOD, "features": {**GOOD["features"], name: feature}}).encode()
    yield from (b"", b"\0", b"[" * 100_000, b"\xff\xfe", b"NaN", b'{"version": 1, "version": 1, "features": {}}')


def test_ugly_spaces(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = []
    for content in spaces():
        (tmp_path / "space.json").write_bytes(content)
        codes.append(check(home, capsys, "explain", space=tmp_path / "space.json"))
    assert codes.count(2) > 100


def test_ugly_rows(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(0)
    codes = []
    for number in range(60):
        content = bytearray((home / "rows.csv").read_bytes())
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(content))
            match rng.randrange(3):
                case 0:
                    content[place] = rng.choice(CHARACTERS)
                case 1:
                    del content[place : place + rng.randint(1, 5)]
                case _:
                    content[place:place] = rng.choice(PIECES)
        data = tmp_path / "rows.csv"
        data.write_bytes(content)
        command, options = rng.choice(
            [
                ("explain", ()),
                ("batch", ("--out", tmp_path / f"{number}.csv")),
                ("audit", ("--target", 1, "--resamples", 5, "--groups", "c")),
            ]
        )
        codes.append(check(home, capsys, command, *options, data=data))
    assert codes.count(2) > 20


LONG = "+".join(["b"] * 9000)
OPTIONS: list[tuple[object, ...]] = [
    *(("--count", number) for number in (99999999999, -1, 0)),
    *(("--accuracy", number) for number in ("nan", "1e-400", "inf")),
    *(("--time-limit", number) for number in ("nan", "inf", "-1")),
    *(("--row", number) for number in (10**23, -1)),
    *(("--fix", names) for names in ("a" * 10_000, "a," * 5000, "[red]", ",")),
    *(("--target", label) for label in ("\x1b[31m", "", "[/]")),
    *(("--rule", text) for text in ("", "(" * 1000, f"a <= {LONG}", "a == '\ud800'", "a/0 <= 1", "a <= b/0", "c == '?'")),
    *(("--rule", text) for text in ("a changes in steps of 1e-300", "at most 1e308 features change", "a <= 1e308*1e308*b")),
    ("--rule", "a in [" + ",".join(["1"] * 20_000) + "]"),
    *(("--cause", text) for text in ("a", "=b", "a = a", f"a = {LONG}", "a=" + "(" * 500 + "b" + ")" * 500, "a=9**9**9**9")),
    *(("--certificate", path) for path in ("/dev/full", "/proc/x", ".", "no/such/folder.json", "x" * 300)),
    *(("--constraints", path) for path in ("/dev/zero", ".", "none.toml")),
    ("--distance", "l1" * 1000),
    ("--solver", "\0x"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(OPTIONS)))
def test_ugly_options(home: Path, capsys: pytest.CaptureFixture[str], number: int) -> None:
    check(home, capsys, "explain", *OPTIONS[number])


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom", "/dev/null", "."])
@pytest.mark.parametrize("kind", ["space", "data"])
def test_devices_and_folders_are_no_files(home: Path, capsys: pytest.CaptureFixture[str], kind: str, path: str) -> None:
    assert check(home, capsys, "explain", **{kind: path}) == 2


def test_ugly_places_for_answers_and_reports(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder.csv").mkdir()
    places = [
        tmp_path / "folder.csv",
        tmp_path / ("x" * 300 + ".csv"),
        tmp_path / ("x" * 245 + ".csv"),
        "/proc/x.csv",
    ]
    for place in places:
        assert check(home, capsys, "batch", "--out", place) == 2
    for jobs in (10**20, 5000):
        assert check(home, capsys, "batch", "--out", tmp_path / "a.csv", "--jobs", jobs) == 2
    for options in (("--rows", -5), ("--rows", 0), ("--seed", -1), ("--resamples", 10**11), ("--out", "/proc/x.json")):
        assert check(home, capsys, "audit", "--target", 1, *options) == 2
    (tmp_path / "report.json").symlink_to("/dev/full")
    assert check(home, capsys, "audit", "--target", 1, "--resamples", 5, "--out", tmp_path / "report.json") == 2


@pytest.mark.skipif(os.name != "posix", reason="a pipe that nobody reads is a matter of POSIX")
@pytest.mark.parametrize("command", ["list models", "explain", "explain --json", "version", "reasons"])
def test_nobody_who_reads_on_is_no_proved_no(home: Path, command: str) -> None:
    files = [
        f"--{name}={home / file}"
        for name, file in (("data", "rows.csv"), ("model", "model.skops"), ("space", "space.json"))
    ]
    given = [*command.split(), *(files if command.startswith(("explain", "reasons")) else [])]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", "from mace.cli import main; main()", *given],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert ended.returncode == 0, ended.stderr
    assert "Error" not in ended.stderr

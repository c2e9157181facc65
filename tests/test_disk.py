"""Files: read within bounds, written whole or not at all, for their owner alone."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import mace
from mace.disk import parse_json, read_bytes, whole_file, whole_text


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_for_its_owner_alone_and_an_old_one_keeps_its_permissions(tmp_path: Path) -> None:
    for name, before, after in (("new", None, 0o600), ("shared", 0o664, 0o664), ("open", 0o604, 0o604)):
        path = tmp_path / name
        if before is not None:
            path.write_text("old")
            path.chmod(before)
        with whole_text(path) as file:
            file.write("new")
        assert (path.read_text(), mode(path)) == ("new", after)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["new", "open", "shared"]


def test_a_file_that_fails_half_way_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole_text(path) as file:
        file.write(f"new {1 / 0}")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["answers"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with whole_text(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    code = "import os, sys; from mace.disk import whole_file\nwith whole_file(sys.argv[1]): os.kill(os.getpid(), 9)"
    path = tmp_path / "an[s]wers*.csv"
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    with whole_file(path):
        (own,) = tmp_path.iterdir()
        assert own != left
        with whole_file(path):
            assert own.exists()
            assert len(list(tmp_path.iterdir())) == 2
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("target", ["/dev/full", "folder", "no/such/file", "/proc/version", "x" * 300])
def test_what_cannot_be_written_is_a_mace_error_that_names_the_file(target: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / target
    with pytest.raises(mace.InvalidOption, match="cannot write") as caught, whole_text(path) as file:
        file.write("much" * 100_000)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder"]


def test_a_file_size_limit_is_a_mace_error_and_leaves_nothing(tmp_path: Path) -> None:
    code = """
import sys, mace
from mace.disk import whole_text
try:
    with whole_text(sys.argv[1]) as file:
        for _ in range(1000):
            file.write("much" * 1000)
except mace.InvalidOption as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "file")],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert "cannot write" in result.stdout
    assert "File too large" in result.stdout
    assert not list(tmp_path.iterdir())


def test_only_regular_files_within_the_bound_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    os.mkfifo(tmp_path / "pipe")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    for path, most in ((tmp_path / "file", 4), (Path("/dev/zero"), 9), (tmp_path / "pipe", 9), (tmp_path, 9)):
        with pytest.raises(OSError, match=r"larger than|device or a pipe|folder"):
            read_bytes(path, most)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": {"a": 1}, "a": 2}', "'a' twice"),
        ('{"a": [{"b": 1, "b": 1}]}', "'b' twice"),
        ("NaN", "not a number"),
        ("[-Infinity]", "not a number"),
        ("1e999", "too large"),
        ("1" * 10_000, "too long"),
        ("[" * 41 + "]" * 41, "40 deep"),
        ("[" * 100_000, "40 deep"),
        ('{"a":' * 3000 + "1" + "}" * 3000, "40 deep"),
        ('"\\ud800"', "surrogate"),
        (b'["\\uD83d"]', "surrogate"),
        (b"\xff\xfe\x00", "decode"),
        ("", "Expecting"),
        ("\x00", "Expecting"),
    ],
)
def test_json_that_means_two_things_or_too_much_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text)


def test_plain_json_is_read() -> None:
    deep = "[" * 40 + "]" * 40
    assert parse_json('{"a": [1, 2.5, null, true, "\\ud83d\\ude00"]}') == {"a": [1, 2.5, None, True, "\U0001f600"]}
    assert parse_json(deep) is not None


@pytest.mark.parametrize("version", ["1.0", "1e0", "true", '"1"', "3", "null"])
def test_a_version_is_a_whole_number(version: str) -> None:
    with pytest.raises(mace.InvalidCertificate, match="version"):
        mace.Certificate.from_json(f'{{"version": {version}, "statement": {{}}, "claim": {{}}, "evidence": {{}}}}')
    with pytest.raises(mace.InvalidSpace, match="version"):
        mace.FeatureSpace.from_json(f'{{"version": {version}, "features": {{"a": {{"kind": "real"}}}}}}')

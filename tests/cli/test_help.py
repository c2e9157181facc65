"""What ``mace`` and ``--help`` say, at the width of an old terminal."""

from __future__ import annotations

import re

import pytest
import typer

from mace.cli import app
from mace.cli.commands import ORDER
from mace.cli.main import run

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_mace_alone_shows_its_commands_whole_and_in_the_order_of_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    listed = re.findall(r"^  (\w+)  +\w", out.partition("Commands:")[2], re.MULTILINE)
    assert sorted(listed) == COMMANDS
    assert listed[: len(ORDER)] == list(ORDER)
    assert "..." not in out.partition("Commands:")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_has_no_names_of_types(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "list[" not in out
    assert "4294967295" not in out

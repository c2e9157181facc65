"""What a terminal shows while a search runs."""

from __future__ import annotations

import io
import math
import time

import pytest
from rich.console import Console

from mace.cli import waiting


def shown(seconds: float, *, is_terminal: bool = True) -> str:
    """Return what is written while a search that reports its bounds at once runs for some seconds."""
    file = io.StringIO()
    with waiting.waiting("reading the model", Console(file=file, force_terminal=is_terminal, width=80)) as line:
        time.sleep(seconds)
        line.report(0.01, math.inf, 1)
        line.report(0.0123456, 0.0456789, 2)
        time.sleep(seconds)
    return file.getvalue()


def test_both_bounds_are_shown_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    assert waiting.SILENCE == 1.0
    monkeypatch.setattr(waiting, "SILENCE", 0.05)
    said = shown(0.5)
    assert "reading the model (0 s)" in said
    assert "searching: the nearest lies between 0.01235 and 0.04568" in said


def test_a_quick_search_and_one_that_nobody_looks_at_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(0.0) == ""
    monkeypatch.setattr(waiting, "SILENCE", 0.05)
    assert shown(0.3, is_terminal=False) == ""


def test_bounds_without_an_answer_say_so() -> None:
    assert waiting.bounds_text(0.0125, math.inf) == "nothing nearer than 0.0125; no answer in hand yet"


def test_a_proof_that_there_is_none_is_no_infinite_distance() -> None:
    assert waiting.bounds_text(math.inf, math.inf) == "proved: none exists; asking which constraints rule it out"

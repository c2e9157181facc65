"""Shell completion: it works, knows what the tables know, and imports little."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import mace
from mace.cli.completion import CHOICES
from mace.cli.lists import LISTED
from mace.datasets import available
from mace.distances import NORMS
from mace.experiments.setting import FAMILIES
from mace.solvers import SOLVERS

ENTRY = "import sys; from mace.cli import main; sys.argv[0] = 'mace'; main()"


def completed(line: str, folder: Path) -> list[str]:
    """Return what bash is told about a line whose last word is not complete."""
    asked = {"_MACE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(shlex.split(line)) - 1)}
    command = [sys.executable, "-c", ENTRY]
    return subprocess.run(
        command, env={**os.environ, **asked}, cwd=folder, capture_output=True, text=True
    ).stdout.split()


def test_the_names_are_those_of_the_tables() -> None:
    own = [name for name, path in SOLVERS.items() if path.startswith("mace.")]
    assert CHOICES["solver"] == ("auto", *own)
    assert CHOICES["distance"] == tuple(NORMS)[-4:]
    assert CHOICES["kind"] == LISTED
    assert CHOICES["datasets"] == tuple(available())
    assert set(CHOICES["models"]) <= set(FAMILIES)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("mace ex", ["explain"]),
        ("mace explain --solver t", ["trees"]),
        ("mace audit --distance li", ["linf"]),
        ("mace explain --space space.json --fix age,s", ["age,sex"]),
        ("mace explain --data people.csv --id cu", ["customer"]),
        ("mace explain --space nowhere.json --fix a", []),
        ("mace reproduce --datasets adult,c", ["adult,compas", "adult,credit"]),
    ],
)
def test_a_word_is_completed(line: str, found: list[str], tmp_path: Path) -> None:
    space = mace.FeatureSpace({"age": mace.integer(18, 90), "sex": mace.categorical(["f", "m"])})
    (tmp_path / "space.json").write_text(space.to_json())
    (tmp_path / "people.csv").write_text("customer,age,sex\nc1,30,f\n")
    assert completed(line, tmp_path) == found


def test_the_parser_of_the_command_line_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pandas", "sklearn", "scipy", "numba", "z3", "pysmt", "matplotlib", "skops"]
    code = f"import sys, mace.cli; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"

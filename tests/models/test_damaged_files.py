"""A sample of the campaign of damaged model files: the command line ends with one line, or with an answer that is true."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from damaged_files import KINDS

PACKAGES = {"json": "xgboost", "ubj": "xgboost", "txt": "lightgbm", "cbm": "catboost", "onnx": "onnxruntime"}


@cache
def examined() -> dict[str, list[tuple[str, str | None]]]:
    """Return the outcomes of some files of each kind, examined in a process in which no library has started threads."""
    here = Path(__file__).parents[1] / "support"
    command = [sys.executable, "-W", "ignore", str(here / "damaged_files.py"), "10000", "8"]
    done = subprocess.run(command, capture_output=True, check=True, env=_environment(here))
    return json.loads(done.stdout)


def _environment(here: Path) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parents[1] / "src"), str(here)])}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="files are examined in forked processes")
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_refused_in_a_line_or_explained_truly(kind: str) -> None:
    if kind in PACKAGES:
        pytest.importorskip(PACKAGES[kind])
    assert not [fault for _, fault in examined()[kind] if fault]
    assert any("refused" in family for family, _ in examined()[kind])

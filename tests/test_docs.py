"""README and docs are true: their sessions run, their generated parts are fresh, their links exist."""

from __future__ import annotations

import doctest
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NEED_CREDIT = ("borrower.md",)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_sessions_in_a_document_run_as_printed(path: Path) -> None:
    folder = os.environ.get("MACE_DATA")
    if path.name in NEED_CREDIT and not (folder and (Path(folder) / "credit.csv").exists()):
        pytest.skip("MACE_DATA names no folder with credit.csv: this document is NOT tested")
    options = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
    result = doctest.testfile(str(path), module_relative=False, optionflags=options)
    assert result.failed == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_the_picture_of_the_rooms_is_fresh() -> None:
    rooms = runpy.run_path(str(ROOT / "docs" / "rooms.py"))
    assert rooms["PICTURE"].read_text() == rooms["picture"](), "run `make generate`"


def test_generated_parts_are_fresh() -> None:
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for document in generate["DOCUMENTS"]:
        text = document.read_text()
        assert generate["with_generated_parts"](text) == text, f"{document.name}: run `make generate`"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    around = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=around, check=False)
    assert made.returncode == 0, made.stderr
    foreign = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")
    for page in tmp_path.rglob("*.html"):
        assert not foreign.search(page.read_text()), page

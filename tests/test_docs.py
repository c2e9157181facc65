"""README and docs are true: their sessions run, their generated parts are fresh, their links exist."""

from __future__ import annotations

import doctest
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from page_browser import PATIENCE, until, why_no_browser

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MADE_BY = runpy.run_path(str(ROOT / "docs" / "notebooks.py"))
NOTEBOOKS = MADE_BY["NOTEBOOKS"]
NEED_CREDIT = ("borrower.md",)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_the_sessions_in_a_document_run_as_printed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files
    folder = os.environ.get("MACE_DATA")
    if path.name in NEED_CREDIT and not (folder and (Path(folder) / "credit.csv").exists()):
        pytest.skip("MACE_DATA names no folder with credit.csv: this document is NOT tested")
    options = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.testfile(str(path), module_relative=False, optionflags=options)
    assert result.failed == 0


COMMANDS = re.compile(r"<!-- run -->\n```sh\n(.*?)```", re.S)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if COMMANDS.search(path.read_text())], ids=lambda path: path.name
)
def test_commands_in_a_document_run_after_its_sessions(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    doctest.testfile(str(path), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for line in "".join(COMMANDS.findall(path.read_text())).splitlines():
        words = [sys.executable, "-c", "from mace.cli import main; main()", *shlex.split(line)[1:]]
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        assert made.returncode == 0, f"{line}\n{made.stdout}{made.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_was_saved_with(path: Path) -> None:
    saved = MADE_BY["what_matters"](nbformat.read(path, as_version=4))
    assert MADE_BY["what_matters"](MADE_BY["executed"](path)) == saved, "run `make notebooks`"


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
        assert generate["fresh"](document) == document.read_text(), f"{document.name}: run `make generate`"
    for path, text in generate["generated_files"]().items():
        assert path.read_text() == text, f"{path.name}: run `make generate`"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    around = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=around, check=False)
    assert made.returncode == 0, made.stderr
    foreign = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//""")
    for page in tmp_path.rglob("*.html"):
        assert not foreign.search(page.read_text()), page
    if not why_no_browser():
        found = _search(request.getfixturevalue("browser"), tmp_path / "index.html", "missing values")
        assert "matching documents" in found


def _search(browser: Any, page: Path, words: str) -> str:
    """Return what the site's search says of words, read from a folder."""
    opened = browser.new_page(viewport={"width": 1200, "height": 800})
    try:
        opened.goto(page.as_uri())
        opened.locator(".md-search__input").click(timeout=PATIENCE)
        opened.keyboard.type(words)
        until(opened, "/[0-9]/.test(document.querySelector('.md-search-result__meta').innerText)")
        return str(opened.locator(".md-search-result__meta").inner_text())
    finally:
        opened.close()

"""A real browser on a real service, for the tests of the page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
SETTLED = ".banner[data-status]:not([data-status=searching])"
"""The banner of a question that is answered, proved or not."""

PATIENCE = 90_000
"""Milliseconds that a test waits for what must come; machines are shared."""


def browser_path() -> str | None:
    """Return where Chromium is, or ``None``."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


def why_no_browser() -> str:
    """Return why the page cannot be tested here; empty where it can."""
    if not find_spec("playwright"):
        return "playwright is not installed"
    return "" if browser_path() else "there is no Chromium"


@contextmanager
def serving(*options: str, jobs: Path) -> Iterator[str]:
    """Run ``mace serve`` on a free port; the address of its page."""
    command = [sys.executable, "-c", "from mace.cli import main; main()", "serve", "--port", "0", "--workers", "1"]
    with subprocess.Popen(
        [*command, "--jobs", str(jobs), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"MACE_API_KEYS": ""},
    ) as process:
        assert process.stdout is not None
        try:
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
            _until_ready(address)
            yield address
        finally:
            process.terminate()
            process.stdout.read()


def _until_ready(address: str) -> None:
    for _ in range(1200):
        try:
            with urllib.request.urlopen(f"{address}/ready") as answer:
                if answer.status == 200:
                    return
        except urllib.error.URLError:
            pass
        time.sleep(0.1)
    raise AssertionError("the service does not become ready")


def person(address: str, number: int) -> dict[str, Any]:
    """Return a person of the service."""
    with urllib.request.urlopen(f"{address}/v1/people/{number}") as answer:
        return json.load(answer)  # type: ignore[no-any-return]


def until(page: Any, condition: str, argument: object = None) -> None:
    """Wait until an expression of the page holds; Playwright's own way needs ``eval``, which the page's policy forbids."""
    for _ in range(PATIENCE // 30):
        if page.evaluate(condition, argument):
            return
        page.wait_for_timeout(30)
    raise AssertionError(f"it never came to hold: {condition}")


def read_axe(folder: Path) -> str:
    """Return the source of axe-core, fetched with npm into a folder; empty where it cannot be fetched."""
    if not shutil.which("npm"):
        return ""
    made = subprocess.run(
        ["npm", "pack", "axe-core", "--silent"], cwd=folder, capture_output=True, check=False, timeout=120
    )
    packed = next(iter(folder.glob("axe-core-*.tgz")), None)
    if made.returncode or packed is None:
        return ""
    with tarfile.open(packed) as archive:
        member = archive.extractfile("package/axe.min.js")
        return "" if member is None else member.read().decode()

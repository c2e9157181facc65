"""What the tests share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from page_browser import ARGUMENTS, browser_path, why_no_browser

collect_ignore_glob = ["files/*", "plugin/*", "*/conftest.py"]
"""How the files were made, which is never run again; and a package of its own."""

os.environ.setdefault("MACE_COMPILE", "now")

settings.register_profile("mace", deadline=None, derandomize=True)
settings.load_profile("mace")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the kernels of both fast lanes side by side before several workers start: each would compile them one after the other."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        return
    around = os.environ | {"PYTHONPATH": str(config.rootpath / "src")}
    made = [
        subprocess.Popen([sys.executable, "-c", f"from mace.solvers import {lane}; {lane}.prepare()"], env=around)
        for lane in ("trees", "network")
    ]
    assert [process.wait() for process in made] == [0, 0], "the kernels cannot be compiled"


QUICK = 2
"""Of a test with many cases, the quick part runs so many, spread evenly; :func:`pytest.mark.slow` leaves a test out of it altogether."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what the quick part (``make test``) leaves to ``make test-all``."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cases.values():
        quick = {round(k * (len(each) - 1) / (QUICK - 1)) for k in range(QUICK)}
        for number, item in enumerate(each):
            if number not in quick:
                item.add_marker(pytest.mark.slow)


def pytest_report_header() -> list[str]:
    folder = os.environ.get("MACE_DATA")
    data = (
        f"MACE_DATA={folder}"
        if folder
        else "MACE_DATA is NOT SET; tests that need the credit data set are skipped, all others run"
    )
    torch = (
        "installed"
        if importlib.util.find_spec("torch")
        else "NOT INSTALLED; its tests are skipped here and run by make test-torch"
    )
    clusters = [name for name in ("distributed", "ray") if not importlib.util.find_spec(name)]
    missing = (
        f"{' and '.join(clusters)} NOT INSTALLED; their tests are skipped" if clusters else "Dask and Ray installed"
    )
    no_browser = why_no_browser()
    page = f"{no_browser.upper()}; tests of the page are skipped" if no_browser else "tested in Chromium"
    return [f"data folder: {data}", f"torch: {torch}", f"clusters: {missing}", f"page: {page}"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, one a process: Playwright cannot be started a second time while it runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=ARGUMENTS.split())
        yield browser
        browser.close()

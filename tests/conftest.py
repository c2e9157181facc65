"""What the tests share."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("mace", deadline=None, derandomize=True)
settings.load_profile("mace")


def pytest_report_header() -> str:
    folder = os.environ.get("MACE_DATA")
    if folder:
        return f"data folder: MACE_DATA={folder}"
    return "data folder: MACE_DATA is NOT SET; tests that need the credit data set are skipped, all others run"

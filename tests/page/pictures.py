"""Draws the pictures of the page in the documentation: ``PYTHONPATH=src:tests/support python tests/page/pictures.py``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from page_browser import ARGUMENTS, browser_path, serving
from PIL import Image
from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MOMENT = 900
COLOURS = 128


def impossible(page: Any) -> None:
    """Lock what the answers change, until nothing is left."""
    page.click(".rail [data-person='11']")
    page.wait_for_selector(".banner[data-status=optimal]")
    for name in ("duration_months", "checking_status", "savings", "credit_amount"):
        page.click(f"[data-lock={name}]")
    page.fill("#add-rule", "at most 1 features change")
    page.press("#add-rule", "Enter")
    page.wait_for_selector(".banner[data-status=infeasible]")
    page.evaluate("scrollTo(0, 0)")


def what_if(page: Any) -> None:
    """Try the nearest way."""
    page.click("[data-try='0']")
    page.wait_for_selector("#panel [data-tone=yes]")


def audit(page: Any) -> None:
    """Compare groups."""
    page.click("[data-view=audit]:visible")
    page.click("[data-audit]")
    page.wait_for_selector(".grid")


PICTURES: dict[str, tuple[int, int, str, Any]] = {
    "page-answer": (1280, 860, "light", lambda page: None),
    "page-impossible": (1280, 860, "light", impossible),
    "page-whatif": (1280, 1000, "dark", what_if),
    "page-audit": (1280, 900, "light", audit),
    "page-phone": (390, 844, "light", lambda page: None),
}


def main() -> None:
    """Draw them all, from the demo."""
    with tempfile.TemporaryDirectory() as jobs, serving(jobs=Path(jobs)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path(), args=ARGUMENTS.split())
        for name, (width, height, scheme, prepare) in PICTURES.items():
            size = {"width": width, "height": height}
            page = browser.new_page(viewport=size, color_scheme=scheme, locale="en-GB")
            page.goto(address)
            page.wait_for_selector(".banner[data-status=optimal]")
            prepare(page)
            page.wait_for_timeout(MOMENT)
            page.screenshot(path=FOLDER / f"{name}.png")
            few = Image.open(FOLDER / f"{name}.png").convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            few.save(FOLDER / f"{name}.png", optimize=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

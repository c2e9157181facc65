"""Write the letters of docs/reports.md anew, and draw one as a page where there is a Chromium: ``python docs/letters.py``."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE, PICTURE = HERE / "reports.md", HERE / "pictures" / "letter.png"
BLOCK = re.compile(r"(<!-- letter: (\w+) -->\n```text\n).*?(```\n)", re.DOTALL)
FLAGS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"


def examples(text: str) -> dict[str, Any]:
    """Run the examples of a page, and return what they made."""
    found = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    doctest.DocTestRunner().run(found, clear_globs=False)
    return found.globs


def with_letters(text: str, made: dict[str, Any]) -> str:
    """Return a page with each letter as its examples wrote it."""
    return BLOCK.sub(lambda match: f"{match[1]}{made[match[2]]}{match[3]}", text)


def draw(page: str) -> None:
    """Write a picture of a page, as it is on paper; say so where there is no browser."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("there is no Chromium; the picture of the letter is left as it was\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "letter.html").write_text(page)
        options = [f"--user-data-dir={folder}/profile", f"--screenshot={PICTURE}", "--window-size=760,1120"]
        subprocess.run([browser, *FLAGS.split(), *options, f"{folder}/letter.html"], check=True, capture_output=True)


def main() -> None:
    """Do both."""
    text = PAGE.read_text()
    made = examples(text)
    PAGE.write_text(with_letters(text, made))
    draw(made["page"])


if __name__ == "__main__":
    main()

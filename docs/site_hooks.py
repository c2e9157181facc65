"""What MkDocs does beside its pages: files of the project outside docs/ that pages link to come into the site.

MkDocs knows only the folder of its pages. The results of campaigns and the project's own documents lie outside it; they are
copied into ``project/`` of the site, and links to them are led there.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
PROJECT = "project"
LINK = re.compile(r"\]\((?!\w+://|#)([^)#\s]+)(#[^)\s]*)?\)")
OUTSIDE = [*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "tests" / "campaigns").glob("*.json"))]


def _place(path: Path) -> str:
    return f"{PROJECT}/{path.name}".replace("README.md", "about.md")


PLACES = {path.relative_to(ROOT).as_posix(): _place(path) for path in OUTSIDE}


def on_files(files: Any, config: Any) -> Any:
    """Add the files from outside of docs/ to the site."""
    for path, place in PLACES.items():
        files.append(File.generated(config, place, content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links out of docs/, and links of the project's documents, to where the files are in the site."""
    here = page.file.src_uri
    folder = "" if here.startswith(f"{PROJECT}/") else posixpath.join("docs", posixpath.dirname(here))

    def led(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if target in PLACES:
            place = PLACES[target]
        elif target.startswith("docs/"):
            place = target.removeprefix("docs/")
        else:
            return f"] (`{target}` in the repository)"
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{match[2] or ''})"

    return LINK.sub(led, markdown)


def _without_foreign_script(output: str, **_: Any) -> str:
    """Take out the script that the theme's plugin ``offline`` would load from another host."""
    return re.sub(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>', "", output)


on_post_page = _without_foreign_script
on_post_template = _without_foreign_script

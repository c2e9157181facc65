"""What MkDocs does beside its pages: files of the project outside docs/ that pages link to come into the site.

MkDocs knows only the folder of its pages. The results of campaigns and the project's own documents lie outside it; they are
copied into ``project/`` of the site, and links to them are led there. Notebooks become pages with the outputs that they were saved with.
"""

from __future__ import annotations

import base64
import json
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
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        page, pictures = page_of(notebook)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def page_of(notebook: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by their files' names."""
    parts, pictures = [], {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            held = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in held:
                name = f"{notebook.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(held["image/png"]))
                parts.append(f"![{source.splitlines()[-1][:60]}]({name})".replace("`", ""))
            elif "text/html" in held:
                lines = "".join(held["text/html"]).splitlines()  # no empty line may end the block
                parts.append('<div class="answer">\n' + "\n".join(line for line in lines if line.strip()) + "\n</div>")
            elif text := "".join(held["text/plain"]).rstrip():
                parts.append(f"```text\n{text}\n```")
    parts.insert(1, f"[Download this notebook]({notebook.name})")
    return "\n\n".join(parts) + "\n", pictures


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
            is_own = posixpath.splitext(place)[0] == posixpath.splitext(here)[0]  # the link to download it
            place = place if is_own else re.sub(r"\.ipynb$", ".md", place)
        else:
            return f"] (`{target}` in the repository)"
        return f"]({posixpath.relpath(place, posixpath.dirname(here) or '.')}{match[2] or ''})"

    return LINK.sub(led, markdown)


ROLE = re.compile(r":(?:func|meth|class|mod|attr|exc|data):(?=<code)")
PRIVATE = re.compile(r'^ *<span class="n">_\w+</span>(?:<span class="o">=</span>.*)?<span class="p">,</span>\n', re.M)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Take the roles of reStructuredText, which docstrings have, away from names, and private fields from signatures."""
    if page.file.src_uri.startswith("reference/api/"):
        html = PRIVATE.sub("", html)
    return ROLE.sub("", html).replace("<code>~", "<code>")

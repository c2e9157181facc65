"""Rewrite the generated parts of the documents: ``make generate``. A test fails when they are stale."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import runpy
import sys
from pathlib import Path

import typer

import mace
from mace.certify.trusted import TRUSTED
from mace.cli import app
from mace.cli.lists import LISTED, listed
from mace.reductions import REDUCTIONS
from mace.space.sensitive import SENSITIVE_WORDS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
SCHEMAS = importlib.import_module("schemas")
wrapped = importlib.import_module("wrap").wrapped
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LEFT_UNWRAPPED = {"errors.md", "tables.md"}
"""Documents whose lines are not wrapped: they are generated as a whole."""

RECIPES = ("answers", "rules", "models", "files")
"""The pages of recipes, in the order in which they are listed."""

API = {
    "asking": ("Asking and answers", ("mace.explainer", "mace.answer", "mace.problem", "mace.solvers")),
    "spaces": ("Spaces", ("mace.space",)),
    "targets": ("Targets", ("mace.targets",)),
    "constraints": ("Constraints", ("mace.constraints",)),
    "distances": ("Distances", ("mace.distances",)),
    "models": ("Models", ("mace.models",)),
    "certificates": ("Certificates", ("mace.certify",)),
    "errors": ("Errors", ("mace.errors",)),
    "more": ("Batches, audits, plots, data sets", ()),
}
"""Pages of the reference: their titles, and the modules whose public names they show. All other names are on the last one."""

MOST_GROUPS_NAMED = 12
"""Groups of a campaign that are named in the table of campaigns; of more only the number is told."""

FOR_EXPERTS = {
    "mace.batch": ("Batch", "Progress", "Table", "save"),
    "mace.audits": ("audit", "Audit"),
    "mace.plots": ("ChangesDisplay", "BoundaryDisplay", "BoundsDisplay", "MenuDisplay"),
    "mace.constraints.files": ("load_constraints",),
    "mace.constraints.suggest": ("suggest_constraints",),
    "mace.datasets": ("load",),
}
"""Names that are documented and are no attributes of ``mace`` itself."""


def supported() -> str:
    """Return what is supported as a Markdown table, read from the registries."""
    rows = ["| | |", "| --- | --- |"]
    for kind in LISTED:
        names = ", ".join(f"`{name}`" for name, _ in listed(kind))
        rows.append(f"| {kind} | {names} |")
    return "\n".join(rows)


def documents() -> str:
    """Return a list of the documents by their titles."""
    pages = [page.relative_to(ROOT / "docs") for page in sorted((ROOT / "docs").rglob("*.md"))]
    shown = [
        page for page in pages if page.parts[:2] != ("reference", "api") and page.stem not in ("index", "documents")
    ]
    return "\n".join(f"- [{page.with_suffix('')}](../{page}): {_title(ROOT / 'docs' / page)}" for page in shown)


def _title(page: Path) -> str:
    return page.read_text().split("\n", 1)[0].lstrip("# ")


def layers() -> str:
    """Return the order of the package's rooms as a list."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from layers import LAYERS

    return "\n".join(f"  - {name}: {', '.join(f'`{room}`' for room in rooms)}" for name, rooms in LAYERS.items())


def trusted() -> str:
    """Return what the checker of certificates believes."""
    return "\n".join(f"- `{name}`: {what}" for name, what in TRUSTED.items())


def sensitive() -> str:
    """Return the words by which features are told that nobody should be asked to change."""
    return ", ".join(sorted(SENSITIVE_WORDS)) + "."


def campaigns() -> str:
    """Return what each random campaign compared, how often, and with what result, from the files that it left."""
    rows = ["| campaign | compares | problems | disagreements | made with |", "| --- | --- | ---: | ---: | --- |"]
    for file in sorted((ROOT / "tests" / "campaigns").glob("*.json")):
        found = json.loads(file.read_text())
        groups = {name: group for name, group in found.items() if isinstance(group, dict)}
        many = len(groups) > MOST_GROUPS_NAMED
        problems = sum(group["problems"] for group in groups.values())
        named = (
            f"{len(groups)} groups" if many else ", ".join(f"{name} {groups[name]['problems']:,}" for name in groups)
        )
        apart = sum(len(group["disagreements"]) for group in groups.values())
        script = f"[{file.stem}](../tests/campaigns/{file.name})"
        made = f"{found['mace']}, {found['day']}"
        rows.append(f"| {script} | {found['campaign']} | {problems:,} ({named}) | {apart} | {made} |")
    return "\n".join(rows)


def reductions() -> str:
    """Return what every reduction promises as a Markdown table."""
    rows = ["| reduction | takes | the new question is | derived anew in |", "| --- | --- | --- | --- |"]
    for name, each in REDUCTIONS.items():
        where, derived = (path.removeprefix("mace.") for path in (name, each.derived))
        rows.append(f"| `{where}` | {each.takes} | {each.relation} | `{derived}` |")
    return "\n".join(rows)


def _page_of(name: str) -> str:
    home = mace._HOME[name]
    pages = (
        page for page, (_, homes) in API.items() if any(home == each or home.startswith(f"{each}.") for each in homes)
    )
    return next(pages, "more")


def _first_sentence(name: str) -> str:
    text = (inspect.getdoc(getattr(mace, name)) or "").split("\n\n", 1)[0]
    return re.sub(r":\w+:", "", _one_line(text))


def names() -> str:
    """Return a table of every public name, with the first sentence of its docstring and a link."""
    rows = ["| name | |", "| --- | --- |"]
    for page, (title, _) in API.items():
        public = [name for name in mace._HOME if name in mace.__all__ and _page_of(name) == page]
        rows.append(f"| **[{title}](api/{page}.md)** | |")
        rows += [
            f"| [`{name}`](api/{page}.md#mace.{name}) | {_first_sentence(name)} |"
            for name in sorted(public, key=_order)
        ]
        if page == "more":
            rows += [
                f"| [`{home}.{name}`](api/more.md#{home}.{name}) | |"
                for home, some in FOR_EXPERTS.items()
                for name in some
            ]
    return "\n".join(rows)


def _order(name: str) -> tuple[bool, str]:
    return name[0].islower(), name.lower()


def api_pages() -> dict[str, str]:
    """Return the text of every page of the reference of names, by its file's name."""
    made = {}
    for page, (title, _) in API.items():
        public = sorted((name for name in mace._HOME if name in mace.__all__ and _page_of(name) == page), key=_order)
        parts = [f"::: mace.{name}" for name in public]
        if page == "more":
            parts += [f"::: {home}.{name}" for home, some in FOR_EXPERTS.items() for name in some]
        about = "From the docstrings. [All names](../api.md)."
        made[f"{page}.md"] = f"# {title}\n\n{about}\n\n" + "\n\n".join(parts) + "\n"
    return made


def generated_files() -> dict[Path, str]:
    """Return the files that are generated as a whole, with their texts."""
    made = {ROOT / "docs" / "reference" / "api" / name: text for name, text in api_pages().items()}
    return made | {SCHEMAS.file_of(name): SCHEMAS.written(name) for name in SCHEMAS.SCHEMAS}


def schemas() -> str:
    """Return the keys of every schema as tables."""
    return "\n\n".join(f"## {name.capitalize()}\n\n{SCHEMAS.table(name)}" for name in SCHEMAS.SCHEMAS)


def recipes() -> str:
    """Return a list of all recipes by their pages."""
    parts = []
    for name in RECIPES:
        lines = (ROOT / "docs" / "howto" / f"{name}.md").read_text().splitlines()
        parts.append(f"## {lines[0].removeprefix('# Recipes: ').capitalize()}\n")
        titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
        parts += [f"- [{title}]({name}.md#{_anchor(title)})" for title in titles]
        parts.append("")
    return "\n".join(parts)


def _anchor(title: str) -> str:
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())


def commands() -> str:
    """Return every command with its options as Markdown tables, read from the parser."""
    group = typer.main.get_command(app)
    parts = []
    for name, command in sorted(getattr(group, "commands", {}).items()):
        parts.append(f"## mace {name}\n\n{_one_line(command.help)}\n\n| option | what it does |\n| --- | --- |")
        for each in command.params:
            shown = ", ".join(each.opts) if each.param_type_name == "option" else (each.name or "").upper()
            parts[-1] += f"\n| `{shown}` | {_one_line(getattr(each, 'help', None))} |"
    return "\n\n".join(parts) + "\n"


def _one_line(text: str | None) -> str:
    words = " ".join((text or "").split())
    return re.sub(r"([|<\[])", r"\\\1", words)


PARTS = {
    "schemas": schemas,
    "recipes": recipes,
    "names": names,
    "commands": commands,
    "sensitive": sensitive,
    "supported": supported,
    "documents": documents,
    "layers": layers,
    "trusted": trusted,
    "reductions": reductions,
    "campaigns": campaigns,
}


def with_generated_parts(text: str) -> str:
    """Return the text of a document with its generated parts made anew."""
    pattern = re.compile(r"(<!-- generated by docs/generate.py: (\w+) -->\n).*?(<!-- end -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}{PARTS[match[2]]()}\n{match[3]}", text)


def fresh(document: Path) -> str:
    """Return the text that a document should have: its generated parts made anew, and its lines wrapped."""
    text = with_generated_parts(document.read_text())
    return text if document.name in LEFT_UNWRAPPED else wrapped(text)


def main() -> None:
    """Rewrite every document with a generated part."""
    for path, text in generated_files().items():
        path.write_text(text)
    for document in DOCUMENTS:
        document.write_text(fresh(document))
        sys.stdout.write(f"{document.relative_to(ROOT)} is up to date.\n")
    runpy.run_path(str(ROOT / "docs" / "rooms.py"), run_name="__main__")


if __name__ == "__main__":
    main()

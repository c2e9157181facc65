"""Write how large what is installed is, and under which licences: ``make installed``.

Reads the environment that it runs in: docs/reference/install-size.md has the packages of a default install with their sizes on disk,
docs/reference/licences.md the licences of these and of what the extras add. Both depend on the platform and on the versions of the day,
so they are not made by ``make generate``; a test checks that every package that pyproject.toml names is there.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

REFERENCE = Path(__file__).parent / "reference"
EXTRAS = ("cvc5", "xgboost", "lightgbm", "catboost", "onnx", "plot", "parquet", "letters", "download", "dask", "ray")
NEEDED_FOR = {
    "llvmlite": "the compiler behind numba",
    "numba": "compiles the search of trees and networks",
    "scipy": "linear algebra; scikit-learn needs it too",
    "pandas": "tables in and out",
    "z3-solver": "the lane of formulas, and its certificates",
    "scikit-learn": "your models, and reading them",
    "numpy": "arrays",
    "highspy": "linear programs of the general lane",
    "mace-xai": "this package, with three data sets",
    "pysmt": "writes formulas for solvers",
    "skops": "model files that run nothing",
}


def closure(extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """Return the installed packages that MACE needs, with those of some extras, by their names; what is not installed is left out."""
    found: dict[str, Distribution] = {}
    waiting = [("mace-xai", ("", *extras))]
    while waiting:
        name, wanted = waiting.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        found[plain(name)] = one
        for text in one.requires or []:
            need = Requirement(text)
            is_wanted = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in wanted)
            if is_wanted and (plain(need.name) not in found or need.extras):
                waiting.append((need.name, ("", *need.extras)))
    return found


def plain(name: str) -> str:
    """Return a package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(one: Distribution) -> float:
    """Return what the files of a package take on disk, in millions of bytes; compiled copies are left out."""
    paths = [Path(str(one.locate_file(file))) for file in one.files or []]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file()) / 1e6


def licence(one: Distribution) -> str:
    """Return the licence that a package states, in short."""
    told = one.metadata
    classes = [text.rsplit(" :: ", 1)[-1] for text in told.get_all("Classifier") or [] if text.startswith("License ::")]
    stated = told.get("License-Expression") or ", ".join(classes) or (told.get("License") or "").strip().split("\n")[0]
    return (stated or "see its page")[:80].replace("|", "/")


def sizes() -> str:
    """Return the sizes of a default install as a Markdown table, the largest first."""
    large = {name: megabytes(one) for name, one in closure().items()}
    rows = ["| package | MB | what it is for |", "| --- | ---: | --- |"]
    shown = [name for name in sorted(large, key=large.__getitem__, reverse=True) if large[name] >= 3]
    rows += [
        f"| {name} | {large[name]:.0f} | {NEEDED_FOR.get(name, 'needed by one of the others')} |" for name in shown
    ]
    rest = sum(size for name, size in large.items() if name not in shown)
    rows.append(f"| {len(large) - len(shown)} others, below 3 MB each | {rest:.0f} | |")
    rows.append(f"| **all** | **{sum(large.values()):.0f}** | |")
    return "\n".join(rows)


def licences() -> str:
    """Return the licences of all packages as Markdown tables: those of a default install, and those that extras add."""
    default, every = closure(), closure(EXTRAS)
    parts = []
    for title, some in (
        ("A default install", default),
        ("Added by extras", {n: o for n, o in every.items() if n not in default}),
    ):
        rows = [f"## {title}\n", "| package | licence |", "| --- | --- |"]
        rows += [f"| {name} | {licence(some[name])} |" for name in sorted(some)]
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def rewrite(path: Path, part: str) -> None:
    """Put a table into its place in a page."""
    pattern = re.compile(r"(<!-- made by docs/installed.py -->\n).*?(<!-- end -->)", re.S)
    path.write_text(pattern.sub(lambda match: f"{match[1]}{part}\n{match[2]}", path.read_text()))


if __name__ == "__main__":
    rewrite(REFERENCE / "install-size.md", sizes())
    rewrite(REFERENCE / "licences.md", licences())
    sys.stdout.write("docs/reference/install-size.md and licences.md are written.\n")

"""What may be in a release: ``python tests/support/distribution.py dist [--tag v0.2.0]`` lists it and fails where it is not so."""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DATA = {"adult.csv.xz", "compas.csv.xz", "german.csv.xz"}
"""The data sets that may be copied."""

BESIDE = {
    ".gitignore",
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
}
SUFFIXES = {".py", ".typed", ".xz", ".json", ".html", ".css", ".js", ".svg", ".txt", ".jinja", ".toml"}


def version() -> str:
    """Return the version that pyproject.toml names."""
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return found


def names_of(archive: Path) -> list[str]:
    """Return the files of an sdist, without the folder around them, or of a wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            return opened.namelist()
    with tarfile.open(archive) as opened:
        return [member.name.split("/", 1)[1] for member in opened.getmembers() if member.isfile()]


def faults(archive: Path) -> list[str]:
    """Return what is wrong with an archive; nothing is what is hoped for."""
    names, found = names_of(archive), []
    is_wheel = archive.suffix == ".whl"
    package = [name for name in names if name.startswith("mace/" if is_wheel else "src/mace/")]
    others = {name for name in names if name not in package}
    allowed = {name for name in others if name.split("/")[0].endswith(".dist-info")} if is_wheel else BESIDE
    found += [f"{name}: does not belong into {archive.name}" for name in sorted(others - allowed)]
    found += [f"{name}: a kind of file that is not known" for name in package if Path(name).suffix not in SUFFIXES]
    found += [f"{name}: a test" for name in package if re.search(r"(^|/)(test_|conftest)", name)]
    data = {Path(name).name for name in package if "/datasets/files/" in name}
    found += [f"data sets {sorted(data)}, and {sorted(DATA)} may be shipped"] if data != DATA else []
    found += [] if any(name.endswith("mace/py.typed") for name in package) else ["py.typed is missing"]
    return found + ([] if version() in archive.name else [f"{archive.name} is not of version {version()}"])


def main(folder: str, *options: str) -> int:
    """List what is in the archives of a folder, and return 1 where something is wrong."""
    archives = sorted([*Path(folder).glob("*.whl"), *Path(folder).glob("*.tar.gz")])
    wrong = [] if len(archives) == 2 else [f"one wheel and one sdist are expected, found {len(archives)} archives"]
    for archive in archives:
        names = names_of(archive)
        sys.stdout.write(f"{archive.name}: {len(names)} files, {archive.stat().st_size:,} bytes\n")
        wrong += faults(archive)
    if options and options[1] != f"v{version()}":
        wrong.append(f"the tag is {options[1]}, and the version {version()}")
    sys.stdout.write("".join(f"WRONG: {each}\n" for each in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The checker shares nothing that it checks: its imports are those of one list, and it works with the search taken away."""

from __future__ import annotations

import ast
import gzip
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mace.certify.trusted import SEARCH_AIDS, TRUSTED

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
OLD = ROOT / "tests" / "files" / "0.1.0"

MODULE = re.compile(r"mace(\.\w+)+(:\w+)?")


def modules_of(path: Path) -> Iterator[str]:
    """Yield the modules of the package that a file names: in imports, relative and lazy ones too, and in strings such as "mace.x:y"."""
    package = path.relative_to(SOURCE).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            yield node.value.partition(":")[0]


def is_in(module: str, names: Any) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def foreign(path: Path, allowed: Any) -> list[str]:
    return [name for name in modules_of(path) if name.split(".")[0] == "mace" and not is_in(name, allowed)]


FILES = sorted((SOURCE / "mace" / "certify").rglob("*.py"))
BASE = sorted(
    path
    for path in (SOURCE / "mace").rglob("*.py")
    if is_in(".".join(path.relative_to(SOURCE).with_suffix("").parts), TRUSTED)
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_of_the_checker_imports_only_what_is_trusted(path: Path) -> None:
    assert not foreign(path, [*TRUSTED, "mace.certify"])


def test_what_is_trusted_imports_nothing_else() -> None:
    assert len(BASE) > 100
    # How a space looks in a notebook is looked up where a notebook asks for it.
    assert not {
        str(path.relative_to(SOURCE)): found
        for path in BASE
        if (found := foreign(path, [*TRUSTED, "mace.__version__", "mace.notebook"]))
    }


@pytest.mark.parametrize(
    "line",
    [
        "import mace.solvers.trees",
        "from mace.reductions import effects",
        "from ..solvers import trees",
        "from .. import reductions",
        "def f():\n    from mace.solvers.dtypes import dtype",
        "LANE = 'mace.solvers.trees.lane:solve'",
    ],
)
def test_no_way_of_importing_is_overlooked(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mace" / "certify" / "planted.py"
    path.parent.mkdir(parents=True)
    path.write_text(line)
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    assert foreign(path, [*TRUSTED, "mace.certify"])


def kinds_of(evidence: Any) -> set[str]:
    """Return the kinds of proof in a certificate's evidence."""
    if isinstance(evidence, dict):
        own = {evidence["lane"]} if "lane" in evidence else set()
        marks = set(evidence) & {"prices", "ways", "places", "moves", "forest"}
        return set().union(own, marks, *map(kinds_of, evidence.values()))
    return set().union(*map(kinds_of, evidence)) if isinstance(evidence, list) else set()


def one_of_each_kind() -> list[dict[str, Any]]:
    """Return certificates of version 0.1.0, the shortest first, until all kinds of proof and of constraints are there."""
    entries = json.loads(gzip.decompress((OLD / "certificates.json.gz").read_bytes()))
    chosen, seen = [], set()
    for entry in sorted(entries, key=lambda entry: len(entry["text"])):
        data = json.loads(entry["text"])
        if entry["outcome"] != "valid":
            continue
        kinds = kinds_of(data["evidence"]) | {each["kind"] for each in data["statement"]["constraints"]}
        # Together with causes, a lane's proof is about a model that the checker makes.
        kinds |= {f"causes and {kind}" for kind in kinds} if "causes" in kinds else set()
        if kinds - seen:
            chosen.append(entry)
            seen |= kinds
    lanes = "trees network curves milp smt enumerate boxes robust moved causes cases pieces typical near_data"
    assert seen >= {*lanes.split(), "causes and trees", "causes and network"}
    return chosen


ALONE = """
import importlib, json, sys

class Taken:
    def find_spec(self, name, path=None, target=None):
        if name in ("mace.solvers", "mace.reductions"):
            raise ImportError(f"{name} was asked for")

sys.meta_path.insert(0, Taken())
import asked
import mace
from mace.certify.trusted import SEARCH_AIDS, TRUSTED

for place, names in SEARCH_AIDS.items():
    module, _, owner = place.partition(":")
    for name in names:
        delattr(getattr(importlib.import_module(module), owner), name)
models, entries = json.load(sys.stdin)
model = lambda name: asked.FUNCTIONS[name] if name in asked.FUNCTIONS else mace.load_model(models[name])
verdicts = [
    str(mace.verify(json.loads(entry["text"]), model(entry["model"]), forests=map(model, entry["forests"]))) for entry in entries
]
base = (*TRUSTED, "mace.certify")
own = [name for name in sys.modules if name.startswith("mace.") and not any(f"{name}.".startswith(f"{each}.") for each in base)]
print(json.dumps([verdicts, own]))
"""


def test_certificates_of_every_kind_are_verified_with_the_search_taken_away(tmp_path: Path) -> None:
    zipfile.ZipFile(OLD / "models.zip").extractall(tmp_path)
    about = json.loads(gzip.decompress((OLD / "about.json.gz").read_bytes()))
    models = {name: str(tmp_path / entry["file"]) for name, entry in about["models"].items()}
    entries = one_of_each_kind()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ALONE],
        input=json.dumps([models, entries]),
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": f"{SOURCE}:{OLD}", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts, others = json.loads(done.stdout)
    assert [(entry["name"], said) for entry, said in zip(entries, verdicts, strict=True) if said != "valid"] == []
    # The package itself has old names of modules looked up; nothing here asks for one.
    assert set(others) <= {"mace.moved"}, "only what is trusted is loaded"


def test_the_aids_of_the_search_are_where_the_list_says() -> None:
    for place, names in SEARCH_AIDS.items():
        module, _, owner = place.partition(":")
        path = SOURCE / Path(*module.split(".")).with_suffix(".py")
        (defined,) = (
            node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef) and node.name == owner
        )
        assert set(names) <= {node.name for node in defined.body if isinstance(node, ast.FunctionDef)}

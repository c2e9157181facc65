"""The house itself: layers, exported names, light imports, generated parts."""

from __future__ import annotations

import ast
import importlib
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from layers import LAYERS, ROOMS
from lowest import minima

import mace

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mace"

ORDER = [room for rooms in LAYERS.values() for room in rooms]

ASKS_FOR_A_LANE = ("solvers", "curves", "questions")
"""The lane of curves asks ``mace.solvers`` for the lane of each question that it makes; it is itself a line of that table."""


def imports_of(path: Path) -> set[tuple[str, ...]]:
    """Return the modules of the package that a file imports, anywhere in it, each by the parts of its name after ``mace``."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.relative_to(ROOT)}, line {node.lineno}: name modules in full"
            if node.module and node.module.split(".")[0] == "mace":
                found |= {(*node.module.split(".")[1:], alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("mace.")}
    return found


def parts_of(path: Path) -> tuple[str, ...]:
    """Return the parts of a module's name after ``mace``."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


DOORS = (SOURCE / "__init__.py", SOURCE / "__main__.py")
"""By which the package is entered; they are in no room."""

FILES = sorted(path for path in SOURCE.rglob("*.py") if path not in DOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_imports_only_rooms_before_its_own(path: Path) -> None:
    own, *inside = parts_of(path)
    for part, *rest in imports_of(path):
        if part != own and part in ORDER:
            assert ORDER.index(part) < ORDER.index(own), f"{own} imports {part}"
        elif part == own and own in ROOMS and inside and (own, *inside) != ASKS_FOR_A_LANE:
            steps = {name: number for number, names in enumerate(ROOMS[own]) for name in names}
            ahead = rest[0] if rest[0] in steps else None
            assert ahead is not None, f"{path.name} imports its whole folder"
            assert ahead == inside[0] or steps[ahead] < steps[inside[0]] or not steps[inside[0]], (
                f"{inside[0]} imports {ahead}"
            )


def test_every_part_of_the_package_has_its_place_in_the_order() -> None:
    assert {parts_of(path)[0] for path in FILES} <= set(ORDER)
    for room, groups in ROOMS.items():
        assert {parts_of(path)[1] for path in FILES if parts_of(path)[0] == room and parts_of(path)[1:]} == set().union(
            *groups
        )


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("mace.batch.whole", "Batch"),
        ("mace.causes", "Causal"),
        ("mace.diversity", "Differ"),
        ("mace.explanation", "Counterfactual"),
        ("mace.explanation", "Explanation"),
        ("mace.levers", "Levers"),
        ("mace.near", "NearData"),
        ("mace.noise", "Robust"),
        ("mace.outliers", "Typical"),
        ("mace.region", "RecourseRegion"),
    ],
)
def test_pickles_that_name_a_moved_module_find_their_classes(old: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is in mace"):
        found = pickle.loads(f"c{old}\n{name}\n.".encode())
    assert isinstance(found, type)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        importlib.import_module(old).nothing  # noqa: B018


def is_kernel(path: Path) -> bool:
    return path.name in ("kernels.py", "dual.py") or (path.parent.name, path.stem) in (
        ("trees", "moves"),
        ("trees", "recording"),
    )


def test_no_two_classes_have_one_name() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert not {name: paths for name, paths in found.items() if len(paths) > 1}


PROTOCOL = {"TAKES", "CUTS_BOXES", "IS_AUTOMATIC", "MOST_ON_GRIDS", "RECIPE", "SCHEMA_VERSION", "VERSION"}
"""What every lane, data set or file format states of itself."""

NUMBERS = {"ZERO", "ONE"}
"""Of fractions and of formulas."""


def test_no_constant_has_two_values() -> None:
    """One name has one value wherever it stands; kernels apart, whose constants are positions in their own arrays."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body if not is_kernel(path) else ():
            for name, value in constants(node):
                found.setdefault(name, {}).setdefault(ast.dump(value), []).append(str(path.relative_to(SOURCE)))
    several = {name: list(values.values()) for name, values in found.items() if len(values) > 1}
    assert not {name: paths for name, paths in several.items() if name not in PROTOCOL | NUMBERS}


def constants(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the public constants that a statement of a module defines, with their values."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        yield from (
            (each.id, value)
            for each, value in pairs
            if isinstance(each, ast.Name) and each.id.isupper() and each.id[0] != "_"
        )


def test_files_and_functions_are_short() -> None:
    """95 of 100 files have at most 400 lines, and functions at most 60 without their docstrings; kernels apart."""
    sizes = sorted(path.read_text().count("\n") for path in FILES if not is_kernel(path))
    assert sizes[int(0.95 * len(sizes))] <= 400
    long = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not is_kernel(path):
                first = node.body[0]
                is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                lines = (node.end_lineno or 0) - node.lineno + 1
                if is_docstring:
                    lines -= (first.end_lineno or 0) - first.lineno + 1
                if lines > 60:
                    long.append((str(path.relative_to(SOURCE)), node.name, lines))
    assert not long


def test_the_top_level_has_at_most_ten_modules() -> None:
    assert len(set(SOURCE.glob("*.py")) - set(DOORS)) <= 10


def test_exported_names_are_exactly_those_meant() -> None:
    meant = {
        "__version__",
        "agree",
        "any_of",
        "at_least",
        "at_most",
        "at_most_change",
        "becomes",
        "between",
        "bootstrap",
        "categorical",
        "Causal",
        "Certificate",
        "changes",
        "changes_at_most",
        "Counterfactual",
        "datasets",
        "DatasetUnavailable",
        "date",
        "days",
        "decreases",
        "differ",
        "Distance",
        "either",
        "Encoder",
        "Explainer",
        "Explanation",
        "FeatureSpace",
        "fixed",
        "implies",
        "increases",
        "integer",
        "InvalidCertificate",
        "InvalidConstraint",
        "InvalidDistance",
        "InvalidOption",
        "InvalidProgram",
        "InvalidRow",
        "InvalidSpace",
        "InvalidTarget",
        "linear",
        "load_model",
        "MaceError",
        "MissingPackage",
        "months",
        "ModelChanged",
        "ServiceError",
        "near_data",
        "one_of",
        "only",
        "ordinal",
        "real",
        "robust",
        "rule",
        "Status",
        "steps",
        "together",
        "transitions",
        "typical",
        "UnknownOption",
        "UnsupportedModel",
        "Verdict",
        "verify",
        "warm_up",
        "weekdays",
        "within",
        "wrap",
        "years",
    }
    assert set(mace.__all__) == meant == set(dir(mace))
    for name in meant:
        assert getattr(mace, name) is not None


def test_the_names_for_type_checkers_are_the_names_at_run_time() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {
        (node.module, alias.name) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert declared == {(home, name) for name, home in mace._HOME.items()} | {("mace", "datasets")}


@pytest.mark.parametrize("name", mace._MOVED)
def test_a_name_that_moved_works_and_says_where_it_is(name: str) -> None:
    home = mace._MOVED[name]
    with pytest.warns(DeprecationWarning, match=f"from {home} import {name}") as caught:
        assert getattr(mace, name) is getattr(importlib.import_module(home), name)
    assert caught[0].filename == __file__
    assert name not in dir(mace)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = (
        "z3 pysmt cvc5 sklearn scipy pandas numpy numba highspy matplotlib rich typer skops xgboost lightgbm catboost"
    )
    heavy += " onnx onnxruntime torch"
    code = f"import sys, mace; print([name for name in {heavy.split()!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_checking_a_certificate_loads_no_solver(tmp_path: Path) -> None:
    model = "lambda age, income: 'yes' if age + income > 70 else 'no'"
    code = f"""
import sys, mace
from random_problems import from_source
space = mace.FeatureSpace({{"age": mace.integer(18, 90), "income": mace.integer(0, 50)}})
model = from_source("model = {model}\\n", "model")
"""
    write = "\nmace.Explainer(model, space).explain((30, 10), certify=True)[0].certificate.save(sys.argv[1])"
    check = """
verdict = mace.verify(mace.Certificate.load(sys.argv[1]), model)
loaded = [name for name in sys.modules if name.startswith(("mace.solvers", "mace.explainer", "numba", "highspy", "pysmt", "z3"))]
print(verdict.outcome, loaded)
"""
    paths = str(ROOT / "src"), str(ROOT / "tests" / "support")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    file = str(tmp_path / "certificate.json")
    subprocess.run([sys.executable, "-c", code + write, file], env=environment, check=True)
    result = subprocess.run(
        [sys.executable, "-c", code + check, file], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split(maxsplit=1)[1].strip() == "[]"
    assert result.stdout.split()[0] in ("valid", "unchecked")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'explain'"):
        mace.explain  # noqa: B018


def test_every_error_is_a_mace_error_and_a_builtin() -> None:
    from mace import errors

    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, Exception) and error is not mace.MaceError:
            assert issubclass(error, mace.MaceError), name
            assert issubclass(error, ValueError | TypeError | ImportError | OSError | RuntimeError), name
            assert name in mace.__all__ or name == "AlreadyThere"


def test_a_deprecated_name_is_found_and_says_what_is_instead() -> None:
    with pytest.warns(DeprecationWarning, match=r"mace\.AlreadyThere is no longer raised: .* status 'reached'"):
        assert issubclass(mace.AlreadyThere, mace.InvalidTarget)
    assert "AlreadyThere" not in dir(mace)


def test_every_dependency_declares_its_minimum() -> None:
    """``make test-lowest`` installs these."""
    found = minima((ROOT / "pyproject.toml").read_text())
    assert {"numpy", "skops", "ray", "xgboost-cpu"} <= found.keys()
    with pytest.raises(ValueError, match="declares no minimum"):
        minima('[project]\nname = "x"\ndependencies = ["numpy"]\noptional-dependencies = {}')


def test_no_file_prints_or_names_a_workplace() -> None:
    for path in ROOT.rglob("*"):
        is_ours = not any(part.startswith(".venv") for part in path.parts)
        if is_ours and path.is_file() and path.suffix in {".py", ".md", ".toml"}:
            assert "/" + "work/" not in path.read_text(), path


def test_what_the_architecture_page_names_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    paths = {name for name in re.findall(r"`([\w./-]+)`", page) if "/" in name or name.endswith(".py")}
    assert len(paths) > 50
    gone = [
        name
        for name in paths
        if not ((SOURCE / name).exists() or (ROOT / name).exists() if "/" in name else any(SOURCE.rglob(name)))
    ]
    assert not gone
    code = "\n".join(path.read_text() for path in FILES)
    constants = set(re.findall(r"`([A-Z][A-Z_]{3,})`", page))
    assert len(constants) > 10
    assert not [name for name in constants if not re.search(rf"\b{name}\b", code)]

"""Constraints kept in a file beside a model."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mace.constraints.condition import Constraint
from mace.constraints.robust import measured
from mace.constraints.rule import rule
from mace.disk import read_bytes, said
from mace.errors import InvalidConstraint
from mace.space import FeatureSpace

LARGEST_FILE = 2**24

_FORM = 'Write constraints = ["age stays", ...], or [[constraint]] tables with a rule and, if you like, a name.'


def load_constraints(
    path: str | Path, space: FeatureSpace | None = None, people: Callable[[], Any] | None = None
) -> list[Constraint]:
    """Return the constraints of a TOML file, checked against a space where one is given.

    The file holds texts, as :func:`mace.rule` reads them: ``constraints = ["sex, age stay", ...]``, and tables
    ``[[constraint]]`` with ``rule`` and optionally ``name``, which errors then use. A table ``[causes]`` beside them is for
    :meth:`mace.Causal.load`. ``people`` gives the data frame by which ``robust 5% of sd`` is measured.

    Raises
    ------
    InvalidConstraint
        Naming the file and the entry.
    """
    return [constraint for _, constraint in load_rules(path, space, people)]


def load_rules(
    path: str | Path, space: FeatureSpace | None = None, people: Callable[[], Any] | None = None
) -> list[tuple[str, Constraint]]:
    """Return the constraints of a TOML file as :func:`load_constraints` does, each behind its text."""
    made = []
    for place, text in _entries(read_toml(path), path):
        try:
            constraint = rule(text) if people is None else measured(rule(text), people)
            if space is not None:
                constraint.bind(space, space.some_point())
        except InvalidConstraint as error:
            raise InvalidConstraint(f"{path}, {place}: {error}") from error
        made.append((text, constraint))
    return made


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return what a TOML file holds."""
    try:
        return tomllib.loads(read_bytes(path, LARGEST_FILE).decode("utf-8-sig"))
    except OSError as error:
        raise InvalidConstraint(f"{path}: cannot be read: {said(error)}.") from error
    except RecursionError as error:
        raise InvalidConstraint(f"{path}: is nested too deeply for a file of constraints.") from error
    except ValueError as error:
        raise InvalidConstraint(f"{path}: is not TOML: {str(error)[:200]}.") from error


def _entries(data: dict[str, Any], path: str | Path) -> list[tuple[str, str]]:
    unknown = set(data) - {"constraints", "constraint", "causes"}
    listed, tables = data.get("constraints", []), data.get("constraint", [])
    if unknown or not isinstance(listed, list) or not isinstance(tables, list):
        what = f"unknown key {sorted(unknown)[0]!r}" if unknown else "not a list of constraints"
        raise InvalidConstraint(f"{path}: {what}. {_FORM}")
    entries = [(f"constraint {number}", text) for number, text in enumerate(listed, 1)]
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict) or not set(table) <= {"name", "rule"} or "rule" not in table:
            raise InvalidConstraint(f"{path}, [[constraint]] {number}: not a table with a rule. {_FORM}")
        entries.append((repr(table["name"]) if "name" in table else f"[[constraint]] {number}", table["rule"]))
    for place, text in entries:
        if not isinstance(text, str):
            raise InvalidConstraint(f"{path}, {place}: a value of type {type(text).__name__} is not a text. {_FORM}")
    return entries

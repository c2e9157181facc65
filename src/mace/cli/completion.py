"""What a shell completes: names of solvers and the like, the features of a space, the columns of a CSV file.

Completion starts a process for every press of a key, so nothing is imported here that takes long.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import typer

CHOICES = {
    "solver": ("auto", "trees", "network", "curves", "ratios", "milp", "smt", "enumerate", "search"),
    "distance": ("l0", "l1", "l2", "linf"),
    "outside": ("error", "keep", "widen"),
    "unread": ("search",),
    "datasets": ("adult", "compas", "credit", "german"),
    "models": ("tree", "forest", "lr", "mlp", "forest100"),
    "kind": ("models", "distances", "constraints", "solvers", "baselines", "datasets"),
}
"""Names that options take; a test compares them with the tables that the code uses."""

LARGEST_SPACE = 2**22
"""Bytes of a space that is read for the names of its features."""


def choices(name: str) -> Callable[[str], list[str]]:
    """Return what completes one of some names."""

    def complete(incomplete: str) -> list[str]:
        return [each for each in CHOICES[name] if each.startswith(incomplete)]

    return complete


def several(name: str) -> Callable[[str], list[str]]:
    """Return what completes a comma-separated list of some names."""

    def complete(incomplete: str) -> list[str]:
        return _listed(CHOICES[name], incomplete)

    return complete


def features(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a comma-separated list of the features of ``--space``, where that is given already."""
    try:
        path = Path(context.params["space"])
        known = json.loads(path.read_text())["features"] if path.stat().st_size < LARGEST_SPACE else ()
    except (KeyError, TypeError, ValueError, OSError):
        return []
    return _listed(known, incomplete)


def columns(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a comma-separated list of the columns of the CSV file, where that is given already."""
    try:
        with Path(context.params["data"]).open(encoding="utf-8-sig", newline="") as file:
            known = next(csv.reader(islice(file, 1)), [])
    except (KeyError, TypeError, ValueError, OSError):
        return []
    return _listed(known, incomplete)


def _listed(names: Iterable[str], incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    used = before.split(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last) and name not in used]

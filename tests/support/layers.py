"""The order of the package's rooms: a file imports only rooms that come before its own, or its own room.

``LAYERS`` orders the top level, ``ROOMS`` the inside of some folders. CONTRIBUTING.md prints it, ``test_project.py`` checks it.
"""

from __future__ import annotations

LAYERS: dict[str, tuple[str, ...]] = {
    "ground": ("errors", "clock", "exact", "registry", "disk", "moved", "slips", "recent"),
    "data": ("space",),
    "programs": ("language", "forms"),
    "models": ("distances", "models"),
    "questions": ("constraints", "targets", "testing", "problem"),
    "reductions": ("reductions",),
    "search and proof": ("certify", "solvers"),
    "answers": ("answer", "batch", "letters", "plots", "notebook"),
    "explainer": ("explainer",),
    "uses": ("datasets", "baselines", "audits", "experiments", "cli", "service", "client"),
}
"""Layers from the ground up; within one, too, a room imports only those before it."""

ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "solvers": (
        (
            "abilities",
            "compiled",
            "compiling",
            "pace",
            "roundings",
            "scale",
            "linear_program",
            "tiny",
            "domains",
            "missing",
            "witness",
            "incumbent",
            "bisection",
        ),
        ("trees", "network", "smt", "milp", "enumerate", "search"),
        ("curves",),
        ("boxes",),
        ("ratios",),
        ("robust",),
        ("choose",),
        ("ready",),
    ),
    "certify": (
        (
            "trusted",
            "verdict",
            "proofs",
            "arrays",
            "certificate",
            "entries",
            "statement",
            "enumerate",
            "patterns",
        ),
        ("reasons",),
        ("trees", "network", "smt"),
        ("boxes",),
        ("curves",),
        ("ratios",),
        ("robust",),
        ("effects",),
        ("check",),
    ),
}

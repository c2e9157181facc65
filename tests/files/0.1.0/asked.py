"""What the files of this folder are about that no file format holds: functions as models, and the questions of the batches."""

from __future__ import annotations

from typing import Any

import mace


def lender(income, debt, housing):  # type: ignore[no-untyped-def]
    """Piecewise linear: the general lane."""
    score = 0.5 * income - debt
    if housing == "own":
        score = score + 8
    return "yes" if max(score, 10 - debt) >= 20 else "no"


def nonlinear(x, y):  # type: ignore[no-untyped-def]
    """For SMT: a product of features."""
    return 1 if x * y >= 6 else 0


def points(a, b, c):  # type: ignore[no-untyped-def]
    """Over a finite space: every point is looked at."""
    return 1 if (a + 2 * b >= 9 and c != "z") or a * b == 10 else 0


def price(rooms, area):  # type: ignore[no-untyped-def]
    """A number rather than a class."""
    return 20 * rooms + 3 * area + (50 if area >= 60 else 0)


FUNCTIONS = {"lender": lender, "nonlinear": nonlinear, "points": points, "price": price}


def batches() -> dict[str, dict[str, Any]]:
    """Return for each checkpoint the arguments of ``explain_many``."""
    return {
        "tree": {"target": "good"},
        "forest": {
            "target": mace.any_of(["good", "fair"]),
            "distance": mace.Distance(l0=0.5, l1=0.5),
            "constraints": [mace.fixed("age"), "debt <= 0.5 * income or housing == 'own'"],
            "count": 2,
            "diversity": mace.differ(features=2),
        },
        "logistic": {"target": mace.at_least(0.7, "good"), "distance": "l2", "certify": True},
        "network": {"distance": "linf", "constraints": [mace.robust({"income": 1.0})], "certify": True, "digits": 3},
        "gaps": {"target": 1, "constraints": ["income is not missing"], "certify": True},
        "lender": {"target": "yes", "accuracy": 1e-4},
    }

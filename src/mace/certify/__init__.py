"""Certificates: what was claimed, of which model, with a proof that is checked without trusting the solver.

This package imports what :mod:`mace.certify.trusted` lists and nothing of the search; every bound is derived here. The checkers are
imported when somebody checks: most who hold a certificate do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mace.certify.certificate import Certificate
from mace.certify.proofs import CHECKERS
from mace.certify.verdict import Refuted, Unchecked, Verdict

if TYPE_CHECKING:
    from mace.certify.check import verify

__all__ = ["CHECKERS", "Certificate", "Refuted", "Unchecked", "Verdict", "verify"]


def __getattr__(name: str) -> object:
    """Return ``verify``."""
    if name != "verify":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mace.certify.check import verify

    return verify

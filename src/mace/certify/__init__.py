"""Certificates: what was claimed, of which model, with a proof that is checked without trusting the solver.

This package imports no solver, and nothing that a solver computes with: readers, spaces, constraints, distances and targets are
shared, every bound is made anew.
"""

from mace.certify.certificate import Certificate
from mace.certify.check import CHECKERS, verify
from mace.certify.verdict import Refuted, Unchecked, Verdict

__all__ = ["CHECKERS", "Certificate", "Refuted", "Unchecked", "Verdict", "verify"]

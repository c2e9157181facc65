"""Certificates: what was claimed, of which model, with a proof that is checked without trusting the solver.

This package imports what :mod:`mace.certify.trusted` lists and nothing of the search; every bound is derived here.
"""

from mace.certify.certificate import Certificate
from mace.certify.check import verify
from mace.certify.proofs import CHECKERS
from mace.certify.verdict import Refuted, Unchecked, Verdict

__all__ = ["CHECKERS", "Certificate", "Refuted", "Unchecked", "Verdict", "verify"]

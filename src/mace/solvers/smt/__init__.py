"""The SMT lane: the paper's algorithm with any solver that pySMT drives, Z3 by default."""

from mace.solvers.smt.search import BACK_ENDS, CUTS_BOXES, IS_AUTOMATIC, TAKES, solve, supports

__all__ = ["BACK_ENDS", "CUTS_BOXES", "IS_AUTOMATIC", "TAKES", "solve", "supports"]

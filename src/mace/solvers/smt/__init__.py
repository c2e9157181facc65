"""The SMT lane: the paper's algorithm with any solver that pySMT drives, Z3 by default."""

from mace.solvers.smt.search import BACK_ENDS, solve, supports

__all__ = ["BACK_ENDS", "solve", "supports"]

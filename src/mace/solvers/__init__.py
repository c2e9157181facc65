"""Solvers: one module each (see :class:`~mace.solvers.abilities.Solver`), one line in the table."""

from mace.solvers.abilities import Lane
from mace.solvers.choose import CONDITION_SEARCHES, SOLVERS, choose

__all__ = ["CONDITION_SEARCHES", "SOLVERS", "Lane", "choose"]

"""Solvers: one module each (see :class:`~mace.solvers.abilities.Solver`), one line in the table."""

from mace.solvers.choose import SOLVERS, Lane, choose

__all__ = ["SOLVERS", "Lane", "choose"]

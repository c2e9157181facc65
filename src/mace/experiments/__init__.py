"""The paper's tables and figures, made anew: ``mace reproduce``."""

from mace.experiments.plan import FIGURES, TABLES, Plan, reproduce

__all__ = ["FIGURES", "TABLES", "Plan", "reproduce"]

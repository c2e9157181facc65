"""Plots: Display objects that hold their data and draw it on axes, with matplotlib, which is an extra.

A display's ``plot(ax)`` draws on the axes given, or on new ones, and keeps them as ``ax_`` and ``figure_``; ``save(path)`` writes a
picture of the size that suits.
"""

from mace.plots.batch import BatchDisplay
from mace.plots.changes import ChangesDisplay
from mace.plots.groups import DistancesDisplay, LeversDisplay, OutcomesDisplay
from mace.plots.menu import MenuDisplay
from mace.plots.reasons import ReasonsDisplay
from mace.plots.search import BoundaryDisplay, BoundsDisplay

__all__ = [
    "BatchDisplay",
    "BoundaryDisplay",
    "BoundsDisplay",
    "ChangesDisplay",
    "DistancesDisplay",
    "LeversDisplay",
    "MenuDisplay",
    "OutcomesDisplay",
    "ReasonsDisplay",
]

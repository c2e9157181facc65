"""Plots: Display objects that hold their data and draw it on axes, with matplotlib, which is an extra.

A display's ``plot(ax)`` draws on the axes given, or on new ones, and keeps them as ``ax_`` and ``figure_``.
"""

from mace.plots.groups import DistancesDisplay, LeversDisplay, OutcomesDisplay

__all__ = ["DistancesDisplay", "LeversDisplay", "OutcomesDisplay"]

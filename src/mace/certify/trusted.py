"""What the checker believes: the only modules of the package that it imports apart from its own.

Nothing of the search is among them. A test holds the list against every import, and checks certificates with the search taken away;
``docs/guarantees.md`` prints it.
"""

from __future__ import annotations

TRUSTED: dict[str, str] = {
    "mace.errors": "the messages",
    "mace.slips": "what to write instead of a likely slip, in messages",
    "mace.clock": "deadlines, which the checker does not set",
    "mace.exact": "rounding of fractions to floats, and bounds on rounding",
    "mace.registry": "names of modules to modules",
    "mace.disk": "reading and writing files",
    "mace.recent": "a table of a few entries: what constraints keep for the spaces that they were asked about",
    "mace.space": "features, their values, grids and decimals, and the columns made of them",
    "mace.language": "programs and guards: running them exactly, their formulas, where they are linear or rise",
    "mace.forms": "what a model computes, as arrays or a program, with the bound on its rounding; what follows from actions",
    "mace.distances": "distances",
    "mace.models": "readers of models, and the models themselves, which are asked",
    "mace.constraints": "what constraints mean: `bind`, `holds` and `formula` of their conditions",
    "mace.targets": "which outcomes count",
    "mace.problem": "the question: features, model, goal, row, distance and conditions",
}
"""Modules, with all below them, and what the checker takes from them."""

SEARCH_AIDS: dict[str, tuple[str, ...]] = {
    "mace.constraints.robust:RobustCondition": ("reach", "remember"),
    "mace.constraints.typical:Usual": ("depths", "unsure", "expected"),
}
"""What the classes of conditions hold for the search alone; the checker uses none of it."""

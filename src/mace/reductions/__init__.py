"""Reductions: maps from a question to another question about the same rows, which a lane can take.

The contract of each:

- The space, the row and the distance stay, so that a point of the new question is a point of the first, at the same distance. (The
  question for a counterexample in :mod:`~mace.reductions.noise_box` is no reduction: it is another question.)
- It takes what its description names, and says so where it cannot take a question: it returns ``None``, raises, or leaves it as it is.
- ``EQUAL``: both have the same answers. ``RELAXATION``: the new question has every answer of the first, and perhaps more. So ``lower`` of
  the new one holds of the first, and so does *infeasible*; its point is checked against the first before it becomes the incumbent.
  ``RESTRICTION``: the first question over some of its rows; together with those over the others it is equal.
- A proof of the new question proves the bound of the first. A checker derives the new question anew, without this folder.

Rounding is on the safe side: where floats may be off, the new question has more answers, never fewer.
"""

from enum import StrEnum


class Relation(StrEnum):
    """How the answers of the new question relate to those of the first."""

    EQUAL = "equal"
    RELAXATION = "relaxation"
    RESTRICTION = "restriction"


REDUCTIONS: dict[str, Relation] = {
    "mace.reductions.joint_forest:joined": Relation.EQUAL,
    "mace.reductions.noise_box:inside": Relation.RESTRICTION,
    "mace.reductions.actions:through": Relation.EQUAL,
    "mace.reductions.effects:over_actions": Relation.RELAXATION,
    "mace.reductions.shifted_network:shifted": Relation.RELAXATION,
    "mace.reductions.tree_copies:Copies": Relation.RELAXATION,
}
"""The maps from questions to questions, and what they promise; ``tests/reductions`` compares their answers row by row."""

__all__ = ["REDUCTIONS", "Relation"]

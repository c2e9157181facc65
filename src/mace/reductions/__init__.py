"""Reductions: maps from a question to another question about the same rows, which a lane can take.

The contract of each, stated in ``REDUCTIONS``:

- **What it takes.** Its first argument is a question, or the model of one as read. Where it cannot take that it says so: it returns
  ``None``, raises, or leaves the question as it is.
- **How a point comes back.** The space, the row and the distance stay, so a point of the new question is a point of the first, at the same
  distance.
- **How a bound comes back.** ``EQUAL``: both have the same answers. ``RELAXATION``: the new question has every answer of the first, and
  perhaps more. So ``lower`` of the new one holds of the first, and so does *infeasible*; its point is checked against the first before it
  becomes the incumbent. ``RESTRICTION``: the first question over some of its rows; the least ``lower`` of several that cover all rows holds
  of the first.
- **How a proof comes back.** A proof of the new question proves the bound of the first. The checker has a derivation of its own of the new
  question, and imports nothing of this folder.

Rounding is on the safe side: where floats may be off, the new question has more answers, never fewer.

No reductions: the question for a counterexample (:mod:`~mace.reductions.noise_box`) is another question, and the parts of one missingness
pattern (``mace.solvers.network.parts``, ``mace.solvers.trees.parts``) are arrays for kernels, which know nothing missing: their features,
factual and costs are not those of the question. ``tests/reductions`` holds that their scores are.
"""

from dataclasses import dataclass
from enum import StrEnum


class Relation(StrEnum):
    """How the answers of the new question relate to those of the first."""

    EQUAL = "equal"
    RELAXATION = "relaxation"
    RESTRICTION = "restriction"


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a reduction promises.

    Attributes
    ----------
    takes : str
        The questions that it takes.
    relation : Relation
        How the answers of the new question relate to those of the first.
    derived : str
        Where the checker derives the new question anew, as ``"module:attribute"``.
    """

    takes: str
    relation: Relation
    derived: str


REDUCTIONS: dict[str, Reduction] = {
    "mace.reductions.joint_forest:joined": Reduction(
        "a tree ensemble with `typical`: both forests as one", Relation.EQUAL, "mace.certify.trees.ensembles:Decisions"
    ),
    "mace.reductions.tree_copies:Copies": Reduction(
        "a tree ensemble with `robust`: copies where noise may lead",
        Relation.RELAXATION,
        "mace.certify.robust.copies:with_copies",
    ),
    "mace.reductions.shifted_network:shifted": Reduction(
        "a network with `robust`: copies with their inputs moved",
        Relation.RELAXATION,
        "mace.certify.robust.network:with_moves",
    ),
    "mace.reductions.noise_box:inside": Reduction(
        "any question: its rows in a box", Relation.RESTRICTION, "mace.certify.boxes.checker:check"
    ),
    "mace.reductions.actions:through": Reduction(
        "any question with causes: actions, and the row that these lead to",
        Relation.EQUAL,
        "mace.certify.effects.actions:about_actions",
    ),
    "mace.reductions.actions:in_pieces": Reduction(
        "causes whose equations are piecewise linear: one piece of each",
        Relation.RESTRICTION,
        "mace.certify.effects.actions:linear_pieces",
    ),
    "mace.reductions.actions:at_levels": Reduction(
        "causes with few values: one value of each", Relation.RESTRICTION, "mace.certify.effects.actions:cases"
    ),
    "mace.reductions.effects:over_actions": Reduction(
        "trees or a network behind equations: the equations in the model",
        Relation.RELAXATION,
        "mace.certify.effects.models:over_actions",
    ),
    "mace.reductions.polylines:lowered": Reduction(
        "a sum of networks and of polylines of networks: one network",
        Relation.EQUAL,
        "mace.certify.curves.polylines:as_network",
    ),
}
"""The maps from questions to questions, and what they promise; ``tests/reductions`` compares their answers row by row."""

__all__ = ["REDUCTIONS", "Reduction", "Relation"]

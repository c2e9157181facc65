"""Conditions as parts of the search over boxes: what each does to a box, and the table of those that are no guards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from mace.constraints.condition import Values
from mace.constraints.near_data import Neighbour
from mace.problem import Evidence
from mace.reductions.regions import Region
from mace.registry import Registry
from mace.space import Point


@dataclass(frozen=True, slots=True)
class Left:
    """What a condition leaves of a box.

    Attributes
    ----------
    region : Region, optional
        The box, or a part of it with every row that fulfils the condition; ``None`` where there is no such row.
    cut : Cut
        The condition as it is to hold there.
    floor : Fraction
        No row of the box that fulfils the condition is nearer than this.
    proof : Evidence, optional
        The tree lane's proof of the floor, or that there is no such row, where it has one.
    forest : int, optional
        The number of the isolation forest that the proof is about.
    neighbours : tuple of Neighbour
        The rows of data that are near every row of the box that counts; lanes that take such conditions are asked with them.
    is_undecided : bool
        Whether the box is branched on without a point of it, because it is still to be chosen which rows of data are near.
    """

    region: Region | None
    cut: Cut
    floor: Fraction = Fraction(0)
    proof: Evidence | None = None
    forest: int | None = None
    neighbours: tuple[Neighbour, ...] = ()
    is_undecided: bool = False


class Cut(Protocol):
    """A condition that a lane cannot take: it narrows boxes and branches on them, and never loses a row that fulfils it."""

    def narrow(self, region: Region) -> Left:
        """Return what the condition leaves of a box."""

    def may_hold(self, point: Point, values: Values) -> bool:
        """Return whether a point fulfils the condition, as far as that is quickly decided."""

    def branch(self, region: Region, point: Point) -> list[Branch] | None:
        """Return the parts of a box in which a point fails; ``None`` where the box is too narrow to be cut."""

    def repaired(self, point: Point) -> Iterator[Point]:
        """Yield points near one that fails at which the condition may hold."""


Branch = tuple[Region, Cut]
"""A part of a box, and the condition as it is to hold there."""

CUTS = Registry(
    "cuts",
    {
        "near_data": "mace.solvers.boxes.near_data:neighbours_cut",
        "typical": "mace.solvers.boxes.typical:usual_cut",
    },
)
"""What makes the cut of a condition, by the name that the condition gives it."""

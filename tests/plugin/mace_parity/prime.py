"""``prime("rooms")``: a whole number that must be prime. A search asks the lane for row after row, until one is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from mace.certify import Refuted
from mace.constraints.condition import Condition, Values
from mace.constraints.differ import CountDifferent
from mace.constraints.views import View
from mace.language import syntax
from mace.problem import Bounds, Limits, Problem
from mace.solvers.abilities import Choose, Lane
from mace.space import FeatureSpace, Point

from .proof import check as check_rows


@dataclass(frozen=True)
class IsPrime(Condition):
    """A feature is prime."""

    name: str
    search: ClassVar[str] = "prime"

    def holds(self, values: Values) -> bool:
        value = values[self.name] or 0
        return value > 1 and all(value % smaller for smaller in range(2, int(value)))

    def formula(self, prefix: str) -> syntax.Guard:
        raise NotImplementedError("there is none")

    def why_not(self, view: View, space: FeatureSpace) -> str:
        return "it has a search of its own"


@dataclass(frozen=True)
class Prime:
    """What the user writes."""

    name: str

    def bind(self, space: FeatureSpace, factual: Point) -> IsPrime:
        return IsPrime(self.name)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "prime", "arguments": [self.name]}

    def __str__(self) -> str:
        return f"prime({self.name!r})"


def prime(name: str) -> Prime:
    return Prime(name)


def solve(problem: Problem, limits: Limits, choose: Choose, lane: Lane) -> Bounds:
    """Ask for the nearest row, and again for one that is none of those that were not prime."""
    _, asked = problem.searched
    found = lane.solve(asked, limits)
    while found.point is not None and not problem.is_plausible(found.point):
        other = CountDifferent(problem.space, found.point, 1, Fraction(0))
        asked = replace(asked, conditions=(*asked.conditions, other))
        found = choose(asked).solve(asked, limits)
    return replace(found, evidence={"lane": "prime"} if limits.record else None)


def check_answer(condition: IsPrime, problem: Problem, point: Point, evidence: dict[str, Any]) -> None:
    if not replace(problem, conditions=(condition,)).is_plausible(point):
        raise Refuted(f"{condition.name} is not prime")


def check(
    condition: IsPrime, problem: Problem, lower: Fraction | None, evidence: dict[str, Any], progress: Any
) -> None:
    check_rows(replace(problem, conditions=(*problem.conditions, condition)), lower, evidence, progress)

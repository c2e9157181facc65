"""``even("children")``: a whole number that must be even. It has no formula; boxes are cut until it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from mace.constraints.condition import Condition, Values, ordered_feature
from mace.constraints.views import View
from mace.language import syntax
from mace.problem import Limits, Problem
from mace.reductions.regions import Region
from mace.solvers.boxes.branching import branch_at, next_value
from mace.solvers.boxes.cuts import Branch, Left
from mace.space import FeatureSpace, Point


@dataclass(frozen=True)
class IsEven(Condition):
    """A feature is even."""

    name: str
    cut: ClassVar[str] = "even"

    def holds(self, values: Values) -> bool:
        return (values[self.name] or 0) % 2 == 0

    def formula(self, prefix: str) -> syntax.Guard:
        raise NotImplementedError("there is none")

    def why_not(self, view: View, space: FeatureSpace) -> str:
        return "" if view in (View.CUT, View.ROWS) else view.value


@dataclass(frozen=True)
class Even:
    """What the user writes."""

    name: str

    def bind(self, space: FeatureSpace, factual: Point) -> IsEven:
        ordered_feature(space, self.name, str(self))
        return IsEven(self.name)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "even", "arguments": [self.name]}

    def __str__(self) -> str:
        return f"even({self.name!r})"


def even(name: str) -> Even:
    return Even(name)


@dataclass(frozen=True)
class EvenCut:
    """Ranges begin and end with even numbers; a box is cut beside an odd one."""

    condition: IsEven
    problem: Problem
    limits: Limits

    def narrow(self, region: Region) -> Left:
        left = region[self.condition.name]
        low, high = left.low + left.low % 2, left.high - left.high % 2
        kept = None if low > high else region | {self.condition.name: replace(left, low=low, high=high)}
        return Left(kept, self)

    def may_hold(self, point: Point, values: Values) -> bool:
        return self.condition.holds(values)

    def branch(self, region: Region, point: Point) -> list[Branch] | None:
        odd = Fraction(point[self.problem.space.index(self.condition.name)] or 0)
        parts = branch_at(self.problem, region, point, [(self.condition.name, odd, True)])
        return None if parts is None else [(part, self) for part in parts]

    def repaired(self, point: Point) -> Iterator[Point]:
        j = self.problem.space.index(self.condition.name)
        for step in (1, -1):
            value = next_value(self.problem, j, Fraction(point[j] or 0) + step, up=step > 0)
            yield (*point[:j], value, *point[j + 1 :])

"""Formulas over quantities, as the relaxation sees them: bounds, rows, products, conjunctions, disjunctions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from mace.exact import float_down, float_up


@dataclass(frozen=True, slots=True)
class Bound:
    """A column lies between two numbers; ``None`` is no bound, and a strict end is itself outside.

    ``least`` and ``most`` are the ends as floats, rounded outward.
    """

    column: int
    low: Fraction | None
    high: Fraction | None
    strict: bool = False
    least: float = field(init=False)
    most: float = field(init=False)

    def __post_init__(self) -> None:
        _round_ends(self)


@dataclass(frozen=True, slots=True)
class FormBound:
    """A form, with a small remainder Σ ±d·x added to it, lies between two numbers."""

    form: int
    low: Fraction | None
    high: Fraction | None
    remainder: tuple[tuple[int, float], ...] = ()
    strict: bool = False
    least: float = field(init=False)
    most: float = field(init=False)

    def __post_init__(self) -> None:
        _round_ends(self)


def _round_ends(node: Bound | FormBound) -> None:
    object.__setattr__(node, "least", -math.inf if node.low is None else float_down(node.low))
    object.__setattr__(node, "most", math.inf if node.high is None else float_up(node.high))


@dataclass(frozen=True, slots=True)
class NotEqual:
    """A column is not this number; of use only where it is known to take finitely many."""

    column: int
    value: Fraction


@dataclass(frozen=True, slots=True)
class Product:
    """``column`` = ``first`` · ``second``, all three columns."""

    column: int
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class All:
    """All parts hold."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """Some part holds; ``boxes`` are the bounds that each part brings with it, once they have been worked out."""

    parts: tuple[Node, ...]
    boxes: tuple[dict[int, tuple[float, float]], ...] = ()


@dataclass(frozen=True, slots=True)
class Implied:
    """It holds, and bounds follow from it; the program need not have its rows."""

    part: Node


@dataclass(frozen=True, slots=True)
class Never:
    """Nothing holds."""


Node = Bound | FormBound | NotEqual | Product | All | Some | Implied | Never

ALWAYS_TRUE = All(())


def every(parts: list[Node]) -> Node:
    """Return the conjunction, flattened."""
    kept: list[Node] = []
    for part in parts:
        if isinstance(part, Never):
            return part
        kept.extend(part.parts if isinstance(part, All) else (part,))
    return kept[0] if len(kept) == 1 else All(tuple(kept))


def some(parts: list[Node]) -> Node:
    """Return the disjunction, flattened."""
    kept: list[Node] = []
    for part in parts:
        if part == ALWAYS_TRUE:
            return ALWAYS_TRUE
        if isinstance(part, Some):
            kept.extend(part.parts)
        elif not isinstance(part, Never):
            kept.append(part)
    if not kept:
        return Never()
    return kept[0] if len(kept) == 1 else Some(tuple(kept))

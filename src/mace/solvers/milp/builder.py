"""A contracted formula as a mixed integer linear program.

Each disjunction becomes a *choice*: one 0/1 column a part, of which exactly one is 1. A quantity q that lies in [l_k, h_k] under part k
gets the rows Σ l_k b_k <= q <= Σ h_k b_k: big-M rows whose constants are the intervals of the parts, not one number for all. A part that
is itself a single disjunction is replaced by its parts; several inside one part become choices of their own, summing to that part's column.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mace.clock import check
from mace.solvers.milp.contract import LOST_BY_UNDERFLOW, ROUND, Contractor
from mace.solvers.milp.nodes import All, Bound, FormBound, Implied, Node, Product, Some
from mace.solvers.milp.program import Choices, MixedProgram, ints, matrix
from mace.solvers.milp.quantities import Domain, Quantities, least

Ranges = dict[int, tuple[float, float]]

ALIKE = 1e-11
"""Bounds of the parts of a choice that differ by no more than this share of their size are replaced by the widest."""


@dataclass(slots=True)
class ChoicePart:
    """One part of a choice: the ranges it brings, the forms it bounds, the choices inside it, and its column."""

    ranges: Ranges
    forms: dict[int, None]
    choices: list[Some]
    column: int = -1


@dataclass(slots=True)
class _Lists:
    """The arrays of the choices while they grow; quantities are not yet placed."""

    columns: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    choice: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    part: list[int] = field(default_factory=list)
    quantity: list[int] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)


class Room:
    """A column for how far inside of its inequalities a point lies, as a share of the size of what each bounds.

    The inequalities are those on quantities that a formula bounds on one side only.
    """

    def __init__(self, quantities: Quantities, parts: Iterable[Node]) -> None:
        one_sided: set[int] = set()
        fixed: set[int] = set()
        pending = list(parts)
        while pending:
            match pending.pop():
                case Bound(quantity, low, high) | FormBound(quantity, low, high):
                    is_feature = quantities.is_feature[quantity] or quantities.domain[quantity] is not None
                    (one_sided if (low is None) != (high is None) and not is_feature else fixed).add(quantity)
                case All(inner) | Some(inner):
                    pending.extend(inner)
                case Implied(part):
                    pending.append(part)
                case _:
                    pass
        self.quantities = one_sided - fixed
        self.column = quantities.column(0.0, 1.0)


class Infeasible(Exception):
    """A choice has no part left."""


class Builder:
    """Turns a contracted formula into a program."""

    def __init__(self, box: Contractor, room: Room | None = None) -> None:
        box.grow()
        self.box = box
        self.room = room
        self.quantities = box.quantities
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.part_columns: list[int] = []
        self.lists = _Lists()
        self._unbounded = {
            q for q in range(len(self.quantities)) if self.quantities.terms[q] is None and not self._is_finite(q)
        }

    def _is_finite(self, quantity: int) -> bool:
        return math.isfinite(self.box.low[quantity]) and math.isfinite(self.box.high[quantity])

    def build(self, parts: Iterable[Node]) -> MixedProgram | None:
        """Return the program of a conjunction; ``None`` where a choice has no part left."""
        try:
            for node in parts:
                self._add(node)
        except Infeasible:
            return None
        return self._program()

    def _add(self, node: Node) -> None:
        match node:
            case FormBound(form, low, high):
                self._bound_form(form, self.box.low[form] if low is not None else -math.inf,
                                 self.box.high[form] if high is not None else math.inf)  # fmt: skip
            case Bound(column, low, high) if self.room is not None and column in self.room.quantities:
                self._bound_form(column, self.box.low[column] if low is not None else -math.inf,
                                 self.box.high[column] if high is not None else math.inf)  # fmt: skip
            case Product():
                self._product(node)
            case Some():
                self._choose(node, -1, {}, [])
            case All(parts):
                for part in parts:
                    self._add(part)
            case _:
                pass

    # ---- rows

    def _bound_form(self, form: int, low: float, high: float, more: dict[int, float] | None = None) -> None:
        """Add the row low <= form + Σ more·column <= high, with room for the rounding of the form's coefficients."""
        terms, exact = self.quantities.terms[form], self.quantities.exact[form]
        if terms is None:
            row = {form: 1.0}
            slack = 0.0
        else:
            assert exact is not None
            row = dict(terms)
            slack = self._rounding(terms, exact)
        if any(column in self._unbounded for column in row):
            return
        if self.room is not None and form in self.room.quantities and math.isinf(low) != math.isinf(high):
            row[self.room.column] = self._form_size(form) * (1.0 if math.isinf(low) else -1.0)
        if slack:
            low, high = math.nextafter(low - slack, -math.inf), math.nextafter(high + slack, math.inf)
        self.rows.append((row | (more or {}), low, high))

    def _rounding(self, terms: tuple[tuple[int, float], ...], exact: dict[int, Fraction]) -> float:
        """Return how far a form with rounded coefficients can be from the form itself."""
        slack = 0.0
        for column, a in terms:
            if exact[column] != a:
                slack += float(abs(exact[column] - Fraction(a))) * self._size(column)
        return slack * 1.001

    def _size(self, column: int) -> float:
        return max(abs(self.box.low[column]), abs(self.box.high[column]))

    def _product(self, product: Product) -> None:
        """Add the rows of a product: linear with a slack where a factor hardly varies, else its convex hull."""
        column, first, second = product.column, product.first, product.second
        if self._unbounded & {column, first, second}:
            return
        low, high = self.box.low, self.box.high
        if (high[first] - low[first]) * self._size(second) > (high[second] - low[second]) * self._size(first):
            first, second = second, first
        middle = (low[first] + high[first]) / 2
        radius = (high[first] - low[first]) * (0.5 + ROUND) + ROUND * abs(middle)
        slack = radius * self._size(second) * (1 + 8 * ROUND)
        if column != second:
            self.rows.append(({column: 1.0, second: -middle}, -slack, slack))

    # ---- choices

    def _choose(self, choice: Some, parent: int, outer: Ranges, outside: list[ChoicePart]) -> None:
        check()
        parts = [part for part in self._parts(choice, outer, {}) if self._fits(part)]
        if not parts:
            if parent < 0:
                raise Infeasible
            self.rows.append(({self.lists.columns[parent]: 1.0}, 0.0, 0.0))
            return
        varying = self._varying(parts, outside)
        if not any(part.choices for part in parts) and self._says_nothing(varying, parts, outside):
            return
        number = len(self.lists.starts)
        self.lists.starts.append(len(self.lists.columns))
        self.lists.parent.append(parent)
        for part in parts:
            part.column = self._new_column()
            self.lists.columns.append(part.column)
            self.lists.choice.append(number)
        whole = {part.column: 1.0 for part in parts}
        if parent < 0:
            self.rows.append((whole, 1.0, 1.0))
        else:
            self.rows.append((whole | {self.lists.columns[parent]: -1.0}, 0.0, 0.0))
        first = self.lists.starts[number]
        for quantity, ranges in varying.items():
            self._link(quantity, [*parts, *outside], ranges)
            self.lists.segments.append(len(self.lists.part))
            for k, (low, high) in enumerate(ranges[: len(parts)]):
                self.lists.part.append(first + k)
                self.lists.quantity.append(quantity)
                self.lists.low.append(low)
                self.lists.high.append(high)
        for k, part in enumerate(parts):
            others = [*outside, *parts[:k], *parts[k + 1 :]]
            for inner in part.choices:
                self._choose(inner, first + k, part.ranges, others)

    def _new_column(self) -> int:
        column = len(self.quantities) + len(self.part_columns)
        self.part_columns.append(column)
        return column

    def _parts(self, choice: Some, outer: Ranges, forms: dict[int, None]) -> list[ChoicePart]:
        parts = []
        for node, box in zip(choice.parts, choice.boxes, strict=True):
            pieces = node.parts if isinstance(node, All) else (node,)
            bounded = forms | {piece.form: None for piece in pieces if isinstance(piece, FormBound)}
            inner = [piece for piece in pieces if isinstance(piece, Some)]
            ranges = outer | box
            if len(inner) == 1:
                parts += self._parts(inner[0], ranges, bounded)
            else:
                parts.append(ChoicePart(ranges, bounded, inner))
        return parts

    def _fits(self, part: ChoicePart) -> bool:
        return all(max(low, self.box.low[q]) <= min(high, self.box.high[q]) for q, (low, high) in part.ranges.items())

    def _range(self, quantity: int, part: ChoicePart) -> tuple[float, float]:
        """Return the range of a quantity under a part, and under everything around it."""
        low, high = self.box.low[quantity], self.box.high[quantity]
        if quantity in part.ranges and (self.quantities.terms[quantity] is None or quantity in part.forms):
            low, high = max(low, part.ranges[quantity][0]), min(high, part.ranges[quantity][1])
        terms = self.quantities.terms[quantity]
        if terms is None:
            return low, high
        smallest = largest = size = 0.0
        for column, a in terms:
            least, greatest = self._range(column, part)
            smallest += a * (least if a > 0 else greatest)
            largest += a * (greatest if a > 0 else least)
            size += abs(a) * max(abs(least), abs(greatest))
        error = (len(terms) + 4) * ROUND * size + LOST_BY_UNDERFLOW
        return max(low, smallest - error), min(high, largest + error)

    def _varying(self, parts: list[ChoicePart], outside: list[ChoicePart]) -> dict[int, list[tuple[float, float]]]:
        """Return the ranges, part by part, of each quantity that is not bounded alike under all of them.

        What is bounded alike everywhere is bounded at once.
        """
        columns = [
            q for part in parts for q in part.ranges if self.quantities.terms[q] is None and q not in self._unbounded
        ]
        forms = [q for part in parts for q in part.forms if self._is_bounded(q)]
        varying = {}
        for quantity in dict.fromkeys([*columns, *forms]):
            ranges = [self._range(quantity, part) for part in (*parts, *outside)]
            lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
            size = self._form_size(quantity)
            alike = max(lows) - min(lows) <= ALIKE * size and max(highs) - min(highs) <= ALIKE * size
            if not alike:
                varying[quantity] = ranges
            elif self.quantities.terms[quantity] is None:
                self.box.low[quantity] = max(self.box.low[quantity], min(lows))
                self.box.high[quantity] = min(self.box.high[quantity], max(highs))
            else:
                self._bound_form(quantity, min(lows), max(highs))
        return varying

    def _is_bounded(self, form: int) -> bool:
        terms = self.quantities.terms[form]
        assert terms is not None
        return all(column not in self._unbounded for column, _ in terms)

    def _form_size(self, quantity: int) -> float:
        terms = self.quantities.terms[quantity]
        return self._size(quantity) if terms is None else sum(abs(a) * self._size(column) for column, a in terms)

    def _says_nothing(
        self, varying: dict[int, list[tuple[float, float]]], parts: list[ChoicePart], outside: list[ChoicePart]
    ) -> bool:
        """Return whether the parts bound no more than one quantity, and together allow all of its range."""
        if len(varying) != 1 or outside:
            return not varying
        ((quantity, ranges),) = varying.items()
        room = ALIKE * self._form_size(quantity)
        low, high = self._range(quantity, ChoicePart({}, {}, []))
        domain = self.quantities.domain[quantity]
        reached = low
        for start, end in sorted(ranges[: len(parts)]):
            between = reached + room if domain is None else least(domain, reached, strict=True)
            if start > max(reached, between):
                return False
            reached = max(reached, end)
        return reached >= high - room

    def _link(self, quantity: int, parts: list[ChoicePart], ranges: list[tuple[float, float]]) -> None:
        """Add the rows Σ l_k b_k <= q <= Σ h_k b_k."""
        size = ALIKE * self._form_size(quantity)
        lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
        if lows == highs:
            self._bound_form(quantity, 0.0, 0.0, {p.column: -v for p, v in zip(parts, lows, strict=True) if v})
            return
        if max(highs) - min(highs) > size:
            more = {p.column: -v for p, v in zip(parts, highs, strict=True) if v}
            self._bound_form(quantity, -math.inf, 0.0, more)
        elif self.quantities.terms[quantity] is not None:
            self._bound_form(quantity, -math.inf, max(highs))
        if max(lows) - min(lows) > size:
            more = {p.column: -v for p, v in zip(parts, lows, strict=True) if v}
            self._bound_form(quantity, 0.0, math.inf, more)
        elif self.quantities.terms[quantity] is not None:
            self._bound_form(quantity, min(lows), math.inf)

    # ---- arrays

    def _program(self) -> MixedProgram:
        quantities, box = self.quantities, self.box
        own = [q for q in range(len(quantities)) if quantities.terms[q] is None and q not in self._unbounded]
        place = {q: k for k, q in enumerate([*own, *self.part_columns])}
        width = len(place)
        forms = [q for q in range(len(quantities)) if quantities.terms[q] is not None and self._is_bounded(q)]
        place_form = {q: width + k for k, q in enumerate(forms)}
        ranges = [self._range(q, ChoicePart({}, {}, [])) for q in forms]
        low = [box.low[q] for q in own] + [0.0] * len(self.part_columns) + [low for low, _ in ranges]
        high = [box.high[q] for q in own] + [1.0] * len(self.part_columns) + [high for _, high in ranges]
        discrete: list[tuple[int, Domain]] = []
        for q in own:
            domain = quantities.domain[q]
            if domain is not None:
                discrete.append((place[q], domain))
        made = self.lists
        everything = place | place_form
        choices = Choices(
            columns=ints(place[q] for q in made.columns),
            starts=ints(made.starts),
            choice=ints(made.choice),
            parent=ints(made.parent),
            part=ints(made.part),
            quantity=ints(everything[q] for q in made.quantity),
            low=np.array(made.low),
            high=np.array(made.high),
            segments=ints(made.segments),
        )
        return MixedProgram(
            low=np.array(low),
            high=np.array(high),
            width=width,
            rows=matrix([row for row, _, _ in self.rows], place, width),
            row_low=np.array([low for _, low, _ in self.rows]),
            row_high=np.array([high for _, _, high in self.rows]),
            forms=matrix([dict(quantities.terms[q] or ()) for q in forms], place, width),
            form_numbers=tuple(forms),
            place=place,
            discrete=discrete,
            choices=choices,
        )

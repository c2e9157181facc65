"""Bounds that follow from a formula: interval propagation, outward rounded, through conjunctions and disjunctions.

A part of a disjunction that no point of the box fulfils is dropped; what all remaining parts imply is kept. So a smaller ball leaves a
smaller formula, and every variable of the model gets bounds.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from mace.clock import check
from mace.exact import float_down, float_up
from mace.solvers.milp.nodes import All, Bound, FormBound, Implied, Never, Node, NotEqual, Product, Some, every
from mace.solvers.milp.quantities import Quantities, greatest, least

Values = tuple[Fraction, ...]

MOST_VALUES = 64
"""A column is known by its values, and not only by its bounds, while there are at most this many."""

MOST_CONTRACTIONS = 12

LEAST_CONTRACTION = 1e-3
"""A pass that tightens no range by at least this share is the last."""

ROUND = 2.0**-51
"""More than the relative error of one float operation and of a coefficient that was rounded, together."""

LOST_BY_UNDERFLOW = 1e-300
"""More than what the terms of a sum can lose by underflow."""


class Contractor:
    """Bounds on all quantities, with a trail to undo."""

    def __init__(self, quantities: Quantities) -> None:
        self.quantities = quantities
        self.low = list(quantities.low)
        self.high = list(quantities.high)
        self.values: dict[int, Values] = {}
        self._trail: list[tuple[int, float, float, Values | None]] = []
        self._gained = False
        self._expanded: dict[Product, Node] = {}

    # ---- formulas

    def contract(self, parts: list[Node]) -> list[Node] | None:
        """Return the parts, simplified, after bounds that follow from all of them have been taken over; ``None`` where none holds."""
        for _ in range(MOST_CONTRACTIONS):
            self._gained = False
            self.grow()
            kept = self.narrow(every(parts))
            if kept is None:
                return None
            parts = list(kept.parts) if isinstance(kept, All) else [kept]
            if not self._gained:
                break
        return parts

    def grow(self) -> None:
        """Take in quantities made since."""
        for quantity in range(len(self.low), len(self.quantities)):
            self.low.append(self.quantities.low[quantity])
            self.high.append(self.quantities.high[quantity])

    def narrow(self, node: Node) -> Node | None:
        """Take over the bounds that follow from a formula; return it simplified, or ``None`` where no point of the box fulfils it."""
        check()
        match node:
            case Never():
                return None
            case Bound():
                return node if self._narrow_bound(node) else None
            case FormBound():
                return node if self._narrow_row(node) else None
            case NotEqual(column, value):
                return node if self._narrow_differ(column, value) else None
            case Product():
                return self._narrow_product(node)
            case Implied(part):
                kept_part = self.narrow(part)
                return None if kept_part is None else Implied(kept_part)
            case All(parts):
                kept = []
                for part in parts:
                    simpler = self.narrow(part)
                    if simpler is None:
                        return None
                    kept.append(simpler)
                return every(kept)
            case Some(parts):
                return self._narrow_some(parts)

    def _narrow_some(self, parts: tuple[Node, ...]) -> Node | None:
        kept: list[Node] = []
        boxes: list[dict[int, tuple[float, float]]] = []
        values: list[dict[int, Values]] = []
        for part in parts:
            mark = len(self._trail)
            gained = self._gained
            simpler = self.narrow(part)
            if simpler is not None:
                kept.append(simpler)
                touched = {entry[0] for entry in self._trail[mark:]}
                boxes.append({q: (self.low[q], self.high[q]) for q in sorted(touched)})
                values.append({q: self.values[q] for q in touched if q in self.values})
            self._undo(mark)
            self._gained = gained
        if not kept:
            return None
        if len(kept) == 1:
            return self.narrow(kept[0])
        for quantity in boxes[0]:
            if all(quantity in box for box in boxes):
                low = min(box[quantity][0] for box in boxes)
                high = max(box[quantity][1] for box in boxes)
                joined = None
                if all(quantity in each for each in values):
                    joined = tuple(sorted({v for each in values for v in each[quantity]}))
                if not self.tighten(quantity, low, high):
                    return None
                if joined is not None and len(joined) <= MOST_VALUES and not self._set_values(quantity, joined):
                    return None
        return Some(tuple(kept), tuple(boxes))

    # ---- single conditions

    def tighten(self, quantity: int, low: float, high: float) -> bool:
        """Intersect a range; return False where nothing is left."""
        old_low, old_high = self.low[quantity], self.high[quantity]
        domain = self.quantities.domain[quantity]
        if domain is not None:
            low = least(domain, low, strict=False) if low > old_low else old_low
            high = greatest(domain, high, strict=False) if high < old_high else old_high
        low, high = max(low, old_low), min(high, old_high)
        if low == old_low and high == old_high:
            return True
        self._trail.append((quantity, old_low, old_high, self.values.get(quantity)))
        self.low[quantity], self.high[quantity] = low, high
        width = old_high - old_low
        if math.isinf(width) or (low - old_low) + (old_high - high) > LEAST_CONTRACTION * width:
            self._gained = True
        if low > high:
            return False
        known = self.values.get(quantity)
        return known is None or self._set_values(quantity, tuple(v for v in known if low <= v <= high))

    def _set_values(self, quantity: int, values: Values) -> bool:
        known = self.values.get(quantity)
        if known is not None:
            values = tuple(v for v in values if v in known)
        if values == known:
            return True
        if not values:
            return False
        self._trail.append((quantity, self.low[quantity], self.high[quantity], known))
        self.values[quantity] = values
        self._gained = True
        return self.tighten(quantity, float_down(values[0]), float_up(values[-1]))

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            quantity, low, high, values = self._trail.pop()
            self.low[quantity], self.high[quantity] = low, high
            if values is None:
                self.values.pop(quantity, None)
            else:
                self.values[quantity] = values

    def _narrow_differ(self, column: int, value: Fraction) -> bool:
        known = self.values.get(column)
        if known is not None:
            return self._set_values(column, tuple(v for v in known if v != value))
        return not self.low[column] == self.high[column] == value

    def _narrow_bound(self, bound: Bound) -> bool:
        column = bound.column
        known = self.values.get(column)
        if known is not None:
            return self._set_values(column, tuple(v for v in known if _lies(v, bound)))
        if bound.low is not None and bound.low == bound.high and self.quantities.domain[column] is None:
            return self._known_or(column, (bound.low,))
        low, high = self.low[column], self.high[column]
        if bound.strict and low == high and not _lies(Fraction(low), bound):
            return False
        return self.tighten(column, bound.least, bound.most)

    def _known_or(self, column: int, values: Values) -> bool:
        low, high = self.low[column], self.high[column]
        return self._set_values(column, tuple(v for v in values if low <= v <= high))

    def _narrow_row(self, row: FormBound) -> bool:
        slack = sum(d * max(abs(self.low[c]), abs(self.high[c])) for c, d in row.remainder)
        low, high = (_down(row.least - slack), _up(row.most + slack)) if slack else (row.least, row.most)
        if row.low is not None and row.low == row.high and not row.remainder and not self._share_values(row):
            return False
        return self.narrow_form(row.form, low, high)

    def narrow_form(self, form: int, low: float = -math.inf, high: float = math.inf) -> bool:
        """Bound a form, and its columns by it."""
        terms = self.quantities.terms[form]
        assert terms is not None
        smallest, largest = self.activity(form)
        if not self.tighten(form, max(low, smallest.value()), min(high, largest.value())):
            return False
        low, high = self.low[form], self.high[form]
        for column, a in terms:
            ends = (self.low[column], self.high[column]) if a > 0 else (self.high[column], self.low[column])
            at_most = (high - smallest.without(a * ends[0])) if high < math.inf else math.inf
            at_least = (low - largest.without(a * ends[1])) if low > -math.inf else -math.inf
            if a < 0:
                at_least, at_most = at_most, at_least
            if not self.tighten(column, _quotient(at_least, a, -1), _quotient(at_most, a, 1)):
                return False
        return True

    def activity(self, form: int) -> tuple[_Sum, _Sum]:
        """Return the least and the greatest value of a form on the box of its columns."""
        terms = self.quantities.terms[form]
        assert terms is not None
        smallest, largest = _Sum(-1), _Sum(1)
        for column, a in terms:
            low, high = self.low[column], self.high[column]
            smallest.add(a * (low if a > 0 else high))
            largest.add(a * (high if a > 0 else low))
        return smallest, largest

    def _share_values(self, row: FormBound) -> bool:
        """Give each column of an equation the values that the others leave, where these have few; return False where one has none left."""
        exact = self.quantities.exact[row.form]
        assert exact is not None
        assert row.low is not None
        domain = self.quantities.domain
        each = {column: self._listed(column) for column in exact}
        unknown = [column for column, values in each.items() if values is None]
        if len(unknown) > 1:
            return True
        for column in unknown or exact:
            if domain[column] is not None or self.quantities.is_feature[column]:
                continue
            others = [(exact[c], values) for c, values in each.items() if c != column and values is not None]
            if math.prod(len(values) for _, values in others) > MOST_VALUES:
                continue
            sums = {
                sum((a * v for (a, _), v in zip(others, chosen, strict=True)), Fraction(0))
                for chosen in itertools.product(*(values for _, values in others))
            }
            if not self._known_or(column, tuple(sorted((row.low - s) / exact[column] for s in sums))):
                return False
        return True

    def _listed(self, column: int) -> Values | None:
        if column in self.values:
            return self.values[column]
        low, high = self.low[column], self.high[column]
        if low == high:
            return (Fraction(low),)
        domain = self.quantities.domain[column]
        if domain is not None and len(domain) <= 2:
            return tuple(Fraction(v) for v in domain if low <= v <= high)
        return None

    # ---- products

    def _narrow_product(self, product: Product) -> Node | None:
        """Bound a product and its factors; one with a factor of few values becomes a disjunction over them."""
        if product in self._expanded:
            return self.narrow(self._expanded[product])
        for one, other in ((product.first, product.second), (product.second, product.first)):
            values = self._listed(one)
            if values is not None and len(values) <= 8:
                self._expanded[product] = self._by_value(product.column, one, values, other)
                self.grow()
                return self.narrow(self._expanded[product])
        column, first, second = product.column, product.first, product.second
        ends = _times(self._range(first), self._range(second))
        if not self.tighten(column, *ends):
            return None
        for factor, other in ((first, second), (second, first)):
            if self.low[other] > 0 or self.high[other] < 0:
                inverse = (_down(1 / self.high[other]), _up(1 / self.low[other]))
                if not self.tighten(factor, *_times(self._range(column), inverse)):
                    return None
        return product

    def _by_value(self, column: int, factor: int, values: Values, other: int) -> Node:
        parts: list[Node] = []
        for value in values:
            if value:
                scaled = self.quantities.form({column: Fraction(1), other: -value})
                relation: Node = FormBound(scaled.form, Fraction(0), Fraction(0), scaled.remainder)
            else:
                relation = Bound(column, Fraction(0), Fraction(0))
            parts.append(every([Bound(factor, value, value), relation]))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _range(self, column: int) -> tuple[float, float]:
        return self.low[column], self.high[column]


def _lies(value: Fraction, bound: Bound) -> bool:
    """Return whether a number fulfils a bound, exactly."""
    if bound.strict and value in (bound.low, bound.high):
        return False
    return (bound.low is None or value >= bound.low) and (bound.high is None or value <= bound.high)


class _Sum:
    """A sum of products of floats, rounded outward to one side; infinite terms are counted apart."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.finite = 0.0
        self.size = 0.0
        self.infinite = 0
        self.count = 4

    def add(self, term: float) -> None:
        self.count += 1
        if math.isinf(term):
            self.infinite += 1
        else:
            self.finite += term
            self.size += abs(term)

    def value(self) -> float:
        if self.infinite:
            return self.side * math.inf
        return self.finite + self.side * (self.count * ROUND * self.size + LOST_BY_UNDERFLOW)

    def without(self, term: float) -> float:
        """Return the sum without one of its terms."""
        if self.infinite - math.isinf(term):
            return self.side * math.inf
        rest = self.finite if math.isinf(term) else self.finite - term
        return rest + self.side * ((self.count + 2) * ROUND * self.size + LOST_BY_UNDERFLOW)


def _quotient(value: float, divisor: float, side: int) -> float:
    if math.isinf(value):
        return value if divisor > 0 else -value
    result = value / divisor
    return result + side * (abs(result) * 4 * ROUND + LOST_BY_UNDERFLOW)


def _times(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    products = [0.0 if 0.0 in (a, b) else a * b for a in first for b in second]
    return _down(min(products)), _up(max(products))


def _down(value: float) -> float:
    return math.nextafter(value, -math.inf)


def _up(value: float) -> float:
    return math.nextafter(value, math.inf)

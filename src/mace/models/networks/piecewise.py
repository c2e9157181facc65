"""Lowering: a graph of affine and piecewise-linear operations becomes the layers of a network, rounding included.

A reader walks its graph once and calls one method an operation. Every number of the graph is kept as a *row*: weights
over *sources* (the input columns, and the outputs of units met so far), a shift, a size and a count of roundings. The
contract of a row is

    |v - (w·h + c)|  <=  γ_k (|w|·|h| + s),        s >= |c|

where v is the number that the library computes, h are the sources as the library computes them, and γ_k = ku / (1 -
ku). Underflow is part of s: an operation may lose the smallest normal number, which is u times ``tiny``. The rules
below keep the contract, whatever the order of summation, with fused operations or without; γ_a + γ_b + γ_a γ_b <=
γ_{a+b} is used throughout. They also hold where a library folds constants beforehand (a batch normalisation into the
weights before it, say), because s and k count the parts, not the result. The products and sums stored here are rounded
to float64 themselves: where the library computes in float64 each counts as one more rounding, where it computes in
float32 one more covers them all.

- times a constant a: w, c and s times |a|; one rounding.
- plus a constant b: s grows by |b|; one rounding.
- an inner product of n numbers: n + 1 roundings. It is folded into one row only where no source comes in twice, so that
  |W A| = |W| |A|; where one does, the numbers become sources of their own first (a unit of slope 1 lets them through),
  and nothing can cancel.
- the sum of two rows: likewise.
- a batch normalisation: eight roundings; see :meth:`Lowering.normalise`.
- a unit max(z, slope·z): its own output is a new source. Where the slope is neither 0 nor 1 the product is rounded, as
  if z had been.
- the greater of two: max(a, b) = b + relu(a - b) holds of the computed a and b exactly, and a library's max does not
  round: the row of a - b takes over the errors of both, and the sum none. Clipping is low + relu(z - low) - relu(z -
  high).

:meth:`Lowering.network` sorts the units into layers by their depth; a source that a later layer needs is carried by
units of slope 1. The form's own bound counts a rounding or more a layer for them, which is more than happens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.exact import UNIT, product
from mace.forms import Network
from mace.models.networks.rows import Floats, Tensor, broadcast, check_size, folded, products, wide
from mace.space import Column, FeatureSpace, Filled

UNIT32 = Fraction(1, 2**24)
"""Unit roundoff of float32."""


def _exact_rows(weights: Floats, shift: Floats, inputs: Sequence[Fraction]) -> list[Fraction]:
    return [
        sum((Fraction(float(row[k])) * inputs[k] for k in np.flatnonzero(row).tolist()), Fraction(float(start)))
        for row, start in zip(weights, shift, strict=True)
    ]


class Lowering:
    """The sources so far, and the operations that make rows and units.

    Parameters
    ----------
    largest : float array
        The greatest absolute value of each input column over the whole space.
    unit : Fraction
        The unit roundoff of the library's arithmetic.
    rounds_constants : bool
        Whether the library may round the constants that it multiplies with or adds to float32 first: one more rounding each.
    """

    def __init__(self, largest: Floats, unit: Fraction, *, rounds_constants: bool = False) -> None:
        self.unit = unit
        single = unit != UNIT
        self.stored = 0 if single else 1
        self.constants = int(single and rounds_constants)
        self.most = 1e37 if single else 1e300
        self.tiny = float(np.finfo(np.float32 if single else np.float64).tiny) / float(unit)
        self.inputs = len(largest)
        self._largest = np.asarray(largest, dtype=np.float64)
        self._depth = np.zeros(self.inputs, dtype=np.int64)
        self._units: list[tuple[NDArray[np.intp], _Units]] = []
        if not (self._largest <= self.most).all():
            raise UnsupportedModel(
                f"a column reaches {self._largest.max():.3g}, beyond what the model's arithmetic holds. Narrow the space."
            )

    # ---- making rows

    def columns(self) -> Tensor:
        """Return the input columns, as one row of a batch."""
        zeros = np.zeros(self.inputs)
        return Tensor((1, self.inputs), np.eye(self.inputs), zeros, zeros, np.zeros(self.inputs, dtype=np.int64))

    def constant(self, values: Any) -> Tensor:
        """Return numbers that do not depend on the input."""
        array = np.asarray(values, dtype=np.float64)
        flat = array.reshape(-1)
        weights = np.zeros((len(flat), self.inputs))
        return self._checked(array.shape, weights, flat, np.abs(flat), np.zeros(len(flat), dtype=np.int64))

    def scale(self, tensor: Tensor, factors: Any) -> Tensor:
        """Return the products with constants, broadcast."""
        tensor, factor = broadcast(tensor, factors)
        is_exact = np.abs(factor) == 1
        return self._checked(
            tensor.shape,
            products(tensor.weights, factor[:, None]),
            tensor.shift * factor,
            tensor.size * np.abs(factor) + np.where(is_exact, 0.0, self.tiny),
            tensor.steps + np.where(is_exact, 0, 1 + self.stored + self.constants),
        )

    def divide(self, tensor: Tensor, divisors: Any) -> Tensor:
        """Return the quotients by constants; one more rounding, for libraries that multiply with the inverse."""
        divisor = np.asarray(divisors, dtype=np.float64)
        if (divisor == 0).any():
            raise UnsupportedModel("the model divides by 0. Mend the model.")
        quotients = self.scale(tensor, 1 / divisor)
        return Tensor(
            quotients.shape,
            quotients.weights,
            quotients.shift,
            quotients.size + self.tiny,
            quotients.steps + 1 + self.stored,
        )

    def offset(self, tensor: Tensor, offsets: Any) -> Tensor:
        """Return the sums with constants, broadcast."""
        tensor, offset = broadcast(tensor, offsets)
        return self._checked(
            tensor.shape,
            tensor.weights,
            tensor.shift + offset,
            tensor.size + np.abs(offset) + self.tiny,
            tensor.steps + 1 + self.stored + self.constants,
        )

    def normalise(self, tensor: Tensor, mean: Any, variance: Any, scale: Any, offset: Any, epsilon: float) -> Tensor:
        """Return (x - mean) / sqrt(variance + epsilon) * scale + offset, by constants that broadcast.

        In whatever order it is computed, also with scale / sqrt(...) and its product with the mean taken first, there
        are at most eight roundings, and no part is larger than |factor| (|x| + |mean|) + |offset|.
        """
        spread = np.asarray(variance, dtype=np.float64) + epsilon
        if not (spread > 0).all():
            raise UnsupportedModel(
                "a batch normalisation has a variance that is not above 0. Train it, or mend the file."
            )
        factors = np.asarray(scale, dtype=np.float64) / np.sqrt(spread)
        tensor, factor = broadcast(tensor, factors)
        middle = np.broadcast_to(np.asarray(mean, dtype=np.float64), tensor.shape).reshape(-1)
        beta = np.broadcast_to(np.asarray(offset, dtype=np.float64), tensor.shape).reshape(-1)
        self._checked(tensor.shape, tensor.weights, tensor.shift, tensor.size + np.abs(middle), tensor.steps)
        return self._checked(
            tensor.shape,
            products(tensor.weights, factor[:, None]),
            (tensor.shift - middle) * factor + beta,
            (tensor.size + np.abs(middle) + self.tiny) * np.abs(factor) + np.abs(beta) + 4 * self.tiny,
            tensor.steps + 8 + 4 * self.stored,
        )

    def add(self, first: Tensor, second: Tensor, *, sign: int = 1) -> Tensor:
        """Return the sum (or with ``sign`` -1 the difference) of two tensors, broadcast."""
        first, second = self._matched(first, second)
        if (np.sign(first.weights) * np.sign(second.weights) == -sign).any():
            first, second = self._matched(self.through(first), self.through(second))
        return self._checked(
            first.shape,
            first.weights + sign * second.weights,
            first.shift + sign * second.shift,
            first.size + second.size + self.tiny,
            np.maximum(first.steps, second.steps) + 1 + self.stored,
        )

    def dense(self, tensor: Tensor, matrix: Any, bias: Any | None = None, *, steps: int = 0) -> Tensor:
        """Return ``tensor @ matrix + bias``, the tensor being one row; ``steps`` are roundings beside the inner
        product."""
        weights = np.asarray(matrix, dtype=np.float64)
        inputs, outputs = weights.shape
        if len(tensor) != inputs:
            raise UnsupportedModel(f"the model multiplies {len(tensor)} numbers with {inputs} rows of weights.")
        check_size(outputs * (self._sources + 1))
        if ((tensor.weights != 0).sum(axis=0) > 1).any():
            tensor = self.through(tensor)
        added = np.zeros(outputs) if bias is None else np.broadcast_to(np.asarray(bias, dtype=np.float64), (outputs,))
        sums = (inputs + 1 if tensor.shift.any() else 1) * self.stored
        return self._checked(
            (1, outputs),
            folded(weights.T, tensor.weights),
            product(weights.T, tensor.shift) + added,
            product(np.abs(weights.T), tensor.size) + np.abs(added) + (inputs + 1) * self.tiny,
            np.full(outputs, int(tensor.steps.max(initial=0)) + inputs + 1 + sums + steps, dtype=np.int64),
        )

    def run(self, tensor: Tensor, form: Network) -> Tensor:
        """Return the scores of a form that was read already, applied to a tensor."""
        for layer, (weights, bias, size) in enumerate(zip(form.weights, form.biases, form.magnitudes, strict=True)):
            made = self.dense(tensor, weights.T, bias, steps=form.steps)
            tensor = Tensor(made.shape, made.weights, made.shift, made.size + size, made.steps)
            if layer < len(form.slopes):
                tensor = self.bend(tensor, form.slopes[layer])
        return tensor

    def concatenate(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        """Return several tensors joined along an axis."""
        check_size(sum(len(tensor) for tensor in tensors) * self._sources)
        tensors = [self._widened(tensor) for tensor in tensors]
        starts = np.cumsum([0, *(len(tensor) for tensor in tensors[:-1])])
        try:
            order = np.concatenate(
                [tensor.positions + start for tensor, start in zip(tensors, starts, strict=True)], axis
            )
        except ValueError:
            shapes = ", ".join(str(tensor.shape) for tensor in tensors)
            raise UnsupportedModel(f"the model joins shapes {shapes} along axis {axis}.") from None
        parts = (np.concatenate(part) for part in zip(*(tensor.parts for tensor in tensors), strict=True))
        return Tensor((len(order.reshape(-1)),), *parts).arranged(order)

    # ---- making units

    def bend(self, tensor: Tensor, slopes: Any = 0.0) -> Tensor:
        """Return max(z, slope·z): below 0 a number is multiplied with its slope (0 is ReLU), broadcast."""
        tensor, slope = broadcast(tensor, slopes)
        if not np.isfinite(slope).all():
            raise UnsupportedModel("the slope of a unit is not a finite number. Mend the model.")
        if ((slope >= 0) & (slope <= 1)).all():
            rounded = (slope != 0) & (slope != 1)
            # Where the product underflows, z itself may be wrong by as much as the smallest normal number over the slope.
            extra = np.where(rounded, self.tiny / np.where(rounded, slope, 1.0), 0.0)
            size, steps = tensor.size + extra, tensor.steps + rounded
            return self._unit(Tensor(tensor.shape, tensor.weights, tensor.shift, size, steps), slope)
        whole = self.through(tensor)
        positive = self._unit(whole, np.zeros(len(whole)))
        whole, positive = self._matched(whole, positive)
        return self._checked(
            whole.shape,
            whole.weights * slope[:, None] + positive.weights * (1 - slope)[:, None],
            np.zeros(len(slope)),
            np.full(len(slope), self.tiny),
            np.full(len(slope), 1 + self.stored, dtype=np.int64),
        )

    def hinges(self, tensor: Tensor, knots: Floats) -> Tensor:
        """Return max(z - knot, 0) of one number for each knot; no library computes these, so only what is stored here is rounded."""
        assert len(tensor) == 1
        each = self._moved(tensor.arranged(np.zeros((1, len(knots)), dtype=np.intp)), -knots)
        return self._unit(each, np.zeros(len(knots)))

    def gate(self, number: Tensor | None, gates: Sequence[Tensor], width: float, offset: float) -> Tensor:
        """Return max(number + width · sum of gates - offset, 0), which no library computes: only what is stored here is rounded."""
        rows = [self._widened(row) for row in ([*gates] if number is None else [number, *gates])]
        factors = np.full(len(rows), width)
        if number is not None:
            factors[0] = 1.0
        weights = sum(factor * row.weights for factor, row in zip(factors, rows, strict=True))
        return self._unit(
            self._checked(
                (1, 1),
                np.asarray(weights),
                np.asarray(sum(factor * row.shift for factor, row in zip(factors, rows, strict=True))) - offset,
                np.asarray(sum(factor * row.size for factor, row in zip(factors, rows, strict=True))) + abs(offset),
                np.max([row.steps for row in rows], axis=0) + (len(rows) + 1) * self.stored,
            ),
            np.zeros(1),
        )

    def range_of(self, tensor: Tensor, lows: Floats, highs: Floats) -> tuple[float, float]:
        """Return bounds on one number, the input columns lying in these ranges."""
        row = self._widened(tensor)
        least, most = (
            np.concatenate([ends, sign * self._largest[self.inputs :]]) for ends, sign in ((lows, -1), (highs, 1))
        )
        weights = row.weights[0]
        off = 2.0**-10 * (np.abs(weights) @ np.maximum(np.abs(least), np.abs(most)) + row.size[0])
        low, high = (
            float(np.where(weights > 0, a, b) @ weights + row.shift[0]) for a, b in ((least, most), (most, least))
        )
        return low - float(off), high + float(off)

    def reach(self, tensor: Tensor) -> float:
        """Return the greatest absolute value that the numbers may have."""
        return float(self._bounds(self._widened(tensor)).max(initial=0.0))

    def exact(self, tensor: Tensor, inputs: Mapping[int, Fraction]) -> list[Fraction]:
        """Return numbers in exact arithmetic, for the input columns that they depend on."""
        known = {k: inputs.get(k, Fraction(0)) for k in range(self.inputs)}
        for sources, units in self._units:
            rows = _exact_rows(units.weights, units.shift, [known[int(k)] for k in sources])
            first = len(known)
            for unit, (z, slope) in enumerate(zip(rows, units.slopes, strict=True)):
                known[first + unit] = z if z >= 0 else Fraction(float(slope)) * z
        return _exact_rows(tensor.weights, tensor.shift, list(known.values())[: tensor.weights.shape[1]])

    def through(self, tensor: Tensor) -> Tensor:
        """Return the same numbers as sources of their own."""
        return self._unit(tensor, np.ones(len(tensor)))

    def maximum(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the greater of each two numbers, broadcast."""
        first, second = self._matched(first, second)
        exact = not first.steps.any() and not second.steps.any()
        if not exact and (np.sign(first.weights) * np.sign(second.weights) > 0).any():
            first, second = self._matched(self.through(first), self.through(second))
        ahead = self._unit(
            self._checked(
                first.shape,
                first.weights - second.weights,
                first.shift - second.shift,
                first.size + second.size,
                np.maximum(first.steps, second.steps) + self.stored,
            ),
            np.zeros(len(first)),
        )
        second = self._widened(second)
        return self._checked(first.shape, second.weights + ahead.weights, second.shift, second.size, second.steps)

    def minimum(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the lesser of each two numbers, broadcast."""
        return self.scale(self.maximum(self.scale(first, -1), self.scale(second, -1)), -1)

    def clip(self, tensor: Tensor, low: float, high: float) -> Tensor:
        """Return min(max(z, low), high); either bound may be infinite."""
        if not (low < np.inf and high > -np.inf):
            raise UnsupportedModel(f"the model clips its numbers between {low} and {high}. Mend the model.")
        if low > high:
            return self.constant(np.full(tensor.shape, high))
        if np.isinf(low) or np.isinf(high):
            if np.isfinite(low):
                return self.bend(tensor) if low == 0 else self.maximum(tensor, self.constant(np.array(low)))
            return self.minimum(tensor, self.constant(np.array(high))) if np.isfinite(high) else tensor
        above, beyond = (self._unit(self._moved(tensor, -bound), np.zeros(len(tensor))) for bound in (low, high))
        above = self._widened(above)
        bound = np.full(len(tensor), low)
        return self._checked(tensor.shape, above.weights - beyond.weights, bound, np.abs(bound), above.steps)

    def _moved(self, tensor: Tensor, offset: float | Floats) -> Tensor:
        """Return rows plus constants that no library adds: only the sum that is stored here is rounded."""
        size, steps = tensor.size + np.abs(offset), tensor.steps + self.stored
        return self._checked(tensor.shape, tensor.weights, tensor.shift + offset, size, steps)

    def _unit(self, tensor: Tensor, slopes: Floats) -> Tensor:
        """Add one unit a number, and return their outputs as sources."""
        tensor = self._widened(tensor)
        count, before = len(tensor), self._sources
        check_size((before + count) * count)
        depth = 1 + np.where(tensor.weights != 0, self._depth[None, :], 0).max(axis=1, initial=0)
        sources = np.flatnonzero((tensor.weights != 0).any(axis=0))
        held = np.ascontiguousarray(tensor.weights[:, sources])
        self._units.append((sources, _Units(held, tensor.shift, tensor.size, tensor.steps, slopes)))
        self._largest = np.concatenate([self._largest, self._bounds(tensor)])
        self._depth = np.concatenate([self._depth, depth])
        weights = np.zeros((count, before + count))
        weights[np.arange(count), before + np.arange(count)] = 1.0
        zeros = np.zeros(count)
        return Tensor(tensor.shape, weights, zeros, zeros, np.zeros(count, dtype=np.int64))

    # ---- layers

    def network(self, scores: Tensor, space: FeatureSpace, columns: tuple[Column, ...], **settings: Any) -> Network:
        """Return the form whose scores are these rows; ``settings`` are the form's other fields."""
        layers: list[_Units] = []
        rows = _Units(*self._widened(scores).parts, np.zeros(len(scores)))
        depth = int(np.where((rows.weights != 0).any(axis=0), self._depth, 0).max(initial=0))
        for level in range(depth, 0, -1):
            below = np.flatnonzero((rows.weights != 0).any(axis=0))
            layers.append(rows.over(below))
            rows = self._level(below, level)
        layers.append(rows.over(np.arange(self.inputs)))
        layers.reverse()
        # One more for all sums and products that are stored here in float64, where those of the library are coarser.
        steps = max(int(layer.steps.max(initial=0)) + 1 - layer.weights.shape[1] - 3 for layer in layers)
        return Network(
            space=space,
            columns=columns,
            weights=tuple(layer.weights for layer in layers),
            biases=tuple(layer.shift for layer in layers),
            slopes=tuple(layer.slopes for layer in layers[:-1]),
            sizes=tuple(np.maximum(layer.size, np.abs(layer.shift)) for layer in layers),
            steps=max(0, steps),
            unit=self.unit,
            **settings,
        )

    def _level(self, sources: NDArray[np.intp], level: int) -> _Units:
        """Return what one layer computes: the units of this depth, and those of earlier ones carried along."""
        width = self._sources
        starts = np.cumsum([self.inputs, *(len(units.shift) for _, units in self._units)])
        chosen = []
        for source in sources:
            weights = np.zeros((1, width))
            if self._depth[source] < level:
                weights[0, source] = 1.0
                nothing = np.zeros(1)
                chosen.append(_Units(weights, nothing, nothing, np.zeros(1, dtype=np.int64), np.ones(1)))
                continue
            group = int(np.searchsorted(starts, source, side="right")) - 1
            over, units = self._units[group]
            one = units.one(int(source - starts[group]))
            weights[0, over] = one.weights[0]
            chosen.append(_Units(weights, one.shift, one.size, one.steps, one.slopes))
        return _Units(*(np.concatenate(parts) for parts in zip(*(_fields(units) for units in chosen), strict=True)))

    # ---- the machinery

    @property
    def _sources(self) -> int:
        return len(self._largest)

    def _checked(
        self, shape: tuple[int, ...], weights: Floats, shift: Floats, size: Floats, steps: NDArray[np.int64]
    ) -> Tensor:
        """Return a tensor whose numbers cannot overflow over the whole space; others are refused."""
        made = Tensor(shape, weights, shift, size, steps.astype(np.int64))
        if not (self._bounds(made) <= self.most).all():
            raise UnsupportedModel(
                f"the model holds a number that is not finite, or may reach one beyond {self.most:g} on this space. "
                "Scale its inputs, or narrow the space."
            )
        return made

    def _bounds(self, tensor: Tensor) -> Floats:
        bounds: Floats = np.abs(tensor.weights) @ self._largest[: tensor.weights.shape[1]] + tensor.size
        return bounds * (1 + 2**-10)

    def _matched(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors of one shape over all sources."""
        try:
            shape = np.broadcast_shapes(first.shape, second.shape)
        except ValueError:
            raise UnsupportedModel(f"the model combines shapes {first.shape} and {second.shape}.") from None
        check_size(math.prod(shape) * self._sources)
        return (
            self._widened(first.arranged(np.broadcast_to(first.positions, shape))),
            self._widened(second.arranged(np.broadcast_to(second.positions, shape))),
        )

    def _widened(self, tensor: Tensor) -> Tensor:
        weights = wide(tensor.weights, self._sources)
        return Tensor(tensor.shape, weights, tensor.shift, tensor.size, tensor.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """Rows with slopes: units, or a layer of them."""

    weights: Floats
    shift: Floats
    size: Floats
    steps: NDArray[np.int64]
    slopes: Floats

    def over(self, sources: NDArray[np.intp]) -> _Units:
        return _Units(np.ascontiguousarray(self.weights[:, sources]), self.shift, self.size, self.steps, self.slopes)

    def one(self, position: int) -> _Units:
        at = slice(position, position + 1)
        return _Units(self.weights[at], self.shift[at], self.size[at], self.steps[at], self.slopes[at])


def largest_values(space: FeatureSpace, columns: tuple[Column, ...]) -> Floats:
    """Return the greatest absolute value of each column over the whole space."""
    return np.maximum(*map(np.abs, ranges(space, columns)))


def ranges(space: FeatureSpace, columns: tuple[Column, ...]) -> tuple[Floats, Floats]:
    """Return the least and the greatest value of each column over the whole space."""
    features = list(space.values())
    lows, highs = [], []
    for column in columns:
        feature = features[column.feature]
        ends = column.table if column.table is not None else (feature.low, feature.high)  # type: ignore[union-attr]
        if isinstance(column, Filled):
            ends = (0.0, column.missing) if column.is_flag else (*ends, column.missing)
        lows.append(float(min(ends)))
        highs.append(float(max(ends)))
    return np.array(lows), np.array(highs)


def _fields(units: _Units) -> tuple[Any, ...]:
    return units.weights, units.shift, units.size, units.steps, units.slopes

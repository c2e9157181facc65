"""A plain prover that splits on the signs of units, for the tests of the checker: no kernel, no rounding control, real features only.

It has its own bounds over a ball of l1 or linf around the factual, finds multipliers by a few subgradient steps, and writes them down
as evidence. Nothing that it says is trusted: its proofs are right or the checker refuses them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_networks import asked

from mace import FeatureSpace, real
from mace.distances import as_distance
from mace.exact import UNIT
from mace.forms import Network, Outcomes
from mace.problem import Problem
from mace.space import Column, Point

Floats = NDArray[np.float64]
Layers = list[Floats]

STEPS, BELOW = 60, 0.01
MOST_NODES = 40


def over_reals(seed: int, norm: str, hidden: tuple[int, ...], features: int, unit: Fraction = UNIT) -> Problem:
    """Return a random question about a network over real features, whose nearest counterfactual is not close by."""
    rng = np.random.default_rng(seed)
    space = FeatureSpace({f"x{j}": real(-1.0, 1.0) for j in range(features)})
    columns = tuple(Column(f"x{j}", j, None) for j in range(features))
    widths = [features, *hidden, 1]
    while True:
        weights = tuple(rng.normal(0, 1.5 / np.sqrt(a), (b, a)) for a, b in pairwise(widths))
        biases = tuple(rng.normal(0, 0.3, width) for width in widths[1:])
        if unit != UNIT:
            weights, biases = (tuple(np.float64(np.float32(a)) for a in each) for each in (weights, biases))
        slopes = tuple(np.full(width, float(rng.choice([0.0, 0.0, 0.125]))) for width in hidden)
        form = Network(space, columns, weights, biases, slopes, unit=unit)
        ask = asked(form)
        factual: Point = tuple(rng.uniform(-0.8, 0.8, features).tolist())
        goal = Outcomes(frozenset([1 - ask([factual])[0]]))
        near = (np.array(factual) + rng.uniform(-0.12, 0.12, (100, features))).clip(-1, 1)
        reached = [
            goal.accepts(said)
            for said in ask([tuple(u) for u in [*near.tolist(), *rng.uniform(-1, 1, (100, features)).tolist()]])
        ]
        if any(reached[100:]) and not any(reached[:100]):
            return Problem(space, form, ask, goal, factual, as_distance(norm).from_factual(space, factual))


PRICES = np.array([0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0])


@dataclass
class Record:
    """The lists of a part."""

    feature: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    alpha: list[Floats] = field(default_factory=list)
    beta: list[Floats] = field(default_factory=list)
    mix: list[Floats] = field(default_factory=list)
    price: list[Floats] = field(default_factory=list)

    def part(self, units: int) -> dict[str, Any]:
        count = len(self.alpha)
        return {
            "feature": np.array(self.feature, dtype=np.int16),
            "at": np.array(self.at, dtype=np.float64),
            "rounds": np.array(self.rounds, dtype=np.uint8),
            "alpha": np.array(self.alpha, dtype=np.uint8).reshape(count, units),
            "beta": np.array(self.beta, dtype=np.float64).reshape(count, units),
            "mix": np.array(self.mix, dtype=np.float64).reshape(count, 1),
            "price": np.array(self.price, dtype=np.float32).reshape(count, 2, units),
        }


class PlainProver:
    """Proofs that a network with one score stays on its side within a radius of l1 or linf; u is the change in units of the ranges."""

    def __init__(
        self, problem: Problem, radius: float, norm: str, *, rounds: int = 2, deepest: int = 12, cuts: int = 0
    ) -> None:
        form = problem.form
        assert isinstance(form, Network)
        self.form, self.radius, self.norm = form, radius, norm
        self.rounds, self.deepest, self.cuts = rounds, deepest, cuts
        self.own = np.array(problem.factual, dtype=np.float64)
        features = list(problem.space.values())
        self.range = np.array([float(f.range) for f in features])  # type: ignore[union-attr]
        self.first = form.weights[0] * self.range
        self.start = form.weights[0] @ self.own + form.biases[0]
        reach = radius * (len(features) if norm == "l1" else 1)
        self.low = np.maximum((np.array([float(f.low) for f in features]) - self.own) / self.range, -reach)  # type: ignore[union-attr]
        self.high = np.minimum((np.array([float(f.high) for f in features]) - self.own) / self.range, reach)  # type: ignore[union-attr]
        margin = problem.goal.alternatives(1, ties_last=form.ties_last)[0][0]
        self.sign = 1.0 if margin.plus is not None else -1.0
        self.depth = len(form.slopes)
        self.units = sum(map(len, form.slopes))
        self.record = Record()
        self.is_closed = True

    def evidence(self) -> dict[str, Any]:
        """Return the evidence; ``is_closed`` says whether all leaves are closed by the floats here."""
        low, high = self._fresh(self.low, self.high)
        self._node(self.low, self.high, low, high, 0)
        return {"lane": "network", "parts": [self.record.part(self.units)]}

    # ---- bounds

    def _most(self, g: Floats, low: Floats, high: Floats) -> Floats:
        """Return for each row of g where g·u is greatest in box and ball."""
        best = np.where(g > 0, high, low)
        if self.norm == "linf":
            return best
        nearest = np.clip(0.0, low, high)
        order = np.argsort(-np.abs(g), axis=1)
        cost = np.take_along_axis(np.abs(best - nearest), order, axis=1)
        left = self.radius * g.shape[1] - np.abs(nearest).sum()
        spent = np.diff(np.minimum(np.cumsum(cost, axis=1), max(left, 0.0)), axis=1, prepend=0.0)
        share = np.empty_like(g)
        np.put_along_axis(share, order, spent / np.where(cost > 0, cost, 1.0), axis=1)
        return nearest + share * (best - nearest)

    def _back(
        self, lam: Floats, top: int, low: Layers, high: Layers, alpha: Layers | None, beta: Layers | None
    ) -> tuple[Floats, Floats, Layers]:
        """Return g and c of linear bounds, one for each row of lam, and lam of each layer."""
        c, seen = np.zeros(len(lam)), []
        for k in range(top, -1, -1):
            bend = self.form.slopes[k]
            is_bent = (low[k] < 0) & (high[k] > 0)
            chord = (high[k] - bend * low[k]) / np.where(is_bent, high[k] - low[k], 1.0)
            line = np.where(high[k] > -low[k], 1.0, bend) if alpha is None else bend + (1 - bend) * alpha[k]
            slope = np.where(is_bent, np.where(lam > 0, chord, line), np.where(low[k] >= 0, 1.0, bend))
            c += np.where(is_bent & (lam > 0), lam * (bend - chord) * low[k], 0.0).sum(axis=1)
            mu = lam * slope
            if beta is not None:
                mu = mu + beta[k]
                c -= np.where(beta[k] > 0, beta[k] * low[k], beta[k] * high[k]).sum()
            seen.append(lam[0])
            c += mu @ (self.form.biases[k] if k else self.start)
            lam = mu @ (self.form.weights[k] if k else self.first)
        return lam, c, seen[::-1]

    def _unit_bounds(
        self,
        k: int,
        low: Layers,
        high: Layers,
        box_low: Floats,
        box_high: Floats,
        goal: tuple[Floats, float] | None,
        price: Floats,
    ) -> tuple[Floats, Floats]:
        """Return upper and lower bounds on the sums of a layer, and put the prices that gave them into ``price``."""
        weights, shift = (self.form.weights[k], self.form.biases[k]) if k else (self.first, self.start)
        g, c = np.concatenate([weights, -weights]), np.zeros(2 * len(weights))
        if k:
            g, c, _ = self._back(g, k - 1, low, high, None, None)
        best = (g * self._most(g, box_low, box_high)).sum(axis=1) + c
        paid = np.zeros(len(g))
        if goal is not None:
            scale = np.abs(g).max(axis=1) / max(np.abs(goal[0]).max(), 1e-9)
            for share in PRICES:
                p = np.float32(share * scale).astype(np.float64)
                mixed = g + p[:, None] * goal[0]
                value = (mixed * self._most(mixed, box_low, box_high)).sum(axis=1) + c + p * goal[1]
                paid, best = np.where(value < best, p, paid), np.minimum(value, best)
        price[:] = paid.reshape(2, -1)
        return best[: len(shift)] + shift, shift - best[len(shift) :]

    def _fresh(self, box_low: Floats, box_high: Floats) -> tuple[Layers, Layers]:
        """Return ranges of all units in box and ball: intervals, and linear bounds where these leave a unit bent."""
        low: Layers = []
        high: Layers = []
        for k, bend in enumerate(self.form.slopes):
            above, below = self._unit_bounds(k, low, high, box_low, box_high, None, np.zeros((2, len(bend))))
            if k:
                least, most = (np.where(z >= 0, z, self.form.slopes[k - 1] * z) for z in (low[-1], high[-1]))
                plus, minus = np.maximum(self.form.weights[k], 0), np.minimum(self.form.weights[k], 0)
                least, most = (
                    plus @ least + minus @ most + self.form.biases[k],
                    plus @ most + minus @ least + self.form.biases[k],
                )
                is_bent = (least < 0) & (most > 0)
                below, above = (
                    np.where(is_bent, np.maximum(below, least), least),
                    np.where(is_bent, np.minimum(above, most), most),
                )
            low.append(below)
            high.append(above)
        return low, high

    def _multipliers(
        self, low: Layers, high: Layers, box_low: Floats, box_high: Floats
    ) -> tuple[Layers, Layers, Floats, float, float]:
        """Return alpha and beta of some subgradient steps, and g, c and the greatest value of the bound that they give."""
        alpha = [(b > -a) * 1.0 for a, b in zip(low, high, strict=True)]
        beta = [np.zeros_like(each) for each in low]
        lam = self.sign * self.form.weights[-1][0]
        constant = self.sign * float(self.form.biases[-1][0])
        best: Any = None
        for _ in range(STEPS):
            coarse = [np.round(a * 255) / 255 for a in alpha]
            gs, cs, lams = self._back(lam[None], self.depth - 1, low, high, coarse, beta)
            g, c = gs[0], float(cs[0]) + constant
            u = self._most(gs, box_low, box_high)[0]
            value = float(g @ u + c)
            if best is None or value < best[4]:
                best = coarse, [b.copy() for b in beta], g, c, value
            if value < -1e-9:
                break
            self._move(alpha, beta, low, high, lams, u, value)
        made: tuple[Layers, Layers, Floats, float, float] = best
        return made

    def _move(
        self, alpha: Layers, beta: Layers, low: Layers, high: Layers, lams: Layers, u: Floats, value: float
    ) -> None:
        """Move the multipliers by Polyak's step towards a bound below 0, in place."""
        moves = []
        sums = self.first @ u + self.start
        for k, bend in enumerate(self.form.slopes):
            is_bent = (low[k] < 0) & (high[k] > 0)
            size, width = np.abs(lams[k]) + 1e-3, high[k] - low[k] + 1e-3
            by_alpha = np.where(is_bent & (lams[k] < 0), lams[k] * (1 - bend) * sums, 0.0)
            side = np.where(low[k] == 0, 1.0, np.where(high[k] == 0, -1.0, 0.0))
            by_beta = np.where((side * beta[k] > 0) | (side * sums < 0), side**2 * sums, 0.0)
            moves.append((by_alpha / (size * width), by_beta * size / width, by_alpha, by_beta, side))
            chord = (high[k] - bend * low[k]) / np.where(is_bent, high[k] - low[k], 1.0)
            active = np.where(low[k] >= 0, sums, bend * sums)
            active = np.where(is_bent & (lams[k] > 0), bend * low[k] + chord * (sums - low[k]), active)
            active = np.where(is_bent & (lams[k] <= 0), (bend + (1 - bend) * alpha[k]) * sums, active)
            if k + 1 < self.depth:
                sums = self.form.weights[k + 1] @ active + self.form.biases[k + 1]
        length = sum(float(a @ c + b @ d) for a, b, c, d, _ in moves)
        if length <= 0:
            return
        step = (value + BELOW) / length
        for k, (by_alpha, by_beta, _, _, side) in enumerate(moves):
            alpha[k] = np.clip(alpha[k] - step * by_alpha, 0, 1)
            beta[k] = side * np.maximum(side * (beta[k] - step * by_beta), 0.0)

    # ---- the tree

    def _node(self, box_low: Floats, box_high: Floats, low: Layers, high: Layers, level: int) -> None:
        place = len(self.record.rounds)
        self.record.feature.append(-1)
        self.record.rounds.append(0)
        for _ in range(self.rounds):
            low, high, is_closed = self._round(place, box_low, box_high, low, high)
            if is_closed:
                return
        scores = np.concatenate(
            [np.where((a < 0) & (b > 0), np.minimum(-a, b), -1.0) for a, b in zip(low, high, strict=True)]
        )
        n = int(scores.argmax())
        if level >= self.deepest or len(self.record.rounds) > MOST_NODES:
            self.is_closed = False
            return
        if level < self.cuts or scores[n] < 0:
            self._cut(place, box_low, box_high, low, high, level)
            return
        self.record.feature[place] = -2 - n
        for side in (0, 1):
            lows, highs = [a.copy() for a in low], [b.copy() for b in high]
            flat = n
            for k in range(self.depth):
                if flat < len(lows[k]):
                    (lows if side else highs)[k][flat] = 0.0
                    break
                flat -= len(lows[k])
            self._node(box_low, box_high, lows, highs, level + 1)

    def _cut(self, place: int, box_low: Floats, box_high: Floats, low: Layers, high: Layers, level: int) -> None:
        j = int((box_high - box_low).argmax())
        at = float(self.own[j] + (box_low[j] + box_high[j]) / 2 * self.range[j])
        u = (at - self.own[j]) / self.range[j]
        self.record.feature[place] = j
        self.record.at.append(at)
        for side in (0, 1):
            lows, highs = box_low.copy(), box_high.copy()
            (lows if side else highs)[j] = u
            made_low, made_high = self._fresh(lows, highs)
            made_low = [np.maximum(a, b) for a, b in zip(made_low, low, strict=True)]
            made_high = [np.minimum(a, b) for a, b in zip(made_high, high, strict=True)]
            self._node(lows, highs, made_low, made_high, level + 1)

    def _round(
        self, place: int, box_low: Floats, box_high: Floats, low: Layers, high: Layers
    ) -> tuple[Layers, Layers, bool]:
        if any((a > b).any() for a, b in zip(low, high, strict=True)):
            return low, high, True
        alpha, beta, g, c, value = self._multipliers(low, high, box_low, box_high)
        record, prices = self.record, [np.zeros((2, len(each))) for each in low]
        record.rounds[place] += 1
        record.alpha.append(np.round(np.concatenate(alpha) * 255))
        record.beta.append(np.concatenate(beta))
        record.mix.append(np.ones(1))
        record.price.append(np.zeros((2, self.units)))
        if value < -1e-9:
            return low, high, True
        made_low: Layers = []
        made_high: Layers = []
        for k in range(self.depth):
            above, below = self._unit_bounds(k, made_low, made_high, box_low, box_high, (g, c), prices[k])
            is_bent = (low[k] < 0) & (high[k] > 0)
            made_low.append(np.where(is_bent, np.maximum(low[k], below), low[k]))
            made_high.append(np.where(is_bent, np.minimum(high[k], above), high[k]))
        record.price[-1] = np.concatenate(prices, axis=1)
        return made_low, made_high, any((a > b).any() for a, b in zip(made_low, made_high, strict=True))

"""The proof of the tree lane: for each part of a question the branching in its last complete ball, as values of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.problem import Evidence
from mace.solvers.trees.dual import PricedProof
from mace.solvers.trees.engines import Engine, Priced
from mace.solvers.trees.grid import Floats, Ints
from mace.solvers.trees.local import Local
from mace.solvers.trees.parts import Tables, TreePart
from mace.solvers.trees.recording import AS_BEFORE

LONG = 2000
"""A branching of more nodes than this is worth another try."""

PRICES_NOT_RECORDED = (
    "a ball was closed by prices, of which too many pass to be recorded, "
    "and no other proof was found in twice the time of the search"
)


@dataclass(frozen=True, slots=True)
class Branching:
    """The branching of one ball, node after node.

    Attributes
    ----------
    part : TreePart
        What was searched.
    radius : float
        Of the ball.
    code : int array
        -1 where a box is pruned, -2 where prices prune it; at a branching twice its feature, plus 1 where the right side comes first.
    at : int array
        The levels of the left side as bits, or -1.
    value : float array
        The greatest value of the left side, for an ordered feature.
    prices : dict, optional
        What drops cells and leaves and prunes the boxes with code -2: the pairs of trees and features, the greatest value of each of their
        segments, and for some nodes how prices change there, λ, and the rates of budgets.
    """

    part: TreePart
    radius: float
    code: Ints
    at: Ints
    value: Floats
    prices: dict[str, NDArray[Any]] | None


class Recorder:
    """Keeps the last complete branching of every part of a question."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._kept: dict[tuple[bytes, int], Branching | None] = {}
        self._parts: dict[tuple[bytes, int], TreePart] = {}

    def keep(self, part: TreePart, engine: Engine, radius: float) -> None:
        """Keep the branching of a ball that was searched to its end, if it is the largest so far, or shorter."""
        found = engine.branching
        if found is not None and self._is_better(part, radius, len(found[0])):
            prices = self._prices(engine) if isinstance(engine, Priced) else None
            self._kept[_key(part)] = self._branching(part, engine.local, radius, *found, prices)

    def keep_empty(self, part: TreePart, radius: float) -> None:
        """Keep that no point of a ball has a leaf in every tree: one box, pruned."""
        if self._is_better(part, radius, 1):
            self._kept[_key(part)] = Branching(part, radius, np.array([-1]), np.array([-1]), np.zeros(1), None)

    def _is_better(self, part: TreePart, radius: float, nodes: int) -> bool:
        self.meet(part)
        before = self._kept[_key(part)]
        return before is None or before.radius < radius or nodes < len(before.code)

    def meet(self, part: TreePart) -> None:
        """Note a part that is searched."""
        self._parts.setdefault(_key(part), part)
        self._kept.setdefault(_key(part), None)

    def gaps(self, radius: float) -> list[TreePart]:
        """Return the parts for which a proof that nothing costs less than ``radius`` is lacking."""
        return [part for key, part in self._parts.items() if self._lacks(key, radius)]

    def long(self, radius: float) -> list[TreePart]:
        """Return the parts whose proof is long: the search of a larger ball, or for a point, makes it longer than it need be."""
        kept = [each for each in self._kept.values() if each is not None and each.part.nearest < radius]
        return [each.part for each in kept if len(each.code) > LONG]

    def _lacks(self, key: tuple[bytes, int], radius: float) -> bool:
        part, branching = self._parts[key], self._kept[key]
        return part.nearest < radius and (branching is None or branching.radius < min(radius, part.farthest))

    def evidence(self, radius: float) -> Evidence:
        """Return the proof that nothing costs less than ``radius``."""
        if self.gaps(radius):
            return {"lane": "trees", "missing": PRICES_NOT_RECORDED}
        kept = [each for each in self._kept.values() if each is not None and each.part.nearest < radius]
        if not kept:
            empty: NDArray[Any] = np.empty(0, np.int64)
            return _joined([], empty, np.empty(0), empty, self._alternatives())
        code = np.concatenate([each.code for each in kept])
        return _joined(
            kept, code, np.concatenate([each.value for each in kept]), np.concatenate([each.at for each in kept]),
            self._alternatives(),
        )  # fmt: skip

    def _alternatives(self) -> dict[int, int]:
        return {id(values): number for number, values in self._tables.numbered_alternatives()}

    def _prices(self, engine: Priced) -> dict[str, NDArray[Any]]:
        """Return the prices of an engine with its segments as values; of a feature with levels their positions are the values."""
        view, local, pairs, count = self._tables.view, engine.local, engine.pairs, engine.count
        segments, sizes = engine.segments, np.diff(pairs.segment[: count + 1]) if count else np.empty(0, np.int64)
        feature = np.repeat(pairs.feature[:count], sizes)
        block = local.off[feature] + pairs.last[:segments] + 1
        is_last = block == local.off[feature + 1]
        # The last cell of a block is the one before the first of the next; of the last block, that of the feature.
        ends = np.where(is_last, np.diff(view.off)[feature], local.first[np.minimum(block, len(local.first) - 1)]) - 1
        recorded = engine.recorded
        multiplier = recorded.multiplier
        return {
            "tree": pairs.tree[:count],
            "feature": pairs.feature[:count],
            "segments": sizes,
            "upper": view.high[view.off[feature] + ends],
            "node": recorded.node,
            "change": _changes(recorded),
            "unit": float(recorded.unit[0]),
            "multiplier": multiplier[:, 0],
            **({"rates": multiplier[:, 1:]} if multiplier.shape[1] > 1 else {}),
        }

    def _branching(
        self,
        part: TreePart,
        local: Local,
        radius: float,
        code: Ints,
        at: Ints,
        prices: dict[str, NDArray[Any]] | None,
    ) -> Branching:
        """Return a branching over blocks of cells as one over values."""
        grid, view = self._tables.grid, self._tables.view
        feature = code >> 1
        is_cut = code >= 0
        ordered = is_cut & ~grid.is_mask[np.where(is_cut, feature, 0)]
        value = np.zeros(len(code))
        chosen = feature[ordered]
        # The last cell of a block is the one before the first of the next.
        last = local.first[local.off[chosen] + at[ordered] + 1] - 1
        value[ordered] = view.high[view.off[chosen] + last]
        return Branching(part, radius, code.astype(np.int64), np.where(ordered, -1, at), value, prices)


def _key(part: TreePart) -> tuple[bytes, int]:
    return part.pattern.tobytes(), id(part.values)


def _changes(recorded: PricedProof) -> NDArray[np.int32]:
    """Return by how many units prices change at the nodes where they are recorded, from what they were last on the way there."""
    changes = np.zeros(recorded.price.shape, np.int32)
    begin = np.searchsorted(recorded.node, np.arange(len(recorded.code) + 1))
    around: list[NDArray[np.int32]] = [np.zeros(recorded.price.shape[1], np.int32)]
    for node, code in enumerate(recorded.code):
        price = around.pop()
        for row in range(begin[node], begin[node + 1]):
            given = recorded.price[row]
            changes[row] = np.where(given == AS_BEFORE, 0, given - price)
            price = price + changes[row]
        around += [price, price] if code >= 0 else []
    return changes


def _joined(kept: list[Branching], code: Ints, value: Floats, at: Ints, alternatives: dict[int, int]) -> Evidence:
    """Return branchings as one proof: cuts with few bits, their values and sets of levels in tables."""
    is_cut = code >= 0
    ordered = is_cut & (at < 0)
    leveled = is_cut & ~ordered
    values, value_of = np.unique(value[ordered], return_inverse=True)
    sets, set_of = np.unique(at[leveled], return_inverse=True)
    cut = np.zeros(len(code), dtype=np.int64)
    cut[ordered], cut[leveled] = value_of, len(values) + set_of
    return {
        "lane": "trees",
        "parts": [
            {
                "alternative": alternatives[id(each.part.values)],
                "missing": [int(j) for j in np.flatnonzero(each.part.pattern)],
                "nodes": len(each.code),
                **({} if each.prices is None else {"prices": each.prices}),
            }
            for each in kept
        ],
        "code": code,
        "cut": cut[is_cut],
        "values": values,
        "sets": sets,
    }

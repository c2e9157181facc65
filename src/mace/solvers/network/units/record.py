"""The proof of a search over signs of units: one tree at the final radius, with the multipliers that close its nodes.

The multipliers are rounded as they are written before a bound is made of them, so that a checker finds the same bounds. What an entry
means is in docs/networks.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.problem import Limits
from mace.solvers.network import kernels, proof
from mace.solvers.network.prepared import Floats, PreparedNetwork, Workspace
from mace.solvers.network.units import dual
from mace.solvers.network.units.search import (
    ASCENT_STEPS,
    GOAL_ROUNDS,
    ROOT_ASCENT_STEPS,
    ROOT_GOAL_ROUNDS,
    Halted,
    SignNode,
    SignSearch,
    copied,
)

ALPHA_LEVELS = 255
"""Alpha is written in so many steps."""


@dataclass(slots=True)
class RecordedRound:
    """The multipliers of one combination; a price is 0 where it did not help a bound."""

    alpha: Floats
    beta: Floats
    mix: Floats
    price: Floats


class SignProof(SignSearch):
    """A search without looking for points that writes down what it does.

    Where it ``leaves_points``, a leaf may be a single point of which only the model knows that it is refused.
    """

    def __init__(
        self,
        made: PreparedNetwork,
        workspace: Workspace,
        domain: tuple[Floats, Floats],
        radius: float,
        limits: Limits,
        *,
        leaves_points: bool = True,
    ) -> None:
        workspace.state.registers[:] = 0
        super().__init__(made, workspace, domain, limits, lambda: None)
        self.radius, self.leaves_points = radius, leaves_points
        self.rounds: list[RecordedRound] = []

    @property
    def limit(self) -> float:
        """The radius of the proof."""
        return self.radius

    def tree(self, most: int) -> dict[str, NDArray[Any]]:
        """Return the proof, of at most so many nodes; raises :class:`mace.solvers.network.proof.Unfinished`."""
        codes: list[int] = []
        at: list[float] = []
        rounds: list[list[RecordedRound]] = []
        try:
            root = self._root()
            waiting = [] if root is None else [root]
            if root is None:
                codes, rounds = [-1], [[]]
            while waiting:
                if len(codes) >= most:
                    raise proof.Unfinished("the proof at the final radius is too large")
                code, where, sides = self._entry(waiting.pop(), is_root=not codes)
                codes.append(code)
                rounds.append(self.rounds)
                at.append(where)
                waiting += reversed(sides)
        except Halted as stopped:
            raise proof.Unfinished(proof.NO_TIME) from stopped
        return self._written(codes, at, rounds)

    def _entry(self, node: SignNode, *, is_root: bool) -> tuple[int, float, list[SignNode]]:
        """Return what a node is branched on, where, and its sides; its rounds are in ``rounds``."""
        self.rounds = []
        if node.bound > self.limit:
            self._note(node.many)
            return -1, 0.0, []
        is_closed = self._is_closed(
            node, *((ROOT_GOAL_ROUNDS, ROOT_ASCENT_STEPS) if is_root else (GOAL_ROUNDS, ASCENT_STEPS))
        )
        if not is_closed and self.rounds and not self.rounds[-1].price.any():
            self.rounds.pop()
        box = None if is_closed else self._open(node)
        if box is not None and box.columns == 0 and not self.leaves_points:
            raise proof.Unfinished(proof.LEFT_TO_THE_MODEL)
        if box is None or box.columns == 0:
            return -1, 0.0, []
        kept = self.rounds
        found = self._branching(node, box)
        last, self.rounds = self.rounds[-1], kept
        if found is None:
            self.rounds = [*kept, last]
            return -1, 0.0, []
        return found.code, found.at, found.sides

    def _note(self, many: dual.Multipliers) -> None:
        kept = copied(many)
        self.rounds = [*self.rounds, RecordedRound(kept.alpha, kept.beta, kept.mix, np.zeros_like(kept.price))]

    # ---- what is done otherwise

    def _offer(self, box: kernels.InputBox) -> None:
        pass

    def _offer_relaxed(self, x: Floats, box: kernels.InputBox) -> None:
        pass

    def _give_up(self, node: SignNode) -> None:
        raise proof.Unfinished("a node in which every sign is decided is not closed at the final radius")

    def _ascend(self, steps: int, rate: float, box: kernels.InputBox) -> tuple[float, float]:
        super()._ascend(steps, rate, box)
        self.many.alpha[:] = np.rint(self.many.alpha * ALPHA_LEVELS) / ALPHA_LEVELS
        found = super()._ascend(1, rate, box)
        self._note(self.many)
        return found

    def _tighten(self, value: float, box: kernels.InputBox) -> bool:
        low, high = self.scratch["low"].copy(), self.scratch["high"].copy()
        is_open = super()._tighten(value, box)
        is_better = np.stack([self.scratch["high"] < high, self.scratch["low"] > low])
        self.rounds[-1].price = np.where(is_better, self.many.price, 0.0)
        return is_open

    # ---- writing

    def _written(self, codes: list[int], at: list[float], rounds: list[list[RecordedRound]]) -> dict[str, NDArray[Any]]:
        feature = np.array(codes, dtype=np.int64)
        cuts = proof.written(self.workspace, self.made, feature, np.array(at))
        every = [each for several in rounds for each in several]
        hidden = self.is_hidden
        shape = (len(every), int(hidden.sum()))
        return cuts | {
            "rounds": np.array([len(each) for each in rounds], dtype=np.int64),
            "alpha": np.array([np.rint(each.alpha[hidden] * ALPHA_LEVELS) for each in every], dtype=np.uint8).reshape(
                shape
            ),
            "beta": np.array([each.beta[hidden] for each in every], dtype=np.float64).reshape(shape),
            "mix": np.array([each.mix for each in every], dtype=np.float64).reshape(len(every), len(self.many.mix)),
            "price": np.array([each.price[:, hidden] for each in every], dtype=np.float32).reshape(
                shape[0], 2, shape[1]
            ),
        }

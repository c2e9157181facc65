"""Reading the evidence of the tree lane: a binary tree of cuts for each alternative of the goal and each set of missing features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mace.certify.verdict import Refuted, Unchecked
from mace.exact import Flags, Floats, Ints

BY_PRICES = -2
LONGEST_PROOF = 5_000_000


@dataclass(frozen=True, slots=True)
class ProofPart:
    """Where the nodes of one branching begin and end, and its prices."""

    begin: int
    end: int
    prices: dict[str, Any] | None

    @property
    def has_steps(self) -> bool:
        """Whether prices drop cells and leaves on the way, and not only close boxes."""
        return self.prices is not None and "change" in self.prices


@dataclass(frozen=True, slots=True)
class ProofTree:
    """The evidence as read: nodes in the order in which they are met.

    Attributes
    ----------
    parts : dict
        By alternative and the features that are missing.
    feature : int array
        -1 at a closed box.
    by_prices : int array
        For a box that is closed by prices, the number of such boxes before it in its part; -1 for others.
    right_first : bool array
        Whether the right side of a cut comes first.
    value : float array
        The greatest value of the left side; for sets, unused.
    levels : int array
        The levels of the left side as bits; -1 for a cut at a value.
    end : int array
        The node after the last of the subtree that begins here.
    """

    parts: dict[tuple[int, tuple[int, ...]], ProofPart]
    feature: Ints
    by_prices: Ints
    right_first: Flags
    value: Floats
    levels: Ints
    end: Ints


def read(evidence: dict[str, Any], features: int) -> ProofTree:
    """Return the evidence with everything in it checked for shape; what it proves comes later."""
    code, cut = _integers(evidence, "code"), _integers(evidence, "cut")
    if len(code) > LONGEST_PROOF:
        raise Unchecked(f"the branching has {len(code):,} nodes, and at most {LONGEST_PROOF:,} are walked")
    values, sets = np.asarray(evidence["values"], dtype=np.float64), _integers(evidence, "sets")
    is_cut = code >= 0
    feature = np.where(is_cut, code >> 1, -1)
    if ((code < BY_PRICES) | (feature >= features)).any():
        raise Refuted("evidence.code: a node is neither closed nor a cut of a feature")
    if len(cut) != is_cut.sum():
        raise Refuted("evidence.cut: there is not one entry for each cut")
    is_set = np.zeros(len(code), dtype=bool)
    is_set[is_cut] = cut >= len(values)
    at = np.zeros(len(code), dtype=np.int64)
    at[is_cut] = cut
    if (cut < 0).any() or (cut >= len(values) + len(sets)).any() or (sets < 0).any():
        raise Refuted("evidence.cut: an entry names no cut")
    tables = np.concatenate([values, [0.0]]), np.concatenate([sets, [-1]])
    parts: dict[tuple[int, tuple[int, ...]], ProofPart] = {}
    start = 0
    for number, part in enumerate(evidence["parts"]):
        key = (int(part["alternative"]), tuple(int(j) for j in part["missing"]))
        nodes = int(part["nodes"])
        if key in parts or nodes < 1:
            raise Refuted(f"evidence.parts[{number}]: it stands twice, or is empty")
        parts[key] = ProofPart(start, start + nodes, part.get("prices"))
        start += nodes
    if start != len(code):
        raise Refuted("evidence.parts: they do not have all nodes between them")
    return ProofTree(
        parts,
        feature,
        by_prices=_counted(code == BY_PRICES, parts),
        right_first=is_cut & (code & 1 == 1),
        value=tables[0][np.where(is_cut & ~is_set, at, -1)],
        levels=tables[1][np.where(is_set, at - len(values), -1)],
        end=_ends(is_cut, parts),
    )


def _integers(evidence: dict[str, Any], name: str) -> Ints:
    array = np.asarray(evidence[name])
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise Refuted(f"evidence.{name}: not a list of whole numbers")
    return array.astype(np.int64)


def _counted(by_prices: Flags, parts: dict[Any, ProofPart]) -> Ints:
    """Return for each box that is closed by prices how many there are before it in its part; -1 for others."""
    number = np.full(len(by_prices), -1, dtype=np.int64)
    for part in parts.values():
        positions = part.begin + np.flatnonzero(by_prices[part.begin : part.end])
        number[positions] = np.arange(len(positions))
    return number


def _ends(is_cut: Flags, parts: dict[Any, ProofPart]) -> Ints:
    """Return where the subtree of each node ends; parts that are not exactly one tree each are refuted."""
    end = np.zeros(len(is_cut), dtype=np.int64)
    for part in parts.values():
        start, stop = part.begin, part.end
        waiting: list[int] = []
        for node in range(stop - 1, start - 1, -1):
            if is_cut[node]:
                if len(waiting) < 2:
                    raise Refuted(f"evidence: the branching breaks off; node {node} lacks a side")
                waiting.pop()
                end[node] = waiting.pop()
            else:
                end[node] = node + 1
            waiting.append(int(end[node]))
        if len(waiting) != 1:
            raise Refuted(f"evidence: nodes {start} to {stop - 1} are not one branching, but {len(waiting)}")
    return end

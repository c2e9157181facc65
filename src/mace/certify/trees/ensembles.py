"""The tree ensembles that decide together: the model, and the isolation forest of each ``typical`` constraint.

Their nodes are put into one list, so that a box can be cut until one leaf of each tree is left. Their margins stay apart: each is a sum
over the leaves of one ensemble, off by the rounding of that ensemble only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mace.certify.trees.leaves import NodeGains, Nodes, margin_gains
from mace.certify.verdict import Refuted
from mace.constraints.typical import USUAL, Usual
from mace.exact import Flags, Floats, Ints
from mace.forms import Goal, Margin, TreeEnsemble
from mace.models.reading import Ask
from mace.problem import Problem
from mace.space import Point

CHUNK = 256


@dataclass(frozen=True, slots=True)
class Decision:
    """An ensemble as read, the real model behind it, and the goal that a counterfactual reaches in it."""

    form: TreeEnsemble
    ask: Ask
    goal: Goal

    @property
    def chunk(self) -> int:
        """How many points the real model is asked about at once."""
        return 1 if self.form.is_blockwise else CHUNK

    def refuses(self, points: Sequence[Point]) -> list[bool | None]:
        """Return whether the real model keeps each point out of the goal; ``None`` where the order of summation decides."""
        return [
            False if self.goal.accepts(outcome) else True if self.form.is_settled(point, self.goal) else None
            for point, outcome in zip(points, self.ask(points), strict=True)
        ]


class Decisions:
    """What a counterfactual must reach: the model's goal, and that every isolation forest calls it usual."""

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.form, TreeEnsemble)
        forests = [condition.reading for condition in problem.conditions if isinstance(condition, Usual)]
        self.each = [Decision(problem.form, problem.ask, problem.goal)]
        for reading in forests:
            assert isinstance(reading.form, TreeEnsemble)
            self.each.append(Decision(reading.form, reading.ask, USUAL))
        self.nodes = _one_list([decision.form for decision in self.each])

    @property
    def trees(self) -> int:
        """How many trees there are in all."""
        return len(self.nodes.roots)

    def alternatives(self) -> list[NodeGains]:
        """Return what each alternative of the goal, with what the forests ask for, needs of the leaves."""
        each = [one.form.alternatives(one.goal) for one in self.each]
        return [self._gains(chosen) for chosen in itertools.product(*each)]

    def _gains(self, chosen: tuple[tuple[Margin, ...], ...]) -> NodeGains:
        if not any(chosen):
            raise Refuted("the target asks for nothing of the model's scores")
        begins = list(itertools.accumulate((len(one.form.left) for one in self.each), initial=0))
        columns: list[Ints] = []
        numbers: list[tuple[int, int, int]] = []
        for k, (decision, margins) in enumerate(zip(self.each, chosen, strict=True)):
            for margin in margins:
                own, *rest = margin_gains(decision.form, decision.goal, margin)
                columns.append(np.zeros(begins[-1], dtype=np.int64))
                columns[-1][begins[k] : begins[k + 1]] = own
                numbers.append((rest[0], rest[1], rest[2]))
        table = np.array(numbers)
        return NodeGains(np.column_stack(columns), table[:, 0], table[:, 1], table[:, 2])

    def refuted(self, points: Sequence[Point]) -> Iterator[tuple[Point, bool]]:
        """Yield the points that no real model surely refuses, and whether only the order of summation decides about them."""
        size = min(decision.chunk for decision in self.each)
        for begin in range(0, len(points), size):
            chunk = points[begin : begin + size]
            answers = zip(*(decision.refuses(chunk) for decision in self.each), strict=True)
            for point, said in zip(chunk, answers, strict=True):
                if True not in said:
                    yield point, None in said


def _one_list(forms: Sequence[TreeEnsemble]) -> Nodes:
    """Return the nodes of several ensembles one after the other; positions are moved by what comes before."""

    def begins(sizes: Sequence[int]) -> list[int]:
        return list(itertools.accumulate(sizes, initial=0))[:-1]

    def moved(arrays: Sequence[Ints], offsets: Sequence[int]) -> Ints:
        return np.concatenate(
            [np.where(own < 0, -1, own + offset) for own, offset in zip(arrays, offsets, strict=True)]
        )

    nodes = begins([len(form.left) for form in forms])
    columns = begins([len(form.columns) for form in forms])
    subsets = begins([len(form.subsets) for form in forms])
    edge: Floats = np.concatenate([form.edge for form in forms])
    missing_left: Flags = np.concatenate([form.missing_left for form in forms])
    return Nodes(
        columns=tuple(itertools.chain(*(form.columns for form in forms))),
        roots=moved([form.roots for form in forms], nodes),
        column=moved([form.column for form in forms], columns),
        edge=edge,
        left=moved([form.left for form in forms], nodes),
        right=moved([form.right for form in forms], nodes),
        missing_left=missing_left,
        subset=moved([form.subset for form in forms], subsets),
        subsets=tuple(itertools.chain(*(form.subsets for form in forms))),
    )

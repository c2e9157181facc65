"""Checking a certificate about actions: what these lead to, what they cost, and a proof for every choice of what they act upon.

The effects that are acted upon may be chosen in many ways. The checker goes through all choices itself, and for each there must be a proof
that no actions nearer than ``lower`` lead to the target. Where a proof is about a plain model over actions, the checker makes that model
itself.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mace.certify.effects.actions import about_actions, cases, few_values, linear_pieces
from mace.certify.effects.models import over_actions
from mace.certify.proofs import check_lane
from mace.certify.statement import Statement
from mace.certify.verdict import Progress, Refuted, Unchecked, check_reached
from mace.constraints import Condition
from mace.constraints.causal import effects_of
from mace.errors import InvalidRow, MaceError
from mace.forms import Effects, EffectsForm
from mace.problem import Problem
from mace.space import Point

PLAIN = ("trees", "network", "boxes")
"""Lanes whose proofs are about a plain model over actions."""

MOST_CASES = 256


class CausalQuestion:
    """A statement with causes, and what the claim says is acted upon."""

    def __init__(self, problem: Problem, statement: Statement, actions: list[str] | None) -> None:
        assert statement.causes is not None
        self.problem, self.actions = problem, actions
        try:
            programs = statement.causes.programs(problem.space)
            self.further: tuple[Condition, ...] = tuple(statement.apart())
            self.choices = list(effects_of(programs, problem.space, problem.factual))
        except MaceError as error:
            raise Refuted(f"statement.causes: {error}") from error
        self.all = frozenset(programs)

    # ---- the counterfactual

    def check_counterfactual(self, problem: Problem, row: dict[str, Any]) -> Fraction:
        """Follow the actions to the row, ask the model about it, and return what the actions cost."""
        if self.actions is None:
            raise Refuted("claim.actions: with a counterfactual there are actions")
        try:
            point = problem.space.point(row)
        except InvalidRow as error:
            raise Refuted(f"claim.counterfactual: {error}") from error
        effects = self._following(frozenset(self.actions))
        follow = {equation.name for equation in effects.equations}
        changed = {name for name, new, old in zip(problem.space, point, problem.factual, strict=True) if new != old}
        if set(self.actions) != (changed | self.all) - follow or len(set(self.actions)) != len(self.actions):
            raise Refuted("claim.actions: they are not what the counterfactual changes beside what follows")
        acted: Point = tuple(
            old if name in follow else new for name, new, old in zip(problem.space, point, problem.factual, strict=True)
        )
        if effects.row(acted) != point:
            raise Refuted("claim.counterfactual: it is not the row that the actions lead to by the equations")
        asked = about_actions(problem, effects, self.further)
        if not asked.is_plausible(acted):
            raise Refuted(
                "claim.counterfactual: it, or the actions that lead to it, break a condition of the statement"
            )
        check_reached(asked, acted)
        return asked.distance(acted)

    def _following(self, acted: frozenset[str]) -> Effects:
        wanted = self.all - acted
        return next(each for each in self.choices if {equation.name for equation in each.equations} == wanted)

    # ---- the proof

    def check_proof(
        self,
        problem: Problem,
        lower: Fraction | None,
        evidence: dict[str, Any],
        progress: Progress,
    ) -> None:
        """Raise unless it is shown that no actions nearer than ``lower`` lead to the target, whatever they act upon."""
        if evidence["lane"] != "causes" or "missing" in evidence:
            raise Unchecked("the lane gave no proof for every choice of the effects that are acted upon")
        proofs = evidence["choices"]
        if not isinstance(proofs, list) or len(proofs) != len(self.choices):
            raise Refuted(f"evidence.choices: there is not one proof for each of {len(self.choices)} choices")
        for number, (effects, proof) in enumerate(zip(self.choices, proofs, strict=True)):
            part = _share(progress, number, len(proofs))
            for asked, each in self._parts(effects, proof):
                if each["lane"] in PLAIN and isinstance(asked.form, EffectsForm):
                    asked = over_actions(asked)
                check_lane(asked, lower, each, part)

    def _parts(self, effects: Effects, proof: dict[str, Any]) -> list[tuple[Problem, dict[str, Any]]]:
        """Return the questions that answer a choice together, each with its proof: the question itself, or one for each case or piece."""
        if proof["lane"] not in ("cases", "pieces"):
            return [(about_actions(self.problem, effects, self.further), proof)]
        asked = self._cases(effects, proof["of"]) if proof["lane"] == "cases" else self._pieces(effects)
        if not isinstance(proof["proofs"], list) or len(proof["proofs"]) != len(asked):
            raise Refuted(f"evidence.proofs: there is not one proof for each of {len(asked)} {proof['lane']}")
        return list(zip(asked, proof["proofs"], strict=True))

    def _cases(self, effects: Effects, names: list[str]) -> list[Problem]:
        space = self.problem.space
        if any(not few_values(space, name) or space[name].missing for name in names) or len(set(names)) < len(names):
            raise Refuted("evidence.of: cases are of features with few values, which are never missing")
        if math.prod(len(few_values(space, name)) for name in names) > MOST_CASES:
            raise Unchecked(f"more than {MOST_CASES} cases are not gone through")
        return [about_actions(self.problem, case, (*self.further, *equal)) for equal, case in cases(effects, names)]

    def _pieces(self, effects: Effects) -> list[Problem]:
        parts = linear_pieces(effects)
        if parts is None:
            raise Refuted("evidence.lane: the equations are not in pieces")
        return [about_actions(self.problem, piece, (*self.further, where)) for where, piece in parts]


def _share(progress: Progress, number: int, parts: int) -> Progress:
    return lambda share: progress((number + share) / parts)

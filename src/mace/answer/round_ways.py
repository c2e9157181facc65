"""Round answers where a sum decides: the nearest row first, then the nearest round row that changes no other features.

Over all round rows the nearest one would make up for the rounding by small changes of further features, which nobody wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.levers import Lever, Levers
from mace.answer.question import Question
from mace.answer.rounding import Unrounded
from mace.constraints import Constraint, fixed
from mace.distances import point_values
from mace.exact import decimal_fraction
from mace.problem import Status
from mace.space import FeatureSpace, Integer, Real

MOST_CHANGES = 4
"""An answer that changes more features stays as it is: on a grid of many features, the nearest row is hard to find."""

LANE = "network"

AskRound = Callable[[tuple[Constraint, ...]], Explanation | None]
"""Asks for the nearest round row under further constraints; ``None`` where the lane cannot."""


def round_ways(made: Explanation, question: Question, steps: Mapping[str, float], ask: AskRound) -> Explanation | None:
    """Return an explanation with each answer's values made round, proved nearest among such rows that change no other features.

    ``None`` where nothing is to be rounded, or where not all answers can be, so that they are still optimal and differ as asked.
    """
    if (
        made.status != Status.OPTIMAL
        or not made.solver.startswith(LANE)
        or all(_is_round(each, question, steps) for each in made)
    ):
        return None
    found: list[Counterfactual] = []
    for each in made:
        if _is_round(each, question, steps):
            found.append(each)
            continue
        others = {*question.space} - {change.feature for change in each.changes}
        if len(each.changes) > MOST_CHANGES:
            return None
        asked = ask((fixed(*sorted(others, key=question.space.index)),) if others else ())
        if asked is None or asked.status != Status.OPTIMAL:
            return None
        found.append(replace(asked[0], solver=each.solver, seconds=each.seconds + asked[0].seconds))
    found.sort(key=lambda each: each.distance)
    if not _differ(found, made, question):
        return None
    return replace(
        made,
        counterfactuals=tuple(found),
        lower=found[0].lower,
        certificate=made.certificate or made[0].certificate,
        round_to=dict(steps),
        rounds_changes=True,
        _unrounded=Unrounded(None, made.lower),
    )


def round_levers(made: Levers, space: FeatureSpace, steps: dict[str, float], ask: AskRound) -> Levers:
    """Return a menu whose answers have round values, each nearest among such rows; as it is, where not all of them can be round."""
    found: list[Lever] = []
    for lever in made:
        others = [name for name in space if name not in lever.features]
        asked = ask((fixed(*others),) if others else ())
        if asked is None or asked.status != Status.OPTIMAL:
            return made
        found.append(replace(lever, counterfactual=asked[0]))
    found.sort(key=lambda lever: lever.counterfactual.distance)
    return replace(made, levers=tuple(found), round_to=steps)


def _is_round(answer: Counterfactual, question: Question, steps: Mapping[str, float]) -> bool:
    """Return whether every changed number of an answer is a multiple of its step."""
    for change in answer.changes:
        feature = question.space[change.feature]
        if change.feature in steps and isinstance(feature, Real | Integer) and isinstance(change.after, int | float):
            value = feature.decimal(change.after) if isinstance(feature, Real) else Fraction(change.after)
            if value % decimal_fraction(steps[change.feature]):
                return False
    return True


def _differ(found: list[Counterfactual], made: Explanation, question: Question) -> bool:
    """Return whether each answer differs from those before it as asked."""
    space, factual = question.space, question.space.point(made.factual)
    points = [space.point(each.values) for each in found]
    return all(
        question.diversity.bind(space, factual, earlier, question.distance).holds(point_values(space, point))
        for number, point in enumerate(points)
        for earlier in points[:number]
    )

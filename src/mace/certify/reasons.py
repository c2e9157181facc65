"""Checking reasons: that no feature of one can be left out, how far its ranges reach, and that every reason holds one of a list."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mace.certify.statement import Statement
from mace.certify.verdict import Refuted, Unchecked
from mace.constraints import Constraint, fixed, one_of, within
from mace.distances.distance import point_values
from mace.errors import MaceError
from mace.problem import Problem

Names = frozenset[str]

CheckRow = Callable[[Problem, dict[str, Any]], Fraction]
"""Raises unless a row is plausible and the real model puts it in the goal."""

MOST_SETS = 20_000
"""How many sets may be gone through on the way to those that hit all others."""


def check_reasons(problem: Problem, statement: Statement, claim: dict[str, Any], check_row: CheckRow) -> None:
    """Raise unless what is claimed of reasons holds, if anything is; that they force the decision has a proof beside it."""
    if not {"reason", "ranges", "reasons"} & set(claim):
        return
    if statement.earlier:
        raise Refuted(
            "claim: reasons are about all rows, and this statement leaves out those near earlier counterfactuals"
        )
    if statement.causes is not None or problem.searched[0]:
        raise Unchecked("claim: reasons are not checked where there are causes, or noise")
    if "reason" in claim:
        _check_reason(problem, statement, claim, check_row)
    if "ranges" in claim:
        _check_ranges(problem, statement, claim)
    if "reasons" in claim:
        _check_all(problem, statement, claim, check_row)


def _check_reason(problem: Problem, statement: Statement, claim: dict[str, Any], check_row: CheckRow) -> None:
    """Raise unless a constraint of the statement keeps the features of a reason, and none of them can be left out.

    That their values force the decision is the claim that no counterfactual exists.
    """
    names, conditions = set(claim["reason"]), list(problem.conditions)
    _must_be_out(problem, "claim.reason")
    if names:
        try:
            conditions.remove(fixed(*sorted(names, key=statement.space.index)).bind(statement.space, statement.factual))
        except (ValueError, KeyError, MaceError) as error:
            raise Refuted("claim.reason: no constraint of the statement keeps its features") from error
    if claim["status"] != "infeasible":
        raise Refuted(f"claim.reason: with status {claim['status']} its features do not force the decision")
    free = replace(problem, conditions=tuple(conditions))
    for name, row in claim["reason"].items():
        if _changed(free, row, check_row) & names != {name}:
            raise Refuted(
                f"claim.reason: the row that shows that {name!r} is needed changes other features of the reason, or not this one"
            )


def _check_ranges(problem: Problem, statement: Statement, claim: dict[str, Any]) -> None:
    """Raise unless the last constraints of the statement are the ranges of a reason, and the row lies in them.

    That they force the decision is the claim that no counterfactual exists.
    """
    _must_be_out(problem, "claim.ranges")
    if claim["status"] != "infeasible":
        raise Refuted(f"claim.ranges: with status {claim['status']} they do not force the decision")
    space, factual = statement.space, statement.factual
    # Those before are the rules, one of which may be wider than the range of its feature.
    stated = problem.conditions[len(problem.conditions) - len(claim["ranges"]) :]
    for name, ends in claim["ranges"].items():
        try:
            condition = _range(name, ends).bind(space, factual)
        except MaceError as error:
            raise Refuted(f"claim.ranges: {str(error)[:200]}") from error
        if condition not in stated:
            raise Refuted(f"claim.ranges: none of the last constraints of the statement keeps {name!r:.60} so")
        if not condition.holds(point_values(space, factual)):
            raise Refuted(f"claim.ranges: the row itself lies outside that of {name!r:.60}")


def _range(name: str, ends: Any) -> Constraint:
    """Return what a range says: a list of levels, two ends, or nothing for the value of the row."""
    if ends is None:
        return fixed(name)
    return one_of(name, ends) if isinstance(ends, list) else within(name, ends["low"], ends["high"])


def _check_all(problem: Problem, statement: Statement, claim: dict[str, Any], check_row: CheckRow) -> None:
    """Raise unless every reason holds one of the listed sets, none of which holds another.

    A row of the target changes some feature of every reason. So it is enough that the listed sets are all the smallest ones with a
    feature of what each listed row changes. That each of them is a reason is the claim of its own certificate.
    """
    _must_be_out(problem, "claim.reasons")
    sets = [frozenset(names) for names in claim["reasons"]["sets"]]
    strange = next((name for names in sets for name in names if name not in statement.space), None)
    if strange is not None:
        raise Refuted(f"claim.reasons: there is no feature {strange!r:.60}")
    changed = {_changed(problem, row, check_row) for row in claim["reasons"]["rows"]}
    if len(set(sets)) != len(sets) or set(sets) != _hitting(changed):
        raise Refuted("claim.reasons: the sets are not the smallest that have a feature of what each row changes")


def _must_be_out(problem: Problem, place: str) -> None:
    if problem.is_reached(problem.factual):
        raise Refuted(f"{place}: the row itself is at the target")


def _changed(problem: Problem, row: dict[str, Any], check_row: CheckRow) -> Names:
    """Return what a row changes, once it is known to be plausible and in the target."""
    check_row(problem, row)
    moved = zip(problem.space, problem.space.point(row), problem.factual, strict=True)
    return frozenset(name for name, new, old in moved if new != old)


def _hitting(sets: Collection[Names]) -> set[Names]:
    """Return the smallest sets that have an element of each of some sets, one of these taken in after the other (Berge's algorithm)."""
    made: set[Names] = {frozenset()}
    for each in sorted(sets, key=len):
        wider = {names for names in made if names & each}
        grown = {names | {name} for names in made if not names & each for name in each}
        made = wider | {names for names in grown if not any(other <= names for other in wider)}
        made = {names for names in made if not any(other < names for other in made)}
        if len(made) > MOST_SETS:
            raise Unchecked("claim.reasons: the sets are too many to be gone through")
    return made

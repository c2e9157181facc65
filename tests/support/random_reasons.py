"""Reasons on finite spaces, compared with going through every row."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable
from typing import Any

from random_problems import Case

import mace
from mace.answer.plain import plain
from mace.answer.reasons import Reason, Reasons
from mace.distances.distance import point_values
from mace.space.features import grid_values, is_missing

Names = frozenset[str]
Rows = list[dict[str, Any]]


def fault_of(case: Case, *, smallest: bool) -> str | None:
    """Return what is wrong with the reasons of a problem; ``None`` where nothing is, ``"skipped"`` where there is no question."""
    explainer = mace.Explainer(case.model, case.space)
    asked = {name: case.question[name] for name in ("target", "constraints") if name in case.question}
    reasons = explainer.reasons(case.row, **asked, count=1000, smallest=smallest, certify=True)
    if reasons.complete and reasons.reason:
        return "skipped"
    allowed = plausible(case)
    rows = reaching(explainer, case, allowed)
    changed = minimal(frozenset(n for n in case.space if row[n] != case.row[n]) for row in rows)
    truth = minimal(names for names in subsets(case.space) if all(names & each for each in changed))
    if not reasons.complete:
        return f"not complete: {reasons.reason}"
    if {frozenset(each.features) for each in reasons} != truth or len(reasons) != len(truth):
        return f"reasons {[each.features for each in reasons]}, brute force {sorted(map(sorted, truth))}"
    if smallest and [len(each.features) for each in reasons] != sorted(len(each.features) for each in reasons):
        return "the smallest do not come first"
    if {frozenset(names) for names in reasons.levers} != changed:
        return f"levers {reasons.levers}, brute force {sorted(map(sorted, changed))}"
    if set(reasons.necessary) != set(case.space).intersection(*truth):
        return f"necessary {reasons.necessary}"
    reach = [{name: row[name] for name in case.space} for row in rows]
    strange = [
        way.values for way in reasons.ways if way.values not in reach and not any(map(is_missing, way.values.values()))
    ]
    if strange:
        return f"{strange[0]} is said to reach the target"
    again = Reasons.from_json(reasons.to_json())
    if again.to_dict() != reasons.to_dict() or str(again) != str(reasons) or again.levers != reasons.levers:
        return "written and read it is another"
    return fault_of_whole(reasons, case) or next(
        filter(None, (_fault(each, rows, case) or _fault_of_note(each, allowed, case) for each in reasons)), None
    )


def fault_of_whole(reasons: Reasons, case: Case) -> str | None:
    """Return what is wrong with the certificate that there is no other reason."""
    made = json.loads(reasons.certificate.to_json())
    if not mace.verify(made, case.model).valid:
        return f"the certificate of all is {mace.verify(made, case.model)}"
    for key in ("sets", "rows"):
        for number in range(len(made["claim"]["reasons"][key])):
            forged = copy.deepcopy(made)
            del forged["claim"]["reasons"][key][number]
            if mace.verify(forged, case.model).outcome != "refuted":
                return f"without {key}[{number}] the certificate of all is believed"
    forged = copy.deepcopy(made)
    forged["claim"]["reasons"]["rows"].append({name: plain(case.row[name]) for name in case.space})
    if mace.verify(forged, case.model).outcome != "refuted":
        return "the row itself is believed to be a row of the target"
    return None


def _fault(reason: Reason, rows: Rows, case: Case) -> str | None:
    inside = [row for row in rows if all(_is_in(row[name], reason, name, case.space) for name in reason.features)]
    if inside:
        return f"{reason.features}: {inside[0]} lies in the ranges {reason.ranges} and reaches the target"
    verdict = mace.verify(mace.Certificate.from_json(reason.certificate.to_json()), case.model)
    if not verdict.valid:
        return f"the certificate of {reason.features} is {verdict}"
    made = json.loads(reason.certificate.to_json())
    for name in reason.features:
        forged = copy.deepcopy(made)
        forged["claim"]["reason"][name] = {each: plain(case.row[each]) for each in case.space}
        if mace.verify(forged, case.model).outcome != "refuted":
            return f"{reason.features}: a witness of {name} that is the row itself is believed"
        fewer = [each for each in reason.features if each != name]
        forged = copy.deepcopy(made)
        del forged["claim"]["reason"][name]
        # Of a single feature that is the true claim that nothing is needed where a rule keeps it.
        if fewer and mace.verify(forged, case.model).outcome != "refuted":
            return f"{reason.features}: without a witness of {name} it is believed"
        forged["statement"]["constraints"][-1:] = [mace.fixed(*fewer).to_dict()] if fewer else []
        if mace.verify(forged, case.model).valid:
            return f"{reason.features}: {fewer} is believed to suffice"
    return None


def _fault_of_note(reason: Reason, allowed: Rows, case: Case) -> str | None:
    others = [row for row in allowed if any(row[name] != case.row[name] for name in case.space)]
    is_left = any(all(row[name] == case.row[name] for name in reason.features) for row in others)
    is_asked = bool(case.question["constraints"]) or not reason.features
    if is_asked and len(reason.features) < len(case.space) and is_left == bool(reason.note):
        return f"{reason.features}: {reason.note!r}, but {'there is' if is_left else 'there is no'} other row"
    return None


def _is_in(value: Any, reason: Reason, name: str, space: mace.FeatureSpace) -> bool:
    ends = reason.ranges[name]
    if ends.levels is not None:
        return value in ends.levels
    levels = getattr(space[name], "levels", None)
    place = levels.index if levels else lambda number: number
    return bool(place(ends.low) <= place(value) <= place(ends.high))


def plausible(case: Case) -> Rows:
    """Return every row that keeps the constraints."""
    space, factual = case.space, case.space.point(case.row)
    values = [sorted({*grid_values(feature), own}) for feature, own in zip(space.values(), factual, strict=True)]
    conditions = [constraint.bind(space, factual) for constraint in case.question["constraints"]]
    points = itertools.product(*values)
    return [
        space.values_of(point) for point in points if all(each.holds(point_values(space, point)) for each in conditions)
    ]


def reaching(explainer: mace.Explainer, case: Case, rows: Rows) -> Rows:
    """Return the rows that the model puts in the target."""
    said, own = explainer.predict_many(rows) if rows else [], explainer.predict(case.row)
    target = case.question.get("target")
    return [row for row, label in zip(rows, said, strict=True) if (label != own if target is None else label == target)]


def subsets(names: Iterable[str]) -> Iterable[Names]:
    every = list(names)
    return (frozenset(each) for size in range(len(every) + 1) for each in itertools.combinations(every, size))


def minimal(sets: Iterable[Names]) -> set[Names]:
    every = set(sets)
    return {each for each in every if not any(other < each for other in every)}

"""Reasons on finite spaces, compared with going through every row."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

from random_problems import Case

import mace
from mace.answer.reasons import Reason, Reasons
from mace.distances.distance import point_values
from mace.space.features import grid_values

Names = frozenset[str]
Rows = list[dict[str, Any]]


def fault_of(case: Case, *, smallest: bool) -> str | None:
    """Return what is wrong with the reasons of a problem; ``None`` where nothing is, ``"skipped"`` where there is no question."""
    explainer = mace.Explainer(case.model, case.space)
    asked = {name: case.question[name] for name in ("target", "constraints") if name in case.question}
    reasons = explainer.reasons(case.row, **asked, count=1000, smallest=smallest, certify=True)
    if reasons.complete and reasons.reason:
        return "skipped"
    rows = reaching(explainer, case)
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
    return next((fault for each in reasons if (fault := _fault(each, rows, case, reasons))), None)


def _fault(reason: Reason, rows: Rows, case: Case, reasons: Reasons) -> str | None:
    inside = [row for row in rows if all(_is_in(row[name], reason, name, case.space) for name in reason.features)]
    if inside:
        return f"{reason.features}: {inside[0]} lies in the ranges {reason.ranges} and reaches the target"
    verdict = mace.verify(mace.Certificate.from_json(reason.certificate.to_json()), case.model)
    if not verdict.valid:
        return f"the certificate of {reason.features} is {verdict}"
    forged = json.loads(reason.certificate.to_json())
    if reason.features:
        forged["claim"]["reason"][reason.features[0]] = {name: case.row[name] for name in case.space}
        if mace.verify(forged, case.model).outcome != "refuted":
            return f"{reason.features}: a witness that is the row itself is believed"
    return None


def _is_in(value: Any, reason: Reason, name: str, space: mace.FeatureSpace) -> bool:
    ends = reason.ranges[name]
    if ends.levels is not None:
        return value in ends.levels
    levels = getattr(space[name], "levels", None)
    place = levels.index if levels else lambda number: number
    return bool(place(ends.low) <= place(value) <= place(ends.high))


def reaching(explainer: mace.Explainer, case: Case) -> Rows:
    """Return every row that keeps the constraints and that the model puts in the target."""
    space, factual = case.space, case.space.point(case.row)
    values = [sorted({*grid_values(feature), own}) for feature, own in zip(space.values(), factual, strict=True)]
    conditions = [constraint.bind(space, factual) for constraint in case.question["constraints"]]
    points = [
        point
        for point in itertools.product(*values)
        if all(each.holds(point_values(space, point)) for each in conditions)
    ]
    rows = [space.values_of(point) for point in points]
    said, own = explainer.predict_many(rows) if rows else [], explainer.predict(case.row)
    target = case.question.get("target")
    return [row for row, label in zip(rows, said, strict=True) if (label != own if target is None else label == target)]


def subsets(names: Iterable[str]) -> Iterable[Names]:
    every = list(names)
    return (frozenset(each) for size in range(len(every) + 1) for each in itertools.combinations(every, size))


def minimal(sets: Iterable[Names]) -> set[Names]:
    every = set(sets)
    return {each for each in every if not any(other < each for other in every)}

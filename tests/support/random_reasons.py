"""Reasons on finite spaces, compared with going through every row."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from random_problems import Case

import mace
from mace.answer.plain import plain
from mace.answer.reasons import Reason, Reasons
from mace.answer.region import Ends
from mace.distances.distance import point_values
from mace.space import Point
from mace.space.features import grid_values
from mace.targets import Between

Names = frozenset[str]
Points = list[Point]

Reached = Callable[[Points], Iterable[bool]]
"""Which points are in the target."""


def fault_of(case: Case, *, smallest: bool, is_reached: Reached | None = None) -> str | None:
    """Return what is wrong with the reasons of a problem; ``None`` where nothing is, ``"skipped"`` where there is no question.

    ``is_reached`` says which points are in the target; where not given, the model's own ``predict`` does.
    """
    space, factual = case.space, case.space.point(case.row)
    asked = {name: case.question[name] for name in ("target", "constraints") if name in case.question}
    explainer = mace.Explainer(case.model, space)
    reasons = explainer.reasons(case.row, **asked, count=1000, smallest=smallest, certify=True)
    if reasons.complete and reasons.reason:
        return "skipped"
    if not reasons.complete:
        return f"not complete: {reasons.reason}"
    allowed = plausible(case)
    said = (is_reached or partial(reached, case))(allowed) if allowed else []
    rows = [point for point, is_in in zip(allowed, said, strict=True) if is_in]
    changed = minimal(_changed(space, point, factual) for point in rows)
    truth = minimal(names for names in subsets(space) if all(names & each for each in changed))
    if {frozenset(each.features) for each in reasons} != truth or len(reasons) != len(truth):
        return f"reasons {[each.features for each in reasons]}, brute force {sorted(map(sorted, truth))}"
    if smallest and [len(each.features) for each in reasons] != sorted(len(each.features) for each in reasons):
        return "the smallest do not come first"
    if {frozenset(names) for names in reasons.levers} != changed:
        return f"levers {reasons.levers}, brute force {sorted(map(sorted, changed))}"
    if set(reasons.necessary) != set(space).intersection(*truth):
        return f"necessary {reasons.necessary}"
    strange = next((way.values for way in reasons.ways if space.point(way.values) not in rows), None)
    if strange is not None:
        return f"{strange} is said to reach the target"
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


def _fault(reason: Reason, rows: Points, case: Case) -> str | None:
    inside = [point for point in rows if all(_is_in(point, reason, name, case) for name in reason.features)]
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
    return _fault_of_ranges(reason, case)


def _fault_of_ranges(reason: Reason, case: Case) -> str | None:
    """Return what is wrong with the certificate of the ranges: it is valid, and any range that reaches a step farther is not believed."""
    if not reason.features:
        return None if reason.ranges is None else "ranges of no features"
    made = json.loads(reason.ranges_certificate.to_json())
    verdict = mace.verify(made, case.model)
    if not verdict.valid:
        return f"the certificate of the ranges of {reason.features} is {verdict}"
    told = {name: plain_range(ends) for name, ends in reason.ranges.items()}
    if {name: ends for name, ends in made["claim"]["ranges"].items() if ends is not None} != told:
        return f"the certificate of {reason.ranges} is about others"
    bound = len(made["statement"]["constraints"]) - len(reason.features)
    for number, (name, ends) in enumerate(reason.ranges.items()):
        for wider in _wider(ends, case.space[name]):
            forged = copy.deepcopy(made)
            forged["claim"]["ranges"][name] = plain_range(wider)
            if mace.verify(forged, case.model).outcome != "refuted":
                return f"{name} {wider} is believed beside a statement of {ends}"
            forged["statement"]["constraints"][bound + number] = wider.constraint(name).to_dict()
            if mace.verify(forged, case.model).valid:
                return f"{name} {wider} is believed, and {ends} was said to be widest"
    return None


def plain_range(ends: Ends) -> Any:
    return list(ends.levels) if ends.levels is not None else {"low": ends.low, "high": ends.high}


def _wider(ends: Ends, feature: Any) -> list[Ends]:
    """Return ranges with one value more."""
    values = [feature.levels[k] for k in grid_values(feature)] if hasattr(feature, "levels") else grid_values(feature)
    if ends.levels is not None:
        return [Ends(levels=(*ends.levels, level)) for level in values if level not in ends.levels]
    place = values.index if hasattr(feature, "levels") else lambda number: number
    below = [value for value in values if place(value) < place(ends.low)]
    above = [value for value in values if place(value) > place(ends.high)]
    return [Ends(value, ends.high) for value in below[-1:]] + [Ends(ends.low, value) for value in above[:1]]


def _fault_of_note(reason: Reason, allowed: Points, case: Case) -> str | None:
    factual = case.space.point(case.row)
    moved = [_changed(case.space, point, factual) for point in allowed if point != factual]
    is_left = any(not names & set(reason.features) for names in moved)
    is_asked = bool(case.question.get("constraints")) or not reason.features
    if is_asked and len(reason.features) < len(case.space) and is_left == bool(reason.note):
        return f"{reason.features}: {reason.note!r}, but {'there is' if is_left else 'there is no'} other row"
    return None


def _is_in(point: Point, reason: Reason, name: str, case: Case) -> bool:
    """Return whether a point has a feature in the range of a reason, or, where it is missing, missing too."""
    value, feature = point[case.space.index(name)], case.space[name]
    if name not in reason.ranges:
        return value is None
    ends, levels = reason.ranges[name], getattr(feature, "levels", None)
    if value is None:
        return False
    if ends.levels is not None:
        return levels[value] in ends.levels
    place = levels.index if levels else lambda number: number
    return bool(place(ends.low) <= value <= place(ends.high))


def _changed(space: mace.FeatureSpace, point: Point, factual: Point) -> Names:
    return frozenset(name for name, new, old in zip(space, point, factual, strict=True) if new != old)


def plausible(case: Case) -> Points:
    """Return every point that keeps the constraints."""
    space, factual = case.space, case.space.point(case.row)
    values = [
        [*dict.fromkeys([*grid_values(feature), *([None] if feature.missing else []), own])]
        for feature, own in zip(space.values(), factual, strict=True)
    ]
    conditions = [constraint.bind(space, factual) for constraint in case.question.get("constraints", [])]
    return [
        point
        for point in itertools.product(*values)
        if all(each.holds(point_values(space, point)) for each in conditions)
    ]


def reached(case: Case, points: Points) -> list[bool]:
    """Return which points the model puts in the target, asked itself."""
    frame, target = case.space.frame_of([case.space.point(case.row), *points]), case.question.get("target")
    if not hasattr(case.model, "predict"):
        said = np.array([case.model(**row) for row in frame.to_dict("records")])
    elif isinstance(target, Between) and hasattr(case.model, "predict_proba"):
        label = 1 if target.label is None else target.label
        said = case.model.predict_proba(frame)[:, case.model.classes_.tolist().index(label)]
    else:
        said = np.asarray(case.model.predict(frame)).reshape(-1)
    if isinstance(target, Between):
        low = -np.inf if target.low is None else target.low
        high = np.inf if target.high is None else target.high
        return ((low <= said) & (said <= high))[1:].tolist()
    return (said[1:] != said[0] if target is None else said[1:] == target).tolist()


def subsets(names: Iterable[str]) -> Iterable[Names]:
    every = list(names)
    return (frozenset(each) for size in range(len(every) + 1) for each in itertools.combinations(every, size))


def minimal(sets: Iterable[Names]) -> set[Names]:
    every = set(sets)
    return {each for each in every if not any(other < each for other in every)}

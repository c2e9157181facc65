"""From the plain data of a request to a question; nothing in it is ever run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mace.answer.question import Question, ReasonsOptions
from mace.constraints import Constraint
from mace.constraints.differ import Differ, differ
from mace.constraints.robust import measured
from mace.constraints.text import read
from mace.distances import Distance
from mace.explainer import Explainer
from mace.problem import Progress
from mace.service.opened import Opened, Rules
from mace.targets import Between, at_least, at_most, between

OWN = "the service's own"
"""Stands for the target where a request names none."""


def row_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row; ``null`` is a missing value."""
    return {name: math.nan if value is None else value for name, value in given.items()}


def rules_of(opened: Opened, texts: list[str]) -> Rules:
    """Return the rules in force, and then those of a request: only the constraint language is read, no function."""
    return [*opened.rules, *((text, measured(read(text), opened.frame)) for text in texts)]


def target_of_request(opened: Opened, given: Any) -> object:
    """Return the target of a request: a label, or a bound on its probability."""
    if given == OWN:
        return opened.target
    if not isinstance(given, Mapping):
        return given
    low, high, label = given.get("at_least"), given.get("at_most"), given.get("label")
    if low is not None and high is not None:
        return between(low, high, label)
    if low is not None:
        return at_least(low, label)
    return label if high is None else at_most(high, label)


def as_asked(target: object) -> object:
    """Return a target as requests name it: a label, or bounds."""
    if not isinstance(target, Between):
        return target
    bounds = {"label": target.label, "at_least": target.low, "at_most": target.high}
    return {name: value for name, value in bounds.items() if value is not None}


def distance_of(given: str | Mapping[str, float], weights: Mapping[str, float]) -> str | Distance:
    """Return the distance of a request: a norm or shares of norms, with weights."""
    shares: Any = {given: 1.0} if isinstance(given, str) else dict(given)
    return given if isinstance(given, str) and not weights else Distance(**shares, weights=dict(weights))


def diversity_of_request(given: Mapping[str, Any] | None) -> Differ | None:
    """Return how several answers differ."""
    return None if given is None else differ(**{name: value for name, value in given.items() if value is not None})


def question_of(
    opened: Opened, given: Mapping[str, Any], on_progress: Progress | None = None
) -> tuple[Question, Rules]:
    """Return the question of a request, and the rules that bind it."""
    rules = rules_of(opened, given.get("constraints", []))
    explainer: Explainer = opened.explainer
    constraints: list[Constraint] = [constraint for _, constraint in rules]
    asked = Question(
        explainer.space,
        target_of_request(opened, given.get("target", OWN)),
        distance_of(given.get("distance", "l1"), given.get("weights") or {}),
        constraints,
        count=given.get("count", 1),
        diversity=diversity_of_request(given.get("diversity")),
        time_limit=given["time_limit"],
        certify=given.get("certify", False),
        round_to=given.get("round_to", "auto"),
        on_progress=on_progress,
        classes=explainer.classes,
    )
    return asked, rules


def reasons_asked(opened: Opened, given: Mapping[str, Any]) -> ReasonsOptions:
    """Return what a request asks why about."""
    made: Any = {
        "target": target_of_request(opened, given.get("target", OWN)),
        "constraints": [constraint for _, constraint in rules_of(opened, given.get("constraints", []))],
    }
    names = ("count", "smallest", "ranges", "time_limit", "certify")
    found: ReasonsOptions = made | {name: given[name] for name in names if name in given}
    return found

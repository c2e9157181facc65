"""Several answers to random questions on finite spaces, each compared with going through all rows, and its certificate checked."""

from __future__ import annotations

import dataclasses
from functools import reduce
from operator import or_
from typing import Any

from random_problems import Case

import mace
from mace.space import Point

WAYS: tuple[Any, ...] = (None, mace.differ(in_sets=True))
"""How answers differ: by the default, and by sets of which a later one may be a part of an earlier one."""


def disagreement(case: Case, seed: int) -> str | None:
    """Return what is wrong with the answers to a question; ``None`` where nothing is."""
    asked = {name: value for name, value in case.question.items() if name not in ("count", "diversity")}
    explainer = mace.Explainer(case.model, case.space)
    answer = explainer.explain(
        case.row, count=4, diversity=WAYS[seed % len(WAYS)], certify=True, time_limit=60, **asked
    )
    if answer.status == "reached":
        return None
    if answer.reason and not answer.exhausted and len(answer) < 4:
        return f"stopped after {len(answer)}: {answer.reason}"
    certificates = [*(each.certificate for each in answer), *([answer.certificate] if len(answer) < 4 else [])]
    for number, certificate in enumerate(certificates):
        if certificate is None:
            return f"answer {number} has no certificate"
        best = answer[number] if number < len(answer) else None
        fault = _wrong(explainer, case, asked, best, certificate, is_default=seed % len(WAYS) == 0)
        if fault:
            return f"answer {number}: {fault}"
    return None


def _wrong(
    explainer: mace.Explainer,
    case: Case,
    asked: dict[str, Any],
    best: mace.Counterfactual | None,
    certificate: mace.Certificate,
    *,
    is_default: bool,
) -> str | None:
    """Return what is wrong with one answer, or with the proof that there is no further one."""
    factual = case.space.point(case.row)
    apart = [
        constraint
        for row in certificate.statement["earlier"]
        for constraint in _apart(case.space, factual, case.space.point(row), is_default=is_default)
    ]
    question = asked | {"constraints": [*asked.get("constraints", ()), *apart]}
    truth = explainer.explain(case.row, solver="enumerate", time_limit=60, **question)
    if bool(truth) != (best is not None):
        return f"{best}, by going through all rows {truth.status}"
    if best is not None and abs(best.distance - truth[0].distance) > 2e-6:
        return f"distance {best.distance!r}, by going through all rows {truth[0].distance!r}"
    if best is not None and best.lower > truth[0].distance:
        return f"lower {best.lower!r}, by going through all rows {truth[0].distance!r}"
    verdict = mace.verify(certificate, case.model)
    if verdict.outcome == "refuted":
        return f"a true certificate is refuted: {verdict.reason}"
    if best is not None and best.lower:
        claim = certificate.claim | {"lower": best.lower * 1.01 + 1e-5, "upper": best.lower * 1.02 + 2e-5}
        if mace.verify(dataclasses.replace(certificate, claim=claim), case.model).valid:
            return "a forged certificate is valid"
    return None


def _apart(space: mace.FeatureSpace, factual: Point, earlier: Point, *, is_default: bool) -> list[Any]:
    """Return, by other constraints, that not all features that an earlier answer changes are changed again, and that another one is."""
    again = [name for name, new, old in zip(space, earlier, factual, strict=True) if new != old]
    others = [name for name in space if name not in again]
    fewer = reduce(or_, (mace.fixed(name) for name in again))
    further = ~mace.fixed(*others) if others else mace.rule("1 == 2")
    return [fewer, further] if is_default else [fewer]

"""Checking a certificate: the model, the counterfactual, the claim, and the proof of its lane."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from mace.certify.certificate import Certificate
from mace.certify.effects import checker as actions
from mace.certify.proofs import SEARCH_CHECKERS, check_lane
from mace.certify.reasons import check_reasons
from mace.certify.statement import Statement
from mace.certify.verdict import Progress, Refuted, Unchecked, Verdict, check_reached, silent
from mace.constraints import Condition
from mace.constraints.numbers import in_binary
from mace.errors import InvalidRow, MaceError
from mace.exact import float_up
from mace.problem import Problem
from mace.space import Point


def verify(
    certificate: Certificate | Mapping[str, Any],
    model: Any,
    *,
    forests: Iterable[Any] = (),
    progress: Progress | None = None,
) -> Verdict:
    """Check a certificate against the model that it is about, without the solver that found it.

    Parameters
    ----------
    certificate : Certificate or dict
        What is to be checked.
    model : estimator, pipeline or function
        The model as deployed.
    forests : list of isolation forests, pipelines or :func:`~mace.typical` constraints
        Those that the ``typical`` constraints of the certificate are about, in any order.
    progress : callable, optional
        Receives the share of the proof that is checked.

    Returns
    -------
    Verdict
        ``valid``: the counterfactual is plausible, at its distance, and predicted as the target, and nothing nearer than ``lower`` is.
        ``refuted``: something does not hold. ``unchecked``: there is no proof of ``lower``, or none that can be checked here; or a
        forest that it is about was not given.

    Raises
    ------
    InvalidCertificate
        The certificate is not one.
    """
    if not isinstance(certificate, Certificate):
        certificate = Certificate.from_dict(certificate)
    statement, given = Statement.from_dict(certificate.statement), list(forests)

    def checked() -> Verdict:
        return _checked(certificate, statement, model, given, progress or silent)

    return _by_both_meanings(statement, checked) if certificate.version == 1 else checked()


def _by_both_meanings(statement: Statement, checked: Callable[[], Verdict]) -> Verdict:
    """Check by the meaning that numbers in constraints had in version 1; where today's gives another verdict, say so."""
    with in_binary():
        before, meant = checked(), _bound(statement)
    if before.outcome == "unchecked" or meant == _bound(statement):
        return before
    today = checked()
    if today.outcome == before.outcome:
        return before
    return Verdict(
        "unchecked",
        "version 1 of certificates reads the numbers of constraints as binary fractions, and since version 2 they mean the decimals that "
        f"are written; here the two differ: {_shown(before)} by the first, {_shown(today)} by the second",
    )


def _bound(statement: Statement) -> list[Condition] | None:
    """Return what the constraints of a statement say; ``None`` where they cannot be bound."""
    try:
        return [
            constraint.bind(statement.space, statement.factual) for constraint in statement.plain
        ] + statement.apart()
    except MaceError:
        return None


def _shown(verdict: Verdict) -> str:
    return verdict.outcome + (f" ({verdict.reason})" if verdict.reason else "")


def _checked(
    certificate: Certificate, statement: Statement, model: Any, forests: list[Any], progress: Progress
) -> Verdict:
    try:
        statement = statement.with_forests(forests)
        problem, _ = statement.problem(model, version=certificate.version)
        if ("actions" in certificate.claim) != (statement.causes is not None):
            raise Refuted("claim.actions: there are actions where the statement has causes, and only there")
        check_reasons(problem, statement, certificate.claim, _check_counterfactual)
        searched, rest = problem.searched
        if statement.causes is None:
            check = partial(_checker_of(searched).check, searched[0]) if searched else check_lane
            _check_claim(rest, certificate.claim, _check_counterfactual)
            if searched:
                _check_answer(rest, searched[0], certificate)
            _check_proof(rest, certificate, progress, check)
        else:
            causal = actions.CausalQuestion(problem, statement, certificate.claim["actions"])
            _check_claim(problem, certificate.claim, causal.check_counterfactual)
            _check_proof(problem, certificate, progress, causal.check_proof)
    except Refuted as verdict:
        return Verdict("refuted", str(verdict))
    except Unchecked as verdict:
        return Verdict("unchecked", str(verdict))
    return Verdict("valid")


def _check_claim(
    problem: Problem, claim: dict[str, Any], check_counterfactual: Callable[[Problem, dict[str, Any]], Fraction]
) -> None:
    """Ask the real model about the counterfactual, and check it, its distance and the status."""
    status, lower, upper, row = claim["status"], claim["lower"], claim["upper"], claim["counterfactual"]
    if status == "infeasible":
        if (lower, upper, row) != (None, None, None):
            raise Refuted("claim: with status infeasible there is no lower, no upper and no counterfactual")
        return
    if lower is None:
        raise Refuted(f"claim.lower: with status {status} it is a number")
    if status == "unknown":
        if (upper, row) != (None, None):
            raise Refuted("claim: with status unknown there is no upper and no counterfactual")
        return
    if upper is None or row is None:
        raise Refuted(f"claim: with status {status} there is a counterfactual and its distance, upper")
    distance = check_counterfactual(problem, row)
    if upper != float_up(distance):
        raise Refuted(f"claim.upper: {upper!r} is not the distance of the counterfactual, {float_up(distance)!r}")
    if lower > upper:
        raise Refuted(f"claim.lower: {lower!r} is above upper, {upper!r}")
    # The bound of the statement was rounded down once.
    if status == "optimal" and distance - Fraction(lower) > problem.accuracy + Fraction(math.ulp(lower)):
        raise Refuted(
            f"claim.status: {upper!r} and {lower!r} are farther apart than the accuracy, {float(problem.accuracy)!r}; this is not optimal"
        )


def _check_counterfactual(problem: Problem, row: dict[str, Any]) -> Fraction:
    try:
        point = problem.space.point(row)
    except InvalidRow as error:
        raise Refuted(f"claim.counterfactual: {error}") from error
    if not problem.is_plausible(point):
        raise Refuted(f"claim.counterfactual: {_why_implausible(problem, point)}")
    check_reached(problem, point)
    return problem.distance(point)


def _why_implausible(problem: Problem, point: Point) -> str:
    if not replace(problem, conditions=()).is_plausible(point):
        return "a value is off the grid of its feature"
    alone = (replace(problem, conditions=(condition,)) for condition in problem.conditions)
    number = next(number for number, each in enumerate(alone) if not each.is_plausible(point))
    return f"it breaks condition {number} of the statement (constraints first, then earlier counterfactuals)"


def _check_proof(problem: Problem, certificate: Certificate, progress: Progress, check: Callable[..., None]) -> None:
    """Hand a proof to its checker; a lower bound of 0 needs no proof."""
    claimed = certificate.claim["lower"]
    if claimed == 0:
        return
    with _errors_refute():
        check(problem, None if claimed is None else Fraction(claimed), certificate.evidence, progress)


def _checker_of(searched: list[Condition]) -> Any:
    """Return what checks the proofs of the one condition that has a search of its own."""
    names = [condition.search for condition in searched]
    if len(names) > 1:
        raise Unchecked(f"{' and '.join(names)} are given together, and there is no proof of both")
    if names[0] not in SEARCH_CHECKERS:
        raise Unchecked(f"no checker for proofs of {names[0]!r:.60}; known: {', '.join(SEARCH_CHECKERS)}")
    return SEARCH_CHECKERS.load(names[0])


def _check_answer(problem: Problem, condition: Condition, certificate: Certificate) -> None:
    """Raise unless a condition with a search of its own is shown to hold of the counterfactual."""
    row = certificate.claim["counterfactual"]
    if row is None:
        return
    with _errors_refute():
        _checker_of([condition]).check_answer(condition, problem, problem.space.point(row), certificate.evidence)


@contextmanager
def _errors_refute() -> Iterator[None]:
    """Turn any exception that malformed evidence raises into :class:`Refuted`."""
    try:
        yield
    except (Refuted, Unchecked):
        raise
    except Exception as error:
        raise Refuted(f"evidence: it cannot be followed ({type(error).__name__}: {str(error)[:200]})") from error

"""Certificates of random problems over all lanes: every honest one is valid, and no tampered one with a false claim is.

A group counts problems; each has one certificate or more. What a lane cannot prove, or no installed solver can check, is unchecked and
counted, not a fault.
"""

from __future__ import annotations

import sys
from typing import Any

from runner import SKIPPED, Group, run


def trees(seed: int) -> tuple[str, str | None]:
    from random_ensembles import random_ensemble

    return examine(seed, random_ensemble, finite=seed % 2 == 0)


def models(seed: int) -> tuple[str, str | None]:
    """Examine a problem of any family: trees, linear models, networks, functions."""
    from random_problems import random_case

    return examine(seed, random_case, finite=seed % 2 == 0)


def small(seed: int) -> tuple[str, str | None]:
    """Examine a finite problem by enumeration."""
    from random_problems import random_case

    return examine(seed, random_case, finite=True, solver="enumerate")


def networks(seed: int) -> tuple[str, str | None]:
    """Examine a network without a library around it: its proof is accepted, and the same cuts prove nothing beyond the optimum."""
    from fractions import Fraction

    from random_networks import random_network

    from mace.certify.network import checker
    from mace.certify.verdict import Refuted
    from mace.exact import float_down
    from mace.problem import Limits
    from mace.solvers import network
    from mace.solvers.abilities import obstacle

    case = random_network(seed, finite=seed % 2 == 0)
    if obstacle(network, case.problem):
        return case.family, SKIPPED
    network.prepare()
    bounds = network.solve(case.problem, Limits.of(20, record=True))
    if bounds.evidence is None or "missing" in bounds.evidence:
        return f"{case.family}: no proof", None

    def refusal(lower: Fraction | None) -> str | None:
        try:
            checker.check(case.problem, lower, bounds.evidence or {}, lambda share: None)
        except Refuted as refused:
            return str(refused)
        return None

    fault = refusal(None if bounds.is_infeasible else Fraction(float_down(bounds.lower)))
    if fault is None and bounds.upper is not None and refusal(bounds.upper + Fraction(1, 10**6)) is None:
        fault = "a bound beyond the optimum was accepted"
    return f"{case.family}: network {'valid' if fault is None else 'refuted'}", fault


def realistic(seed: int) -> tuple[str, str | None]:
    """Examine a finite problem under near_data, typical, rules and diversity; every eighth tampered with."""
    from random_realism import fault_of, random_realistic, tampered_fault

    case = random_realistic(seed)
    verdicts, fault = fault_of(case)
    if fault is None and seed % 8 == 0:
        _, fault = tampered_fault(case, seed)
    return f"{case.family}: {verdicts}", fault


def tampered(seed: int) -> tuple[str, str | None]:
    """Tamper with the certificates of a finite problem in every way."""
    import numpy as np
    from random_ensembles import random_ensemble
    from random_problems import random_case
    from tampering import TAMPERINGS, TRUE_OR_REFUSED, is_true, outcome_of, parts_of

    import mace

    case = _case(seed, random_ensemble if seed % 2 else random_case, finite=True)
    made = None if case is None else _certificates(case)
    if case is None or made is None:
        return "not learnt", SKIPPED
    rng = np.random.default_rng([seed, 3])
    for certificate in made:
        for way in TAMPERINGS:
            changed = way.change(parts_of(certificate), rng)
            if changed is None:
                continue
            outcome, reason = outcome_of(changed, case.model)
            expected = way.kind == TRUE_OR_REFUSED or (outcome == way.kind and way.words in reason)
            if outcome == "unchecked" and way.kind == "refuted":
                expected = True
            if not expected:
                return case.family, f"{way.name}: {outcome} ({reason})"
            if outcome == "valid" and not is_true(mace.Certificate(**changed), case.model):
                return case.family, f"{way.name}: valid, and false"
    return case.family, None


def examine(seed: int, make: Any, *, finite: bool, solver: str = "auto") -> tuple[str, str | None]:
    import mace

    case = _case(seed, make, finite=finite)
    made = None if case is None else _certificates(case, solver=solver)
    if case is None or made is None:
        return "not learnt", SKIPPED
    outcomes = []
    for certificate in made:
        read = mace.Certificate.from_json(certificate.to_json())
        verdict = mace.verify(read, case.model)
        outcomes.append(f"{certificate.evidence['lane'].partition(':')[0]} {verdict.outcome}")
        if verdict.outcome == "refuted":
            return case.family, f"refuted: {verdict.reason}"
    return f"{case.family}: {', '.join(sorted(set(outcomes)))}", None


def _case(seed: int, make: Any, *, finite: bool) -> Any:
    try:
        return make(seed, finite=finite)
    except Exception:  # a library may refuse to learn from random data
        return None


def _certificates(case: Any, solver: str = "auto") -> list[Any] | None:
    import mace

    try:
        explanation = mace.Explainer(case.model, case.space).explain(
            case.row, **case.question, certify=True, time_limit=20, solver=solver
        )
    except (mace.InvalidTarget, mace.InvalidOption):
        return None
    made = [counterfactual.certificate for counterfactual in explanation] + [explanation.certificate]
    return [certificate for certificate in made if certificate is not None]


if __name__ == "__main__":
    groups = {
        "trees": Group(4000, 400_000, trees),
        "models": Group(2000, 410_000, models),
        "networks": Group(2000, 420_000, networks),
        "small": Group(500, 430_000, small),
        "tampered": Group(300, 440_000, tampered),
        "realistic": Group(1000, 450_000, realistic),
    }
    sys.exit(run("certificates", "every honest certificate is valid, no tampered one with a false claim is", groups))

"""Certificates whose proofs have parts: models that fill missing values, and means of sigmoids.

On finite spaces brute force says whether what a valid certificate claims is true. Each is also put forward with a bound beyond its
counterfactual, which must not be believed.
"""

from __future__ import annotations

import sys
from typing import Any

from certificates import _case, _certificates
from runner import SKIPPED, Group, run


def gaps(seed: int) -> tuple[str, str | None]:
    """Examine a linear model or network behind an imputer."""
    from gaps import random_gaps

    return examined(_case(seed, random_gaps, finite=seed % 2 == 0), is_finite=seed % 2 == 0, solver="network")


def composites(seed: int) -> tuple[str, str | None]:
    """Examine votes, means, calibrations and projections."""
    from random_composites import random_composite

    return examined(_case(seed, random_composite, finite=seed % 2 == 0), is_finite=seed % 2 == 0)


def examined(case: Any, *, is_finite: bool, solver: str = "auto") -> tuple[str, str | None]:
    from tampering import is_true, outcome_of, parts_of

    import mace

    made = None if case is None else _certificates(case, solver=solver)
    if case is None or made is None:
        return "not learnt", SKIPPED
    outcomes = set()
    for certificate in made:
        verdict = mace.verify(mace.Certificate.from_json(certificate.to_json()), case.model)
        lanes = certificate.evidence["lane"], certificate.evidence.get("proof", {}).get("lane")
        outcomes.add(f"{' by '.join(filter(None, lanes))} {verdict.outcome}")
        if verdict.outcome == "refuted":
            return case.family, f"refuted: {verdict.reason}"
        if is_finite and verdict.valid and not is_true(certificate, case.model):
            return case.family, "valid, and false"
        if certificate.claim["upper"] is not None:
            beyond = parts_of(certificate)
            beyond["claim"] = {"status": "unknown", "upper": None, "counterfactual": None}
            beyond["claim"]["lower"] = certificate.claim["upper"] + 1e-6
            if outcome_of(beyond, case.model)[0] == "valid":
                return case.family, "a bound beyond the optimum was believed"
    return f"{case.family}: {', '.join(sorted(outcomes))}", None


if __name__ == "__main__":
    groups = {"gaps": Group(400, 450_000, gaps), "composites": Group(400, 460_000, composites)}
    about = "every honest certificate of a proof with parts is valid, and none with a false claim is"
    sys.exit(run("certificates_of_parts", about, groups))

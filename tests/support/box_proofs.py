"""Proofs by boxes."""

from __future__ import annotations

import mace


def proof_of(explanation: mace.Explanation) -> mace.Certificate:
    made = explanation[0].certificate if len(explanation) else explanation.certificate
    assert made is not None
    return mace.Certificate.from_json(made.to_json())

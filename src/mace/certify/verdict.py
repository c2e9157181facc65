"""What checking a certificate gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["valid", "refuted", "unchecked"]

Progress = Callable[[float], None]
"""Receives the share of the evidence that is checked, from 0 to 1."""


def silent(share: float) -> None:
    """Report no progress: where the share of a part is not that of the whole."""


class Refuted(Exception):
    """Raised by a checker: a claim, or a step of its proof, does not hold. The message says which."""


class Unchecked(Exception):
    """Raised by a checker: the proof can be neither confirmed nor refuted here. The message says why."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a certificate.

    Attributes
    ----------
    outcome : str
        ``"valid"``: every claim was checked. ``"refuted"``: a claim or a step of the proof does not hold. ``"unchecked"``: the
        counterfactual holds, but there is no proof that nothing is nearer (or, with ``robust``, that noise does not undo it), or none that
        can be checked here.
    reason : str
        What fails, or why it is unchecked; empty where it is valid.
    """

    outcome: Outcome
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether every claim was checked."""
        return self.outcome == "valid"

    def __str__(self) -> str:
        return self.outcome if not self.reason else f"{self.outcome}: {self.reason}"

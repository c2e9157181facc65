"""The limits of the service: what a request may ask for, and how long anything may take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """What a request may ask for.

    Attributes
    ----------
    time_limit, default_time_limit : float
        Seconds of a question, at most and where none are given.
    count : int
        Answers of one question.
    constraints, constraint : int
        Rules of one question, and characters of each.
    rows, page : int
        Rows of one prediction, and people of one page.
    body, certificate, upload : int
        Bytes of a body, of one with a certificate, and of a file for a batch.
    batch_rows : int
        Rows of a file for a batch.
    keep_hours : int
        After so many hours a job and its files are removed.
    jobs : int
        Jobs that are kept at one time.
    waiting : int
        Questions that wait for a worker; one more is refused.
    patience : float
        Seconds that a question waits for a worker.
    grace : float
        Seconds beyond the time limit of a question after which its worker is ended.
    quick : float
        Seconds for what is no search: a prediction, a page of people.
    opening : float
        Seconds for a worker to read the model.
    """

    time_limit: float = 60.0
    default_time_limit: float = 10.0
    count: int = 10
    constraints: int = 50
    constraint: int = 2000
    rows: int = 1000
    page: int = 200
    body: int = 1_000_000
    certificate: int = 64_000_000
    upload: int = 100_000_000
    batch_rows: int = 100_000
    keep_hours: int = 24
    jobs: int = 50
    waiting: int = 64
    patience: float = 30.0
    grace: float = 10.0
    quick: float = 20.0
    opening: float = 300.0

    def shown(self) -> dict[str, Any]:
        """Return the limits that clients are told of."""
        hidden = {"jobs", "waiting", "patience", "grace", "quick", "opening"}
        return {name: value for name, value in asdict(self).items() if name not in hidden}

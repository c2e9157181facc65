"""Requests to the service, and what comes back.

Needs nothing but the standard library and MACE itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from mace import errors
from mace.answer.explanation import Explanation
from mace.answer.reasons import Reasons
from mace.certify import Certificate, Verdict
from mace.disk import parse_json
from mace.errors import MaceError, ServiceError
from mace.space import Scalar

Row = Mapping[str, Scalar | None]
Format = Literal["csv", "jsonl", "parquet", "json", "html"]

CONTENT_TYPES = {".csv": "text/csv", ".parquet": "application/vnd.apache.parquet"}
"""Of the files that a batch takes, by suffix."""

ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of a row.

    Attributes
    ----------
    decision : label
        Its prediction.
    score : float, optional
        What it reports, as ``/v1/model`` says under ``score_of``.
    reached : bool
        Whether the target is reached already.
    """

    decision: Scalar
    score: float | None
    reached: bool


class Client:
    """Asks a service.

    Parameters
    ----------
    url : str
        Where it is, e.g. ``http://127.0.0.1:8000``.
    key : str, optional
        A key, where the service has some.
    timeout : float
        Seconds to wait for an answer, at least the time limit of a question.

    Examples
    --------
    ::

        client = Client("http://127.0.0.1:8000")
        explanation = client.explain(client.person(4)["row"], target="good", certify=True)
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", *, key: str | None = None, timeout: float = 90.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ServiceError(f"url={url!r:.80}: give an address that begins with http:// or https://.")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._key = key
        self._opener = build_opener(ProxyHandler({}))

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    # ---- what is there

    def ready(self) -> bool:
        """Return whether the service answers questions."""
        try:
            return bool(self._json("GET", "/ready")["status"] == "ready")
        except ServiceError as error:
            if error.status == 503:
                return False
            raise

    def model(self) -> dict[str, Any]:
        """Return the model, its features, its people in summary and the rules in force."""
        return self._json("GET", "/v1/model")

    def people(
        self,
        search: str = "",
        *,
        decision: Scalar | None = None,
        sort: str = "number",
        offset: int = 0,
        limit: int = 50,
    ) -> dict[str, Any]:
        """Return a page of the people."""
        shown = None if decision is None else str(decision)
        body = {"search": search, "decision": shown, "sort": sort, "offset": offset, "limit": limit}
        return self._json("POST", "/v1/people", body)

    def person(self, number: int) -> dict[str, Any]:
        """Return one of the people."""
        return self._json("GET", f"/v1/people/{number}")

    # ---- questions

    def predict(self, rows: Sequence[Row], **options: Any) -> list[Prediction]:
        """Return what the model says of rows; ``target`` may be given."""
        found = self._json("POST", "/v1/predict", {"rows": [_plain(row) for row in rows], **options})
        return [Prediction(**each) for each in found["predictions"]]

    def explain(self, row: Row, **options: Any) -> Explanation:
        """Return the nearest counterfactuals of a row; the options are those of ``/v1/explain``."""
        return _explanation(self._json("POST", "/v1/explain", {"row": _plain(row), **options}))

    def explain_live(self, row: Row, on_progress: Callable[[dict[str, Any]], object], **options: Any) -> Explanation:
        """Return the same; meanwhile ``on_progress`` receives ``lower``, ``upper``, ``calls`` and ``seconds``."""
        with self._open("POST", "/v1/explain/stream", {"row": _plain(row), **options}) as answer:
            for kind, data in _events(answer):
                if kind == "progress":
                    on_progress(data)
                elif kind == "answer":
                    return _explanation(data)
                else:
                    raise _error(data["status"], data)
        raise ServiceError("the stream ended without an answer. Ask again.")

    def levers(self, row: Row, **options: Any) -> dict[str, Any]:
        """Return the smallest sets of features that suffice."""
        return self._json("POST", "/v1/levers", {"row": _plain(row), **options})

    def reasons(self, row: Row, **options: Any) -> Reasons:
        """Return what holds the decision about a row; the options are those of ``/v1/reasons``."""
        return Reasons.from_dict(self._json("POST", "/v1/reasons", {"row": _plain(row), **options}))

    def region(self, row: Row, features: Iterable[str], **options: Any) -> dict[str, Any]:
        """Return the proved region around a row, the values of an answer say."""
        return self._json("POST", "/v1/region", {"row": _plain(row), "features": list(features), **options})

    def letter(self, row: Row, **options: Any) -> str:
        """Return a letter."""
        text: str = self._json("POST", "/v1/letter", {"row": _plain(row), **options})["letter"]
        return text

    def verify(self, certificate: Certificate | Mapping[str, Any]) -> Verdict:
        """Return the service's verdict about a certificate."""
        given = certificate.to_dict() if isinstance(certificate, Certificate) else dict(certificate)
        found = self._json("POST", "/v1/verify", {"certificate": given})
        return Verdict(found["outcome"], found["reason"])

    # ---- jobs

    def batch(self, path: str | Path, **options: Any) -> RunningJob:
        """Begin to explain the rows of a ``.csv`` or ``.parquet`` file; with ``about="reasons"``, to say why of each."""
        file = Path(path)
        if file.suffix not in CONTENT_TYPES:
            raise ServiceError(f"{file.name}: give a file that ends with {' or '.join(CONTENT_TYPES)}.")
        job = RunningJob(self, self._json("POST", "/v1/batch", options)["id"])
        try:
            with self._open("PUT", f"/v1/jobs/{job.id}/data", file.read_bytes(), CONTENT_TYPES[file.suffix]) as answer:
                answer.read()
        except OSError as error:
            if isinstance(error, ServiceError):
                raise
            raise ServiceError(f"cannot read {file}: {error.strerror}.") from error
        return job

    def audit(self, groups: Iterable[str] = (), **options: Any) -> RunningJob:
        """Begin to compare groups of the service's people."""
        return RunningJob(self, self._json("POST", "/v1/audit", {"groups": list(groups), **options})["id"])

    # ---- HTTP

    def _json(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        with self._open(method, path, body) as answer:
            content = answer.read()
        made: dict[str, Any] = parse_json(content) if content else {}
        return made

    def _open(self, method: str, path: str, body: object = None, kind: str = "application/json") -> IO[bytes]:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": kind})
        headers |= {} if self._key is None else {"Authorization": f"Bearer {self._key}"}
        request = Request(f"{self.url}{path}", data, headers, method=method)
        try:
            answer: IO[bytes] = self._opener.open(request, timeout=self.timeout)
            return answer
        except HTTPError as error:
            with error:
                raise _error(error.code, _said(error)) from None
        except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ServiceError(f"{self.url} does not answer: {reason}. Is the service running?") from error


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job of the service."""

    client: Client
    id: str

    def __repr__(self) -> str:
        return f"<RunningJob {self.id} of {self.client.url}>"

    def status(self) -> dict[str, Any]:
        """Return how far it is."""
        return self.client._json("GET", f"/v1/jobs/{quote(self.id)}")

    def wait(self, seconds: float | None = None, *, every: float = 0.3) -> dict[str, Any]:
        """Wait until it has ended, at most so long, and return how far it is."""
        until = None if seconds is None else time.monotonic() + seconds
        while (status := self.status())["state"] not in ENDED:
            if until is not None and time.monotonic() > until:
                break
            time.sleep(every)
        return status

    def result(self, format: Format | None = None) -> bytes:  # noqa: A002
        """Return its result: of a batch ``csv``, ``jsonl`` or ``parquet``, of an audit ``json`` or ``html``."""
        query = "" if format is None else f"?{urlencode({'format': format})}"
        with self.client._open("GET", f"/v1/jobs/{quote(self.id)}/result{query}") as answer:
            return answer.read()

    def cancel(self) -> dict[str, Any]:
        """End it, and keep what it has answered."""
        return self.client._json("POST", f"/v1/jobs/{quote(self.id)}/cancel", {})

    def resume(self) -> dict[str, Any]:
        """Go on with it."""
        return self.client._json("POST", f"/v1/jobs/{quote(self.id)}/resume", {})

    def remove(self) -> None:
        """Remove it and its files."""
        self.client._json("DELETE", f"/v1/jobs/{quote(self.id)}")


def _plain(row: Row) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in row.items()}


def _explanation(data: dict[str, Any]) -> Explanation:
    """Return an explanation with its certificates."""
    made = Explanation.from_dict(data)
    pairs = zip(made, data["counterfactuals"], strict=True)
    each = tuple(replace(one, certificate=_certificate(own.get("certificate"))) for one, own in pairs)
    return replace(made, counterfactuals=each, certificate=_certificate(data.get("certificate")))


def _certificate(data: Mapping[str, Any] | None) -> Certificate | None:
    return None if data is None else Certificate.from_dict(data)


def _events(answer: IO[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = ""
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, parse_json(value)


def _said(error: HTTPError) -> dict[str, Any]:
    try:
        found = parse_json(error.read())
    except (ValueError, OSError):
        found = None
    return found if isinstance(found, dict) else {"error": "NoAnswer", "message": f"status {error.code}"}


def _error(status: int, data: Mapping[str, Any]) -> MaceError:
    """Return the error that a service reports: MACE's own where it is one."""
    name, message = str(data.get("error")), str(data.get("message"))
    known = getattr(errors, name, None) if status == 422 and name.isidentifier() else None
    if isinstance(known, type) and issubclass(known, MaceError):
        return known(message)
    return ServiceError(f"{name}: {message}", status=status)

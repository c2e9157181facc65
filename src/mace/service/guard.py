"""What every request passes first: host, origin, key, size, content type; and what every response carries."""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from starlette.exceptions import HTTPException

from mace.service.limits import ServiceLimits
from mace.service.metrics import Metrics

EVENTS = logging.getLogger("mace.service")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/health", "/ready")
"""What is answered without a key: for probes."""

KEYED = ("/v1/", "/metrics", "/openapi.json")
"""What needs a key where there are some; the page itself holds nothing."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Refusal(HTTPException):
    """A request that is refused before it is read, or while it is."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(status, message)
        self.error = error


@dataclass(frozen=True, slots=True)
class Access:
    """Who may come in.

    Attributes
    ----------
    hosts : tuple of str
        The names by which the service may be called, without port.
    keys : tuple of str
        The keys; none for everybody.
    limits : ServiceLimits
        How large bodies may be.
    """

    hosts: tuple[str, ...] = _LOCAL
    keys: tuple[str, ...] = field(default=(), repr=False)
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    @classmethod
    def of(cls, host: str, further: Iterable[str], keys: str, limits: ServiceLimits) -> Access:
        """Return who may call a service that listens at ``host``; ``keys`` are separated by commas."""
        own = () if host in ("0.0.0.0", "::", "") else (f"[{host}]" if ":" in host else host,)
        named = tuple(key.strip() for key in keys.split(",") if key.strip())
        return cls(tuple(dict.fromkeys((*_LOCAL, *own, *(each.lower() for each in further)))), named, limits)

    def owner(self, headers: dict[str, str]) -> str | None:
        """Return a name of the key that came with a request, empty where none is needed; ``None`` where it is none of ours."""
        if not self.keys:
            return ""
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        matches = [hmac.compare_digest(given.encode(), key.encode()) for key in self.keys]
        return sha256(given.encode()).hexdigest() if any(matches) else None

    def check(self, scope: Scope, headers: dict[str, str]) -> str:
        """Raise unless a request may come in; return whose it is."""
        host = headers.get("host", "")
        if re.sub(r":\d+$", "", host).lower() not in self.hosts:
            raise Refusal(421, "WrongHost", f"{host!r:.80} is none of the hosts of this service; see --allow-host.")
        origin = headers.get("origin")
        if origin is not None and re.sub(r"^https?://", "", origin).lower() != host.lower():
            raise Refusal(403, "WrongOrigin", "a page of another origin asks; only this service's own page may.")
        path, owner = scope["path"], self.owner(headers)
        if owner is None and path not in OPEN and path.startswith(KEYED):
            raise Refusal(401, "Unauthorized", "a key is needed: send Authorization: Bearer <key>, or X-API-Key.")
        self._check_body(scope, headers)
        return owner or ""

    def _check_body(self, scope: Scope, headers: dict[str, str]) -> None:
        method, path = scope["method"], scope["path"]
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            is_empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
            wanted = FILE_TYPES if method == "PUT" else ("application/json",)
            if kind not in wanted and not (is_empty and not kind):
                raise Refusal(415, "WrongContentType", f"Content-Type is {kind!r:.60}; send {' or '.join(wanted)}.")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 15:
            raise Refusal(400, "InvalidRequest", "Content-Length is not a number.")
        if int(length) > self.largest(method, path):
            raise self.too_large(method, path)

    def largest(self, method: str, path: str) -> int:
        """Return how many bytes a body may have."""
        if method == "PUT":
            return self.limits.upload
        return self.limits.certificate if path == "/v1/verify" else self.limits.body

    def too_large(self, method: str, path: str) -> Refusal:
        """Return what is said of a body that is larger."""
        return Refusal(413, "TooLarge", f"the body is larger than {self.largest(method, path):,} bytes.")


FILE_TYPES = ("text/csv", "application/vnd.apache.parquet")
"""Content types of files for a batch."""


class Guard:
    """The outermost layer of the service."""

    def __init__(self, app: Asgi, access: Access, metrics: Metrics) -> None:
        self._app, self._access, self._metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        begun, status, size = time.monotonic(), 500, 0
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        name = given if _ID.fullmatch(given) else secrets.token_hex(8)
        method, path = scope["method"], scope["path"]

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._access.largest(method, path):
                raise self._access.too_large(method, path)
            return message

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._further(path, name)]
            await send(message)

        try:
            scope.setdefault("state", {})
            scope["state"]["owner"] = self._access.check(scope, headers)
            await self._app(scope, counted, sent)
        except Refusal as refusal:
            await respond(sent, refusal.status_code, refusal.error, refusal.detail)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.monotonic() - begun
            self._metrics.request(method, route, status, seconds)
            EVENTS.info(
                "request",
                extra={
                    "event": {
                        "id": name,
                        "method": method,
                        "route": route,
                        "status": status,
                        "seconds": round(seconds, 4),
                    }
                },
            )

    def _further(self, path: str, name: str) -> list[tuple[bytes, bytes]]:
        kept = "no-store" if path.startswith("/v1/") else "no-cache"
        each = {**HEADERS, "x-request-id": name, "cache-control": kept}
        return [(key.encode(), value.encode()) for key, value in each.items()]


async def respond(send: Send, status: int, error: str, message: str) -> None:
    """Send an error."""
    body = json.dumps({"error": error, "message": message}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})

"""Figures for Prometheus, in its text form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

BUCKETS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0)
"""Upper ends, in seconds, of the bars that durations are counted in."""


class Metrics:
    """Counts of requests and of how long they took; no label holds anything of a person."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._bars: Counter[tuple[str, float]] = Counter()
        self._sums: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; ``route`` is the pattern that it met, not its path."""
        self._requests[method if method in HTTP_METHODS else "OTHER", route, status] += 1
        for end in BUCKETS:
            self._bars[route, end] += seconds <= end
        self._sums[route] += seconds  # type: ignore[assignment]
        self._counts[route] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all figures; ``gauges`` are further ones, each with what it is."""
        lines = ["# HELP mace_requests_total Requests.", "# TYPE mace_requests_total counter"]
        for (method, route, status), count in sorted(self._requests.items()):
            lines.append(f'mace_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
        lines += ["# HELP mace_request_seconds Time to answer.", "# TYPE mace_request_seconds histogram"]
        for route in sorted(self._counts):
            for end in BUCKETS:
                lines.append(f'mace_request_seconds_bucket{{route="{route}",le="{end:g}"}} {self._bars[route, end]}')
            lines.append(f'mace_request_seconds_bucket{{route="{route}",le="+Inf"}} {self._counts[route]}')
            lines.append(f'mace_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}')
            lines.append(f'mace_request_seconds_count{{route="{route}"}} {self._counts[route]}')
        for name, (about, value) in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", f"{name} {value:g}"]
        return "\n".join(lines) + "\n"


HTTP_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")

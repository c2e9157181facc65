"""A hundred clients at once for a minute, on the loopback only: what a service on this machine stands.

Starts ``mace serve`` (the demo) on a free port of 127.0.0.1, asks it from threads, and prints the times that answers took, how many a
second there were, what was refused, and the memory of all its processes at the start and at the end. One worker is killed half way.

Bounded: it asks nothing but its own service, and ends after ``--seconds`` and at most half a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from mace.client import Client
from mace.errors import ServiceError

SRC = Path(__file__).resolve().parents[1] / "src"


def children(number: int) -> list[int]:
    """Return the processes below one, itself included."""
    found, layer = [number], [number]
    while layer:
        layer = [int(each) for one in layer for each in _read(f"/proc/{one}/task/{one}/children").split()]
        found += layer
    return found


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def memory(number: int) -> float:
    """Return the memory of a process and all below it in megabytes, what they share counted once."""
    total = 0
    for each in children(number):
        total += sum(int(kb) for kb in re.findall(r"^Pss:\s+(\d+)", _read(f"/proc/{each}/smaps_rollup"), re.MULTILINE))
    return total / 1000


def ask(
    url: str,
    rows: list[dict[str, object]],
    until: float,
    seed: int,
    times: list[tuple[str, float]],
    counts: Counter[str],
) -> None:
    """Ask until a moment: mostly explanations, some predictions and pages."""
    client, rng = Client(url, timeout=100), random.Random(seed)
    while time.monotonic() < until:
        kind = rng.choices(("explain", "predict", "people"), (6, 3, 1))[0]
        begun = time.perf_counter()
        try:
            if kind == "explain":
                client.explain(rng.choice(rows), time_limit=5)
            elif kind == "predict":
                client.predict([rng.choice(rows)])
            else:
                client.people(decision="bad", limit=20)
            counts[f"{kind} answered"] += 1
            times.append((kind, time.perf_counter() - begun))
        except ServiceError as error:
            counts[f"{error.status} {str(error).partition(':')[0]}"] += 1
            if error.status == 429:
                time.sleep(1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=None, help="Append a line of JSON here.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", "from mace.cli import main; main()", "serve", "--port", "0"]
        command += ["--workers", str(given.workers), "--jobs", folder]
        around = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=around
        ) as service:
            try:
                assert service.stdout is not None
                url = re.findall(r"http://\S+", service.stdout.readline())[0]
                report(service.pid, url, given)
            finally:
                service.terminate()


def report(number: int, url: str, given: argparse.Namespace) -> None:
    client = Client(url)
    begun = time.monotonic()
    while not client.ready():
        assert time.monotonic() - begun < 120, "the service is not ready after two minutes"
        time.sleep(0.1)
    rows = [client.person(each["number"])["row"] for each in client.people(decision="bad", limit=50)["people"]]
    for row in rows[:10]:
        client.explain(row)
    before = memory(number)
    times: list[tuple[str, float]] = []
    counts: Counter[str] = Counter()
    until = time.monotonic() + given.seconds
    threads = [
        threading.Thread(target=ask, args=(url, rows, until, seed, times, counts), daemon=True)
        for seed in range(given.clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(given.seconds / 2)
    half = memory(number)
    busiest = max(children(number)[1:], key=lambda each: int((_read(f"/proc/{each}/stat").split() or ["0"] * 15)[13]))
    os.kill(busiest, signal.SIGKILL)
    for thread in threads:
        thread.join(given.seconds + 120)
    made = {"clients": given.clients, "seconds": given.seconds, "workers": given.workers, "cores": os.cpu_count()}
    for kind in ("explain", "predict", "people"):
        each = np.array([seconds for name, seconds in times if name == kind])
        if len(each):
            p50, p99 = np.quantile(each, [0.5, 0.99])
            print(
                f"{kind:8} {len(each):6} answers, {len(each) / given.seconds:7.1f} a second, p50 {p50:.3f} s, p99 {p99:.3f} s"
            )
            made[kind] = {"answers": len(each), "p50": round(p50, 4), "p99": round(p99, 4)}
    print("outcomes:", ", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    time.sleep(2)
    after = memory(number)
    print(f"memory of all processes: {before:.0f} MB at the start, {half:.0f} MB half way, {after:.0f} MB at the end")
    made |= {"outcomes": dict(counts), "memory": [round(before), round(half), round(after)]}
    if given.out is not None:
        with given.out.open("a") as file:
            file.write(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()

"""Certificates on the paper's models: what recording costs, how large they are, and how long it takes to check them.

    python benchmarks/certificates.py [--rows 20] [--data adult,compas,credit] [--models tree,forest10,forest100,boosting]
        [--hard 4] [--settings "depth 6"]

Times are seconds of CPU, one thread, kernels warm. "record" is the solver's time with recording divided by its time without, on the same
rows in the same run, all rows together and, in brackets, the least and the greatest of one row. "read" is what reading the model and its
fingerprint take, which a check pays once; "check" is the rest of it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from hard_trees import SETTINGS, hard_setting
from trees import CLOCK, DISTANCES, paper_setting, versions

import mace
from mace.certify.check import _check_claim, _check_counterfactual, _check_proof
from mace.certify.proofs import check_lane
from mace.certify.statement import Statement
from mace.certify.verdict import Refuted, Unchecked, silent

RESULTS = Path(__file__).parent / "results"


def checked(certificate: mace.Certificate, statement: Statement, reading: Any) -> tuple[str, str, float]:
    """Return the outcome, the reason and the seconds of a check whose model is already read."""
    started = time.process_time()
    try:
        problem = statement.of_reading(reading)
        _check_claim(problem, certificate.claim, _check_counterfactual)
        _check_proof(problem, certificate, silent, check_lane)
    except (Refuted, Unchecked) as verdict:
        return type(verdict).__name__.lower(), str(verdict), time.process_time() - started
    return "valid", "", time.process_time() - started


def measure(setting: Any, distance: Any, limit: float) -> dict[str, Any]:
    """Return sizes, times and outcomes over the rows of a setting."""
    explainer = mace.Explainer(setting.model, setting.space)
    plain, recorded, sizes, checks, nodes = [], [], [], [], []
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    started = time.process_time()
    reading = None
    explainer.explain(setting.rows.iloc[0], distance=distance, time_limit=limit)
    CLOCK.read()
    for _, row in setting.rows.iterrows():
        explainer.explain(row, distance=distance, time_limit=limit)
        plain.append(CLOCK.read())
        explanation = explainer.explain(row, distance=distance, time_limit=limit, certify=True)
        recorded.append(CLOCK.read())
        certificate = explanation[0].certificate if explanation else explanation.certificate
        text = certificate.to_json()
        certificate = mace.Certificate.from_json(text)
        statement = Statement.from_dict(certificate.statement)
        if reading is None:
            started = time.process_time()
            reading = statement.problem(setting.model)[1]
            started = time.process_time() - started
        outcome, reason, seconds = checked(certificate, statement, reading)
        outcomes[outcome] += 1
        reasons[reason] += bool(reason)
        sizes.append(len(text))
        checks.append(seconds)
        nodes.append(len(certificate.evidence.get("code", ())))
    return {
        "outcomes": dict(outcomes),
        "reasons": {reason: count for reason, count in reasons.items() if count},
        "record": sum(recorded) / sum(plain),
        "record rows": [one / other for one, other in zip(recorded, plain, strict=True)],
        "bytes median": float(np.median(sizes)),
        "bytes max": max(sizes),
        "nodes median": float(np.median(nodes)),
        "nodes max": max(nodes),
        "read": started,
        "check median": float(np.median(checks)),
        "check max": max(checks),
        "solve median": float(np.median(plain)),
    }


def report(data: str, model: str, setting: Any, distances: dict[str, Any], limit: float, out: TextIO) -> None:
    """Measure a setting under some distances, and print a row for each."""
    for name, distance in distances.items():
        found = measure(setting, distance, limit)
        out.write(json.dumps({"data": data, "model": model, "distance": name, **versions()} | found) + "\n")
        least, most = min(found["record rows"]), max(found["record rows"])
        record = f"{found['record']:.2f}x ({least:.2f} - {most:.2f})"
        valid = f"{found['outcomes'].get('valid', 0)} of {len(setting.rows)}"
        print(
            f"| {data} | {model} | {name} | {valid} | {record} | {found['bytes median'] / 1e3:.1f} "
            f"| {found['bytes max'] / 1e3:.1f} | {found['nodes median']:.0f} | {found['read']:.2f} "
            f"| {found['check median']:.3f} | {found['check max']:.3f} |",
            flush=True,
        )
        for reason, count in found["reasons"].items():
            print(f"    {count}: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--data", default="adult,compas,credit")
    parser.add_argument("--models", default="tree,forest10,forest100,boosting")
    parser.add_argument("--distances", default=",".join(DISTANCES))
    parser.add_argument("--hard", type=int, default=0, help="rows of the settings of hard_trees.py, from far to near")
    parser.add_argument("--settings", default="", help="those of them whose name contains this text")
    parser.add_argument("--limit", type=float, default=30.0)
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    print(
        "| data | model | distance | valid | record | kB median | kB max | nodes | read s | check s median | check s max |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    distances = {name: DISTANCES[name] for name in arguments.distances.split(",")}
    with (RESULTS / "certificates.jsonl").open("w") as out:
        for data in filter(None, arguments.data.split(",")):
            for model in arguments.models.split(","):
                try:
                    setting = paper_setting(data, model, arguments.rows)
                except mace.DatasetUnavailable as error:
                    print(f"{data}: LEFT OUT, {error}")
                    break
                report(data, model, setting, distances, arguments.limit, out)
        for name in SETTINGS if arguments.hard else ():
            if arguments.settings not in name:
                continue
            model, _, data = name.partition(", ")
            hard = {key: distances[key] for key in ("l1", "linf", "l0") if key in distances}
            report(data, model, hard_setting(name, arguments.hard), hard, arguments.limit, out)


if __name__ == "__main__":
    main()

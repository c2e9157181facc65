"""Random piecewise linear Python functions of several features, harder than those of ``random_problems``."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_problems import Case, _constraints, _distance, from_source

import mace

DISTANCES = ("l1", "linf", "l0", "mixed", "weighted", "custom")


def random_function(seed: int, *, features: int | None = None, finite: bool = True) -> Case:
    """Return a random function with a question; the same seed gives the same one."""
    rng = np.random.default_rng([seed, 41])
    space = _space(rng, features or int(rng.integers(2, 5)), finite=finite)
    rows = [_row(rng, space) for _ in range(60)]
    body = [f"def model({', '.join(space)}):", *_score(rng, space)]
    score = from_source("\n".join([*body, "    return s", ""]), "model")
    values = sorted(score(**row) for row in rows)
    first, second = (
        round(float(values[k]), 3) for k in sorted(rng.integers(len(values) // 3, len(values), 2).tolist())
    )
    ending = [f"    if s > {second}:", "        return 2", f"    return 1 if s >= {first} else 0", ""]
    model = from_source("\n".join([*body, *ending]), "model")
    question: dict[str, Any] = {
        "distance": _distance(rng, DISTANCES[seed % len(DISTANCES)], space),
        "constraints": _constraints(rng, space) if rng.random() < 0.5 else [],
    }
    return Case("function", model, space, rows[0], question)


def _space(rng: np.random.Generator, count: int, *, finite: bool) -> mace.FeatureSpace:
    features: dict[str, Any] = {}
    for index in range(count):
        kind = str(rng.choice(["real", "real", "integer", "ordinal", "categorical"]))
        if kind == "real":
            high = float(rng.choice([1, 10, 1000]))
            features[f"real_{index}"] = mace.real(0, high, step=high / 8 if finite else None)
        elif kind == "integer":
            features[f"integer_{index}"] = mace.integer(-3, int(rng.choice([3, 8]) if finite else rng.choice([8, 200])))
        elif kind == "ordinal":
            features[f"ordinal_{index}"] = mace.ordinal(["low", "mid", "high", "top"])
        else:
            features[f"categorical_{index}"] = mace.categorical(["a", "b", "c"])
    return mace.FeatureSpace(features)


def _row(rng: np.random.Generator, space: mace.FeatureSpace) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, feature in space.items():
        if hasattr(feature, "levels"):
            row[name] = feature.levels[int(rng.integers(len(feature.levels)))]
        elif feature.size is not None:
            row[name] = feature.value_at(int(rng.integers(feature.size)))
        else:
            row[name] = float(rng.uniform(feature.low, feature.high))
    return row


def _score(rng: np.random.Generator, space: mace.FeatureSpace) -> list[str]:
    """Return the lines that compute ``s``: one term a feature, of many shapes, then terms of two."""
    lines = ["    s = 0.0", "    rate = 0.5"]
    for name, feature in space.items():
        if hasattr(feature, "levels"):
            lines += _level_term(rng, name, feature.levels)
        else:
            lines += _number_term(rng, name, float(feature.low), float(feature.high))
    numbers = [name for name, feature in space.items() if not hasattr(feature, "levels")]
    if len(numbers) > 1 and rng.random() < 0.6:
        one, other = (str(name) for name in rng.choice(numbers, 2, replace=False))
        size = max(float(space[one].high), float(space[other].high))
        lines.append(f"    s = s + {rng.normal():.3f} * max({one}, {other}) / {size:.4g}")
        if rng.random() < 0.5:
            lines += [f"    if {one} < {other} and s > 0.1:", f"        s = s - {abs(rng.normal()):.3f}"]
    if rng.random() < 0.5:
        lines.append("    s = max(s, 0.0) + 0.3 * abs(s - 1)")
    return lines


def _level_term(rng: np.random.Generator, name: str, levels: tuple[Any, ...]) -> list[str]:
    shape = int(rng.integers(3))
    level = levels[int(rng.integers(len(levels)))]
    if shape == 0:
        pairs = [(other, f"{rng.normal():.3f}") for other in levels]
        return [
            line for other, points in pairs for line in (f"    if {name} == {other!r}:", f"        s = s + {points}")
        ]
    if shape == 1:
        return [f"    if {name} == {level!r}:", f"        rate = {rng.uniform(0.2, 1.5):.2f}"]
    return [f"    s = s + {rng.normal():.3f} * ({name} == {level!r})"]


def _number_term(rng: np.random.Generator, name: str, low: float, high: float) -> list[str]:
    slope = rng.normal() * 2 / (high - low)
    knot = low + rng.uniform(0.1, 0.9) * (high - low)
    match int(rng.integers(6)):
        case 0:
            return [f"    s = s + {slope:.5g} * max({name} - {knot:.4g}, 0)"]
        case 1:
            return [f"    s = s + {slope:.5g} * min({name}, {knot:.4g})"]
        case 2:
            return [f"    s = s + {slope:.5g} * abs({name} - {knot:.4g})"]
        case 3:
            return [
                f"    if {name} > {knot:.4g}:",
                f"        s = s + {rng.normal():.3f}",
                "    else:",
                f"        extra = {slope:.5g} * {name}",
                "        s = s + extra",
            ]
        case 4:
            return [f"    s = s + rate * ({slope:.5g} * {name})"]
        case _:
            return [f"    s = s + ({name} >= {knot:.4g}) * ({slope:.5g} * {name})"]

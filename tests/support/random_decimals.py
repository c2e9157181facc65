"""Random rules whose boundary some row hits exactly in decimals, mostly not in binary; the referee is written with ``decimal``.

A rule is a small tree that is made together with its text. The referee shares nothing with the package: values are the decimals that Python
prints, rules are evaluated on them with ``decimal``, distances with fractions; finite spaces are gone through row by row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from estimators import small
from sklearn.pipeline import make_pipeline

import mace

LANES = {
    "function": ("auto", "smt", "milp"),
    "tree": ("auto", "smt"),
    "forest": ("auto", "milp"),
    "linear": ("auto", "smt", "milp"),
    "network": ("auto", "milp"),
    "vote": ("auto",),
}
FAMILIES = tuple(LANES)
NAMES = ("x", "y", "z")
SHARES = ("0.1", "0.3", "0.6", "0.7", "1.1", "0.15", "2.3", "1", "0.07", "-0.3", "-1.7")
Row = dict[str, float]
Tree = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A question: which model, which row, which rules, and a row that lies on the boundary of one."""

    family: str
    solver: str
    explainer: mace.Explainer
    row: Row
    at: Row
    rules: tuple[Tree, ...]
    given: tuple[Any, ...]
    is_finite: bool


# ---- the evaluator


def decimal(value: float) -> Decimal:
    """Return the shortest decimal that prints a value."""
    return Decimal(repr(value))


def number(tree: Tree, new: Row, old: Row) -> Decimal:
    """Return the value of a term."""
    match tree:
        case ("number", text):
            return Decimal(text)
        case ("new", name):
            return decimal(new[name])
        case ("old", name):
            return decimal(old[name])
        case ("abs", inner):
            return abs(number(inner, new, old))
        case (sign, left, right):
            a, b = number(left, new, old), number(right, new, old)
            return {"+": a + b, "-": a - b, "*": a * b, "min": min(a, b), "max": max(a, b)}[sign]
    raise AssertionError(tree)


def holds(tree: Tree, new: Row, old: Row, free: frozenset[str]) -> bool:
    """Return whether a rule holds; ``free`` are the reals without a step."""
    match tree:
        case ("and", left, right):
            return holds(left, new, old, free) and holds(right, new, old, free)
        case ("or", left, right):
            return holds(left, new, old, free) or holds(right, new, old, free)
        case ("not", inner):
            return not holds(inner, new, old, free)
        case ("within", name, share):
            room = abs(decimal(old[name])) * Decimal(share) / 100
            return abs(decimal(new[name]) - decimal(old[name])) <= room
        case ("by", name, amount):
            return abs(decimal(new[name]) - decimal(old[name])) <= Decimal(amount)
        case (sign, left, right):
            with localcontext(Context(prec=120)):
                a, b = number(left, new, old), number(right, new, old)
            if sign in ("==", "!="):
                same = float(a) == float(b) if _names(tree) & free else a == b
                return same == (sign == "==")
            return {"<=": a <= b, "<": a < b, ">=": a >= b, ">": a > b}[sign]
    raise AssertionError(tree)


def _names(tree: Any) -> set[str]:
    if not isinstance(tree, tuple):
        return set()
    return {tree[1]} if tree[0] == "new" else set().union(*map(_names, tree))


def text(tree: Tree, *, python: bool = False) -> str:
    """Return a rule in the text form, or as the body of a function ``(new, old)``."""
    match tree:
        case ("number", digits):
            return f"({digits})" if digits.startswith("-") else digits
        case ("new", name):
            return f"new.{name}" if python else name
        case ("old", name):
            return f"old.{name}"
        case ("abs", inner):
            return f"abs({text(inner, python=python)})"
        case (("min" | "max") as which, left, right):
            return f"{which}({text(left, python=python)}, {text(right, python=python)})"
        case ("not", inner):
            return f"not ({text(inner, python=python)})"
        case ("within", name, share):
            return f"{name} changes by at most {share}%"
        case ("by", name, amount):
            return f"{name} changes by at most {amount}"
        case (("and" | "or") as word, left, right):
            return f"({text(left, python=python)}) {word} ({text(right, python=python)})"
        case (sign, left, right):
            return (
                f"({text(left, python=python)} {sign} {text(right, python=python)})"
                if sign in "+-*"
                else (f"{text(left, python=python)} {sign} {text(right, python=python)}")
            )
    raise AssertionError(tree)


# ---- random questions


def random_case(seed: int) -> Case:
    """Return the question of a seed."""
    rng = np.random.default_rng([seed, 23])
    family = FAMILIES[seed % len(FAMILIES)]
    is_finite = bool(rng.random() < 0.6)
    space = mace.FeatureSpace({name: _feature(rng, is_finite) for name in NAMES})
    row = {name: _value(rng, feature) for name, feature in space.items()}
    at = {name: _value(rng, feature) for name, feature in space.items()}
    if rng.random() < 0.5:
        at |= {name: row[name] for name in rng.permutation(NAMES)[:1]}
    rules = tuple(_rule(rng, space, row, at) for _ in range(int(rng.integers(1, 3))))
    lanes = LANES[family]
    free = frozenset(name for name, feature in space.items() if feature.size is None)
    return Case(
        family,
        lanes[int(rng.integers(len(lanes)))],
        mace.Explainer(_model(rng, family, space, row, at), space),
        row,
        at,
        rules,
        tuple(_given(rng, rule, free) for rule in rules),
        is_finite,
    )


def _feature(rng: np.random.Generator, is_finite: bool) -> Any:
    kind = int(rng.integers(4))
    if kind == 0:
        return mace.integer(0, int(rng.integers(5, 20)))
    if kind == 1 or is_finite:
        step = float(rng.choice([0.1, 0.3, 0.05, 0.7]))
        low = float(rng.choice([0.0, 0.1, -1.2]))
        return mace.real(low, float(Decimal(repr(low)) + 12 * Decimal(repr(step))), step=step)
    return mace.real(*((0, 10) if kind == 2 else (-1.1, 2.7)))


def _value(rng: np.random.Generator, feature: Any) -> Any:
    if feature.size is not None:
        return feature.value_at(int(rng.integers(feature.size)))
    return float(np.round(rng.uniform(feature.low, feature.high), int(rng.integers(1, 4))))


def _rule(rng: np.random.Generator, space: mace.FeatureSpace, row: Row, at: Row) -> Tree:
    kind = rng.random()
    if kind < 0.7:
        return _atom(rng, space, row, at)
    first, second = _atom(rng, space, row, at), _atom(rng, space, row, at)
    return ("not", first) if kind < 0.76 else ("and" if kind < 0.88 else "or", first, second)


def _atom(rng: np.random.Generator, space: mace.FeatureSpace, row: Row, at: Row) -> Tree:
    """Return a rule that holds with equality at a row, most of the time."""
    kind = int(rng.integers(8))
    name, other = map(str, rng.permutation(NAMES)[:2])
    if kind == 0 and row[name]:
        share = abs(decimal(at[name]) - decimal(row[name])) / abs(decimal(row[name])) * 100
        if share == share.quantize(Decimal("0.001")):
            return ("within", name, f"{share.normalize():f}")
        kind = 1
    if kind <= 1:
        return ("by", name, f"{abs(decimal(at[name]) - decimal(row[name])).normalize():f}")
    share = ("number", str(rng.choice(SHARES)))
    new: Tree = ("new", name)
    beside: Tree = (str(rng.choice(["new", "new", "old"])), other)
    left, right = {
        2: (new, ("*", share, beside)),
        3: (("*", share, new), beside),
        4: (("+", new, ("*", share, beside)), ("number", "0")),
        5: (("abs", ("-", new, ("old", name))), ("*", share, beside)),
        6: ((str(rng.choice(["min", "max"])), new, beside), ("*", share, ("old", name))),
        7: (new, ("+", ("old", name), ("*", share, ("number", "0.1")))),
    }[kind]
    gap = number(left, at, row) - number(right, at, row)
    signs = ["<=", ">=", "<=", ">=", "<", ">", "==", "!="]
    sign = str(rng.choice(signs if _names((left, right)) else signs[:4]))
    return (sign, left, ("+", right, ("number", f"{gap:f}")))


def _given(rng: np.random.Generator, rule: Tree, free: frozenset[str]) -> Any:
    """Return a rule as a user gives it: an object, a text or a function."""
    if rule[0] == "within" and rng.random() < 0.5:
        return mace.at_most_change(rule[1], f"{rule[2]}%")
    if rule[0] == "by" and rng.random() < 0.5:
        return mace.at_most_change(rule[1], float(rule[2]))
    plain = not any(part in repr(rule) for part in ("'within'", "'by'"))
    if plain and rng.random() < 0.3:
        return f"lambda new, old: {text(rule, python=True)}"
    return text(rule)


def _model(rng: np.random.Generator, family: str, space: mace.FeatureSpace, row: Row, at: Row) -> Any:
    """Return a model that tells the row from the one on the boundary, where its family can."""
    name = next((str(each) for each in rng.permutation(NAMES) if row[each] != at[each]), "x")
    sign = ">=" if at[name] >= row[name] else "<="
    if family == "function":
        way = 1 if sign == ">=" else -1
        return _beyond({each: way if each == name else 0 for each in NAMES}, way * at[name])
    frame = pd.DataFrame([{each: _value(rng, feature) for each, feature in space.items()} for _ in range(60)])
    labels = (frame[name] >= at[name] if sign == ">=" else frame[name] <= at[name]).astype(int)
    if labels.nunique() < 2:
        labels.iloc[:30] = 1 - labels.iloc[:30]
    settings: dict[str, Any] = {
        "forest": {"n_estimators": 4, "max_depth": 3},
        "linear": {"C": 100.0},
        "network": {"max_iter": 200},
    }
    return make_pipeline(mace.Encoder(space), small(family, **settings.get(family, {}))).fit(frame, labels)


def _beyond(shares: dict[str, int], edge: float) -> Any:
    a, b, c = shares.values()

    def decide(x: float, y: float, z: float) -> int:
        return 1 if a * x + b * y + c * z >= edge else 0

    return decide


# ---- the referee


def fault(case: Case, *, seconds: float = 20, certify: bool = True) -> str | None:
    """Return what is wrong with the answer to a question; ``None`` where nothing is, ``"skipped"`` where time ran out."""
    space = case.explainer.space
    free = frozenset(name for name, feature in space.items() if feature.size is None)
    target = 1 - int(_outcomes(case, [case.row])[0])
    question = {"target": target, "constraints": case.given, "solver": case.solver, "time_limit": seconds}
    answer = case.explainer.explain(case.row, certify=certify, **question)

    def allowed(new: Row) -> bool:
        return all(holds(rule, new, case.row, free) for rule in case.rules)

    if len(answer) and not allowed(answer[0].values):
        return f"the answer {answer[0].values} breaks a rule"
    rows = [new for new in _witnesses(case, answer) if allowed(new)]
    reached = [new for new, outcome in zip(rows, _outcomes(case, rows), strict=True) if int(outcome) == target]
    nearest = min((_distance(space, new, case.row) for new in reached), default=None)
    if nearest is not None and answer.status == "infeasible":
        return f"infeasible, although {min(reached, key=lambda new: _distance(space, new, case.row))} is allowed"
    if nearest is not None and Fraction(answer.lower) > nearest:
        return f"lower {answer.lower!r} above a row at {float(nearest)!r}"
    if answer.status not in ("optimal", "infeasible"):
        # Between reals, a strict inequality or an equation may leave an honest gap.
        return "skipped" if not case.is_finite or "time" in answer.reason else f"{answer.status}: {answer.reason}"
    if case.is_finite and (nearest is None) != (answer.status == "infeasible"):
        return f"{answer.status}, although no row is allowed and reached"
    if case.is_finite and nearest is not None and Fraction(answer[0].distance) - nearest > Fraction(1, 10**6):
        return f"distance {answer[0].distance!r}, although a row is at {float(nearest)!r}"
    return _certificate_fault(case, answer) if certify else None


def _certificate_fault(case: Case, answer: Any) -> str | None:
    proof = answer[0].certificate if len(answer) else answer.certificate
    if proof is None:
        return None
    verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), case.explainer.model)
    return f"certificate: {verdict}" if verdict.outcome == "refuted" else None


def _outcomes(case: Case, rows: list[Row]) -> Any:
    model = case.explainer.model
    if case.family == "function":
        return [model(**row) for row in rows]
    return model.predict(pd.DataFrame(rows, columns=list(NAMES))) if rows else []


def _witnesses(case: Case, answer: Any) -> Iterator[Row]:
    """Yield all rows of a finite space; otherwise the row on the boundary, the answer, and rows beside these."""
    space = case.explainer.space
    if case.is_finite:
        values = [[feature.value_at(k) for k in range(feature.size)] for feature in space.values()]  # type: ignore[union-attr]
        yield from (dict(zip(NAMES, chosen, strict=True)) for chosen in itertools.product(*values))
        return
    for base in [case.at, *(each.values for each in answer)]:
        beside = [sorted(set(_beside(space[name], base[name], case.row[name], case.at[name]))) for name in NAMES]
        yield from (dict(zip(NAMES, chosen, strict=True)) for chosen in itertools.product(*beside))


def _beside(feature: Any, *values: float) -> Iterator[float]:
    for value in values:
        yield value
        if feature.size is None:
            rounded = (round(value, digits) for digits in (1, 2, 3))
            near = (math.nextafter(value, way) for way in (-math.inf, math.inf))
            yield from (float(each) for each in (*rounded, *near) if feature.low <= each <= feature.high)


def _distance(space: mace.FeatureSpace, new: Row, old: Row) -> Fraction:
    ways = [abs(Fraction(new[name]) - Fraction(old[name])) / _range(feature) for name, feature in space.items()]
    return sum(ways, Fraction(0)) / len(ways)


def _range(feature: Any) -> Fraction:
    return Fraction(feature.high) - Fraction(feature.low)

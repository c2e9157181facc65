"""Targets, distances, constraints and causes as entries of a statement, and read back."""

from __future__ import annotations

import ast
import math
from typing import Any

from mace.certify.certificate import expect
from mace.constraints import CONSTRAINTS, Constraint
from mace.constraints.causal import Causal
from mace.constraints.differ import Differ, differ
from mace.constraints.typical import Typical
from mace.distances import Distance, FunctionDistance
from mace.errors import (
    InvalidCertificate,
    InvalidConstraint,
    InvalidDistance,
    InvalidTarget,
    MaceError,
)
from mace.language.source import find_source
from mace.models.fingerprint import fingerprint
from mace.space import FeatureSpace, Point
from mace.space.features import plain_scalar
from mace.targets import AnyOf, Between

LONGEST_FORMULA = 100_000
"""Characters of a distance function, or of an equation."""


# ---- targets


def target_dict(target: AnyOf | Between | None) -> dict[str, Any]:
    """Return a target as plain data."""
    match target:
        case None:
            return {"kind": "other"}
        case AnyOf(labels, margin):
            return {"kind": "any_of", "labels": [plain_scalar(label) for label in labels], **_margin_dict(margin)}
        case Between(low, high, label, margin):
            return {"kind": "between", "low": low, "high": high, "label": plain_scalar(label), **_margin_dict(margin)}


def _margin_dict(margin: float) -> dict[str, float]:
    return {"margin": margin} if margin else {}


def read_target(entry: object) -> AnyOf | Between | None:
    """Return the target of an entry, or raise :class:`InvalidCertificate`."""
    where = "statement.target"
    given = dict(expect(entry, dict, where))
    margin = float(expect(given.pop("margin", 0.0), (int, float), where))
    if not 0 <= margin < math.inf or (margin and given.get("kind") == "other"):
        raise InvalidCertificate(f"{where}: the margin is {margin!r}.")
    match given:
        case {"kind": "other", **rest} if not rest:
            return None
        case {"kind": "any_of", "labels": list(labels), **rest} if labels and not rest:
            return AnyOf(tuple(expect(label, (str, int, float, bool), where) for label in labels), margin)
        case {"kind": "between", "low": low, "high": high, "label": label, **rest} if not rest:
            if (low, high) == (None, None) or not isinstance(label, str | int | float | None):
                raise InvalidCertificate(f"{where}: no bound is given, or the label is none.")
            try:
                return Between(_end(low), _end(high), label, margin)
            except InvalidTarget as error:
                raise InvalidCertificate(f"{where}: {error}") from error
    raise InvalidCertificate(f"{where}: {entry!r:.80} is not a target of kind other, any_of or between.")


def _end(value: object) -> float | None:
    return None if value is None else float(expect(value, (int, float), "statement.target"))


# ---- distances


def distance_dict(distance: Distance | FunctionDistance, space: FeatureSpace, factual: Point) -> dict[str, Any]:
    """Return a distance as plain data; a function is its text."""
    if isinstance(distance, FunctionDistance):
        return {"kind": "function", "text": _text_of(distance, space, factual)}
    return {"kind": "norms", **distance.to_dict()}


def _text_of(distance: FunctionDistance, space: FeatureSpace, factual: Point) -> str:
    """Return the text of a distance function; it must mean the same without the names around it."""
    if isinstance(distance.function, str):
        return distance.function
    text = ast.unparse(find_source(distance.function).node)
    try:
        same = FunctionDistance(text).from_factual(space, factual) == distance.from_factual(space, factual)
    except MaceError:
        same = False
    if not same:
        raise InvalidDistance(
            "certify: the distance uses names from outside of it, so its text alone does not say what it is. "
            "Write the numbers into it, or pass it as text."
        )
    return text


def read_distance(entry: object) -> Distance | FunctionDistance:
    """Return the distance of an entry, or raise :class:`InvalidCertificate`."""
    where = "statement.distance"
    match expect(entry, dict, where):
        case {"kind": "function", "text": str(text), **rest} if not rest:
            if len(text) > LONGEST_FORMULA:
                raise InvalidCertificate(f"{where}: a text of {len(text)} characters is too long.")
            return FunctionDistance(text)
        case {"kind": "norms", "l0": l0, "l1": l1, "linf": linf, "l2": l2, "weights": weights, **rest} if (
            rest.keys() <= {"others", "data"} and isinstance(weights, dict | str)
        ):
            others: Any = rest.get("others", {})
            try:
                return Distance(l0, l1, linf, l2, weights, others, rest.get("data"))
            except MaceError as error:
                raise InvalidCertificate(f"{where}: {error}") from error
    raise InvalidCertificate(f"{where}: {entry!r:.80} is not a distance of kind norms or function.")


# ---- constraints


def constraint_dict(constraint: Constraint, space: FeatureSpace, factual: Point) -> dict[str, Any]:
    """Return a constraint as plain data; a forest is named by its fingerprint."""
    if isinstance(constraint, Typical):
        named = {**fingerprint(constraint.bind(space, factual).reading), "shown": str(constraint)}
        return {"kind": "typical", "arguments": [named]}
    to_dict = getattr(constraint, "to_dict", None)
    if to_dict is None:
        raise InvalidConstraint(f"certify: {constraint!r:.80} has no to_dict(), so a certificate cannot state it.")
    made: dict[str, Any] = to_dict()
    return made


def check_reads_back(constraint: Constraint, written: dict[str, Any], space: FeatureSpace, factual: Point) -> None:
    """Refuse a constraint that does not mean the same when it is read back."""
    if isinstance(constraint, Typical):
        return
    try:
        read = read_constraint(written, "here")
        same = read == constraint or read.bind(space, factual) == constraint.bind(space, factual)
    except MaceError:
        same = False
    if not same:
        raise InvalidConstraint(
            f"certify: {constraint!s:.80} does not mean the same when it is written down and read back. Pass it as text."
        )


def read_constraint(entry: object, where: str) -> Constraint:
    """Return the constraint of an entry, or raise :class:`InvalidCertificate`."""
    match expect(entry, dict, where):
        case {"kind": str(kind), "arguments": list(arguments), **rest} if not rest:
            try:
                made: Constraint = CONSTRAINTS.load(kind)(*arguments)
            except (MaceError, TypeError, ValueError) as error:
                raise InvalidCertificate(f"{where}: {error}") from error
            return made
    raise InvalidCertificate(f"{where}: {entry!r:.80} is not a constraint; its keys are kind and arguments.")


# ---- causes


def read_causes(entry: object, space: FeatureSpace) -> Causal:
    """Return the equations of an entry, or raise :class:`InvalidCertificate`."""
    where = "statement.causes"
    for name, text in expect(entry, dict, where).items():
        if len(expect(text, str, f"{where}.{name}")) > LONGEST_FORMULA:
            raise InvalidCertificate(f"{where}.{name}: a text of {len(text)} characters is too long.")
    try:
        made = Causal(expect(entry, dict, where))
        made.programs(space)
    except MaceError as error:
        raise InvalidCertificate(f"{where}: {error}") from error
    return made


# ---- diversity


def differ_dict(diversity: Differ) -> dict[str, Any]:
    """Return how answers differ as plain data."""
    if diversity.in_sets:
        return {"in_sets": True}
    if diversity.sets is not None:
        return {"sets": diversity.sets}
    return {"features": diversity.features, "by": diversity.by, "distance": diversity.distance}


def read_differ(entry: object, *, is_needed: bool) -> Differ:
    """Return how answers differ by an entry, or raise :class:`InvalidCertificate`."""
    if not is_needed and entry is None:
        return differ()
    match entry:
        case {"in_sets": True, **rest} if not rest:
            return differ(in_sets=True)
        case {"sets": "incomparable", **rest} if not rest:
            return differ(sets="incomparable")
        case {"features": features, "by": by, "distance": distance, **rest} if not rest:
            try:
                return differ(features=features, by=by, distance=distance)
            except (MaceError, TypeError) as error:
                raise InvalidCertificate(f"statement.diversity: {error}") from error
    raise InvalidCertificate(f"statement.diversity: {entry!r:.80} does not say how counterfactuals differ.")

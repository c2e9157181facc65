"""The question that a certificate answers, written down in full, and made a problem again with the user's model."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mace.certify.certificate import check_keys, expect
from mace.certify.verdict import Refuted, Unchecked
from mace.constraints import CONSTRAINTS, Condition, Constraint
from mace.constraints.causal import Causal
from mace.constraints.differ import Differ, differ
from mace.constraints.typical import Typical, typical
from mace.distances import Distance, FunctionDistance
from mace.errors import (
    InvalidCertificate,
    InvalidConstraint,
    InvalidDistance,
    InvalidProgram,
    InvalidTarget,
    MaceError,
    MissingPackage,
)
from mace.language.source import find_source
from mace.models import Reading, read
from mace.models.fingerprint import fingerprint
from mace.problem import Problem
from mace.space import FeatureSpace, Point, Scalar
from mace.space.features import is_missing, plain_scalar
from mace.targets import AnyOf, Between, as_goal

KEYS = {"model", "space", "factual", "target", "distance", "constraints", "diversity", "earlier", "accuracy"}
MOST_TEXT = 100_000
"""Characters of a distance function, or of an equation."""

Row = dict[str, Scalar | None]


@dataclass(frozen=True, slots=True)
class Statement:
    """What was asked.

    Attributes
    ----------
    model : dict
        The fingerprint of the model.
    space : FeatureSpace
        The plausible domain.
    factual : Point
        The row.
    target : None, AnyOf or Between
        ``None`` is any outcome but the row's own.
    distance : Distance or FunctionDistance
        What is near.
    constraints : tuple of constraints
        What may change and how.
    diversity : Differ
        How a counterfactual differs from each earlier one.
    earlier : tuple of Point
        Those.
    accuracy : float
        How far apart the bounds may stay for a status of ``optimal``.
    causes : Causal, optional
        By what equations effects follow from actions. The earlier counterfactuals, and how one differs from them, are then actions.
    """

    model: dict[str, str]
    space: FeatureSpace
    factual: Point
    target: AnyOf | Between | None
    distance: Distance | FunctionDistance
    constraints: tuple[Constraint, ...]
    diversity: Differ
    earlier: tuple[Point, ...]
    accuracy: float
    causes: Causal | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as plain data; numbers as JSON writes them, which loses nothing."""
        return {
            "model": self.model,
            "space": self.space.to_dict(),
            "factual": row_of(self.space, self.factual),
            "target": _target_dict(self.target),
            "distance": _distance_dict(self.distance, self.space, self.factual),
            "constraints": [_constraint_dict(each, self.space, self.factual) for each in self.constraints],
            "diversity": _differ_dict(self.diversity) if self.earlier else None,
            "earlier": [row_of(self.space, point) for point in self.earlier],
            "accuracy": self.accuracy,
            **({} if self.causes is None else {"causes": self.causes.texts(self.space)}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Statement:
        """Return the statement that :meth:`to_dict` wrote; anything odd is an :class:`InvalidCertificate`."""
        check_keys(data, KEYS | (set(data) & {"causes"}), "statement")
        model = expect(data["model"], dict, "statement.model")
        check_keys(model, {"form", "parameters"}, "statement.model")
        try:
            space = FeatureSpace.from_dict(expect(data["space"], dict, "statement.space"))
        except MaceError as error:
            raise InvalidCertificate(f"statement.space: {error}") from error
        earlier = [
            _point(space, row, f"statement.earlier[{number}]")
            for number, row in enumerate(expect(data["earlier"], list, "statement.earlier"))
        ]
        accuracy = expect(data["accuracy"], (int, float), "statement.accuracy")
        if not 1e-15 <= accuracy <= 1e6:
            raise InvalidCertificate(f"statement.accuracy: {accuracy!r} is not from 1e-15 to 1e6.")
        return cls(
            model=model,
            space=space,
            factual=_point(space, data["factual"], "statement.factual"),
            target=_read_target(data["target"]),
            distance=_read_distance(data["distance"]),
            constraints=tuple(
                _read_constraint(entry, f"statement.constraints[{number}]")
                for number, entry in enumerate(expect(data["constraints"], list, "statement.constraints"))
            ),
            diversity=_read_differ(data["diversity"], is_needed=bool(earlier)),
            earlier=tuple(earlier),
            accuracy=float(accuracy),
            causes=_read_causes(data["causes"], space) if "causes" in data else None,
        )

    def problem(self, model: Any) -> tuple[Problem, Reading]:
        """Return the question about a model.

        Raises
        ------
        Refuted
            It is not the model of the certificate, or the question cannot be asked of it.
        """
        try:
            reading = read(model, self.space)
        except MissingPackage:
            raise
        except MaceError as error:
            raise Refuted(f"the model cannot be read over the certificate's space: {error}") from error
        found = fingerprint(reading)
        for part, name in (("form", "decides otherwise"), ("parameters", "has other labels")):
            if found[part] != self.model[part]:
                raise Refuted(
                    f"this is another model: it {name} than the one that the certificate is about (fingerprint of its {part} "
                    f"{found[part][:12]}..., in the certificate {str(self.model[part])[:12]}...)"
                )
        return self.of_reading(reading), reading

    def of_reading(self, reading: Reading) -> Problem:
        """Return the question about a model as read."""
        try:
            current = reading.ask([self.factual])[0]
            goal, ask = as_goal(self.target, reading, self.factual, current)
            conditions = [constraint.bind(self.space, self.factual) for constraint in self.constraints]
            if self.causes is None:
                conditions += self.apart()
            metric = self.distance.from_factual(self.space, self.factual)
        except MaceError as error:
            raise Refuted(f"the question of the statement cannot be asked of this model: {error}") from error
        return Problem(
            space=self.space,
            form=reading.form,
            ask=ask,
            goal=goal,
            factual=self.factual,
            metric=metric,
            conditions=tuple(conditions),
            accuracy=Fraction(self.accuracy),
        )

    def with_forests(self, forests: Sequence[Any]) -> Statement:
        """Return the statement with the isolation forests of its ``typical`` constraints, found by their fingerprints.

        Raises
        ------
        Unchecked
            There is such a constraint, and no forest is given.
        Refuted
            None of those given is the one of the certificate.
        """
        if not any(isinstance(constraint, Typical) for constraint in self.constraints):
            return self
        return replace(self, constraints=tuple(self._with_forest(each, forests) for each in self.constraints))

    def _with_forest(self, constraint: Constraint, forests: Sequence[Any]) -> Constraint:
        if not isinstance(constraint, Typical) or constraint.named is None:
            return constraint
        if not forests:
            raise Unchecked(
                f"the certificate is about rows that an isolation forest calls usual, {constraint}; give it too: forests=[...], --forest"
            )
        named = {part: constraint.named[part] for part in ("form", "parameters")}
        others = []
        for given in forests:
            try:
                other = given if isinstance(given, Typical) else typical(given)
                found = fingerprint(other.bind(self.space, self.factual).reading)
            except MissingPackage:
                raise
            except MaceError as error:
                others.append(f"one cannot be read over the certificate's space: {error}")
                continue
            if found == named:
                return other
            others.append(f"one has the fingerprint {found['form'][:12]}...")
        raise Refuted(
            f"this is another isolation forest than that of {constraint} (fingerprint {named['form'][:12]}...; of those given "
            f"{'; '.join(others):.300})"
        )

    @property
    def plain(self) -> tuple[Constraint, ...]:
        """The constraints that are not about a forest."""
        return tuple(constraint for constraint in self.constraints if not isinstance(constraint, Typical))

    def apart(self) -> list[Condition]:
        """Return the conditions of differing from each earlier counterfactual."""
        return [self.diversity.bind(self.space, self.factual, point, self.distance) for point in self.earlier]

    def after(self, point: Point) -> Statement:
        """Return the statement of a further counterfactual, different from ``point`` too."""
        return replace(self, earlier=(*self.earlier, point))


def as_target(target: object) -> AnyOf | Between | None:
    """Return what a user asks for as one of three kinds."""
    return target if target is None or isinstance(target, AnyOf | Between) else AnyOf((target,))


def row_of(space: FeatureSpace, point: Point) -> Row:
    """Return a point as a row for JSON, ``None`` where missing."""
    return {name: None if is_missing(value) else value for name, value in space.values_of(point).items()}


def _point(space: FeatureSpace, row: object, place: str) -> Point:
    try:
        return space.point(expect(row, dict, place))
    except InvalidCertificate:
        raise
    except MaceError as error:
        raise InvalidCertificate(f"{place}: {error}") from error


# ---- targets


def _target_dict(target: AnyOf | Between | None) -> dict[str, Any]:
    match target:
        case None:
            return {"kind": "other"}
        case AnyOf(labels, margin):
            return {"kind": "any_of", "labels": [plain_scalar(label) for label in labels], **_margin_dict(margin)}
        case Between(low, high, label, margin):
            return {"kind": "between", "low": low, "high": high, "label": plain_scalar(label), **_margin_dict(margin)}


def _margin_dict(margin: float) -> dict[str, float]:
    return {"margin": margin} if margin else {}


def _read_target(entry: object) -> AnyOf | Between | None:
    place = "statement.target"
    given = dict(expect(entry, dict, place))
    margin = float(expect(given.pop("margin", 0.0), (int, float), place))
    if not 0 <= margin < math.inf or (margin and given.get("kind") == "other"):
        raise InvalidCertificate(f"{place}: the margin is {margin!r}.")
    match given:
        case {"kind": "other", **rest} if not rest:
            return None
        case {"kind": "any_of", "labels": list(labels), **rest} if labels and not rest:
            return AnyOf(tuple(expect(label, (str, int, float, bool), place) for label in labels), margin)
        case {"kind": "between", "low": low, "high": high, "label": label, **rest} if not rest:
            if (low, high) == (None, None) or not isinstance(label, str | int | float | None):
                raise InvalidCertificate(f"{place}: no bound is given, or the label is none.")
            try:
                return Between(_end(low), _end(high), label, margin)
            except InvalidTarget as error:
                raise InvalidCertificate(f"{place}: {error}") from error
    raise InvalidCertificate(f"{place}: {entry!r:.80} is not a target of kind other, any_of or between.")


def _end(value: object) -> float | None:
    return None if value is None else float(expect(value, (int, float), "statement.target"))


# ---- distances


def _distance_dict(distance: Distance | FunctionDistance, space: FeatureSpace, factual: Point) -> dict[str, Any]:
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


def _read_distance(entry: object) -> Distance | FunctionDistance:
    place = "statement.distance"
    match expect(entry, dict, place):
        case {"kind": "function", "text": str(text), **rest} if not rest:
            if len(text) > MOST_TEXT:
                raise InvalidCertificate(f"{place}: a text of {len(text)} characters is too long.")
            return FunctionDistance(text)
        case {"kind": "norms", "l0": l0, "l1": l1, "linf": linf, "l2": l2, "weights": dict(weights), **rest} if (
            rest.keys() <= {"others"}
        ):
            others: Any = rest.get("others", {})
            try:
                return Distance(l0, l1, linf, l2, weights, others)
            except MaceError as error:
                raise InvalidCertificate(f"{place}: {error}") from error
    raise InvalidCertificate(f"{place}: {entry!r:.80} is not a distance of kind norms or function.")


# ---- constraints


def _constraint_dict(constraint: Constraint, space: FeatureSpace, factual: Point) -> dict[str, Any]:
    """Return a constraint as plain data; a forest is named by its fingerprint."""
    if isinstance(constraint, Typical):
        named = {**fingerprint(constraint.bind(space, factual).reading), "shown": str(constraint)}
        return {"kind": "typical", "arguments": [named]}
    to_dict = getattr(constraint, "to_dict", None)
    if to_dict is None:
        raise InvalidConstraint(f"certify: {constraint!r:.80} has no to_dict(), so a certificate cannot state it.")
    made: dict[str, Any] = to_dict()
    return made


def _check_reads_back(constraint: Constraint, written: dict[str, Any], space: FeatureSpace, factual: Point) -> None:
    """Refuse a constraint that does not mean the same when it is read back."""
    if isinstance(constraint, Typical):
        return
    try:
        read = _read_constraint(written, "here")
        same = read == constraint or read.bind(space, factual) == constraint.bind(space, factual)
    except MaceError:
        same = False
    if not same:
        raise InvalidConstraint(
            f"certify: {constraint!s:.80} does not mean the same when it is written down and read back. Pass it as text."
        )


def _read_constraint(entry: object, place: str) -> Constraint:
    match expect(entry, dict, place):
        case {"kind": str(kind), "arguments": list(arguments), **rest} if not rest:
            try:
                made: Constraint = CONSTRAINTS.load(kind)(*arguments)
            except (MaceError, TypeError, ValueError) as error:
                raise InvalidCertificate(f"{place}: {error}") from error
            return made
    raise InvalidCertificate(f"{place}: {entry!r:.80} is not a constraint; its keys are kind and arguments.")


# ---- causes


def _read_causes(entry: object, space: FeatureSpace) -> Causal:
    place = "statement.causes"
    for name, text in expect(entry, dict, place).items():
        if len(expect(text, str, f"{place}.{name}")) > MOST_TEXT:
            raise InvalidCertificate(f"{place}.{name}: a text of {len(text)} characters is too long.")
    try:
        made = Causal(expect(entry, dict, place))
        made.programs(space)
    except MaceError as error:
        raise InvalidCertificate(f"{place}: {error}") from error
    return made


# ---- diversity


def _differ_dict(diversity: Differ) -> dict[str, Any]:
    if diversity.in_sets:
        return {"in_sets": True}
    return {"features": diversity.features, "by": diversity.by, "distance": diversity.distance}


def _read_differ(entry: object, *, is_needed: bool) -> Differ:
    if not is_needed and entry is None:
        return differ()
    match entry:
        case {"in_sets": True, **rest} if not rest:
            return differ(in_sets=True)
        case {"features": features, "by": by, "distance": distance, **rest} if not rest:
            try:
                return differ(features=features, by=by, distance=distance)
            except (MaceError, TypeError) as error:
                raise InvalidCertificate(f"statement.diversity: {error}") from error
    raise InvalidCertificate(f"statement.diversity: {entry!r:.80} does not say how counterfactuals differ.")


def check_can_state(statement: Statement) -> None:
    """Refuse, before anything is solved, a question that cannot be written down."""
    try:
        written = statement.to_dict()["constraints"]
    except InvalidProgram as error:
        raise InvalidDistance(f"certify: {error}") from error
    for constraint, made in zip(statement.constraints, written, strict=True):
        _check_reads_back(constraint, made, statement.space, statement.factual)

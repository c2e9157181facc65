"""The question that a certificate answers, written down in full, and made a problem again with the user's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mace.certify.certificate import check_keys, expect
from mace.certify.entries import (
    check_reads_back,
    constraint_dict,
    differ_dict,
    distance_dict,
    read_causes,
    read_constraint,
    read_differ,
    read_distance,
    read_target,
    target_dict,
)
from mace.certify.verdict import Refuted, Unchecked
from mace.constraints import Condition, Constraint
from mace.constraints.causal import Causal
from mace.constraints.differ import Differ
from mace.constraints.typical import Typical, typical
from mace.distances import Distance, FunctionDistance
from mace.errors import (
    InvalidCertificate,
    InvalidDistance,
    InvalidProgram,
    MaceError,
    MissingPackage,
)
from mace.models import Reading, read
from mace.models.fingerprint import fingerprint
from mace.problem import Problem
from mace.space import FeatureSpace, Point, Scalar
from mace.space.features import is_missing
from mace.targets import AnyOf, Between, goal_of, reached

STATEMENT_KEYS = {"model", "space", "factual", "target", "distance", "constraints", "diversity", "earlier", "accuracy"}

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
            "space": {key: each for key, each in self.space.to_dict().items() if key != "wording"},
            "factual": row_of(self.space, self.factual),
            "target": target_dict(self.target),
            "distance": distance_dict(self.distance, self.space, self.factual),
            "constraints": [constraint_dict(each, self.space, self.factual) for each in self.constraints],
            "diversity": differ_dict(self.diversity) if self.earlier else None,
            "earlier": [row_of(self.space, point) for point in self.earlier],
            "accuracy": self.accuracy,
            **({} if self.causes is None else {"causes": self.causes.texts(self.space)}),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Statement:
        """Return the statement that :meth:`to_dict` wrote; anything odd is an :class:`InvalidCertificate`."""
        check_keys(data, STATEMENT_KEYS | (set(data) & {"causes"}), "statement")
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
            target=read_target(data["target"]),
            distance=read_distance(data["distance"]),
            constraints=tuple(
                read_constraint(entry, f"statement.constraints[{number}]")
                for number, entry in enumerate(expect(data["constraints"], list, "statement.constraints"))
            ),
            diversity=read_differ(data["diversity"], is_needed=bool(earlier)),
            earlier=tuple(earlier),
            accuracy=float(accuracy),
            causes=read_causes(data["causes"], space) if "causes" in data else None,
        )

    def problem(self, model: Any, *, version: int = 2) -> tuple[Problem, Reading]:
        """Return the question about a model, as a certificate of a version states it.

        The fingerprints of version 1 depend on the processor that read the model: a difference of the form says nothing there, and
        the rest of the certificate must hold of the model at hand.

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
            if found[part] != self.model[part] and (part, version) != ("form", 1):
                raise Refuted(
                    f"this is another model: it {name} than the one that the certificate is about (fingerprint of its {part} "
                    f"{found[part][:12]}..., in the certificate {str(self.model[part])[:12]}...)"
                )
        return self.of_reading(reading), reading

    def of_reading(self, reading: Reading) -> Problem:
        """Return the question about a model as read."""
        try:
            current = reading.ask([self.factual])[0]
            goal, ask = goal_of(self.target, reading, current)
            if said := reached(self.target, reading, self.factual, current):
                raise Refuted(f"there is nothing to change: the row is already predicted {said}")
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
        return [
            condition
            for point in self.earlier
            for condition in self.diversity.bind(self.space, self.factual, point, self.distance)
        ]

    def after(self, point: Point) -> Statement:
        """Return the statement of a further counterfactual, different from ``point`` too."""
        return replace(self, earlier=(*self.earlier, point))


def as_target(target: object) -> AnyOf | Between | None:
    """Return what a user asks for as one of three kinds."""
    return target if target is None or isinstance(target, AnyOf | Between) else AnyOf((target,))


def row_of(space: FeatureSpace, point: Point) -> Row:
    """Return a point as a row for JSON, ``None`` where missing."""
    return {name: None if is_missing(value) else value for name, value in space.values_of(point).items()}


def _point(space: FeatureSpace, row: object, where: str) -> Point:
    try:
        return space.point(expect(row, dict, where))
    except InvalidCertificate:
        raise
    except MaceError as error:
        raise InvalidCertificate(f"{where}: {error}") from error


def check_can_state(statement: Statement) -> None:
    """Refuse, before anything is solved, a question that cannot be written down."""
    try:
        written = statement.to_dict()["constraints"]
    except InvalidProgram as error:
        raise InvalidDistance(f"certify: {error}") from error
    for constraint, made in zip(statement.constraints, written, strict=True):
        check_reads_back(constraint, made, statement.space, statement.factual)

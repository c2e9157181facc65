"""The distances that users name: norms, their convex combinations, and functions; and a distance from one factual."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mace.distances.change import change, change_command, differs, greatest_change, written_change
from mace.distances.l0 import L0
from mace.distances.norm import Norm, Parts
from mace.errors import InvalidDistance, InvalidProgram, did_you_mean
from mace.exact import decimal_fraction, root_down, root_up
from mace.language import Symbol, divides_by_variable, parse, run, syntax
from mace.language.syntax import total
from mace.language.values import Reads
from mace.registry import Registry
from mace.space import RESERVED, FeatureSpace, Point, Value
from mace.space.decimals import decimal_of
from mace.space.features import plain_scalar

NORMS = Registry(
    "distances",
    {
        "l0": "mace.distances.l0:L0",
        "l1": "mace.distances.l1:L1",
        "l2": "mace.distances.l2:L2",
        "linf": "mace.distances.linf:LInf",
    },
    InvalidDistance,
)
WITH_ARGUMENT = ("l0", "l1", "linf", "l2")
"""Those that a :class:`Distance` has an argument for."""


class Metric(Protocol):
    """A distance from one factual.

    ``measure`` is the distance to the ``power`` (2 for l2, else 1): exact where the distance itself need not be rational.
    """

    @property
    def power(self) -> int:
        """2 where the measure is the square of the distance, else 1."""
        ...

    def measure(self, point: Point) -> Fraction:
        """Return the measure of a point, exactly."""
        ...

    def floats(self, deltas: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the measure of many rows of changes δ in floats; ``None`` where it is not a function of the changes."""
        ...

    def program(self) -> syntax.Program:
        """Return the measure as a program over the features."""
        ...

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return the greatest change δ of one feature that a point within distance ``bound`` can have; 1 is any change, greater too."""
        ...

    def next_above(self, bound: Fraction) -> Fraction:
        """Return the least distance above ``bound`` that a point can have; ``bound`` itself where that is not known."""
        ...


def distance_up(metric: Metric, measure: Fraction) -> Fraction:
    """Return the distance of a measure, rounded up where it is irrational."""
    return root_up(measure) if metric.power == 2 else measure


def distance_down(metric: Metric, measure: Fraction) -> Fraction:
    """Return the distance of a measure, rounded down where it is irrational."""
    return root_down(measure) if metric.power == 2 else measure


@dataclass(frozen=True)
class Distance:
    """A convex combination of norms with a weight for each feature.

    Parameters
    ----------
    l0, l1, linf : float
        The shares, none negative, with sum 1 (to within 1e-9; then normalised exactly). Weights alone are those of l1.
    l2 : float
        1 or 0: l2 stands alone.
    weights : mapping of str to float
        A positive weight for each feature that shall not count 1. Features that are not named count 1, unlike those of
        :func:`~mace.changes_at_most`, which do not count.
    others : mapping of str to float
        The shares of norms that other packages register as entry points of the group ``mace.distances``.

    Examples
    --------
    >>> print(Distance(l0=0.5, l1=0.5))
    0.5 l0 + 0.5 l1
    """

    l0: float = 0.0
    l1: float = 0.0
    linf: float = 0.0
    l2: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.others, Mapping) or not self.others.keys() <= NORMS.keys() - set(WITH_ARGUMENT):
            known = ", ".join(sorted(NORMS.keys() - set(WITH_ARGUMENT))) or "none"
            raise InvalidDistance(f"others is {self.others!r}; give shares of the norms of other packages: {known}.")
        for name, share in self._shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not math.isfinite(share) or share < 0:
                raise InvalidDistance(f"{name} is {share!r}; a share is a number from 0 to 1.")
        if self.weights and not any(self._shares.values()):
            object.__setattr__(self, "l1", 1.0)
        whole = sum(self._shares.values())
        if abs(whole - 1) > 1e-9:
            raise InvalidDistance(f"The shares {' + '.join(self._shares)} add up to {whole}; they must add up to 1.")
        if self.l2 and self.l2 != whole:
            raise InvalidDistance("l2 cannot be mixed with other norms: its square is what is solved. Use l2=1 alone.")
        if not isinstance(self.weights, Mapping):
            raise InvalidDistance(f"weights is {self.weights!r}; give a dict from features to positive numbers.")
        object.__setattr__(self, "weights", {name: plain_scalar(weight) for name, weight in self.weights.items()})
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise InvalidDistance(f"The weight of {name!r} is {weight!r}; it must be a positive number.")

    @property
    def _shares(self) -> dict[str, float]:
        return {"l0": self.l0, "l1": self.l1, "linf": self.linf, "l2": self.l2, **self.others}

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as plain data."""
        made = {name: getattr(self, name) for name in WITH_ARGUMENT} | {"weights": dict(self.weights)}
        return made | ({"others": dict(self.others)} if self.others else {})

    def from_factual(self, space: FeatureSpace, factual: Point) -> Metric:
        """Return the distance from ``factual``."""
        for name in self.weights:
            if name not in space:
                raise InvalidDistance(f"weights: there is no feature {name!r}.{did_you_mean(name, space)}")
        shape = _shape(tuple(self._shares.items()), tuple(self.weights.get(name, 1) for name in space))
        return NormMetric(space, factual, *shape, power=2 if self.l2 else 1)

    def written_from(self, space: FeatureSpace, row: Point) -> NormMetric:
        """Return the distance from ``row`` with shares and weights as the decimals that are written: for limits on distances."""
        made = self.from_factual(space, row)
        assert isinstance(made, NormMetric)
        shares = tuple((name, decimal_fraction(share)) for name, share in self._shares.items())
        weights = tuple(decimal_fraction(self.weights.get(name, 1)) for name in space)
        if all(share == self._shares[name] for name, share in shares) and weights == made.weights:
            return made
        return NormMetric(space, row, *_shape(shares, weights), power=made.power)

    def __repr__(self) -> str:
        shares = [f"{name}={share:g}" for name, share in self._shares.items() if share]
        listed = f"weights={dict(self.weights)!r}"
        weights = listed if len(listed) <= 120 else f"weights of {len(self.weights)} features"
        return f"Distance({', '.join([*shares, *([weights] if self.weights else [])])})"

    def __str__(self) -> str:
        named = [name for name, share in self._shares.items() if share == 1]
        mixed = " + ".join(f"{share:g} {name}" for name, share in self._shares.items() if share)
        return (named[0] if named else mixed) + (", weighted" if self.weights else "")


class FloatParts(NamedTuple):
    """What a change of each feature contributes, as in :class:`Parts`, in floats."""

    jump: NDArray[np.float64]
    slope: NDArray[np.float64]
    square: NDArray[np.float64]
    peak: NDArray[np.float64]


Shares = tuple[tuple[Norm, Fraction], ...]


@dataclass(frozen=True)
class NormMetric:
    """A convex combination of norms from one factual.

    ``parts`` is what each feature's change contributes, ``costs`` the same as floats; both are the same objects for the same
    combination, so that what solvers make of them is made once.
    """

    space: FeatureSpace
    factual: Point
    norms: Shares
    weights: tuple[Fraction, ...]
    parts: tuple[Parts, ...]
    costs: FloatParts
    power: int = 1

    def measure(self, point: Point, *, written: bool = False) -> Fraction:
        """Return the measure of a point, exactly; of decimals, where ``written``."""
        total = top = Fraction(0)
        for feature, new, old, part in zip(self.space.values(), point, self.factual, self.parts, strict=True):
            if new == old:
                continue
            delta = (written_change if written else change)(feature, new, old)
            if delta:
                total += part.jump + (part.slope + part.square * delta) * delta
                top = max(top, part.peak * delta)
        return total + top

    def floats(self, deltas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the measure of many rows of changes."""
        weights = np.array([float(weight) for weight in self.weights])
        return sum((float(share) * norm.floats(deltas, weights) for norm, share in self.norms), np.zeros(len(deltas)))

    def program(self, *, written: bool = False) -> syntax.Program:
        """Return the measure as a program: one δ a feature, of decimals where ``written``, then the norms of them."""
        names = [f"{RESERVED}delta({name})" for name in self.space]
        steps = [
            change_command(name, feature, old, delta, written=written)
            for (name, feature), old, delta in zip(self.space.items(), self.factual, names, strict=True)
        ]
        deltas = [syntax.Variable(name) for name in names]
        changed = [
            differs(name, feature, old) for (name, feature), old in zip(self.space.items(), self.factual, strict=True)
        ]
        terms = [(norm.expression(deltas, changed, self.weights), share) for norm, share in self.norms]
        value = total(term if share == 1 else syntax.Binary("*", syntax.constant(share), term) for term, share in terms)
        return syntax.Program(self.space.names, syntax.sequence([*steps, syntax.Return(value)]))

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return the greatest change δ of one feature that a point within distance ``bound`` can have; 1 is any change, greater too."""
        parts = self.parts[index]
        if self.power == 2:
            return min(Fraction(1), root_up(bound * bound / parts.square))
        if parts.jump > bound:
            return Fraction(0)
        slope = parts.slope + parts.peak
        return min(Fraction(1), (bound - parts.jump) / slope) if slope else Fraction(1)

    def next_above(self, bound: Fraction) -> Fraction:
        """Return the next multiple of 1/J for l0 with equal weights; no more is known of other distances."""
        if len(self.norms) > 1 or not isinstance(self.norms[0][0], L0) or len(set(self.weights)) > 1:
            return bound
        grain = Fraction(1, len(self.weights))
        return (bound // grain + 1) * grain

    def up_to_one(self) -> tuple[NormMetric, int]:
        """Return the distance in units in which no two rows are farther apart than 1, and how much such a unit is: a power of two."""
        most = [greatest_change(feature) for feature in self.space.values()]
        if all(each == 1 for each in most):
            return self, 1
        pairs = list(zip(most, self.parts, strict=True))
        total = sum(part.jump + (part.slope + part.square * delta) * delta for delta, part in pairs)
        total += max(part.peak * delta for delta, part in pairs)
        unit = 1
        while unit**self.power < total:
            unit *= 2
        norms, parts, costs = _divided(self.norms, self.parts, unit**self.power)
        return replace(self, norms=norms, parts=parts, costs=costs), unit


@lru_cache(maxsize=64)
def _shape(
    shares: tuple[tuple[str, float | Fraction], ...], weights: tuple[float | Fraction, ...]
) -> tuple[Shares, tuple[Fraction, ...], tuple[Parts, ...], FloatParts]:
    """Return the norms with their exact shares, the exact weights, and what each feature's change contributes."""
    whole = sum(Fraction(share) for _, share in shares)
    norms = tuple((NORMS.load(name)(), Fraction(share) / whole) for name, share in shares if share)
    exact = tuple(Fraction(weight) for weight in weights)
    for name, share in shares:
        if share and name != "l2" and any(part.square for part in NORMS.load(name)().parts(exact)):
            raise InvalidDistance(f"the norm {name!r} has squares; of these only l2 is known, alone.")
    parts = _mixed([(norm.parts(exact), share) for norm, share in norms], len(exact))
    return norms, exact, parts, _as_floats(parts)


@lru_cache(maxsize=64)
def _divided(norms: Shares, parts: tuple[Parts, ...], by: int) -> tuple[Shares, tuple[Parts, ...], FloatParts]:
    """Return norms, and what changes contribute to them, divided by a number."""
    made = tuple(Parts(*(getattr(part, name) / by for name in FloatParts._fields)) for part in parts)
    return tuple((norm, share / by) for norm, share in norms), made, _as_floats(made)


def _as_floats(parts: tuple[Parts, ...]) -> FloatParts:
    return FloatParts(*(np.array([float(getattr(part, name)) for part in parts]) for name in FloatParts._fields))


def _mixed(each: list[tuple[list[Parts], Fraction]], features: int) -> tuple[Parts, ...]:
    return tuple(
        Parts(
            jump=sum((share * parts[j].jump for parts, share in each), Fraction(0)),
            slope=sum((share * parts[j].slope for parts, share in each), Fraction(0)),
            square=sum((share * parts[j].square for parts, share in each), Fraction(0)),
            peak=sum((share * parts[j].peak for parts, share in each), Fraction(0)),
        )
        for j in range(features)
    )


@dataclass(frozen=True)
class FunctionDistance:
    """A distance that the user wrote as a Python function ``(new, old)``; parsed, never executed."""

    function: Callable[..., object] | str

    def from_factual(self, space: FeatureSpace, factual: Point) -> Metric:
        """Return the distance from ``factual``."""
        return self._read(space, [_known(name, value) for name, value in zip(space, factual, strict=True)], Fraction)

    def written_from(self, space: FeatureSpace, row: Point) -> FunctionMetric:
        """Return the distance from ``row`` over decimals: features and constants stand for those that are written."""
        pairs = zip(space.items(), row, strict=True)
        numbers = [decimal_of(feature, float(_known(name, value))) for (name, feature), value in pairs]
        return self._read(space, numbers, decimal_fraction)

    def _read(self, space: FeatureSpace, numbers: list[Fraction], reads: Reads) -> FunctionMetric:
        new = {name: Symbol.of(space[name], syntax.Variable(name)) for name in space}
        old = {
            name: Symbol.of(space[name], syntax.Constant(number)) for name, number in zip(space, numbers, strict=True)
        }
        try:
            parsed = parse(self.function, records=[new, old], reads=reads)
        except InvalidProgram as error:
            raise InvalidDistance(f"cannot read the distance: {error}") from error
        if parsed.labels is not None:
            raise InvalidDistance("The distance returns text; it must return a number.")
        if divides_by_variable(parsed.program):
            raise InvalidDistance(
                "The distance divides by something that depends on the new row, or by 0 for this one; it must be defined everywhere. "
                "Divide by numbers only."
            )
        return FunctionMetric(space, syntax.Program(space.names, parsed.program.body))

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", "<text>")
        return "the given" if name.startswith("<") else name


def _known(name: str, value: Value) -> Fraction:
    if value is None:
        raise InvalidDistance(f"{name!r} is missing in this row; a distance function cannot take a missing value.")
    return Fraction(value)


@dataclass(frozen=True)
class FunctionMetric:
    """A user's distance from one factual."""

    space: FeatureSpace
    code: syntax.Program
    power: int = 1

    def measure(self, point: Point) -> Fraction:
        """Return the distance of a point, exactly."""
        value = run(self.code, point_values(self.space, point))
        if value < 0:
            raise InvalidDistance(
                f"The distance is {float(value)} at {self.space.values_of(point)}; it must not be negative."
            )
        return value

    def floats(self, deltas: NDArray[np.float64]) -> None:
        """Return ``None``: the function sees values, not changes."""
        return

    def program(self) -> syntax.Program:
        """Return the function's program."""
        return self.code

    def reach(self, index: int, bound: Fraction) -> Fraction:
        """Return 1: nothing is known of the function."""
        return Fraction(1)

    def next_above(self, bound: Fraction) -> Fraction:
        """Return ``bound``: nothing is known of the function."""
        return bound


def point_values(space: FeatureSpace, point: Point) -> dict[str, Fraction | None]:
    """Return a point as the values of a program's inputs."""
    return {name: None if value is None else Fraction(value) for name, value in zip(space.names, point, strict=True)}


def as_distance(distance: object) -> Distance | FunctionDistance:
    """Return the distance that a user named, built or wrote."""
    if isinstance(distance, Distance | FunctionDistance):
        return distance
    if isinstance(distance, str):
        if distance.lstrip().startswith(("lambda", "def ")):
            return FunctionDistance(distance)
        NORMS.load(distance)
        return Distance(**{distance: 1.0}) if distance in WITH_ARGUMENT else Distance(others={distance: 1.0})  # type: ignore[arg-type]
    if callable(distance):
        return FunctionDistance(distance)
    raise InvalidDistance(
        f"{distance!r} is not a distance. Use {', '.join(map(repr, NORMS))}, mace.Distance(l0=0.5, l1=0.5), or a function (new, old)."
    )

"""The distances that users name: norms, their convex combinations, and functions; and a distance from one factual."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from mace.distances.metric import FloatParts, Metric, NormMetric, PartsMetric, Shares, as_floats
from mace.distances.norm import Parts
from mace.distances.people import WAYS, deviation_weights, scales_of, summary
from mace.distances.percentile import PercentileMetric
from mace.errors import InvalidDistance, InvalidProgram, did_you_mean
from mace.exact import Floats, decimal_fraction, exactly
from mace.language import Symbol, divides_by_variable, parse, run, syntax
from mace.language.values import Reads
from mace.registry import Registry
from mace.slips import about_distance
from mace.space import FeatureSpace, Point, Value
from mace.space.decimals import decimal_of
from mace.space.features import plain_scalar

NORMS = Registry(
    "distances",
    {
        "l0": "mace.distances.norms:L0",
        "l1": "mace.distances.norms:L1",
        "l2": "mace.distances.norms:L2",
        "linf": "mace.distances.norms:LInf",
    },
    InvalidDistance,
)
WITH_ARGUMENT = ("l0", "l1", "linf", "l2")
"""Those that a :class:`Distance` has an argument for."""


SAID_OF_WEIGHTS = {
    "mad": ", in median absolute deviations",
    "percentile": ", by the share of people passed",
    "own": ", weighted",
}
"""What the name of a distance says of its weights."""


@dataclass(frozen=True)
class Distance:
    """A convex combination of norms with a weight for each feature.

    Parameters
    ----------
    l0, l1, linf : float
        The shares, none negative, with sum 1 (to within 1e-9; then normalised exactly). Weights alone are those of l1.
    l2 : float
        1 or 0: l2 stands alone.
    weights : mapping of str to float, "mad" or "percentile"
        A positive weight for each feature that shall not count 1. Features that are not named count 1, unlike those of
        :func:`~mace.changes_at_most`, which do not count. ``"mad"``: a change of a number by the median absolute deviation of its
        column costs as much as another category. ``"percentile"``: a change of a number, or of a level in an order, costs the share
        of people whose values it passes.
    data : data frame, optional
        The people that ``"mad"`` and ``"percentile"`` are about, with a column for each feature. Of it a number, or about twenty
        values with how many people are at or below each, are kept for every column.
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
    weights: Mapping[str, float] | str = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    data: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.others, Mapping) or not self.others.keys() <= NORMS.keys() - set(WITH_ARGUMENT):
            known = ", ".join(sorted(NORMS.keys() - set(WITH_ARGUMENT))) or "none"
            raise InvalidDistance(f"others is {self.others!r}; give shares of the norms of other packages: {known}.")
        for name, share in self._shares.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not math.isfinite(share) or share < 0:
                alone = f" For that distance alone write distance={share!r}." if str(share) in NORMS else ""
                raise InvalidDistance(f"{name} is {share!r:.80}; a share is a number from 0 to 1.{alone}")
        if self.weights and not any(self._shares.values()):
            object.__setattr__(self, "l1", 1.0)
        whole = sum(self._shares.values())
        if abs(whole - 1) > 1e-9:
            raise InvalidDistance(f"The shares {' + '.join(self._shares)} add up to {whole}; they must add up to 1.")
        if self.l2 and self.l2 != whole:
            raise InvalidDistance("l2 cannot be mixed with other norms: its square is what is solved. Use l2=1 alone.")
        object.__setattr__(self, "weights", _checked(self.weights))
        object.__setattr__(self, "data", summary(self.weights, self.data))

    @property
    def _shares(self) -> dict[str, float]:
        return {"l0": self.l0, "l1": self.l1, "linf": self.linf, "l2": self.l2, **self.others}

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as plain data."""
        weights = self.weights if isinstance(self.weights, str) else dict(self.weights)
        made = {name: getattr(self, name) for name in WITH_ARGUMENT} | {"weights": weights}
        further = {"others": dict(self.others) if self.others else None, "data": self.data}
        return made | {name: value for name, value in further.items() if value is not None}

    def from_factual(self, space: FeatureSpace, factual: Point) -> PartsMetric:
        """Return the distance from ``factual``."""
        return self._metric(space, factual, tuple(self._shares.items()), self._weights(space))

    def written_from(self, space: FeatureSpace, row: Point) -> PartsMetric:
        """Return the distance from ``row`` with shares and weights as the decimals that are written: for limits on distances."""
        shares = tuple((name, decimal_fraction(share)) for name, share in self._shares.items())
        weights = tuple(each if isinstance(each, Fraction) else decimal_fraction(each) for each in self._weights(space))
        return self._metric(space, row, shares, weights)

    def _metric(
        self,
        space: FeatureSpace,
        row: Point,
        shares: tuple[tuple[str, float | Fraction], ...],
        weights: tuple[float | Fraction, ...],
    ) -> PartsMetric:
        made, power = _shape(shares, weights), 2 if self.l2 else 1
        if self.weights == "percentile":
            return PercentileMetric(space, row, *made, power=power, scales=scales_of(space, self.data))
        return NormMetric(space, row, *made, power=power)

    def _weights(self, space: FeatureSpace) -> tuple[float | Fraction, ...]:
        """Return the weight of each feature."""
        if self.weights == "mad":
            return deviation_weights(space, self.data)
        given = {} if isinstance(self.weights, str) else self.weights
        for name in given:
            if name not in space:
                raise InvalidDistance(f"weights: there is no feature {name!r}.{did_you_mean(name, space)}")
        return tuple(given.get(name, 1) for name in space)

    def __repr__(self) -> str:
        shares = [f"{name}={share:g}" for name, share in self._shares.items() if share]
        listed = f"weights={self.weights!r}"
        weights = listed if len(listed) <= 120 else f"weights of {len(self.weights)} features"
        return f"Distance({', '.join([*shares, *([weights] if self.weights else [])])})"

    def __str__(self) -> str:
        named = [name for name, share in self._shares.items() if share == 1]
        mixed = " + ".join(f"{share:g} {name}" for name, share in self._shares.items() if share)
        kind = self.weights if isinstance(self.weights, str) else "own" if self.weights else ""
        return (named[0] if named else mixed) + SAID_OF_WEIGHTS.get(kind, "")


def distance_text(distance: str) -> str:
    """Return a distance as sentences name it: ``l1 distance, weighted``.

    Examples
    --------
    >>> distance_text("l1, in median absolute deviations")
    'l1 distance, in median absolute deviations'
    """
    said = next((each for each in SAID_OF_WEIGHTS.values() if distance.endswith(each)), "")
    return f"{distance.removesuffix(said)} distance{said}"


def _checked(weights: object) -> dict[str, float] | str:
    """Return weights as plain numbers, or what they are made of."""
    if isinstance(weights, str) and weights in WAYS:
        return weights
    if not isinstance(weights, Mapping):
        raise InvalidDistance(
            f"weights is {weights!r:.80}; give a dict from features to positive numbers, or 'mad' or 'percentile' with data=X_train."
        )
    made = {name: plain_scalar(weight) for name, weight in weights.items()}
    for name, weight in made.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise InvalidDistance(f"The weight of {name!r} is {weight!r}; it must be a positive number.")
    return made  # type: ignore[return-value]


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
    return norms, exact, parts, as_floats(parts)


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

    def floats(self, deltas: Floats) -> None:
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
    return {name: None if value is None else exactly(value) for name, value in zip(space.names, point, strict=True)}


def as_distance(distance: object) -> Distance | FunctionDistance:
    """Return the distance that a user named, built or wrote."""
    if isinstance(distance, Distance | FunctionDistance):
        return distance
    if isinstance(distance, str):
        if distance.lstrip().startswith(("lambda", "def ")):
            return FunctionDistance(distance)
        slip = "" if distance in NORMS else about_distance(distance, NORMS)
        if slip:
            raise InvalidDistance(f"distance={distance!r:.80}: {slip}")
        NORMS.load(distance)
        return Distance(**{distance: 1.0}) if distance in WITH_ARGUMENT else Distance(others={distance: 1.0})  # type: ignore[arg-type]
    if callable(distance):
        return FunctionDistance(distance)
    if isinstance(distance, Mapping):
        raise InvalidDistance(
            f"{distance!r:.80} is not a distance. Write mace.Distance(l1=1, weights={distance!r:.80})."
        )
    raise InvalidDistance(
        f"{distance!r} is not a distance. Use {', '.join(map(repr, NORMS))}, mace.Distance(l0=0.5, l1=0.5), or a function (new, old)."
    )

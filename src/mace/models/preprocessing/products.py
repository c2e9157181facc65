"""PolynomialFeatures: powers of a column, and products of columns.

A power of a column, and a product as a function of one of its columns, is monotone on each side of 0 in floating point: each
multiplication is correctly rounded, and its size does not fall where that of a factor rises.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.models.preprocessing.traced import MONOTONE, Given, Shape, Step, Traced, values_at
from mace.space import Real

TURNS_AT_ZERO = Shape(cuts=(math.nextafter(0.0, -1.0), 0.0))


def polynomial_features(step: Step) -> list[Traced]:
    """PolynomialFeatures: 1, the inputs, their powers and products."""
    return [_output(step, k, powers) for k, powers in enumerate(np.asarray(step.fitted.powers_))]


def _output(step: Step, k: int, powers: NDArray[Any]) -> Traced:
    factors = [int(i) for i in np.flatnonzero(powers)]
    if not factors:
        return step.constant(1.0, "1")
    name = " ".join(step.inputs[i].name for i in factors)
    if len(factors) == 1:
        source = step.inputs[factors[0]]
        if powers.sum() == 1:
            return step.output(k, factors[0], name, shape=MONOTONE, lower=lambda ground: ground.of(source))
        if source.is_mixed and source.joint is None:
            raise _projected(step, name)
        return step.output(k, factors[0], f"{name}^{powers.sum()}", shape=TURNS_AT_ZERO)
    if any(step.inputs[i].is_mixed and step.inputs[i].joint is None for i in factors):
        raise _projected(step, name)
    reads = tuple(sorted({j for i in factors for j in step.inputs[i].reads or (step.inputs[i].feature,)}))
    return _joint(step, k, name, powers, reads) if len(reads) > 1 else _of_one(step, k, name, factors, reads[0])


def _projected(step: Step, name: str) -> Exception:
    return step.refuse(
        f"it multiplies {name!r}, a mixture of all features. Put it before the projection, or leave it out."
    )


def _of_one(step: Step, k: int, name: str, factors: list[int], feature: int) -> Traced:
    """Return a product of several columns of one feature, whose every value is asked."""
    if isinstance(list(step.space.values())[feature], Real):
        raise step.refuse(
            f"it multiplies several columns of {step.space.names[feature]!r}, which is real. Multiply one of them, or declare it as "
            "integer or levels if it is."
        )

    def values(x: NDArray[Any]) -> NDArray[Any]:
        return step.ask({i: step.inputs[i].values(x) for i in factors})[:, k]

    raw = Traced(step.space.names[feature], feature, None)
    return Traced(name, feature, None, values=values, local=values, parents=(raw,), where=step.where)


def _joint(step: Step, k: int, name: str, powers: NDArray[Any], reads: tuple[int, ...]) -> Traced:
    """Return a product of powers of columns of several features."""
    sources = {int(i): step.inputs[i] for i in np.flatnonzero(powers)}

    def joint(given: Given) -> NDArray[Any]:
        return step.ask({i: values_at(source, given) for i, source in sources.items()})[:, k]

    def along(feature: int, given: Given) -> Traced:
        moving = [i for i, source in sources.items() if feature in (source.reads or (source.feature,))]
        if len(moving) > 1:
            raise step.refuse(f"it multiplies several columns of {step.space.names[feature]!r}, which is real.")
        source = sources[moving[0]]
        below = source if source.along is None else source.along(feature, given)
        rest = {i: values_at(other, given) for i, other in sources.items() if i != moving[0]}

        def local(s: NDArray[Any]) -> NDArray[Any]:
            return step.ask({moving[0]: s, **{i: np.repeat(value, len(s)) for i, value in rest.items()}})[:, k]

        return Traced(
            name,
            feature,
            None,
            values=lambda x: local(below.values(x)),
            local=local,
            shape=TURNS_AT_ZERO,
            parents=(below,),
            where=step.where,
            floats=step.floats_out[k],
        )

    return Traced(
        name,
        reads[0],
        (-1.0, 1.0),
        parents=tuple(sources.values()),
        where=step.where,
        is_mixed=True,
        reads=reads,
        joint=joint,
        factors=tuple((source, int(powers[i])) for i, source in sources.items()),
        along=along,
    )

"""A question with one missingness pattern: the network, the factual and the costs that the kernels see.

The kernels know numbers and levels, nothing missing. So in a part

- a feature that is missing is a category of two levels, of which the second alone is allowed: the factual is there if it is missing
  too, and else pays for the change. Its columns hold what the model is given of a missing value, whatever the level;
- a feature that is filled costs the same whatever its value: the factual lies outside of its range, and the change costs its jump
  alone. What counts in a maximum is paid by a category of its own, whose second level alone is allowed (the feature itself keeps so
  small a share of it that it never decides).

Costs are those of the distance, exactly.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mace.distances import NormMetric
from mace.forms import Network
from mace.problem import Problem
from mace.recent import Recent
from mace.solvers.domains import Allowed, allowed_values
from mace.solvers.missing import Pattern
from mace.solvers.network.prepared import Costs, PreparedNetwork, costs, form_of, prepared
from mace.space import Categorical, Column, Feature, FeatureSpace, Filled, Integer, Real, Value

SHARE_OF_MAXIMUM = 2.0**-40
"""How much of its part in a maximum a filled feature keeps."""

MOST_KEPT = 64
"""The most patterns whose networks are kept for the next question."""

KNOWN_OR_MISSING = ("known", "missing")
ONLY_MISSING = Allowed(((1.0, 1.0),), False)
"""Of two levels only the second."""


@dataclass(frozen=True, slots=True)
class NetworkPart:
    """One missingness pattern.

    Attributes
    ----------
    made : PreparedNetwork
        The network of this part.
    factual : tuple of numbers
        The factual of this part.
    allowed : list of Allowed, optional
        What each of its features may be; ``None`` where that is their whole domain.
    costs : Costs
        What changes cost.
    pattern : bool array, optional
        Which features are missing; ``None`` where none can be.
    is_plain : bool
        Whether its arrays are those of every question without conditions.
    """

    made: PreparedNetwork
    factual: tuple[Value, ...]
    allowed: list[Allowed] | None
    costs: Costs
    pattern: Pattern | None = None
    is_plain: bool = False


def whole(problem: Problem) -> NetworkPart:
    """Return the only part of a question in which nothing can be missing."""
    assert isinstance(problem.form, Network)
    assert isinstance(problem.metric, NormMetric)
    made = prepared(problem.form)
    allowed = allowed_values(problem) if problem.conditions else None
    return NetworkPart(made, problem.factual, allowed, costs(made, problem.metric), is_plain=not problem.conditions)


def part_of(problem: Problem, allowed: list[Allowed], pattern: Pattern) -> NetworkPart:
    """Return the part of one missingness pattern."""
    form, metric = problem.form, problem.metric
    assert isinstance(form, Network)
    assert isinstance(metric, NormMetric)
    filled = [j for j, own in enumerate(problem.factual) if own is None and not pattern[j]]
    has_peaks = bool(metric.costs[3].any())
    dummies = len(filled) if has_peaks else 0
    network = network_of(form, pattern, dummies)
    features = list(network.space.values())
    factual: list[Value] = list(problem.factual)
    for j, own in enumerate(problem.factual):
        if pattern[j]:
            factual[j] = 1 if own is None else 0
        elif own is None:
            factual[j] = _outside(features[j])
    may = [ONLY_MISSING if pattern[j] else replace(each, missing=False) for j, each in enumerate(allowed)]
    return NetworkPart(
        prepared(network),
        (*factual, *([0] * dummies)),
        may + [ONLY_MISSING] * dummies,
        _costs(metric, filled, dummies),
        pattern,
    )


_NETWORKS: weakref.WeakKeyDictionary[Network, Recent[tuple[bytes, int], Network]] = weakref.WeakKeyDictionary()


def network_of(form: Network, pattern: Pattern, dummies: int = 0) -> Network:
    """Return the network of one missingness pattern, made once."""
    known, key = _NETWORKS.setdefault(form, Recent(MOST_KEPT)), (pattern.tobytes(), dummies)
    return known.get(key) or known.put(key, _made(form, pattern, dummies))


def _made(form: Network, pattern: Pattern, dummies: int) -> Network:
    features: dict[str, Feature] = {
        name: Categorical(KNOWN_OR_MISSING) if is_missing else _known(feature)
        for (name, feature), is_missing in zip(form.space.items(), pattern, strict=True)
    }
    features |= {
        f"{KNOWN_OR_MISSING[1]} {number} of {len(form.space)}": Categorical(KNOWN_OR_MISSING)
        for number in range(dummies)
    }
    kept = [k for k, column in enumerate(form.columns) if pattern[column.feature] or not _is_flag(column)]
    return replace(
        form,
        space=FeatureSpace(features),
        columns=tuple(_column(form.columns[k], bool(pattern[form.columns[k].feature])) for k in kept),
        weights=(np.ascontiguousarray(form.weights[0][:, kept]), *form.weights[1:]),
        # A flag that is 0 is left out, but the library adds it.
        steps=form.steps + len(form.columns) - len(kept),
    )


def _known(feature: Feature) -> Feature:
    return replace(feature, missing=False) if isinstance(feature, Real | Integer) else feature


def _is_flag(column: Column) -> bool:
    return isinstance(column, Filled) and column.is_flag


def _column(column: Column, is_missing: bool) -> Column:
    if not is_missing:
        return Column(column.name, column.feature, column.table)
    assert isinstance(column, Filled)
    return Column(column.name, column.feature, (column.missing, column.missing))


def _outside(feature: Any) -> float | int:
    """Return a number below all values of a feature."""
    below = feature.low - (feature.high - feature.low) - 1
    return int(below) if isinstance(feature, Integer) else float(below)


def _costs(metric: NormMetric, filled: list[int], dummies: int) -> Costs:
    jump, slope, square, peak = (np.concatenate([each, np.zeros(dummies)]) for each in metric.costs)
    if dummies:
        peak[len(peak) - dummies :] = peak[filled]
    jump[filled] = (jump + slope + square)[filled]
    slope[filled] = square[filled] = 0.0
    peak[filled] *= SHARE_OF_MAXIMUM
    return Costs(metric.parts, jump, slope, square, peak, form_of(metric))

"""Random small networks and linear models with a question each, for the seeded sample in the tests and the large campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

import mace
from mace.constraints.condition import GuardCondition
from mace.constraints.differ import CountDifferent
from mace.distances import as_distance
from mace.exact import UNIT
from mace.forms import Interval, Network, Outcomes
from mace.forms.network import SQUASH_UNITS
from mace.forms.scoring import column_values
from mace.language.syntax import Binary, Compare, Constant, Expression, Variable, total
from mace.problem import Bounds, Limits, Problem
from mace.space import Point, encoded_columns

FAMILIES = (
    "linear",
    "one layer",
    "two layers",
    "three layers",
    "leaky",
    "float32",
    "multiclass",
    "regressor",
    "probability",
)
DISTANCES = ("l0", "l1", "l2", "linf", "mixed", "weighted")
MOST_POINTS = 3000
SINGLE = Fraction(1, 2**24)


@dataclass(frozen=True)
class NetworkCase:
    """A family, and a problem of it."""

    family: str
    problem: Problem


def random_network(seed: int, *, finite: bool = True) -> NetworkCase:
    """Return a random problem; the same seed gives the same problem."""
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    while True:
        space = _space(rng, finite=finite, most=12 if finite else 6)
        factual = _point(rng, space)
        form = _form(rng, family, space, factual)
        ask = asked(form)
        goal, ask = _goal(rng, family, form, ask, factual)
        if goal is not None and not goal.accepts(ask([factual])[0]):
            break
    kind = DISTANCES[(seed // len(FAMILIES)) % len(DISTANCES)]
    problem = Problem(
        space=space,
        form=form,
        ask=ask,
        goal=goal,
        factual=factual,
        metric=_distance(rng, kind, space).from_factual(space, factual),
        conditions=(*_constraints(rng, space, factual), *_across(rng, space, finite), *_diversity(rng, space, factual)),
    )
    return NetworkCase(family, problem)


def real_network(seed: int) -> NetworkCase:
    """Return a random problem over 7 to 12 features, most of them real, under l1 or linf."""
    rng = np.random.default_rng(seed)
    family = ("one layer", "two layers", "leaky", "three layers", "float32", "probability")[seed % 6]
    while True:
        features: dict[str, Any] = {f"real_{n}": mace.real(-1.0, 1.0) for n in range(int(rng.integers(7, 11)))}
        if seed % 3 == 0:
            features |= {"integer": mace.integer(0, 9), "kind": mace.categorical(["a", "b", "c"])}
        space = mace.FeatureSpace(features)
        factual = _point(rng, space)
        form = _form(rng, family, space, factual, widths=[int(n) for n in rng.integers(3, 9, 3)])
        goal, ask = _goal(rng, family, form, asked(form), factual)
        if goal is not None and not goal.accepts(ask([factual])[0]):
            break
    metric = as_distance("linf" if seed % 4 < 2 else "l1").from_factual(space, factual)
    return NetworkCase(family, Problem(space, form, ask, goal, factual, metric))


def mixture_network(seed: int) -> NetworkCase:
    """Return a random problem over 7 to 12 features, most of them real, under a mixture of norms, for which units are not split."""
    case = real_network(seed)
    metric = as_distance(mace.Distance(l0=0.3, l1=0.3, linf=0.4))
    problem = replace(case.problem, metric=metric.from_factual(case.problem.space, case.problem.factual))
    return replace(case, problem=problem)


def asked(form: Network) -> Any:
    """Return a function that evaluates a network in the arithmetic that it names, as a library would."""
    single = form.unit != UNIT
    dtype = np.float32 if single else np.float64

    def scores(points: Sequence[Point]) -> Any:
        active = column_values(form.columns, points).astype(dtype)
        for k, (weight, bias) in enumerate(zip(form.weights, form.biases, strict=True)):
            if k:
                active = np.where(active >= 0, active, form.slopes[k - 1].astype(dtype) * active)
            active = active @ weight.astype(dtype).T + bias.astype(dtype)
        return active

    def ask(points: Sequence[Point]) -> list[Fraction]:
        values = scores(points)
        if form.is_regressor:
            return [Fraction(float(row[0])) for row in values]
        if form.is_binary:
            return [Fraction(int(row[0] > 0)) for row in values]
        return [Fraction(int(np.argmax(row))) for row in values]

    return ask


def _space(rng: np.random.Generator, *, finite: bool, most: int) -> mace.FeatureSpace:
    features: dict[str, Any] = {}
    points = 1
    for index in range(int(rng.integers(2, most + 1))):
        kind = str(rng.choice(["integer", "ordinal", "categorical", "step", "real", "binary", "huge"]))
        low = int(rng.integers(-5, 5))
        if kind == "integer":
            made: Any = mace.integer(low, low + int(rng.integers(0, 7)), step=rng.choice([None, 2]))
        elif kind == "ordinal":
            made = mace.ordinal([f"level {k}" for k in range(int(rng.integers(1, 5)))])
        elif kind == "categorical":
            made = mace.categorical([f"kind {k}" for k in range(int(rng.integers(1, 6)))])
        elif kind == "binary":
            made = mace.categorical([False, True])
        elif kind == "step" or finite:
            step = float(rng.choice([0.5, 0.1, 0.3]))
            made = mace.real(low, low + step * int(rng.integers(1, 7)), step=step)
        elif kind == "huge":
            made = mace.integer(low, low + 10**6)
        else:
            made = mace.real(low, low + float(rng.uniform(0.5, 9)))
        if finite and points * (made.size or 1) > MOST_POINTS:
            continue
        points *= made.size or 1
        features[f"{kind}_{index}"] = made
    return mace.FeatureSpace(features)


def _point(rng: np.random.Generator, space: mace.FeatureSpace) -> Point:
    values: list[int | float] = []
    for feature in space.values():
        if hasattr(feature, "levels"):
            values.append(int(rng.integers(len(feature.levels))))
        elif feature.size is not None and rng.random() < 0.9:
            values.append(feature.value_at(int(rng.integers(feature.size))))
        elif isinstance(feature.low, int):
            values.append(int(rng.integers(feature.low, feature.high + 1)))
        else:
            values.append(float(rng.uniform(feature.low, feature.high)))
    return tuple(values)


def _form(
    rng: np.random.Generator,
    family: str,
    space: mace.FeatureSpace,
    factual: Point,
    widths: Sequence[int] | None = None,
) -> Network:
    """Return a random network whose score at the factual is near 0, some of whose weights are 0 or tie.

    Hidden layers have the first of some ``widths``, or random ones.
    """
    columns = encoded_columns(
        space,
        categorical=rng.choice(["onehot", "codes"]),  # type: ignore[arg-type]
        ordinal=rng.choice(["thermometer", "codes"]),  # type: ignore[arg-type]
    )
    hidden = {"linear": 0, "one layer": 1, "two layers": 2, "three layers": 3}.get(family, int(rng.integers(0, 3)))
    if widths is not None:
        hidden = max(1, hidden)
    outputs = int(rng.integers(3, 5)) if family == "multiclass" else 1
    inner = widths[:hidden] if widths is not None else [int(rng.integers(1, 7)) for _ in range(hidden)]
    widths = [len(columns), *inner, outputs]
    values = column_values(columns, [factual])[0]
    scale = np.maximum(1.0, np.array([float(list(space.values())[c.feature].range or 1) for c in columns]))
    coarse = rng.random() < 0.3
    weights, biases, slopes = [], [], []
    for k, (inputs, units) in enumerate(pairwise(widths)):
        weight = rng.normal(size=(units, inputs)) / (scale if k == 0 else 1.0)
        if coarse and k:
            weight = np.round(2 * weight) / 2
        weight[rng.random(weight.shape) < 0.1] = 0.0
        if family == "float32":
            weight = weight.astype(np.float32).astype(np.float64)
        around = rng.normal(0, 0.7, units) - weight @ values
        bias = np.asarray(around.astype(np.float32), dtype=np.float64) if family == "float32" else around
        slope = np.zeros(units)
        if family == "leaky":
            slope = rng.choice([0.0, 0.01, 0.25, 1.0], units)
        values = weight @ values + bias
        values = np.where(values >= 0, values, slope * values)
        weights.append(weight)
        biases.append(bias)
        slopes.append(slope)
    return Network(
        space=space,
        columns=columns,
        weights=tuple(weights),
        biases=tuple(biases),
        slopes=tuple(slopes[:-1]),
        unit=SINGLE if family == "float32" else UNIT,
        squash=SQUASH_UNITS * UNIT if hidden and family != "regressor" else Fraction(0),
        link="identity" if family == "regressor" else "none",
        is_regressor=family == "regressor",
    )


def _goal(rng: np.random.Generator, family: str, form: Network, ask: Any, factual: Point) -> tuple[Any, Any]:
    current = ask([factual])[0]
    if family == "regressor":
        low = current + Fraction(float(rng.normal(0.5, 0.7)))
        high = low + Fraction(float(rng.uniform(0, 2))) if rng.random() < 0.5 else None
        return Interval(low, high, 0, low, high), ask
    if family == "probability":

        def rate(points: Sequence[Point]) -> list[Fraction]:
            scores = [float(form.exact_scores(point)[0]) for point in points]
            return [Fraction(1 / (1 + float(np.exp(-score)))) for score in scores]

        bound = Fraction(float(rng.uniform(0.3, 0.9)))
        score = Fraction(float(np.log(float(bound / (1 - bound)))))
        return Interval(bound, None, 0, score, None, slack=Fraction(1, 2**40)), rate
    if family == "multiclass" and rng.random() < 0.5:
        wanted = int(rng.integers(len(form.biases[-1])))
        return Outcomes(frozenset([Fraction(wanted)])), ask
    return Outcomes(frozenset([current]), negated=True), ask


def _distance(rng: np.random.Generator, kind: str, space: mace.FeatureSpace) -> Any:
    if kind == "mixed":
        return mace.Distance(l0=0.25, l1=0.25, linf=0.5)
    if kind == "weighted":
        weights = {name: float(rng.choice([0.5, 1.0, 3.0])) for name in space}
        return mace.Distance(**{str(rng.choice(["l0", "l1", "l2", "linf"])): 1.0}, weights=weights)
    return as_distance(kind)


def _constraints(rng: np.random.Generator, space: mace.FeatureSpace, factual: Point) -> list[Any]:
    made: list[Any] = []
    for name, feature in space.items():
        is_ordered = not isinstance(feature, type(mace.categorical(["x"])))
        draw = rng.random()
        if draw < 0.1:
            made.append(mace.fixed(name))
        elif draw < 0.15 and is_ordered:
            made.append(mace.increases(name))
        elif draw < 0.2 and is_ordered:
            made.append(mace.decreases(name))
        elif draw < 0.3 and hasattr(feature, "levels"):
            chosen = rng.choice(len(feature.levels), int(rng.integers(1, len(feature.levels) + 1)), replace=False)
            made.append(mace.one_of(name, [feature.levels[k] for k in chosen]))
        elif draw < 0.25:
            made.append(mace.within(name, feature.low, (feature.low + feature.high) / 2))
        elif draw < 0.3 and not isinstance(feature.low, int) and feature.step is None:
            values = [float(rng.uniform(feature.low, feature.high)) for _ in range(3)]
            made.append(mace.one_of(name, values))
    return [constraint.bind(space, factual) for constraint in made]


def _across(rng: np.random.Generator, space: mace.FeatureSpace, finite: bool) -> list[GuardCondition]:
    """Return, now and then, a linear inequality across features."""
    names = [name for name, feature in space.items() if not isinstance(feature, type(mace.categorical(["x"])))]
    if len(names) < 2 or rng.random() > 0.25:
        return []
    chosen = [str(name) for name in rng.choice(names, 2, replace=False)]
    factors = [Fraction(int(rng.choice([-2, -1, 1, 3]))) for _ in chosen]
    terms: list[Expression] = [Binary("*", Constant(f), Variable(n)) for f, n in zip(factors, chosen, strict=True)]
    middle = sum((f * Fraction(_middle(space[n])) for f, n in zip(factors, chosen, strict=True)), Fraction(0))
    sign = str(rng.choice(["<=", "<", ">=", ">"]))
    return [GuardCondition(Compare(sign, total(terms), Constant(middle)))]  # type: ignore[arg-type]


def _middle(feature: Any) -> float:
    return (len(feature.levels) - 1) // 2 if hasattr(feature, "levels") else (feature.low + feature.high) / 2


def _diversity(rng: np.random.Generator, space: mace.FeatureSpace, factual: Point) -> list[CountDifferent]:
    if rng.random() > 0.15:
        return []
    earlier = _point(rng, space)
    by = Fraction(str(rng.choice(["0", "0.01", "0.1"])))
    return [CountDifferent(space, earlier, int(rng.integers(1, 3)), by)]


def without(case: NetworkCase, condition: type) -> NetworkCase:
    """Return the case without conditions of one sort."""
    kept = tuple(c for c in case.problem.conditions if not isinstance(c, condition))
    return replace(case, problem=replace(case.problem, conditions=kept))


def disagreement(
    case: NetworkCase, referee: str, *, seconds: float = 30.0, solve: Callable[[Problem, Limits], Bounds] | None = None
) -> str | None:
    """Return how the network lane and a referee differ on a problem; ``None`` where they agree, ``"skipped"`` where the referee gave up."""
    from mace.problem import Status
    from mace.solvers import enumerate as brute
    from mace.solvers import milp, network
    from mace.solvers.abilities import obstacle
    from mace.solvers.smt import search as smt

    problem = case.problem
    reason = obstacle(network, problem)
    if reason:
        return f"not supported: {reason}"
    network.prepare()
    answer = (solve or network.solve)(problem, Limits.of(seconds))
    referees: dict[str, Any] = {"enumerate": brute, "smt": smt, "milp": milp}
    truth = referees[referee].solve(problem, Limits.of(seconds))
    status, expected = answer.status(problem.accuracy), truth.status(problem.accuracy)
    if answer.point is not None and not (problem.is_plausible(answer.point) and problem.is_reached(answer.point)):
        return "the point is not valid"
    if truth.upper is not None and answer.lower > truth.upper:
        return f"lower {float(answer.lower)!r} above a point at {float(truth.upper)!r}"
    if answer.upper is not None and truth.lower > answer.upper:
        return f"upper {float(answer.upper)!r} below a lower bound of {float(truth.lower)!r}"
    if expected == Status.INFEASIBLE and answer.upper is not None:
        return "a point where none exists"
    if truth.reason:
        return "skipped"
    if status != expected:
        return f"status {status} ({answer.reason}), {referee} {expected} ({truth.reason})"
    if truth.upper is None or answer.upper is None:
        return None
    tolerance = Fraction(1, 10**12) if referee == "enumerate" else Fraction(11, 10**7)
    if abs(answer.upper - truth.upper) > tolerance:
        return f"distance {float(answer.upper)!r}, {referee} {float(truth.upper)!r}"
    return None

"""Bugs planted one by one in what the search uses: whenever the bound that it then claims is false, the checker does not confirm it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
from estimators import small
from random_constraints import random_constrained
from random_ensembles import random_ensemble
from random_problems import random_case
from realism_by_definition import (
    explained,
    nearest,
    nearest_intervention,
    random_intervention,
    random_realistic,
)
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tampering import every_point

import mace
from mace.certify.statement import Statement


@dataclass(frozen=True)
class Asked:
    """A question, and the least distance of an answer that is known by other means than the search."""

    explain: Callable[[], mace.Explanation]
    model: Any
    nearest: Callable[[], Fraction | None]
    forests: tuple[Any, ...] = ()


Pool = Callable[[int], Asked | None]
"""Questions by seed; each call reads the model anew, so that nothing made before a bug was planted is used again."""


def by_brute_force(explain: Callable[[], mace.Explanation], model: Any) -> Callable[[], Fraction | None]:
    """Return a look at every point of a finite space."""

    def least() -> Fraction | None:
        answer = explain()
        proof = answer[0].certificate if len(answer) else answer.certificate
        assert proof is not None
        problem, _ = Statement.from_dict(proof.statement).problem(model)
        points = [point for point in every_point(problem) if problem.is_plausible(point)]
        return min((problem.distance(point) for point in points if problem.is_reached(point)), default=None)

    return least


def by_a_witness(explain: Callable[[], mace.Explanation], model: Any) -> Callable[[], Fraction | None]:
    """Return the distance of the answer of the search before a bug is planted, which the model confirms."""

    def least() -> Fraction | None:
        answer = explain()
        assert len(answer)
        assert answer[0].certificate is not None
        assert mace.verify(answer[0].certificate, model).valid
        return Fraction(answer[0].distance)

    return least


# ---- questions


def ensembles(seed: int) -> Asked | None:
    case = random_ensemble(seed)

    def explain() -> mace.Explanation:
        question = {key: value for key, value in case.question.items() if key not in ("count", "diversity")}
        return mace.Explainer(case.model, case.space).explain(case.row, certify=True, time_limit=60, **question)

    return Asked(explain, case.model, by_brute_force(explain, case.model))


def constrained(seed: int) -> Asked | None:
    case = random_constrained(seed)
    if case is None:
        return None

    def explain() -> mace.Explanation:
        explainer = mace.Explainer(case.explainer.model, case.explainer.space)
        question = {"distance": case.distance, "constraints": case.constraints}
        return explainer.explain(case.row, certify=True, time_limit=60, **question)

    return Asked(explain, case.explainer.model, by_brute_force(explain, case.explainer.model))


def functions(seed: int) -> Asked | None:
    case = random_case(9 * seed + 8)
    assert case.family == "function"

    def explain() -> mace.Explanation:
        return mace.Explainer(case.model, case.space).explain(case.row, solver="smt", certify=True, **case.question)

    return Asked(explain, case.model, by_brute_force(explain, case.model))


def general(seed: int) -> Asked | None:
    case = random_case(9 * seed + 8)

    def explain() -> mace.Explanation:
        return mace.Explainer(case.model, case.space).explain(case.row, solver="milp", certify=True, **case.question)

    return Asked(explain, case.model, by_brute_force(explain, case.model))


def listed(seed: int) -> Asked | None:
    case = random_case(seed)

    def explain() -> mace.Explanation:
        explainer = mace.Explainer(case.model, case.space)
        return explainer.explain(case.row, solver="enumerate", certify=True, **case.question)

    return Asked(explain, case.model, by_brute_force(explain, case.model))


def realistic(kind: str, *families: str) -> Pool:
    """Return questions with a constraint of a kind about models of some families."""

    def made(seed: int) -> Asked | None:
        case = random_realistic(seed, kind)
        if case is None or case.family not in families:
            return None

        def fresh() -> Any:
            again = random_realistic(seed, kind)
            assert again is not None
            return again

        return Asked(lambda: explained(fresh()), case.explainer.model, lambda: nearest(fresh()), case.forests)

    made.__name__ = f"{kind} {' '.join(families)}"
    return made


def interventions(seed: int) -> Asked | None:
    case = random_intervention(seed)
    if case is None:
        return None
    return Asked(
        lambda: case.explainer.explain(case.row, certify=True, time_limit=60),
        case.model,
        lambda: nearest_intervention(case),
    )


SPACE = mace.FeatureSpace(
    {"a": mace.real(0, 10), "n": mace.integer(1, 3), "e": mace.real(-20, 20), "f": mace.real(-30, 30)}
)


def causal(equations: dict[str, str], family: str, *, is_bound: bool = False) -> Pool:
    """Return questions about real features of which some follow from others; ``is_bound``: the first effect is kept from rising farther."""

    def made(seed: int) -> Asked | None:
        rng = np.random.default_rng([seed, 41])
        frame = pd.DataFrame(
            {
                "a": rng.uniform(0, 10, 200),
                "n": rng.integers(1, 4, 200),
                "e": rng.uniform(-20, 20, 200),
                "f": rng.uniform(-30, 30, 200),
            }
        )
        score = rng.normal() * frame.a + 2 * frame.n + 0.8 * frame.e + 0.3 * frame.f
        settings: dict[str, Any] = {
            "forest": {"n_estimators": 4},
            "linear": {"max_iter": 1000},
            "network": {"hidden_layer_sizes": (3,), "max_iter": 300},
        }
        model = make_pipeline(mace.Encoder(SPACE), small(family, seed, **settings[family])).fit(
            frame, (score > score.median()).astype(int)
        )
        row = dict(frame.iloc[int(np.argmin(np.abs(score - score.quantile(0.3))))])
        # Effects are dear, so that it is their causes that are acted upon.
        distance = mace.Distance(l1=1.0, weights=dict.fromkeys(equations, 40.0))

        constraints: list[str] = []

        def explain() -> mace.Explanation:
            explainer = mace.Explainer(model, SPACE, mace.Causal(equations) if equations else None)
            target = 1 - explainer.predict(row)
            return explainer.explain(
                row, target=target, distance=distance, constraints=constraints, certify=True, time_limit=60
            )

        if is_bound:
            constraints.append(f"e <= {max(explain()[0].values['e'], row['e']) + 1}")
        return Asked(explain, model, by_a_witness(explain, model))

    return made


def signs(seed: int) -> Asked | None:
    """Return a question about a network of many real features, of whose units some are split."""
    rng = np.random.default_rng([seed, 59])
    space = mace.FeatureSpace({name: mace.real(-1, 1) for name in "pqrstuvw"})
    frame = pd.DataFrame(rng.uniform(-1, 1, (300, 8)), columns=list(space))
    labels = (np.sin(4 * frame.p) * np.cos(3 * frame.q) + frame.r * frame.s > 0.1).astype(int)
    network = small("network", seed, hidden_layer_sizes=(8, 6), max_iter=120)
    model = make_pipeline(mace.Encoder(space), network).fit(frame, labels)
    row = dict(frame[model.predict(frame) == 0].iloc[0])

    def explain() -> mace.Explanation:
        explainer = mace.Explainer(model, space)
        return explainer.explain(row, target=1, distance="linf", round_to=None, certify=True, time_limit=60)

    return Asked(explain, model, by_a_witness(explain, model))


def gaps(seed: int) -> Asked | None:
    """Return a question whose nearest answer lacks a value."""
    rng = np.random.default_rng([seed, 47])
    space = mace.FeatureSpace({"p": mace.integer(0, 5, missing=True), "q": mace.integer(0, 5)})
    frame = pd.DataFrame({"p": rng.integers(0, 6, 200).astype(float), "q": rng.integers(0, 6, 200)})
    frame.loc[rng.random(200) < 0.3, "p"] = np.nan
    labels = (frame.p.isna() | (frame.q == 5)).astype(int)
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(3, random_state=seed)).fit(frame, labels)
    row = dict(frame[labels == 0].iloc[0])

    def explain() -> mace.Explanation:
        distance = mace.Distance(l1=1.0, weights={"q": 9.0})
        return mace.Explainer(model, space).explain(row, target=1, distance=distance, certify=True)

    return Asked(explain, model, by_brute_force(explain, model))


def single(seed: int) -> Asked | None:
    """Return a question about features of float32."""
    rng = np.random.default_rng([seed, 53])
    space = mace.FeatureSpace({name: mace.real(0, 5, dtype="float32") for name in "pq"})
    frame = pd.DataFrame(rng.uniform(0, 5, (150, 2)).astype(np.float32), columns=["p", "q"])
    labels = ((frame.p > 2.5) ^ (frame.q > 3)).astype(int)
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(3, random_state=seed)).fit(frame, labels)
    row = dict(frame.iloc[0])

    def explain() -> mace.Explanation:
        return mace.Explainer(model, space).explain(row, certify=True)

    return Asked(explain, model, by_a_witness(explain, model))


def voting(seed: int) -> Asked | None:
    rng = np.random.default_rng([seed, 43])
    space = mace.FeatureSpace({"p": mace.real(0, 5), "q": mace.real(0, 5)})
    frame = pd.DataFrame(rng.uniform(0, 5, (150, 2)), columns=["p", "q"])
    labels = (frame.p + rng.normal(0, 1, 150) > 2.5).astype(int)
    parts = [("one", LogisticRegression()), ("two", LogisticRegression(C=0.01))]
    model = make_pipeline(mace.Encoder(space), VotingClassifier(parts, voting="soft", weights=[2, 1])).fit(
        frame, labels
    )
    row = dict(frame.iloc[0])

    def explain() -> mace.Explanation:
        return mace.Explainer(model, space).explain(row, solver="curves", certify=True, time_limit=60)

    return Asked(explain, model, by_a_witness(explain, model))


# ---- bugs


@dataclass(frozen=True)
class Bug:
    """What is replaced, by what it was to what it is now, and the questions that show it."""

    where: str
    broken: Callable[[Any], Any]
    pool: Pool
    seeds: tuple[int, ...]
    settings: tuple[tuple[str, Any], ...] = ()


def after(change: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a way to break a function: what it returns is changed."""

    def broken(true: Any) -> Any:
        if isinstance(true, property):
            return property(lambda self: change(true.__get__(self)))
        return lambda *arguments, **named: change(true(*arguments, **named))

    return broken


def no_last(found: Any) -> Any:
    return found[:-1] if len(found) > 1 else found


def narrower(values: Any) -> Any:
    """A leaf's margins need more than they do."""
    return replace(values, need=values.need + 0.4, sure=values.sure + 0.4)


def every_other(allowed: Any) -> Any:
    """Every other cell of the ball is gone."""
    kept = allowed.copy()
    kept[1::2] = 0
    return kept


def short_of(goal: Any) -> Any:
    """The search needs more than the goal does, so that what it drops may be part of a counterfactual."""
    return goal._replace(need=goal.need + 0.4, sure=goal.sure + 0.4)


def shorter_last_cell(found: Any) -> Any:
    low, high, bound = found
    return low, high, np.minimum(bound + 1, len(low))


def forest_is_stricter(form: Any) -> Any:
    base = form.base.copy()
    base[-1] -= 1.5
    return replace(form, base=base)


def twice(true: Any) -> Any:
    """Noise is taken to be twice as large."""

    def reach(self: Any, name: str, low: Any, high: Any) -> Any:
        least, most = true(self, name, low, high)
        return least - self.radii.get(name, 0), most + self.radii.get(name, 0)

    return reach


def one_less(true: Any) -> Any:
    return lambda x: true(x - 1.0)


def up_to_less(true: Any) -> Any:
    return lambda self, name, number, *, below=False: true(self, name, number - 6, below=below)


def steeper(found: Any) -> Any:
    network, lost = found
    first = network.weights[0] * 0.5
    return replace(network, weights=(first, *network.weights[1:])), lost


def other_case(true: Any) -> Any:
    return lambda effects, levels: true(effects, dict.fromkeys(levels, 1))


def no_constant(true: Any) -> Any:
    return lambda form: true((form[0], form[1] - 3))


def swapped_margin(problem: Any) -> Any:
    """The forest is asked to call a row an outlier."""
    stated = tuple(
        (*each[:-1], replace(each[-1], plus=each[-1].minus, minus=each[-1].plus)) for each in problem.goal.stated
    )
    return replace(problem, goal=replace(problem.goal, stated=stated))


def farther(left: Any) -> Any:
    return replace(left, floor=left.floor + Fraction(1, 5))


def nothing_is_missing(true: Any) -> Any:
    def of(self: Any, count: int) -> Iterator[Any]:
        yield from (true(self, count) if count == 0 else ())

    return of


def lowered(line: Any) -> Any:
    return replace(line, heights=tuple(height - 0.1 for height in line.heights))


def first_alternative(true: Any) -> Any:
    return lambda parts, region: true(parts[:1], region)


def fewer_numbers(true: Any) -> Any:
    def between(self: Any, low: Any, high: Any) -> Any:
        made = true(self, low, high)
        return replace(made, high=made.high - 1) if made.is_whole and made.high - made.low > 1 else made

    return between


def biased(true: Any) -> Any:
    def net(form: Any, layout: Any) -> Any:
        biases = tuple(bias - 0.7 if k == len(form.biases) - 1 else bias for k, bias in enumerate(form.biases))
        return true(replace(form, biases=biases), layout)

    return net


def apart(true: Any) -> Any:
    """Neither side of a unit's split reaches 0."""

    def tried(self: Any, node: Any, k: int, i: int, side: int, box: Any) -> Any:
        child = true(self, node, k, i, side, box)
        (child.low if side else child.high)[k, i] = 0.3 * (node.high if side else node.low)[k, i]
        return child

    return tried


def dearer(true: Any) -> Any:
    """The bound of a linear program is too high."""

    def bound(self: Any, multipliers: Any, cost: Any, low: Any, high: Any) -> Any:
        return true(self, multipliers, cost, low, high) + 0.5 * cost.any()

    return bound


def never_nearer(true: Any) -> Any:
    return lambda self, bound: true(self, bound) if bound is None else False


def too_far(found: Any) -> Any:
    add, stays = found
    return add * 2.5, stays


TREES = ("forest", "boosting")
NETWORKS = ("linear", "network")
PRICES = (
    ("mace.solvers.trees.search:NODES_BEFORE_PRICES", 0),
    ("mace.solvers.trees.search:PLAIN_SHARE", -1.0),
    ("mace.solvers.trees.search:LEAST_PROOF", 5.0),
)

SPLITS = (
    ("mace.solvers.network.units.handover:BOXES_BEFORE_SPLITS", 0),
    ("mace.solvers.network.units.handover:FEW_NUMBERS", 0),
)
WITHOUT_A_FIRST_POINT = (
    ("mace.solvers.milp.search:seek", lambda *_: None),
    ("mace.solvers.milp.search:FIRST_NODES", 0),
)

BUGS: dict[str, Bug] = {
    # Joins
    "join: depths are rounded down coarsely": Bug(
        "mace.reductions.joint_forest:_on_grains", lambda _: np.floor, realistic("typical", *TREES), (1, 6)
    ),
    "join: the forest starts lower": Bug(
        "mace.reductions.joint_forest:as_one", after(forest_is_stricter), realistic("typical", *TREES), (1, 6, 21)
    ),
    "join: the forest's margin is turned round": Bug(
        "mace.reductions.joint_forest:_with", after(swapped_margin), realistic("typical", *TREES), (10, 21, 35)
    ),
    # Copies
    "copies: gates let rows in that noise does not reach": Bug(
        "mace.reductions.tree_copies:_around",
        after(lambda ends: (ends[0] - 1, ends[1] + 1)),
        realistic("robust", *TREES),
        (10, 21, 26),
    ),
    "copies: what is not near is refused": Bug(
        "mace.reductions.tree_copies:_leaves_in_goal",
        after(lambda leaves: -leaves),
        realistic("robust", *TREES),
        (1, 10, 21),
    ),
    "noise: rows are moved twice as far": Bug(
        "mace.constraints.robust:RobustCondition.reach", twice, realistic("robust", *TREES, *NETWORKS), (1, 2, 7)
    ),
    # Moves
    "moves: a copy is moved too far": Bug(
        "mace.reductions.shifted_network:_columns", after(too_far), realistic("robust", *NETWORKS), (2, 7)
    ),
    # Effects
    "effects: a tree asks for the cause at another edge": Bug(
        "mace.reductions.effects:TracedEffects._column",
        after(lambda column: replace(column, values=one_less(column.values), local=one_less(column.local))),
        causal({"e": "2 * a - 10"}, "forest"),
        (4, 5, 8, 9),
    ),
    "effects: conditions are on the wrong numbers": Bug(
        "mace.reductions.effects:TracedEffects.up_to",
        up_to_less,
        causal({"e": "2 * a - 10"}, "forest", is_bound=True),
        (5, 6, 8),
    ),
    "effects: weights are handed on by half": Bug(
        "mace.reductions.effects:handed_on",
        after(steeper),
        causal({"e": "2 * a - 10", "f": "e + a"}, "linear"),
        (3, 5),
    ),
    "effects: a case has the equations of another": Bug(
        "mace.reductions.actions:in_case",
        other_case,
        causal({"e": "n * a"}, "forest"),
        (0, 4, 5),
    ),
    "effects: a piece loses its constant": Bug(
        "mace.reductions.actions:linear_sum",
        no_constant,
        causal({"e": "max(a, 2 * a - 4)"}, "linear"),
        (1, 3),
    ),
    # Cuts
    "cuts: neighbours lie within half of the radius": Bug(
        "mace.solvers.boxes.near_data:NeighboursCut.limit",
        after(lambda limit: limit / 2),
        realistic("near_data", *TREES, *NETWORKS),
        (1, 6),
    ),
    "cuts: usual rows are farther": Bug(
        "mace.solvers.boxes.typical:UsualCut.narrow", after(farther), realistic("typical", *NETWORKS), (2, 12)
    ),
    "cuts: one side is lost": Bug(
        "mace.solvers.boxes.guards:GuardsCut._parts",
        after(lambda parts: parts and no_last(parts)),
        constrained,
        (1, 6),
    ),
    # Regions and ranges
    "regions: of alternatives only the first counts": Bug(
        "mace.reductions.regions:_some", first_alternative, constrained, (3, 12)
    ),
    "ranges: the greatest whole number is lost": Bug(
        "mace.reductions.regions:Range.between", fewer_numbers, constrained, (6, 10, 12)
    ),
    "domains: the last range of values is lost": Bug(
        "mace.solvers.trees.parts:allowed_values",
        after(lambda found: [replace(each, spans=no_last(each.spans)) for each in found]),
        ensembles,
        (4, 11),
    ),
    # Cells, gains and prices
    "cells: a node's edge is one cell too high": Bug(
        "mace.solvers.trees.grid:_numeric_cells", after(shorter_last_cell), ensembles, (4, 7, 18)
    ),
    "dtypes: the ends of cells are rounded too coarsely": Bug(
        "mace.solvers.domains:rounded_in",
        after(lambda ends: (ends[0] + 2.0**-8, ends[1] - 2.0**-8)),
        single,
        (0, 1, 2, 3),
    ),
    "gains: the goal needs more": Bug("mace.solvers.trees.parts:margin_values", after(narrower), ensembles, (4, 6, 7)),
    "prices: the goal needs more": Bug(
        "mace.solvers.trees.parts:margin_values", after(narrower), ensembles, (4, 6, 7), PRICES
    ),
    "prices: a cell is dropped that may be needed": Bug(
        "mace.solvers.trees.engines:is_allowed", after(every_other), ensembles, (4, 6, 7), PRICES
    ),
    "prices: leaves and cells are dropped too soon": Bug(
        "mace.solvers.trees.engines:kernel_goal", after(short_of), ensembles, (4, 6, 7), PRICES
    ),
    "missing: values stay as they are": Bug(
        "mace.solvers.missing:Patterns._changing", nothing_is_missing, gaps, (0, 1)
    ),
    # Networks and curves
    "network: a bound is too low": Bug(
        "mace.solvers.network.prepared:net_arrays", biased, causal({}, "network"), (0, 2)
    ),
    "signs: a bound is too low": Bug("mace.solvers.network.prepared:net_arrays", biased, signs, (0, 6), SPLITS),
    "signs: the sides of a split leave a gap": Bug(
        "mace.solvers.network.units.search:SignSearch._tried", apart, signs, (0, 6), SPLITS
    ),
    "curves: polylines cross their sigmoids": Bug(
        "mace.solvers.curves.search:above_sigmoid", after(lowered), voting, (1, 3)
    ),
    # General lanes
    "milp: the bound of a linear program is too high": Bug(
        "mace.solvers.milp.relaxation:LinearRelaxation.safe_bound", dearer, general, (8, 11), WITHOUT_A_FIRST_POINT
    ),
    "bisection: nothing nearer is asked for": Bug(
        "mace.solvers.bisection:Bisection._possible", never_nearer, functions, (0, 1, 2)
    ),
    "enumerate: the last value of a feature is lost": Bug(
        "mace.solvers.enumerate:_domain", after(no_last), listed, (0, 2)
    ),
}


@cache
def known(pool: Pool, seed: int) -> tuple[bool, Fraction | None]:
    """Return whether there is a question of a seed, and the least distance of an answer to it."""
    asked = pool(seed)
    return (False, None) if asked is None else (True, asked.nearest())


def planted(bug: Bug, patch: pytest.MonkeyPatch) -> None:
    for place, value in bug.settings:
        module, _, name = place.partition(":")
        patch.setattr(import_module(module), name, value)
    module, _, path = bug.where.partition(":")
    owner: Any = import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    patch.setattr(owner, name, bug.broken(vars(owner)[name]))


def looked_at(bug: Bug, seed: int) -> tuple[bool, str] | None:
    """Return whether the bound that is claimed is false, and the verdict on the certificate; ``None`` where the seed has no question."""
    is_asked, best = known(bug.pool, seed)
    asked = bug.pool(seed)
    if not is_asked or asked is None:
        return None
    with pytest.MonkeyPatch.context() as patch:
        planted(bug, patch)
        try:
            answer = asked.explain()
        except AssertionError as error:
            if "returned a point that is not valid" not in str(error):
                raise
            return False, "noticed before anything was claimed"
        proof = answer[0].certificate if len(answer) else answer.certificate
        assert proof is not None
        # The bug is still there: what the checker shared with the search would be wrong for both.
        verdict = mace.verify(mace.Certificate.from_json(proof.to_json()), asked.model, forests=asked.forests)
    lower = math.inf if answer.status == "infeasible" else proof.claim["lower"]
    return best is not None and lower > best, verdict.outcome


@pytest.mark.parametrize("name", BUGS)
def test_a_false_bound_is_not_confirmed(name: str) -> None:
    bug = BUGS[name]
    found = {seed: looked_at(bug, seed) for seed in bug.seeds}
    assert None not in found.values(), "every seed has a question"
    confirmed = [seed for seed, (is_false, verdict) in found.items() if is_false and verdict == "valid"]
    assert not confirmed
    assert any(is_false for is_false, _ in found.values()), "the bug does harm"


@pytest.mark.slow
def test_without_a_bug_the_same_questions_have_valid_certificates() -> None:
    """The verdicts are not given to anything: of each pool, the first question is asked of the search as it is."""
    for pool, (seed, settings) in {bug.pool: (bug.seeds[0], bug.settings) for bug in BUGS.values()}.items():
        nothing = Bug("mace.problem:LATE", lambda true: true, pool, (seed,), settings)
        assert looked_at(nothing, seed) == (False, "valid")


def test_there_are_at_least_twenty_bugs() -> None:
    assert len({(bug.where, bug.settings) for bug in BUGS.values()}) >= 20

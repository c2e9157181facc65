"""Certificates of the tree lane: those of honest answers are valid, tampering is refused, and so are the proofs of broken solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from random_ensembles import random_ensemble
from random_problems import Case
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from tampering import REFUTED, TAMPERINGS, TRUE_OR_REFUSED, UNREADABLE, is_true, outcome_of, parts_of

import mace
from mace.certify.statement import Statement
from mace.constraints import fixed
from mace.exact import float_down
from mace.forms import Goal, Margin
from mace.problem import Limits, Problem
from mace.solvers import trees
from mace.space import Categorical, grid_values


def certificates(case: Case, **options: Any) -> list[mace.Certificate]:
    """Return the certificates of every answer to a question, and of there being none."""
    try:
        explanation = mace.Explainer(case.model, case.space).explain(case.row, **case.question, certify=True, **options)
    except mace.InvalidTarget:
        return []
    made = [counterfactual.certificate for counterfactual in explanation] + [explanation.certificate]
    return [certificate for certificate in made if certificate is not None]


@pytest.mark.parametrize("seed", range(51))
def test_certificates_of_random_ensembles_are_valid(seed: int) -> None:
    case = random_ensemble(seed, finite=seed % 2 == 0)
    for certificate in certificates(case):
        read = mace.Certificate.from_json(certificate.to_json())
        assert read.to_dict() == certificate.to_dict()
        assert mace.verify(read, case.model) == mace.Verdict("valid")


@pytest.mark.parametrize("seed", range(0, 34, 2))
def test_proofs_by_prices_are_valid(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees.search, "NODES_BEFORE_PRICES", 0)
    monkeypatch.setattr(trees.search, "PLAIN_SHARE", -1.0)
    monkeypatch.setattr(trees.search, "LEAST_PROOF", 5.0)
    case = random_ensemble(seed + 17, finite=seed % 4 == 0)
    for certificate in certificates(case):
        assert mace.verify(mace.Certificate.from_json(certificate.to_json()), case.model) == mace.Verdict("valid")
        if certificate.claim["upper"] is not None:
            assert mace.verify(just_beyond(certificate), case.model).outcome == "refuted"


def just_beyond(certificate: mace.Certificate) -> mace.Certificate:
    """Return the claim, with the same proof, that there is nothing up to just beyond the counterfactual."""
    upper = certificate.claim["upper"]
    lower = None if upper is None else upper * (1 + 1e-12) + 1e-300
    claim = {"status": "unknown", "lower": lower, "upper": None, "counterfactual": None}
    return replace(certificate, claim=claim)


# ---- proofs that no solver made


def complete_branching(problem: Problem, missing: tuple[int, ...]) -> tuple[list[int], list[float]]:
    """Return the cuts that take a finite space apart, value by value: the codes, and the values at which they cut."""
    code: list[int] = []
    cuts: list[float] = []
    free = [j for j in range(len(problem.space)) if j not in missing]

    def take_apart(position: int) -> None:
        if position == len(free):
            code.append(-1)
            return
        j = free[position]
        feature, own = list(problem.space.values())[j], problem.factual[j]
        values = sorted({float(v) for v in grid_values(feature)} | ({float(own)} if own is not None else set()))
        for value in values[:-1]:
            code.append(2 * j)
            cuts.append(value)
            take_apart(position + 1)
        take_apart(position + 1)

    take_apart(0)
    return code, cuts


def complete_proof(problem: Problem) -> dict[str, Any]:
    """Return the proof that looks at every point of a finite space, in every way of being missing, for every alternative of the goal."""
    form: Any = problem.form
    alternatives = problem.goal.alternatives(form.outputs, ties_last=form.ties_last)
    may_miss = [j for j, feature in enumerate(problem.space.values()) if feature.missing]
    codes: list[int] = []
    cuts: list[float] = []
    parts = []
    for number in range(len(alternatives)):
        for size in range(len(may_miss) + 1):
            for missing in combinations(may_miss, size):
                code, made = complete_branching(problem, missing)
                parts.append({"alternative": number, "missing": list(missing), "nodes": len(code)})
                codes += code
                cuts += made
    values, places = np.unique(np.array(cuts, dtype=np.float64), return_inverse=True)
    return {
        "lane": "trees",
        "parts": parts,
        "code": np.array(codes),
        "cut": places.astype(np.int64),
        "values": values,
        "sets": np.empty(0, dtype=np.int64),
    }


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 68, 3))
def test_a_proof_that_looks_at_everything_proves_what_is_true_and_nothing_else(seed: int) -> None:
    case = random_ensemble(seed)
    for certificate in certificates(case):
        problem, _ = Statement.from_dict(certificate.statement).problem(case.model)
        evidence = complete_proof(problem)
        if len(evidence["code"]) > 3000:
            continue
        complete = replace(certificate, evidence=evidence)
        assert mace.verify(complete, case.model) == mace.Verdict("valid")
        if certificate.claim["upper"] is not None:
            assert mace.verify(just_beyond(complete), case.model).outcome == "refuted"


@pytest.fixture(scope="module")
def priced() -> tuple[Case, mace.Certificate]:
    """A case with a proof by prices that needs them."""
    return _priced(lambda nodes, steps: steps > 3)


PER_STEP = ("node", "change", "multiplier")


def with_prices(certificate: mace.Certificate, **changed: Any) -> mace.Certificate:
    """Return a certificate with other prices in its first part."""
    data = parts_of(certificate)
    data["evidence"]["parts"][0]["prices"] |= changed
    return mace.Certificate(**data)


def without_steps(certificate: mace.Certificate, dropped: Any) -> mace.Certificate:
    """Return a certificate some of whose steps are left out."""
    prices = certificate.evidence["parts"][0]["prices"]
    return with_prices(certificate, **{name: np.delete(prices[name], dropped, axis=0) for name in PER_STEP})


def test_wrong_prices_are_refuted(priced: tuple[Case, mace.Certificate]) -> None:
    case, certificate = priced
    prices = certificate.evidence["parts"][0]["prices"]
    for name, factor in (("change", -1), ("change", 3), ("multiplier", 0.2), ("multiplier", 5.0), ("unit", 0.5)):
        verdict = mace.verify(with_prices(certificate, **{name: prices[name] * factor}), case.model)
        assert (verdict.outcome, "not closed by its prices" in verdict.reason) == ("refuted", True), (name, factor)
    # A pair whose tree does not exist would lower the worth of every cell, and nobody would pay for it.
    assert mace.verify(with_prices(certificate, tree=prices["tree"] + 1000), case.model).outcome == "refuted"
    for name in ("tree", "feature", "segments", "upper", *PER_STEP):
        verdict = mace.verify(with_prices(certificate, **{name: prices[name][:-1]}), case.model)
        assert verdict.outcome == "refuted", name
    for name, value in (("unit", 0.0), ("unit", -1.0), ("multiplier", -prices["multiplier"])):
        assert mace.verify(with_prices(certificate, **{name: value}), case.model).outcome == "refuted", name
    for name, value in (("node", prices["node"][::-1].copy()), ("change", prices["change"].astype(np.int64) * 2**44)):
        assert mace.verify(with_prices(certificate, **{name: value}), case.model).outcome == "refuted", name


def test_a_proof_without_some_of_its_prices_is_refuted(priced: tuple[Case, mace.Certificate]) -> None:
    case, certificate = priced
    code, node = certificate.evidence["code"], certificate.evidence["parts"][0]["prices"]["node"]
    everything = np.arange(len(node))
    assert mace.verify(without_steps(certificate, everything), case.model).outcome == "refuted"
    closing = np.flatnonzero(code[node] == -2)
    assert len(closing) > 2
    for dropped in (closing, everything[code[node] != -2], everything[1::2], everything[:1]):
        assert mace.verify(without_steps(certificate, dropped), case.model).outcome == "refuted"


def test_prices_that_drop_cells_and_leaves_prove_no_more_than_is_true(priced: tuple[Case, mace.Certificate]) -> None:
    """Whatever the prices, and whichever are left out, no claim beyond the nearest counterfactual is confirmed."""
    case, certificate = priced
    beyond = just_beyond(certificate)
    rng = np.random.default_rng(0)
    change, multiplier = (certificate.evidence["parts"][0]["prices"][name] for name in ("change", "multiplier"))
    for noise in (0, 0, 1, 3, 10, 100, 1000):
        shifted = change + np.rint(noise * rng.normal(size=change.shape)).astype(np.int64)
        scaled = multiplier * rng.uniform(0.9, 1.1, len(multiplier))
        for given in (beyond, without_steps(beyond, rng.integers(len(change)))):
            if noise:
                rows = slice(len(given.evidence["parts"][0]["prices"]["node"]))
                given = with_prices(given, change=shifted[rows], multiplier=scaled[rows])
            assert mace.verify(given, case.model).outcome == "refuted"


@pytest.mark.parametrize("seed", [14, 21, 22, 24, 30, 35, 40, 53, 55, 64])
def test_random_prices_confirm_nothing_that_brute_force_denies(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On spaces whose every point is known: claims beyond the nearest counterfactual, with prices that have nothing to do with them."""
    monkeypatch.setattr(trees.search, "NODES_BEFORE_PRICES", 0)
    monkeypatch.setattr(trees.search, "PLAIN_SHARE", -1.0)
    case, rng, tried = random_ensemble(seed, finite=True), np.random.default_rng(seed), 0
    for certificate in certificates(case):
        if certificate.claim["upper"] is None or not any(
            "prices" in part for part in certificate.evidence.get("parts", ())
        ):
            continue
        for _ in range(20):
            data = parts_of(just_beyond(certificate))
            for part in data["evidence"]["parts"]:
                if "prices" in part:
                    part["prices"] |= random_steps(part["prices"], part["nodes"], rng)
            tried += 1
            assert mace.verify(mace.Certificate(**data), case.model).outcome == "refuted"
    assert tried


def test_proofs_with_a_row_of_prices_for_each_box_are_read() -> None:
    """Version 0.1 wrote them so: nothing is dropped, and wrong prices close no box."""
    case, certificate = _priced(lambda nodes, steps: (nodes, steps) == (1, 1))
    prices = certificate.evidence["parts"][0]["prices"]
    old = {name: prices[name] for name in ("tree", "feature", "segments", "upper", "multiplier")}
    data = parts_of(certificate)
    for price, factor, outcome in ((1.0, 1.0, "valid"), (-1.0, 1.0, "refuted"), (1.0, 0.2, "refuted")):
        given = (price * prices["unit"] * prices["change"]).astype(np.float32)
        changed = old | {"price": given, "multiplier": factor * old["multiplier"]}
        data["evidence"]["parts"] = [{**certificate.evidence["parts"][0], "prices": changed}]
        assert mace.verify(mace.Certificate(**data), case.model).outcome == outcome
    data["evidence"]["parts"][0]["prices"] = changed | {"price": given[:, :-1]}
    assert mace.verify(mace.Certificate(**data), case.model).outcome == "refuted"


def random_steps(prices: dict[str, Any], nodes: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return prices at random for every node of a branching."""
    steps = int(rng.integers(1, 3)) * nodes
    size = 2.0 ** rng.integers(0, 20)
    rates = {"rates": rng.exponential(size=(steps, prices["rates"].shape[1]))} if "rates" in prices else {}
    return {
        "node": np.sort(rng.integers(nodes, size=steps)),
        "change": np.rint(size * rng.normal(size=(steps, prices["change"].shape[1]))).astype(np.int64),
        "multiplier": rng.exponential(size=steps) * 2.0 ** rng.integers(-4, 6),
        **rates,
    }


def test_far_rows_of_boosted_trees_have_proofs_whichever_engine_closed_their_balls() -> None:
    model, space, frame = _boosted()
    explainer = mace.Explainer(model, space)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees.search, "LEAST_PROOF", 60.0)
        for number in np.argsort(model.predict_proba(frame)[:, 1])[::200][:4]:
            made = explainer.explain(frame.iloc[int(number)], target=1, certify=True)[0].certificate
            assert made is not None
            assert mace.verify(made, model) == mace.Verdict("valid")


def _boosted() -> tuple[Any, mace.FeatureSpace, pd.DataFrame]:
    X, y = make_classification(2000, 12, n_informative=8, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(12)])
    model = HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(frame, y)
    return model, mace.FeatureSpace.from_frame(frame), frame


def _priced(is_wanted: Callable[[int, int], bool]) -> tuple[Case, mace.Certificate]:
    """Return a case with a proof by prices of which the numbers of nodes and of steps are wanted."""
    model, space, frame = _boosted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees.search, "NODES_BEFORE_PRICES", 0)
        patch.setattr(trees.search, "PLAIN_SHARE", -1.0)
        patch.setattr(trees.search, "LEAST_PROOF", 60.0)
        for number in np.argsort(model.predict_proba(frame)[:, 1])[::60]:
            case = Case("hist", model, space, dict(frame.iloc[int(number)]), {"target": 1})
            certificate = certificates(case)[0]
            part = certificate.evidence["parts"][0]
            if is_wanted(part["nodes"], len(part["prices"]["node"])):
                assert mace.verify(certificate, model).valid
                return case, certificate
    raise AssertionError("no proof needed prices")


def test_a_forest_of_many_trees_has_a_small_certificate() -> None:
    data = mace.datasets.load("compas")
    model = make_pipeline(mace.Encoder(data.space, ordinal="codes"), RandomForestClassifier(100, random_state=0))
    model.fit(data.frame, data.labels)
    explainer = mace.Explainer(model, data.space)
    for number in (3, 40, 77):
        certificate = explainer.explain(data.frame.iloc[number], certify=True)[0].certificate
        assert certificate is not None
        assert mace.verify(certificate, model).valid
        assert len(certificate.to_json()) < 100_000


# ---- tampering


@pytest.fixture(scope="module")
def honest() -> list[tuple[Case, mace.Certificate]]:
    """Certificates on finite spaces, where brute force can tell what is true."""
    cases = [random_ensemble(seed) for seed in (0, 2, 4, 6, 13, 15, 22, 31, 35, 57)]
    return [(case, certificate) for case in cases for certificate in certificates(case)]


@pytest.mark.parametrize("way", TAMPERINGS, ids=lambda way: way.name)
def test_tampering_is_refused_with_a_reason_that_names_it(
    way: Any, honest: list[tuple[Case, mace.Certificate]]
) -> None:
    rng = np.random.default_rng(7)
    tried = 0
    for case, certificate in honest:
        changed = way.change(parts_of(certificate), rng)
        if changed is None:
            continue
        tried += 1
        outcome, reason = outcome_of(changed, case.model)
        match way.kind:
            case "unreadable":
                assert outcome == UNREADABLE, (outcome, reason)
                assert way.words in reason
            case "refuted":
                assert outcome == REFUTED, (outcome, reason)
                assert way.words in reason
            case _:
                assert way.kind == TRUE_OR_REFUSED
                if outcome == "valid":
                    assert is_true(mace.Certificate(**changed), case.model)
    assert tried >= 2


def test_there_are_more_than_thirty_ways_to_tamper() -> None:
    assert len({way.name for way in TAMPERINGS}) == len(TAMPERINGS) > 50


def test_another_model_is_told() -> None:
    case, other = random_ensemble(1), random_ensemble(1 + 17)
    for certificate in certificates(case):
        verdict = mace.verify(certificate, other.model)
        assert verdict.outcome == "refuted"
        assert "model" in verdict.reason


# ---- broken solvers


@dataclass(frozen=True)
class Widened:
    """A goal whose margins a broken solver sees otherwise."""

    goal: Goal
    change: Callable[[Margin], Margin]
    slack: Fraction = Fraction(0)

    def accepts(self, outcome: Fraction) -> bool:
        return self.goal.accepts(outcome)

    def alternatives(self, outputs: int, *, ties_last: bool) -> Any:
        made = self.goal.alternatives(outputs, ties_last=ties_last)
        return tuple(tuple(self.change(margin) for margin in margins) for margins in made)


def too_tight(problem: Problem) -> Problem:
    """Every bound is 1e-6 too tight."""
    return replace(problem, goal=Widened(problem.goal, lambda m: replace(m, shift=m.shift - Fraction(1, 10**6))))


def wrong_ties(problem: Problem) -> Problem:
    """Equal scores go to the other class."""
    return replace(problem, goal=Widened(problem.goal, lambda m: replace(m, strict=not m.strict)))


def no_float32(problem: Problem) -> Problem:
    """Thresholds are compared in float64, with the number that is written in the model."""
    form: Any = problem.form
    return replace(problem, form=replace(form, edge=form.edge.astype(np.float32).astype(np.float64)))


def no_levels(problem: Problem) -> Problem:
    """Levels are never changed, as if their columns could not move together."""
    names = [name for name, feature in problem.space.items() if isinstance(feature, Categorical)]
    made = fixed(*names).bind(problem.space, problem.factual) if names else None
    return replace(problem, conditions=problem.conditions + ((made,) if made else ()))


def lost_trees(problem: Problem) -> Problem:
    """The last tree is forgotten."""
    form: Any = problem.form
    if len(form.roots) < 2:
        return problem
    end = form.roots[-1]
    kept = {
        name: getattr(form, name)[:end]
        for name in ("column", "edge", "left", "right", "missing_left", "value", "subset")
    }
    return replace(problem, form=replace(form, roots=form.roots[:-1], **kept))


def broken_certificate(
    certificate: mace.Certificate, model: Any, broken: Callable[[Problem], Problem]
) -> tuple[bool, mace.Certificate]:
    """Return what a broken solver claims with its own proof, and whether that is false; the honest answer is in the certificate."""
    problem, _ = Statement.from_dict(certificate.statement).problem(model)
    bounds = trees.solve(broken(problem), Limits(record=True))
    nearest = certificate.claim["upper"]
    lower = None if bounds.is_infeasible else float_down(bounds.lower)
    status = "infeasible" if bounds.is_infeasible else "unknown"
    claim = {"status": status, "lower": lower, "upper": None, "counterfactual": None}
    is_false = nearest is not None and (lower is None or lower > nearest)
    assert bounds.evidence is not None
    return is_false, replace(certificate, claim=claim, evidence=bounds.evidence)


def tie_cases() -> list[Case]:
    """Forests of an even number of trees with pure leaves, whose votes are often equal; the first class wins then."""
    space = mace.FeatureSpace({"a": mace.integer(0, 9), "b": mace.integer(0, 9), "c": mace.categorical(["x", "y"])})
    rng = np.random.default_rng(5)
    rows = [(int(rng.integers(10)), int(rng.integers(10)), int(rng.integers(2))) for _ in range(80)]
    frame, labels = space.frame_of(rows), np.array([int(a + 2 * b + 3 * c + rng.normal(0, 5) > 15) for a, b, c in rows])
    made = make_pipeline(mace.Encoder(space), RandomForestClassifier(4, random_state=1)).fit(frame, labels)
    refused = [row for row, label in zip(rows, made.predict(frame), strict=True) if label == 1]
    return [Case("ties", made, space, space.values_of(row), {"target": 0}) for row in refused[:20]]


def single_precision_cases() -> list[Case]:
    """Trees over whole numbers that float32 does not tell apart."""
    space = mace.FeatureSpace({"n": mace.integer(2**24, 2**24 + 40), "m": mace.integer(2**25, 2**25 + 60)})
    rng = np.random.default_rng(6)
    rows = [(int(rng.integers(2**24, 2**24 + 41)), int(rng.integers(2**25, 2**25 + 61))) for _ in range(100)]
    frame, labels = space.frame_of(rows), np.array([int((n % 16 > 8) ^ (m % 32 > 14)) for n, m in rows])
    made = make_pipeline(mace.Encoder(space), RandomForestClassifier(3, random_state=1)).fit(frame, labels)
    return [Case("float32", made, space, space.values_of(row), {}) for row in rows[:25]]


def test_certificates_of_ties_and_of_single_precision_are_valid() -> None:
    for case in [*tie_cases(), *single_precision_cases()]:
        for certificate in certificates(case):
            assert mace.verify(certificate, case.model).valid


def some_ensembles() -> list[Case]:
    return [random_ensemble(seed) for seed in range(22)]


BROKEN: tuple[tuple[Callable[[Problem], Problem], Callable[[], list[Case]]], ...] = (
    (too_tight, tie_cases),
    (too_tight, some_ensembles),
    (wrong_ties, tie_cases),
    (no_float32, single_precision_cases),
    (no_levels, some_ensembles),
    (lost_trees, some_ensembles),
)


@pytest.mark.parametrize(("broken", "cases"), BROKEN)
def test_what_a_broken_solver_proves_is_refuted(
    broken: Callable[[Problem], Problem], cases: Callable[[], list[Case]]
) -> None:
    wrong = 0
    for case in cases():
        for certificate in certificates(case):
            is_false, made = broken_certificate(certificate, case.model, broken)
            wrong += is_false
            if is_false:
                assert mace.verify(made, case.model).outcome == "refuted"
    assert wrong > 0

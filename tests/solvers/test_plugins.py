"""What another package adds through entry points: constraints, a search around a lane, a lane, kinds of proof, a distance
(``tests/plugin``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import mace
from mace.certify import CHECKERS
from mace.certify.proofs import SEARCH_CHECKERS
from mace.constraints import CONSTRAINTS
from mace.distances.distance import NORMS
from mace.exact import float_up
from mace.solvers import CONDITION_SEARCHES, SOLVERS
from mace.solvers.boxes.cuts import CUTS

TABLES = (CHECKERS, CONSTRAINTS, NORMS, SOLVERS, CUTS, CONDITION_SEARCHES, SEARCH_CHECKERS)
SPACE = mace.FeatureSpace({"a": mace.integer(0, 9), "b": mace.integer(0, 9), "c": mace.integer(0, 4)})


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "plugin")
    for table in TABLES:
        monkeypatch.setattr(table, "_all", None)
    yield
    for table in TABLES:
        table._all = None


def explainer_of(seed: int, kind: str) -> mace.Explainer:
    rng = np.random.default_rng(seed)
    frame = SPACE.frame_of([tuple(int(v) for v in rng.integers(0, [10, 10, 5])) for _ in range(300)])
    labels = (frame.a + 2 * frame.b + 3 * frame.c + rng.normal(0, 1, 300) > 22).astype(int)
    model: Any = (
        RandomForestClassifier(12, max_depth=5, random_state=seed) if kind == "forest" else LogisticRegression()
    )
    return mace.Explainer(model.fit(frame, labels), SPACE)


def even(name: str) -> Any:
    return CONSTRAINTS.load("even")(name)


def prime(name: str) -> Any:
    return CONSTRAINTS.load("prime")(name)


@pytest.mark.parametrize("kind", ["forest", "linear"])
@pytest.mark.parametrize("seed", range(4))
def test_a_condition_of_another_package_is_kept_by_every_lane_that_can(kind: str, seed: int) -> None:
    explainer = explainer_of(seed, kind)
    row = {"a": 1, "b": 2, "c": 1}
    found = {
        solver: explainer.explain(row, distance="steps", constraints=[even("a"), even("b")], solver=solver)
        for solver in ("auto", "parity", "enumerate")
    }
    assert {each.status for each in found.values()} == {"optimal"}
    assert len({each[0].distance for each in found.values()}) == 1
    assert "cutting boxes" in found["auto"].solver
    for each in found.values():
        assert each[0].values["a"] % 2 == each[0].values["b"] % 2 == 0


def test_a_lane_that_cannot_take_it_says_why() -> None:
    with pytest.raises(mace.InvalidOption, match="a condition has no formula"):
        explainer_of(0, "forest").explain({"a": 1, "b": 2, "c": 1}, constraints=[even("a")], solver="smt")


@pytest.mark.parametrize("solver", ["auto", "parity"])
def test_certificates_state_the_condition_and_are_checked_by_the_checker_of_their_lane(solver: str) -> None:
    explainer = explainer_of(1, "forest")
    found = explainer.explain(
        {"a": 1, "b": 2, "c": 1}, distance="steps", constraints=[even("a")], solver=solver, certify=True
    )
    certificate = mace.Certificate.from_json(found[0].certificate.to_json())
    assert certificate.statement["constraints"] == [{"kind": "even", "arguments": ["a"]}]
    assert mace.verify(certificate, explainer.model).valid


def test_a_false_bound_of_the_new_kind_is_refuted() -> None:
    explainer = explainer_of(2, "forest")
    row = {"a": 1, "b": 2, "c": 1}
    found = explainer.explain(row, constraints=[even("a")], solver="parity", certify=True)
    data = found[0].certificate.to_dict()
    far = itertools.product(range(0, 10, 2), range(10), range(5))
    worst = max(far, key=lambda v: abs(v[0] - 1) / 9 + abs(v[1] - 2) / 9 + abs(v[2] - 1) / 4)
    reached = explainer.model.predict(SPACE.frame_of([worst]))[0] != found.prediction
    assert reached
    distance = float(sum(abs(x - y) / r for x, y, r in zip(worst, (1, 2, 1), (9, 9, 4), strict=True)) / 3)
    data["claim"] |= {"lower": distance, "upper": distance, "counterfactual": dict(zip(SPACE, worst, strict=True))}
    verdict = mace.verify(mace.Certificate.from_dict(data), explainer.model)
    assert verdict.outcome == "refuted"


def test_a_box_may_be_proved_by_the_new_kind_of_proof() -> None:
    explainer = explainer_of(1, "forest")
    found = explainer.explain({"a": 1, "b": 2, "c": 1}, distance="l1", constraints=[even("a")], certify=True)
    data = found[0].certificate.to_dict()
    assert data["evidence"]["lane"] == "boxes"
    for box in data["evidence"]["boxes"]:
        box["proof"] = {"lane": "parity"}
    assert mace.verify(mace.Certificate.from_dict(data), explainer.model).valid
    data["evidence"]["boxes"][0]["proof"] = {"lane": "nobody's"}
    verdict = mace.verify(mace.Certificate.from_dict(data), explainer.model)
    assert (verdict.outcome, "no checker" in verdict.reason) == ("unchecked", True)


@pytest.mark.parametrize(("kind", "solver"), [("forest", "auto"), ("linear", "auto"), ("forest", "milp")])
@pytest.mark.parametrize("seed", range(3))
def test_a_search_of_another_package_asks_the_lane_and_its_proofs_are_checked(
    kind: str, solver: str, seed: int
) -> None:
    explainer, row = explainer_of(seed, kind), {"a": 1, "b": 2, "c": 1}
    found = explainer.explain(row, constraints=[prime("a")], solver=solver, certify=True)
    assert found.status == "optimal"
    assert "the search for prime answers" in found.solver
    rows = list(itertools.product((2, 3, 5, 7), range(10), range(5)))
    said = explainer.model.predict(SPACE.frame_of(rows))
    nearest = min(distance_from(row, other) for other, label in zip(rows, said, strict=True) if label == 1)
    assert found[0].distance == float_up(nearest)
    assert mace.verify(found[0].certificate, explainer.model).valid
    data = found[0].certificate.to_dict()
    changed = data["claim"]["counterfactual"] | {"a": 9}
    upper = float_up(distance_from(row, tuple(changed.values())))
    data["claim"] |= {"counterfactual": changed, "upper": upper, "status": "feasible"}
    assert "not prime" in mace.verify(mace.Certificate.from_dict(data), explainer.model).reason


def distance_from(row: dict[str, int], other: tuple[int, ...]) -> Fraction:
    """Return the mean of the changes, each as a share of its range."""
    shares = (Fraction(abs(x - y), r) for x, y, r in zip(row.values(), other, (9, 9, 4), strict=True))
    return sum(shares, Fraction(0)) / 3


def test_two_conditions_with_searches_of_their_own_are_refused() -> None:
    with pytest.raises(mace.InvalidOption, match=r"prime\(\), robust\(\) are given together.*leave one out"):
        explainer_of(0, "forest").explain({"a": 1, "b": 2, "c": 1}, constraints=[prime("a"), mace.robust({"b": 1})])

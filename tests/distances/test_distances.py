"""Distances: program, exact value and fast value say the same."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace import Distance, FeatureSpace, InvalidDistance, categorical, integer, ordinal, real
from mace.distances import NORMS, PartsMetric, as_distance, distance_down, distance_up, point_values
from mace.distances.change import change
from mace.language import run
from mace.space import Point

SPACE = FeatureSpace(
    {
        "x": real(-1, 3),
        "n": integer(0, 10),
        "o": ordinal(["a", "b", "c"]),
        "c": categorical(["p", "q", "r"]),
        "m": real(0, 1, missing=True),
        "one": integer(5, 5),
    }
)

points = st.tuples(
    st.floats(-1, 3), st.integers(0, 10), st.integers(0, 2), st.integers(0, 2), st.none() | st.floats(0, 1), st.just(5)
)
DISTANCES = [
    *NORMS,
    Distance(l0=0.25, l1=0.25, linf=0.5),
    Distance(l1=1, weights={"x": 2.5, "c": 0.1}),
    Distance(linf=1, weights={"x": 3}),
    Distance(l0=1, weights={"n": 7}),
    Distance(l2=1, weights={"n": 7}),
]


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, new=points)
def test_program_exact_value_and_fast_value_agree(distance: object, old: Point, new: Point) -> None:
    metric = as_distance(distance).from_factual(SPACE, old)
    exact = metric.measure(new)
    assert run(metric.program(), point_values(SPACE, new)) == exact
    deltas = np.array([[float(change(f, a, b)) for f, a, b in zip(SPACE.values(), new, old, strict=True)]])
    fast = metric.floats(deltas)
    assert fast is not None
    assert fast[0] == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
    assert 0 <= exact <= 1
    assert (exact == 0) == (new == old)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, others=st.lists(points, max_size=4))
def test_terms_of_many_points_are_those_of_each(distance: object, old: Point, others: list[Point]) -> None:
    metric = as_distance(distance).from_factual(SPACE, old)
    assert isinstance(metric, PartsMetric)
    terms, peaks = metric.terms_of(others)
    for point, term, peak in zip(others, terms, peaks, strict=True):
        assert (metric.terms(point)[0] == term).all()
        assert (metric.terms(point)[1] == peak).all()
        assert term.sum() + peak.max() == pytest.approx(float(metric.measure(point)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("distance", DISTANCES, ids=str)
@given(old=points, new=points)
def test_a_point_within_a_bound_moves_no_feature_beyond_its_reach(distance: object, old: Point, new: Point) -> None:
    metric = as_distance(distance).from_factual(SPACE, old)
    bound = distance_up(metric, metric.measure(new))
    for index, (feature, a, b) in enumerate(zip(SPACE.values(), new, old, strict=True)):
        assert change(feature, a, b) <= metric.reach(index, bound)


@given(old=points, new=points)
def test_l0_knows_its_next_value(old: Point, new: Point) -> None:
    metric = as_distance("l0").from_factual(SPACE, old)
    value = metric.measure(new)
    for below in (value - Fraction(1, 10**9), value - Fraction(1, 7)):
        if below >= 0:
            assert metric.next_above(below) <= value


def test_the_designs_definitions_by_hand() -> None:
    old: Point = (0.0, 5, 0, 0, None, 5)
    new: Point = (1.0, 5, 2, 1, 0.5, 5)
    deltas = [Fraction(1, 4), 0, 1, 1, 1, 0]
    expected = {"l0": Fraction(4, 6), "l1": sum(deltas) / 6, "l2": sum(d * d for d in deltas) / 6, "linf": Fraction(1)}
    for name, value in expected.items():
        assert as_distance(name).from_factual(SPACE, old).measure(new) == value


def test_l2_is_reported_as_a_root_rounded_outward() -> None:
    metric = as_distance("l2").from_factual(SPACE, (0.0, 5, 0, 0, None, 5))
    square = metric.measure((1.0, 5, 0, 0, None, 5))
    assert distance_down(metric, square) ** 2 <= square <= distance_up(metric, square) ** 2
    assert float(distance_up(metric, square)) == pytest.approx(math.sqrt(1 / 16 / 6))


def test_a_function_is_a_distance() -> None:
    def steps(new, old):  # type: ignore[no-untyped-def]
        cost = 2 * abs(new.n - old.n)
        if new.c != old.c:
            cost += 5 if new.c == "r" else 1
        return cost + (0 if new.o >= old.o else 100)

    old: Point = (0.0, 5, 1, 0, 0.5, 5)
    metric = as_distance(steps).from_factual(SPACE, old)
    assert metric.measure((0.0, 2, 1, 2, 0.5, 5)) == 11
    assert metric.measure((0.0, 5, 0, 1, 0.5, 5)) == 101
    assert (
        as_distance("lambda new, old: abs(new.n - old.n)").from_factual(SPACE, old).measure((0.0, 9, 1, 0, 0.5, 5)) == 4
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_distance("l3"), "'l3' is not one of the distances"),
        (lambda: as_distance(3), "is not a distance"),
        (lambda: Distance(), "add up to 0"),
        (lambda: Distance(l1=0.7), "add up to 0.7"),
        (lambda: Distance(l1=2, linf=-1), "linf is -1"),
        (lambda: Distance(l1=math.nan), "l1 is nan"),
        (lambda: Distance(l1=0.5, l2=0.5), "l2 cannot be mixed"),
        (lambda: Distance(l1=1, weights={"x": 0}), "weight of 'x' is 0"),
        (lambda: Distance(weights={"x": 0}), "weight of 'x' is 0"),
        (lambda: Distance(weights={}), "add up to 0"),
        (lambda: Distance(l1=1, weights={"xx": 1}).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "no feature 'xx'"),
        (lambda: as_distance(lambda new: 1).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "cannot read the distance"),
        (lambda: as_distance(lambda new, old: new.n % 2).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)), "cannot read"),
        (lambda: as_distance(lambda new, old: -1).from_factual(SPACE, (0.0, 5, 0, 0, 0.5, 5)).measure((0.0, 5, 0, 0, 0.5, 5)), "negative"),
    ],
)  # fmt: skip
def test_what_is_no_distance_is_refused(make: object, message: str) -> None:
    with pytest.raises(InvalidDistance, match=message):
        make()  # type: ignore[operator]


def test_shares_within_rounding_are_normalised() -> None:
    third = Distance(l0=1 / 3, l1=1 / 3, linf=1 / 3)
    metric = third.from_factual(SPACE, (-1.0, 0, 0, 0, None, 5))
    assert metric.measure((3.0, 10, 2, 1, 0.0, 5)) == Fraction(1, 3) * (Fraction(5, 6) + Fraction(5, 6) + 1)


# ---- distances of other packages

HALVES = """
from mace.distances.norms import L0, L1
from mace.distances.norm import Norm, Parts


class Halves(Norm):
    '''Half of l0 and half of l1.'''

    def floats(self, deltas, weights):
        return (L0().floats(deltas, weights) + L1().floats(deltas, weights)) / 2

    def parts(self, weights):
        pairs = zip(L0().parts(weights), L1().parts(weights))
        return [Parts(jump=a.jump / 2, slope=b.slope / 2) for a, b in pairs]


class Squares(Halves):
    def parts(self, weights):
        return [Parts(square=1) for _ in weights]
"""


@pytest.fixture
def _halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that registers the distances ``halves`` and ``squares``."""
    (tmp_path / "halves_of_norms.py").write_text(HALVES)
    about = tmp_path / "halves-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: halves\nVersion: 1.0\n")
    entries = "[mace.distances]\nhalves = halves_of_norms:Halves\nsquares = halves_of_norms:Squares\n"
    (about / "entry_points.txt").write_text(entries)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(NORMS, "_all", None)


@pytest.mark.usefixtures("_halves")
@pytest.mark.parametrize("solver", ["auto", "smt", "enumerate"])
def test_a_distance_that_another_package_registers_works(solver: str) -> None:
    space = FeatureSpace({"a": integer(0, 9), "b": integer(0, 9), "c": categorical(["x", "y"])})
    frame = space.frame_of(list(itertools.product(range(10), range(10), range(2))))
    labels = (frame.a + 2 * frame.b - 4 * (frame.c == "y") > 13).astype(int)
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(max_depth=5, random_state=0)).fit(frame, labels)
    explainer = mace.Explainer(model, space)
    row = {"a": 2, "b": 1, "c": "y"}
    near = mace.near_data(frame.iloc[150:160], 1, 0.5, "halves")
    found = explainer.explain(row, distance="halves", constraints=[near], certify=True, solver=solver)
    same = mace.Distance(l0=0.5, l1=0.5)
    other = explainer.explain(
        row, distance=same, constraints=[mace.near_data(frame.iloc[150:160], 1, 0.5, same)], solver=solver
    )
    assert found.status == "optimal"
    assert found.distance == "halves"
    assert found[0].distance == other[0].distance
    certificate = mace.Certificate.from_json(found[0].certificate.to_json())
    assert mace.verify(certificate, model).valid
    mixed = explainer.explain(row, distance=mace.Distance(l1=0.5, others={"halves": 0.5}), solver=solver)
    assert mixed[0].distance == explainer.explain(row, distance=mace.Distance(l0=0.25, l1=0.75))[0].distance


@pytest.mark.usefixtures("_halves")
def test_a_registered_distance_that_cannot_be_taken_is_refused() -> None:
    space = FeatureSpace({"a": integer(0, 9)})
    with pytest.raises(mace.InvalidDistance, match=r"'thirds' is not one of the distances.*'halves'"):
        as_distance("thirds")
    with pytest.raises(mace.InvalidDistance, match="norm 'squares' has squares"):
        as_distance("squares").from_factual(space, (1,))
    with pytest.raises(mace.InvalidDistance, match="shares of the norms of other packages: halves, squares"):
        mace.Distance(others={"l1": 1.0})


def test_a_certificate_of_a_distance_that_is_not_installed_is_refused() -> None:
    with pytest.raises(mace.InvalidDistance, match="norms of other packages: none"):
        mace.Distance(others={"halves": 1.0})


def test_weights_alone_are_those_of_l1() -> None:
    assert Distance(weights={"x": 2.5}) == Distance(l1=1, weights={"x": 2.5})
    assert Distance(linf=1, weights={"x": 2.5}).l1 == 0

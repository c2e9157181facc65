"""The menu of levers: compared with trying every set of features."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mace
from mace.answer.conflicts import Undecided
from mace.answer.region import Ends, Widening

SPACE = mace.FeatureSpace(
    {
        "a": mace.integer(0, 4),
        "b": mace.integer(0, 4),
        "c": mace.ordinal(["low", "mid", "high"]),
        "d": mace.categorical(["x", "y", "z"]),
        "e": mace.real(0, 1),
    }
)


def fitted(estimator: Any) -> tuple[mace.Explainer, pd.DataFrame]:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 5, 300),
            "b": rng.integers(0, 5, 300),
            "c": rng.choice(["low", "mid", "high"], 300),
            "d": rng.choice(["x", "y", "z"], 300),
            "e": rng.uniform(0, 1, 300),
        }
    )
    score = frame.a + frame.b * (frame.d == "x") + 2 * (frame.c == "high") + 2 * frame.e
    return mace.Explainer(
        make_pipeline(mace.Encoder(SPACE), estimator).fit(frame, (score > 5).astype(int)), SPACE
    ), frame


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(4, max_depth=4, random_state=0), LogisticRegression()], ids=str
)
@pytest.mark.parametrize("constraints", [(), ("a increases", "at most 3 features change")], ids=["free", "bound"])
def test_the_menu_is_that_of_trying_every_set(estimator: Any, constraints: tuple[str, ...]) -> None:
    explainer, frame = fitted(estimator)
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    menu = explainer.levers(row, target=1, constraints=constraints)
    assert menu.complete
    suffices: dict[frozenset[str], float] = {}
    for size in range(1, 6):
        for names in itertools.combinations(SPACE, size):
            stay = [name for name in SPACE if name not in names]
            answer = explainer.explain(
                row, target=1, constraints=[*constraints, *([mace.fixed(*stay)] if stay else ())]
            )
            if answer:
                suffices[frozenset(names)] = answer[0].distance
    smallest = {names for names in suffices if not any(other < names for other in suffices)}
    assert {frozenset(lever.features) for lever in menu} == smallest
    for lever in menu:
        assert lever.counterfactual.distance == pytest.approx(suffices[frozenset(lever.features)], abs=2e-6)
        assert {change.feature for change in lever.counterfactual.changes} == set(lever.features)
    for names in menu.insufficient:
        assert frozenset(names) not in suffices
    assert list(menu) == sorted(menu, key=lambda lever: lever.counterfactual.distance)
    assert "proved" in str(menu)


def test_a_menu_that_ends_early_says_so() -> None:
    explainer, frame = fitted(RandomForestClassifier(4, max_depth=4, random_state=0))
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    menu = explainer.levers(row, target=1, most=1)
    assert len(menu) == 1
    assert not menu.complete
    assert "ends at 1" in menu.reason
    hurried = explainer.levers(row, target=1, time_limit=1e-9)
    assert len(hurried) == 0
    assert not hurried.complete
    assert "time" in hurried.reason
    with pytest.raises(mace.InvalidOption):
        explainer.levers(row, most=0)


def test_where_nothing_suffices_the_menu_is_empty_and_complete() -> None:
    explainer, frame = fitted(LogisticRegression())
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    menu = explainer.levers(row, target=1, constraints=[mace.fixed(*SPACE)])
    assert len(menu) == 0
    assert menu.complete


# ---- regions


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(4, max_depth=4, random_state=0), LogisticRegression()], ids=str
)
def test_every_row_of_a_region_reaches_the_target_and_none_can_be_widened(estimator: Any) -> None:
    explainer, frame = fitted(estimator)
    model = explainer.model
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    best = explainer.explain(row, target=1)[0]
    region = explainer.region(best, list(SPACE))
    assert region.complete
    rng = np.random.default_rng(0)
    rows = [{name: drawn(rng, name, region[name]) for name in SPACE} for _ in range(300)]
    assert set(model.predict(pd.DataFrame(rows))) == {1}
    assert all(region[name].levels is None or best.values[name] in region[name].levels for name in SPACE)
    for name, feature in SPACE.items():
        for wider in widened(feature, region[name]):
            tried = [
                mace.within(other, ends.low, ends.high) if ends.levels is None else mace.one_of(other, ends.levels)
                for other, ends in {**region, name: wider}.items()
            ]
            assert explainer.explain(best.values, target=0, constraints=tried).status == "optimal", (name, wider)


def drawn(rng: np.random.Generator, name: str, ends: Any) -> Any:
    feature = SPACE[name]
    if ends.levels is not None:
        return ends.levels[int(rng.integers(len(ends.levels)))]
    if hasattr(feature, "levels"):
        low, high = feature.levels.index(ends.low), feature.levels.index(ends.high)
        return feature.levels[int(rng.integers(low, high + 1))]
    return int(rng.integers(ends.low, ends.high + 1)) if name in "ab" else float(rng.uniform(ends.low, ends.high))


def widened(feature: Any, ends: Any) -> list[Any]:
    """Every way to widen a range by one step."""
    if ends.levels is not None:
        return [Ends(levels=(*ends.levels, level)) for level in feature.levels if level not in ends.levels]
    if hasattr(feature, "levels"):
        low, high = feature.levels.index(ends.low), feature.levels.index(ends.high)
        wider = [(low - 1, high), (low, high + 1)]
        return [Ends(feature.levels[a], feature.levels[b]) for a, b in wider if a >= 0 and b < len(feature.levels)]
    step = 1 if isinstance(ends.low, int) else 1e-5
    wider = [(ends.low - step, ends.high), (ends.low, ends.high + step)]
    return [Ends(a, b) for a, b in wider if a >= feature.low and b <= feature.high]


def only_a_is_asked(constraints: Any) -> bool:
    """Answer about the first feature; run out of time at the second."""
    if any(str(each).startswith("within('b'") and (each.low, each.high) != (2, 2) for each in constraints):
        raise Undecided
    return True


def test_a_region_without_time_is_the_answer_itself() -> None:
    explainer, frame = fitted(LogisticRegression())
    row = next(row for row in frame.to_dict("records") if explainer.predict(row) == 0)
    best = explainer.explain(row, target=1)[0]
    region = explainer.region(best, time_limit=1e-9)
    assert not region.complete
    assert all(ends.low == ends.high == best.values[name] for name, ends in region.items() if ends.levels is None)
    assert set(region) == {change.feature for change in best.changes}
    assert str(region)
    unfinished = Widening(SPACE, (2, 2, 0, 0, 0.5), ["a", "b"], only_a_is_asked)
    with pytest.raises(Undecided):
        unfinished.run()
    assert unfinished.ranges == {"a": (0, 4), "b": (2, 2)}, "what was not proved is not part of the region"
    with pytest.raises(mace.InvalidOption, match="no feature 'z'"):
        explainer.region(best, ["z"])

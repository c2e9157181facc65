"""What keeps answers realistic, compared with brute force over a whole space, in every lane that takes it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import mace
from realistic import KINDS, SPACE, brute, explainer_of, rows_of

# ---- sets of levers


def levers(values: dict[str, Any], row: dict[str, Any]) -> frozenset[str]:
    return frozenset(name for name in SPACE if values[name] != row[name])


@pytest.mark.parametrize("kind", KINDS)
def test_answers_that_differ_in_sets_change_no_superset_of_an_earlier_set(kind: str) -> None:
    explainer = explainer_of(kind)
    for row in rows_of(explainer, 0, 3):
        answer = explainer.explain(row, target=1, count=20, diversity=mace.differ(in_sets=True))
        earlier: list[frozenset[str]] = []
        for each in answer:
            best = brute(
                explainer,
                row,
                1,
                lambda point: not any(old <= levers(SPACE.values_of(point), row) for old in earlier),  # noqa: B023
            )
            assert best is not None
            assert each.status == "optimal"
            assert abs(each.distance - best) < 2e-6
            assert not any(old <= levers(each.values, row) for old in earlier)
            earlier.append(levers(each.values, row))
        assert answer.exhausted
        assert brute(explainer, row, 1, lambda point: not any(old <= levers(SPACE.values_of(point), row) for old in earlier)) is None  # fmt: skip  # noqa: B023, E501


def test_a_certificate_states_that_answers_differ_in_sets() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    answer = explainer.explain(
        row, target=1, count=2, diversity=mace.differ(in_sets=True), certify=True, solver="enumerate"
    )
    certificate = answer[1].certificate
    assert certificate is not None
    assert certificate.statement["diversity"] == {"in_sets": True}
    assert mace.verify(certificate, explainer.model).valid
    claimed = certificate.to_dict()
    claimed["claim"]["counterfactual"] = answer[0].certificate.claim["counterfactual"]  # type: ignore[union-attr]
    assert not mace.verify(claimed, explainer.model).valid
    claimed["statement"]["diversity"] = {"in_sets": False}
    with pytest.raises(mace.InvalidCertificate, match="how counterfactuals differ"):
        mace.verify(claimed, explainer.model)


# ---- regions


def test_an_answer_widens_itself_and_pickles_without_its_explainer() -> None:
    explainer = explainer_of("forest")
    (row,) = rows_of(explainer, 0, 1)
    best = explainer.explain(row, target=1)[0]
    assert best.region() == explainer.region(best)
    assert best.region(["a", "b"]) == explainer.region(best, ["a", "b"])
    copied = pickle.loads(pickle.dumps(best))
    assert copied == best
    assert "widen" not in best.to_dict()
    with pytest.raises(mace.InvalidOption, match=r"explainer\.region"):
        copied.region()
    assert explainer.region(copied) == best.region()

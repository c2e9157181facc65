"""Names that people know: kept with the space, and no part of what is decided."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import mace
from mace.models.files.load import load_model
from mace.space import FeatureSpace, Wording

PLAIN = FeatureSpace(
    {
        "months": mace.integer(4, 72),
        "housing": mace.categorical(["rent", "own"], missing=True),
        "rooms": mace.ordinal([1, 2, 3]),
        "since": mace.date("2020-01-01", "2024-12-31"),
    }
)
SPACE = PLAIN.describe(
    names={"months": "the time\n to repay", "rooms": "Zimmer <b>"},
    units={"months": "months", "rooms": "rooms"},
    outcomes={0: "declined", 1.0: "approved"},
    levels={"housing": {"own": "your own home", None: "not said"}, "rooms": {3: "three or more"}},
)


def test_what_is_described_is_found_again() -> None:
    wording = SPACE.wording
    assert wording.name("months") == "the time to repay"
    assert wording.name("since") == "since"
    assert wording.value("months", 24.0) == "24 months"
    assert [wording.value("housing", level) for level in ("own", "rent", math.nan)] == [
        "your own home",
        "rent",
        "not said",
    ]
    assert [wording.outcome(label) for label in (0, 1, "other")] == ["declined", "approved", "other"]
    assert wording.unit("since") == ""
    assert wording.value("months", "missing") == "missing"


def test_later_names_come_before_earlier_ones() -> None:
    again = SPACE.describe(names={"months": "duration"}, levels={"housing": {"rent": "a flat"}}).wording
    assert again.name("months") == "duration"
    assert again.name("rooms") == "Zimmer <b>"
    assert [again.level("housing", each) for each in ("own", "rent")] == ["your own home", "a flat"]


def test_every_method_keeps_the_names_of_what_stays() -> None:
    for made in (
        SPACE.protect("rooms"),
        SPACE.replace(months=mace.integer(1, 99)),
        SPACE.with_features({"months": mace.integer(1, 99)}),
        FeatureSpace.from_json(SPACE.to_json()),
        pickle.loads(pickle.dumps(SPACE)),
    ):
        assert made.wording == SPACE.wording
    without = SPACE.without("months", "rooms").wording
    assert without == Wording({}, {}, SPACE.wording.outcomes, {"housing": SPACE.wording.levels["housing"]})
    fewer = SPACE.replace(housing=mace.categorical(["rent", "free"]), months=mace.date("2020-01-01", "2021-01-01"))
    assert "housing" not in fewer.wording.levels
    assert "months" not in fewer.wording.units


def test_names_are_no_part_of_the_domain() -> None:
    assert SPACE == PLAIN
    assert hash(SPACE) == hash(PLAIN)
    assert "wording" not in PLAIN.to_dict()
    assert PLAIN.wording == Wording()


def decide(months, housing, rooms, since):  # type: ignore[no-untyped-def]
    return 1 if months >= 24 else 0


def test_certificates_do_not_change_by_names() -> None:
    row = {"months": 12, "housing": "rent", "rooms": 1, "since": "2021-05-04"}
    made = []
    for space in (PLAIN, SPACE):
        certificate = mace.Explainer(decide, space).explain(row, certify=True)[0].certificate
        assert certificate is not None
        made.append(certificate)
    plain, named = (each.to_dict() for each in made)
    assert plain["statement"] == named["statement"]
    assert mace.verify(made[1], decide).valid


def test_a_model_that_carries_a_space_keeps_its_names_in_a_file(tmp_path: Path) -> None:
    from skops.io import dump

    space = FeatureSpace({"x": mace.real(0, 1)}).describe(names={"x": "die Zahl"}, units={"x": "€"})
    rows = space.frame_of([(0.1,), (0.9,)])
    model = make_pipeline(mace.Encoder(space), LogisticRegression()).fit(rows, [0, 1])
    dump(model, tmp_path / "m.skops")
    assert load_model(tmp_path / "m.skops")[0].space.wording == space.wording
    model[0].space_._described = {"names": {"y": "what is no feature"}}
    dump(model, tmp_path / "m.skops")
    with pytest.raises(mace.UnsupportedModel, match="damaged"):
        load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"names": {"month": "x"}}, "no feature 'month'. Did you mean 'months'"),
        ({"names": {"months": " "}}, "give a text"),
        ({"names": {"months": "a\x1b[2J"}}, "without control characters"),
        ({"names": "months"}, "give a dict of texts"),
        ({"units": {"housing": "m"}}, "is no number"),
        ({"units": {"since": "days"}}, "is no number"),
        ({"outcomes": {"bad": 3}}, "give a text"),
        ({"levels": {"housing": {"owm": "x"}}}, "no level 'owm'. Did you mean 'own'"),
        ({"levels": {"months": {"4": "x"}}}, "Levels: none"),
        ({"levels": {"housing": "own"}}, "give a dict of texts"),
        ({"levels": ["housing"]}, "give a dict of dicts"),
    ],
)
def test_what_names_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(mace.InvalidSpace, match=said):
        PLAIN.describe(**given)
    if all(isinstance(each, dict) for each in given.values()):
        with pytest.raises(mace.InvalidSpace, match=said):
            FeatureSpace.from_dict({**PLAIN.to_dict(), "wording": json.loads(json.dumps(given))})


@pytest.mark.parametrize("wording", [[], {"named": {}}, None, {"names": 3}])
def test_a_file_with_another_wording_is_refused(wording: object) -> None:
    with pytest.raises(mace.InvalidSpace):
        FeatureSpace.from_dict({**PLAIN.to_dict(), "wording": wording})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("good", "approved"),
        ("bad or good", "declined or approved"),
        ("bad or other", "bad or other"),
        ("P(good) >= 0.7", "P(approved) >= 0.7"),
        ("0.2 <= P(good) <= 0.7", "0.2 <= P(approved) <= 0.7"),
        ("P(a (b)) <= 0.7", "P(see) <= 0.7"),
        ("score of good", "score of approved"),
        ("good by 0.1", "approved by 0.1"),
        ("stand by 1", "standing"),
        ("at least 5", "at least 5"),
        ("any other outcome", "any other outcome"),
    ],
)
def test_what_is_asked_for_is_said_with_outcomes_by_their_names(text: str, shown: str) -> None:
    outcomes = {"good": "approved", "bad": "declined", "a (b)": "see", "stand by 1": "standing"}
    assert PLAIN.describe(outcomes=outcomes).wording.target(text) == shown
    assert PLAIN.wording.target(text) == text


def test_a_line_break_in_the_data_ends_no_line_of_a_text() -> None:
    space = FeatureSpace({"street\nand town": mace.categorical(["a\nb", "c"]), "income": mace.integer(0, 9)})
    wording = space.wording
    assert wording.name("street\nand town") == "street and town"
    assert wording.value("street\nand town", "a\nb") == "a b"
    assert wording.outcome("yes\r\nindeed\n") == "yes indeed"
    assert wording.name("two  spaces") == "two  spaces"
    model = make_pipeline(mace.Encoder(space), LogisticRegression())
    model.fit(pd.DataFrame({"street\nand town": ["a\nb", "c"] * 5, "income": range(10)}), ["no", "yes\nindeed"] * 5)
    explanation = mace.Explainer(model, space).explain({"street\nand town": "a\nb", "income": 0}, "yes\nindeed")
    assert "a b" in str(explanation)
    assert "street and town: a b -> c" in explanation.why()
    assert not any(
        line.startswith(("b", "and town", "indeed")) for line in f"{explanation}\n{explanation.why()}".splitlines()
    )


def test_columns_stand_below_each_other_where_signs_are_wide() -> None:
    wide = "\u4f4f\u5b85\u306e\u7a2e\u985e"
    space = mace.FeatureSpace({wide: mace.integer(0, 9), "rooms": mace.integer(0, 9)})
    known: Any = {"lower": 0.1, "status": mace.Status.OPTIMAL, "prediction": 1, "solver": "trees", "seconds": 0.0}
    answer = mace.Counterfactual.of(space, space.point([1, 1]), space.point([4, 5]), distance=0.1, **known)
    assert str(answer).splitlines()[:3] == ["feature     now  instead", f"{wide}  1    4", "rooms       1    5"]

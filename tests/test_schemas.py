"""The JSON schemas of the documents describe what is written, now and by earlier versions, and refuse what is not."""

from __future__ import annotations

import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import mace

ROOT = Path(__file__).parent.parent
FILES = ROOT / "tests" / "files" / "0.1.0"
SCHEMAS: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "schemas.py"))["SCHEMAS"]


def check(name: str, data: object) -> None:
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(data)


def kept(name: str) -> list[Any]:
    """Return the files of a kind that 0.1.0 wrote."""
    entries = json.loads(gzip.decompress((FILES / f"{name}s.json.gz").read_bytes()))
    return [json.loads(entry["text"]) if "text" in entry else entry[name] for entry in entries]


def explanations() -> list[mace.Explanation]:
    """Answers of every status but ``unknown``, with causes, missing values, dates, several answers and a row outside the space."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 200), "income": rng.integers(0, 90, 200).astype(float)})
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), unit="D")
    frame.loc[::9, "income"] = np.nan
    space = mace.FeatureSpace.from_frame(frame)
    numbers = mace.Encoder(space).fit_transform(frame)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(numbers, frame["income"].fillna(0) > frame["age"])
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(mace.Encoder(space), tree).fit(frame, frame["income"].fillna(0) > frame["age"])
    refused = frame[~model.predict(frame)]
    explainer = mace.Explainer(model, space, outside="keep")
    small = mace.FeatureSpace({"income": mace.integer(0, 100), "savings": mace.integer(0, 100)})
    causes = mace.Causal({"savings": "1.0 * income"})
    return [
        explainer.explain(refused.iloc[0], target=True, count=3, certify=True),
        explainer.explain(refused.iloc[1].to_dict() | {"age": 99}, target=True, certify=True),
        explainer.explain(refused.iloc[2], target=True, constraints=[mace.fixed(*space)], certify=True),
        explainer.explain(frame[model.predict(frame)].iloc[0], target=True),
        mace.Explainer(_lender, small, causes=causes).explain(
            {"income": 40, "savings": 20}, target="yes", certify=True
        ),
        *explainer.explain_many([{"age": "old"}]),
    ]


def _lender(income: int, savings: int) -> str:
    return "yes" if income + 2 * savings >= 120 else "no"


@pytest.fixture(scope="module")
def answers() -> list[mace.Explanation]:
    return explanations()


def test_explanations_are_as_their_schema_says_and_no_key_is_left_out_of_it(answers: list[mace.Explanation]) -> None:
    assert {str(answer.status) for answer in answers} == {"optimal", "infeasible", "reached", "error"}
    for answer in answers:
        check("explanation", data := json.loads(answer.to_json()))
        assert set(data) <= set(SCHEMAS["explanation"]["properties"])
        for each in data["counterfactuals"]:
            assert set(each) <= set(SCHEMAS["explanation"]["properties"]["counterfactuals"]["items"]["properties"])


def test_certificates_and_their_spaces_are_as_their_schemas_say(answers: list[mace.Explanation]) -> None:
    certificates = [
        each.certificate for answer in answers for each in (*answer, answer) if each.certificate is not None
    ]
    assert len(certificates) >= 5
    for certificate in certificates:
        check("certificate", data := json.loads(certificate.to_json()))
        check("space", data["statement"]["space"])
        assert set(data["statement"]) <= set(SCHEMAS["certificate"]["properties"]["statement"]["properties"])


def test_spaces_with_every_kind_of_feature_are_as_their_schema_says() -> None:
    space = mace.FeatureSpace(
        {
            "income": mace.real(0, 1000, step=100, missing=True),
            "age": mace.integer(18, 90),
            "since": mace.date("2020-01-01 08:00", "2024-01-01 08:00", unit="hour"),
            "school": mace.ordinal(["primary", "degree"]),
            "housing": mace.categorical(["rent", "own"]),
        }
    )
    check("space", json.loads(space.protect("age").to_json()))
    frame = pd.DataFrame(
        {"grade": pd.Categorical(["a", "b"], ordered=True), "x": np.array([0.5, 1.5], dtype="float32")}
    )
    check("space", json.loads(mace.FeatureSpace.from_frame(frame).to_json()))


@pytest.mark.parametrize("name", ["explanation", "certificate", "space"])
def test_files_of_earlier_versions_are_as_the_schema_says(name: str) -> None:
    entries = kept(name)
    assert len(entries) >= 10
    for entry in entries:
        check(name, entry)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("explanation", "status", "sure"),
        ("explanation", "lower", "0.5"),
        ("certificate", "version", 3),
        ("space", "features", {}),
    ],
)
def test_what_is_wrong_is_refused(name: str, key: str, value: object) -> None:
    entry = kept(name)[0]
    check(name, entry)
    with pytest.raises(jsonschema.ValidationError):
        check(name, entry | {key: value})

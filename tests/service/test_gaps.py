"""People with gaps: missing numbers and categories are values like any others, from the data to the answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.service.answers import Handler
from mace.service.opened import open_source
from mace.service.source import Served


@pytest.fixture(scope="module")
def handler(tmp_path_factory: pytest.TempPathFactory) -> Handler:
    """Return a service's handler over people of whom savings, sector and a date may be missing."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("gaps")
    frame = pd.DataFrame({"savings": rng.integers(0, 90, 200).astype(float), "age": rng.integers(18, 80, 200)})
    frame["sector"] = rng.choice(["public", "trade"], 200)
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), unit="D")
    accepted = (frame["savings"] > 40) | (frame["sector"] == "trade")
    frame.loc[::5, "savings"] = np.nan
    frame.loc[::7, "sector"] = None
    space = mace.FeatureSpace.from_frame(frame)
    model = make_pipeline(mace.Encoder(space), RandomForestClassifier(5, max_depth=4, random_state=0))
    skops.io.dump(model.fit(frame, accepted.map({True: "yes", False: "no"})), folder / "model.skops")
    (folder / "space.json").write_text(space.to_json())
    frame.to_csv(folder / "people.csv", index=False)
    files = {name: folder / file for name, file in (("model", "model.skops"), ("space", "space.json"))}
    return Handler(open_source(Served(**files, data=folder / "people.csv", target="yes")))


def asked(handler: Handler, task: str, given: dict[str, Any]) -> Any:
    """Return an answer as it goes over the wire."""
    return json.loads(json.dumps(getattr(handler, task)(given, lambda progress: None), allow_nan=False))


def test_a_level_of_missing_values_is_null_in_what_is_served(handler: Handler) -> None:
    features = {each["name"]: each for each in asked(handler, "model", {})["features"]}
    assert features["sector"]["levels"] == ["public", "trade", None]
    assert features["sector"]["population"]["counts"][2] == 29
    assert features["savings"]["population"]["missing"] == 40
    assert features["since"]["low"] < features["since"]["high"]


def test_people_with_gaps_have_null_there(handler: Handler) -> None:
    assert asked(handler, "person", {"number": 0})["row"]["savings"] is None
    assert asked(handler, "person", {"number": 7})["row"]["sector"] is None


def test_a_region_may_hold_the_missing_level(handler: Handler) -> None:
    row = asked(handler, "person", {"number": 1})["row"] | {"savings": 80.0, "sector": None}
    found = asked(handler, "region", {"row": row, "features": ["sector"], "time_limit": 20.0})
    assert None in found["ends"]["sector"]["levels"]

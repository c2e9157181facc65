"""An explainer and its batches, as tests compare them."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.answer.explanation import Explanation

GERMAN = mace.datasets.load("german")


MODEL = make_pipeline(
    mace.Encoder(GERMAN.space, ordinal="codes"), RandomForestClassifier(5, max_depth=4, random_state=0)
).fit(GERMAN.frame, GERMAN.labels)


EXPLAINER = mace.Explainer(MODEL, GERMAN.space)


def timeless(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation without what no two runs share: its times."""
    made = explanation.to_dict()
    made["seconds"] = 0
    for counterfactual in made["counterfactuals"]:
        counterfactual["seconds"] = 0
    return made


def all_of(batch: Any) -> list[dict[str, Any]]:
    return [timeless(explanation) for explanation in batch]

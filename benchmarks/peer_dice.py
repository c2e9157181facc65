"""DiCE's genetic method, with its defaults, asked for one counterfactual of the other class."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
from trees import Setting

from mace.space import Integer, Real

LABEL = "label"


def make(setting: Setting) -> Callable[[Any, float], tuple[str, Any, float]]:
    """Return a function from a row to DiCE's guess; it takes no limit."""
    numeric = [name for name, feature in setting.space.items() if isinstance(feature, Real | Integer)]
    data = dice_ml.Data(
        dataframe=setting.train.assign(**{LABEL: setting.labels}), continuous_features=numeric, outcome_name=LABEL
    )
    explainer = dice_ml.Dice(data, dice_ml.Model(model=setting.model, backend="sklearn"), method="genetic")
    random.seed(0)
    np.random.seed(0)

    def guess(row: Any, limit: float) -> tuple[str, Any, float]:
        query = pd.DataFrame([row.to_dict()])
        found = explainer.generate_counterfactuals(query, total_CFs=1, desired_class="opposite", verbose=False)
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is None or not len(frame):
            return "unknown", None, 0.0
        values = frame.drop(columns=LABEL).iloc[0].to_dict()
        return "guess", values, 0.0

    return guess

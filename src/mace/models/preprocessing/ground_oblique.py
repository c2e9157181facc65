"""Trees behind a projection: their columns as mixtures of the original features, each with its roundings."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from mace.errors import UnsupportedModel
from mace.forms import ObliqueTrees, TreeEnsemble
from mace.models.preprocessing.ground_networks import Ground
from mace.models.preprocessing.traced import Traced
from mace.space import Column, FeatureSpace


def ground_oblique(form: TreeEnsemble, space: FeatureSpace) -> ObliqueTrees:
    """Return an ensemble some of whose columns mix features."""
    columns = cast(tuple[Traced, ...], form.columns)
    inner = form.left >= 0
    used = [int(k) for k in np.unique(form.column[inner])]
    mixed = next(columns[k] for k in used if columns[k].is_mixed)
    if (form.subset[inner] >= 0).any() or any(columns[k].zero_is_missing for k in used):
        raise UnsupportedModel(
            f"cannot read {mixed.where} before trees that split sets of categories, or take 0 for missing. Encode the categories first."
        )
    try:
        ground = Ground([columns[k] for k in used], space)
        made = ground.lowering.concatenate([ground.of(columns[k]) for k in used], 1)
    except UnsupportedModel as error:
        raise UnsupportedModel(
            f"cannot read {mixed.where} before trees: only affine steps, levels and whole numbers can be mixed. {error}"
        ) from error
    place = np.zeros(len(columns), dtype=np.int64)
    place[used] = np.arange(len(used))
    names = tuple(Column(columns[k].name, columns[k].feature, None) for k in used)
    trees = replace(form, space=space, columns=names, column=np.where(inner, place[form.column], 0))
    return ObliqueTrees(space, ground.lowering.network(made, space, ground.columns), trees)

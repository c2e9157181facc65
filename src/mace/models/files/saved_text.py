"""The texts that LightGBM and XGBoost save, checked before the libraries read them: where lists are shorter than they say, or nodes point
outside of their tree, the libraries read on into whatever lies there in memory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mace.errors import UnsupportedModel

PER_SPLIT = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
PER_SPLIT_MAYBE = ("split_gain", "internal_value", "internal_weight", "internal_count")
PER_LEAF_MAYBE = ("leaf_weight", "leaf_count")


def check_text(file: Path) -> None:
    """Refuse a file of LightGBM that is cut off, or whose lists are not as long as it says."""
    try:
        text = file.read_text(encoding="utf-8")
        trees, end, rest = text.partition("\nend of trees")
        head, *sections = trees.split("\nTree=")
        features = int(head.partition("\nmax_feature_idx=")[2].split("\n", 1)[0]) + 1
        is_whole = bool(end) and all(_is_whole(each, features) for each in sections) and _has_parameters(rest)
    except (KeyError, ValueError, IndexError, OverflowError):
        is_whole = False
    if not is_whole:
        raise UnsupportedModel(
            f"{file.name} cannot be read: it is cut off, a list in it is not as long as it says, or a node lies outside of its tree."
        )


def check_json(file: Path) -> None:
    """Refuse a ``.json`` file of XGBoost whose nodes point outside of their tree."""
    try:
        learner = json.loads(file.read_bytes())["learner"]
        features = int(learner["learner_model_param"]["num_feature"])
        booster = learner["gradient_booster"]
        model = booster.get("gbtree", booster).get("model", {})
        is_whole = all(_is_tree(tree, features) for tree in model.get("trees", ()))
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RecursionError):
        is_whole = False
    if not is_whole:
        raise UnsupportedModel(f"{file.name} cannot be read: a node lies outside of its tree, or of the columns.")


PARENT_OF_ROOT = 2**31 - 1
"""The parent of a root."""


def _is_tree(tree: dict[str, Any], features: int) -> bool:
    """Return whether each node of XGBoost's in reach of the root is the child of its parent and splits on a column."""
    left, right, parents, columns = (
        tree[key] for key in ("left_children", "right_children", "parents", "split_indices")
    )
    size = len(left)
    if not size or any(len(each) != size for each in (right, parents, columns, tree["split_conditions"])):
        return False
    pending, met = [0], set[int]()
    while pending:
        k = pending.pop()
        if not 0 <= k < size or k in met:
            return False
        met.add(k)
        if left[k] != -1:
            children = (left[k], right[k])
            if not 0 <= columns[k] < features or any(not 0 < c < size or parents[c] != k for c in children):
                return False
            pending += children
    return bool(parents[0] == PARENT_OF_ROOT)


def _is_whole(section: str, features: int) -> bool:
    """Return whether the lists of a tree of LightGBM's are all there, and its nodes a tree."""
    entries = dict(line.split("=", 1) for line in section.split("\n") if "=" in line)
    lists = {
        key: [float(word) for word in value.split()] for key, value in entries.items() if key not in ("is_linear",)
    }
    leaves, sets = int(entries["num_leaves"]), int(entries["num_cat"])
    if leaves < 1 or sets < 0 or len(lists["leaf_value"]) != leaves or "shrinkage" not in lists:
        return False
    if leaves == 1:
        return True
    wanted = dict.fromkeys(PER_SPLIT, leaves - 1)
    wanted |= {key: leaves - 1 for key in PER_SPLIT_MAYBE if lists.get(key)}
    wanted |= {key: leaves for key in PER_LEAF_MAYBE if lists.get(key)}
    if sets:
        ends = lists["cat_boundaries"]
        wanted |= {"cat_boundaries": sets + 1, "cat_threshold": int(ends[-1])}
        if ends != sorted(ends) or ends[0] != 0:
            return False
    if not all(len(lists[key]) == length for key, length in wanted.items()):
        return False
    kinds = zip(lists["decision_type"], lists["threshold"], strict=True)
    return (
        sorted(lists["left_child"] + lists["right_child"]) == [*range(-leaves, 0), *range(1, leaves - 1)]
        and all(0 <= column < features for column in lists["split_feature"])
        and all(0 <= at < sets for kind, at in kinds if int(kind) & 1)
    )


def _has_parameters(rest: str) -> bool:
    """Return whether the parameters, where there are any, are all there."""
    _, found, behind = rest.partition("\nparameters:")
    lines, end, _ = behind.partition("\nend of parameters")
    return not found or (bool(end) and all(re.fullmatch(r"(\[[^:\]]+:.*\])?", line) for line in lines.splitlines()))

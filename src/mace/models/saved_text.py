"""The text that LightGBM saves, checked before LightGBM reads it: where its lists are shorter than it says, the library reads on into
whatever lies behind them in memory."""

from __future__ import annotations

import re
from pathlib import Path

from mace.errors import UnsupportedModel

PER_SPLIT = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
PER_SPLIT_MAYBE = ("split_gain", "internal_value", "internal_weight", "internal_count")
PER_LEAF_MAYBE = ("leaf_weight", "leaf_count")


def check_text(file: Path) -> None:
    """Refuse a file of LightGBM that is cut off, or whose lists are not as long as it says."""
    try:
        text = file.read_text(encoding="utf-8")
        trees, end, rest = text.partition("\nend of trees")
        is_whole = bool(end) and all(map(_is_whole, trees.split("\nTree=")[1:])) and _has_parameters(rest)
    except (KeyError, ValueError, IndexError):
        is_whole = False
    if not is_whole:
        raise UnsupportedModel(f"{file.name} cannot be read: it is cut off, or a list in it is not as long as it says.")


def _is_whole(section: str) -> bool:
    """Return whether a tree's lists are all there."""
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
    return all(len(lists[key]) == length for key, length in wanted.items())


def _has_parameters(rest: str) -> bool:
    """Return whether the parameters, where there are any, are all there."""
    _, found, behind = rest.partition("\nparameters:")
    lines, end, _ = behind.partition("\nend of parameters")
    return not found or (bool(end) and all(re.fullmatch(r"(\[[^:\]]+:.*\])?", line) for line in lines.splitlines()))

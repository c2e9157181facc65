"""Pipelines: random preprocessing before trees, linear models and networks against brute force."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run

TREES = ("tree", "forest", "extra", "boosting", "hist")


def finite(seed: int) -> tuple[str, str | None]:
    """Examine a finite problem against brute force over all points."""
    from random_pipelines import random_pipeline
    from referee import disagreement

    import mace

    case = random_pipeline(seed)
    try:
        return case.family, disagreement(case, "auto")
    except mace.UnsupportedModel:
        return case.family, SKIPPED


def raw(seed: int) -> tuple[str, str | None]:
    """Examine trees over real features against brute force over raw values, found by bisecting the real pipeline."""
    from random_pipelines import MODELS, random_pipeline
    from raw_referee import disagreement

    import mace

    seed = seed // len(TREES) * len(MODELS) + MODELS.index(TREES[seed % len(TREES)])
    case = random_pipeline(seed, finite=False)
    try:
        return case.family, disagreement(case, seed)
    except mace.UnsupportedModel:
        return case.family, SKIPPED


if __name__ == "__main__":
    groups = {"finite": Group(1500, 0, finite), "raw": Group(400, 100_000, raw)}
    about = "pipelines against brute force (finite) and over real values, found by bisecting the whole pipeline (raw)"
    sys.exit(run("pipelines", about, groups))

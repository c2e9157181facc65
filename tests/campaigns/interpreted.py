"""A sample of every other campaign, with interpreted kernels: a twentieth of its problems, the same seeds."""

from __future__ import annotations

import runpy
import sys
from functools import cache, partial
from pathlib import Path
from unittest import mock

import runner

HERE = Path(__file__).parent
SHARE = 20

WITHOUT_KERNELS = ("decimals", "files", "interpreted", "runner", "smt")
"""Campaigns that ask no lane with kernels, and what is no campaign of its own."""

NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in WITHOUT_KERNELS)


@cache
def groups_of(campaign: str) -> dict[str, runner.Group]:
    """Return the groups that a campaign examines."""
    with mock.patch.object(runner, "run", return_value=0) as run, mock.patch.object(sys, "exit"):
        runpy.run_path(str(HERE / f"{campaign}.py"), run_name="__main__")
    groups: dict[str, runner.Group] = run.call_args.args[2]
    return groups


def examine(campaign: str, group: str, seed: int) -> tuple[str, str | None]:
    """Examine one problem of a campaign with interpreted kernels."""
    from tiers import interpreted

    with interpreted():
        return groups_of(campaign)[group].examine(seed)


if __name__ == "__main__":
    sample = {
        f"{campaign}_{group}": runner.Group(each.count // SHARE, each.first, partial(examine, campaign, group))
        for campaign in NAMES
        for group, each in groups_of(campaign).items()
    }
    sys.exit(runner.run("interpreted", "a sample of every campaign, with interpreted kernels", sample))

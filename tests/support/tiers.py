"""Kernels that are interpreted, whatever was compiled."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from mace.solvers import compiling, network, trees
from mace.solvers.compiled import _KERNELS, VARIABLE, change_tier
from mace.solvers.ready import LANES

assert {trees.__name__, network.__name__} == set(LANES)


@contextmanager
def interpreted() -> Iterator[None]:
    """Have every kernel be interpreted in this block, and nothing be compiled."""
    before = {name: lane for name, lane in compiling._LANES.items() if lane.is_compiled}
    for name in LANES:
        change_tier(name, compiled=False)
    with (
        mock.patch.object(compiling, "_LANES", {}),
        mock.patch.object(compiling, "is_marked", return_value=False),
        mock.patch.dict(os.environ, {VARIABLE: "never"}),
    ):
        yield
    for name in LANES:
        for each in _KERNELS[name]:
            each.run = each._first
        if name in before:
            change_tier(name, compiled=True)

"""Compiling everything at once, ahead of questions."""

from __future__ import annotations

import importlib

from mace.errors import InvalidOption
from mace.solvers.compiled import compiling_now, is_kept
from mace.solvers.compiling import cores, is_marked, start

LANES = ("mace.solvers.trees", "mace.solvers.network")
"""The lanes with kernels."""


def warm_up() -> None:
    """Compile the kernels of every lane now, once for an installation: a minute or two, or a few seconds where that was done before.

    For images, and for services, whose workers start no process that compiles. By itself a first question is answered by interpreted
    kernels while such a process compiles them (``docs/performance.md``).

    Raises
    ------
    InvalidOption
        There is no folder that the compiled kernels can be kept in.
    """
    lanes = [importlib.import_module(name) for name in LANES]
    if not all(is_kept(importlib.import_module(f"{name}.kernels").advance) for name in LANES):
        raise InvalidOption(
            "compiled kernels cannot be kept: neither the folder of the package nor the user's cache can be written to. "
            "Set NUMBA_CACHE_DIR to a folder that can be, here and where questions are asked."
        )
    missing = [name for name in LANES if not is_marked(name)]
    others = [start(name, background=False) for name in missing[1:]] if cores() > 1 else []
    try:
        with compiling_now():
            for lane in lanes[:1]:
                lane.prepare()
            for child in others:
                child.wait()
            for lane in lanes[1:]:
                lane.prepare()
    finally:
        for child in others:
            child.kill()
            child.wait()

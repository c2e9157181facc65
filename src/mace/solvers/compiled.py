"""Compiled functions, kept on disk."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

LOGGER = logging.getLogger("mace")


def kernel(function: Callable[..., Any], *, any_order: bool = False) -> Any:
    """Compile a function with numba and keep the result on disk, to be thrown away when any file with kernels in its folder changes.

    By itself numba looks at the date and size of the function's own file. What the function calls is compiled into it, so a change in
    another file would leave a stale result that looks plausible.

    With ``any_order`` sums may be reordered and no number is NaN, so that the processor's wide registers can be used.
    """
    fast: Any = {"nnan", "nsz", "reassoc", "contract"} if any_order else False
    compiled: Any = njit(cache=True, fastmath=fast)(function)
    compiled._cache._cache_file._source_stamp = _sources(Path(function.__code__.co_filename).parent)
    return compiled


@cache
def _sources(folder: Path) -> str:
    """Return what the kernels of a folder are compiled from: its own files with kernels, and those of the folders around it."""
    digest = hashlib.sha256()
    while texts := [text for path in sorted(folder.glob("*.py")) if b"\n@kernel" in (text := path.read_bytes())]:
        for text in texts:
            digest.update(text)
        folder = folder.parent
    return digest.hexdigest()


def warm_up(lane: str, entry: Any, exercise: Callable[[], object]) -> None:
    """Exercise a lane's kernels, so that each is compiled or loaded; compiling is announced."""
    if not is_on_disk(entry):
        LOGGER.warning("Compiling the %s lane's kernels, once for this installation: about a minute.", lane)
    exercise()


def is_on_disk(compiled: Any) -> bool:
    """Return whether a kernel was compiled before, from the sources as they are."""
    return bool(compiled._cache._cache_file._load_index())

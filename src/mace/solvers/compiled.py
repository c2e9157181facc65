"""Compiled functions, kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function with numba and keep the result on disk, to be thrown away when any file of its folder changes.

    By itself numba looks at the date and size of the function's own file. What the function calls is compiled into it, so a change in
    another file would leave a stale result that looks plausible.
    """
    compiled: Any = njit(cache=True)(function)
    compiled._cache._cache_file._source_stamp = _sources(Path(function.__code__.co_filename).parent)
    return compiled


@cache
def _sources(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()

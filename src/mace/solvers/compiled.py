"""Compiled functions, kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


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
    digest = hashlib.sha256()
    for text in (path.read_bytes() for path in sorted(folder.glob("*.py"))):
        if b"@kernel" in text:
            digest.update(text)
    return digest.hexdigest()

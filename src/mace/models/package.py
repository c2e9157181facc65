"""Optional packages: imported when a model of theirs is at hand, or a missing-package error that says what to install."""

from __future__ import annotations

import importlib
from typing import Any

from mace.errors import MissingPackage


def optional(name: str, *, extra: str | None = None) -> Any:
    """Return the module of an optional package, which an extra of the same name (or ``extra``) installs.

    Raises
    ------
    MissingPackage
        It is not installed; the message has the command that installs it.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(
            f"{package} is not installed. Install it with: pip install 'mace-xai[{extra or package}]'"
        ) from error

"""Loading a model from a file, without running code that the file brings along."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mace.errors import UnsupportedModel

KNOWN = ("mace.space.", "sklearn.tree._tree.Tree")
"""Types that hold data only: this package's own, and the arrays of a tree, which the reader checks before anything walks them."""

PICKLES = (".pkl", ".pickle", ".joblib")


def load_model(path: str | os.PathLike[str], *, trust: bool = False) -> Any:
    """Load a fitted model.

    Parameters
    ----------
    path : path
        A ``.skops`` file; or, only with ``trust``, a ``.joblib`` or ``.pkl`` file.
    trust : bool
        Whether the file may run code: unpickling does whatever the file says.

    Raises
    ------
    UnsupportedModel
        The file does not exist, is damaged, is of an unknown kind, or needs ``trust``.
    """
    file = Path(path)
    if not file.is_file():
        raise UnsupportedModel(f"there is no model file {file}.")
    if file.suffix == ".skops":
        return _load_skops(file, trust=trust)
    if file.suffix in PICKLES:
        if not trust:
            raise UnsupportedModel(
                f"{file.name} is a pickle: loading it runs whatever code it holds. "
                "Say that you trust it (--trust, or trust=True), or save the model with skops.io.dump."
            )
        return _load_pickle(file)
    raise UnsupportedModel(
        f"{file.name}: unknown kind of model file. Supported: .skops, and with trust {', '.join(PICKLES)}."
    )


def _load_skops(file: Path, *, trust: bool) -> Any:
    from skops import io

    try:
        named = io.get_untrusted_types(file=file)
        foreign = [name for name in named if not name.startswith(KNOWN)]
        if foreign and not trust:
            raise UnsupportedModel(
                f"{file.name} holds types that are not known to be safe: {', '.join(foreign)}. "
                "Say that you trust it (--trust, or trust=True) if you know where it comes from."
            )
        return io.load(file, trusted=named)
    except UnsupportedModel:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"{file.name} cannot be read as a skops file: {type(error).__name__}: {error}"
        ) from error


def _load_pickle(file: Path) -> Any:
    import joblib

    try:
        return joblib.load(file)
    except Exception as error:
        raise UnsupportedModel(f"{file.name} cannot be unpickled: {type(error).__name__}: {error}") from error

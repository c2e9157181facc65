"""Dtypes of columns: which a feature may have, and which floats or categories they hold.

A dtype is kept as the text that pandas prints, a category with its list of categories. ``None`` is what pandas makes of plain values:
float64, int64, bool, text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mace.errors import InvalidSpace

FloatType = type[np.floating[Any]]

FLOAT_DTYPES: dict[str, FloatType] = {
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
    "Float32": np.float32,
    "Float64": np.float64,
    "halffloat[pyarrow]": np.float16,
    "float[pyarrow]": np.float32,
    "double[pyarrow]": np.float64,
}
"""The dtypes of real features, and the floats that they hold."""

INTEGER_DTYPES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
NULLABLE = tuple(name.replace("int", "Int").replace("uI", "UI") for name in INTEGER_DTYPES)
ARROW = tuple(f"{name}[pyarrow]" for name in INTEGER_DTYPES)

LEVEL_DTYPES = (
    "bool",
    "boolean",
    "bool[pyarrow]",
    "object",
    "str",
    "string",
    "string[pyarrow]",
    "large_string[pyarrow]",
    *INTEGER_DTYPES,
    *NULLABLE,
    *ARROW,
    *FLOAT_DTYPES,
)
"""The dtypes of features with levels, apart from ``"category"``."""


@dataclass(frozen=True, slots=True)
class Category:
    """A category dtype.

    Attributes
    ----------
    categories : tuple of levels
        All of them in the dtype's order, those that no row has too.
    ordered : bool
        Whether they are ordered.
    of : str, optional
        The dtype of the categories themselves; ``None`` where it is what pandas makes of them.
    """

    categories: tuple[Any, ...]
    ordered: bool
    of: str | None = None


def check_real(dtype: object) -> str | None:
    """Return the dtype of a real feature, ``None`` for float64; others are refused."""
    if dtype is None or (isinstance(dtype, str) and dtype in FLOAT_DTYPES):
        return None if dtype == "float64" else dtype
    raise InvalidSpace(f"real: dtype is {dtype!r}; accepted: {', '.join(FLOAT_DTYPES)}.")


def check_integer(dtype: object, low: int, high: int, missing: bool) -> str | None:
    """Return the dtype of a whole number, ``None`` for what it has without one; others, and too narrow ones, are refused."""
    accepted = (*INTEGER_DTYPES, *NULLABLE, *ARROW, *FLOAT_DTYPES)
    if dtype is None or dtype == ("float64" if missing else "int64"):
        return None
    if not isinstance(dtype, str) or dtype not in accepted:
        raise InvalidSpace(f"integer: dtype is {dtype!r}; accepted: {', '.join(accepted)}.")
    if dtype in FLOAT_DTYPES:
        least, most = -(2 ** (1 + np.finfo(FLOAT_DTYPES[dtype]).nmant)), 2 ** (1 + np.finfo(FLOAT_DTYPES[dtype]).nmant)
    else:
        info = np.iinfo(dtype.lower().removesuffix("[pyarrow]"))
        least, most = int(info.min), int(info.max)
    if low < least or high > most:
        raise InvalidSpace(
            f"integer: the range [{low}, {high}] does not fit into {dtype}, [{least}, {most}]. Narrow it, or give a wider dtype."
        )
    if missing and dtype in INTEGER_DTYPES:
        raise InvalidSpace(
            f"integer: {dtype} holds no missing values. Use dtype={NULLABLE[INTEGER_DTYPES.index(dtype)]!r}."
        )
    return dtype


def check_category(dtype: object, levels: Sequence[Any], *, ordered: bool) -> str | Category | None:
    """Return the dtype of a feature with levels; a category lists every level."""
    if isinstance(dtype, str) and dtype == "category":
        return Category(tuple(levels), ordered)
    if dtype is None or (isinstance(dtype, str) and dtype in LEVEL_DTYPES):
        return dtype
    if isinstance(dtype, Category) and all(level in dtype.categories for level in levels):
        return dtype
    raise InvalidSpace(f"levels: dtype is {dtype!r}; accepted: 'category' of all levels, {', '.join(LEVEL_DTYPES)}.")

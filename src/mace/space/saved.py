"""Features as text and as plain data, as a space is shown and saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from mace.errors import InvalidSpace
from mace.space.dates import Date
from mace.space.dtypes import LEVEL_DTYPES, Category
from mace.space.features import Categorical, Feature, Integer, Ordinal, Real
from mace.space.making import categorical

_KINDS: dict[str, Callable[..., Feature]] = {
    "real": Real,
    "integer": Integer,
    "date": Date,
    "ordinal": Ordinal,
    "categorical": categorical,
}


def show_feature(feature: Feature) -> str:
    """Return the call that makes a feature."""
    match feature:
        case Ordinal(levels):
            return f"ordinal({list(levels)}{_show_category(feature)})"
        case Categorical(levels):
            return f"categorical({list(levels)}{_show_category(feature)})"
        case Real() | Integer():
            kind = type(feature).__name__.lower()
            step = f", step={feature.step}" if feature.step is not None else ""
            missing = ", missing=True" if feature.missing else ""
            dtype = f", dtype={feature.dtype!r}" if feature.dtype is not None else ""
            dtype += f", observed={feature.observed}" if feature.observed is not None else ""
            low, high = (feature.text(end) for end in (feature.low, feature.high))
            if isinstance(feature, Date):
                low, high = repr(low), repr(high)
                dtype += f", unit={feature.unit!r}" if feature.unit != "day" else ""
            return f"{kind}({low}, {high}{step}{missing}{dtype})"


def _show_category(feature: Ordinal | Categorical) -> str:
    dtype = "category" if isinstance(feature.dtype, Category) else feature.dtype
    return f", dtype={dtype!r}" if dtype is not None else ""


def feature_to_dict(feature: Feature) -> dict[str, Any]:
    """Return a feature as plain data."""
    entry = _plain_dict(feature)
    if isinstance(feature.dtype, Category):
        own = feature.dtype
        of = {} if own.of is None else {"of": own.of}
        entry["dtype"] = {"categories": list(own.categories), "ordered": own.ordered, **of}
    elif feature.dtype is not None:
        entry["dtype"] = feature.dtype
    return entry


def _plain_dict(feature: Feature) -> dict[str, Any]:
    kind = type(feature).__name__.lower()
    match feature:
        case Categorical((*levels, float(last))) if math.isnan(last):
            return {"kind": kind, "levels": levels, "missing": True}
        case Ordinal(levels) | Categorical(levels):
            return {"kind": kind, "levels": list(levels)}
        case Real() | Integer():
            entry: dict[str, Any] = {"kind": kind, "low": feature.low, "high": feature.high}
            if feature.step is not None:
                entry["step"] = feature.step
            if feature.missing:
                entry["missing"] = True
            if feature.observed is not None:
                entry["observed"] = list(feature.observed)
            if isinstance(feature, Date):
                entry |= {end: feature.text(entry[end]) for end in ("low", "high")} | {"unit": feature.unit}
            return entry


def feature_from_dict(name: object, entry: object) -> Feature:
    """Return the feature that :func:`feature_to_dict` wrote; anything else is an :class:`InvalidSpace`."""
    if not isinstance(entry, Mapping) or entry.get("kind") not in list(_KINDS):
        raise InvalidSpace(f"{name!r}: {entry!r} is not a feature; 'kind' must be one of {', '.join(_KINDS)}.")
    arguments = {key: value for key, value in entry.items() if key != "kind"}
    if "levels" in arguments:
        if not isinstance(arguments["levels"], list):
            raise InvalidSpace(f"{name!r}: levels is {arguments['levels']!r}; give a list.")
        arguments["levels"] = tuple(arguments["levels"])
    if isinstance(arguments.get("dtype"), Mapping):
        arguments["dtype"] = _category(name, arguments["dtype"])
    try:
        return _KINDS[entry["kind"]](**arguments)
    except TypeError as error:
        raise InvalidSpace(f"{name!r}: {error}.") from error


def _category(name: object, entry: Mapping[str, Any]) -> Category:
    categories, ordered, of = entry.get("categories"), entry.get("ordered"), entry.get("of")
    categories = categories if isinstance(categories, list) else [None]
    is_plain = all(isinstance(each, str | int | float) for each in categories)
    if (
        not is_plain
        or not isinstance(ordered, bool)
        or not (of is None or (isinstance(of, str) and of in LEVEL_DTYPES))
    ):
        raise InvalidSpace(
            f"{name!r}: {dict(entry)!r:.200} is not a category; give 'categories', a list, and 'ordered'."
        )
    if len(set(categories)) < len(categories) or set(entry) - {"categories", "ordered", "of"}:
        raise InvalidSpace(f"{name!r}: {dict(entry)!r:.200} is not a category: each category once, and no other keys.")
    return Category(tuple(categories), ordered, of)

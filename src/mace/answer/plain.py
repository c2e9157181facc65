"""Explanations as plain data: the values that JSON has, and reading them back with every part checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mace.disk import parse_json
from mace.errors import InvalidOption
from mace.problem import Status
from mace.space import Scalar


def plain(value: Scalar) -> Scalar | None:
    """Return a value as JSON has it; a missing one is ``None``."""
    return None if isinstance(value, float) and math.isnan(value) else value


def part(data: object, what: str, key: str, kind: Any) -> Any:
    """Return a part of plain data that was read; anything that it should not be is an :class:`InvalidOption`."""
    if not isinstance(data, Mapping):
        raise InvalidOption(f"from_dict: {what} is an object of JSON, not {type(data).__name__}.")
    if key not in data:
        raise InvalidOption(f"from_dict: {what} without {key!r}. Give what to_dict() made.")
    value = data[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {float: is_number and abs(value) < math.inf, int: is_number and isinstance(value, int)}
    if not kinds.get(kind, isinstance(value, kind)):
        raise InvalidOption(
            f"from_dict: {key!r} of {what} is of type {type(value).__name__}. Give what to_dict() made."
        )
    return value


def in_a_list(texts: Sequence[str], word: str) -> str:
    """Return texts with commas between them and a word before the last: ``a, b and c``."""
    return f" {word} ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def json_of(data: Mapping[str, Any], indent: int | None) -> str:
    """Return plain data as JSON text."""
    return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)


def read_json(text: str | bytes) -> Any:
    """Return what a JSON text holds; anything else is an :class:`InvalidOption`."""
    try:
        return parse_json(text)
    except (ValueError, TypeError) as error:
        raise InvalidOption(f"from_json: not JSON: {str(error)[:200]}. Give what to_json() made.") from error


def status_of(text: str) -> Status:
    """Return the status of a text."""
    try:
        return Status(text)
    except ValueError as error:
        raise InvalidOption(f"from_dict: {text!r:.60} is no status. Known: {', '.join(Status)}.") from error


def texts(values: list[Any]) -> tuple[str, ...]:
    """Return a list of texts that JSON had."""
    if not all(isinstance(value, str) for value in values):
        raise InvalidOption("from_dict: 'hints' and 'fixed' of an explanation are texts. Give what to_dict() made.")
    return tuple(values)


def scalar(value: Any) -> Scalar:
    """Return a value that JSON had."""
    read: Scalar = math.nan if value is None else value
    return read


def scalars(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the values of a row that JSON had."""
    return {name: scalar(part(values, "a row", name, Scalar | None)) for name in values}

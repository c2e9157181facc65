"""How names, levels, numbers and parts are written in the text form of constraints."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal

from mace.constraints.numbers import plain_number
from mace.errors import InvalidConstraint, cut
from mace.space.features import is_missing

KEYWORDS = frozenset(
    (
        "if", "then", "else", "and", "or", "not", "in", "is", "missing", "true", "false", "old", "abs", "min", "max",
        "changes", "change", "stays", "stay", "increases", "increase", "decreases", "decrease", "together",
        "within", "at", "most", "of", "features", "by", "steps", "moves", "to",
    )
)  # fmt: skip
"""Words of the text form; a feature of such a name is written between back quotes."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def name_text(name: str) -> str:
    """Return a feature's name as it is written: plain, or between back quotes."""
    return name if _PLAIN.match(name) and name.lower() not in KEYWORDS else "`" + name.replace("`", "``") + "`"


def names_text(names: Iterable[str]) -> str:
    """Return names in a row."""
    return ", ".join(map(name_text, names))


def named(call: str, features: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that a constraint was given, one by one.

    Raises
    ------
    InvalidConstraint
        There is none, or a list of them.

    Examples
    --------
    >>> named("fixed", ("age", "sex"))
    ('age', 'sex')
    """
    if not features:
        raise InvalidConstraint(f"{call}() names no feature; write mace.{call}('age', 'sex').")
    first: object = features[0]
    if not isinstance(first, str) and isinstance(first, Iterable):
        names = [*map(str, first), *map(str, features[1:])]
        written = cut(", ".join(map(repr, names)), 80)
        raise InvalidConstraint(f"{call}({first!r:.80}): name the features one by one: mace.{call}({written}).")
    return features


def value_text(value: object) -> str:
    """Return a level or a number as it is written; the level of missing values is the word."""
    if is_missing(value):
        return "missing"
    value = plain_number(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return number_text(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def number_text(value: int | float | Decimal) -> str:
    """Return a number as it is written; reading it gives the same number."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(value)
    return repr(float(value) if isinstance(value, float) else value)


def in_parentheses(text: str, part: object, only: type | None = None) -> str:
    """Return a part of a longer constraint, in parentheses where it would be read otherwise without."""
    from mace.constraints.combine import AllOf, Either, Implies

    kinds = (AllOf, Either, Implies) if only is None else (only,)
    return f"({text})" if isinstance(part, kinds) else text

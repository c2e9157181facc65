"""Options that hold several values in one text: ``income=2,age=0.5``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mace.errors import InvalidOption, did_you_mean

if TYPE_CHECKING:
    from mace.answer.rounding import RoundTo
    from mace.constraints.differ import Differ


def pairs_of(option: str, texts: Iterable[str], names: Iterable[str] | None = None) -> dict[str, str]:
    """Return ``name=text`` pairs; where ``names`` are given, each must be one of them."""
    made: dict[str, str] = {}
    known = None if names is None else list(names)
    for text in texts:
        name, sign, value = (part.strip() for part in text.rpartition("="))
        if not sign or not name or not value:
            raise InvalidOption(f'{option} {text!r:.80}: write "name=value".')
        if known is not None and name not in known:
            raise InvalidOption(f"{option}: there is no feature {name!r:.80}.{did_you_mean(name, known)}")
        if name in made:
            raise InvalidOption(f"{option}: {name!r:.80} stands twice.")
        made[name] = value
    return made


def numbers_of(option: str, text: str, names: Iterable[str], accepted: str) -> dict[str, float]:
    """Return the numbers of a text such as ``income=2,age=0.5``; ``accepted`` says in errors what else may be written."""
    parts = [part for part in text.split(",") if part.strip()]
    if not parts or any("=" not in part for part in parts):
        raise InvalidOption(f"{option} {text!r:.80}: write {accepted}.")
    return {name: _number(option, value, accepted) for name, value in pairs_of(option, parts, names).items()}


def rounding_of(text: str, names: Iterable[str]) -> RoundTo:
    """Return what ``--round`` says answers shall be multiples of."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    accepted = "auto, none, income=100,age=1, or a number such as 0.5 for all real features"
    if "=" in text:
        return numbers_of("--round", text, names, accepted)
    step = _number("--round", text, accepted)
    if step <= 0:
        raise InvalidOption(f"--round {text}: give a positive number.")
    return step


def diversity_of(text: str) -> Differ:
    """Return what ``--diversity`` says of how several answers differ."""
    from mace.constraints.differ import differ

    if text == "sets":
        return differ(sets="incomparable")
    accepted = "sets, features=2, features=2,by=0.05, or distance=0.1"
    made = numbers_of("--diversity", text, ("features", "by", "distance"), accepted)
    features = made.pop("features", None)
    if features is not None and features != int(features):
        raise InvalidOption(f"--diversity features={features:g}: give a whole number.")
    options: dict[str, Any] = dict(made)
    return differ(features=None if features is None else int(features), **options)


def _number(option: str, text: str, accepted: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidOption(f"{option}: {text!r:.80} is no number. Write {accepted}.")
    return number

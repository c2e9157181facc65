"""Round answers: a question over a space whose numbers are multiples of a step, counted from 0.

The values between are left out of the domain; what is proved nearest is so among the round ones. Ranges stay: where an end is no multiple
the grid begins beyond it, and a constraint keeps answers inside. Distances divide by the same widths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mace.answer.outside import in_range
from mace.constraints import Constraint
from mace.errors import InvalidOption, InvalidSpace, did_you_mean
from mace.exact import decimal_fraction
from mace.space import Date, FeatureSpace, Integer, Real

RoundTo = float | str | Mapping[str, float | None] | None
"""What ``round_to`` may be: ``"auto"``, one step for all reals, a step for each of some features, or ``None`` for no rounding."""


def steps_of(space: FeatureSpace, round_to: RoundTo, digits: int | Mapping[str, int] | None) -> dict[str, float]:
    """Return the step of each feature that is rounded.

    Raises
    ------
    InvalidOption
        A name is no feature, a feature no number, or a step not positive.
    """
    given = _given(space, round_to) | {
        name: float(f"1e{-number}") for name, number in decimals_of(space, digits).items()
    }
    steps = {} if round_to is None else dict(space.round_to)
    for name, step in given.items():
        if step is None:
            steps.pop(name, None)
        else:
            steps[name] = step
    return {name: step for name, step in steps.items() if _is_free(space, name)}


def decimals_of(space: FeatureSpace, digits: int | Mapping[str, int] | None) -> dict[str, int]:
    """Return how many decimals the answers of real features shall have."""
    if digits is None:
        return {}
    if isinstance(digits, int) and digits < 0:
        _check_reals(space, "digits", digits)
    given = dict(digits) if isinstance(digits, Mapping) else dict.fromkeys(space, digits)
    for name, number in given.items():
        if name not in space:
            raise InvalidOption(f"digits names {name!r}, which is not a feature.{did_you_mean(name, space)}")
        if isinstance(number, bool) or not isinstance(number, int) or not -300 <= number <= 300:
            raise InvalidOption(f"digits={number!r}; give a whole number of decimals, e.g. digits=2.")
    return {name: number for name, number in given.items() if isinstance(space[name], Real)}


def _given(space: FeatureSpace, round_to: RoundTo) -> dict[str, float | None]:
    """Return what a caller gave for each feature, checked."""
    if round_to is None or round_to == "auto":
        return {}
    reals = [name for name, feature in space.items() if isinstance(feature, Real)]
    if not isinstance(round_to, Mapping):
        _check_step(round_to)
        _check_reals(space, "round_to", round_to)
    given: dict[str, Any] = dict(round_to) if isinstance(round_to, Mapping) else dict.fromkeys(reals, round_to)
    for name, step in given.items():
        if name not in space:
            raise InvalidOption(f"round_to names {name!r}, which is not a feature.{did_you_mean(name, space)}")
        if step is not None:
            _check_step(step)
        feature = space[name]
        if not isinstance(feature, Real | Integer) or isinstance(feature, Date):
            raise InvalidOption(
                f"round_to names {name!r}, which is {type(feature).__name__.lower()} and has no numbers."
            )
        if isinstance(feature, Integer) and step is not None and step != int(step):
            raise InvalidOption(f"round_to={{{name!r}: {step!r}}}: {name!r} is whole; give a whole number.")
    return given


def _check_step(step: object) -> None:
    is_number = isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < math.inf
    if not is_number:
        raise InvalidOption(
            f"round_to={step!r:.60}; give a positive number, {{'income': 100}}, 'auto' for the decimals of the data, or None."
        )


def _check_reals(space: FeatureSpace, option: str, given: object) -> None:
    """Refuse one number for all real features where there are none: it would round nothing, in silence."""
    if any(isinstance(feature, Real) for feature in space.values()):
        return
    whole = [name for name, feature in space.items() if isinstance(feature, Integer) and not isinstance(feature, Date)]
    advice = f" Whole numbers are rounded by name: round_to={{{whole[0]!r}: 10}}." if whole else ""
    raise InvalidOption(f"{option}={given!r} is about real features, and the space has none.{advice}")


def _is_free(space: FeatureSpace, name: str) -> bool:
    """Return whether a feature may be rounded: a number without a step of its own, and not of one value."""
    feature = space[name]
    return isinstance(feature, Real | Integer) and feature.step is None and feature.low < feature.high


def rounded(space: FeatureSpace, steps: Mapping[str, float]) -> tuple[FeatureSpace, tuple[Constraint, ...]]:
    """Return the space of round values, and what keeps answers in the ranges of the first one.

    A step finer than the floats of a feature, or so coarse that no multiple lies in its range, leaves the feature as it is.
    """
    changed: dict[str, Real | Integer] = {}
    kept: list[Constraint] = []
    for name, step in steps.items():
        feature = space[name]
        assert isinstance(feature, Real | Integer)
        unit = decimal_fraction(step)
        low, high = (
            feature.decimal(end) if isinstance(feature, Real) else Fraction(end) for end in (feature.low, feature.high)
        )
        first, last = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
        is_round = (first, last) == (low, high)
        observed = feature.observed if is_round else feature.observed or (feature.low, feature.high)
        number: Any = float if isinstance(feature, Real) else int
        try:
            made = replace(feature, low=number(first), high=number(last), step=number(step), observed=observed)
        except InvalidSpace:
            continue
        changed[name] = made
        if not is_round:
            kept.append(in_range(name, feature, feature.low, feature.high))
    return space.replace(changed), tuple(kept)

"""Functions of dates before a model: days, years, months, days of the week (:mod:`mace.space.dates`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mace.models.preprocessing.traced import MONOTONE, Lower, Shape, Step, Traced
from mace.space import Date, days
from mace.space.dates import CALENDAR, UNITS

OF_DATES: tuple[Callable[[Any], Any], ...] = (days, *CALENDAR)


def of_dates(step: Step) -> list[Traced]:
    """Return what a ``FunctionTransformer`` of one of these makes of dates."""
    return [_made(step, i, step.fitted.func) for i in range(len(step.inputs))]


def _made(step: Step, i: int, function: Callable[[Any], Any]) -> Traced:
    """Return days as the date's number, divided by how many of its unit a day has, correctly rounded; the rest as steps."""
    feature, source = step.date(i), step.inputs[i]
    if feature is None:
        raise step.refuse(f"mace.{function.__name__} is given {source.name!r}, which is no date.")
    if function is not days:
        return step.output(i, i, source.name, shape=_steps(feature, function))
    per_day = UNITS["day"] // UNITS[feature.unit]

    def lower(ground: Any) -> Any:
        number = ground.of(source)
        return number if per_day == 1 else ground.lowering.divide(number, float(per_day))

    made: Lower = lower
    return step.output(i, i, source.name, shape=MONOTONE, lower=made)


def _steps(feature: Date, function: Callable[[Any], Any]) -> Shape:
    """Return where a year, a month or a day begins. Between the last number before that and its first one lies one jump: a moment is
    rounded to whole microseconds."""
    cuts = {
        cut
        for begin in feature.begins(CALENDAR[function])
        for cut in (float(math.ceil(begin) - 1), math.nextafter(begin, -math.inf))
    }
    return Shape(cuts=tuple(sorted(cuts)), is_flat=True)

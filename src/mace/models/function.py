"""Reading a Python function as a model."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mace.errors import InvalidProgram, UnsupportedModel, did_you_mean
from mace.forms import FunctionForm
from mace.language import Parsed, Symbol, parse, syntax
from mace.models.reading import Ask, Reading
from mace.space import Date, FeatureSpace, Point, Scalar
from mace.space.features import plain_scalar


class Record:
    """A row whose features are attributes and items: ``row.age``, ``row["credit amount"]``."""

    def __init__(self, values: dict[str, Scalar]) -> None:
        self.__dict__.update(values)

    def __getitem__(self, name: str) -> Any:
        return self.__dict__[name]


def read_function(model: Callable[..., object], space: FeatureSpace) -> Reading:
    """Return the reading of a Python function of the features.

    The function takes features by name (``def model(age, income)``), or one record (``def model(row): row.age``). It is
    parsed, never trusted; levels compare with ``==``, ``!=`` and ``in``.
    """
    name = getattr(model, "__name__", type(model).__name__)
    absent = next((feature for feature in space if space[feature].missing), None)
    if absent is not None:
        raise UnsupportedModel(f"{absent!r} may be missing, and a function takes no missing value. Set missing=False.")
    parameters = _parameters(model, name)
    symbols = {feature: _symbol(space, feature) for feature in space}
    takes_record = len(parameters) == 1 and parameters[0] not in space
    try:
        parsed = parse(model, records=[symbols]) if takes_record else _parse_named(model, name, parameters, symbols)
    except InvalidProgram as error:
        raise UnsupportedModel(f"cannot read the function {name}: {error}") from error
    form = FunctionForm(space, syntax.Program(space.names, parsed.program.body))
    return Reading(
        family=f"function {name}",
        form=form,
        ask=_ask(model, space, parsed, None if takes_record else parameters),
        classes=parsed.labels,
    )


def _parameters(model: Callable[..., object], name: str) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(model).parameters
    except (TypeError, ValueError) as error:
        raise UnsupportedModel(
            f"cannot read {name}: it has no signature. Write it as a plain Python function."
        ) from error
    if any(parameter.kind is parameter.KEYWORD_ONLY for parameter in parameters.values()):
        raise UnsupportedModel(f"cannot read {name}: it has keyword-only parameters. Make them plain parameters.")
    return tuple(parameters)


def _symbol(space: FeatureSpace, name: str) -> Symbol:
    levels = getattr(space[name], "levels", None)
    return Symbol(syntax.Variable(name), levels=levels)


def _parse_named(
    model: Callable[..., object], name: str, parameters: tuple[str, ...], symbols: dict[str, Symbol]
) -> Parsed:
    for parameter in parameters:
        if parameter not in symbols:
            raise UnsupportedModel(
                f"the function {name} takes {parameter!r}, which is not a feature.{did_you_mean(parameter, symbols)} "
                f"Features: {', '.join(symbols)}; or take a single record and write row.{parameter}."
            )
    return parse(model, symbols={parameter: symbols[parameter] for parameter in parameters})


def _ask(model: Callable[..., object], space: FeatureSpace, parsed: Parsed, parameters: tuple[str, ...] | None) -> Ask:
    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [_outcome(_call(_values(point)), parsed) for point in points]

    def _values(point: Point) -> dict[str, Scalar]:
        """Return a row as the function sees it: as it is parsed, a date is a number."""
        dates = {
            name: value
            for (name, feature), value in zip(space.items(), point, strict=True)
            if isinstance(feature, Date)
        }
        return space.values_of(point) | {name: math.nan if value is None else value for name, value in dates.items()}

    def _failed(error: Exception, values: dict[str, Scalar]) -> UnsupportedModel:
        return UnsupportedModel(
            f"the function fails with {type(error).__name__}: {error}, on {values}. Make it defined on the whole space."
        )

    def _call(values: dict[str, Scalar]) -> object:
        try:
            if parameters is None:
                return model(Record(values))
            return model(*(values[parameter] for parameter in parameters))
        except ArithmeticError as error:
            raise _failed(error, values) from error

    return ask


def _outcome(result: object, parsed: Parsed) -> Fraction:
    result = plain_scalar(result)
    if parsed.labels is not None and isinstance(result, str):
        return Fraction(parsed.labels.index(result))
    if isinstance(result, int | float) and math.isfinite(result):
        return Fraction(result)
    raise UnsupportedModel(f"the function returned {result!r}; it must return a number or one of its labels.")

"""The feature space: the plausible domain over the original features."""

from __future__ import annotations

import json
import math
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mace.disk import parse_json
from mace.errors import InvalidRow, InvalidSpace, cut, did_you_mean, listed
from mace.registry import resolve
from mace.space.dates import Date
from mace.space.features import (
    Categorical,
    Feature,
    Integer,
    Ordinal,
    Real,
    Value,
    shown_level,
    with_decimals,
    with_dtype,
)
from mace.space.rows import as_mapping, number_of
from mace.space.saved import feature_from_dict, feature_to_dict, show_feature
from mace.space.wording import Levels, Outcomes, Texts, Wording, checked, in_one_line

if TYPE_CHECKING:
    import pandas as pd

Scalar = str | int | float | bool
Row = Mapping[str, object] | Sequence[object] | Any
Point = tuple[Value, ...]
"""A row as numbers in the space's order; ``None`` is missing."""

SCHEMA_VERSION = 1

RESERVED = "§"
"""Variables of the programs that MACE itself writes begin with this; no feature's name does."""


class FeatureSpace(Mapping[str, Feature]):
    """The features of a model in order, each with its kind and its range or levels.

    Parameters
    ----------
    features : mapping of str to feature
        Made with :func:`~mace.real`, :func:`~mace.integer`, :func:`~mace.date`, :func:`~mace.ordinal`, :func:`~mace.categorical`.
    guesses : mapping of str to str
        What :meth:`from_frame` guessed, and from what; empty for a space written by hand.
    round_to : mapping of str to number
        Of what answers had better be multiples: a power of ten for each number that :meth:`from_frame` found written so. A preference of
        :meth:`mace.Explainer.explain`, no part of the domain: spaces that differ in it alone are equal. Where it is not given, what the
        features themselves note: those of a space that was inferred note it.

    Examples
    --------
    >>> from mace.space import FeatureSpace, categorical, integer
    >>> space = FeatureSpace({"age": integer(18, 90), "housing": categorical(["rent", "own"])})
    >>> space.validate({"age": 30, "housing": "own"})
    {'age': 30, 'housing': 'own'}
    """

    protected: tuple[str, ...] = ()
    """Features that :meth:`protect` marked, in the space's order."""

    _left_out: tuple[str, ...] = ()

    _described: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        features: Mapping[str, Feature],
        *,
        guesses: Mapping[str, str] | None = None,
        round_to: Mapping[str, float] | None = None,
    ) -> None:
        if hasattr(features, "columns"):
            raise InvalidSpace("A data frame is no space; infer one from it: mace.FeatureSpace.from_frame(frame).")
        if not isinstance(features, Mapping) or not features:
            raise InvalidSpace("A feature space needs at least one feature: FeatureSpace({'age': integer(18, 90)}).")
        for name, feature in features.items():
            if not isinstance(name, str) or not name:
                raise InvalidSpace(f"Feature name {name!r} is not text. Name each feature with a non-empty string.")
            if name.startswith(RESERVED):
                raise InvalidSpace(
                    f"Feature name {name!r} begins with {RESERVED!r}, which is kept for variables of programs. Rename it."
                )
            if not isinstance(feature, Real | Integer | Ordinal | Categorical):
                raise InvalidSpace(f"{name!r} is {feature!r:.80}; {_meant_feature(feature)}.")
            if isinstance(feature, Real) and math.isinf(feature.high - feature.low):
                raise InvalidSpace(
                    f"{name!r} reaches from {feature.low} to {feature.high}, wider than the largest float. "
                    "Give its column in larger units."
                )
        self.round_to = _checked_rounding(features, _noted(features) if round_to is None else round_to)
        self._features: dict[str, Feature] = {
            name: with_decimals(feature, self.round_to.get(name)) for name, feature in features.items()
        }
        self.guesses: dict[str, str] = dict(guesses or {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {"round_to": {}} | state

    @classmethod
    def from_frame(cls, frame: Any, **overrides: Feature) -> FeatureSpace:
        """Infer a space from a data frame: kinds from the dtypes, ranges and levels as observed.

        Ordered category becomes ordinal; text, object, bool and unordered category become categorical; integer dtypes become
        integer; floats become real (missing values in them become the feature's missing state). What was guessed is in
        ``space.guesses``, one sentence a feature, with what to check about it; print it with :meth:`report`.

        Parameters
        ----------
        frame : data frame of pandas, polars or pyarrow
            Typically the training data.
        **overrides : feature
            Features to take as given rather than to infer.
        """
        from mace.space.inference import infer

        features, guesses, round_to = infer(frame, overrides)
        return cls(features, guesses=guesses, round_to=round_to)

    # ---- mapping

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def items(self) -> ItemsView[str, Feature]:
        """Return names and features, as a dict does."""
        return self._features.items()

    def values(self) -> ValuesView[Feature]:
        """Return the features, as a dict does."""
        return self._features.values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureSpace):
            return NotImplemented
        return list(self.items()) == list(other.items()) and self.protected == other.protected

    def __hash__(self) -> int:
        return hash((*self._features.items(), *self.protected))

    def __repr__(self) -> str:
        whole = str(self)
        if len(whole) <= 190:
            return whole
        return cut(f"<FeatureSpace of {len(self)} features: {', '.join(map(str, self))}", 189) + ">"

    def __str__(self) -> str:
        inside = ", ".join(f"{name!r}: {show_feature(feature)}" for name, feature in self.items())
        marked = f".protect({', '.join(map(repr, self.protected))})" if self.protected else ""
        return f"FeatureSpace({{{inside}}}){marked}"

    def _repr_html_(self) -> str:
        made: str = resolve("mace.notebook:space_html")(self)
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names in order."""
        return tuple(self._features)

    def index(self, name: str) -> int:
        """Return the position of a feature."""
        return self.names.index(name)

    def replace(self, features: Mapping[str, Feature] | None = None, /, **named: Feature) -> FeatureSpace:
        """Return a space with some features changed; give names that are no identifiers as a mapping.

        A feature that states no dtype keeps that of the column, where it can; a number of the same kind keeps its decimals.
        """
        changed = {**(features or {}), **named}
        self._check_names("replace", changed)
        changed = {name: self._as_column(name, feature) for name, feature in changed.items()}
        return self._with({**self._features, **changed})

    def _as_column(self, name: str, feature: Feature) -> Feature:
        """Return what takes the place of a feature, with what it leaves open of the column."""
        made, decimals = with_dtype(feature, self._features[name].dtype), self.round_to.get(name)
        is_same_kind = type(made) is type(self._features[name]) and getattr(made, "round_to", None) is None
        return with_decimals(made, decimals) if decimals is not None and is_same_kind else made

    def without(self, *names: str) -> FeatureSpace:
        """Return the space without some features, which rows may still have.

        Examples
        --------
        >>> from mace.space import FeatureSpace, integer
        >>> space = FeatureSpace({"age": integer(18, 90), "zip_code": integer(0, 99999)}).without("zip_code")
        >>> space.validate({"age": 30, "zip_code": 10115})
        {'age': 30}
        """
        self._check_names("without", names)
        made = self._with({name: feature for name, feature in self.items() if name not in names})
        made._left_out = (*self._left_out, *names)
        return made

    def protect(self, *names: str) -> FeatureSpace:
        """Return the space with some features marked as protected: those that nobody should be told to change.

        :func:`~mace.constraints.suggest.suggest_constraints` fixes them, letters do not mention them, audits hold them, and an answer
        that leaves one free to change says so in ``explanation.hints``. Answers do not change: for that, fix them.

        Examples
        --------
        >>> from mace.space import FeatureSpace, categorical, integer
        >>> space = FeatureSpace({"age": integer(18, 90), "sex": categorical(["f", "m"])}).protect("sex")
        >>> space.protected
        ('sex',)
        """
        self._check_names("protect", names)
        made = self._with(self._features)
        made._mark((*self.protected, *names))
        return made

    def describe(
        self,
        *,
        names: Texts | None = None,
        units: Texts | None = None,
        outcomes: Outcomes | None = None,
        levels: Levels | None = None,
    ) -> FeatureSpace:
        """Return the space with the names that people know, beside those that it has already; see :attr:`wording`.

        They are for what people see, and no part of the domain: spaces that differ in them alone are equal, and models and certificates
        know nothing of them.

        Parameters
        ----------
        names : mapping of str to str
            What features are called: ``{"credit_amount": "the amount of the loan"}``.
        units : mapping of str to str
            In what numbers are counted: ``{"duration_months": "months"}``; ``"month|months"`` where one is called otherwise.
        outcomes : mapping of label to str
            What the model's labels are called: ``{"bad": "declined", "good": "approved"}``. A space knows no model: whether these are
            labels of one is not checked here, but where a letter is given such names.
        levels : mapping of str to mapping
            What levels are called: ``{"housing": {"own": "your own home"}}``.

        Examples
        --------
        >>> from mace.space import FeatureSpace, integer
        >>> space = FeatureSpace({"duration": integer(4, 72)}).describe(units={"duration": "months"})
        >>> space.wording.value("duration", 24)
        '24 months'
        """
        given = checked(self, names=names, units=units, outcomes=outcomes, levels=levels)
        made = self.with_features({})
        made._called(self.wording.but(given))
        return made

    @property
    def wording(self) -> Wording:
        """What :meth:`describe` said: the names of features, levels and outcomes, and the units of numbers."""
        return Wording(**self._described)

    def _called(self, wording: Wording) -> None:
        described = wording.of(self).to_dict()
        if described:
            self._described = described

    def with_features(self, features: Mapping[str, Feature]) -> FeatureSpace:
        """Return the space with wider features for some; all else that is known of them stays."""
        made = self._with({**self._features, **features})
        made.round_to = dict(self.round_to)
        return made

    def _mark(self, names: Iterable[str]) -> None:
        marked = set(names)
        if marked:
            self.protected = tuple(name for name in self if name in marked)

    def _with(self, features: Mapping[str, Feature]) -> FeatureSpace:
        """Return a space of other features, with what is known of those that stay."""
        guesses = {name: guess for name, guess in self.guesses.items() if features.get(name) is self[name]}
        kept = {name: step for name, step in self.round_to.items() if features.get(name) is self[name]}
        new = {name: feature for name, feature in features.items() if self._features.get(name) is not feature}
        made = FeatureSpace(features, guesses=guesses, round_to=kept | _noted(new))
        made._mark(name for name in self.protected if name in features)
        made._called(self.wording)
        if self._left_out:
            made._left_out = self._left_out
        return made

    def _check_names(self, method: str, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._features:
                raise InvalidSpace(
                    f"{method}: there is no feature {name!r}.{did_you_mean(name, self)} Features: {listed(map(repr, self))}."
                )

    def report(self) -> str:
        """Return what was guessed, one line a feature."""
        return "\n".join(f"{in_one_line(name)}: {guess}" for name, guess in self.guesses.items())

    # ---- rows

    def validate(self, row: Row) -> dict[str, Scalar]:
        """Return ``row`` as plain Python scalars in the space's order, NaN for a missing value.

        Parameters
        ----------
        row : mapping, Series, one-row frame, or sequence in the space's order
            The row; numpy scalars are welcome, and so is 67.0 for an integer.

        Raises
        ------
        InvalidRow
            A feature is missing or unknown, a value is out of range, a level unseen, a fraction given for an integer, or NaN
            given for a feature without a missing state.
        """
        return self.values_of(self.point(row))

    def point(self, row: Row) -> Point:
        """Return ``row`` as numbers: numeric features their value, levels their position, missing ``None``."""
        cells = self.cells(row)
        return tuple(number_of(name, feature, cells[name]) for name, feature in self.items())

    def some_point(self) -> Point:
        """Return a point of the space, whichever: for what has to be tried on one."""
        return tuple(feature.low if isinstance(feature, Real | Integer) else 0 for feature in self.values())

    def values_of(self, point: Point) -> dict[str, Scalar]:
        """Return the plain row of a point."""
        return {name: _scalar(feature, value) for (name, feature), value in zip(self.items(), point, strict=True)}

    def frame_of(self, points: Sequence[Point]) -> pd.DataFrame:
        """Return points as a data frame over the original features, in the dtypes that the space remembers."""
        import pandas as pd

        from mace.space.frames import column_of

        return pd.DataFrame(
            {name: column_of(feature, [point[j] for point in points]) for j, (name, feature) in enumerate(self.items())}
        )

    @property
    def has_dtypes(self) -> bool:
        """Whether some feature's column has a dtype other than pandas gives plain values."""
        return any(feature.dtype is not None or isinstance(feature, Date) for feature in self.values())

    def cells(self, row: Row) -> dict[str, object]:
        """Return what a row, in any of the accepted forms, holds of each feature; the values are not checked."""
        cells = as_mapping(row, self.names)
        unknown = [name for name in cells if name not in self._features and name not in self._left_out]
        if unknown:
            raise InvalidRow(
                f"{unknown[0]!r} is not a feature.{did_you_mean(unknown[0], self)} Features: {listed(map(repr, self))}."
            )
        absent = [name for name in self if name not in cells]
        if absent:
            raise InvalidRow(
                f"{listed(map(repr, absent))} missing from the row. Give every feature: {listed(map(repr, self))}."
            )
        return cells

    # ---- JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain data: ``version``, ``features`` as ``{name: {"kind": ...}}``, and what else is known of them."""
        made: dict[str, Any] = {"version": SCHEMA_VERSION}
        made["features"] = {name: feature_to_dict(feature) for name, feature in self.items()}
        made |= {"round_to": self.round_to} if self.round_to else {}
        made |= {"protected": list(self.protected)} if self.protected else {}
        return made | ({"wording": self.wording.to_dict()} if self._described else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSpace:
        """Return the space that :meth:`to_dict` wrote."""
        if not isinstance(data, Mapping) or data.get("version") != SCHEMA_VERSION or type(data["version"]) is not int:
            found = data.get("version") if isinstance(data, Mapping) else type(data).__name__
            raise InvalidSpace(f"Not a feature space of version {SCHEMA_VERSION}: found {found!r}.")
        features = data.get("features")
        if not isinstance(features, Mapping):
            raise InvalidSpace("'features' must be an object from names to features.")
        round_to = data.get("round_to", {})
        if not isinstance(round_to, Mapping):
            raise InvalidSpace("'round_to' must be an object from names to numbers.")
        made = cls({name: feature_from_dict(name, entry) for name, entry in features.items()}, round_to=round_to)
        protected = data.get("protected", [])
        if not isinstance(protected, list) or not all(isinstance(name, str) for name in protected):
            raise InvalidSpace(f"'protected' is {protected!r:.80}; it must be a list of features.")
        wording = data.get("wording", {})
        if not isinstance(wording, Mapping) or set(wording) - {each.name for each in fields(Wording)}:
            raise InvalidSpace(f"'wording' is {wording!r:.80}; it must be an object of names, units, outcomes, levels.")
        made = made.protect(*protected) if protected else made
        return made.describe(**wording) if wording else made

    def to_json(self, indent: int | None = 2) -> str:
        """Return the space as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> FeatureSpace:
        """Return the space that :meth:`to_json` wrote."""
        try:
            data = parse_json(text)
        except (ValueError, TypeError) as error:
            raise InvalidSpace(f"Not JSON: {error}. Write the file with FeatureSpace.to_json().") from error
        return cls.from_dict(data)


def _noted(features: Mapping[str, Feature]) -> dict[str, float]:
    """Return of what the values of features are multiples, as the features note it."""
    steps = {name: feature.round_to for name, feature in features.items() if isinstance(feature, Real | Integer)}
    return {name: step for name, step in steps.items() if step is not None}


def _checked_rounding(features: Mapping[str, Feature], round_to: Mapping[str, float]) -> dict[str, float]:
    for name, step in round_to.items():
        is_number = isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < math.inf
        if not is_number or not isinstance(features.get(name), Real | Integer):
            raise InvalidSpace(
                f"round_to: {step!r:.40} of {name!r:.80} is not a positive number of a real or integer feature."
            )
    return dict(round_to)


def _scalar(feature: Feature, value: Value) -> Scalar:
    if value is None:
        return math.nan
    match feature:
        case Ordinal(levels) | Categorical(levels):
            return shown_level(levels[int(value)])
        case Date():
            return feature.text(value)
        case _:
            return value


def _meant_feature(given: object) -> str:
    """Return how the feature is made that something else was given for."""
    if (
        isinstance(given, tuple | list | range)
        and len(given) == 2
        and all(isinstance(end, int | float) for end in given)
    ):
        kind = "integer" if all(isinstance(end, int) for end in given) else "real"
        return f"write mace.{kind}({given[0]!r}, {given[1]!r})"
    if isinstance(given, tuple | list | set | frozenset) and given and all(isinstance(level, str) for level in given):
        levels = sorted(given) if isinstance(given, set | frozenset) else list(given)
        return f"write mace.categorical({levels!r:.80}), or mace.ordinal where they have an order"
    return "use mace.real, mace.integer, mace.date, mace.ordinal or mace.categorical"

"""What people call the features of a space, their values, and the outcomes."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mace.errors import InvalidSpace, MaceError, did_you_mean
from mace.space.dates import Date
from mace.space.dtypes import FLOAT_DTYPES
from mace.space.features import Categorical, Feature, Ordinal

Texts = Mapping[str, str]
Outcomes = Mapping[Any, str]
Levels = Mapping[str, Mapping[Any, str]]

MISSING = "missing"
"""How a missing value is shown."""


_PROBABILITY = re.compile(r"(.*?P\()(.*)(\).*)", re.DOTALL)
_LEAD = re.compile(r"(.*)( by [-+0-9.e]+)", re.DOTALL)


def show_value(value: object, dtype: str | None = None) -> str:
    """Return a value for people: floats short but exact enough to be told apart in their dtype, NaN as 'missing'."""
    if isinstance(value, float):
        if math.isnan(value):
            return MISSING
        if value.is_integer() and abs(value) < 1e15:
            return repr(int(value))
        return str(FLOAT_DTYPES[dtype](value)) if dtype in FLOAT_DTYPES else repr(value)
    return str(value)


def in_one_line(text: str) -> str:
    """Return a name or a level of the data with spaces for line breaks, which would end the line of a table or a sentence.

    Examples
    --------
    >>> in_one_line("street\\ntown")
    'street town'
    """
    lines = text.splitlines()
    return text if lines == [text] else " ".join(lines)


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes: two for each wide sign of Chinese, Japanese and Korean.

    Examples
    --------
    >>> cells("home"), cells("\u4f4f\u5b85")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to a number of cells."""
    return text + " " * (width - cells(text))


@dataclass(frozen=True, slots=True)
class Wording:
    """The names that people know: of features, of their levels, of outcomes; and the units of numbers.

    What has no name is called what it is called in the data. Levels and outcomes are kept by their text, 1 as ``"1"``.

    Examples
    --------
    >>> from mace.space import FeatureSpace, categorical, integer
    >>> space = FeatureSpace({"months": integer(4, 72), "housing": categorical(["rent", "own"])})
    >>> space = space.describe(names={"months": "duration"}, units={"months": "months"}, outcomes={"bad": "declined"})
    >>> wording = space.wording
    >>> wording.name("months"), wording.value("months", 24), wording.name("housing"), wording.outcome("bad")
    ('duration', '24 months', 'housing', 'declined')
    """

    names: Texts = field(default_factory=dict)
    units: Texts = field(default_factory=dict)
    outcomes: Texts = field(default_factory=dict)
    levels: Mapping[str, Texts] = field(default_factory=dict)

    def name(self, feature: str) -> str:
        """Return what a feature is called."""
        return self.names.get(feature) or in_one_line(feature)

    def unit(self, feature: str, *, is_plural: bool = True) -> str:
        """Return what a feature is counted in; empty where that is not said. Of ``"month|months"`` the first is for one."""
        one, _, several = self.units.get(feature, "").partition("|")
        return several.strip() if several and is_plural else one.strip()

    def level(self, feature: str, level: object) -> str:
        """Return what a level of a feature is called."""
        text = show_value(level)
        return self.levels.get(feature, {}).get(text) or in_one_line(text)

    def value(self, feature: str, value: object) -> str:
        """Return a value of a feature, or its text, for people: a level by its name, a number with its unit."""
        text = show_value(value)
        unit = self.unit(feature, is_plural=text != "1")
        is_plain = text == MISSING or text in self.levels.get(feature, {})
        return self.level(feature, text) if is_plain or not unit else f"{text} {unit}"

    def outcome(self, label: object) -> str:
        """Return what an outcome is called."""
        text = show_value(label)
        return self.outcomes.get(text) or in_one_line(text)

    def target(self, text: str) -> str:
        """Return what is asked for, or scored, as explanations write it, with outcomes by what they are called: ``"P(good) >= 0.7"``."""
        found = _PROBABILITY.fullmatch(text)
        if found is not None:
            return f"{found[1]}{self.outcome(found[2])}{found[3]}"
        if text.startswith("score of "):
            return f"score of {self.outcome(text.removeprefix('score of '))}"
        lead = _LEAD.fullmatch(text)
        labels, by = (text, "") if lead is None or text in self.outcomes else (lead[1], lead[2])
        parts = labels.split(" or ")
        named = " or ".join(map(self.outcome, parts)) if all(part in self.outcomes for part in parts) else labels
        return f"{in_one_line(self.outcomes.get(labels, named))}{by}"

    def but(self, other: Wording) -> Wording:
        """Return this wording with that of another where it has one."""
        levels = {name: {**self.levels.get(name, {}), **texts} for name, texts in other.levels.items()}
        return Wording(
            {**self.names, **other.names},
            {**self.units, **other.units},
            {**self.outcomes, **other.outcomes},
            {**self.levels, **levels},
        )

    def of(self, features: Mapping[str, Feature]) -> Wording:
        """Return what of it is about the features of a space; that of levels which a feature no longer has is dropped."""
        kept = {name: texts for name, texts in self.levels.items() if name in features}
        known = {name: _texts_of_levels(features[name]) for name in kept}
        levels = {name: {each: text for each, text in kept[name].items() if each in known[name]} for name in kept}
        return Wording(
            {name: text for name, text in self.names.items() if name in features},
            {name: unit for name, unit in self.units.items() if name in features and _has_numbers(features[name])},
            self.outcomes,
            {name: texts for name, texts in levels.items() if texts},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what is said as plain data; what is empty is left out."""
        made = {"names": dict(self.names), "units": dict(self.units), "outcomes": dict(self.outcomes)}
        levels = {name: dict(texts) for name, texts in self.levels.items()}
        return {key: part for key, part in {**made, "levels": levels}.items() if part}


def checked(
    features: Mapping[str, Feature | None],
    *,
    names: Texts | None = None,
    units: Texts | None = None,
    outcomes: Outcomes | None = None,
    levels: Levels | None = None,
    labels: Iterable[object] | None = None,
    method: str = "describe",
    error: type[MaceError] = InvalidSpace,
) -> Wording:
    """Return the wording that is given for some features; ``None`` for one of which only its name is known.

    ``labels`` are those of the model, where it is known and has labels.

    Raises
    ------
    MaceError
        Of the class given: a feature, a level or a label that there is not, a unit of something that is no number, or no text.
    """
    made: dict[str, dict[str, str]] = {}
    for option, given in (("names", names), ("units", units), ("outcomes", outcomes)):
        made[option] = _texts(f"{method}: {option}", given, error)
    if levels is not None and not isinstance(levels, Mapping):
        raise error(f"{method}: levels is {levels!r:.60}; give a dict of dicts: {{'housing': {{'own': 'own home'}}}}.")
    of_levels = {name: _texts(f"{method}: levels[{name!r:.60}]", each, error) for name, each in (levels or {}).items()}
    for option, chosen in (("names", made["names"]), ("units", made["units"]), ("levels", of_levels)):
        unknown = next((name for name in chosen if name not in features), None)
        if unknown is not None:
            raise error(f"{method}: {option}: there is no feature {unknown!r:.80}.{did_you_mean(unknown, features)}")
    for name in made["units"]:
        feature = features[name]
        if feature is not None and not _has_numbers(feature):
            raise error(f"{method}: units: {name!r:.80} is no number, and has no unit. Leave it out.")
    if labels is not None:
        _check_known(
            f"{method}: outcomes: the model", "label", made["outcomes"], [show_value(each) for each in labels], error
        )
    for name, each in of_levels.items():
        feature = features[name]
        known = _texts_of_levels(feature) if feature is not None else list(each)
        _check_known(f"{method}: levels: {name!r:.80}", "level", each, known, error)
    return Wording(made["names"], made["units"], made["outcomes"], of_levels)


def _check_known(whose: str, kind: str, given: Iterable[str], known: Sequence[str], error: type[MaceError]) -> None:
    """Refuse the first level or label that is not known, with those that are."""
    unknown = next((each for each in given if each not in known), None)
    if unknown is not None:
        raise error(
            f"{whose} has no {kind} {unknown!r:.80}.{did_you_mean(unknown, known)} "
            f"{kind.capitalize()}s: {', '.join(map(repr, known[:30])) or 'none'}."
        )


def _texts(where: str, given: Any, error: type[MaceError]) -> dict[str, str]:
    """Return texts by the texts of what they name, in one line each."""
    if given is not None and not isinstance(given, Mapping):
        raise error(f"{where} is {given!r:.60}; give a dict of texts.")
    made: dict[str, str] = {}
    for key, text in (given or {}).items():
        line = " ".join(text.split()) if isinstance(text, str) else ""
        if not line or any(unicodedata.category(sign) in ("Cc", "Cs") for sign in line):
            raise error(f"{where}: {key!r:.60} is called {text!r:.60}; give a text without control characters.")
        made[MISSING if key is None else show_value(key)] = line
    return made


def _has_numbers(feature: Feature) -> bool:
    if isinstance(feature, Ordinal | Categorical):
        return not any(isinstance(level, str | bool) for level in feature.levels)
    return not isinstance(feature, Date)


def _texts_of_levels(feature: Feature) -> list[str]:
    levels: Iterable[object] = feature.levels if isinstance(feature, Ordinal | Categorical) else ()
    return [MISSING if level is None else show_value(level) for level in levels]

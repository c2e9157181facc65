"""Values as people write them: in their language, by the names that they know, with units."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from mace.answer.counterfactual import Change
from mace.letters.catalogue import NO_BREAK_SPACE, Language
from mace.space import Date, FeatureSpace, Integer, Scalar, Wording
from mace.space.dates import ISO
from mace.space.wording import show_value

CURRENCIES = frozenset("$£€¥")
"""Units that stand before the number in some languages."""

MOST_PLACES = 21
"""Numbers with more digits before or after the decimal sign are written with a power of ten."""

YEARS = (1000, 2999)
"""Whole numbers without a unit whose range lies in here may be years, which are written without signs between their digits."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes numbers, dates, levels and outcomes in one language, by the names that people know."""

    language: Language
    wording: Wording
    space: FeatureSpace | None = None

    def number(self, number: Decimal, *, is_grouped: bool = True) -> str:
        """Return a number with all its digits."""
        if number and not -MOST_PLACES <= number.adjusted() < MOST_PLACES:
            digits = number.normalize().as_tuple().digits
            mantissa = Decimal((number.is_signed(), digits, 1 - len(digits)))
            return f"{self.number(mantissa)}{NO_BREAK_SPACE}×{NO_BREAK_SPACE}10^{number.adjusted()}"
        whole, _, decimals = f"{abs(number):f}".partition(".")
        decimals = decimals.rstrip("0")
        if is_grouped:
            whole = re.sub(r"(?<=\d)(?=(\d{3})+$)", self.language.group, whole)
        sign = "\u2212" if number < 0 else ""
        return f"{sign}{whole}{self.language.decimal if decimals else ''}{decimals}"

    def percent(self, share: Decimal) -> str:
        """Return a share as a percentage."""
        return f"{self.number(100 * share)}{self.language.percent}%"

    def date(self, text: str | datetime.date) -> str:
        """Return a date, or a moment, in words; of a moment the time follows."""
        day, _, time = str(text).replace("T", " ").partition(" ")
        year, month, day = day.split("-")
        form = self.language.first if int(day) == 1 else self.language.date
        said = form.format(day=int(day), month=self.language.months.split()[int(month) - 1], year=int(year))
        said = said.replace(" ", NO_BREAK_SPACE, 1)
        return f"{said}, {time}" if time else said

    def value(self, feature: str, value: object, dtype: str | None = None) -> str:
        """Return a value of a feature: a level by its name, a number with its unit, a date in words."""
        text = show_value(value, dtype)
        named = self.wording.levels.get(feature, {}).get(text)
        if named is not None:
            return named
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return self.language.say("missing")
        if isinstance(value, bool):
            return self.language.say("true" if value else "false")
        if isinstance(value, str):
            return self.date(value) if self._is_date(feature, value) else value
        return self.amount(feature, Decimal(text))

    def amount(self, feature: str, number: Decimal) -> str:
        """Return so much of a feature, with its unit."""
        text = self.number(number, is_grouped=not self._is_year(feature))
        unit = self.wording.unit(feature, is_plural=self.language.is_plural(float(number)))
        if not unit:
            return text
        if unit == "%":
            return f"{text}{self.language.percent}%"
        if unit in CURRENCIES and self.language.is_currency_first:
            return f"\u2212{unit}{text[1:]}" if number < 0 else f"{unit}{text}"
        return f"{text}{NO_BREAK_SPACE}{unit}"

    def difference(self, change: Change) -> tuple[str, str]:
        """Return by how much a number or a day changes, as people subtract, and which way; nothing for anything else."""
        before, after = change.texts
        ends = (change.before, change.after)
        if all(isinstance(end, str) and self._is_date(change.feature, end) for end in ends):
            if len(before) > len("2024-02-29"):
                return "", ""
            days = (datetime.date.fromisoformat(after) - datetime.date.fromisoformat(before)).days
            return self.days(abs(days)), "later" if days > 0 else "earlier"
        if any(isinstance(end, str | bool) or not math.isfinite(end) for end in ends):
            return "", ""
        if change.feature in self.wording.levels:
            return "", ""
        moved = Decimal(after) - Decimal(before)
        return self.amount(change.feature, abs(moved)), "more" if moved > 0 else "less"

    def days(self, count: int) -> str:
        """Return so many days."""
        return self.language.say("days", count).format(count=self.number(Decimal(count)))

    def is_day(self, feature: str, value: object) -> bool:
        """Return whether a value is a date without a time."""
        return isinstance(value, str) and len(value) == len("2024-02-29") and self._is_date(feature, value)

    def name(self, feature: str) -> str:
        """Return what a feature is called; one without a name, by that of its column, with spaces in it."""
        return self.wording.names.get(feature) or feature.replace("_", " ").strip() or feature

    def names(self, features: Iterable[str]) -> str:
        """Return what features are called, in a row."""
        return in_a_row([self.name(feature) for feature in features])

    def outcome(self, label: Scalar | None) -> str:
        """Return what an outcome is called; a prediction of a number as a number."""
        text = show_value(label)
        if text in self.wording.outcomes:
            return self.wording.outcomes[text]
        return self.number(Decimal(text)) if isinstance(label, float) and math.isfinite(label) else text

    def _is_date(self, feature: str, text: str) -> bool:
        is_known = self.space is not None and feature in self.space
        return (isinstance(self.space[feature], Date) if is_known else True) and ISO.match(text) is not None  # type: ignore[index]

    def _is_year(self, feature: str) -> bool:
        known = None if self.space is None else self.space.get(feature)
        is_plain = isinstance(known, Integer) and not self.wording.unit(feature)
        return is_plain and known is not None and YEARS[0] <= known.low and known.high <= YEARS[1]  # type: ignore[union-attr]


def in_a_row(texts: Sequence[str]) -> str:
    """Return texts with commas between them, or semicolons where a text has a comma of its own."""
    return ("; " if any("," in text for text in texts) else ", ").join(texts)

"""What one feature may be in a piece of the domain, and what is left of it after a cut."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Span:
    """What one feature may be in a box: the floats or whole numbers of a range, or the levels of a set, and perhaps missing."""

    low: float
    high: float
    levels: frozenset[int] | None
    is_whole: bool
    missing: bool

    @property
    def has_values(self) -> bool:
        """Whether it may be anything but missing."""
        return bool(self.levels) if self.levels is not None else self.low <= self.high

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self.missing and not self.has_values

    def inside(self, other: Span) -> Span:
        """Return what lies in both."""
        levels = None if self.levels is None else self.levels & (other.levels or frozenset())
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high, levels, self.is_whole, self.missing and other.missing)

    def outside(self, other: Span) -> list[Span]:
        """Return the rest."""
        if self.levels is not None:
            rest = [replace(self, levels=self.levels - (other.levels or frozenset()), missing=False)]
        elif not other.has_values:
            rest = [replace(self, missing=False)]
        else:
            rest = [
                replace(self, high=min(self.high, self.before(other.low)), missing=False),
                replace(self, low=max(self.low, self.after(other.high)), missing=False),
            ]
        if self.missing and not other.missing:
            rest.append(self.only_missing())
        return [span for span in rest if not span.is_empty]

    def only_missing(self) -> Span:
        """Return what is left where the feature is missing."""
        return Span(1.0, 0.0, None if self.levels is None else frozenset(), self.is_whole, True)

    def before(self, value: float) -> float:
        """Return the greatest number below a value."""
        return math.ceil(value) - 1.0 if self.is_whole else math.nextafter(value, -math.inf)

    def after(self, value: float) -> float:
        """Return the least number above a value."""
        return math.floor(value) + 1.0 if self.is_whole else math.nextafter(value, math.inf)

    def halves(self) -> list[Span]:
        """Return it in two parts; in one where it cannot be cut."""
        if self.missing and self.has_values:
            return [self.only_missing(), replace(self, missing=False)]
        if not self.has_values:
            return [self]
        if self.levels is not None:
            one = frozenset([min(self.levels)])
            parts = [replace(self, levels=one), replace(self, levels=self.levels - one)]
        else:
            middle = self.low + (self.high - self.low) / 2
            # The sum may be rounded up to the end itself.
            middle = float(math.floor(middle)) if self.is_whole else middle if middle < self.high else self.low
            parts = [replace(self, high=middle), replace(self, low=self.after(middle))]
        return [part for part in parts if not part.is_empty]


Piece = tuple[Span, ...]
"""A span for each feature."""

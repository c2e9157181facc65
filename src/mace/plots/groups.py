"""Groups of people: what became of them, how far the nearest counterfactual is, which features it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.answer.counterfactual import AS_IN_DATA
from mace.plots.display import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PAGE_WIDTH,
    PURPLE,
    SKY,
    VERMILION,
    Display,
    plain,
)
from mace.space import Wording

Kinds = Mapping[str, tuple[str, str, str]]
"""What can become of people: a colour, a hatch, and words."""

OUTCOME_COLOURS: Kinds = {
    "granted": (GREEN, "", "at the target already"),
    "recourse": (BLUE, "", "recourse in hand"),
    "none": (VERMILION, "//", "proved that none exists"),
    "unknown": (ORANGE, "..", "undecided"),
    "error": (GREY, "xx", "not explained"),
}

LINE_STYLES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = "osD^vPX*"
MOST_LEVERS_DRAWN = 12
MOST_CORNERS = 1000
"""Corners of a line over people; more cannot be told apart."""


class OutcomesDisplay(Display):
    """What became of the people of each group, as shares.

    Parameters
    ----------
    outcomes : mapping
        Group to a mapping from outcome (``granted``, ``recourse``, ``none``, ``unknown``, ``error``) to people.
    kinds : mapping, optional
        Other outcomes, each with its colour, hatch and words.
    """

    def __init__(self, outcomes: Mapping[str, Mapping[str, int]], kinds: Kinds = OUTCOME_COLOURS) -> None:
        self.outcomes = outcomes
        self.kinds = kinds
        self.size = (PAGE_WIDTH, 1.3 + 0.4 * len(outcomes))

    def plot(self, ax: Any = None) -> OutcomesDisplay:
        """Draw a bar a group."""
        ax = self._axes(ax)
        places = np.arange(len(self.outcomes))[::-1]
        totals = np.array([max(sum(counts.values()), 1) for counts in self.outcomes.values()])
        left = np.zeros(len(places))
        for outcome, (colour, hatch, label) in self.kinds.items():
            counts = np.array([counts.get(outcome, 0) for counts in self.outcomes.values()])
            if not counts.any():
                continue
            shares = counts / totals
            said = f"{label}: {counts[0]} ({shares[0]:.1%})" if len(counts) == 1 else label
            ax.barh(
                places, shares, left=left, color=colour, hatch=hatch, edgecolor="white", lw=0, label=said, height=0.7
            )
            for place, start, share, count in zip(places, left, shares, counts, strict=True):
                if share > 0.02 + 0.015 * len(str(count)):
                    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
                    ax.text(
                        start + share / 2, place, str(count), ha="center", va="center", fontsize=8, color=INK, bbox=box
                    )
            left = left + shares
        ax.set_yticks(places, list(map(plain, self.outcomes)))
        ax.set_xlim(0, 1)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        _legend_above(ax, 3)
        return self


class DistancesDisplay(Display):
    """How far the nearest counterfactual is, by group: the share of people that reach the target within a distance.

    Parameters
    ----------
    distances, lowers : mapping
        Group to the distances in hand, and to the proven lower bounds. Where they differ, the truth lies between the two lines.
    unit : str
        What the distance is called.
    """

    def __init__(
        self,
        distances: Mapping[str, NDArray[np.float64]],
        lowers: Mapping[str, NDArray[np.float64]],
        unit: str = "distance",
    ) -> None:
        self.distances = distances
        self.lowers = lowers
        self.unit = unit
        self.size = (PAGE_WIDTH, 4.2)

    def plot(self, ax: Any = None) -> DistancesDisplay:
        """Draw a step line a group, and a dotted one for proven lower bounds that are open."""
        ax = self._axes(ax)
        has_open = False
        end = 1.02 * max(float(distances.max()) for distances in self.distances.values()) or 1.0
        for number, (name, distances) in enumerate(self.distances.items()):
            colour, style = group_look(number)[:2]
            _steps(ax, distances, end, color=colour, ls=style, label=f"{plain(name)} ({len(distances)})", lw=1.8)
            lowers = self.lowers[name]
            if np.max(distances - lowers) > 1e-6:
                _steps(ax, lowers, end, color=colour, lw=1.2, ls=":")
                has_open = True
        if has_open:
            ax.plot([], [], color=GREY, lw=1.2, ls=":", label="proved: not nearer")
        ax.set_xlim(0, end)
        ax.set_ylim(0, 1.02)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel(plain(self.unit, most=80))
        ax.set_ylabel("of those with an answer, within")
        ax.grid(alpha=0.25)
        if len(self.distances) > 1 or has_open:
            _legend_above(ax, 3)
        return self


def _steps(ax: Any, values: NDArray[np.float64], end: float, **style: Any) -> None:
    ordered = np.sort(values)
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
    if len(ordered) > MOST_CORNERS:
        kept = np.unique(np.linspace(0, len(ordered) - 1, MOST_CORNERS).round().astype(int))
        ordered, shares = ordered[kept], shares[kept]
    ax.step(np.concatenate([[0.0], ordered, [end]]), np.concatenate([[0.0], shares, [1.0]]), where="post", **style)


class LeversDisplay(Display):
    """Which features the nearest counterfactuals change, by group.

    Parameters
    ----------
    levers : mapping
        Group to a mapping from feature to the share of people whose nearest counterfactual changes it.
    protected : names
        Features that are marked.
    most : int
        The features used most by the first group; the others are left out.
    wording : Wording
        What people call the features.
    """

    def __init__(
        self,
        levers: Mapping[str, Mapping[str, float]],
        protected: Sequence[str] = (),
        most: int = MOST_LEVERS_DRAWN,
        wording: Wording = AS_IN_DATA,
    ) -> None:
        self.levers, self.wording = levers, wording
        self.protected = tuple(protected)
        best: dict[str, float] = {}
        for shares in levers.values():
            for feature, share in shares.items():
                best[feature] = max(best.get(feature, 0.0), share)
        self.features = sorted(best, key=lambda feature: (-best[feature], feature))[:most]
        self.size = (PAGE_WIDTH, 1.4 + 0.42 * max(len(self.features), 1))

    def plot(self, ax: Any = None) -> LeversDisplay:
        """Draw a dot a group and feature."""
        ax = self._axes(ax)
        places = {feature: place for place, feature in enumerate(reversed(self.features))}
        spread = np.linspace(0.22, -0.22, len(self.levers)) if len(self.levers) > 1 else np.zeros(1)
        for number, (offset, (name, shares)) in enumerate(zip(spread, self.levers.items(), strict=True)):
            colour, _, marker = group_look(number)
            values = [shares.get(feature, 0.0) for feature in self.features]
            heights = [places[feature] + offset for feature in self.features]
            ax.hlines(heights, 0, values, color=colour, lw=1.2, alpha=0.6)
            ax.plot(values, heights, color=colour, marker=marker, ls="", label=plain(name), ms=5)
        marked = dict.fromkeys(self.protected, " (protected)")
        named = [plain(self.wording.name(name) + marked.get(name, "")) for name in self.features]
        ax.set_yticks([places[feature] for feature in self.features], named)
        ax.set_xlim(left=0)
        ax.set_ylim(-0.6, len(self.features) - 0.4)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel("of the nearest counterfactuals change it")
        ax.grid(axis="x", alpha=0.25)
        if len(self.levers) > 1:
            _legend_above(ax, 3)
        return self


def group_look(number: int) -> tuple[str, Any, str]:
    """Return colour, line and marker of a group; the first is dark, for everyone, and no two of the first 28 are alike."""
    wheel = (INK, BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE)
    turn = 2 * (number // len(wheel))
    return (
        wheel[number % len(wheel)],
        LINE_STYLES[(number + turn) % len(LINE_STYLES)],
        MARKERS[(number + turn) % len(MARKERS)],
    )


def _legend_above(ax: Any, columns: int) -> None:
    """Say what is drawn above the axes, where nothing is hidden by it."""
    labels = ax.get_legend_handles_labels()[1]
    columns = columns if max(map(len, labels), default=0) <= 28 else 2
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False, fontsize=8, borderaxespad=0.2)

"""Groups of people: what became of them, how far the nearest counterfactual is, which features it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.plots.display import BLUE, GREEN, GREY, ORANGE, RED, Display, plain

OUTCOME_COLOURS = {
    "granted": (GREEN, "at the target already"),
    "recourse": (BLUE, "recourse in hand"),
    "none": (RED, "none exists: proved"),
    "unknown": (ORANGE, "undecided"),
    "error": (GREY, "not explained"),
}


class OutcomesDisplay(Display):
    """What became of the people of each group, as shares.

    Parameters
    ----------
    outcomes : mapping
        Group to a mapping from outcome (``granted``, ``recourse``, ``none``, ``unknown``, ``error``) to people.
    """

    def __init__(self, outcomes: Mapping[str, Mapping[str, int]]) -> None:
        self.outcomes = outcomes
        self.size = (8.0, 1.2 + 0.4 * len(outcomes))

    def plot(self, ax: Any = None) -> OutcomesDisplay:
        """Draw a bar a group."""
        ax = self._axes(ax)
        places = np.arange(len(self.outcomes))[::-1]
        totals = np.array([max(sum(counts.values()), 1) for counts in self.outcomes.values()])
        left = np.zeros(len(places))
        for outcome, (colour, label) in OUTCOME_COLOURS.items():
            counts = np.array([counts.get(outcome, 0) for counts in self.outcomes.values()])
            if not counts.any():
                continue
            shares = counts / totals
            ax.barh(places, shares, left=left, color=colour, label=label, height=0.7)
            for place, start, share, count in zip(places, left, shares, counts, strict=True):
                if share > 0.05:
                    ax.text(start + share / 2, place, str(count), ha="center", va="center", color="white", fontsize=9)
            left = left + shares
        ax.set_yticks(places, list(map(plain, self.outcomes)))
        ax.set_xlim(0, 1)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False, fontsize=9)
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
        self.size = (8.0, 4.5)

    def plot(self, ax: Any = None) -> DistancesDisplay:
        """Draw a step line a group, and a dotted one for proven lower bounds that are open."""
        ax = self._axes(ax)
        colours = _colours(len(self.distances))
        end = 1.02 * max(float(distances.max()) for distances in self.distances.values())
        for colour, (name, distances) in zip(colours, self.distances.items(), strict=True):
            _steps(ax, distances, end, color=colour, label=f"{plain(name)} ({len(distances)})", lw=1.8)
            lowers = self.lowers[name]
            if np.max(distances - lowers) > 1e-6:
                _steps(ax, lowers, end, color=colour, lw=1.2, ls=":")
        ax.set_xlim(0, end)
        ax.set_ylim(0, 1.02)
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel(plain(self.unit))
        ax.set_ylabel("of those with recourse, within")
        ax.grid(alpha=0.25)
        ax.legend(frameon=False, loc="lower right", fontsize=9)
        return self


def _steps(ax: Any, values: NDArray[np.float64], end: float, **style: Any) -> None:
    ordered = np.sort(values)
    shares = np.arange(1, len(ordered) + 1) / len(ordered)
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
    """

    def __init__(
        self, levers: Mapping[str, Mapping[str, float]], protected: Sequence[str] = (), most: int = 12
    ) -> None:
        self.levers = levers
        self.protected = tuple(protected)
        best: dict[str, float] = {}
        for shares in levers.values():
            for feature, share in shares.items():
                best[feature] = max(best.get(feature, 0.0), share)
        self.features = sorted(best, key=lambda feature: (-best[feature], feature))[:most]
        self.size = (8.0, 1.4 + 0.42 * max(len(self.features), 1))

    def plot(self, ax: Any = None) -> LeversDisplay:
        """Draw a dot a group and feature."""
        ax = self._axes(ax)
        places = {feature: place for place, feature in enumerate(reversed(self.features))}
        colours = _colours(len(self.levers))
        spread = np.linspace(0.22, -0.22, len(self.levers)) if len(self.levers) > 1 else np.zeros(1)
        for colour, offset, (name, shares) in zip(colours, spread, self.levers.items(), strict=True):
            values = [shares.get(feature, 0.0) for feature in self.features]
            heights = [places[feature] + offset for feature in self.features]
            ax.hlines(heights, 0, values, color=colour, lw=1.2, alpha=0.6)
            ax.plot(values, heights, "o", color=colour, label=plain(name), ms=5)
        named = [f"{feature} (protected)" if feature in self.protected else feature for feature in self.features]
        ax.set_yticks([places[feature] for feature in self.features], list(map(plain, named)))
        ax.set_xlim(left=0)
        ax.set_ylim(-0.6, len(self.features) - 0.4)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel("of the nearest counterfactuals change it")
        ax.grid(axis="x", alpha=0.25)
        ax.legend(frameon=False, loc="lower right", fontsize=9)
        return self


def _colours(number: int) -> list[Any]:
    """Return ``number`` colours; the first is dark, for everyone."""
    from matplotlib import colormaps

    if number <= 1:
        return ["#222222"]
    wheel = colormaps["tab10"] if number <= 11 else colormaps["viridis"].resampled(number - 1)
    return ["#222222", *(wheel(place) for place in range(number - 1))]

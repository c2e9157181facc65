"""A batch: what became of everyone, how far their nearest answers are, which features these change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mace.answer.counterfactual import AS_IN_DATA
from mace.batch import Batch
from mace.distances import distance_text
from mace.errors import InvalidOption
from mace.models.package import optional
from mace.plots.display import BLUE, GREEN, GREY, ORANGE, PAGE_WIDTH, SKY, VERMILION, Display
from mace.plots.groups import MOST_LEVERS_DRAWN, DistancesDisplay, Kinds, LeversDisplay, OutcomesDisplay
from mace.problem import Status
from mace.space import Wording

STATUS_COLOURS: Kinds = {
    Status.OPTIMAL: (BLUE, "", "proved nearest"),
    Status.FEASIBLE: (SKY, "//", "in hand, not proved"),
    Status.INFEASIBLE: (VERMILION, "\\\\", "proved that none exists"),
    Status.REACHED: (GREEN, "", "at the target already"),
    Status.UNKNOWN: (ORANGE, "..", "undecided"),
    Status.ERROR: (GREY, "xx", "not explained"),
}


class BatchDisplay(Display):
    """What became of everyone in a batch, in three parts: statuses, distances, features that change.

    Parameters
    ----------
    statuses : mapping
        Status to rows.
    distances, lowers : arrays
        Of the nearest answer of each row that has one: its distance, and what is proved of it.
    levers : mapping
        Feature to the share of these answers that change it.
    unit : str
        What the distance is called.
    wording : Wording
        What people call the features.
    """

    def __init__(
        self,
        statuses: Mapping[str, int],
        distances: NDArray[np.float64],
        lowers: NDArray[np.float64],
        levers: Mapping[str, float],
        unit: str = "distance",
        wording: Wording = AS_IN_DATA,
    ) -> None:
        if not sum(statuses.values()):
            raise InvalidOption("plot: the batch has no rows, and so nothing to draw.")
        self.statuses, self.distances, self.lowers, self.levers = statuses, distances, lowers, levers
        self.parts: list[Display] = [OutcomesDisplay({f"{sum(statuses.values()):,} rows": statuses}, STATUS_COLOURS)]
        heights = [1.2]
        if len(distances):
            answered = {f"nearest answers of {len(distances):,} rows": distances}
            bounds = dict.fromkeys(answered, lowers)
            drawn = LeversDisplay(dict.fromkeys(answered, levers), wording=wording)
            self.parts += [DistancesDisplay(answered, bounds, unit), drawn]
            heights += [2.6, 0.8 + 0.3 * min(len(levers), MOST_LEVERS_DRAWN)]
        self.heights = tuple(heights)
        self.size = (PAGE_WIDTH, sum(heights))

    @classmethod
    def from_batch(cls, batch: Batch) -> BatchDisplay:
        """Return the display of a batch."""
        found = [explanation[0] for explanation in batch if explanation]
        changed = Counter(change.feature for answer in found for change in answer.changes)
        return cls(
            batch.counts,
            np.array([answer.distance for answer in found]),
            np.array([answer.lower for answer in found]),
            {name: count / len(found) for name, count in changed.items()},
            distance_text(batch[0].distance) if batch else "distance",
            next((each.wording for each in batch if each.space is not None), AS_IN_DATA),
        )

    def plot(self, ax: Any = None) -> BatchDisplay:
        """Draw on three axes, or on new ones; one will do where no row has an answer."""
        if ax is None:
            pyplot = optional("matplotlib.pyplot", extra="plot")
            ax = self._new_axes(pyplot.figure(figsize=self.size, layout="constrained"))
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) < len(self.parts):
            raise InvalidOption(f"plot: {len(axes)} axes; give {len(self.parts)}, or none.")
        for part, each in zip(self.parts, axes, strict=False):
            part.plot(each)
        if len(self.distances):
            axes[1].set_ylabel(f"of {len(self.distances):,} answers, within")
            axes[2].set_xlabel(f"of {len(self.distances):,} nearest answers change it")
        self.ax_, self.figure_ = axes, axes[0].figure
        return self

    def _new_axes(self, figure: Any) -> Any:
        return figure.subplots(len(self.parts), 1, squeeze=False, gridspec_kw={"height_ratios": self.heights})[:, 0]

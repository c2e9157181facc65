"""The search: bounds closing over time; and the decision around two features."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mace.answer.counterfactual import AS_IN_DATA
from mace.answer.explanation import Explanation
from mace.distances import as_distance, distance_up
from mace.errors import InvalidOption
from mace.models.package import optional
from mace.plots.display import BLUE, GREEN, VERMILION, Display, plain
from mace.space import Date, FeatureSpace, Integer, Real, Wording


class BoundsDisplay(Display):
    """The proven lower bound and the distance in hand over time; give it to ``explain`` as ``on_progress``.

    Examples
    --------
    >>> trace = BoundsDisplay()
    >>> trace(0.1, 0.3, 2)
    >>> trace.lowers
    [0.0, 0.1]
    """

    def __init__(self) -> None:
        self.seconds: list[float] = [0.0]
        self.lowers: list[float] = [0.0]
        self.uppers: list[float] = [math.inf]
        self._started = time.monotonic()

    def __call__(self, lower: float, upper: float, calls: int) -> None:
        """Take a step of the search down."""
        self.seconds.append(time.monotonic() - self._started)
        self.lowers.append(lower)
        self.uppers.append(upper)

    def finish(self, explanation: Explanation) -> BoundsDisplay:
        """Add the end: the bounds of the nearest answer."""
        self(explanation.lower, explanation[0].distance if explanation else math.inf, 0)
        return self

    def plot(self, ax: Any = None) -> BoundsDisplay:
        """Draw both bounds as steps and the gap between them."""
        if len(self.seconds) == 1:
            raise InvalidOption("plot: nothing was recorded. Give this object to explain(on_progress=...) first.")
        ax = self._axes(ax)
        milliseconds = 1000 * np.array(self.seconds)
        lowers = np.maximum.accumulate(np.array(self.lowers))
        uppers = np.minimum.accumulate(np.array(self.uppers))
        has = np.isfinite(uppers)
        if milliseconds[has].size == 1:  # a point is no line
            milliseconds, lowers = np.append(milliseconds, 1.05 * milliseconds[-1]), np.append(lowers, lowers[-1])
            uppers, has = np.append(uppers, uppers[-1]), np.append(has, True)
        ax.step(milliseconds, lowers, where="post", color=GREEN, lw=1.8, ls="--", label="proved: nothing nearer")
        if has.any():
            ax.step(milliseconds[has], uppers[has], where="post", color=BLUE, lw=1.8, label="in hand")
            ax.fill_between(milliseconds[has], lowers[has], uppers[has], step="post", color=BLUE, alpha=0.12)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("milliseconds")
        ax.set_ylabel("distance")
        ax.legend(frameon=False)
        return self


class Predicts(Protocol):
    """What the boundary needs of an explainer."""

    @property
    def space(self) -> FeatureSpace:
        """The features."""
        ...

    @property
    def predict_many(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Asks the model about rows."""
        ...


class BoundaryDisplay(Display):
    """Two features, all others as they are: what the model decides, the person, the answer, and the ball that is proved empty.

    The answer is drawn by its two features; where it changes others as well, it need not lie where the picture shows its decision, and
    the title says so. The ball is exact in this picture: the points of it at a distance below the proven lower bound.

    Parameters
    ----------
    names : pair of str
        The features, across and up.
    x, y : arrays
        The grid.
    labels : array
        The model's decision at each point of the grid.
    distances : array
        The distance of each point from the person.
    lower : float
        The proven lower bound.
    before, after : pair of float
        The person and the answer.
    others : tuple of str
        Features that the answer changes and the picture does not show.
    wording : Wording
        What people call features and outcomes.
    """

    def __init__(
        self,
        names: tuple[str, str],
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        labels: NDArray[Any],
        distances: NDArray[np.float64],
        lower: float,
        before: tuple[float, float],
        after: tuple[float, float] | None,
        others: tuple[str, ...] = (),
        wording: Wording = AS_IN_DATA,
    ) -> None:
        self.wording = wording
        self.names, self.x, self.y = names, x, y
        self.labels, self.distances, self.lower = labels, distances, lower
        self.before, self.after, self.others = before, after, others
        self.size = (6.5, 5.5)

    @classmethod
    def from_explanation(
        cls,
        explainer: Predicts,
        explanation: Explanation,
        names: tuple[str, str],
        *,
        distance: object = "l1",
        points: int = 60,
    ) -> BoundaryDisplay:
        """Ask the model about a grid over two numeric features; ``distance`` is the one that was asked with."""
        space = explanation.space if explanation.outside and explanation.space is not None else explainer.space
        for name in names:
            if name not in space or not isinstance(space[name], Real | Integer) or isinstance(space[name], Date):
                raise InvalidOption(f"plot: {name!r} is not a numeric feature.")
        x, y = (_grid(space, name, points) for name in names)
        rows = [{**explanation.factual, names[0]: a, names[1]: b} for b in y.tolist() for a in x.tolist()]
        metric = as_distance(distance).from_factual(space, space.point(explanation.factual))
        measured = [float(distance_up(metric, metric.measure(space.point(row)))) for row in rows]
        answer = explanation[0] if explanation else None
        shape = (len(y), len(x))
        return cls(
            names,
            x,
            y,
            np.array(explainer.predict_many(rows), dtype=object).reshape(shape),
            np.array(measured).reshape(shape),
            explanation.lower,
            (float(explanation.factual[names[0]]), float(explanation.factual[names[1]])),
            None if answer is None else (float(answer.values[names[0]]), float(answer.values[names[1]])),
            () if answer is None else tuple(c.feature for c in answer.changes if c.feature not in names),
            space.wording,
        )

    def plot(self, ax: Any = None) -> BoundaryDisplay:
        """Draw the decisions as areas, and the person, the answer and the ball on them."""
        ax = self._axes(ax)
        colormap = optional("matplotlib.colors", extra="plot").ListedColormap
        line = optional("matplotlib.lines", extra="plot").Line2D
        patch = optional("matplotlib.patches", extra="plot").Patch
        known = sorted(set(self.labels.ravel().tolist()), key=str)
        codes = np.vectorize(known.index)(self.labels)
        tints = ["#f3e3c9", "#cfe3f5", "#d9efdc", "#eadcf2", "#f2d9d9", "#e6e6e6"]
        colours = [tints[number % len(tints)] for number in range(len(known))]
        ax.pcolormesh(
            self.x,
            self.y,
            codes,
            cmap=colormap(colours),
            vmin=-0.5,
            vmax=len(known) - 0.5,
            shading="nearest",
            rasterized=True,
        )
        marks: list[Any] = [
            patch(color=colour, label=plain(self.wording.outcome(label)))
            for colour, label in zip(colours, known, strict=True)
        ]
        if self.lower > 0:
            ax.contour(self.x, self.y, self.distances, levels=[self.lower], colors=[GREEN], linewidths=1.8)
            marks.append(line([], [], color=GREEN, lw=1.8, label="proved: nothing inside"))
        ring = {"color": VERMILION, "marker": "o", "ls": "", "ms": 8, "mfc": "white", "mew": 1.8}
        ax.plot(*self.before, zorder=3, **ring)
        marks.append(line([], [], label="now", **ring))
        if self.after is not None:
            style = {"arrowstyle": "-|>", "color": BLUE, "lw": 1.8, "shrinkA": 5, "shrinkB": 4}
            if self.after != self.before:
                ax.annotate("", xy=self.after, xytext=self.before, arrowprops=style, zorder=3)
            diamond = {"color": BLUE, "marker": "D", "ls": "", "ms": 6}
            ax.plot(*self.after, zorder=4, **diamond)
            marks.append(line([], [], label="instead", **diamond))
        if self.others:
            others = plain(", ".join(map(self.wording.name, self.others)), most=50)
            ax.set_title(f"The answer also changes what is not shown: {others}", loc="left", fontsize=9)
        ax.set_xlabel(plain(self.wording.name(self.names[0])))
        ax.set_ylabel(plain(self.wording.name(self.names[1])))
        ax.legend(
            handles=marks,
            frameon=False,
            fontsize=8,
            ncols=5,
            loc="upper left",
            bbox_to_anchor=(0, -0.1),
            borderaxespad=0,
        )
        return self


def _grid(space: FeatureSpace, name: str, points: int) -> NDArray[np.float64]:
    feature = space[name]
    assert isinstance(feature, Real | Integer)
    low, high = float(feature.low), float(feature.high)
    if isinstance(feature, Integer):
        steps = max(1, math.ceil((high - low + 1) / points))
        return np.arange(low, high + 1, steps)
    return np.linspace(low, high, points)

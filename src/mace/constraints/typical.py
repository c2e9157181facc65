"""typical: only counterfactuals that an isolation forest does not call outliers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mace.constraints.condition import AtLeast, Condition, Values
from mace.constraints.views import View
from mace.distances import point_values
from mace.errors import InvalidConstraint, UnsupportedModel, cut
from mace.exact import Floats, float_up
from mace.forms import Outcomes, TreeEnsemble
from mace.language import syntax
from mace.models import Reading, read
from mace.recent import MOST_SPACES, Recent
from mace.space import FeatureSpace, Point
from mace.space.frames import as_pandas

MOST_SAID = 10_000
"""How many answers of a forest are kept."""

LONGEST_NAME = 200
"""Characters of a fingerprint, or of what is shown of a forest."""

USUAL = Outcomes(frozenset([Fraction(1)]))
"""What the forest must say: the second of its classes, -1 and 1."""


@dataclass(frozen=True)
class Usual(Condition):
    """An isolation forest, the real one, does not call the row an outlier."""

    space: FeatureSpace
    reading: Reading
    said: Recent[Point, bool] = field(default_factory=lambda: Recent(MOST_SAID), repr=False, compare=False)
    cut: ClassVar[str] = "typical"
    is_slow: ClassVar[bool] = True

    @property
    def form(self) -> TreeEnsemble:
        """The forest as a sum of depths."""
        assert isinstance(self.reading.form, TreeEnsemble)
        return self.reading.form

    def holds(self, values: Values) -> bool:
        """Ask the forest, about each row once."""
        point = self._point(values)
        found = self.said.get(point)
        return self.said.put(point, USUAL.accepts(self.reading.ask([point])[0])) if found is None else found

    def depths(self, points: list[Point]) -> Floats:
        """Return by how much the depths of rows are more than enough, in floats, without asking the forest."""
        form = self.form
        coded = {column.feature for column in form.columns if column.table is not None}
        if any(point[feature] is None for point in points for feature in coded):
            return np.array([float(form.exact_scores(point)[0]) for point in points])
        return np.asarray(form.value[form.leaves(points), 0].sum(axis=1) + float(form.base[0]))

    @cached_property
    def unsure(self) -> float:
        """How near to 0 these may be for the forest itself to see it otherwise: twice its band."""
        return 2 * float_up(self.form.band(USUAL))

    def expected(self, point: Point) -> bool:
        """Return what the forest says of a row, as its depths tell; where these do not, it is asked."""
        depths = float(self.depths([point])[0])
        return depths > 0 if abs(depths) > self.unsure else self.holds(point_values(self.space, point))

    def _point(self, values: Values) -> Point:
        numbers = (values[name] for name in self.space)
        return tuple(
            None if number is None else float(number) if number.denominator != 1 else int(number) for number in numbers
        )

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the forest cannot be taken in a view."""
        if view is View.PIECEWISE:
            return "a forest of outliers is kept to by cutting boxes"
        return "" if view in (View.FOREST, View.CUT) else super().why_not(view, space)

    def formula(self, prefix: str) -> syntax.Guard:
        """Return that the depths add up to enough, widened by their rounding."""
        return AtLeast(self.program, -self.form.band(USUAL)).formula(prefix)

    @property
    def program(self) -> syntax.Program:
        """The program that adds up the depths, less the least that is enough."""
        return replace(self.form, is_regressor=True).program()


@dataclass(eq=False)
class Typical:
    """Only rows that an isolation forest does not call outliers.

    Attributes
    ----------
    forest, frame, quantile
        As for :func:`typical`.
    named : dict, optional
        The fingerprint of a forest that is not at hand, as a certificate has it.
    """

    forest: Any
    frame: Any = None
    quantile: float | None = None
    named: dict[str, str] | None = None
    _read: Recent[FeatureSpace, Usual] = field(default_factory=lambda: Recent(MOST_SPACES), repr=False)
    _made: Recent[FeatureSpace, Any] = field(default_factory=lambda: Recent(MOST_SPACES), repr=False)

    def bind(self, space: FeatureSpace, factual: Point) -> Usual:
        """Return the condition; the same for every factual. The forest is fitted and read the first time."""
        found = self._read.get(space)
        if found is None:
            try:
                reading = read(self.fitted(space), space)
            except UnsupportedModel as error:
                raise InvalidConstraint(f"typical: {error}") from error
            if reading.family != "IsolationForest" or not isinstance(reading.form, TreeEnsemble):
                raise InvalidConstraint(
                    f"typical: {reading.family} is no IsolationForest. Give one, or a pipeline that ends in one."
                )
            found = self._read.put(space, Usual(space, reading))
        return found

    def fitted(self, space: FeatureSpace) -> Any:
        """Return the forest that is asked, to keep it: the user's own, one with another offset, or one that is fitted here on a frame.

        :func:`mace.verify` needs it to check a certificate.
        """
        if self.named is not None:
            raise InvalidConstraint(f"{self}: only its fingerprint is known. Give the forest itself.")
        found = self._made.get(space)
        return self._made.put(space, self._forest(space)) if found is None else found

    def _forest(self, space: FeatureSpace) -> Any:
        from sklearn.ensemble import IsolationForest
        from sklearn.pipeline import make_pipeline

        from mace.space.encoder import Encoder

        forest = self.forest
        if forest is not None and self.quantile is None:
            return forest
        lacking = [name for name in space if name not in self.frame.columns]
        if lacking:
            raise InvalidConstraint(
                f"typical: the frame has no column {lacking[0]!r}. Give it every feature of the space."
            )
        rows = self.frame[list(space)]
        fresh = make_pipeline(Encoder(space), IsolationForest(random_state=0))
        forest = fresh.fit(rows) if forest is None else copy.deepcopy(forest)
        final = forest[-1] if hasattr(forest, "steps") else forest
        final.offset_ = float(np.quantile(forest.score_samples(rows), self.quantile or 0.0))
        return forest

    def __repr__(self) -> str:
        return cut(str(self))

    def __str__(self) -> str:
        if self.named is not None:
            return self.named["shown"]
        of = "a frame" if self.forest is None else "an isolation forest"
        return f"typical({of}" + (")" if self.quantile is None else f", quantile={self.quantile:g})")


def typical(forest: Any, quantile: float | None = None, *, frame: Any = None) -> Typical:
    """Allow only counterfactuals that an isolation forest does not call outliers.

    Parameters
    ----------
    forest : IsolationForest, a pipeline that ends in one, or a data frame
        Fitted on the features of the space. Of a frame, a forest of scikit-learn's defaults is fitted here, behind :class:`~mace.Encoder`,
        with ``random_state=0``.
    quantile : float, optional
        Rows that score below this quantile of the frame's own scores are outliers; without it a fitted forest's own ``predict`` decides
        (its ``contamination``), and a frame's is 0.05.
    frame : data frame, optional
        The rows whose scores the quantile is of; needed with a fitted forest and a quantile.

    Examples
    --------
    >>> import pandas as pd
    >>> print(typical(pd.DataFrame({"age": [30, 40, 50], "income": [10, 20, 30]})))
    typical(a frame, quantile=0.05)
    """
    if quantile is not None and (
        isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 <= quantile < 1
    ):
        raise InvalidConstraint(f"typical: quantile is {quantile!r}; it must be a number from 0 to 1, e.g. 0.05.")
    if isinstance(forest, Mapping):
        return _named(forest)
    forest = as_pandas(forest)
    if hasattr(forest, "columns") and hasattr(forest, "itertuples"):
        if frame is not None:
            raise InvalidConstraint(
                "typical: two frames are given. Give a fitted forest and a frame, or a frame alone."
            )
        return Typical(None, forest, 0.05 if quantile is None else float(quantile))
    if not hasattr(forest, "predict"):
        raise InvalidConstraint(
            f"typical: {type(forest).__name__} is neither a fitted IsolationForest nor a data frame."
        )
    if quantile is not None and frame is None:
        raise InvalidConstraint(
            "typical: a fitted forest does not keep the scores that a quantile is of. Give frame=X_train too, or leave the quantile out: "
            "then the forest's own predict decides."
        )
    return Typical(forest, as_pandas(frame), None if quantile is None else float(quantile))


def _named(given: Mapping[Any, Any]) -> Typical:
    """Return what a certificate says of a forest: its fingerprint, and what was shown of it."""
    keys = ("form", "parameters", "shown")
    if set(given) != set(keys) or any(
        not isinstance(given[key], str) or len(given[key]) > LONGEST_NAME for key in keys
    ):
        raise InvalidConstraint(
            f"typical: {given!r:.80} is no fingerprint of a forest; its keys are {', '.join(keys)}."
        )
    return Typical(None, named={key: given[key] for key in keys})

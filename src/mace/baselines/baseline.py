"""A baseline: another method behind the questions of :class:`~mace.Explainer`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mace.answer.counterfactual import Counterfactual, show_value
from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.constraints import Constraints
from mace.errors import InvalidOption
from mace.exact import float_up
from mace.forms import Outcomes
from mace.models import Ask, Reading, read
from mace.problem import Problem, Status, in_domain
from mace.registry import Registry
from mace.space import FeatureSpace, Point, Row

if TYPE_CHECKING:
    import pandas as pd

BASELINES = Registry(
    "baselines",
    {
        "mo": "mace.baselines.minimum_observable:MinimumObservable",
        "ft": "mace.baselines.feature_tweaking:FeatureTweaking",
        "pft": "mace.baselines.feature_tweaking:PlausibleFeatureTweaking",
        "ar": "mace.baselines.actionable_recourse:ActionableRecourse",
    },
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What a method takes and what it promises.

    Attributes
    ----------
    title : str
        Its name with the abbreviation that tables use.
    models, data, distances : tuple of str
        What it takes; no models at all: it only asks for predictions.
    is_plausible : bool
        Whether every answer has the types and ranges of the data.
    is_optimal : bool
        Whether the answer is proved nearest.
    """

    title: str
    models: tuple[str, ...]
    data: tuple[str, ...]
    distances: tuple[str, ...]
    is_plausible: bool
    is_optimal: bool = False


class Method(Protocol):
    """What a file of this folder provides."""

    traits: ClassVar[Traits]

    def __init__(self, reading: Reading, space: FeatureSpace, points: tuple[Point, ...]) -> None: ...

    def propose(self, problem: Problem, *, raw: bool) -> Point | str:
        """Return a point, plausible and valid or not, or why there is none."""


class Baseline:
    """A method that the paper compares MACE with; its answers carry no proof.

    Parameters
    ----------
    method : str
        ``"mo"``, ``"ft"``, ``"pft"`` or ``"ar"``; ``mace list baselines`` says what they are.
    model : estimator or pipeline
        The fitted model as deployed.
    space : FeatureSpace
        Its features.
    data : pandas.DataFrame
        Rows over the features: those that MO searches, and from which the others take spreads and percentiles.

    Raises
    ------
    UnsupportedModel
        The method cannot take the model.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import mace
    >>> data = pd.DataFrame({"age": [20, 30, 40, 50], "debt": [9.0, 8.0, 2.0, 1.0]})
    >>> model = DecisionTreeClassifier(random_state=0).fit(data, [0, 0, 1, 1])
    >>> answer = Baseline("mo", model, mace.FeatureSpace.from_frame(data), data).explain(data.iloc[0])
    >>> answer[0].values, str(answer.status)
    ({'age': 40, 'debt': 2.0}, 'feasible')
    """

    def __init__(self, method: str, model: Any, space: FeatureSpace, data: pd.DataFrame) -> None:
        self.name = method
        self.space = space
        kind: type[Method] = BASELINES.load(method)
        self.traits = kind.traits
        self._reading = read(model, space)
        points = tuple(
            space.point(dict(zip(space, row, strict=True))) for row in data[list(space)].itertuples(index=False)
        )
        if not points:
            raise InvalidOption("data has no rows; give the rows that the model was trained on.")
        self._method = kind(self._reading, space, points)

    def explain(
        self,
        row: Row,
        target: object = None,
        distance: object = "l1",
        constraints: Constraints = (),
        *,
        raw: bool = False,
    ) -> Explanation:
        """Return the method's answer: ``feasible``, or ``unknown`` with the reason.

        Parameters
        ----------
        row, target, distance, constraints
            As for :meth:`mace.Explainer.explain`.
        raw : bool
            Take the method's answer as it is, without the paper's post-processing (integers rounded, the most activated category
            taken).

        Returns
        -------
        Explanation
            At most one counterfactual. It is plausible, fulfils the constraints, and the real model puts it in the target; an
            answer of the method that does not is not returned, and the reason says why. ``lower`` is 0: nothing is proved.
        """
        started = time.monotonic()
        question = Question(self.space, target, distance, constraints, classes=self._reading.classes)
        factual = self.space.point(row)
        current = self._reading.ask([factual])[0]
        problem = question.problem(self._reading, factual, current)
        there = question.if_reached(self._reading, factual, current, started)
        if there is not None:
            return there
        problem = replace(problem, ask=_once(problem.ask))
        proposal = self._method.propose(problem, raw=raw)
        seconds = time.monotonic() - started
        reason = proposal if isinstance(proposal, str) else _obstacle(problem, proposal)
        found = () if reason or isinstance(proposal, str) else (self._counterfactual(problem, proposal, seconds),)
        wanted, measured = question.in_words
        return Explanation(
            counterfactuals=found,
            status=Status.FEASIBLE if found else Status.UNKNOWN,
            factual=self.space.values_of(factual),
            prediction=self._reading.label(current),
            target=wanted,
            distance=measured,
            lower=0.0,
            reason=reason or "a baseline proves nothing",
            seconds=time.monotonic() - started,
            solver=f"{self.name}: {self.traits.title}, a baseline without proof",
            classes=self._reading.classes,
        )

    def _counterfactual(self, problem: Problem, point: Point, seconds: float) -> Counterfactual:
        return Counterfactual.of(
            self.space,
            problem.factual,
            point,
            distance=float_up(problem.distance(point)),
            lower=0.0,
            status=Status.FEASIBLE,
            prediction=self._reading.label(
                (problem.ask if isinstance(problem.goal, Outcomes) else self._reading.ask)([point])[0]
            ),
            solver=self.name,
            seconds=seconds,
        )


def _once(ask: Ask) -> Ask:
    """Return a way to ask that remembers what was said of a row alone."""
    said: dict[Point, Fraction] = {}

    def remembering(points: Sequence[Point]) -> list[Fraction]:
        if len(points) != 1:
            return ask(points)
        if points[0] not in said:
            said[points[0]] = ask(points)[0]
        return [said[points[0]]]

    return remembering


def _obstacle(problem: Problem, point: Point) -> str:
    """Return why a point is no counterfactual; empty where it is one."""
    for (name, feature), value, own in zip(problem.space.items(), point, problem.factual, strict=True):
        if not in_domain(feature, value, own):
            return f"its answer is implausible: {name!r} would be {show_value(value)}"
    if not problem.is_plausible(point):
        return "its answer breaks a constraint"
    return "" if problem.is_reached(point) else "the model does not put its answer in the target"

"""The explainer: a model read once, asked about many rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from mace.answer.asked import AskedModel, watched
from mace.answer.costs import costs
from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.levers import Levers
from mace.answer.margin import NoiseMargin
from mace.answer.outside import Outside, check_outside
from mace.answer.question import Question
from mace.answer.reasons import Reasons
from mace.answer.region import RecourseRegion
from mace.answer.rounding import RoundTo
from mace.constraints import Constraints
from mace.constraints.causal import Causal
from mace.constraints.differ import Differ
from mace.constraints.robust import Robust, robust
from mace.distances import as_distance
from mace.errors import InvalidOption, InvalidSpace, cut
from mace.models.live import LiveModel
from mace.models.reading import FurtherFeatures
from mace.problem import Progress
from mace.slips import METHODS, knows_its_options, no_attribute
from mace.space import FeatureSpace, Row, Scalar

if TYPE_CHECKING:
    import pandas as pd

    from mace.answer.question import ReasonsOptions
    from mace.batch import Batch
    from mace.batch.reasons import ReasonsBatch
    from mace.batch.reasons_stream import ReasonsBatchOptions
    from mace.batch.stream import BatchOptions


class Explainer(AskedModel):
    """Explains the decisions of one model.

    Parameters
    ----------
    model : estimator, pipeline or function
        The fitted model as deployed; see ``mace list models``.
    space : FeatureSpace
        The plausible domain of its features, in any order where the model knows their names. Features that the model was not fitted
        on are left out, with a warning; rows may still have them.
    causes : Causal, optional
        Structural equations: answers are then interventions, of which only the actions cost; see docs/realism.md.
    unread : {"search"}, optional
        What to do with a model that cannot be read: with ``"search"`` it is only asked, and answers are valid but not proved nearest; see
        docs/search.md. A model that can be read is read all the same.
    outside : {"error", "keep", "widen"}
        What to do with a row that has a number outside its range, a level that is not known, or a missing value where there is no state for
        it. ``"keep"``: its own value may stay or move into the range, which stays as it is, so that distances may be above 1.
        ``"widen"``: the range, and the width that distances divide by, grow up to the value, for this row alone. A level is let in, and a
        missing value, where the model takes it. Answers say so in ``reason``; see docs/spaces.md.

    Raises
    ------
    UnsupportedModel
        The model cannot be read exactly, and ``unread`` is not given; or it cannot even be asked.

    Notes
    -----
    Every question raises :class:`~mace.ModelChanged` where the model was fitted again, or otherwise changed, after it was read.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from mace.space import FeatureSpace, integer
    >>> space = FeatureSpace({"age": integer(18, 90), "income": integer(0, 100)})
    >>> model = DecisionTreeClassifier().fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
    >>> print(Explainer(model, space).explain({"age": 35, "income": 25}, target=1)[0])
    feature  now  instead
    income   25   41
    predicted 1: P(1) 0 -> 1, threshold 0.5
    distance 0.08, proved at least 0.08 (optimal)
    """

    @knows_its_options
    def __init__(
        self,
        model: Any,
        space: FeatureSpace,
        causes: Causal | None = None,
        *,
        unread: str | None = None,
        outside: Outside = "error",
    ) -> None:
        if isinstance(model, FeatureSpace):
            raise InvalidSpace("The space comes second: mace.Explainer(model, space).")
        if not isinstance(space, FeatureSpace):
            raise InvalidSpace(
                f"space is a {type(space).__name__}; give a FeatureSpace, e.g. mace.FeatureSpace.from_frame(X_train)."
            )
        try:
            live = LiveModel(model, space, unread)
        except FurtherFeatures as error:
            space = space.without(*error.names)
            live = LiveModel(model, space, unread)
            named = ", ".join(map(repr, error.names))
            warnings.warn(
                f"The model was not fitted on {named}: left out of explainer.space. Rows may still have such columns.",
                stacklevel=3,
            )
        if causes is not None and not isinstance(causes, Causal):
            raise InvalidOption(f"causes={causes!r}; make it with mace.Causal({{effect: function}}).")
        super().__init__(model, space, causes, live, unread, check_outside(outside))

    @property
    def classes(self) -> tuple[Scalar, ...] | None:
        """The model's labels; ``None`` for a function that returns numbers."""
        return self._reading.classes

    def __repr__(self) -> str:
        few = cut(" or ".join(map(str, self.classes or ())), 60)
        says = (
            "numbers"
            if self.classes is None
            else few
            if len(self.classes) < 4
            else f"one of {len(self.classes)} classes"
        )
        causes = "" if self.causes is None else f", effects: {cut(', '.join(self._programs), 60)}"
        asked = " (not read, only asked)" if self._live.is_unread else ""
        return f"<Explainer: {self._reading.family}{asked}, {len(self.space)} features, predicts {says}{causes}>"

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute("the explainer", name, METHODS, (each for each in dir(type(self)) if each[0] != "_"))

    def __reduce__(self) -> tuple[Callable[..., Explainer], tuple[Any, FeatureSpace, Causal | None]]:
        """Pickle the model and the space; the model is read anew, and the same, where it is unpickled."""
        is_plain = self.unread is None and self.outside == "error"
        made = type(self) if is_plain else partial(type(self), unread=self.unread, outside=self.outside)
        return made, (self.model, self.space, self.causes)

    def predict(self, row: Row) -> Any:
        """Return what the real model says of a row."""
        return self.predict_many([row])[0]

    @watched
    def predict_many(self, rows: Sequence[Row]) -> list[Any]:
        """Return what the real model says of rows, asked in one call."""
        at = [self._at(row) for row in rows]
        points = [self.space.point(row) for row, (own, _) in zip(rows, at, strict=True) if own is self]
        inside = iter(self._reading.ask(points) if points else [])
        return [
            self._reading.label(next(inside)) if own is self else own._predicted(row)
            for row, (own, _) in zip(rows, at, strict=True)
        ]

    @watched
    def reaches(self, row: Row, target: object) -> bool:
        """Return whether the real model puts a row in the target already, so that there is nothing to change."""
        own, _ = self._at(row)
        return own._reaches(row, target)

    @knows_its_options
    def explain(
        self,
        row: Row,
        target: object = None,
        distance: object = "l1",
        constraints: Constraints = (),
        *,
        count: int = 1,
        diversity: Differ | None = None,
        accuracy: float = 1e-6,
        time_limit: float | None = None,
        solver: str = "auto",
        certify: bool = False,
        digits: int | Mapping[str, int] | None = None,
        round_to: RoundTo = "auto",
        on_progress: Progress | None = None,
    ) -> Explanation:
        """Return the nearest counterfactuals of a row, each proved nearest or with an honest gap.

        Parameters
        ----------
        row : dict, Series, one-row frame, or sequence in the space's order
            The factual.
        target : optional
            ``None``: any other class. Or a label, :func:`~mace.becomes`, :func:`~mace.any_of`; a bound on a label's probability, or
            on a prediction: :func:`~mace.at_least`, :func:`~mace.at_most`, :func:`~mace.between`.
        distance : str, Distance or function
            ``"l0"``, ``"l1"``, ``"l2"``, ``"linf"``, a :class:`~mace.Distance`, or a function ``(new, old)``.
        constraints : iterable of constraints, texts or dicts, or one of these
            What may change and how; a text such as ``"age >= old.age"`` is read by :func:`~mace.rule`. In a dict,
            ``{"age": [20, 30], "housing": ["own", "rent"]}``, two numbers are the range of a number, and levels those allowed.
        count : int
            How many counterfactuals, each different from all earlier ones.
        diversity : optional
            How they differ, see :func:`~mace.differ`. Where not given, in the sets of features that they change: none contains
            another. Each is the nearest of its kind; where there are fewer, ``exhausted`` says so.
        accuracy : float
            ε: stop when upper - lower <= ε.
        time_limit : float, optional
            Seconds for the whole call; what the model's own ``predict`` takes at the end comes on top, and what is done once: loading or
            compiling kernels, and reading the model for round values.
        solver : str
            ``"auto"`` or a name from ``mace list solvers``.
        certify : bool
            Whether each answer gets a certificate, a proof that :func:`~mace.verify` checks without the solver that found it.
        digits : int or mapping of str to int, optional
            So many decimals for real answers, or for those of some features: ``digits=2`` asks for multiples of 0.01, as ``"auto"`` does
            for those of the data. Where that cannot be asked, as with causes or ``robust``, the answer is rounded afterwards, where that
            leaves it valid, and is ``feasible`` where it is farther then.
        round_to : number, mapping of str to number, "auto" or None
            Answers are multiples of this number, counted from 0, and proved nearest among such: ``{"income": 100}``. ``"auto"``: as the
            data are written that the space was inferred from (``space.round_to``); of linear models and networks proved nearest among
            such that change no other features than the nearest row of all, or lie next to it. Where no round answer exists, one that
            is not is given.
            ``None``: any number that the space has.
        on_progress : callable, optional
            Receives (lower, upper, calls).

        Returns
        -------
        Explanation
            A sequence of counterfactuals, nearest first. Empty with status ``infeasible`` (proved), ``unknown`` or ``reached``: the
            row is at the target already, and there is nothing to change.
        """
        started = time.monotonic()
        question = Question(
            self.space,
            target,
            distance,
            constraints,
            count=count,
            diversity=diversity,
            accuracy=accuracy,
            time_limit=time_limit,
            solver=solver,
            certify=certify,
            digits=digits,
            round_to=round_to,
            on_progress=on_progress,
            classes=self.classes,
        )
        return self._answer(row, question, started)

    def explain_many(self, frame: Any, *, id: str | None = None, **options: Unpack[BatchOptions]) -> Batch:  # noqa: A002
        """Explain every row of a frame, in order; a row that cannot be explained is an answer of status ``error``.

        Parameters
        ----------
        frame : data frame, or iterable of data frames or rows
            The factuals; columns that are no feature are left out. Equal rows are solved once.
        id : str, optional
            A column of the frame, a feature or not, that identifies the rows; it comes first in the tables.
        target, distance, constraints, count, diversity, accuracy, solver, certify, digits, round_to
            As for :meth:`explain`.
        time_limit, total_time_limit : float, optional
            Seconds for each row, and for all of them; what is not reached in time is ``unknown``.
        n_jobs : int, optional
            Processes, -1 for one a core; ``None`` is 1, or what ``joblib.parallel_config`` says. The model is read once in each. The
            answers are the same with any number.
        checkpoint : path, optional
            A file of JSON lines, one as soon as a row is answered. Where it exists, its rows are not asked again; one of another
            question, model or data is refused.
        on_progress : callable, optional
            Receives a :class:`~mace.batch.Progress` as rows are answered.
        progress : bool
            Whether to show a bar with the rate, the proved share and the time that remains.

        Returns
        -------
        Batch
            A sequence of explanations. After Ctrl-C it holds what was answered; the other rows are ``unknown``.
        """
        from mace.batch import Batch
        from mace.batch.stream import Stream

        return Batch.of(Stream.of(self, options), frame, id)

    def explain_each(self, frames: Any, **options: Unpack[BatchOptions]) -> Iterator[Explanation]:
        """Give the explanations of :meth:`explain_many` one after the other, without keeping them: for more rows than fit in memory.

        Parameters
        ----------
        frames : iterable of data frames or rows, or one data frame
            Read as far as the answers are: ``pandas.read_csv(path, chunksize=1000)``, say. Equal rows are solved once where few other
            rows lie between them.
        options
            As for :meth:`explain_many`. Ctrl-C gives what is answered and is raised then.
        """
        from mace.batch.stream import Stream

        return Stream.of(self, options).answers(frames)

    def cost_table(self, row: Row, distance: object = "l1") -> pd.DataFrame:
        """Return what one step of each feature costs from a row: another level, a year, a thousand.

        Steps are powers of ten, small beside the range; the distances of several features add up for l1, not for others.

        Parameters
        ----------
        row, distance
            As for :meth:`explain`.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from mace.space import FeatureSpace, integer, ordinal
        >>> space = FeatureSpace({"age": integer(18, 90), "income": integer(0, 50_000), "degree": ordinal([0, 1, 2])})
        >>> model = DecisionTreeClassifier().fit([[30, 10_000, 0], [50, 39_000, 1]], [0, 1])
        >>> print(Explainer(model, space).cost_table([30, 20_000, 1]).to_string(index=False))
        feature change  distance
            age     +1  0.004630
         income  +1000  0.006667
         degree 1 -> 2  0.166667
        """
        import pandas as pd

        space = self._space_of(row)
        factual = space.point(row)
        found = costs(space, as_distance(distance).from_factual(space, factual), factual)
        return pd.DataFrame(found, columns=["feature", "change", "distance"])

    @knows_its_options
    @watched
    def levers(
        self,
        row: Row,
        target: object = None,
        distance: object = "l1",
        constraints: Constraints = (),
        *,
        most: int = 20,
        accuracy: float = 1e-6,
        time_limit: float | None = None,
        solver: str = "auto",
        round_to: RoundTo = "auto",
    ) -> Levers:
        """Return the menu of levers: the smallest sets of features that suffice, each with its nearest answer, and sets that do not.

        Which sets suffice is proved of all values; the answers have round ones, and are nearest among these. With causes, the sets are of
        features that are acted upon; what follows from them is no part of a set.

        Parameters
        ----------
        row, target, distance, constraints, accuracy, time_limit, solver, round_to
            As for :meth:`explain`.
        most : int
            The menu ends there.
        """
        started = time.monotonic()
        instead = "Ask for sets of features with explain(count=..., diversity=mace.differ(in_sets=True))."
        self._must_prove("levers", solver, instead)
        question = Question(
            self.space,
            target,
            distance,
            constraints,
            count=most,
            accuracy=accuracy,
            time_limit=time_limit,
            solver=solver,
            round_to=round_to,
            classes=self.classes,
        )
        own, asked = self._about(row, question)
        with own._live.question():
            return own._levers(row, asked, most, started)

    @knows_its_options
    def reasons(
        self,
        row: Row,
        target: object = None,
        constraints: Constraints = (),
        *,
        count: int = 10,
        smallest: bool = False,
        ranges: bool = True,
        time_limit: float | None = None,
        solver: str = "auto",
        certify: bool = False,
    ) -> Reasons:
        """Return why a row is not at the target: smallest sets of features whose values alone keep it out, whatever the others are.

        Parameters
        ----------
        row, target, time_limit, solver
            As for :meth:`explain`; without a target the reasons are those of the row's own class.
        constraints
            What the other features may be, as for :meth:`explain`.
        count : int
            How many reasons at most.
        smallest : bool
            Whether the reasons come by their number of features, proved: the first has as few as any. Otherwise no feature of a reason
            can be left out, but another reason may have fewer.
        ranges : bool
            Whether each is widened from values to ranges that force the decision as well.
        certify : bool
            Whether each gets a certificate.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from mace.space import FeatureSpace, integer
        >>> space = FeatureSpace({"age": integer(18, 90), "income": integer(0, 100)})
        >>> model = DecisionTreeClassifier().fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
        >>> print(Explainer(model, space).reasons({"age": 35, "income": 25}))
        Why 0, not any other outcome:
        1. income
           as long as income is at most 40
        Each set alone keeps the row out of the target, and no feature of it can be left out: proved.
        There is no other reason: proved.
        In every reason: income.
        """
        asked: ReasonsOptions = {
            "target": target,
            "constraints": constraints,
            "count": count,
            "smallest": smallest,
            "ranges": ranges,
            "time_limit": time_limit,
            "solver": solver,
            "certify": certify,
        }
        return self._explain_why(row, asked)

    def reasons_many(
        self,
        frame: Any,
        *,
        id: str | None = None,  # noqa: A002
        **options: Unpack[ReasonsBatchOptions],
    ) -> ReasonsBatch:
        """Return the reasons of every row of a frame, in order; a row that cannot be asked about has an ``error``.

        Parameters
        ----------
        frame : data frame, or iterable of data frames or rows
            The rows; columns that are no feature are left out. Equal rows are asked about once.
        id : str, optional
            A column of the frame that identifies the rows.
        total_time_limit, n_jobs, checkpoint, on_progress, progress
            As for :meth:`explain_many`.
        options
            As for :meth:`reasons`: ``time_limit`` is that of each row.

        Returns
        -------
        ReasonsBatch
            A sequence of reasons, with ``to_frame()``, ``to_json()`` and ``save(path)``. After Ctrl-C it holds those found; the other
            rows have none.
        """
        from mace.batch.reasons import ReasonsBatch
        from mace.batch.reasons_stream import ReasonsStream

        return ReasonsBatch.of(ReasonsStream.of(self, options), frame, id)

    def region(
        self,
        answer: Counterfactual,
        features: Iterable[str] | None = None,
        *,
        time_limit: float | None = None,
        solver: str = "auto",
    ) -> RecourseRegion:
        """Widen an answer into a region in which every plausible row is proved to be predicted like it.

        Parameters
        ----------
        answer : Counterfactual
            Of this explainer's model; classes only.
        features : names, optional
            Which features may vary, in this order; those that the answer changes where not given. All others stay as in the answer.
        time_limit : float, optional
            Seconds; a region that was still being widened then is smaller, and says so.
        solver : str
            As for :meth:`explain`.
        """
        return self._region(answer, features, time_limit=time_limit, solver=solver)

    @knows_its_options
    def margin(
        self,
        row: Row,
        answer: Counterfactual | Row,
        target: object = None,
        noise: Robust | Mapping[str, float] | float | str = "100% of range",
        *,
        time_limit: float | None = None,
        solver: str = "auto",
    ) -> NoiseMargin:
        """Return how much noise an answer stands: the greatest share of a noise that never takes it out of the target, proved.

        Parameters
        ----------
        row, target, time_limit, solver
            As for :meth:`explain`.
        answer : Counterfactual or row
            What is to stand the noise.
        noise
            That of which the share is, as for :func:`~mace.robust`; where not given, the range of every feature that has an order.

        Examples
        --------
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from mace.space import FeatureSpace, integer
        >>> space = FeatureSpace({"age": integer(18, 90), "income": integer(0, 100)})
        >>> model = DecisionTreeClassifier().fit([[30, 10], [50, 39], [40, 41], [20, 70]], [0, 0, 1, 1])
        >>> print(Explainer(model, space).margin({"age": 35, "income": 25}, {"age": 35, "income": 60}))
        Noise of up to 19.99 % of each feature's range never takes the answer out of the target: proved.
        Noise of 20 % of each feature's range can: it leads to a row that is not in it.
        """
        values = answer.values if isinstance(answer, Counterfactual) else answer
        asked = noise if isinstance(noise, Robust) else robust(noise)
        question = Question(
            self.space, target, constraints=[asked], time_limit=time_limit, solver=solver, classes=self.classes
        )
        return self._margin(row, values, question)

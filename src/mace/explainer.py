"""The explainer: a model read once, asked about many rows."""

from __future__ import annotations

import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, Unpack

from mace.answer.costs import costs
from mace.answer.counterfactual import Counterfactual
from mace.answer.driver import Driver
from mace.answer.explanation import Explanation
from mace.answer.interventions import NearestInterventions
from mace.answer.later import Later
from mace.answer.levers import Levers, menu, round_levers
from mace.answer.margin import NoiseMargin, margin_of
from mace.answer.nearest import NearestRows
from mace.answer.outside import Admitted, Outside, admitted, check_outside
from mace.answer.question import Question, is_seconds
from mace.answer.reasons import Reasons
from mace.answer.region import RecourseRegion, widened
from mace.answer.round_ways import Rounds
from mace.answer.rounding import RoundTo, rounded
from mace.answer.scoring import Measure, with_scores
from mace.certify.certificate import Certificate
from mace.certify.statement import Statement, check_can_state
from mace.clock import without_pauses
from mace.constraints import Constraint, Constraints
from mace.constraints.causal import Causal, check_conditions
from mace.constraints.differ import Differ
from mace.constraints.robust import Robust, robust
from mace.distances import as_distance
from mace.errors import InvalidOption, InvalidRow, InvalidSpace, UnsupportedModel, cut, did_you_mean
from mace.forms import TreeEnsemble, negated
from mace.models import Reading
from mace.models.live import Block, LiveModel
from mace.models.reading import FurtherFeatures
from mace.problem import Problem, Progress, Status
from mace.slips import METHODS, check_options, knows_its_options, no_attribute
from mace.solvers import Lane, choose
from mace.space import FeatureSpace, Point, Row, Scalar
from mace.space.outside import roomy
from mace.targets import of_label, reached

if TYPE_CHECKING:
    import pandas as pd

    from mace.batch import Batch
    from mace.batch.protocol import BatchOptions
    from mace.batch.reasons import ReasonsBatch, ReasonsOptions

MOST_ROWS = 8
"""For so many rows outside the space the model is kept as read over their spaces."""

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _keep(kept: OrderedDict[FeatureSpace, T], space: FeatureSpace, made: T) -> None:
    """Keep what was made for a space, and forget what was used the longest ago."""
    kept[space] = made
    if len(kept) > MOST_ROWS:
        kept.popitem(last=False)


def _watched(method: Callable[Concatenate[Explainer, P], R]) -> Callable[Concatenate[Explainer, P], R]:
    """Let a method raise :class:`~mace.ModelChanged` where the model is no longer the one that was read, and keep to its time limit."""

    @wraps(method)
    def asked(explainer: Explainer, /, *given: P.args, **named: P.kwargs) -> R:
        with without_pauses(named.get("time_limit")), explainer._live.question():
            return method(explainer, *given, **named)

    return asked


class Explainer:
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
        self.model = model
        try:
            self._live = LiveModel(model, space, unread)
        except FurtherFeatures as error:
            space = space.without(*error.names)
            self._live = LiveModel(model, space, unread)
            named = ", ".join(map(repr, error.names))
            warnings.warn(
                f"The model was not fitted on {named}: left out of explainer.space. Rows may still have such columns.",
                stacklevel=3,
            )
        self.unread, self.outside = unread, check_outside(outside)
        if causes is not None and not isinstance(causes, Causal):
            raise InvalidOption(f"causes={causes!r}; make it with mace.Causal({{effect: function}}).")
        self._begin(space, causes)

    def _begin(self, space: FeatureSpace, causes: Causal | None) -> None:
        """Begin without what is kept between questions."""
        self.space, self.causes = space, causes
        self._programs = {} if causes is None else causes.programs(space)
        self._whole: Explainer | None = None
        self._of_round_values: dict[tuple[tuple[str, float], ...], tuple[Explainer, tuple[Constraint, ...]]] = {}
        self._of_rows: OrderedDict[FeatureSpace, Explainer] = OrderedDict()
        self._roomy: OrderedDict[FeatureSpace, LiveModel] = OrderedDict()

    def _over(self, space: FeatureSpace, causes: Causal | None, wide: LiveModel | None) -> Explainer:
        """Return an explainer over another space: of the model as read over a wider one, where that does, or as read anew."""
        live = None if wide is None else wide.within(space)
        if live is None:
            return Explainer(self.model, space, causes, unread=self.unread)
        made = object.__new__(Explainer)
        made.model, made.unread, made.outside, made._live = self.model, self.unread, "error", live
        made._begin(space, causes)
        return made

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

    @property
    def _reading(self) -> Reading:
        return self._live.reading

    def predict(self, row: Row) -> Any:
        """Return what the real model says of a row."""
        return self.predict_many([row])[0]

    @_watched
    def predict_many(self, rows: Sequence[Row]) -> list[Any]:
        """Return what the real model says of rows, asked in one call."""
        at = [self._at(row) for row in rows]
        points = [self.space.point(row) for row, (own, _) in zip(rows, at, strict=True) if own is self]
        inside = iter(self._reading.ask(points) if points else [])
        return [
            self._reading.label(next(inside)) if own is self else own.predict(row)
            for row, (own, _) in zip(rows, at, strict=True)
        ]

    @_watched
    def reaches(self, row: Row, target: object) -> bool:
        """Return whether the real model puts a row in the target already, so that there is nothing to change."""
        own, _ = self._at(row)
        if own is not self:
            return own.reaches(row, target)
        factual = self.space.point(row)
        wanted = of_label(target, self.classes)
        return bool(reached(wanted, self._reading, factual, self._reading.ask([factual])[0]))

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

    def _answer(self, row: Row, question: Question, started: float | None = None) -> Explanation:
        """Answer a question about a row; its clock started at a moment of ``time.monotonic``, or starts now."""
        made = self._answered(row, question, started)
        return replace(made, _margin=Later(lambda: self._margin(row, made[0], question))) if made else made

    def _answered(self, row: Row, question: Question, started: float | None) -> Explanation:
        started = time.monotonic() if started is None else started
        begun = time.monotonic()
        own, let_in = self._at(row, certify=question.certify)
        if let_in is not None:
            # Reading the model once more is not on the clock.
            started += time.monotonic() - begun
            made = own._answer(row, question.over(own.space, let_in.kept), started)
            plain = question.but(round_to=None, digits=None, count=1, certify=False)
            return made.of_outside(let_in.said, self.region, lambda: self._answer(row, plain).lower)
        steps = self._steps(question)
        if not steps:
            return self._nearest(row, question, started)
        explainer, asked, started = self._about_round_values(question, steps, started)
        made = explainer._nearest(self.space.validate(row), asked, started, is_last=False)
        if made.status == Status.REACHED:
            return replace(made, space=self.space)
        plain = question.but(round_to=None, digits=None)
        if made.status != Status.INFEASIBLE:
            unrounded = Later(lambda: self._nearest(row, plain.but(count=1, certify=False), time.monotonic()).lower)
            return replace(made, space=self.space, round_to=steps, _unrounded=unrounded)
        made = self._nearest(row, plain, started)
        return replace(made, reason=made.reason or "no answer has round values only") if made else made

    def _at(self, row: Row, *, certify: bool = False) -> tuple[Explainer, Admitted | None]:
        """Return the explainer over the space that a row lies in, and what was let in; this one and ``None`` for one that lies in it.

        The model is read over a space that has room for other such rows; for certificates, which state it as read over that of the row,
        over that one.
        """
        let_in = admitted(self.space, row, self.outside)
        if let_in is None:
            return self, None
        made = self._of_rows.pop(let_in.space, None)
        if made is None or (certify and made._live.is_narrowed):
            # What is read now must be what was read then.
            self._live.check()
            try:
                wide = None if certify else self._with_room(let_in.space)
                made = self._over(let_in.space, self.causes, wide)
                made._reading.ask([let_in.space.point(row)])
            except (UnsupportedModel, InvalidRow) as error:
                raise InvalidRow(f"{let_in.said}; but the model does not take such a row: {error}") from error
        _keep(self._of_rows, let_in.space, made)
        return made, let_in

    def _with_room(self, space: FeatureSpace) -> LiveModel | None:
        """Return the model as read over a space around that of a row; ``None`` where it cannot be read there."""
        around = roomy(self.space, space)
        if around is None:
            return None
        made = self._roomy.pop(around, None)
        if made is None:
            try:
                made = LiveModel(self.model, around, self.unread)
            except UnsupportedModel:
                return None
        _keep(self._roomy, around, made)
        return made

    def _space_of(self, row: Row) -> FeatureSpace:
        """Return the space that a row lies in."""
        let_in = admitted(self.space, row, self.outside)
        return self.space if let_in is None else let_in.space

    def _about_round_values(
        self, question: Question, steps: dict[str, float], started: float
    ) -> tuple[Explainer, Question, float]:
        """Return the explainer and the question over round values, and the clock: reading the model once more is not on it."""
        begun = time.monotonic()
        with self._live.question():
            explainer, kept = self._rounded(steps)
        asked = question.over(explainer.space, kept, round_to=None, digits=None)
        return explainer, asked, started + time.monotonic() - begun

    def _rounds(self, question: Question, factual: Point, started: float, current: Fraction) -> Rounds | None:
        """Return what makes answers round once it is known which features they change; ``None`` where they are so, or are not to be.

        With causes, whose effects are of any size, they are not, and with ``robust``, since noise is.
        """
        steps = {} if self.causes is not None else question.steps
        if not steps:
            return None
        row, plain = self.space.values_of(factual), question.but(round_to=None, digits=None, count=1)

        def ask(further: tuple[Constraint, ...], lane: str | None = None) -> Explanation | None:
            explainer, asked, since = self._about_round_values(plain, steps, started)
            asked = asked.but(constraints=(*asked.constraints, *further), solver=lane or asked.solver)
            try:
                return explainer._nearest(row, asked, since, is_last=False, current=current)
            except InvalidOption:
                return None

        return Rounds(self.space, steps, ask, self._live.foreseeing)

    def _steps(self, question: Question) -> dict[str, float]:
        """Return the step of each feature, where round rows alone are asked about; none with causes, whose effects are of any size."""
        if self.causes is not None:
            question.check_can_only_shorten("causes")
            return {}
        is_wanted = isinstance(self._reading.form, TreeEnsemble) or question.is_rounding_given
        return question.steps if is_wanted else {}

    def _rounded(self, steps: dict[str, float]) -> tuple[Explainer, tuple[Constraint, ...]]:
        """Return an explainer over the space of round values, and what keeps its answers in the ranges of this one."""
        key = tuple(steps.items())
        if key not in self._of_round_values:
            # What is read now must be what was read then.
            self._live.check()
            space, kept = rounded(self.space, steps)
            made = self._over(space, None, self._live if self._live.is_narrowed else None)
            made._whole = self
            made._live.memory = self._live.memory
            self._of_round_values[key] = made, kept
        return self._of_round_values[key]

    def _nearest(
        self, row: Row, question: Question, started: float, *, is_last: bool = True, current: Fraction | None = None
    ) -> Explanation:
        """Answer a question over this space; say which constraints are to blame for no answer only where no other is asked after it.

        ``current`` is the model's outcome of the row, where it is known already: in a question within another one, which has the scores.
        """
        is_within = current is not None
        with without_pauses(question.time_limit), self._live.question():
            problem, current = self._problem(row, question, current)
            there = question.if_reached(self._reading, problem.factual, current, started)
            if there is not None:
                return self._with_scores(there, question)
            statement = None
            if question.certify:
                self._must_prove("certify=True", question.solver, "Leave certify out.")
                self._live.check()
                statement = self._statement(problem.factual, question)
                check_can_state(statement)
            lane = choose(question.solver, problem)
            rounds = self._rounds(question, problem.factual, started + lane.preparing, current)
            plain = question if rounds is None else question.but(round_to=None, digits=None)
            driver = self._driver(plain, problem, lane, started, statement, rounds)
            made = driver.run(current, started)
            if made.status == Status.INFEASIBLE and question.constraints and is_last:
                conflict, reason = driver.why_none()
                made = replace(made, conflict=conflict, reason=reason, seconds=time.monotonic() - started)
            return made if is_within else self._with_scores(made, question)

    def _with_scores(self, explanation: Explanation, question: Question) -> Explanation:
        """Return an explanation that asks for its scores when they are wanted; in a block, whose scores are asked together, as it is."""
        return explanation if self._live.is_in_block else self._scored([explanation], question, at_once=False)[0]

    def _scored(
        self, explanations: Sequence[Explanation], question: Question, *, at_once: bool = True
    ) -> list[Explanation]:
        """Return explanations with their scores: asked for now, for all of them in one call, or when they are first wanted.

        Those about rows outside the space have theirs.
        """
        inside = [each for each in explanations if not each.outside]
        measures = [
            None if each.prediction is None else Measure.to_reach(question.target, self._reading, each.prediction)
            for each in inside
        ]
        live = self._live
        made = iter(with_scores(inside, measures, self.space, live.question, live.known_rates, at_once=at_once))
        return [each if each.outside else next(made) for each in explanations]

    def _driver(
        self,
        question: Question,
        problem: Problem,
        lane: Lane,
        started: float,
        statement: Statement | None = None,
        rounds: Rounds | None = None,
    ) -> Driver:
        """Return what finds answers, rows or with causes interventions; preparing the lane is not on the clock."""
        rows = NearestRows(question.solver, problem, lane)
        find = rows if self.causes is None else NearestInterventions(self._programs, rows)
        limits = question.limits(started + lane.preparing)
        # A region is of all values, round or not.
        widen = (self._whole or self).region
        return Driver(self._reading, question, problem, find, limits, widen, statement, rounds)

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

    def _block(self, points: Sequence[Point]) -> Block:
        """Return a block of people, about whom the model is asked in few calls."""
        return Block(self._live, points)

    @_watched
    def _check(self, factual: Point, question: Question) -> None:
        """Raise what is wrong with the question of a batch itself, whatever the row; ``factual`` is any row that it may be asked of."""
        self._live.check()
        choose(question.solver, self._bound(factual, question, self._reading.ask([factual])[0]))
        if question.certify:
            self._must_prove("certify=True", question.solver, "Leave certify out.")
            check_can_state(self._statement(factual, question))

    def _must_prove(self, what: str, solver: str, instead: str) -> None:
        """Refuse what is nothing without a proof, where the model is only asked."""
        if self._live.is_unread:
            raise InvalidOption(f"{what}: the model could not be read, so nothing can be proved of it. {instead}")
        if solver == "search":
            raise InvalidOption(f"{what}: solver='search' proves nothing. Use solver='auto'.")

    def _statement(self, factual: Point, question: Question) -> Statement:
        return question.statement(self._live.fingerprint, factual, self.causes)

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
    @_watched
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
        own, let_in = self._at(row)
        if let_in is not None:
            question = question.over(own.space, let_in.kept)
        with own._live.question():
            return own._levers(row, question, most, started)

    def _levers(self, row: Row, question: Question, most: int, started: float) -> Levers:
        problem, current = self._problem(row, question)
        there = question.if_reached(self._reading, problem.factual, current, started)
        if there is not None:
            return Levers((), (), complete=True, reason=there.reason)
        lane = choose(question.solver, problem)
        made = menu(self._driver(question, problem, lane, started), most)
        rounds = self._rounds(question, problem.factual, started + lane.preparing, current)
        return made if rounds is None else round_levers(made, rounds, problem)

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
        started = time.monotonic()
        self._must_prove("reasons", solver, "Ask the model about rows that keep the features in question.")
        if self.causes is not None:
            raise InvalidOption(
                "reasons: features do not keep their values while their causes change. Leave causes out."
            )
        question = Question(
            self.space,
            target,
            "l0",
            constraints,
            count=count,
            time_limit=time_limit,
            solver=solver,
            certify=certify,
            round_to=None,
            classes=self.classes,
        )
        if any(isinstance(constraint, Robust) for constraint in question.constraints):
            raise InvalidOption("reasons: they are about rows as they are, without noise. Leave robust out.")
        own, let_in = self._at(row, certify=question.certify)
        if let_in is not None:
            question = question.over(own.space, let_in.kept)
        with without_pauses(time_limit), own._live.question():
            return own._reasons(row, question, started, smallest=smallest, ranges=ranges)

    def reasons_many(
        self,
        frame: Any,
        *,
        id: str | None = None,  # noqa: A002
        total_time_limit: float | None = None,
        n_jobs: int | None = None,
        **options: Unpack[ReasonsOptions],
    ) -> ReasonsBatch:
        """Return the reasons of every row of a frame, in order; a row that cannot be asked about has an ``error``.

        Parameters
        ----------
        frame : data frame, or iterable of data frames or rows
            The rows; columns that are no feature are left out. Equal rows are asked about once.
        id : str, optional
            A column of the frame that identifies the rows.
        total_time_limit : float, optional
            Seconds for all of them.
        n_jobs : int, optional
            Processes, -1 for one a core; ``None`` is 1. The answers are the same with any number.
        options
            As for :meth:`reasons`: ``time_limit`` is that of each row.

        Returns
        -------
        ReasonsBatch
            A sequence of reasons, with ``to_frame()`` and ``to_json()``.
        """
        from mace.batch.reasons import ReasonsBatch, ReasonsOptions

        check_options("reasons_many", options, ReasonsOptions.__annotations__)
        if not is_seconds(total_time_limit):
            raise InvalidOption(
                f"total_time_limit={total_time_limit!r}; it must be a positive number of seconds, or None."
            )
        return ReasonsBatch.of(self, frame, options, id=id, total_time_limit=total_time_limit, n_jobs=n_jobs)

    def _reasons(self, row: Row, question: Question, started: float, *, smallest: bool, ranges: bool) -> Reasons:
        from mace.answer.reason_search import reasons_of  # it imports scipy.optimize

        problem, current = self._problem(row, question)
        there = question.if_reached(self._reading, problem.factual, current, started)
        lane = choose(question.solver, problem)
        driver = self._driver(question.but(certify=False), problem, lane, started)
        made = reasons_of(driver, current, smallest=smallest, ranges=ranges, there=there)
        if not question.certify:
            return made
        factual = self.space.validate(row)

        def proof(kept: list[Constraint]) -> Certificate | None:
            asked = question.but(constraints=[*question.constraints, *kept], count=1)
            return self._nearest(factual, asked, started + lane.preparing, is_last=False, current=current).certificate

        self._live.check()
        statement = self._statement(problem.factual, question)
        check_can_state(statement)
        return made.certified(statement, proof)

    @_watched
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
        started = time.monotonic()
        self._must_prove("region", solver, "Ask the model about the rows around an answer.")
        names = [change.feature for change in answer.changes] if features is None else list(features)
        for name in names:
            if name not in self.space:
                raise InvalidOption(f"region: there is no feature {name!r}.{did_you_mean(name, self.space)}")
        if self._reading.classes is None:
            raise InvalidOption("region: the model returns numbers; regions are for classes.")
        own, _ = self._at(answer.values)
        if own is not self:
            return own.region(answer, names, time_limit=time_limit, solver=solver)
        question = Question(
            self.space, answer.prediction, "linf", time_limit=time_limit, solver=solver, classes=self.classes
        )
        problem, _ = self._problem(answer.values, question)
        if not problem.goal.accepts(problem.ask([problem.factual])[0]):
            raise InvalidOption(
                f"region: too few models of the set predict {answer.prediction!r} for the answer itself."
            )
        problem = replace(problem, goal=negated(problem.goal))
        lane = choose(solver, problem)
        limits = question.limits(started + lane.preparing)
        return widened(problem, names, NearestRows(solver, problem, lane), limits)

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

    @_watched
    def _margin(self, row: Row, answer: Counterfactual | Row, question: Question) -> NoiseMargin:
        """Return how much of the noise of a question an answer stands, or of the ranges where the question has none."""
        started = time.monotonic()
        self._must_prove("margin", question.solver, "Ask the model about the rows around an answer.")
        if self.causes is not None:
            raise InvalidOption("margin: noise is not followed through causes. Leave causes out.")
        values = answer.values if isinstance(answer, Counterfactual) else answer
        own, _ = self._at(values)
        noise = next((each for each in question.constraints if isinstance(each, Robust)), robust("100% of range"))
        asked = question.over(
            own.space, (), distance="linf", constraints=(), count=1, certify=False, round_to=None, digits=None
        )
        return own._stands(row, values, asked, noise, started)

    def _stands(self, row: Row, values: Row, question: Question, noise: Robust, started: float) -> NoiseMargin:
        problem, _ = self._problem(row, question)
        point = self.space.point(values)
        if not problem.is_reached(point):
            raise InvalidOption(
                "margin: the answer is not in the target. Give one that explain() returned for this target."
            )
        return margin_of(problem, point, noise, question.solver, question.limits(started))

    def _problem(self, row: Row, question: Question, current: Fraction | None = None) -> tuple[Problem, Fraction]:
        """Return the problem of a row, and the outcome of the row itself, which is asked for where it is not known."""
        factual = self.space.point(row)
        current = self._reading.ask([factual])[0] if current is None else current
        return self._bound(factual, question, current), current

    def _bound(self, factual: Point, question: Question, current: Fraction) -> Problem:
        problem = question.problem(self._reading, factual, current)
        if self.causes is not None:
            check_conditions(problem.conditions)
        return problem

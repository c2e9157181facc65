"""A model as read, over one space: the way of a question about a row to its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from mace.answer.counterfactual import Counterfactual
from mace.answer.driver import Driver
from mace.answer.explanation import Explanation
from mace.answer.interventions import NearestInterventions
from mace.answer.later import Later
from mace.answer.levers import Levers, menu, round_levers
from mace.answer.margin import NoiseMargin, margin_of
from mace.answer.nearest import NearestRows
from mace.answer.outside import Admitted, Outside, admitted
from mace.answer.question import Question, ReasonsOptions
from mace.answer.reasons import Reasons
from mace.answer.region import RecourseRegion, off_grid, widened
from mace.answer.round_ways import Rounds
from mace.answer.rounding import rounded
from mace.answer.scoring import Measure, with_scores
from mace.certify.certificate import Certificate
from mace.certify.statement import Statement, check_can_state
from mace.clock import without_pauses
from mace.constraints import Constraint
from mace.constraints.causal import Causal, check_conditions
from mace.constraints.robust import Robust, robust
from mace.errors import InvalidOption, InvalidRow, UnsupportedModel, did_you_mean
from mace.forms import TreeEnsemble, negated
from mace.models import Reading
from mace.models.live import Block, LiveModel
from mace.problem import Problem, Status
from mace.recent import MOST_SPACES, Recent
from mace.solvers import Lane, choose
from mace.space import FeatureSpace, Point, Row
from mace.space.outside import roomy
from mace.targets import of_label, reached

Steps = tuple[tuple[str, float], ...]
"""Of what the numbers of round answers are multiples, by feature."""

P = ParamSpec("P")
R = TypeVar("R")
Asked = TypeVar("Asked", bound="AskedModel")


def watched(method: Callable[Concatenate[Asked, P], R]) -> Callable[Concatenate[Asked, P], R]:
    """Let a method raise :class:`~mace.ModelChanged` where the model is no longer the one that was read, and keep to its time limit."""

    @wraps(method)
    def asked(model: Asked, /, *given: P.args, **named: P.kwargs) -> R:
        with without_pauses(named.get("time_limit")), model._live.question():
            return method(model, *given, **named)

    return asked


class AskedModel:
    """A model over one space, and the same model over the spaces of other rows and of round values, as its questions need them.

    :class:`~mace.Explainer` adds the public methods. The models over other spaces are of this class.

    Parameters
    ----------
    model : estimator, pipeline or function
        The model as deployed.
    space : FeatureSpace
        Its features.
    causes : Causal, optional
        Structural equations.
    live : LiveModel
        The model as read over this space, or over a wider one.
    unread, outside : str
        As for :class:`~mace.Explainer`.
    """

    def __init__(
        self,
        model: Any,
        space: FeatureSpace,
        causes: Causal | None,
        live: LiveModel,
        unread: str | None = None,
        outside: Outside = "error",
    ) -> None:
        self.model, self.space, self.causes = model, space, causes
        self._live, self.unread, self.outside = live, unread, outside
        self._programs = {} if causes is None else causes.programs(space)
        self._whole: AskedModel | None = None
        self._of_round_values: Recent[Steps, tuple[AskedModel, tuple[Constraint, ...]]] = Recent(MOST_SPACES)
        self._of_rows: Recent[FeatureSpace, AskedModel] = Recent(MOST_SPACES)
        self._roomy: Recent[FeatureSpace, LiveModel] = Recent(MOST_SPACES)

    @property
    def _reading(self) -> Reading:
        return self._live.reading

    # ---- the model over other spaces

    def _over(self, space: FeatureSpace, causes: Causal | None, wide: LiveModel | None) -> AskedModel:
        """Return the model over another space: as read over a wider one, where that does, or read anew."""
        live = None if wide is None else wide.within(space)
        return AskedModel(self.model, space, causes, live or LiveModel(self.model, space, self.unread), self.unread)

    def _at(self, row: Row, *, certify: bool = False) -> tuple[AskedModel, Admitted | None]:
        """Return the model over the space that a row lies in, and what was let in; this one and ``None`` for one that lies in it.

        The model is read over a space that has room for other such rows; for certificates, which state it as read over that of the row,
        over that one.
        """
        let_in = admitted(self.space, row, self.outside)
        if let_in is None:
            return self, None
        made = self._of_rows.get(let_in.space)
        if made is None or (certify and made._live.is_narrowed):
            # What is read now must be what was read then.
            self._live.check()
            try:
                wide = None if certify else self._with_room(let_in.space)
                made = self._over(let_in.space, self.causes, wide)
                made._reading.ask([let_in.space.point(row)])
            except (UnsupportedModel, InvalidRow) as error:
                raise InvalidRow(f"{let_in.said}; but the model does not take such a row: {error}") from error
        return self._of_rows.put(let_in.space, made), let_in

    def _about(self, row: Row, question: Question) -> tuple[AskedModel, Question]:
        """Return the model over the space that a row lies in, and the question over that space."""
        own, let_in = self._at(row, certify=question.certify)
        return own, question if let_in is None else question.over(own.space, let_in.kept)

    def _with_room(self, space: FeatureSpace) -> LiveModel | None:
        """Return the model as read over a space around that of a row; ``None`` where it cannot be read there."""
        around = roomy(self.space, space)
        if around is None:
            return None
        made = self._roomy.get(around)
        if made is None:
            try:
                made = LiveModel(self.model, around, self.unread)
            except UnsupportedModel:
                return None
        return self._roomy.put(around, made)

    def _space_of(self, row: Row) -> FeatureSpace:
        """Return the space that a row lies in."""
        let_in = admitted(self.space, row, self.outside)
        return self.space if let_in is None else let_in.space

    def _about_round_values(
        self, question: Question, steps: dict[str, float], started: float
    ) -> tuple[AskedModel, Question, float]:
        """Return the model and the question over round values, and the clock: reading the model once more is not on it."""
        begun = time.monotonic()
        with self._live.question():
            own, kept = self._rounded(steps)
        asked = question.over(own.space, kept, round_to=None, digits=None)
        return own, asked, started + time.monotonic() - begun

    def _rounded(self, steps: dict[str, float]) -> tuple[AskedModel, tuple[Constraint, ...]]:
        """Return the model over the space of round values, and what keeps its answers in the ranges of this one."""
        key = tuple(steps.items())
        found = self._of_round_values.get(key)
        if found is None:
            # What is read now must be what was read then.
            self._live.check()
            space, kept = rounded(self.space, steps)
            made = self._over(space, None, self._live if self._live.is_narrowed else None)
            made._whole = self
            made._live.memory = self._live.memory
            found = self._of_round_values.put(key, (made, kept))
        return found

    # ---- one question

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
            return made.of_outside(let_in.said, self._region, lambda: self._answer(row, plain).lower)
        steps = self._steps(question)
        if not steps:
            return self._nearest(row, question, started)
        own, asked, started = self._about_round_values(question, steps, started)
        made = own._nearest(self.space.validate(row), asked, started, is_last=False)
        if made.status == Status.REACHED:
            return replace(made, space=self.space)
        plain = question.but(round_to=None, digits=None)
        if made.status != Status.INFEASIBLE:
            unrounded = Later(lambda: self._nearest(row, plain.but(count=1, certify=False), time.monotonic()).lower)
            return replace(made, space=self.space, round_to=steps, _unrounded=unrounded)
        made = self._nearest(row, plain, started)
        return replace(made, reason=made.reason or "no answer has round values only") if made else made

    def _steps(self, question: Question) -> dict[str, float]:
        """Return the step of each feature, where round rows alone are asked about; none with causes, whose effects are of any size."""
        if self.causes is not None:
            question.check_can_only_shorten("causes")
            return {}
        is_wanted = isinstance(self._reading.form, TreeEnsemble) or question.is_rounding_given
        return question.steps if is_wanted else {}

    def _rounds(self, question: Question, factual: Point, started: float, current: Fraction) -> Rounds | None:
        """Return what makes answers round once it is known which features they change; ``None`` where they are so, or are not to be.

        With causes, whose effects are of any size, they are not, and with ``robust``, since noise is.
        """
        steps = {} if self.causes is not None else question.steps
        if not steps:
            return None
        plain = question.but(round_to=None, digits=None, count=1)

        def ask(further: tuple[Constraint, ...], lane: str | None) -> tuple[Status, Counterfactual | None] | None:
            own, asked, since = self._about_round_values(plain, steps, started)
            asked = asked.but(constraints=(*asked.constraints, *further), solver=lane or asked.solver)
            try:
                return own._first(factual, asked, since, current)
            except InvalidOption:
                return None

        return Rounds(self.space, steps, ask, self._live.foreseeing)

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
            driver = self._prepared(problem, question, started, current)
            made = driver.run(current, started)
            if made.status == Status.INFEASIBLE and question.constraints and is_last:
                conflict, reason = driver.why_none()
                made = replace(made, conflict=conflict, reason=reason, seconds=time.monotonic() - started)
            return made if is_within else self._with_scores(made, question)

    def _first(
        self, factual: Point, question: Question, started: float, current: Fraction
    ) -> tuple[Status, Counterfactual | None]:
        """Return the nearest answer alone, and what is known of it: to a question within another one about the row."""
        with self._live.question():
            return self._prepared(self._bound(factual, question, current), question, started, current).first()

    def _prepared(self, problem: Problem, question: Question, started: float, current: Fraction) -> Driver:
        """Return what answers a question as it is asked: with certificates and round answers, where it asks for these."""
        statement = None
        if question.certify:
            self._must_prove("certify=True", question.solver, "Leave certify out.")
            statement = self._certifiable(problem.factual, question)
        lane = choose(question.solver, problem)
        rounds = self._rounds(question, problem.factual, started + lane.preparing, current)
        plain = question if rounds is None else question.but(round_to=None, digits=None)
        return self._driver(plain, problem, lane, started, statement, rounds)

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

    def _must_prove(self, what: str, solver: str, instead: str) -> None:
        """Refuse what is nothing without a proof, where the model is only asked."""
        if self._live.is_unread:
            raise InvalidOption(f"{what}: the model could not be read, so nothing can be proved of it. {instead}")
        if solver == "search":
            raise InvalidOption(f"{what}: solver='search' proves nothing. Use solver='auto'.")

    def _statement(self, factual: Point, question: Question) -> Statement:
        return question.statement(self._live.fingerprint, factual, self.causes)

    def _certifiable(self, factual: Point, question: Question) -> Statement:
        """Return what certificates state, once it is known that the model is the one that was read and that they can."""
        self._live.check()
        made = self._statement(factual, question)
        check_can_state(made)
        return made

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
        widen = (self._whole or self)._region
        return Driver(self._reading, question, problem, find, limits, widen, statement, rounds)

    # ---- scores, and what batches ask

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

    def _block(self, points: Sequence[Point]) -> Block:
        """Return a block of people, about whom the model is asked in few calls."""
        return Block(self._live, points)

    @watched
    def _check(self, factual: Point, question: Question) -> None:
        """Raise what is wrong with the question of a batch itself, whatever the row; ``factual`` is any row that it may be asked of."""
        self._live.check()
        choose(question.solver, self._bound(factual, question, self._reading.ask([factual])[0]))
        if question.certify:
            self._must_prove("certify=True", question.solver, "Leave certify out.")
            self._certifiable(factual, question)

    # ---- other questions

    @watched
    def _predicted(self, row: Row) -> Any:
        return self._reading.label(self._reading.ask([self.space.point(row)])[0])

    @watched
    def _reaches(self, row: Row, target: object) -> bool:
        factual = self.space.point(row)
        return bool(
            reached(of_label(target, self._reading.classes), self._reading, factual, self._reading.ask([factual])[0])
        )

    def _levers(self, row: Row, question: Question, most: int, started: float) -> Levers:
        problem, current = self._problem(row, question)
        there = question.if_reached(self._reading, problem.factual, current, started)
        if there is not None:
            return Levers((), (), complete=True, reason=there.reason)
        lane = choose(question.solver, problem)
        made = menu(self._driver(question, problem, lane, started), most)
        rounds = self._rounds(question, problem.factual, started + lane.preparing, current)
        return made if rounds is None else round_levers(made, rounds, problem)

    def _why(self, options: ReasonsOptions) -> Question:
        """Return the question of :meth:`reasons`; how sets are gone through is no part of it."""
        self._must_prove(
            "reasons", options.get("solver", "auto"), "Ask the model about rows that keep the features in question."
        )
        if self.causes is not None:
            raise InvalidOption(
                "reasons: features do not keep their values while their causes change. Leave causes out."
            )
        asked: Any = {"count": 10} | {
            name: value for name, value in options.items() if name not in ("smallest", "ranges")
        }
        made = Question(self.space, distance="l0", round_to=None, classes=self._reading.classes, **asked)
        if any(isinstance(constraint, Robust) for constraint in made.constraints):
            raise InvalidOption("reasons: they are about rows as they are, without noise. Leave robust out.")
        return made

    def _explain_why(self, row: Row, options: ReasonsOptions) -> Reasons:
        """Return the reasons of a row."""
        started = time.monotonic()
        own, question = self._about(row, self._why(options))
        smallest, ranges = options.get("smallest", False), options.get("ranges", True)
        with without_pauses(question.time_limit), own._live.question():
            return own._reasons(row, question, started, smallest=smallest, ranges=ranges)

    def _reasons(self, row: Row, question: Question, started: float, *, smallest: bool, ranges: bool) -> Reasons:
        from mace.answer.reason_search import of_single_class, reasons_of  # it imports scipy.optimize

        if question.target is None and len(self._reading.classes or ()) == 1:
            return of_single_class(self.space, self.space.point(row), self._reading, question.in_words[0])
        problem, current = self._problem(row, question)
        there = question.if_reached(self._reading, problem.factual, current, started)
        lane = choose(question.solver, problem)
        driver = self._driver(question.but(certify=False), problem, lane, started)
        if question.certify:
            driver = replace(driver, limits=driver.limits.first_half())
        made = reasons_of(driver, current, smallest=smallest, ranges=ranges, there=there)
        if not question.certify:
            return made
        factual = self.space.validate(row)

        def proof(kept: list[Constraint]) -> Certificate | None:
            asked = question.but(constraints=[*question.constraints, *kept], count=1)
            return self._nearest(factual, asked, started + lane.preparing, is_last=False, current=current).certificate

        return made.certified(self._certifiable(problem.factual, question), proof)

    @watched
    def _region(
        self,
        answer: Counterfactual,
        features: Iterable[str] | None = None,
        *,
        time_limit: float | None = None,
        solver: str = "auto",
    ) -> RecourseRegion:
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
            return own._region(answer, names, time_limit=time_limit, solver=solver)
        question = Question(
            self.space, answer.prediction, "linf", time_limit=time_limit, solver=solver, classes=self._reading.classes
        )
        problem, _ = self._problem(answer.values, question)
        if not problem.goal.accepts(problem.ask([problem.factual])[0]):
            raise InvalidOption(
                f"region: too few models of the set predict {answer.prediction!r} for the answer itself."
            )
        problem = replace(problem, goal=negated(problem.goal))
        lane = choose(solver, problem)
        limits = question.limits(started + lane.preparing)
        before = off_grid(self.space, answer.changes)
        return widened(problem, names, NearestRows(solver, problem, lane), limits, before=before)

    @watched
    def _margin(self, row: Row, answer: Counterfactual | Row, question: Question) -> NoiseMargin:
        """Return how much of the noise of a question an answer stands, or of the ranges where the question has none."""
        started = time.monotonic()
        self._must_prove("margin", question.solver, "Ask the model about the rows around an answer.")
        if self.causes is not None:
            raise InvalidOption("margin: noise is not followed through causes. Leave causes out.")
        values = answer.values if isinstance(answer, Counterfactual) else answer
        own, let_in = self._at(row)
        if let_in is None:
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

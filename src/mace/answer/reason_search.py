"""The search for reasons: smallest sets of features that every way to the target changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Generic, TypeVar

from mace.answer.conflicts import Undecided
from mace.answer.driver import Driver
from mace.answer.explanation import Explanation
from mace.answer.hitting import smallest_hitting
from mace.answer.nearest import Found, NearestRows
from mace.answer.reasons import Reason, Reasons, as_long_as
from mace.answer.region import widened
from mace.clock import OutOfTime, until
from mace.constraints import Constraint, fixed
from mace.forms import Outcomes, same_for_all
from mace.models import Reading
from mace.problem import Bounds, Problem
from mace.solvers import choose
from mace.space import FeatureSpace, Point

Names = frozenset[str]
Row = TypeVar("Row")

Escape = Callable[[Names], tuple[Names, Row] | None]
"""Finds a row of the target that keeps the values of some features, and returns what it changes; ``None`` where there is proved to be none,
or raises :class:`Undecided`."""

BREAKS_A_RULE = "the row itself breaks a rule, which rows beside it must keep"
NO_OTHER_ROW = "no other row that the rules allow keeps these values"
NO_ROW = "no row that the rules allow keeps these values"


def reasons_of(
    driver: Driver, current: Fraction, *, smallest: bool, ranges: bool, there: Explanation | None
) -> Reasons:
    """Return the reasons of a row, at most as many as the question counts; ``there`` says that it is at the target already."""
    space, factual = driver.problem.space, driver.problem.factual
    search = ReasonSearch(list(space), partial(_escape, driver), driver.limits.remaining)
    search.known += [] if there is not None else _seen(driver)
    found, why = list[tuple[Reason, dict[str, Found]]](), ""
    try:
        while there is None and (names := search.next(smallest=smallest)) is not None:
            features = tuple(sorted(names, key=space.index))
            rows = {name: search.witness(names, name) for name in features}
            found.append((_reason(driver, features, ranges=ranges), rows))
            if len(found) == driver.question.count:
                why = (
                    ""
                    if search.is_exhausted()
                    else f"only {len(found)} {'was' if len(found) == 1 else 'were'} asked for"
                )
                break
    except Undecided as stopped:
        why = str(stopped)
    ways = search.ways()
    told = driver.told([one for _, rows in found for one in rows.values()] + ways)
    return Reasons(
        reasons=tuple(
            replace(each, witnesses={name: told[_point(one)] for name, one in rows.items()}) for each, rows in found
        ),
        complete=not why,
        reason=there.reason if there is not None else why,
        necessary=tuple(name for name in space if frozenset([name]) in {changed for changed, _ in search.known}),
        prediction=driver.reading.label(current),
        target=driver.question.in_words[0],
        factual=space.values_of(factual),
        ways=tuple(told[_point(one)] for one in ways),
        note="" if driver.problem.is_plausible(factual) else BREAKS_A_RULE,
        space=space,
        classes=driver.reading.classes,
    )


def of_single_class(space: FeatureSpace, factual: Point, reading: Reading, target: str) -> Reasons:
    """Return the one reason of a model that knows no other class; there is nothing to prove."""
    return Reasons(
        reasons=(Reason((), {}),),
        complete=True,
        reason="",
        necessary=(),
        prediction=reading.label(reading.ask([factual])[0]),
        target=target,
        factual=space.values_of(factual),
        space=space,
        classes=reading.classes,
    )


def _reason(driver: Driver, features: tuple[str, ...], *, ranges: bool) -> Reason:
    """Return a reason without its witnesses."""
    space, factual = driver.problem.space, driver.problem.factual
    at = space.values_of(factual)
    values = {name: at[name] for name in features}
    around = None
    if ranges and features:
        free = [name for name in space if name not in features]
        around = widened(driver.problem, features, driver.find, replace(driver.limits, any_point=True), free)
    note = _note(driver, features)
    return Reason(features, values, around, as_long_as=as_long_as(values, around, space), note=note)


def _point(found: Found) -> Point:
    assert found.bounds.point is not None
    return found.bounds.point


def _escape(driver: Driver, kept: Names) -> tuple[Names, Found] | None:
    """Return a row of the target that keeps the values of some features, with what it changes."""
    space, factual = driver.problem.space, driver.problem.factual
    found = driver.some((fixed(*sorted(kept, key=space.index)).bind(space, factual),) if kept else ())
    if found is None:
        return None
    return _changed(driver.problem, _point(found)), found


def _seen(driver: Driver) -> list[tuple[Names, Found]]:
    """Return ways to the target that the lane sees without a search, no one of which changes all that another does."""
    problem, find = driver.problem, driver.find
    look = getattr(find.lane.solver, "likely_rows", None) if isinstance(find, NearestRows) else None
    if look is None or driver.limits.remaining() <= 0:
        return []
    assert isinstance(find, NearestRows)
    try:
        with until(driver.limits.deadline):
            rows = problem.reaching([row for row in look(problem) if problem.is_plausible(row)])
    except OutOfTime:
        return []
    ways = {
        _changed(problem, row): Found(Bounds(Fraction(0), point=row), problem, (find.lane,))
        for row in rows
        if problem.form.is_settled(row, problem.goal)
    }
    return [(names, row) for names, row in ways.items() if not any(other < names for other in ways)]


def _changed(problem: Problem, row: Point) -> Names:
    """Return the features that a row changes."""
    moved = zip(problem.space, row, problem.factual, strict=True)
    return frozenset(name for name, new, old in moved if new != old)


def _note(driver: Driver, features: tuple[str, ...]) -> str:
    """Return a note where the rules leave no other row with the values of a reason, so that its features decide nothing; else nothing."""
    problem = driver.problem
    space, factual = problem.space, problem.factual
    if (features and not problem.conditions) or len(features) == len(space):
        return ""
    others = [name for name in space if name not in features]
    asked: list[Constraint] = [~fixed(*others), *([fixed(*features)] if features else [])]
    try:
        if _of_any_outcome(driver).some(tuple(each.bind(space, factual) for each in asked)) is not None:
            return ""
    except Undecided:
        return ""
    return NO_OTHER_ROW if problem.is_plausible(factual) else NO_ROW


def _of_any_outcome(driver: Driver) -> Driver:
    """Return a driver that asks for rows whatever the model says of them: its model says the same of every row."""

    def ask(points: Sequence[Point]) -> list[Fraction]:
        return [Fraction(0)] * len(points)

    space = driver.problem.space
    problem = replace(driver.problem, form=same_for_all(space), ask=ask, goal=Outcomes(frozenset([Fraction(0)])))
    return replace(driver, problem=problem, find=NearestRows("auto", problem, choose("auto", problem)))


class ReasonSearch(Generic[Row]):
    """The search for smallest sets of features that every way to the target changes.

    A set of features forces the decision where no row of the target keeps its values: where it *hits*, has a feature of, every set of
    changes that leads to the target. So reasons are the smallest sets that hit all these sets of changes.

    The search knows some sets of changes, and takes a smallest set that hits them. Where no row of the target keeps its values, it is a
    reason; otherwise such a row gives a further set of changes. In the end the smallest known sets of changes are the smallest of all:
    each of the two lists has the smallest sets that hit the other (Berge's duality). So one search enumerates both, as MARCO does.

    Attributes
    ----------
    known : list of (names, row)
        Sets of changes that lead to the target, with the rows.
    found : list of sets of names
        The reasons so far.
    """

    def __init__(
        self, names: Sequence[str], escape: Escape[Row], seconds: Callable[[], float] = lambda: math.inf
    ) -> None:
        self.names, self.escape, self.seconds = tuple(names), escape, seconds
        self.bit = {name: 1 << k for k, name in enumerate(self.names)}
        self.known: list[tuple[Names, Row]] = []
        self.found: list[Names] = []

    def next(self, *, smallest: bool) -> Names | None:
        """Return another reason, the smallest one left where ``smallest``; ``None`` where there is proved to be none."""
        while True:
            kept = self._hitting()
            if kept is None:
                return None
            while kept is not None and not self._is_forced(kept):
                kept = None if smallest else self._grown(kept)
            if kept is not None:
                self.found.append(self._shrunk(kept))
                return self.found[-1]

    def is_exhausted(self) -> bool:
        """Return whether the ways that are known prove that there is no further reason."""
        return self._hitting() is None

    def witness(self, reason: Names, name: str) -> Row:
        """Return a row of the target that changes a feature of a reason, and no other feature of it."""
        return next(row for changed, row in self.known if changed & reason == {name})

    def ways(self) -> list[Row]:
        """Return a row for each known set of changes that is proved to be a smallest one, those of few features first.

        A feature of a set cannot be left out where no other feature of the set is in some reason: without it the values of that reason
        are kept, and with them the decision.
        """
        needed = [
            (changed, row)
            for changed, row in self.known
            if all(any(changed & reason == {name} for reason in self.found) for name in changed)
        ]
        order = sorted(needed, key=lambda each: (len(each[0]), sorted(map(self.names.index, each[0]))))
        return list(dict(reversed(order)).values())[::-1]

    def _is_forced(self, kept: Names) -> bool:
        """Return whether the values of some features force the decision; where they do not, note a set of changes that shows it."""
        got = self.escape(kept)
        if got is not None:
            self.known.append(got)
        return got is None

    def _grown(self, kept: Names) -> Names | None:
        """Return a set with one more feature, from the last set of changes; ``None`` where it would hold a reason that is known already."""
        changed = sorted(self.known[-1][0], key=self.names.index)
        common = sorted(changed, key=lambda name: -sum(name in other for other, _ in self.known))
        wider = (kept | {name} for name in common)
        return next((each for each in wider if not any(reason <= each for reason in self.found)), None)

    def _shrunk(self, kept: Names) -> Names:
        """Leave out one feature after another, as long as the rest forces the decision."""
        for name in sorted(kept, key=self.names.index, reverse=True):
            fewer = kept - {name}
            if all(changed & fewer for changed, _ in self.known) and self._is_forced(fewer):
                kept = fewer
        return kept

    def _hitting(self) -> Names | None:
        """Return a smallest set with a feature of every known set of changes that holds no reason found; ``None`` where there is none."""
        made = smallest_hitting(
            len(self.names),
            [self._bits(changed) for changed, _ in self.known],
            [self._bits(each) for each in self.found],
            self.seconds,
        )
        return None if made is None else frozenset(name for k, name in enumerate(self.names) if made >> k & 1)

    def _bits(self, names: Names) -> int:
        """Return a set of features as a number: each is a bit."""
        return sum(self.bit[name] for name in names)

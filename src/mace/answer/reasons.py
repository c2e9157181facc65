"""Why the decision is what it is: smallest sets of features whose values alone keep a row out of the target."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from mace.answer.conflicts import Undecided
from mace.answer.counterfactual import Counterfactual, show_value
from mace.answer.driver import Driver
from mace.answer.explanation import Explanation
from mace.answer.listed import Listed
from mace.answer.region import Ends, RecourseRegion, widened
from mace.certify.certificate import Certificate
from mace.constraints import fixed
from mace.errors import InvalidOption, cut
from mace.space import FeatureSpace, Integer, Real, Scalar
from mace.space.features import is_missing

Names = frozenset[str]

Escape = Callable[[Names], tuple[Names, Counterfactual] | None]
"""Finds a row of the target that keeps the values of some features, and returns what it changes; ``None`` where there is proved to be none,
or raises :class:`Undecided`."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A set of features whose values force the decision, whatever the others are; without any one of them they do not.

    Attributes
    ----------
    features : tuple of str
        The set, in the order of the space.
    values : dict of str to value
        What these features are.
    ranges : RecourseRegion, optional
        How far their values may move, together, without freeing the decision; ``None`` where that was not asked for.
    witnesses : dict of str to Counterfactual
        For each feature of the set a row of the target that changes it, and none of the others of the set: it cannot be left out.
    certificate : Certificate, optional
        A proof of both that :func:`~mace.verify` checks, where it was asked for.
    """

    features: tuple[str, ...]
    values: dict[str, Scalar]
    ranges: RecourseRegion | None = None
    witnesses: dict[str, Counterfactual] = field(default_factory=dict, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if not self.features:
            return "the decision is the same whatever the features are"
        return ", ".join(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return the reason as plain data."""
        ranges = None if self.ranges is None else {name: _plain(ends) for name, ends in self.ranges.items()}
        return {
            "features": list(self.features),
            "values": self.values,
            "ranges": ranges,
            "is_widest": None if self.ranges is None else self.ranges.complete,
            "witnesses": {name: answer.values for name, answer in self.witnesses.items()},
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Reasons(Listed[Reason]):
    """The reasons of a decision.

    Attributes
    ----------
    reasons : tuple of Reason
        Smallest first where that was asked for.
    complete : bool
        Proved: there is no other reason than these.
    reason : str
        Why the list may not be complete, or that the row is at the target already; empty otherwise.
    necessary : tuple of str
        Features that are in every reason, of those found or not: changing such a feature alone can bring the row to the target, proved by
        a row that does. All of them where the list is complete.
    prediction : value
        What the model says of the row.
    target : str
        What the row is kept out of.
    space : FeatureSpace
        Of which rows this is said.
    note : str
        What is odd about the question: the row itself breaks a rule.
    """

    reasons: tuple[Reason, ...]
    complete: bool
    reason: str
    necessary: tuple[str, ...]
    prediction: Scalar | None
    target: str
    space: FeatureSpace = field(repr=False)
    note: str = ""

    @property
    def _entries(self) -> tuple[Reason, ...]:
        return self.reasons

    def __repr__(self) -> str:
        sets = cut("; ".join("+".join(each.features) or "none needed" for each in self), 120)
        return f"<Reasons: {len(self)} ({sets}), {'complete' if self.complete else 'not complete'}>"

    @property
    def shares(self) -> dict[str, float]:
        """The share of all reasons that hold a feature, greatest first: how much of the decision rests on it.

        Raises
        ------
        InvalidOption
            Not all reasons are known.
        """
        self._must_be_complete("shares")
        count = {name: sum(name in each.features for each in self) for name in self.space}
        order = sorted(self.space, key=lambda name: -count[name])
        return {name: count[name] / max(len(self), 1) for name in order}

    @property
    def levers(self) -> tuple[tuple[str, ...], ...]:
        """The smallest sets of features that suffice to change the decision: every one takes a feature from each reason.

        Raises
        ------
        InvalidOption
            Not all reasons are known.
        """
        self._must_be_complete("levers")
        if any(not each.features for each in self):
            return ()
        made: list[Names] = [frozenset()] if self.reasons else []
        for each in self:
            wider = {
                names if names & set(each.features) else names | {name} for names in made for name in each.features
            }
            made = [names for names in wider if not any(other < names for other in wider)]
        in_order = [tuple(sorted(names, key=self.space.index)) for names in made]
        return tuple(sorted(in_order, key=lambda names: (len(names), [self.space.index(name) for name in names])))

    def _must_be_complete(self, what: str) -> None:
        if not self.complete:
            raise InvalidOption(f"{what}: {self.reason}. Ask for all reasons: count=1000, and no time limit.")

    def __str__(self) -> str:
        if self.complete and self.reason:
            return f"Nothing holds the row back: {self.reason}."
        said = (
            f"{show_value(self.prediction)}, not {self.target}" if self.prediction is not None else f"not {self.target}"
        )
        lines = [f"Why {said}:"] + ([f"Note: {self.note}."] if self.note else [])
        for number, each in enumerate(self, 1):
            lines.append(f"{number}. {each}")
            if each.features:
                lines.append(f"   as long as {in_words(each, self.space)}")
        lines.append(
            "Each set alone keeps the row out of the target, and no feature of it can be left out: proved."
            if self.reasons
            else "No reason was found in time."
        )
        lines.append("There is no other reason: proved." if self.complete else f"There may be others: {self.reason}.")
        if self.necessary:
            lines.append(f"In every reason: {', '.join(self.necessary)}.")
        return "\n".join(lines)

    def certified(self, proof: Callable[[tuple[str, ...]], Certificate | None]) -> Reasons:
        """Return the reasons with certificates; ``proof`` gives that of no row of the target keeping some features."""
        return replace(self, reasons=tuple(replace(each, certificate=_certificate(each, proof)) for each in self))

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as plain data."""
        return {
            "reasons": [each.to_dict() for each in self],
            "complete": self.complete,
            "reason": self.reason,
            "necessary": list(self.necessary),
            "prediction": self.prediction,
            "target": self.target,
            "note": self.note,
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the reasons as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)


def in_words(reason: Reason, space: FeatureSpace) -> str:
    """Return what holds where a reason does, as a sentence has it: its ranges, without ends that are the feature's own, or its values."""
    said = [_held(name, value, reason.ranges, space) for name, value in reason.values.items()]
    return " and ".join(said) if len(said) < 3 else ", ".join(said[:-1]) + " and " + said[-1]


def _held(name: str, value: Scalar, ranges: RecourseRegion | None, space: FeatureSpace) -> str:
    ends = Ends(value, value) if ranges is None or name not in ranges else ranges[name]
    feature = space[name]
    if ends.levels is not None:
        return f"{name} is {ends if len(ends.levels) > 1 else show_value(ends.levels[0])}"
    if ends.low == ends.high:
        return f"{name} is {show_value(ends.low)}"
    if isinstance(feature, Real | Integer) and ends.low == feature.low:
        return f"{name} is at most {show_value(ends.high)}"
    if isinstance(feature, Real | Integer) and ends.high == feature.high:
        return f"{name} is at least {show_value(ends.low)}"
    return f"{name} is from {show_value(ends.low)} to {show_value(ends.high)}"


def _plain(ends: Ends) -> Any:
    return list(ends.levels) if ends.levels is not None else {"low": ends.low, "high": ends.high}


def _certificate(reason: Reason, proof: Callable[[tuple[str, ...]], Certificate | None]) -> Certificate | None:
    """Return the certificate of a reason; ``None`` where its proof was not made in time."""
    made = proof(reason.features)
    if made is None or made.claim["status"] != "infeasible":
        return None
    rows = {name: _json_row(answer) for name, answer in reason.witnesses.items()}
    return replace(made, claim={**made.claim, "reason": rows})


def _json_row(answer: Counterfactual) -> dict[str, Scalar | None]:
    return {name: None if is_missing(value) else value for name, value in answer.values.items()}


def reasons_of(
    driver: Driver, current: Fraction, *, smallest: bool, ranges: bool, there: Explanation | None
) -> Reasons:
    """Return the reasons of a row, at most as many as the question counts; ``there`` says that it is at the target already."""
    space, factual = driver.problem.space, driver.problem.factual
    search = ReasonSearch(list(space), partial(_escape, driver))
    at, found, why = space.values_of(factual), list[Reason](), ""
    try:
        while there is None and (names := search.next(smallest=smallest)) is not None:
            features = tuple(sorted(names, key=space.index))
            free = [name for name in space if name not in features]
            around = (
                widened(driver.problem, features, driver.find, driver.limits, free) if ranges and features else None
            )
            witnesses = {name: search.witness(names, name) for name in features}
            found.append(Reason(features, {name: at[name] for name in features}, around, witnesses))
            if len(found) == driver.question.count:
                why = f"only {len(found)} were asked for"
                break
    except Undecided as stopped:
        why = str(stopped)
    alone = {name for changed, _ in search.known if len(changed) == 1 for name in changed}
    return Reasons(
        reasons=tuple(found),
        complete=not why,
        reason=there.reason if there is not None else why,
        necessary=tuple(name for name in space if name in alone),
        prediction=driver.reading.label(current),
        target=driver.question.in_words[0],
        space=space,
        note=""
        if driver.problem.is_plausible(factual)
        else "the row itself breaks a rule, which rows beside it must keep",
    )


def _escape(driver: Driver, kept: Names) -> tuple[Names, Counterfactual] | None:
    """Return the nearest row of the target that keeps the values of some features, with what it changes."""
    space, factual = driver.problem.space, driver.problem.factual
    return driver.nearest((fixed(*sorted(kept, key=space.index)).bind(space, factual),) if kept else ())


class ReasonSearch:
    """The search for smallest sets of features that every way to the target changes.

    A set forces the decision where no row of the target keeps its values: where it has a feature of every set of changes that leads
    there. So reasons are the smallest sets that hit all such sets, and sets of changes are asked for until those known suffice: where no
    row keeps the values of a smallest set that hits the known ones, it is a reason.

    Attributes
    ----------
    known : list of (names, Counterfactual)
        Sets of changes that lead to the target, with the rows.
    found : list of sets of names
        The reasons so far.
    """

    def __init__(self, names: Sequence[str], escape: Escape) -> None:
        self.names, self.escape = tuple(names), escape
        self.known: list[tuple[Names, Counterfactual]] = []
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

    def witness(self, reason: Names, name: str) -> Counterfactual:
        """Return a row of the target that changes a feature of a reason, and no other feature of it."""
        return next(answer for changed, answer in self.known if changed & reason == {name})

    def _is_forced(self, kept: Names) -> bool:
        """Return whether the values of some features force the decision; where they do not, note a set of changes that shows it."""
        got = self.escape(kept)
        if got is not None:
            self.known.append(got)
        return got is None

    def _grown(self, kept: Names) -> Names | None:
        """Return a set with a feature more, of the last set of changes; ``None`` where it would hold a reason that is found."""
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
        rows = [([name in changed for name in self.names], 1.0, np.inf) for changed, _ in self.known]
        rows += [([name in reason for name in self.names], -np.inf, len(reason) - 1.0) for reason in self.found]
        if not rows:
            return frozenset()
        matrix, low, high = zip(*rows, strict=True)
        made = milp(
            np.ones(len(self.names)),
            integrality=np.ones(len(self.names)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(np.array(matrix, dtype=float), low, high),
        )
        if made.x is None:
            if made.status == 2:
                return None
            raise Undecided("the sets could not be gone through")
        return frozenset(name for name, taken in zip(self.names, made.x, strict=True) if taken > 0.5)

"""The menu of levers: the smallest sets of features that suffice, each with its nearest answer, and sets that do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from mace.answer.conflicts import Undecided
from mace.answer.counterfactual import AS_IN_DATA, Counterfactual
from mace.answer.driver import Driver
from mace.answer.listed import Listed
from mace.answer.round_ways import Rounds
from mace.constraints import changes, fixed
from mace.errors import cut
from mace.problem import Problem
from mace.registry import resolve
from mace.space import Wording

T = TypeVar("T")

Set = frozenset[str]
Nearest = Callable[[Set | None, Sequence[Set]], tuple[Set, T] | None]
"""Finds the nearest answer that changes only some features (any, where ``None``) and not all of any excluded set; returns what it changes,
with the answer, ``None`` where there is proved to be none, or raises :class:`Undecided`."""


@dataclass(frozen=True, slots=True)
class Lever:
    """A set of features that suffices, none of which can be left out, and the nearest answer that changes only them."""

    features: tuple[str, ...]
    counterfactual: Counterfactual


@dataclass(frozen=True, slots=True)
class Levers(Listed[Lever]):
    """The menu, nearest first.

    Attributes
    ----------
    levers : tuple of Lever
        The sets that suffice.
    insufficient : tuple of tuples of names
        Sets proved not to suffice, whatever their features are changed to; those inside another are left out.
    complete : bool
        Proved: every set that suffices contains one of the menu.
    reason : str
        Why it is not complete, or that the row is at the target already; empty otherwise.
    round_to : dict of str to number
        Of what the answers' values are multiples: each is nearest among such rows. Empty where any number counted.
    wording : Wording
        What people call the features and their values.
    """

    levers: tuple[Lever, ...]
    insufficient: tuple[tuple[str, ...], ...]
    complete: bool
    reason: str = ""
    round_to: dict[str, float] = field(default_factory=dict)
    wording: Wording = field(default=AS_IN_DATA, repr=False, compare=False)

    @property
    def _entries(self) -> tuple[Lever, ...]:
        return self.levers

    def __repr__(self) -> str:
        sets = cut("; ".join("+".join(lever.features) for lever in self), 120)
        return f"<Levers: {len(self)} sets that suffice ({sets}), {'complete' if self.complete else 'not complete'}>"

    def __str__(self) -> str:
        if self.complete and self.reason:
            return f"Nothing to change: {self.reason}."
        lines = [f"{self.called(lever.features)}: distance {lever.counterfactual.distance:.6g}" for lever in self]
        return "\n".join([*lines, *self.proved()])

    def called(self, features: Sequence[str]) -> str:
        """Return features by the names that people know."""
        return ", ".join(map(self.wording.name, features))

    def proved(self) -> list[str]:
        """Return what is proved of the sets as a whole, in sentences."""
        lines = [f"{self.called(names)}: proved not to suffice" for names in self.insufficient]
        all_known = "No other set of features suffices without one of these: proved."
        return [*lines, all_known if self.complete else f"Not complete: {self.reason}."]

    def plot(self, ax: Any = None) -> Any:
        """Draw the sets below each other: of each a bar for the distance, and its changes.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new ones where not given.

        Returns
        -------
        MenuDisplay
            See :mod:`mace.plots`; its ``save(path)`` writes a picture.
        """
        return resolve("mace.plots:MenuDisplay").from_levers(self).plot(ax)

    def _repr_html_(self) -> str:
        made: str = resolve("mace.notebook:levers_html")(self)
        return made


def menu(driver: Driver, most: int) -> Levers:
    """Return the menu of a row, which ends at ``most`` sets."""
    space, factual = driver.problem.space, driver.problem.factual

    def nearest(allowed: Set | None, excluded: Sequence[Set]) -> tuple[Set, Counterfactual] | None:
        stay = () if allowed is None else tuple(name for name in space if name not in allowed)
        made = [*([fixed(*stay)] if stay else ()), *(~changes(*sorted(names)) for names in excluded)]
        return driver.nearest(tuple(each.bind(space, factual) for each in made))

    found, insufficient, reason = minimal_sets(nearest, most)
    return Levers(
        levers=tuple(
            Lever(tuple(sorted(names, key=space.index)), answer)
            for names, answer in sorted(found, key=lambda pair: pair[1].distance)
        ),
        insufficient=tuple(
            tuple(sorted(names, key=space.index))
            for names in insufficient
            if names and not any(names < other for other in insufficient)
        ),
        complete=not reason,
        reason=reason,
        wording=space.wording,
    )


def minimal_sets(nearest: Nearest[T], most: int) -> tuple[list[tuple[Set, T]], list[Set], str]:
    """Return the smallest sets that suffice, each with its answer, sets that do not, and why the list is not complete.

    Examples
    --------
    Sets that hold a, or b and c, suffice:

    >>> def nearest(allowed, excluded):
    ...     wanted = [frozenset("a"), frozenset("bc")]
    ...     fits = [s for s in wanted if (allowed is None or s <= allowed) and not any(e <= s for e in excluded)]
    ...     return (fits[0], "answer") if fits else None
    >>> sets, _, reason = minimal_sets(nearest, 10)
    >>> [sorted(each) for each, _ in sets], reason
    ([['a'], ['b', 'c']], '')
    """
    found: list[tuple[Set, T]] = []
    insufficient: list[Set] = []
    try:
        while len(found) < most:
            got = nearest(None, [chosen for chosen, _ in found])
            if got is None:
                return found, insufficient, ""
            found.append(_shrunk(got, nearest, insufficient))
    except Undecided as stopped:
        return found, insufficient, str(stopped)
    return found, insufficient, f"the menu ends at {most} sets"


def _shrunk(got: tuple[Set, T], nearest: Nearest[T], insufficient: list[Set]) -> tuple[Set, T]:
    """Leave out one feature after another, as long as the rest suffices."""
    chosen, answer = got
    for name in sorted(chosen):
        fewer = chosen - {name}
        if name not in chosen or any(fewer <= known for known in insufficient):
            continue
        smaller = nearest(fewer, ())
        if smaller is None:
            insufficient.append(fewer)
        else:
            chosen, answer = smaller
    return chosen, answer


def round_levers(made: Levers, rounds: Rounds, problem: Problem) -> Levers:
    """Return a menu whose answers have round values, each nearest among such rows; as it is, where not all of them can be round."""
    found: list[Lever] = []
    for lever in made:
        point = problem.space.point(lever.counterfactual.values)
        asked = rounds.proved(problem, point, lever.counterfactual.solver)
        if asked is None:
            return made
        found.append(replace(lever, counterfactual=asked[0]))
    found.sort(key=lambda lever: lever.counterfactual.distance)
    return replace(made, levers=tuple(found), round_to=dict(rounds.steps))

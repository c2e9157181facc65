"""differ: how a further counterfactual must differ from the earlier ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from mace.constraints.budget import changes_at_most
from mace.constraints.condition import AtLeast, Condition, GuardCondition, Values, changed, compare
from mace.constraints.fixed import fixed
from mace.constraints.numbers import as_written, is_binary, meant_program
from mace.constraints.views import View
from mace.distances import Distance, FunctionDistance
from mace.distances.change import change_command
from mace.errors import InvalidOption, cut
from mace.language import run, syntax
from mace.slips import knows_its_options
from mace.space import RESERVED, FeatureSpace, Point, Real


@dataclass(frozen=True, slots=True)
class CountDifferent(Condition):
    """A row differs from ``earlier`` in at least ``features`` features, a real one by at least ``by`` of its range.

    With ``written``, values count as the decimals that they are written as; where ``among`` is given, only these features count.
    """

    space: FeatureSpace
    earlier: Point
    features: int
    by: Fraction
    written: bool = True
    among: tuple[str, ...] | None = None

    def counts(self, j: int) -> bool:
        """Return whether feature number ``j`` counts."""
        return self.among is None or self.space.names[j] in self.among

    def formula(self, prefix: str) -> syntax.Guard:
        """Return the count's characteristic formula with its result bounded."""
        return AtLeast(self.program, Fraction(self.features)).formula(prefix)

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the count cannot be taken in a view."""
        return "" if view in (View.DIFFERENT, View.PIECEWISE) else Condition.why_not(self, view, space)

    def holds(self, values: Values) -> bool:
        """Count."""
        return run(self.program, values) >= self.features

    @property
    def program(self) -> syntax.Program:
        """The program that counts the features in which a row differs from ``earlier``."""
        steps: list[syntax.Command] = []
        different: list[syntax.Indicator] = []
        for j, ((name, feature), old) in enumerate(zip(self.space.items(), self.earlier, strict=True)):
            if not self.counts(j):
                continue
            guard: syntax.Guard = syntax.negation(compare(self.space, name, "==", old))
            if isinstance(feature, Real) and self.by > 0:
                delta = f"{RESERVED}delta({name})"
                steps.append(change_command(name, feature, old, delta, written=self.written))
                guard = syntax.Compare(">=", syntax.Variable(delta), syntax.constant(self.by))
            different.append(syntax.Indicator(guard))
        return syntax.Program(self.space.names, syntax.sequence([*steps, syntax.Return(syntax.total(different))]))


@dataclass(frozen=True, slots=True)
class SomeChange(GuardCondition):
    """At least one of some features changes: a guard, and as a count."""

    count: CountDifferent

    @classmethod
    def of(cls, space: FeatureSpace, factual: Point, names: tuple[str, ...]) -> SomeChange:
        """Return that at least one of these features differs from the factual's."""
        guard = syntax.disjunction([changed(space, name, factual) for name in names])
        return cls(guard, CountDifferent(space, factual, 1, Fraction(0), among=names))

    def why_not(self, view: View, space: FeatureSpace) -> str:
        """Return why the condition cannot be taken in a view."""
        return "" if view is View.SOME_CHANGE else GuardCondition.why_not(self, view, space)


def counts(conditions: Iterable[Condition]) -> list[CountDifferent]:
    """Return the conditions that count how many features differ, as counts."""
    found = (condition.count if isinstance(condition, SomeChange) else condition for condition in conditions)
    return [condition for condition in found if isinstance(condition, CountDifferent)]


@dataclass(frozen=True, slots=True, repr=False)
class Differ:
    """At least ``features`` features differ, a real one by at least ``by`` of its range; or the distance is at least ``distance``; or
    (``in_sets``) not all features that the earlier one changes are changed again; or (``sets``) neither of the two sets of changed
    features contains the other."""

    features: int | None
    by: float
    distance: float | None
    in_sets: bool = False
    sets: str | None = None

    def bind(
        self, space: FeatureSpace, factual: Point, earlier: Point, distance: Distance | FunctionDistance
    ) -> tuple[Condition, ...]:
        """Return the conditions of differing from one earlier counterfactual of a factual."""
        if self.in_sets or self.sets is not None:
            again = tuple(name for name, new, old in zip(space, earlier, factual, strict=True) if new != old)
            others = tuple(name for name in space if name not in again)
            fewer = changes_at_most(len(again) - 1, of=again) if len(again) > 1 else fixed(*again)
            if self.in_sets:
                return (fewer.bind(space, factual),)
            return fewer.bind(space, factual), SomeChange.of(space, factual, others)
        if self.distance is not None:
            return (self._at_least(space, factual, earlier, distance),)
        assert self.features is not None
        return (CountDifferent(space, earlier, self.features, as_written(self.by), written=not is_binary()),)

    def _at_least(
        self, space: FeatureSpace, factual: Point, earlier: Point, distance: Distance | FunctionDistance
    ) -> Condition:
        """Return that the distance from an earlier counterfactual, over decimals, is at least so much."""
        assert self.distance is not None
        if is_binary():
            metric = distance.from_factual(space, earlier)
            return AtLeast(metric.program(), Fraction(self.distance) ** metric.power)
        if isinstance(distance, Distance):
            norm = distance.written_from(space, earlier)
            return AtLeast(norm.program(written=True), as_written(self.distance) ** norm.power)
        code = meant_program(distance.written_from(space, earlier).program(), space, factual)
        return AtLeast(code, as_written(self.distance))

    def __repr__(self) -> str:
        return cut(str(self))

    def __str__(self) -> str:
        if self.in_sets:
            return "differ(in_sets=True)"
        if self.sets is not None:
            return f"differ(sets={self.sets!r})"
        if self.distance is not None:
            return f"differ(distance={self.distance})"
        return f"differ(features={self.features}, by={self.by})"


@knows_its_options
def differ(
    *,
    features: int | None = None,
    by: float = 0.01,
    distance: float | None = None,
    in_sets: bool = False,
    sets: str | None = None,
) -> Differ:
    """Say how each further counterfactual differs from all earlier ones.

    Where :meth:`~mace.Explainer.explain` is told nothing, it is ``differ(sets="incomparable")``.

    Parameters
    ----------
    features : int
        In at least this many features (1 where nothing is given here).
    by : float
        A real feature counts as different when it differs by at least this share of its range; 0 means at all.
    distance : float
        Instead: by at least this distance.
    in_sets : bool
        Instead: by the set of features that it changes, none of which holds all those that an earlier answer changes. See
        :meth:`~mace.Explainer.levers` for the menu of all smallest sets.
    sets : {"incomparable"}
        Instead: by the set of features that it changes, which neither contains that of an earlier answer nor is contained in it.

    Examples
    --------
    >>> print(differ())
    differ(features=1, by=0.01)
    """
    if not isinstance(in_sets, bool):
        raise InvalidOption(f"differ: in_sets is {in_sets!r}; it must be True or False.")
    if sets is not None and sets != "incomparable":
        raise InvalidOption(f"differ: sets is {sets!r:.80}; it must be 'incomparable'.")
    if in_sets or sets is not None:
        if features is not None or distance is not None or (in_sets and sets is not None):
            alone = "in_sets=True" if in_sets else f"sets={sets!r}"
            raise InvalidOption(f"differ: give {alone} alone, without anything else.")
        return Differ(None, 0.0, None, in_sets=in_sets, sets=sets)
    if distance is not None:
        if features is not None:
            raise InvalidOption("differ: give features or distance, not both.")
        if isinstance(distance, bool) or not isinstance(distance, int | float) or not 0 < distance < float("inf"):
            raise InvalidOption(f"differ: distance is {distance!r}; it must be a positive number.")
        return Differ(None, by, float(distance))
    count = 1 if features is None else features
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidOption(f"differ: features is {features!r}; it must be a whole number of at least 1.")
    if not isinstance(by, int | float) or not 0 <= by <= 1:
        raise InvalidOption(f"differ: by is {by!r}; it must be a number from 0 to 1.")
    return Differ(count, float(by), None)

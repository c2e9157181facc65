"""The ways in which a solver can take a condition: conditions say which of them they have, solvers which of them they take."""

from __future__ import annotations

from enum import StrEnum

from mace.language import syntax
from mace.language.linear import nearly_linear
from mace.space import FeatureSpace


class View(StrEnum):
    """What a condition can be taken as; each text says why another kind of condition cannot.

    Attributes
    ----------
    DOMAINS
        Comparisons of single features with numbers: what each feature may be.
    INEQUALITIES
        These, and linear inequalities between features.
    DIFFERENT
        A count of features that differ from those of a point (:class:`~mace.constraints.differ.CountDifferent`).
    SOME_CHANGE
        That some of a few features change (:class:`~mace.constraints.differ.SomeChange`).
    BUDGET
        Weights of the features that change, with a limit on their sum (:class:`~mace.constraints.budget.ChangeBudget`).
    NEIGHBOUR
        A distance from one row of data, with a limit (:class:`~mace.constraints.near_data.Neighbour`). A lane that takes it only has to be
        right of a box as far as its cells tell rows apart: some of its points may fail it.
    FOREST
        A further tree ensemble that has to call the row usual (:class:`~mace.constraints.typical.Usual`).
    PIECEWISE
        A piecewise linear formula.
    FORMULA
        Any formula.
    GUARD
        A guard over the features, of which intervals tell what it leaves of a box.
    CUT
        A part of the search over boxes, named in the table of cuts.
    ROWS
        ``holds``, asked about one row after the other.
    """

    DOMAINS = "a condition is not on single features"
    INEQUALITIES = "a condition is more than inequalities between features"
    DIFFERENT = "a condition is no count of different features"
    SOME_CHANGE = "a condition is not that one of some features changes"
    BUDGET = "a condition is no limit on the number of changes"
    NEIGHBOUR = "a condition is no limit on the distance from one row"
    FOREST = "a condition is no isolation forest"
    PIECEWISE = "a condition is not piecewise linear"
    FORMULA = "a condition has no formula"
    GUARD = "a condition is no guard"
    CUT = "a condition has no cut"
    ROWS = "a condition cannot be asked about one row"


def why_not_domains(guard: syntax.Guard) -> str:
    """Return why a guard is not about single features; empty where it is."""
    for part in syntax.conjuncts(guard):
        if syntax.bound(part) is not None:
            continue
        if len(syntax.variables(part)) > 1:
            return "a condition joins several features"
        if syntax.compared_with(part) is None:
            return "a condition compares a feature with something other than a number"
    return ""


def why_not_inequalities(guard: syntax.Guard, space: FeatureSpace) -> str:
    """Return why a guard is not made of comparisons of single features and linear inequalities; empty where it is."""
    for part in syntax.conjuncts(guard):
        if syntax.bound(part) is not None:
            continue
        names = syntax.variables(part)
        if len(names) <= 1:
            if syntax.compared_with(part) is None:
                return "a condition compares a feature with something other than a number"
        elif any(space[name].missing for name in names):
            return "a condition joins features that may be missing"
        elif not isinstance(part, syntax.Compare) or part.name == "!=" or nearly_linear(part) is None:
            return "a condition joins several features in another way than by a linear inequality"
        elif part.name == "==" and any(space[name].size is None for name in names):
            return "a condition is an equation between real features"
    return ""

"""Targets: what the counterfactual must be predicted as; as users write them, and what they ask of a model."""

from mace.targets.goals import goal_of, reached
from mace.targets.target import AnyOf, Between, any_of, at_least, at_most, becomes, between, of_label

__all__ = [
    "AnyOf",
    "Between",
    "any_of",
    "at_least",
    "at_most",
    "becomes",
    "between",
    "goal_of",
    "of_label",
    "reached",
]

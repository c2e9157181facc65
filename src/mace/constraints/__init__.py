"""Constraints: what may change and how; one file a kind, one line in the table."""

from mace.constraints.budget import changes_at_most
from mace.constraints.combine import as_constraint, as_constraints, changes, either, implies, together
from mace.constraints.condition import Condition, Constraint, Constraints
from mace.constraints.fixed import fixed, only
from mace.constraints.monotone import decreases, increases
from mace.constraints.moves import at_most_change, steps, transitions
from mace.constraints.one_of import one_of
from mace.constraints.rule import linear, rule
from mace.constraints.within import within
from mace.errors import InvalidConstraint
from mace.registry import Registry

CONSTRAINTS = Registry(
    "constraints",
    {
        "fixed": "mace.constraints.fixed:fixed",
        "only": "mace.constraints.fixed:only",
        "increases": "mace.constraints.monotone:increases",
        "decreases": "mace.constraints.monotone:decreases",
        "within": "mace.constraints.within:within",
        "one_of": "mace.constraints.one_of:one_of",
        "at_most_change": "mace.constraints.moves:at_most_change",
        "steps": "mace.constraints.moves:steps",
        "transitions": "mace.constraints.moves:transitions",
        "linear": "mace.constraints.rule:linear",
        "changes_at_most": "mace.constraints.budget:changes_at_most",
        "changes": "mace.constraints.combine:changes",
        "together": "mace.constraints.combine:together",
        "implies": "mace.constraints.combine:implies",
        "either": "mace.constraints.combine:either",
        "rule": "mace.constraints.rule:rule",
        "near_data": "mace.constraints.near_data:near_data",
        "robust": "mace.constraints.robust:robust",
        "typical": "mace.constraints.typical:typical",
    },
    InvalidConstraint,
)

__all__ = [
    "CONSTRAINTS",
    "Condition",
    "Constraint",
    "Constraints",
    "as_constraint",
    "as_constraints",
    "at_most_change",
    "changes",
    "changes_at_most",
    "decreases",
    "either",
    "fixed",
    "implies",
    "increases",
    "linear",
    "one_of",
    "only",
    "rule",
    "steps",
    "together",
    "transitions",
    "within",
]

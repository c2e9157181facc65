"""Constraints: what may change and how; one file a kind, one line in the table."""

from mace.constraints.condition import Condition, Constraint
from mace.constraints.fixed import fixed
from mace.constraints.monotone import decreases, increases
from mace.constraints.one_of import one_of
from mace.constraints.within import within
from mace.errors import InvalidConstraint
from mace.registry import Registry

CONSTRAINTS = Registry(
    "constraints",
    {
        "fixed": "mace.constraints.fixed:fixed",
        "increases": "mace.constraints.monotone:increases",
        "decreases": "mace.constraints.monotone:decreases",
        "within": "mace.constraints.within:within",
        "one_of": "mace.constraints.one_of:one_of",
    },
    InvalidConstraint,
)

__all__ = [
    "CONSTRAINTS",
    "Condition",
    "Constraint",
    "decreases",
    "fixed",
    "increases",
    "one_of",
    "within",
]

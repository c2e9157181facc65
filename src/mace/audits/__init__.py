"""Audits: who would have to change what, how far it is, and for whom there is no way, by group."""

from mace.audits.audit import Audit, audit
from mace.audits.people import Person
from mace.audits.summary import Disparity, GroupSummary, Interval

__all__ = ["Audit", "Disparity", "GroupSummary", "Interval", "Person", "audit"]

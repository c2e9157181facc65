"""Audits: who would have to change what, how far it is, and for whom there is no way, by group."""

from mace.audits.audit import Audit, AuditSetting, audit
from mace.audits.people import Person
from mace.audits.summary import ConfidenceInterval, Disparity, GroupSummary

__all__ = ["Audit", "AuditSetting", "ConfidenceInterval", "Disparity", "GroupSummary", "Person", "audit"]

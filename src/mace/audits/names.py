"""What a report calls features, groups and the target: as the space does, where it keeps names that people know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mace.audits.summary import GroupSummary
from mace.space import Wording


class ReportNames:
    """The names in a report about some groups.

    Parameters
    ----------
    wording : Wording
        What people call features, levels and outcomes.
    groups : sequence of GroupSummary
        All groups of the report. Where two would be called the same, what they are in the data follows in brackets.
    """

    def __init__(self, wording: Wording, groups: Sequence[GroupSummary]) -> None:
        self.feature, self.target = wording.name, wording.target
        self._wording = wording
        called = {(group.column, group.value): self._called(group.column, group.value) for group in groups}
        counts = Counter(called.values())
        self._groups = {key: said if counts[said] == 1 else f"{said} ({key[1]})" for key, said in called.items()}

    def features(self, names: Iterable[str], *, between: str = ", ") -> str:
        """Return what features are called, in a row."""
        return between.join(map(self.feature, names))

    def value(self, column: str, value: str) -> str:
        """Return what the people of a group have in common, without the name of the column."""
        return self.group(column, value).removeprefix(f"{self.feature(column)} ")

    def group(self, column: str, value: str) -> str:
        """Return what a group is called; everyone where the column is empty."""
        return self._groups.get((column, value)) or self._called(column, value)

    def row(self, group: GroupSummary) -> str:
        """Return what a group is called in a table, where a small one is said to be small."""
        said = self.group(group.column, group.value)
        return f"{said} (small)" if group.is_small else said

    def _called(self, column: str, value: str) -> str:
        return f"{self.feature(column)} {self._wording.value(column, value)}" if column else value

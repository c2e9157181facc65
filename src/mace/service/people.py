"""The people of the data: a page at a time, filtered and sorted."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from mace.answer.plain import plain
from mace.service.opened import Opened
from mace.service.scores import RowScores
from mace.space import Point


class NoSuchPerson(LookupError):
    """There are no people, or none of this number."""


class People:
    """The rows of the data with what the model says of them; asked for once.

    Parameters
    ----------
    opened : Opened
        The model.
    rows : list of dict
        As they are in the data.
    ids : list of str
        What identifies them.
    """

    def __init__(self, opened: Opened, rows: list[dict[str, Any]], ids: list[str]) -> None:
        self.rows, self.ids = rows, ids
        self._scores = RowScores(opened.explainer, opened.target)
        self._space = opened.explainer.space

    @classmethod
    def of(cls, opened: Opened) -> People | None:
        """Return the people of what is served; ``None`` where there are none."""
        found = opened.people()
        return None if found is None else cls(opened, *found)

    @cached_property
    def said(self) -> list[dict[str, Any]]:
        """What the model says of each."""
        return self._scores.of_rows(self.rows)

    @cached_property
    def _texts(self) -> list[str]:
        """What a search looks through, in small letters."""
        return ["\n".join(map(str, (own, *row.values()))).lower() for own, row in zip(self.ids, self.rows, strict=True)]

    @property
    def points(self) -> list[Point]:
        """The rows that fit the space."""
        return [self._space.point(row) for row, said in zip(self.rows, self.said, strict=True) if not said["error"]]

    def page(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return a page of those who match."""
        found = self._matching(given.get("search") or "", given.get("decision"))
        sort = given["sort"]
        if sort.lstrip("-") != "number":
            found.sort(key=lambda number: self._order(number, sort.lstrip("-")))
        if sort.startswith("-"):
            found.reverse()
        begin = given["offset"]
        shown = found[begin : begin + given["limit"]]
        return {
            "total": len(self.rows),
            "matching": len(found),
            "offset": begin,
            "people": [self._brief(number) for number in shown],
        }

    def _matching(self, search: str, decision: object) -> list[int]:
        numbers = range(len(self.rows))
        words = search.lower().split()
        return [
            number
            for number in numbers
            if (decision is None or str(self.said[number]["decision"]) == str(decision))
            and all(word in self._texts[number] for word in words)
        ]

    def _order(self, number: int, by: str) -> tuple[bool, Any]:
        value = self.ids[number] if by == "id" else self.said[number][by]
        return value is None, value if by == "score" and value is not None else str(value)

    def _brief(self, number: int) -> dict[str, Any]:
        return {"number": number, "id": self.ids[number], **self.said[number]}

    def person(self, number: int) -> dict[str, Any]:
        """Return one person whole."""
        if not 0 <= number < len(self.rows):
            raise NoSuchPerson(f"there is no person {number}; the data have {len(self.rows)}, counted from 0.")
        row = {name: plain(value) for name, value in self.rows[number].items()}
        return {**self._brief(number), "row": row, **self._scores.head}

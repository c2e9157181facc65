"""Words that people write in the texts of constraints, and what to write there instead."""

from __future__ import annotations

import re

_OF_TEXTS = (
    (
        r"\b(fixed|frozen|constant|immutable|unchanged|(can ?not|must not|may not|don't|do not|does not|never) change)\b",
        "to keep a feature as it is, write 'age stays'",
    ),
    (
        r"\b(can|may|must|should|only)( only)? (increase|rise|grow|go up)\b|\b(not|never) (decreases?|falls?|shrinks?)\b",
        "for one that may only become larger, write 'age increases'",
    ),
    (
        r"\b(can|may|must|should|only)( only)? (decrease|fall|shrink|go down)\b|\b(not|never) (increases?|rises?|grows?)\b",
        "for one that may only become smaller, write 'debt decreases'",
    ),
    (
        r"\bonly\b.*\b(may|can|should) change\b|\bonly change\b",
        "to name all that may change, write 'only age, income change'",
    ),
    (
        r"\b(max|maximum|at most|no more than|up to|least|fewer than)( of)? \d+ changes?\b|\b(n_|number of )?changes *[<=]",
        "to limit how many features change, write 'at most 2 features change'",
    ),
    (r"\bimplies\b|[=-]>|\u21d2|\u2192", "for a rule with a condition, write 'if age >= 30 then income >= 1000'"),
    (r"&|\|", "between parts write 'and' or 'or'"),
    (r"\u2264|=<", "write '<='"),
    (r"\u2265", "write '>='"),
    (r"\u2260|<>", "write '!='"),
    (r"\.\.|\u2026|\bbetween\b|\bfrom \S+ to\b", "for a range, write 'age between 20 and 30'"),
)
"""Patterns, and what is said where one of them is found in a line that cannot be read."""


def about_text(line: str) -> str:
    """Return what to write instead of a line of a constraint that cannot be read; empty where nothing is known of it.

    Examples
    --------
    >>> about_text("age must not change")
    "to keep a feature as it is, write 'age stays'"
    """
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "''", line)
    return next((hint for pattern, hint in _OF_TEXTS if re.search(pattern, plain, re.IGNORECASE)), "")

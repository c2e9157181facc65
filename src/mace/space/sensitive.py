"""Features that nobody should be told to change, by the words of their names."""

from __future__ import annotations

import re
from functools import lru_cache

SENSITIVE_WORDS = frozenset(
    (
        "age", "birth", "birthdate", "birthday", "birthplace", "caste", "citizen", "citizenship", "dob",
        "disabilities", "disability", "disabled", "ethnic", "ethnicity", "female", "foreign", "foreigner", "gender", "handicap",
        "handicapped", "immigrant", "male", "marital", "married", "nationality", "native", "pregnancy", "pregnant",
        "race", "racial", "religion", "religious", "sex", "sexual", "transgender", "veteran",
    )
)  # fmt: skip
"""The words that :func:`is_sensitive` looks for: those of laws against discrimination, in English."""


@lru_cache(10_000)
def is_sensitive(name: str) -> bool:
    """Return whether a word of a feature's name is among :data:`SENSITIVE_WORDS`; words end at signs, digits and capitals.

    Examples
    --------
    >>> [name for name in ("applicantAge", "personal_status_sex", "mortgage", "average income") if is_sensitive(name)]
    ['applicantAge', 'personal_status_sex']
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return not SENSITIVE_WORDS.isdisjoint(re.findall(r"[^\W\d_]+", apart.lower()))

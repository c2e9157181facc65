"""Letters: an explanation in plain words for the person whom it is about."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mace.answer.explanation import Explanation
from mace.answer.reasons import Reasons
from mace.disk import read_bytes, said
from mace.errors import InvalidOption, legible
from mace.letters.catalogue import language_of
from mace.letters.facts import facts_of
from mace.letters.limited import LONGEST_TEMPLATE, filled
from mace.letters.page import as_html, as_text, blocks_of
from mace.letters.writer import Writer
from mace.slips import LETTER_OPTIONS, instead
from mace.space import Wording
from mace.space.wording import checked

FIELDS = ("name", "sender", "date", "address", "reference", "contact")
"""What may be filled in where no template is given."""


def letter(
    explanation: Explanation,
    template: str | Path | None,
    *,
    html: bool,
    language: str,
    wording: Mapping[str, Any],
    number: int | str,
    score: bool,
    margin: bool,
    fields: Mapping[str, object],
) -> str:
    """Return the letter of an explanation; see :meth:`mace.Explanation.letter`."""
    writer, hidden = writer_of(explanation, language, wording)
    facts = facts_of(explanation, writer, number, hidden, score=score, margin=margin)
    return written(writer, facts, template, fields, html=html)


def writer_of(about: Explanation | Reasons, language: str, wording: Mapping[str, Any]) -> tuple[Writer, list[str]]:
    """Return who writes a letter about a row, and the features that it must not mention.

    ``wording`` holds ``names``, ``units``, ``outcomes`` and ``levels`` as a letter is given them.
    """
    space = about.space
    features = space if space is not None else dict.fromkeys(about.factual)
    given = checked(features, **wording, labels=about.classes, method="letter", error=InvalidOption)
    known = Wording() if space is None else space.wording
    hidden = [] if space is None else [name for name in space.protected if name not in given.names]
    return Writer(language_of(language), known.but(given), space), hidden


def written(
    writer: Writer, facts: Mapping[str, Any], template: str | Path | None, fields: Mapping[str, object], *, html: bool
) -> str:
    """Return the letter that says some facts, by a template or as letters are."""
    clash = sorted(set(fields) & set(facts))
    if clash:
        raise InvalidOption(f"letter: {clash[0]!r} is a name of the template already. Choose another.")
    if template is not None:
        text = _read(template) if isinstance(template, Path) else template
        return filled(text, {**facts, **_dated(writer, fields)}, html=html)
    unknown = next((each for each in fields if each not in FIELDS), None)
    if unknown is not None:
        raise InvalidOption(
            f"letter: there is no field {unknown!r:.60}.{instead(unknown, LETTER_OPTIONS, FIELDS)} "
            f"Without a template there are: {', '.join(FIELDS)}."
        )
    texts = {key: legible(str(each)).strip() for key, each in _dated(writer, fields).items() if each is not None}
    blocks = blocks_of(writer.language, facts, {key: text for key, text in texts.items() if text})
    return (as_html if html else as_text)(writer.language, blocks)


def _dated(writer: Writer, fields: Mapping[str, object]) -> dict[str, object]:
    """Return fields with dates in the words of the language."""
    return {
        key: writer.date(each.isoformat()[:10]) if isinstance(each, datetime.date) else each
        for key, each in fields.items()
    }


def _read(path: Path) -> str:
    try:
        return read_bytes(path, LONGEST_TEMPLATE).decode("utf-8-sig")
    except OSError as error:
        raise InvalidOption(f"letter: cannot read {path}: {said(error)}.") from error
    except UnicodeDecodeError as error:
        raise InvalidOption(f"letter: cannot read {path}: it is not UTF-8 ({error.reason}).") from error

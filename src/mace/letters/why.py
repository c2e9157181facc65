"""Letters that say what decided: a reason, and how far it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mace.answer.counterfactual import real_dtype
from mace.answer.reasons import Reason, Reasons, few_others, open_ends
from mace.errors import InvalidOption
from mace.letters.letter import writer_of, written
from mace.letters.rules import decision_text, target_text
from mace.letters.writer import Writer, in_a_row
from mace.problem import Status

DECIDED = "decided"
"""The status of such a letter, where the row is not at the target already."""


def letter_why(
    reasons: Reasons,
    template: str | Path | None,
    *,
    html: bool,
    language: str,
    wording: Mapping[str, Any],
    number: int,
    fields: Mapping[str, object],
) -> str:
    """Return the letter of reasons; see :meth:`mace.answer.reasons.Reasons.letter`."""
    writer, hidden = writer_of(reasons, language, wording)
    return written(writer, why_facts(reasons, writer, number, hidden), template, fields, html=html)


def why_facts(reasons: Reasons, writer: Writer, number: int, hidden: Sequence[str]) -> dict[str, Any]:
    """Return what a template may use."""
    is_there = reasons.complete and not reasons
    if not is_there and (isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(reasons)):
        raise InvalidOption(
            f"letter: number={number!r:.40}; there are {len(reasons)} reasons{'' if reasons else f': {reasons.reason}'}."
        )
    features = () if is_there else reasons[number - 1].features
    told = next((name for name in features if name in hidden), None)
    if told is not None:
        raise InvalidOption(
            f"letter: the reason holds {told!r}, which the space protects. Give another number=, or give it a name to have it mentioned: "
            f"names={{{told!r}: ...}}."
        )
    return {
        "status": str(Status.REACHED) if is_there else DECIDED,
        "language": writer.language.code,
        "decision": decision_text(writer, reasons.prediction, reasons.target, is_reached=is_there),
        "target": target_text(writer, reasons.target, None),
        "held": [_held(writer, reasons[number - 1], name, reasons) for name in features],
        "is_only": reasons.complete and len(reasons) == 1,
        "others": len(reasons) - 1,
    }


def _held(writer: Writer, reason: Reason, name: str, reasons: Reasons) -> dict[str, str]:
    """Return a feature of a reason, its value, and in a sentence how far it may move."""
    dtype = None if reasons.space is None else real_dtype(reasons.space[name])
    made = {"name": writer.name(name), "value": writer.value(name, reason.values[name], dtype)}
    ends = None if reason.ranges is None else reason.ranges.get(name)
    say = writer.language.say
    if ends is None or (ends.levels is None and ends.low == ends.high) or (ends.levels and len(ends.levels) == 1):
        return made | {"text": say("held").format(**made)}
    if ends.levels is not None:
        if others := () if reasons.space is None else few_others(name, ends, reasons.space):
            values = in_a_row([writer.value(name, level) for level in others])
            return made | {"text": say("held_but").format(**made, values=values)}
        values = in_a_row([writer.value(name, level) for level in ends.levels])
        return made | {"text": say("held_one_of").format(**made, values=values)}
    low, high = (writer.value(name, end, dtype) for end in (ends.low, ends.high))
    is_low, is_high = (False, False) if reasons.space is None else open_ends(name, ends, reasons.space)
    key = "held" if is_low and is_high else "held_at_most" if is_low else "held_at_least" if is_high else "held_between"
    return made | {"text": say(key).format(**made, low=low, high=high)}

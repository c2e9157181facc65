"""An audit in three sentences, for those who read no table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mace.audits.names import ReportNames
from mace.audits.people import ERROR, GRANTED, NO_RECOURSE, RECOURSE, UNKNOWN
from mace.audits.summary import MEASURES, Disparity

if TYPE_CHECKING:
    from mace.audits.audit import Audit

SHARES = ("granted", "recourse", "fixed", "touches")
"""Measures that are shares, and said in points of a hundred."""


def three_sentences(audit: Audit) -> tuple[str, str, str]:
    """Return who has a way to the target, which groups differ, and what it takes."""
    return _who(audit), _which(audit), _what(audit)


def _who(audit: Audit) -> str:
    outcomes, everyone, target = audit.everyone.outcomes, audit.everyone, audit.names.target(audit.target)
    errors = f" ({outcomes[ERROR]} rows cannot be explained)" if outcomes[ERROR] else ""
    if not everyone.asked:
        return f"All of {everyone.people} people reach the target, {target}, already{errors}."
    found, none = outcomes[RECOURSE], outcomes[NO_RECOURSE]
    is_all = everyone.proved_nearest == found
    proved = "each proved nearest" if is_all else f"{everyone.proved_nearest} of them proved nearest"
    parts = [f"{'all' if found == everyone.asked else found} have a way there, {proved}"] if found else []
    parts += [f"{'all' if none == everyone.asked else none} are proved to have none"] if none else []
    parts += [f"{outcomes[UNKNOWN]} are undecided"] if outcomes[UNKNOWN] else []
    return (
        f"Of {everyone.people} people{errors}, {outcomes[GRANTED]} reach the target, {target}, already; "
        f"of the other {everyone.asked}, {', '.join(parts)}."
    )


def _which(audit: Audit) -> str:
    if not audit.disparities:
        return "No groups were compared."
    if not audit.comparisons:
        return "No two groups are large enough to be compared."
    clear, names = [each for each in audit.disparities if each.is_clear], audit.names
    if audit.comparisons == 1:
        return (
            f"The one comparison between groups is clear: {difference_in_words(clear[0], names)}."
            if clear
            else _NOT_CLEAR
        )
    number = f"Of {audit.comparisons} comparisons between groups"
    if not clear:
        return f"{number} none is clear once their number is taken into account."
    first = min(clear, key=lambda each: each.corrected)
    count = "one is" if len(clear) == 1 else f"{len(clear)} are"
    return f"{number} {count} clear once their number is taken into account; the clearest: {difference_in_words(first, names)}."


_NOT_CLEAR = "The one comparison between groups is not clear."


def difference_in_words(disparity: Disparity, names: ReportNames) -> str:
    """Return how a group differs, as a sentence without its full stop."""
    column, value = disparity.column, disparity.difference.value
    if disparity.measure in SHARES:
        amount = f"{abs(value) * 100:.0f} points {'lower' if value < 0 else 'higher'}"
    else:
        amount = f"{abs(value):.3g} {'less' if value < 0 else 'more'}"
    who, other = names.group(column, disparity.value), names.value(column, disparity.reference)
    return f"of {who} the {MEASURES[disparity.measure][0]} is {amount} than of {other}"


def _what(audit: Audit) -> str:
    everyone, called = audit.everyone, audit.names
    found, touching = everyone.outcomes[RECOURSE], sum(everyone.held.values())
    if not found:
        return "Nobody has an answer in hand whose changes could be counted."
    if audit.protected and touching:
        names = called.features([each for each in audit.protected if everyone.protected.get(each)], between=" or ")
        held, none = everyone.held[RECOURSE], everyone.held[NO_RECOURSE]
        left = f"{'all' if held == touching else held} of these {touching} people still have a way"
        parts = [f"{left}, {everyone.relative_price:.0%} farther on average"] if held else []
        who = f"{'all ' if none == touching else ''}{none}{'' if held else ' of these people'}"
        parts += [f"{who} are proved to have none"] if none else []
        parts += [f"it is not known whether these {touching} people have one"] if not parts else []
        return f"{touching / found:.0%} of the nearest answers change {names}; with the protected features held, {', and '.join(parts)}."
    untouched = (
        f"No nearest answer changes {called.features(audit.protected, between=' or ')}; what"
        if audit.protected
        else "What"
    )
    most = ", ".join(f"{called.feature(name)} ({share:.0%})" for name, share in list(everyone.levers.items())[:3])
    return f"{untouched} must change most often is {most}."

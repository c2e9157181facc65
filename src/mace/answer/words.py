"""Explanations in a few words: a short form for programmers, two sentences for everybody."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mace.problem import NOT_PROVED, Status

if TYPE_CHECKING:
    from mace.answer.explanation import Explanation


ANY_OTHER = "any other outcome"
"""What is asked for where no target is given."""


MOST_IN_A_SENTENCE = 8
"""So many changes stand in a sentence."""

MADE_ROUND = "the answer was rounded"
"""The reason of an answer that is valid and round, and farther than what is proved."""


def farther(explanation: Explanation) -> str:
    """Return by how much answers that were made round may be farther than need be, in words; empty where that is not the only reason."""
    if explanation.reason != MADE_ROUND or any(not each.lower for each in explanation):
        return ""
    most = 100 * max(each.distance / each.lower - 1 for each in explanation)
    digits = 1 if most <= 0 else min(max(1 - math.floor(math.log10(most)), 1), 12)
    share = math.ceil(most * 10**digits) / 10**digits
    return f"made round, at most {share:.{digits}f} % farther than the nearest row{'s' if len(explanation) > 1 else ''}"


def short(explanation: Explanation) -> str:
    """Return an explanation in a line of less than 200 characters."""
    parts = [f"{explanation.status}", f"to {explanation.target:.40}"]
    if explanation:
        parts.append(f"{len(explanation)} counterfactual{'s' if len(explanation) > 1 else ''}")
        parts.append(f"nearest at {explanation[0].distance:.6g} ({explanation.distance:.40})")
    elif explanation.error or explanation.reason:
        parts.append(f"{explanation.error or explanation.reason:.80}")
    return f"<Explanation: {', '.join(parts)}>"


def at_target(explanation: Explanation) -> str:
    """Return why nothing has to change, with outcomes by the names that people know."""
    wording, prediction = explanation.wording, explanation.prediction
    before, asked, _ = explanation.reason.rpartition(f", and {explanation.target} is asked for")
    row, predicted, said = before.partition("predicted ")
    if not asked or not wording.outcomes:
        return explanation.reason
    said = wording.target(said.replace(repr(prediction), repr(wording.outcome(prediction)), 1))
    return f"{row}{predicted}{said}, and {explanation._asked_for} is asked for"


def why(explanation: Explanation) -> str:
    """Return two sentences: what decided, and what is proved of it, what is not."""
    says = f"The model predicts {explanation.wording.outcome(explanation.prediction)}{explanation._scored()}"
    match explanation.status:
        case Status.REACHED:
            return f"{says}, and {explanation._asked_for} is asked for. Nothing has to change, so nothing had to be proved."
        case Status.ERROR:
            return f"The row was not explained: {explanation.error.rstrip('.')}. Nothing is proved."
        case Status.INFEASIBLE:
            blame = _blame(explanation)
            space = f"the space{_let_in(explanation)}"
            return f"{says}, and no plausible row reaches {explanation._asked_for}{blame}. That is proved for every row of {space}."
        case Status.UNKNOWN:
            says = says if explanation.prediction is not None else "The model was not asked"
            least = (
                f"only that nothing nearer than {explanation.lower:.6g} does{explanation.among}"
                if explanation.lower > 0
                else "nothing"
            )
            return (
                f"{says}, and no row that reaches {explanation._asked_for} is in hand: {explanation.reason}. "
                f"Proved is {least}; whether there is one is open."
            )
    return f"{says}; {_decided(explanation)}. {_proved(explanation)}"


def _let_in(explanation: Explanation) -> str:
    return f" ({explanation.outside})" if explanation.outside else ""


def _blame(explanation: Explanation) -> str:
    if explanation.conflict:
        return " under " + "; ".join(map(str, explanation.conflict))
    reason = explanation.reason.removesuffix(explanation.outside).removesuffix("; ")
    return f" ({reason})" if reason else ""


def _decided(explanation: Explanation) -> str:
    """Return what decides: the changes of the nearest answer."""
    best = explanation[0]
    shown = [change.said(explanation.wording) for change in best.changes]
    shown = (
        shown
        if len(shown) <= MOST_IN_A_SENTENCE
        else [*shown[: MOST_IN_A_SENTENCE - 1], f"{len(shown) - MOST_IN_A_SENTENCE + 1} more"]
    )
    changed = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    what = "this change alone leads" if len(best.changes) == 1 else "these changes together lead"
    is_any = explanation.target == ANY_OTHER
    return f"{what} to {explanation.wording.outcome(best.prediction) if is_any else explanation._asked_for}: {changed}"


def _proved(explanation: Explanation) -> str:
    best = explanation[0]
    near = f"in the {explanation.distance} distance, within the space{_let_in(explanation)} and the constraints"
    if best.status == Status.OPTIMAL:
        first = f"It is proved that no smaller change does{explanation.among}, {near}"
        rest = (
            ""
            if explanation.status == Status.OPTIMAL
            else f"; of the further answers not all is proved: {explanation.reason}"
        )
        least = explanation.lower_unrounded if explanation.rounds_changes else None
        whole = "" if least is None else f"; of all rows, that none is nearer than {least:.6g}"
        return f"{first}{whole}{rest or '; that the change would cause what it describes in the world is not'}."
    if explanation.reason.startswith(NOT_PROVED):
        return f"It is {explanation.reason}; a smaller change may do, {near}."
    share = 0.0 if not best.distance else best.lower / best.distance
    digits = 0 if share < 0.99 else 4
    shown = math.floor(100 * share * 10**digits) / 10**digits
    return (
        f"It is not proved that no smaller change does ({explanation.reason}), only that none of less than {shown:.6g}% of this one "
        f"does, {near}."
    )

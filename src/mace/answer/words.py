"""Explanations in words: a short form for programmers, a headline, the whole answer, and two sentences for everybody."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from mace.answer.plain import in_a_list
from mace.answer.score import of_models
from mace.distances import distance_text
from mace.problem import NOT_PROVED, Status

if TYPE_CHECKING:
    from mace.answer.explanation import Explanation

ANY_OTHER = "any other outcome"
"""What is asked for where no target is given."""


MOST_IN_A_SENTENCE = 8
"""The most changes in one sentence."""

_AT_MOST = re.compile(r"at most |P\(.*\) <= ", re.DOTALL)
"""Targets of which the score has to be low."""

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
    return f"{row}{predicted}{said}, and {_asked_for(explanation)} is asked for"


def headline(explanation: Explanation) -> str:
    """Return the answer in one sentence."""
    asked_for, predicted = _asked_for(explanation), explanation.prediction
    now = "Not asked." if predicted is None else f"{_predicted(explanation, 'Predicted')}."
    reason, outside = explanation.reason, explanation.outside
    match explanation.status:
        case Status.INFEASIBLE:
            blame = f" {reason[0].upper()}{reason[1:]}." if reason else ""
            return f"{now} No counterfactual exists for {asked_for}: proved.{blame}"
        case Status.UNKNOWN:
            proved = f" Proved: none nearer than {explanation.lower:.6g}{among(explanation)}."
            proved = "" if NOT_PROVED in reason else proved
            return f"{now} No counterfactual in hand for {asked_for}: {reason}.{proved}"
        case Status.REACHED:
            return f"Nothing to change: {at_target(explanation)}."
        case Status.ERROR:
            return f"Not explained: {explanation.error}"
    is_open = explanation.status != Status.OPTIMAL
    gap = farther(explanation) or (reason if reason.startswith(NOT_PROVED) else f"not proved nearest: {reason}")
    proved = gap if is_open else f"proved nearest{among(explanation)}"
    let_in = "" if is_open or not outside else f" {outside[0].upper()}{outside[1:]}."
    ways = f"{len(explanation)} way{'s' if len(explanation) > 1 else ''} to {asked_for}{_in_models(explanation)}"
    return f"{now} {ways}, {proved} ({distance_text(explanation.distance)}).{let_in}"


def _asked_for(explanation: Explanation) -> str:
    """Return the target, with outcomes by the names that people know."""
    return explanation.wording.target(explanation.target)


def _predicted(explanation: Explanation, begin: str) -> str:
    """Return what the model says of the row, with its score; of a set of models, what so many of them give as must agree."""
    outcome, scores = explanation.wording.outcome(explanation.prediction), explanation._scores
    of, models = of_models(explanation.score_of)
    if not models or scores is None or explanation.score is None:
        return f"{begin} {outcome}{_scored(explanation)}"
    who = "it gives" if models == "the" else f"{models} give"
    shown = scores.shown(explanation.score)
    shown = f"{explanation.score:.4g}" if shown.startswith(("under", "over")) else shown
    number = f"{explanation.wording.target(of)} {shown}"
    return f"Together the models predict {outcome}; {who} {number} or {'less' if _AT_MOST.match(explanation.target) else 'more'}"


def _in_models(explanation: Explanation) -> str:
    """Return in how many models of a set an answer reaches the target, in words; empty of one model."""
    models = of_models(explanation.score_of)[1]
    return f" in {models} models" if models not in ("", "the") else ""


def _scored(explanation: Explanation) -> str:
    scores = explanation._scores
    text = "" if scores is None or explanation.score_of == "prediction" else scores.said(0, explanation.wording)
    return f", {text}" if text else ""


def among(explanation: Explanation) -> str:
    """Return words that follow what is proved where answers are round; empty where they may be any row."""
    are_several = len(explanation) > 1
    of = f" of the features {'each' if are_several else 'it'} changes" if explanation.rounds_changes else ""
    of = f" next to those of the nearest row{'s' if are_several else ''}" if explanation.rounds_next else of
    return f" among round values{of}" if explanation.round_to else ""


def no_further(explanation: Explanation) -> str:
    """Return in one line that no further answer exists; empty where that is not proved."""
    if not explanation.exhausted or not explanation:
        return ""
    where = "" if explanation.rounds_changes else among(explanation)
    if "sets" in explanation.diversity:
        return f"No further set of features leads there, but more or fewer of these: proved{where}."
    differs = " that differs as asked" if explanation.diversity else ""
    return f"No further counterfactual exists{differs}: proved{where}."


def whole(explanation: Explanation) -> str:
    """Return the headline, every answer, and what else is known."""
    blocks = [headline(explanation)]
    for number, counterfactual in enumerate(explanation, start=1):
        title = [f"{number}."] if len(explanation) > 1 else []
        blocks.append("\n".join([*title, counterfactual.said(explanation.wording)]))
    blocks += filter(None, [no_further(explanation)])
    blocks += [] if explanation.known_margin is None else [str(explanation.known_margin)]
    return "\n\n".join(blocks)


def why(explanation: Explanation) -> str:
    """Return two sentences: what decided, and what is proved of it, what is not."""
    says = _predicted(explanation, "The model predicts")
    match explanation.status:
        case Status.REACHED:
            return f"{says}, and {_asked_for(explanation)} is asked for. Nothing has to change, so nothing had to be proved."
        case Status.ERROR:
            return f"The row was not explained: {explanation.error.rstrip('.')}. Nothing is proved."
        case Status.INFEASIBLE:
            blame = _blame(explanation)
            space = f"the space{_let_in(explanation)}"
            return f"{says}, and no plausible row reaches {_asked_for(explanation)}{blame}. That is proved for every row of {space}."
        case Status.UNKNOWN:
            says = says if explanation.prediction is not None else "The model was not asked"
            least = (
                f"only that nothing nearer than {explanation.lower:.6g} does{explanation.among}"
                if explanation.lower > 0
                else "nothing"
            )
            return (
                f"{says}, and no row that reaches {_asked_for(explanation)} is in hand: {explanation.reason}. "
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
    changed = in_a_list(shown, "and")
    what = "this change alone leads" if len(best.changes) == 1 else "these changes together lead"
    is_any = explanation.target == ANY_OTHER
    wanted = explanation.wording.outcome(best.prediction) if is_any else _asked_for(explanation)
    return f"{what} to {wanted}{_in_models(explanation)}: {changed}"


def _proved(explanation: Explanation) -> str:
    best = explanation[0]
    near = f"in the {distance_text(explanation.distance)}, within the space{_let_in(explanation)} and the constraints"
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
    only = f", only that none of less than {shown:.6g}% of this one does" if shown else ""
    return f"It is not proved that no smaller change does ({explanation.reason}){only}, {near}."

"""What a letter says, as plain data: in the words of its language, without its sentences. Templates are given the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any

from mace.answer.counterfactual import Change, Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.score import AnswerScores, of_models
from mace.errors import InvalidOption, legible
from mace.letters.rules import decision_text, rule_texts, target_text
from mace.letters.writer import Writer
from mace.problem import Status

ALL_WAYS = "all"
"""The number that means all answers in one letter."""

TWO_DIGITS = Context(prec=2, rounding=ROUND_DOWN)
"""Digits in which it is told how far values may be off."""

MOST_TOLD = 8
"""Where more features were asked to stay, a letter lists none of them."""

PERHAPS_FEWER = "perhaps fewer"
"""In the reason of an explanation: not all of the constraints in ``conflict`` may be to blame."""


def chosen(explanation: Explanation, number: int | str) -> Sequence[Counterfactual]:
    """Return the answers that a letter is about."""
    if explanation.status in (Status.UNKNOWN, Status.ERROR):
        raise InvalidOption(f"letter: there is nothing to say: {explanation.headline()}")
    if number == ALL_WAYS or not explanation:
        return explanation.counterfactuals
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(explanation):
        count = f"there are {len(explanation)} counterfactuals" if len(explanation) > 1 else "there is 1 counterfactual"
        raise InvalidOption(f"letter: number={number!r:.40}; {count}. Give which, counted from 1, or 'all'.")
    return [explanation[number - 1]]


def facts_of(
    explanation: Explanation, writer: Writer, number: int | str, hidden: Sequence[str], *, score: bool, margin: bool
) -> dict[str, Any]:
    """Return what a template may use."""
    answers = chosen(explanation, number)
    told = next((c.feature for answer in answers for c in answer.changes if c.feature in hidden), None)
    if told is not None:
        raise InvalidOption(
            f"letter: the answer changes {told!r}, which the space protects. Fix it, constraints=[mace.fixed({told!r})] or "
            f"--fix {told}, or give it a name to have it mentioned: names={{{told!r}: ...}}."
        )
    first = 1 if number == ALL_WAYS or not answers else int(number)
    if margin and explanation and number != 1:
        raise InvalidOption("letter: margin=True is about the nearest answer alone. Leave number out.")
    ways = [_way(explanation, writer, place, answer, score) for place, answer in enumerate(answers, start=first)]
    main = ways[0] if ways else _no_way(explanation)
    changed = {change.feature for answer in answers[:1] for change in answer.changes}
    kept = [name for name in explanation.fixed if name not in hidden]
    is_told = not any(name in explanation.reason or name in str(explanation.conflict) for name in hidden)
    now, then = explanation.prediction, answers[0].prediction if answers else None
    facts = {
        "status": str(explanation.status),
        "language": writer.language.code,
        "decision": decision_text(writer, now, explanation.target, is_reached=explanation.status == Status.REACHED),
        "target": target_text(writer, explanation.target, then if then != now else None),
        "ways": ways,
        **main,
        "stays": [writer.name(each) for each in explanation.factual if each not in changed and each not in hidden],
        "kept": [writer.name(each) for each in kept] if len(kept) <= MOST_TOLD else [],
        "margin": _margin(explanation, writer) if margin else [],
        "among": _among(explanation, writer),
        "is_exhausted": explanation.exhausted and (explanation.rounds_changes or not explanation.round_to),
        "reason": explanation.reason if is_told else "",
        "rules": rule_texts(writer, explanation.conflict) if is_told else [],
        "perhaps_fewer": PERHAPS_FEWER in explanation.reason,
        "factual": {writer.name(name): text for name, text in explanation.factual_texts.items() if name not in hidden},
    }
    made: dict[str, Any] = _legible(facts)
    return made


def _legible(fact: Any) -> Any:
    """Return a fact whose texts, which come of files, hold nothing that a terminal would obey or that turns other text around."""
    if isinstance(fact, str):
        return legible(fact)
    if isinstance(fact, dict):
        return {_legible(key): _legible(each) for key, each in fact.items()}
    return [_legible(each) for each in fact] if isinstance(fact, list) else fact


def _way(
    explanation: Explanation, writer: Writer, number: int, answer: Counterfactual, with_score: bool
) -> dict[str, Any]:
    weighed = sorted(answer.changes, key=lambda change: -(change.weight or 0.0))
    share = answer.lower / answer.distance if answer.distance else 1.0
    return {
        "number": number,
        "changes": [_change(writer, change, answer) for change in weighed],
        "is_proved": answer.status == Status.OPTIMAL,
        "share": writer.percent(Decimal(math.floor(100 * share)) / 100),
        "distance": answer.distance,
        "lower": answer.lower,
        "score": _score(explanation, writer, answer) if with_score else None,
    }


def _no_way(explanation: Explanation) -> dict[str, Any]:
    nothing = {"number": 1, "changes": [], "is_proved": True, "share": "", "distance": None, "score": None}
    return {**nothing, "lower": explanation.lower}


def _change(writer: Writer, change: Change, answer: Counterfactual) -> dict[str, Any]:
    difference, way = writer.difference(change)
    return {
        "feature": change.feature,
        "name": writer.name(change.feature),
        "before": writer.value(change.feature, change.before, change.dtype),
        "after": writer.value(change.feature, change.after, change.dtype),
        "difference": difference,
        "direction": writer.language.say(f"direction_{way}") if way else "",
        "moved": writer.language.say(way).format(amount=difference) if way else "",
        "arrow": change.arrow,
        "weight": change.weight,
        "is_effect": answer.actions is not None and change.feature not in answer.actions,
    }


def _among(explanation: Explanation, writer: Writer) -> str:
    if not explanation.round_to:
        return ""
    if explanation.rounds_next:
        return writer.language.say("among_round_next")
    return writer.language.say("among_round_same" if explanation.rounds_changes else "among_round")


def _margin(explanation: Explanation, writer: Writer) -> list[str]:
    """Return by how much the numbers that the nearest answer changes may turn out otherwise, others being as in the answer."""
    margin = explanation.margin
    if margin is None:
        return []
    told = []
    for change in explanation[0].changes:
        is_day = writer.is_day(change.feature, change.after)
        radius = Decimal(repr(margin.radii.get(change.feature, 0.0)))
        is_whole = is_day or isinstance(change.after, int)
        radius = Decimal(int(radius)) if is_whole else TWO_DIGITS.create_decimal(radius)
        if radius and (is_day or not isinstance(change.after, str | bool)):
            amount = writer.days(int(radius)) if is_day else writer.amount(change.feature, radius)
            told.append(writer.language.say("held").format(name=writer.name(change.feature), value=amount))
    return told


def _score(explanation: Explanation, writer: Writer, answer: Counterfactual) -> dict[str, str]:
    """Return what the model reports before and after, and the threshold; the explanation must have it."""
    scores = answer._scores
    if scores is None or answer.score is None or answer.score_before is None:
        raise InvalidOption("letter: score=True, but the model reports nothing but labels. Leave score out.")
    of, _ = of_models(explanation.score_of)
    kind = "probability" if of.startswith("P(") else "score" if of.startswith("score of ") else "prediction"
    label = of[2:-1] if kind == "probability" else of.removeprefix("score of ")
    what = writer.language.say(f"score_{kind}").format(outcome=writer.language.quoted(writer.outcome(label)))
    shown = [_number(writer, f"{end:.6g}", kind) for end in scores.ends]
    between = writer.language.say("range").format(low=shown[0], high=shown[-1]) if len(shown) == 2 else ""
    before, after = (_shown(writer, scores, each, kind) for each in (answer.score_before, answer.score))
    return {"what": what, "before": before, "after": after, "threshold": between or "".join(shown)}


def _shown(writer: Writer, scores: AnswerScores, score: float, kind: str) -> str:
    """Return a score in as many digits as tell it from the threshold."""
    text = scores.shown(score)
    for word in ("under", "over"):
        if text.startswith(f"{word} "):
            return writer.language.say(word).format(number=_number(writer, text.removeprefix(f"{word} "), kind))
    return _number(writer, text, kind)


def _number(writer: Writer, text: str, kind: str) -> str:
    return (writer.percent if kind == "probability" else writer.number)(Decimal(text))

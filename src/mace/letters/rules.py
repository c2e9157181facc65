"""Targets and constraints in the words of a letter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from decimal import Decimal

from mace.answer.words import ANY_OTHER
from mace.constraints import CONSTRAINTS
from mace.constraints.budget import ChangesAtMost
from mace.constraints.combine import AllOf
from mace.constraints.fixed import Fixed, Only
from mace.constraints.monotone import Monotone
from mace.constraints.moves import AtMostChange
from mace.constraints.numbers import Given
from mace.constraints.one_of import OneOf
from mace.constraints.rule import Comparison
from mace.constraints.terms import Feature, Literal
from mace.constraints.within import Within
from mace.errors import MaceError
from mace.letters.writer import Writer
from mace.space import Scalar

_NUMBER = r"(-?[0-9.]+(?:e[-+]?[0-9]+)?)"
_MARGIN = f"(?: with a margin of {_NUMBER})?"
_BOUND = re.compile(
    rf"P\((?P<label>.*)\) (?P<sign>>=|<=) {_NUMBER}{_MARGIN}|{_NUMBER} <= P\((?P<of>.*)\) <= {_NUMBER}{_MARGIN}"
    rf"|(?:at least {_NUMBER})?(?: and )?(?:at most {_NUMBER})?{_MARGIN}",
    re.DOTALL,
)
_LEAD = re.compile(rf"(?P<label>.*) by {_NUMBER}", re.DOTALL)
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


def decision_text(writer: Writer, prediction: Scalar | None, target: str, *, is_reached: bool) -> str:
    """Return what was decided: the outcome that is predicted, or, where too few models of a set agree on the target, that it is not."""
    if not is_reached and str(prediction) in target.split(" or "):
        return writer.language.say("not").format(target=target_text(writer, target, None))
    return writer.outcome(prediction)


def target_text(writer: Writer, target: str, outcome: Scalar | None) -> str:
    """Return what was asked for, to follow "the result would have been"; ``outcome`` is that of the answer, if there is one."""
    language = writer.language
    bound = _BOUND.fullmatch(target) if target else None
    if bound is not None:
        return _bound_text(writer, bound)
    lead = _LEAD.fullmatch(target)
    if outcome is not None and lead is None:
        return language.quoted(writer.outcome(outcome))
    if target == ANY_OTHER:
        return language.say("different")
    if lead is not None:
        by = writer.percent(Decimal(lead[2]))
        return language.say("lead").format(outcome=_labels(writer, lead["label"]), low=by)
    return _labels(writer, target)


def _bound_text(writer: Writer, bound: re.Match[str]) -> str:
    one, one_by, low, high, by, least, most, inside = (
        None if text is None else Decimal(text) for text in (bound[number] for number in (3, 4, 5, 7, 8, 9, 10, 11))
    )
    margin = one_by or by or inside or Decimal(0)
    label = bound["label"] if bound["sign"] else bound["of"]
    if bound["sign"]:
        low, high = (one, None) if bound["sign"] == ">=" else (None, one)
    elif label is None:
        low, high = least, most
    kind = "between" if low is not None and high is not None else "at_most" if low is None else "at_least"
    write = writer.number if label is None else writer.percent
    ends = {
        "low": "" if low is None else write(low + margin),
        "high": "" if high is None else write(high - margin),
    }
    if label is None:
        return writer.language.say(kind).format(**ends)
    outcome = writer.language.quoted(writer.outcome(label))
    return writer.language.say(f"probability_{kind}").format(**ends, outcome=outcome)


def _labels(writer: Writer, text: str) -> str:
    """Return one outcome, or several of which each is known by a name."""
    parts = text.split(" or ")
    named = parts if all(part in writer.wording.outcomes for part in parts) else [text]
    return writer.language.say("or").join(writer.language.quoted(writer.outcome(part)) for part in named)


def rule_texts(writer: Writer, constraints: tuple[object, ...]) -> list[str]:
    """Return constraints in plain words, each part of those that are several on its own."""
    return [_rule_text(writer, part) for each in constraints for part in _parts(_read(each))]


def _parts(constraint: object) -> Iterator[object]:
    if isinstance(constraint, AllOf):
        for part in constraint.parts:
            yield from _parts(part)
    else:
        yield constraint


def _read(constraint: object) -> object:
    """Return the constraint of the text that an explanation keeps in its JSON; the text itself where it is none of ours."""
    found = _CALL.fullmatch(constraint) if isinstance(constraint, str) else None
    if found is None or found[1] not in CONSTRAINTS:
        return constraint
    try:
        return CONSTRAINTS.load(found[1])(*ast.literal_eval(f"({found[2]},)"))
    except (MaceError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return constraint


def _rule_text(writer: Writer, constraint: object) -> str:
    match constraint:
        case Fixed(features):
            return writer.language.say("rule_fixed").format(names=writer.names(features))
        case Only(features):
            return writer.language.say("rule_only").format(names=writer.names(features))
        case Monotone(name, _, features):
            return writer.language.say(f"rule_{name}").format(names=writer.names(features))
        case Within(feature, low, high):
            ends = {"low": _value(writer, feature, low), "high": _value(writer, feature, high)}
            return writer.language.say("rule_within").format(name=writer.name(feature), **ends)
        case OneOf(feature, values):
            listed = writer.language.say("or").join(_value(writer, feature, value) for value in values)
            return writer.language.say("rule_one_of").format(name=writer.name(feature), values=listed)
        case AtMostChange(feature, amount, relative):
            number = Decimal(str(amount))
            by = writer.percent(number) if relative else writer.amount(feature, number)
            return writer.language.say("rule_by_at_most").format(name=writer.name(feature), amount=by)
        case ChangesAtMost(int(budget), ()):
            return writer.language.say("rule_count", budget).format(count=budget)
        case Comparison((Feature(feature, False), Literal(value)), ((">=" | "<=") as sign,)):
            key = "rule_at_least" if sign == ">=" else "rule_at_most"
            return writer.language.say(key).format(name=writer.name(feature), value=_value(writer, feature, value))
        case Comparison((Feature(feature, False), Feature(own, True)), ((">=" | "<=" | "==") as sign,)) if (
            feature == own
        ):
            key = {">=": "rule_increases", "<=": "rule_decreases", "==": "rule_fixed"}[sign]
            return writer.language.say(key).format(names=writer.name(feature))
    text = getattr(constraint, "text", None)
    said = text if isinstance(text, str) else str(constraint)
    return writer.language.say("rule_other").format(text=writer.language.quoted(said))


def _value(writer: Writer, feature: str, value: Given) -> str:
    return writer.value(feature, float(value) if isinstance(value, Decimal) else value)

"""Why a problem is not piecewise linear, if it is not."""

from __future__ import annotations

from enum import IntEnum
from weakref import WeakKeyDictionary

from mace.causes import OfRow
from mace.constraints import Condition
from mace.constraints.condition import AtLeast, GuardCondition
from mace.distances import NormMetric
from mace.forms import Composite, EffectsForm, Form, FunctionForm, Network, ObliqueTrees, TreeEnsemble
from mace.language import single_assignment
from mace.language.naming import commands
from mace.language.syntax import (
    And,
    Assign,
    Binary,
    Compare,
    Constant,
    Expression,
    Guard,
    If,
    Indicator,
    Missing,
    Not,
    Or,
    Program,
    Return,
    Truth,
    Unary,
    Variable,
)
from mace.near import Neighbours
from mace.outliers import Usual
from mace.problem import Problem


class Kind(IntEnum):
    """How much an expression varies: not at all, between a few exact numbers, or freely."""

    FIXED = 0
    FEW = 1
    FREE = 2


class _NotLinear(Exception):
    """Says what is not linear."""


def why_not_linear(problem: Problem) -> str:
    """Return what keeps a problem from being piecewise linear; empty where nothing does."""
    if problem.metric.power != 1:
        return "l2 is not piecewise linear"
    try:
        if not isinstance(problem.metric, NormMetric):
            _check_program(problem.metric.program(), "the distance")
        for condition in problem.conditions:
            _check_condition(condition)
    except _NotLinear as reason:
        return str(reason)
    return _why_not_form(problem.form)


_FORMS: WeakKeyDictionary[Form, str] = WeakKeyDictionary()


def _why_not_form(form: Form) -> str:
    if isinstance(form, TreeEnsemble | Network | ObliqueTrees):
        return ""
    if isinstance(form, EffectsForm):
        try:
            for equation in form.effects.equations:
                _check_program(equation.program, "an equation")
        except _NotLinear as reason:
            return str(reason)
        return _why_not_form(form.inner)
    if isinstance(form, Composite):
        return "a mean of sigmoids is not piecewise linear" if form.is_curved else ""
    if form not in _FORMS:
        try:
            _check_program(form.program(), "the function" if isinstance(form, FunctionForm) else "the model")
            _FORMS[form] = ""
        except _NotLinear as reason:
            _FORMS[form] = str(reason)
    return _FORMS[form]


def _check_condition(condition: Condition) -> None:
    match condition:
        case GuardCondition(guard):
            _check_guard(guard, {}, "a constraint")
        case AtLeast(program, _):
            _check_program(program, "a constraint")
        case OfRow():
            _check_condition(condition.condition)
        case Usual():
            raise _NotLinear("a forest of outliers is kept to by cutting boxes")
        case Neighbours() if condition.metric.power != 1:
            raise _NotLinear("l2 in near_data is not piecewise linear")


def _check_program(program: Program, what: str) -> None:
    kinds: dict[str, Kind] = {}
    for command in commands(single_assignment(program).body):
        match command:
            case Assign(name, value):
                kind = _kind(value, kinds, what)
                several = Kind.FEW if name in kinds else kind
                kinds[name] = max(kind, several, kinds.get(name, kind))
            case Return(value):
                _kind(value, kinds, what)
            case If(guard, _, _):
                _check_guard(guard, kinds, what)
            case _:
                pass


def _check_guard(guard: Guard, kinds: dict[str, Kind], what: str) -> None:
    pending: list[Guard] = [guard]
    while pending:
        match pending.pop():
            case Compare(_, left, right):
                _kind(left, kinds, what)
                _kind(right, kinds, what)
            case Not(part):
                pending.append(part)
            case And(parts) | Or(parts):
                pending.extend(parts)
            case Missing() | Truth():
                pass


def _kind(expression: Expression, kinds: dict[str, Kind], what: str) -> Kind:
    """Return how much an expression varies, or raise where it is no sum of multiples."""
    if isinstance(expression, Binary) and expression.name == "+":
        return _sum_kind(expression, kinds, what)
    match expression:
        case Constant():
            return Kind.FIXED
        case Variable(name):
            return kinds.get(name, Kind.FREE)
        case Indicator(guard):
            _check_guard(guard, kinds, what)
            return Kind.FEW
        case Unary(_, operand):
            return _kind(operand, kinds, what)
        case Binary(name, left, right):
            first, second = _kind(left, kinds, what), _kind(right, kinds, what)
            if name == "*" and min(first, second) == Kind.FREE:
                raise _NotLinear(f"{what} multiplies two quantities that both vary")
            if name == "/" and second != Kind.FIXED:
                raise _NotLinear(f"{what} divides by a quantity that varies")
            return Kind.FIXED if first == second == Kind.FIXED else Kind.FREE


def _sum_kind(expression: Expression, kinds: dict[str, Kind], what: str) -> Kind:
    """Return the kind of a sum that leans left, without recursion along it."""
    found = Kind.FIXED
    while isinstance(expression, Binary) and expression.name == "+":
        found = max(found, _kind(expression.right, kinds, what))
        expression = expression.left
    found = max(found, _kind(expression, kinds, what))
    return Kind.FIXED if found == Kind.FIXED else Kind.FREE

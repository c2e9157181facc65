"""Formulas about float64: no rounding escapes `floating`, no rounding disturbs `robust`."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from language_strategies import INPUTS, programs

from mace.language import (
    characteristic,
    evaluate,
    flattened,
    floating,
    holds,
    parse,
    robust,
    run,
    show,
    show_formula,
    single_assignment,
)
from mace.language.formula import prepare
from mace.language.intervals import ANYTHING, Fact, fact_of, facts_of, operation
from mace.language.naming import commands
from mace.language.syntax import (
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    Expression,
    Guard,
    If,
    Indicator,
    Not,
    Or,
    Program,
    Return,
    Sequence,
    Skip,
    Truth,
    Unary,
    Variable,
)

Number = int | float
RANGES = {name: (Fraction(-100), Fraction(100)) for name in INPUTS}
INTEGERS = frozenset({"b"})
floats = st.floats(-100, 100, allow_nan=False) | st.sampled_from([0.1, 0.5, 1.3, 0.0, 5e-324, 1 / 3])
float_inputs = st.fixed_dictionaries({"a": floats, "b": st.integers(-100, 100), "x 1": floats})


def number(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else float(value)


def calculate(expression: Expression, env: dict[str, Number]) -> Number:
    match expression:
        case Variable(name):
            return env[name]
        case Constant(value):
            return number(value)
        case Unary(name, operand):
            inner = calculate(operand, env)
            return -inner if name == "neg" else abs(inner)
        case Binary(name, left, right):
            first, second = calculate(left, env), calculate(right, env)
            operators = {
                "+": lambda: first + second,
                "-": lambda: first - second,
                "*": lambda: first * second,
                "/": lambda: first / second,
                "min": lambda: min(first, second),
                "max": lambda: max(first, second),
            }
            return operators[name]()
        case Indicator(guard):
            return int(decide(guard, env))


def decide(guard: Guard, env: dict[str, Number]) -> bool:
    match guard:
        case Truth(value):
            return value
        case Compare(name, left, right):
            first, second = calculate(left, env), calculate(right, env)
            answers = {
                "<": first < second,
                "<=": first <= second,
                "==": first == second,
                "!=": first != second,
                ">": first > second,
                ">=": first >= second,
            }
            return answers[name]
        case And(parts):
            return all(decide(part, env) for part in parts)
        case Or(parts):
            return any(decide(part, env) for part in parts)
        case Not(part):
            return not decide(part, env)
        case _:
            raise AssertionError(guard)


def execute(command: Command, env: dict[str, Number]) -> Number | None:
    """Run a loop-free command in float64, as Python would; the variables stay in ``env``."""
    match command:
        case Skip():
            return None
        case Assign(name, value):
            env[name] = calculate(value, env)
            return None
        case Return(value):
            return calculate(value, env)
        case If(guard, then, otherwise):
            return execute(then if decide(guard, env) else otherwise, env)
        case Sequence(parts):
            return next((result for part in parts if (result := execute(part, env)) is not None), None)
        case _:
            raise AssertionError(command)


def python_result(program: Program, values: dict[str, Number]) -> Number:
    scope: dict[str, object] = {"isnan": math.isnan}
    exec(show(program), scope)
    return scope["model"](*(values[name] for name in program.inputs))  # type: ignore[operator]


def exact(values: dict[str, Number]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(programs(depth=2), float_inputs)
def test_the_floating_formula_holds_of_what_python_returns(program, values):
    try:
        returned = python_result(program, values)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    env: dict[str, Number] = dict(values)
    assert execute(flattened(program).body, env) == returned
    assume(all(math.isfinite(value) for value in env.values()) and math.isfinite(returned))
    guard = floating(program, ranges=RANGES, integers=INTEGERS)
    if guard == characteristic(program):
        env = dict(values)
        execute(prepare(program).body, env)
    assert holds(guard, exact(env) | {"y": Fraction(returned)})


@settings(max_examples=200, deadline=None)
@given(programs(depth=1), float_inputs)
def test_calculated_values_stay_within_their_ends(program, values):
    flat = flattened(program)
    env: dict[str, Number] = dict(values)
    try:
        execute(flat.body, env)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    facts = facts_of(flat, ranges=RANGES, integers=INTEGERS)
    for name, value in env.items():
        if math.isnan(value):
            assert not facts[name].is_number
            continue
        assert facts[name].low <= value <= facts[name].high
        assert not facts[name].is_integer or value == int(value)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(programs(depth=1), float_inputs)
def test_a_point_of_the_robust_formula_takes_the_same_branches_in_floats(program, values):
    margin = Fraction(1, 1000)
    ready = prepare(program)
    exactly = exact(values)
    try:
        expected = run(program, exactly)
        returned = python_result(program, values)
    except (ZeroDivisionError, OverflowError):
        assume(False)
    variables = dict(exactly)
    _exact_variables(ready.body, variables)
    if holds(robust(program, margin=margin, ranges=RANGES, integers=INTEGERS), variables | {"y": expected}):
        assert abs(Fraction(returned) - expected) <= Fraction(1, 10**6) * max(1, abs(expected))


def _exact_variables(command: Command, env: dict[str, Fraction]) -> bool:
    """Run exactly, keeping the variables; whether it returned."""
    match command:
        case Assign(name, value):
            env[name] = evaluate(value, env)
        case Return():
            return True
        case Sequence(parts):
            return any(_exact_variables(part, env) for part in parts)
        case If(guard, then, otherwise):
            return _exact_variables(then if holds(guard, env) else otherwise, env)
    return False


def test_whole_numbers_need_no_slack():
    program = parse("lambda n, m: n * m - 3 if n > m else abs(n) / 4").program
    ends = {"n": (Fraction(0), Fraction(1000)), "m": (Fraction(0), Fraction(1000))}
    assert floating(program, ranges=ends, integers=frozenset("nm")) == characteristic(program)


def test_whole_numbers_that_floats_cannot_hold_get_slack():
    program = parse("lambda n, x: n * n + x").program
    ends = {"n": (Fraction(0), Fraction(2**30)), "x": (Fraction(0), Fraction(1))}
    guard = floating(program, ranges=ends, integers=frozenset("n"))
    n, x = 2**30 - 1, 0.3
    assert holds(guard, {"n": Fraction(n), "x": Fraction(x), "t": Fraction(n * n), "y": Fraction(n * n + x)})


def test_a_sum_within_rounding_of_a_threshold_may_fall_on_either_side():
    program = parse("lambda x: 1 if 0.1 + x <= 0.3 else 0").program
    values = {"x": Fraction(0.2)}
    guard = floating(program, ranges={"x": (Fraction(0), Fraction(1))}, integers=frozenset())
    either = {
        y for y in (0, 1) for t in (0.1 + 0.2, 0.3) if holds(guard, values | {"t": Fraction(t), "y": Fraction(y)})
    }
    assert either == {0, 1}


def test_every_operation_of_the_flattened_program_is_one():
    program = parse("lambda a, b: (a + b) * (a - b) if a / (b + 1) > 2 and b > 0 else a * a * a").program
    for command in _assignments(flattened(program)):
        for child in _operands(command.value):
            assert isinstance(child, Variable | Constant)


def _assignments(program: Program) -> list[Assign]:
    return [command for command in commands(program.body) if isinstance(command, Assign)]


def _operands(expression: Expression) -> tuple[Expression, ...]:
    match expression:
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case _:
            return ()


def test_an_overflow_is_not_excluded_but_held_by_a_large_number():
    program = parse("lambda x, d: 1 if x / d > 5 else 0").program
    ends = {"x": (Fraction(1), Fraction(2)), "d": (Fraction(0), Fraction(1))}
    guard = floating(program, ranges=ends, integers=frozenset())
    assert math.inf == 1.0 / 5e-324
    values = {"x": Fraction(1), "d": Fraction(5e-324), "t": Fraction(2**1024), "y": Fraction(1)}
    assert holds(guard, values)


def test_what_may_be_nan_decides_nothing():
    program = parse("lambda x, d: 1 if x / d - x / d > 5 else 0").program
    guard = floating(
        program, ranges={"x": (Fraction(1), Fraction(2)), "d": (Fraction(0), Fraction(1))}, integers=frozenset()
    )
    values = {"x": Fraction(1), "d": Fraction(1), "t": Fraction(1), "t_2": Fraction(1), "t_3": Fraction(0)}
    for y in (0, 1):
        assert holds(guard, values | {"y": Fraction(y)})


def test_a_comparison_of_inputs_needs_no_margin():
    program = parse("lambda x: 1 if x > 0.5 else 0").program
    guard = robust(program, margin=Fraction(1), ranges={"x": (Fraction(0), Fraction(1))}, integers=frozenset())
    assert guard == characteristic(program)


def test_an_equality_of_rounded_values_can_only_fail():
    program = parse("lambda x: 1 if x + 0.1 == 0.3 else 0").program
    guard = robust(program, margin=Fraction(1, 8), ranges={"x": (Fraction(0), Fraction(1))}, integers=frozenset())
    assert show_formula(guard) == "(x + 0.1 - 0.3 ≥ 0.125 ∨ 0.3 - (x + 0.1) ≥ 0.125) ∧ y = 0"


def test_an_indicator_and_a_divisor_get_their_margin():
    program = parse("lambda x: (x * 3 > 1) / (x * 3)").program
    text = show_formula(robust(program, margin=Fraction(1, 8), ranges={}, integers=frozenset()))
    assert "x * 3 - 0 ≥ 0.125 ∨ 0 - x * 3 ≥ 0.125" in text
    assert "x * 3 - 1 ≥ 0.125 ∨ 1 - x * 3 ≥ 0.125" in text


def test_the_prefix_reaches_the_new_variables():
    program = parse("lambda x: (x + 0.1) * (x + 0.2)").program
    flat = flattened(program, prefix="left ")
    assert [command.name for command in _assignments(flat)] == ["left t", "left t_2"]
    assert run(flat, {"x": Fraction(1)}) == run(single_assignment(program), {"x": Fraction(1)})


@pytest.mark.parametrize(
    ("name", "left", "right", "is_exact"),
    [
        ("+", Fact(Fraction(0), Fraction(9), is_integer=True), Fact(Fraction(0), Fraction(9), is_integer=True), True),
        ("+", Fact(Fraction(0), Fraction(9)), Fact(Fraction(0), Fraction(9), is_integer=True), False),
        ("*", Fact(Fraction(2), Fraction(2)), Fact(Fraction(0), Fraction(9)), True),
        ("*", Fact(Fraction(1, 2), Fraction(1, 2)), Fact(Fraction(0), Fraction(9)), False),
        ("/", Fact(Fraction(0), Fraction(9)), Fact(Fraction(1, 4), Fraction(1, 4)), True),
        ("/", Fact(Fraction(0), Fraction(9), is_integer=True), Fact(Fraction(4), Fraction(4), is_integer=True), True),
        ("min", Fact(Fraction(0), Fraction(9)), Fact(Fraction(0), Fraction(9)), True),
    ],
)
def test_exact_operations_are_known(name, left, right, is_exact):
    assert operation(name, left, right).is_exact is is_exact


def test_infinities_that_may_cancel_are_anything():
    wide = Fact(Fraction(0), math.inf)
    assert operation("-", wide, wide) == ANYTHING
    assert operation("*", wide, Fact(Fraction(0), Fraction(1))) == ANYTHING
    assert fact_of(Indicator(Truth(True)), {}).high == 1

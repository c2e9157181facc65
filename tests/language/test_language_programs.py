"""Properties that hold of every program."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from language_strategies import inputs, programs

from mace.errors import InvalidProgram
from mace.language import (
    characteristic,
    evaluate,
    flattened,
    holds,
    literal,
    parse,
    path_formulae,
    run,
    show,
    show_formula,
    single_assignment,
    unroll,
    well_formed,
)
from mace.language.formula import prepare
from mace.language.naming import commands, has_return
from mace.language.syntax import (
    And,
    Assign,
    Binary,
    Command,
    Compare,
    Constant,
    For,
    If,
    Missing,
    Program,
    Return,
    Sequence,
    Skip,
    Variable,
    total,
)

X = Variable("x")


def outcome(program: Program, values: dict[str, Fraction]) -> Fraction | None:
    try:
        return run(program, values)
    except ZeroDivisionError:
        return None


def trace(program: Program, values: dict[str, Fraction]) -> tuple[Fraction, dict[str, Fraction], list[str]]:
    """Run a loop-free program; return its result, its variables, and the names assigned, in order."""
    env, order = dict(values), []

    def step(command: Command) -> Fraction | None:
        match command:
            case Skip():
                return None
            case Assign(name, value):
                env[name] = evaluate(value, env)
                order.append(name)
                return None
            case Return(value):
                return evaluate(value, env)
            case If(guard, then, otherwise):
                return step(then if holds(guard, env) else otherwise)
            case Sequence(parts):
                return next((result for part in parts if (result := step(part)) is not None), None)
            case For():
                raise AssertionError("a loop is left")

    result = step(program.body)
    assert result is not None
    return result, env, order


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(programs(), inputs)
def test_every_form_of_a_program_returns_the_same(program, values):
    expected = outcome(program, values)
    for form in (unroll, well_formed, single_assignment, flat_form):
        assert outcome(form(program), values) == expected


def flat_form(program: Program) -> Program:
    return flattened(program, result="result")


@settings(max_examples=150, deadline=None)
@given(programs(), inputs)
def test_what_show_prints_parse_reads_back(program, values):
    again = parse(show(program)).program
    renamed = {new: values[old] for new, old in zip(again.inputs, program.inputs, strict=True)}
    assert outcome(again, renamed) == outcome(program, values)


def is_well_formed(program):
    """Return whether nothing follows a return: the paper's condition on programs (Appendix A)."""
    for command in commands(program.body):
        match command:
            case Sequence(parts) if any(map(has_return, parts[:-1])):
                return False
            case For(_, _, _, body) if has_return(body):
                return False
    return True


@settings(max_examples=100, deadline=None)
@given(programs())
def test_forms_have_their_shape(program):
    assert not any(isinstance(part, For) for part in commands(unroll(program).body))
    assert is_well_formed(well_formed(program))
    assert is_well_formed(single_assignment(program))
    assert single_assignment(single_assignment(program)) == single_assignment(program)


@settings(max_examples=150, deadline=None)
@given(programs(), inputs)
def test_the_single_assignment_form_assigns_once_and_never_an_input(program, values):
    assume(outcome(program, values) is not None)
    result, _, order = trace(single_assignment(program), values)
    assert result == run(program, values)
    assert len(order) == len(set(order))
    assert not set(order) & set(program.inputs)


@settings(max_examples=150, deadline=None)
@given(programs(depth=2), inputs)
def test_formulas_hold_of_the_returned_value_and_of_no_other(program, values):
    expected = outcome(program, values)
    formulas = [literal(program), characteristic(program)]
    if expected is None:
        return
    _, env, _ = trace(prepare(program), values)
    for formula in formulas:
        assert holds(formula, env | {"y": expected})
        assert not holds(formula, env | {"y": expected + 1})


@settings(max_examples=100, deadline=None)
@given(programs(depth=2), inputs)
def test_the_result_decides_the_formula_even_with_a_prefix(program, values):
    assume(outcome(program, values) is not None)
    expected = run(program, values)
    _, env, _ = trace(prepare(program, result="out", prefix="p_"), values)
    formula = characteristic(program, result="out", prefix="p_")
    assert holds(formula, env | {"out": expected})
    assert not holds(formula, env | {"out": expected + 1})


@settings(max_examples=100, deadline=None)
@given(programs(depth=2), inputs)
def test_a_division_by_zero_makes_the_formula_false(program, values):
    expected = outcome(program, values)
    broken = program if expected is None else Program(program.inputs, inverted(program.body, expected))
    assert outcome(broken, values) is None
    single = prepare(broken)
    env = dict(values)
    partial(single.body, env)
    guesses = {name: Fraction(0) for name in assigned_names(single)} | env
    for guess in (Fraction(0), Fraction(1)):
        assert not holds(characteristic(broken), guesses | {"y": guess})


def inverted(command: Command, pole: Fraction) -> Command:
    """Return a command that returns 1 / (v - pole) where ``command`` returns v."""
    match command:
        case Return(value):
            return Return(Binary("/", Constant(Fraction(1)), Binary("-", value, Constant(pole))))
        case Sequence(parts):
            return Sequence(tuple(inverted(part, pole) for part in parts))
        case If(guard, then, otherwise):
            return If(guard, inverted(then, pole), inverted(otherwise, pole))
        case For(name, start, stop, body):
            return For(name, start, stop, inverted(body, pole))
        case _:
            return command


def assigned_names(program: Program) -> list[str]:
    return [part.name for part in commands(program.body) if isinstance(part, Assign)]


def partial(command: Command, env: dict[str, Fraction]) -> bool:
    """Run until the division by zero; whether it came."""
    match command:
        case Assign(name, value):
            try:
                env[name] = evaluate(value, env)
            except ZeroDivisionError:
                return True
        case Sequence(parts):
            return any(partial(part, env) for part in parts)
        case If(guard, then, otherwise):
            try:
                chosen = then if holds(guard, env) else otherwise
            except ZeroDivisionError:
                return True
            return partial(chosen, env)
    return False


def test_an_early_return_needs_no_copy_of_what_follows():
    body = Return(Constant(Fraction(0)))
    for turn in reversed(range(12)):
        test = Compare("==", Variable(f"x{turn}"), Constant(Fraction(1)))
        inner = If(Compare(">", Variable("z"), Constant(Fraction(turn))), Return(Variable("z")), Skip())
        body = Sequence((If(test, inner, Assign("z", Constant(Fraction(turn)))), body))
    program = Program((*(f"x{turn}" for turn in range(12)), "z"), body)
    assert len(list(commands(single_assignment(program).body))) < 400


def test_a_sum_of_two_thousand_terms_works_everywhere():
    long = total(Binary("*", Constant(Fraction(k)), X) for k in range(2000))
    program = Program(("x",), Sequence((Assign("z", long), Return(Variable("z")))))
    expected = Fraction(sum(range(2000)))
    assert run(single_assignment(program), {"x": Fraction(1)}) == expected
    assert run(parse(show(program)).program, {"x": Fraction(1)}) == expected
    formula = characteristic(program)
    assert holds(formula, {"x": Fraction(1), "z": expected, "y": expected})
    assert show_formula(formula).endswith("1999 * x ∧ y = z")
    assert len(path_formulae(program)) == 1
    assert run(flattened(program), {"x": Fraction(1)}) == expected


def test_a_tree_of_depth_sixty_works_everywhere():
    body: Command = Return(Constant(Fraction(60)))
    for level in reversed(range(60)):
        body = If(
            Compare("<=", X, Constant(Fraction(level))), Return(Constant(Fraction(level))), Sequence((Skip(), body))
        )
    program = Program(("x",), body)
    for form in (program, single_assignment(program), parse(show(program)).program, flattened(program)):
        assert run(form, {"x": Fraction(59)}) == 59
    assert len(path_formulae(program)) == 61
    assert holds(characteristic(program), {"x": Fraction(59), "y": Fraction(59)})


def test_eight_hundred_rules_in_a_row_work_everywhere():
    rules = [If(Compare("==", X, Constant(Fraction(k))), Return(Constant(Fraction(k))), Skip()) for k in range(800)]
    program = Program(("x",), Sequence((*rules, Return(Constant(Fraction(-1))))))
    assert run(single_assignment(program), {"x": Fraction(777)}) == 777
    assert holds(characteristic(program), {"x": Fraction(777), "y": Fraction(777)})
    assert run(parse(show(single_assignment(program))).program, {"x": Fraction(777)}) == 777


def test_a_guard_divides_only_where_the_parts_before_it_have_not_decided():
    guard = And(
        (
            Compare("!=", X, Constant(Fraction(0))),
            Compare(">", Binary("/", Constant(Fraction(1)), X), Constant(Fraction(2))),
        )
    )
    program = Program(("x",), If(guard, Return(Constant(Fraction(1))), Return(Constant(Fraction(0)))))
    for x, y in [(0, 0), (Fraction(1, 3), 1), (1, 0)]:
        values = {"x": Fraction(x)}
        assert run(program, values) == y
        assert holds(characteristic(program), values | {"y": Fraction(y)})
        assert holds(literal(program), values | {"y": Fraction(y)})
        assert not holds(characteristic(program), values | {"y": Fraction(1 - y)})


def test_a_missing_value_may_only_be_asked_about():
    program = parse("lambda x: 0 if isnan(x) else x + 1").program
    assert run(program, {"x": None}) == 0
    assert run(program, {"x": Fraction(1)}) == 2
    assert show_formula(characteristic(program)) == "(missing(x) ∧ y = 0) ∨ (¬missing(x) ∧ y = x + 1)"
    with pytest.raises(InvalidProgram, match="'x' is missing"):
        evaluate(X, {"x": None})


def test_reading_what_may_be_missing_needs_it_to_be_there():
    program = Program(("x",), If(Compare(">", X, Constant(Fraction(0))), Return(Constant(Fraction(1))), Return(X)))
    asked = Program(("x",), Sequence((If(Missing("x"), Assign("z", X), Assign("z", X)), program.body)))
    assert "¬missing(x)" in show_formula(characteristic(asked))
    assert "missing" not in show_formula(characteristic(program))


def test_an_imputed_value_may_be_read():
    source = """
def f(x):
    if isnan(x):
        x = 7
    return x + 1"""
    program = parse(source).program
    assert run(program, {"x": None}) == 8
    assert run(single_assignment(program), {"x": None}) == 8
    assert run(single_assignment(program), {"x": Fraction(1)}) == 2
    assert show_formula(characteristic(program)) == ("((missing(x) ∧ x_2 = 7) ∨ (¬missing(x) ∧ x_2 = x)) ∧ y = x_2 + 1")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Program(("x",), Return(Variable("z"))), "'z' is read before it is assigned"),
        (Program(("x",), Assign("z", X)), "ended without a return"),
        (Program(("x",), For("i", 0, 2, Assign("i", X))), "assigns its own variable"),
    ],
)
def test_a_broken_program_does_not_run(program, message):
    with pytest.raises(InvalidProgram, match=message):
        run(program, {"x": Fraction(3)})


def test_a_program_needs_a_value_for_each_input():
    with pytest.raises(InvalidProgram, match=r"no value for the input 'age'. Did you mean 'agee'\?"):
        run(Program(("age",), Return(Variable("age"))), {"agee": Fraction(1)})


def test_formulas_refuse_what_they_cannot_say():
    with pytest.raises(InvalidProgram, match="and so is an input"):
        characteristic(Program(("y",), Return(Variable("y"))))
    with pytest.raises(InvalidProgram, match="ends without a return"):
        characteristic(Program(("x",), If(Compare(">", X, X), Return(X), Skip())))
    with pytest.raises(InvalidProgram, match="may be read before"):
        single_assignment(
            Program(("x",), Sequence((If(Compare(">", X, X), Assign("z", X), Skip()), Return(Variable("z")))))
        )
    with pytest.raises(InvalidProgram, match="unroll to 10,000,000 commands"):
        unroll(Program(("x",), For("i", 0, 10_000_000, Assign("z", X))))


TREE = """
def tree(x1, x2, x3):
    if x1 == 1:
        y = 0 if x3 > 0 else 1
    else:
        y = 0 if x2 == 1 else 1
    return y
"""

NETWORK = """
def network(x1, x2, x3):
    z1 = x1 - x2
    z2 = 2 * x1 - x3
    a1 = z1 if z1 >= 0 else 0
    a2 = z2 if z2 >= 0 else 0
    z3 = -a1 + a2
    y = 1 if z3 >= 0 else 0
    return y
"""


def test_the_decision_tree_of_the_paper_has_its_four_path_formulae():
    assert [show_formula(path) for path in path_formulae(parse(TREE).program)] == [
        "x1 = 1 ∧ x3 > 0 ∧ y = 0",
        "x1 = 1 ∧ x3 ≤ 0 ∧ y = 1",
        "x1 ≠ 1 ∧ x2 = 1 ∧ y = 0",
        "x1 ≠ 1 ∧ x2 ≠ 1 ∧ y = 1",
    ]


def test_the_network_of_the_paper_has_its_six_conjuncts():
    formula = characteristic(parse(NETWORK).program)
    assert isinstance(formula, And)
    assert [show_formula(part) for part in formula.parts] == [
        "z1 = x1 - x2",
        "z2 = 2 * x1 - x3",
        "(z1 ≥ 0 ∧ a1 = z1) ∨ (z1 < 0 ∧ a1 = 0)",
        "(z2 ≥ 0 ∧ a2 = z2) ∨ (z2 < 0 ∧ a2 = 0)",
        "z3 = -a1 + a2",
        "(z3 ≥ 0 ∧ y = 1) ∨ (z3 < 0 ∧ y = 0)",
    ]


def test_only_the_last_version_of_a_variable_called_like_the_result_is_the_result():
    formula = characteristic(parse("def f(x):\n    y = x\n    y = y + 1\n    return y").program)
    assert show_formula(formula) == "y_2 = x ∧ y = y_2 + 1"
    formula = characteristic(parse("def f(x):\n    y = x\n    return y + 1").program)
    assert show_formula(formula) == "y_2 = x ∧ y = y_2 + 1"

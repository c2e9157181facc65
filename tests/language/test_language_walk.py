"""The walker of the syntax, and what is written with it."""

from __future__ import annotations

import sys
from fractions import Fraction
from types import FrameType

import pytest
from hypothesis import given
from language_strategies import programs

from mace.language import parse, single_assignment, syntax
from mace.language.linear import linear
from mace.language.naming import assigned, commands
from mace.language.substitute import rename, substitute
from mace.language.syntax import (
    ONE,
    TRUE,
    ZERO,
    And,
    Assign,
    Binary,
    Compare,
    For,
    If,
    Indicator,
    Missing,
    Not,
    Program,
    Return,
    Sequence,
    Unary,
    Variable,
    conjunction,
    constant,
    total,
)
from mace.language.walk import fold, map_comparisons, rewrite

X, Y = Variable("x"), Variable("y")


@given(programs())
def test_a_rewriting_that_changes_nothing_gives_an_equal_program(program: Program):
    assert rewrite(program.body, lambda node: node) == program.body


@given(programs())
def test_a_fold_sees_each_node_once_after_those_inside_it(program: Program):
    seen: list[syntax.Node] = []
    count = fold(program.body, lambda node, below: seen.append(node) or 1 + sum(below))  # type: ignore[func-returns-value]
    inside = list(syntax.nodes(program.body))
    assert count == len(seen) == len(inside)
    assert sorted(map(id, seen)) == sorted(map(id, inside))
    assert seen[-1] is inside[0] is program.body


@given(programs())
def test_the_commands_of_a_program_are_the_commands_among_its_nodes(program: Program):
    among = [node for node in syntax.nodes(program.body) if isinstance(node, syntax.Command)]
    assert list(map(id, commands(program.body))) == list(map(id, among))


@given(programs())
def test_renaming_there_and_back_gives_the_program_again(program: Program):
    body = single_assignment(program).body
    new = {name: f"{name} renamed" for name in assigned(body)}
    renamed = rename(body, new)
    assert not set(new) & {*assigned(renamed), *syntax.names(renamed)}
    assert rename(renamed, {other: name for name, other in new.items()}) == body


def test_nodes_come_in_the_order_of_the_text():
    guard = And((Compare("<", Variable("c"), Variable("a")), Not(Missing("b"))))
    choice = If(guard, Assign("d", Indicator(Compare("==", Variable("e"), ONE))), Return(Unary("neg", Variable("f"))))
    assert syntax.names(choice) == ("c", "a", "b", "e", "f")


def test_a_loop_hides_its_variable_from_a_substitution():
    loop = For("x", 0, 3, Assign("z", Binary("+", X, Y)))
    replaced = substitute(Sequence((Assign("w", X), loop)), {"x": ONE, "y": ZERO})
    assert replaced == Sequence((Assign("w", ONE), For("x", 0, 3, Assign("z", Binary("+", X, ZERO)))))


def test_only_an_input_can_be_missing():
    guard = And((Missing("x"), Missing("y")))
    assert substitute(guard, {"x": ONE, "y": Y}) == And((syntax.FALSE, Missing("y")))


def test_a_node_that_is_known_is_not_looked_into():
    doubled = rewrite(
        Binary("+", Unary("neg", X), X),
        lambda node: Binary("*", constant(2), node) if node == X else node,
        instead=lambda node: node if isinstance(node, Unary) else None,
    )
    assert doubled == Binary("+", Unary("neg", X), Binary("*", constant(2), X))


def test_comparisons_are_changed_under_the_negations_that_they_stand_in():
    guard = Not(And((Compare("<", X, ONE), Not(Compare("==", Y, ONE)), Not(Missing("x")), TRUE)))
    seen: list[syntax.Compare] = []
    map_comparisons(guard, lambda atom: seen.append(atom) or atom)  # type: ignore[func-returns-value]
    assert seen == [Compare(">=", X, ONE), Compare("==", Y, ONE)]


@pytest.mark.slow
def test_depth_does_not_matter():
    deep = total([X] * 50_000)
    assert linear(Compare("<=", deep, ZERO)) == ({"x": Fraction(50_000)}, Fraction(0))
    assert syntax.variables(substitute(deep, {"x": Y})) == {"y"}
    nested: syntax.Guard = Missing("x")
    for _ in range(50_000):
        nested = And((TRUE, nested))
    flat = rewrite(nested, lambda node: conjunction(node.parts) if isinstance(node, And) else node)
    assert flat == Missing("x")


def _calls_of_single_assignment(size: int) -> int:
    lines = [f"    v{k} = a" for k in range(size)]
    lines += [f"    if a > {k}:\n        v{k} = v{k} + 1" for k in range(size)]
    program = parse("\n".join(["def f(a):", *lines, "    return v0"])).program
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        single_assignment(program)
    finally:
        sys.setprofile(None)
    return calls


def test_conditionals_that_change_one_of_many_variables_cost_what_they_change():
    assert _calls_of_single_assignment(200) < 2.5 * _calls_of_single_assignment(100)

"""Reading Python: what is accepted means what Python means; what is refused says where, what, and what instead."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mace.errors import InvalidProgram
from mace.language import Symbol, parse, run, show
from mace.language.naming import commands
from mace.language.syntax import Binary, Constant, For, Program, Variable, constant

WEIGHTS = [1, -2, 3]
MATRIX = ((1, 2), (3, -4))
BIAS = 5


def assigned_twice(a, b, c):
    """A docstring."""
    z = w = a - b
    z += c
    z -= 1
    z *= 2
    z /= 4
    total: float = z + w
    extra: int  # noqa: F842
    return total


def branches(a, b, c):
    if a > b:
        z = 1
    elif a == b:
        z = 2
    else:
        z = 3
        if c:
            z = -z
    return z if c != 1 else +a


def early(a, b, c):
    if a > 1:
        if b > 1:
            return 10
        c = c + 1
    if c > 2:
        return c
    return a * b


def loops(a, b, c):
    s = 0
    for i in range(4):
        s = s + i * a
    for i in range(1, 3):
        for j in range(2):
            if s > 20:
                return s
            s += i * b - j
    for k in range(6, 0, -2):
        s = s + k
    for _ in range(0):
        s = 1000
    return s


def lists(a, b, c):
    w = [2, [a, b], 0.5]
    a = a + 1
    s = w[1][0] * w[-1]
    for i in range(len(WEIGHTS)):
        s += WEIGHTS[i] * c
    for row in MATRIX:
        s += row[0] * a + row[1] * b
    for v in [a, a]:
        a = a + v
    return s + a


def sums(a, b, c):
    xs = [a, b, c]
    first = sum([a, b]) + sum(xs) + sum((a, c), 3)
    second = sum(WEIGHTS[i] * xs[i] for i in range(3))
    third = sum([x * x for x in xs if 1 > 0])
    fourth = sum(i * j for i in range(3) for j in range(i))
    return (
        first + second + third + fourth + sum(w * x for w, x in zip(WEIGHTS, xs)) + sum(i * x for i, x in enumerate(xs))  # noqa: B905
    )


def extremes(a, b, c):
    relu = max(0, a - b)
    return relu + min(a, b, c) - max([a, b, c]) + abs(-a) + float(b) * 2


def comparisons(a, b, c):
    inside = -1 <= a < 2 <= b + 3
    listed = a in (0, 1, 2)
    unlisted = b not in [0, c]
    return inside + 2 * listed + 4 * unlisted + (a > b) * 8


def logic(a, b, c):
    p = a > 0
    q = b > 0
    r = (p and q) or not (c > 0)
    if (a and not b) or c:
        return r
    return any([p, q]) + 2 * all(x > 0 for x in (a, b, c)) + 4 * bool(c)


def lazy(a, b, c):
    if a != 0 and (b if b > 0 else 1 / a) > 0.25:
        return 1
    return 0 if a == 0 or 1 / (a if a != 0 else 0) < c else 2


def powers(a, b, c):
    return a**2 - (a + b) ** 3 + c**0 + b**1


def globals_and_chains(a, b, c):
    return a if a > BIAS else b if b > BIAS - 4 else -c


def truths(a, b, c):
    flag = True
    if a > 1:
        flag = False
    if flag:
        return True
    return flag or b > c


def shadowed_in_branches(a, b, c):
    if a > 0:  # noqa: SIM108
        t = a > b
    else:
        t = 3
    return t + 1


def static_tests(a, b, c):
    w = [a, b, c]
    s = 0
    for i in range(3):
        if i + 1 < 3:
            s += w[i + 1] * (1 if i == 0 else 2)
    return s


ACCEPTED = [
    assigned_twice,
    branches,
    early,
    loops,
    lists,
    sums,
    extremes,
    comparisons,
    logic,
    lazy,
    powers,
    globals_and_chains,
    truths,
    shadowed_in_branches,
    static_tests,
]
VALUES = st.one_of(st.integers(-3, 3), st.integers(-6, 6).map(lambda n: Fraction(n, 2)))


@pytest.mark.parametrize("function", ACCEPTED, ids=lambda function: function.__name__)
def test_the_program_of_a_function_returns_what_the_function_returns(function):
    program = parse(function).program
    again = parse(show(program)).program

    @settings(max_examples=40, deadline=None)
    @given(VALUES, VALUES, VALUES)
    def check(a, b, c):
        values = {"a": Fraction(a), "b": Fraction(b), "c": Fraction(c)}
        assert run(program, values) == run(again, values) == function(a, b, c)

    check()


def test_a_plain_loop_stays_a_loop_and_an_indexing_loop_is_written_out():
    kept = parse("def f(x):\n    s = 0\n    for i in range(3):\n        s += i * x\n    return s").program
    assert any(isinstance(part, For) for part in commands(kept.body))
    written = parse("def f(x):\n    s = 0\n    w = [1, 2]\n    for i in range(2):\n        s += w[i] * x\n    return s")
    assert not any(isinstance(part, For) for part in commands(written.program.body))


def test_the_operations_keep_the_order_of_the_source():
    assert show(parse("lambda x: 0.1 + 0.2 + x * (3 - 1)").program).endswith("return 0.1 + 0.2 + x * (3 - 1)\n")
    assert parse("lambda x: -0.5").program.body.value == constant(-0.5)


def test_strings_come_back_as_positions_in_the_order_of_the_source():
    parsed = parse("lambda x: 'no' if x < 0 else 'yes' if x > 1 else 'no'")
    assert parsed.labels == ("no", "yes")
    assert [run(parsed.program, {"x": Fraction(x)}) for x in (-1, 1, 2)] == [0, 0, 1]
    source = """
def f(x):
    label = "low"
    if x > 0:
        label = "high"
    if label == "high" and x > 9:
        return "top"
    return label"""
    parsed = parse(source)
    assert parsed.labels == ("low", "high", "top")
    assert [run(parsed.program, {"x": Fraction(x)}) for x in (0, 1, 10)] == [0, 1, 2]


def test_truths_are_one_and_zero():
    assert parse("lambda x: True").labels is None
    assert run(parse("lambda x: False").program, {"x": Fraction(1)}) == 0


def test_lambdas_on_one_line_are_told_apart():
    first, second, third = lambda x: x + 1, lambda x: x + 2, lambda y: y + 1
    assert run(parse(first).program, {"x": Fraction(0)}) == 1
    assert run(parse(second).program, {"x": Fraction(0)}) == 2
    assert parse(third).program.inputs == ("y",)


def test_equal_lambdas_on_one_line_are_one_lambda():
    pair = [lambda x: x + 1, lambda x: x + 1]
    assert run(parse(pair[1]).program, {"x": Fraction(0)}) == 1


def test_lambdas_that_compile_alike_are_refused():
    pair = [lambda x: x + 2, lambda x: x + (1 + 1)]
    with pytest.raises(InvalidProgram, match=r"2 lambdas that cannot be told apart(.|\n)*parse\(\"lambda"):
        parse(pair[0])


def test_a_lambda_may_close_over_numbers_and_lists():
    scale, weights = 3, [1.5, 2]
    parsed = parse(lambda x, k=4: scale * x + sum(w * x for w in weights) + k)
    assert run(parsed.program, {"x": Fraction(2)}) == 17
    assert parsed.program.inputs == ("x",)


def test_numpy_constants_are_taken_as_numbers():
    import numpy as np

    weights, bias = np.array([[1.0, 2.0]]), np.float64(0.5)
    parsed = parse(lambda a, b: weights[0][0] * a + weights[0][1] * b + bias)
    assert run(parsed.program, {"a": Fraction(1), "b": Fraction(1)}) == Fraction(7, 2)


def test_source_that_is_not_there_asks_for_the_text():
    scope: dict[str, object] = {}
    exec("f = lambda x: x", scope)
    with pytest.raises(InvalidProgram, match=r"source of <lambda>(.|\n)*Pass the source as text"):
        parse(scope["f"])  # type: ignore[arg-type]
    with pytest.raises(InvalidProgram, match="is not a plain Python function"):
        parse(math.sqrt)


def test_text_must_hold_one_function():
    for text, message in [("1 +", "is not Python"), ("x = 1", "holds 0 functions"), ("def f(x: 1", "is not Python")]:
        with pytest.raises(InvalidProgram, match=message):
            parse(text)


HOUSING = Symbol(Variable("housing"), ("rent", "own", "free"))
GRADE = Symbol(Variable("grade"), ("low", "mid", "high"), ordered=True)
ROOMS = Symbol(Variable("rooms"), (1, 2, 4), ordered=True)
FLAG = Symbol(Variable("flag"), (False, True))
AGE = Symbol(Variable("age"))
SYMBOLS = {"housing": HOUSING, "grade": GRADE, "rooms": ROOMS, "flag": FLAG, "age": AGE}
LEVELS = [
    ("housing == 'own'", lambda housing, grade, rooms, flag, age: housing == "own"),
    ("'own' != housing", lambda housing, grade, rooms, flag, age: housing != "own"),
    ("housing in ('own', 'free')", lambda housing, grade, rooms, flag, age: housing in ("own", "free")),
    ("housing not in ['rent']", lambda housing, grade, rooms, flag, age: housing != "rent"),
    ("grade >= 'mid'", lambda housing, grade, rooms, flag, age: grade in ("mid", "high")),
    ("'mid' > grade", lambda housing, grade, rooms, flag, age: grade == "low"),
    ("rooms == 4", lambda housing, grade, rooms, flag, age: rooms == 4),
    ("rooms == 3", lambda housing, grade, rooms, flag, age: rooms == 3),
    ("rooms > 1.5", lambda housing, grade, rooms, flag, age: rooms > 1.5),
    ("rooms * 2 + age", lambda housing, grade, rooms, flag, age: rooms * 2 + age),
    ("1 if flag else 0", lambda housing, grade, rooms, flag, age: flag),
    ("flag == True", lambda housing, grade, rooms, flag, age: flag),
    ("rooms <= age", lambda housing, grade, rooms, flag, age: rooms <= age),
]


@pytest.mark.parametrize(("source", "meaning"), LEVELS, ids=[source for source, _ in LEVELS])
def test_levels_are_compared_by_their_names(source, meaning):
    parameters = ", ".join(SYMBOLS)
    program = parse(f"lambda {parameters}: {source}", symbols=SYMBOLS).program
    assert program.inputs == tuple(SYMBOLS)
    for code in range(3):
        levels = {
            name: symbol.levels[min(code, len(symbol.levels) - 1)] for name, symbol in SYMBOLS.items() if symbol.levels
        }
        values = {
            name: Fraction(symbol.levels.index(levels[name])) for name, symbol in SYMBOLS.items() if symbol.levels
        }
        assert run(program, values | {"age": Fraction(2)}) == meaning(**levels, age=2)


def record(prefix: str) -> dict[str, Symbol]:
    return {
        "age": Symbol(Variable(f"{prefix}age")),
        "credit amount": Symbol(Binary("*", Constant(Fraction(100)), Variable(f"{prefix}credit"))),
        "grade": Symbol(Variable(f"{prefix}grade"), ("low", "mid", "high"), ordered=True),
    }


def test_rows_are_read_by_attribute_and_by_name():
    source = "lambda new, old: new.age - old.age if new.grade >= old.grade else new['credit amount']"
    program = parse(source, records=[record("new "), record("old ")]).program
    assert program.inputs == ("new age", "new credit", "new grade", "old age", "old credit", "old grade")
    values = dict(zip(program.inputs, map(Fraction, (30, 5, 1, 20, 0, 1)), strict=True))
    assert run(program, values) == 10
    assert run(program, values | {"old grade": Fraction(2)}) == 500
    assert "new_age" in show(program)


def test_a_local_name_never_captures_an_input():
    source = """
def f(a, b):
    x = a + 1
    b = b + x
    for y in range(2):
        x = x + y * a
    return x + a + b"""
    symbols = {"a": Symbol(Variable("x")), "b": Symbol(Binary("+", Variable("x"), Variable("y")))}
    program = parse(source, symbols=symbols).program
    assert program.inputs == ("x", "y")
    assert run(program, {"x": Fraction(2), "y": Fraction(10)}) == 5 + 2 + (12 + 3)


REFUSED = [
    ("def f(x):\n    while x:\n        pass\n    return x", 2, "a while loop", "range"),
    ("def f(x):\n    try:\n        return x\n    except ValueError:\n        return 1", 2, "try", "if"),
    ("def f(x):\n    import math\n    return x", 2, "an import", "steps in full"),
    ("def f(x):\n    with x:\n        return 1", 2, "with", "steps in full"),
    ("def f(x):\n    def g(z):\n        return z\n    return g(x)", 2, "a function inside", "steps in full"),
    ("def f(x):\n    for i in range(3):\n        break\n    return x", 3, "break", "if"),
    ("def f(x):\n    a, b = x, x\n    return a", 2, "an assignment to", "one assignment for each"),
    ("def f(x):\n    if x > 0:\n        z = 1\n    return z", 4, "'z' may have no value", "Assign 'z' before"),
    ("def f(x):\n    if x > 0:\n        return 1", 2, "a path ends without a return", "Add a return"),
    ("def f(x):\n    return", 2, "is not accepted", "return are accepted"),
    ("def f(x):\n    for i in range(x):\n        pass\n    return x", 2, "not a whole constant", "range\\(3\\)"),
    ("def f(x):\n    for i in range(2):\n        i = 3\n    return x", 3, "assigns its own variable", "another name"),
    ("def f(x):\n    for i in range(2):\n        pass\n    return i", 4, "'i' may have no value", "ends with its loop"),
    (
        "def f(x):\n    for i in range(2):\n        for i in range(2):\n            pass\n    return x",
        3,
        "two loops",
        "Rename",
    ),
    ("def f(x):\n    return x.real", 2, "attribute 'real'", "without a dot"),
    ("def f(x):\n    return x.conjugate()", 2, "the call of x.conjugate", "abs, min"),
    ("def f(x):\n    return round(x)", 2, "the call of round", "abs, min"),
    ("def f(x):\n    return math.exp(x)", 2, "the call of math.exp", "abs, min"),
    ("def f(x):\n    return xx", 2, "'xx' is not known", "Did you mean 'x'"),
    ("def f(x):\n    return x // 2", 2, "the operator of 'x // 2'", "accepted"),
    ("def f(x):\n    return x ** x", 2, "this power", "0 to 16"),
    ("def f(x):\n    return x ** 0.5", 2, "this power", "0 to 16"),
    ("def f(x):\n    return x or 1", 2, "between numbers", "conditional expression"),
    ("def f(x):\n    return [x]", 2, "a list is used as a number", "w\\[0\\]"),
    ("def f(x):\n    w = [1, 2]\n    return w[x]", 3, "no whole constant", "2 entries"),
    ("def f(x):\n    w = [1, 2]\n    return w[2]", 3, "no entry 2", "2 entries"),
    ("def f(x):\n    w = [1, 2]\n    return sum(w[:1])", 3, "a slice", "w\\[0\\]"),
    ("def f(x):\n    return x is None", 2, "no constant|`is`", ""),
    ("def f(x):\n    return 'a' if x > 0 else 1", 2, "a string in another", "One kind"),
    ("def f(x):\n    return x + 'a'", 2, "a string is used as a number", "number"),
    ("def f(x):\n    return 1e999", 2, "no constant", "Finite"),
    ("def f(x):\n    return (z := x)", 2, "an assignment inside", "accepted"),
    ("def f(x):\n    return {1: x}", 2, "a dictionary", "accepted"),
    ("def f(x):\n    return isnan(x + 1)", 2, "isnan of a calculated value", "isnan\\(input\\)"),
    (
        "def f(x):\n    return sum(i for i in range(3) if x > i)",
        2,
        "depends on the inputs",
        "value \\* \\(condition\\)",
    ),
    ("def f(*x):\n    return 1", 1, "a starred parameter", "Name every"),
    ("@cache\ndef f(x):\n    return 1", 1, "a decorated function", "Undecorate"),
    ("def f(x, k=len('a')):\n    return 1", 1, "the default of 'k'", "no default"),
    ("def f(x):\n    return max([])", 2, "max of nothing", "One value"),
    ("def f(x):\n    for i in range(10 ** 9):\n        x = x + 1\n    return x", 2, "turns|power", ""),
    ("def f(x):\n    return sum(x for i in range(99999999))", 2, "99,999,999 turns", "Shorten"),
    ("def f(x):\n    x.y = 3\n    return x", 2, "an assignment to x.y", "Single names"),
    ("def f(x):\n    x[0] += 3\n    return x", 2, "is not accepted", "names"),
]


@pytest.mark.parametrize(("source", "line", "found", "instead"), REFUSED, ids=[source for source, *_ in REFUSED])
def test_what_is_outside_the_language_is_refused_with_its_line(source, line, found, instead):
    with pytest.raises(InvalidProgram) as caught:
        parse(source)
    message = str(caught.value)
    assert message.startswith(f"line {line}: ")
    assert source.splitlines()[line - 1].strip() in message
    assert re.search(found, message)
    assert re.search(instead, message)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lambda housing: housing == 'ownn'", "'ownn' is not a level(.|\n)*'rent', 'own', 'free'.*Did you mean 'own'"),
        ("lambda housing: housing < 'own'", "without an order"),
        ("lambda housing: housing + 1", "levels 'rent', 'own', 'free' is used as a number"),
        ("lambda housing: housing == 1", "compared with a number"),
        ("lambda housing, grade: housing == grade", "different levels"),
        ("lambda housingg: 1", "parameter 'housingg' is not known(.|\n)*Did you mean 'housing'"),
    ],
)
def test_levels_are_refused_where_they_make_no_sense(source, message):
    with pytest.raises(InvalidProgram, match=message):
        parse(source, symbols=SYMBOLS)


def test_an_unknown_feature_of_a_row_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidProgram, match=r"'agee' is not a feature(.|\n)*Did you mean 'age'\?"):
        parse("lambda new, old: new.agee", records=[record(""), record("o")])
    with pytest.raises(InvalidProgram, match="Exactly 2 are accepted"):
        parse("lambda new: new.age", records=[record(""), record("o")])


def test_the_line_of_a_refusal_is_the_line_in_the_file():
    def local(x):
        return math.sqrt(x)

    with pytest.raises(InvalidProgram, match=rf"^line {local.__code__.co_firstlineno + 1}: "):
        parse(local)


def test_an_object_from_outside_is_refused():
    helper = object()
    with pytest.raises(InvalidProgram, match="'helper' is from outside the function, a value of type object"):
        parse(lambda x: x + helper)  # type: ignore[operator]


def test_a_program_without_inputs_is_a_program():
    assert parse("lambda: 3").program == Program((), parse("lambda x: 3").program.body)

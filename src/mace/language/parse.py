"""Read a Python function as a program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.scope import Scope
from mace.language.source import Source, find_source
from mace.language.statements import Statements
from mace.language.trampoline import finish
from mace.language.values import Fields, Label, Level, Number, Reads, Symbol, Text, Value, from_object, from_symbol


@dataclass(frozen=True, slots=True)
class Parsed:
    """A program, and the strings that it returns by position; None where it returns numbers."""

    program: syntax.Program
    labels: tuple[str, ...] | None


def parse(
    function: Callable[..., object] | str,
    *,
    symbols: Mapping[str, Symbol] | None = None,
    records: Sequence[Mapping[str, Symbol]] | None = None,
    reads: Reads = Fraction,
) -> Parsed:
    """Return the program of a Python function. The function is read, never called.

    Parameters
    ----------
    function
        A def, a lambda, or the text of one. Accepted are assignments, if/elif/else, conditional expressions, for
        over range and lists, arithmetic, comparisons, and/or/not/in, abs, min, max, sum, len, any, all,
        constant lists, isnan of an input, and return.
    symbols
        What each parameter means; by default a numeric input of that name. A parameter with a default
        that is not named here is that constant.
    records
        One mapping a parameter, in order: the parameters are rows, and ``row.age`` or ``row["age"]`` is looked up.
    reads
        What number a float in the source stands for: by default exactly the float.

    Returns
    -------
    Parsed
        The program, whose inputs are the variables of the symbols in order, and the labels that it returns, if any.

    Raises
    ------
    InvalidProgram
        If the function lies outside the language: with the line, what was found, and what to write instead.

    Examples
    --------
    >>> parsed = parse("lambda age: 'yes' if age >= 18 else 'no'")
    >>> parsed.labels
    ('yes', 'no')
    >>> parsed.program.inputs
    ('age',)
    """
    source = find_source(function)
    bound = _parameters(source, symbols, records, reads)
    scope = Scope(source, _inputs(symbols, records, bound), frozenset(_assigned(source.node)), reads)
    _enter(scope, bound)
    translator = Statements(scope)
    if _body_falls(translator):
        raise _no_return(source)
    is_text = any(isinstance(value, Text | Label) for value in translator.returns)
    return Parsed(syntax.Program(scope.inputs, syntax.sequence(scope.block)), tuple(scope.labels) if is_text else None)


def _body_falls(translator: Statements) -> bool:
    node = translator.scope.source.node
    if isinstance(node, ast.Lambda):
        finish(translator.into(node.body, translator.give))
        return False
    return finish(translator.body(node.body))


def _no_return(source: Source) -> InvalidProgram:
    last = source.node.body[-1] if isinstance(source.node, ast.FunctionDef) else source.node
    return source.refuse(last, "a path ends without a return", "Every path must return. Add a return at the end.")


def _assigned(node: ast.FunctionDef | ast.Lambda) -> Iterator[str]:
    """Yield the names that the function itself assigns; those of comprehensions are their own."""
    pending: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else []
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        if not isinstance(part, ast.comprehension):
            pending.extend(ast.iter_child_nodes(part))


def _parameters(
    source: Source,
    symbols: Mapping[str, Symbol] | None,
    records: Sequence[Mapping[str, Symbol]] | None,
    reads: Reads,
) -> dict[str, Value]:
    """Return what each parameter stands for."""
    arguments = _checked_arguments(source)
    defaults = _defaults(source, reads)
    bound = {name: value for name, value in defaults.items() if symbols is None or name not in symbols}
    free = [argument for argument in arguments if argument.arg not in bound]
    if records is None:
        return bound | {argument.arg: _meaning(source, argument, symbols) for argument in free}
    if len(free) != len(records):
        raise source.refuse(
            source.node, f"{len(free)} parameters", f"Exactly {len(records)} are accepted here. Name each row once."
        )
    return bound | {argument.arg: Fields(fields) for argument, fields in zip(free, records, strict=True)}


def _meaning(source: Source, argument: ast.arg, symbols: Mapping[str, Symbol] | None) -> Value:
    if symbols is None:
        return Number(syntax.Variable(argument.arg))
    if argument.arg in symbols:
        return from_symbol(symbols[argument.arg])
    known = ", ".join(map(repr, symbols))
    raise source.refuse(
        argument,
        f"the parameter {argument.arg!r} is not known",
        f"The known names are {known}.{did_you_mean(argument.arg, symbols)} Rename the parameter.",
    )


def _checked_arguments(source: Source) -> list[ast.arg]:
    node = source.node
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        raise source.refuse(
            node.decorator_list[0], "a decorated function", "Only the function that runs can be read. Undecorate it."
        )
    several = node.args.vararg or node.args.kwarg
    if several is not None:
        raise source.refuse(node, f"a starred parameter {several.arg!r}", "Name every parameter.")
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _defaults(source: Source, reads: Reads) -> dict[str, Value]:
    arguments = source.node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *((name, node) for name, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if node),
    ]
    return {argument.arg: _default(source, argument, node, reads) for argument, node in pairs}


def _default(source: Source, argument: ast.arg, node: ast.expr, reads: Reads) -> Value:
    if source.defaults is not None:
        value = from_object(source.defaults.get(argument.arg), reads)
    else:
        try:
            value = from_object(ast.literal_eval(node), reads)
        except ValueError:
            value = None
    if value is None:
        raise source.refuse(node, f"the default of {argument.arg!r} is no constant", "Write a number, or no default.")
    return value


def _inputs(
    symbols: Mapping[str, Symbol] | None,
    records: Sequence[Mapping[str, Symbol]] | None,
    bound: Mapping[str, Value],
) -> tuple[str, ...]:
    given = [*(symbols or {}).values(), *(symbol for record in records or () for symbol in record.values())]
    if symbols is None and records is None:
        free = [value.expression for value in bound.values() if isinstance(value, Number)]
        return tuple(dict.fromkeys(name for expression in free for name in syntax.names(expression)))
    return tuple(dict.fromkeys(name for symbol in given for name in syntax.names(symbol.expression)))


def _enter(scope: Scope, bound: Mapping[str, Value]) -> None:
    """Give the parameters their values; one that is assigned later gets a variable of its own."""
    scope.names.update(bound)
    for name in bound.keys() & scope.assigned:
        if _is_alone(name, bound):
            scope.kept.add(name)
    for name, value in bound.items():
        if name in scope.assigned and name not in scope.kept:
            scope.names[name] = _own(scope, name, value)


def _is_alone(name: str, bound: Mapping[str, Value]) -> bool:
    """Whether the parameter is the input of its own name, which no other parameter reads."""
    if bound[name] != Number(syntax.Variable(name)):
        return False
    others = [value for other, value in bound.items() if other != name]
    return not any(name in _reads(value) for value in others)


def _reads(value: Value) -> set[str]:
    match value:
        case Number(expression) | Level(expression, _, _):
            return set(syntax.names(expression))
        case Fields(fields):
            return {name for symbol in fields.values() for name in syntax.names(symbol.expression)}
        case _:
            return set()


def _own(scope: Scope, name: str, value: Value) -> Value:
    match value:
        case Level(expression, levels, ordered):
            scope.emit(syntax.Assign(scope.variable(name), expression))
            return Level(syntax.Variable(scope.variable(name)), levels, ordered)
        case Number(expression):
            scope.emit(syntax.Assign(scope.variable(name), expression))
            return Number(syntax.Variable(scope.variable(name)))
        case _:
            return value

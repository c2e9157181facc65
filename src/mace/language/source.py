"""Find the source of a function, and what its outside names stand for."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

from mace.errors import InvalidProgram

Definition = ast.FunctionDef | ast.Lambda

_TEXT_FORM = 'Pass the source as text instead: parse("lambda x: ...") or the text of a def.'


@dataclass(frozen=True, slots=True)
class Source:
    """A function's syntax tree, the lines it was written on, and the values of the names around it."""

    node: Definition
    lines: tuple[str, ...]
    outside: Mapping[str, object]
    defaults: Mapping[str, object] | None

    def refuse(self, node: ast.AST, found: str, instead: str) -> InvalidProgram:
        """Return the error that says where ``node`` stands, what was found, and what to write instead."""
        number = getattr(node, "lineno", 1)
        line = self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""
        return InvalidProgram(f"line {number}: {found}.\n    {line}\n{instead}")


def find_source(function: Callable[..., object] | str) -> Source:
    """Return the source of a function, or of the text of one.

    Raises
    ------
    InvalidProgram
        If there is no source, or a lambda cannot be told apart from others on its line.
    """
    if isinstance(function, str):
        return _from_text(function)
    if not isinstance(function, FunctionType):
        raise InvalidProgram(
            f"{function!r} is not a plain Python function. A def, a lambda or the text of one is accepted. {_TEXT_FORM}"
        )
    if hasattr(function, "__wrapped__"):
        raise InvalidProgram(
            f"{function.__qualname__} is decorated. Only the function that runs can be read. Pass it undecorated."
        )
    return _from_function(function)


def typed_sources() -> dict[str, list[str]]:
    """Return the lines that were typed into a notebook or a console, under the names that stand there for files."""
    entries = {name: entry for name, entry in linecache.cache.items() if len(entry) > 1}
    return {name: entry[2] for name, entry in entries.items() if not Path(name).exists()}


def remember_typed(sources: Mapping[str, list[str]]) -> None:
    """Let functions from another process find the lines that were typed there."""
    for name, lines in sources.items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)


def _from_text(text: str) -> Source:
    lines = textwrap.dedent(text)
    tree = _tree(lines, "the text")
    found = [node for statement in tree.body if (node := _definition(statement)) is not None]
    if len(found) != 1:
        raise InvalidProgram(
            f"the text holds {len(found)} functions. Exactly one def or lambda is accepted. Pass each one by itself."
        )
    return Source(found[0], tuple(lines.splitlines()), {}, None)


def _definition(statement: ast.stmt) -> Definition | None:
    match statement:
        case ast.FunctionDef():
            return statement
        case ast.Expr(ast.Lambda() as node) | ast.Assign(value=ast.Lambda() as node):
            return node
        case _:
            return None


def _tree(text: str, what: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InvalidProgram(
            f"{what} is not Python: {error}. A def or a lambda is accepted. Correct the text."
        ) from error
    except (RecursionError, MemoryError) as error:
        raise InvalidProgram(
            f"{what} is nested too deeply for Python's own parser. Split long expressions over several assignments."
        ) from error


def _from_function(function: FunctionType) -> Source:
    lines = _file_lines(function)
    tree = _tree("".join(lines), f"the file of {function.__qualname__}")
    found = [node for node in ast.walk(tree) if _is_here(node, function.__code__)]
    chosen = _choose([node for node in found if isinstance(node, Definition)], function)
    text = tuple(line.rstrip("\n") for line in lines)
    return Source(chosen, text, _Outside(function), _defaults(function))


def _file_lines(function: FunctionType) -> list[str]:
    linecache.checkcache(function.__code__.co_filename)
    try:
        return inspect.findsource(function)[0]
    except (OSError, IndexError, TypeError) as error:
        raise InvalidProgram(
            f"the source of {function.__qualname__} is not available. A function must come from a file or a notebook. "
            f"{_TEXT_FORM}"
        ) from error


def _is_here(node: ast.AST, code: CodeType) -> bool:
    match node:
        case ast.Lambda():
            return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
        case ast.FunctionDef():
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return node.name == code.co_name and first == code.co_firstlineno
        case _:
            return False


def _choose(found: list[Definition], function: FunctionType) -> Definition:
    """Tell lambdas on one line apart by their parameters and byte code."""
    if any(isinstance(node, ast.Lambda) for node in found):
        wanted = _essence(function.__code__)
        found = [node for node in found if _compiled(node, function.__code__) == wanted]
    different = {ast.dump(node): node for node in found}
    if len(different) == 1:
        return next(iter(different.values()))
    line = function.__code__.co_firstlineno
    if not different:
        raise InvalidProgram(
            f"line {line} does not hold the source of {function.__qualname__}. "
            f"A function must come from an unchanged file. {_TEXT_FORM}"
        )
    raise InvalidProgram(
        f"line {line} holds {len(different)} lambdas that cannot be told apart. One a line is accepted. "
        f"Put each on its own line. {_TEXT_FORM}"
    )


def _compiled(node: Definition, code: CodeType) -> tuple[object, ...] | None:
    """Return the essence of the code that ``node`` compiles to where ``code``'s free variables are in scope."""
    if not isinstance(node, ast.Lambda):
        return None
    scope = ast.parse(f"def scope({', '.join(code.co_freevars)}):\n    return 0")
    outer = scope.body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body = [ast.copy_location(ast.Return(node), node)]
    compiled = compile(ast.fix_missing_locations(scope), "<scope>", "exec", dont_inherit=True)
    inner = next(_codes(next(_codes(compiled))), None)
    return None if inner is None else _essence(inner)


def _codes(code: CodeType) -> Iterator[CodeType]:
    return (constant for constant in code.co_consts if isinstance(constant, CodeType))


def _essence(code: CodeType) -> tuple[object, ...]:
    constants = tuple(
        _essence(constant) if isinstance(constant, CodeType) else (type(constant), repr(constant))
        for constant in code.co_consts
    )
    counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, counts)


def _defaults(function: FunctionType) -> dict[str, object]:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    start = len(positional) - len(values)
    return {**dict(zip(positional[start:], values, strict=True)), **(function.__kwdefaults__ or {})}


class _Outside(Mapping[str, object]):
    """The names that a function sees around it: those it closes over, then its module's."""

    def __init__(self, function: FunctionType) -> None:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        self._closure = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
        self._globals = function.__globals__

    def __getitem__(self, name: str) -> object:
        return self._closure[name] if name in self._closure else self._globals[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._globals, **self._closure})

    def __len__(self) -> int:
        return len({**self._globals, **self._closure})


def _is_filled(cell: object) -> bool:
    try:
        cell.cell_contents  # type: ignore[attr-defined] # noqa: B018
    except ValueError:
        return False
    return True

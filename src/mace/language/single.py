"""The weak single-assignment form of Appendix A: no variable is assigned twice in one execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.naming import Fresh, all_names, has_return
from mace.language.substitute import substitute, substitute_guard
from mace.language.trampoline import Steps, each, finish
from mace.language.unroll import well_formed


def single_assignment(program: syntax.Program) -> syntax.Program:
    """Return an equal program that assigns every variable at most once on any execution, and no input.

    The first version of a variable keeps its name, later ones get a number. Both branches of a conditional may
    assign the same version; the branch with fewer versions ends with a copy (``x_2 := x_1``), so that what
    follows reads one name. There are no φ-nodes.

    Raises
    ------
    InvalidProgram
        If a variable may be read before it is assigned.

    Examples
    --------
    >>> from mace.language import parse, show
    >>> source = '''
    ... def model(x):
    ...     z = x
    ...     if x < 0:
    ...         z = -z
    ...     return z'''
    >>> print(show(single_assignment(parse(source).program)), end="")
    def model(x):
        z = x
        if x < 0:
            z_2 = -z
        else:
            z_2 = z
        return z_2
    """
    shaped = well_formed(program)
    versions = _Versions(Fresh(all_names(shaped)))
    state = _State(dict.fromkeys(shaped.inputs, 1), {name: syntax.Variable(name) for name in shaped.inputs})
    return syntax.Program(shaped.inputs, finish(_convert(shaped.body, state, versions)))


@dataclass(slots=True)
class _Versions:
    """The name of each version of each variable; the first is the variable's own."""

    fresh: Fresh
    known: dict[tuple[str, int], str] = field(default_factory=dict)

    def name(self, name: str, version: int) -> str:
        if version == 1:
            return name
        if (name, version) not in self.known:
            self.known[name, version] = self.fresh(f"{name}_{version}")
        return self.known[name, version]


@dataclass(slots=True)
class _State:
    """How often each variable was assigned so far, and what a variable that has a value is called now."""

    counts: dict[str, int]
    current: dict[str, syntax.Expression]

    def copy(self) -> _State:
        return _State(dict(self.counts), dict(self.current))

    def assign(self, name: str, versions: _Versions) -> str:
        self.counts[name] = self.counts.get(name, 0) + 1
        new = versions.name(name, self.counts[name])
        self.current[name] = syntax.Variable(new)
        return new


def _convert(command: syntax.Command, state: _State, versions: _Versions) -> Steps[syntax.Command]:
    match command:
        case syntax.Skip():
            return command
        case syntax.Assign(name, value):
            read = _read(value, state.current)
            return syntax.Assign(state.assign(name, versions), read)
        case syntax.Return(value):
            return syntax.Return(_read(value, state.current))
        case syntax.Sequence(parts):
            done: list[syntax.Command] = yield each(_convert(part, state, versions) for part in parts)
            return syntax.sequence(done)
        case syntax.If():
            choice: syntax.Command = yield _convert_choice(command, state, versions)
            return choice
        case syntax.For():  # pragma: no cover - a well-formed program has no loops
            raise AssertionError("a loop outlived unrolling")


def _convert_choice(choice: syntax.If, state: _State, versions: _Versions) -> Steps[syntax.Command]:
    guard = _read_guard(choice.guard, state.current)
    first, second = state.copy(), state.copy()
    then: syntax.Command = yield _convert(choice.then, first, versions)
    otherwise: syntax.Command = yield _convert(choice.otherwise, second, versions)
    if has_return(choice):  # nothing follows: there is nothing to merge for
        return syntax.If(guard, then, otherwise)
    copies = _merge(state, first, second, versions)
    return syntax.If(guard, syntax.sequence([then, *copies[0]]), syntax.sequence([otherwise, *copies[1]]))


def _merge(
    state: _State, first: _State, second: _State, versions: _Versions
) -> tuple[list[syntax.Command], list[syntax.Command]]:
    """Join two branches into ``state``; return the copies that each branch must end with."""
    copies: tuple[list[syntax.Command], list[syntax.Command]] = ([], [])
    for name in first.counts | second.counts:
        one, two = first.counts.get(name, 0), second.counts.get(name, 0)
        state.counts[name] = max(one, two)
        if name not in first.current or name not in second.current:
            state.current.pop(name, None)  # assigned on one side only: it has no value from here on
            continue
        merged = versions.name(name, max(one, two))
        state.current[name] = syntax.Variable(merged)
        if one < two:
            copies[0].append(syntax.Assign(merged, first.current[name]))
        elif two < one:
            copies[1].append(syntax.Assign(merged, second.current[name]))
    return copies


def _read(value: syntax.Expression, current: Mapping[str, syntax.Expression]) -> syntax.Expression:
    _check(syntax.names(value), current)
    return substitute(value, current)


def _read_guard(guard: syntax.Guard, current: Mapping[str, syntax.Expression]) -> syntax.Guard:
    _check(syntax.names(guard), current)
    return substitute_guard(guard, current)


def _check(used: tuple[str, ...], current: Mapping[str, syntax.Expression]) -> None:
    for name in used:
        if name not in current:
            raise InvalidProgram(
                f"the variable {name!r} may be read before it is assigned.{did_you_mean(name, current)} "
                "A variable must be assigned on every path to its use. Assign it before the conditional."
            )

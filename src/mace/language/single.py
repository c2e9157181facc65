"""The weak single-assignment form of Appendix A: no variable is assigned twice in one execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mace.errors import InvalidProgram, did_you_mean
from mace.language import syntax
from mace.language.naming import Fresh, all_names, has_return
from mace.language.substitute import Kind, substitute
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
    current: dict[str, syntax.Expression] = {name: syntax.Variable(name) for name in shaped.inputs}
    order = {name: place for place, name in enumerate(shaped.inputs)}
    state = _State(dict.fromkeys(shaped.inputs, 1), current, order)
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
    """How often each variable was assigned so far, and what a variable that has a value is called now; changes can be undone."""

    counts: dict[str, int]
    current: dict[str, syntax.Expression]
    order: dict[str, int]
    trail: list[tuple[str, int | None, syntax.Expression | None]] = field(default_factory=list)

    def set(self, name: str, count: int, value: syntax.Expression | None) -> None:
        """Have a variable assigned ``count`` times and called ``value``; ``None`` where it has no value."""
        self.trail.append((name, self.counts.get(name), self.current.get(name)))
        self.order.setdefault(name, len(self.order))
        self._put(name, count, value)

    def undo(self, mark: int) -> dict[str, tuple[int, syntax.Expression | None]]:
        """Take back what was set since the trail had the length ``mark``; return the variables that it was set for, as they were last."""
        set_since = dict.fromkeys(name for name, _, _ in self.trail[mark:])
        last = {name: (self.counts[name], self.current.get(name)) for name in set_since}
        while len(self.trail) > mark:
            self._put(*self.trail.pop())
        return last

    def _put(self, name: str, count: int | None, value: syntax.Expression | None) -> None:
        if count is None:
            del self.counts[name], self.order[name]
        else:
            self.counts[name] = count
        if value is None:
            self.current.pop(name, None)
        else:
            self.current[name] = value

    def assign(self, name: str, versions: _Versions) -> str:
        """Give a variable its next version; return that version's name."""
        count = self.counts.get(name, 0) + 1
        new = versions.name(name, count)
        self.set(name, count, syntax.Variable(new))
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
    guard = _read(choice.guard, state.current)
    mark = len(state.trail)
    then: syntax.Command = yield _convert(choice.then, state, versions)
    first = state.undo(mark)
    otherwise: syntax.Command = yield _convert(choice.otherwise, state, versions)
    second = state.undo(mark)
    if has_return(choice):  # nothing follows: there is nothing to merge for
        return syntax.If(guard, then, otherwise)
    copies = _merge(state, first, second, versions)
    return syntax.If(guard, syntax.sequence([then, *copies[0]]), syntax.sequence([otherwise, *copies[1]]))


Branch = dict[str, tuple[int, syntax.Expression | None]]
"""The variables that a branch assigns: how often they were assigned after it, and what they are called then."""


def _merge(
    state: _State, first: Branch, second: Branch, versions: _Versions
) -> tuple[list[syntax.Command], list[syntax.Command]]:
    """Join two branches into ``state``; return the copies that each branch must end with."""
    copies: tuple[list[syntax.Command], list[syntax.Command]] = ([], [])
    last = len(state.order)
    for name in sorted(first | second, key=lambda name: state.order.get(name, last)):
        before = (state.counts.get(name, 0), state.current.get(name))
        (one, own), (two, other) = first.get(name, before), second.get(name, before)
        if own is None or other is None:
            state.set(name, max(one, two), None)  # assigned on one side only: it has no value from here on
            continue
        merged = versions.name(name, max(one, two))
        state.set(name, max(one, two), syntax.Variable(merged))
        if one < two:
            copies[0].append(syntax.Assign(merged, own))
        elif two < one:
            copies[1].append(syntax.Assign(merged, other))
    return copies


def _read(node: Kind, current: Mapping[str, syntax.Expression]) -> Kind:
    _check(syntax.names(node), current)
    return substitute(node, current)


def _check(used: tuple[str, ...], current: Mapping[str, syntax.Expression]) -> None:
    for name in used:
        if name not in current:
            raise InvalidProgram(
                f"the variable {name!r} may be read before it is assigned.{did_you_mean(name, current)} "
                "A variable must be assigned on every path to its use. Assign it before the conditional."
            )

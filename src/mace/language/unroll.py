"""Loops away, and returns to the end: the shape that the single-assignment form starts from."""

from __future__ import annotations

from mace.errors import InvalidProgram
from mace.language import syntax
from mace.language.naming import Fresh, all_names, assigned, commands, has_return
from mace.language.substitute import substitute
from mace.language.trampoline import Steps, finish
from mace.language.walk import fold, rewrite

MOST_COMMANDS = 1_000_000
"""The most commands that unrolling may produce."""


def unroll(program: syntax.Program) -> syntax.Program:
    """Return ``program`` without loops: each body once a turn, its variable replaced by the number of the turn.

    Raises
    ------
    InvalidProgram
        If a loop assigns its own variable, or the result would have more than a million commands.
    """
    if not any(isinstance(part, syntax.For) for part in commands(program.body)):
        return program
    size = fold(program.body, _size, into=syntax.subcommands)
    if size > MOST_COMMANDS:
        raise InvalidProgram(
            f"the loops unroll to {size:,} commands. At most {MOST_COMMANDS:,} are accepted. Shorten the ranges."
        )
    return syntax.Program(program.inputs, rewrite(program.body, _unrolled))


def _size(command: syntax.Command, below: list[int]) -> int:
    """Return how many commands a command unrolls to, from those of its parts."""
    match command:
        case syntax.Sequence():
            return sum(below)
        case syntax.For(_, start, stop, _):
            return max(0, stop - start) * below[0]
        case _:
            return 1 + sum(below)


def _unrolled(command: syntax.Node) -> syntax.Node:
    match command:
        case syntax.Sequence(parts):
            return syntax.sequence(parts)
        case syntax.For(name, start, stop, body):
            if name in assigned(body):
                raise InvalidProgram(
                    f"the loop over {name!r} assigns its own variable. A loop variable only counts. "
                    "Assign to another name."
                )
            return syntax.sequence(substitute(body, {name: syntax.constant(turn)}) for turn in range(start, stop))
        case _:
            return command


def well_formed(program: syntax.Program) -> syntax.Program:
    """Return an equal program, loop-free, in which nothing follows a return.

    What follows a conditional moves into the branch that falls through. Where both branches may fall through,
    the conditional leaves a flag and the returned value in two new variables instead, and a second
    conditional returns: nothing is ever copied, so the size stays linear.
    """
    plain = unroll(program)
    arranged = _arrange((plain.body,), frozenset(plain.inputs), Fresh(all_names(plain)))
    return syntax.Program(plain.inputs, finish(arranged))


def _arrange(parts: tuple[syntax.Command, ...], known: frozenset[str], fresh: Fresh) -> Steps[syntax.Command]:
    """Return the parts as one well-formed command; ``known`` surely have a value before it."""
    kept: list[syntax.Command] = []
    pending = list(reversed(parts))
    while pending:
        match pending.pop():
            case syntax.Sequence(inner):
                pending.extend(reversed(inner))
            case syntax.Return() as last:
                return syntax.sequence([*kept, last])
            case syntax.If() as choice if has_return(choice):
                kept.append((yield _choice(choice, tuple(reversed(pending)), known, fresh)))
                return syntax.sequence(kept)
            case other:
                kept.append(other)
                after: frozenset[str] | None = finish(_surely_assigned(other, known))
                known = after or known
    return syntax.sequence(kept)


def _choice(
    choice: syntax.If, rest: tuple[syntax.Command, ...], known: frozenset[str], fresh: Fresh
) -> Steps[syntax.Command]:
    """Return the conditional and what follows it as one well-formed command."""
    then, otherwise = (choice.then,), (choice.otherwise,)
    if rest and falls_through(choice.then) and falls_through(choice.otherwise):
        command: syntax.Command = yield _flagged(choice, rest, known, fresh)
        return command
    after_then = rest if falls_through(choice.then) else ()
    after_otherwise = rest if falls_through(choice.otherwise) else ()
    first: syntax.Command = yield _arrange(then + after_then, known, fresh)
    second: syntax.Command = yield _arrange(otherwise + after_otherwise, known, fresh)
    return syntax.If(choice.guard, first, second)


def _flagged(
    choice: syntax.If, rest: tuple[syntax.Command, ...], known: frozenset[str], fresh: Fresh
) -> Steps[syntax.Command]:
    # What the paths that fall through assign must have a value on those that return, too: 0, never read.
    unset = [syntax.Assign(name, syntax.ZERO) for name in assigned(choice) if name not in known]
    known |= {command.name for command in unset}
    done, out = fresh("done"), fresh("out")
    first: syntax.Command = yield _arrange((choice.then,), known, fresh)
    second: syntax.Command = yield _arrange((choice.otherwise,), known, fresh)
    marked = syntax.If(choice.guard, (yield _store(first, done, out)), (yield _store(second, done, out)))
    after: syntax.Command = yield _arrange(rest, known, fresh)
    return syntax.sequence(
        [
            *unset,
            marked,
            syntax.If(
                syntax.Compare("==", syntax.Variable(done), syntax.ONE), syntax.Return(syntax.Variable(out)), after
            ),
        ]
    )


def _store(command: syntax.Command, done: str, out: str) -> Steps[syntax.Command]:
    """Return the well-formed ``command`` with its returns kept in ``out``; ``done`` tells whether there was one."""
    match command:
        case syntax.Return(value):
            return syntax.Sequence((syntax.Assign(out, value), syntax.Assign(done, syntax.ONE)))
        case syntax.If(guard, then, otherwise) if has_return(command):
            return syntax.If(guard, (yield _store(then, done, out)), (yield _store(otherwise, done, out)))
        case syntax.Sequence(parts) if has_return(parts[-1]):
            return syntax.sequence([*parts[:-1], (yield _store(parts[-1], done, out))])
        case _:
            return syntax.sequence([command, syntax.Assign(out, syntax.ZERO), syntax.Assign(done, syntax.ZERO)])


def falls_through(command: syntax.Command) -> bool:
    """Whether some path through the loop-free ``command`` reaches its end without a return."""
    return fold(command, _falls, into=syntax.subcommands)


def _falls(command: syntax.Command, below: list[bool]) -> bool:
    match command:
        case syntax.Return():
            return False
        case syntax.If():
            return any(below)
        case _:
            return isinstance(command, syntax.For) or all(below)


def _surely_assigned(command: syntax.Command, known: frozenset[str]) -> Steps[frozenset[str] | None]:
    """Return the names that have a value after a command if ``known`` have one before; ``None`` if it always returns."""
    match command:
        case syntax.Skip():
            return known
        case syntax.Assign(name, _):
            return known | {name}
        case syntax.Return():
            return None
        case syntax.Sequence(parts):
            current: frozenset[str] | None = known
            for part in parts:
                if current is None:
                    return None
                current = yield _surely_assigned(part, current)
            return current
        case syntax.If(_, then, otherwise):
            first: frozenset[str] | None = yield _surely_assigned(then, known)
            second: frozenset[str] | None = yield _surely_assigned(otherwise, known)
            if first is None or second is None:
                return second if first is None else first
            return first & second
        case syntax.For(_, start, stop, body):
            turned: frozenset[str] | None = yield _surely_assigned(body, known)
            return turned if start < stop else known

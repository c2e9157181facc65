"""Put expressions in the place of variables."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeAlias, TypeVar

from mace.language import syntax
from mace.language.walk import rewrite

Values: TypeAlias = Mapping[str, syntax.Expression]
Kind = TypeVar("Kind", bound=syntax.Node)


def substitute(node: Kind, values: Values) -> Kind:
    """Return an expression, guard or command with the variables named in ``values`` replaced where they are read.

    Only an input can be missing: once something else stands for ``x``, ``Missing(x)`` is false. A loop hides its own variable.
    """
    is_command = isinstance(node, syntax.Command)
    return rewrite(node, partial(_replaced, values), instead=partial(_loop, values) if is_command else None)


def rename(command: syntax.Command, new: Mapping[str, str]) -> syntax.Command:
    """Return the loop-free ``command`` with variables renamed, where they are read and where they are assigned."""
    values = {name: syntax.Variable(other) for name, other in new.items()}

    def change(node: syntax.Node) -> syntax.Node:
        if isinstance(node, syntax.Assign):
            return syntax.Assign(new.get(node.name, node.name), node.value)
        return _replaced(values, node)

    return rewrite(command, change)


def _replaced(values: Values, node: syntax.Node) -> syntax.Node:
    if isinstance(node, syntax.Variable):
        return values.get(node.name, node)
    if isinstance(node, syntax.Missing):
        own = syntax.Variable(node.name)
        return node if values.get(node.name, own) == own else syntax.FALSE
    return node


def _loop(values: Values, node: syntax.Node) -> syntax.Node | None:
    if not isinstance(node, syntax.For):
        return None
    outer = {name: value for name, value in values.items() if name != node.name}
    return syntax.For(node.name, node.start, node.stop, substitute(node.body, outer))

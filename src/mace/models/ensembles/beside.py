"""Models beside each other as one form, each with scores of its own: trees, networks, or a mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mace.exact import Floats
from mace.forms import Composite, Network, Normalised, Part, TreeEnsemble, Voting, Weighted
from mace.forms.sets import Member, MixedSet, NetworkSet, TreeSet, outputs_of
from mace.models.trees.pack import own_outputs, side_by_side
from mace.space import Column, FeatureSpace


def as_set(space: FeatureSpace, members: Sequence[Member]) -> TreeSet | NetworkSet | MixedSet:
    """Return models as one form."""
    if all(isinstance(member, TreeEnsemble) for member in members):
        return _trees(space, members)  # type: ignore[arg-type]
    if all(isinstance(member, Network) for member in members):
        return _networks(space, members)  # type: ignore[arg-type]
    return _mixed(space, members)


def _trees(space: FeatureSpace, members: Sequence[TreeEnsemble]) -> TreeSet:
    return TreeSet(
        space=space,
        columns=tuple(column for member in members for column in member.columns),
        **side_by_side(members, own_outputs(members)),
        base=np.concatenate([member.base for member in members]),
        fixed_order=all(member.fixed_order for member in members),
        is_blockwise=any(member.is_blockwise for member in members),
        unit=max(member.unit for member in members),
        squash=max(member.squash for member in members),
        members=tuple(members),
    )


def _networks(space: FeatureSpace, members: Sequence[Network]) -> NetworkSet:
    """Return networks beside each other: columns of two that hold the same are one, and no unit is connected to those of another."""
    place: dict[tuple[Column, int], int] = {}
    columns: list[Column] = []
    first: list[Floats] = []
    for member in members:
        at = [_named_apart(member.columns, k) for k in range(len(member.columns))]
        for key, column in zip(at, member.columns, strict=True):
            if key not in place:
                place[key] = len(columns)
                columns.append(column)
        first.append(np.zeros((len(member.biases[0]), len(columns))))
        first[-1][:, [place[key] for key in at]] = member.weights[0]
    first = [np.pad(weight, ((0, 0), (0, len(columns) - weight.shape[1]))) for weight in first]
    depth = max(len(member.weights) for member in members)
    layers = [_deepened(member, depth) for member in members]
    return NetworkSet(
        space=space,
        columns=tuple(columns),
        weights=(np.vstack(first), *(_diagonal([each[0][k] for each in layers]) for k in range(1, depth))),
        biases=tuple(np.concatenate([each[1][k] for each in layers]) for k in range(depth)),
        slopes=tuple(np.concatenate([each[2][k] for each in layers]) for k in range(depth - 1)),
        sizes=tuple(np.concatenate([each[3][k] for each in layers]) for k in range(depth)),
        steps=max(member.steps for member in members),
        unit=max(member.unit for member in members),
        squash=max(member.squash for member in members),
        members=tuple(members),
    )


def _named_apart(columns: Sequence[Column], k: int) -> tuple[Column, int]:
    """Return what a column holds, and how many before it hold the same."""
    held = [replace(column, name="") for column in columns[: k + 1]]
    return held[k], held[:k].count(held[k])


def _deepened(form: Network, depth: int) -> tuple[list[Floats], list[Floats], list[Floats], list[Floats]]:
    """Return weights, biases, slopes and sizes of a network whose scores are handed on until it has so many layers."""
    outputs, further = len(form.biases[-1]), depth - len(form.weights)
    none = [np.zeros(outputs)] * further
    sizes = form.sizes if form.sizes is not None else tuple(np.abs(bias) for bias in form.biases)
    return (
        [*form.weights, *[np.eye(outputs)] * further],
        [*form.biases, *none],
        [*form.slopes, *[np.ones(outputs)] * further],
        [*sizes, *none],
    )


def _diagonal(blocks: Sequence[Floats]) -> Floats:
    made = np.zeros((sum(len(block) for block in blocks), sum(block.shape[1] for block in blocks)))
    row = column = 0
    for block in blocks:
        made[row : row + len(block), column : column + block.shape[1]] = block
        row, column = row + len(block), column + block.shape[1]
    return made


def _mixed(space: FeatureSpace, members: Sequence[Member]) -> MixedSet:
    """Return models of several kinds as parts whose scores are added to outputs of their own."""
    outputs, parts, base, begin = sum(map(outputs_of, members)), list[Part](), list[Floats](), 0
    for member in members:
        own = outputs_of(member)
        if isinstance(member, Composite):
            parts += [_placed(part, begin, outputs) for part in member.parts]
            base.append(member.base)
        else:
            parts.append(Weighted(member, np.eye(outputs, own, -begin)))
            base.append(np.zeros(own))
        begin += own
    return MixedSet(
        space,
        tuple(parts),
        np.concatenate(base),
        fixed_order=all(getattr(member, "fixed_order", True) for member in members),
        members=tuple(members),
    )


def _placed(part: Part, begin: int, outputs: int) -> Part:
    """Return a part that adds to outputs so many places later, of so many."""
    if isinstance(part, Voting):
        after = outputs - begin - part.added.shape[1]
        return replace(part, added=np.pad(part.added, ((0, 0), (begin, after))))
    after = outputs - begin - len(part.factors)
    if isinstance(part, Weighted | Normalised):
        return replace(part, factors=np.pad(part.factors, ((begin, after), (0, 0))))
    return replace(part, factors=np.pad(part.factors, (begin, after)))

"""What the last numbers of a network mean: a prediction, probabilities, or classes.

A network of PyTorch or a graph of ONNX says what it computes, not what that stands for. The rule is the same for both,
and is about what the model returns:

- one number is a prediction (a regressor), unless it went through a sigmoid: then it is the probability of the second
  of two classes, which is predicted where it is above one half;
- several numbers are the scores of as many classes, through a softmax or not: the greatest wins, the first of equals;
- labels that the graph itself computes are the prediction.

Classes without labels are called 0, 1, ...; :func:`mace.wrap` gives them names, and makes one number a score of two
classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mace.errors import UnsupportedModel
from mace.forms import Network
from mace.forms.network import SQUASH_UNITS
from mace.models.networks.piecewise import Lowering
from mace.models.networks.rows import Tensor
from mace.space import Column, FeatureSpace, Scalar


@dataclass(frozen=True, slots=True)
class Chances:
    """Numbers after a sigmoid each, or a softmax over all; with the labels that the model returns them by, if it does."""

    logits: Tensor
    kind: Literal["sigmoid", "softmax"]
    labels: tuple[Scalar, ...] | None = None

    def arranged(self, order: NDArray[Any]) -> Chances:
        """Return the probabilities at the given flat positions."""
        if self.kind == "softmax" and order.size != len(self.logits):
            raise UnsupportedModel("part of a softmax cannot be read. Return all of its probabilities.")
        return Chances(self.logits.arranged(order), self.kind)


@dataclass(frozen=True, slots=True)
class Labels:
    """The position of the greatest number, or what stands at that position in ``classes``.

    Attributes
    ----------
    scores : Tensor
        The numbers, before ``squash``.
    classes : tuple of labels
        One a number.
    squash : str
        What the numbers went through before they were compared.
    """

    scores: Tensor
    classes: tuple[Scalar, ...]
    squash: Literal["none", "sigmoid", "softmax"] = "none"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores and how they decide.

    Attributes
    ----------
    scores : Tensor
        One (of two classes, or a prediction), or one a class.
    classes : tuple of labels, optional
        ``None`` for a regressor.
    is_squashed : bool
        Whether the decision is taken after a sigmoid or softmax.
    link : str
        As in :class:`~mace.forms.Network`.
    """

    scores: Tensor
    classes: tuple[Scalar, ...] | None
    is_squashed: bool = False
    link: str = "none"

    def form(self, lowering: Lowering, space: FeatureSpace, columns: tuple[Column, ...]) -> Network:
        """Return the network."""
        return lowering.network(
            self.scores,
            space,
            columns,
            squash=SQUASH_UNITS * lowering.unit if self.is_squashed else Fraction(0),
            link=self.link,
            is_regressor=self.classes is None,
        )


def of_numbers(lowering: Lowering, numbers: Tensor | Chances) -> Outcome:
    """Return what the numbers that a model returns for one row mean."""
    if isinstance(numbers, Tensor):
        if len(numbers) == 1:
            return Outcome(numbers, None, link="identity")
        return Outcome(numbers, _counted(numbers))
    if len(numbers.logits) == 1:
        if numbers.kind == "softmax":
            raise UnsupportedModel("a softmax over one number is always 1. Return several, or use a sigmoid.")
        return Outcome(numbers.logits, (0, 1), is_squashed=True, link="sigmoid")
    return of_labels(lowering, Labels(numbers.logits, _counted(numbers.logits), numbers.kind), numbers)


def of_labels(lowering: Lowering, labels: Labels, numbers: object = None) -> Outcome:
    """Return what labels mean, with the probabilities that are returned beside them, if they are."""
    scores, is_squashed = labels.scores, labels.squash != "none"
    if len(scores) == 1:
        raise UnsupportedModel("the model knows a single class; there is nothing else to become.")
    kind = numbers.kind if isinstance(numbers, Chances) and _belongs(numbers, labels) else "none"
    if len(scores) == 2 and _opposite(scores) and "softmax" not in (kind, labels.squash):
        return Outcome(_only(scores, 1), labels.classes, is_squashed, "sigmoid" if kind == "sigmoid" else "none")
    if labels.squash == "sigmoid":
        raise UnsupportedModel(
            "the greatest of several sigmoids is not told where more than one is rounded to 1. Use a softmax."
        )
    if len(scores) == 2 and kind == "softmax":
        difference = lowering.add(_only(scores, 1), _only(scores, 0), sign=-1)
        return Outcome(difference, labels.classes, is_squashed, "sigmoid")
    return Outcome(scores, labels.classes, is_squashed)


def codes_of(numbers: NDArray[Any], *, is_chance: bool) -> NDArray[np.intp]:
    """Return the class of each row of returned numbers: above one half or 0 where it is one number, else the
    greatest."""
    if numbers.shape[1] == 1:
        above: NDArray[np.intp] = (numbers[:, 0] > (0.5 if is_chance else 0)).astype(np.intp)
        return above
    greatest: NDArray[np.intp] = numbers.argmax(axis=1)
    return greatest


def both_chances(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the probability of each class, where only the second's is returned."""
    return numbers if numbers.shape[1] > 1 else np.column_stack([1 - numbers[:, 0], numbers[:, 0]])


def _counted(numbers: Tensor) -> tuple[Scalar, ...]:
    return tuple(range(len(numbers)))


def _only(tensor: Tensor, position: int) -> Tensor:
    return tensor.arranged(np.array([[position]]))


def _belongs(chances: Chances, labels: Labels) -> bool:
    return chances.labels in (None, labels.classes) and _equal(chances.logits, labels.scores)


def _equal(first: Tensor, second: Tensor) -> bool:
    width = min(first.weights.shape[1], second.weights.shape[1])
    return (
        np.array_equal(first.weights[:, :width], second.weights[:, :width])
        and not first.weights[:, width:].any()
        and not second.weights[:, width:].any()
        and np.array_equal(first.shift, second.shift)
    )


def _opposite(pair: Tensor) -> bool:
    return np.array_equal(pair.weights[0], -pair.weights[1]) and bool(pair.shift[0] == -pair.shift[1])

"""What reading a model gives: its form, its classes, and a way to ask the real thing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mace.errors import InvalidTarget, UnsupportedModel, did_you_mean, listed
from mace.forms import Form
from mace.forms.sets import middle, plurality, unpacked
from mace.space import Point, Scalar
from mace.space.features import plain_scalar

Ask = Callable[[Sequence[Point]], list[Fraction]]
"""Asks the user's own object about points, in one call; gives the outcomes' codes."""


Rate = Callable[[Sequence[Point], int], list[Fraction]]
"""Asks the user's own object for the probability of the class with a code."""

AskRated = Callable[[Sequence[Point]], list[tuple[Fraction, tuple[Fraction, ...]]]]
"""Asks the user's own object, in one call, for the outcomes' codes and for the probability, or score, of every class."""


class FurtherFeatures(UnsupportedModel):
    """The space has features that the model was not fitted on; without them it could be read."""

    def __init__(self, message: str, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


def check_features(family: str, known: Sequence[str], given: Sequence[str]) -> None:
    """Refuse a space that lacks a feature of a model, or has one that the model was not fitted on."""
    absent = [name for name in known if name not in given]
    if absent:
        raise UnsupportedModel(
            f"{family} was fitted on {listed(map(repr, absent), 20)} too, which the space does not have.{did_you_mean(absent[0], given)} "
            "Make the space of all columns that the model was fitted on: FeatureSpace.from_frame(X_train)."
        )
    further = [name for name in given if name not in known]
    if further:
        raise FurtherFeatures(
            f"{family} was not fitted on {listed(map(repr, further), 20)}, which the space has. Leave out what the model does not know: "
            f"space.without({', '.join(map(repr, further[:3]))}{', ...' if further[3:] else ''}).",
            further,
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """A model as read.

    Attributes
    ----------
    family : str
        What the model is, for people: ``"RandomForestClassifier"``.
    form : Form
        The model as mathematics.
    ask : callable
        Asks the user's own object; a point asked alone is one row alone.
    classes : tuple of labels, optional
        The labels by code; ``None`` where the codes are themselves the outcomes (a regressor, a function that returns numbers).
    is_regressor : bool
        Whether the outcomes are predictions of a number rather than classes.
    rate : callable, optional
        Asks the user's own object for the probability of a class.
    score : callable, optional
        Where it reports no probabilities: asks its ``decision_function`` for the score of a class.
    threshold : float, optional
        Where the user chose one: from which probability (score) on the second class is predicted.
    members : tuple of Reading
        Of a set of models: each. An outcome is then those of all members, packed (``mace.forms.sets``).
    names : tuple of str or int
        What they are called.
    at_least : int
        How many of them must reach a target.
    base : int
        In which their outcomes are packed.
    ask_rated : callable, optional
        Where its ``predict`` follows from the probabilities (scores, where it has none): asks for both at once.
    """

    family: str
    form: Form
    ask: Ask
    classes: tuple[Scalar, ...] | None
    is_regressor: bool = False
    rate: Rate | None = None
    score: Rate | None = None
    threshold: float | None = None
    members: tuple[Reading, ...] = ()
    names: tuple[Scalar, ...] = ()
    at_least: int = 0
    base: int = 0
    ask_rated: AskRated | None = None

    def said(self, code: Fraction) -> list[Fraction]:
        """Return the codes of the outcomes of a set's models."""
        return unpacked(code, self.base, len(self.members))

    def label(self, code: Fraction) -> Scalar:
        """Return the label of an outcome's code; of a set the one that most of its models give, or the median of their numbers."""
        if self.members:
            said = self.said(code)
            code = middle(said) if self.classes is None else plurality(said)
        if self.classes is not None:
            return self.classes[int(code)]
        return int(code) if code.denominator == 1 else float(code)

    def code(self, label: object) -> Fraction:
        """Return the code of a label; an unknown label is an :class:`InvalidTarget`."""
        label = plain_scalar(label)
        if not isinstance(label, str | int | float):
            raise InvalidTarget(
                f"{label!r:.80} is not a label, but a {type(label).__name__}. Give one label, mace.any_of(labels), "
                "or mace.at_least(0.7, label) for a probability."
            )
        if self.classes is None:
            if not isinstance(label, str) and math.isfinite(label):
                return Fraction(label)
            raise InvalidTarget(f"{label!r} is not a number, and {self.family} returns numbers.")
        for position, known in enumerate(self.classes):
            if known == label and isinstance(known, str) == isinstance(label, str):
                return Fraction(position)
        listed = ", ".join(map(repr, self.classes))
        raise InvalidTarget(
            f"{label!r} is not a class of the model. Classes: {listed}.{did_you_mean(label, self.classes)}"
        )

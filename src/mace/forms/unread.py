"""A model that could not be read: nothing is known of it but what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from mace.errors import UnsupportedModel
from mace.forms.decision import Goal
from mace.forms.effects import EffectsForm
from mace.forms.form import Box, Form
from mace.space import FeatureSpace


@dataclass(frozen=True)
class UnreadForm(Form):
    """A model that is only asked.

    Attributes
    ----------
    space : FeatureSpace
        The features.
    said : tuple of Fraction
        What the model answers to a few rows of the space, the same ones always: by this it is recognised.
    """

    space: FeatureSpace
    said: tuple[Fraction, ...]

    def program(self) -> NoReturn:
        """Raise: there is none."""
        raise UnsupportedModel("the model could not be read, so it has no program or formula.")

    def definitions(self, goal: Goal) -> NoReturn:
        """Raise: there are none."""
        self.program()

    def possible(self, goal: Goal, box: Box) -> NoReturn:
        """Raise: there is no formula."""
        self.program()

    def certain(self, goal: Goal, box: Box) -> NoReturn:
        """Raise: there is no formula."""
        self.program()


def is_unread(form: Form) -> bool:
    """Return whether a model, behind structural equations or not, could not be read."""
    return isinstance(form.inner if isinstance(form, EffectsForm) else form, UnreadForm)

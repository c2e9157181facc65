"""What a read model is: a tree ensemble, a network, several of these, a function, or what could not be read."""

from mace.forms.composite import Composite
from mace.forms.decision import (
    Alternatives,
    Goal,
    Interval,
    Lead,
    Margin,
    Negated,
    Outcomes,
    Stated,
    clearance,
    innermost,
    negated,
    winner,
)
from mace.forms.effects import Effects, EffectsForm, Equation
from mace.forms.form import RESULT, RESULT_PREFIX, Box, Form
from mace.forms.function import FunctionForm
from mace.forms.network import Network
from mace.forms.normalised import Normalised, Sigmoid
from mace.forms.oblique import ObliqueTrees
from mace.forms.parts import Curved, Part, Scored, Voting, Weighted
from mace.forms.polyline import Polyline
from mace.forms.trees import TreeEnsemble, divisor, same_for_all
from mace.forms.unread import UnreadForm, is_unread

__all__ = [
    "RESULT",
    "RESULT_PREFIX",
    "Alternatives",
    "Box",
    "Composite",
    "Curved",
    "Effects",
    "EffectsForm",
    "Equation",
    "Form",
    "FunctionForm",
    "Goal",
    "Interval",
    "Lead",
    "Margin",
    "Negated",
    "Network",
    "Normalised",
    "ObliqueTrees",
    "Outcomes",
    "Part",
    "Polyline",
    "Scored",
    "Sigmoid",
    "Stated",
    "TreeEnsemble",
    "UnreadForm",
    "Voting",
    "Weighted",
    "clearance",
    "divisor",
    "innermost",
    "is_unread",
    "negated",
    "same_for_all",
    "winner",
]

"""What a read model is: a tree ensemble, a network, or a function."""

from mace.forms.decision import Alternatives, Goal, Interval, Lead, Margin, Outcomes, clearance, winner
from mace.forms.effects import Effects, EffectsForm, Equation
from mace.forms.form import PREFIX, RESULT, Box, Form
from mace.forms.function import FunctionForm
from mace.forms.network import Network
from mace.forms.trees import TreeEnsemble

__all__ = [
    "PREFIX",
    "RESULT",
    "Alternatives",
    "Box",
    "Effects",
    "EffectsForm",
    "Equation",
    "Form",
    "FunctionForm",
    "Goal",
    "Interval",
    "Lead",
    "Margin",
    "Network",
    "Outcomes",
    "TreeEnsemble",
    "clearance",
    "winner",
]

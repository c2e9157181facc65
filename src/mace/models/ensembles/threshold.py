"""A threshold on what a binary model reports, as the decision.

The number that is compared may be the model's score, the sigmoid of it, or a share of trees. The form that decides adds a
constant to the score, or to the sum of the shares; how uncertain the boundary is by rounding goes into ``squash``, and inside that
band the real model is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mace.errors import UnsupportedModel
from mace.exact import gamma
from mace.forms import Composite, Form, Network, TreeEnsemble, Voting
from mace.forms.polyline import logit

SCORE, CHANCE = "decision_function", "predict_proba"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where the second class begins.

    Attributes
    ----------
    at : float
        The number.
    slack : float
        How far off it the library's arithmetic may see the boundary.
    is_above : bool
        Whether the second class is above it.
    ties_second : bool
        Whether the number itself belongs to the second class.
    """

    at: float
    slack: float
    is_above: bool = True
    ties_second: bool = False


def response(estimator: Any, names: tuple[str, ...]) -> str:
    """Return the first of these methods that an estimator has."""
    found = next((name for name in names if hasattr(estimator, name)), None)
    if found is None:
        raise UnsupportedModel(f"{type(estimator).__name__} has none of {', '.join(names)}.")
    return found


def thresholded(form: Form, family: str, kind: str, threshold: Threshold) -> Form:
    """Return the form that decides by a threshold on the score, or on the probability of the second class, of a binary model.

    Parameters
    ----------
    form : Form
        The model as read.
    family : str
        What it is called, for messages.
    kind : {"decision_function", "predict_proba"}
        What is compared.
    threshold : Threshold
        With what.
    """
    if isinstance(form, TreeEnsemble) and form.link == "mean" and form.outputs == 2 and kind == CHANCE:
        return _shares(form, threshold)
    if isinstance(form, Composite) and form.link == "chance" and kind == CHANCE:
        return _mean(form, threshold)
    if kind == CHANCE:
        threshold = as_score(form, family, threshold)
    if isinstance(form, TreeEnsemble) and form.outputs == 1:
        return _sum(form, threshold)
    if isinstance(form, Network) and form.is_binary and not form.is_regressor:
        return _last_layer(form, threshold)
    raise UnsupportedModel(
        f"cannot read a threshold on {kind} of {family}. Supported: binary linear models, networks and trees."
    )


def as_score(form: Form, family: str, threshold: Threshold) -> Threshold:
    """Return a threshold on the probability as one on the score."""
    link = getattr(form, "link", "none")
    unit = float(form.unit) if isinstance(form, TreeEnsemble | Network) else 0.0
    if link == "clip":
        if not 0 < threshold.at < 1:
            raise _rounded_off(family, threshold.at)
        return replace(threshold, at=2 * threshold.at - 1, slack=2 * threshold.slack + 8 * unit)
    if link not in ("sigmoid", "logistic"):
        raise UnsupportedModel(
            f"cannot read a threshold on the probability of {family}: it is not one sigmoid of one score, nor a mean of trees."
        )
    reach = threshold.slack + 16 * unit
    if not 2 * reach < threshold.at < 1 - 2 * reach:
        raise _rounded_off(family, threshold.at)
    at = logit(threshold.at)
    wrong = max(logit(threshold.at + reach) - at, at - logit(threshold.at - reach)) + 1e-14 * (1 + abs(at))
    return replace(threshold, at=at, slack=wrong)


def _rounded_off(family: str, at: float) -> UnsupportedModel:
    return UnsupportedModel(
        f"a threshold of {at!r} on the probability of {family} is not told from 0 or 1 but by rounding. Choose one between."
    )


def _shares(form: TreeEnsemble, threshold: Threshold) -> TreeEnsemble:
    """Return the sum of the trees' shares of the second class, less as many thresholds."""
    trees = len(form.roots)
    sign = 1.0 if threshold.is_above else -1.0
    slack = trees * (Fraction(threshold.slack) + 4 * gamma(trees + 8, form.unit)) * (1 + Fraction(1, 2**20))
    return replace(
        form,
        value=sign * form.value[:, 1:],
        base=np.array([-sign * trees * threshold.at]),
        squash=slack,
        ties_last=threshold.ties_second,
        link="none",
    )


def _mean(form: Composite, threshold: Threshold) -> Composite:
    """Return the mean probability of the second class, less the threshold; its rounding is part of the form's own."""
    sign = 1.0 if threshold.is_above else -1.0
    parts: Any = tuple(
        replace(part, added=sign * part.added)
        if isinstance(part, Voting)
        else replace(part, factors=sign * part.factors)
        for part in form.parts
    )
    return replace(form, parts=parts, base=sign * (form.base + 0.5 - threshold.at), link="none")


def _sum(form: TreeEnsemble, threshold: Threshold) -> TreeEnsemble:
    sign = 1.0 if threshold.is_above else -1.0
    slack = form.rounding + Fraction(threshold.slack) + 8 * form.unit * Fraction(abs(threshold.at) + 1)
    return replace(
        form,
        value=sign * form.value,
        base=sign * (form.base - threshold.at),
        squash=slack,
        ties_last=threshold.ties_second,
        link="none",
    )


def _last_layer(form: Network, threshold: Threshold) -> Network:
    sign = 1.0 if threshold.is_above else -1.0
    slack = Fraction(threshold.slack)
    return form.rescaled(
        sign, -sign * threshold.at, steps=2, squash=slack, ties_last=threshold.ties_second, link="none"
    )

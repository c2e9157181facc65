"""A set of models from one recipe: the same estimator, fitted on resampled rows again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mace.errors import InvalidOption
from mace.models.sets import MOST_MODELS, ModelSet, agree

MOST_DRAWS = 100
"""How often rows are drawn anew where a class is missing among them; after that each class is drawn from by itself."""


def bootstrap(
    model: Any,
    X: Any,
    y: Any,
    n: int = 10,
    *,
    at_least: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    progress: bool = False,
) -> ModelSet:
    """Fit copies of a model on rows drawn with replacement: the models that another sample of the same people could have given.

    Parameters
    ----------
    model : estimator or pipeline
        The recipe, fitted or not; it stays as it is. Each copy has its parameters, its ``random_state`` among them.
    X, y : data frame or array, and labels or numbers
        The rows that it was fitted on.
    n : int
        How many models.
    at_least : int, optional
        How many of them must reach a target, as for :func:`~mace.agree`.
    random_state : int or RandomState, optional
        What the draws depend on; the same number gives the same models.
    on_progress : callable, optional
        Receives how many models are fitted, and ``n``.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    ModelSet
        For :class:`~mace.Explainer`, and a sequence of the models.

    Raises
    ------
    InvalidOption
        The model cannot be copied, or ``n`` is no number of models.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> import mace
    >>> X, y = pd.DataFrame({"income": [10, 20, 30, 40, 50, 60]}), [0, 0, 1, 0, 1, 1]
    >>> models = mace.bootstrap(LogisticRegression(), X, y, n=5, random_state=0)
    >>> mace.Explainer(models, mace.FeatureSpace.from_frame(X)).explain([20], 1).held_by
    (0, 1, 2, 3, 4)
    """
    from rich.console import Console
    from rich.progress import track
    from sklearn.base import clone
    from sklearn.utils import check_random_state

    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_MODELS:
        raise InvalidOption(f"bootstrap: n={n!r}; it must be a whole number from 1 to {MOST_MODELS:,}.")
    random = check_random_state(random_state)
    fitted = []
    console = Console(stderr=True)
    for done in track(
        range(n), "fitting", console=console, transient=True, disable=not (progress and console.is_terminal)
    ):
        try:
            copy = clone(model)
        except TypeError as error:
            raise InvalidOption(
                f"bootstrap: {type(model).__name__} is no estimator that can be copied and fitted. Give one of scikit-learn's kind, or fit "
                "the models yourself: mace.agree([...])."
            ) from error
        fitted.append(copy.fit(*_drawn(copy, X, y, random)))
        if on_progress is not None:
            on_progress(done + 1, n)
    return agree(fitted, at_least)


def _drawn(model: Any, X: Any, y: Any, random: np.random.RandomState) -> tuple[Any, Any]:
    """Return as many rows as there are, drawn with replacement, those of every class among them."""
    from sklearn.base import is_classifier
    from sklearn.utils import resample

    labels = len(np.unique(y)) if is_classifier(model) else 0
    for _ in range(MOST_DRAWS):
        rows, outcomes = resample(X, y, random_state=random)
        if not labels or len(np.unique(outcomes)) == labels:
            return rows, outcomes
    rows, outcomes = resample(X, y, random_state=random, stratify=y)
    return rows, outcomes

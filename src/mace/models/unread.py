"""Models that cannot be read, but asked: any estimator with ``predict``, and functions behind which anything may stand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mace.errors import InvalidOption, UnsupportedModel
from mace.forms import UnreadForm
from mace.models import deployed_of, read
from mace.models.deployed import Deployed, array_of, ask_deployed, bare_columns, in_order, rate_deployed, rows_of
from mace.models.estimator import check_width
from mace.models.probe import probe_points
from mace.models.reading import FurtherFeatures, Reading
from mace.models.sets import is_set, read_set
from mace.models.wrapped import Endpoint, Wrapped
from mace.space import FeatureSpace, Point

UNREAD = ("search",)
"""What may be done with a model that cannot be read."""

WAY_OUT = 'Or search without a proof: mace.Explainer(model, space, unread="search").'
WAY_OUT_OF_FUNCTIONS = (
    "Or search without a proof: "
    'mace.Explainer(mace.wrap(predict=f, classes=[...]), space, unread="search"), where f takes a frame and returns labels.'
)

DAMAGED = "damaged"
"""What a refusal says of a model that is not asked either: a library may crash on it."""

Rows = Callable[[Sequence[Point]], Any]


def read_or_ask(model: Any, space: FeatureSpace, unread: str | None) -> Reading:
    """Read a model exactly; where that cannot be done, and ``unread`` is given, only ask it.

    Raises
    ------
    UnsupportedModel
        It can neither be read nor asked, or may not be asked only.
    InvalidOption
        ``unread`` is not known.
    """
    if unread is not None and unread not in UNREAD:
        raise InvalidOption(
            f"unread={unread!r:.40}; it must be 'search', or None to refuse models that cannot be read."
        )
    try:
        return read(model, space)
    except UnsupportedModel as error:
        if DAMAGED in str(error) or isinstance(error, FurtherFeatures):
            raise
        try:
            asked = _asked(model, space)
        except UnsupportedModel as also:
            if unread is not None:
                raise also from error
            if isinstance(also, FurtherFeatures):
                raise UnsupportedModel(f"{error} {WAY_OUT}") from error
            if callable(model) and not isinstance(model, type):
                raise UnsupportedModel(f"{error} {WAY_OUT_OF_FUNCTIONS}") from error
            raise error from error.__cause__
        if unread is None:
            raise UnsupportedModel(f"{error} {WAY_OUT}") from error
    return asked


def _asked(model: Any, space: FeatureSpace) -> Reading:
    """Return a model that is only asked, after asking it about a few rows; a set has a member that is."""
    if is_set(model):
        return read_set(model, space, partial(read_or_ask, unread="search"), is_asked=True)
    family, deployed, rows = _as_asked(model, space)
    ask = ask_deployed(deployed, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = tuple(ask(probe_points(space)))
    return Reading(
        family=family,
        form=UnreadForm(space, said),
        ask=ask,
        classes=deployed.classes,
        is_regressor=deployed.classes is None,
        rate=rate_deployed(deployed, rows),
    )


def _as_asked(model: Any, space: FeatureSpace) -> tuple[str, Deployed, Rows]:
    """Return what a model is called, how it is asked, and how points become its rows."""
    family = type(model).__name__
    if isinstance(model, Endpoint):
        return getattr(model.function, "__name__", family), model.deployed, space.frame_of
    if isinstance(model, Wrapped):
        family = type(model.model).__name__
        encoded = None if model.encoder is None else model.rows(space)
        return family, model.deployed, encoded or _rows(family, model.model, model.deployed, space)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise UnsupportedModel(
            f"{family} has no predict to ask. Give an object that has, or a function from frames to labels: "
            "mace.wrap(predict=f, classes=[...])."
        )
    deployed = deployed_of(model, is_read=False)
    return family, deployed, _rows(family, model, deployed, space)


def _rows(family: str, model: Any, deployed: Deployed, space: FeatureSpace) -> Rows:
    """Return how points become the rows that a model was fitted on: a frame of its columns, or an array."""
    if deployed.native or deployed.listed:
        columns = bare_columns(family, deployed, space)
        return lambda points: rows_of(deployed, columns, points, space)
    if deployed.names is None:
        width = getattr(model, "n_features_in_", None)
        if width is None:
            return space.frame_of
        check_width(family, int(width), space.names)
        return lambda points: array_of(space.frame_of(points), space)
    ordered = in_order(family, deployed, space)
    return lambda points: space.frame_of(points)[ordered]

"""A network without labels or an encoder of its own, or a bare function, made a model over the original features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mace.errors import InvalidOption, UnsupportedModel
from mace.forms import Form, Network
from mace.models.deployed import Deployed
from mace.space import Column, FeatureSpace, Point, Scalar
from mace.space.features import plain_scalar

if TYPE_CHECKING:
    from mace.space.encoder import Encoder


@dataclass(frozen=True, slots=True, eq=False)
class Wrapped:
    """A model with an encoder before it and labels after it; see :func:`wrap`."""

    model: Any
    encoder: Encoder | None
    classes: tuple[Scalar, ...] | None
    deployed: Deployed

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the label, or the number, of each row over the original features."""
        return np.asarray(self.deployed.predict(self.encoded(rows)))

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return the probability of each class, a column a class."""
        if self.deployed.probabilities is None:
            raise AttributeError("the model returns no probabilities.")
        return np.asarray(self.deployed.probabilities(self.encoded(rows)))

    def encoded(self, rows: Any) -> Any:
        """Return rows as the model takes them."""
        columns = rows if self.encoder is None else self.encoder.transform(rows)
        if self.deployed.names is None or isinstance(columns, pd.DataFrame):
            return columns
        return pd.DataFrame(columns, columns=list(self.deployed.names))

    def columns(self, space: FeatureSpace) -> tuple[Column, ...] | None:
        """Return the encoder's columns; ``None`` without one."""
        from mace.models.preprocessing.pipeline import encoder_columns

        return None if self.encoder is None else encoder_columns(self.encoder, space)

    def rows(self, space: FeatureSpace) -> Callable[[Sequence[Point]], Any]:
        """Return how points become the model's rows, by the encoder itself."""
        assert self.encoder is not None
        names = list(self.encoder.space_)
        return lambda points: self.encoded(space.frame_of(points)[names])

    def relabelled(self, form: Form) -> Form:
        """Return the form with the meaning that the labels give it."""
        if self.classes is None or not getattr(form, "is_regressor", False):
            return form
        if not isinstance(form, Network):
            raise UnsupportedModel(
                f"{type(self.model).__name__} predicts numbers; wrap gives classes to the scores of networks only. Leave classes out."
            )
        return replace(form, is_regressor=False, link="none")


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """Functions that answer frames over the original features, whatever is behind them; see :func:`mace.wrap`."""

    function: Callable[[Any], Any]
    probabilities: Callable[[Any], Any] | None
    classes: tuple[Scalar, ...] | None

    def predict(self, rows: Any) -> NDArray[Any]:
        """Return the label, or the number, of each row."""
        return np.asarray(self.function(rows))

    def predict_proba(self, rows: Any) -> NDArray[Any]:
        """Return the probability of each class, a column a class."""
        if self.probabilities is None:
            raise AttributeError("no function for probabilities was given.")
        return np.asarray(self.probabilities(rows))

    @property
    def deployed(self) -> Deployed:
        """How it is asked."""
        return Deployed(self.function, self.probabilities, self.classes, None)


def wrap(
    model: Any = None,
    *,
    encoder: Encoder | None = None,
    classes: Sequence[object] | None = None,
    predict: Callable[[pd.DataFrame], Any] | None = None,
    predict_proba: Callable[[pd.DataFrame], Any] | None = None,
) -> Wrapped | Endpoint:
    """Say how a network is used that has neither an encoder nor labels of its own (a PyTorch module, an ONNX model, a
    bare booster), or make a model of a function that is only asked.

    Parameters
    ----------
    model : object
        The network.
    encoder : Encoder, optional
        The fitted encoder that makes its input of the original features. Without one the features are its columns, in
        the space's order.
    classes : sequence of labels, optional
        What its classes are called, in the order of its outputs; 0, 1, ... where not given. With two classes, a network
        that returns one number without a sigmoid is read as a score: above 0 is the second class. Without classes that
        number is a prediction.
    predict : callable, optional
        Instead of ``model``: a function that takes a frame over the original features and returns a label for each row, one of
        ``classes``, or a number where no classes are given. Whatever answers, a service elsewhere, say, is never read: explain it
        with ``Explainer(..., unread="search")``.
    predict_proba : callable, optional
        With ``predict``: a function from the same frame to the probabilities, a column a class, for targets that are about these.

    Returns
    -------
    Wrapped or Endpoint
        A model for :class:`~mace.Explainer`, with ``predict`` (and ``predict_proba``) over the original features.

    Raises
    ------
    UnsupportedModel
        The model cannot be read.
    InvalidOption
        The encoder is not fitted, there are not as many labels as classes, or the options do not belong together.
    """
    if predict is not None or predict_proba is not None or model is None:
        return _endpoint(model, encoder, classes, predict, predict_proba)
    from mace.models import deployed_of, is_registered

    if encoder is not None and not hasattr(encoder, "columns_"):
        raise InvalidOption(f"encoder={encoder!r:.80}; give a fitted mace.Encoder.")
    # A model that no reader knows is refused by whoever reads it, and can be asked where that is wanted.
    plain = deployed_of(model, is_read=is_registered(model) or not hasattr(model, "predict"))
    if classes is None:
        return Wrapped(model, encoder, None, plain)
    labels = _labels(classes)
    return Wrapped(model, encoder, labels, _labelled(plain, labels, type(model).__name__))


def _endpoint(model: Any, encoder: Encoder | None, classes: Sequence[object] | None, *functions: Any) -> Endpoint:
    predict, predict_proba = functions
    if model is not None or encoder is not None:
        raise InvalidOption("wrap: predict= takes the place of a model and its encoder. Encode inside of the function.")
    if not callable(predict):
        raise InvalidOption(
            f"wrap: predict={predict!r:.80}; give a model, or a function from a frame to labels: wrap(predict=f, classes=[...])."
        )
    if predict_proba is not None and (classes is None or not callable(predict_proba)):
        raise InvalidOption("wrap: predict_proba= is a function from a frame to a column for each of classes=[...].")
    return Endpoint(predict, predict_proba, None if classes is None else _labels(classes))


def _labels(classes: Sequence[object]) -> tuple[Scalar, ...]:
    labels = () if isinstance(classes, str) else tuple(plain_scalar(label) for label in classes)
    if len(labels) < 2 or len(set(labels)) < len(labels) or not all(isinstance(x, str | int | float) for x in labels):
        raise InvalidOption(f"classes={classes!r}; give a list of at least two different labels.")
    return labels  # type: ignore[return-value]


def _labelled(plain: Deployed, labels: tuple[Scalar, ...], family: str) -> Deployed:
    named = np.array(labels, dtype=object)
    if plain.classes is None:
        if len(labels) != 2:
            raise InvalidOption(
                f"{family} returns one number, a score of two classes; {len(labels)} labels were given."
            )
        return replace(
            plain,
            predict=lambda rows: named[(np.ravel(plain.predict(rows)) > 0).astype(int)],
            probabilities=None,
            classes=labels,
        )
    if plain.classes != tuple(range(len(plain.classes))):
        raise InvalidOption(f"{family} has labels of its own: {', '.join(map(str, plain.classes))}. Leave classes out.")
    if len(labels) != len(plain.classes):
        raise InvalidOption(f"{family} has {len(plain.classes)} classes; {len(labels)} labels were given.")
    return replace(plain, predict=lambda rows: named[np.ravel(plain.predict(rows)).astype(int)], classes=labels)

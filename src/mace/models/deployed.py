"""The user's own object: its columns, its classes, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mace.errors import MaceError, UnsupportedModel, in_a_line
from mace.exact import rounded_in
from mace.forms import Composite, Form, TreeEnsemble
from mace.forms.scoring import column_values
from mace.models.reading import Ask, AskRated, Rate, check_features
from mace.space import Categorical, Column, Date, Feature, FeatureSpace, Ordinal, Point, Real, Scalar, numeric_columns
from mace.space.features import Level, is_missing, plain_scalar

Matrix = Any
"""What a model takes: a float64 array, or a data frame."""


@dataclass(frozen=True, slots=True)
class Native(Column):
    """A column that the model takes as a pandas category and encodes by itself.

    Attributes
    ----------
    table : tuple of float
        The model's own code of each level, NaN where the model does not know it.
    labels : tuple of levels
        The levels, as the model is given them.
    """

    labels: tuple[Level, ...] = ()


@dataclass(frozen=True, slots=True)
class Deployed:
    """A fitted model as it is asked.

    Attributes
    ----------
    predict : callable
        Takes rows, gives labels or numbers.
    probabilities : callable, optional
        Takes rows, gives a column a class.
    classes : tuple of labels, optional
        The labels by code; ``None`` for a regressor.
    names : tuple of str, optional
        The columns of the frame that it was fitted on; ``None`` where it was an array.
    native : mapping of int to levels
        The columns that must come as pandas categories, each with the model's own list of categories by code; ``None`` where it
        has no codes.
    listed : sequence of levels
        The categories of every pandas category, in the order of the columns, where the model does not say which columns these are:
        features of the space whose levels are among them.
    is_probed : bool
        Whether the form is compared with the model on a few rows when it is read.
    written : callable
        How the model writes the name of a column: ``names`` are such.
    decision : callable, optional
        Takes rows, gives a score a class, or that of the second of two.
    threshold : float, optional
        Where the user chose one: from which probability (score, where there is none) on the second class is predicted.
    is_by_probability : bool
        Whether ``predict`` asks for the probabilities, and gives the first class with the greatest.
    is_by_order : bool
        Whether ``predict`` gives the class with the greatest of the numbers of which the probabilities are made without changing their
        order: it follows from the probabilities (from the scores, where there are none), but where these are equal to rounding.
    labels : callable, optional
        Gives the labels as the model has them now: what does not ask ``predict`` looks here whether they were edited.
    """

    predict: Callable[[Matrix], Any]
    probabilities: Callable[[Matrix], Any] | None
    classes: tuple[Scalar, ...] | None
    names: tuple[str, ...] | None
    native: Mapping[int, Sequence[Level] | None] = field(default_factory=dict)
    listed: Sequence[Sequence[Level]] = ()
    is_probed: bool = False
    written: Callable[[str], str] = str
    decision: Callable[[Matrix], Any] | None = None
    threshold: float | None = None
    is_by_probability: bool = False
    is_by_order: bool = False
    labels: Callable[[], tuple[Scalar, ...] | None] | None = None


def bare_columns(family: str, deployed: Deployed, space: FeatureSpace) -> tuple[Column, ...]:
    """Return the columns of a model fitted directly on the space's features: in its own order, or the space's where it knows no names."""
    columns: list[Column] = []
    order = in_order(family, deployed, space)
    native = _placed(family, deployed.listed, [space[name] for name in order]) if deployed.listed else deployed.native
    for place, name in enumerate(order):
        index = space.index(name)
        if place in native:
            columns.append(_native(name, index, space, native[place]))
        else:
            columns += _numeric(family, name, index, FeatureSpace({name: space[name]}))
    if not space.has_dtypes:
        return tuple(columns)
    kind = handed(rows_of(deployed, columns, [space.some_point()], space))
    return tuple(replace(column, handed=kind) for column in columns)


def in_order(family: str, deployed: Deployed, space: FeatureSpace) -> list[str]:
    """Return the features in the order of the model's columns."""
    written = list(map(deployed.written, space))
    if deployed.names is None or deployed.names == tuple(written):
        return list(space)
    if len(set(written)) < len(written):
        raise UnsupportedModel(
            f"{family} was fitted on the columns {', '.join(deployed.names)}; the space has {', '.join(space)}, of which it cannot "
            "tell some apart. Write the space in the model's order."
        )
    names = dict(zip(written, space, strict=True))
    check_features(family, [names.get(name, name) for name in deployed.names], space.names)
    return [names[name] for name in deployed.names]


def _placed(
    family: str, listed: Sequence[Sequence[Level]], features: Sequence[Feature]
) -> dict[int, Sequence[Level] | None]:
    """Return the one way to give lists of categories, in order, to features with levels among them."""
    known = [{_kind(level) for level in levels} for levels in listed]
    own = {
        j: {_kind(level) for level in feature.levels if not is_missing(level)}
        for j, feature in enumerate(features)
        if isinstance(feature, Ordinal | Categorical)
    }
    ways = [
        chosen
        for chosen in combinations(own, len(listed))
        if all(own[j] <= levels for j, levels in zip(chosen, known, strict=True))
    ]
    if len(ways) != 1:
        shown = "; ".join(", ".join(map(str, levels[:6])) for levels in listed)
        raise UnsupportedModel(
            f"cannot read {family}: it was fitted on ordered category columns and does not say which, and the space has "
            f"{len(ways) or 'no'} ways to place their categories ({shown}). Declare each as mace.ordinal([...]) or mace.categorical([...]) "
            "with levels of its own, or fit it on the codes of mace.Encoder(space, categorical='codes')."
        )
    return dict(zip(ways[0], listed, strict=True))


def _numeric(family: str, name: str, index: int, alone: FeatureSpace) -> list[Column]:
    if isinstance(alone[name], Date):
        raise UnsupportedModel(
            f"{family} takes numbers, and {name!r} is a date. Put an encoder before it, which makes days of dates: "
            "make_pipeline(mace.Encoder(space), model), or FunctionTransformer(mace.days) (years, months, weekdays) for these columns."
        )
    columns = numeric_columns(alone)
    if columns is None:
        raise UnsupportedModel(
            f"{family} takes numbers, and {name!r} has text levels. "
            "Put an encoder before it: make_pipeline(mace.Encoder(space), model), or mace.wrap(model, encoder=...) for a network."
        )
    if columns[0].table is not None and np.isnan(columns[0].table).any():
        raise UnsupportedModel(
            f"{name!r} has a missing level among numbers, which reach {family} as they are. Make it a number that may be missing: "
            f"FeatureSpace.replace({name}=mace.integer(..., missing=True))."
        )
    return [Column(name, index, columns[0].table)]


def _native(name: str, index: int, space: FeatureSpace, known: Sequence[Level] | None) -> Native:
    feature = space[name]
    if not isinstance(feature, Ordinal | Categorical):
        raise UnsupportedModel(
            f"{name!r} is a category to the model and {type(feature).__name__.lower()} in the space. "
            f"Declare its levels: FeatureSpace.replace({name}=mace.categorical([...]))."
        )
    codes = {_kind(level): float(code) for code, level in enumerate(feature.levels if known is None else known)}
    table = tuple(np.nan if is_missing(level) else codes.get(_kind(level), np.nan) for level in feature.levels)
    return Native(name, index, table, feature.levels)


def _kind(level: object) -> tuple[bool, object]:
    plain = plain_scalar(level)
    return isinstance(plain, str), plain


def handed(rows: Matrix) -> str:
    """Return the dtype of the array that an estimator makes of rows."""
    if not isinstance(rows, pd.DataFrame):
        return str(rows.dtype)
    kinds = [dtype for dtype in rows.dtypes if isinstance(dtype, np.dtype) and dtype.kind != "M"] or [
        np.dtype(np.float64)
    ]
    kinds += [np.dtype(np.float64)] if len(kinds) < len(rows.dtypes) else []
    joint = np.result_type(*kinds)
    return "float64" if joint == np.dtype(object) else str(joint)


def array_of(frame: pd.DataFrame, space: FeatureSpace) -> NDArray[Any]:
    """Return a frame as an array: numbers in the dtype that holds every column, float64 where the space remembers none; else objects."""
    if numeric_columns(space) is None:
        return frame.to_numpy(dtype=object)
    return frame.to_numpy(dtype=handed(frame) if space.has_dtypes else np.float64, na_value=np.nan)


def rows_of(
    deployed: Deployed, columns: Sequence[Column], points: Sequence[Point], space: FeatureSpace | None = None
) -> Matrix:
    """Return points as a bare model takes them: an array or a frame of its columns, float64 where the space remembers no dtypes."""
    if space is not None and space.has_dtypes:
        frame = space.frame_of(points)
        if deployed.names is None:
            return array_of(frame, space)
        frame = frame[[column.name for column in columns]]
    else:
        X = column_values(columns, points)
        if deployed.names is None:
            return X
        frame = pd.DataFrame(X, columns=[column.name for column in columns])
    for column in columns:
        if isinstance(column, Native) and not isinstance(frame[column.name].dtype, pd.CategoricalDtype):
            labels = [column.labels[int(point[column.feature] or 0)] for point in points]
            known = [label for label in column.labels if not is_missing(label)]
            frame[column.name] = pd.Categorical(labels, categories=known)
    return frame


def on_own_floats(form: Form) -> Form:
    """Return a form whose trees cut a column of narrower floats than float64 at one of these: a number on an edge is then one of its
    values."""
    if isinstance(form, Composite):
        parts: Any = tuple(replace(part, form=on_own_floats(part.form)) for part in form.parts)  # type: ignore[arg-type]
        return replace(form, parts=parts)
    if not isinstance(form, TreeEnsemble):
        return form
    features, edge = list(form.space.values()), form.edge.copy()
    for k, column in enumerate(form.columns):
        feature = features[column.feature]
        if isinstance(feature, Real) and feature.is_single and column.table is None:
            nodes = (form.left >= 0) & (form.column == k)
            edge[nodes] = rounded_in(edge[nodes], edge[nodes], feature.floats)[1]
    return replace(form, edge=edge)


def ask_deployed(deployed: Deployed, rows: Callable[[Sequence[Point]], Matrix]) -> Ask:
    """Return a function that asks ``predict``: for the codes of labels, or for numbers as they are."""
    classes = deployed.classes
    codes = {label: Fraction(code) for code, label in enumerate(classes or ())}

    def ask(points: Sequence[Point]) -> list[Fraction]:
        with _failing("predict"):
            found = np.ravel(deployed.predict(rows(points)))
            _check_count("predict", len(found), len(points))
            if classes is None:
                return _numbers(found)
            labels = [plain_scalar(label) for label in found]
            strays = [label for label in labels if label not in codes]
            if strays:
                raise UnsupportedModel(
                    f"the model's own predict returned {strays[0]!r:.80}, which is none of its classes: "
                    f"{', '.join(map(repr, classes[:20]))}. Name every label that it may return."
                )
            return [codes[label] for label in labels]  # type: ignore[index]

    return ask


def _check_count(method: str, given: int, rows: int) -> None:
    if given != rows:
        raise UnsupportedModel(
            f"the model's own {method} returned {given} answers to {rows} row{'s' * (rows != 1)}; it must give one a row."
        )


def _numbers(found: NDArray[Any]) -> list[Fraction]:
    """Return predictions as numbers; text is refused."""
    if any(isinstance(plain_scalar(each), str) for each in found):
        raise UnsupportedModel(
            f"the model's own predict returned the text {plain_scalar(found[0])!r:.80}, and the model has no classes_. Say what its labels "
            "are: mace.wrap(predict=model.predict, classes=[...])."
        )
    return _fractions(found)


def rate_deployed(deployed: Deployed, rows: Callable[[Sequence[Point]], Matrix]) -> Rate | None:
    """Return a function that asks for the probability of a class, or ``None`` where the model gives none."""
    probabilities = deployed.probabilities
    classes = deployed.classes
    if probabilities is None or classes is None:
        return None

    def rate(points: Sequence[Point], code: int) -> list[Fraction]:
        with _failing("predict_proba"):
            found = np.asarray(probabilities(rows(points)))
            _check_count("predict_proba", len(found), len(points))
            if found.shape[1:] != (len(classes),):
                raise UnsupportedModel(
                    f"the model's own predict_proba returned an array of shape {found.shape}; it must have a column for each of its "
                    f"{len(classes)} classes."
                )
            return _fractions(found[:, code])

    return rate


ROUNDINGS_OF_A_PROBABILITY = 64
"""Probabilities that are farther apart than so many roundings of 1 are in the order of the numbers of which they are made."""


def ask_rated_deployed(deployed: Deployed, rows: Callable[[Sequence[Point]], Matrix]) -> AskRated | None:
    """Return a function that asks for probabilities, or scores, and makes the prediction of them as the model does.

    ``None`` where the model's prediction does not follow from them. Rows whose greatest are equal to rounding are asked about again.
    """
    classes, is_exact = deployed.classes, deployed.is_by_probability
    numbers = deployed.probabilities or (deployed.decision if deployed.is_by_order else None)
    is_known = is_exact or deployed.is_by_order
    if numbers is None or classes is None or not is_known or deployed.threshold is not None:
        return None
    method = "predict_proba" if deployed.probabilities else "decision_function"
    predict = ask_deployed(deployed, rows)

    def ask(points: Sequence[Point]) -> list[tuple[Fraction, tuple[Fraction, ...]]]:
        with _failing(method):
            found = np.asarray(numbers(rows(points)))
            _check_count(method, len(found), len(points))
            if deployed.labels is not None and deployed.labels() != classes:
                raise UnsupportedModel("the model's classes_ are no longer those that it was read with.")
        table = np.column_stack([-found, found]) if found.ndim == 1 else found
        codes = [Fraction(int(code)) for code in table.argmax(axis=1)]
        if not is_exact and len(classes) > 1:
            ordered = np.sort(table, axis=1)
            least = ROUNDINGS_OF_A_PROBABILITY * np.finfo(found.dtype).eps if deployed.probabilities else 0.0
            for k in np.flatnonzero(~(ordered[:, -1] - ordered[:, -2] > least)):
                (codes[k],) = predict([points[int(k)]])
        return [(code, tuple(_fractions(row))) for code, row in zip(codes, table, strict=True)]

    return ask


def score_deployed(deployed: Deployed, rows: Callable[[Sequence[Point]], Matrix]) -> Rate | None:
    """Return a function that asks for the score of a class, where the model has such and no probabilities."""
    decision = deployed.decision
    if decision is None or deployed.probabilities is not None or deployed.classes is None:
        return None

    def score(points: Sequence[Point], code: int) -> list[Fraction]:
        with _failing("decision_function"):
            found = np.asarray(decision(rows(points)))
            if found.ndim == 1:
                return _fractions(found if code == 1 else -found)
            return _fractions(found[:, code])

    return score


@contextmanager
def _failing(method: str) -> Iterator[None]:
    """Report an exception of the model itself as what it is."""
    try:
        yield
    except MaceError:
        raise
    except Exception as error:
        raise UnsupportedModel(
            f"the model's own {method} fails on a row of the space: {in_a_line(error)} Narrow the space to what the model accepts; "
            "or the model is damaged."
        ) from error


def _fractions(numbers: Any) -> list[Fraction]:
    return [Fraction(float(number)) for number in np.ravel(numbers)]

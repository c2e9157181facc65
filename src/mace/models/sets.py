"""Several models asked together: a set of which all, or so many, must reach the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, overload

from mace.errors import InvalidOption, UnsupportedModel
from mace.forms import Composite, Form, Network, TreeEnsemble, UnreadForm
from mace.forms.sets import NUMBERS, packed
from mace.models.ensembles.beside import as_set
from mace.models.probe import probe_points
from mace.models.reading import FurtherFeatures, Rate, Reading
from mace.space import FeatureSpace, Point, Scalar

MOST_MODELS = 1000
"""The most models of a set."""

Read = Callable[[Any, FeatureSpace], Reading]


@dataclass(frozen=True, eq=False)
class ModelSet(Sequence[Any]):
    """Models that are asked together; see :func:`agree`. It is a sequence of its models.

    Attributes
    ----------
    models : tuple of models
        Each as :class:`~mace.Explainer` takes one.
    at_least : int
        How many must reach the target.
    names : tuple of str or int
        What ``held_by`` calls them: the keys of the mapping that was given, or their places from 0.
    """

    models: tuple[Any, ...]
    at_least: int
    names: tuple[Scalar, ...]

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.models[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.models)

    def __repr__(self) -> str:
        return f"<ModelSet: {how_many(self.at_least, len(self))} models>"


def agree(models: Any, at_least: int | None = None) -> ModelSet:
    """Make models a set, for :class:`~mace.Explainer`: an answer must reach the target in at least so many of them.

    Parameters
    ----------
    models : list of models, mapping of names to models, or ModelSet
        Each as deployed, with its own preprocessing, and of any family; all with the same labels, or all for numbers.
    at_least : int, optional
        How many must reach the target; all of them where not given.

    Raises
    ------
    InvalidOption
        There is no model, or ``at_least`` is no number from 1 to theirs.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import mace
    >>> rows, space = [[10], [20], [30], [40]], mace.FeatureSpace({"income": mace.integer(0, 100)})
    >>> january, april, july = (DecisionTreeClassifier().fit(rows, y) for y in ([0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]))
    >>> mace.Explainer([january, april, july], space).explain([10], 1)[0].values
    {'income': 36}
    >>> best = mace.Explainer(mace.agree([january, april, july], at_least=2), space).explain([10], 1)[0]
    >>> best.values, best.held_by
    ({'income': 26}, (0, 1))
    """
    if isinstance(models, Mapping):
        given, names = tuple(models.values()), tuple(models)
    elif isinstance(models, Sequence) and not isinstance(models, str):
        given = tuple(models)
        names = models.names if isinstance(models, ModelSet) else tuple(range(len(given)))
    else:
        raise InvalidOption(f"agree: {models!r:.80} is no list of models. Give a list, or a dict of names and models.")
    if not 1 <= len(given) <= MOST_MODELS:
        raise InvalidOption(f"agree: {len(given)} models are given; give from 1 to {MOST_MODELS:,}.")
    if any(not isinstance(name, str | int) for name in names):
        raise InvalidOption("agree: the names of models are text.")
    wanted = len(given) if at_least is None else at_least
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= len(given):
        raise InvalidOption(f"agree: at_least={at_least!r}; it must be a whole number from 1 to {len(given)}.")
    return ModelSet(given, wanted, names)


def is_set(model: Any) -> bool:
    """Return whether a model is several: a set, a list or tuple, or a mapping of names to models."""
    return isinstance(model, ModelSet | list | tuple | dict)


def how_many(at_least: int, models: int) -> str:
    """Return a number of models of a set, in words."""
    if at_least == models:
        return "both" if models == 2 else "the" if models == 1 else f"all {models}"
    return f"{at_least} of {models}"


def read_set(model: Any, space: FeatureSpace, read: Read, *, is_asked: bool = False) -> Reading:
    """Read each model of a set over the features that it was fitted on, and make one reading of all.

    Parameters
    ----------
    model : set, list, tuple or mapping of models
        What is read.
    space : FeatureSpace
        The features.
    read : callable
        Reads one model.
    is_asked : bool
        Whether a set of which one cannot stand beside others is asked only.

    Raises
    ------
    UnsupportedModel
        One cannot be read, or is not read in a form that others can stand beside; or their labels differ.
    """
    models = model if isinstance(model, ModelSet) else agree(model)
    members: list[Reading] = []
    unknown: list[tuple[str, ...]] = []
    for name, each in zip(models.names, models.models, strict=True):
        try:
            reading, further = _read_member(each, space, read)
            if not is_asked:
                _check_stands_beside(reading)
        except UnsupportedModel as error:
            raise UnsupportedModel(f"model {name!r} of the set: {error}") from error
        members.append(reading)
        unknown.append(further)
    to_none = [name for name in space if all(name in further for further in unknown)]
    if to_none:
        raise FurtherFeatures(f"no model of the set was fitted on {', '.join(map(repr, to_none))}.", to_none)
    first = members[0]
    for name, member in zip(models.names, members, strict=True):
        if (member.classes, member.is_regressor) != (first.classes, first.is_regressor):
            is_same = (
                set(member.classes or ()) == set(first.classes or ()) and member.is_regressor == first.is_regressor
            )
            raise UnsupportedModel(
                f"model {name!r} of the set predicts {_said(member)}, and model {models.names[0]!r} {_said(first)}. "
                + ("Give all the labels in the same order." if is_same else "Fit all with the same labels.")
            )
    form = _form(space, members)
    base = NUMBERS if first.classes is None else max(2, len(first.classes))
    return Reading(
        family=f"{how_many(models.at_least, len(models))} models ({_families(members)})",
        form=form,
        ask=partial(_ask, members, base),
        classes=first.classes,
        is_regressor=first.is_regressor,
        rate=_rate([member.rate for member in members], models.at_least),
        score=_rate([member.score for member in members], models.at_least),
        members=tuple(members),
        names=models.names,
        at_least=models.at_least,
        base=base,
    )


def _read_member(model: Any, space: FeatureSpace, read: Read) -> tuple[Reading, tuple[str, ...]]:
    """Return a model as read over the whole space, and the features that it was not fitted on."""
    if is_set(model):
        raise UnsupportedModel("it is itself a set of models. Give the models of all sets in one list.")
    try:
        return read(model, space), ()
    except FurtherFeatures as error:
        inner = space.without(*error.names)
        reading = read(model, inner)
        places = [space.index(name) for name in inner]

        def within(ask: Any) -> Any:
            if ask is None:
                return None
            return lambda points, *code: ask([tuple(point[j] for j in places) for point in points], *code)

        kept = replace(
            reading,
            form=_over(reading.form, space, places),
            ask=within(reading.ask),
            rate=within(reading.rate),
            score=within(reading.score),
        )
        return kept, tuple(error.names)


def _over(form: Form, space: FeatureSpace, places: Sequence[int]) -> Form:
    """Return a form over a space with more features; ``places`` are those of its own."""
    if isinstance(form, Composite):
        parts: Any = tuple(replace(part, form=_over(part.form, space, places)) for part in form.parts)  # type: ignore[arg-type]
        return replace(form, space=space, parts=parts)
    if isinstance(form, TreeEnsemble | Network):
        columns = tuple(replace(column, feature=places[column.feature]) for column in form.columns)
        return replace(form, space=space, columns=columns)
    return form


def _check_stands_beside(member: Reading) -> None:
    """Refuse a model that cannot be asked together with others."""
    if not isinstance(member.form, TreeEnsemble | Network | Composite | UnreadForm):
        raise UnsupportedModel(
            f"{member.family}: a function, and trees behind a projection (PCA), are not asked together with others. Leave it out, "
            "or explain it by itself."
        )


def _form(space: FeatureSpace, members: Sequence[Reading]) -> Form:
    forms = [member.form for member in members]
    if not all(isinstance(form, TreeEnsemble | Network | Composite) for form in forms):
        points = probe_points(space)
        said = [
            member.form.said if isinstance(member.form, UnreadForm) else tuple(member.ask(points)) for member in members
        ]
        return UnreadForm(space, tuple(outcome for each in said for outcome in each))
    made = as_set(space, forms)  # type: ignore[arg-type]
    if isinstance(made, Composite):
        made.prepare()
    return made


def _ask(members: Sequence[Reading], base: int, points: Sequence[Point]) -> list[Fraction]:
    said = [member.ask(points) for member in members]
    return [packed(each, base) for each in zip(*said, strict=True)]


def _rate(rates: Sequence[Rate | None], at_least: int) -> Rate | None:
    """Return how much so many models give a class at least; ``None`` where one reports nothing."""
    if any(rate is None for rate in rates):
        return None

    def rate(points: Sequence[Point], code: int) -> list[Fraction]:
        said = [each(points, code) for each in rates if each is not None]
        return [sorted(own, reverse=True)[at_least - 1] for own in zip(*said, strict=True)]

    return rate


def _families(members: Sequence[Reading]) -> str:
    counts: dict[str, int] = {}
    for member in members:
        counts[member.family] = counts.get(member.family, 0) + 1
    return ", ".join(family if count == 1 else f"{family} x {count}" for family, count in counts.items())


def _said(member: Reading) -> str:
    return "numbers" if member.classes is None else ", ".join(map(repr, member.classes[:20]))


__all__ = ["ModelSet", "agree", "how_many", "is_set", "read_set"]

"""The answer: an explanation is a sequence of counterfactuals, nearest first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mace.answer.region import RecourseRegion
from mace.certify.certificate import Certificate
from mace.errors import InvalidOption
from mace.problem import Status
from mace.registry import resolve
from mace.space import Feature, FeatureSpace, Point, Real, Scalar
from mace.space.dtypes import FLOATS

if TYPE_CHECKING:
    from rich.console import Group

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Change:
    """One feature that changes; ``dtype`` is that of a real one where it is not float64."""

    feature: str
    before: Scalar
    after: Scalar
    dtype: str | None = field(default=None, repr=False, compare=False)

    def __setstate__(self, state: list[Any]) -> None:
        for each, value in zip(fields(self), [*state, None], strict=False):
            object.__setattr__(self, each.name, value)

    @classmethod
    def of(cls, space: FeatureSpace, name: str, before: Scalar, after: Scalar) -> Change:
        """Return the change of a feature of a space."""
        return cls(name, before, after, _real_dtype(space[name]))

    @property
    def texts(self) -> tuple[str, str]:
        """The two values for people, in the decimals of the feature's dtype."""
        return show_value(self.before, self.dtype), show_value(self.after, self.dtype)

    def __str__(self) -> str:
        return f"{self.feature}: {' -> '.join(self.texts)}"

    @property
    def arrow(self) -> str:
        """Up or down for a number, across for anything else."""
        if isinstance(self.before, str | bool) or isinstance(self.after, str | bool):
            return "\u2192"
        return "\u25b2" if self.after > self.before else "\u25bc" if self.after < self.before else "\u2192"


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A row that the real model puts in the target, with proven bounds.

    Attributes
    ----------
    values : dict
        The row in the original features, Python scalars, NaN where missing.
    changes : tuple of Change
        What differs from the factual.
    distance : float
        Its distance from the factual, rounded up.
    lower : float
        Proved: nothing nearer than this reaches the target. Rounded down.
    status : Status
        ``optimal`` or ``feasible``.
    prediction : label
        What the real model says of the row.
    solver : str
        Which lane answered.
    seconds : float
        Wall time inside the solver.
    calls : int
        Questions that the lane asked its oracle.
    certificate : Certificate, optional
        The answer with its proof, for :func:`~mace.verify`; only with ``certify=True``.
    actions : tuple of str, optional
        With causes: the features that are acted upon; the other changes are effects of these.
    widen : callable, optional
        How :meth:`region` asks the explainer that made this answer; left behind where the answer is pickled.
    """

    values: dict[str, Scalar]
    changes: tuple[Change, ...]
    distance: float
    lower: float
    status: Status
    prediction: Scalar
    solver: str
    seconds: float
    calls: int = 0
    certificate: Certificate | None = field(default=None, repr=False)
    actions: tuple[str, ...] | None = None
    widen: Callable[..., RecourseRegion] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, space: FeatureSpace, factual: Point, row: Point, **known: Any) -> Counterfactual:
        """Return a row of a space as an answer about a factual; ``known`` are the other attributes."""
        values, before = space.values_of(row), space.values_of(factual)
        changed = [name for name, new, old in zip(space, row, factual, strict=True) if new != old]
        changes = tuple(Change.of(space, name, before[name], values[name]) for name in changed)
        return cls(values=values, changes=changes, **known)

    def __getstate__(self) -> list[Any]:
        return [None if each.name == "widen" else getattr(self, each.name) for each in fields(self)]

    def __setstate__(self, state: list[Any]) -> None:
        for each, value in zip(fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)

    def region(
        self, features: Iterable[str] | None = None, *, time_limit: float | None = None, solver: str = "auto"
    ) -> RecourseRegion:
        """Widen the answer into a region in which every plausible row is proved to be predicted like it.

        See :meth:`mace.Explainer.region`, which also takes an answer that was pickled or copied from elsewhere.
        """
        if self.widen is None:
            raise InvalidOption(
                "region: this answer was pickled, and has left its explainer behind. Use explainer.region(answer)."
            )
        return self.widen(self, features, time_limit=time_limit, solver=solver)

    def __str__(self) -> str:
        rows = [("feature", "now", "instead")]
        rows += [(self.named(c), *c.texts) for c in self.changes]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([*lines, self.summary()])

    def named(self, change: Change) -> str:
        """Return the feature of a change, and whether it is an effect of others."""
        is_effect = self.actions is not None and change.feature not in self.actions
        return f"{change.feature} (effect)" if is_effect else change.feature

    def summary(self) -> str:
        """Return the prediction and the bounds in one line."""
        return (
            f"predicted {show_value(self.prediction)}; distance {self.distance:.6g}, "
            f"proved at least {self.lower:.6g} ({self.status})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counterfactual as plain data for JSON; a missing value is ``None``."""
        return {
            "values": {name: _plain(value) for name, value in self.values.items()},
            "changes": [
                {"feature": c.feature, "before": _plain(c.before), "after": _plain(c.after)}
                | ({} if c.dtype is None else {"dtype": c.dtype})
                for c in self.changes
            ],
            "distance": self.distance,
            "lower": self.lower,
            "status": str(self.status),
            "prediction": self.prediction,
            "solver": self.solver,
            "seconds": self.seconds,
            "calls": self.calls,
            **({} if self.actions is None else {"actions": list(self.actions)}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Counterfactual:
        """Return the counterfactual that :meth:`to_dict` wrote; it has no certificate."""
        part = partial(_part, data, "a counterfactual")
        changes = part("changes", list)
        actions = None if data.get("actions") is None else part("actions", list)
        return cls(
            values=_scalars(part("values", dict)),
            changes=tuple(_change(each) for each in changes),
            distance=part("distance", float),
            lower=part("lower", float),
            status=_status(part("status", str)),
            prediction=part("prediction", Scalar),
            solver=part("solver", str),
            seconds=part("seconds", float),
            calls=part("calls", int),
            actions=None if actions is None else tuple(map(str, actions)),
        )


@dataclass(frozen=True, slots=True)
class Explanation(Sequence[Counterfactual]):
    """What a row would have to change, nearest first.

    Attributes
    ----------
    counterfactuals : tuple of Counterfactual
        The answers; none where the status is ``infeasible`` or ``unknown``.
    status : Status
        ``optimal``: every answer is proved nearest. ``feasible``: some gap is open. ``infeasible``: proved, none exists.
        ``unknown``: nothing valid in hand, nothing proved but ``lower``. ``error``, in a batch only: the row was not explained.
    factual : dict
        The row as it is.
    prediction : label, optional
        What the model says of it; ``None`` where a batch did not ask it.
    target, distance : str
        What was asked for, in words.
    lower : float
        Proved: nothing nearer than this reaches the target.
    reason : str
        Why a gap is open, or why there is no answer; empty otherwise.
    seconds : float
        Wall time of everything.
    exhausted : bool
        Proved: no further answer exists.
    solver : str
        Which lane answered, and why that one.
    error : str
        In a batch: why the row was not explained; empty otherwise.
    space : FeatureSpace, optional
        The features; not in the JSON.
    certificate : Certificate, optional
        With ``certify=True``: the proof that there is no (further) counterfactual, or none nearer than ``lower``.
    """

    counterfactuals: tuple[Counterfactual, ...]
    status: Status
    factual: dict[str, Scalar]
    prediction: Scalar | None
    target: str
    distance: str
    lower: float
    reason: str = ""
    seconds: float = 0.0
    exhausted: bool = False
    solver: str = ""
    error: str = ""
    certificate: Certificate | None = field(default=None, repr=False)
    space: FeatureSpace | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.counterfactuals)

    @overload
    def __getitem__(self, index: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Counterfactual, ...]: ...
    def __getitem__(self, index: int | slice) -> Counterfactual | tuple[Counterfactual, ...]:
        return self.counterfactuals[index]

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.counterfactuals)

    # ---- for people

    @property
    def factual_texts(self) -> dict[str, str]:
        """The factual's values for people."""
        dtypes = {} if self.space is None else {name: _real_dtype(feature) for name, feature in self.space.items()}
        return {name: show_value(value, dtypes.get(name)) for name, value in self.factual.items()}

    def headline(self) -> str:
        """Return the answer in one sentence."""
        now = "Not asked." if self.prediction is None else f"Predicted {show_value(self.prediction)}."
        match self.status:
            case Status.INFEASIBLE:
                blame = f" {self.reason[0].upper()}{self.reason[1:]}." if self.reason else ""
                return f"{now} No counterfactual exists for {self.target}: proved.{blame}"
            case Status.UNKNOWN:
                return (
                    f"{now} No counterfactual in hand for {self.target}: {self.reason}. "
                    f"Proved: none nearer than {self.lower:.6g}."
                )
            case Status.ERROR:
                return f"Not explained: {self.error}"
        proved = "proved nearest" if self.status == Status.OPTIMAL else f"not proved nearest: {self.reason}"
        return f"{now} {len(self)} way{'s' if len(self) > 1 else ''} to {self.target}, {proved} ({self.distance} distance)."

    def __str__(self) -> str:
        blocks = [self.headline()]
        for number, counterfactual in enumerate(self, start=1):
            title = [f"{number}."] if len(self) > 1 else []
            blocks.append("\n".join([*title, str(counterfactual)]))
        if self.exhausted and self:
            blocks.append("No further counterfactual exists: proved.")
        return "\n\n".join(blocks)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        parts: list[Any] = [Text(self.headline(), style="bold")]
        for counterfactual in self:
            table = Table("feature", "now", "instead", caption=Text(counterfactual.summary()), caption_justify="left")
            for change in counterfactual.changes:
                before, after = map(Text, change.texts)
                after.stylize("bold green")
                table.add_row(Text(counterfactual.named(change)), before, after)
            parts.append(table)
        if self.exhausted and self:
            parts.append(Text("No further counterfactual exists: proved."))
        return Group(*parts)

    def _repr_html_(self) -> str:
        parts = [f'<p style="margin:.25em 0"><b>{escape(self.headline())}</b></p>']
        for counterfactual in self:
            heads = "".join(f'<th style="text-align:left">{head}</th>' for head in ("feature", "now", "", "instead"))
            rows = "".join(_html_row(counterfactual.named(change), change) for change in counterfactual.changes)
            parts.append(
                f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
                f'<p style="margin:.25em 0">{_badges(counterfactual)} {escape(counterfactual.summary())}</p>'
            )
        if self.status == Status.INFEASIBLE:
            parts.append(_badge("proved: none exists", PROVED_COLOUR))
        return f"<div>{''.join(parts)}</div>"

    def plot(
        self, number: int = 1, *, space: FeatureSpace | None = None, population: Any = None, ax: Any = None
    ) -> Any:
        """Draw what to change: each change against the feature's range and the people of ``population``, a frame.

        Parameters
        ----------
        number : int
            Which counterfactual, 1 for the nearest.
        space : FeatureSpace, optional
            Needed only where the explanation was read from JSON.
        population : data frame, optional
            People to compare with.
        ax : matplotlib axes, optional
            Where to draw; new ones where not given.

        Returns
        -------
        ChangesDisplay
            See :mod:`mace.plots`; its ``ax_`` and ``figure_`` are matplotlib's.
        """
        made = resolve("mace.plots:ChangesDisplay").from_explanation(
            self, number, space=space or self.space, population=population
        )
        return made.plot(ax)

    def letter(
        self,
        template: str | Path | None = None,
        *,
        html: bool = False,
        names: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        number: int = 1,
        **fields: object,
    ) -> str:
        """Return a letter to the person in plain words: what would have to change, by how much, and what stays.

        The values are those of the answer, to the last digit: they are confirmed by the model, and a letter that rounded them could be
        wrong. For short ones ask for ``explain(digits=...)``, which rounds and asks the model again.

        Parameters
        ----------
        template : str or Path, optional
            A Jinja2 template, as text or as a file; see ``docs/reports.md`` for what it may use.
        html : bool
            Whether the letter is HTML, in which everything is escaped, rather than text.
        names, units : mapping of str to str, optional
            What features are called, and what they are counted in.
        number : int
            Which counterfactual, 1 for the nearest.
        **fields
            Further names for the template: ``name="Ms Miller"``, ``sender="The bank"``.
        """
        made: str = resolve("mace.letters.letter:letter")(
            self, template, html=html, names=names or {}, units=units or {}, number=number, fields=fields
        )
        return made

    # ---- for programs

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the factual and the counterfactuals as rows over the original features, with distance, lower and status.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}
            Whose data frame; the first row is the factual. Columns have the dtypes that the space remembers.
        """
        import pandas as pd

        from mace.space.frames import to_native

        rows = [self.factual, *(counterfactual.values for counterfactual in self)]
        index = ["factual", *range(1, len(self) + 1)]
        if self.space is not None and self.space.has_dtypes:
            frame = self.space.frame_of([self.space.point(row) for row in rows]).set_axis(index)
        else:
            frame = pd.DataFrame(rows, index=index, columns=list(self.factual))
        frame["prediction"] = [self.prediction, *(c.prediction for c in self)]
        frame["distance"] = [0.0, *(c.distance for c in self)]
        frame["lower"] = [0.0, *(c.lower for c in self)]
        frame["status"] = ["", *(str(c.status) for c in self)]
        return to_native(frame, library)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data; the schema is documented in ``docs/explanation.md``."""
        return {
            "version": SCHEMA_VERSION,
            "status": str(self.status),
            "factual": {name: _plain(value) for name, value in self.factual.items()},
            "prediction": self.prediction,
            "target": self.target,
            "distance": self.distance,
            "lower": self.lower,
            "reason": self.reason,
            "seconds": self.seconds,
            "exhausted": self.exhausted,
            "solver": self.solver,
            "error": self.error,
            "counterfactuals": [counterfactual.to_dict() for counterfactual in self],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        """Return the explanation that :meth:`to_dict` wrote; it has no certificates.

        Raises
        ------
        InvalidOption
            Something is not as ``docs/explanation.md`` says; the message names the place.
        """
        part = partial(_part, data, "an explanation")
        if part("version", int) != SCHEMA_VERSION:
            raise InvalidOption(
                f"from_dict: version {data['version']!r:.40} of explanations is not known; this MACE reads {SCHEMA_VERSION}."
            )
        return cls(
            counterfactuals=tuple(Counterfactual.from_dict(each) for each in part("counterfactuals", list)),
            status=_status(part("status", str)),
            factual=_scalars(part("factual", dict)),
            prediction=None if part("prediction", Scalar | None) is None else data["prediction"],
            target=part("target", str),
            distance=part("distance", str),
            lower=part("lower", float),
            reason=part("reason", str),
            seconds=part("seconds", float),
            exhausted=part("exhausted", bool),
            solver=part("solver", str),
            error=part("error", str) if "error" in data else "",
        )

    def to_json(self, indent: int | None = 2) -> str:
        """Return the explanation as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)


PROVED_COLOUR, OPEN_COLOUR, CHANGE_COLOUR = "#1f8a5b", "#c77414", "#3d7fd9"
"""Of middling lightness, so that they are read on white and on black."""


def _html_row(name: str, change: Change) -> str:
    before, after = map(escape, change.texts)
    arrow = f'<span style="color:{CHANGE_COLOUR}">{change.arrow}</span>'
    cells = [escape(name), before, arrow, f"<b>{after}</b>"]
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _badges(counterfactual: Counterfactual) -> str:
    is_proved = counterfactual.status == Status.OPTIMAL
    made = _badge("proved nearest", PROVED_COLOUR) if is_proved else _badge("not proved nearest", OPEN_COLOUR)
    return made if counterfactual.certificate is None else f"{made} {_badge('certificate', PROVED_COLOUR)}"


def _badge(text: str, colour: str) -> str:
    style = f"color:{colour};border:1px solid {colour};border-radius:.6em;padding:0 .5em;white-space:nowrap"
    return f'<span style="{style}">{escape(text)}</span>'


def show_value(value: object, dtype: str | None = None) -> str:
    """Return a value for people: floats short but exact enough to be told apart in their dtype, NaN as 'missing'."""
    if isinstance(value, float):
        if math.isnan(value):
            return "missing"
        if value.is_integer() and abs(value) < 1e15:
            return repr(int(value))
        return str(FLOATS[dtype](value)) if dtype in FLOATS else repr(value)
    return str(value)


def _real_dtype(feature: Feature) -> str | None:
    return feature.dtype if isinstance(feature, Real) else None


def _plain(value: Scalar) -> Scalar | None:
    return None if isinstance(value, float) and math.isnan(value) else value


def _part(data: object, what: str, key: str, kind: Any) -> Any:
    """Return a part of plain data that was read; anything that it should not be is an :class:`InvalidOption`."""
    if not isinstance(data, Mapping):
        raise InvalidOption(f"from_dict: {what} is an object of JSON, not {type(data).__name__}.")
    if key not in data:
        raise InvalidOption(f"from_dict: {what} without {key!r}. Give what to_dict() made.")
    value = data[key]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    kinds = {float: is_number and abs(value) < math.inf, int: is_number and isinstance(value, int)}
    if not kinds.get(kind, isinstance(value, kind)):
        raise InvalidOption(
            f"from_dict: {key!r} of {what} is of type {type(value).__name__}. Give what to_dict() made."
        )
    return value


def _change(data: object) -> Change:
    part = partial(_part, data, "a change")
    before, after = (_scalar(part(name, Scalar | None)) for name in ("before", "after"))
    dtype = None if not isinstance(data, Mapping) or data.get("dtype") is None else part("dtype", str)
    return Change(part("feature", str), before, after, dtype)


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError as error:
        raise InvalidOption(f"from_dict: {text!r:.60} is no status. Known: {', '.join(Status)}.") from error


def _scalar(value: Any) -> Scalar:
    scalar: Scalar = math.nan if value is None else value
    return scalar


def _scalars(values: Mapping[str, Any]) -> dict[str, Scalar]:
    return {name: _scalar(_part(values, "a row", name, Scalar | None)) for name in values}

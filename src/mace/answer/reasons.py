"""Why the decision is what it is: smallest sets of features whose values alone keep a row out of the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mace.answer.counterfactual import AS_IN_DATA, Counterfactual
from mace.answer.listed import Listed
from mace.answer.plain import in_a_list, json_of, part, plain, read_json, scalar, scalars, texts
from mace.answer.region import Ends, RecourseRegion, meant
from mace.certify.certificate import VERSION, Certificate
from mace.certify.statement import Statement
from mace.constraints import Constraint, fixed
from mace.errors import InvalidOption, cut
from mace.registry import resolve
from mace.space import Categorical, Date, FeatureSpace, Integer, Real, Scalar, Wording
from mace.space.features import is_missing, shown_level

MOST_OTHERS = 3
"""So many levels at most are named as those that are not in a range."""

SCHEMA = 1
"""Of what :meth:`Reasons.to_dict` writes."""

Proof = Callable[[list[Constraint]], Certificate | None]
"""Gives the certificate that no row of the target fulfils some constraints, or of what was found in time."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A set of features whose values force the decision, whatever the others are; without any one of them they do not.

    Attributes
    ----------
    features : tuple of str
        The set, in the order of the space.
    values : dict of str to value
        What these features are.
    ranges : RecourseRegion, optional
        How far their values may move, together, without freeing the decision; ``None`` where that was not asked for.
    as_long_as : str
        The ranges, or values, in words.
    note : str
        That the rules leave no other row that keeps these values, so that they decide about nothing; empty otherwise.
    witnesses : dict of str to Counterfactual
        For each feature of the set a row of the target that changes it, and none of the others of the set: it cannot be left out.
    certificate : Certificate, optional
        Where it was asked for: a proof, for :func:`~mace.verify`, that the values force the decision and no feature can be left out.
    ranges_certificate : Certificate, optional
        Such a proof of the ranges: no row of the target lies in them.
    """

    features: tuple[str, ...]
    values: dict[str, Scalar]
    ranges: RecourseRegion | None = None
    as_long_as: str = ""
    note: str = ""
    witnesses: dict[str, Counterfactual] = field(default_factory=dict, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    ranges_certificate: Certificate | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if not self.features:
            return "the decision is the same whatever the features are"
        return ", ".join(self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return the reason as plain data."""
        ranges = None if self.ranges is None else {name: _plain_ends(ends) for name, ends in self.ranges.items()}
        return {
            "features": list(self.features),
            "values": {name: plain(value) for name, value in self.values.items()},
            "ranges": ranges,
            "is_widest": None if self.ranges is None else self.ranges.complete,
            "as_long_as": self.as_long_as,
            "note": self.note,
            "witnesses": {name: answer.to_dict() for name, answer in self.witnesses.items()},
            "certificate": _plain_proof(self.certificate),
            "ranges_certificate": _plain_proof(self.ranges_certificate),
        }

    @classmethod
    def from_dict(cls, data: object) -> Reason:
        """Return the reason that :meth:`to_dict` wrote."""
        get = partial(part, data, "a reason")
        ranges, witnesses = get("ranges", dict | None), get("witnesses", dict)
        ends = None if ranges is None else {name: _read_ends(each) for name, each in ranges.items()}
        return cls(
            features=texts(get("features", list)),
            values=scalars(get("values", dict)),
            ranges=None if ends is None else RecourseRegion(ends, get("is_widest", bool)),
            as_long_as=get("as_long_as", str),
            note=get("note", str),
            witnesses={name: Counterfactual.from_dict(each) for name, each in witnesses.items()},
            certificate=_read_proof(get("certificate", dict | None)),
            ranges_certificate=_read_proof(get("ranges_certificate", dict | None)),
        )


@dataclass(frozen=True, slots=True)
class Reasons(Listed[Reason]):
    """The reasons of a decision.

    Attributes
    ----------
    reasons : tuple of Reason
        Smallest first where that was asked for.
    complete : bool
        Proved: there is no other reason than these.
    reason : str
        Why the list may not be complete, or that the row is at the target already; empty otherwise.
    necessary : tuple of str
        Features that are in every reason, of those found or not: changing such a feature alone can bring the row to the target, proved by
        a row that does. All of them where the list is complete.
    prediction : value
        What the model says of the row.
    target : str
        What the row is kept out of.
    factual : dict
        The row.
    ways : tuple of Counterfactual
        Rows of the target: one for each of the :attr:`levers`.
    note : str
        What is odd about the question: the row itself breaks a rule.
    error : str
        In a batch: why the row was not asked about; empty otherwise.
    certificate : Certificate, optional
        Where certificates were asked for and the list is complete: a proof that every reason holds one of these, so that, with their own
        certificates, there is no other.
    space : FeatureSpace, optional
        The features; not in the JSON.
    classes : tuple of labels, optional
        The model's labels; ``None`` where it predicts numbers, and where the reasons were read from JSON.
    """

    reasons: tuple[Reason, ...]
    complete: bool
    reason: str
    necessary: tuple[str, ...]
    prediction: Scalar | None
    target: str
    factual: dict[str, Scalar]
    ways: tuple[Counterfactual, ...] = field(default=(), repr=False)
    note: str = ""
    error: str = ""
    certificate: Certificate | None = field(default=None, repr=False)
    space: FeatureSpace | None = field(default=None, repr=False, compare=False)
    classes: tuple[Scalar, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def _entries(self) -> tuple[Reason, ...]:
        return self.reasons

    def __repr__(self) -> str:
        sets = cut("; ".join("+".join(each.features) or "none needed" for each in self), 120)
        return f"<Reasons: {len(self)} ({sets}), {'complete' if self.complete else 'not complete'}>"

    @property
    def shares(self) -> dict[str, float]:
        """The share of all reasons that hold a feature, greatest first: how much of the decision rests on it.

        Raises
        ------
        InvalidOption
            Not all reasons are known.
        """
        return self._shares([each.features for each in self], "shares")

    @property
    def lever_shares(self) -> dict[str, float]:
        """The share of all levers that hold a feature, greatest first: in how many of the smallest ways out it takes part.

        Raises
        ------
        InvalidOption
            Not all levers are known.
        """
        return self._shares(self.levers, "lever_shares")

    def _shares(self, sets: Sequence[Sequence[str]], what: str) -> dict[str, float]:
        if not self.complete:
            raise InvalidOption(f"{what}: {self.reason}. Ask for all reasons: count=1000, and no time limit.")
        count = {name: sum(name in each for each in sets) / max(len(sets), 1) for name in self.factual}
        return dict(sorted(count.items(), key=lambda each: -each[1]))

    @property
    def levers(self) -> tuple[tuple[str, ...], ...]:
        """The smallest sets of features that suffice to change the decision: every one takes a feature from each reason.

        All of them where the list of reasons is complete; otherwise those that the reasons found prove to be smallest.
        """
        return tuple(tuple(change.feature for change in way.changes) for way in self.ways)

    def __str__(self) -> str:
        if self.complete and self.reason:
            return f"Nothing holds the row back: {self.reason}."
        if self.error:
            return f"Not asked about: {self.error}"
        lines = [f"Why {self.decision}:"] + ([f"Note: {self.note}."] if self.note else [])
        for number, each in enumerate(self, 1):
            held = (
                each.as_long_as
                if self.space is None
                else as_long_as(each.values, each.ranges, self.space, self.wording)
            )
            lines.append(f"{number}. {', '.join(map(self.wording.name, each.features)) or each}")
            lines += [f"   as long as {held}"] if each.features else []
            lines += [f"   {each.note}"] if each.note else []
        return "\n".join([*lines, *self.proved()])

    def proved(self) -> list[str]:
        """Return what is proved of the reasons as a whole, in sentences."""
        each = "Each set alone keeps the row out of the target, and no feature of it can be left out: proved."
        lines = [each if self.reasons else "No reason was found in time."]
        lines.append("There is no other reason: proved." if self.complete else f"There may be others: {self.reason}.")
        necessary = ", ".join(map(self.wording.name, self.necessary))
        return [*lines, *([f"In every reason: {necessary}."] if necessary else [])]

    def _repr_html_(self) -> str:
        made: str = resolve("mace.notebook:reasons_html")(self)
        return made

    @property
    def decision(self) -> str:
        """What is explained, in words: what the model says of the row, and what it does not."""
        target = self.wording.target(self.target)
        if self.prediction is None or str(self.prediction) in self.target.split(
            " or "
        ):  # too few models of a set agree
            return f"not {target}"
        return f"{self.wording.outcome(self.prediction)}, not {target}"

    @property
    def wording(self) -> Wording:
        """What people call features, levels and outcomes; as in the data where it was read from JSON."""
        return AS_IN_DATA if self.space is None else self.space.wording

    def plot(self, number: int | None = None, *, space: FeatureSpace | None = None, ax: Any = None) -> Any:
        """Draw the reasons below each other: of each feature the range that holds the decision, and where the row is in it.

        Parameters
        ----------
        number : int, optional
            Which reason, 1 for the first; where not given all of them, at most 12.
        space : FeatureSpace, optional
            Needed only where the reasons were read from JSON.
        ax : matplotlib axes, optional
            Where to draw; new ones where not given.

        Returns
        -------
        ReasonsDisplay
            See :mod:`mace.plots`; its ``ax_`` and ``figure_`` are matplotlib's.
        """
        return resolve("mace.plots:ReasonsDisplay").from_reasons(self, number, space=space).plot(ax)

    def letter(
        self,
        template: str | Path | None = None,
        *,
        html: bool = False,
        language: str = "en",
        names: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        outcomes: Mapping[Any, str] | None = None,
        levels: Mapping[str, Mapping[Any, str]] | None = None,
        number: int = 1,
        **fields: object,
    ) -> str:
        """Return a letter to the person that says what decided: a reason, how far it reaches, and what is proved of it.

        The parameters are those of :meth:`mace.Explanation.letter`; ``number`` is that of the reason.
        """
        made: str = resolve("mace.letters.why:letter_why")(
            self,
            template,
            html=html,
            language=language,
            wording={"names": names, "units": units, "outcomes": outcomes, "levels": levels},
            number=number,
            fields=fields,
        )
        return made

    def certified(self, statement: Statement, proof: Proof) -> Reasons:
        """Return the reasons with certificates; ``proof`` gives that of no row of the target fulfilling some constraints."""
        each = tuple(
            replace(one, certificate=_of_values(one, proof), ranges_certificate=_of_ranges(one, proof)) for one in self
        )
        return replace(self, reasons=each, certificate=self._whole(statement) if self.complete and each else None)

    def _whole(self, statement: Statement) -> Certificate:
        """Return the proof that every reason holds one of these: rows of the target, whose sets of changes no other set hits."""
        sets = [list(each.features) for each in self]
        claim = {
            "status": "unknown",
            "lower": 0.0,
            "upper": None,
            "counterfactual": None,
            "reasons": {"sets": sets, "rows": [_row(way) for way in self.ways]},
        }
        return Certificate(VERSION, statement.to_dict(), claim, {"lane": "none"})

    def to_dict(self) -> dict[str, Any]:
        """Return the reasons as plain data; the schema is documented in ``docs/reasons.md``."""
        return {
            "version": SCHEMA,
            "reasons": [each.to_dict() for each in self],
            "complete": self.complete,
            "reason": self.reason,
            "necessary": list(self.necessary),
            "levers": [list(names) for names in self.levers],
            "ways": [way.to_dict() for way in self.ways],
            "prediction": None if self.prediction is None else plain(self.prediction),
            "target": self.target,
            "factual": {name: plain(value) for name, value in self.factual.items()},
            "note": self.note,
            "error": self.error,
            "certificate": _plain_proof(self.certificate),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reasons:
        """Return the reasons that :meth:`to_dict` wrote, with their certificates.

        Raises
        ------
        InvalidOption
            Something is not as ``docs/reasons.md`` says; the message names the place.
        """
        get = partial(part, data, "reasons")
        if get("version", int) != SCHEMA:
            raise InvalidOption(
                f"from_dict: version {data['version']!r:.40} of reasons is not known; this MACE reads {SCHEMA}."
            )
        return cls(
            reasons=tuple(Reason.from_dict(each) for each in get("reasons", list)),
            complete=get("complete", bool),
            reason=get("reason", str),
            necessary=texts(get("necessary", list)),
            prediction=get("prediction", Scalar | None),
            target=get("target", str),
            factual=scalars(get("factual", dict)),
            ways=tuple(Counterfactual.from_dict(each) for each in get("ways", list)),
            note=get("note", str),
            error=get("error", str),
            certificate=_read_proof(get("certificate", dict | None)),
        )

    def to_json(self, indent: int | None = None) -> str:
        """Return the reasons as JSON text."""
        return json_of(self.to_dict(), indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Reasons:
        """Return the reasons that :meth:`to_json` wrote; anything else is an :class:`InvalidOption`."""
        return cls.from_dict(read_json(text))


def as_long_as(
    values: Mapping[str, Scalar], ranges: RecourseRegion | None, space: FeatureSpace, wording: Wording = AS_IN_DATA
) -> str:
    """Return what holds where a reason does, as a sentence has it: its ranges, without ends that are the feature's own, or its values."""
    said = [
        f"{wording.name(name)} is {held_words(name, value, ranges, space, wording)}" for name, value in values.items()
    ]
    return in_a_list(said, "and")


def held_words(
    name: str, value: Scalar, ranges: RecourseRegion | None, space: FeatureSpace, wording: Wording = AS_IN_DATA
) -> str:
    """Return what a feature of a reason may be, as in "at least 3601"."""
    ends = Ends(value, value) if ranges is None or name not in ranges else ranges[name]
    shown = partial(wording.value, name)
    if ends.levels is not None:
        others = few_others(name, ends, space)
        if others:
            return f"anything but {in_a_list(list(map(shown, others)), 'or')}"
        levels = ", ".join(map(shown, ends.levels))
        return f"one of {levels}" if len(ends.levels) > 1 else levels
    low, high = open_ends(name, ends, space)
    if is_missing(ends.low) or ends.low == ends.high:
        return shown(ends.low)
    if low and high:
        return "anything but missing" if space[name].missing else "anything"
    if low:
        return f"at most {shown(ends.high)}"
    if high:
        return f"at least {shown(ends.low)}"
    return f"from {shown(ends.low)} to {shown(ends.high)}"


def few_others(name: str, ends: Ends, space: FeatureSpace) -> tuple[Scalar, ...]:
    """Return the levels that are not in a range, where that is the shorter way to say it."""
    feature, held = space[name], ends.levels
    if not isinstance(feature, Categorical) or held is None or feature.missing:
        return ()
    others = tuple(shown for level in feature.levels if (shown := shown_level(level)) not in held)
    return others if len(others) <= MOST_OTHERS and 2 * len(others) < len(held) else ()


def open_ends(name: str, ends: Ends, space: FeatureSpace) -> tuple[bool, bool]:
    """Return whether either end of a range is that of the feature itself."""
    feature = space[name]
    if isinstance(feature, Date):
        return ends.low == feature.text(feature.low), ends.high == feature.text(feature.high)
    if isinstance(feature, Real | Integer):
        return ends.low in (feature.low, meant(feature, feature.low)), ends.high in (
            feature.high,
            meant(feature, feature.high),
        )
    return ends.low == shown_level(feature.levels[0]), ends.high == shown_level(feature.levels[-1])


def _plain_ends(ends: Ends) -> Any:
    if ends.levels is not None:
        return [plain(level) for level in ends.levels]
    return {name: None if end is None else plain(end) for name, end in (("low", ends.low), ("high", ends.high))}


def _read_ends(ends: object) -> Ends:
    if isinstance(ends, list):
        return Ends(levels=tuple(scalar(level) for level in ends))
    low, high = (scalar(part(ends, "a range", name, Scalar | None)) for name in ("low", "high"))
    return Ends(low, high)


def _plain_proof(made: Certificate | None) -> dict[str, Any] | None:
    return None if made is None else made.to_dict()


def _read_proof(made: dict[str, Any] | None) -> Certificate | None:
    return None if made is None else Certificate.from_dict(made)


def _of_values(reason: Reason, proof: Proof) -> Certificate | None:
    """Return the certificate of a reason; ``None`` where its proof was not made in time."""
    rows = {name: _row(answer) for name, answer in reason.witnesses.items()}
    return _claiming(proof([fixed(*reason.features)] if reason.features else []), "reason", rows)


def _of_ranges(reason: Reason, proof: Proof) -> Certificate | None:
    """Return the certificate of the ranges of a reason; ``None`` where they were not asked for, or their proof was not made in time."""
    if reason.ranges is None:
        return None
    kept = [name for name in reason.features if name not in reason.ranges]
    ends = [each.constraint(name) for name, each in reason.ranges.items()]
    claim = {name: _plain_ends(each) for name, each in reason.ranges.items()} | dict.fromkeys(kept)
    return _claiming(proof([*ends, *map(fixed, kept)]), "ranges", claim)


def _claiming(made: Certificate | None, what: str, claim: dict[str, Any]) -> Certificate | None:
    """Return a proof that there is no row with what it is said to prove; ``None`` where it does not."""
    if made is None or made.claim["status"] != "infeasible":
        return None
    return replace(made, claim={**made.claim, what: claim})


def _row(answer: Counterfactual) -> dict[str, Scalar | None]:
    return {name: plain(value) for name, value in answer.values.items()}

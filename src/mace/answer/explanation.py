"""The answer: an explanation is a sequence of counterfactuals, nearest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from mace.answer.counterfactual import AS_IN_DATA, Counterfactual, real_dtype, show_value
from mace.answer.later import Later
from mace.answer.margin import NoiseMargin
from mace.answer.plain import json_of, part, plain, read_json, scalars, status_of, texts
from mace.answer.region import RecourseRegion
from mace.answer.score import AnswerScores, Threshold, read_scores
from mace.answer.words import among, headline, no_further, short, whole, why
from mace.certify.certificate import Certificate
from mace.errors import InvalidOption
from mace.problem import Status
from mace.registry import resolve
from mace.slips import ANSWERS, no_attribute
from mace.space import FeatureSpace, Scalar, Wording
from mace.space.features import restore

if TYPE_CHECKING:
    from rich.console import Group

SCHEMA_VERSION = 2
"""Of what is written; versions from 1 on are read."""


@dataclass(frozen=True, slots=True)
class Explanation(Sequence[Counterfactual]):
    """What a row would have to change, nearest first.

    Attributes
    ----------
    counterfactuals : tuple of Counterfactual
        The answers; none where the status is ``infeasible``, ``unknown``, ``reached`` or ``error``.
    status : Status
        ``optimal``: every answer is proved nearest. ``feasible``: some gap is open. ``infeasible``: proved, none exists.
        ``unknown``: nothing valid in hand, nothing proved but ``lower``. ``reached``: the row is at the target already, and there is
        nothing to change. ``error``, in a batch only: the row was not explained.
    factual : dict
        The row as it is.
    prediction : label, optional
        What the model says of it; ``None`` where a batch did not ask it.
    target, distance : str
        What was asked for, in words.
    lower : float
        Proved: nothing nearer than this reaches the target.
    reason : str
        Why a gap is open, why there is no answer, or what of a row outside the space was let in; empty otherwise.
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
    hints : tuple of str
        Sentences on what to look at before the answer is shown: features such as age or sex that were free to change.
    diversity : str
        How several answers differ, in words; empty where one was asked for.
    conflict : tuple of constraints
        Where the status is ``infeasible``: the constraints that are to blame, as few as were found; read from JSON, their texts.
    round_to : dict of str to number
        Of what the answers' values are multiples: ``lower`` and the proofs are about such rows alone. Empty where any number counted.
    rounds_changes : bool
        Whether they are about such rows that, moreover, change no other features than the answer, as of linear models and networks.
        :attr:`lower_unrounded` is about all rows.
    rounds_next : bool
        Whether they are about the rows next to the nearest one, of which each number that is not round goes to the multiple below or
        above, as where many features change.
    outside : str
        Where the row lies outside the space, and its explainer lets it in: what was let in, in words; empty otherwise. It stands in
        ``reason`` too, and ``space`` is that of the row.
    fixed : tuple of str
        The features that constraints keep by name, as ``fixed("age")`` does; not all that ``only`` leaves out.
    classes : tuple of labels, optional
        The model's labels; ``None`` where it predicts numbers, and where the explanation was read from JSON.
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
    hints: tuple[str, ...] = field(default=(), repr=False)
    diversity: str = ""
    conflict: tuple[object, ...] = ()
    round_to: dict[str, float] = field(default_factory=dict)
    rounds_changes: bool = False
    rounds_next: bool = False
    _scores: AnswerScores | None = field(default=None, repr=False, compare=False)
    _unrounded: Later[float] | None = field(default=None, repr=False, compare=False)
    outside: str = ""
    fixed: tuple[str, ...] = ()
    _margin: Later[NoiseMargin] | None = field(default=None, repr=False, compare=False)
    classes: tuple[Scalar, ...] | None = field(default=None, repr=False, compare=False)

    __setstate__ = restore

    @property
    def lower_unrounded(self) -> float | None:
        """Proved: no row nearer than this reaches the target, round or not.

        Where answers are round this is another question, which is asked when it is first wanted, under the same time limit; ``None``
        where the explanation comes from another process or from a file.
        """
        return self.lower if self._unrounded is None else self._unrounded.get()

    @property
    def margin(self) -> NoiseMargin | None:
        """How much noise the nearest answer stands, proved: as a share of each feature's range, or of the noise of ``robust``.

        It is asked when it is first wanted, under the same time limit, and kept: from then on it is in the text and the JSON. ``None``
        where there is no answer, or where it was not asked for in the process that could. See :meth:`mace.Explainer.margin`.
        """
        return None if self._margin is None or not self else self._margin.get()

    @property
    def known_margin(self) -> NoiseMargin | None:
        """What is known of it, without asking."""
        return None if self._margin is None else self._margin.known

    @property
    def score(self) -> float | None:
        """What the model reports of the row: a probability, a score or a prediction, as :attr:`score_of` says.

        Asked of the model when it is first wanted, of the row and all answers in one call; ``None`` where the model reports nothing
        but labels, or has changed since.
        """
        return None if self._scores is None else self._scores.at(0)

    @property
    def score_of(self) -> str:
        """What is scored: ``"P(good)"``, ``"score of good"``, ``"prediction"``; empty where nothing is.

        The label that is asked for; where several would do, the row's own, which must be left (of two labels: the other one).
        """
        return "" if self._scores is None else self._scores.of

    @property
    def threshold(self) -> Threshold:
        """Where the target begins on the scale of the score, both ends for a range; ``None`` where there is none, as with three labels."""
        return None if self._scores is None else self._scores.threshold

    def with_scores(self, scores: AnswerScores | None) -> Explanation:
        """Return the explanation with the scores of the row and its answers."""
        each = tuple(replace(one, _scores=scores, _place=place) for place, one in enumerate(self, start=1))
        return replace(self, counterfactuals=each, _scores=scores)

    def with_round_values(
        self, steps: Mapping[str, float], *, changes: bool, next_to: bool, certificate: Certificate | None
    ) -> Explanation:
        """Return the explanation of answers that were made round one by one: its bound becomes theirs, which is about round rows only.

        ``certificate`` is that of its own bound, if there is any.
        """
        found = tuple(sorted(self, key=lambda each: each.distance))
        return replace(
            self,
            counterfactuals=found,
            lower=min(each.lower for each in found),
            certificate=self.certificate or certificate,
            round_to=dict(steps),
            rounds_changes=changes,
            rounds_next=next_to,
            _unrounded=Later(None, self.lower),
        )

    def of_outside(
        self, said: str, widen: Callable[..., RecourseRegion], unrounded: Callable[[], float]
    ) -> Explanation:
        """Return the explanation of a row from outside the space, with ``said`` as its note.

        What it asks for later is asked through ``widen`` and ``unrounded``, so that the model as read for this row alone need not be kept.
        """
        each = tuple(replace(one, _widen=widen) for one in self)
        later = None if self._unrounded is None else Later(unrounded)
        reason = "; ".join(filter(None, [self.reason, said]))
        return replace(self, counterfactuals=each, reason=reason, outside=said, _unrounded=later)

    @property
    def held_by(self) -> tuple[Scalar, ...]:
        """Of a set of models: those in which the nearest answer reaches the target; empty of one model, and without an answer."""
        return (self.counterfactuals[0].held_by or ()) if self.counterfactuals else ()

    def __len__(self) -> int:
        return len(self.counterfactuals)

    @overload
    def __getitem__(self, index: int) -> Counterfactual: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Counterfactual, ...]: ...
    def __getitem__(self, index: int | slice) -> Counterfactual | tuple[Counterfactual, ...]:
        if not self.counterfactuals and not isinstance(index, slice):
            raise IndexError(f"there is no counterfactual: the status is {self.status}. Ask `if explanation:` first.")
        return self.counterfactuals[index]

    def __getattr__(self, name: str) -> NoReturn:
        raise no_attribute("the explanation", name, ANSWERS, (each for each in dir(type(self)) if each[0] != "_"))

    def __iter__(self) -> Iterator[Counterfactual]:
        return iter(self.counterfactuals)

    # ---- for people

    @property
    def wording(self) -> Wording:
        """The names that people know, as the space has them; those of the data where it has none, or is not known."""
        return AS_IN_DATA if self.space is None else self.space.wording

    @property
    def factual_texts(self) -> dict[str, str]:
        """The factual's values for people."""
        dtypes = {} if self.space is None else {name: real_dtype(feature) for name, feature in self.space.items()}
        return {name: show_value(value, dtypes.get(name)) for name, value in self.factual.items()}

    def headline(self) -> str:
        """Return the answer in one sentence."""
        return headline(self)

    @property
    def among(self) -> str:
        """Words that follow what is proved where answers are round; empty where they may be any row."""
        return among(self)

    def no_further(self) -> str:
        """Return in one line that no further answer exists; empty where that is not proved."""
        return no_further(self)

    def why(self) -> str:
        """Return two sentences of plain English: what decided, and what is proved of it, what is not."""
        return why(self)

    def __repr__(self) -> str:
        return short(self)

    def __str__(self) -> str:
        return whole(self)

    def __rich__(self) -> Group:
        from mace.answer.display import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        made: str = resolve("mace.notebook:explanation_html")(self)
        return made

    def plot(
        self,
        number: int | None = None,
        *,
        space: FeatureSpace | None = None,
        population: Any = None,
        ax: Any = None,
    ) -> Any:
        """Draw what to change: the score and each change, against the feature's range and the people of ``population``, a frame.

        Parameters
        ----------
        number : int, optional
            Which counterfactual, 1 for the nearest; where not given all of them side by side, at most 12.
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
        made = resolve("mace.plots:ChangesDisplay").from_explanation(self, number, space=space, population=population)
        return made.plot(ax)

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
        number: int | Literal["all"] = 1,
        score: bool = False,
        margin: bool = False,
        **fields: object,
    ) -> str:
        """Return a letter to the person in plain words: what would have to change, by how much, and what was to stay.

        The values are those of the answer, to the last digit: they are confirmed by the model, and a letter that rounded them could be
        wrong. They are as round as the data are, or as ``explain(round_to=...)`` asks for.

        Parameters
        ----------
        template : str or Path, optional
            A Jinja2 template, as text or as a file; see ``docs/reports.md`` for what it may use.
        html : bool
            Whether the letter is a page of HTML, in which everything is escaped, rather than text.
        language : {"en", "de", "fr"}
            In which the letter is written, with its numbers and dates.
        names, units, outcomes, levels : mapping, optional
            What features are called, in what they are counted, and what outcomes and levels are called, where the space does not say so,
            or says otherwise; see :meth:`FeatureSpace.describe`. A protected feature is mentioned only if ``names`` has it.
        number : int or "all"
            Which counterfactual, 1 for the nearest; or all of them in one letter.
        score : bool
            Whether the model's score, before and after, is told.
        margin : bool
            Whether it is told by how much the changed values may turn out otherwise; :attr:`margin` is asked for then.
        **fields
            ``name``, ``sender``, ``date``, ``address``, ``reference``, ``contact``; and what else a template has names for.
        """
        made: str = resolve("mace.letters.letter:letter")(
            self,
            template,
            html=html,
            language=language,
            wording={"names": names, "units": units, "outcomes": outcomes, "levels": levels},
            number=number,
            score=score,
            margin=margin,
            fields=fields,
        )
        return made

    # ---- for programs

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the factual and the counterfactuals as rows over the original features, with prediction, score, distance and status.

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
        if self._scores is not None:
            frame["score" if "score" not in self.factual else "model score"] = [self.score, *(c.score for c in self)]
        frame["distance"] = [0.0, *(c.distance for c in self)]
        frame["lower"] = [0.0, *(c.lower for c in self)]
        frame["status"] = ["", *(str(c.status) for c in self)]
        return to_native(frame, library)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data; the schema is documented in ``docs/explanation.md``."""
        return {
            "version": SCHEMA_VERSION,
            "status": str(self.status),
            "factual": {name: plain(value) for name, value in self.factual.items()},
            "prediction": self.prediction,
            "target": self.target,
            "distance": self.distance,
            "lower": self.lower,
            "reason": self.reason,
            "seconds": self.seconds,
            "exhausted": self.exhausted,
            "solver": self.solver,
            "error": self.error,
            **({"hints": list(self.hints)} if self.hints else {}),
            "diversity": self.diversity,
            "conflict": [str(constraint) for constraint in self.conflict],
            "round_to": self.round_to,
            "rounds_changes": self.rounds_changes,
            "rounds_next": self.rounds_next,
            **({"outside": self.outside} if self.outside else {}),
            **({"fixed": list(self.fixed)} if self.fixed else {}),
            "lower_unrounded": self.lower if self._unrounded is None else self._unrounded.known,
            "score": self.score,
            "score_of": self.score_of,
            "threshold": list(self.threshold) if isinstance(self.threshold, tuple) else self.threshold,
            **({"margin": self.known_margin.to_dict()} if self.known_margin is not None else {}),
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
        get = partial(part, data, "an explanation")
        if get("version", int) not in range(1, SCHEMA_VERSION + 1):
            raise InvalidOption(
                f"from_dict: version {data['version']!r:.40} of explanations is not known; this MACE reads 1 to {SCHEMA_VERSION}."
            )
        given = get("round_to", dict) if "round_to" in data else {}
        steps = {name: part(given, "round_to", name, float) for name in given}
        made = cls(
            counterfactuals=tuple(Counterfactual.from_dict(each) for each in get("counterfactuals", list)),
            status=status_of(get("status", str)),
            factual=scalars(get("factual", dict)),
            prediction=None if get("prediction", Scalar | None) is None else data["prediction"],
            target=get("target", str),
            distance=get("distance", str),
            lower=get("lower", float),
            reason=get("reason", str),
            seconds=get("seconds", float),
            exhausted=get("exhausted", bool),
            solver=get("solver", str),
            error=get("error", str) if "error" in data else "",
            hints=texts(get("hints", list)) if "hints" in data else (),
            diversity=get("diversity", str) if "diversity" in data else "",
            conflict=tuple(map(str, get("conflict", list))) if "conflict" in data else (),
            round_to=steps,
            rounds_changes=get("rounds_changes", bool) if "rounds_changes" in data else False,
            rounds_next=get("rounds_next", bool) if "rounds_next" in data else False,
            outside=get("outside", str) if "outside" in data else "",
            fixed=texts(get("fixed", list)) if "fixed" in data else (),
            _unrounded=Later(None, get("lower_unrounded", float | None)) if steps else None,
            _margin=Later(None, NoiseMargin.from_dict(data["margin"])) if "margin" in data else None,
        )
        return made.with_scores(read_scores(data)) if data.get("score") is not None else made

    def to_json(self, indent: int | None = 2) -> str:
        """Return the explanation as JSON text."""
        return json_of(self.to_dict(), indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Explanation:
        """Return the explanation that :meth:`to_json` wrote; it has no certificates. Anything else is an :class:`InvalidOption`."""
        return cls.from_dict(read_json(text))

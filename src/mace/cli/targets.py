"""The target of a command: a label, or a bound on a probability or prediction, written as it is shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

from mace.errors import InvalidTarget
from mace.space import Scalar
from mace.targets import Between, at_least, at_most, between, of_label
from mace.targets.target import MOST_CALLS

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s?%?"
_OF = r"(?P<of>.*?)"
_FORMS: list[tuple[str, Callable[..., Between]]] = [
    (rf"(?P<low>{_NUMBER})\s*<=\s*{_OF}\s*<=\s*(?P<high>{_NUMBER})", between),
    (rf"(?:{_OF}\s+)?between\s+(?P<low>{_NUMBER})\s+and\s+(?P<high>{_NUMBER})", between),
    (rf"{_OF}\s*>=\s*(?P<low>{_NUMBER})", at_least),
    (rf"{_OF}\s*<=\s*(?P<high>{_NUMBER})", at_most),
]
_STRICT = re.compile(rf"(.*[^<>=!\s])?\s*[<>]\s*{_NUMBER}")


def target_of(
    text: str, classes: Sequence[Scalar] | None, called: Mapping[str, str] = MappingProxyType({})
) -> Scalar | Between:
    """Return the target that a text says: a label of the model that prints so, ``label >= 0.7``, ``label <= 0.7``, or a range.

    A range is ``0.4 <= label <= 0.6`` or ``label between 0.4 and 0.6``; 70% is 0.7. The label may stand in ``P(...)``, as answers show
    it, or between quotes. It is left out where the model predicts numbers (or is called ``prediction``), and may be where labels are 0
    and 1. ``called`` is what people call the labels, whose names the command line does not take.

    Raises
    ------
    InvalidTarget
        It is ``label > 0.7``: a bound is always included. Or a label is left out that is needed, or given to a model without labels.
    """
    label = _label(text, classes)
    if label is not None:
        return label
    stripped = text.strip()
    for form, make in _FORMS:
        match = re.fullmatch(form, stripped)
        if match is not None:
            found = match.groupdict()
            bounds = [_bound(found[end]) for end in ("low", "high") if end in found]
            target = make(*bounds, label=_whose(found["of"] or "", classes))
            _check(text, target, classes)
            return target
    if _STRICT.fullmatch(stripped):
        raise InvalidTarget(f'--target {text!r}: bounds are included. Write "label >= 0.7" or "label <= 0.7".')
    if classes and re.fullmatch(_NUMBER, stripped) and 0 < _bound(stripped) < 1:
        calls = " or ".join(f'"{label} >= {stripped}"' for label in classes[:MOST_CALLS])
        raise InvalidTarget(f"--target {text!r}: it is no label; for a probability write {calls}.")
    known = next((label for label in classes or () if called.get(str(label)) == stripped), None)
    if known is not None:
        raise InvalidTarget(
            f"--target {text!r}: this is what {str(known)!r} is called. Write --target {shlex.quote(str(known))}."
        )
    return text


def _bound(text: str) -> float:
    """Return a number, or the share that a percentage is: the float nearest to it."""
    return float(text) if not text.endswith("%") else float(Decimal(text[:-1].strip()) / 100)


def _check(text: str, target: Between, classes: Sequence[Scalar] | None) -> None:
    """Refuse a bound of no label, or of one that cannot be, in the words of the command line."""
    try:
        of_label(target, classes)
    except InvalidTarget as error:
        labels = ["prediction"] if classes is None else [f"P({label})" for label in classes[:MOST_CALLS]]
        shown = str(replace(target, label="label"))
        calls = " or ".join(f'"{shown.replace("P(label)", label)}"' for label in labels)
        what = "the model predicts numbers" if classes is None else "it does not say of which outcome"
        raise InvalidTarget(f"--target {text!r}: {what}. Write {calls}.") from error


def _whose(text: str, classes: Sequence[Scalar] | None) -> object:
    """Return the label that a bound is on; ``None`` where it is left out, and the text where there is no such label."""
    inside = re.sub(r"^P\((.*)\)$", r"\1", text)
    bare = re.sub(r"""^(['"])(.*)\1$""", r"\2", inside)
    for given in (text, inside, bare):
        label = _label(given, classes)
        if label is not None:
            return label
    is_left_out = not text or (classes is None and text == "prediction")
    return None if is_left_out else bare


def _label(text: str, classes: Sequence[Scalar] | None) -> Scalar | None:
    return next((label for label in classes or () if str(label) == text), None)

"""Every exception of MACE, in one tree.

``MaceError`` is the root; each leaf is also the builtin that a caller would expect, so ``except ValueError``
keeps working. A message has three parts: what was received, what is accepted, what to do.

That no counterfactual exists, or that time ran out, is a *result* (a status), never an exception.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from html import escape


class MaceError(Exception):
    """Root of every error that MACE raises on purpose."""


class InvalidRow(MaceError, ValueError):
    """A row does not fit the feature space."""


class InvalidSpace(MaceError, ValueError):
    """A feature or a feature space is contradictory."""


class InvalidTarget(MaceError, ValueError):
    """The target is unknown to the model."""


class AlreadyThere(InvalidTarget):
    """Deprecated, and no longer raised: a row that is at the target already is an explanation of status ``reached``."""


class InvalidConstraint(MaceError, ValueError):
    """A constraint does not fit the feature space."""


class InvalidDistance(MaceError, ValueError):
    """A distance is unknown or not a distance."""


class InvalidOption(MaceError, ValueError):
    """An option has a value outside what is accepted."""


class UnknownOption(InvalidOption, TypeError):
    """A function has no option of this name."""


class InvalidCertificate(MaceError, ValueError):
    """A certificate cannot be read."""


class InvalidProgram(MaceError, ValueError):
    """A Python function, or a program, lies outside the core language."""


class UnsupportedModel(MaceError, TypeError):
    """The model cannot be read exactly."""


class ModelChanged(MaceError, RuntimeError):
    """The model is no longer the one that was read."""


class MissingPackage(MaceError, ImportError):
    """An optional package is needed and not installed."""


class ServiceError(MaceError, OSError):
    """A service did not answer, or refused a request; ``status`` is that of HTTP, 0 where there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class DatasetUnavailable(MaceError, OSError):
    """A data set is neither embedded nor in the data folder."""


def did_you_mean(wanted: object, known: Iterable[object]) -> str:
    """Return ``" Did you mean 'x'?"``, or an empty string when nothing known is close.

    Examples
    --------
    >>> did_you_mean("agee", ["age", "income"])
    " Did you mean 'age'?"
    """
    close = difflib.get_close_matches(str(wanted), [str(name) for name in known], n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def listed(names: Iterable[str], most: int = 30, room: int = 240) -> str:
    """Return names with commas between them; the first and their number where they are more than ``most`` or longer than ``room``.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b, ... (3 in all)'
    """
    each = list(names)
    shown: list[str] = []
    for name in each[:most]:
        if shown and len(", ".join(shown)) + len(name) > room:
            break
        shown.append(cut(name, 83))
    return ", ".join(shown if len(shown) == len(each) else [*shown, f"... ({len(each)} in all)"])


def cut(text: str, most: int = 190) -> str:
    """Return a text, ended with dots where it is longer than ``most`` characters.

    Examples
    --------
    >>> cut("fixed('age', 'sex')", 12)
    "fixed('ag..."
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


_OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but the line feed, and those that turn the direction of writing."""


def legible(text: str) -> str:
    """Return a text of others with question marks for what a terminal would obey, and for what turns the direction of writing.

    Examples
    --------
    >>> legible("\x1b[2Jown")
    '?[2Jown'
    """
    return _OBEYED.sub("?", text)


def for_page(text: object) -> str:
    """Return a text of others for a page: escaped, and :func:`legible`.

    Examples
    --------
    >>> for_page("a < b")
    'a &lt; b'
    """
    return escape(legible(str(text)))


def in_a_line(error: BaseException) -> str:
    """Return another library's exception as it fits into a message: its kind, and the beginning of what it says."""
    said = (str(error).splitlines() or [""])[0][:200]
    return f"{type(error).__name__}: {said}"

"""What a worker does: take the explainer in once, and answer rows; whatever a row does, it is an answer."""

from __future__ import annotations

import hashlib
import math
import pickle
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from mace.errors import InvalidOption, MaceError
from mace.explanation import Explanation
from mace.problem import Status
from mace.space import FeatureSpace, Point, Scalar

INTERRUPTED = "interrupted"
TOO_LATE = "the time limit of the whole batch was reached before"

Options = Mapping[str, Any]
"""The arguments of ``Explainer.explain`` but the row."""


class Explains(Protocol):
    """What batches need of an explainer."""

    @property
    def space(self) -> FeatureSpace:
        """The plausible domain."""
        ...

    @property
    def classes(self) -> tuple[Scalar, ...] | None:
        """The model's labels."""
        ...

    @property
    def explain(self) -> Callable[..., Explanation]:
        """Explains one row."""
        ...

    def check_question(self, factual: Point, options: Options) -> None:
        """Raise what is wrong with the question itself."""
        ...

    def question_dict(self, factual: Point, options: Options) -> dict[str, Any]:
        """Return the question as plain data."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to one row of a batch.

    Attributes
    ----------
    number : int
        Which row, counted from 0.
    explanation : Explanation
        Its answer.
    is_final : bool
        Whether asking again would not help: neither an interrupt nor the time limit of the whole batch cut it short.
    """

    number: int
    explanation: Explanation
    is_final: bool


Part = Sequence[tuple[int, Point]]
"""Some rows with their numbers."""


def answer(explainer: Explains, options: Options, number: int, point: Point, until: float) -> Answered:
    """Answer one row; ``until`` is the end of the batch by ``time.time()``."""
    left, own = until - time.time(), options["time_limit"]
    if left <= 0:
        return Answered(number, not_asked(explainer.space, point, options, TOO_LATE), is_final=False)
    is_shortened = own is None or left < own
    seconds = own if left == math.inf else left if own is None else min(left, own)
    try:
        explanation = explainer.explain(explainer.space.values_of(point), **{**options, "time_limit": seconds})
    except Exception as error:  # one bad row must never lose the others
        return Answered(number, failed(explainer.space.values_of(point), options, error), is_final=True)
    is_decided = explanation.status in (Status.OPTIMAL, Status.INFEASIBLE)
    is_cut = INTERRUPTED in explanation.reason or (is_shortened and until < math.inf)
    return Answered(number, explanation, is_final=is_decided or not is_cut)


def one_thread() -> Any:
    """Return a context in which the numeric libraries use one thread: rows, not sums, are shared out, and sums keep their order."""
    return _thread_pools().limit(limits=1)


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def not_asked(space: FeatureSpace, point: Point, options: Options, reason: str) -> Explanation:
    """Return the explanation of a row that was not asked."""
    return Explanation((), Status.UNKNOWN, space.values_of(point), None, *_asked(options), lower=0.0, reason=reason)


def failed(factual: dict[str, Scalar], options: Options, error: Exception) -> Explanation:
    """Return the explanation of a row that cannot be explained."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, MaceError) else f"internal error: {error!r}"
    return Explanation((), Status.ERROR, factual, None, *_asked(options), lower=0.0, error=text)


def _asked(options: Options) -> tuple[str, str]:
    target = options["target"]
    return ("any other outcome" if target is None else str(target)), str(options["distance"])


# ---- how an explainer comes to a worker


@dataclass(frozen=True, slots=True)
class Carrier:
    """An explainer on its way to workers: its name, and how a worker fetches its bytes; it is never pickled along with rows."""

    token: str
    fetch: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class FileBytes:
    """Bytes in a file that the workers can read."""

    path: str

    def __call__(self) -> bytes:
        """Read them."""
        return Path(self.path).read_bytes()


def packed(explainer: Explains, options: Options) -> bytes:
    """Return an explainer and a question as bytes; what cannot be packed is refused."""
    import cloudpickle

    try:
        made: bytes = cloudpickle.dumps((explainer, dict(options)))
    except Exception as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise InvalidOption(
            f"the model or the question cannot be sent to other processes ({type(error).__name__}: {said}). "
            "Use n_jobs=1, or give the model as an object that pickles (an onnx.ModelProto instead of a session)."
        ) from error
    return made


def token_of(data: bytes) -> str:
    """Return the name of some bytes."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def carried(explainer: Explains, options: Options) -> Iterator[Carrier]:
    """Give a carrier for workers on this machine: the bytes are written once, to a file that is gone afterwards."""
    data = packed(explainer, options)
    with tempfile.TemporaryDirectory(prefix="mace-") as folder:
        path = Path(folder) / "explainer.pickle"
        path.write_bytes(data)
        yield Carrier(token_of(data), FileBytes(str(path)))


_RECEIVED: dict[str, tuple[Explains, Options]] = {}


def receive(carrier: Carrier) -> tuple[Explains, Options]:
    """Return the explainer and the question of a carrier, unpacked once in each process; only the last one is kept."""
    if carrier.token not in _RECEIVED:
        received = unpack(carrier.fetch())
        _RECEIVED.clear()
        _RECEIVED[carrier.token] = received
    return _RECEIVED[carrier.token]


def unpack(data: bytes) -> tuple[Explains, Options]:
    """Return what :func:`packed` packed; the bytes come from this program's own other processes."""
    explainer, options = pickle.loads(data)  # noqa: S301
    return explainer, options


def perform(carrier: Carrier, part: Part, until: float) -> list[Answered]:
    """Answer some rows in a worker, on one thread."""
    explainer, options = receive(carrier)
    with one_thread():
        return [answer(explainer, options, number, point, until) for number, point in part]

"""How an explainer comes to the workers: once to each, and never along with rows."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mace.answer.asked import AskedModel
from mace.answer.question import Question
from mace.disk import OWNER_ONLY, lock, remove_if_left, unwritable
from mace.errors import InvalidOption
from mace.language.source import remember_typed, typed_sources

FOLDER_PREFIX, FILE = "mace-batch-", "explainer.pickle"
"""How the temporary folder and the file in it are called."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """An explainer and a question on their way to workers.

    Attributes
    ----------
    token : str
        A name for them.
    fetch : callable
        How a worker fetches their bytes.
    parent : int, optional
        The process without which a worker has nothing to do, where it runs on the same machine.
    """

    token: str
    fetch: Callable[[], bytes]
    parent: int | None = None


def held(data: bytes) -> bytes:
    """Return bytes that are pickled along; whoever sends them makes sure that they are sent once."""
    return data


def from_ray(reference: Any) -> bytes:
    """Return bytes in Ray's object store, of which there is one copy a machine."""
    import ray

    found: bytes = ray.get(reference)
    return found


def _from_dask(name: str) -> bytes:
    """Return bytes in a plug-in that every Dask worker has, those that come later too."""
    from distributed import get_worker

    found: bytes = get_worker().plugins[name].data
    return found


def packed(explainer: AskedModel, question: Question) -> bytes:
    """Return an explainer and a question as bytes; what cannot be packed is refused."""
    import cloudpickle

    try:
        made: bytes = cloudpickle.dumps((typed_sources(), cloudpickle.dumps((explainer, question))))
    except Exception as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise InvalidOption(
            f"the model or the question cannot be sent to other processes ({type(error).__name__}: {said}). "
            "Use n_jobs=1, or give the model as an object that pickles (an onnx.ModelProto instead of a session)."
        ) from error
    return made


def token_of(data: bytes) -> str:
    """Return a name for some bytes."""
    return hashlib.sha256(data).hexdigest()


def carrier(data: bytes, backend: Any, stack: ExitStack) -> Carrier:
    """Return a carrier for the workers of a joblib back end; what it needs is released with the stack."""
    name = token_of(data)
    match type(backend).__name__:
        case "DaskDistributedBackend":
            from mace.batch.dask import register

            register(backend.client, name, data, stack)
            return Carrier(name, partial(_from_dask, name))
        case "RayBackend":
            import ray

            return Carrier(name, partial(from_ray, ray.put(data)))
    return Carrier(name, stack.enter_context(_file_of(data)).read_bytes, os.getpid())


@contextmanager
def _file_of(data: bytes) -> Iterator[Path]:
    """Give a temporary file with some bytes, locked while it is in use; remove those that killed processes left."""
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*/{FILE}"):
        if remove_if_left(left):
            with suppress(OSError):
                left.parent.rmdir()
    try:
        folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    except OSError as error:
        raise unwritable(tempfile.gettempdir(), error) from error
    try:
        with open(folder / FILE, "xb", opener=partial(os.open, mode=OWNER_ONLY)) as file:
            lock(file.fileno())
            try:
                file.write(data)
                file.flush()
            except OSError as error:
                raise unwritable(folder / FILE, error) from error
            yield folder / FILE
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_RECEIVED: dict[str, tuple[AskedModel, Question]] = {}


def receive(sent: Carrier) -> tuple[AskedModel, Question]:
    """Return an explainer and a question, unpacked once in each process; only the last ones are kept."""
    if sent.token not in _RECEIVED:
        received = unpacked(sent.fetch())
        _RECEIVED.clear()
        _RECEIVED[sent.token] = received
    return _RECEIVED[sent.token]


def unpacked(data: bytes) -> tuple[AskedModel, Question]:
    """Return what :func:`packed` packed; the bytes come from this program's own other processes."""
    sources, rest = pickle.loads(data)  # noqa: S301
    remember_typed(sources)
    explainer, question = pickle.loads(rest)  # noqa: S301
    return explainer, question

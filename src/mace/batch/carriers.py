"""How an explainer comes to the workers: once to each, and never along with rows."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mace.batch.asks import Explains, Options
from mace.errors import InvalidOption
from mace.language.source import remember_typed, typed_sources


@dataclass(frozen=True, slots=True)
class Carrier:
    """An explainer and a question on their way to workers: a name for them, and how a worker fetches their bytes."""

    token: str
    fetch: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class FileBytes:
    """Bytes in a file, for workers on this machine."""

    path: str

    def __call__(self) -> bytes:
        """Read them."""
        return Path(self.path).read_bytes()


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes that travel themselves, where something else sees to it that they travel once."""

    data: bytes

    def __call__(self) -> bytes:
        """Return them."""
        return self.data


@dataclass(frozen=True, slots=True)
class DaskBytes:
    """Bytes in a plug-in that every Dask worker has, those that come later too."""

    name: str

    def __call__(self) -> bytes:
        """Take them from the worker."""
        from distributed import get_worker

        found: bytes = get_worker().plugins[self.name].data
        return found


@dataclass(frozen=True, slots=True)
class RayBytes:
    """Bytes in Ray's object store, one copy a machine."""

    reference: Any

    def __call__(self) -> bytes:
        """Take them from there."""
        import ray

        found: bytes = ray.get(self.reference)
        return found


def packed(explainer: Explains, options: Options) -> bytes:
    """Return an explainer and a question as bytes; what cannot be packed is refused."""
    import cloudpickle

    try:
        made: bytes = cloudpickle.dumps((typed_sources(), cloudpickle.dumps((explainer, dict(options)))))
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
    """Return a carrier for the workers of a joblib back end; what it needs is given free with the stack."""
    name = token_of(data)
    match type(backend).__name__:
        case "DaskDistributedBackend":
            from mace.batch.dask import register

            register(backend.client, name, data, stack)
            return Carrier(name, DaskBytes(name))
        case "RayBackend":
            import ray

            return Carrier(name, RayBytes(ray.put(data)))
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mace-"))
    path = Path(folder) / "explainer.pickle"
    path.write_bytes(data)
    return Carrier(name, FileBytes(str(path)))


_RECEIVED: dict[str, tuple[Explains, Options]] = {}


def receive(sent: Carrier) -> tuple[Explains, Options]:
    """Return an explainer and a question, unpacked once in each process; only the last ones are kept."""
    if sent.token not in _RECEIVED:
        received = unpacked(sent.fetch())
        _RECEIVED.clear()
        _RECEIVED[sent.token] = received
    return _RECEIVED[sent.token]


def unpacked(data: bytes) -> tuple[Explains, Options]:
    """Return what :func:`packed` packed; the bytes come from this program's own other processes."""
    sources, rest = pickle.loads(data)  # noqa: S301
    remember_typed(sources)
    explainer, options = pickle.loads(rest)  # noqa: S301
    return explainer, options

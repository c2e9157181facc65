"""The table of contents of a ``.skops`` file, checked node by node before anything in it is built.

A ``.skops`` file is a zip archive: ``schema.json`` is a tree of nodes, each with the kind of its loader and the class or function that
it names; arrays are files beside it. Only nodes pass whose kind and full name stand in :data:`~mace.models.files.known.ALLOWED_NODES`,
with just the parts that this kind has.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zipfile import ZipFile

import numpy as np

from mace.errors import UnsupportedModel, in_a_line
from mace.models.files.known import ALLOWED_NODES, BIT_GENERATORS

LARGEST_ARCHIVE = 2**31
"""No archive may unpack to more than this, nor than ``MOST_RATIO`` times its size where that is above ``FREE_BYTES``."""
FREE_BYTES, MOST_RATIO = 2**26, 200
MOST_OBJECTS = 2_000_000
DEEPEST_ARCHIVE = 150
PROTOCOLS = (1, 2)

COMMON = {"__class__", "__module__", "__loader__", "__id__"}
ROOT = {"protocol", "_skops_version"}

Node = Mapping[str, Any]


def check_archive(data: bytes, name: str) -> list[str]:
    """Return the full names in a ``.skops`` file, all of them known.

    Parameters
    ----------
    data : bytes
        The file.
    name : str
        Its name, for messages.

    Raises
    ------
    UnsupportedModel
        It names something else, has nodes of another kind or shape, or is too large to unpack.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            _check_sizes(archive, len(data))
            schema = json.loads(archive.read("schema.json"))
            if (
                type(schema) is not dict
                or schema.get("protocol") not in PROTOCOLS
                or type(schema["protocol"]) is not int
            ):
                raise _Damaged("its protocol is unknown")
            walk = _ArchiveWalk(archive)
            walk.visit({key: value for key, value in schema.items() if key not in ROOT}, 0)
    except _Damaged as error:
        raise UnsupportedModel(f"{name} is no model that skops.io.dump writes: {error}.") from None
    except Exception as error:
        raise UnsupportedModel(f"{name} cannot be read as a skops file: {in_a_line(error)}") from error
    if walk.foreign:
        raise UnsupportedModel(f"{name} {_unknown(sorted(walk.foreign))}")
    if schema["__loader__"] != "ObjectNode":
        raise UnsupportedModel(f"{name} holds no model, but a {schema['__class__']}.")
    return sorted(walk.names)


class _Damaged(Exception):
    """What is wrong with a node."""


def _check_sizes(archive: ZipFile, size: int) -> None:
    total = sum(info.file_size for info in archive.infolist())
    if total > LARGEST_ARCHIVE or total > max(FREE_BYTES, MOST_RATIO * size):
        raise _Damaged(f"it would unpack to {total / 2**20:.0f} MB")


def _unknown(names: list[str]) -> str:
    from mace.models import REFUSED_MODELS

    for name in names:
        reason = REFUSED_MODELS.get(f"{name.partition('.')[0]}:{name.rpartition('.')[2]}")
        if reason is not None:
            return (
                f"holds {name}, which cannot be read: {reason}. Or search without a proof, if you know where it comes from: "
                "--unread search --trust."
            )
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (
        f"holds types that are not known to be safe: {', '.join(names[:10])}{more}. "
        "Say that you trust it (--trust, or trust=True) if you know where it comes from."
    )


class _ArchiveWalk:
    """Visits every node once, and notes the names."""

    def __init__(self, archive: ZipFile) -> None:
        self.archive = archive
        self.names: set[str] = set()
        self.foreign: set[str] = set()
        self.count = 0
        self.bytes = 0
        self.shapes: dict[int, int] = {}

    def visit(self, node: Any, depth: int) -> int:
        """Check a node and all below it; return a hash of its shape.

        Where the same identity stands twice skops builds the first alone, so that both must have the same shape: otherwise a few lines
        of text could stand for a number of nodes that nobody lives to see built.
        """
        self.count += 1
        if self.count > MOST_OBJECTS or depth > DEEPEST_ARCHIVE:
            raise _Damaged("it holds too many nodes, or nodes too deep in each other")
        kind, name = _kind(node)
        if name not in ALLOWED_NODES.get(kind, ()):
            self.foreign.add(name if kind in ALLOWED_NODES else f"{name} ({kind})")
            return 0
        self.names.add(name)
        parts = {key: value for key, value in node.items() if key not in COMMON}
        shape = hash(
            (
                kind,
                name,
                *(self.visit(each, depth + 1) if isinstance(each, dict) else each for each in PARTS[kind](self, parts)),
            )
        )
        identity = node.get("__id__")
        if type(identity) is not int or self.shapes.setdefault(identity, shape) != shape:
            raise _Damaged("two of its nodes have the same identity")
        return shape

    def size_up(self, file: Any) -> None:
        """Check that a file of the archive is an array of numbers or text that is as long as its header says."""
        if type(file) is not str:
            raise _Damaged("an array has no file")
        with self.archive.open(file) as stream:
            version = np.lib.format.read_magic(stream)
            header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            if version not in header:
                raise _Damaged(f"{file} is an array of an unknown version")
            shape, _, dtype = header[version](stream)
            length, read = self.archive.getinfo(file).file_size, stream.tell()
        if dtype.hasobject or any(side < 0 for side in shape) or math.prod(shape) * dtype.itemsize != length - read:
            raise _Damaged(f"{file} is not an array as long as it says")
        self.bytes += length
        if self.bytes > LARGEST_ARCHIVE:
            raise _Damaged("its arrays are too large")


def _kind(node: Any) -> tuple[str, str]:
    if type(node) is not dict:
        raise _Damaged("a node is missing")
    found = [node.get(key) for key in ("__loader__", "__module__", "__class__")]
    if not all(type(each) is str for each in found):
        raise _Damaged("a node has no name")
    return found[0], f"{found[1]}.{found[2]}"  # type: ignore[return-value]


# ---- the parts of each kind: nodes (mappings) to visit, and plain values that belong to its shape


def _only(parts: Node, *names: str) -> list[Any]:
    if set(parts) != set(names):
        raise _Damaged(
            f"a node has the parts {', '.join(sorted(parts)) or 'none'} instead of {', '.join(names) or 'none'}"
        )
    return [parts[name] for name in names]


def _nodes(values: Any) -> list[Node]:
    if type(values) is not list or not all(type(each) is dict for each in values):
        raise _Damaged("a list holds something else than nodes")
    return values


def _named(content: Any, *names: str) -> list[Any]:
    if type(content) is not dict:
        raise _Damaged("a node has no content")
    return _only(content, *names)


def _none(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    return iter(_only(parts))


def _content(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    (content,) = _only(parts, "content")
    _kind(content)
    yield content


def _state(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    return _content(walk, parts) if parts else iter(())


def _items(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    (content,) = _only(parts, "content")
    yield from _nodes(content)


def _entries(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    content, types = _only(parts, "content", "key_types")
    if type(content) is not dict or _kind(types) != ("ListNode", "builtins.list"):
        raise _Damaged("a dictionary has no keys")
    if any(_kind(each)[0] != "TypeNode" for each in _nodes(types.get("content"))):
        raise _Damaged("a key of a dictionary is made by something else than a type")
    yield types
    for key, value in content.items():
        yield key
        _kind(value)
        yield value


def _scalar(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    content = _only({"is_json": True, **parts}, "content", "is_json")[0]
    if type(content) is not str or type(json.loads(content)) not in (str, int, float, bool, type(None)):
        raise _Damaged("a value is neither a number nor text")
    yield content


def _slice(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    ends = _named(*_only(parts, "content"), "start", "stop", "step")
    if not all(type(end) in (int, type(None)) for end in ends):
        raise _Damaged("a slice has other ends than whole numbers")
    yield from ends


def _array(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    if parts.get("type") == "numpy":
        file, _ = _only(parts, "file", "type")
        walk.size_up(file)
        return
    content, shape, kind = _only(parts, "content", "shape", "type")
    if kind != "json":
        raise _Damaged(f"an array is of the type {kind!r:.40}")
    _kind(shape)
    yield shape
    yield from _nodes(content)


def _masked(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    yield from _nodes(_named(*_only(parts, "content"), "data", "mask"))


def _generator(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    """A generator of random numbers: skops calls what its state names, with a pool as large as its seed says."""
    content = dict(*_only(parts, "content"))
    bits = content.get("bit_generator", {})
    if _plain(bits, "bit_generator") not in BIT_GENERATORS:
        raise _Damaged("it names an unknown generator of random numbers")
    yield bits
    if "seed_seq" in content:
        pool = _plain(content["seed_seq"], "pool_size")
        if type(pool) is not int or not 4 <= pool <= 64:
            raise _Damaged("the seed of its random numbers is too large")
        yield content["seed_seq"]
    _only(content, "bit_generator", *(["seed_seq"] if "seed_seq" in content else []))


def _plain(entries: Any, name: str) -> Any:
    """Return the plain value of an entry of a dictionary's node, whose keys must be texts as they stand."""
    if _kind(entries) != ("DictNode", "builtins.dict") or any(
        _kind(each) != ("TypeNode", "builtins.str") for each in entries["key_types"]["content"]
    ):
        raise _Damaged("the state of its random numbers is no dictionary")
    entry = entries["content"][name]
    return json.loads(entry["content"]) if _kind(entry)[0] == "JsonNode" else None


def _reduced(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    reduced, content = _only(parts, "__reduce__", "content")
    yield from _nodes([*_named(reduced, "args"), content])


def _partial(walk: _ArchiveWalk, parts: Node) -> Iterator[Any]:
    """The one function with some of its arguments given that a model holds: scikit-learn's check of an array."""
    function, arguments, options, namespace = _nodes(
        _named(*_only(parts, "content"), "func", "args", "kwds", "namespace")
    )
    if _kind(function) != ("FunctionNode", "sklearn.utils.validation.check_array"):
        raise _Damaged("it calls a function with arguments of its own")
    if arguments.get("content") != [] or namespace.get("content") not in ({}, "null"):
        raise _Damaged("it calls a function with arguments of its own")
    yield from (function, arguments, options, namespace)


PARTS: dict[str, Callable[[_ArchiveWalk, Node], Iterator[Any]]] = {
    "ConstructorFromReduceNode": _content,
    "DTypeNode": _content,
    "DictNode": _entries,
    "FunctionNode": _none,
    "JsonNode": _scalar,
    "ListNode": _items,
    "LossNode": _reduced,
    "MaskedArrayNode": _masked,
    "NdArrayNode": _array,
    "ObjectNode": _state,
    "PartialNode": _partial,
    "RandomGeneratorNode": _generator,
    "RandomStateNode": _content,
    "SliceNode": _slice,
    "TreeNode": _reduced,
    "TupleNode": _items,
    "TypeNode": _none,
}

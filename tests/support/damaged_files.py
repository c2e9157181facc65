"""Model files damaged at random, and what the command line says of them.

A file is truncated, has bytes flipped, or numbers edited (those of a ``.skops`` file in its schema and in its arrays, so that the archive
itself stays whole). It is explained as ``mace explain`` does it, in a forked process that goes on from file to file: one line and exit
code 2, or an answer that is true of the model as loaded. A booster's file is opened in a fork of its own, rather than in a fresh
process, by the same code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from forged_files import packed, unpacked
from saved_models import LOGISTIC, NUMBERS, SPACE, TREE, _two, people
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import mace
from mace.errors import UnsupportedModel
from mace.models.files.opening import CLEAN

SECONDS = 90
"""After which a command hangs."""
OPENING = 5
"""How long a library may take to open a file; the command itself gives it more."""

HOSTILE = (-1, 0, 1, 2, -5, 7, 255, 10**6, 2**31, -(2**31), 2**63, 1e300, -1e300, 0.5, float("nan"), float("inf"))

Rng = np.random.Generator


# ---- honest files


def _skops(model: Any, *data: Any) -> Callable[[Path], Any]:
    def save(file: Path) -> None:
        import skops.io

        skops.io.dump(model.fit(*(data or _two())), file)

    return save


def _xgboost(file: Path) -> None:
    import xgboost

    xgboost.XGBClassifier(n_estimators=8, max_depth=3).fit(*_two()).save_model(file)


def _lightgbm(file: Path) -> None:
    import lightgbm

    data = lightgbm.Dataset(*_two(), params={"verbose": -1})
    lightgbm.train({"objective": "binary", "verbose": -1, "min_data_in_leaf": 3}, data, 8).save_model(file)


def _catboost(file: Path) -> None:
    import catboost

    model = catboost.CatBoostClassifier(iterations=8, depth=3, verbose=False, allow_writing_files=False)
    model.fit(*_two()).save_model(str(file))


def _onnx(file: Path) -> None:
    from skl2onnx import to_onnx

    X, labels = _two()
    network = MLPClassifier((5, 4), max_iter=60, random_state=0).fit(X, labels)
    file.write_bytes(to_onnx(network, X[:1].astype(np.float32), options={"zipmap": False}).SerializeToString())


_LEVELS = make_column_transformer(
    (OneHotEncoder(), ["school", "home"]), (MinMaxScaler(), ["income", "debt"]), remainder="passthrough"
)
_SCALED = make_column_transformer((StandardScaler(), [0, 1]), (MinMaxScaler(), [2, 3]))

KINDS: dict[str, tuple[str, tuple[Callable[[Path], Any], ...]]] = {
    "tree": (".skops", (_skops(TREE),)),
    "forest": (".skops", (_skops(RandomForestClassifier(3, max_depth=3, random_state=0)),
                          _skops(GradientBoostingClassifier(n_estimators=4)))),
    "hist": (".skops", (_skops(HistGradientBoostingClassifier(max_iter=4)),)),
    "linear": (".skops", (_skops(LOGISTIC),)),
    "mlp": (".skops", (_skops(MLPClassifier((4,), max_iter=60, random_state=0)),)),
    "pipeline": (".skops", (_skops(make_pipeline(mace.Encoder(SPACE), TREE), *people()),
                            _skops(make_pipeline(_LEVELS, LOGISTIC), *people()),
                            _skops(make_pipeline(_SCALED, TREE)))),
    "json": (".json", (_xgboost,)),
    "ubj": (".ubj", (_xgboost,)),
    "txt": (".txt", (_lightgbm,)),
    "cbm": (".cbm", (_catboost,)),
    "onnx": (".onnx", (_onnx,)),
}  # fmt: skip


@cache
def honest(kind: str, number: int) -> bytes:
    """Return an undamaged file, made in a fork: threads of the libraries must not start in the process that forks."""
    suffix, makers = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model{suffix}"
        child = os.fork()
        if child == 0:
            warnings.simplefilter("ignore")
            with contextlib.suppress(BaseException):
                makers[number](file)
            os._exit(0)
        os.waitpid(child, 0)
        return file.read_bytes()


# ---- damage


def truncated(data: bytes, rng: Rng) -> bytes:
    return data[: int(rng.integers(len(data)))]


def flipped(data: bytes, rng: Rng) -> bytes:
    changed = bytearray(data)
    for place in rng.integers(len(data), size=int(rng.integers(1, 9))):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwritten(data: bytes, rng: Rng) -> bytes:
    """Return the bytes with a word of four or eight replaced by a number."""
    changed = bytearray(data)
    word = rng.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"\x05\x00\x00\x00", b"\xff" * 8])
    place = int(rng.integers(max(1, len(data) - 8)))
    changed[place : place + len(word)] = word
    return bytes(changed)


def renumbered(data: bytes, rng: Rng) -> bytes:
    """Return a text with some of its numbers replaced."""
    text = data.decode("utf-8", errors="surrogateescape")
    if rng.random() < 0.8:  # without it LightGBM reads tree after tree, wherever they begin
        text = re.sub(r"\ntree_sizes=.*", "", text)
    found = list(re.finditer(r"(?<![\w.])-?\d+(\.\d+)?([eE][+-]?\d+)?", text))
    for match in sorted(rng.choice(len(found), size=int(rng.integers(1, 4))), reverse=True):
        begin, end = found[match].span()
        text = text[:begin] + str(HOSTILE[int(rng.integers(len(HOSTILE)))]) + text[end:]
    return text.encode("utf-8", errors="surrogateescape")


def rewritten(data: bytes, rng: Rng) -> bytes:
    """Return a ``.skops`` file with values of its schema replaced."""
    schema, files = unpacked(data)
    nodes: list[dict[str, Any]] = []
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if node.get("__loader__") == "JsonNode":
                nodes.append(node)
            left += node.values()
        elif isinstance(node, list):
            left += node
    for place in rng.integers(len(nodes), size=int(rng.integers(1, 3))):
        value = HOSTILE[int(rng.integers(len(HOSTILE)))] if rng.random() < 0.8 else "text"
        nodes[place]["content"] = json.dumps(None if rng.random() < 0.1 else value)
    return packed(schema, files)


def recomputed(data: bytes, rng: Rng) -> bytes:
    """Return a ``.skops`` file with entries of its arrays replaced, or arrays of another shape."""
    schema, files = unpacked(data)
    names = [name for name in files if name.endswith(".npy")]
    for name in rng.choice(names, size=int(rng.integers(1, 4))):
        array = np.load(io.BytesIO(files[name]))
        stream = io.BytesIO()
        np.save(stream, _other_shape(array, rng) if rng.random() < 0.2 else _other_entries(array, rng))
        files[name] = stream.getvalue()
    return packed(schema, files)


def _other_shape(array: Any, rng: Rng) -> Any:
    flat = array.ravel()
    return flat[: int(rng.integers(len(flat) + 1))] if rng.random() < 0.5 else np.concatenate([flat, flat])


def _other_entries(array: Any, rng: Rng) -> Any:
    flat = array.ravel()
    if not len(flat):
        return array
    place, value = int(rng.integers(len(flat))), HOSTILE[int(rng.integers(len(HOSTILE)))]
    column = flat[rng.choice(array.dtype.names)] if array.dtype.names else flat
    with contextlib.suppress(ValueError, OverflowError), np.errstate(all="ignore"):
        column[place] = value
    return flat.reshape(array.shape)


def damaged(kind: str, seed: int) -> tuple[int, bytes]:
    """Return which honest file of a kind it was, and the damaged one."""
    rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    number = seed % len(KINDS[kind][1])
    data, suffix = honest(kind, number), KINDS[kind][0]
    ways: tuple[Callable[[bytes, Rng], bytes], ...] = (truncated, flipped, overwritten)
    if suffix == ".skops":
        ways = (truncated, flipped, *(3 * [rewritten]), *(5 * [recomputed]))
    elif suffix in (".json", ".txt"):
        ways = (truncated, flipped, renumbered, renumbered, renumbered)
    return number, ways[int(rng.integers(len(ways)))](data, rng)


# ---- the command


def _row(kind: str, number: int) -> tuple[mace.FeatureSpace, pd.DataFrame]:
    """Return the space of a file, and the row that is explained."""
    if kind == "pipeline" and number < 2:
        return SPACE, people()[0].iloc[[0]]
    return NUMBERS, pd.DataFrame(_two()[0][:1], columns=list(NUMBERS))


def _opened(file: Path) -> tuple[int, str] | None:
    """Return how opening a booster's file ends, in a fork of this process, which has imported the libraries and used none.

    ``None`` stands for one that takes too long. What it writes stays beside the file.
    """
    from mace.models.files import opening

    folder = str(_clean(file).parent)
    os.mkdir(folder)
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(said.fileno(), 2)
            sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), write_through=True)
            code = 1
            with contextlib.suppress(BaseException):
                code = opening.main(file.suffix, str(file), folder, str(4 * 2**30), str(OPENING))
            os._exit(code)
        code = _waited(child, OPENING)
        said.seek(0)
        return None if code is None else (code, said.read().decode(errors="replace"))


def _clean(file: Path) -> Path:
    """Return where the library's own copy of a file is, if it makes one."""
    return file.parent / "clean" / f"model{CLEAN.get(file.suffix, file.suffix)}"


def _waited(child: int, seconds: float) -> int | None:
    """Return the end of a child, as ``subprocess`` counts it; ``None`` for one that had to be killed."""
    deadline, pause = time.monotonic() + seconds, 0.001
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _untrue(file: Path, said: str, code: int, kind: str, number: int) -> str | None:
    """Return what of an answer is not true of the model as loaded; ``None`` where all is."""
    space, row = _row(kind, number)
    answer = json.loads(said[said.index("{") :])  # LightGBM prints warnings of its own
    clean = _clean(file)
    try:
        model = mace.load_model(clean if clean.exists() else file, trust=True)
    except (
        UnsupportedModel
    ):  # CatBoost refuses, the second time, what it took the first time: there is nothing to compare with
        return None
    explainer = mace.Explainer(model, space)
    before = explainer.predict(row)
    if answer["prediction"] != before:
        return f"the row is {before!r}, and the answer says {answer['prediction']!r}"
    found = answer["counterfactuals"]
    if found and explainer.predict(found[0]["values"]) == before:
        return f"{found[0]['values']} does not flip the model"
    nearer = found[0]["lower"] if found else 2.0 if code == 1 else 0.0
    rng = np.random.default_rng(0)
    for _ in range(60):
        drawn = {name: _drawn(feature, row[name].iloc[0], rng) for name, feature in space.items()}
        if _distance(space, row, drawn) < nearer - 1e-9 and explainer.predict(drawn) != before:
            return f"{drawn} flips the model, nearer than {nearer}"
    return None


def _drawn(feature: Any, own: Any, rng: Rng) -> Any:
    if rng.random() < 0.6:
        return own
    if hasattr(feature, "levels"):
        return feature.levels[int(rng.integers(len(feature.levels)))]
    if feature.step is not None or isinstance(feature.low, int):
        return feature.value_at(int(rng.integers(feature.size)))
    return float(rng.uniform(feature.low, feature.high))


def _distance(space: mace.FeatureSpace, row: pd.DataFrame, drawn: dict[str, Any]) -> float:
    total = 0.0
    for name, feature in space.items():
        before, after = row[name].iloc[0], drawn[name]
        if not hasattr(feature, "levels"):
            total += abs(float(after) - float(before)) / float(feature.range)
        elif type(feature).__name__ == "Ordinal":
            levels = list(feature.levels)
            total += abs(levels.index(after) - levels.index(before)) / float(feature.range)
        else:
            total += before != after
    return total / len(space)


def _explain(kind: str, number: int, file: Path, folder: Path) -> int:
    from mace.cli.main import run

    space, row = _row(kind, number)
    (folder / "space.json").write_text(space.to_json())
    row.to_csv(folder / "row.csv", index=False)
    options = ["--data", str(folder / "row.csv"), "--space", str(folder / "space.json"), "--model", str(file)]
    return run(["explain", *options, "--json", "--time-limit", "5"])


class _Server:
    """A fork that runs one command after the other, until one kills it."""

    def __init__(self) -> None:
        self.ours, theirs = multiprocessing.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.ours.close()
            faulthandler.disable()
            warnings.simplefilter("ignore")
            with contextlib.suppress(EOFError):
                while True:
                    theirs.send(_command(*theirs.recv()))
            os._exit(0)
        theirs.close()

    def ask(self, *request: Any) -> tuple[int | None, str | None]:
        """Return a command's exit code and its fault; where it dies or hangs, that is the fault."""
        try:
            self.ours.send(request)
            if self.ours.poll(SECONDS):
                found: tuple[int, str | None] = self.ours.recv()
                return found
        except (EOFError, OSError):
            return None, f"the process ended: {_waited(self.pid, SECONDS)}"
        _waited(self.pid, 0)
        return None, f"no end within {SECONDS} s"


def _command(
    kind: str, number: int, file: Path, folder: Path, opened: tuple[int, str] | None
) -> tuple[int, str | None]:
    """Return the exit code of the command, its streams in files, and what is wrong."""
    from mace.models.files import child

    def run_opening(arguments: list[str], seconds: float) -> tuple[int, str]:
        if opened is None:
            raise subprocess.TimeoutExpired("opening", seconds)
        if _clean(file).exists():
            shutil.copy(_clean(file), arguments[2])
        return opened

    child.run_opening = run_opening
    for number_of, stream in ((1, "out"), (2, "err")):
        handle = os.open(folder / stream, os.O_WRONLY | os.O_CREAT)
        os.dup2(handle, number_of)
        os.close(handle)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(place, "w", closefd=False)) for place in (1, 2))
    try:
        code = _explain(kind, number, file, folder)
        sys.stdout.flush()
        return code, _untrue(file, (folder / "out").read_text(), code, kind, number) if code in (0, 1) else None
    except BaseException:
        return 99, traceback.format_exc(limit=-4)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


OUTCOMES = {0: "answered", 1: "none exists", 2: "refused", 3: "undecided"}


@cache
def warm() -> None:
    """Import what the forks need, and compile: in the process that forks them."""
    for name in ("xgboost", "lightgbm", "catboost", "onnx", "onnxruntime", "skops.io", "joblib"):
        with contextlib.suppress(ImportError):
            __import__(name)
    for kind in ("tree", "linear", "mlp"):
        with (
            tempfile.TemporaryDirectory() as name,
            warnings.catch_warnings(),
            threadpool_limits(1),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            warnings.simplefilter("ignore")
            file = Path(name) / "model.skops"
            file.write_bytes(honest(kind, 0))
            assert _explain(kind, 0, file, Path(name)) == 0
            assert _untrue(file, said.getvalue(), 0, kind, 0) is None


_servers: list[_Server] = []


def examine(kind: str, seed: int) -> tuple[str, str | None]:
    """Return what became of a damaged file, and what is wrong: ``None`` where nothing is."""
    warm()
    if not _servers:
        _servers.append(_Server())
    number, data = damaged(kind, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / f"model{KINDS[kind][0]}"
        file.write_bytes(data)
        opened = None if file.suffix == ".skops" else _opened(file)
        code, fault = _servers[0].ask(kind, number, file, folder, opened)
        said = (folder / "err").read_text(errors="replace").strip() if (folder / "err").exists() else ""
    if code is None:
        _servers.clear()
    if fault is not None or code not in OUTCOMES:
        return f"{kind}: wrong", f"exit code {code}: {fault or said[-600:]}"
    if code == 2 and not re.fullmatch(r"(UnsupportedModel|InvalidTarget): [^\n]+", said):
        return f"{kind}: wrong", f"not one line of a model that is refused: {said[:600]}"
    return f"{kind}: {OUTCOMES[code]}", None


if __name__ == "__main__":
    FIRST, COUNT = map(int, sys.argv[1:])
    found = {kind: [examine(kind, seed) for seed in range(FIRST, FIRST + COUNT)] for kind in KINDS}
    sys.stdout.write(json.dumps(found))

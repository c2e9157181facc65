"""Kernels: one source, which Python runs as it stands or numba compiles; both give the same numbers.

Interpreted, a kernel answers at once and slowly; compiling takes about a minute, once for an installation
(:mod:`mace.solvers.compiling` decides). All that a search keeps is in arrays, so that it may change from one to the other between any two
calls of a kernel. Numba is imported by the first kernel that is compiled.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from mace.clock import check
from mace.errors import InvalidOption

Run = Callable[..., Any]

LOOK = "look_at_the_clock"

_IMPORTED = time.time()

VARIABLE = "MACE_COMPILE"
BACKGROUND, NOW, NEVER = MODES = ("background", "now", "never")

_MODE: ContextVar[str | None] = ContextVar("mode", default=None)


def mode() -> str:
    """Return when kernels are compiled: as the environment says, in the background by default."""
    given = _MODE.get() or os.environ.get(VARIABLE) or BACKGROUND
    if given not in MODES:
        raise InvalidOption(f"{VARIABLE}={given!r} is not known. Known: {', '.join(MODES)}.")
    return given


@contextmanager
def compiling_now() -> Iterator[None]:
    """Have lanes that are prepared in this block compile at once."""
    token = _MODE.set(NOW)
    try:
        yield
    finally:
        _MODE.reset(token)


class Kernel:
    """A function over arrays and numbers that calls nothing but numpy and other kernels.

    Attributes
    ----------
    lane : str
        The package that it belongs to; its kernels change over together.
    """

    def __init__(self, function: FunctionType, flags: frozenset[str]) -> None:
        update_wrapper(self, function)
        self.name, self.function, self.flags = function.__name__, function, flags
        self.lane = lane_of(function.__module__)
        self.run: Run = self._first
        _KERNELS.setdefault(self.lane, []).append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Run it, in the tier that its lane is in."""
        return self.run(*arguments)

    def _first(self, *arguments: Any) -> Any:
        change_tier(self.lane, compiled=mode() == NOW)
        return self.run(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """Run it by Python; a deadline ends it in the middle, by :class:`mace.clock.OutOfTime`.

        Compiled code says nothing where a number becomes infinite, and stops at a division by 0.
        """
        function = _interpreted(self.__module__)[self.name]
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="raise"):
            return function(*arguments)

    @property
    def compiled(self) -> Any:
        """It as numba compiles it, at the first call with arguments of some types, or finds it in its cache."""
        return _compiled(self.__module__)[self.name]


_KERNELS: dict[str, list[Kernel]] = {}


def lane_of(module: str) -> str:
    """Return the package of the lane that a module belongs to."""
    return ".".join(module.split(".")[:3])


def kernel(function: Any, *, no_nan: bool = False) -> Any:
    """Make a function a kernel.

    With ``no_nan`` numbers are never NaN, and the sign of 0 does not matter, so that numba may use the processor's wide registers for
    maxima. Sums keep their order in any case: decisions hang on their last digit.
    """
    return Kernel(function, frozenset({"nnan", "nsz"}) if no_nan else frozenset())


def change_tier(lane: str, *, compiled: bool) -> None:
    """Have the kernels of a lane run compiled, or interpreted, from their next call on."""
    for each in _KERNELS[lane]:
        if not compiled:
            each.run = each.interpret
        elif _has_records(lane):
            each.run = _with_structs(each.compiled)
        else:
            each.run = each.compiled


# ---- interpreted


class _Looks(ast.NodeTransformer):
    """Makes every loop that holds another loop look at the clock."""

    def _looks(self, node: ast.For | ast.While) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(part, ast.For | ast.While) for part in ast.walk(node) if part is not node):
            node.body = [ast.copy_location(ast.parse(f"{LOOK}()").body[0], node.body[0]), *node.body]
        return node

    visit_For = visit_While = _looks  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave the decorator out."""
        node.decorator_list = []
        return self.generic_visit(node)


@cache
def _interpreted(module: str) -> dict[str, Any]:
    """Return the names of a module in which kernels are functions of Python that look at the clock."""
    home = sys.modules[module]
    names = {
        name: _interpreted(value.__module__)[value.name]
        if isinstance(value, Kernel) and value.__module__ != module
        else value
        for name, value in vars(home).items()
    }
    own = {name: value for name, value in names.items() if isinstance(value, Kernel)}
    for name, value in own.items():
        names[name] = FunctionType(value.function.__code__, names, name)
    names[LOOK] = check
    file = Path(str(home.__file__))
    if _is_as_imported(file):
        tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
        tree.body = [_Looks().visit(each) for each in tree.body if getattr(each, "name", None) in own]
        exec(compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True), names)
    return names


def _is_as_imported(file: Path) -> bool:
    """Return whether a file has not been written since this module was imported; where it has, its functions run without looking at the
    clock."""
    try:
        written = file.stat()
    except OSError:
        return False
    return max(written.st_mtime, written.st_ctime) < _IMPORTED


# ---- compiled


@cache
def _compiled(module: str) -> dict[str, Any]:
    """Return the names of a module in which kernels are those of numba, and records are their structs."""
    names: dict[str, Any] = dict(vars(sys.modules[module]))
    for name, value in list(names.items()):
        if isinstance(value, Kernel):
            is_own = value.__module__ == module
            names[name] = _jit(value, names) if is_own else _compiled(value.__module__)[value.name]
        elif any(value is each for each in KernelRecord.__subclasses__()):
            names[name] = _struct(value)[0]
    return names


def _jit(each: Kernel, names: dict[str, Any]) -> Any:
    function = FunctionType(each.function.__code__, names, each.name)
    return _cached(function, each.lane, each.flags)


def _cached(function: FunctionType, lane: str, flags: frozenset[str] = frozenset()) -> Any:
    """Compile a function and keep the result on disk, to be thrown away when any file with kernels of its lane changes.

    By itself numba looks at the function's own file. What the function calls is compiled into it, so a change in another file would leave
    a stale result that looks plausible. Where the disk takes nothing, the result is kept in memory.
    """
    from numba import njit

    fast: Any = set(flags) or False
    try:
        made: Any = njit(cache=True, fastmath=fast)(function)
    except RuntimeError:  # no folder can be written to
        return njit(fastmath=fast)(function)
    made._cache._cache_file._source_stamp = sources(folder_of(lane))
    return made


def folder_of(lane: str) -> Path:
    """Return the folder of a lane."""
    return Path(str(sys.modules[lane].__file__)).parent


@cache
def sources(folder: Path) -> str:
    """Return a digest of the files with kernels in a folder and those below it."""
    digest = hashlib.sha256()
    for text in (path.read_bytes() for path in sorted(folder.rglob("*.py"))):
        if b"\n@kernel" in text:
            digest.update(text)
        folder = folder.parent
    return digest.hexdigest()


def is_kept(each: Kernel) -> bool:
    """Return whether there is a folder in which a compiled kernel is kept."""
    return hasattr(each.compiled._cache, "_cache_file")


def is_on_disk(each: Kernel) -> bool:
    """Return whether a kernel was compiled before, from the sources as they are and for this processor."""
    if not is_kept(each):
        return False
    made = each.compiled
    processor = made.targetctx.codegen().magic_tuple()
    return any(key[1] == processor for key in made._cache._cache_file._load_index())


# ---- many fields as one argument


class KernelRecord:
    """Arrays and numbers that kernels take as one argument: many single arguments make compiling and calling slow.

    Kernels may write into the arrays, and set no field.
    """

    FIELDS: ClassVar[Sequence[str]]

    def __init__(self, *fields: Any) -> None:
        self.__dict__.update(zip(self.FIELDS, fields, strict=True))
        self._struct: Any = None

    @property
    def struct(self) -> Any:
        """The same arrays and numbers as a struct of numba."""
        if self._struct is None:
            kind: Any = type(self)
            self._struct = _struct(kind)[1](*(getattr(self, name) for name in self.FIELDS))
        return self._struct


@cache
def _struct(record: Any) -> tuple[Any, Any]:
    """Return numba's class for a record, and how one is made; numba's cache finds the class in the module of the record."""
    from numba import types
    from numba.experimental import structref

    structs: Any = structref

    home = {"__module__": record.__module__}
    kind: Any = type(f"{record.__name__}Type", (types.StructRef,), home)
    proxy: Any = type(f"{record.__name__}Struct", (structref.StructRefProxy,), home)
    for each in (kind, proxy):
        setattr(sys.modules[record.__module__], each.__name__, each)
    structs.register(kind)
    structs.define_proxy(proxy, kind, list(record.FIELDS))

    def make(*fields: Any) -> Any:
        return proxy(*fields)

    return proxy, _cached(make, lane_of(record.__module__))  # type: ignore[arg-type]


def _has_records(lane: str) -> bool:
    return any(lane_of(each.__module__) == lane for each in KernelRecord.__subclasses__())


def _with_structs(made: Run) -> Run:
    def run(*arguments: Any) -> Any:
        return made(*[each.struct if isinstance(each, KernelRecord) else each for each in arguments])

    return run

"""Files: read within bounds, and written whole or not at all, for their owner alone."""

from __future__ import annotations

import glob
import io
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from mace.errors import InvalidOption

MOST_JSON = 2**28
"""Bytes of the largest JSON or TOML file that is read."""

DEEPEST_JSON = 40
"""Objects and lists inside each other."""

MOST_DIGITS = 40
"""Digits of a whole number in JSON."""

OWNER_ONLY = 0o600


def read_bytes(path: str | os.PathLike[str], most: int = MOST_JSON) -> bytes:
    """Return what a regular file holds; a device, a pipe or a file of more than ``most`` bytes is an :class:`OSError`."""
    with open(_regular(path), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"it is larger than {most:,} bytes, the most that is read")
    return data


def _regular(path: str | os.PathLike[str]) -> Path:
    """Return the path of a regular file; anything else is an :class:`OSError`."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise OSError("it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError("it is a device or a pipe; give a file")
    return Path(path)


def open_lines(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file for reading; a device or a pipe is an :class:`OSError`."""
    return open(_regular(path), "rb")


def said(error: OSError) -> str:
    """Return what an operating system's error says, without its number and path."""
    return (error.strerror or str(error)).removesuffix(".")


# ---- JSON


def parse_json(text: str | bytes) -> Any:
    """Return what a JSON text says.

    Raises
    ------
    ValueError
        It is not JSON, says NaN or Infinity, names a key twice, holds a number too large for a float or of more than 40 digits, or is
        nested more than 40 deep.
    """
    try:
        data = json.loads(
            text, parse_constant=_refuse_number, parse_float=_float, parse_int=_integer, object_pairs_hook=_object
        )
    except RecursionError as error:
        raise ValueError(f"nested more than {DEEPEST_JSON} deep") from error
    _check_depth(data)
    if ("\\ud" if isinstance(text, str) else b"\\ud") in text.lower():  # type: ignore[operator]
        _check_letters(data)
    return data


def _check_letters(data: Any) -> None:
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text holds half of a surrogate pair, which is no letter") from error


def _check_depth(data: Any) -> None:
    layer = [data]
    for _ in range(DEEPEST_JSON):
        layer = [
            part
            for each in layer
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, dict | list)
        ]
        if not layer:
            return
    raise ValueError(f"nested more than {DEEPEST_JSON} deep")


def _refuse_number(text: str) -> object:
    raise ValueError(f"{text} is not a number of JSON")


def _float(text: str) -> float:
    number = float(text) if len(text) <= 400 else math.inf
    if math.isinf(number):
        raise ValueError(f"the number {text[:30]} is too large")
    return number


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"the number {text[:30]}... is too long")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"an object names the key {twice!r:.60} twice")
    return made


# ---- writing


class _Raw(io.FileIO):
    """A file whose failure to take what is written is an :class:`InvalidOption` that names the file meant."""

    meant: Path

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise unwritable(self.meant, error) from error


def unwritable(path: str | os.PathLike[str], error: OSError) -> InvalidOption:
    """Return the error of a file that cannot be written: a full disk, a limit, a folder without permission."""
    return InvalidOption(f"cannot write {os.fspath(path)}: {said(error)}.")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name once it is whole, and not at all where something fails.

    It can be read by its owner alone, or has the permissions of the file that it takes the place of. What an earlier process that was
    killed left of the same file is removed. A device or a pipe is written to directly.

    Raises
    ------
    InvalidOption
        The file cannot be written.
    """
    meant = Path(path)
    try:
        earlier = meant.stat() if meant.exists() else None
        if earlier is not None and stat.S_ISDIR(earlier.st_mode):
            raise IsADirectoryError(None, "it is a folder")
        if earlier is not None and not stat.S_ISREG(earlier.st_mode):
            raw, draft, target = _Raw(meant, "w"), None, meant
        else:
            target = Path(os.path.realpath(meant))
            raw, draft = _draft(target)
    except OSError as error:
        raise unwritable(meant, error) from error
    raw.meant = meant
    file = io.BufferedWriter(raw)
    try:
        yield file
        file.flush()
        if draft is not None:
            _put_in_place(raw, draft, target, earlier)
    finally:
        with suppress(InvalidOption, OSError, ValueError):
            file.close()
        if draft is not None:
            with suppress(OSError):
                draft.unlink()


@contextmanager
def whole_text(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Open a file for text, in UTF-8, as :func:`whole_file` opens one for bytes."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", errors="backslashreplace")
        try:
            yield text
            text.flush()
        finally:
            with suppress(InvalidOption, OSError, ValueError):
                text.detach()


def _put_in_place(raw: _Raw, draft: Path, target: Path, earlier: os.stat_result | None) -> None:
    try:
        if earlier is not None and hasattr(os, "fchmod"):
            with suppress(OSError):
                os.fchown(raw.fileno(), earlier.st_uid, earlier.st_gid)
            os.fchmod(raw.fileno(), stat.S_IMODE(earlier.st_mode))
        os.fsync(raw.fileno())
        os.replace(draft, target)
    except OSError as error:
        raise unwritable(raw.meant, error) from error


def _draft(target: Path) -> tuple[_Raw, Path]:
    """Make a file beside the target, locked as long as it is open; remove those that nobody has locked."""
    stem = f".{target.name[:100]}."
    for old in target.parent.glob(f"{glob.escape(stem)}*.part"):
        remove_if_left(old)
    draft = target.parent / f"{stem}{secrets.token_hex(4)}.part"
    raw = _Raw(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), OWNER_ONLY), "w")
    lock(raw.fileno())
    return raw, draft


# ---- what killed processes leave


def lock(number: int) -> bool:
    """Lock an open file until it is closed or its process ends; return whether it was free."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system: an open file cannot be removed there, which serves the same end
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_if_left(path: Path) -> bool:
    """Remove a file of one's own that no process has locked; return whether it is gone."""
    try:
        number = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return not path.exists()
    try:
        is_left = lock(number)
    finally:
        os.close(number)
    if is_left:
        with suppress(OSError):
            path.unlink()
    return not path.exists()

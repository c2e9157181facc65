"""Files of compiled libraries are first opened in a child process, so that a parser that dies or hangs takes nobody with it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mace.errors import UnsupportedModel
from mace.models.files.opening import CLEAN, REFUSAL
from mace.models.package import optional

CHILD_SECONDS = 30
"""How long opening may take, with one more second a megabyte."""
CHILD_MEMORY = 4 * 2**30
"""How much memory it may take, with 20 bytes more a byte of the file."""


@contextmanager
def opened_in_child(file: Path, library: str) -> Iterator[Path]:
    """Give a file that holds the same model and can be opened here: what the library wrote after it had opened the file in a child process.

    A damaged file may be read beyond its end, which kills one process and not the next; what the library writes itself is whole. The child
    imports the library alone, and takes about half a second.

    Raises
    ------
    UnsupportedModel
        The library refuses the file, dies of it, takes too long, or does not answer for a row of zeros.
    MissingPackage
        The library is not installed.
    """
    optional(library)
    size = file.stat().st_size
    seconds, most = CHILD_SECONDS + size // 2**20, CHILD_MEMORY + 20 * size
    with tempfile.TemporaryDirectory() as folder:
        try:
            code, said = run_opening([file.suffix, str(file.absolute()), folder, str(most), str(seconds)], seconds)
        except subprocess.TimeoutExpired:
            raise UnsupportedModel(
                f"{file.name} cannot be read: {library} did not open it within {seconds} seconds. It is damaged, or too large."
            ) from None
        _check_end(file.name, library, code, said)
        yield Path(folder) / f"model{CLEAN[file.suffix]}" if file.suffix in CLEAN else file


def run_opening(arguments: list[str], seconds: float) -> tuple[int, str]:
    """Return the exit code of a process that opens a file, minus the signal where one ended it, and what it said."""
    script = Path(__file__).with_name("opening.py")
    done = subprocess.run(
        [sys.executable, "-P", str(script), *arguments],
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=seconds,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")


def _check_end(name: str, library: str, code: int, said: str) -> None:
    if code == 0:
        return
    lines = [line.removeprefix(REFUSAL) for line in said.splitlines() if line.startswith(REFUSAL)]
    if code == 1 and lines:
        raise UnsupportedModel(f"{name} cannot be read: {lines[-1]}")
    how = f"is killed by signal {-code}" if code < 0 else f"ends with exit code {code}"
    raise UnsupportedModel(f"{name} cannot be read: {library} {how} when it opens it. The file is damaged.")


def _environment() -> dict[str, str]:
    """Return this process's environment, with its path of modules and a single thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}

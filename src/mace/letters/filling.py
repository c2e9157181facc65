"""Filling in a template; run as a program, within limits of time and memory, by a process that loads nothing else."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from typing import BinaryIO


def fill(template: str, words: Mapping[str, object], html: bool, most: int) -> str:
    """Return a Jinja2 template with its words filled in, of at most ``most`` characters."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    world = SandboxedEnvironment(autoescape=html, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    parts, size = [], 0
    for part in world.from_string(template).generate(words):
        size += len(part)
        if size > most:
            raise ValueError(f"the letter is longer than {most:,} characters")
        parts.append(part)
    return "".join(parts).strip() + "\n"


def _limit(seconds: int, size: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: the process that waits for this one limits the time
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def main(read: BinaryIO, write: BinaryIO) -> None:
    """Answer the question that :mod:`mace.letters.limited` asks: what went wrong, or the letter."""
    path, limits, question = pickle.load(read)  # noqa: S301
    sys.path[:] = path
    _limit(*limits)
    try:
        made = "", fill(*pickle.loads(question))  # noqa: S301
    except MemoryError:
        made = "it needs too much memory", ""
    except Exception as error:  # whatever a template does, it is the template's fault
        made = f"{type(error).__name__}: {error}", ""
    write.write(pickle.dumps(made))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)

"""Running the command line, and how its outcome becomes an exit code."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys

import typer
from rich.console import Console

from mace.cli.commands import ANSWERED, UNDECIDED, app
from mace.cli.console import PlainConsole, shortened
from mace.cli.usage import of_options, usage_text
from mace.errors import MaceError

MISUSE, INTERNAL = 2, 70

RARE_COLLECTIONS = 200_000, 20, 100
"""When Python looks for cycles: what is imported stays, and looking through it again and again took a tenth of the time to an answer."""

BY_CTRL_C = 130
"""What some versions of typer make of Ctrl-C in a command, instead of raising it."""

UNWRITABLE = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}
"""The errors of a standard output, or a temporary folder, that takes nothing more."""

USAGE_ERROR: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""What wrong usage raises; typer brings its own copy of click or needs the package, depending on its version."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; a traceback exits with 70, never with 1."""
    end_as_by_ctrl_c()
    gc.set_threshold(*RARE_COLLECTIONS)
    sys.exit(run(arguments))


def end_as_by_ctrl_c() -> None:
    """Let a request to end (``kill``, a terminal that closes, a scheduler) do what Ctrl-C does, unless it is ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    errors = PlainConsole(stderr=True, soft_wrap=True)
    try:
        code = int(app(arguments, prog_name="mace", standalone_mode=False) or ANSWERED)
        if code == BY_CTRL_C:
            raise KeyboardInterrupt
        sys.stdout.flush()
        return code
    except MaceError as error:
        said = of_options(str(error), sys.argv[1:] if arguments is None else arguments, app)
        errors.print(f"{type(error).__name__}: {shortened(said)}")
        return MISUSE
    except USAGE_ERROR as error:
        errors.print(usage_text(error, sys.argv[1:] if arguments is None else arguments))
        return MISUSE
    except (typer.Abort, KeyboardInterrupt):
        errors.print("Interrupted.")
        return UNDECIDED
    except (BrokenPipeError, SystemExit) as end:  # whoever reads what is printed has enough; click then exits with 1
        if isinstance(end, SystemExit) and end.code != 1:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return ANSWERED
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug(errors)
        file = f" {error.filename}" if error.filename else ""
        errors.print(f"cannot write{file}: {error.strerror}.")
        return MISUSE
    except Exception:
        return _bug(errors)


def _bug(errors: Console) -> int:
    errors.print_exception()
    errors.print("This is a bug in MACE; please report it with the lines above.")
    return INTERNAL

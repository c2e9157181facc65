"""The command line: ``mace demo``, ``mace explain``, ``mace batch``, ``mace verify``, ``mace list``, ``mace reproduce``,
``mace serve``, ``mace warmup``.

Exit codes: 0 answered or valid, 1 a proved no (no counterfactual exists; a certificate is refuted), 2 any ``MaceError`` or
bad usage, 3 undecided, 70 an internal error.
"""

from mace.cli import serve as _serve  # noqa: F401
from mace.cli.commands import app
from mace.cli.main import main

__all__ = ["app", "main"]

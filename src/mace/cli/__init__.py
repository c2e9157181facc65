"""The command line; ``mace --help`` lists its commands.

Exit codes: 0 answered or valid, 1 a proved no (no counterfactual exists; a certificate is refuted), 2 any ``MaceError`` or
bad usage, 3 undecided, 70 an internal error.
"""

from mace.cli import audits, batches, letters, pictures, reasons, serve, spaces
from mace.cli.commands import app
from mace.cli.main import main

__all__ = ["app", "audits", "batches", "letters", "main", "pictures", "reasons", "serve", "spaces"]

"""Damaged model files through the command line: one line and exit code 2, or an answer that is true of the model as loaded."""

from __future__ import annotations

import sys
from functools import partial

from runner import Group, run

KINDS = ("pipeline", "json", "ubj", "txt", "cbm", "onnx", "tree", "forest", "hist", "linear", "mlp")


def examine(kind: str, seed: int) -> tuple[str, str | None]:
    from damaged_files import examine

    return examine(kind, seed)


if __name__ == "__main__":
    groups = {kind: Group(500, 0, partial(examine, kind)) for kind in KINDS}
    sys.exit(run("files", "damaged model files through the command line", groups))

"""Run the notebooks of docs/notebooks and keep their outputs: ``make notebooks``. A test fails when those are stale."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))
DAY = re.compile(r"\bday +20\d\d-\d\d-\d\d")
TIMES = re.compile(r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:s|ms|seconds)\b")


def executed(path: Path) -> Any:
    """Return a notebook after it was run in an empty folder, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        # What a cell prints comes in one piece or several, as it happens; joined, it is the same each time.
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key != "execution"}
    return notebook


def what_matters(notebook: Any) -> list[list[str]]:
    """Return what the cells show as text, without times and the day; pictures count by their being there.

    Cells with the tag ``varies`` show what a network says that was fitted here: another processor rounds otherwise. Only that they show
    something is kept of them.
    """
    made = []
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        texts = [_text(output) for output in cell.outputs]
        made.append([f"{bool(texts)}"] if "varies" in cell.metadata.get("tags", []) else texts)
    return made


def _text(output: Any) -> str:
    held = output.get("data", {})
    if "image/png" in held:
        return "a picture"
    text = held.get("text/plain") or output.get("text") or output["output_type"]
    return DAY.sub("(a day)", TIMES.sub("(a time)", text))


if __name__ == "__main__":
    for each in NOTEBOOKS:
        nbformat.write(executed(each), each)
        sys.stdout.write(f"{each.name} was run.\n")

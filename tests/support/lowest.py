"""Prints the declared minimum of every dependency, optional ones included, as constraints for pip.

``python tests/support/lowest.py > FILE``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[2]


def minima(text: str) -> dict[str, str]:
    """Return name and minimum of each requirement of a pyproject.toml; one without a minimum is an error."""
    project = tomllib.loads(text)["project"]
    found: dict[str, str] = {}
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        if requirement.startswith(project["name"]):
            continue
        match = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r} declares no minimum; write it as name>=version.")
        found[match[1]] = match[2]
    return found


if __name__ == "__main__":
    sys.stdout.write(
        "".join(f"{name}=={least}\n" for name, least in minima((ROOT / "pyproject.toml").read_text()).items())
    )

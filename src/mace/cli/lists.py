"""What ``mace list`` prints and the README shows: names and first lines, read from the tables."""

from __future__ import annotations

import importlib
import re

from mace.errors import InvalidOption, did_you_mean
from mace.registry import resolve

LISTED = ("models", "distances", "constraints", "solvers", "baselines", "datasets")


def listed(kind: str) -> list[tuple[str, str]]:
    """Return the names of one kind, each with one line about it."""
    match kind:
        case "models":
            from mace.models import MODELS

            readers = [(_model_name(name), name.partition(":")[0]) for name in MODELS]
            return [
                *readers,
                ("Pipeline", "mace.Encoder and one of these"),
                ("wrap", "a network without labels or encoder of its own"),
                ("function", "a Python function of the features"),
            ]
        case "distances":
            from mace.distances import NORMS

            named = [(name, _first_line(path)) for name, path in NORMS.items()]
            return [
                *named,
                ("Distance", "a convex combination with weights"),
                ("function", "a Python function (new, old)"),
            ]
        case "constraints":
            from mace.constraints import CONSTRAINTS

            return [(name, _first_line(path)) for name, path in CONSTRAINTS.items()]
        case "solvers":
            from mace.solvers import SOLVERS

            return [
                (name, plain_words((importlib.import_module(path).__doc__ or "").splitlines()[0]))
                for name, path in SOLVERS.items()
            ]
        case "baselines":
            from mace.baselines import BASELINES

            return [(name, _first_line(path)) for name, path in BASELINES.items()]
        case "datasets":
            from mace.datasets import available

            return [(name, "") for name in available()]
    raise InvalidOption(f"mace list {kind}: not a kind. Known: {', '.join(LISTED)}.{did_you_mean(kind, LISTED)}")


def _model_name(key: str) -> str:
    """Return a class's name, with its package where the name alone would not say which."""
    package, _, name = key.partition(":")
    if name == "Booster" or package in ("onnx", "onnxruntime"):
        return f"{package}.{name}"
    return f"torch.nn.{name}" if package == "torch" else name


def _first_line(path: str) -> str:
    return plain_words((resolve(path).__doc__ or "").strip().partition("\n")[0])


def plain_words(text: str) -> str:
    """Return a line of a docstring without the marks that only a page of documentation shows."""
    return re.sub(r"(?::\w+:)?`+~?(?:[\w.]*\.)?([^`]+)`+", r"\1", text)

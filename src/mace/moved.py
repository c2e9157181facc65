"""Modules of 0.1 that have moved: pickles and imports that name them still find what they hold."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

NEW_HOMES = {
    "mace.batch.whole": ("mace.batch.batch",),
    "mace.causes": ("mace.constraints.causal",),
    "mace.diversity": ("mace.constraints.differ",),
    "mace.explanation": ("mace.answer.explanation", "mace.answer.counterfactual"),
    "mace.levers": ("mace.answer.levers",),
    "mace.near": ("mace.constraints.near_data",),
    "mace.noise": ("mace.constraints.robust",),
    "mace.outliers": ("mace.constraints.typical",),
    "mace.region": ("mace.answer.region",),
}
"""Where the public classes of each old module are now."""


class OldModules(MetaPathFinder, Loader):
    """Gives an old module, whose names are looked up in the new ones."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how to load an old module; ``None`` for all others."""
        return ModuleSpec(name, self) if name in NEW_HOMES else None

    def exec_module(self, module: ModuleType) -> None:
        """Have the names of the module looked up, with a warning."""
        homes = NEW_HOMES[module.__name__]

        def look_up(name: str) -> object:
            for home in homes:
                found = getattr(importlib.import_module(home), name, None)
                if found is not None and not name.startswith("__"):
                    text = (
                        f"{module.__name__} has moved; {name} is in {home}. Save pickles anew, or import it from there."
                    )
                    warnings.warn(text, DeprecationWarning, stacklevel=2)
                    return found
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = look_up  # type: ignore[method-assign]

"""What batches need of an explainer, and how they hold a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from mace.answer.explanation import Explanation
from mace.space import FeatureSpace, Point, Scalar

Options = Mapping[str, Any]
"""The arguments of ``Explainer.explain`` but the row."""


class Explains(Protocol):
    """What batches need of an explainer."""

    @property
    def space(self) -> FeatureSpace:
        """The plausible domain."""
        ...

    @property
    def classes(self) -> tuple[Scalar, ...] | None:
        """The model's labels."""
        ...

    @property
    def explain(self) -> Callable[..., Explanation]:
        """Explains one row."""
        ...

    @property
    def question(self) -> Callable[..., dict[str, Any]]:
        """Makes the arguments of ``explain`` but the row."""
        ...

    def check_question(self, factual: Point, options: Options) -> None:
        """Raise what is wrong with the question itself."""
        ...

    def question_dict(self, factual: Point, options: Options) -> dict[str, Any]:
        """Return the question as plain data."""
        ...

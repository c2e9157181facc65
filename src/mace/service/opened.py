"""What a worker has read: the explainer, the rules in force, the target, the people."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from mace.cli.demo import PROTECTED, RISING, demo_model
from mace.cli.files import read_rows, read_space
from mace.cli.targets import target_of
from mace.constraints import Constraint
from mace.constraints.files import load_rules
from mace.constraints.text import read
from mace.errors import InvalidOption
from mace.explainer import Explainer
from mace.models.files.load import load_model
from mace.service.source import Served

MOST_DATA_ROWS = 200_000
"""Rows of ``--data``: each worker that lists them has them in memory."""

Rules = list[tuple[str, Constraint]]
"""Constraints, each behind its text."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a worker has read."""

    source: Served
    explainer: Explainer
    rules: Rules
    target: object
    _frames: list[Any] = field(default_factory=list)

    def people(self) -> tuple[list[dict[str, Any]], list[str]] | None:
        """Return the rows of the data and what identifies them; ``None`` where there are none."""
        source, space = self.source, self.explainer.space
        if source.data is None:
            if source.model is not None:
                return None
            frame = demo_model()[1].frame
            rows = [{str(name): cell for name, cell in row.items()} for row in frame.to_dict("records")]
        else:
            ids: deque[str] = deque()
            rows = []
            for row in read_rows(source.data, space, source.id, ids):
                rows.append(row)
                if len(rows) > MOST_DATA_ROWS:
                    raise InvalidOption(
                        f"--data: {source.data.name} has more than {MOST_DATA_ROWS:,} rows; give fewer."
                    )
            if source.id is not None:
                return rows, list(ids)
        return rows, [str(number) for number in range(len(rows))]

    def frame(self) -> Any:
        """Return the people as a frame, by which noise is measured, and keep it; ``None`` where there are none."""
        import pandas as pd

        if not self._frames:
            found = self.people()
            self._frames.append(None if found is None else pd.DataFrame(found[0]))
        return self._frames[0]


def open_source(source: Served) -> Opened:
    """Return the explainer with its rules and target; reads the files."""
    rules: Rules = []
    wanted = source.target
    if source.model is None:
        model, data = demo_model()
        texts = (f"{', '.join(PROTECTED)} stay", f"{', '.join(RISING)} increase")
        explainer = Explainer(model, data.space.protect(*PROTECTED))
        rules, wanted = [(text, read(text)) for text in texts], wanted or "good"
    else:
        assert source.space is not None
        loaded, space = load_model(source.model, trust=source.trust), read_space(source.space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=UserWarning)  # features that the model does not know: left out
            explainer = Explainer(loaded, space)
    target = None if wanted is None else target_of(wanted, explainer.classes, explainer.space.wording.outcomes)
    opened = Opened(source, explainer, rules, target)
    if source.constraints is not None:
        rules += load_rules(source.constraints, explainer.space, opened.frame)
    return opened

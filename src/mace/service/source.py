"""What is served: the files that workers open, or the demo. Imports nothing that reads a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mace.errors import InvalidOption
from mace.service.limits import ServiceLimits


@dataclass(frozen=True, slots=True)
class Served:
    """Files as the command line names them; without a model, the German credit demo.

    Attributes
    ----------
    model, space, data, constraints : Path, optional
        The model, its space, the people, and the rules in force.
    target : str, optional
        The decision that is wanted where a request names none, as ``mace explain --target`` has it.
    id : str, optional
        The column of the data that identifies people.
    trust : bool
        Whether the model may be unpickled.
    limits : ServiceLimits
        What requests may ask for.
    """

    model: Path | None = None
    space: Path | None = None
    data: Path | None = None
    constraints: Path | None = None
    target: str | None = None
    id: str | None = None
    trust: bool = False
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    def __post_init__(self) -> None:
        if (self.model is None) != (self.space is None):
            raise InvalidOption("give --model and --space together; neither of them for the demo.")
        if self.id is not None and self.data is None:
            raise InvalidOption("--id names a column of --data; give both.")

    @property
    def name(self) -> str:
        """What is served, for people."""
        return "German credit (demo)" if self.model is None else self.model.name

"""What a method says of itself; the paper's Table 1 is made of this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traits:
    """What a method takes and what it promises.

    Attributes
    ----------
    title : str
        Its name with the abbreviation that tables use.
    models, data, distances : tuple of str
        What it takes; no models at all: it only asks for predictions.
    is_plausible : bool
        Whether every answer has the types and ranges of the data.
    is_optimal : bool
        Whether the answer is proved nearest.
    """

    title: str
    models: tuple[str, ...]
    data: tuple[str, ...]
    distances: tuple[str, ...]
    is_plausible: bool
    is_optimal: bool = False

"""How far a batch is: for a function, or as a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is.

    Attributes
    ----------
    done : int
        Rows answered, those of a checkpoint included.
    total : int, optional
        All rows, where that is known.
    proved : int
        Rows of ``done`` for which nothing is left to prove: nearest, none exists, or at the target already.
    errors : int
        Rows of ``done`` that cannot be explained.
    new : int
        Rows of ``done`` that were answered in this run.
    seconds : float
        Since the run began.
    """

    done: int
    total: int | None
    proved: int
    errors: int
    new: int
    seconds: float

    @property
    def rate(self) -> float:
        """Rows a second in this run."""
        return self.new / self.seconds if self.seconds > 0 else 0.0

    @property
    def proved_share(self) -> float:
        """The share of the rows answered that has a proof."""
        return self.proved / self.done if self.done else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds until the end at this rate; ``None`` where that is not known."""
        if self.total is None or not self.rate:
            return None
        return max(self.total - self.done, 0) / self.rate

    def __str__(self) -> str:
        parts = [f"{self.rate:.3g} rows/s", f"{self.proved_share:.0%} proved"]
        parts += [f"{self.errors} errors"] if self.errors else []
        parts += [f"{_clock(self.remaining)} left"] if self.remaining is not None else []
        return ", ".join(parts)


OnProgress = Callable[[Progress], None]
"""Receives the progress of a batch."""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


@contextmanager
def shown(on_progress: OnProgress | None, *, bar: bool) -> Iterator[OnProgress]:
    """Give a function that reports to the user's function and, on a terminal, to a bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("explaining"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=console, transient=True, disable=not (bar and console.is_terminal)) as bars:
        task = bars.add_task("", total=None)

        def report(progress: Progress) -> None:
            bars.update(task, completed=progress.done, total=progress.total, description=str(progress))
            if on_progress is not None:
                on_progress(progress)

        yield report

"""Running cells: in parallel, one line a person in ``results.jsonl``, and from where a killed run stopped."""

from __future__ import annotations

import json
import lzma
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mace.errors import InvalidOption
from mace.experiments.approaches import Cell, answer, warm_up
from mace.experiments.setting import SEED, setting_of
from mace.solvers import ready

Record = dict[str, Any]

PEOPLE_A_CHUNK = 25
"""How many people a worker explains before it hands its lines over: what a kill loses at most, for each worker."""


@dataclass(frozen=True, slots=True)
class CellTask:
    """Some people of one cell."""

    cell: Cell
    numbers: tuple[int, ...]
    limit: float | None = None


class Results:
    """The lines of a results folder, kept as they come.

    Parameters
    ----------
    folder : Path
        Made where it does not exist. Lines of an earlier run with the same seed and scikit-learn are taken up, those of a packed
        ``results.jsonl.xz`` too; a last line that a kill cut short is dropped.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._check_origin()
        self._path = folder / "results.jsonl"
        packed = folder / "results.jsonl.xz"
        kept = _lines(lzma.decompress(packed.read_bytes())) if packed.exists() else []
        self.records: list[Record] = kept + _whole_lines(self._path)
        self.settings: dict[tuple[str, str], Record] = {
            (about["dataset"], about["model"]): about for about in _whole_lines(folder / "settings.jsonl")
        }
        self._done = {(cell_of(record), record["number"]) for record in self.records}

    def _check_origin(self) -> None:
        """Refuse a folder whose results come from other models: another seed, or another scikit-learn."""
        import sklearn

        from mace import __version__

        path = self.folder / "about.json"
        about = {
            "seed": SEED,
            "scikit-learn": sklearn.__version__,
            "mace": __version__,
            "python": platform.python_version(),
        }
        if not path.exists():
            path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
            return
        earlier = json.loads(path.read_text(encoding="utf-8"))
        for name in ("seed", "scikit-learn"):
            if earlier.get(name) != about[name]:
                raise InvalidOption(
                    f"{self.folder} holds results with {name} {earlier.get(name)}; this is {about[name]}, whose models differ. "
                    "Choose another --out."
                )

    def missing(self, cell: Cell, numbers: Iterable[int]) -> list[int]:
        """Return the people of a cell that have no line yet."""
        about = self.settings.get((cell.dataset, cell.model))
        most = about["factuals"] if about else None
        return [n for n in numbers if (cell, n) not in self._done and (most is None or n < most)]

    def add(self, about: Record, records: Sequence[Record]) -> None:
        """Keep some lines."""
        place = (about["dataset"], about["model"])
        if place not in self.settings:
            self.settings[place] = about
            _append(self.folder / "settings.jsonl", [about])
        _append(self._path, records)
        self.records += records
        self._done |= {(cell_of(record), record["number"]) for record in records}


def cell_of(record: Record) -> Cell:
    """Return the cell of a line."""
    return Cell(**{field.name: record[field.name] for field in fields(Cell)})


def _whole_lines(path: Path) -> list[Record]:
    """Return the lines of a file; a last line without its end is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    return _lines(whole)


def _lines(data: bytes) -> list[Record]:
    return [json.loads(line) for line in data.splitlines()]


def _append(path: Path, records: Sequence[Record]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record, allow_nan=False) + "\n" for record in records))


def run(
    results: Results,
    cells: Iterable[tuple[Cell, Sequence[int]]],
    *,
    jobs: int,
    console: Console,
    limit: float | None = None,
) -> None:
    """Explain the people of each cell that have no line yet.

    Parameters
    ----------
    results : Results
        Where the lines go.
    cells : iterable of cells with people
        People by their number among the setting's factuals.
    jobs : int
        How many processes.
    console : Console
        Where the progress bar goes.
    limit : float, optional
        Seconds for one answer of the SMT lane.
    """
    tasks = [
        CellTask(cell, numbers, limit)
        for cell, wanted in sorted(cells)
        for numbers in _chunks(results.missing(cell, wanted), 1 if cell.approach == "smt" else PEOPLE_A_CHUNK)
    ]
    if tasks:
        ready.warm_up()
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=sum(len(task.numbers) for task in tasks))
        for task, about, records in _answers(tasks, jobs):
            results.add(about, records)
            text = f"{task.cell.dataset} {task.cell.model} {task.cell.norm} {task.cell.approach}"
            progress.update(bar, advance=len(task.numbers), description=text)


def _chunks(numbers: list[int], size: int) -> Iterator[tuple[int, ...]]:
    return (tuple(numbers[start : start + size]) for start in range(0, len(numbers), size))


def _answers(tasks: list[CellTask], jobs: int) -> Iterator[tuple[CellTask, Record, list[Record]]]:
    if jobs == 1 or len(tasks) < 2:
        yield from map(perform, tasks)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(delayed(perform)(task) for task in tasks)


def perform(task: CellTask) -> tuple[CellTask, Record, list[Record]]:
    """Explain the people of a task, on one thread; the setting is fitted once in each process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return _performed(task)


def _performed(task: CellTask) -> tuple[CellTask, Record, list[Record]]:
    cell = task.cell
    setting = setting_of(cell.dataset, cell.model)
    if cell not in setting.warm:
        warm_up(cell, setting)
        setting.warm.add(cell)
    numbers = [number for number in task.numbers if number < len(setting.factuals)]
    return task, setting.about, [answer(cell, setting, number, task.limit) for number in numbers]

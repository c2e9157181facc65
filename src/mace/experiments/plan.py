"""From a wish for tables and figures to the cells that they need, the run, and what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from mace.datasets import load
from mace.errors import InvalidOption, did_you_mean
from mace.experiments import tables as made
from mace.experiments.approaches import Cell, applies
from mace.experiments.diversity import diversity
from mace.experiments.run import Results, run
from mace.experiments.setting import DATASETS, NORMS_OF_THE_PAPER, PAPER_MODELS, family_of, setting_of
from mace.experiments.table import PaperTable

_FROM_LINES: dict[str, Callable[[pd.DataFrame], PaperTable]] = {
    "approaches": made.approaches,
    "coverage": made.coverage,
    "distance": made.distance,
    "age": made.age,
    "age-reduction": made.age_reduction,
    "diversity": diversity,
    "runtime": made.runtime,
    "checks": made.checks,
}
TABLES = (*_FROM_LINES, "accuracy")
"""The names that ``mace reproduce --table`` takes."""

FIGURES = ("distances", "tradeoff")
"""The names that ``mace reproduce --figure`` takes."""

NETWORKS = ("mlp", "mlp100", "mlp100x100")
_ACCURACIES: dict[str, tuple[float, ...]] = {
    "coverage": (1e-5,),
    "distance": (1e-3, 1e-5),
    "runtime": (1e-1, 1e-3, 1e-5),
    "distances": (1e-5,),
    "tradeoff": (1e-5,),
}
_RIVALS = {
    "coverage": ("mo", "ft", "pft", "ar"),
    "distance": ("mo", "pft", "ar"),
    "runtime": ("mo", "pft", "ar"),
    "distances": ("mo", "pft", "ar"),
    "tradeoff": ("mo", "pft", "ar"),
}
_AGE = {"age": "age fixed", "age-reduction": "age not reduced"}
ROUGH = 100
"""People a cell at ε 1e-01, where only the time is of interest."""

SLOW = 1e-3
"""ε of the SMT lane and of the curves."""


@dataclass(frozen=True)
class Plan:
    """What to make, from how many people, and where.

    Attributes
    ----------
    tables, figures : tuple of str
        Of :data:`TABLES` and :data:`FIGURES`.
    samples : int
        People a cell; the paper has 500.
    datasets, models : tuple of str
        Of the experiments' names.
    out : Path
        The results folder.
    jobs : int
        Processes.
    smt_samples : int
        People a cell for the SMT lane and the curves.
    smt_limit : float
        Seconds for one answer of the SMT lane.
    """

    tables: tuple[str, ...] = TABLES
    figures: tuple[str, ...] = FIGURES
    samples: int = 500
    datasets: tuple[str, ...] = DATASETS
    models: tuple[str, ...] = PAPER_MODELS
    out: Path = Path("results")
    jobs: int = 2
    smt_samples: int = 1
    smt_limit: float = 10.0

    def __post_init__(self) -> None:
        _check("table", self.tables, TABLES)
        _check("figure", self.figures, FIGURES)
        _check("data set", self.datasets, DATASETS)
        for model in self.models:
            family_of(model)
        for name in ("samples", "jobs"):
            if getattr(self, name) < 1:
                raise InvalidOption(f"{name}={getattr(self, name)}; it must be at least 1.")
        if self.smt_samples < 0 or self.smt_limit <= 0:
            raise InvalidOption("smt_samples must not be negative, and smt_limit must be positive.")

    @property
    def wishes(self) -> tuple[str, ...]:
        """Tables and figures alike."""
        return self.tables + self.figures

    def cells(self) -> dict[Cell, int]:
        """Return the cells that the tables and figures need, each with its number of people."""
        people: dict[Cell, int] = {}
        for dataset in self.datasets:
            for model in self.models:
                for norm in NORMS_OF_THE_PAPER:
                    people |= self._cells_at(dataset, model, norm)
        if set(_AGE) & set(self.tables) and "adult" in self.datasets:
            for norm in NORMS_OF_THE_PAPER:
                people |= dict.fromkeys(_age_cells(norm), self.samples)
        return {cell: count for cell, count in people.items() if count}

    def _cells_at(self, dataset: str, model: str, norm: str) -> dict[Cell, int]:
        wishes = [name for name in self.wishes if name in _RIVALS]
        accuracies = {accuracy for name in wishes for accuracy in _ACCURACIES[name]}
        rivals = {rival for name in wishes for rival in _RIVALS[name] if applies(rival, model, norm)}
        people = {
            Cell(dataset, model, norm, "mace", accuracy): min(self.samples, ROUGH if accuracy == 1e-1 else self.samples)
            for accuracy in accuracies
        }
        people |= {Cell(dataset, model, norm, rival): self.samples for rival in rivals}
        if "runtime" in wishes or ("tradeoff" in wishes and norm == "l1"):
            people[Cell(dataset, model, norm, "smt", SLOW)] = self.smt_samples
        if "tradeoff" in wishes and norm == "l1":
            people[Cell(dataset, model, norm, "anytime", SLOW)] = self.smt_samples
        return people


def _age_cells(norm: str) -> list[Cell]:
    return [Cell("adult", "forest", norm, "mace", made.FINE_ACCURACY), Cell("adult", "forest", norm, "mo")]


def _check(kind: str, names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise InvalidOption(f"{name!r} is not a {kind}. Known: {', '.join(known)}.{did_you_mean(name, known)}")


def reproduce(plan: Plan, console: Console) -> list[PaperTable]:
    """Run what is missing, write tables and figures into the results folder, and return the tables."""
    cells = [(cell, range(count)) for cell, count in plan.cells().items()]
    for dataset in dict.fromkeys(cell.dataset for cell, _ in cells):
        load(dataset)  # a missing file is known before anything runs
    results = Results(plan.out)
    run(results, cells, jobs=plan.jobs, console=console, limit=plan.smt_limit)
    run(results, _forbidding_age(plan, results), jobs=plan.jobs, console=console)
    if "accuracy" in plan.tables and "adult" in plan.datasets:
        for model in NETWORKS:
            if ("adult", model) not in results.settings:
                results.add(setting_of("adult", model).about, [])
    tables = _tables(plan, results)
    _write(plan, results, tables)
    return tables


def _forbidding_age(plan: Plan, results: Results) -> list[tuple[Cell, list[int]]]:
    """Return the cells in which age may not change (or not fall), for the people whose counterfactual changes (reduces) it."""
    frame = made.frame_of(results.records)
    found = []
    for name, constraint in _AGE.items():
        if name not in plan.tables or "adult" not in plan.datasets:
            continue
        for norm in NORMS_OF_THE_PAPER:
            for cell in _age_cells(norm):
                place = {
                    "dataset": "adult",
                    "model": "forest",
                    "norm": norm,
                    "approach": cell.approach,
                    "accuracy": cell.accuracy,
                }
                lines = made.pick(frame, **place)
                numbers = [int(n) for n in lines.index[made.moves_age(lines.changed, name)] if n < plan.samples]
                found.append((Cell(**place, constraint=constraint), numbers))  # type: ignore[arg-type]
    return found


def _tables(plan: Plan, results: Results) -> list[PaperTable]:
    frame = made.frame_of(results.records)
    frame = frame[frame.dataset.isin(plan.datasets) & (frame.number < plan.samples)]
    wanted = frame[frame.model.isin(plan.models)]
    found = []
    for name in plan.tables:
        if name == "accuracy":
            found.append(made.accuracy(list(results.settings.values())))
        elif name == "diversity" and "credit" not in plan.datasets:
            continue
        elif name not in _AGE or "adult" in plan.datasets:
            found.append(_FROM_LINES[name](frame if name in _AGE else wanted))
    return found


def _write(plan: Plan, results: Results, tables: list[PaperTable]) -> None:
    (plan.out / "tables.md").write_text("\n".join(table.markdown() for table in tables), encoding="utf-8")
    (plan.out / "tables.tex").write_text("\n\n".join(table.latex() for table in tables) + "\n", encoding="utf-8")
    if not plan.figures:
        return
    from mace.experiments import figures

    for name in plan.figures:
        figures.save(getattr(figures, name)(results.records), plan.out / f"{name}.svg")

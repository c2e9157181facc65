"""The paper's Figures 4 and 5 from the lines of a results folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mace.errors import MissingPackage
from mace.experiments.run import Record
from mace.experiments.setting import DATASETS, NORMS_OF_THE_PAPER, PAPER_MODELS
from mace.experiments.tables import FINE_ACCURACY, frame_of, pick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"mace": "#1b7837", "smt": "#762a83", "mo": "#666666", "pft": "#d95f02", "ar": "#1f78b4"}
TIME = "#b2182b"
SALT: Any = {"svg.hashsalt": "mace", "svg.fonttype": "none"}


def distances(records: Sequence[Record]) -> Figure:
    """Return Figure 4: how far the counterfactuals of each approach are."""
    figure, panels = _grid(records, "distance δ")
    for panel, frame, _ in panels:
        _boxes(panel, frame)
    return figure


def _boxes(panel: Axes, frame: pd.DataFrame) -> None:
    ticks = []
    for place, norm in enumerate(NORMS_OF_THE_PAPER):
        approaches = [name for name in ("mace", "mo", "pft", "ar") if len(_distances(frame, norm, name))]
        for offset, name in enumerate(approaches):
            at = place + (offset - (len(approaches) - 1) / 2) * 0.22
            colour = COLOURS[name]
            style = {"color": colour, "linewidth": 0.9}
            panel.boxplot(
                _distances(frame, norm, name), positions=[at], widths=0.18, showfliers=False, medianprops=style, boxprops=style,
                whiskerprops=style, capprops=style,
            )  # fmt: skip
            panel.plot([], [], color=colour, label=name.upper() if place == 1 else None)
        ticks.append(norm)
    panel.set_xticks(range(len(ticks)), ticks)
    panel.set_yscale("symlog", linthresh=1e-4)
    panel.set_ylim(0, 1.3)
    handles, labels = panel.get_legend_handles_labels()
    if labels:
        panel.legend(handles, labels, fontsize=6, frameon=False, loc="lower right")


def _distances(frame: pd.DataFrame, norm: str, approach: str) -> pd.Series:
    fine: dict[str, object] = {"accuracy": FINE_ACCURACY} if approach == "mace" else {}
    return pick(frame, norm=norm, approach=approach, **fine).distance.dropna().astype(float)


def tradeoff(records: Sequence[Record]) -> Figure:
    """Return Figure 5: distance in hand and time spent against the number of oracle calls, for l1."""
    figure, panels = _grid(records, "δ in hand, lower bound (dotted)")
    for panel, frame, here in panels:
        _curves(panel, [record for record in here if record["norm"] == "l1"])
        for name in ("mo", "pft", "ar"):
            found = _distances(frame, "l1", name)
            if len(found):
                panel.axhline(found.mean(), color=COLOURS[name], linewidth=0.8, linestyle="--", label=name.upper())
        panel.set_xlabel("oracle calls (SMT) or nodes (ours)", fontsize=7)
        panel.legend(fontsize=6, frameon=False)
    return figure


def _curves(panel: Axes, records: Sequence[Record]) -> None:
    """Draw the mean over people of the distance in hand, the proved bound, and the time spent, after each number of calls."""
    time_axis = panel.twinx()
    time_axis.set_yscale("log")
    time_axis.set_ylim(1e-3, 30)
    time_axis.tick_params(which="both", labelsize=6, colors=TIME)
    for approach, colour in (("smt", COLOURS["smt"]), ("anytime", COLOURS["mace"])):
        curves = [_curve(record) for record in records if record["approach"] == approach]
        if not curves:
            continue
        calls = np.unique([point[0] for curve in curves for point in curve])
        upper, lower, seconds = (np.array([[_at(curve, c, k) for c in calls] for curve in curves]) for k in (3, 2, 1))
        label = "SMT lane" if approach == "smt" else "MACE"
        panel.plot(calls, upper.mean(axis=0), color=colour, marker=".", markersize=3, linewidth=1, label=label)
        panel.plot(calls, lower.mean(axis=0), color=colour, linestyle=":", linewidth=1)
        time_axis.plot(calls, seconds.mean(axis=0), color=TIME, marker=".", markersize=2, linewidth=0.6, alpha=0.7)
    panel.set_xscale("log")
    panel.set_xlim(0.8, max(12, 1.3 * panel.dataLim.x1))
    panel.xaxis.set_minor_formatter("")
    panel.set_yscale("symlog", linthresh=1e-4)
    panel.set_ylim(0, 1.3)
    time_axis.set_ylabel("seconds (red)", fontsize=6, color=TIME)


def _curve(record: Record) -> list[tuple[int, float, float, float | None]]:
    """Return the bounds after each report of progress, and at the end."""
    reports = [tuple(point) for point in record.get("curve", ())]
    last = reports[-1][0] if reports else 1
    return [*reports, (max(record["calls"], last, 1), record["seconds"], record["lower"], record["distance"])]


def _at(curve: Sequence[Sequence[Any]], calls: int, entry: int) -> float:
    """Return the entry of a curve after a number of calls; 1 where there was no incumbent yet."""
    seen = [point for point in curve if point[0] <= calls]
    value = seen[-1][entry] if seen else None
    return (1.0 if entry == 3 else 1e-6) if value is None else float(value)


def _grid(records: Sequence[Record], label: str) -> tuple[Figure, list[tuple[Axes, pd.DataFrame, list[Record]]]]:
    """Return a figure and its panels, a model down and a data set across, each with its lines as a frame and as they are."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingPackage("figures need matplotlib: pip install 'mace-xai[plot]'.") from error
    frame = frame_of(records)
    models = [name for name in PAPER_MODELS if (frame.model == name).any()]
    data = [name for name in DATASETS if (frame.dataset == name).any()]
    figure = Figure(figsize=(3.6 * len(data), 2.5 * len(models)), layout="constrained")
    axes = figure.subplots(len(models), len(data), squeeze=False)
    panels = []
    for (row, model), (column, dataset) in product(enumerate(models), enumerate(data)):
        panel = axes[row][column]
        panel.set_title(f"{dataset}, {model}", fontsize=9)
        panel.tick_params(labelsize=7)
        if column == 0:
            panel.set_ylabel(label, fontsize=7)
        lines = frame[(frame.model == model) & (frame.dataset == dataset)]
        panels.append((panel, lines, [r for r in records if r["dataset"] == dataset and r["model"] == model]))
    return figure, panels


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG, the same bytes for the same figure."""
    import matplotlib

    with matplotlib.rc_context(SALT):
        figure.savefig(path, format="svg", metadata={"Date": None})

"""Options that several commands have in common, each with its one text of help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[
    Path, typer.Option(help="The model file: .skops, .onnx, a booster's own file, or .joblib and .pkl with --trust.")
]
SpaceFile = Annotated[Path, typer.Option(help="The feature space, as FeatureSpace.to_json() wrote it.")]
AnyTarget = Annotated[str | None, typer.Option(help="The label to reach; any other class where not given.")]
Norm = Annotated[str, typer.Option(help="l0, l1, l2 or linf.")]
Fix = Annotated[str, typer.Option(help="Features that stay, comma-separated.")]
Increase = Annotated[str, typer.Option(help="Features that may only increase, comma-separated.")]
Decrease = Annotated[str, typer.Option(help="Features that may only decrease, comma-separated.")]
Rules = Annotated[
    list[str] | None, typer.Option(help='A constraint in words, e.g. "age >= old.age"; may be given several times.')
]
ConstraintsFile = Annotated[
    Path | None, typer.Option(help="A TOML file of constraints; equations in its table [causes], as --cause has them.")
]
Causes = Annotated[
    list[str] | None,
    typer.Option(
        "--cause",
        help='An equation by which an effect follows, e.g. "savings = 0.3 * income"; may be given several times. Only actions cost then.',
    ),
]
Accuracy = Annotated[float, typer.Option(help="How far apart the bounds may stay.")]
SecondsForRow = Annotated[float | None, typer.Option(help="Seconds for a row.")]
Solver = Annotated[str, typer.Option(help="auto, or a name from `mace list solvers`.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core.")]
Trust = Annotated[bool, typer.Option("--trust", help="Unpickle the model: runs whatever code the file holds.")]

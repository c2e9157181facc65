"""Options that several commands have in common, each with its one text of help."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from mace.answer.question import Question
    from mace.constraints import Constraint
    from mace.constraints.causal import Causal
    from mace.explainer import Explainer
    from mace.space import FeatureSpace

Target = Annotated[
    str, typer.Option(help='The label that is wanted, or its probability: "approve >= 0.7"; also <=, or a range.')
]
AnyTarget = Annotated[
    str | None,
    typer.Option(
        help='The label to reach, or its probability: "approve >= 0.7"; also <=, or a range. Any other class where not given.'
    ),
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
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core.")]
Trust = Annotated[bool, typer.Option("--trust", help="Unpickle the model: runs whatever code the file holds.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """What every command that explains is given: the model, its space, and what may change."""

    model: Annotated[
        Path,
        typer.Option(help="The model file: .skops, .onnx, a booster's own file, or .joblib and .pkl with --trust."),
    ]
    space: Annotated[Path, typer.Option(help="The feature space, as FeatureSpace.to_json() wrote it.")]
    distance: Annotated[str, typer.Option(help="l0, l1, l2 or linf.")] = "l1"
    fix: Annotated[str, typer.Option(help="Features that stay, comma-separated.")] = ""
    only: Annotated[str, typer.Option(help="The only features that may change, comma-separated.")] = ""
    increase: Annotated[str, typer.Option(help="Features that may only increase, comma-separated.")] = ""
    decrease: Annotated[str, typer.Option(help="Features that may only decrease, comma-separated.")] = ""
    rule: Annotated[
        list[str] | None, typer.Option(help='A constraint in words, e.g. "age >= old.age"; may be given several times.')
    ] = None
    constraints: Annotated[
        Path | None,
        typer.Option(help="A TOML file of constraints; its table 'causes' holds equations, as --cause has them."),
    ] = None
    solver: Annotated[str, typer.Option(help="auto, or a name from `mace list solvers`.")] = "auto"
    unread: Annotated[
        str | None,
        typer.Option(help="search: a model that cannot be read is asked only, and answers are not proved nearest."),
    ] = None
    trust: Trust = False

    def explainer(self, causes: Causal | None = None) -> Explainer:
        """Return the explainer of the model."""
        from mace.cli.console import note
        from mace.cli.files import read_space
        from mace.explainer import Explainer
        from mace.models.files.load import load_model

        features = read_space(self.space)
        model = load_model(self.model, trust=self.trust)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", category=UserWarning)
            explainer = Explainer(model, features, causes, unread=self.unread)
        note("Note", (str(warning.message) for warning in notes))
        return explainer

    def question(self, explainer: Explainer, target: str | None, **options: Any) -> Question:
        """Return the question; ``options`` are those that not every command has."""
        from mace.answer.question import Question
        from mace.cli.targets import target_of

        space, classes = explainer.space, explainer.classes
        wanted = None if target is None else target_of(target, classes)
        return Question(
            space, wanted, self.distance, self.all_constraints(space), solver=self.solver, classes=classes, **options
        )

    def all_constraints(self, space: FeatureSpace) -> list[Constraint | str]:
        """Return the constraints: lists of features, texts, and those of a file."""
        from mace.constraints import decreases, fixed, increases, only
        from mace.constraints.files import load_constraints

        makers = (fixed, self.fix), (only, self.only), (increases, self.increase), (decreases, self.decrease)
        return [
            *(make(*listed(names)) for make, names in makers if listed(names)),
            *(self.rule or ()),
            *(load_constraints(self.constraints, space) if self.constraints is not None else ()),
        ]


def asks(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of :class:`Asked`, which it receives as its parameter ``asked``."""
    shared = inspect.signature(Asked, eval_str=True).parameters
    taken: list[inspect.Parameter] = []
    for own in inspect.signature(command, eval_str=True).parameters.values():
        taken += shared.values() if own.name == "asked" else [own]

    @wraps(command)
    def run(**given: Any) -> int:
        asked = Asked(**{name: given.pop(name) for name in shared})
        return command(asked=asked, **given)

    each = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in taken]
    run.__signature__ = inspect.Signature(each)  # type: ignore[attr-defined]
    return run


def listed(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]

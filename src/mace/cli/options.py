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

from mace.cli.completion import choices, columns, features
from mace.errors import InvalidOption, did_you_mean

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
MOST_SECONDS_A_ROW = 30.0
"""The deadline of a row where none is given."""

SecondsForRow = Annotated[
    float, typer.Option(help="Seconds for a row. What is found by then is given, and said not to be proved.")
]
Data = Annotated[
    Path, typer.Option(help="A CSV file with the rows, in the original features; may have further columns.")
]
RowOf = Annotated[
    str, typer.Option("--row", help="Which row of the CSV file, counted from 0; or, with --id, its value there.")
]
IdOfRow = Annotated[
    str | None,
    typer.Option("--id", help="A column of the CSV file by which --row finds the row.", autocompletion=columns),
]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one a core.")]
Trust = Annotated[bool, typer.Option("--trust", help="Unpickle the model: runs whatever code the file holds.")]
AtLeast = Annotated[
    int | None,
    typer.Option(help="Of several models, how many must agree with an answer. All where not given."),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What every command that explains is given: the model, its space, and what may change."""

    model: Annotated[
        Path,
        typer.Option(
            help="The model file: .skops, .onnx, a booster's own file, or .joblib and .pkl with --trust. Of several, comma-separated, all "
            "must agree, or so many as --at-least says."
        ),
    ]
    space: Annotated[Path, typer.Option(help="The feature space, as `mace space` or FeatureSpace.to_json() wrote it.")]
    distance: Annotated[str, typer.Option(help="l0, l1, l2 or linf.", autocompletion=choices("distance"))] = "l1"
    weights: Annotated[
        str,
        typer.Option(
            help="What changes cost: income=2,age=0.5 (others 1); or mad, or percentile, as --people are spread."
        ),
    ] = ""
    people: Annotated[
        Path | None,
        typer.Option(
            help='A CSV file of people for --weights mad or percentile, and "robust 5% of sd"; those of --data where not given.'
        ),
    ] = None
    fix: Annotated[str, typer.Option(help="Features that stay, comma-separated.", autocompletion=features)] = ""
    only: Annotated[
        str, typer.Option(help="The only features that may change, comma-separated.", autocompletion=features)
    ] = ""
    increase: Annotated[
        str, typer.Option(help="Features that may only increase, comma-separated.", autocompletion=features)
    ] = ""
    decrease: Annotated[
        str, typer.Option(help="Features that may only decrease, comma-separated.", autocompletion=features)
    ] = ""
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<rule>", help='A constraint in words, e.g. "age >= old.age"; may be given several times.'
        ),
    ] = None
    constraints: Annotated[
        Path | None,
        typer.Option(help="A TOML file of constraints; its table 'causes' holds equations, as --cause has them."),
    ] = None
    outside: Annotated[
        str,
        typer.Option(
            help="Rows outside the space: error, keep (their values may stay), or widen (the ranges, for them).",
            autocompletion=choices("outside"),
        ),
    ] = "error"
    solver: Annotated[
        str, typer.Option(help="auto, or a name from `mace list solvers`.", autocompletion=choices("solver"))
    ] = "auto"
    at_least: AtLeast = None
    unread: Annotated[
        str | None,
        typer.Option(
            help="search: where the model cannot be read, only ask it. Nothing is proved then.",
            autocompletion=choices("unread"),
        ),
    ] = None
    trust: Trust = False

    def explainer(self, causes: Causal | None = None) -> Explainer:
        """Return the explainer of the model."""
        from mace.cli.console import note
        from mace.cli.files import read_models, read_space
        from mace.explainer import Explainer

        features = read_space(self.space)
        model = read_models(model_files(self.model), self.at_least, trust=self.trust)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", category=UserWarning)
            explainer = Explainer(model, features, causes, unread=self.unread, outside=self.outside)  # type: ignore[arg-type]
        note("Note", (str(warning.message) for warning in notes))
        return explainer

    def measure(self, space: FeatureSpace, data: Path) -> Any:
        """Return the distance: a norm by its name, or with weights."""
        from mace.cli.texts import numbers_of
        from mace.distances import Distance
        from mace.distances.distance import NORMS, WITH_ARGUMENT
        from mace.distances.people import WAYS

        if not self.weights:
            return self.distance
        NORMS.load(self.distance)
        shares: dict[str, Any] = (
            {self.distance: 1.0} if self.distance in WITH_ARGUMENT else {"others": {self.distance: 1.0}}
        )
        if self.weights not in WAYS:
            hint = "income=2,age=0.5, mad or percentile"
            return Distance(**shares, weights=numbers_of("--weights", self.weights, space, hint))
        return Distance(**shares, weights=self.weights, data=self.measured_by(space, data))

    def measured_by(self, space: FeatureSpace, data: Path) -> Any:
        """Return the people by whom weights and noise are measured."""
        from mace.cli.files import read_people

        return read_people(data if self.people is None else self.people, space, ()).infer_objects()

    def all_constraints(self, space: FeatureSpace, data: Path) -> list[Constraint | str]:
        """Return the constraints: lists of features, texts, and those of a file."""
        from mace.constraints import decreases, fixed, increases, only, rule
        from mace.constraints.files import load_constraints
        from mace.constraints.robust import measured

        def people() -> Any:
            return self.measured_by(space, data)

        makers = {"fix": fixed, "only": only, "increase": increases, "decrease": decreases}
        lists = {option: features_of(f"--{option}", getattr(self, option), space) for option in makers}
        return [
            *(makers[option](*names) for option, names in lists.items() if names),
            *(measured(rule(text), people) for text in self.rule or ()),
            *(load_constraints(self.constraints, space, people) if self.constraints is not None else ()),
        ]


@dataclass(frozen=True, slots=True)
class Answers:
    """What commands that give answers, rather than compare groups, are given beside :class:`Asked`."""

    target: AnyTarget = None
    count: Annotated[int, typer.Option(help="How many counterfactuals of a row, at most 10,000.")] = 1
    diversity: Annotated[
        str | None,
        typer.Option(
            help="How several differ: sets (of features that change; the default), features=2, features=2,by=0.05, or distance=0.1."
        ),
    ] = None
    round_to: Annotated[
        str,
        typer.Option(
            "--round",
            help="Answers are multiples: auto (as the data are), income=100,age=1, 0.5 (of real features), or none.",
        ),
    ] = "auto"
    cause: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<equation>",
            help='An equation by which an effect follows, e.g. "savings = 0.3 * income"; may be given several times. '
            "Only what people do costs then, not what follows.",
        ),
    ] = None
    accuracy: Annotated[float, typer.Option(help="How far apart the bounds may stay.")] = 1e-6
    time_limit: SecondsForRow = MOST_SECONDS_A_ROW

    def ask(self, asked: Asked, data: Path, **options: Any) -> tuple[Explainer, Question]:
        """Return the explainer and the question; ``options`` are those that not every command has."""
        from mace.answer.question import Question
        from mace.cli.files import read_causes
        from mace.cli.targets import target_of
        from mace.cli.texts import diversity_of, rounding_of

        explainer = asked.explainer(read_causes(self.cause, asked.constraints))
        space, classes = explainer.space, explainer.classes
        return explainer, Question(
            space,
            None if self.target is None else target_of(self.target, classes, space.wording.outcomes),
            asked.measure(space, data),
            asked.all_constraints(space, data),
            count=self.count,
            diversity=None if self.diversity is None else diversity_of(self.diversity),
            round_to=rounding_of(self.round_to, space),
            accuracy=self.accuracy,
            time_limit=self.time_limit,
            solver=asked.solver,
            classes=classes,
            **options,
        )


_SHARED: dict[str, Any] = {"asked": Asked, "answers": Answers}
_READ = ("model", "space", "data", "constraints", "people", "template")


def asks(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of :class:`Asked` and :class:`Answers`, as its parameters ``asked`` and ``answers`` have them.

    Files that are read must exist before anything is loaded.
    """
    own = inspect.signature(command, eval_str=True).parameters
    shared = {name: inspect.signature(_SHARED[name], eval_str=True).parameters for name in own if name in _SHARED}
    taken: list[inspect.Parameter] = []
    for name, parameter in own.items():
        taken += shared[name].values() if name in shared else [parameter]

    @wraps(command)
    def run(**given: Any) -> int:
        for name in _READ:
            for path in model_files(given["model"]) if name == "model" and name in given else [given.get(name)]:
                check_file(f"--{name}", path)
        made = {key: _SHARED[key](**{name: given.pop(name) for name in names}) for key, names in shared.items()}
        return command(**made, **given)

    each = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in taken]
    run.__signature__ = inspect.Signature(each)  # type: ignore[attr-defined]
    return run


_MODEL = "a model, which is --model {0}. "
_ROWS = "a table of rows, which is --data {0}. "
_TABLE = "no CSV file; save it as one, e.g. pandas.read_{1}('{{0}}').to_csv('people.csv', index=False)."
WRONG_KINDS = {
    "--model": dict.fromkeys(
        (".csv", ".tsv", ".parquet", ".xlsx"),
        _ROWS + "A model is a .skops, .onnx or booster's file, or a pickle with --trust.",
    ),
    "--space": dict.fromkeys((".skops", ".onnx", ".pkl", ".joblib"), _MODEL + "The space is a .json file.")
    | {".csv": _ROWS + "Make the space of it: mace space {0} --out space.json."},
    "--data": dict.fromkeys((".skops", ".onnx", ".pkl", ".joblib"), _MODEL + "The rows are a .csv file.")
    | {".parquet": _TABLE.format("", "parquet"), ".xlsx": _TABLE.format("", "excel")},
}
"""What is said of files that belong to another option, by option and ending."""


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file to read that is not there, or of a kind that another option takes."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        wrong = WRONG_KINDS.get(option, {}).get(path.suffix.lower())
        if wrong is not None:
            raise InvalidOption(f"{option}: {path.name} is {wrong.format(path)}")
        return
    if path.is_dir():
        raise InvalidOption(f"{option}: {path} is a folder; give a file.")
    beside = sorted(each.name for each in path.parent.iterdir()) if path.parent.is_dir() else []
    raise InvalidOption(f"{option}: there is no file {path}.{did_you_mean(path.name, beside)}")


def model_files(path: Path) -> list[Path]:
    """Return the files that an option names: one, or several, comma-separated."""
    return [path] if path.exists() else [Path(name.strip()) for name in str(path).split(",")]


def checkpoint_beside(out: Path, *, is_resumed: bool) -> Path:
    """Return where the answers of a batch are kept until ``out`` is whole; one that is there is used only where that is said."""
    from mace.batch.sinks import check_sink

    check_sink(out)
    checkpoint = out.with_name(f"{out.name}.checkpoint")
    if checkpoint.exists() and not is_resumed:
        raise InvalidOption(f"{checkpoint} is left from an earlier run: go on with --resume, or remove it.")
    return checkpoint


def check_folder(option: str, path: Path | None) -> None:
    """Refuse a file to write whose folder is not there."""
    if path is not None and not path.parent.is_dir():
        raise InvalidOption(f"{option}: there is no folder {path.parent} for {path.name}.")
    if path is not None and path.is_dir():
        raise InvalidOption(f"{option}: {path} is a folder; give a file.")


def features_of(option: str, text: str, space: FeatureSpace) -> list[str]:
    """Return the features of a comma-separated list; what is none is refused."""
    names = listed(text)
    for name in names:
        if name not in space:
            commas = "" if len(name.split()) == 1 else " Names are separated by commas."
            raise InvalidOption(f"{option}: there is no feature {name!r:.80}.{did_you_mean(name, space)}{commas}")
    return names


def listed(text: str) -> list[str]:
    """Return the names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]

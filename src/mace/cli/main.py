"""The commands, and how their outcome becomes an exit code."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from mace.answer.explanation import Explanation
from mace.certify.verdict import Verdict
from mace.cli.console import PlainConsole
from mace.cli.options import (
    Accuracy,
    AnyTarget,
    Causes,
    ConstraintsFile,
    Decrease,
    Fix,
    Increase,
    Jobs,
    ModelFile,
    Norm,
    Rules,
    SecondsForRow,
    Solver,
    SpaceFile,
    Trust,
)
from mace.errors import InvalidOption, MaceError
from mace.problem import Status

if TYPE_CHECKING:
    from mace.constraints import Constraint
    from mace.space import FeatureSpace

ANSWERED, PROVED_NO, MISUSE, UNDECIDED, INTERNAL = 0, 1, 2, 3, 70

BY_CTRL_C = 130
"""What some versions of typer make of Ctrl-C in a command, instead of raising it."""

MOST_SHOWN = 2000
"""Characters of an error: a file can make one of any length."""

UNWRITABLE = {errno.ENOSPC, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG}
"""The errors of a standard output, or a temporary folder, that takes nothing more."""

USAGE_ERROR: type[Exception] = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
"""What wrong usage raises; typer brings its own copy of click or needs the package, depending on its version."""

app = typer.Typer(
    name="mace",
    help="Nearest counterfactual explanations, proved nearest.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; a traceback exits with 70, never with 1."""
    end_as_by_ctrl_c()
    sys.exit(run(arguments))


def end_as_by_ctrl_c() -> None:
    """Let a request to end (``kill``, a terminal that closes, a scheduler) do what Ctrl-C does, unless it is ignored."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    errors = PlainConsole(stderr=True, soft_wrap=True)
    try:
        code = int(app(arguments, standalone_mode=False) or ANSWERED)
        if code == BY_CTRL_C:
            raise KeyboardInterrupt
        return code
    except MaceError as error:
        text = str(error)
        shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(text):,} characters)"
        errors.print(f"{type(error).__name__}: {shown}")
        return MISUSE
    except USAGE_ERROR as error:
        error.show()  # type: ignore[attr-defined]
        return MISUSE
    except (typer.Abort, KeyboardInterrupt):
        errors.print("Interrupted.")
        return UNDECIDED
    except BrokenPipeError:  # whoever reads what is printed has enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return ANSWERED
    except OSError as error:
        if error.errno not in UNWRITABLE:
            return _bug(errors)
        file = f" {error.filename}" if error.filename else ""
        errors.print(f"cannot write{file}: {error.strerror}.")
        return MISUSE
    except Exception:
        return _bug(errors)


def _bug(errors: Console) -> int:
    errors.print_exception()
    errors.print("This is a bug in MACE; please report it with the lines above.")
    return INTERNAL


def exit_code(explanation: Explanation) -> int:
    """Return the exit code of an explanation."""
    if explanation:
        return ANSWERED
    return PROVED_NO if explanation.status == Status.INFEASIBLE else UNDECIDED


def show(explanation: Explanation, *, as_json: bool) -> None:
    """Print an explanation."""
    if as_json:
        sys.stdout.write(explanation.to_json() + "\n")
    else:
        PlainConsole().print(explanation)


@app.command()
def demo() -> int:
    """Explain a refused applicant of the German credit data."""
    from mace.cli.demo import run_demo

    return run_demo(Console(highlight=False))


@app.command()
def explain(
    data: Annotated[Path, typer.Option(help="A CSV file with the rows, in the original features.")],
    model: ModelFile,
    space: SpaceFile,
    row: Annotated[int, typer.Option(help="Which row of the CSV file, counted from 0.")] = 0,
    target: AnyTarget = None,
    distance: Norm = "l1",
    fix: Fix = "",
    increase: Increase = "",
    decrease: Decrease = "",
    rule: Rules = None,
    constraints: ConstraintsFile = None,
    cause: Causes = None,
    count: Annotated[int, typer.Option(help="How many counterfactuals, at most 10,000.")] = 1,
    accuracy: Accuracy = 1e-6,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the whole answer.")] = None,
    solver: Solver = "auto",
    trust: Trust = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate here; those of further answers beside it, numbered from 2."),
    ] = None,
) -> int:
    """Explain one row of a CSV file."""
    from mace.cli.files import label_of, read_causes, read_row, read_space, save_certificates
    from mace.explainer import Explainer
    from mace.models.files.load import load_model

    features = read_space(space)
    explainer = Explainer(load_model(model, trust=trust), features, read_causes(cause, constraints))
    explanation = explainer.explain(
        read_row(data, row, features),
        target=None if target is None else label_of(explainer, target),
        distance=distance,
        constraints=_constraints(features, fix, increase, decrease, rule, constraints),
        count=count,
        accuracy=accuracy,
        time_limit=time_limit,
        solver=solver,
        certify=certificate is not None,
    )
    if certificate is not None:
        save_certificates(explanation, certificate)
    show(explanation, as_json=as_json)
    return exit_code(explanation)


@app.command()
def batch(
    data: Annotated[
        Path, typer.Option(help="A CSV file with the rows, in the original features; read as the answers are made.")
    ],
    model: ModelFile,
    space: SpaceFile,
    out: Annotated[Path, typer.Option(help="Where the answers go: .parquet, .csv or .jsonl.")],
    target: AnyTarget = None,
    distance: Norm = "l1",
    fix: Fix = "",
    increase: Increase = "",
    decrease: Decrease = "",
    rule: Rules = None,
    constraints: ConstraintsFile = None,
    cause: Causes = None,
    count: Annotated[int, typer.Option(help="How many counterfactuals a row.")] = 1,
    accuracy: Accuracy = 1e-6,
    time_limit: SecondsForRow = None,
    total_time_limit: Annotated[float | None, typer.Option(help="Seconds for all rows.")] = None,
    solver: Solver = "auto",
    jobs: Jobs = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint that an earlier run left beside --out.")
    ] = False,
    trust: Trust = False,
) -> int:
    """Explain every row of a CSV file; a run that was killed goes on with --resume."""
    from mace.answer.question import Question
    from mace.cli.batches import run_batch
    from mace.cli.files import label_of, read_causes, read_space
    from mace.explainer import Explainer
    from mace.models.files.load import load_model

    features = read_space(space)
    explainer = Explainer(load_model(model, trust=trust), features, read_causes(cause, constraints))
    question = Question(
        features,
        None if target is None else label_of(explainer, target),
        distance,
        _constraints(features, fix, increase, decrease, rule, constraints),
        count=count,
        accuracy=accuracy,
        time_limit=time_limit,
        solver=solver,
    )
    made = run_batch(explainer, data, out, question, jobs=jobs, total_time_limit=total_time_limit, is_resumed=resume)
    PlainConsole(soft_wrap=True, stderr=made.is_interrupted).print(made.text)
    return UNDECIDED if made.is_open else ANSWERED


@app.command()
def audit(
    data: Annotated[
        Path,
        typer.Option(help="A CSV file with the people, in the original features; further columns may make groups."),
    ],
    model: ModelFile,
    space: SpaceFile,
    target: Annotated[str, typer.Option(help="The label that is wanted.")],
    groups: Annotated[str, typer.Option(help="Columns whose values make groups, comma-separated.")] = "",
    protect: Annotated[
        str | None,
        typer.Option(help="Features that should not have to change; the groups that are features where not given."),
    ] = None,
    distance: Norm = "l1",
    fix: Fix = "",
    increase: Increase = "",
    decrease: Decrease = "",
    rule: Rules = None,
    constraints: ConstraintsFile = None,
    time_limit: SecondsForRow = None,
    solver: Solver = "auto",
    jobs: Jobs = 1,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only so many people, drawn with --seed; all where not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the drawing and the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1000,
    out: Annotated[
        list[Path] | None, typer.Option(help="Write the report here: .html or .json; may be given twice.")
    ] = None,
    trust: Trust = False,
) -> int:
    """Compare groups: who has recourse, how far, by which features, and at what price for protecting some of them."""
    from mace.audits import audit as make
    from mace.cli.files import check_reports, label_of, read_causes, read_people, read_space
    from mace.explainer import Explainer
    from mace.models.files.load import load_model

    check_reports(out or ())
    if read_causes(None, constraints) is not None:
        raise InvalidOption(f"{constraints}: an audit is of rows, without [causes]. Leave that table out.")
    features = read_space(space)
    explainer = Explainer(load_model(model, trust=trust), features)
    people = read_people(data, features, _listed(groups))
    if rows is not None and rows < len(people):
        people = people.sample(rows, random_state=seed).sort_index()
    made = make(
        explainer,
        people,
        _listed(groups),
        target=label_of(explainer, target),
        distance=distance,
        constraints=_constraints(features, fix, increase, decrease, rule, constraints),
        protected=None if protect is None else _listed(protect),
        time_limit=time_limit,
        solver=solver,
        n_jobs=jobs,
        resamples=resamples,
        seed=seed,
        progress=True,
    )
    console = PlainConsole()
    console.print(made)
    for path in out or ():
        made.save(path)
        console.print(f"Report: {path}", soft_wrap=True)
    is_open = made.everyone.outcomes["unknown"] or made.everyone.outcomes["error"]
    return UNDECIDED if is_open else ANSWERED


@app.command()
def reproduce(
    table: Annotated[
        str, typer.Option(help="Tables, comma-separated; all where neither --table nor --figure is given.")
    ] = "",
    figure: Annotated[str, typer.Option(help="Figures, comma-separated: distances, tradeoff.")] = "",
    samples: Annotated[int, typer.Option(help="People for each cell; the paper has 500.")] = 500,
    datasets: Annotated[
        str, typer.Option(help="adult, credit, compas; credit is in the data folder MACE_DATA, or downloaded.")
    ] = "adult,credit,compas",
    models: Annotated[str, typer.Option(help="tree, forest, lr, mlp; also forest100.")] = "tree,forest,lr,mlp",
    out: Annotated[Path, typer.Option(help="The results folder; a killed run continues from it.")] = Path("results"),
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    smt_samples: Annotated[int, typer.Option(help="People for each cell of the SMT lane; 0 leaves it out.")] = 1,
    smt_limit: Annotated[float, typer.Option(help="Seconds for one answer of the SMT lane.")] = 10.0,
) -> int:
    """Make the paper's tables and figures anew, each value beside the paper's."""
    from mace.experiments import FIGURES, TABLES, Plan
    from mace.experiments import reproduce as make

    console = Console(highlight=False)
    is_all = not table and not figure
    plan = Plan(
        tables=TABLES if is_all else tuple(_listed(table)),
        figures=FIGURES if is_all else tuple(_listed(figure)),
        samples=samples,
        datasets=tuple(_listed(datasets)),
        models=tuple(_listed(models)),
        out=out,
        jobs=jobs,
        smt_samples=smt_samples,
        smt_limit=smt_limit,
    )
    for made in make(plan, console):
        console.print(made.rich())
    console.print(f"Lines, tables and figures are in {out}.", markup=False)
    return ANSWERED


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate, as `mace explain --certificate` wrote it.")],
    model: Annotated[Path, typer.Option(help="The model file that the certificate is about.")],
    forest: Annotated[
        list[Path] | None,
        typer.Option(help="The file of an isolation forest that a constraint `typical` is about; may be given again."),
    ] = None,
    trust: Trust = False,
) -> int:
    """Check a certificate without the solver that found it: exits 0 where it is valid, 1 where it is refuted, 3 where it is unchecked."""
    from mace.certify import Certificate
    from mace.certify import verify as check
    from mace.cli.waiting import progress_bar
    from mace.models.files.load import load_model

    read = Certificate.load(certificate)
    forests = [load_model(path, trust=trust) for path in forest or ()]
    with progress_bar("checking") as progress:
        verdict = check(read, load_model(model, trust=trust), forests=forests, progress=progress)
    PlainConsole(soft_wrap=True).print(_claimed(read.claim, verdict))
    return {"valid": ANSWERED, "refuted": PROVED_NO}.get(verdict.outcome, UNDECIDED)


def _claimed(claim: dict[str, Any], verdict: Verdict) -> str:
    if not verdict.valid:
        return str(verdict)
    if claim["status"] == "infeasible":
        return "valid: no counterfactual exists."
    proved = f"nothing nearer than {claim['lower']:.6g} reaches the target"
    if claim["counterfactual"] is None:
        return f"valid: {proved}."
    return f"valid: the counterfactual does, at distance {claim['upper']:.6g}, and {proved}."


@app.command(name="list")
def list_names(
    kind: Annotated[str, typer.Argument(help="models, distances, constraints, solvers, baselines or datasets.")],
) -> int:
    """List what is supported, from the tables that the code itself uses."""
    from mace.cli.lists import listed

    console = Console(highlight=False, soft_wrap=True)
    for name, about in listed(kind):
        console.print(f"{name:<24} {about}".rstrip(), markup=False)
    return ANSWERED


@app.command()
def version() -> int:
    """Print the version."""
    from mace import __version__

    Console(highlight=False).print(__version__)
    return ANSWERED


def _constraints(
    space: FeatureSpace, fix: str, increase: str, decrease: str, rules: list[str] | None, path: Path | None
) -> list[Constraint | str]:
    """Return the constraints of the command line: lists of features, texts, and those of a file."""
    from mace.constraints import decreases, fixed, increases
    from mace.constraints.files import load_constraints

    made: list[tuple[Callable[..., Constraint], str]] = [(fixed, fix), (increases, increase), (decreases, decrease)]
    return [
        *(make(*_listed(names)) for make, names in made if _listed(names)),
        *(rules or ()),
        *(load_constraints(path, space) if path is not None else ()),
    ]


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]

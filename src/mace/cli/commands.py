"""The commands, each with the exit code of its outcome."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from mace.answer.explanation import Explanation
from mace.certify.verdict import Verdict
from mace.cli.console import PlainConsole, note
from mace.cli.options import Accuracy, AnyTarget, Asked, Causes, Jobs, SecondsForRow, Target, Trust, asks, listed
from mace.errors import InvalidOption
from mace.problem import Status

ANSWERED, PROVED_NO, UNDECIDED = 0, 1, 3

app = typer.Typer(
    name="mace",
    help="Nearest counterfactual explanations, proved nearest.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def exit_code(explanation: Explanation) -> int:
    """Return the exit code of an explanation."""
    if explanation or explanation.status == Status.REACHED:
        return ANSWERED
    return PROVED_NO if explanation.status == Status.INFEASIBLE else UNDECIDED


def show(explanation: Explanation, *, as_json: bool) -> None:
    """Print an explanation."""
    if as_json:
        sys.stdout.write(explanation.to_json() + "\n")
    else:
        PlainConsole().print(explanation)
        note("Hint", explanation.hints)


@app.command()
def demo() -> int:
    """Explain a refused applicant of the German credit data."""
    from mace.cli.demo import run_demo

    return run_demo(Console(highlight=False))


@app.command()
def warmup() -> int:
    """Compile the search kernels now, once for this installation: for images and services. Elsewhere they are compiled by the way."""
    from mace.solvers.ready import warm_up

    begun = time.monotonic()
    warm_up()
    PlainConsole().print(f"The kernels of every lane are compiled and load ({time.monotonic() - begun:.0f} s).")
    return ANSWERED


@app.command()
@asks
def explain(
    data: Annotated[Path, typer.Option(help="A CSV file with the rows, in the original features.")],
    asked: Asked,
    row: Annotated[int, typer.Option(help="Which row of the CSV file, counted from 0.")] = 0,
    target: AnyTarget = None,
    cause: Causes = None,
    count: Annotated[int, typer.Option(help="How many counterfactuals, at most 10,000.")] = 1,
    accuracy: Accuracy = 1e-6,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for the whole answer.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate here; those of further answers beside it, numbered from 2."),
    ] = None,
) -> int:
    """Explain one row of a CSV file."""
    from mace.cli.files import read_causes, read_row, save_certificates
    from mace.cli.waiting import bounds_shown

    explainer = asked.explainer(read_causes(cause, asked.constraints))
    certify = certificate is not None
    factual = read_row(data, row, explainer.space)
    options: dict[str, Any] = {"count": count, "accuracy": accuracy, "time_limit": time_limit, "certify": certify}
    with bounds_shown() as report:
        question = asked.question(explainer, target, on_progress=report, **options)
        explanation = explainer._answer(factual, question)
    if certificate is not None:
        save_certificates(explanation, certificate)
    show(explanation, as_json=as_json)
    return exit_code(explanation)


@app.command()
@asks
def batch(
    data: Annotated[
        Path, typer.Option(help="A CSV file with the rows, in the original features; read as the answers are made.")
    ],
    asked: Asked,
    out: Annotated[Path, typer.Option(help="Where the answers go: .parquet, .csv or .jsonl.")],
    target: AnyTarget = None,
    cause: Causes = None,
    count: Annotated[int, typer.Option(help="How many counterfactuals a row.")] = 1,
    accuracy: Accuracy = 1e-6,
    time_limit: SecondsForRow = None,
    total_time_limit: Annotated[float | None, typer.Option(help="Seconds for all rows.")] = None,
    jobs: Jobs = 1,
    identify: Annotated[
        str | None, typer.Option("--id", help="A column of the CSV file that identifies the rows, to carry along.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint that an earlier run left beside --out.")
    ] = False,
) -> int:
    """Explain every row of a CSV file; a run that was killed goes on with --resume."""
    from mace.cli.batches import run_batch
    from mace.cli.files import read_causes

    explainer = asked.explainer(read_causes(cause, asked.constraints))
    question = asked.question(explainer, target, count=count, accuracy=accuracy, time_limit=time_limit)
    made = run_batch(
        explainer,
        data,
        out,
        question,
        jobs=jobs,
        total_time_limit=total_time_limit,
        is_resumed=resume,
        id=identify,
    )
    PlainConsole(soft_wrap=True, stderr=made.is_interrupted).print(made.text)
    note("Hint", made.hints)
    return UNDECIDED if made.is_open else ANSWERED


@app.command()
@asks
def audit(
    data: Annotated[
        Path,
        typer.Option(help="A CSV file with the people, in the original features; further columns may make groups."),
    ],
    asked: Asked,
    target: Target,
    groups: Annotated[str, typer.Option(help="Columns whose values make groups, comma-separated.")] = "",
    protect: Annotated[
        str | None,
        typer.Option(
            help="Features that should not have to change; where not given, the groups that are features and those protected in the space."
        ),
    ] = None,
    time_limit: SecondsForRow = None,
    jobs: Jobs = 1,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Only so many people, drawn with --seed; all where not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the drawing and the bootstrap.")] = 0,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1000,
    out: Annotated[
        list[Path] | None, typer.Option(help="Write the report here: .html or .json; may be given twice.")
    ] = None,
) -> int:
    """Compare groups: who has recourse, how far, by which features, and at what price for protecting some of them."""
    from mace.audits import audit as make
    from mace.cli.files import check_reports, read_causes, read_people
    from mace.cli.targets import target_of

    check_reports(out or ())
    if read_causes(None, asked.constraints) is not None:
        raise InvalidOption(f"{asked.constraints}: an audit is of rows, without [causes]. Leave that table out.")
    explainer = asked.explainer()
    people = read_people(data, explainer.space, listed(groups))
    if rows is not None and rows < len(people):
        people = people.sample(rows, random_state=seed).sort_index()
    made = make(
        explainer,
        people,
        listed(groups),
        target=target_of(target, explainer.classes),
        distance=asked.distance,
        constraints=asked.all_constraints(explainer.space),
        protected=None if protect is None else listed(protect),
        time_limit=time_limit,
        solver=asked.solver,
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
        tables=TABLES if is_all else tuple(listed(table)),
        figures=FIGURES if is_all else tuple(listed(figure)),
        samples=samples,
        datasets=tuple(listed(datasets)),
        models=tuple(listed(models)),
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
    if claim["counterfactual"] is None:
        return f"valid: nothing nearer than {claim['lower']:.6g} reaches the target."
    reached, proved = f"{claim['upper']:.6g}", f"{claim['lower']:.6g}"
    return f"valid: the counterfactual reaches the target at distance {reached}, and nothing nearer than {proved} does."


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

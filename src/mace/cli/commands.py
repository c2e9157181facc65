"""The commands, each with the exit code of its outcome."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mace.cli.completion import choices, several
from mace.cli.console import PipedConsole, PlainConsole, note
from mace.cli.options import (
    Answers,
    Asked,
    AtLeast,
    Data,
    IdOfRow,
    RowOf,
    Trust,
    asks,
    check_folder,
    listed,
    model_files,
)

if TYPE_CHECKING:
    from mace.answer.explanation import Explanation
    from mace.certify.certificate import Certificate
    from mace.certify.verdict import Verdict

ANSWERED, PROVED_NO, UNDECIDED = 0, 1, 3

ORDER = ("demo", "space", "explain", "batch", "reasons", "letter", "plot", "audit", "verify", "serve", "list", "warmup")
"""Commands as ``mace --help`` lists them, in the order in which people need them; those that are not here come last."""


class InOrder(TyperGroup):
    """The commands, in that order."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names."""
        return sorted(super().list_commands(ctx), key=lambda name: (*ORDER, name).index(name))


app = typer.Typer(
    name="mace",
    cls=InOrder,
    help="Nearest counterfactual explanations, proved nearest.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(is_asked: bool) -> None:
    if is_asked:
        from mace import __version__

        sys.stdout.write(f"mace {__version__}\n")
        raise typer.Exit


@app.callback()
def every(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """Nearest counterfactual explanations, proved nearest."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def exit_code(explanation: Explanation) -> int:
    """Return the exit code of an explanation."""
    from mace.problem import Status

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

    return run_demo(PipedConsole(highlight=False))


@app.command()
def warmup() -> int:
    """Compile the search kernels now.

    Once for an installation: for images and services. Elsewhere they are compiled by the way.
    """
    from mace.solvers.ready import warm_up

    begun = time.monotonic()
    warm_up()
    PlainConsole().print(f"The kernels of every lane are compiled and load ({time.monotonic() - begun:.0f} s).")
    return ANSWERED


@app.command()
@asks
def explain(
    data: Data,
    asked: Asked,
    answers: Answers,
    row: RowOf = "0",
    identify: IdOfRow = None,
    margin: Annotated[
        bool,
        typer.Option(
            "--margin", help="Also say how much noise the nearest answer stands, proved. Takes up to as long again."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate here; those of further answers beside it, numbered from 2."),
    ] = None,
) -> int:
    """Explain one row of a CSV file."""
    check_folder("--certificate", certificate)
    explanation = answer_of(data, asked, answers, row, identify, certify=certificate is not None)
    if certificate is not None:
        from mace.cli.files import save_certificates

        save_certificates([*(each.certificate for each in explanation), explanation.certificate], certificate)
    if margin:
        _ = explanation.margin  # asked for here, and kept: it is shown with the rest
    show(explanation, as_json=as_json)
    return exit_code(explanation)


def answer_of(
    data: Path, asked: Asked, answers: Answers, row: str, identify: str | None, *, certify: bool = False
) -> Explanation:
    """Return the explanation of one row; a deadline that was reached is said on the standard error."""
    from mace.cli.files import find_row
    from mace.cli.waiting import waiting
    from mace.solvers.compiling import loading_late

    with waiting("reading the model") as line, loading_late(answers.time_limit):
        explainer, question = answers.ask(asked, data, certify=certify, on_progress=line.report)
        line.said = "searching"
        explanation = explainer._answer(find_row(data, row, identify, explainer.space), question)
    if is_late(explanation, answers.time_limit):
        note("Note", [f"stopped after the {answers.time_limit:g} s of --time-limit; give it more seconds for a proof."])
    return explanation


def is_late(explanation: Explanation, limit: float) -> bool:
    """Return whether the deadline of a row left its answer without a proof."""
    return not explanation.status.is_final and explanation.seconds >= 0.9 * limit


def late_rows(count: int, limit: float) -> str:
    """Return a sentence about rows that a deadline left without a proof."""
    return f"{count} rows were stopped after the {limit:g} s of --time-limit, without a proof; give it more seconds."


@app.command()
def reproduce(
    table: Annotated[
        str, typer.Option(help="Tables, comma-separated; all where neither --table nor --figure is given.")
    ] = "",
    figure: Annotated[str, typer.Option(help="Figures, comma-separated: distances, tradeoff.")] = "",
    samples: Annotated[int, typer.Option(help="People for each cell; the paper has 500.")] = 500,
    datasets: Annotated[
        str,
        typer.Option(
            help="adult, credit, compas; credit is in the data folder MACE_DATA, or downloaded.",
            autocompletion=several("datasets"),
        ),
    ] = "adult,credit,compas",
    models: Annotated[
        str, typer.Option(help="tree, forest, lr, mlp; also forest100.", autocompletion=several("models"))
    ] = "tree,forest,lr,mlp",
    out: Annotated[Path, typer.Option(help="The results folder; a killed run continues from it.")] = Path("results"),
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    smt_samples: Annotated[int, typer.Option(help="People for each cell of the SMT lane; 0 leaves it out.")] = 1,
    smt_limit: Annotated[float, typer.Option(help="Seconds for one answer of the SMT lane.")] = 10.0,
) -> int:
    """Make the paper's tables and figures anew.

    Each value stands beside the paper's.
    """
    from mace.experiments import FIGURES, TABLES, Plan
    from mace.experiments import reproduce as make

    console = PipedConsole(highlight=False)
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
    model: Annotated[
        Path,
        typer.Option(help="The model file that the certificate is about; several are comma-separated, in their order."),
    ],
    forest: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="The file of an isolation forest that a constraint `typical` is about; may be given again.",
        ),
    ] = None,
    at_least: AtLeast = None,
    trust: Trust = False,
) -> int:
    """Check a certificate.

    This is done without the solver that found the answer. Exits with 0 where it is valid, 1 where it is refuted, 3 where it is unchecked.
    """
    from mace.certify import Certificate
    from mace.certify import verify as check
    from mace.cli.files import read_models
    from mace.cli.waiting import progress_bar
    from mace.models.files.load import load_model

    read = Certificate.load(certificate)
    forests = [load_model(path, trust=trust) for path in forest or ()]
    with progress_bar("checking") as progress:
        verdict = check(
            read, read_models(model_files(model), at_least, trust=trust), forests=forests, progress=progress
        )
    PlainConsole(soft_wrap=True).print(_told(read, verdict))
    return {"valid": ANSWERED, "refuted": PROVED_NO}.get(verdict.outcome, UNDECIDED)


def _told(certificate: Certificate, verdict: Verdict) -> str:
    """Return the verdict, what is claimed where it is valid, and the rules under which it is."""
    from mace.certify.statement import Statement
    from mace.constraints import fixed

    if not verdict.valid:
        return str(verdict)
    claim, stated = certificate.claim, Statement.from_dict(certificate.statement)
    rules = [getattr(each, "text", str(each)) for each in stated.constraints]
    held = rules[len(rules) - len(claim.get("ranges", ())) :]
    own = [fixed(*(name for name in stated.space if name in claim["reason"])).text] if claim.get("reason") else held
    rules = [each for each in rules if each not in own]
    said = [f"valid: {_claimed(claim, held)}."]
    said += [f"Of rows that keep these rules: {'; '.join(rules)}."] if rules else []
    return "\n".join(said + ([f"Of rows beside {len(stated.earlier)} earlier."] if stated.earlier else []))


def _claimed(claim: dict[str, Any], held: list[str]) -> str:
    """Return what is claimed; ``held`` says in words in what ranges a reason lies."""
    is_same = "the decision is the same"
    if "reasons" in claim:
        sets = "; ".join(", ".join(names) or "no feature" for names in claim["reasons"]["sets"])
        return f"every reason of the decision holds one of these sets: {sets}"
    if claim.get("reason"):
        return f"{is_same} as long as {', '.join(claim['reason'])} stay as they are, and none can be left out"
    if claim.get("ranges"):
        return f"{is_same} as long as this holds: {'; '.join(held)}"
    if {"reason", "ranges"} & set(claim):
        return f"{is_same} whatever the features are"
    if claim["status"] == "infeasible":
        return "no counterfactual exists"
    if claim["counterfactual"] is None:
        return f"nothing nearer than {claim['lower']:.6g} reaches the target"
    reached, proved = f"{claim['upper']:.6g}", f"{claim['lower']:.6g}"
    return f"the counterfactual reaches the target at distance {reached}, and nothing nearer than {proved} does"


@app.command(name="list")
def list_names(
    kind: Annotated[
        str,
        typer.Argument(
            help="models, distances, constraints, solvers, baselines or datasets.", autocompletion=choices("kind")
        ),
    ],
) -> int:
    """List what is supported."""
    from mace.cli.lists import listed

    console = PipedConsole(highlight=False, soft_wrap=True)
    found = listed(kind)
    width = max(len(name) for name, _ in found)
    for name, about in found:
        console.print(f"{name:<{width}}  {about}".rstrip(), markup=False)
    return ANSWERED


@app.command()
def version() -> int:
    """Print the version."""
    from mace import __version__

    PipedConsole(highlight=False).print(__version__)
    return ANSWERED

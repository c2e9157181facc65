"""``mace serve``: the service and its page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mace.cli.commands import ANSWERED, app
from mace.cli.console import PlainConsole
from mace.cli.options import Trust, check_file
from mace.registry import resolve


@app.command()
def serve(
    model: Annotated[
        Path | None, typer.Option(help="The model file, as for `mace explain`; the demo without it.")
    ] = None,
    space: Annotated[Path | None, typer.Option(help="The feature space, as FeatureSpace.to_json() wrote it.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="A CSV file of people: for the list, the histograms and audits.")
    ] = None,
    constraints: Annotated[Path | None, typer.Option(help="A TOML file of rules that every question keeps.")] = None,
    target: Annotated[
        str | None,
        typer.Option(help='The decision that is wanted where a question names none, e.g. good or "good >= 0.7".'),
    ] = None,
    identify: Annotated[str | None, typer.Option("--id", help="A column of the data that identifies people.")] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen; 0.0.0.0 for every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes that search; one a core where not given.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="<name>", help="A further name by which the service may be called; may be given again."),
    ] = None,
    jobs: Annotated[
        Path | None, typer.Option(help="The folder that jobs are kept in; one of the user's own where not given.")
    ] = None,
    trust: Trust = False,
) -> int:
    """Serve a model, and a page for caseworkers.

    Without options, the German credit demo. Keys: MACE_API_KEYS, comma-separated.
    """
    from mace.models.package import optional

    resolve("mace.service.pool:begin")()
    for name in ("fastapi", "uvicorn"):
        optional(name, extra="service")
    for option, path in (("--model", model), ("--space", space), ("--data", data), ("--constraints", constraints)):
        check_file(option, path)
    source = resolve("mace.service.source:Served")(model, space, data, constraints, target, identify, trust)
    console = PlainConsole(soft_wrap=True)
    resolve("mace.service.server:serve")(
        source, host=host, port=port, workers=workers, allowed=allow_host or (), jobs=jobs, say=console.print
    )
    return ANSWERED

"""What is said about wrong usage: what is wrong, what to write instead, and where to read on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer

from mace.cli.console import shortened
from mace.slips import instead

MEANT = {
    "--features": "--only income,savings, or --fix age,sex",
    "--features-to-vary": "--only income,savings",
    "--vary": "--only income,savings",
    "--fixed": "--fix age,sex",
    "--freeze": "--fix age,sex",
    "--immutable": "--fix age,sex",
    "--permitted-range": '--rule "age between 20 and 30"',
    "--range": '--rule "age between 20 and 30"',
    "--constraint": '--rule "age >= old.age", or --constraints FILE',
    "--increases": "--increase education",
    "--decreases": "--decrease debt",
    "--desired-class": "--target good",
    "--class": "--target good",
    "--label": "--target good",
    "--probability": '--target "good >= 0.7"',
    "--threshold": '--target "good >= 0.7"',
    "--at-least": '--target "good >= 0.7"',
    "--number": "--count 3",
    "--total-cfs": "--count 3",
    "--n": "--count 3",
    "-n": "--count 3",
    "--norm": "--distance l1",
    "--metric": "--distance l1",
    "--timeout": "--time-limit 30",
    "--max-time": "--time-limit 30",
    "--digits": "--round 0.01",
    "--round-to": "--round 100",
    "--csv": "--data people.csv",
    "--input": "--data people.csv",
    "--rows": "--row 3, or mace batch for all rows",
    "--output": "--out FILE",
    "--out": "--json > answer.json",
    "--target": "--label good",
    "--language": "mace letter --language de",
    "--lang": "mace letter --language de",
    "--max-changes": '--rule "at most 2 features change"',
    "--changes": '--rule "at most 2 features change"',
    "--sparsity": "--distance l0",
    "-o": "--out FILE",
    "--group": "--groups sex",
    "--protected": "--protect age,sex",
    "--n-jobs": "--jobs 2",
    "--certify": "--certificate FILE",
    "--proof": "--certificate FILE",
    "--format": "--json",
    "--verbose": "nothing: bounds are shown after a second",
}
"""Options that people try, and what to write."""

LETTERS = {"-m": "--model FILE", "-s": "--space FILE", "-d": "--data FILE", "-t": "--target good"}

FILES = {
    ".csv": "--data",
    ".skops": "--model",
    ".onnx": "--model",
    ".pkl": "--model",
    ".joblib": "--model",
    ".json": "--space",
    ".toml": "--constraints",
}
"""Which option takes a file of a kind."""


CALLED_OTHERWISE = {"n_jobs": "jobs", "protected": "protect"}
"""Parameters of Python whose option has another name."""

_PARAMETER = re.compile(r"(?:\w+: )?(\w+)(=|: )")


def of_options(said: str, arguments: Sequence[str], app: Any) -> str:
    """Return what an error says of a parameter, ``outside='foo'; ...``, about the option of the command: ``--outside 'foo'; ...``."""
    found = _PARAMETER.match(said)
    command = getattr(typer.main.get_command(app), "commands", {}).get(next(iter(arguments), ""))
    if found is None or command is None:
        return said
    name, separator = found[1], found[2]
    options = {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("--")}
    option = options.get(CALLED_OTHERWISE.get(name, name))
    if option is None:
        return said
    return f"{option}{separator.replace('=', ' ')}" + said[found.end() :].replace(f"{name}=", f"{option} ")


def usage_text(error: Any, arguments: Sequence[str]) -> str:
    """Return what is wrong with the usage, in a line or two; ``error`` is what the parser of options raised."""
    context = getattr(error, "ctx", None)
    command = "mace" if context is None else context.command_path
    said = shortened(error.format_message()).rstrip(".")
    said += "" if said.endswith("?") else "."
    option = str(getattr(error, "option_name", ""))
    is_unknown = type(error).__name__ == "NoSuchOption"
    meant = _meant_option(option, context) if is_unknown and context is not None else _meant_file(arguments, context)
    if is_unknown and meant:
        said = f"No such option: {option}."
    return f"{said}{meant}\nSee {command} --help."


def _meant_option(option: str, context: Any) -> str:
    """Return what to write for an option that a command does not have."""
    commands = getattr(context.command, "commands", {})
    if option.lstrip("-") in commands:
        return f" Write {context.command_path} {option.lstrip('-')}."
    if commands:
        return ""
    own = [name for each in context.command.params for name in each.opts]
    name = option.replace("_", "-")
    if name in own:
        return f" Write {name}."
    if any(each.name == name.lstrip("-") for each in context.command.params):
        return f" Write {name.lstrip('-').upper()} without dashes, as in {context.command_path} FILE."
    meant = (MEANT | LETTERS).get(name, "")
    takes = meant.partition(" ")[0] in own or not meant.startswith("--")
    return instead(name, {name: meant} if meant and takes else {}, own)


def _meant_file(arguments: Sequence[str], context: Any) -> str:
    """Return which option takes a file that was given without one."""
    shown = next((each for before, each in pairwise(arguments) if before == "--json" and each[0] != "-"), None)
    if shown is not None:
        return f" Write --json > {shown}."
    bare = [each for before, each in pairwise(arguments) if not each.startswith("-") and not before.startswith("-")]
    for each in bare if context is not None else ():
        option = next((option for ending, option in FILES.items() if each.lower().endswith(ending)), None)
        if option is not None and any(option in own.opts for own in context.command.params):
            return f" Write {option} {each}."
    return ""

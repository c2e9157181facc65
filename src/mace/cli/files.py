"""Reading what the command line is given: spaces, rows, labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mace.causes import Causal
from mace.errors import InvalidOption, InvalidRow, InvalidSpace, did_you_mean
from mace.explainer import Explainer
from mace.explanation import Explanation
from mace.models.package import optional
from mace.space import Categorical, Feature, FeatureSpace, Ordinal, Scalar
from mace.space.features import is_missing

MISSING = {"", "na", "nan", "null", "<na>"}


def read_space(path: Path) -> FeatureSpace:
    """Return the feature space of a JSON file."""
    try:
        return FeatureSpace.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpace(f"cannot read {path}: {error}") from error


def read_causes(equations: Sequence[str] | None, path: Path | None) -> Causal | None:
    """Return the equations of the command line, ``effect = expression``, and of the table [causes] of a file; ``None`` without any."""
    loaded = None if path is None else Causal.load(path)
    made: dict[str, Any] = {} if loaded is None else dict(loaded.equations)
    for text in equations or ():
        name, sign, expression = text.partition("=")
        if not sign or not expression.strip() or expression.startswith("="):
            raise InvalidOption(
                f'--cause {text!r} is no equation. Write "effect = expression", e.g. "savings = 0.3 * income".'
            )
        if name.strip() in made:
            raise InvalidOption(f"--cause {text!r}: there are two equations of {name.strip()!r}.")
        made[name.strip()] = expression.strip()
    return Causal(made) if made else None


def read_row(path: Path, number: int, space: FeatureSpace) -> dict[str, Scalar]:
    """Return one row of a CSV file in the space's features; columns that are no feature (the label, say) are left out.

    Every cell is read as text and understood by its feature, so that a level called 'NA' or '01' stays one.
    """
    frame = pd.concat(read_frames(path, space, rows=1_000_000), ignore_index=True)
    if not 0 <= number < len(frame):
        raise InvalidRow(f"{path.name} has {len(frame)} rows; there is no row {number} (counted from 0).")
    return {name: _cell(feature, frame[name].iloc[number]) for name, feature in space.items()}


def read_frames(path: Path, space: FeatureSpace, rows: int) -> Iterator[pd.DataFrame]:
    """Yield the cells of a CSV file's features as texts, so many rows at a time."""
    try:
        with pd.read_csv(path, dtype=str, keep_default_na=False, chunksize=rows) as parts:
            for number, part in enumerate(parts):
                if number == 0:
                    _check_columns(path, part, space)
                yield part[list(space)]
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidRow):
            raise
        raise InvalidRow(f"cannot read {path} as CSV: {error}") from error


def read_rows(path: Path, space: FeatureSpace) -> Iterator[dict[str, Scalar]]:
    """Yield the rows of a CSV file in the space's features, as :func:`read_row` reads one, without keeping them."""
    for frame in read_frames(path, space, rows=1000):
        columns = [[_cell(feature, text) for text in frame[name]] for name, feature in space.items()]
        for cells in zip(*columns, strict=True):
            yield dict(zip(space, cells, strict=True))


def read_people(path: Path, space: FeatureSpace, groups: Sequence[str]) -> pd.DataFrame:
    """Return the features of a CSV file and the columns that make groups."""
    frame = pd.DataFrame(list(read_rows(path, space)), columns=list(space), dtype=object)
    whole = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name in groups:
        if name not in whole.columns:
            raise InvalidOption(
                f"--groups: {path.name} has no column {name!r}.{did_you_mean(name, whole.columns)} "
                f"Its columns: {', '.join(whole.columns)}."
            )
        if name not in space:
            frame[name] = whole[name]
    return frame


def check_reports(paths: Iterable[Path]) -> None:
    """Refuse a report that cannot be written before anything is solved."""
    for path in paths:
        if path.suffix not in (".html", ".json"):
            raise InvalidOption(f"--out {path.name}: unknown kind of report. Accepted: .html, .json.")
        if not path.parent.is_dir():
            raise InvalidOption(f"--out: there is no folder {path.parent} for {path.name}.")
        if path.suffix == ".html":
            optional("matplotlib", extra="plot")


def count_rows(path: Path) -> int:
    """Return how many rows a CSV file has, for the progress bar."""
    try:
        with pd.read_csv(path, dtype=str, usecols=[0], chunksize=10_000) as parts:
            return sum(len(part) for part in parts)
    except (OSError, ValueError) as error:
        raise InvalidRow(f"cannot read {path} as CSV: {error}") from error


def _check_columns(path: Path, frame: pd.DataFrame, space: FeatureSpace) -> None:
    absent = [name for name in space if name not in frame.columns]
    if absent:
        raise InvalidRow(
            f"{path.name} has no column {', '.join(map(repr, absent))}. Its columns: {', '.join(frame.columns)}."
        )


def _cell(feature: Feature, text: str) -> Scalar:
    if isinstance(feature, Ordinal | Categorical):
        named = next((level for level in feature.levels if str(level) == text and not is_missing(level)), None)
        return named if named is not None else math.nan if text.strip().lower() in MISSING else text
    if text.strip().lower() in MISSING:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return text


def save_certificates(explanation: Explanation, path: Path) -> None:
    """Write the certificate of the first answer, or of there being none, to a file, and those of further answers beside it."""
    made = [counterfactual.certificate for counterfactual in explanation] + [explanation.certificate]
    for number, certificate in enumerate((each for each in made if each is not None), start=1):
        name = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            certificate.save(name)
        except OSError as error:
            raise InvalidOption(f"--certificate: cannot write {name}: {error}") from error


def label_of(explainer: Explainer, text: str) -> Scalar:
    """Return the model's label that prints as ``text``, or the text itself."""
    classes = explainer.classes or ()
    return next((label for label in classes if str(label) == text), text)

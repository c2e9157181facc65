"""Reading what the command line is given: spaces, rows, labels."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from mace.errors import InvalidOption, InvalidRow, InvalidSpace
from mace.explainer import Explainer
from mace.explanation import Explanation
from mace.space import Categorical, Feature, FeatureSpace, Ordinal, Scalar
from mace.space.features import is_missing

MISSING = {"", "na", "nan", "null", "<na>"}


def read_space(path: Path) -> FeatureSpace:
    """Return the feature space of a JSON file."""
    try:
        return FeatureSpace.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpace(f"cannot read {path}: {error}") from error


def read_row(path: Path, number: int, space: FeatureSpace) -> dict[str, Scalar]:
    """Return one row of a CSV file in the space's features; columns that are no feature (the label, say) are left out.

    Every cell is read as text and understood by its feature, so that a level called 'NA' or '01' stays one.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise InvalidRow(f"cannot read {path} as CSV: {error}") from error
    absent = [name for name in space if name not in frame.columns]
    if absent:
        raise InvalidRow(
            f"{path.name} has no column {', '.join(map(repr, absent))}. Its columns: {', '.join(frame.columns)}."
        )
    if not 0 <= number < len(frame):
        raise InvalidRow(f"{path.name} has {len(frame)} rows; there is no row {number} (counted from 0).")
    return {name: _cell(feature, frame[name].iloc[number]) for name, feature in space.items()}


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

"""German credit: a thousand applicants, good or bad risks."""

from __future__ import annotations

import pandas as pd

from mace.datasets.recipe import PreparedData, Recipe, observed_integer
from mace.datasets.source import Column, Published, read_text
from mace.space import Feature, categorical, ordinal

_ORDERED = {
    "employment_since": ("unemployed", "under 1 year", "1 to 4 years", "4 to 7 years", "7 years or more"),
    "job": ("unskilled non-resident", "unskilled resident", "skilled", "management"),
}
_UNORDERED = {
    "checking_status": ("no account", "below 0 DM", "0 to 200 DM", "200 DM or more"),
    "credit_history": (
        "no credits taken",
        "all paid at this bank",
        "existing paid so far",
        "past delays",
        "critical account",
    ),
    "purpose": (
        "car (new)",
        "car (used)",
        "furniture",
        "radio/tv",
        "appliances",
        "repairs",
        "education",
        "retraining",
        "business",
        "other",
    ),
    "savings": ("unknown or none", "below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM or more"),
    "personal_status_sex": ("male single", "male married", "male divorced", "female non-single"),
    "other_debtors": ("none", "co-applicant", "guarantor"),
    "property": ("real estate", "savings agreement", "car or other", "none known"),
    "other_installment_plans": ("none", "bank", "stores"),
    "housing": ("rent", "own", "free"),
    "telephone": ("none", "yes"),
    "foreign_worker": ("no", "yes"),
}
_FEATURES = (
    "checking_status",
    "duration_months",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "employment_since",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "residence_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "existing_credits",
    "job",
    "dependents",
    "telephone",
    "foreign_worker",
)
_COLUMNS: dict[str, Column] = {
    **{name: (_ORDERED | _UNORDERED).get(name, int) for name in _FEATURES},
    "risk": ("good", "bad"),
}
# The published codes of each column, in their order, as labels.
_CODES = {
    "checking_status": ("A1", ("below 0 DM", "0 to 200 DM", "200 DM or more", "no account")),
    "savings": ("A6", ("below 100 DM", "100 to 500 DM", "500 to 1000 DM", "1000 DM or more", "unknown or none")),
    "employment_since": ("A7", _ORDERED["employment_since"]),
    "personal_status_sex": ("A9", ("male divorced", "female non-single", "male single", "male married")),
    "other_debtors": ("A10", _UNORDERED["other_debtors"]),
    "property": ("A12", _UNORDERED["property"]),
    "other_installment_plans": ("A14", ("bank", "stores", "none")),
    "housing": ("A15", _UNORDERED["housing"]),
    "job": ("A17", _ORDERED["job"]),
    "telephone": ("A19", _UNORDERED["telephone"]),
    "foreign_worker": ("A20", ("yes", "no")),
}
_LABELS: dict[str, dict[str, str]] = {
    **{
        name: {f"{prefix}{position}": label for position, label in enumerate(labels, 1)}
        for name, (prefix, labels) in _CODES.items()
    },
    "credit_history": {f"A3{position}": label for position, label in enumerate(_UNORDERED["credit_history"])},
    "purpose": dict(
        zip(("A40", "A41", "A42", "A43", "A44", "A45", "A46", "A48", "A49", "A410"), _UNORDERED["purpose"], strict=True)
    ),
    "risk": {"1": "good", "2": "bad"},
}

_ABOUT = """\
German credit: 1,000 loan applicants of a German bank, each a good or a bad risk.

Source: UCI Machine Learning Repository, Statlog (German Credit Data), H. Hofmann, https://doi.org/10.24432/C5NC77.
Licence: CC BY 4.0.
Labels: "risk", "good" (700) or "bad" (300), as published.
Changes: the published codes are replaced by readable labels and a header is added; no row or column is dropped.
Kinds: employment_since is ordinal, with "unemployed" as no time in a job, below "under 1 year". job is ordinal by
standing; its lowest published level reads "unemployed / unskilled, non-resident" and is shortened here. checking_status
and savings are categorical: "no account" and "unknown or none" say that the amount is not known, and so have no place
in the order of amounts. installment_rate (a published code, 1 to 4, for the share of disposable income),
residence_since, existing_credits and dependents are integers as published.
"""


def _prepare(raw: pd.DataFrame) -> PreparedData:
    frame = raw[list(_FEATURES)].copy()
    return PreparedData(frame, raw["risk"], {name: _feature(frame[name], name) for name in _FEATURES})


def _feature(column: pd.Series, name: str) -> Feature:
    if name in _ORDERED:
        return ordinal(_ORDERED[name])
    if name in _UNORDERED:
        return categorical(_UNORDERED[name])
    return observed_integer(column)


def _read(content: bytes) -> pd.DataFrame:
    """Return the file as published (codes between spaces, no header), or as we keep it."""
    if content.startswith(b"checking_status,"):
        return read_text(content)
    table = read_text(content, header=None, names=(*_FEATURES, "risk"), index_col=False, sep=" ", dtype=str)
    return table.assign(**{name: table[name].replace(labels) for name, labels in _LABELS.items()})


RECIPE = Recipe("german.csv.xz", _COLUMNS, _prepare, Published(("german.data",), _read), _ABOUT)

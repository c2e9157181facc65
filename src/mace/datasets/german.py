"""German credit: a thousand applicants, good or bad risks."""

from __future__ import annotations

import pandas as pd

from mace.datasets.recipe import Prepared, Recipe, observed_integer
from mace.datasets.source import Column
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


def _prepare(raw: pd.DataFrame) -> Prepared:
    frame = raw[list(_FEATURES)].copy()
    return Prepared(frame, raw["risk"], {name: _feature(frame[name], name) for name in _FEATURES})


def _feature(column: pd.Series, name: str) -> Feature:
    if name in _ORDERED:
        return ordinal(_ORDERED[name])
    if name in _UNORDERED:
        return categorical(_UNORDERED[name])
    return observed_integer(column)


RECIPE = Recipe("german.csv.xz", _COLUMNS, _prepare, _ABOUT)

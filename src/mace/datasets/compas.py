"""COMPAS: defendants, and whether they reoffended within two years."""

from __future__ import annotations

import pandas as pd

from mace.datasets.recipe import PreparedData, Recipe, observed_integer
from mace.datasets.source import Column, Published, read_text
from mace.space import Feature, categorical, ordinal

_AGE_GROUPS = {"Less than 25": "under 25", "25 - 45": "25 to 45", "Greater than 45": "over 45"}
_CHARGES = {"M": "misdemeanor", "F": "felony"}
_RACES = ("African-American", "Caucasian")
_SEXES = ("Female", "Male")

_COLUMNS: dict[str, Column] = {
    "sex": _SEXES,
    "age_cat": tuple(_AGE_GROUPS),
    "race": (*_RACES, "Hispanic", "Asian", "Native American", "Other"),
    "priors_count": int,
    "days_b_screening_arrest": float,
    "c_charge_degree": (*_CHARGES, "O"),
    "is_recid": (-1, 0, 1),
    "two_year_recid": (0, 1),
}

_ABOUT = """\
COMPAS: 5,278 defendants of Broward County, Florida, scored for their risk of reoffending.

Source: ProPublica, "Machine Bias", compas-scores-two-years, https://github.com/propublica/compas-analysis.
Licence: none stated with the file, as far as we know. Columns that name or date a person are removed.
Labels: "two_year_recidivism", 1 for a new offence within two years (the unfavourable outcome), 0 for none.
Changes: as in the MACE paper. Rows are kept with |days_b_screening_arrest| <= 30, is_recid other than -1, a charge
degree other than O, and race African-American or Caucasian. Five features are kept. priors_count is an integer here;
the paper lists it as real.
"""


def _prepare(raw: pd.DataFrame) -> PreparedData:
    is_kept = (
        (raw["days_b_screening_arrest"].abs() <= 30)  # also drops rows where it is missing
        & (raw["is_recid"] != -1)
        & (raw["c_charge_degree"] != "O")
        & raw["race"].isin(_RACES)
    )
    kept = raw[is_kept].reset_index(drop=True)
    frame = pd.DataFrame(
        {
            "age_group": kept["age_cat"].map(_AGE_GROUPS),
            "race": kept["race"],
            "sex": kept["sex"],
            "priors_count": kept["priors_count"],
            "charge_degree": kept["c_charge_degree"].map(_CHARGES),
        }
    )
    features: dict[str, Feature] = {
        "age_group": ordinal(tuple(_AGE_GROUPS.values())),
        "race": categorical(_RACES),
        "sex": categorical(_SEXES),
        "priors_count": observed_integer(frame["priors_count"]),
        "charge_degree": categorical(tuple(_CHARGES.values())),
    }
    return PreparedData(frame, kept["two_year_recid"].rename("two_year_recidivism"), features)


RECIPE = Recipe("compas.csv.xz", _COLUMNS, _prepare, Published(("compas-scores-two-years.csv",), read_text), _ABOUT)

"""Credit: card holders in Taiwan, and whether they paid the next month."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd

from mace.datasets.recipe import PreparedData, Recipe, observed_integer, observed_real
from mace.datasets.source import Column, Download, Published, read_text
from mace.errors import DatasetUnavailable, MissingPackage
from mace.space import Feature, categorical, ordinal

_BILLS = tuple(f"BILL_AMT{month}" for month in range(1, 7))
_PAYMENTS = tuple(f"PAY_AMT{month}" for month in range(1, 7))
_DELAYS = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")  # as published: there is no PAY_1
_DEFAULT = "default payment next month"
_AGE_GROUPS = ("under 25", "25 to 39", "40 to 59", "60 and over")
_EDUCATION = ("other", "high school", "university", "graduate")
_NTD_PER_USD = 32.75
_YES_NO = ("no", "yes")

_COLUMNS: dict[str, Column] = {
    "LIMIT_BAL": int,
    "SEX": (1, 2),
    "EDUCATION": (0, 1, 2, 3, 4, 5, 6),
    "MARRIAGE": (0, 1, 2, 3),
    "AGE": int,
    **dict.fromkeys((*_DELAYS, *_BILLS, *_PAYMENTS), int),
    _DEFAULT: (0, 1),
}
_SPREADSHEET = b"\xd0\xcf\x11\xe0"  # how an .xls file begins
_HEADER = ("ID", *_COLUMNS)
_OTHER_NAMES = {
    **dict(zip((*(f"X{number}" for number in range(1, 24)), "Y"), _COLUMNS, strict=True)),  # the publisher's own text
    "default.payment.next.month": _DEFAULT,  # a widespread copy
    "PAY_1": "PAY_0",
}

_ABOUT = """\
Credit: card holders of a bank in Taiwan in 2005, and whether they defaulted the next month; 29,623 of them are kept.

Source: UCI Machine Learning Repository, Default of Credit Card Clients, I-C. Yeh, https://doi.org/10.24432/C55S3H.
Licence: CC BY 4.0.
Labels: "no_default", 1 for a payment made the next month (the favourable outcome), 0 for a default.
Changes: as in the MACE paper, after Ustun, Spangher and Liu (2019). Amounts are divided by 32.75 (new Taiwan dollars to
US dollars) and rounded to tens. Rows whose MARRIAGE is neither 1 (yes) nor 2 (no) are dropped. Bills and payments of
six months become maxima and most recent values, floored at 0, and counts of months with zero balance (payment above
bill), low spending (bill below 20 % of the limit) and high spending (above 80 %). The delays PAY_0, PAY_2 to PAY_6
become the number of separate overdue streaks and the sum of months overdue. Age and education become ordinal; the
education codes 0, 4, 5 and 6 are "other", the lowest level.
"""


def _prepare(raw: pd.DataFrame) -> PreparedData:
    kept = raw[raw["MARRIAGE"].isin((1, 2))].reset_index(drop=True)
    if kept.empty:
        raise DatasetUnavailable(
            "credit.csv has no row with MARRIAGE 1 or 2, the only rows kept. Use the published file."
        )
    frame = pd.concat([_personal(kept), _spending(kept), _overdue(kept)], axis="columns")
    features: dict[str, Feature] = {
        "is_male": categorical(_YES_NO),
        "is_married": categorical(_YES_NO),
        "age_group": ordinal(_AGE_GROUPS),
        "education_level": ordinal(_EDUCATION),
        "max_bill_over_6_months": observed_real(frame["max_bill_over_6_months"]),
        "max_payment_over_6_months": observed_real(frame["max_payment_over_6_months"]),
        "months_with_zero_balance": observed_integer(frame["months_with_zero_balance"]),
        "months_with_low_spending": observed_integer(frame["months_with_low_spending"]),
        "months_with_high_spending": observed_integer(frame["months_with_high_spending"]),
        "most_recent_bill": observed_real(frame["most_recent_bill"]),
        "most_recent_payment": observed_real(frame["most_recent_payment"]),
        "total_overdue_counts": observed_integer(frame["total_overdue_counts"]),
        "total_months_overdue": observed_integer(frame["total_months_overdue"]),
        "has_history_of_overdue_payments": categorical(_YES_NO),
    }
    return PreparedData(frame, (1 - kept[_DEFAULT]).rename("no_default"), features)


def _personal(raw: pd.DataFrame) -> pd.DataFrame:
    age_group = np.searchsorted([25, 40, 60], raw["AGE"].to_numpy(), side="right")
    education = raw["EDUCATION"].map({3: 1, 2: 2, 1: 3}).fillna(0).astype("int64")
    return pd.DataFrame(
        {
            "is_male": _levels(raw["SEX"] == 1, _YES_NO),
            "is_married": _levels(raw["MARRIAGE"] == 1, _YES_NO),
            "age_group": _levels(age_group, _AGE_GROUPS),
            "education_level": _levels(education, _EDUCATION),
        }
    )


def _spending(raw: pd.DataFrame) -> pd.DataFrame:
    bills, payments = _dollars(raw, *_BILLS), _dollars(raw, *_PAYMENTS)
    limit = _dollars(raw, "LIMIT_BAL")
    return pd.DataFrame(
        {
            "max_bill_over_6_months": np.maximum(bills.max(axis=1), 0).astype("float64"),
            "max_payment_over_6_months": np.maximum(payments.max(axis=1), 0).astype("float64"),
            "months_with_zero_balance": (payments > bills).sum(axis=1),
            # bill / limit < 0.20 and > 0.80, in whole numbers
            "months_with_low_spending": (5 * bills < limit).sum(axis=1),
            "months_with_high_spending": (5 * bills > 4 * limit).sum(axis=1),
            "most_recent_bill": np.maximum(bills[:, 0], 0).astype("float64"),
            "most_recent_payment": np.maximum(payments[:, 0], 0).astype("float64"),
        }
    )


def _overdue(raw: pd.DataFrame) -> pd.DataFrame:
    months = np.maximum(raw[list(_DELAYS)].to_numpy(), 0)
    is_overdue = months > 0
    starts = is_overdue[:, 0].astype("int64") + (is_overdue[:, 1:] & ~is_overdue[:, :-1]).sum(axis=1)
    return pd.DataFrame(
        {
            "total_overdue_counts": starts,
            "total_months_overdue": months.sum(axis=1),
            "has_history_of_overdue_payments": _levels(is_overdue.any(axis=1), _YES_NO),
        }
    )


def _dollars(raw: pd.DataFrame, *names: str) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the amounts in US dollars, rounded to tens, one row a person."""
    amounts: np.ndarray[tuple[int, int], np.dtype[np.int64]] = (
        (raw[list(names)].to_numpy() / _NTD_PER_USD).round(-1).astype(np.int64)
    )
    return amounts


def _levels(positions: object, levels: tuple[str, ...]) -> list[str]:
    return [levels[position] for position in np.asarray(positions, dtype=np.int64)]


def _read(content: bytes) -> pd.DataFrame:
    """Return the table of the publisher's spreadsheet or text, with the names of its spreadsheet."""
    table = _sheet(content) if content.startswith(_SPREADSHEET) else read_text(content)
    named = table.rename(columns=_OTHER_NAMES)
    return named[list(_HEADER)] if set(_HEADER) == set(named.columns) else named


def _sheet(content: bytes) -> pd.DataFrame:
    try:
        from python_calamine import CalamineError
    except ImportError as error:
        raise MissingPackage("reading an .xls file needs python-calamine: pip install 'mace-xai[download]'.") from error
    try:
        return pd.read_excel(io.BytesIO(content), engine="calamine", header=1)  # above it stands a line X1, X2, ...
    except CalamineError as error:
        raise ValueError(f"its sheet cannot be read ({error})") from error


RECIPE = Recipe(
    "credit.csv",
    _COLUMNS,
    _prepare,
    Published(("default of credit card clients.xls",), _read),
    _ABOUT,
    Download(
        "https://archive.ics.uci.edu/static/public/350/data.csv",
        "4edce6da569b2c30788a85fd98a9bafb1a983e8ca1a7aac875dd7ff853cbd0bb",
    ),
)

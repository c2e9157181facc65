"""Bad input of every kind, and what is said about it.

``python tests/support/bad_input.py`` writes docs/errors.md, which a test keeps true.
"""

from __future__ import annotations

import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import skops.io
from forged_files import edited_arrays, made, with_attribute
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import VotingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.files import read_rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
SPACE = mace.FeatureSpace(
    {"age": mace.integer(18, 90), "income": mace.real(0, 250_000), "housing": mace.categorical(["rent", "own", "free"])}
)
ROW = {"age": 30, "income": 20_000.0, "housing": "rent"}


@cache
def frame() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 200),
            "income": rng.uniform(0, 250_000, 200),
            "housing": rng.choice(["rent", "own", "free"], 200),
        }
    )
    score = made["income"] / 250_000 + made["age"] / 200 + (made["housing"] == "own") * 0.3
    return made, np.where(score > score.median(), "grant", "deny")


def fitted(model: Any, numbers: Any = "passthrough", columns: tuple[str, ...] = ("age", "income")) -> Any:
    """Return a fitted pipeline: a step for the numbers, one-hot levels, a model."""
    X, y = frame()
    before = ColumnTransformer([("numbers", numbers, list(columns)), ("levels", OneHotEncoder(), ["housing"])])
    return make_pipeline(before, model).fit(X, y)


def explain(model: Any = None, row: Any = None, space: mace.FeatureSpace = SPACE, **question: Any) -> Any:
    chosen = fitted(DecisionTreeClassifier(max_depth=3, random_state=0)) if model is None else model
    return mace.Explainer(chosen, space).explain(ROW if row is None else row, **question)


def file(name: str, content: bytes) -> Any:
    """Load a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        return mace.load_model(path)


def forged(loader: str, module: str, name: str) -> bytes:
    """Return a ``.skops`` file with a node that no model has."""
    return with_attribute(tree(), made(loader, module, name))


def damaged_tree() -> bytes:
    """Return a ``.skops`` file of a tree whose root has a child outside of it."""

    def change(name: str, array: Any) -> Any:
        if array.dtype.names:
            array["left_child"][0] = -5
        return array

    return edited_arrays(skops.io.dumps(tree().fit([[0], [1]], [0, 1])), change)


def rows(content: bytes) -> Any:
    """Read a CSV file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_bytes(content)
        return list(read_rows(path, SPACE))


class Hostile:
    """A pickle that leaves a file behind when it is loaded."""

    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (self.trace, "w")


def tree() -> Any:
    return DecisionTreeClassifier(max_depth=3, random_state=0)


def inside(model: Any) -> Any:
    X, y = frame()
    return model.fit(X[["age", "income"]], y)


NUMBERS = mace.FeatureSpace({name: SPACE[name] for name in ("age", "income")})

CASES: dict[str, dict[str, Callable[[], Any]]] = {
    "Rows": {
        "a number out of range": lambda: explain(row={**ROW, "age": 212}),
        "a level that is not one": lambda: explain(row={**ROW, "housing": "rant"}),
        "a feature left out": lambda: explain(row={"age": 30, "income": 20_000.0}),
        "a feature misspelt": lambda: explain(row={"age": 30, "incme": 20_000.0, "housing": "rent"}),
        "text for a number": lambda: explain(row={**ROW, "income": "much"}),
        "a fraction for a whole number": lambda: explain(row={**ROW, "age": 30.5}),
        "a missing value that is not allowed": lambda: explain(row={**ROW, "income": float("nan")}),
        "several rows at once": lambda: explain(row=frame()[0].head(3)),
    },
    "Targets": {
        "an unknown label": lambda: explain(target="grnt"),
        "a probability above 1": lambda: explain(target=mace.at_least(1.5, "grant")),
        "a probability without its label": lambda: explain(target=mace.at_least(0.7)),
        "bounds in the wrong order": lambda: explain(target=mace.between(0.8, 0.2)),
        "a margin where no probability is reported": lambda: explain(
            fitted(FixedThresholdClassifier(LogisticRegression(), threshold=0.4), StandardScaler()),
            target=mace.becomes("grant", margin=0.1),
        ),
    },
    "Spaces and frames": {
        "dates with a time zone": lambda: mace.FeatureSpace.from_frame(
            pd.DataFrame({"since": pd.to_datetime(["2020-01-01"], utc=True)})
        ),
        "a million levels": lambda: mace.categorical([str(number) for number in range(1_000_000)]),
        "a column of a million texts": lambda: mace.FeatureSpace.from_frame(
            pd.DataFrame({"name": [str(number) for number in range(1_000_000)]})
        ),
        "a column of lists": lambda: mace.FeatureSpace.from_frame(pd.DataFrame({"tags": [["a"], ["b"]]})),
        "levels in order with missing values": lambda: mace.FeatureSpace.from_frame(
            pd.DataFrame({"grade": pd.Categorical(["A", None], ordered=True)})
        ),
        "a space of other columns than the pipeline's": lambda: explain(
            space=mace.FeatureSpace({**NUMBERS, "home": SPACE["housing"]})
        ),
        "a level that the pipeline's encoder refuses": lambda: explain(
            space=SPACE.replace(housing=mace.categorical(["rent", "own", "free", "tent"]))
        ),
        "a range where a step is not defined": lambda: explain(
            fitted(tree(), FunctionTransformer(np.log), ("income",))
        ),
    },
    "Steps before a model": {
        "Normalizer": lambda: explain(fitted(tree(), Normalizer())),
        "products of real features": lambda: explain(fitted(LogisticRegression(), PolynomialFeatures(2))),
        "a function of your own": lambda: explain(fitted(tree(), FunctionTransformer(np.asarray))),
        "a function that is not monotone": lambda: explain(fitted(tree(), FunctionTransformer(np.sin))),
        "imputation from other rows": lambda: explain(fitted(tree(), KNNImputer())),
        "a curve before PCA": lambda: explain(fitted(make_pipeline(PCA(1), tree()), FunctionTransformer(np.log1p), ("income",))),
        "bins of a real number before a network": lambda: explain(
            fitted(MLPClassifier((2,), max_iter=5), KBinsDiscretizer(3, strategy="uniform"), ("income",))
        ),
        "text handed to the model": lambda: explain(_text_passed()),
    },
    "Models": {
        "not fitted": lambda: explain(DecisionTreeClassifier(), space=NUMBERS),
        "a kernel": lambda: explain(inside(SVC()), space=NUMBERS),
        "another kernel": lambda: explain(inside(GaussianProcessClassifier()), space=NUMBERS),
        "a smooth unit": lambda: explain(inside(MLPClassifier((2,), activation="tanh", max_iter=5)), space=NUMBERS),
        "votes of votes": lambda: explain(
            inside(VotingClassifier([("a", VotingClassifier([("b", LogisticRegression()), ("c", LinearSVC())])), ("d", LinearSVC())])),
            space=NUMBERS,
        ),
        "several calibrations of probabilities": lambda: explain(
            inside(CalibratedClassifierCV(MLPClassifier((2,), max_iter=5), ensemble=True, cv=2)), space=NUMBERS
        ),
        "a search without a best model": lambda: explain(
            inside(GridSearchCV(tree(), {"max_depth": [2]}, refit=False, cv=2)), space=NUMBERS
        ),
    },
    "Files": {
        "a pickle, which may be hostile": lambda: file("model.pkl", pickle.dumps(Hostile("trace"))),
        "a damaged skops file": lambda: file("model.skops", b"PK\x03\x04 not a model"),
        "a skops file that names a function of its own": lambda: file("model.skops", forged("FunctionNode", "os", "system")),
        "a skops file that names a method": lambda: file("model.skops", forged("MethodNode", "numpy", "ndarray")),
        "a skops file whose tree is damaged": lambda: file("model.skops", damaged_tree()),
        "an unknown kind": lambda: file("model.weights", b"?"),
        "no file": lambda: mace.load_model("nowhere.skops"),
        "a line of a CSV file with a cell too many": lambda: rows(b"age,income,housing\n30,20000,rent,1\n"),
        "a column of a CSV file twice": lambda: rows(b"age,income,housing,age\n30,20000,rent,1\n"),
        "a CSV file that is not UTF-8": lambda: rows(b"age,income,housing\n30,20000,rent\n30,20000,\xe9\n"),
        "a quote that is not closed": lambda: rows(b'age,income,housing\n30,20000,"rent\n'),
        "a key of JSON twice": lambda: mace.FeatureSpace.from_json('{"version": 1, "features": {}, "version": 1}'),
        "a certificate of version 1.0": lambda: mace.Certificate.from_json('{"version": 1.0}'),
        "an explanation that is none": lambda: mace.Explanation.from_dict({"version": 1}),
        "a disk that is full": lambda: explain(certify=True)[0].certificate.save("/dev/full"),
    },
    "Options": {
        "a bad accuracy": lambda: explain(accuracy=0),
        "digits of an unknown feature": lambda: explain(digits={"incme": 2}),
        "a range of three numbers": lambda: explain(constraints={"age": [20, 30, 40]}),
        "a level that is not listed": lambda: explain(constraints={"housing": "own"}),
        "a name with a space in a text": lambda: explain(constraints=["monthly income >= 3"]),
        "a constraint on an unknown feature": lambda: explain(constraints=[mace.fixed("sex")]),
        "an unknown distance": lambda: explain(distance="l3"),
        "a count without end": lambda: explain(count=99_999_999_999),
        "a rule of 9,000 terms": lambda: explain(constraints=["age <= " + " + ".join(["income"] * 9000)]),
        "a template that asks for too much": lambda: explain().letter("{{ 'x' * 10**10 }}"),
    },
}  # fmt: skip


def _text_passed() -> Any:
    X, y = frame()
    before = ColumnTransformer([("levels", OneHotEncoder(), ["housing"])], remainder="passthrough")
    model = make_pipeline(before, tree()).fit(X, y)
    model.steps[0] = ("nothing", FunctionTransformer().fit(X))
    return model


@cache
def message(case: Callable[[], Any]) -> tuple[str, str]:
    """Return the class and the text of the error of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case()
        except mace.MaceError as error:
            return type(error).__name__, _stable(str(error))
    raise AssertionError("nothing was refused")


def _stable(text: str) -> str:
    """Return a message without what differs from run to run."""
    return re.sub(r"datetime64\[\w+\]", "datetime64", " ".join(text.split()))


def document() -> str:
    """Return docs/errors.md."""
    lines = [
        "# Errors",
        "",
        "What is said about bad input. Each sentence below is what the code says, written by "
        "`python tests/support/bad_input.py`; a test fails",
        "when it is stale.",
        "Every error is a `mace.MaceError`, and a `ValueError`, `TypeError`, `ImportError`, `OSError` or `RuntimeError` as well.",
    ]
    lines += [
        "",
        "## Likely slips",
        "",
        "What people write who come from another tool, or remember half of a name.",
        "",
    ]
    lines += ["| what was written | what is said |", "| --- | --- |"]
    for written, kind, text in slips():
        lines.append(f"| `{written}` | {f'`{kind}`: ' if kind else ''}{_cell(text)} |")
    for title, cases in CASES.items():
        lines += ["", f"## {title}", "", "| what is wrong | what is said |", "| --- | --- |"]
        for name, case in cases.items():
            kind, text = message(case)
            lines.append(f"| {name} | `{kind}`: {_cell(text)} |")
    return "\n".join(lines) + "\n"


def slips() -> list[tuple[str, str, str]]:
    """Return each likely slip, the class of its error (none of wrong usage of the command line), and what is said."""
    from slips import SLIPS, said

    return [(written, *said(written)) for written in SLIPS]


def _cell(text: str) -> str:
    """Return a text as it stands in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


if __name__ == "__main__":
    DOCUMENT.write_text(document())
    sys.stdout.write(f"{DOCUMENT.name} is up to date.\n")

"""Likely slips, as people write them, and what the answer to each must name.

The texts are run as they stand: calls in :func:`names`, and commands, which begin with ``mace ``, in a folder with the files of
:func:`folder`. docs/errors.md shows them with what is said.
"""

from __future__ import annotations

import io
import re
import shlex
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import bad_input
import skops.io
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.main import run

SLIPS = {
    # the outcome
    'explainer.explain(row, target=("grant", 0.7))': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target={"grant": 0.7})': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target="grant >= 0.7")': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target="grnt >= 0.7")': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target={"Grant": 0.7})': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target="P(deny) < 30%")': "mace.at_most(0.3, 'deny')",
    "explainer.explain(row, target=0.7)": "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target=["deny", "grant"])': "mace.any_of(['deny', 'grant'])",
    "explainer.explain(row, target=True)": "'deny', 'grant'",
    'explainer.explain(row, target="Grant")': "'grant'",
    "explainer.explain(row, target=mace.at_least(0.7))": "mace.at_least(0.7, 'grant')",
    'mace.at_least("grant", 0.7)': "mace.at_least(0.7, 'grant')",
    'explainer.explain(row, target="opposite")': "leave target out",
    "explainer.explain(row, target=1)": "'grant'",
    'explainer.explain(row, target=mace.at_least("0.7", "grant"))': "Write 0.7, without quotes",
    'explainer.explain(row, target=mace.at_least(70, "grant"))': "Write 0.7 for 70 %",
    # what may change
    'explainer.explain(row, features_to_freeze=["age"])': "mace.fixed(",
    "explainer.explain(row, sparsity=2)": "mace.changes_at_most(2)",
    'explainer.explain(row, constraints=["age fixed"])': "'age stays'",
    'explainer.explain(row, constraints=["age cannot change"])': "'age stays'",
    "explainer.explain(row, constraints=mace.fixed)": "mace.fixed('age')",
    "mace.at_most_change(2)": "changes_at_most(2)",
    'mace.fixed(["age", "housing"])': "mace.fixed('age', 'housing')",
    'mace.increases(["age"])': "mace.increases('age')",
    'mace.within("age", [20, 30])': "mace.within('age', 20, 30)",
    'mace.one_of("housing", "own", "free")': "mace.one_of('housing', ['own', 'free'])",
    'explainer.explain(row, constraints="age")': "mace.fixed('age')",
    'explainer.explain(row, constraints={"age": "fixed"})': "mace.fixed('age')",
    'explainer.explain(row, constraints={"age": "increase"})': "mace.increases('age')",
    'explainer.explain(row, constraints={"age": 30})': "{'age': [18, 90]}",
    'explainer.explain(row, constraints=[mace.fixed("aeg")])': "'age'",
    'explainer.explain(row, constraints=["monthly income >= 3"])': "`monthly income`",
    'explainer.explain(row, constraints=["age can only increase"])': "'age increases'",
    'explainer.explain(row, constraints=["income never decreases"])': "'age increases'",
    'explainer.explain(row, constraints=["only age may change"])': "'only age, income change'",
    'explainer.explain(row, constraints=["max 2 changes"])': "'at most 2 features change'",
    'explainer.explain(row, constraints=["age > 30 => income > 10"])': "'if age >= 30 then",
    'explainer.explain(row, constraints=["age \u2264 30"])': "'<='",
    'explainer.explain(row, constraints=["age in 20..30"])': "'age between 20 and 30'",
    'explainer.explain(row, constraints=["age > 30 & income > 10"])': "'and'",
    'explainer.explain(row, constraints=["housing == own"])': "housing == 'own'",
    'explainer.explain(row, constraints=["age >= current"])': "old.age",
    'mace.monotonic("age")': "mace.increases('age')",
    'mace.range("age", 20, 30)': "mace.within('age', 20, 30)",
    # the row
    "explainer.explain(frame)": "explain_many(frame)",
    "explainer.explain(0)": "frame.iloc[[0]]",
    'explainer.explain({"age": 30, "income": 20_000})': "'housing'",
    'explainer.explain({**row, "incom": 1})': "'income'",
    'explainer.explain({**row, "housing": "Own"})': "'own'",
    "explainer.explain_many(row)": "explain(row)",
    "explainer.explain_many(frame.iloc[0])": "explain(row)",
    # options
    "explainer.explain(row, count=0)": "count=3",
    'explainer.explain(row, count="3")': "count=3",
    'explainer.explain(row, distance="L1")': "distance='l1'",
    'explainer.explain(row, distance="euclidean")': "distance='l2'",
    'explainer.explain(row, distance="mad")': "mace.Distance(weights='mad', data=X_train)",
    'explainer.explain(row, solver="tree")': "'trees'",
    'explainer.explain(row, diversity="sets")': "mace.differ(sets='incomparable')",
    "explainer.explain(row, diversity=0.1)": "mace.differ(distance=0.1)",
    "mace.differ(3)": "mace.differ(features=2)",
    'explainer.explain(row, distance={"income": 2})': "mace.Distance(l1=1, weights={'income': 2})",
    'mace.Distance("l1")': "distance='l1'",
    'explainer.explain(row, time_limit="30")': "30",
    'explainer.explain(row, desired_class="grant")': "target=",
    'explainer.explain(row, features_to_vary=["income"])': "mace.only(",
    'explainer.explain(row, permitted_range={"age": [20, 30]})': "constraints={'age': [20, 30]}",
    "explainer.explain(row, total_CFs=3)": "count=",
    'explainer.explain(row, weights={"income": 2})': "mace.Distance(l1=1, weights=",
    "explainer.explain(row, timeout=30)": "time_limit=",
    "explainer.explain_many(frame, jobs=2)": "n_jobs=",
    "explainer.explain(row, n_cfs=3)": "count=3",
    "explainer.explain(row, max_iter=100)": "time_limit=30",
    "explainer.explain(row, lam=0.1)": "the search is exact",
    "explainer.explain()": "explainer.explain(row, 'good')",
    # names
    "mace.dice_ml": "mace.Explainer(model, space)",
    "mace.AnchorTabular": ".reasons(row)",
    "explanation.cfs": "list(explanation)",
    'explanation.to_csv("a.csv")': "explanation.to_frame().to_csv(path)",
    "mace.explain(model, row)": "mace.Explainer(model, space).explain(row)",
    "mace.CounterfactualExplainer": "mace.Explainer(model, space)",
    "mace.explainer_of": "'Explainer'",
    "explainer.generate_counterfactuals(frame)": "explainer.explain(row",
    "explanation.values": "explanation[0].values",
    "explanation.counterfactual": "explanation[0]",
    "explanation.to_dataframe()": "'to_frame'",
    "explanation.visualize()": "explanation.plot()",
    'explanation.plot("changes.png")': "plot().save('changes.png')",
    'explanation.letter(lang="de")': "language='de'",
    "explanation[0].probability": "counterfactual.score",
    "explanation[0].to_frame()": "explanation.to_frame()",
    "nothing[0]": "if explanation:",
    "mace.verify(explanation, model)": "explanation[0].certificate",
    "mace.verify(model, explanation[0].certificate)": "mace.verify(certificate, model)",
    # model and space
    "mace.Explainer(space, model)": "mace.Explainer(model, space)",
    "mace.Explainer(model, frame)": "mace.FeatureSpace.from_frame(",
    "mace.Explainer(DecisionTreeClassifier, space)": "DecisionTreeClassifier().fit(X, y)",
    "mace.Explainer(DecisionTreeClassifier(), space)": "model.fit(X, y)",
    "mace.FeatureSpace(frame)": "mace.FeatureSpace.from_frame(frame)",
    'mace.categorical("rent", "own")': "mace.categorical(['rent', 'own'])",
    "mace.Explainer(model)": "mace.FeatureSpace.from_frame(X_train)",
    'mace.Explainer(model, space, feature_names=["age"])': "mace.FeatureSpace.from_frame(X_train)",
    'mace.Explainer(model, space, target="grant")': "explainer.explain(row, target='good')",
    'mace.FeatureSpace({"age": (18, 90)})': "mace.integer(18, 90)",
    'mace.FeatureSpace({"housing": ["rent", "own"]})': "mace.categorical(['rent', 'own'])",
    # the command line
    "mace --explain": "mace explain",
    "mace explian": "'explain'",
    "mace explain people.csv": "--data people.csv",
    "mace explain --data people.csv --model people.csv --space space.json": "--data people.csv",
    "mace explain --data people.csv --model model.skops --space people.csv": "mace space people.csv",
    "mace explain --data model.skops --model model.skops --space space.json": "--model model.skops",
    "mace explain --data poeple.csv --model model.skops --space space.json": "'people.csv'",
    "mace explain --features age": "--only",
    "mace explain --desired_class grant": "--target",
    "mace explain --data people.csv --model model.skops --space space.json --row all": "mace batch",
    "mace explain --data people.csv --model model.skops --space space.json --target Grant": "'grant'",
    "mace explain --data people.csv --model model.skops --space space.json --fix 'age housing'": "comma",
    "mace verify --certificate certificate.json": "mace verify FILE",
    "mace explain --data people.csv --model model.skops --space space.json --out a.csv": "--json > answer.json",
    "mace space people.csv --target housing": "--label",
    "mace explain --max-changes 2": "at most 2 features change",
    "mace explain --lang de": "mace letter --language de",
    "mace explain --data people.csv --model model.skops --space space.json --json answer.json": "--json > answer.json",
    "mace explain --data people.csv --model model.skops --space space.json --target 0.7": '"grant >= 0.7"',
    "mace list model": "'models'",
}  # fmt: skip
"""What people write, and what must be named in what is said to it."""


@cache
def names() -> dict[str, Any]:
    """Return what the calls may use."""
    model = bad_input.fitted(DecisionTreeClassifier(max_depth=3, random_state=0))
    explainer, frame = mace.Explainer(model, bad_input.SPACE), bad_input.frame()[0]
    row = {**bad_input.ROW, "income": 1000.0}
    return {
        "mace": mace,
        "model": model,
        "space": bad_input.SPACE,
        "explainer": explainer,
        "row": row,
        "frame": frame,
        "explanation": explainer.explain(row),
        "nothing": explainer.explain(row, constraints=mace.fixed(*bad_input.SPACE)),
        "DecisionTreeClassifier": DecisionTreeClassifier,
    }


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the files that commands name."""
    made = tempfile.TemporaryDirectory()
    path = Path(made.name)
    bad_input.frame()[0].to_csv(path / "people.csv", index=False)
    (path / "space.json").write_text(bad_input.SPACE.to_json())
    skops.io.dump(names()["model"], path / "model.skops")
    return made


@cache
def said(written: str) -> tuple[str, str]:
    """Return the kind of the error of a slip, and what it says; the kind is empty for wrong usage of the command line."""
    if written.startswith("mace "):
        return _said_by_command(shlex.split(written)[1:])
    try:
        eval(written, names())
    except (mace.MaceError, AttributeError, IndexError) as error:
        return type(error).__name__, " ".join(str(error).split())
    raise AssertionError(f"nothing is wrong with {written}")


def _said_by_command(arguments: list[str]) -> tuple[str, str]:
    output, errors = io.StringIO(), io.StringIO()
    with chdir(folder().name), redirect_stdout(output), redirect_stderr(errors):
        code = run(arguments)
    assert code == 2, errors.getvalue()
    assert not output.getvalue()
    found = re.fullmatch(r"(\w+): (.*)", errors.getvalue().strip(), re.S)
    return (found[1], found[2]) if found and found[1] in mace.__all__ else ("", errors.getvalue().strip())

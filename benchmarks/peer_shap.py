"""An importance that is estimated, SHAP's, beside one that is proved: shares of all reasons and levers, of the same rows and model.

    python benchmarks/peer_shap.py make problem.json            # in ours: the model's columns, and rows to ask about
    shap-python benchmarks/peer_shap.py theirs problem.json shap.json     # in an environment that has shap and scikit-learn
    python benchmarks/peer_shap.py ours problem.json shap.json  # in ours: asks for reasons, and prints the table

The model is the tree of docs/reasons.md on German credit data. Both fit it from the same columns, and the thresholds are compared. SHAP's
values are those of `TreeExplainer` (interventional, 1,000 people as background) for the probability of "good"; those of the columns of one
feature are added.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

DEPTH = 4
TARGET = "good"


def fitted(problem: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Return the tree of a problem, and its rows."""
    from sklearn.tree import DecisionTreeClassifier

    rows = np.array(problem["rows"])
    return DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(rows, problem["labels"]), rows


def make(path: Path, numbers: list[int]) -> None:
    """Write the rows as the tree sees them, and which feature each column is of."""
    import mace

    data = mace.datasets.load("german")
    encoder = mace.Encoder(data.space).fit(data.frame)
    columns = [str(name) for name in encoder.get_feature_names_out()]
    owners = [
        next(name for name in sorted(data.space, key=len, reverse=True) if each.startswith(name)) for each in columns
    ]
    rows = np.asarray(encoder.transform(data.frame), dtype=float).tolist()
    made = {"rows": rows, "labels": list(map(str, data.labels)), "owners": owners, "asked": numbers}
    path.write_text(json.dumps(made))


def theirs(path: Path, out: Path) -> None:
    """Ask shap, and write the sum of its values for each feature."""
    import shap

    problem = json.loads(path.read_text())
    model, rows = fitted(problem)
    explainer = shap.TreeExplainer(model, rows, feature_perturbation="interventional")
    code = model.classes_.tolist().index(TARGET)
    found = []
    for number in problem["asked"]:
        values = np.asarray(explainer.shap_values(rows[[number]]))[0, :, code]
        sums = dict.fromkeys(problem["owners"], 0.0)
        for owner, value in zip(problem["owners"], values, strict=True):
            sums[owner] += float(value)
        expected = float(np.asarray(explainer.expected_value)[code])
        assert abs(expected + sum(sums.values()) - model.predict_proba(rows[[number]])[0, code]) < 1e-6
        found.append(sums)
    told = {"version": shap.__version__, "thresholds": model.tree_.threshold.tolist(), "values": found}
    out.write_text(json.dumps(told))


def ours(path: Path, answers: Path) -> None:
    """Ask MACE for all reasons, and print the features that either gives a share."""
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeClassifier

    import mace

    problem, other = json.loads(path.read_text()), json.loads(answers.read_text())
    data = mace.datasets.load("german")
    model = make_pipeline(mace.Encoder(data.space), DecisionTreeClassifier(max_depth=DEPTH, random_state=0))
    model.fit(data.frame, data.labels)
    assert model[-1].tree_.threshold.tolist() == other["thresholds"]
    explainer = mace.Explainer(model, data.space)
    for number, values in zip(problem["asked"], other["values"], strict=True):
        made = explainer.reasons(data.frame.iloc[number], target=TARGET, count=1000, ranges=False, certify=True)
        if not made:
            continue
        assert made.complete
        assert made.certificate is not None
        assert mace.verify(made.certificate, model).valid
        levers = made.lever_shares
        print(f"row {number}: {len(made)} reasons, {len(made.levers)} levers; shap {other['version']}")
        print(f"  {'feature':18}{'of reasons':>12}{'of levers':>12}{'SHAP':>10}")
        order = sorted(made.shares, key=lambda name: (-made.shares[name], -levers[name], -abs(values.get(name, 0))))
        for name in order:
            if made.shares[name] or levers[name] or abs(values.get(name, 0)) >= 0.0005:
                print(f"  {name:18}{made.shares[name]:12.2f}{levers[name]:12.2f}{values.get(name, 0):10.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("make", "theirs", "ours"))
    parser.add_argument("problem", type=Path)
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--rows", default="1,9,11,35,59", help="rows of the data set to ask about")
    arguments = parser.parse_args()
    if arguments.step == "make":
        make(arguments.problem, [int(number) for number in arguments.rows.split(",")])
    elif arguments.step == "theirs":
        theirs(arguments.problem, arguments.answers)
    else:
        ours(arguments.problem, arguments.answers)


if __name__ == "__main__":
    main()

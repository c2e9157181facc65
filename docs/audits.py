"""Make the audits that docs/audits.md shows: ``python docs/audits.py [folder for models and data]``.

Fits a forest on german and one on adult, saves model, space and people as files, and runs the printed commands on them. The reports and
their plots go to docs/audits/.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.cli.main import run

HERE = Path(__file__).parent / "audits"
COMMANDS = {
    "german": "mace audit --data german.csv --model german.skops --space german.json --target good "
    "--groups personal_status_sex,age_group --protect age,personal_status_sex,foreign_worker --out german.html",
    "adult": "mace audit --data adult.csv --model adult.skops --space adult.json --target 1 --rows 600 "
    "--groups sex,age_group --protect age,sex,native_country --out adult.html",
}


def prepare(name: str, folder: Path) -> None:
    """Fit a forest on half of a data set and write model, space and the other half's people."""
    data = mace.datasets.load(name)
    order = np.random.default_rng(0).permutation(len(data.frame))
    train, rest = order[: len(order) // 2], order[len(order) // 2 :]
    forest = RandomForestClassifier(20, max_depth=8, class_weight="balanced", random_state=0)
    model = make_pipeline(mace.Encoder(data.space, categorical="codes", ordinal="codes"), forest)
    model.fit(data.frame.iloc[train], data.labels.iloc[train])
    skops.io.dump(model, folder / f"{name}.skops")
    (folder / f"{name}.json").write_text(data.space.to_json())
    people = data.frame.iloc[rest]
    people.assign(age_group=np.where(people["age"] < 30, "under 30", "30 and over")).to_csv(
        folder / f"{name}.csv", index=False
    )


def main() -> None:
    """Run the audits."""
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        for name, command in COMMANDS.items():
            prepare(name, folder)
            words = shlex.split(command)[1:]
            files = [HERE / word if word.endswith(".html") else folder / word for word in words]
            arguments = [
                str(file) if "." in word and not word.startswith("-") else word
                for word, file in zip(words, files, strict=True)
            ]
            if run(arguments) not in (0, 3):
                raise SystemExit(f"{name} failed")
            page = (HERE / f"{name}.html").read_text()
            for title, drawn in zip(("", "distance", "levers"), re.findall(r"<svg.*?</svg>", page, re.S), strict=True):
                if title:
                    (HERE / f"{name}-{title}.svg").write_text(drawn + "\n")


if __name__ == "__main__":
    main()

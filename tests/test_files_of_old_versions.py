"""What people may have: the files that earlier versions wrote are read, and mean what they meant."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import sys
import warnings
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

import mace

FILES = Path(__file__).parent / "files"
VERSIONS = ("0.1.0",)

_BY = "which features differ by 0.01 is decided on decimals since version 2 of certificates, and the proof's cells end on binary fractions"
CHANGED_VERDICTS: dict[tuple[str, str, int], tuple[str, str]] = {
    ("0.1.0", "tree: differ", 1): ("unchecked", _BY),
    ("0.1.0", "logistic: causes, two", 1): ("unchecked", _BY),
}
"""Certificates that mean something else since: (version, name, number of earlier answers) to the verdict of today and the reason."""

CHANGED_CHECKPOINTS: dict[tuple[str, str], str] = {("0.1.0", "network"): "holds answers to another question"}
"""Checkpoints that are refused since: (version, name) to a part of the message that says so.

That of the network: its model's fingerprint depended on the processor.
"""


@dataclass(frozen=True)
class Written:
    """The files of a version, unpacked in a folder."""

    version: str
    folder: Path

    def load(self, name: str) -> Any:
        return json.loads(gzip.decompress((FILES / self.version / f"{name}.json.gz").read_bytes()))

    @cached_property
    def about(self) -> Any:
        return self.load("about")

    @cached_property
    def asked(self) -> Any:
        """The module of the folder with the functions and the questions."""
        name = f"asked_{self.version.replace('.', '_')}"
        spec = importlib.util.spec_from_file_location(name, FILES / self.version / "asked.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    @cache  # noqa: B019
    def model(self, name: str, kind: str = "file") -> Any:
        if name in self.asked.FUNCTIONS:
            return self.asked.FUNCTIONS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            return mace.load_model(self.folder / self.about["models"][name][kind], trust=kind == "joblib")

    @cached_property
    def spaces(self) -> dict[str, mace.FeatureSpace]:
        return {entry["name"]: mace.FeatureSpace.from_dict(entry["space"]) for entry in self.load("spaces")}

    def space_of(self, model: str) -> mace.FeatureSpace:
        return self.spaces[model if model in self.asked.FUNCTIONS else self.about["models"][model]["space"]]


@pytest.fixture(scope="module", params=VERSIONS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("written")
    for name in ("models", "checkpoints"):
        zipfile.ZipFile(FILES / request.param / f"{name}.zip").extractall(folder)
    made = Written(request.param, folder)
    wrote, here = made.about["versions"]["scikit-learn"], sklearn.__version__
    if tuple(map(int, here.split(".")[:2])) < tuple(map(int, wrote.split(".")[:2])):
        pytest.skip(f"scikit-learn {here} does not read models of {wrote}: the files of {made.version} are NOT tested")
    return made


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([{name: math.nan if value is None else value for name, value in row.items()} for row in rows])


def says(new: Any, old: Any) -> bool:
    """Return whether plain data holds all that an older one does; it may have further keys, and another version."""
    if isinstance(old, dict):
        return all(key == "version" or (key in new and says(new[key], part)) for key, part in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(says, new, old))
    return bool(new == old)


def test_certificates_keep_their_verdicts(written: Written) -> None:
    certificates = written.load("certificates")
    assert len(certificates) >= 200
    changed = []
    for entry in certificates:
        certificate = mace.Certificate.from_json(entry["text"])
        forests = [written.model(name) for name in entry["forests"]]
        verdict = mace.verify(certificate, written.model(entry["model"]), forests=forests)
        key = (written.version, entry["name"], len(certificate.statement["earlier"]))
        expected = CHANGED_VERDICTS.get(key, (entry["outcome"],))[0]
        if verdict.outcome != expected:
            changed.append((entry["name"], expected, str(verdict)))
        if forests:
            assert mace.verify(certificate, written.model(entry["model"])).outcome == "unchecked"
    assert not changed


def test_certificates_are_of_every_kind(written: Written) -> None:
    """The corpus would be worth little without some lane."""
    kinds: set[str] = set()

    def look(evidence: Any) -> None:
        if isinstance(evidence, dict):
            kinds.update([evidence["lane"]] if "lane" in evidence else [])
            kinds.update(set(evidence) & {"prices", "ways", "places", "moves"})
            evidence = list(evidence.values())
        for part in evidence if isinstance(evidence, list) else ():
            look(part)

    for entry in written.load("certificates"):
        text = json.loads(entry["text"])
        look(text["evidence"])
        kinds |= {text["claim"]["status"], entry["outcome"]}
        kinds |= {each["kind"] for each in text["statement"]["constraints"]}
    lanes = "trees network curves milp smt enumerate boxes robust moved causes cases pieces"
    marks = "prices ways places moves near_data typical robust rule optimal feasible infeasible unknown valid unchecked"
    assert kinds == {*lanes.split(), *marks.split()}


def test_a_changed_certificate_is_not_believed(written: Written) -> None:
    """The verdicts above are not given to anything: nearer than the answer is refuted."""
    refuted = 0
    for entry in written.load("certificates")[::20]:
        data = json.loads(entry["text"])
        if entry["outcome"] == "valid" and data["claim"]["upper"]:
            data["claim"] |= {"upper": data["claim"]["upper"] / 2, "lower": 0.0, "status": "feasible"}
            forests = [written.model(name) for name in entry["forests"]]
            refuted += mace.verify(data, written.model(entry["model"]), forests=forests).outcome == "refuted"
    assert refuted >= 8


def test_a_certificate_of_another_model_is_refuted(written: Written) -> None:
    """Fingerprints of version 1 depended on the processor; where they differ, all else must hold of the model at hand."""
    entries = [
        each for each in written.load("certificates") if each["model"] == "network" and each["outcome"] == "valid"
    ]
    verdicts = [mace.verify(json.loads(entry["text"]), written.model("logistic")) for entry in entries[::5]]
    assert sum(verdict.outcome == "refuted" for verdict in verdicts) >= 5


def test_explanations_are_read_and_written_the_same(written: Written) -> None:
    explanations = written.load("explanations")
    assert {entry["explanation"]["status"] for entry in explanations} >= {
        "optimal",
        "infeasible",
        "unknown",
        "feasible",
    }
    for entry in explanations:
        made = mace.Explanation.from_dict(entry["explanation"])
        assert says(made.to_dict(), entry["explanation"]), entry["name"]
        assert len(made.to_frame()) == 1 + len(made)
        assert str(made)
        space = written.space_of(entry["model"])
        if made.status != "error":
            assert space.validate(made.factual).keys() == made.factual.keys()
        for answer in made:
            space.validate(answer.values)


def test_spaces_are_read_and_shown_the_same(written: Written) -> None:
    for entry in written.load("spaces"):
        space = mace.FeatureSpace.from_json(json.dumps(entry["space"]))
        assert str(space) == entry["shown"]
        assert mace.FeatureSpace.from_dict(space.to_dict()) == space


@pytest.mark.parametrize("name", ["tree", "forest", "logistic", "network", "gaps", "lender", "torn"])
def test_checkpoints_are_taken_up(written: Written, name: str) -> None:
    """Nothing is solved again; of the one that a kill cut short, what was not answered."""
    model = "tree" if name == "torn" else name
    explainer = mace.Explainer(written.model(model), written.space_of(model))
    seen: list[Any] = []
    ask: dict[str, Any] = {**written.asked.batches()[model], "checkpoint": written.folder / f"{name}.jsonl"}
    if refused := CHANGED_CHECKPOINTS.get((written.version, name)):
        with pytest.raises(mace.InvalidOption, match=refused):
            explainer.explain_many(frame_of(written.about["batches"][model]), **ask)
        return
    made = explainer.explain_many(frame_of(written.about["batches"][model]), on_progress=seen.append, **ask)
    assert seen[-1].done == 6
    assert seen[-1].new == (3 if name == "torn" else 0)
    kept = {entry["name"]: entry["explanation"] for entry in written.load("explanations")}
    for number, each in enumerate(made):
        told = kept[f"{model}: row {number}"]
        if name == "torn" and number >= 3:
            assert [each["values"] for each in told["counterfactuals"]] == [answer.values for answer in each]
        else:
            assert says(each.to_dict(), told)
        if ask.get("certify") and len(each):
            assert each[0].certificate is not None


@pytest.mark.parametrize("kind", ["file", "joblib"])
def test_models_are_read_without_trust_and_predict_as_recorded(written: Written, kind: str) -> None:
    """A pickle needs trust, all else does not."""
    for name, entry in written.about["models"].items():
        if kind not in entry:
            continue
        model = written.model(name, kind)
        rows = frame_of(entry["rows"])
        if not hasattr(model, "predict"):  # ONNX
            explainer = mace.Explainer(model, written.space_of(name))
            assert explainer.predict_many(entry["rows"]) == entry["predictions"]
        elif isinstance(entry["predictions"][0], float):
            np.testing.assert_allclose(np.asarray(model.predict(rows)), entry["predictions"], rtol=1e-9)
        else:
            assert np.asarray(model.predict(rows)).tolist() == entry["predictions"], name

"""A model has one fingerprint, whatever processor it is read on: a certificate made on one machine is checked on another."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

import mace

READ = """
import pickle, sys
from mace.models import read
from mace.models.fingerprint import fingerprint
for model, space in pickle.load(open(sys.argv[1], "rb")):
    print(fingerprint(read(model, space))["form"])
"""
PROCESSORS: tuple[dict[str, str], ...] = (
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX AVX512_ICL", "OPENBLAS_CORETYPE": "Nehalem"},
)
"""What makes the libraries of matrices and of numpy add in other orders, with and without fused operations."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 9)) * 100, columns=list("abcdefghi"))
    labels = np.asarray(frame.sum(axis=1) + rng.normal(size=150) * 50 > 0, dtype=int)
    space = mace.FeatureSpace.from_frame(frame)
    kinds = [
        make_pipeline(StandardScaler(), MLPClassifier((20, 20), max_iter=100, random_state=0)),
        make_pipeline(PCA(5, whiten=True), StandardScaler(), LogisticRegression()),
        make_pipeline(KBinsDiscretizer(5, encode="onehot-dense"), LogisticRegression()),
        make_pipeline(StandardScaler(), PCA(3), MLPClassifier((8,), max_iter=100, random_state=0)),
        StackingClassifier([("a", LogisticRegression(max_iter=1000)), ("b", LogisticRegression(C=0.1, max_iter=1000))]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = [(model.fit(frame, labels), space) for model in kinds]
    path = tmp_path_factory.mktemp("fingerprints") / "models.pkl"
    path.write_bytes(pickle.dumps(fitted))
    return path


def fingerprints(models: Path, processor: dict[str, str]) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", READ, str(models)]
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | processor)
    assert made.returncode == 0, made.stderr
    return made.stdout.splitlines()


@pytest.mark.slow
def test_a_model_has_the_same_fingerprint_on_every_processor(models: Path) -> None:
    here = fingerprints(models, {})
    assert len(set(here)) == 5
    for processor in PROCESSORS:
        assert fingerprints(models, processor) == here, processor

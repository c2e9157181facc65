"""Bad input gives an error that a data scientist can act on; the table in docs is what the code says."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bad_input
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

import mace

EACH = [(title, name, case) for title, cases in bad_input.CASES.items() for name, case in cases.items()]


@pytest.mark.parametrize(("title", "name", "case"), EACH, ids=[f"{title}: {name}" for title, name, _ in EACH])
def test_bad_input_is_refused_in_words(title: str, name: str, case: Callable[[], Any]) -> None:
    kind, text = bad_input.message(case)
    assert issubclass(getattr(mace, kind), mace.MaceError)
    assert len(text) > 20
    assert "Traceback" not in text


def test_the_table_of_errors_is_fresh() -> None:
    assert bad_input.DOCUMENT.read_text() == bad_input.document(), "run `python tests/support/bad_input.py`"


@pytest.mark.parametrize("name", ["model.pkl", "model.pickle", "model.joblib"])
def test_a_hostile_pickle_is_refused_before_it_runs(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (tmp_path / name).write_bytes(pickle.dumps(bad_input.Hostile(str(trace))))
    with pytest.raises(mace.UnsupportedModel, match="runs whatever code it holds"):
        mace.load_model(tmp_path / name)
    assert not trace.exists()


def test_a_skops_file_that_names_foreign_code_is_refused_before_it_runs(tmp_path: Path) -> None:
    trace, file = tmp_path / "trace", tmp_path / "model.skops"
    model = bad_input.fitted(LogisticRegression())
    model.steps[0][1].transformers_[0] = ("numbers", bad_input.Hostile(str(trace)), ["age"])
    skops.io.dump(model, file)
    with pytest.raises(mace.UnsupportedModel, match=r"not known to be safe: .*Hostile"):
        mace.load_model(file)
    assert not trace.exists()


def test_a_truncated_skops_file_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    skops.io.dump(bad_input.fitted(LogisticRegression()), file)
    whole = file.read_bytes()
    for part in (0, 10, len(whole) // 2, len(whole) - 30):
        file.write_bytes(whole[:part])
        with pytest.raises(mace.UnsupportedModel, match="cannot be read as a skops file"):
            mace.load_model(file)


def test_a_skops_file_without_its_schema_is_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "model.skops"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(mace.UnsupportedModel, match="cannot be read as a skops file"):
        mace.load_model(file)


def test_an_error_about_a_wide_table_names_some_columns_and_how_many_there_are() -> None:
    space = mace.FeatureSpace({f"account_balance_{month:02d}_months_ago": mace.integer(0, 9) for month in range(29)})
    with pytest.raises(mace.InvalidConstraint, match=r"\.\.\. \(29 in all\)\.$") as error:
        mace.fixed("sex").bind(space, space.point(dict.fromkeys(space, 1)))
    assert len(str(error.value)) < 330

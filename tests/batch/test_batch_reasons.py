"""Reasons of many rows: those of each, in their order, kept on disk as they come."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.answer.reasons import Reasons

SPACE = mace.FeatureSpace(
    {"age": mace.integer(18, 90), "income": mace.integer(0, 100), "home": mace.categorical(["own", "rent", "none"])}
)
POOR = {"age": 30, "income": 20, "home": "rent"}
TENANT = {"age": 30, "income": 60, "home": "rent"}


def bank(depth: int | None = None) -> mace.Explainer:
    """Approves whoever earns 40 and owns a home, or earns 80."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 500),
            "income": rng.integers(0, 101, 500),
            "home": rng.choice(["own", "rent", "none"], 500),
        }
    )
    said = np.where((rows.income >= 80) | ((rows.income >= 40) & (rows.home == "own")), "yes", "no")
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0)
    return mace.Explainer(make_pipeline(mace.Encoder(SPACE), tree).fit(rows, said), SPACE)


def asked_about(explainer: mace.Explainer, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the rows that the explainer is asked about from now on."""
    found: list[dict[str, Any]] = []
    ask = explainer._explain_why

    def explain_why(row: dict[str, Any], options: Any) -> Reasons:
        found.append(row)
        return ask(row, options)

    monkeypatch.setattr(explainer, "_explain_why", explain_why, raising=False)
    return found


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_reasons_of_many_rows_are_those_of_each(n_jobs: int | None) -> None:
    explainer = bank()
    rows = pd.DataFrame([TENANT, POOR, TENANT, POOR | {"age": 5}]).assign(who=list("abcd"))
    rows.index = pd.Index([7, 8, 9, 10])
    batch = explainer.reasons_many(rows, id="who", target="yes", n_jobs=n_jobs)
    alone = [explainer.reasons(row, target="yes") for row in (TENANT, POOR, TENANT)]
    assert [str(each) for each in batch[:3]] == [str(each) for each in alone]
    assert [each.levers for each in batch[:3]] == [each.levers for each in alone]
    assert batch[3].error.startswith("InvalidRow")
    assert str(batch) == "4 rows: 3 with reasons, 3 complete, 1 error"
    frame = batch.to_frame()
    assert frame["who"].tolist() == list("abcd")
    assert frame.index.tolist() == [7, 8, 9, 10]
    assert frame["features"].tolist()[:2] == ["income, home", "income"]
    assert frame["complete"].dtype == "boolean"
    assert batch.first_shares == {"income": 1.0, "home": pytest.approx(2 / 3), "age": 0.0}
    assert [each["id"] for each in json.loads(batch.to_json())] == list("abcd")


def test_a_batch_of_reasons_keeps_to_its_time_and_its_options() -> None:
    late = bank().reasons_many([TENANT, POOR], total_time_limit=1e-9, target="yes")
    assert all(not each.complete and each.reason for each in late)
    with pytest.raises(mace.UnknownOption, match="distance"):
        bank().reasons_many([TENANT], distance="l1")
    for options, said in (
        ({"total_time_limit": -1}, "total_time_limit"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"count": 0}, "count=0"),
        ({"id": "who"}, "no such column"),
        ({"constraints": [mace.robust({"age": 1})]}, "noise"),
    ):
        with pytest.raises(mace.InvalidOption, match=said):
            bank().reasons_many([TENANT], **options)
    with pytest.raises(mace.InvalidTarget, match="maybe"):
        bank().reasons_many([TENANT], target="maybe")


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path, n_jobs: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    path, explainer = tmp_path / "run.jsonl", bank()
    rows = [TENANT, POOR, TENANT | {"age": 44}, TENANT]
    first = explainer.reasons_many(rows, target="yes", certify=True, checkpoint=path, n_jobs=n_jobs)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    if n_jobs is None:
        asked = asked_about(explainer, monkeypatch)
    seen: list[mace.batch.Progress] = []
    again = explainer.reasons_many(
        rows, target="yes", certify=True, checkpoint=path, n_jobs=n_jobs, on_progress=seen.append
    )
    assert [(str(each), each.levers) for each in again] == [(str(each), each.levers) for each in first]
    assert again[0].to_dict() == first[0].to_dict()
    assert [str(each.space) for each in again] == [str(SPACE)] * 4
    assert mace.verify(again[0].certificate, explainer.model).valid
    assert (seen[-1].done, seen[-1].total, seen[-1].proved) == (4, 4, 4)
    if n_jobs is None:
        assert asked == [TENANT | {"age": 44}]
        assert seen[-1].new == 1
    for options, model in (({"smallest": True}, explainer), ({"ranges": False}, explainer), ({}, bank(1))):
        with pytest.raises(mace.InvalidOption, match="another question"):
            model.reasons_many(rows, target="yes", certify=True, checkpoint=path, **options)
    with pytest.raises(mace.InvalidOption, match="is not the row"):
        explainer.reasons_many(rows[::-1], target="yes", certify=True, checkpoint=path)
    with pytest.raises(mace.InvalidOption, match="not a checkpoint of such a batch"):
        explainer.explain_many(rows, target="yes", checkpoint=path)


def test_what_the_time_of_the_whole_cut_short_is_asked_about_again(tmp_path: Path) -> None:
    path, explainer = tmp_path / "run.jsonl", bank()
    late = explainer.reasons_many([TENANT, POOR], total_time_limit=1e-9, target="yes", checkpoint=path)
    assert not any(each.complete for each in late)
    assert all(each.complete for each in explainer.reasons_many([TENANT, POOR], target="yes", checkpoint=path))


def test_ctrl_c_gives_what_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, explainer = tmp_path / "run.jsonl", bank()
    ask = explainer._explain_why

    def explain_why(row: dict[str, Any], options: Any) -> Reasons:
        if row == POOR:
            signal.raise_signal(signal.SIGINT)
        return ask(row, options)

    monkeypatch.setattr(explainer, "_explain_why", explain_why, raising=False)
    batch = explainer.reasons_many([TENANT, POOR, TENANT, {"age": 5}], target="yes", checkpoint=path)
    assert batch.interrupted
    assert [each.complete for each in batch] == [True, False, False, False]
    assert [each.reason for each in batch[1:3]] == ["interrupted", "interrupted"]
    assert batch[3].error
    assert len(path.read_bytes().splitlines()) == 2
    assert "interrupted" in str(batch)


def test_reasons_are_a_frame_of_another_library_and_name_their_rows() -> None:
    batch = bank().reasons_many([TENANT | {"who": "a"}, POOR | {"who": "b"}], target="yes", id="who")
    plain, foreign = batch.to_frame(), batch.to_frame("polars")
    assert type(foreign).__module__.startswith("polars")
    assert list(foreign.columns) == list(plain.columns)
    assert foreign["who"].to_list() == plain["who"].tolist()
    assert foreign["features"].to_list() == plain["features"].tolist()
    assert [batch.id_of(number) for number in range(len(batch))] == ["a", "b"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_reasons_are_saved_as_files(tmp_path: Path, suffix: str) -> None:
    batch = bank().reasons_many(pd.DataFrame([TENANT, POOR]).assign(who=["x", "y"]), id="who", target="yes")
    path = tmp_path / f"why{suffix}"
    batch.save(path)
    if suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [(line["row"], line["id"]) for line in lines] == [(0, "x"), (1, "y")]
        assert str(Reasons.from_dict(lines[0])) == str(batch[0])
        return
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    frame = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert frame["who"].tolist() == ["x", "y"]
    assert frame["features"].tolist() == ["income, home", "income"]

"""Batches: the same answers in any number of processes, in order, none lost, none twice."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from batches import EXPLAINER, GERMAN, MODEL, all_of, timeless
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.answer.explanation import Explanation
from mace.answer.question import Question
from mace.batch import Batch, Progress, Table, save
from mace.batch import workers as processes
from mace.batch.checkpoint import EXPLANATIONS, Checkpoint
from mace.batch.stream import ROWS_READ_AHEAD, Stream
from mace.batch.workers import Workers
from mace.language.source import remember_typed

FRAME = GERMAN.frame.head(40)


def decide(age, income):  # type: ignore[no-untyped-def]
    return "grant" if income + age >= 90 else "refuse"


PEOPLE = mace.FeatureSpace({"age": mace.integer(18, 90), "income": mace.integer(0, 100)})
SMALL = mace.Explainer(decide, PEOPLE)


ALONE = [timeless(EXPLAINER.explain(row)) for _, row in FRAME.iterrows()]


class Counting(mace.Explainer):
    """An explainer that counts how often it is asked."""

    asked = 0

    def _answer(self, *arguments: Any) -> Explanation:
        self.asked += 1
        return super()._answer(*arguments)


def counting() -> Counting:
    return Counting(MODEL, GERMAN.space)


# ---- pickling


@pytest.mark.parametrize("estimator", [LogisticRegression(), MLPClassifier((4,), max_iter=50, random_state=0)])
def test_an_explainer_that_was_pickled_answers_bit_for_bit_the_same(estimator: Any) -> None:
    model = make_pipeline(mace.Encoder(GERMAN.space), estimator).fit(GERMAN.frame, GERMAN.labels)
    explainer = mace.Explainer(model, GERMAN.space)
    again = pickle.loads(pickle.dumps(explainer))
    assert timeless(again.explain(FRAME.iloc[0])) == timeless(explainer.explain(FRAME.iloc[0]))
    assert again._live.fingerprint == explainer._live.fingerprint


def xgboost_model(X: Any, y: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=5, max_depth=3).fit(X, y)


def lightgbm_model(X: Any, y: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=5, verbose=-1).fit(X, y)


def catboost_model(X: Any, y: Any) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=5, depth=3, verbose=False, allow_writing_files=False).fit(X, y)


def onnx_model(X: Any, y: Any) -> Any:
    import skl2onnx

    return skl2onnx.to_onnx(LogisticRegression().fit(X, y), X[:1].astype(np.float32), options={"zipmap": False})


@pytest.mark.parametrize("make", [xgboost_model, lightgbm_model, catboost_model, onnx_model])
def test_explainers_of_other_libraries_models_pickle(make: Any) -> None:
    X = np.random.default_rng(0).uniform(0, 10, (200, 2))
    model = make(X, (X.sum(axis=1) > 9).astype(int))
    explainer = mace.Explainer(model, mace.FeatureSpace({"a": mace.real(0, 10), "b": mace.real(0, 10)}))
    again = pickle.loads(pickle.dumps(explainer))
    assert timeless(again.explain([2.0, 3.0])) == timeless(explainer.explain([2.0, 3.0]))


def test_an_explainer_of_a_function_pickles() -> None:
    again = pickle.loads(pickle.dumps(SMALL))
    assert timeless(again.explain((30, 10))) == timeless(SMALL.explain((30, 10)))


def test_an_explanation_survives_json() -> None:
    space = mace.FeatureSpace({"a": mace.real(0, 1, missing=True), "b": mace.integer(0, 3)})
    rows = pd.DataFrame({"a": np.tile([np.nan, 0.5], 20), "b": np.arange(40) % 4})
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(random_state=0).fit(rows, rows["b"] > 1)
    explanation = mace.Explainer(model, space).explain({"a": math.nan, "b": 0}, count=2)
    again = Explanation.from_json(explanation.to_json())
    assert again.to_dict() == explanation.to_dict()
    assert math.isnan(again.factual["a"])  # type: ignore[arg-type]
    assert str(again) == str(explanation)


# ---- one process


def test_a_batch_is_what_each_row_gives_alone_in_the_order_of_the_rows() -> None:
    batch = EXPLAINER.explain_many(FRAME)
    assert all_of(batch) == ALONE
    assert isinstance(batch, Batch)
    assert batch.counts == {"optimal": 40}
    assert batch.proved_share == 1
    assert len(batch[:3]) == 3
    assert "40 rows" in str(batch)
    assert "100.0% proved" in repr(batch)


def test_the_question_is_passed_on() -> None:
    constraints = [mace.fixed("age"), "credit_amount <= old.credit_amount"]
    options: dict[str, Any] = {"distance": "l0", "constraints": constraints, "count": 2, "digits": 2}
    batch = EXPLAINER.explain_many(FRAME.head(5), **options)
    assert all_of(batch) == [timeless(EXPLAINER.explain(row, **options)) for _, row in FRAME.head(5).iterrows()]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_welcome(library: str) -> None:
    frame = GERMAN.frame.head(3)
    import polars

    native: Any = polars.DataFrame(frame.astype(object).to_dict("list"))
    if library == "pyarrow":
        native = native.to_arrow()
    batch = EXPLAINER.explain_many(native)
    assert all_of(batch) == ALONE[:3]
    made = batch.to_frame(library)
    assert type(made).__module__.partition(".")[0] in (library, library.removesuffix("s"))
    assert len(made) == 3


def test_rows_need_not_be_a_frame_and_other_columns_are_left_out() -> None:
    assert all_of(EXPLAINER.explain_many(FRAME.head(2).to_dict("records"))) == ALONE[:2]
    assert all_of(EXPLAINER.explain_many([FRAME.head(1), FRAME.iloc[1:2]])) == ALONE[:2]
    assert all_of(EXPLAINER.explain_many(FRAME.head(2).assign(risk="bad"))) == ALONE[:2]


def test_equal_rows_are_solved_once() -> None:
    explainer = counting()
    frame = pd.concat([FRAME.head(3)] * 5, ignore_index=True)
    batch = explainer.explain_many(frame)
    assert explainer.asked == 3
    assert all_of(batch) == ALONE[:3] * 5


def test_a_bad_row_is_an_answer_and_loses_no_other(tmp_path: Path) -> None:
    frame = FRAME.head(6).astype(object)
    frame.loc[1, "age"] = 212
    frame.loc[3, "purpose"] = "yacht"
    frame.loc[4, "credit_amount"] = np.nan
    batch = EXPLAINER.explain_many(frame, checkpoint=tmp_path / "rows.jsonl")
    assert [str(each.status) for each in batch] == ["optimal", "error", "optimal", "error", "error", "optimal"]
    assert "'age' is 212" in batch[1].error
    assert "yacht" in batch[3].error
    assert batch[1].prediction is None
    assert batch[1].factual["age"] == 212
    assert "Not explained: InvalidRow" in str(batch[1])
    assert all_of(batch)[5] == ALONE[5]
    json.loads(batch.to_json())


def test_a_row_that_is_at_the_target_already_is_reached_and_nothing_is_left_to_prove(tmp_path: Path) -> None:
    seen: list[Any] = []
    path = tmp_path / "rows.jsonl"
    batch = EXPLAINER.explain_many(FRAME, target="good", checkpoint=path, on_progress=seen.append)
    predicted = MODEL.predict(FRAME)
    assert [each.status == "reached" for each in batch] == [label == "good" for label in predicted]
    assert 0 < batch.counts["reached"] < len(batch)
    assert batch.proved_share == seen[-1].proved_share == 1
    assert seen[-1].errors == 0
    table = batch.to_frame()
    there = table[table["status"] == "reached"]
    assert (there["lower"] == 0).all()
    assert there["rank"].isna().all()
    assert there["reason"].str.contains("already predicted 'good'").all()
    again = EXPLAINER.explain_many(FRAME, target="good", checkpoint=path, on_progress=seen.append)
    assert seen[-1].new == 0
    assert all_of(again) == all_of(batch)


def test_a_frame_keeps_its_index_and_a_column_that_identifies_its_rows(tmp_path: Path) -> None:
    frame = FRAME.head(4).assign(customer=["c7", "c3", None, "c1"]).set_axis([10, 20, 30, 40])
    frame.index.name = "person"
    batch = EXPLAINER.explain_many(frame, id="customer", count=2)
    made = batch.to_frame()
    assert made.index.name == "person"
    assert [made.loc[[label], "row"].tolist() for label in frame.index] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert made.columns[0] == "customer"
    assert made["customer"].dropna().tolist() == ["c7", "c7", "c3", "c3", "c1", "c1"]
    assert [each["id"] for each in json.loads(batch.to_json())] == ["c7", "c3", None, "c1"]
    assert batch.to_frame("polars")["customer"].to_list()[:2] == ["c7", "c7"]
    for kind in ("csv", "jsonl", "parquet"):
        batch.save(tmp_path / f"answers.{kind}")
    assert pd.read_csv(tmp_path / "answers.csv")["customer"].dropna().tolist() == made["customer"].dropna().tolist()
    assert pd.read_parquet(tmp_path / "answers.parquet")["customer"].tolist()[0] == "c7"
    assert json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[1])["id"] == "c3"


@pytest.mark.parametrize("kind", ["frames", "rows", "series", "generator"])
def test_rows_that_are_no_single_frame_are_identified_too(kind: str) -> None:
    frame = FRAME.head(3).assign(key=[5, 6, 7]).set_axis(["a", "b", "c"])
    data: Any = [frame.head(1), frame.iloc[1:]]
    if kind != "frames":
        data = [row for _, row in frame.iterrows()] if kind == "series" else frame.to_dict("records")
    batch = EXPLAINER.explain_many(iter(data) if kind == "generator" else data, id="key")
    assert all_of(batch) == ALONE[:3]
    made = batch.to_frame()
    assert made["key"].tolist() == [5, 6, 7]
    assert str(made["key"].dtype) == "Int64"
    assert made.index.tolist() == (["a", "b", "c"] if kind == "frames" else [0, 1, 2])


def test_a_feature_may_identify_the_rows_and_what_is_no_column_is_refused() -> None:
    made = EXPLAINER.explain_many(FRAME.head(3), id="age").to_frame()
    assert made["age"].tolist() == FRAME["age"].head(3).tolist()
    assert "new.age" in made.columns
    with pytest.raises(mace.InvalidOption, match=r"id='agee': the rows have no such column\. Did you mean 'age'"):
        EXPLAINER.explain_many(FRAME.head(3), id="agee")
    with pytest.raises(mace.InvalidOption, match="id='row': the answers have a column of that name"):
        EXPLAINER.explain_many(FRAME.head(3).assign(row=1), id="row")
    rows = [{**FRAME.iloc[0], "key": 7}, {**FRAME.iloc[1]}, "no row"]
    some = EXPLAINER.explain_many(rows, id="key")
    assert [str(each.status) for each in some] == ["optimal", "optimal", "error"]
    assert some.to_frame()["key"].tolist() == [7, pd.NA, pd.NA]
    dates = FRAME.head(2).assign(since=pd.to_datetime(["2026-01-02", None]))
    assert [each["id"] for each in json.loads(EXPLAINER.explain_many(dates, id="since").to_json())] == [
        "2026-01-02 00:00:00",
        None,
    ]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "goood"}, mace.InvalidTarget, "not a class"),
        ({"distance": "l7"}, mace.InvalidDistance, "l7"),
        ({"constraints": [mace.fixed("agee")]}, mace.InvalidConstraint, "agee"),
        ({"solver": "gurobi"}, mace.InvalidOption, "gurobi"),
        ({"count": 0}, mace.InvalidOption, "count=0"),
        ({"digits": {"agee": 2}}, mace.InvalidOption, "agee"),
        ({"time_limit": -1}, mace.InvalidOption, "time_limit=-1"),
        ({"total_time_limit": 0}, mace.InvalidOption, "total_time_limit=0"),
        ({"n_jobs": 0}, mace.InvalidOption, "n_jobs=0"),
        ({"on_progress": 3}, mace.InvalidOption, "on_progress=3"),
        ({"checkpoint": "/no/such/folder/file"}, mace.InvalidOption, "cannot write"),
    ],
)
def test_a_wrong_question_is_refused_at_once(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        EXPLAINER.explain_many(FRAME, **options)


@pytest.mark.parametrize("rows", [7, {"age": 3}, "rows.csv", GERMAN.frame.drop(columns="age")])
def test_what_is_no_batch_is_refused(rows: Any) -> None:
    with pytest.raises(mace.InvalidRow):
        EXPLAINER.explain_many(rows)


def test_a_batch_of_nothing_is_empty() -> None:
    batch = EXPLAINER.explain_many(FRAME.head(0))
    assert len(batch) == 0
    assert list(batch.to_frame().columns)[:3] == ["row", "rank", "status"]
    assert batch.proved_share == 0


def test_progress_is_told_row_by_row(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Progress] = []
    EXPLAINER.explain_many(FRAME.head(5), on_progress=seen.append, progress=True)
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert all(progress.total == 5 for progress in seen)
    assert seen[-1].proved_share == 1
    assert seen[-1].rate > 0
    assert seen[-1].remaining == 0
    assert "rows/s" in str(seen[-1])


# ---- limits


def test_the_time_of_a_row_and_of_the_whole_batch_are_kept() -> None:
    started = time.process_time()
    batch = EXPLAINER.explain_many(GERMAN.frame, total_time_limit=0.3)
    assert time.process_time() - started < 2
    assert 0 < batch.counts["unknown"] < 1000
    assert batch.counts["optimal"] > 0
    assert "the whole batch" in batch[-1].reason
    late = EXPLAINER.explain_many(FRAME.head(2), count=500, diversity=mace.differ(by=0), time_limit=0.05)
    assert all(each.status == "feasible" and "time limit" in each.reason for each in late)


def test_ctrl_c_keeps_what_is_answered(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 7:
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "rows.jsonl"
    batch = EXPLAINER.explain_many(FRAME, on_progress=interrupt, checkpoint=path)
    assert batch.interrupted
    assert len(batch) == 40
    done = [each for each in batch if each.status == "optimal"]
    assert 7 <= len(done) < 40
    assert all(each.reason == "interrupted" for each in batch if each.status != "optimal")
    explainer = counting()
    assert all_of(explainer.explain_many(FRAME, checkpoint=path)) == ALONE
    assert explainer.asked == 40 - len(done)


def test_a_stream_gives_ctrl_c_on() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.done == 3:
            raise KeyboardInterrupt

    found: list[Explanation] = []
    with pytest.raises(KeyboardInterrupt):
        found.extend(EXPLAINER.explain_each(FRAME, on_progress=interrupt))


# ---- streams


def test_a_stream_reads_no_further_than_it_must() -> None:
    read = []

    def frames() -> Iterator[pd.DataFrame]:
        for start in range(20):
            read.append(start)
            yield pd.concat([FRAME.head(4)] * 100)

    answers = EXPLAINER.explain_each(frames())
    assert next(answers).status == "optimal"
    assert len(read) <= ROWS_READ_AHEAD // 400 + 1
    answers.close()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_stream_remembers_equal_rows_and_forgets_the_oldest() -> None:
    explainer = counting()
    stream = Stream(explainer, Question(explainer.space))
    frames = [FRAME.head(3)] + [FRAME.iloc[:1]] * ROWS_READ_AHEAD
    assert len(list(stream.answers(frames, remember=2))) == ROWS_READ_AHEAD + 3
    assert explainer.asked == 4  # the first row is forgotten before the second block asks for it again


# ---- checkpoints


def test_a_checkpoint_is_resumed_where_it_stopped_even_mid_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    EXPLAINER.explain_many(FRAME, checkpoint=path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 41
    path.write_bytes(b"".join(lines[:21]) + lines[21][:50])
    explainer = counting()
    assert all_of(explainer.explain_many(FRAME, checkpoint=path)) == ALONE
    assert explainer.asked == 20
    numbers = [json.loads(line)["row"] for line in path.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(40))


def test_a_checkpoint_of_nothing_but_a_torn_head_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"kind": "mace ba')
    assert all_of(EXPLAINER.explain_many(FRAME.head(2), checkpoint=path)) == ALONE[:2]


def test_a_checkpoint_of_another_question_model_or_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    EXPLAINER.explain_many(FRAME.head(3), checkpoint=path)
    for options in (
        {"distance": "l0"},
        {"count": 2},
        {"constraints": ["age stays"]},
        {"target": "good"},
    ):
        with pytest.raises(mace.InvalidOption, match="another question"):
            EXPLAINER.explain_many(FRAME.head(3), checkpoint=path, **options)  # type: ignore[arg-type]
    limited = tmp_path / "limited.jsonl"
    EXPLAINER.explain_many(FRAME.head(3), checkpoint=limited, time_limit=3)
    with pytest.raises(mace.InvalidOption, match="another question"):
        EXPLAINER.explain_many(FRAME.head(3), checkpoint=limited)
    assert len(EXPLAINER.explain_many(FRAME.head(3), checkpoint=path, time_limit=3)) == 3, "made without a limit"
    other = make_pipeline(
        mace.Encoder(GERMAN.space, ordinal="codes"), RandomForestClassifier(5, max_depth=4, random_state=1)
    ).fit(GERMAN.frame, GERMAN.labels)
    with pytest.raises(mace.InvalidOption, match="another question"):
        mace.Explainer(other, GERMAN.space).explain_many(FRAME.head(3), checkpoint=path)
    with pytest.raises(mace.InvalidOption, match="The data changed"):
        EXPLAINER.explain_many(FRAME.iloc[1:], checkpoint=path)


@pytest.mark.parametrize("text", ["hello\n", "[]\n", '{"kind": "other"}\n', '{"kind": "mace batch", "version": 9}\n'])
def test_a_file_that_is_no_checkpoint_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(mace.InvalidOption, match="checkpoint"):
        EXPLAINER.explain_many(FRAME.head(1), checkpoint=path)
    assert path.read_text() == text


def test_two_runs_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    held = Checkpoint(tmp_path / "rows.jsonl", {}, EXPLANATIONS)
    with pytest.raises(mace.InvalidOption, match="in use"):
        EXPLAINER.explain_many(FRAME.head(1), checkpoint=tmp_path / "rows.jsonl")
    held.close()


def test_certificates_survive_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    EXPLAINER.explain_many(FRAME.head(2), certify=True, checkpoint=path)
    explainer = counting()
    batch = explainer.explain_many(FRAME.head(2), certify=True, checkpoint=path)
    assert explainer.asked == 0
    assert batch[0][0].certificate is not None
    assert mace.verify(batch[0][0].certificate, MODEL).valid


# ---- workers


@pytest.fixture
def only_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave all rows to other processes, few as they are."""
    monkeypatch.setattr(processes, "_is_local", lambda: False)


@pytest.mark.slow
@pytest.mark.usefixtures("only_workers")
def test_two_processes_give_bit_for_bit_the_same_answers() -> None:
    frame = pd.concat([FRAME, FRAME.head(5)], ignore_index=True)
    assert all_of(EXPLAINER.explain_many(frame, n_jobs=2)) == ALONE + ALONE[:5]


def test_few_rows_start_no_process_and_many_are_answered_until_others_are_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []
    original = Workers._start

    def noting(self: Workers, until: float) -> Any:
        started.append(self._answered)
        return original(self, until)

    monkeypatch.setattr(Workers, "_start", noting)
    assert all_of(EXPLAINER.explain_many(FRAME, n_jobs=2)) == ALONE
    assert not started
    monkeypatch.setattr(processes, "ALONE", 0.0)
    monkeypatch.setattr(processes, "WORTH", 0.0)
    assert all_of(EXPLAINER.explain_many(FRAME, n_jobs=2)) == ALONE
    assert started == [processes.FIRST_PART]


@pytest.mark.slow
def test_rows_are_handed_over_once_the_workers_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "ALONE", 0.0)
    monkeypatch.setattr(processes, "WORTH", 0.0)
    original, handed = Workers._start, []

    def waiting(self: Workers, until: float) -> Any:
        ready = original(self, until)
        assert ready.wait(120)
        handed.append(self._answered)
        return ready

    monkeypatch.setattr(Workers, "_start", waiting)
    frame = GERMAN.frame.head(300)
    assert all_of(EXPLAINER.explain_many(frame, n_jobs=2)) == all_of(EXPLAINER.explain_many(frame))
    assert handed[0] < 100


@pytest.mark.usefixtures("only_workers")
def test_the_joblib_context_says_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    from joblib import parallel_config

    used: list[int] = []
    original = Workers._answers

    def noting(self: Workers, parts: Any, until: float) -> Any:
        used.append(self._processes if self._parallel else 0)
        return original(self, parts, until)

    monkeypatch.setattr(Workers, "_answers", noting)
    with parallel_config(n_jobs=2):
        assert all_of(EXPLAINER.explain_many(FRAME)) == ALONE
    assert used


def kill_a_worker(progress: Progress) -> None:
    from joblib.externals.loky import reusable_executor

    if progress.done == 10:
        os.kill(next(iter(reusable_executor._executor._processes)), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.usefixtures("only_workers")
def test_a_worker_killed_mid_run_loses_nothing_and_nothing_comes_twice(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    frame = GERMAN.frame.head(120)
    batch = EXPLAINER.explain_many(frame, n_jobs=2, on_progress=kill_a_worker, checkpoint=path)
    assert all_of(batch) == all_of(EXPLAINER.explain_many(frame))
    numbers = [json.loads(line)["row"] for line in path.read_text().splitlines()[1:]]
    assert sorted(numbers) == list(range(120))


class Deadly(mace.Explainer):
    """An explainer whose process dies over one row, as it does where memory runs out."""

    def _answer(self, row: Any, *question: Any) -> Explanation:
        if row["income"] == 13:
            os._exit(1)
        return super()._answer(row, *question)


@pytest.mark.slow
@pytest.mark.usefixtures("only_workers")
def test_a_row_that_kills_its_worker_is_an_error_and_loses_no_other() -> None:
    frame = pd.DataFrame({"age": 30, "income": range(10, 20)})
    batch = Deadly(decide, PEOPLE).explain_many(frame, n_jobs=2, solver="enumerate")
    assert [each.status == "error" for each in batch] == [income == 13 for income in frame["income"]]
    assert "the worker died" in batch[3].error


def test_what_does_not_pickle_is_refused_with_the_way_out() -> None:
    explainer = mace.Explainer(decide, PEOPLE)
    explainer.model = (each for each in ())
    with pytest.raises(mace.InvalidOption, match="Use n_jobs=1"):
        explainer.explain_many([(30, 10), (30, 11)], n_jobs=2)


# ---- tables and files


def test_the_frame_has_a_line_an_answer_and_one_for_a_row_without() -> None:
    space = mace.FeatureSpace({"status": mace.categorical([True, False]), "income": mace.real(0, 100)})
    explainer = mace.Explainer(lambda status, income: 1 if income >= 40 and status else 0, space)
    rows = [(True, 10.0), (False, 50.0), (True, 999.0)]
    frame = explainer.explain_many(rows, count=2, constraints=[mace.fixed("income")]).to_frame()
    assert frame["row"].tolist() == [0, 1, 2]
    assert frame["status"].tolist() == ["infeasible", "optimal", "error"]
    assert frame["new.status"].tolist()[1] is True
    assert frame["becomes"].tolist()[1] == 1
    assert frame["income"].dtype == "float64"
    assert frame["new.status"].dtype == "boolean"
    assert "999" in frame["reason"][2]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_a_file_holds_what_the_frame_holds(tmp_path: Path, suffix: str) -> None:
    frame = FRAME.head(6).astype(object)
    frame.loc[1, "age"] = 212
    batch = EXPLAINER.explain_many(frame, count=2)
    path = tmp_path / f"answers.{suffix}"
    batch.save(path)
    table = batch.to_frame()
    match suffix:
        case "jsonl":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert [Explanation.from_dict(line).to_dict() for line in lines] == [each.to_dict() for each in batch]
            assert [line["row"] for line in lines] == list(range(6))
            return
        case "csv":
            found = pd.read_csv(path, dtype=table.dtypes.to_dict(), keep_default_na=False, na_values=[""])
            table = table.replace({"reason": {"": pd.NA}})
        case _:
            found = pd.read_parquet(path).astype(table.dtypes.to_dict())
    pd.testing.assert_frame_equal(found, table.reset_index(drop=True))


def test_a_stream_goes_to_a_file_that_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    table = Table.of(GERMAN.space, EXPLAINER.classes)

    def breaking() -> Iterator[Explanation]:
        yield from EXPLAINER.explain_each(FRAME.head(2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save(breaking(), path, table)
    assert list(tmp_path.iterdir()) == []
    assert save(EXPLAINER.explain_each([FRAME.head(2)]), path, table) == 2
    assert len(pd.read_csv(path)) == 2


@pytest.mark.parametrize("name", ["answers.xlsx", "nowhere/answers.csv"])
def test_an_unknown_kind_of_file_or_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(mace.InvalidOption):
        EXPLAINER.explain_many(FRAME.head(1)).save(tmp_path / name)


def test_an_interrupt_that_a_solver_does_not_tell_of_still_ends_the_batch() -> None:
    class Closing(mace.Explainer):
        def _answer(self, *arguments: Any) -> Explanation:
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                return super()._answer(*arguments)
            raise AssertionError("the signal was not raised")

    batch = Closing(decide, PEOPLE).explain_many(pd.DataFrame({"age": [20, 30, 40], "income": [10, 20, 30]}))
    assert batch.interrupted
    assert [each.status for each in batch] == ["optimal", "unknown", "unknown"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("only_workers")
def test_functions_typed_into_a_notebook_are_read_in_other_processes() -> None:
    text = "def typed(age, income):\n    return 'grant' if 2 * income + age >= 150 else 'refuse'\nlimit = lambda new, old: new.age <= 40\n"
    cell = "<ipython-input-7>"
    remember_typed({cell: text.splitlines(keepends=True)})
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, cell, "exec"), names)
    explainer = mace.Explainer(names["typed"], PEOPLE)
    rows = pd.DataFrame({"age": [20, 30, 35], "income": [10, 20, 30]})
    asked = {"constraints": [mace.rule(names["limit"])]}
    made = explainer.explain_many(rows, n_jobs=2, **asked)
    assert all_of(made) == all_of(explainer.explain_many(rows, **asked))
    assert [explanation.status for explanation in made] == ["optimal"] * 3

"""Batches on real local clusters of Dask and Ray: the same answers, also where a worker is killed, and Spark's pandas function."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import pytest
from batches import EXPLAINER, GERMAN, all_of, timeless

import mace
from mace.batch import Progress
from mace.batch.spark import pandas_function

pytestmark = pytest.mark.filterwarnings("ignore")  # the clusters' own

FRAME = GERMAN.frame.head(160)
QUESTION: dict[str, Any] = {"distance": "l1", "constraints": ["age stays"]}
EXPECTED = EXPLAINER.explain_many(FRAME, **QUESTION)
TIMES = ["seconds"]


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return answers in the order of their rows, without what no two runs share."""
    return frame.drop(columns=TIMES).sort_values("id", kind="stable").reset_index(drop=True)


def expected() -> pd.DataFrame:
    made = EXPECTED.to_frame().rename(columns={"row": "id"})
    return table(made)


def assert_expected(found: pd.DataFrame) -> None:
    wanted = expected()
    assert found["id"].tolist() == list(range(len(FRAME))), "a row is lost, or there twice"
    pd.testing.assert_frame_equal(found.astype(wanted.dtypes.to_dict()), wanted)


def numbered() -> pd.DataFrame:
    return FRAME.assign(id=range(len(FRAME)))


@pytest.fixture(scope="module", autouse=True)
def paths() -> Iterator[None]:
    """Let workers import what the tests import."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield


# ---- Dask


@pytest.fixture(scope="module")
def client(paths: None) -> Iterator[Any]:
    import distributed

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_as_the_back_end_of_joblib_gives_the_same_answers(client: Any) -> None:
    with joblib.parallel_config(backend="dask"):
        batch = EXPLAINER.explain_many(FRAME, **QUESTION)
    assert all_of(batch) == all_of(EXPECTED)


@pytest.mark.slow
def test_a_dask_worker_killed_mid_run_loses_nothing_and_nothing_comes_twice(client: Any, tmp_path: Path) -> None:
    victim = next(iter(client.run(os.getpid).values()))

    def kill(progress: Progress) -> None:
        if progress.done == 10:
            os.kill(victim, signal.SIGKILL)

    path = tmp_path / "rows.jsonl"
    with joblib.parallel_config(backend="dask"):
        batch = EXPLAINER.explain_many(FRAME, **QUESTION, on_progress=kill, checkpoint=path)
    assert all_of(batch) == all_of(EXPECTED)
    assert len(path.read_text().splitlines()) == 1 + len(FRAME)


@pytest.mark.slow
def test_a_dask_frame_gives_the_same_answers_also_where_a_worker_is_killed(client: Any) -> None:
    from dask import dataframe
    from distributed import wait

    from mace.batch.dask import explain_frame

    frame = dataframe.from_pandas(numbered(), npartitions=16)
    answers = explain_frame(EXPLAINER, frame, keep=["id"], **QUESTION)
    assert list(answers.columns)[:3] == ["id", "rank", "status"]
    victim = next(iter(client.run(os.getpid).values()))
    futures = client.compute(answers.to_delayed())
    wait(futures, return_when="FIRST_COMPLETED")
    assert not all(future.done() for future in futures)
    os.kill(victim, signal.SIGKILL)
    found = pd.concat(client.gather(futures))
    assert found.index.tolist() == list(FRAME.index)
    assert_expected(table(found))


# ---- Ray


@pytest.fixture(scope="module")
def ray(paths: None) -> Iterator[Any]:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield ray
    ray.shutdown()


def kill_a_process(name: str) -> bool:
    """Kill one process of this run's Ray whose title has a name in it."""
    import psutil

    for process in psutil.Process().children(recursive=True):
        if name in " ".join(process.cmdline()):
            process.kill()
            return True
    return False


@pytest.mark.slow
def test_ray_as_the_back_end_of_joblib_gives_the_same_answers_also_where_a_worker_is_killed(ray: Any) -> None:
    from ray.util.joblib import register_ray

    killed: list[bool] = []

    def kill(progress: Progress) -> None:
        if progress.done == 10:
            killed.append(kill_a_process("ray::PoolActor"))

    register_ray()
    with joblib.parallel_config(backend="ray"):
        batch = EXPLAINER.explain_many(FRAME, **QUESTION, n_jobs=2, on_progress=kill)
    assert killed == [True]
    assert all_of(batch) == all_of(EXPECTED)


@pytest.mark.slow
def test_a_ray_data_set_gives_the_same_answers_also_where_a_worker_is_killed(ray: Any) -> None:
    from mace.batch.ray import explain_dataset

    rows = ray.data.from_pandas(numbered())
    answers = explain_dataset(EXPLAINER, rows, keep=["id"], concurrency=1, **QUESTION)
    found, killed = [], False
    for part in answers.iter_batches(batch_size=16, batch_format="pandas", prefetch_batches=0):
        found.append(part)
        killed = killed or kill_a_process("ray::MapWorker")
    assert killed
    assert_expected(table(pd.concat(found)))


# ---- Spark


@pytest.mark.slow
def test_the_function_for_spark_gives_the_same_answers_in_another_process() -> None:
    function = pandas_function(EXPLAINER, keep={"id": "bigint"}, **QUESTION)
    frames = [numbered().iloc[:5], numbered().iloc[5:12]]
    from concurrent.futures import ProcessPoolExecutor

    import cloudpickle

    with ProcessPoolExecutor(1, mp_context=__import__("multiprocessing").get_context("spawn")) as pool:
        found = pool.submit(run_packed, cloudpickle.dumps((function, frames))).result()
    found = table(found)
    pd.testing.assert_frame_equal(found.astype(expected().dtypes.to_dict()), expected().head(12))
    assert function.schema.startswith("`id` bigint, `rank` bigint, `status` string, `prediction` string")
    names = [part.split("`")[1] for part in function.schema.split(", ")]
    assert [name for name in names if name not in TIMES] == list(found.columns)
    assert set(TIMES) <= set(names)


def run_packed(data: bytes) -> pd.DataFrame:
    import pickle

    function, frames = pickle.loads(data)
    return pd.concat(function(iter(frames)))


def test_a_column_that_is_kept_must_not_have_the_name_of_an_answers_column() -> None:
    with pytest.raises(mace.InvalidOption, match="keep: 'status'"):
        pandas_function(EXPLAINER, keep={"status": "string"})


@pytest.mark.slow
def test_a_bad_row_of_a_part_is_an_error_of_that_row() -> None:
    function = pandas_function(EXPLAINER)
    frame = FRAME.head(3).astype({"age": "int64"})
    frame.loc[1, "age"] = 212
    (answers,) = function([frame])
    assert answers["status"].tolist() == ["optimal", "error", "optimal"]
    assert timeless(EXPLAINER.explain(FRAME.iloc[2]))["lower"] == answers["lower"][2]

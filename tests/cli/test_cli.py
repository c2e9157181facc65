"""The command line, as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.cli.lists import LISTED
from mace.cli.main import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its space, and rows."""
    path = tmp_path_factory.mktemp("cli")
    data = mace.datasets.load("german")
    model = make_pipeline(mace.Encoder(data.space), DecisionTreeClassifier(max_depth=5, random_state=0))
    model.fit(data.frame, data.labels)
    skops.io.dump(model, path / "model.skops")
    import joblib

    joblib.dump(model, path / "model.joblib")
    (path / "space.json").write_text(data.space.to_json())
    refused = data.frame[model.predict(data.frame) == "bad"].head(5)
    refused.assign(risk="bad").to_csv(path / "rows.csv", index=False)
    data.frame[model.predict(data.frame) == "good"].head(2).to_csv(path / "granted.csv", index=False)
    return path


def explain(
    folder: Path, *options: str, data: str = "rows.csv", model: str = "model.skops", space: str = "space.json"
) -> int:
    paths = ["--data", str(folder / data), "--model", str(folder / model), "--space", str(folder / space)]
    return run(["explain", *paths, *options])


def test_explaining_a_row_prints_the_answer_and_exits_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--row", "3", "--fix", "age,personal_status_sex", "--count", "2") == 0
    printed = capsys.readouterr().out
    assert "proved nearest" in printed
    assert "instead" in printed


def test_rules_and_files_of_constraints_bind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "constraints.toml").write_text('constraints = ["age, personal_status_sex stay"]')
    rules = [
        "--rule",
        "if duration_months changes then credit_amount <= old.credit_amount",
        "--rule",
        "at most 2 features change",
    ]
    assert explain(folder, "--row", "3", *rules, "--constraints", str(folder / "constraints.toml"), "--json") == 0
    best = json.loads(capsys.readouterr().out)["counterfactuals"][0]
    assert len(best["changes"]) <= 2
    assert explain(folder, "--row", "3", "--only", "credit_amount, duration_months", "--json") == 0
    best = json.loads(capsys.readouterr().out)["counterfactuals"][0]
    assert {change["feature"] for change in best["changes"]} <= {"credit_amount", "duration_months"}
    assert explain(folder, "--row", "3", "--rule", "ages stay") == 2
    assert "no feature 'ages'" in capsys.readouterr().err


def test_json_is_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = explain(
        folder,
        "--row",
        "1",
        "--json",
        "--distance",
        "l0",
        "--target",
        "good",
        "--increase",
        "employment_since",
        "--decrease",
        "age",
    )
    assert code == 0
    data = json.loads(capsys.readouterr().out)
    assert data["status"] == "optimal"
    assert data["target"] == "good"


def test_a_proved_no_exits_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--fix", ",".join(mace.datasets.load("german").space)) == 1
    assert "No counterfactual exists" in capsys.readouterr().out


def test_out_of_time_exits_3(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--time-limit", "1e-9") == 3
    assert "time limit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "files", "message"),
    [
        (["--fix", "agee"], {}, "no feature 'agee'"),
        (["--row", "99"], {}, "there is no row 99"),
        (["--row", "-1"], {}, "there is no row -1"),
        (["--distance", "l9"], {}, "'l9' is not one of the distances"),
        (["--solver", "magic"], {}, "not known"),
        (["--target", "great"], {}, "'great' is not a class"),
        ([], {"model": "model.joblib"}, "is a pickle"),
        ([], {"model": "none.skops"}, "--model: there is no file"),
        ([], {"model": "rows.csv"}, "rows.csv is a table of rows, which is --data"),
        ([], {"space": "rows.csv"}, "Make the space of it: mace space"),
        ([], {"space": "none.json"}, "--space: there is no file"),
        ([], {"data": "none.csv"}, "--data: there is no file"),
        ([], {"data": "space.json"}, "has no column"),
    ],
)
def test_misuse_exits_2_with_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], files: dict[str, Any], message: str
) -> None:
    assert explain(folder, *options, **files) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_a_row_that_is_at_the_target_already_is_an_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--target", "good", data="granted.csv") == 0
    assert "Nothing to change: the row is already predicted 'good'" in capsys.readouterr().out


def test_wrong_usage_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 2
    assert run(["explode"]) == 2
    assert run(["explain", "--row", "x"]) == 2
    assert capsys.readouterr().err


def test_a_trusted_pickle_is_loaded(folder: Path) -> None:
    assert explain(folder, "--trust", model="model.joblib") == 0


def test_an_internal_error_exits_70_and_never_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mace.explainer.Explainer._answer", lambda *_, **__: 1 / 0)
    assert explain(folder) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("kind", LISTED)
def test_lists_come_from_the_tables(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", kind]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_an_unknown_list_exits_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "model"]) == 2
    assert "Did you mean 'models'" in capsys.readouterr().err


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version"]) == 0
    assert mace.__version__ in capsys.readouterr().out
    assert run(["--help"]) == 0


def test_the_command_is_a_module_too() -> None:
    command = [sys.executable, "-m", "mace", "explain", "--rwo"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.endswith("See mace explain --help.\n")


@pytest.mark.slow
def test_the_demo_explains_a_refusal_with_its_bounds() -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from mace.cli import main; main(['demo'])"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "3 ways to good, proved nearest" in result.stdout
    assert re.search(r"nothing nearer than 0\.\d+ exists \(proved in [\d.]+ ms\)", " ".join(result.stdout.split()))
    assert "The model itself says of the changed row: good." in result.stdout


def test_levels_that_look_like_missing_values_stay_levels(tmp_path: Path) -> None:
    from mace.cli.files import read_row

    space = mace.FeatureSpace(
        {
            "a": mace.categorical(["NA", "01"]),
            "n": mace.integer(0, 9, missing=True),
            "f": mace.categorical([True, False]),
        }
    )
    (tmp_path / "rows.csv").write_text("a,n,f\nNA,,True\n01,3,False\n")
    assert read_row(tmp_path / "rows.csv", 1, space) == {"a": "01", "n": 3.0, "f": False}
    assert space.point(read_row(tmp_path / "rows.csv", 0, space)) == (0, None, 0)


def verify(folder: Path, certificate: str, model: str = "model.skops") -> int:
    return run(["verify", str(folder / certificate), "--model", str(folder / model)])


def test_a_certificate_is_written_and_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--row", "2", "--count", "2", "--certificate", str(folder / "c.json")) == 0
    assert {"version", "statement", "claim", "evidence"} == set(json.loads((folder / "c.json").read_text()))
    capsys.readouterr()
    for name in ("c.json", "c-2.json"):
        assert verify(folder, name) == 0
        assert capsys.readouterr().out.startswith("valid: the counterfactual reaches the target at distance ")


def test_that_none_exists_is_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space = json.loads((folder / "space.json").read_text())
    fixed = ",".join(space["features"])
    assert explain(folder, "--fix", fixed, "--certificate", str(folder / "none.json")) == 1
    capsys.readouterr()
    assert verify(folder, "none.json") == 0
    assert "no counterfactual exists" in capsys.readouterr().out


def test_that_no_certificate_is_written_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "granted.json"
    assert explain(folder, "--target", "good", "--certificate", str(file), data="granted.csv") == 0
    assert f"Note: {file} is not written" in capsys.readouterr().err
    assert not file.exists()


def test_verdicts_are_exit_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--row", "2", "--certificate", str(folder / "d.json")) == 0
    data = json.loads((folder / "d.json").read_text())
    (folder / "false.json").write_text(json.dumps(data | {"claim": data["claim"] | {"upper": 0.5}}))
    (folder / "bare.json").write_text(json.dumps(data | {"evidence": {"lane": "trees", "missing": "lost"}}))
    (folder / "broken.json").write_text(json.dumps(data)[:-20])
    capsys.readouterr()
    assert [verify(folder, name) for name in ("d.json", "false.json", "broken.json", "bare.json")] == [0, 1, 2, 3]
    printed = capsys.readouterr()
    assert "refuted: claim.upper" in printed.out
    assert "unchecked: the trees lane gave no proof of lower: lost" in printed.out
    assert "InvalidCertificate" in printed.err
    assert explain(folder, "--certificate", str(folder / "no" / "such" / "folder.json")) == 2


# ---- batches


def batch(folder: Path, out: str, *options: str, data: str = "rows.csv") -> int:
    paths = [
        "--data",
        str(folder / data),
        "--model",
        str(folder / "model.skops"),
        "--space",
        str(folder / "space.json"),
    ]
    return run(["batch", *paths, "--out", str(folder / out), *options])


def test_a_batch_writes_every_row_and_exits_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    for out in ("answers.csv", "answers.parquet", "answers.jsonl"):
        assert batch(folder, out, "--target", "good", "--fix", "age") == 0
        assert "5 rows: 5 optimal." in capsys.readouterr().out
        assert not (folder / f"{out}.checkpoint").exists()
    assert pd.read_csv(folder / "answers.csv")["row"].tolist() == list(range(5))
    assert pd.read_parquet(folder / "answers.parquet")["becomes"].tolist() == ["good"] * 5
    lines = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert explain(folder, "--row", "3", "--target", "good", "--fix", "age", "--json") == 0
    alone = json.loads(capsys.readouterr().out)
    assert lines[3]["counterfactuals"][0]["values"] == alone["counterfactuals"][0]["values"]


def test_a_batch_carries_a_column_along_and_people_who_are_granted_leave_nothing_open(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    both = pd.concat([pd.read_csv(folder / name) for name in ("rows.csv", "granted.csv")])
    both.assign(customer=[f"c{number}" for number in range(7)]).to_csv(folder / "both.csv", index=False)
    assert batch(folder, "both-out.csv", "--target", "good", "--id", "customer", data="both.csv") == 0
    assert "5 optimal, 2 reached" in capsys.readouterr().out
    made = pd.read_csv(folder / "both-out.csv")
    assert made["customer"].tolist() == [f"c{number}" for number in range(7)]
    assert made["status"].tolist() == ["optimal"] * 5 + ["reached"] * 2
    assert batch(folder, "both-out.jsonl", "--target", "good", "--id", "customer", data="both.csv") == 0
    lines = [json.loads(line) for line in (folder / "both-out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == made["customer"].tolist()
    assert batch(folder, "none.csv", "--id", "custommer", data="both.csv") == 2
    assert "--id: both.csv has no column 'custommer'. Did you mean 'customer'?" in capsys.readouterr().err


def test_a_batch_with_a_bad_row_exits_3_and_writes_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (folder / "rows.csv").read_text().splitlines()
    age = text[0].split(",").index("age")
    cells = text[2].split(",")
    text[2] = ",".join([*cells[:age], "212", *cells[age + 1 :]])
    (folder / "bad.csv").write_text("\n".join(text))
    assert batch(folder, "bad.jsonl", data="bad.csv") == 3
    assert "4 optimal, 1 error" in capsys.readouterr().out
    lines = [json.loads(line) for line in (folder / "bad.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["optimal", "error", "optimal", "optimal", "optimal"]
    assert "212" in lines[1]["error"]


@pytest.mark.parametrize(
    ("out", "options", "message"),
    [
        ("answers.xlsx", (), "unknown kind"),
        ("no/answers.csv", (), "no folder"),
        ("wrong.csv", ("--target", "goood"), "not a class"),
        ("wrong.csv", ("--fix", "agee"), "agee"),
        ("wrong.csv", ("--jobs", "0"), "--jobs 0; give a number of processes"),
    ],
)
def test_a_batch_that_cannot_run_exits_2_and_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], out: str, options: tuple[str, ...], message: str
) -> None:
    assert batch(folder, out, *options) == 2
    assert message in capsys.readouterr().err
    assert not (folder / out).exists()
    assert not (folder / f"{out}.checkpoint").exists()


def test_a_checkpoint_is_not_taken_up_unless_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "old.csv.checkpoint").write_text("")
    assert batch(folder, "old.csv") == 2
    assert "--resume" in capsys.readouterr().err
    assert batch(folder, "old.csv", "--resume") == 0


@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "number"), [("1", signal.SIGKILL), ("2", signal.SIGKILL), ("2", signal.SIGINT)])
def test_a_batch_killed_mid_run_is_resumed_with_every_row_exactly_once(
    tmp_path: Path, folder: Path, jobs: str, number: signal.Signals
) -> None:
    data = mace.datasets.load("german")
    data.frame.head(120).to_csv(tmp_path / "rows.csv", index=False)
    out, checkpoint = tmp_path / "answers.jsonl", tmp_path / "answers.jsonl.checkpoint"
    command = [sys.executable, "-c", "from mace.cli import main; main()", "batch", "--jobs", jobs, "--out", str(out)]
    command += ["--data", str(tmp_path / "rows.csv"), "--model", str(folder / "model.skops")]
    command += ["--space", str(folder / "space.json"), "--resume"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE)
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if checkpoint.exists() and checkpoint.read_bytes().count(b"\n") > 20:
            break
        time.sleep(0.01)
    os.killpg(process.pid, number)
    process.communicate(timeout=30)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 3)
    assert not out.exists()
    kept = [json.loads(line) for line in checkpoint.read_bytes().split(b"\n")[1:-1]]
    assert 20 <= len(kept) < 120
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "120 rows: 120 optimal" in result.stdout
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [answer["row"] for answer in answers] == list(range(120))
    for line in kept:
        again, first = answers[line["row"]], line["explanation"]
        seconds = [each["seconds"] for each in first["counterfactuals"]]
        assert [each["seconds"] for each in again["counterfactuals"]] == seconds, "an answer was made twice"
        assert again["seconds"] == first["seconds"]

"""What others install, cite and build: distributions, workflows, the citation, versions of the site."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import distribution
import pytest
import yaml

import mace

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ANSWER = """
import mace
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
data = mace.datasets.load("german")
model = make_pipeline(mace.Encoder(data.space), DecisionTreeClassifier(max_depth=6, random_state=0))
model.fit(data.frame, data.labels)
best = mace.Explainer(model, data.space).explain(data.frame.iloc[4], target="good", certify=True)[0]
print(best.changes[0], best.status, mace.verify(best.certificate, model))
"""


def steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_names_exists(workflow: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for step in steps(workflow):
        for line in step.get("run", "").splitlines():
            words = line.split()
            if words[0] == "make":
                assert words[1] in targets, line
            for word in words:
                if re.fullmatch(r"[\w./-]+\.(py|toml|md)", word):
                    assert (ROOT / word).exists(), line


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_to_a_commit_with_its_version_beside_it(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used
    for each in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each), each


def test_workflows_test_every_python_that_is_supported() -> None:
    named = {text.rsplit(" ", 1)[-1] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)}
    matrix = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]["quick"]["strategy"]["matrix"]
    assert set(matrix["python"]) == named
    assert {system.split("-")[0] for system in matrix["system"]} == {"ubuntu", "macos", "windows"}


def test_forms_for_issues_are_forms() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        assert path.stem == "config" or {"name", "description", "body"} <= set(form)


def test_the_version_is_the_same_everywhere() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == PROJECT["version"] == mace.__version__
    assert cited["license"] == PROJECT["license"]
    assert cited["preferred-citation"]["year"] == 2020


def test_the_changelog_has_the_sections_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)", text, re.M)) <= kinds


def test_every_dependency_has_its_licence_listed() -> None:
    page = (ROOT / "docs" / "reference" / "licences.md").read_text()
    for need in PROJECT["dependencies"]:
        name = re.split(r"[><=\[]", need)[0]
        assert f"| {name} |" in page, "run `make installed`"


def test_versions_of_the_site_are_listed_newest_first_and_replaced_in_place(tmp_path: Path) -> None:
    add = runpy.run_path(str(ROOT / "docs" / "versions.py"))["add"]
    site = tmp_path / "site"
    site.mkdir()
    for version in ("dev", "0.9", "0.10", "0.9"):
        (site / "index.html").write_text(version)
        add(site, tmp_path / "all", version)
    listed = json.loads((tmp_path / "all" / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10", "0.9", "dev"]
    assert "0.10/index.html" in (tmp_path / "all" / "index.html").read_text()


def test_the_site_of_every_release_is_built_from_its_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    (tmp_path / "docs").mkdir()
    for tag in ("v0.1.0", "v0.2.9", "v0.2.10"):
        (tmp_path / "docs" / "index.md").write_text(f"# This is {tag}\n")
        if tag != "v0.1.0":
            (tmp_path / "mkdocs.yml").write_text("site_name: x\n")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "--quiet", "-m", tag], check=True)
        subprocess.run([*git, "tag", tag], check=True)
    runpy.run_path(str(ROOT / "docs" / "versions.py"))["add_releases"](tmp_path / "all")
    assert [each["version"] for each in json.loads((tmp_path / "all" / "versions.json").read_text())] == ["0.2"]
    assert "This is v0.2.10" in (tmp_path / "all" / "0.2" / "index.html").read_text()


def build(folder: Path) -> list[Path]:
    around = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, env=around, check=False)
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(tmp_path_factory.mktemp("first"))


@pytest.mark.slow
def test_distributions_hold_the_package_and_nothing_that_may_not_be_shipped(built: list[Path]) -> None:
    assert [path.name.split("-")[0] for path in built] == ["mace_xai", "mace_xai"]
    assert [fault for path in built for fault in distribution.faults(path)] == []


@pytest.mark.slow
def test_two_builds_are_equal_byte_by_byte(built: list[Path], tmp_path: Path) -> None:
    again = build(tmp_path)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


@pytest.mark.slow
def test_the_wheel_answers_a_question_in_an_empty_environment(built: list[Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"MACE_COMPILE": "never"}
    wheel = next(path for path in built if path.suffix == ".whl")
    command = [python, "-m", "pip", "install", "--quiet", "--no-compile", wheel]
    installed = subprocess.run(command, capture_output=True, text=True, env=around, check=False)
    assert installed.returncode == 0, installed.stderr[-2000:]
    asked = subprocess.run(
        [python, "-c", ANSWER], capture_output=True, text=True, env=around, cwd=tmp_path, check=False
    )
    assert asked.stdout == "duration_months: 24 -> 22 optimal valid\n", asked.stderr

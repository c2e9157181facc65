"""Hostile sizes and texts: refused in words or handled, within seconds; never a traceback."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.audits import audit
from mace.cli.console import PlainConsole
from mace.constraints.files import load_constraints

SECONDS = 20
"""Of processor time: a few on a quiet machine."""


@contextmanager
def soon() -> Iterator[None]:
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS


SPACE = mace.FeatureSpace({"a": mace.integer(0, 9), "b": mace.integer(0, 9), "c": mace.integer(0, 9)})


@pytest.fixture(scope="module")
def explainer() -> mace.Explainer:
    frame = pd.DataFrame([(a, b, a) for a in range(10) for b in range(10)], columns=list(SPACE))
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(frame, (frame["a"] + frame["b"] > 12).astype(int))
    return mace.Explainer(model, SPACE)


# ---- rules

RULES: dict[str, tuple[str, str]] = {
    "a sum of 9,000": ("a <= " + " + ".join(["b"] * 9000), "more than 200 terms"),
    "a product of 9,000": ("a <= " + " * ".join(["1"] * 9000), "more than 200 terms"),
    "a chain of 9,000": (" <= ".join(["a"] * 9000), "more than 200 terms"),
    "an or of 9,000": (" or ".join(["a<=5"] * 9000), "5,000 in all"),
    "an and of 9,000": (" and ".join(["a<=5"] * 9000), "5,000 in all"),
    "moves from 4,000": ("a moves " + "; ".join(f"{i} to {i + 1}" for i in range(4000)), "more than 500"),
    "nots": ("not " * 9000 + "a > 1", "50 deep"),
    "minus signs": ("a > " + "-" * 9000 + "b", "50 deep"),
    "parentheses": ("(" * 9000 + "a > 1" + ")" * 9000, "50 deep"),
    "ifs": ("if a > 1 then (" * 3000 + "b > 1" + ")" * 3000, "50 deep"),
    "a name of 9,000": ("x" * 9000 + " stays", "at most 1,000 characters"),
    "a number of 9,000 digits": ("a <= " + "9" * 9000, "too large"),
    "a text of 200,000": ("a" * 200_000, "at most 100,000"),
    "spaces": (" " * 99_000 + "a", "alone does not say what of it"),
    "open quotes": ("a == '" + "\\'" * 40_000, "not part of a constraint"),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_of_any_size_is_refused_in_words(name: str, explainer: mace.Explainer) -> None:
    text, message = RULES[name]
    with soon(), pytest.raises(mace.InvalidConstraint) as caught:
        explainer.explain((0, 0, 0), constraints=[text])
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a <= " + " + ".join(["b"] * 100) + " + 9",
        " <= ".join(["a"] * 150),
        " or ".join(f"a == {i % 10}" for i in range(2000)),
        "a in [" + ", ".join(map(str, range(9000))) + "]",
        "(" * 45 + "a > 1" + ")" * 45,
        ", ".join(["c"] * 9000) + " stay",
    ],
)
def test_a_long_rule_is_answered(text: str, explainer: mace.Explainer) -> None:
    with soon():
        assert explainer.explain((0, 0, 0), constraints=[text]).status in ("optimal", "infeasible")


def test_the_place_in_a_long_rule_is_shown(explainer: mace.Explainer) -> None:
    text = "a >= 0 and " * 50 + "b ?? 3"
    with pytest.raises(mace.InvalidConstraint) as caught:
        mace.rule(text)
    _, line, caret = str(caught.value).splitlines()
    assert line[caret.index("^")] == "?"
    assert len(line) < 130


# ---- files of constraints

TOML = {
    "lists": "a = " + "[" * 3000 + "]" * 3000,
    "tables": "a = " + "{a=" * 3000 + "1" + "}" * 3000,
    "digits": "a = " + "1" * 10_000,
    "digits in a list": "constraints = [" + "1" * 10_000 + "]",
    "hexadecimal digits": "constraints = [0x" + "f" * 100_000 + "]",
    "a number in a table": "[[constraint]]\nrule = 0x" + "f" * 100_000,
    "a strange table": "[[constraint]]\nrul = 0x" + "f" * 100_000,
    "a dotted key": ".".join("a" * 3000) + " = 1",
    "a key twice": "constraints = []\nconstraints = []",
    "a date": "constraints = [1979-05-27]",
    "NUL": "constraints = ['\0']",
}


@pytest.mark.parametrize("name", TOML)
def test_a_file_of_constraints_of_any_shape_is_refused_in_words(name: str, tmp_path: Path) -> None:
    (tmp_path / "constraints.toml").write_text(TOML[name])
    with soon(), pytest.raises(mace.InvalidConstraint) as caught:
        load_constraints(tmp_path / "constraints.toml")
    assert len(str(caught.value)) < 1000


# ---- sizes of spaces and questions


@pytest.mark.parametrize("kind", [mace.ordinal, mace.categorical])
def test_a_million_levels_are_refused_and_ten_thousand_are_not(kind: Callable[[list[str]], Any]) -> None:
    with soon(), pytest.raises(mace.InvalidSpace, match=r"1,000,000 levels; at most 10,000"):
        kind([str(i) for i in range(1_000_000)])
    with soon():
        assert kind([str(i) for i in range(10_000)]).size == 10_000
    with pytest.raises(mace.InvalidSpace, match="'7' stands twice"):
        kind([*(str(i) for i in range(9000)), "7"])


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_a_column_of_a_million_texts_is_told_by_its_name(dtype: Any) -> None:
    frame = pd.DataFrame({"id": pd.Series([str(i) for i in range(1_000_000)], dtype=dtype)})
    with soon(), pytest.raises(mace.InvalidSpace, match=r"'id' has 1,000,000 different values.*identifier"):
        mace.FeatureSpace.from_frame(frame)


@pytest.mark.parametrize(
    "count", [10_001, 99_999_999_999, 10**5000, 0, -1], ids=["one more", "many", "digits", "0", "-1"]
)
def test_a_count_without_end_is_refused(explainer: mace.Explainer, count: int) -> None:
    with pytest.raises(mace.InvalidOption, match=r"from 1 to 10,000"):
        explainer.explain((0, 0, 0), count=count)


# ---- explanations that were read


def test_junk_is_no_explanation_and_says_so(explainer: mace.Explainer) -> None:
    good = explainer.explain((0, 0, 0)).to_dict()
    best = good["counterfactuals"][0]
    assert mace.Explanation.from_dict(json.loads(json.dumps(good))).to_dict() == good
    junk: list[Any] = [None, [], "x", 1, {}, {"version": 1}, {**good, "version": 1.0}, {**good, "version": 2}]
    for value in (None, 1.5, "x", [], {}, [[]], [{}], True, [1], {"a": []}, 10**400, float("nan")):
        junk += [{**good, key: value} for key in good]
        junk += [{**good, "counterfactuals": [{**best, key: value}]} for key in best]
    said = []
    for each in junk:
        try:
            mace.Explanation.from_dict(each)
        except mace.InvalidOption as error:
            said.append(str(error))
    assert len(said) > 200
    assert all(text.startswith("from_dict: ") and len(text) < 300 for text in said)


# ---- letters

TEMPLATES = {
    "a long text": "{{ 'x' * 10**10 }}",
    "a long range": "{% for i in range(10**12) %}x{% endfor %}",
    "loops in loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "a long letter": "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "a wide number": "{{ '%1000000000d' % 1 }}",
    "a wide text": "{{ 'x'.ljust(10**10) }}",
    "a filter": "{{ 'x'|center(10**10) }}",
    "doubling": "{% set x = 'a' %}" + "{% set x = x ~ x %}" * 50 + "{{ x }}",
    "a recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "parentheses": "{{" + "(" * 3000 + "1" + ")" * 3000 + "}}",
    "an error": "{{ 1 / 0 }}",
    "an attack": "{{ ().__class__.__base__.__subclasses__() }}",
    "a long template": "x" * 2_000_000,
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_asks_for_too_much_is_refused_in_words(name: str, explainer: mace.Explainer) -> None:
    explanation = explainer.explain((0, 0, 0))
    started = time.monotonic()
    with pytest.raises(mace.InvalidOption, match="letter: ") as caught:
        explanation.letter(TEMPLATES[name])
    assert time.monotonic() - started < 40
    assert len(str(caught.value)) < 1000


def test_a_template_from_a_device_or_no_file_is_refused(explainer: mace.Explainer, tmp_path: Path) -> None:
    explanation = explainer.explain((0, 0, 0))
    (tmp_path / "latin").write_bytes(b"\xe9")
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "none", tmp_path / "latin"):
        with pytest.raises(mace.InvalidOption, match="cannot read"):
            explanation.letter(path)


# ---- names that are more than names

NAMES = [
    "$\\frac{1}{2$",
    "$x$",
    "_hidden",
    "[red]x[/red]",
    "[/]",
    ":smile:",
    "\x1b[31mred",
    "a\nb",
    "\x00",
    "x" * 5000,
    "\u202eabc",
]


@pytest.fixture(scope="module")
def named() -> tuple[mace.Explainer, pd.DataFrame]:
    """An explainer whose features, levels and labels are all of that kind."""
    space = mace.FeatureSpace(
        {"$n_1$ [b]": mace.categorical(NAMES), "_x": mace.integer(0, 20), "\x1b[31m": mace.categorical(["[i]", "$"])}
    )
    rows = [(NAMES[i % len(NAMES)], i % 21, ["[i]", "$"][i % 2]) for i in range(120)]
    frame = pd.DataFrame(rows, columns=list(space))
    wanted = (frame["_x"] > 10) | (frame["$n_1$ [b]"] == "[red]x[/red]")
    model = make_pipeline(mace.Encoder(space), DecisionTreeClassifier(random_state=0))
    return mace.Explainer(model.fit(frame, ["[bold]$yes$" if each else "\x1b[32mno" for each in wanted]), space), frame


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:constrained_layout")
def test_plots_and_audits_show_names_as_they_are_written(
    named: tuple[mace.Explainer, pd.DataFrame], tmp_path: Path
) -> None:
    explainer, frame = named
    made = audit(explainer, frame.head(44), ["$n_1$ [b]"], target="[bold]$yes$", resamples=10)
    made.save(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "\\frac" in page
    drawn = explainer.explain(frame.iloc[0], target="[bold]$yes$").plot(population=frame)
    drawn.figure_.savefig(tmp_path / "plot.svg")
    labels = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    assert all("\x1b" not in label for label in labels)


def test_the_terminal_shows_names_and_obeys_none(named: tuple[mace.Explainer, pd.DataFrame]) -> None:
    explainer, frame = named
    explanation = explainer.explain(frame.iloc[1], target="[bold]$yes$")
    console = PlainConsole(width=200, record=True, file=io.StringIO(), force_terminal=True)
    console.print(explanation)
    for name in NAMES:
        console.print(name)
    shown = console.export_text()
    assert "\x1b" not in shown
    assert "[bold]$yes$" in shown
    assert "[red]x[/red]" in shown
    assert ":smile:" in shown
    assert "?[31mred" in shown
    Console(width=200, file=io.StringIO()).print(explanation)


def test_standard_output_that_takes_nothing_is_one_line(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'from mace.cli import main; main()' list solvers > /dev/full"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "cannot write: No space left on device.\n"

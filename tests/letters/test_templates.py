"""Templates of others: filled in by a process of its own, within limits."""

from __future__ import annotations

import datetime
import resource
import time
from pathlib import Path
from typing import Any

import pytest

import mace
from mace.answer.counterfactual import Change, Counterfactual
from mace.answer.explanation import Explanation
from mace.letters import limited
from mace.letters.limited import TEMPLATE_MEMORY

CHANGES = (Change("income", 20.1, 60.0, weight=0.3), Change("housing", "rent", "own", weight=0.5))
ANSWER = Counterfactual(
    {"income": 60.0, "housing": "own", "age": 40}, CHANGES, 0.8, 0.8, mace.Status.OPTIMAL, "grant", "trees", 0.1
)
EXPLANATION = Explanation(
    (ANSWER,), mace.Status.OPTIMAL, {"income": 20.1, "housing": "rent", "age": 40}, "refuse", "grant", "l1", 0.8
)


def test_templates_are_the_users_own(tmp_path: Path) -> None:
    template = "{{ who }}: {% for c in changes %}{{ c.feature }} {{ c.difference }} {{ c.direction }};{% endfor %}"
    assert EXPLANATION.letter(template, who="you") == "you: housing  ;income 39.9 more;\n"
    (tmp_path / "letter.txt").write_text(template)
    assert EXPLANATION.letter(tmp_path / "letter.txt", who="you").startswith("you: housing")
    assert EXPLANATION.letter("{{ stays|join }} {{ date }}", date=datetime.date(2026, 5, 1), language="de") == (
        "age 1.\u00a0Mai 2026\n"
    )


def test_a_template_has_every_fact_that_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "reports.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in row.split("|")[1].replace("`", "").replace(" ", "").split(",")]
    assert {"decision", "changes", "kept", "rules", "score"} <= set(names)
    for name in names:
        assert EXPLANATION.letter(f"{{{{ {name} is defined }}}}") == "True\n", name


def test_html_templates_escape() -> None:
    assert EXPLANATION.letter("{{ who }}", html=True, who="<b> & co") == "&lt;b&gt; &amp; co\n"
    assert EXPLANATION.letter("{{ who }}", who="<b> & co") == "<b> & co\n"


HOSTILE = [
    "{{ nobody }}",
    "{% if %}",
    "{{ changes.__class__.__mro__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ cycler.__init__.__globals__.os.system('id') }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ lipsum.__globals__['os'] }}",
    "{{ changes.append(1) }}{{ namespace.__init__.__globals__ }}",
    "{% import 'os' as os %}{{ os }}",
    "{% include '/etc/passwd' %}",
    "{% extends '/etc/passwd' %}",
    "{{ open('/etc/passwd').read() }}",
    "{{ ('%' ~ '1000000000s') % 1 }}",
    "{{ 'a' * 10**9 }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{% for i in range(10**9) %}{% endfor %}",
    "{% for i in range(99999) %}{{ 'abcdefghijklmnop' }}{% endfor %}",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
]


@pytest.mark.parametrize("template", HOSTILE)
def test_a_template_that_reaches_out_is_refused(template: str) -> None:
    with pytest.raises(mace.InvalidOption, match="the template fails"):
        EXPLANATION.letter(template)


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{{ 9**(9**9) }}",
        "{% set x = namespace(v=['a' * 1000]) %}{% for i in range(60) %}{% set x.v = x.v + x.v %}{% endfor %}",
    ],
)
def test_a_template_that_never_ends_is_stopped_with_little_memory(template: str) -> None:
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # other tests had children, too
    used = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    with pytest.raises(mace.InvalidOption, match="the template fails"):
        EXPLANATION.letter(template)
    spent = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - used
    assert spent < 10, "processor time, of both processes"
    now = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert now == largest or now * 1024 < 2 * TEMPLATE_MEMORY


def test_a_template_that_waits_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(limited.filling, "__file__", str(sleeper))
    monkeypatch.setattr(limited, "WAIT", 0.3)
    with pytest.raises(mace.InvalidOption, match=r"more than 0\.3 seconds"):
        EXPLANATION.letter("x")


def test_what_no_template_can_be_given_is_refused() -> None:
    fields: dict[str, Any] = {"who": lambda: 1}
    with pytest.raises(mace.InvalidOption, match="Give text and numbers"):
        EXPLANATION.letter("{{ who }}", **fields)
    with pytest.raises(mace.InvalidOption, match="at most 1,048,576"):
        EXPLANATION.letter("x" * (2**20 + 1))
    with pytest.raises(mace.InvalidOption, match="give its text, or a Path"):
        EXPLANATION.letter(3)  # type: ignore[arg-type]
    with pytest.raises(mace.InvalidOption, match="cannot read"):
        EXPLANATION.letter(Path("no such file"))

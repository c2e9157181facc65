"""Notebooks: one look for explanations, batches, spaces and audits, that reaches nothing else and is read on light and dark."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from drawn import answers_to_draw
from lender import EXPLAINER, EXPLANATION, NONE, ROW, SEVERAL, SPACE, decide

import mace
from mace.answer.counterfactual import Change
from mace.audits import audit
from mace.notebook.look import _DARK, _LIGHT, CARD_STYLE

FRAME = SPACE.frame_of([SPACE.point({**ROW, "age": 20 + number, "income": number}) for number in range(25)])
BATCH = EXPLAINER.explain_many(FRAME.assign(who=[f"<i>{n}</i>" for n in range(25)]), target="grant", id="who")


class Nesting(HTMLParser):
    """Reads HTML strictly enough to see that everything that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def shown() -> dict[str, Any]:
    made = audit(EXPLAINER, FRAME, ["housing"], target="grant", resamples=5)
    reasons, levers = EXPLAINER.reasons(ROW, "grant"), EXPLAINER.levers(ROW, target="grant")
    return {
        "reasons": reasons,
        "levers": levers,
        "one": EXPLANATION,
        "several": SEVERAL,
        "none": NONE,
        "batch": BATCH,
        "space": SPACE,
        "audit": made,
    }


def test_everything_is_a_card_of_the_one_look_whose_tables_scroll() -> None:
    for name, each in shown().items():
        html = each._repr_html_()
        parser = Nesting()
        parser.feed(html)
        assert parser.open == [], name
        assert parser.tags <= {"div", "style", "p", "b", "br", "span", "table", "thead", "tbody", "tr", "th", "td"}
        assert html.startswith(f'<div class="mace-card"><style>{CARD_STYLE}</style>')
        assert html.count("<table>") == html.count('<div class="mace-wide"><table>')


def test_texts_are_escaped() -> None:
    space = mace.FeatureSpace({"<script>": mace.categorical(["<b>", "</td>", "&"]), "b": mace.integer(0, 9)})
    html = space._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;, &lt;/td&gt;, &amp;" in html
    assert "&lt;i&gt;0&lt;/i&gt;" in BATCH._repr_html_()
    assert "<i>" not in BATCH._repr_html_()


def test_the_look_reaches_nothing_but_its_card() -> None:
    rules = re.sub(r"@media[^{]*\{(.*?\})\s*\}", r"\1", CARD_STYLE, flags=re.S)
    selectors = [selector for part in re.findall(r"([^{}]+)\{[^{}]*\}", rules) for selector in part.split(",")]
    assert len(selectors) > 20
    assert all(re.search(r"(^|\s)\.mace-card(\s|$)", selector.strip()) for selector in selectors)


def luminance(colour: str) -> float:
    digits = colour * 2 if len(colour) == 3 else colour
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", [_LIGHT, _DARK])
def test_every_colour_is_read_on_light_and_dark(theme: str) -> None:
    colours = dict(re.findall(r"--mace-(\w+):#(\w+)", theme))
    assert set(colours) == {"ink", "quiet", "page", "line", "band", "proved", "open", "none", "new", "old"}
    for name in set(colours) - {"page", "line", "band"}:
        for ground in ("page", "band"):
            one, other = sorted(luminance(colours[each]) for each in (name, ground))
            assert (other + 0.05) / (one + 0.05) >= 4.5, (name, ground)


def test_an_explanation_shows_arrows_and_badges() -> None:
    assert "\u25b2" in EXPLANATION._repr_html_()
    assert ">proved nearest</span>" in EXPLANATION._repr_html_()
    assert ">certificate</span>" not in EXPLANATION._repr_html_()
    certified = EXPLAINER.explain(ROW, certify=True)._repr_html_()
    assert ">certificate</span>" in certified
    assert ">proved: none exists</span>" in NONE._repr_html_()
    assert SEVERAL._repr_html_().count(">proved next nearest") == 2
    late = EXPLAINER.explain(ROW, count=500, diversity=mace.differ(by=0), time_limit=0.2)
    assert late._repr_html_().count("<table>") <= 12


def test_an_explanation_shows_the_scores_and_the_threshold() -> None:
    html = answers_to_draw(3)._repr_html_()
    assert "P(good) 0.38 -&gt; 0.5, threshold 0.5" in html
    assert [float(place) for place in re.findall(r'style="left:([\d.]+)%"', html)] == [50, 38, 50]
    assert '<div class="mace-meter"' not in EXPLANATION._repr_html_()


def test_a_batch_shows_its_summary_and_first_rows() -> None:
    html = BATCH._repr_html_()
    assert BATCH.summary() in html
    assert html.count("Hint: ") == len(BATCH.hints) == 1
    assert html.count("<tr>") == 11
    assert "and 15 more rows" in html
    assert "<tr>" not in EXPLAINER.explain_many(FRAME.iloc[:0])._repr_html_()


def test_a_batch_calls_outcomes_what_people_call_them() -> None:
    known = mace.Explainer(decide, SPACE.describe(outcomes={"grant": "approved", "refuse": "declined"}))
    html = known.explain_many([{"age": 40, "income": 90, "housing": "own"}], target="grant")._repr_html_()
    assert "already predicted &#x27;approved&#x27;, and approved is asked for" in html
    assert "grant" not in html


def test_a_space_shows_its_features() -> None:
    space = SPACE.replace(income=mace.real(0, 100, step=0.5, missing=True)).protect("age")
    html = space._repr_html_()
    assert "FeatureSpace of 3 features" in html
    assert "<td>income</td><td>real</td><td>0 to 100 in steps of 0.5</td><td>may be missing</td>" in html
    assert "<td>age</td><td>integer</td><td>18 to 90</td><td>protected</td>" in html
    wide = mace.FeatureSpace({f"x{number}": mace.integer(0, 1) for number in range(100)})
    assert "and 40 more features" in wide._repr_html_()


def test_arrows() -> None:
    assert [Change("x", a, b).arrow for a, b in ((1, 2), (2, 1), ("a", "b"), (math.nan, 2.0))] == list(
        "\u25b2\u25bc\u2192\u2192"
    )


def test_reasons_and_levers_are_shown_whole_and_by_the_names_that_people_know() -> None:
    reasons = EXPLAINER.reasons(ROW, "grant")
    html = reasons._repr_html_()
    assert html.count("the same as long as it is") == len(reasons)
    for reason in reasons:
        assert all(f"<td>{SPACE.wording.name(name)}</td>" in html for name in reason.features)
    assert "There is no other reason: proved." in html
    levers = EXPLAINER.levers(ROW, target="grant")._repr_html_()
    assert "No other set of features suffices without one of these: proved." in levers
    loose = mace.Explainer(EXPLAINER.model, SPACE).reasons(ROW, "refuse")._repr_html_()
    assert "Nothing holds the row back" in loose
    read = type(reasons).from_json(reasons.to_json())._repr_html_()
    assert all(str(reason.as_long_as)[:5] in read for reason in reasons)

"""Names and levels that would be obeyed: by a browser, a terminal, a spreadsheet, a drawing, or the eye."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import mace
from mace.audits import audit
from mace.errors import legible

SCRIPT, TURN, BELL = "<script>alert(1)</script>", "\u202eevil\u202c", "\x1b]0;owned\x07"
NAMES = [
    SCRIPT,
    '"><img src=x onerror=alert(2)>',
    f"a'b\"c`d{BELL}",
    "line\nbreak",
    TURN,
    "$\\frac{1}{2$",
    "=1+1",
    "{{7*7}}{name}%s",
]
LEVELS = [SCRIPT, "=1+1", "$\\bad{", "-->", TURN, "a\nb", BELL, "]]><!--"]
LABELS = ("</td><script>alert(9)</script>", f"=no$\\bad{{{TURN}{BELL}")
RUN = {"script", "img", "iframe", "object", "embed", "base", "link", "form", "meta refresh"}


class Tags(HTMLParser):
    """Collects what a page would run or load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag] if tag in RUN else []
        self.found += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]
        self.found += [
            f"{tag} {name}={said}" for name, said in attrs if said and said.strip().lower().startswith("javascript:")
        ]


def check_page(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.found == []
    assert SCRIPT not in page
    assert legible(page) == page


@pytest.fixture(scope="module")
def asked() -> tuple[mace.Explainer, pd.DataFrame, dict[str, Any]]:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for place, name in enumerate(NAMES):
        kinds = (rng.integers(0, 50, 300), rng.choice(LEVELS, 300), np.round(rng.normal(0, 3, 300), 2))
        columns[name] = kinds[place % 3]
    frame = pd.DataFrame(columns)
    score = frame[NAMES[0]] - 12.0 * (frame[NAMES[1]] == SCRIPT) + 9.0 * (frame[NAMES[4]] == TURN) + frame[NAMES[3]]
    labels = np.where(score > score.median(), *LABELS)
    space = mace.FeatureSpace.from_frame(frame)
    forest = RandomForestClassifier(7, max_depth=5, random_state=0)
    model = make_pipeline(mace.Encoder(space), forest).fit(frame, labels)
    refused = frame[model.predict(frame) == LABELS[1]]
    return mace.Explainer(model, space), frame, refused.iloc[0].to_dict()


def test_pages_show_them_and_run_nothing(asked: tuple[mace.Explainer, pd.DataFrame, dict[str, Any]]) -> None:
    explainer, frame, row = asked
    answer = explainer.explain(row, count=3)
    assert {change.feature for one in answer for change in one.changes} & set(NAMES[:5])
    for language in ("en", "de", "fr"):
        page = answer.letter(html=True, language=language, number="all", name=SCRIPT, address=f"{SCRIPT}\n{{decision}}")
        check_page(page)
    check_page(answer._repr_html_())
    check_page(explainer.space._repr_html_())
    check_page(explainer.explain_many(frame.iloc[:6])._repr_html_())
    report = audit(explainer, frame.iloc[:40], groups=[NAMES[1]], target=LABELS[0])
    check_page(report.to_html())
    template = "<p>{{ decision }} {{ changes[0].name }} {{ changes[0].before }} {{ factual }}</p>"
    check_page(answer.letter(template, html=True))


def test_letters_hold_nothing_that_a_terminal_obeys(
    asked: tuple[mace.Explainer, pd.DataFrame, dict[str, Any]],
) -> None:
    explainer, _, row = asked
    answer = explainer.explain(row, count=3)
    for text in (answer.letter(number="all"), answer.letter("{{ decision }} {{ target }} {{ ways }} {{ factual }}")):
        assert legible(text) == text
        assert "{name}" in text or "{{7*7}}" not in text
        assert "49" not in answer.letter("{{ target }}")


def test_pictures_draw_them_as_they_are_written(
    asked: tuple[mace.Explainer, pd.DataFrame, dict[str, Any]],
) -> None:
    from xml.etree import ElementTree

    explainer, frame, row = asked
    for drawn in (explainer.explain(row, count=3).plot(), explainer.explain_many(frame.iloc[:6]).plot()):
        file = io.BytesIO()
        drawn.figure_.savefig(file, format="svg")
        check_page(file.getvalue().decode())
        ElementTree.fromstring(file.getvalue())

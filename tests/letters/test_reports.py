"""Letters: what they say is what the explanation says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lender import EXPLANATION, NONE, ROW, SEVERAL, decide

import mace
from mace.answer.explanation import Explanation
from mace.letters.letter import words_of


def test_a_letter_says_what_the_explanation_says() -> None:
    letter = EXPLANATION.letter(
        name="Ms Miller", sender="The bank", names={"income": "yearly income"}, units={"income": "kEUR"}
    )
    (change,) = EXPLANATION[0].changes
    assert change.feature == "income"
    assert letter.startswith("Dear Ms Miller,\n")
    assert letter.endswith("The bank\n")
    assert "- yearly income: 60 kEUR instead of 20.1 kEUR (39.9 kEUR more)" in letter
    assert "is: refuse." in letter
    assert "It would have been grant with this change:" in letter
    assert "Everything else may stay as it is: age, housing." in letter
    assert "We have proved that no smaller change" in letter
    assert decide(**{**ROW, "income": float(str(change.after))}) == "grant", "what the letter says flips the model"


def test_differences_are_those_of_decimals() -> None:
    words: Any = words_of(EXPLANATION, {}, {}, 1)["changes"]
    assert words[0]["difference"] == "39.9"
    assert words[0]["direction"] == "more"


def test_a_further_answer_is_not_said_to_be_the_smallest() -> None:
    letter = SEVERAL.letter(number=2)
    assert "We have proved" not in letter
    assert "other ways to this decision that change less" in letter


def test_a_letter_where_none_exists_says_that_it_is_proved() -> None:
    assert "We have proved that no change" in NONE.letter()
    assert "<p>We have proved that no change" in NONE.letter(html=True)


def test_an_open_gap_is_said() -> None:
    from dataclasses import replace

    answer = replace(EXPLANATION[0], status=mace.Status.FEASIBLE, lower=EXPLANATION[0].distance / 2)
    letter = replace(EXPLANATION, counterfactuals=(answer,), status=mace.Status.FEASIBLE).letter()
    assert "We have proved that" not in letter
    assert any(f"none is less than {share} % of this one" in letter for share in (49, 50))


def test_html_is_escaped_and_text_is_not() -> None:
    assert "Dear &lt;b&gt; &amp; co," in EXPLANATION.letter(html=True, name="<b> & co")
    assert "Dear <b> & co," in EXPLANATION.letter(name="<b> & co")


def test_templates_are_the_users_own_and_sandboxed(tmp_path: Path) -> None:
    template = "{{ who }}: {% for c in changes %}{{ c.feature }} {{ c.direction }}{% endfor %}"
    assert EXPLANATION.letter(template, who="you") == "you: income more\n"
    (tmp_path / "letter.txt").write_text(template)
    assert EXPLANATION.letter(tmp_path / "letter.txt", who="you") == "you: income more\n"
    for broken in ("{{ nobody }}", "{% if %}", "{{ changes.__class__.__mro__ }}"):
        with pytest.raises(mace.InvalidOption, match="the template fails"):
            EXPLANATION.letter(broken)


def test_what_cannot_be_written_is_refused() -> None:
    unknown = Explanation((), mace.Status.UNKNOWN, dict(ROW), "refuse", "grant", "l1", 0.0, "time limit reached")
    with pytest.raises(mace.InvalidOption, match="nothing to say"):
        unknown.letter()
    with pytest.raises(mace.InvalidOption, match="number=4"):
        SEVERAL.letter(number=4)
    with pytest.raises(mace.InvalidOption, match="no feature 'incom'"):
        EXPLANATION.letter(units={"incom": "EUR"})
    with pytest.raises(mace.InvalidOption, match="'decision' is a name"):
        EXPLANATION.letter(decision="yes")

"""People and one person: what is shown, and what the locks, directions, ranges and efforts do to the answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from page_browser import person, until

pytestmark = pytest.mark.slow

NEAREST = ".way >> nth=0"


def asked_after(page: Any, act: Callable[[], object]) -> dict[str, Any]:
    """Do something, wait for the answer that follows, and return the question that was sent."""
    with page.expect_request("**/v1/explain/stream") as asked:
        act()
    until(page, "document.querySelector('.sticky').ariaBusy === 'false'")
    return json.loads(asked.value.post_data)  # type: ignore[no-any-return]


def test_people_are_searched_and_filtered_without_a_word_in_the_address(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click(".views [data-view=people]")
    assert page.locator("table.people tbody tr").count() == 100
    page.click(".pill >> text=Refused")
    until(
        page, "[...document.querySelectorAll('table.people tbody .chip')].every(chip => chip.textContent === 'Refused')"
    )
    assert "0.19" in page.inner_text("table.people tr.here"), "the distance is known of the person who was asked about"
    page.fill("#search-table", "guarantor")
    until(page, "!document.querySelector('main [role=status]').textContent.startsWith('1000')")
    assert page.url == f"{demo}/"
    page.fill("#search-table", "nobody has this")
    page.wait_for_selector("text=No one matches")


def test_the_table_sorts_by_score(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click(".views [data-view=people]")
    page.click("button.sort >> text=Score")
    page.wait_for_selector("th[aria-sort=ascending] >> text=Score")
    until(page, "document.querySelector('table.people tbody [data-person]').dataset.person !== '0'")
    scores = [float(text) for text in page.locator("table.people tbody td:nth-child(3)").all_inner_texts()]
    assert scores == sorted(scores)


def test_every_feature_has_its_widget(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    row = person(demo, 4)["row"]
    assert page.locator("[data-feature]").count() == len(row)
    assert page.input_value("#v-credit_amount") == str(row["credit_amount"])
    assert page.get_attribute("#v-credit_amount", "aria-valuetext") == "DM\u00a04,870"
    assert page.locator("[data-feature=credit_amount] .histogram i").count() == 20
    assert page.input_value("#v-purpose") == row["purpose"]
    assert page.locator("[data-feature=employment_since] .steps input").count() == 5


def test_protected_features_are_locked_and_cannot_be_unlocked(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    for name in ("age", "personal_status_sex", "foreign_worker"):
        assert page.is_disabled(f"[data-lock={name}]")
        assert "locked by policy" in page.inner_text(f"[data-feature={name}]")


def test_a_lock_changes_the_answer(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    assert "Length of the loan" in page.inner_text(NEAREST)
    sent = asked_after(page, lambda: page.click("[data-lock=duration_months]"))
    assert "duration_months stays" in sent["constraints"]
    assert "Length of the loan" not in " ".join(page.locator(".way dl").all_inner_texts())


def test_a_direction_changes_the_answer(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-more=duration_months]")
    sent = asked_after(page, lambda: page.check("[data-feature=duration_months] input[value=increases]"))
    assert "duration_months increases" in sent["constraints"]
    assert "months less" not in page.inner_text(".panel")


def test_a_range_changes_the_answer(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-more=duration_months]")

    def narrow() -> None:
        page.fill("[aria-label='Lowest Length of the loan']", "20")
        page.press("[aria-label='Lowest Length of the loan']", "Tab")

    sent = asked_after(page, narrow)
    assert "duration_months within [20, 72]" in sent["constraints"]
    assert "11 months" not in page.inner_text(".panel")
    assert "20\u00a0months to 72\u00a0months" in page.inner_text("[data-feature=duration_months] .tags")


def test_a_level_that_is_ruled_out_is_no_answer(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    assert "DM 0 to 200" in page.inner_text(".panel")
    page.click("[data-more=checking_status]")
    sent = asked_after(page, lambda: page.click("[data-feature=checking_status] .checks >> text=DM 0 to 200"))
    assert "checking_status in ['no account', 'below 0 DM', '200 DM or more']" in sent["constraints"]
    assert "DM 0 to 200" not in " ".join(page.locator(".way dl strong").all_inner_texts())


def test_effort_is_a_weight_and_sizes_stay_comparable(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-more=duration_months]")
    sent = asked_after(page, lambda: page.check("[data-feature=duration_months] input[name^=effort][value='4']"))
    assert sent["weights"] == {"duration_months": 4}
    assert "(0.76)" in page.inner_text(".panel"), "four times 0.19, whatever the sum of the weights is"


def test_an_edit_moves_the_score_at_once_and_can_be_undone(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    before = page.inner_text(".decision .above")
    page.select_option("#v-checking_status", "200 DM or more")
    page.wait_for_selector("text=You have edited this person.")
    until(page, "before => document.querySelector('.decision .above').textContent !== before", before)
    page.click("text=Undo the edits")
    until(page, "before => document.querySelector('.decision .above').textContent === before", before)


def test_what_is_known_of_a_person_stays_in_the_list(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    assert "1 change, proved nearest" in page.inner_text(".rail [data-person='4']")
    page.click(".rail [data-person='0']")
    page.wait_for_selector(".banner[data-status=reached]")
    assert "1 change, proved nearest" in page.inner_text(".rail [data-person='4']")


def test_the_answer_stays_in_sight_while_the_person_is_read(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, width=1200, height=900)
    page.evaluate("scrollTo(0, 1500)")
    page.wait_for_timeout(100)
    box = page.locator(".banner").bounding_box()
    assert 0 < box["y"] < 300


@pytest.mark.parametrize("width", [1200, 1280, 1920])
def test_names_and_tags_do_not_run_into_widgets(visit: Callable[..., Any], demo: str, width: int) -> None:
    page = visit(demo, width=width, query="?lang=de")
    over = """() => [...document.querySelectorAll('.feature .head')].filter(head => {
      const end = head.querySelector('.widget').getBoundingClientRect().left;
      const isOver = each => each.getBoundingClientRect().right > end || each.scrollWidth > each.clientWidth + 1;
      return [...head.querySelectorAll('.name, .value, .chip')].some(isOver);
    }).map(head => head.textContent)"""
    assert page.evaluate(over) == []


def test_a_rule_that_cannot_be_read_goes_back_to_its_field(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.fill("#add-rule", "at mots 1 features change")
    page.press("#add-rule", "Enter")
    page.wait_for_selector(".refused")
    assert "expected a feature" in page.inner_text(".refused")
    assert page.input_value("#add-rule") == "at mots 1 features change"
    assert "at mots" not in page.inner_text(".rules")
    assert page.locator(".trouble").count() == 0
    page.wait_for_selector(".banner[data-status=optimal]")
    page.fill("#add-rule", "at most 1 features change")
    page.press("#add-rule", "Enter")
    page.wait_for_selector(".refused", state="detached")


def test_texts_of_others_are_neither_markup_nor_turned(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    shown = page.evaluate(
        """async () => {
            const { h, show } = await import("/dom.js");
            const place = h("div", {}, h("b", {}, "<script>1</script>\\u202eevil\\u202c\\u001b[2J\\u0000"), 5);
            show(place, "\\u2066turned\\nline", h("i", {}, "\\u0645\\u0631\\u062d\\u0628\\u0627"));
            const made = h("p", {}, "\\u202ex", 7);
            return [place.innerHTML, made.textContent];
        }"""
    )
    assert shown == ["?turned\nline<i>\u0645\u0631\u062d\u0628\u0627</i>", "?x7"]


ALLOWED = """async ([name, ends, change]) => {
  const [{ allowedEnds }, { state }] = await Promise.all([import("./question.js"), import("./state.js")]);
  const kept = state.rules;
  state.rules = structuredClone(kept);
  if (change === "bar") state.rules.barred[name] = new Set([state.model.features.find((each) => each.name === name).levels[0]]);
  else if (change === "lock") state.rules.locks.add(name);
  else if (change === "range") state.rules.ranges[name] = [3000, 9000];
  else if (change) state.rules.directions[name] = change;
  const found = allowedEnds(name, ends);
  state.rules = kept;
  return found;
}"""


def test_proved_ranges_are_shown_without_what_a_rule_of_the_feature_forbids(
    visit: Callable[..., Any], demo: str
) -> None:
    page = visit(demo)
    row = person(demo, 4)["row"]

    def allowed(name: str, ends: dict[str, Any], change: str = "") -> Any:
        return page.evaluate(ALLOWED, [name, ends, change])

    housing = {"levels": ["rent", "own", row["housing"]]}
    assert allowed("housing", housing) == housing
    assert "rent" not in allowed("housing", housing, "bar")["levels"]
    assert allowed("housing", {"levels": ["rent"]}, "bar") is None
    assert allowed("housing", housing, "lock") == {"levels": [row["housing"]]}
    months = {"low": 10, "high": 40}
    now = row["duration_months"]
    assert allowed("duration_months", months) == months
    assert allowed("duration_months", months, "increases") == {"low": now, "high": 40}
    assert allowed("duration_months", months, "decreases") == {"low": 10, "high": now}
    assert allowed("duration_months", {"low": 4, "high": now - 1}, "increases") is None
    assert allowed("credit_amount", {"low": 250, "high": 5000}, "range") == {"low": 3000, "high": 5000}
    assert allowed("employment_since", {"low": "unemployed", "high": "7 years or more"}) == {
        "levels": ["1 to 4 years", "4 to 7 years", "7 years or more"]
    }, "a rule of the service lets it only increase"

"""What the page says of an answer: each state as it is, bounds as they close, rules that are to blame."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from page_browser import SETTLED, until

pytestmark = pytest.mark.slow


def banner(page: Any, status: str) -> str:
    page.wait_for_selector(f".banner[data-status={status}]")
    return str(page.inner_text(".banner"))


def test_a_refused_person_is_shown_the_nearest_way_with_its_proof(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    assert page.inner_text("#decision-title") == "Refused"
    said = banner(page, "optimal")
    assert "Proved nearest" in said
    assert "No smaller change that keeps your rules leads to approval" in said
    first = page.locator(".way").first
    assert "The nearest way" in first.inner_text()
    assert "Proved nearest" in first.inner_text()
    lower, upper = (
        page.evaluate(f"+getComputedStyle(document.querySelector('.track')).getPropertyValue('--{end}')")
        for end in ("lower", "upper")
    )
    assert lower == pytest.approx(upper, abs=1e-4)
    assert not first.locator("details").get_attribute("open")


def test_several_ways_change_different_things(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    ways = page.locator(".way dl").all_inner_texts()
    assert len(ways) == 3
    assert len(set(ways)) == 3


def test_an_approved_person_has_nothing_to_change(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click(".rail [data-person='0']")
    assert "Already approved" in banner(page, "reached")
    assert page.inner_text("#panel") == "There is nothing to change."
    page.check("input[name=score][value='0.8']")
    assert page.locator(".meter").first.get_attribute("aria-label").endswith("wanted: at least 80")


def test_without_time_the_page_says_that_it_knows_nothing_and_can_go_on(
    visit: Callable[..., Any], demo: str, cut: Callable[..., None]
) -> None:
    page = visit(demo)
    cut(page, 0.0005)
    page.click("[data-find]")
    said = banner(page, "unknown")
    assert "That does not mean there is none" in said
    page.unroute("**/v1/explain/stream")
    with page.expect_request("**/v1/explain/stream") as asked:
        page.click("text=Keep looking for a minute")
    assert json.loads(asked.value.post_data)["time_limit"] == 60
    assert "Proved nearest" in banner(page, "optimal")


def test_a_gap_that_is_left_open_is_said_with_its_size(
    visit: Callable[..., Any], network: str, cut: Callable[..., None]
) -> None:
    page = visit(network)
    page.click(".rail [data-person='9']")
    page.check("input[name=score][value='0.8']")
    for seconds in (0.1, 0.2, 0.3, 0.4, 0.6, 0.8):
        cut(page, seconds)
        page.click("[data-find]")
        until(page, "document.querySelector('.sticky').ariaBusy === 'false'")
        if page.get_attribute(".banner", "data-status") == "feasible":
            break
    said = banner(page, "feasible")
    assert "Not proved yet: best so far" in said
    assert "A smaller change may exist" in said
    assert "Best way so far" in page.inner_text(".way >> nth=0")
    assert page.locator(".legend .open").count() == 1


def test_the_bar_closes_while_the_search_goes_on(visit: Callable[..., Any], network: str) -> None:
    page = visit(network)
    page.evaluate(
        """() => {
          window.seen = [];
          const look = () => {
            const track = document.querySelector(".track.busy");
            if (track) window.seen.push(+track.style.getPropertyValue("--lower"));
          };
          new MutationObserver(look).observe(document.body, {subtree: true, attributes: true, childList: true});
        }"""
    )
    for number in (9, 4, 1):
        page.click(f".rail [data-person='{number}']")
        page.check("input[name=score][value='0.8']")
        # On a busy machine the page's time limit may end the search before it is proved.
        page.wait_for_selector(SETTLED)
    seen = page.evaluate("window.seen")
    assert len(set(seen)) > 2, "the proved part grew in view"


def infeasible(page: Any) -> None:
    """Lock what the answers of this person change, and allow one change: nothing is left."""
    page.click(".rail [data-person='11']")
    page.wait_for_selector(".banner[data-status=optimal]")
    for name in ("duration_months", "checking_status", "savings", "credit_amount"):
        page.click(f"[data-lock={name}]")
    page.fill("#add-rule", "at most 1 features change")
    page.press("#add-rule", "Enter")
    page.wait_for_selector(".banner[data-status=infeasible]")


def test_an_impossible_question_names_its_rules_and_each_can_be_loosened(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    infeasible(page)
    assert "Proved impossible under these rules" in page.inner_text(".banner")
    assert "At most one thing changes" in page.inner_text(".blamed")
    rules = page.locator(".blamed li").all_inner_texts()
    assert any("policy" in rule for rule in rules), "the service's own rule cannot be loosened"
    buttons = page.locator("[data-relax]")
    assert buttons.count() == len(rules) - 1
    page.click("[data-relax='duration_months stays']")
    assert "Proved nearest" in banner(page, "optimal")
    assert page.get_attribute("[data-lock=duration_months]", "aria-pressed") == "false"


def test_the_result_is_announced_once(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.evaluate(
        """() => {
          window.said = [];
          new MutationObserver(() => {
            const text = document.querySelector("#live").textContent;
            if (text) window.said.push(text);
          }).observe(document.querySelector("#live"), {childList: true});
        }"""
    )
    page.click(".rail [data-person='9']")
    until(page, "window.said.length > 0")
    page.wait_for_timeout(500)
    said = page.evaluate("window.said")
    assert len(said) == 1
    assert said[0].startswith("Proved nearest.")


def test_the_ways_are_those_of_the_service(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    with page.expect_request("**/v1/explain/stream") as asked:
        page.click(".rail [data-person='11']")
    page.wait_for_selector(".banner[data-status=optimal]")
    question = urllib.request.Request(
        f"{demo}/v1/explain", asked.value.post_data.encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(question) as said:
        answer = json.load(said)
    counts = [len(way["changes"]) for way in answer["counterfactuals"]]
    assert [
        page.locator(f".way >> nth={place} >> .change").count() for place in range(page.locator(".way").count())
    ] == counts
    sizes = [f"({20 * way['distance']:.2f})" for way in answer["counterfactuals"]]
    assert [size in text for size, text in zip(sizes, page.locator(".way footer").all_inner_texts(), strict=True)] == [
        True
    ] * len(counts)


def test_the_page_says_what_holds_the_decision_and_checks_it(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("#tab-why")
    page.wait_for_selector("[data-reason='0']")
    said = page.inner_text("#panel")
    assert "Each of these alone is enough: whatever the rest is within your rules" in said
    assert "As long as" in said
    page.click("[data-check='why-0']")
    until(page, "document.querySelector('[data-reason]').textContent.includes('Checked: valid')")
    page.click(".rail [data-person='0']")
    until(page, "document.querySelector('#panel').textContent === 'There is nothing to change.'")

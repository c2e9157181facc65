"""For everyone: keyboard, screen reader, every width, light and dark, both languages, and nothing left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow

VIEWS = ("people", "case", "batch", "audit", "check")
WIDTHS = (360, 800, 1140, 1920)
TABS = ("ways", "compare", "whatif", "letter")


def show(page: Any, view: str) -> None:
    """Go to a view by whichever of header and dock is there."""
    page.click(f"[data-view={view}]:visible")
    page.wait_for_selector(f"body[data-view={view}]")


def violations(page: Any, axe: str) -> list[str]:
    """Return what axe finds against WCAG 2.2 AA."""
    page.wait_for_timeout(350)
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", rules)
    return [
        f"{each['id']}: {node['html'][:120]} {node['failureSummary'][:160]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_view(visit: Callable[..., Any], demo: str, axe: str, scheme: str) -> None:
    page = visit(demo, color_scheme=scheme)
    page.click("[data-more=duration_months]")
    page.click("[data-more=housing]")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        page.wait_for_selector({"letter": ".letter", "whatif": "#panel .meter"}.get(tab, "#panel"))
        assert violations(page, axe) == [], tab
    for view in ("people", "batch", "check", "audit"):
        show(page, view)
        assert violations(page, axe) == [], view
    page.keyboard.press("?")
    assert violations(page, axe) == [], "help"


def test_axe_finds_nothing_on_a_phone(visit: Callable[..., Any], demo: str, axe: str) -> None:
    page = visit(demo, width=360, height=740)
    for view in ("case", "rules", "people"):
        show(page, view)
        assert violations(page, axe) == [], view


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", ["en", "de"])
def test_nothing_runs_over_the_edge(visit: Callable[..., Any], demo: str, width: int, language: str) -> None:
    page = visit(demo, width=width, height=900, query=f"?lang={language}")
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for view in VIEWS:
        show(page, view)
        assert page.evaluate(over) == 0, view
    show(page, "case")
    for tab in TABS:
        page.click(f"#tab-{tab}")
        page.wait_for_timeout(300)
        assert page.evaluate(over) == 0, tab


def test_a_phone_shows_one_question_at_a_time(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, width=360, height=740)
    assert page.is_visible(".banner")
    assert not page.is_visible("[data-lock=savings]")
    show(page, "rules")
    assert page.is_visible("[data-lock=savings]")
    assert not page.is_visible(".banner")
    show(page, "people")
    page.click("table.people [data-person='9']")
    page.wait_for_selector("body[data-view=case] #decision-title")


def test_everything_can_be_done_with_keys(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "skip"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search-rail"
    page.keyboard.type("j1l?")
    assert page.input_value("#search-rail") == "j1l?", "while one types, keys are letters"
    page.fill("#search-rail", "")
    page.wait_for_selector(".rail [data-person='4']")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("j")
    page.wait_for_selector(".rail [data-person='5'][aria-current]")
    page.keyboard.press("k")
    page.wait_for_selector(".rail [data-person='4'][aria-current]")
    page.wait_for_selector(".banner[data-status=optimal]")
    page.keyboard.press("3")
    page.wait_for_selector("#tab-whatif[aria-selected=true]")
    page.focus("#tab-whatif")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-letter"
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement.id") == "tab-ways"
    page.focus("[data-more=duration_months]")
    page.keyboard.press("l")
    page.wait_for_selector("[data-lock=duration_months][aria-pressed=true]")
    with page.expect_request("**/v1/explain/stream"):
        page.keyboard.press("Control+Enter")


def test_focus_stays_where_it_was_when_the_page_is_drawn_again(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.focus("[data-lock=duration_months]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".banner[data-status=optimal]")
    page.wait_for_timeout(600)
    assert page.evaluate("document.activeElement.dataset.lock") == "duration_months"


def test_single_keys_can_be_switched_off(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.click("#single-keys")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    page.keyboard.press("2")
    assert page.get_attribute("#tab-ways", "aria-selected") == "true"


def test_the_page_speaks_german(visit: Callable[..., Any], demo: str) -> None:
    for options in ({"query": "?lang=de"}, {"locale": "de-DE"}):
        page = visit(demo, **options)
        assert page.get_attribute("html", "lang") == "de"
        assert "Bewiesen der nächste Weg" in page.inner_text(".banner")
        assert "Laufzeit" in page.inner_text(".way >> nth=0")
        assert "0,19" in page.inner_text(".bounds")


def test_nothing_about_a_person_is_left_behind(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    for number in (9, 11):
        page.click(f".rail [data-person='{number}']")
        page.wait_for_selector(f".rail [data-person='{number}'][aria-current]")
    page.click("#tab-whatif")
    assert page.url == f"{demo}/"
    kept = page.evaluate(
        "async () => [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length, history.state]"
    )
    assert kept == [0, 0, "", 0, None]


def test_a_lost_service_is_told_with_a_way_to_try_again(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, expected="Failed to load resource")
    page.route("**/v1/explain/stream", lambda route: route.abort())
    page.click("[data-find]")
    page.wait_for_selector("text=The service does not answer")
    page.unroute("**/v1/explain/stream")
    page.click(".trouble button")
    page.wait_for_selector(".trouble", state="detached")
    page.wait_for_selector(".banner[data-status=optimal]")

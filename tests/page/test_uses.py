"""What is done with an answer: tried, compared, written, proved, and asked of many people at once."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from page_browser import person, until

pytestmark = pytest.mark.slow

TONE = "#panel [data-tone]"


def slide(page: Any, name: str, value: int) -> None:
    """Move a slider, as the keyboard does."""
    page.locator(f"#t-{name}").evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def test_what_if_begins_with_the_way_inside_its_proved_region(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-try='0']")
    page.wait_for_selector("#panel [data-tone=yes]")
    assert "Inside the certified region" in page.inner_text(TONE)
    assert "Size of the change: 0.19." in page.inner_text(TONE)
    assert page.locator("#panel .zone").count() == 1


def test_what_if_follows_the_hand(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-try='0']")
    page.wait_for_selector("#panel [data-tone=yes]")
    slide(page, "duration_months", 20)
    page.wait_for_selector("#panel [data-tone=no]")
    assert "Refused, as proved: nothing this near that keeps your rules can lead there." in page.inner_text(TONE)
    slide(page, "duration_months", 60)
    until(page, "tone => document.querySelector(tone).textContent.startsWith('Refused with these values.')", TONE)
    page.click("#panel >> text=Back to now")
    page.wait_for_selector("#panel [data-tone=accent]")
    assert page.inner_text("#panel .above") == page.inner_text(".decision .above")


def test_what_if_claims_no_proof_for_a_score(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.check("input[name=score][value='0.6']")
    until(
        page,
        "document.querySelector('.sticky').ariaBusy === 'false' && document.querySelector('.meter').ariaLabel.includes('60')",
    )
    page.wait_for_timeout(600)
    page.wait_for_selector(".banner[data-status=optimal]")
    page.click("[data-try='0']")
    page.wait_for_selector("#panel [data-tone=open]")
    assert "nothing is proved about values close to them" in page.inner_text(TONE)
    assert page.locator("#panel .zone").count() == 0


def test_what_if_says_which_rule_a_value_breaks(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("[data-try='0']")
    page.select_option("[aria-label='Try another thing …']", "purpose")
    page.select_option("#t-purpose", "car (used)")
    until(page, "tone => document.querySelector(tone).textContent.includes('This breaks one of your rules')", TONE)
    assert "What the loan is for" in page.inner_text(TONE)


def test_ways_are_compared_with_the_ranges_that_are_proved(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click("#tab-compare")
    until(page, "!document.querySelector('table.compare').textContent.includes('asking')")
    assert page.locator("table.compare thead th").count() == 5
    assert page.locator("table.compare td.hit").count() >= 3
    assert "Length of the loan: " in page.inner_text("table.compare tbody tr:last-child")


def test_the_letter_tells_the_way_and_the_name_is_not_sent(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    sent: list[str] = []
    page.on("request", lambda asked: sent.append(f"{asked.url} {asked.post_data}"))
    page.click("[data-letter='0']")
    page.wait_for_selector(".letter")
    page.fill("#letter-name", "Ms Miller")
    text = page.inner_text(".letter")
    assert "Dear Ms Miller," in text
    assert "Length of the loan: 11 months instead of 24 months" in text
    assert "We have proved that no smaller change" in text
    assert "Age" not in text
    assert not any("Miller" in each for each in sent)


def test_on_paper_there_is_the_letter_alone(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, color_scheme="dark")
    page.click("[data-letter='0']")
    page.wait_for_selector(".letter")
    page.emulate_media(media="print")
    for hidden in ("#top", ".rail", ".decision", ".banner", ".tabs", ".desk"):
        assert not page.is_visible(hidden)
    assert page.is_visible(".letter")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_a_certificate_is_downloaded_and_found_valid(visit: Callable[..., Any], demo: str, tmp_path: Path) -> None:
    page = visit(demo)
    with page.expect_download() as loaded:
        page.click("[data-certificate='0']")
    file = tmp_path / "certificate.json"
    loaded.value.save_as(file)
    assert json.loads(file.read_text())["claim"]["status"] == "optimal"
    page.click("[data-check='0']")
    page.wait_for_selector("text=Checked: valid")
    page.click(".views [data-view=check]")
    page.set_input_files("#certificate-file", file)
    page.wait_for_selector("[data-outcome=valid]")
    assert "Length of the loan: 11\u00a0months instead of 24\u00a0months" in page.inner_text("[data-outcome]")


def test_a_forged_certificate_that_is_dropped_on_the_page_is_refuted(
    visit: Callable[..., Any], demo: str, tmp_path: Path
) -> None:
    page = visit(demo)
    with page.expect_download() as loaded:
        page.click("[data-certificate='0']")
    loaded.value.save_as(tmp_path / "certificate.json")
    forged = json.loads((tmp_path / "certificate.json").read_text())
    forged["claim"]["counterfactual"]["duration_months"] = 40
    page.evaluate(
        """text => {
          const data = new DataTransfer();
          data.items.add(new File([text], "forged.json", {type: "application/json"}));
          document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        json.dumps(forged),
    )
    page.wait_for_selector("[data-outcome=refuted]")
    assert "Do not rely on it" in page.inner_text("[data-outcome]")


def test_a_file_that_is_no_certificate_is_told(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, expected="422")
    page.click(".views [data-view=check]")
    page.set_input_files(
        "#certificate-file", files=[{"name": "a.json", "mimeType": "application/json", "buffer": b"{"}]
    )
    page.wait_for_selector("text=This file is not JSON")
    page.set_input_files(
        "#certificate-file", files=[{"name": "b.json", "mimeType": "application/json", "buffer": b"{}"}]
    )
    page.wait_for_selector(".note.no:not(:has-text('not JSON'))")


def test_a_batch_goes_up_and_its_answers_come_back(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    rows = [person(demo, number)["row"] for number in range(12)]
    written = io.StringIO()
    table = csv.DictWriter(written, rows[0].keys())
    table.writeheader()
    table.writerows(rows)
    page.click(".views [data-view=batch]")
    page.set_input_files(
        "#batch-file", files=[{"name": "people.csv", "mimeType": "text/csv", "buffer": written.getvalue().encode()}]
    )
    page.wait_for_selector("[data-state=done]")
    assert "12 of 12" in page.inner_text("[data-state]")
    with page.expect_download() as loaded:
        page.click("[data-format=csv]")
    answers = list(csv.DictReader(io.StringIO(loaded.value.path().read_text())))
    assert loaded.value.suggested_filename == "people-answers.csv"
    assert len(answers) >= 12


def test_a_batch_says_why_where_that_is_chosen(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    written = io.StringIO()
    row = person(demo, 0)["row"]
    table = csv.DictWriter(written, row.keys())
    table.writeheader()
    table.writerow(row)
    page.click(".views [data-view=batch]")
    page.check("[name=batch-about][value=reasons]")
    page.set_input_files(
        "#batch-file", files=[{"name": "people.csv", "mimeType": "text/csv", "buffer": written.getvalue().encode()}]
    )
    page.wait_for_selector("[data-state=done]")
    with page.expect_download() as loaded:
        page.click("[data-format=csv]")
    assert "as_long_as" in loaded.value.path().read_text()


def test_a_certificate_of_a_reason_says_what_holds_the_decision(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    asked = {"certify": True, "count": 1, "time_limit": 20}
    rows = (person(demo, number)["row"] for number in range(30))
    answers = (httpx.post(f"{demo}/v1/reasons", json={"row": row, **asked}, timeout=60).json() for row in rows)
    found = next(each for each in answers if each["reasons"])
    for name in ("certificate", "ranges_certificate"):
        made = json.dumps(found["reasons"][0][name]).encode()
        page.click(".views [data-view=check]")
        page.set_input_files(
            "#certificate-file", files=[{"name": "r.json", "mimeType": "application/json", "buffer": made}]
        )
        page.wait_for_selector("[data-outcome=valid]")
        page.wait_for_selector("text=that the decision stays as long as")
        page.wait_for_selector("text=Of rows that keep")


def test_a_batch_without_its_columns_says_what_is_missing(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo, expected="422")
    page.click(".views [data-view=batch]")
    page.set_input_files("#batch-file", files=[{"name": "a.csv", "mimeType": "text/csv", "buffer": b"age\\n30\\n"}])
    page.wait_for_selector("main .note.no")
    assert "checking_status" in page.inner_text("main .note.no")


def test_an_audit_compares_groups_with_intervals(visit: Callable[..., Any], demo: str) -> None:
    page = visit(demo)
    page.click(".views [data-view=audit]")
    page.select_option("#audit-rows", "100")
    page.click("[data-audit]")
    page.wait_for_selector(".grid")
    figures = [int(text) for text in page.locator(".figures strong").all_inner_texts()]
    assert sum(figures) == 100
    assert page.locator(".interval b").count() >= 6
    said = page.inner_text(".grid")
    assert "95 % interval" in said
    assert "Age: " in said, "numbers are compared in bands"
    assert "Holm" in said
    about = page.inner_text(".grid > :last-child")
    assert "RandomForestClassifier" in about
    assert "Age, Sex and marital status, Foreign worker stay as they are" in about
    assert page.locator(".grid .facts dd").count() == 6

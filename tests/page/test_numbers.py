"""The page of a model that predicts numbers: bounds are wanted instead of a decision."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def test_bounds_on_the_prediction_are_asked_for_and_proved(visit: Callable[..., Any], numbers: str) -> None:
    page = visit(numbers)
    assert page.input_value("#atLeast") == "4000"
    page.wait_for_selector(".banner[data-status=optimal]")
    assert "leads to a prediction of at least 4,000" in page.inner_text(".banner")
    assert "wanted: at least 4,000" in page.inner_text(".decision")
    with page.expect_request("**/v1/explain/stream") as asked:
        page.fill("#atMost", "4400")
        page.press("#atMost", "Tab")
        page.click("[data-find]")
    assert json.loads(asked.value.post_data)["target"] == {"at_least": 4000, "at_most": 4400}
    page.wait_for_selector("text=leads to a prediction of 4,000 to 4,400")
    page.click(".views [data-view=people]")
    page.wait_for_selector("table.people [data-person='0']")


def test_names_and_levels_are_those_of_the_space(visit: Callable[..., Any], numbers: str) -> None:
    page = visit(numbers)
    row = page.inner_text("[data-feature=income]")
    assert "Yearly income" in row
    assert "EUR" in row
    page.click("[data-more=plan]")
    assert "Premium" in page.inner_text("[data-feature=plan]")
    assert page.get_attribute("#v-member_since", "type") == "date"
    page.click("[data-more=member_since]")
    page.check("input[name=direction-member_since][value=increases]")
    assert page.inner_text("[data-feature=member_since] .tags") == "Only later"


def test_nothing_is_called_proved_of_a_number_that_is_tried(visit: Callable[..., Any], numbers: str) -> None:
    page = visit(numbers)
    page.click("[data-try='0']")
    page.wait_for_selector("#panel [data-tone=open]")
    assert page.locator("#panel .zone").count() == 0

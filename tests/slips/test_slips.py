"""Names that trap: to each likely slip, what is said names what to write, in a sentence or two."""

from __future__ import annotations

import copy
import pickle

import pytest

import mace
from mace import slips as ours
from slips import SLIPS, names, said

LONGEST = 300
"""Characters of what is said: one or two sentences."""


@pytest.mark.parametrize(("written", "meant"), SLIPS.items(), ids=SLIPS)
def test_what_is_said_to_a_slip_names_what_to_write(written: str, meant: str) -> None:
    _, text = said(written)
    assert meant in text
    assert len(text) < LONGEST
    assert len(text.splitlines()) <= 2


def test_there_are_fifty_slips_at_least() -> None:
    assert len(SLIPS) >= 50


def test_an_unknown_option_is_a_type_error_as_python_has_it() -> None:
    with pytest.raises(TypeError, match="no option 'desired_class'"):
        names()["explainer"].explain(names()["row"], desired_class="grant")
    with pytest.raises(mace.UnknownOption, match="It has accuracy, certify"):
        names()["explainer"].explain(names()["row"], zzz=1)


def test_hints_name_only_what_there_is() -> None:
    explainer, explanation = names()["explainer"], names()["explanation"]
    owners = {"NAMES": mace, "METHODS": explainer, "ANSWERS": explanation, "COUNTERFACTUALS": explanation[0]}
    for table, owner in ((getattr(ours, name), owner) for name, owner in owners.items()):
        assert not [name for name in table if hasattr(owner, name)], "a name that there is needs no hint"
    for text in [*ours.NAMES.values(), *ours.METHODS.values(), *ours.ANSWERS.values(), *ours.OPTION_SLIPS.values()]:
        for call in text.split("mace.")[1:]:
            first = call.split("(")[0].split(".")[0]
            assert first in mace.__all__ or first == "audits", text


def test_hints_do_not_stand_in_the_way_of_pythons_own_protocols() -> None:
    explanation = names()["explanation"]
    assert pickle.loads(pickle.dumps(explanation)) == explanation
    assert copy.deepcopy(explanation) == explanation
    assert pickle.loads(pickle.dumps(names()["explainer"])).classes == ("deny", "grant")
    assert not hasattr(explanation, "_repr_png_")
    with pytest.raises(AttributeError, match=r"no attribute '__zzz__'$"):
        explanation.__zzz__  # noqa: B018

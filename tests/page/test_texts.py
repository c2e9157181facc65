"""The files of the page: one catalogue in two languages, no foreign host, nothing inline. Needs no browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "src" / "mace" / "service" / "page"
SCRIPTS = sorted(PAGE.rglob("*.js"))


def texts(language: str) -> dict[str, list[str]]:
    """Return the places, ``{like} {this}``, of each text."""
    lines = (PAGE / "texts" / f"{language}.js").read_text(encoding="utf-8").splitlines()
    found = [re.match(r'  "?([\w.]+)"?: (.+),$', line) for line in lines]
    return {line[1]: sorted(set(re.findall(r"\{(\w+)\}", line[2]))) for line in found if line}


def test_both_languages_have_the_same_texts_with_the_same_places() -> None:
    assert len(texts("en")) > 250
    assert texts("en") == texts("de")


def test_every_text_that_is_asked_for_exists_and_every_text_is_used() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS if path.parent.name != "texts")
    asked = set(re.findall(r'\bt\("([\w.]+)"', code))
    known = set(texts("en"))
    assert asked <= known
    quoted = set(re.findall(r'"([\w.]+)"', code))
    stems = set(re.findall(r"t\(`([^`]*)`", code))
    shapes = [re.compile("^" + re.sub(r"\\\$\\\{.*?\\\}", r"[\\w.]+", re.escape(stem)) + "$") for stem in stems]
    unused = {name for name in known - quoted if not any(shape.match(name) for shape in shapes)}
    assert unused == set()


def test_nothing_comes_from_elsewhere_and_nothing_is_inline() -> None:
    for path in PAGE.rglob("*.*"):
        source = path.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[\w./-]+", source)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set(), path.name
    markup = (PAGE / "index.html").read_text(encoding="utf-8")
    assert " style=" not in markup
    assert not re.search(r"<script(?![^>]*\bsrc=)", markup)
    assert not re.search(r"\son\w+=", markup)


def test_scripts_read_no_markup_from_texts_and_keep_nothing() -> None:
    for path in SCRIPTS:
        source = path.read_text(encoding="utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            "localStorage",
            "sessionStorage",
            "document.cookie",
            "pushState",
        ):
            assert forbidden not in source, f"{path.name}: {forbidden}"


def test_scripts_are_short() -> None:
    assert (
        max(len(path.read_text(encoding="utf-8").splitlines()) for path in SCRIPTS if path.parent.name != "texts")
        <= 200
    )


def test_the_names_of_the_demo_speak_of_its_features_and_levels() -> None:
    import mace

    names = json.loads((PAGE / "names" / "german.json").read_text(encoding="utf-8"))
    space = mace.datasets.load("german").space
    for language in ("en", "de"):
        said = names[language]
        assert set(said["features"]) == set(space)
        assert {each["group"] for each in said["features"].values()} == set(said["groups"])
        for feature, levels in said["levels"].items():
            assert set(levels) <= set(space[feature].levels)
            assert language == "en" or set(levels) == set(space[feature].levels)
    assert [mace.rule(text).text for text in names["start"]]

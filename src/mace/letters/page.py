"""The letter itself: the sentences of a language filled in, as text and as a page of HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mace.letters.catalogue import Language
from mace.letters.writer import in_a_row
from mace.problem import Status

WIDTH = 78
"""How many characters a line of a text letter has at most, unless a word has more."""

STRONG = frozenset(("decision", "target"))
"""What of a sentence is printed in bold."""

LETTER_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 42rem; margin: 2rem auto; padding: 0 1.25rem; font: 1rem/1.5 "Helvetica Neue", Helvetica, Arial, sans-serif;
  color: #1c1c1e; background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.15rem; margin: 2rem 0 1.25rem; }
h2 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: 0 0 1rem; }
.lines { white-space: pre-line; }
.date { text-align: right; }
table { width: 100%; table-layout: fixed; border-collapse: collapse; margin: 0 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .75rem .45rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #c9c9ce; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-size: .85rem; font-weight: 600; color: #55555c; }
thead th:first-child { width: 34%; }
thead th:last-child { width: 34%; }
tbody th { font-weight: 400; }
td small { display: block; font-size: .85rem; color: #55555c; }
ul { margin: 0 0 1rem; padding-left: 1.25rem; }
@media (min-width: 36rem), print { td small { display: inline; margin-left: .35rem; } }
.closing { margin-top: 2rem; }
.sender { margin-top: 2.5rem; }
@media screen and (prefers-color-scheme: dark) {
  body { color: #ececef; background: #1c1c1e; }
  thead th, td small { color: #b4b4bb; }
  th, td { border-color: #48484d; }
}
@page { size: A4; margin: 25mm 20mm 20mm 25mm; }
@media print {
  :root { color-scheme: light; }
  body { max-width: none; margin: 0; padding: 0; font-size: 10.5pt; line-height: 1.4; }
  th, td { padding-top: .25rem; padding-bottom: .25rem; }
  thead { display: table-header-group; }
  tr, li, .closing { break-inside: avoid; }
  h1, h2, .before { break-after: avoid; }
  .closing, .sender, .score { break-before: avoid; }
}
""".strip()


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A part of a letter: a sentence with what is filled in, and the changes or the items that follow it."""

    sentence: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    tag: str = "p"
    style: str = ""
    changes: Sequence[Mapping[str, Any]] = ()
    items: Sequence[str] = ()

    def text(self) -> str:
        """Return the sentence as text."""
        return self.sentence.format(**self.fields)

    def html(self) -> str:
        """Return the sentence as HTML, everything escaped."""
        shown = {key: escape(text) for key, text in self.fields.items()}
        strong = {key: f"<strong>{shown[key]}</strong>" for key in shown if key in STRONG}
        return escape(self.sentence).format(**{**shown, **strong})


def blocks_of(language: Language, facts: Mapping[str, Any], fields: Mapping[str, str]) -> list[Paragraph]:
    """Return the letter, part by part."""
    named = "_named" if "name" in fields else ""
    sender = [Paragraph("{sender}", fields, style="lines sender")] if "sender" in fields else []
    contact = [Paragraph(language.say("contact"), fields, style="lines")] if "contact" in fields else []
    return [
        *_head(language, fields),
        Paragraph(language.say(f"salutation{named}"), fields),
        Paragraph(language.say("decision"), {"decision": facts["decision"]}),
        *_body(language, facts),
        *contact,
        Paragraph(language.say(f"closing{named}"), fields, style="closing"),
        *sender,
    ]


def _head(language: Language, fields: Mapping[str, str]) -> Iterator[Paragraph]:
    if "address" in fields:
        yield Paragraph("{address}", fields, style="lines")
    if "date" in fields:
        yield Paragraph("{date}", fields, style="date")
    if "reference" in fields:
        yield Paragraph(language.say("reference"), fields)
    yield Paragraph(language.say("subject"), tag="h1")


def _why(language: Language, facts: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield what decided."""
    held = [each["text"] for each in facts["held"]]
    if not held:
        yield Paragraph(language.say("decided_anyway"))
    else:
        yield Paragraph(language.say("decided", len(held)), style="before", items=held)
        yield Paragraph(language.say("decided_proved", len(held)))
        if facts["is_only"]:
            yield Paragraph(language.say("decided_only"))
        elif facts["others"]:
            count = {"count": str(facts["others"])}
            yield Paragraph(language.say("decided_others", facts["others"]), count)
    yield Paragraph(language.say("no_promise"))


def _body(language: Language, facts: Mapping[str, Any]) -> Iterator[Paragraph]:
    target = {"target": facts["target"]}
    if facts["status"] == Status.REACHED:
        yield Paragraph(language.say("reached"), target)
        return
    if "held" in facts:
        yield from _why(language, facts)
        return
    if facts["status"] == Status.INFEASIBLE:
        yield Paragraph(language.say("none"), target)
        if facts["rules"]:
            yield Paragraph(language.say("blame", len(facts["rules"])), style="before", items=facts["rules"])
        if facts["rules"] and facts["perhaps_fewer"]:
            yield Paragraph(language.say("perhaps_fewer"))
        return
    ways = facts["ways"]
    if len(ways) > 1:
        yield Paragraph(language.say("ways"), {**target, "count": str(len(ways))}, style="before")
    for way in ways:
        yield from _way(language, way, target, is_alone=len(ways) == 1)
    if facts["margin"]:
        yield Paragraph(language.say("margin"), style="before", items=facts["margin"])
    stays = [language.say(key) for key, names in (("kept", facts["kept"]), ("nothing_else", facts["stays"])) if names]
    if stays:
        yield Paragraph(" ".join(stays), {"names": in_a_row(facts["kept"])})
    yield _proof(language, facts)
    yield Paragraph(language.say("no_promise"))


def _way(
    language: Language, way: Mapping[str, Any], target: Mapping[str, str], *, is_alone: bool
) -> Iterator[Paragraph]:
    changes = [change for change in way["changes"] if not change["is_effect"]]
    effects = [change for change in way["changes"] if change["is_effect"]]
    if is_alone:
        yield Paragraph(language.say("changes", len(changes)), target, style="before", changes=changes)
    else:
        yield Paragraph(language.say("way"), {"number": str(way["number"])}, tag="h2", changes=changes)
    if effects:
        yield Paragraph(language.say("effects"), style="before", changes=effects)
    if way["score"] is not None:
        score = {**way["score"], "outcome": ""}
        yield Paragraph(language.say("score_threshold" if score["threshold"] else "score"), score, style="score")


def _proof(language: Language, facts: Mapping[str, Any]) -> Paragraph:
    """Return in one sentence what is proved."""
    first, ways = facts["ways"][0], facts["ways"]
    known = {"among": facts["among"], "share": first["share"]}
    of_first = "_first" if len(ways) > 1 else ""
    if first["number"] > 1:
        return Paragraph(language.say("others"))
    if not first["is_proved"]:
        return Paragraph(language.say(f"open{of_first}" if first["lower"] > 0 else "searched"), known)
    further = f" {language.say('no_further')}" if of_first and facts["is_exhausted"] else ""
    return Paragraph(language.say(f"proved{of_first}") + further, known)


def as_text(language: Language, blocks: Sequence[Paragraph]) -> str:
    """Return a letter as text, in lines that fit a page."""
    parts = []
    for block in blocks:
        text = block.text()
        lines = text.splitlines() if "lines" in block.style else [text]
        shown = [_wrapped(line) for line in lines]
        if block.style == "date":
            shown = [line.rjust(WIDTH) for line in shown]
        parts.append("\n".join(shown))
        items = [*(_change_text(language, change) for change in block.changes), *block.items]
        if items:
            parts.append("\n".join(_wrapped(item, "- ", "  ") for item in items))
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, first: str = "", then: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )


def _change_text(language: Language, change: Mapping[str, Any]) -> str:
    line = language.say("change").format(**change)
    return f"{line} ({change['moved']})" if change["moved"] else line


def as_html(language: Language, blocks: Sequence[Paragraph]) -> str:
    """Return a letter as a page of HTML that prints on A4."""
    body = "\n".join(_block_html(language, block) for block in blocks)
    title = escape(language.say("subject"))
    return (
        f'<!DOCTYPE html>\n<html lang="{language.code}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>\n{LETTER_STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _block_html(language: Language, block: Paragraph) -> str:
    style = f' class="{block.style}"' if block.style else ""
    made = f"<{block.tag}{style}>{block.html()}</{block.tag}>"
    if block.changes:
        heads = "".join(
            f'<th scope="col">{escape(language.say(f"head_{key}"))}</th>' for key in ("item", "before", "after")
        )
        rows = "\n".join(map(_row_html, block.changes))
        made += f"\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    if block.items:
        made += "\n<ul>\n" + "\n".join(f"<li>{escape(item)}</li>" for item in block.items) + "\n</ul>"
    return made


def _row_html(change: Mapping[str, Any]) -> str:
    name, before, after, moved = (escape(change[key]) for key in ("name", "before", "after", "moved"))
    by = f" <small>{moved}</small>" if moved else ""
    return f'<tr><th scope="row">{name}</th><td>{before}</td><td><strong>{after}</strong>{by}</td></tr>'

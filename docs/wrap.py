"""Wrap the paragraphs and list items of the documents at 120 characters: part of ``make generate``; what is shown stays the same."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120
NOT_TEXT = re.compile(r"\||#|<|>>>|\.\.\.|!\[| {4}|\[\^?\w+\]:|---")
"""How a line begins that stays as it is: tables, headings, HTML, sessions, pictures, code."""

ITEM = re.compile(r"( *)(?:[-*+]|\d+[.)]) +")
BEGINS_ANEW = re.compile(r"(?:[-*+#>|=]|\d+[.)])")


def wrapped(text: str) -> str:
    """Return a document with its long lines wrapped; fenced code and generated parts are left alone."""
    made: list[str] = []
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r" *(```|~~~|<!-- generated|<!-- end)", line)
        if fence or mark or not line.strip() or NOT_TEXT.match(line):
            made += [*_flowed(block), line]
            block = []
            if mark and mark[1] == fence:
                fence = ""
            elif mark and not fence and mark[1] != "<!-- end":
                fence = "<!-- end" if mark[1] == "<!-- generated" else mark[1]
            continue
        if ITEM.match(line):
            made += _flowed(block)
            block = []
        block.append(line)
    return "\n".join(made + _flowed(block))


def _flowed(block: list[str]) -> list[str]:
    if all(len(line) <= WIDTH for line in block):
        return block
    item = ITEM.match(block[0])
    first = f"{item[0].rstrip()} " if item else re.match(" *", block[0])[0]  # type: ignore[index]
    rest = " " * len(first)
    words = " ".join(line.strip() for line in block)[len(first.strip()) :].strip()
    lines = textwrap.wrap(
        words, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    made = lines[:1]
    for each in lines[1:]:  # a word that would begin a list, a heading or a quotation stays behind the one before
        line = each
        word, _, others = line.strip().partition(" ")
        if BEGINS_ANEW.match(word):
            made[-1] += f" {word}"
            line = rest + others
        if line.strip():
            made.append(line)
    return made

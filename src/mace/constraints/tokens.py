"""The words, numbers and signs of a constraint in the text form, read one after the other, with errors that point at the place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, cast

from mace.constraints.numbers import Given, Number, read_number
from mace.constraints.words import KEYWORDS
from mace.errors import InvalidConstraint
from mace.slips.texts import about_text
from mace.space.features import MOST_LEVELS

MOST_CHARACTERS = 100_000

MOST_LETTERS = 1000
"""How long a plain name may be; between back quotes it may be longer."""

CHARACTERS_SHOWN = 60
"""Characters of the text that an error shows to either side of the place."""

IN_BACK_QUOTES = " (a name with spaces or signs is written between back quotes, `monthly income`)"

_TOKENS = re.compile(
    r"""\s*(?:
        (?P<date>\d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?(?![\w.-]))
      | (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<name>`(?:[^`]|``)+`)
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|==|!=|<|>|=|[-+*/(),;.%\[\]])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: its kind, what it stands for, and where it begins."""

    kind: str
    text: str
    at: int


class TokenReader:
    """One text, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        if len(text) > MOST_CHARACTERS:
            raise InvalidConstraint(f"a constraint of {len(text):,} characters; at most {MOST_CHARACTERS:,} are read.")
        self.tokens = self._cut()

    def _cut(self) -> list[Token]:
        tokens: list[Token] = []
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKENS.match(self.text, at)
            if match is None:
                place = at + len(self.text[at:]) - len(self.text[at:].lstrip())
                self._refuse(f"{self.text[place]!r} is not part of a constraint{IN_BACK_QUOTES}", place)
            kind = cast(str, match.lastgroup)
            tokens.append(Token(kind, match.group(kind), match.start(kind)))
            at = match.end()
        tokens.append(Token("end", "", len(self.text)))
        return tokens

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        place = self.tokens[self.position].at if at is None else at
        begin = self.text.rfind("\n", 0, place) + 1
        line = self.text[begin:].partition("\n")[0]
        cut = max(place - begin - CHARACTERS_SHOWN, 0)
        before, after = "..." if cut else "", "..." if len(line) > cut + 2 * CHARACTERS_SHOWN else ""
        shown = f"{before}{line[cut : cut + 2 * CHARACTERS_SHOWN]}{after}"
        meant = about_text(line)
        said = f"{what.replace(IN_BACK_QUOTES, '')}; {meant}" if meant else what
        raise InvalidConstraint(f"{said}:\n  {shown}\n  {' ' * (len(before) + place - begin - cut)}^")

    @property
    def _token(self) -> Token:
        return self.tokens[self.position]

    def _is(self, *words: str, ahead: int = 0) -> bool:
        where = min(self.position + ahead, len(self.tokens) - 1)
        token = self.tokens[where]
        return token.kind in ("word", "sign") and token.text.lower() in words

    def _take(self, *words: str) -> bool:
        if self._is(*words):
            self.position += 1
            return True
        return False

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            self._refuse(f"expected {' or '.join(map(repr, words))}")

    @property
    def _about_names(self) -> str:
        """How names are written, where a name may have been cut into words or at a dot."""
        return IN_BACK_QUOTES if self._token.kind in ("word", "name") or self._is(".", "(", "[", "%") else ""

    def _name(self) -> str:
        token = self._token
        if token.kind == "name":
            self.position += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.text.lower() in KEYWORDS:
            called = f" (one that is called {token.text} is written `{token.text}`)" if token.kind == "word" else ""
            self._refuse(f"expected a feature{called}")
        if len(token.text) > MOST_LETTERS:
            self._refuse(f"a name of {len(token.text):,} letters; at most {MOST_LETTERS:,} characters are read")
        self.position += 1
        return token.text

    def _value(self) -> Given:
        negative = self._take("-")
        token = self._token
        if token.kind == "number":
            number = self._number()
            return -number if negative else number
        if negative or not (token.kind in ("quoted", "date") or self._is("true", "false")):
            self._refuse("expected a number, a date or a 'level'")
        self.position += 1
        if token.kind == "date":
            return token.text
        if token.kind == "quoted":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
        return token.text.lower() == "true"

    def _level(self) -> Given:
        return None if self._take("missing") else self._value()

    def _values(self) -> list[Given]:
        values = [self._level()]
        while self._take(","):
            values.append(self._level())
            if len(values) > MOST_LEVELS:
                self._refuse(f"a list of more than {MOST_LEVELS:,} values")
        return list(dict.fromkeys(values))

    def _number(self) -> Number:
        token = self._token
        if token.kind != "number":
            self._refuse("expected a number")
        self.position += 1
        try:
            return read_number(token.text.replace("_", ""))
        except ValueError:
            self._refuse("the number is too large, or too small", token.at)

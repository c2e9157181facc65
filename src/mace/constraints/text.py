"""The text form of constraints: read by descent, with errors that point at the place.

constraint   one of:  "if" choice "then" choice ["else" choice]   |   choice   |   noise, by itself only
noise        "robust" ["to"] number ["%"] ["of"] ["range" | "sd" | "mad"]   |   "robust" "to" feature "by" number { "," ... }
choice       both { "or" both }
both         single { "and" single }
single       "not" single   |   "(" constraint ")"   |   predicate
predicate    features ("stay" | "change" ["together"] | "increase" | "decrease")        each verb also with an s
           | feature "changes" "by" "at" "most" (number ["%"])
           | feature "changes" "in" "steps" "of" number
           | feature "moves" level "to" levels { ";" level "to" levels }
           | "only" features "change"
           | feature "within" "[" value "," value "]"   |   feature "between" value "and" value
           | feature ["not"] "in" "[" values "]"
           | feature "is" ["not"] "missing"
           | "at" "most" number ("features" | "of" feature ["*" number] { "," ... }) "change"
           | term sign term { sign term }                            sign: < <= > >= == != (= is ==)
term         product { ("+" | "-") product }
product      factor { ("*" | "/") factor }
factor       number | date | level | feature | "old" "." feature | "-" factor | "(" term ")" | "abs" "(" term ")"
           | ("min" | "max") "(" term "," term ")"
feature      a plain name, or any name between back quotes; level: 'between quotes'; true, false; date: 2024-02-29, 2024-02-29 10:30;
             in lists of values and in moves also the word missing
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mace.constraints.budget import changes_at_most
from mace.constraints.combine import AllOf, Changes, Either, Implies, Negation, Together
from mace.constraints.condition import Constraint
from mace.constraints.fixed import Fixed, Only
from mace.constraints.monotone import decreases, increases
from mace.constraints.moves import at_most_change, steps, transitions
from mace.constraints.numbers import Given, Number
from mace.constraints.one_of import one_of
from mace.constraints.robust import robust, robust_share
from mace.constraints.rule import RULE_SIGNS, Comparison, IsMissing
from mace.constraints.terms import Absolute, Feature, Literal, Minus, Operation, Term
from mace.constraints.tokens import TokenReader
from mace.constraints.within import within
from mace.constraints.words import KEYWORDS
from mace.distances.people import SPREADS
from mace.errors import InvalidConstraint
from mace.language import syntax

DEEPEST_RULE = 50
"""How deep parentheses, ``not`` and minus signs may nest."""

MOST_TERMS, MOST_OF_ALL = 200, 5000
"""How many terms one comparison may have, and all comparisons of a constraint together."""

MOST_MOVES = 500
"""How many levels may have moves of their own."""

_ONE_BY_ONE = {"stays": "stay", "changes": "change", "increases": "increase", "decreases": "decrease"}


def read(text: str) -> Constraint:
    """Return the constraint that a text says.

    Raises
    ------
    InvalidConstraint
        With the text and a caret under the place.
    """
    return _Grammar(text).whole()


class _Grammar(TokenReader):
    """One text, read by the rules of the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.terms = self.all_terms = 0

    # ---- constraints

    def whole(self) -> Constraint:
        if self._token.kind == "end":
            self._refuse("the constraint is empty")
        made = self._noise() if self._is_noise() else self._constraint()
        if self._token.kind != "end":
            self._refuse(f"expected the end, 'and' or 'or'{self._about_names}")
        return made

    def _is_noise(self) -> bool:
        """Return whether the word ``robust`` begins noise, rather than being a feature's name."""
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        return self._is("robust") and (following.kind == "number" or self._is("to", ahead=1))

    def _noise(self) -> Constraint:
        self.position += 1
        self._take("to")
        if self._token.kind == "number":
            share = f"{self._number()}{'%' if self._take('%') else ''}"
            kinds, is_named = ("range", *SPREADS), self._take("of")
            kind = self._token.text.lower() if self._is(*kinds) else "range"
            if is_named or self._is(*kinds):
                self._need(*kinds)
            return self._made(robust_share, f"{share} of {kind}")
        radii: dict[str, Number] = {}
        while True:
            name = self._name()
            self._need("by")
            radii[name] = self._number()
            if not self._take(","):
                return self._made(robust, radii)

    def _constraint(self) -> Constraint:
        if not self._take("if"):
            return self._choice()
        condition = self._choice()
        self._need("then")
        consequence = self._choice()
        if not self._take("else"):
            return Implies(condition, consequence)
        return AllOf((Implies(condition, consequence), Implies(Negation(condition), self._choice())))

    def _choice(self) -> Constraint:
        return self._joined(Either, lambda: self._joined(AllOf, self._single))

    def _joined(self, kind: type[AllOf] | type[Either], read: Callable[[], Constraint]) -> Constraint:
        """Return one part, or several with the word of a kind between them."""
        parts = [read()]
        while self._take(kind.word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else kind(tuple(parts))

    def _single(self) -> Constraint:
        self._go_down()
        try:
            if self._take("not"):
                return Negation(self._single())
            if self._is("("):
                grouped = self._grouped()
                if grouped is not None:
                    return grouped
            return self._predicate()
        finally:
            self.depth -= 1

    def _go_down(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST_RULE:
            self._refuse(f"nested more than {DEEPEST_RULE} deep")

    def _grouped(self) -> Constraint | None:
        """Return a constraint in parentheses; ``None`` where they hold a term of a comparison."""
        begin = self.position
        self.position += 1
        try:
            made = self._constraint()
            self._need(")")
        except InvalidConstraint as error:
            reached, self.position = self.position, begin
            try:
                self._term()
            except InvalidConstraint:
                self.position = reached
                raise error from None
            self.position = begin
            return None
        if self._is(*RULE_SIGNS, "=", "+", "-", "*", "/"):
            self.position = begin
            return None
        return made

    # ---- predicates

    def _predicate(self) -> Constraint:
        if self._is("at") and self._is("most", ahead=1):
            return self._budget()
        if self._is_only():
            return self._only()
        if self._is_noise():
            self._refuse("robust is about the answer as a whole: give it as a constraint of its own")
        if self._token.kind in ("word", "name") and not self._is("old", "abs", "min", "max", "true", "false"):
            about_features = self._about_features()
            if about_features is not None:
                return about_features
        return self._comparison()

    def _is_only(self) -> bool:
        """Return whether the word ``only`` begins a predicate, rather than being a feature's name."""
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        is_name = following.kind == "name" or (following.kind == "word" and following.text.lower() not in KEYWORDS)
        is_range = self._is("between", ahead=1) and not self._is(",", "change", "changes", ahead=2)
        return self._is("only") and is_name and not is_range

    def _only(self) -> Constraint:
        self.position += 1
        names = self._names()
        self._need("change", "changes")
        return Only(tuple(names))

    def _names(self) -> list[str]:
        names = [self._name()]
        while self._take(","):
            names.append(self._name())
        return names

    def _about_features(self) -> Constraint | None:
        """Return a predicate that begins with names of features; ``None`` where it is a comparison."""
        begin = self.position
        names = self._names()
        several = self._verb(names)
        if several is not None:
            return several
        if len(names) > 1:
            self._refuse("expected stay, change, increase or decrease")
        single = self._about_one(names[0])
        if single is None:
            self.position = begin
        return single

    def _verb(self, names: list[str]) -> Constraint | None:
        word = self._token.text.lower() if self._token.kind == "word" else ""
        match _ONE_BY_ONE.get(word, word):
            case "stay":
                self.position += 1
                return Fixed(tuple(names))
            case "increase":
                self.position += 1
                return increases(*names)
            case "decrease":
                self.position += 1
                return decreases(*names)
            case "change":
                self.position += 1
                return self._change(names)
            case _:
                return None

    def _change(self, names: list[str]) -> Constraint:
        if len(names) > 1:
            return Together(tuple(names)) if self._take("together") else Changes(tuple(names))
        if self._take("by"):
            self._need("at")
            self._need("most")
            amount = self._number()
            return at_most_change(names[0], f"{amount}%" if self._take("%") else amount)
        if self._is("in") and self._is("steps", ahead=1):
            self.position += 2
            self._need("of")
            return self._made(steps, names[0], self._number())
        return Changes(tuple(names))

    def _about_one(self, name: str) -> Constraint | None:
        if self._take("within"):
            self._need("[")
            low = self._value()
            self._need(",")
            high = self._value()
            self._need("]")
            return within(name, low, high)
        if self._take("between"):
            low = self._value()
            self._need("and")
            return within(name, low, self._value())
        if self._take("moves"):
            return self._moves(name)
        if self._take("is"):
            negated = self._take("not")
            self._need("missing")
            return Negation(IsMissing(name)) if negated else IsMissing(name)
        negated = self._is("not") and self._is("in", ahead=1)
        if negated:
            self.position += 1
        if self._take("in"):
            self._need("[")
            listed = one_of(name, self._values())
            self._need("]")
            return Negation(listed) if negated else listed
        return None

    def _moves(self, name: str) -> Constraint:
        moves: dict[Given, list[Given]] = {}
        while True:
            source = self._level()
            self._need("to")
            moves.setdefault(source, []).extend(self._values())
            if len(moves) > MOST_MOVES:
                self._refuse(f"moves from more than {MOST_MOVES} levels")
            if not self._take(";"):
                return self._made(transitions, name, moves)

    def _budget(self) -> Constraint:
        self.position += 2
        budget = self._number()
        if self._take("features", "feature"):
            self._need("change", "changes")
            return self._made(changes_at_most, budget)
        self._need("of")
        weights: dict[str, Number] = {}
        while True:
            name = self._name()
            weights[name] = self._number() if self._take("*") else 1
            if not self._take(","):
                break
        self._need("change", "changes")
        return self._made(changes_at_most, budget, None, weights)

    def _made(self, make: Any, *arguments: Any) -> Constraint:
        try:
            return cast(Constraint, make(*arguments))
        except InvalidConstraint as error:
            self._refuse(str(error).removesuffix("."))

    def _comparison(self) -> Constraint:
        self.terms = 0
        terms, signs = [self._term()], []
        while self._is(*RULE_SIGNS, "="):
            sign = self._token.text
            signs.append(cast(syntax.CompareName, "==" if sign == "=" else sign))
            self.position += 1
            terms.append(self._term())
        if not signs:
            self._refuse(
                f"expected a comparison or a verb, as in 'age >= old.age' or 'age increases'{self._about_names}"
            )
        return Comparison(tuple(terms), tuple(signs))

    # ---- terms

    def _term(self) -> Term:
        return self._operations(("+", "-"), lambda: self._operations(("*", "/"), self._factor))

    def _operations(self, signs: tuple[str, ...], read: Callable[[], Term]) -> Term:
        """Return terms with some signs between them, joined from the left."""
        made = read()
        while self._is(*signs):
            sign = cast(syntax.BinaryName, self._token.text)
            self.position += 1
            made = Operation(sign, made, read())
        return made

    def _factor(self) -> Term:
        self._go_down()
        self.terms += 1
        self.all_terms += 1
        if self.terms > MOST_TERMS or self.all_terms > MOST_OF_ALL:
            self._refuse(
                f"more than {MOST_TERMS} terms in a comparison, or {MOST_OF_ALL:,} in all; use several constraints"
            )
        try:
            return self._inner_factor()
        finally:
            self.depth -= 1

    def _inner_factor(self) -> Term:
        if self._take("-"):
            operand = self._factor()
            if isinstance(operand, Literal) and isinstance(operand.value, Number):
                return Literal(-operand.value)
            return Minus(operand)
        if self._take("("):
            made = self._term()
            self._need(")")
            return made
        if self._is("abs", "min", "max") and self._is("(", ahead=1):
            return self._call(self._token.text.lower())
        if self._is("old") and self._is(".", ahead=1):
            self.position += 2
            return Feature(self._name(), is_old=True)
        if self._token.kind in ("number", "quoted", "date") or self._is("true", "false"):
            return Literal(self._value())
        return Feature(self._name())

    def _call(self, name: str) -> Term:
        self.position += 2
        made = self._term()
        if name != "abs":
            self._need(",")
            made = Operation(cast(syntax.BinaryName, name), made, self._term())
        self._need(")")
        return Absolute(made) if name == "abs" else made

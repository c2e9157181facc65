"""Letters: what they say is what the explanation says, in every language, and nothing that was not asked for."""

from __future__ import annotations

import datetime
import html.parser
import math
from dataclasses import replace
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

import mace
from mace.answer.counterfactual import Change, Counterfactual
from mace.answer.explanation import Explanation
from mace.errors import for_page, legible
from mace.letters.catalogue import LANGUAGES

SPACE = mace.FeatureSpace(
    {
        "age": mace.integer(18, 90),
        "income": mace.real(0, 100),
        "housing": mace.categorical(["rent", "own", "free"]),
    }
).describe(outcomes={"grant": "approved", "refuse": "declined"})


def decide(age, income, housing):  # type: ignore[no-untyped-def]
    if housing == "own":
        return "grant" if income >= 30 else "refuse"
    return "grant" if income + age >= 100 else "refuse"


EXPLAINER = mace.Explainer(decide, SPACE)
ROW = {"age": 40, "income": 20.1, "housing": "rent"}
EXPLANATION = EXPLAINER.explain(ROW, constraints=["age stays"], digits=1)
SEVERAL = EXPLAINER.explain(ROW, count=3)
NONE = EXPLAINER.explain(ROW, constraints=["age, housing stay", "income changes by at most 5"])
REACHED = EXPLAINER.explain(ROW, "refuse")

CALLED: dict[str, Any] = {"names": {"income": "yearly income"}, "units": {"income": "kEUR"}}


def flat(text: str) -> str:
    """A letter without its line ends and its spaces of other widths."""
    return " ".join(text.split())


def made_up(changes: list[Change], space: mace.FeatureSpace | None = None, **known: Any) -> Explanation:
    """An explanation of changes that no model was asked about."""
    factual = {change.feature: change.before for change in changes}
    answer = Counterfactual(
        {change.feature: change.after for change in changes},
        tuple(changes),
        distance=0.5,
        lower=0.5,
        status=mace.Status.OPTIMAL,
        prediction="good",
        solver="trees",
        seconds=0.0,
    )
    return Explanation((answer,), mace.Status.OPTIMAL, factual, "bad", "good", "l1", 0.5, **{"space": space, **known})


# ---- what is said


def test_a_letter_says_what_the_explanation_says() -> None:
    letter = EXPLANATION.letter(name="Ms Miller", sender="The bank", **CALLED)
    (change,) = EXPLANATION[0].changes
    assert change.feature == "income"
    assert "\n\nDear Ms Miller,\n\n" in letter
    assert letter.endswith("Yours sincerely,\n\nThe bank\n")
    said = flat(letter)
    assert "- yearly income: 60 kEUR instead of 20.1 kEUR (39.9 kEUR more)" in said
    assert "the result is: declined." in said
    assert "would have been “approved” with the following change:" in said
    assert "the following stays as it is: age. Everything else may stay as it is." in said
    assert "We have proved that no smaller change" in said
    assert "housing" not in said, "what neither changes nor was asked to stay is not listed"
    assert "Probability" not in said
    assert decide(**{**ROW, "income": float(str(change.after))}) == "grant", "what the letter says flips the model"


def test_lines_fit_a_page() -> None:
    assert max(map(len, SEVERAL.letter(number="all", language="fr", **CALLED).splitlines())) <= 78


def test_the_space_names_things_and_the_letter_may_call_them_otherwise() -> None:
    space = SPACE.describe(names={"income": "income of a year"}, levels={"housing": {"own": "your own home"}})
    made = mace.Explainer(decide, space).explain({**ROW, "income": 35}, constraints=["age, income stay"])
    assert "- housing: your own home instead of rent" in made.letter()
    said = flat(
        made.letter(
            names={"income": "money"},
            outcomes={"grant": "yes"},
            levels={"housing": {"rent": "a flat"}},
        )
    )
    assert "- housing: your own home instead of a flat" in said
    assert "stays as it is: age, money." in said
    assert "would have been “yes”" in said
    assert "is: declined." in said


def test_changes_are_told_in_the_order_of_their_weight() -> None:
    explanation = mace.Explainer(
        lambda a, b, c: "good" if a >= 1 and b >= 8 and c >= 4 else "bad",
        mace.FeatureSpace({name: mace.integer(0, 10) for name in "abc"}),
    ).explain({"a": 0, "b": 0, "c": 0})
    (answer,) = explanation
    assert [change.feature for change in answer.changes] == ["a", "b", "c"]
    assert [change.weight for change in answer.changes] == pytest.approx([1 / 30, 8 / 30, 4 / 30])
    letter = explanation.letter()
    assert letter.index("- b:") < letter.index("- c:") < letter.index("- a:")
    again = Explanation.from_json(explanation.to_json()).letter()
    assert again == letter, "the weights are in the JSON"


@pytest.mark.parametrize(
    ("distance", "weights"),
    [
        ("l0", [0.5, 0.5]),
        ("l2", [0.8 / math.sqrt(2), 0.2 / math.sqrt(2)]),
        (mace.Distance(l1=1.0, weights={"a": 3}), [0.6, 0.05]),
        ("lambda new, old: new.a + 2 * new.b", [8, 4]),
    ],
)
def test_a_weight_is_the_distance_of_a_change_alone(distance: Any, weights: list[float]) -> None:
    space = mace.FeatureSpace({name: mace.integer(0, 10) for name in "ab"})
    explainer = mace.Explainer(lambda a, b: "good" if a >= 8 and b >= 2 else "bad", space)
    (answer,) = explainer.explain({"a": 0, "b": 0}, distance=distance)
    assert [change.weight for change in answer.changes] == pytest.approx(weights, abs=1e-6)


def test_effects_of_actions_are_told_as_such() -> None:
    space = mace.FeatureSpace({"income": mace.integer(0, 100), "savings": mace.integer(0, 100)})
    causes = mace.Causal({"savings": "0.5 * income"})
    explainer = mace.Explainer(
        lambda income, savings: "good" if savings >= 30 and income >= 60 else "bad", space, causes
    )
    explanation = explainer.explain({"income": 40, "savings": 20}, "good")
    assert explanation[0].actions is not None
    said = flat(explanation.letter())
    effects = [c.feature for c in explanation[0].changes if c.feature not in explanation[0].actions]
    assert effects
    assert said.index("As a consequence, this would change too:") < said.index(f"- {effects[0]}:")


def test_the_score_is_told_only_where_it_is_asked_for() -> None:
    space = mace.FeatureSpace({"x": mace.integer(0, 10)}).describe(outcomes={1: "approved", 0: "declined"})
    frame = space.frame_of([(k,) for k in range(11)])
    model = make_pipeline(mace.Encoder(space), LogisticRegression()).fit(frame, [0] * 6 + [1] * 5)
    explanation = mace.Explainer(model, space).explain({"x": 2}, 1)
    assert "robability" not in explanation.letter()
    before, after = (100 * p[1] for p in model.predict_proba(frame.iloc[[2, int(explanation[0].values["x"])]]))
    said = flat(explanation.letter(score=True, language="de"))
    assert "Wahrscheinlichkeit für „approved“: bisher " in said
    assert "der Schwellenwert ist 50 %." in said
    shown = [
        float(part.split(" %")[0].replace(",", ".")) for part in (said.split("bisher ")[2], said.split("dann ")[1])
    ]
    assert shown == pytest.approx([before, after], abs=0.01)
    with pytest.raises(mace.InvalidOption, match="nothing but labels"):
        EXPLANATION.letter(score=True)


# ---- statuses


def test_all_ways_go_into_one_letter() -> None:
    said = flat(SEVERAL.letter(number="all"))
    assert len(SEVERAL) > 1
    assert f"any one of these {len(SEVERAL)} options, the smallest first:" in said
    assert all(f"Option {number} - " in said for number in range(1, len(SEVERAL) + 1))
    assert "no change smaller than option 1" in said
    assert ("no further option of this kind" in said) == SEVERAL.exhausted


def test_a_further_answer_is_not_said_to_be_the_smallest() -> None:
    said = flat(SEVERAL.letter(number=2))
    assert "We have proved" not in said
    assert "other options that change less" in said


def test_a_letter_where_none_exists_names_the_rules_to_blame() -> None:
    said = flat(NONE.letter(**CALLED))
    assert "We have proved that no change that may be asked of you would have made the result a different one." in said
    assert "because of the following conditions together:" in said
    assert "- unchanged: age, housing" in said
    assert "- yearly income: a change by at most 5 kEUR" in said
    german = flat(NONE.letter(language="de"))
    assert "bei keiner Änderung, die von Ihnen verlangt werden kann, ein anderes gewesen wäre" in german
    assert "- unverändert: age, housing" in german
    again = Explanation.from_json(NONE.to_json())
    assert flat(again.letter(outcomes={"refuse": "declined"}, **CALLED)) == said, "texts of constraints are read again"


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (mace.only("income"), "no changes other than to: income"),
        (mace.increases("age", "income"), "not lower than now: age, income"),
        ("income <= old.income", "not higher than now: income"),
        (mace.within("income", 1000, 2000.5), "income: from £1,000 to £2,000.5"),
        ("age >= 30", "age: at least 30"),
        (mace.one_of("housing", ["rent", "own"]), "housing: only rent or own"),
        (mace.at_most_change("income", "10%"), "income: a change by at most 10%"),
        (mace.changes_at_most(1), "at most 1 change in all"),
        (mace.changes_at_most(2), "at most 2 changes in all"),
        (mace.rule("age stays and income increases"), "unchanged: age\n- not lower than now: income"),
        ("income <= 2 * age", "the rule “income <= 2 * age”"),
        ("rule('this is no (rule')", "the rule “rule('this is no (rule')”"),
    ],
)
def test_every_rule_has_plain_words(constraint: Any, said: str) -> None:
    given = mace.rule(constraint) if isinstance(constraint, str) and "no (rule" not in constraint else constraint
    explanation = replace(NONE, conflict=(given,), reason="no counterfactual fulfils it")
    for each in (explanation, Explanation.from_json(explanation.to_json())):
        assert f"- {said}\n" in each.letter(units={"income": "£"})


def test_a_reason_that_may_not_be_the_smallest_is_said_as_such() -> None:
    assert "Perhaps not all" not in NONE.letter()
    assert "Perhaps not all" in replace(NONE, reason=f"{NONE.reason} (perhaps fewer would do)").letter()


def test_a_row_at_its_target_gets_a_letter_too() -> None:
    said = flat(REACHED.letter())
    assert "The result already is “declined”; no change is needed." in said
    assert "proved" not in said


def test_an_open_gap_is_said() -> None:
    answer = replace(EXPLANATION[0], status=mace.Status.FEASIBLE, lower=EXPLANATION[0].distance / 2)
    said = flat(replace(EXPLANATION, counterfactuals=(answer,), status=mace.Status.FEASIBLE, round_to={}).letter())
    assert "We have proved that" not in said
    assert any(f"none of less than {share}% of this size is." in said for share in (49, 50))
    answer = replace(answer, lower=0.0)
    said = flat(replace(EXPLANATION, counterfactuals=(answer,), status=mace.Status.FEASIBLE).letter())
    assert "have proved nothing." in said


def test_what_is_proved_of_round_values_is_said_of_these() -> None:
    round_one = replace(EXPLANATION, round_to={"income": 10})
    assert "no smaller change to round values would" in flat(round_one.letter())
    said = flat(replace(round_one, rounds_changes=True).letter())
    assert "no smaller change of the same items to round values would" in said
    assert "to round values" not in EXPLANATION.letter()


def test_what_cannot_be_written_is_refused() -> None:
    unknown = Explanation((), mace.Status.UNKNOWN, dict(ROW), "refuse", "grant", "l1", 0.0, "time limit reached")
    with pytest.raises(mace.InvalidOption, match="nothing to say"):
        unknown.letter()
    for number in (4, 0, True, "first", 1.0):
        with pytest.raises(mace.InvalidOption, match="number="):
            SEVERAL.letter(number=number)  # type: ignore[arg-type]
    with pytest.raises(mace.InvalidOption, match="no feature 'incom'"):
        EXPLANATION.letter(units={"incom": "EUR"})
    with pytest.raises(mace.InvalidOption, match=r"levels: 'housing' has no level 'owm'\. Did you mean 'own'"):
        EXPLANATION.letter(levels={"housing": {"owm": "own home"}})
    for about in (EXPLANATION, REACHED, EXPLAINER.reasons(ROW, "grant")):
        with pytest.raises(
            mace.InvalidOption, match=r"no label 'refsue'\. Did you mean 'refuse'\? Labels: 'grant', 'refuse'"
        ):
            about.letter(outcomes={"grant": "approved", "refsue": "declined"})
    assert "refsue" not in mace.Explanation.from_json(EXPLANATION.to_json()).letter(outcomes={"refsue": "declined"})
    with pytest.raises(mace.InvalidOption, match="'decision' is a name"):
        EXPLANATION.letter(decision="yes")
    with pytest.raises(mace.InvalidOption, match="no field 'langauge'"):
        EXPLANATION.letter(langauge="de")
    with pytest.raises(mace.InvalidOption, match="language='es'"):
        EXPLANATION.letter(language="es")


# ---- protected features


def test_protected_features_are_not_mentioned_unless_by_name() -> None:
    space = SPACE.protect("age", "housing").describe(names={"age": "your age"})
    explainer = mace.Explainer(decide, space)
    kept = explainer.explain(ROW, constraints=["age, housing stay"])
    assert "age" not in kept.letter().replace("asked", "")
    assert "stays as it is: how old you are." in flat(kept.letter(names={"age": "how old you are"}))
    changed = explainer.explain(ROW, constraints=["age, income stay"], target="refuse")
    assert changed.letter()
    changed = explainer.explain({**ROW, "income": 35}, constraints=["age, income stay"])
    with pytest.raises(mace.InvalidOption, match="'housing', which the space protects"):
        changed.letter()
    none = explainer.explain(ROW, constraints=["age, housing, income stay"])
    assert "because" not in none.letter(), "a rule about a protected feature is not told"
    assert "because" in none.letter(names={"age": "age", "housing": "housing"})


def test_many_features_that_stay_are_not_listed() -> None:
    names = tuple(f"f{number}" for number in range(20))
    changes = [Change("x", 1, 2), *(Change(name, 0, 0) for name in names)]
    explanation = made_up(changes, fixed=names)
    explanation = replace(explanation, counterfactuals=(replace(explanation[0], changes=tuple(changes[:1])),))
    said = flat(explanation.letter())
    assert "f19" not in said
    assert "Everything else may stay as it is." in said
    assert "stays as it is: f0, f1." in flat(replace(explanation, fixed=names[:2]).letter())


# ---- languages


def test_the_languages_have_the_same_sentences_with_the_same_fields() -> None:
    import string

    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    english = LANGUAGES["en"].sentences
    for language in LANGUAGES.values():
        assert list(language.sentences) == list(english), language.code
        assert len(language.months.split()) == 12
        for key, text in language.sentences.items():
            forms = [text] if isinstance(text, str) else list(text)
            others = english[key]
            assert isinstance(text, str) == isinstance(others, str), key
            may = fields(others if isinstance(others, str) else "".join(others))
            may |= {"name"} if key == "closing_named" else set()
            assert all(fields(form) <= may for form in forms), key
            assert fields("".join(forms)) >= may - {"name"}, key


def test_every_language_says_every_status() -> None:
    for language in LANGUAGES:
        for explanation in (EXPLANATION, SEVERAL, NONE, REACHED):
            for number in (1, "all"):
                text = explanation.letter(language=language, number=number)  # type: ignore[arg-type]
                assert "{" not in text
                assert f'lang="{language}"' in explanation.letter(language=language, html=True, number=number)  # type: ignore[arg-type]


NUMBERS = [Change("x", 1234567.25, -1234.5, weight=0.5)]


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "−€1,234.5 instead of €1,234,567.25 (€1,235,801.75 less)"),
        ("de", "−1.234,5 €, bisher 1.234.567,25 € (1.235.801,75 € weniger)"),
        (
            "fr",
            "−1\u202f234,5\u00a0€, contre 1\u202f234\u202f567,25\u00a0€ actuellement (1\u202f235\u202f801,75\u00a0€ de moins)",
        ),
    ],
)
def test_numbers_are_written_as_in_the_language(language: str, said: str) -> None:
    letter = made_up(NUMBERS).letter(language=language, units={"x": "€"})
    assert flat(said) in flat(letter)
    if language == "fr":
        assert "1\u202f234,5\u00a0€" in letter
        assert "x\u00a0: " in letter, "no line begins with a colon"


@pytest.mark.parametrize(
    ("language", "units", "after", "said"),
    [
        ("en", "month|months", 1, "1 month instead of 3 months (2 months less)"),
        ("en", "month|months", 0, "0 months"),
        ("de", "Monat|Monate", 1, "1 Monat, bisher 3 Monate (2 Monate weniger)"),
        ("fr", "an|ans", 0, "0 an, contre 3 ans"),
        ("fr", "an|ans", 1.5, "1,5 an, contre 3 ans actuellement (1,5 an de moins)"),
        ("en", "%", 2.5, "2.5% instead of 3%"),
        ("de", "%", 2.5, "2,5 %, bisher 3 %"),
    ],
)
def test_units_have_their_plurals(language: str, units: str, after: float, said: str) -> None:
    assert said in flat(made_up([Change("x", 3, after)]).letter(language=language, units={"x": units}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1e-7, "0.0000001"),
        (1e300, "1 × 10^300"),
        (1.5e-30, "1.5 × 10^-30"),
        (123456789012345680.0, "123,456,789,012,345,680"),
    ],
)
def test_numbers_of_any_size_are_written_exactly(value: float, said: str) -> None:
    assert f"- x: {said} instead of 0" in flat(made_up([Change("x", 0, value)]).letter())


def test_years_have_no_signs_between_their_digits() -> None:
    space = mace.FeatureSpace({"built": mace.integer(1900, 2024), "price": mace.integer(0, 5000)})
    said = flat(made_up([Change("built", 1987, 2003), Change("price", 1000, 2000)], space).letter())
    assert "built: 2003 instead of 1987 (16 more)" in said
    assert "price: 2,000 instead of 1,000" in said


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "1 March 2024 instead of 29 February 2024 (1 day later)"),
        ("de", "1. März 2024, bisher 29. Februar 2024 (1 Tag später)"),
        ("fr", "1er mars 2024, contre 29 février 2024 actuellement (1 jour plus tard)"),
    ],
)
def test_dates_are_written_as_in_the_language(language: str, said: str) -> None:
    space = mace.FeatureSpace({"since": mace.date("2020-01-01", "2024-12-31")})
    explanation = made_up([Change("since", "2024-02-29", "2024-03-01")], space)
    assert said in flat(explanation.letter(language=language))
    assert said in flat(replace(explanation, space=None).letter(language=language))
    assert flat(explanation.letter(language=language, date=datetime.date(2026, 3, 1))).startswith(
        said.partition(" 2024")[0] + " 2026"
    )


def test_moments_and_levels_that_look_like_dates() -> None:
    space = mace.FeatureSpace(
        {
            "at": mace.date("2024-01-01 08:00", "2024-01-01 18:00", unit="minute"),
            "version": mace.categorical(["2024-01-01", "2024-01-02"]),
        }
    )
    changes = [Change("at", "2024-01-01 08:00", "2024-01-01 09:30"), Change("version", "2024-01-01", "2024-01-02")]
    said = flat(made_up(changes, space).letter())
    assert "at: 1 January 2024, 09:30 instead of 1 January 2024, 08:00" in said
    assert "version: 2024-01-02 instead of 2024-01-01" in said


def test_missing_values_and_truths_have_words() -> None:
    changes = [Change("x", math.nan, 3.0), Change("y", True, False), Change("z", 3.0, math.nan)]
    said = flat(made_up(changes).letter())
    assert "x: 3 instead of no entry" in said
    assert "y: no instead of yes" in said
    assert "z: no entry instead of 3" in said
    assert "x: 3, bisher keine Angabe" in flat(made_up(changes).letter(language="de"))
    space = mace.FeatureSpace({"x": mace.categorical(["a"], missing=True)})
    said = flat(made_up([Change("x", "a", math.nan)], space).letter(levels={"x": {None: "not said"}}))
    assert "x: not said instead of a" in said


@pytest.mark.parametrize(
    ("target", "english", "french"),
    [
        (mace.at_least(2000), "at least 2,000", "d’au moins 2 000"),
        (mace.at_most(900.5), "at most 900.5", "d’au plus 900,5"),
        (mace.between(1, 2, margin=0.25), "at least 1 and at most", ""),
        (
            mace.at_least(0.7, "good"),
            "a probability of at least 70% for “fine”",
            "une probabilité d’au moins 70 % pour « fine »",
        ),
        (mace.at_least(0.7, "good", margin=0.05), "a probability of at least 75% for “fine”", ""),
        (mace.at_most(0.2, "a (b) >= 3"), "a probability of at most 20% for “a (b) >= 3”", ""),
        (mace.between(0.1, 0.2, "good"), "a probability from 10% to 20% for “fine”", ""),
        (mace.becomes("good", 0.2), "“fine”, ahead by 20% in probability", ""),
        (mace.any_of(["good", "so so"]), "“good or so so”", ""),
    ],
)
def test_targets_have_plain_words(target: Any, english: str, french: str) -> None:
    english = english.replace("at least 1 and at most", "from 1.25 to 1.75")
    explanation = replace(NONE, target=str(target), classes=None)
    said = flat(explanation.letter(outcomes={"good": "fine"}))
    assert f"would have made the result {english}." in said
    if french:
        said = flat(explanation.letter(outcomes={"good": "fine"}, language="fr"))
        assert f"le résultat n’aurait été {flat(french)}." in said


def test_outcomes_that_are_all_named_are_told_one_by_one() -> None:
    explanation = replace(NONE, target=str(mace.any_of(["a", "b"])), classes=("a", "b"))
    assert "the result “A” or “B”." in flat(explanation.letter(outcomes={"a": "A", "b": "B"}))


def test_a_regression_has_a_letter() -> None:
    space = mace.FeatureSpace({"rooms": mace.integer(1, 10)})
    frame = space.frame_of([(k,) for k in range(1, 11)])
    model = make_pipeline(mace.Encoder(space), LinearRegression()).fit(frame, [1500.5 * k for k in range(1, 11)])
    explanation = mace.Explainer(model, space).explain({"rooms": 1}, mace.at_least(6000))
    said = flat(explanation.letter(language="de", score=True))
    assert "das Ergebnis lautet: 1.500,5" in said
    assert "wäre das Ergebnis mindestens 6.000 gewesen:" in said
    assert "Schätzwert: bisher 1.500" in said or "Schätzwert: bisher 1.501" in said


# ---- ugly input


UGLY = (
    "<script>alert(1)</script>",
    "$x$ {name} {{ 7 * 7 }} %s",
    "\u202earabic العمر 收入 😀",
    "A" * 3000,
    "a, b; c",
    "-",
)


OUR_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "p", "ul", "li", "strong", "small"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Tags(html.parser.HTMLParser):
    """The tags of a page, and whether each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("ugly", UGLY)
def test_any_text_is_shown_and_escaped_in_html(ugly: str) -> None:
    space = mace.FeatureSpace({"x": mace.integer(0, 9), "y": mace.categorical([ugly, "b"])}).describe(
        names={"x": ugly}, units={"x": ugly}, outcomes={"bad": ugly, "good": ugly}
    )
    changes = [Change("x", 1, 2), Change("y", "b", ugly)]
    fields: dict[str, Any] = dict.fromkeys(("name", "sender", "date", "address", "reference", "contact"), ugly)
    explanation = made_up(changes, space, fixed=("x",), conflict=(mace.fixed("x"),))
    for made in (explanation, replace(explanation, counterfactuals=(), status=mace.Status.INFEASIBLE)):
        assert flat(made.letter(**fields)).count(legible(ugly)) >= 8
        page = made.letter(html=True, **fields)
        assert for_page(ugly) in page
        tags = Tags(page)
        assert not tags.open
        assert tags.seen <= OUR_TAGS


def test_thirty_changes_are_all_told() -> None:
    changes = [Change(f"f{number}", 0, number + 1, weight=number / 30) for number in range(30)]
    letter = made_up(changes).letter()
    assert letter.index("- f29: 30") < letter.index("- f0: 1 ")
    assert made_up(changes).letter(html=True).count("<tr>") == 31
    assert "Everything else" not in letter, "there is nothing else"


def test_an_empty_field_is_left_out() -> None:
    assert EXPLANATION.letter(name="", sender=None, address="  ") == EXPLANATION.letter()


# ---- the page of the documentation


def test_the_letters_of_the_documentation_are_those_that_its_examples_write() -> None:
    import runpy
    from pathlib import Path

    script = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "letters.py"))
    text = script["PAGE"].read_text()
    assert len(script["BLOCK"].findall(text)) == 4
    assert script["with_letters"](text, script["examples"](text)) == text, "run `python docs/letters.py`"

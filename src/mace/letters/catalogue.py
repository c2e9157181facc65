"""The languages of letters: every sentence, and how numbers, dates and lists are written.

A sentence with two forms is for one and for several. What stands in braces is filled in by :mod:`mace.letters.page`; names of features
and outcomes always stand after a colon or between quotation marks, so that no sentence depends on their gender or number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mace.errors import InvalidOption

NO_BREAK_SPACE, NARROW_SPACE = "\u00a0", "\u202f"
"""Spaces at which no line ends; the narrow one stands between the digits of French numbers, and before their signs."""


@dataclass(frozen=True, slots=True)
class Language:
    """One language.

    Attributes
    ----------
    code : str
        As in the ``lang`` of a page.
    decimal, group, percent : str
        The sign before the decimals, that between groups of three digits, and the space before a percent sign.
    quotes : tuple of str
        What stands before and after an outcome.
    months : str
        Their names, with spaces between them.
    date, first : str
        A date, and one on the first of a month.
    is_currency_first : bool
        Whether the sign of a currency stands before its number.
    least_plural : float
        From which number on a noun is plural: 2 in French, where 0 and 1.5 are singular; 0 where only 1 is singular.
    sentences : mapping of str to str or pair of str
        Every sentence by its name.
    """

    code: str
    decimal: str
    group: str
    percent: str
    quotes: tuple[str, str]
    months: str
    date: str
    first: str
    is_currency_first: bool
    least_plural: float
    sentences: Mapping[str, str | tuple[str, str]]

    def say(self, key: str, count: int = 1) -> str:
        """Return a sentence; of two forms, that for so many. The space that French has before a colon is one at which no line ends."""
        found = self.sentences[key]
        text = found if isinstance(found, str) else found[self.is_plural(count)]
        return text.replace(" :", f"{NO_BREAK_SPACE}:").replace(" ;", f"{NARROW_SPACE};")

    def quoted(self, text: str) -> str:
        """Return a text between quotation marks."""
        return text.join(self.quotes)

    def is_plural(self, number: float) -> bool:
        """Return whether a number of things is said in the plural."""
        return abs(number) != 1 and not abs(number) < self.least_plural


ENGLISH = Language(
    code="en",
    decimal=".",
    group=",",
    percent="",
    quotes=("“", "”"),
    months="January February March April May June July August September October November December",
    date="{day} {month} {year}",
    first="{day} {month} {year}",
    is_currency_first=True,
    least_plural=0,
    sentences={
        "subject": "Decision on your application",
        "reference": "Reference: {reference}",
        "salutation": "Dear Sir or Madam,",
        "salutation_named": "Dear {name},",
        "decision": "Thank you for your application. We have assessed it, and the result is: {decision}.",
        "changes": (
            "The result would have been {target} with the following change:",
            "The result would have been {target} with the following changes, the weightiest first:",
        ),
        "ways": "The result would have been {target} with any one of these {count} options, the smallest first:",
        "way": "Option {number}",
        "effects": "As a consequence, this would change too:",
        "kept": "We have taken it as given that the following stays as it is: {names}.",
        "nothing_else": "Everything else may stay as it is.",
        "proved": "We have proved that no smaller change{among} would have been enough, as we measure changes and within what may be "
        "asked of you.",
        "proved_first": "We have proved that no change smaller than option 1{among} would have been enough, as we measure changes and "
        "within what may be asked of you.",
        "open": "A smaller change may be enough, too: we have proved only that none{among} of less than {share} of this size is.",
        "open_first": "A change smaller than option 1 may be enough, too: we have proved only that none{among} of less than {share} of "
        "its size is.",
        "searched": "A smaller change may be enough, too: we have looked for one, but have proved nothing.",
        "others": "There are other options that change less.",
        "no_further": "We have also proved that there is no further option of this kind.",
        "among_round": " to round values",
        "among_round_same": " of the same items to round values",
        "among_round_next": " to the round values next to these",
        "none": "We have proved that no change that may be asked of you would have made the result {target}.",
        "blame": (
            "This is because of the following condition:",
            "This is because of the following conditions together:",
        ),
        "perhaps_fewer": "Perhaps not all of them are needed for this.",
        "reached": "The result already is {target}; no change is needed.",
        "decided": ("This item alone decided:", "These items together decided:"),
        "decided_proved": (
            "We have proved that with this item as it is, or within the limits named, the result is the same whatever else is stated, "
            "within what may be asked of you.",
            "We have proved that with these items as they are, or within the limits named, the result is the same whatever else is "
            "stated, within what may be asked of you, and that none of them can be left out.",
        ),
        "decided_anyway": "We have proved that the result is the same whatever is stated, within what may be asked of you.",
        "decided_only": "We have also proved that there are no other items of which this holds.",
        "decided_others": (
            "There is one other such set of items, which would have decided as well.",
            "There are {count} other such sets of items, each of which would have decided as well.",
        ),
        "held": "{name}: {value}",
        "held_at_most": "{name}: {value} (the same up to {high})",
        "held_at_least": "{name}: {value} (the same from {low} on)",
        "held_between": "{name}: {value} (the same from {low} to {high})",
        "held_one_of": "{name}: {value} (the same with: {values})",
        "held_but": "{name}: {value} (the same with anything but: {values})",
        "no_promise": "Please note that this describes how this application was assessed; it is no promise for a future one.",
        "contact": "For any questions, please contact: {contact}",
        "closing": "Yours faithfully,",
        "closing_named": "Yours sincerely,",
        "change": "{name}: {after} instead of {before}",
        "more": "{amount} more",
        "less": "{amount} less",
        "later": "{amount} later",
        "earlier": "{amount} earlier",
        "days": ("{count} day", "{count} days"),
        "direction_more": "more",
        "direction_less": "less",
        "direction_later": "later",
        "direction_earlier": "earlier",
        "head_item": "Item",
        "head_before": "Now",
        "head_after": "Instead",
        "missing": "no entry",
        "true": "yes",
        "false": "no",
        "or": " or ",
        "not": "not {target}",
        "different": "a different one",
        "at_least": "at least {low}",
        "at_most": "at most {high}",
        "between": "from {low} to {high}",
        "probability_at_least": "a probability of at least {low} for {outcome}",
        "probability_at_most": "a probability of at most {high} for {outcome}",
        "probability_between": "a probability from {low} to {high} for {outcome}",
        "lead": "{outcome}, ahead by {low} in probability",
        "margin": "We have proved that the result would be the same if these values turned out higher or lower by at most:",
        "score_probability": "Probability of {outcome}",
        "score_score": "Score of {outcome}",
        "score_prediction": "Estimate",
        "score": "{what}: {before} now, {after} then.",
        "score_threshold": "{what}: {before} now, {after} then; the threshold is {threshold}.",
        "under": "under {number}",
        "over": "over {number}",
        "range": "{low} to {high}",
        "rule_fixed": "unchanged: {names}",
        "rule_only": "no changes other than to: {names}",
        "rule_increases": "not lower than now: {names}",
        "rule_decreases": "not higher than now: {names}",
        "rule_within": "{name}: from {low} to {high}",
        "rule_at_least": "{name}: at least {value}",
        "rule_at_most": "{name}: at most {value}",
        "rule_one_of": "{name}: only {values}",
        "rule_by_at_most": "{name}: a change by at most {amount}",
        "rule_count": ("at most {count} change in all", "at most {count} changes in all"),
        "rule_other": "the rule {text}",
    },
)

GERMAN = Language(
    code="de",
    decimal=",",
    group=".",
    percent=NO_BREAK_SPACE,
    quotes=("„", "“"),
    months="Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    date="{day}. {month} {year}",
    first="{day}. {month} {year}",
    is_currency_first=False,
    least_plural=0,
    sentences={
        "subject": "Entscheidung über Ihren Antrag",
        "reference": "Zeichen: {reference}",
        "salutation": "Sehr geehrte Damen und Herren,",
        "salutation_named": "Guten Tag {name},",
        "decision": "vielen Dank für Ihren Antrag. Wir haben ihn geprüft; das Ergebnis lautet: {decision}.",
        "changes": (
            "Mit der folgenden Änderung wäre das Ergebnis {target} gewesen:",
            "Mit den folgenden Änderungen, die gewichtigste zuerst, wäre das Ergebnis {target} gewesen:",
        ),
        "ways": "Mit jeder der folgenden {count} Möglichkeiten, die kleinste zuerst, wäre das Ergebnis {target} gewesen:",
        "way": "Möglichkeit {number}",
        "effects": "Als Folge davon würde sich auch dies ändern:",
        "kept": "Wir haben vorausgesetzt, dass Folgendes bleibt, wie es ist: {names}.",
        "nothing_else": "Alles Übrige kann bleiben, wie es ist.",
        "proved": "Wir haben bewiesen, dass keine kleinere Änderung{among} genügt hätte, gemessen an unserem Maß für Änderungen und im "
        "Rahmen dessen, was von Ihnen verlangt werden kann.",
        "proved_first": "Wir haben bewiesen, dass keine Änderung{among}, die kleiner ist als Möglichkeit 1, genügt hätte, gemessen an "
        "unserem Maß für Änderungen und im Rahmen dessen, was von Ihnen verlangt werden kann.",
        "open": "Möglicherweise hätte auch eine kleinere Änderung genügt: Bewiesen ist nur, dass keine{among} von weniger als {share} "
        "dieser Größe genügt hätte.",
        "open_first": "Möglicherweise hätte auch eine kleinere Änderung als Möglichkeit 1 genügt: Bewiesen ist nur, dass keine{among} von "
        "weniger als {share} ihrer Größe genügt hätte.",
        "searched": "Möglicherweise hätte auch eine kleinere Änderung genügt: Wir haben danach gesucht, aber nichts bewiesen.",
        "others": "Es gibt andere Möglichkeiten, die weniger ändern.",
        "no_further": "Bewiesen ist auch, dass es keine weitere Möglichkeit dieser Art gibt.",
        "among_round": " auf runde Werte",
        "among_round_same": " derselben Angaben auf runde Werte",
        "among_round_next": " auf die benachbarten runden Werte",
        "none": "Wir haben bewiesen, dass das Ergebnis bei keiner Änderung, die von Ihnen verlangt werden kann, {target} gewesen wäre.",
        "blame": (
            "Der Grund dafür ist die folgende Vorgabe:",
            "Der Grund dafür sind die folgenden Vorgaben zusammen:",
        ),
        "perhaps_fewer": "Möglicherweise sind dafür nicht alle von ihnen nötig.",
        "reached": "Das Ergebnis ist bereits {target}; eine Änderung ist nicht erforderlich.",
        "decided": ("Ausschlaggebend war diese Angabe allein:", "Ausschlaggebend waren diese Angaben zusammen:"),
        "decided_proved": (
            "Wir haben bewiesen, dass das Ergebnis mit dieser Angabe, oder innerhalb der genannten Grenzen, dasselbe ist, was auch immer "
            "sonst angegeben wird, im Rahmen dessen, was von Ihnen verlangt werden kann.",
            "Wir haben bewiesen, dass das Ergebnis mit diesen Angaben, oder innerhalb der genannten Grenzen, dasselbe ist, was auch immer "
            "sonst angegeben wird, im Rahmen dessen, was von Ihnen verlangt werden kann, und dass keine von ihnen entbehrlich ist.",
        ),
        "decided_anyway": "Wir haben bewiesen, dass das Ergebnis dasselbe ist, was auch immer angegeben wird, im Rahmen dessen, was von "
        "Ihnen verlangt werden kann.",
        "decided_only": "Bewiesen ist auch, dass dies für keine anderen Angaben gilt.",
        "decided_others": (
            "Es gibt eine weitere solche Gruppe von Angaben, die ebenso ausschlaggebend gewesen wäre.",
            "Es gibt {count} weitere solche Gruppen von Angaben, von denen jede ebenso ausschlaggebend gewesen wäre.",
        ),
        "held": "{name}: {value}",
        "held_at_most": "{name}: {value} (ebenso bis {high})",
        "held_at_least": "{name}: {value} (ebenso ab {low})",
        "held_between": "{name}: {value} (ebenso von {low} bis {high})",
        "held_one_of": "{name}: {value} (ebenso mit: {values})",
        "held_but": "{name}: {value} (ebenso mit allem außer: {values})",
        "no_promise": "Bitte beachten Sie, dass dies die Prüfung dieses Antrags beschreibt und keine Zusage für einen künftigen Antrag "
        "ist.",
        "contact": "Ihr Kontakt für Fragen: {contact}",
        "closing": "Mit freundlichen Grüßen",
        "closing_named": "Mit freundlichen Grüßen",
        "change": "{name}: {after}, bisher {before}",
        "more": "{amount} mehr",
        "less": "{amount} weniger",
        "later": "{amount} später",
        "earlier": "{amount} früher",
        "days": ("{count} Tag", "{count} Tage"),
        "direction_more": "mehr",
        "direction_less": "weniger",
        "direction_later": "später",
        "direction_earlier": "früher",
        "head_item": "Angabe",
        "head_before": "Bisher",
        "head_after": "Stattdessen",
        "missing": "keine Angabe",
        "true": "ja",
        "false": "nein",
        "or": " oder ",
        "not": "nicht {target}",
        "different": "ein anderes",
        "at_least": "mindestens {low}",
        "at_most": "höchstens {high}",
        "between": "ein Wert von {low} bis {high}",
        "probability_at_least": "eine Wahrscheinlichkeit von mindestens {low} für {outcome}",
        "probability_at_most": "eine Wahrscheinlichkeit von höchstens {high} für {outcome}",
        "probability_between": "eine Wahrscheinlichkeit von {low} bis {high} für {outcome}",
        "lead": "{outcome} mit einem Vorsprung von {low} in der Wahrscheinlichkeit",
        "margin": "Wir haben bewiesen, dass das Ergebnis dasselbe wäre, wenn diese Werte höher oder niedriger ausfielen, um höchstens:",
        "score_probability": "Wahrscheinlichkeit für {outcome}",
        "score_score": "Punktwert für {outcome}",
        "score_prediction": "Schätzwert",
        "score": "{what}: bisher {before}, dann {after}.",
        "score_threshold": "{what}: bisher {before}, dann {after}; der Schwellenwert ist {threshold}.",
        "under": "unter {number}",
        "over": "über {number}",
        "range": "{low} bis {high}",
        "rule_fixed": "unverändert: {names}",
        "rule_only": "Änderungen nur bei: {names}",
        "rule_increases": "nicht niedriger als bisher: {names}",
        "rule_decreases": "nicht höher als bisher: {names}",
        "rule_within": "{name}: von {low} bis {high}",
        "rule_at_least": "{name}: mindestens {value}",
        "rule_at_most": "{name}: höchstens {value}",
        "rule_one_of": "{name}: nur {values}",
        "rule_by_at_most": "{name}: eine Änderung um höchstens {amount}",
        "rule_count": ("insgesamt höchstens {count} Änderung", "insgesamt höchstens {count} Änderungen"),
        "rule_other": "die Regel {text}",
    },
)

FRENCH = Language(
    code="fr",
    decimal=",",
    group=NARROW_SPACE,
    percent=NARROW_SPACE,
    quotes=(f"«{NO_BREAK_SPACE}", f"{NO_BREAK_SPACE}»"),
    months="janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    date="{day} {month} {year}",
    first="1er {month} {year}",
    is_currency_first=False,
    least_plural=2,
    sentences={
        "subject": "Décision concernant votre demande",
        "reference": "Référence : {reference}",
        "salutation": "Madame, Monsieur,",
        "salutation_named": "Bonjour {name},",
        "decision": "Nous vous remercions de votre demande. Nous l’avons examinée, avec le résultat suivant : {decision}.",
        "changes": (
            "Avec la modification suivante, le résultat aurait été {target} :",
            "Avec les modifications suivantes, de la plus importante à la moins importante, le résultat aurait été {target} :",
        ),
        "ways": "Avec l’une quelconque des {count} options suivantes, de la plus petite à la plus grande, le résultat aurait été "
        "{target} :",
        "way": "Option {number}",
        "effects": "Il en résulterait également :",
        "kept": "Nous sommes partis du principe que ceci reste inchangé : {names}.",
        "nothing_else": "Tout le reste peut rester inchangé.",
        "proved": "Nous avons démontré qu’aucune modification plus petite{among} n’aurait suffi, selon notre mesure des modifications et "
        "dans la limite de ce qui peut vous être demandé.",
        "proved_first": "Nous avons démontré qu’aucune modification{among} plus petite que l’option 1 n’aurait suffi, selon notre mesure "
        "des modifications et dans la limite de ce qui peut vous être demandé.",
        "open": "Une modification plus petite aurait peut-être suffi : nous avons seulement démontré qu’aucune{among} de moins de {share} "
        "de cette ampleur n’aurait suffi.",
        "open_first": "Une modification plus petite que l’option 1 aurait peut-être suffi : nous avons seulement démontré qu’aucune{among} "
        "de moins de {share} de son ampleur n’aurait suffi.",
        "searched": "Une modification plus petite aurait peut-être suffi : nous en avons cherché une, mais rien n’a été démontré.",
        "others": "Il existe d’autres options qui demandent moins de changement.",
        "no_further": "Nous avons également démontré qu’il n’existe pas d’autre option de ce genre.",
        "among_round": " vers des valeurs rondes",
        "among_round_same": " des mêmes éléments vers des valeurs rondes",
        "among_round_next": " vers les valeurs rondes voisines",
        "none": "Nous avons démontré qu’avec aucune modification pouvant vous être demandée le résultat n’aurait été {target}.",
        "blame": (
            "La raison en est la condition suivante :",
            "La raison en est l’ensemble des conditions suivantes :",
        ),
        "perhaps_fewer": "Il est possible qu’elles ne soient pas toutes nécessaires pour cela.",
        "reached": "Le résultat est déjà {target} ; aucune modification n’est nécessaire.",
        "decided": ("Cet élément à lui seul a été déterminant :", "Ces éléments ensemble ont été déterminants :"),
        "decided_proved": (
            "Nous avons démontré qu’avec cet élément, ou dans les limites indiquées, le résultat est le même quoi que l’on déclare par "
            "ailleurs, dans la limite de ce qui peut vous être demandé.",
            "Nous avons démontré qu’avec ces éléments, ou dans les limites indiquées, le résultat est le même quoi que l’on déclare par "
            "ailleurs, dans la limite de ce qui peut vous être demandé, et qu’aucun d’eux n’est superflu.",
        ),
        "decided_anyway": "Nous avons démontré que le résultat est le même quoi que l’on déclare, dans la limite de ce qui peut vous être "
        "demandé.",
        "decided_only": "Nous avons également démontré que cela ne vaut pour aucun autre ensemble d’éléments.",
        "decided_others": (
            "Il existe un autre ensemble de ce genre, qui aurait été tout aussi déterminant.",
            "Il existe {count} autres ensembles de ce genre, dont chacun aurait été tout aussi déterminant.",
        ),
        "held": "{name} : {value}",
        "held_at_most": "{name} : {value} (de même jusqu’à {high})",
        "held_at_least": "{name} : {value} (de même à partir de {low})",
        "held_between": "{name} : {value} (de même de {low} à {high})",
        "held_one_of": "{name} : {value} (de même avec : {values})",
        "held_but": "{name} : {value} (de même avec tout sauf : {values})",
        "no_promise": "Veuillez noter que ceci décrit l’examen de la présente demande et ne constitue pas un engagement pour une demande "
        "future.",
        "contact": "Pour toute question : {contact}",
        "closing": "Veuillez agréer, Madame, Monsieur, nos salutations distinguées.",
        "closing_named": "Veuillez agréer, {name}, nos salutations distinguées.",
        "change": "{name} : {after}, contre {before} actuellement",
        "more": "{amount} de plus",
        "less": "{amount} de moins",
        "later": "{amount} plus tard",
        "earlier": "{amount} plus tôt",
        "days": ("{count} jour", "{count} jours"),
        "direction_more": "de plus",
        "direction_less": "de moins",
        "direction_later": "plus tard",
        "direction_earlier": "plus tôt",
        "head_item": "Élément",
        "head_before": "Actuellement",
        "head_after": "À la place",
        "missing": "non renseigné",
        "true": "oui",
        "false": "non",
        "or": " ou ",
        "not": "pas {target}",
        "different": "différent",
        "at_least": "d’au moins {low}",
        "at_most": "d’au plus {high}",
        "between": "compris entre {low} et {high}",
        "probability_at_least": "une probabilité d’au moins {low} pour {outcome}",
        "probability_at_most": "une probabilité d’au plus {high} pour {outcome}",
        "probability_between": "une probabilité comprise entre {low} et {high} pour {outcome}",
        "lead": "{outcome}, avec une avance de {low} en probabilité",
        "margin": "Nous avons démontré que le résultat serait le même si ces valeurs étaient supérieures ou inférieures d’au plus :",
        "score_probability": "Probabilité pour {outcome}",
        "score_score": "Score pour {outcome}",
        "score_prediction": "Estimation",
        "score": "{what} : {before} actuellement, {after} ensuite.",
        "score_threshold": "{what} : {before} actuellement, {after} ensuite ; le seuil est de {threshold}.",
        "under": "moins de {number}",
        "over": "plus de {number}",
        "range": "{low} à {high}",
        "rule_fixed": "inchangé : {names}",
        "rule_only": "modifications uniquement pour : {names}",
        "rule_increases": "pas moins qu’actuellement : {names}",
        "rule_decreases": "pas plus qu’actuellement : {names}",
        "rule_within": "{name} : de {low} à {high}",
        "rule_at_least": "{name} : au moins {value}",
        "rule_at_most": "{name} : au plus {value}",
        "rule_one_of": "{name} : uniquement {values}",
        "rule_by_at_most": "{name} : une modification de {amount} au plus",
        "rule_count": ("{count} modification au plus au total", "{count} modifications au plus au total"),
        "rule_other": "la règle {text}",
    },
)

LANGUAGES = {language.code: language for language in (ENGLISH, GERMAN, FRENCH)}


def language_of(name: object) -> Language:
    """Return the language of a code; ``"de-AT"`` is German."""
    code = name.replace("_", "-").partition("-")[0].lower() if isinstance(name, str) else ""
    if code not in LANGUAGES:
        raise InvalidOption(
            f"letter: language={name!r:.40}; there are {', '.join(map(repr, LANGUAGES))}. For another, write a template."
        )
    return LANGUAGES[code]

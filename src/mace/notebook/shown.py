"""Explanations, reasons, levers, batches and spaces as cards of a notebook."""

from __future__ import annotations

from itertools import islice

from mace.answer.counterfactual import Change, Counterfactual, real_dtype, shortened_list, show_value
from mace.answer.explanation import Explanation
from mace.answer.levers import Levers
from mace.answer.reasons import Reason, Reasons, held_words
from mace.answer.words import at_target
from mace.batch import Batch
from mace.errors import for_page
from mace.notebook.look import Html, badge, card, marked, paragraph, table
from mace.problem import Status
from mace.space import Categorical, Date, FeatureSpace, Ordinal
from mace.space.features import Feature, is_missing

_BECOMES = " \u2192 "
ROWS_OF_BATCH = 10
FEATURES_LISTED = 60
ANSWERS_SHOWN = 12
LEVELS_SHOWN = 160
"""Characters of a list of levels."""

STATUS_KINDS = {
    Status.OPTIMAL: "proved",
    Status.FEASIBLE: "open",
    Status.INFEASIBLE: "none",
    Status.REACHED: "proved",
    Status.UNKNOWN: "open",
    Status.ERROR: "none",
}


def explanation_html(explanation: Explanation) -> str:
    """Return an explanation: what changes, what is proved, the scores before and after."""
    parts = [paragraph(explanation.headline(), kind="title")]
    answers = list(islice(explanation, ANSWERS_SHOWN))
    sides = [_answer(each, number, explanation) for number, each in enumerate(answers, start=1)]
    if sides:
        parts.append(f'<div class="mace-side">{"".join(sides)}</div>')
    if len(explanation) > len(answers):
        parts.append(paragraph(f"and {len(explanation) - len(answers)} more: to_frame() has them all", kind="quiet"))
    if explanation.no_further():
        parts.append(paragraph(explanation.no_further()))
    if explanation.status == Status.INFEASIBLE:
        parts.append(badge("proved: none exists", "proved"))
    parts += [paragraph(f"Hint: {hint}", kind="quiet") for hint in explanation.hints]
    return card(*parts)


def _answer(answer: Counterfactual, number: int, explanation: Explanation) -> str:
    rows = [_change(answer, change, explanation) for change in answer.changes]
    said = answer.summary(explanation.wording)
    numbered = f"<b>{number}.</b> " if len(explanation) > 1 else ""
    return (
        f"<div><p>{numbered}{_badges(answer, number, explanation.among)}</p>"
        f"{table(('feature', 'now', '', 'instead'), rows)}{_meter(answer, said)}{paragraph(said)}</div>"
    )


def _change(answer: Counterfactual, change: Change, explanation: Explanation) -> tuple[object, ...]:
    before, after = change.called(explanation.wording)
    return (
        answer.named(change, explanation.wording),
        Html(marked(before, "old")),
        Html(marked(change.arrow, "quiet")),
        Html(marked(after, "new")),
    )


def _badges(answer: Counterfactual, number: int, among: str) -> str:
    is_proved = answer.status == Status.OPTIMAL
    nearest = "nearest" if number == 1 else "next nearest"
    made = badge(f"proved {nearest}{among}", "proved") if is_proved else badge(f"not proved {nearest}", "open")
    return made if answer.certificate is None else f"{made} {badge('certificate', 'proved')}"


def _meter(answer: Counterfactual, said: str) -> str:
    """Return the probability before and after as marks on a bar, with the threshold; nothing for other scores."""
    before, after = answer.score_before, answer.score
    if before is None or after is None or not answer.score_of.startswith("P("):
        return ""
    ends = answer.threshold if isinstance(answer.threshold, tuple) else (answer.threshold,)
    marks = [("edge", end) for end in ends if end is not None] + [("old", before), ("new", after)]
    spans = "".join(
        f'<span class="mace-{kind}" style="left:{100 * min(max(place, 0.0), 1.0):.2f}%"></span>'
        for kind, place in marks
    )
    label = for_page(said.partition("\n")[0])
    return f'<div class="mace-meter" role="img" aria-label="{label}">{spans}</div>'


def reasons_html(reasons: Reasons) -> str:
    """Return the reasons of a decision: of each the features, their values, and how far these may move."""
    if reasons.error or (reasons.complete and reasons.reason):
        return card(paragraph(reasons, kind="title"))
    parts = [paragraph(f"Why {reasons.decision}", kind="title")]
    parts += [paragraph(f"Note: {reasons.note}.", kind="quiet")] if reasons.note else []
    shown = list(islice(reasons, ANSWERS_SHOWN))
    parts += [_reason(each, number, reasons) for number, each in enumerate(shown, start=1)]
    if len(reasons) > len(shown):
        parts.append(paragraph(f"and {len(reasons) - len(shown)} more: print() shows them all", kind="quiet"))
    return card(*parts, *map(paragraph, reasons.proved()))


def _reason(reason: Reason, number: int, reasons: Reasons) -> str:
    proof = badge("certificate", "proved") if reason.certificate is not None else ""
    head = f"<p><b>{number}.</b> {badge('proved', 'proved')} {proof}</p>"
    note = paragraph(reason.note, kind="quiet") if reason.note else ""
    space = reasons.space
    if space is None or not reason.features:
        return f"<div>{head}{paragraph(reason.as_long_as or reason)}{note}</div>"
    rows = [
        (
            space.wording.name(name),
            space.wording.value(name, show_value(value)),
            held_words(name, value, reason.ranges, space, space.wording),
        )
        for name, value in reason.values.items()
    ]
    return f"<div>{head}{table(('feature', 'now', 'the same as long as it is'), rows)}{note}</div>"


def levers_html(levers: Levers) -> str:
    """Return the smallest sets of features that suffice, each with its nearest answer."""
    if levers.complete and levers.reason:
        return card(paragraph(levers, kind="title"))
    rows = [
        (
            levers.called(lever.features),
            f"{lever.counterfactual.distance:.4g}",
            "; ".join(
                f"{levers.wording.name(change.feature)} {_BECOMES.join(change.called(levers.wording))}"
                for change in lever.counterfactual.changes
            ),
        )
        for lever in levers
    ]
    parts = [paragraph("Sets of features that suffice", kind="title")]
    parts += [table(("features", "distance", "nearest"), rows, numbers=[1])] if rows else []
    return card(*parts, *map(paragraph, levers.proved()))


def batch_html(batch: Batch) -> str:
    """Return a batch: how many rows have each status, and the first of them."""
    counted = " ".join(
        badge(f"{count} {status}", STATUS_KINDS[Status(status)]) for status, count in batch.counts.items()
    )
    named = [] if batch.table.id is None else [batch.table.id]
    heads = [*named, "row", "status", "prediction", "becomes", "score", "distance", "changes"]
    rows = [
        [*([batch.id_of(number)] if named else []), number, *_line(each)]
        for number, each in enumerate(islice(batch, ROWS_OF_BATCH))
    ]
    parts = [paragraph(batch.summary(), kind="title"), f"<p>{counted}</p>"]
    if rows:
        parts.append(table(heads, rows, numbers=[heads.index("row"), heads.index("distance")]))
    if len(batch) > ROWS_OF_BATCH:
        rest = f"and {len(batch) - ROWS_OF_BATCH:,} more rows: to_frame() has them all, plot() draws them"
        parts.append(paragraph(rest, kind="quiet"))
    return card(*parts, *(paragraph(f"Hint: {hint}", kind="quiet") for hint in batch.hints))


def _line(explanation: Explanation) -> list[object]:
    """Return the cells of one row of a batch, about its nearest answer."""
    wording = explanation.wording
    now = "" if explanation.prediction is None else wording.outcome(explanation.prediction)
    status = Html(badge(explanation.status, STATUS_KINDS[explanation.status]))
    if not explanation:
        is_there = explanation.status == Status.REACHED
        why = at_target(explanation) if is_there else explanation.error or explanation.reason
        return [status, now, "", "", "", why]
    best = explanation[0]
    score = _BECOMES.join(best.score_texts or ())
    changes = shortened_list(
        [f"{wording.name(each.feature)} {_BECOMES.join(each.called(wording))}" for each in best.changes], LEVELS_SHOWN
    )
    return [status, now, wording.outcome(best.prediction), score, f"{best.distance:.4g}", changes]


def space_html(space: FeatureSpace) -> str:
    """Return a space: each feature with its kind and its range or levels."""
    rows = [
        (name, type(feature).__name__.lower(), _values(feature), _notes(space, name))
        for name, feature in islice(space.items(), FEATURES_LISTED)
    ]
    parts = [paragraph(f"FeatureSpace of {len(space)} features", kind="title")]
    parts.append(table(("feature", "kind", "range or levels", "notes"), rows))
    if len(space) > FEATURES_LISTED:
        parts.append(
            paragraph(f"and {len(space) - FEATURES_LISTED:,} more features: print(space) has them all", kind="quiet")
        )
    return card(*parts)


def _values(feature: Feature) -> str:
    if isinstance(feature, Ordinal | Categorical):
        levels = [show_value(level) for level in feature.levels if not is_missing(level)]
        return f"{'in order: ' if isinstance(feature, Ordinal) else ''}{shortened_list(levels, LEVELS_SHOWN)}"
    ends = [
        feature.text(end) if isinstance(feature, Date) else show_value(end, real_dtype(feature))
        for end in (feature.low, feature.high)
    ]
    step = "" if feature.step is None else f" in steps of {show_value(feature.step)}"
    return f"{ends[0]} to {ends[1]}{step}"


def _notes(space: FeatureSpace, name: str) -> str:
    wording = space.wording
    notes = [f"called {wording.name(name)}"] if name in wording.names else []
    notes += [f"in {wording.unit(name)}"] if wording.unit(name) else []
    notes += ["protected"] if name in space.protected else []
    notes += ["may be missing"] if space[name].missing else []
    notes += [f"round to {show_value(space.round_to[name])}"] if name in space.round_to else []
    return ", ".join(notes)

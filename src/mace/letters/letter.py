"""Letters: an explanation in plain words for the person whom it is about."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from mace.answer.counterfactual import Change, show_value
from mace.answer.explanation import Explanation
from mace.disk import read_bytes, said
from mace.errors import InvalidOption
from mace.letters import filling
from mace.models.package import optional
from mace.problem import Status

TEXT = """\
{% if name is defined %}Dear {{ name }},

{% endif %}
the decision on your application is: {{ decision }}.

{% if changes %}
It would have been {{ target }} with {{ "this change" if changes|length == 1 else "these changes" }}:

{% for change in changes %}
- {{ change.name }}: {{ change.after }} instead of {{ change.before }}
{%- if change.difference %} ({{ change.difference }} {{ change.direction }}){% endif %}

{% endfor %}

Everything else may stay as it is{% if stays %}: {{ stays|join(", ") }}{% endif %}.

{% if number > 1 %}
There are other ways to this decision that change less.
{% elif is_proved %}
We have proved that no smaller change{{ among }} leads to this decision, as we measure changes and within what may be asked of you.
{% elif lower == 0 %}
There may be a smaller change that leads to this decision: we have looked for one, and proved nothing.
{% else %}
There may be a smaller change that leads to this decision; we have proved only that none{{ among }} is less than {{ share }} of this one.
{% endif %}
{% else %}
We have proved that no change would have led to {{ target }}{% if reason %}: {{ reason }}{% endif %}.
{% endif %}
{% if sender is defined %}

{{ sender }}
{% endif %}
"""

HTML = """\
{% if name is defined %}<p>Dear {{ name }},</p>
{% endif %}
<p>the decision on your application is: <strong>{{ decision }}</strong>.</p>
{% if changes %}
<p>It would have been <strong>{{ target }}</strong> with {{ "this change" if changes|length == 1 else "these changes" }}:</p>
<ul>
{% for change in changes %}
<li>{{ change.name }}: <strong>{{ change.after }}</strong> instead of {{ change.before }}
{%- if change.difference %} ({{ change.difference }} {{ change.direction }}){% endif %}</li>
{% endfor %}
</ul>
<p>Everything else may stay as it is{% if stays %}: {{ stays|join(", ") }}{% endif %}.</p>
{% if number > 1 %}
<p>There are other ways to this decision that change less.</p>
{% elif is_proved %}
<p>We have proved that no smaller change{{ among }} leads to this decision, as we measure changes and within what may be asked of you.</p>
{% elif lower == 0 %}
<p>There may be a smaller change that leads to this decision: we have looked for one, and proved nothing.</p>
{% else %}
<p>There may be a smaller change that leads to this decision;
we have proved only that none{{ among }} is less than {{ share }} of this one.</p>
{% endif %}
{% else %}
<p>We have proved that no change would have led to {{ target }}{% if reason %}: {{ reason }}{% endif %}.</p>
{% endif %}
{% if sender is defined %}
<p>{{ sender }}</p>
{% endif %}
"""


def letter(
    explanation: Explanation,
    template: str | Path | None,
    *,
    html: bool,
    names: Mapping[str, str],
    units: Mapping[str, str],
    number: int,
    fields: Mapping[str, object],
) -> str:
    """Return the letter of an explanation; see :meth:`mace.Explanation.letter`."""
    known = words_of(explanation, names, units, number)
    clash = sorted(set(fields) & set(known))
    if clash:
        raise InvalidOption(f"letter: {clash[0]!r} is a name of the template already. Choose another.")
    text = _read(template) if isinstance(template, Path) else template
    return _rendered(text if text is not None else HTML if html else TEXT, {**known, **fields}, html=html)


def words_of(
    explanation: Explanation, names: Mapping[str, str], units: Mapping[str, str], number: int
) -> dict[str, object]:
    """Return what a template may use."""
    for name in (*names, *units):
        if name not in explanation.factual:
            raise InvalidOption(f"letter: there is no feature {name!r}.")
    if explanation.status in (Status.UNKNOWN, Status.ERROR, Status.REACHED):
        raise InvalidOption(f"letter: there is nothing to say: {explanation.headline()}")
    if explanation and not 1 <= number <= len(explanation):
        raise InvalidOption(f"letter: number={number}; there are {len(explanation)} counterfactuals.")
    answer = explanation[number - 1] if explanation else None
    changes = [] if answer is None else [_words(change, names, units) for change in answer.changes]
    changed = () if answer is None else {change.feature for change in answer.changes}
    hidden = () if explanation.space is None else [name for name in explanation.space.protected if name not in names]
    told = next((name for name in hidden if name in changed), None)
    if told is not None:
        raise InvalidOption(
            f"letter: the answer changes {told!r}, which the space protects. Fix it, constraints=[mace.fixed({told!r})], or give it "
            f"a name to have it mentioned: names={{{told!r}: ...}}."
        )
    outcome = None if answer is None else answer.prediction
    share = 1.0 if answer is None or not answer.distance else answer.lower / answer.distance
    return {
        "decision": show_value(explanation.prediction),
        "target": explanation.target if outcome in (None, explanation.prediction) else show_value(outcome),
        "changes": changes,
        "number": number,
        "stays": [names.get(name, name) for name in explanation.factual if name not in (*changed, *hidden)],
        "is_proved": answer is None or answer.status == Status.OPTIMAL,
        "among": _among(explanation),
        "share": f"{math.floor(100 * share)} %",
        "distance": None if answer is None else answer.distance,
        "lower": explanation.lower if answer is None else answer.lower,
        "reason": "" if any(name in explanation.reason for name in hidden) else explanation.reason,
        "factual": {
            names.get(name, name): text for name, text in explanation.factual_texts.items() if name not in hidden
        },
    }


def _among(explanation: Explanation) -> str:
    """Return which changes a proof is about, where it is not about all."""
    of = " next to these" if explanation.rounds_next else " of the same" if explanation.rounds_changes else ""
    return f" to round values{of}" if explanation.round_to else ""


def _words(change: Change, names: Mapping[str, str], units: Mapping[str, str]) -> dict[str, str]:
    unit = f" {units[change.feature]}" if change.feature in units else ""
    before, after = change.texts
    difference, direction = _difference(change)
    return {
        "feature": change.feature,
        "name": names.get(change.feature, change.feature),
        "before": before if before == "missing" else before + unit,
        "after": after if after == "missing" else after + unit,
        "difference": difference + unit if difference else "",
        "direction": direction,
        "arrow": change.arrow,
    }


def _difference(change: Change) -> tuple[str, str]:
    """Return by how much a number changes, as people subtract: in decimals, exactly."""
    ends = (change.before, change.after)
    if any(isinstance(end, str | bool) or not math.isfinite(end) for end in ends):
        return "", ""
    before, after = map(Decimal, change.texts)
    moved = after - before
    return f"{abs(moved).normalize():f}", "more" if moved > 0 else "less"


def _read(path: Path) -> str:
    try:
        return read_bytes(path, LONGEST_TEMPLATE).decode("utf-8-sig")
    except OSError as error:
        raise InvalidOption(f"letter: cannot read {path}: {said(error)}.") from error
    except UnicodeDecodeError as error:
        raise InvalidOption(f"letter: cannot read {path}: it is not UTF-8 ({error.reason}).") from error


TEMPLATE_SECONDS, TEMPLATE_MEMORY, WAIT = 2, 2**29, 30
"""The processor time and the memory in which a template must be filled in, and how long it is waited for."""

LONGEST_TEMPLATE = 2**20
"""The longest template, and the longest letter."""


def _rendered(template: str, words: Mapping[str, object], *, html: bool) -> str:
    """Fill in a template: our own here, any other in a process with limits, since a template can ask for any amount of work."""
    optional("jinja2", extra="letters")
    if template in (TEXT, HTML):
        return filling.fill(template, words, html, LONGEST_TEMPLATE)
    if len(template) > LONGEST_TEMPLATE:
        raise InvalidOption(
            f"letter: a template of {len(template):,} characters; at most {LONGEST_TEMPLATE:,} are read."
        )
    try:
        question = pickle.dumps((template, dict(words), html, LONGEST_TEMPLATE))
    except Exception as error:
        raise InvalidOption(
            f"letter: a field cannot be handed to the template ({type(error).__name__}). Give text and numbers."
        ) from error
    failure, text = _apart(pickle.dumps((sys.path, (TEMPLATE_SECONDS, TEMPLATE_MEMORY), question)))
    if failure:
        raise InvalidOption(f"letter: the template fails: {failure[:500]}")
    return text


def _apart(question: bytes) -> tuple[str, str]:
    """Return what went wrong, or the letter, from another process."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", filling.__file__], input=question, capture_output=True, timeout=WAIT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {WAIT} seconds", ""
    if done.returncode:
        return f"it takes more than {TEMPLATE_SECONDS} seconds, or too much memory", ""
    failure, text = pickle.loads(done.stdout)  # noqa: S301
    return str(failure), str(text)

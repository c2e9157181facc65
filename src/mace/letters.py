"""Letters: an explanation in plain words for the person whom it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from mace.errors import InvalidOption
from mace.explanation import Change, Explanation, show_value
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
We have proved that no smaller change leads to this decision, as we measure changes and within what may be asked of you.
{% else %}
There may be a smaller change that leads to this decision; we have proved only that none is less than {{ share }} of this one.
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
<p>We have proved that no smaller change leads to this decision, as we measure changes and within what may be asked of you.</p>
{% else %}
<p>There may be a smaller change that leads to this decision; we have proved only that none is less than {{ share }} of this one.</p>
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
    text = template.read_text(encoding="utf-8") if isinstance(template, Path) else template
    return _rendered(text if text is not None else HTML if html else TEXT, {**known, **fields}, html=html)


def words_of(
    explanation: Explanation, names: Mapping[str, str], units: Mapping[str, str], number: int
) -> dict[str, object]:
    """Return what a template may use."""
    for name in (*names, *units):
        if name not in explanation.factual:
            raise InvalidOption(f"letter: there is no feature {name!r}.")
    if explanation.status in (Status.UNKNOWN, Status.ERROR):
        raise InvalidOption(f"letter: there is nothing to say yet: {explanation.headline()}")
    if explanation and not 1 <= number <= len(explanation):
        raise InvalidOption(f"letter: number={number}; there are {len(explanation)} counterfactuals.")
    answer = explanation[number - 1] if explanation else None
    changes = [] if answer is None else [_words(change, names, units) for change in answer.changes]
    changed = () if answer is None else {change.feature for change in answer.changes}
    share = 1.0 if answer is None or not answer.distance else answer.lower / answer.distance
    return {
        "decision": show_value(explanation.prediction),
        "target": explanation.target if answer is None else show_value(answer.prediction),
        "changes": changes,
        "number": number,
        "stays": [names.get(name, name) for name in explanation.factual if name not in changed],
        "is_proved": answer is None or answer.status == Status.OPTIMAL,
        "share": f"{math.floor(100 * share)} %",
        "distance": None if answer is None else answer.distance,
        "lower": explanation.lower if answer is None else answer.lower,
        "reason": explanation.reason,
        "factual": {names.get(name, name): text for name, text in explanation.factual_texts.items()},
    }


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


def _rendered(template: str, words: Mapping[str, object], *, html: bool) -> str:
    optional("jinja2", extra="letters")
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    world: Any = SandboxedEnvironment(autoescape=html, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    try:
        text: str = world.from_string(template).render(words)
    except TemplateError as error:
        raise InvalidOption(f"letter: the template fails: {type(error).__name__}: {error}") from error
    return text.strip() + "\n"

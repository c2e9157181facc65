"""Templates of others, filled in by a process with limits, since a template can ask for any amount of work."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Mapping

from mace.errors import InvalidOption
from mace.letters import filling
from mace.models.package import optional

TEMPLATE_SECONDS, TEMPLATE_MEMORY, WAIT = 2, 2**29, 30
"""The processor time and the memory in which a template must be filled in, and how long it is waited for."""

LONGEST_TEMPLATE = 2**20
"""The longest template, and the longest letter."""


def filled(template: str, words: Mapping[str, object], *, html: bool) -> str:
    """Return a Jinja2 template with its words filled in.

    Raises
    ------
    InvalidOption
        The template fails, or needs more than it may.
    """
    optional("jinja2", extra="letters")
    if not isinstance(template, str):
        raise InvalidOption(f"letter: template={template!r:.60}; give its text, or a Path to its file.")
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

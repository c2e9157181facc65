"""Notebooks: one look for explanations, reasons, levers, batches, spaces and audits, which show themselves by ``_repr_html_``."""

from mace.notebook.look import badge, card, paragraph, table
from mace.notebook.shown import batch_html, explanation_html, levers_html, reasons_html, space_html

__all__ = [
    "badge",
    "batch_html",
    "card",
    "explanation_html",
    "levers_html",
    "paragraph",
    "reasons_html",
    "space_html",
    "table",
]

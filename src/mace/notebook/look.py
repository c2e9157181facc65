"""The one look: a style sheet that reaches nothing outside, and the pieces of a card. Every text is escaped here.

Light or dark follows the theme of JupyterLab, VS Code or Colab where there is one, and the system elsewhere. Where a notebook
drops style sheets, as forges do, what is left are plain tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mace.errors import for_page

UNBROKEN = 30
"""Characters of a cell that are never broken into lines."""

_LIGHT = (
    "--mace-ink:#1b1f24;--mace-quiet:#57606a;--mace-page:#fff;--mace-line:#d0d7de;--mace-band:#f4f6f8;"
    "--mace-proved:#00704f;--mace-open:#8f5200;--mace-none:#ad3f00;--mace-new:#005f96;--mace-old:#ad3f00"
)
_DARK = (
    "--mace-ink:#e6e8eb;--mace-quiet:#a3abb5;--mace-page:#15181d;--mace-line:#3b424b;--mace-band:#1f242b;"
    "--mace-proved:#3fcf9f;--mace-open:#f0b429;--mace-none:#ff9a5c;--mace-new:#6cc0f5;--mace-old:#ff9a5c"
)

_DARK_THEMES = ", ".join(
    f"{theme} .mace-card"
    for theme in (
        '[data-jp-theme-light="false"]',
        "body.vscode-dark",
        "body.vscode-high-contrast",
        "html[theme=dark]",
        '[data-theme="dark"]',
        '[data-md-color-scheme="slate"]',
    )
)
_LIGHT_THEMES = ", ".join(
    f"{theme} .mace-card"
    for theme in (
        '[data-jp-theme-light="true"]',
        "body.vscode-light",
        "html[theme=light]",
        '[data-theme="light"]',
        '[data-md-color-scheme="default"]',
    )
)

CARD_STYLE = f"""
.mace-card {{ {_LIGHT}; color:var(--mace-ink); background:var(--mace-page); border:1px solid var(--mace-line);
 border-radius:6px; padding:.7em .9em; font:14px/1.45 system-ui,sans-serif; max-width:72em; box-sizing:border-box; }}
@media (prefers-color-scheme:dark) {{ .mace-card {{ {_DARK} }} }}
{_LIGHT_THEMES} {{ {_LIGHT} }}
{_DARK_THEMES} {{ {_DARK} }}
.mace-card p {{ margin:.3em 0; color:inherit; overflow-wrap:anywhere; }}
.mace-card .mace-title {{ font-weight:600; }}
.mace-card .mace-wide + .mace-title {{ margin-top:1em; }}
.mace-card .mace-quiet {{ color:var(--mace-quiet); }}
.mace-card .mace-side {{ display:flex; flex-wrap:wrap; gap:.5em 1.6em; align-items:flex-start; }}
.mace-card .mace-side > div {{ flex:1 1 auto; min-width:0; max-width:100%; }}
.mace-card .mace-side p {{ font-size:13px; max-width:36em; }}
.mace-card .mace-wide {{ overflow-x:auto; max-width:100%; margin:.4em 0; }}
.mace-card .mace-wide table {{ border-collapse:collapse; border:0; margin:0; width:auto; table-layout:auto; display:table;
 font-variant-numeric:tabular-nums; font-size:13px; color:inherit; }}
.mace-card .mace-wide thead tr, .mace-card .mace-wide tbody tr, .mace-card .mace-wide tbody tr:hover {{
 background:transparent; color:inherit; }}
.mace-card .mace-wide tbody tr:nth-child(even) {{ background:var(--mace-band); }}
.mace-card .mace-wide th, .mace-card .mace-wide td {{ padding:.22em .8em .22em .4em; text-align:left; vertical-align:top;
 border:0; border-bottom:1px solid var(--mace-line); color:inherit; white-space:nowrap; }}
.mace-card .mace-wide td.mace-long {{ min-width:13em; max-width:32em; white-space:normal; overflow-wrap:anywhere; }}
.mace-card .mace-side td.mace-long {{ max-width:18em; }}
.mace-card .mace-wide th {{ font-weight:600; color:var(--mace-quiet); }}
.mace-card .mace-wide .mace-number {{ text-align:right; }}
.mace-card .mace-badge {{ display:inline-block; border:1px solid; border-radius:.7em; padding:0 .55em; font-size:12px; }}
.mace-card .mace-proved {{ color:var(--mace-proved); }}
.mace-card .mace-open {{ color:var(--mace-open); }}
.mace-card .mace-none {{ color:var(--mace-none); }}
.mace-card .mace-new {{ color:var(--mace-new); font-weight:600; }}
.mace-card .mace-old {{ color:var(--mace-old); }}
.mace-card .mace-meter {{ position:relative; height:.7em; max-width:22em; margin:.35em 0; border-radius:.35em;
 background:var(--mace-band); border:1px solid var(--mace-line); }}
.mace-card .mace-meter span {{ position:absolute; top:-.12em; width:.75em; height:.75em; margin-left:-.4em; box-sizing:border-box; }}
.mace-card .mace-meter .mace-old {{ border:2px solid var(--mace-old); border-radius:50%; background:var(--mace-page); }}
.mace-card .mace-meter .mace-new {{ background:var(--mace-new); transform:rotate(45deg) scale(.8); }}
.mace-card .mace-meter .mace-edge {{ width:0; margin:0; top:-.3em; height:1.2em; border-left:2px dashed var(--mace-proved); }}
@media print {{ .mace-card .mace-wide {{ overflow:visible; }} }}
"""
"""Every rule begins with the class of the card, so that nothing else of a page changes."""


def card(*parts: str) -> str:
    """Return pieces of HTML as one card."""
    return f'<div class="mace-card"><style>{CARD_STYLE}</style>{"".join(parts)}</div>'


def paragraph(text: object, *, kind: str = "") -> str:
    """Return a text as a paragraph, its lines kept; ``kind`` is ``"title"`` or ``"quiet"``."""
    inside = for_page(text).replace("\n", "<br>")
    return f'<p class="mace-{kind}">{inside}</p>' if kind else f"<p>{inside}</p>"


def badge(text: object, kind: str) -> str:
    """Return a short text in a frame; ``kind`` is ``"proved"``, ``"open"`` or ``"none"``."""
    return f'<span class="mace-badge mace-{kind}">{for_page(text)}</span>'


def marked(text: object, kind: str) -> str:
    """Return a text in the colour of its kind: ``"old"``, ``"new"``, ``"quiet"``."""
    return f'<span class="mace-{kind}">{for_page(text)}</span>'


def table(heads: Sequence[object], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table that scrolls where it is wider than the page.

    Parameters
    ----------
    heads : sequence
        Of the columns.
    rows : iterable of sequences
        The cells: texts, which are escaped, or :class:`Html`.
    numbers : places
        Columns that are set to the right.
    """

    def cells(tag: str, row: Sequence[object]) -> str:
        shown = [cell if isinstance(cell, Html) else for_page(cell) for cell in row]
        lengths = [len(re.sub(r"<[^>]*>", "", cell)) for cell in shown]
        kinds = [
            ' class="mace-number"' if place in numbers else ' class="mace-long"' if length > UNBROKEN else ""
            for place, length in enumerate(lengths)
        ]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, shown, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="mace-wide"><table><thead><tr>{cells("th", heads)}</tr></thead><tbody>{body}</tbody></table></div>'
    )


class Html(str):
    """HTML that is escaped already."""

    __slots__ = ()

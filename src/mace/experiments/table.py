"""A table for the terminal, for Markdown and for LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_SPECIAL = str.maketrans({"%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$"})
_SIGNS = {
    "ε": r"$\epsilon$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "δ": r"$\delta$",
}


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Text cells under a head, with notes.

    Attributes
    ----------
    name : str
        What ``mace reproduce --table`` calls it.
    title : str
        What it shows; the paper's number in front.
    head : tuple of str
        The columns.
    rows : tuple of tuples of str
        The cells; where the paper has a value it stands in parentheses behind ours.
    notes : tuple of str
        Why values differ from the paper's, what was assumed.
    """

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def rich(self) -> RichTable:
        """Return the table for a terminal."""
        from rich.table import Table as RichTable

        made = RichTable(
            *self.head, title=self.title, title_justify="left", caption="\n".join(self.notes), caption_justify="left"
        )
        for row in self.rows:
            made.add_row(*row)
        return made

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.head, tuple("---" if k == 0 else "---:" for k in range(len(self.head))), *self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        notes = "".join(f"\n- {note}" for note in self.notes)
        return f"### {self.title}\n\n{body}\n" + (f"{notes}\n" if notes else "")

    def latex(self) -> str:
        """Return the table as a LaTeX ``table`` for the package ``booktabs``."""
        lines = [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                r"\begin{table*}",
                rf"\caption{{{_latex(' '.join((self.title + '.', *self.notes)))}}}",
                rf"\begin{{tabular}}{{l{'r' * (len(self.head) - 1)}}}",
                r"\toprule",
                " & ".join(map(_latex, self.head)) + r" \\",
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table*}",
            ]
        )


def _latex(text: str) -> str:
    text = text.translate(_SPECIAL)
    for sign, command in _SIGNS.items():
        text = text.replace(sign, command)
    return text


def beside(ours: str, paper: float | str | None) -> str:
    """Return a cell: our value, and the paper's in parentheses where it has one."""
    if paper is None:
        return ours
    return f"{ours} ({paper:g})" if isinstance(paper, float | int) else f"{ours} ({paper})"

"""Draws docs/rooms.svg from the imports of ``src/mace``: which room builds on which.

``make docs`` runs it; a test keeps the picture true.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "mace"
PICTURE = ROOT / "docs" / "rooms.svg"

WIDTH, ROW, HIGH, MARGIN, LABEL = 1000, 84, 34, 24, 130

Graph = dict[str, set[str]]


def imported(path: Path) -> Iterator[str]:
    """Yield the rooms that a file imports from, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mace."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.module == "mace":
            yield from (alias.name for alias in node.names)


def rooms_of(order: list[str]) -> Graph:
    """Return which rooms each room imports from."""
    graph: Graph = {room: set() for room in order}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room in graph:
            graph[room] |= {other for other in imported(path) if other in graph and other != room}
    return {room: used for room, used in graph.items() if used or any(room in others for others in graph.values())}


def reduced(graph: Graph) -> Graph:
    """Return the graph without the arrows that others imply."""

    def below(room: str) -> set[str]:
        return graph[room].union(*map(below, graph[room]))

    return {room: used - set().union(*map(below, used)) for room, used in graph.items()}


def drawn(layers: dict[str, tuple[str, ...]], graph: Graph) -> str:
    """Return the picture: the ground layer at the bottom, an arrow from a room to each that it builds on."""
    rows = [(name, [room for room in rooms if room in graph]) for name, rooms in reversed(layers.items())]
    height = ROW * len(rows) + 2 * MARGIN
    place: dict[str, tuple[float, float, float]] = {}
    for number, (_, rooms) in enumerate(rows):
        wide = (WIDTH - LABEL - 2 * MARGIN) / len(rooms)
        for k, room in enumerate(rooms):
            place[room] = LABEL + MARGIN + wide * (k + 0.5), MARGIN + ROW * (number + 0.5), min(wide - 18, 150)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="14">',
        "<title>The rooms of mace, from the ground up, and what each builds on</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#7a8794"/></marker></defs>',
    ]
    for number, (name, _) in enumerate(rows):
        top = MARGIN + ROW * number
        if number % 2 == 0:
            parts.append(f'<rect x="0" y="{top}" width="{WIDTH}" height="{ROW}" fill="#f4f6f8"/>')
        parts.append(f'<text x="{MARGIN}" y="{top + ROW / 2 + 5}" fill="#5a6570" font-style="italic">{name}</text>')
    ground = set(rows[-1][1])
    for room, used in graph.items():
        parts += [_arrow(place[room], place[other]) for other in sorted(used - ground)]
    for room, (x, y, wide) in place.items():
        parts.append(
            f'<rect x="{x - wide / 2:.1f}" y="{y - HIGH / 2:.1f}" width="{wide:.1f}" height="{HIGH}" rx="6" fill="#fff" stroke="#2f5d8a"/>'
        )
        parts.append(f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" fill="#1d2b38">{room}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _arrow(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    """Return an arrow: downward to another row, or sideways to a neighbour of the same row."""
    (x, y, wide), (to_x, to_y, to_wide) = start, end
    if y == to_y:
        side = 1 if to_x > x else -1
        path = f"M{x + side * wide / 2:.1f} {y:.1f}L{to_x - side * (to_wide / 2 + 2):.1f} {to_y:.1f}"
        if abs(to_x - x) > (wide + to_wide) / 2 + 24:
            bend = y - HIGH
            path = f"M{x:.1f} {y - HIGH / 2:.1f}Q{(x + to_x) / 2:.1f} {bend:.1f} {to_x:.1f} {to_y - HIGH / 2 - 2:.1f}"
    else:
        down = (to_y - y) / 2
        path = f"M{x:.1f} {y + HIGH / 2:.1f}C{x:.1f} {y + down:.1f} {to_x:.1f} {to_y - down:.1f} {to_x:.1f} {to_y - HIGH / 2 - 2:.1f}"
    return f'<path d="{path}" fill="none" stroke="#7a8794" marker-end="url(#end)"/>'


def picture() -> str:
    """Return the picture of the package as it is."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from layers import LAYERS

    order = [room for rooms in LAYERS.values() for room in rooms]
    return drawn(LAYERS, reduced(rooms_of(order)))


if __name__ == "__main__":
    PICTURE.write_text(picture())
    sys.stdout.write("docs/rooms.svg is up to date.\n")

"""Draw the pictures of docs/explain and of the first page: ``python docs/idea.py``. The models in them are real, and so are the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.patches import Polygon
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace

HERE = Path(__file__).parent / "pictures"
REFUSED, ACCEPTED, PERSON, ANSWER, PROVED = "#f3e1c8", "#cfe3f7", "#d9822b", "#2c5fa8", "#2e7d4f"
NAMES = ["duration_months", "credit_amount"]
LABELS = {"duration_months": "duration, months", "credit_amount": "amount, DM"}


class Plane:
    """A forest over two features, so that all of it can be drawn, a person whom it refuses, and the nearest accepted row."""

    def __init__(self) -> None:
        data = mace.datasets.load("german")
        frame = data.frame[NAMES]
        self.space = mace.FeatureSpace({"duration_months": mace.real(4, 72), "credit_amount": mace.real(250, 18500)})
        forest = RandomForestClassifier(20, min_samples_leaf=60, class_weight="balanced", random_state=0)
        self.model = forest.fit(frame.astype(float), data.labels)
        self.person = {"duration_months": 36.0, "credit_amount": 5800.0}
        self.explanation = mace.Explainer(self.model, self.space).explain(self.person, target="good", round_to=None)
        self.best = self.explanation[0]

    @property
    def widths(self) -> np.ndarray[Any, Any]:
        """The width of each feature's range."""
        return np.array([72 - 4, 18500 - 250], dtype=float)

    def draw(
        self, ax: Any, title: str, *, radius: float | None = None, answer: bool = True, color: str = PROVED
    ) -> None:
        """Draw what the model decides, the person, the answer, and the ball of a radius."""
        across, up = np.linspace(20, 56, 220), np.linspace(250, 12000, 220)
        grid = pd.DataFrame({"duration_months": np.tile(across, 220), "credit_amount": np.repeat(up, 220)})
        good = (self.model.predict(grid) == "good").reshape(220, 220)
        ax.pcolormesh(across, up, good, cmap=ListedColormap([REFUSED, ACCEPTED]), rasterized=True)
        start, end = (np.array([row[name] for name in NAMES]) for row in (self.person, self.best.values))
        if radius is not None:
            corners = start + 2 * radius * self.widths * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
            ax.add_patch(Polygon(corners, fill=False, edgecolor=color, linewidth=2))
        if answer:
            arrow = {"arrowstyle": "-|>", "color": ANSWER, "linewidth": 2}
            ax.annotate("", end, start, arrowprops=arrow)
            ax.plot(*end, "o", color=ANSWER, markersize=8)
        ax.plot(*start, "o", color=PERSON, markersize=9)
        ax.set(xlim=(20, 56), ylim=(250, 12000), xlabel=LABELS[NAMES[0]], ylabel=LABELS[NAMES[1]])
        ax.set_title(title, fontsize=11)


def keep(name: str, figure: Any) -> None:
    """Write a picture."""
    figure.savefig(HERE / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight", dpi=110)
    plt.close(figure)


def question(plane: Plane) -> None:
    """The person, the answer, and the ball in which it is proved that there is nothing."""
    figure, ax = plt.subplots(figsize=(5.6, 4.2))
    plane.draw(ax, "", radius=plane.best.lower)
    x, y = plane.best.values["duration_months"], plane.best.values["credit_amount"]
    ax.text(20.6, 3250, "accepted", fontsize=11, color=ANSWER)
    ax.text(20.6, 11100, "refused", fontsize=11, color="#7a5a2b")
    ax.text(36.7, 6000, "the person", fontsize=11, color=PERSON)
    ax.text(x + 0.8, y - 1500, "the nearest\naccepted row", fontsize=11, color=ANSWER)
    ax.text(42.2, 7400, "proved: nothing\naccepted inside", fontsize=11, color=PROVED)
    keep("idea-question", figure)


def home() -> None:
    """The applicant of the first page: two features of all twenty, the others as they are."""
    data = mace.datasets.load("german")
    model = make_pipeline(mace.Encoder(data.space), DecisionTreeClassifier(max_depth=6, random_state=0))
    model.fit(data.frame, data.labels)
    person = data.frame.iloc[4]
    best = mace.Explainer(model, data.space).explain(person, target="good")[0]
    across, up = np.arange(18, 31), np.linspace(3800, 5900, 60).round().astype(int)
    rows = data.frame.iloc[[4] * len(across) * len(up)].copy()
    rows["duration_months"], rows["credit_amount"] = np.tile(across, len(up)), np.repeat(up, len(across))
    good = (model.predict(rows) == "good").reshape(len(up), len(across))
    figure, ax = plt.subplots(figsize=(5, 3.6))
    sides = np.append(across[0] - 1, across)  # months are whole: what holds of 22 is drawn up to 22
    heights = np.append(up, 2 * up[-1] - up[-2])
    ax.pcolormesh(sides, heights, good, cmap=ListedColormap([REFUSED, ACCEPTED]), rasterized=True)
    start, end = (np.array([row[name] for name in NAMES]) for row in (person, best.values))
    widths = np.array([float(data.space[name].range) for name in NAMES]) * len(data.space)
    corners = start + best.lower * widths * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    ax.add_patch(Polygon(corners, fill=False, edgecolor=PROVED, linewidth=2))
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": ANSWER, "linewidth": 2})
    ax.plot(*end, "o", color=ANSWER, markersize=9)
    ax.plot(*start, "o", color=PERSON, markersize=9)
    ax.text(start[0] + 0.3, start[1] + 60, "now", fontsize=12, color=PERSON)
    ax.text(end[0] - 0.3, end[1] + 60, "instead", fontsize=12, color=ANSWER, ha="right")
    ax.text(start[0] + 1.3, start[1] + 420, "proved: nothing\naccepted inside", fontsize=12, color=PROVED)
    ax.text(18, 3850, "accepted", fontsize=12, color=ANSWER)
    ax.text(29.8, 3850, "refused", fontsize=12, color="#7a5a2b", ha="right")
    ax.set(xlabel=LABELS[NAMES[0]], ylabel=LABELS[NAMES[1]], xlim=(17.5, 30))
    keep("home", figure)


def bisection(plane: Plane) -> None:
    """The paper's search: ask whether anything accepted lies within a distance; halve what is open."""
    optimum = plane.best.distance
    low, high, asked = 0.0, 8 * optimum / 3, []
    for _ in range(4):
        middle = (low + high) / 2
        found = middle >= optimum
        asked.append((middle, found))
        low, high = (low, middle) if found else (middle, high)
    figure, axes = plt.subplots(1, 4, figsize=(12, 3.3), sharey=True)
    for number, (ax, (radius, found)) in enumerate(zip(axes, asked, strict=True), start=1):
        title = f"{number}. within {radius:.3f}? {'yes' if found else 'no'}"
        plane.draw(ax, title, radius=radius, answer=False, color=ANSWER if found else PROVED)
        if number > 1:
            ax.set_ylabel("")
    keep("idea-bisection", figure)


def program() -> None:
    """A small tree, its program, and its formulas: three ways to say the same."""
    figure, ax = plt.subplots(figsize=(12, 3))
    ax.axis("off")
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "#666"}

    def leaf(color: str) -> dict[str, str]:
        return {"boxstyle": "round", "facecolor": color, "edgecolor": "#666"}

    lines = [
        ((0.17, 0.85), (0.08, 0.55)),
        ((0.17, 0.85), (0.26, 0.55)),
        ((0.26, 0.55), (0.18, 0.2)),
        ((0.26, 0.55), (0.34, 0.2)),
    ]
    for (x0, y0), (x1, y1) in lines:
        ax.plot([x0, x1], [y0, y1], color="#666", linewidth=1, zorder=0)
    ax.text(0.17, 0.85, "duration <= 22", ha="center", bbox=box)
    ax.text(0.08, 0.55, "good", ha="center", bbox=leaf(ACCEPTED))
    ax.text(0.26, 0.55, "savings >= 500", ha="center", bbox=box)
    ax.text(0.18, 0.2, "good", ha="center", bbox=leaf(ACCEPTED))
    ax.text(0.34, 0.2, "bad", ha="center", bbox=leaf(REFUSED))
    code = "if duration <= 22:\n    return good\nelif savings >= 500:\n    return good\nelse:\n    return bad"
    ax.text(0.42, 0.5, code, family="monospace", fontsize=10, va="center")
    logic = "\n".join(
        [
            "good  =  duration <= 22",
            "     or  duration > 22 and savings >= 500",
            "",
            "near  =  |duration - 24| / 68  <=  0.01",
            "",
            "ask:  good  and  near  and  plausible ?",
        ]
    )
    ax.text(0.63, 0.5, logic, family="monospace", fontsize=10, va="center")
    for x, text in ((0.2, "the model"), (0.5, "as a program"), (0.8, "as a formula")):
        ax.text(x, 1.04, text, ha="center", fontsize=12, weight="bold")
    ax.set(xlim=(0, 1), ylim=(0, 1.1))
    keep("idea-program", figure)


def floats() -> None:
    """Where a tree really changes its mind: on a float32, not on its threshold."""
    model = DecisionTreeClassifier().fit([[0.1], [0.3]], [0, 1])
    threshold = float(model.tree_.threshold[0])
    near = np.float32(threshold)
    step = float(np.spacing(near))
    values = threshold + np.linspace(-1.6, 1.6, 801) * step
    says = np.array([model.predict([[value]])[0] for value in values[::8]])
    figure, ax = plt.subplots(figsize=(9, 1.9))
    ax.pcolormesh(
        values[::8], [0, 1], [says, says], cmap=ListedColormap([REFUSED, ACCEPTED]), shading="nearest", rasterized=True
    )
    for k in (-1, 0, 1):
        at = float(near) + k * step
        ax.plot([at, at], [-0.3, 1.3], color="#444", linewidth=1.5)
        ax.text(at, 1.42, "a float32" if k else "the float32 next to it", ha="center", fontsize=9)
    ax.plot([threshold] * 2, [-0.5, 1.5], color=PERSON, linewidth=2, linestyle="--")
    ax.text(threshold, -0.85, "the tree's threshold", ha="center", fontsize=10, color=PERSON)
    ax.text(values[20], 0.05, "says 0", fontsize=11)
    ax.text(values[-150], 0.05, "says 1", fontsize=11)
    ax.set(xlim=(values[0], values[-1]), ylim=(-0.5, 1.5))
    ax.axis("off")
    keep("idea-floats", figure)


def main() -> None:
    """Draw them all."""
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "mace", "svg.fonttype": "path", "font.size": 10})
    plane = Plane()
    home()
    question(plane)
    bisection(plane)
    program()
    floats()


if __name__ == "__main__":
    main()

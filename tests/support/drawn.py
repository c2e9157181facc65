"""Answers of every kind of feature to draw, and whether what was drawn can be read."""

from __future__ import annotations

import random
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import mace
from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.score import AnswerScores, Threshold
from mace.problem import Status
from mace.space import Categorical, FeatureSpace, Integer, Ordinal, Real
from mace.space.features import Feature, Value

NAMES = ("income $ per year", "größe_Δ_σ", "personal_status_and_sex_of_the_applicant", "x", "_hidden", "a" * 90)
LONG = "a very long category that no column could ever hold in one line, at all, for 5 $"
KINDS: tuple[Feature, ...] = (
    mace.real(0, 123456.789, missing=True),
    mace.categorical(["rent", "own", LONG]),
    mace.ordinal(["< 1 year", "1 to 4 years", "4 to 7 years", ">= 7 years and of no known end"]),
    mace.date("2000-01-01", "2024-12-31"),
    mace.integer(0, 72),
    mace.categorical(["yes", "no", None]),
)


def space_of(features: int) -> FeatureSpace:
    """Return a space of features of every kind, some of them with awkward names."""
    return FeatureSpace(
        {f"{NAMES[number % 6]} {number}": KINDS[(number + number // 6) % 6] for number in range(features)}
    )


def answers_to_draw(
    features: int, answers: int = 1, *, of: str = "P(good)", threshold: Threshold = 0.5, seed: int = 0
) -> Explanation:
    """Return an explanation whose answers change every feature."""
    space, rng = space_of(features), random.Random(seed)
    factual = tuple(_value(feature, rng, None) for feature in space.values())
    made = []
    for number in range(1, answers + 1):
        row = tuple(_value(feature, rng, now) for feature, now in zip(space.values(), factual, strict=True))
        known: Any = {"lower": 0.1, "status": Status.OPTIMAL, "prediction": "good", "solver": "trees", "seconds": 0.0}
        made.append(Counterfactual.of(space, factual, row, distance=0.1 * number, **known))
    explanation = Explanation(
        tuple(made), Status.OPTIMAL, space.values_of(factual), "bad", "good", "l1", 0.1, space=space
    )
    return explanation.with_scores(AnswerScores(of, threshold, [0.38, *(0.5 + 0.03 * n for n in range(answers))]))


def _value(feature: Feature, rng: random.Random, now: Value) -> Value:
    """Return a value other than the one of now; now and then it is missing."""
    while True:
        match feature:
            case Ordinal(levels) | Categorical(levels):
                value: Value = rng.randrange(len(levels))
            case Integer():
                value = rng.randint(int(feature.low), int(feature.high))
            case Real():
                value = None if rng.random() < 0.3 else round(rng.uniform(feature.low, feature.high), 2)
        if value != now:
            return value


def shown_texts(figure: Any) -> list[Text]:
    """Return the texts that a figure shows: not those of axes that are off, nor of ticks outside the limits."""
    FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    hidden: set[Text] = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            found = set(axis.findobj(Text))
            drawn = {text for tick in axis._update_ticks() for text in tick.findobj(Text)} | {axis.label}
            hidden |= found - drawn if ax.axison else found
    texts = figure.findobj(lambda each: isinstance(each, Text) and each not in hidden)
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def unreadable(figure: Any) -> list[str]:
    """Return what cannot be read: texts over each other, and texts beyond the edge of the figure."""
    texts = shown_texts(figure)
    renderer = figure.canvas.get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    found = []
    for number, (text, box) in enumerate(boxes):
        if box.x0 < 0 or box.y0 < 0 or box.x1 > figure.bbox.width or box.y1 > figure.bbox.height:
            found.append(f"{text!r} leaves the figure")
        for other, beside in boxes[:number]:
            if (
                min(box.x1, beside.x1) - max(box.x0, beside.x0) > 0
                and min(box.y1, beside.y1) - max(box.y0, beside.y0) > 0
            ):
                found.append(f"{text!r} lies over {other!r}")
    return found

"""Forms: their programs, formulas and exact scores say what the real model does."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from mixed_space import SPACE, random_points, training
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from mace import Encoder
from mace.distances import point_values
from mace.forms import Outcomes, TreeEnsemble, winner
from mace.language import characteristic, holds, run
from mace.language.run import evaluate
from mace.models import read
from mace.space import Point

FAMILIES = {
    "tree": DecisionTreeClassifier(random_state=0),
    "shallow tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "forest": RandomForestClassifier(9, random_state=0),
    "shallow forest": RandomForestClassifier(7, max_depth=4, min_samples_leaf=3, random_state=0),
    "extra trees": ExtraTreesClassifier(7, max_depth=5, random_state=0),
    "logistic": LogisticRegression(),
    "no intercept": LogisticRegression(fit_intercept=False),
    "svc": LinearSVC(),
    "mlp": MLPClassifier((4, 3), random_state=0, max_iter=300),
    "identity mlp": MLPClassifier((3,), activation="identity", random_state=0, max_iter=300),
}


def near_edges(form: Any) -> list[Point]:
    """Return points on and one float beside every threshold of every numeric column."""
    if not isinstance(form, TreeEnsemble):
        return []
    points = []
    base = random_points(1)[0]
    for column, edge in {
        (int(c), float(e)) for c, e, left in zip(form.column, form.edge, form.left, strict=True) if left >= 0
    }:
        feature = form.columns[column].feature
        if feature == 0:
            values: list[int | float] = [edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf)]
        elif feature == 1:
            values = [math.floor(edge), math.ceil(edge), math.floor(edge) + 1]
        else:
            continue
        points += [(*base[:feature], value, *base[feature + 1 :]) for value in values]
    return points


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("encoding", [("onehot", "thermometer"), ("codes", "codes")], ids="-".join)
@pytest.mark.parametrize("family", FAMILIES)
def test_program_formula_and_real_model_agree(family: str, encoding: tuple[str, str], classes: int) -> None:
    frame, labels = training(classes)
    model = make_pipeline(Encoder(SPACE, categorical=encoding[0], ordinal=encoding[1]), clone(FAMILIES[family])).fit(
        frame, labels
    )
    reading = read(model, SPACE)
    form: Any = reading.form
    points = random_points(300) + near_edges(form)
    asked = reading.ask(points)
    eta = (
        form.rounding
        if isinstance(form, TreeEnsemble)
        else form.rounding(tuple((Fraction(-5), Fraction(4 * 10**7)) for _ in SPACE))
    )
    program = form.program()
    decided = 0
    for point, code in zip(points, asked, strict=True):
        scores = form.exact_scores(point)
        scores = (Fraction(0), *scores) if len(scores) == 1 else scores
        margin = max(scores) - sorted(scores)[-2]
        if margin <= eta and eta:
            continue
        decided += 1
        assert winner(scores) == code, (point, scores)
        if decided <= 60:
            assert run(program, point_values(SPACE, point)) == code
    assert decided > 0.95 * len(points)
    if isinstance(form, TreeEnsemble):
        leaves = form.leaves(points)
        for row, point in list(zip(leaves, points, strict=True))[:50]:
            sums = [sum(Fraction(float(v)) for v in form.value[row, k]) for k in range(form.value.shape[1])]
            assert tuple(sums) == form.exact_scores(point)


@pytest.mark.parametrize("family", ["shallow tree", "shallow forest", "logistic", "mlp"])
def test_the_formula_holds_exactly_where_the_real_model_decides_so(family: str) -> None:
    """The solver's own formula, evaluated at the variables that running the program gives."""
    frame, labels = training(3)
    model = make_pipeline(Encoder(SPACE), clone(FAMILIES[family])).fit(frame, labels)
    reading = read(model, SPACE)
    program = reading.form.program()
    formula = characteristic(program, result="y")
    for point in random_points(40):
        code = run(program, point_values(SPACE, point))
        values = variables_of(program, point)
        assert holds(formula, {**values, "y": code})
        assert not holds(formula, {**values, "y": code + 1})


def variables_of(program: Any, point: Point) -> dict[str, Fraction | None]:
    """Run the single-assignment form, keeping every variable."""
    from mace.language import single_assignment
    from mace.language.syntax import Assign, If, Return, Sequence

    values = dict(point_values(SPACE, point))
    pending = [single_assignment(program).body]
    while pending:
        match pending.pop():
            case Assign(name, value):
                values[name] = evaluate(value, values)
            case Sequence(parts):
                pending.extend(reversed(parts))
            case If(guard, then, otherwise):
                pending.append(then if holds(guard, values) else otherwise)
            case Return() | _:
                pass
    return values


def test_sums_of_pure_leaves_are_exact_and_others_have_a_bound() -> None:
    frame, labels = training(2)
    pure = read(make_pipeline(Encoder(SPACE), RandomForestClassifier(20, random_state=0)).fit(frame, labels), SPACE)
    graded = read(
        make_pipeline(Encoder(SPACE), RandomForestClassifier(20, max_depth=3, random_state=0)).fit(frame, labels), SPACE
    )
    assert pure.form.rounding == 0  # type: ignore[attr-defined]
    assert 0 < graded.form.rounding < 1e-12  # type: ignore[attr-defined]


def test_goals_accept_what_they_name() -> None:
    assert Outcomes(frozenset([Fraction(1)])).accepts(Fraction(1))
    assert not Outcomes(frozenset([Fraction(1)]), negated=True).accepts(Fraction(1))

"""``treecf``'s exact engine on the same question: the same cost, the same domain, the same strict majority.

A category's splits on codes are given to it as sets of codes, so that any change of a category costs the same, as in our
distance; ranges become ``Range``, whole numbers and levels its ``"integer"`` policy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from treecf import Counterfactual, Explainer, Infeasible, Range, Target
from treecf.ir.model import CategoricalFeature, EnsembleIR, Link, Node
from treecf.ir.parsers import parse_model
from trees import Setting

from mace.space import Categorical, Integer, Ordinal, Real

Answer = tuple[str, tuple[float, ...] | None, float]

MARGIN = 1e-9
"""How far above a tie the score must be; 1e-6 where the library adds in float32."""


def make(setting: Setting, *, warm_start: bool) -> Callable[[Any, float], Answer]:
    """Return a function from a row and a time limit to the engine's claim, its point and its lower bound."""
    estimator = setting.model[-1] if hasattr(setting.model, "steps") else setting.model
    ir = with_category_sets(parse_model(estimator), setting)
    names = ir.feature_names
    features = list(setting.space.values())
    explainer = Explainer(
        ir,
        constraints=[Range(name, *ends(f)) for name, f in zip(names, features, strict=True) if ends(f) is not None],
        normalizers=np.array([float(feature.range or 1) for feature in features]),
        weights=dict.fromkeys(names, 1 / len(names)),
        value_policy={
            name: "integer" for name, f in zip(names, features, strict=True) if isinstance(f, Integer | Ordinal)
        },
    )
    target = Target.raw(op=">=", value=1e-6 if ir.link is Link.SIGMOID else 0.5 + MARGIN)

    def solve(row: Any, limit: float) -> Answer:
        factual = np.array(setting.space.point(row), dtype=float)
        answer = explainer.explain(
            factual,
            target,
            backend="exact",
            time_budget_s=limit,
            node_budget=10**15,
            seed=0,
            warm_start=warm_start,
        )
        if isinstance(answer, Infeasible):
            return ("infeasible" if answer.proof == "certified" else "unknown"), None, 0.0
        assert isinstance(answer, Counterfactual)
        claim = "optimal" if answer.proof == "optimal" else "feasible"
        return claim, tuple(map(float, answer.x_cf)), float(answer.solver_stats["lower_bound"])

    return solve


def ends(feature: Any) -> tuple[float, float] | None:
    match feature:
        case Real() | Integer():
            return float(feature.low), float(feature.high)
        case Ordinal():
            return 0.0, feature.size - 1.0
    return None


def with_category_sets(ir: EnsembleIR, setting: Setting) -> EnsembleIR:
    """Return the model with the splits on a category's code as sets of codes."""
    sizes = {j: f.size for j, f in enumerate(setting.space.values()) if isinstance(f, Categorical)}
    if not sizes:
        return ir

    def changed(node: Node) -> Node:
        if node.feature not in sizes or node.threshold is None:
            return node
        codes = frozenset(code for code in range(sizes[node.feature]) if code <= node.threshold)
        return dataclasses.replace(node, threshold=None, op=None, categories=codes)

    trees = tuple(dataclasses.replace(tree, nodes=tuple(map(changed, tree.nodes))) for tree in ir.trees)
    categorical = {j: CategoricalFeature(cardinality=size) for j, size in sizes.items()}
    return dataclasses.replace(ir, trees=trees, categorical=categorical)

"""Sums of networks and of polylines of networks, as one network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mace.exact import UNIT, Floats
from mace.forms import Composite, Curved, Network, Polyline, Voting, Weighted
from mace.models.networks.piecewise import Lowering, largest_values
from mace.models.networks.rows import Tensor
from mace.space import Column, Filled


def lowered(form: Composite) -> Network | None:
    """Return a composite as one network; ``None`` where it holds trees, votes or sigmoids.

    A polyline is its first height and a unit a knot, times the change of slope there. Slopes that are rounded to floats move it by at most
    3u times its rise, which its padding covers; differences of floats and products with the factors are off by a few u of themselves, which
    the network's own bound on rounding covers.
    """
    networks: list[Network] = []
    for part in form.parts:
        is_sigmoid = isinstance(part, Curved) and part.curve is None
        if isinstance(part, Voting) or is_sigmoid or not isinstance(part.form, Network) or part.form.unit != UNIT:
            return None
        networks.append(part.form)
    place: dict[Column, int] = {}
    columns: list[Column] = []
    for column in (column for network in networks for column in network.columns):
        if _unnamed(column) not in place:
            place[_unnamed(column)] = len(columns)
            columns.append(column)
    lowering = Lowering(largest_values(form.space, tuple(columns)), UNIT)
    inputs, scores = lowering.columns(), dict[int, Tensor]()
    terms: list[Tensor] = []
    factors: list[Floats] = []
    base = form.base.copy()
    for part, network in zip(form.parts, networks, strict=True):
        if id(network) not in scores:
            order = np.array([[place[_unnamed(column)] for column in network.columns]])
            scores[id(network)] = lowering.run(inputs.arranged(order), network)
        score = scores[id(network)]
        match part:
            case Weighted():
                terms.append(score)
                factors.append(part.factors.T)
            case Curved(_, Polyline() as curve, factor):
                knots, heights = np.array(curve.knots), np.array(curve.heights)
                slopes = np.concatenate([[0.0], np.diff(heights) / np.diff(knots), [0.0]])
                terms.append(lowering.bend(lowering.offset(score, -knots[None, :])))
                factors.append(np.outer(np.diff(slopes), factor))
                base = base + heights[0] * factor
    made = lowering.dense(lowering.concatenate(terms, 1), np.concatenate(factors), base, steps=4)
    return lowering.network(made, form.space, tuple(columns))


def _unnamed(column: Column) -> Column:
    """Return a column without its name, by which two that hold the same differ."""
    return replace(column, name="") if isinstance(column, Filled) else Column("", column.feature, column.table)

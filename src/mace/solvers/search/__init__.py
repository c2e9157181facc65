"""A search that only asks the model, for models that cannot be read: answers are valid, and nothing is proved.

From rows of one and two changes, and random ones, it goes nearer: undoing changes, taking them back by halves, exchanging them. It is
seeded and counts rows, so that without a time limit it gives the same answer always.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mace.constraints.views import View
from mace.forms import is_unread
from mace.problem import INTERRUPTED, NOT_PROVED, NOT_READ, Bounds, Limits, Problem
from mace.solvers.search.axes import Axes, Floats
from mace.solvers.search.moves import Moves
from mace.solvers.search.trials import Ended, Trials

TAKES = (View.ROWS,)
CUTS_BOXES = IS_AUTOMATIC = False

LARGEST_NUMBER = 1e150
"""Numbers up to here can be multiplied as floats."""

ELITE = 5
"""How many valid rows, each with its own set of changes, a round starts from."""

WORTH_GOING_ON = 0.98
"""A round starts from a row again only where it has come nearer by this factor."""

IDLE_ROUNDS = 2
"""After how many rounds in a row in which nothing comes nearer by that factor the search ends."""

SEVERAL, MUTATED = 2000, 60
"""How many random rows with several changes are tried at first, and how many random changes of each row in every round."""

REFINED = 2
"""Rows whose changes are taken back to within the accuracy in the end."""

ROUNDS_WITHOUT = 6
"""After how many rounds in a row that come no nearer to a first valid row the search for one ends."""

LINE_PARTS = 32
"""Into how many parts a line search cuts what is left."""

MOST_CONFIRMED = 50
"""Rows that are asked alone, nearest first, until one is valid that way too."""

ONLY_ASKED = f"{NOT_PROVED} the search only asks the model"


def supports(problem: Problem) -> str:
    """Return why the search cannot take the features; it takes every model and distance."""
    for name, feature in problem.space.items():
        ends = (getattr(feature, "low", 0), getattr(feature, "high", 0))
        if max(map(abs, ends)) > LARGEST_NUMBER:
            return f"the range of {name!r} is too large for floats"
    return ""


def solve(problem: Problem, limits: Limits) -> Bounds:
    """Look for a near counterfactual; lower stays 0, and the answer is never proved."""
    return AskingSearch(problem, limits).run()


class AskingSearch:
    """One search."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem, self.axes = problem, Axes(problem)
        self.trials, self.reason = Trials(problem, limits, self.axes), ""

    def run(self) -> Bounds:
        """Search, and return the nearest row that is valid when asked alone."""
        try:
            if not self.axes.is_empty:
                self._search()
        except Ended as ended:
            self.reason = str(ended)
        except KeyboardInterrupt:
            self.reason = INTERRUPTED
        return self._bounds()

    def _bounds(self) -> Bounds:
        doubt = NOT_READ if is_unread(self.problem.form) else ONLY_ASKED
        reason = f"{doubt}; {self.reason}" if self.reason else doubt
        asked = self.trials.asked
        for _, row in self.trials.valid[:MOST_CONFIRMED]:
            point = self.axes.point(row)
            asked += 1
            if self.problem.is_valid(point):
                upper = self.problem.distance(point)
                return Bounds(Fraction(0), upper, point, reason=reason, calls=asked, is_proved=False)
        none = f"none found among {asked:,} rows; {reason}"
        return Bounds(Fraction(0), reason=none, calls=asked, is_proved=False)

    def _search(self) -> None:
        moves = Moves(self.problem, self.axes)
        self._try(np.concatenate([moves.home(), moves.singles()]))
        self._try(moves.several(SEVERAL, self.trials.best))
        self._find_first(moves)
        self._descend(moves)
        for _, row in sorted(self.trials.elite.values())[:REFINED]:
            self._refine(np.array(row))

    def _try(self, rows: Floats) -> None:
        """Ask about the rows that are nearer than the best."""
        self.trials.misses(rows[self.axes.measures(rows) < self.trials.best])

    def _find_first(self, moves: Moves) -> None:
        """Look for a valid row: from where the model comes nearest to the goal, as far as it says so, and anywhere."""
        if not self.trials.valid:
            self.trials.misses(moves.every())
        rows, least, idle = moves.anywhere(), math.inf, 0
        while not self.trials.valid and idle < ROUNDS_WITHOUT:
            misses = self.trials.misses(rows)
            idle = 0 if misses.min() < least else idle + 1
            least, nearest = min(least, misses.min()), rows[np.argsort(misses, kind="stable")[:ELITE]]
            rows = np.concatenate([nearest, *(moves.changed(row) for row in nearest), moves.anywhere()])

    def _descend(self, moves: Moves) -> None:
        """Go on from the best rows until neither what lies around them nor random rows are much nearer."""
        done: dict[bytes, float] = {}
        idle = 0
        while self.trials.valid and idle < IDLE_ROUNDS:
            best, rows = self.trials.best, [moves.several(SEVERAL // 4, self.trials.best)]
            for kind, (measure, row) in sorted(self.trials.elite.items(), key=lambda each: each[1])[:ELITE]:
                if measure < WORTH_GOING_ON * done.get(kind, math.inf):
                    done[kind] = measure
                    rows.append(moves.nearer(np.array(row)))
                rows += [moves.mutated(np.array(row), MUTATED), moves.jittered(np.array(row), MUTATED)]
            self.trials.misses(np.concatenate(rows))
            idle = 0 if self.trials.best < WORTH_GOING_ON * best else idle + 1

    def _refine(self, row: Floats) -> None:
        """Take back each ordered change as far as the model allows, by cutting what is left into parts again and again."""
        accuracy = float(self.problem.accuracy) / 4
        for j, axis in enumerate(self.axes.each):
            if not axis.is_ordered or np.isnan(row[j] + axis.home):
                continue
            refused = axis.home
            while True:
                rows = np.repeat(row[None, :], LINE_PARTS - 1, axis=0)
                rows[:, j] = axis.snapped(refused + (row[j] - refused) * np.arange(1, LINE_PARTS) / LINE_PARTS)
                gain = self.axes.measures(row[None, :])[0] - self.axes.measures(rows)
                rows = rows[(gain > accuracy) & (rows[:, j] != refused)]
                if not len(rows):
                    break
                is_valid = self.trials.misses(rows) == 0
                first = int(is_valid.argmax()) if is_valid.any() else len(rows)
                refused = rows[first - 1, j] if first else refused
                row = rows[first] if is_valid.any() else row

"""What a second core could save of one question to the tree lane, at most: two designs, counted on one core.

    python benchmarks/two_cores.py [--limit 20] [--rows 5]

Two threads would have to give the same answers as one, so that only work which one thread does anyway counts. "engines" runs the turns of
the engine with the plain bound and of the one with prices side by side: the shorter of two turns is free. "balls" searches each ball beside
the next one, the last two first: the shorter search of the two is free. Both leave out what threads themselves cost, and "balls" that the
larger of two balls does not know yet what the smaller one found. CPU time, the hard benchmark's rows and the paper's Credit.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from typing import Any

from hard_trees import SETTINGS, hard_setting
from trees import paper_setting

import mace
from mace.solvers.trees.engines import Engine, Priced
from mace.solvers.trees.search import TreeSearch


class Watched:
    """The CPU seconds of each ball, and of each turn of an engine in a race."""

    def __init__(self) -> None:
        self.balls: list[float] = []
        self.races: list[list[tuple[bool, float]]] = []
        self.is_racing = False
        self._climb, self._race, self._run = TreeSearch._climb, TreeSearch._race, TreeSearch._run
        climb, race, run = self.climb, self.race, self.run
        TreeSearch._climb = lambda search, *given: climb(search, *given)  # type: ignore[method-assign]
        TreeSearch._race = lambda search, *given: race(search, *given)  # type: ignore[method-assign]
        TreeSearch._run = lambda search, *given: run(search, *given)  # type: ignore[method-assign]

    def climb(self, search: TreeSearch, *given: Any) -> None:
        begun = time.process_time()
        self._climb(search, *given)
        self.balls.append(time.process_time() - begun)

    def race(self, search: TreeSearch, *given: Any) -> Any:
        self.is_racing = True
        self.races.append([])
        try:
            return self._race(search, *given)
        finally:
            self.is_racing = False

    def run(self, search: TreeSearch, engine: Engine, *given: Any) -> bool:
        begun = time.process_time()
        ended = self._run(search, engine, *given)
        if self.is_racing:
            self.races[-1].append((isinstance(engine, Priced), time.process_time() - begun))
        return ended

    def saved(self) -> tuple[float, float]:
        """Return the seconds that each design saves at most, and begin anew."""
        engines = balls = 0.0
        for turns in self.races:
            for (priced, first), (other, second) in pairwise(turns):
                engines += min(first, second) if priced and not other else 0.0
        for last in range(len(self.balls) - 1, 0, -2):
            balls += min(self.balls[last], self.balls[last - 1])
        self.balls, self.races = [], []
        return engines, balls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=5)
    parser.add_argument("--settings", default="")
    arguments = parser.parse_args()
    mace.warm_up()
    warnings.simplefilter("ignore")
    watched = Watched()
    print(f"{'setting':44}{'distance':9}{'CPU s':>8}{'engines':>9}{'balls':>8}   times as fast at most")
    for name in ("credit forest100", *SETTINGS):
        if arguments.settings not in name:
            continue
        is_paper = name == "credit forest100"
        setting = paper_setting(*name.split(), arguments.rows) if is_paper else hard_setting(name, arguments.rows)
        explainer = mace.Explainer(setting.model, setting.space)
        for distance in ("l1", "linf"):
            whole = engines = balls = 0.0
            for row in setting.rows.to_dict("records"):
                watched.saved()
                begun = time.process_time()
                explainer.explain(row, distance=distance, time_limit=arguments.limit, round_to=None)
                whole += time.process_time() - begun
                saved = watched.saved()
                engines, balls = engines + saved[0], balls + saved[1]
            print(
                f"{name:44}{distance:9}{whole:8.2f}{whole / (whole - engines):9.2f}{whole / (whole - balls):8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

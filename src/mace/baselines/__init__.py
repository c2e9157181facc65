"""Other ways to a counterfactual, behind the same questions and without any proof: what the paper compares MACE with.

A method is a class in one file with ``traits`` and ``propose(problem, raw=...)``, and one line in the table.
"""

from mace.baselines.baseline import BASELINES, Baseline, Traits

__all__ = ["BASELINES", "Baseline", "Traits"]

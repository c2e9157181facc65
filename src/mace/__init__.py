"""MACE: nearest counterfactual explanations, proved nearest.

Public names load on first use; importing the package imports no solver, no scikit-learn and nothing optional.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mace.moved import OldModules

__version__ = "0.2.0"

if TYPE_CHECKING:
    from mace import datasets
    from mace.answer.counterfactual import Counterfactual
    from mace.answer.explanation import Explanation
    from mace.certify import Certificate, Verdict, verify
    from mace.constraints import (
        at_most_change,
        changes,
        changes_at_most,
        decreases,
        either,
        fixed,
        implies,
        increases,
        linear,
        one_of,
        only,
        rule,
        steps,
        together,
        transitions,
        within,
    )
    from mace.constraints.causal import Causal
    from mace.constraints.differ import differ
    from mace.constraints.near_data import near_data
    from mace.constraints.robust import robust
    from mace.constraints.typical import typical
    from mace.distances import Distance
    from mace.errors import (
        DatasetUnavailable,
        InvalidCertificate,
        InvalidConstraint,
        InvalidDistance,
        InvalidOption,
        InvalidProgram,
        InvalidRow,
        InvalidSpace,
        InvalidTarget,
        MaceError,
        MissingPackage,
        ModelChanged,
        ServiceError,
        UnknownOption,
        UnsupportedModel,
    )
    from mace.explainer import Explainer
    from mace.models.bootstrap import bootstrap
    from mace.models.files.load import load_model
    from mace.models.sets import agree
    from mace.models.wrapped import wrap
    from mace.problem import Status
    from mace.solvers.ready import warm_up
    from mace.space import (
        FeatureSpace,
        categorical,
        date,
        days,
        integer,
        months,
        ordinal,
        real,
        weekdays,
        years,
    )
    from mace.space.encoder import Encoder
    from mace.targets import any_of, at_least, at_most, becomes, between

_HOMES = {
    "mace.constraints.causal": "Causal",
    "mace.certify": "Certificate Verdict verify",
    "mace.constraints": (
        "at_most_change changes changes_at_most decreases either fixed implies increases linear one_of only "
        "rule steps together transitions within"
    ),
    "mace.distances": "Distance",
    "mace.constraints.differ": "differ",
    "mace.errors": (
        "DatasetUnavailable InvalidCertificate InvalidConstraint InvalidDistance InvalidOption InvalidProgram "
        "InvalidRow InvalidSpace InvalidTarget MaceError MissingPackage ModelChanged UnknownOption "
        "ServiceError UnsupportedModel"
    ),
    "mace.explainer": "Explainer",
    "mace.answer.counterfactual": "Counterfactual",
    "mace.answer.explanation": "Explanation",
    "mace.models.bootstrap": "bootstrap",
    "mace.models.files.load": "load_model",
    "mace.models.sets": "agree",
    "mace.models.wrapped": "wrap",
    "mace.constraints.near_data": "near_data",
    "mace.constraints.robust": "robust",
    "mace.constraints.typical": "typical",
    "mace.problem": "Status",
    "mace.solvers.ready": "warm_up",
    "mace.space": "FeatureSpace categorical date days integer months ordinal real weekdays years",
    "mace.space.encoder": "Encoder",
    "mace.targets": "any_of at_least at_most becomes between",
}
"""Where the names of the package are; each is imported when it is asked for."""

_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

_MOVED = {
    "Audit": "mace.audits",
    "Batch": "mace.batch",
    "Change": "mace.answer.counterfactual",
    "audit": "mace.audits",
    "load_constraints": "mace.constraints.files",
    "suggest_constraints": "mace.constraints.suggest",
}
"""Names of 0.1 that only experts need, and where they are now."""

_DEPRECATED = {
    "AlreadyThere": (
        "mace.errors",
        "is no longer raised: a row that is at the target already is an explanation of status 'reached'",
    )
}
"""Names that go with the next version: their homes, and what to know."""

sys.meta_path.append(OldModules())

__all__ = [
    "Causal",
    "Certificate",
    "Counterfactual",
    "DatasetUnavailable",
    "Distance",
    "Encoder",
    "Explainer",
    "Explanation",
    "FeatureSpace",
    "InvalidCertificate",
    "InvalidConstraint",
    "InvalidDistance",
    "InvalidOption",
    "InvalidProgram",
    "InvalidRow",
    "InvalidSpace",
    "InvalidTarget",
    "MaceError",
    "MissingPackage",
    "ModelChanged",
    "ServiceError",
    "Status",
    "UnknownOption",
    "UnsupportedModel",
    "Verdict",
    "__version__",
    "agree",
    "any_of",
    "at_least",
    "at_most",
    "at_most_change",
    "becomes",
    "between",
    "bootstrap",
    "categorical",
    "changes",
    "changes_at_most",
    "datasets",
    "date",
    "days",
    "decreases",
    "differ",
    "either",
    "fixed",
    "implies",
    "increases",
    "integer",
    "linear",
    "load_model",
    "months",
    "near_data",
    "one_of",
    "only",
    "ordinal",
    "real",
    "robust",
    "rule",
    "steps",
    "together",
    "transitions",
    "typical",
    "verify",
    "warm_up",
    "weekdays",
    "within",
    "wrap",
    "years",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("datasets", "testing"):
        return importlib.import_module(f"mace.{name}")
    if name in _MOVED or name in _DEPRECATED:
        import warnings

        home, text = _DEPRECATED.get(name) or (_MOVED[name], f"has moved: from {_MOVED[name]} import {name}")
        warnings.warn(f"mace.{name} {text}.", DeprecationWarning, stacklevel=2)
        return getattr(importlib.import_module(home), name)
    if name not in _HOME:
        from mace.slips import NAMES, no_attribute

        raise no_attribute("module 'mace'", name, NAMES, __all__)
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

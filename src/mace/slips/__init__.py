"""Names that people try who come from another tool or remember half of one, and what to write here."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from mace.errors import UnknownOption, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

_COUNT = "count=3"
_FIX = "constraints=[mace.fixed('age', 'sex')]"
_ONLY = "constraints=[mace.only('income', 'savings')]"
_RANGES = "constraints={'age': [20, 30]}"
_TARGET = "target='good', the label that is wanted"
_PROBABILITY = "target=mace.at_least(0.7, 'good')"
_WEIGHTS = "distance=mace.Distance(l1=1, weights={'income': 2})"
_SECONDS = "time_limit=30"
_EXPLAINER = "mace.Explainer(model, space)"
_SPACE = "mace.FeatureSpace.from_frame(X_train)"
_BEST = "explanation[0], the nearest"
_KINDS = "mace.FeatureSpace.from_frame(X_train) as the space, which says what each feature is"
_TUNED = "nothing: the search is exact, and has no such number to choose"

OPTION_SLIPS = {
    "desired_class": _TARGET,
    "target_class": _TARGET,
    "label": _TARGET,
    "y": _TARGET,
    "outcome": _TARGET,
    "desired_range": "target=mace.between(0.6, 1, 'good')",
    "threshold": _PROBABILITY,
    "stopping_threshold": _PROBABILITY,
    "probability": _PROBABILITY,
    "target_proba": _PROBABILITY,
    "features_to_vary": _ONLY,
    "actionable": _ONLY,
    "mutable": _ONLY,
    "only": _ONLY,
    "features": _ONLY,
    "features_to_freeze": _FIX,
    "frozen": _FIX,
    "immutable": _FIX,
    "immutable_features": _FIX,
    "fixed": _FIX,
    "fix": _FIX,
    "permitted_range": _RANGES,
    "feature_range": _RANGES,
    "ranges": _RANGES,
    "bounds": _RANGES,
    "rules": "constraints=['age >= old.age']",
    "rule": "constraints=['age >= old.age']",
    "categorical_features": _KINDS,
    "cat_vars": _KINDS,
    "continuous_features": _KINDS,
    "feature_names": _KINDS,
    "feature_types": _KINDS,
    "sparsity": "constraints=[mace.changes_at_most(2)]",
    "total_CFs": _COUNT,
    "n_cfs": _COUNT,
    "n_counterfactuals": _COUNT,
    "num_cfs": _COUNT,
    "n": _COUNT,
    "k": _COUNT,
    "number": _COUNT,
    "norm": "distance='l1'",
    "metric": "distance='l1'",
    "weights": _WEIGHTS,
    "feature_weights": _WEIGHTS,
    "proximity_weight": "distance='l1'; nearest is all that is asked for",
    "sparsity_weight": "distance=mace.Distance(l0=0.5, l1=0.5)",
    "diversity_weight": "diversity=mace.differ(distance=0.1)",
    "max_changes": "constraints=[mace.changes_at_most(2)]",
    "max_features": "constraints=[mace.changes_at_most(2)]",
    "timeout": _SECONDS,
    "max_time": _SECONDS,
    "seconds": _SECONDS,
    "max_iter": _SECONDS,
    "max_iterations": _SECONDS,
    "lam": _TUNED,
    "lam_init": _TUNED,
    "eta": _TUNED,
    "learning_rate": _TUNED,
    "init": _TUNED,
    "population_size": _TUNED,
    "target": "explainer.explain(row, target='good')",
    "epsilon": "accuracy=1e-6",
    "tol": "accuracy=1e-6",
    "method": "solver='auto'",
    "backend": "solver='auto'",
    "certificate": "certify=True",
    "proof": "certify=True",
    "round": "round_to={'income': 100}",
    "instance": "explain(row), with the row first",
    "query_instance": "explain(row), with the row first",
    "query_instances": "explain_many(frame), with the frame first",
    "verbose": "on_progress=print",
    "random_state": "nothing: answers are the same every time",
    "random_seed": "nothing: answers are the same every time",
    "seed": "nothing: answers are the same every time",
    "jobs": "n_jobs=2, of explain_many",
    "workers": "n_jobs=2, of explain_many",
    "feature_space": "space=space",
    "estimator": "model=model",
    "causal": "causes=mace.Causal({...})",
}
"""Of ``Explainer`` and its methods."""

CALLS = {
    "Explainer": f"{_EXPLAINER}, with space = {_SPACE}",
    "explain": "explainer.explain(row, 'good')",
    "explain_many": "explainer.explain_many(frame)",
    "differ": "mace.differ(features=2), or mace.differ(distance=0.1)",
}
"""How a function is called, for those who leave out what it needs."""

METHODS = {
    "generate_counterfactuals": "explainer.explain(row, target='good', count=3)",
    "explain_instance": "explainer.explain(row)",
    "explain_batch": "explainer.explain_many(frame)",
    "explain_all": "explainer.explain_many(frame)",
    "explain_rows": "explainer.explain_many(frame)",
    "counterfactual": "explainer.explain(row)[0]",
    "counterfactuals": "explainer.explain(row)",
    "fit": "mace.Explainer(model, space), with a model that is fitted",
    "shap_values": "explainer.levers(row), or explainer.explain(row)",
    "verify": "mace.verify(explanation[0].certificate, model)",
    "audit": "mace.audits.audit(explainer, frame, ['sex'], target='good')",
    "plot": "explainer.explain(row).plot()",
    "predict_proba": "explainer.explain(row).score, or the model itself",
    "features": "explainer.space",
    "certify": "explainer.explain(row, certify=True)",
    "recourse": "explainer.explain(row, target='good')",
}
"""Of an explainer."""

ANSWERS = {
    "values": "explanation[0].values",
    "changes": "explanation[0].changes",
    "counterfactual": _BEST,
    "cf": _BEST,
    "best": _BEST,
    "nearest": _BEST,
    "upper": "explanation[0].distance",
    "probability": "explanation.score, and explanation[0].score",
    "cf_examples_list": "list(explanation)",
    "cfs_list": "list(explanation)",
    "cfs": "list(explanation)",
    "X": "explanation[0].values",
    "data": "explanation.to_dict()",
    "distances": "[each.distance for each in explanation]",
    "to_csv": "explanation.to_frame().to_csv(path)",
    "final_cfs_df": "explanation.to_frame()",
    "visualize_as_dataframe": "print(explanation), or explanation.to_frame()",
    "show": "print(explanation), or explanation.plot()",
    "visualize": "explanation.plot()",
    "draw": "explanation.plot()",
    "summary": "print(explanation), or explanation.why()",
    "probabilities": "explanation.score, and explanation[0].score",
    "to_pandas": "explanation.to_frame()",
    "to_html": "explanation.letter(html=True)",
    "is_optimal": "explanation.status == 'optimal'",
    "optimal": "explanation.status == 'optimal'",
    "success": "bool(explanation), or explanation.status",
    "proof": "explanation[0].certificate, with explain(certify=True)",
    "certificates": "explanation[0].certificate, with explain(certify=True)",
    "save": "explanation.to_json()",
}
"""Of an explanation, which is a sequence of counterfactuals."""

LETTER_OPTIONS = {
    "lang": "language='de'",
    "locale": "language='de'",
    "format": "html=True, and print the page as PDF",
    "pdf": "html=True, and print the page as PDF",
    "feature_names": "names={'duration': 'the term of the loan'}",
    "labels": "outcomes={'bad': 'declined'}",
    "count": "number='all', for all answers in one letter",
}
"""Of a letter."""

COUNTERFACTUALS = {
    "probability": "counterfactual.score",
    "proba": "counterfactual.score",
    "upper": "counterfactual.distance",
    "row": "counterfactual.values",
    "x": "counterfactual.values",
    "diff": "counterfactual.changes",
    "label": "counterfactual.prediction",
    "optimal": "counterfactual.status == 'optimal'",
    "is_optimal": "counterfactual.status == 'optimal'",
    "proof": "counterfactual.certificate, with explain(certify=True)",
    "to_frame": "explanation.to_frame(), of all answers",
    "to_json": "explanation.to_json(), of all answers",
    "plot": "explanation.plot(1), the nearest by its number",
    "letter": "explanation.letter(number=1), the nearest by its number",
    "factual": "explanation.factual",
}
"""Of one answer."""

NAMES = {
    "explain": f"{_EXPLAINER}.explain(row)",
    "counterfactual": f"{_EXPLAINER}.explain(row)[0]",
    "counterfactuals": f"{_EXPLAINER}.explain(row, count=3)",
    "explain_many": f"{_EXPLAINER}.explain_many(frame)",
    "CounterfactualExplainer": _EXPLAINER,
    "Counterfactuals": _EXPLAINER,
    "MACE": _EXPLAINER,
    "Mace": _EXPLAINER,
    "Dice": _EXPLAINER,
    "dice_ml": _EXPLAINER,
    "CounterfactualProto": _EXPLAINER,
    "AnchorTabular": f"{_EXPLAINER}.reasons(row)",
    "Model": f"{_EXPLAINER}, with the model as it is",
    "Data": _SPACE,
    "Space": _SPACE,
    "from_frame": _SPACE,
    "infer": _SPACE,
    "continuous": "mace.real(0, 100)",
    "numeric": "mace.real(0, 100)",
    "number": "mace.real(0, 100), or mace.integer(18, 90)",
    "numerical": "mace.real(0, 100), or mace.integer(18, 90)",
    "discrete": "mace.integer(18, 90), or mace.ordinal(['low', 'high'])",
    "boolean": "mace.categorical([False, True])",
    "binary": "mace.categorical(['no', 'yes'])",
    "nominal": "mace.categorical(['rent', 'own'])",
    "immutable": "mace.fixed('age', 'sex')",
    "freeze": "mace.fixed('age', 'sex')",
    "actionable": "mace.only('income', 'savings')",
    "no_change": "mace.fixed('age', 'sex')",
    "unchanged": "mace.fixed('age', 'sex')",
    "constant": "mace.fixed('age', 'sex')",
    "protected": "mace.FeatureSpace.from_frame(X_train).protect('sex')",
    "range": "mace.within('age', 20, 30)",
    "interval": "mace.within('age', 20, 30)",
    "bounds": "mace.within('age', 20, 30)",
    "monotonic": "mace.increases('age'), or mace.decreases('debt')",
    "monotone": "mace.increases('age'), or mace.decreases('debt')",
    "in_set": "mace.one_of('housing', ['own'])",
    "if_then": "mace.rule(\"if age >= 30 then housing == 'own'\")",
    "max_changes": "mace.changes_at_most(2)",
    "sparsity": "mace.changes_at_most(2), or distance='l0'",
    "equals": "mace.one_of('housing', ['own'])",
    "plausible": "mace.near_data(X_train), or mace.typical(forest)",
    "target": "explain(row, target='good')",
    "load": "mace.load_model(path), or mace.datasets.load('german')",
    "plot": f"{_EXPLAINER}.explain(row).plot()",
    "letter": f"{_EXPLAINER}.explain(row).letter()",
    "compile": "mace.warm_up()",
}
"""Of the package."""


def instead(name: str, table: Mapping[str, str], known: Iterable[str] = ()) -> str:
    """Return a sentence that says what to write instead of a name; empty where nothing is near it.

    Examples
    --------
    >>> instead("timeout", OPTION_SLIPS)
    ' Write time_limit=30.'
    >>> instead("explian", NAMES, ["Explainer", "explain"])
    " Did you mean 'explain'?"
    """
    return f" Write {table[name]}." if name in table else did_you_mean(name, known)


def no_attribute(owner: str, name: str, table: Mapping[str, str], known: Iterable[str]) -> AttributeError:
    """Return the error about an attribute that there is not."""
    # Names of Python's own protocols are asked for by the hundred, and not by people.
    near = "" if name.startswith("_") else instead(name, table, known)
    return AttributeError(f"{owner} has no attribute {name!r}{'.' if near else ''}{near}")


def check_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that a function does not have by naming the right one."""
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return
    meant = instead(unknown, OPTION_SLIPS, known) or f" It has {', '.join(sorted(known))}."
    raise UnknownOption(f"{what}() has no option {unknown!r:.80}.{meant}")


def check_arguments(what: str, signature: inspect.Signature, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Refuse a call that leaves out what a function needs, or has too much, by showing how it is called."""
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        meant = CALLS.get(what)
        raise UnknownOption(f"{what}(): {error}.{f' Write {meant}.' if meant else ''}") from None


def knows_its_options(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse an unknown keyword as :func:`check_options` does."""
    signature = inspect.signature(function)
    known = frozenset(signature.parameters) - {"self"}
    what = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def asked(*given: P.args, **named: P.kwargs) -> R:
        if not named.keys() <= known:
            check_options(what, named, known)
        try:
            return function(*given, **named)
        except TypeError:
            check_arguments(what, signature, given, named)
            raise

    return asked


_BOUND = re.compile(r"\s*(?:P\()?(.*?)\)?\s*([<>])=?\s*(0?\.\d+|[01]|\d+ ?%)\s*")


def about_target(target: object, labels: Sequence[object]) -> str:
    """Return what to write for a target that looks like another one; empty where nothing is wrong with its form.

    Examples
    --------
    >>> about_target(("good", 0.7), ["bad", "good"])
    "write mace.at_least(0.7, 'good') for a probability."
    """
    if isinstance(target, list | tuple | set | frozenset) and target:
        given = [_plain(each) for each in target]
        label = next((each for each in given if each in labels), None)
        number = next((each for each in given if isinstance(each, float) and each not in labels), None)
        if label is None or number is None:
            return f"write mace.any_of({given!r:.80}) for any of several labels."
        return f"write mace.at_least({number:g}, {label!r}) for a probability."
    if isinstance(target, Mapping) and target:
        label, number = next(iter(target.items()))
        return f"write mace.at_least({number!r:.20}, {_meant(label, labels)!r:.40}) for a probability."
    if isinstance(target, str) and target not in labels:
        if target.lower() in ("opposite", "other", "different", "flip"):
            return "leave target out: any other class is wanted where none is named."
        return _about_bound(target, labels)
    are_texts = all(isinstance(label, str) for label in labels)
    if are_texts and isinstance(target, int) and not isinstance(target, bool) and 0 <= target < len(labels):
        return f"write {labels[target]!r}, the label at that place of predict_proba."
    is_share = isinstance(target, float) and 0 < target < 1 and bool(labels)
    if not is_share or any(not isinstance(label, str) for label in labels):
        return ""
    calls = " or ".join(f"mace.at_least({target:g}, {label!r})" for label in labels[:5])
    return f"it is no label; for a probability write {calls}."


def _about_bound(text: str, labels: Sequence[object]) -> str:
    """Return how a bound on a probability is written that was given as a text."""
    found = _BOUND.fullmatch(text)
    if found is None:
        return ""
    name, sign, amount = found.groups()
    number = float(amount.rstrip(" %")) / (100 if "%" in amount else 1)
    label = _meant(name, labels)
    of = f", {label!r}" if label != "" else ""
    return f"a bound is written mace.{'at_least' if sign == '>' else 'at_most'}({number:g}{of})."


def _meant(name: object, labels: Sequence[object]) -> object:
    """Return the label of a name, or the one that is written nearly so; the name itself where there is none."""
    texts = {str(label): label for label in labels}
    close = difflib.get_close_matches(str(name), texts, n=1) if str(name) not in texts else [str(name)]
    return texts[close[0]] if close and name != "" else name


def _plain(value: Any) -> Any:
    """Return a scalar of numpy as Python's own."""
    return value.item() if hasattr(value, "item") else value


DISTANCES = {
    "euclidean": "distance='l2'",
    "manhattan": "distance='l1'",
    "cityblock": "distance='l1'",
    "absolute": "distance='l1'",
    "chebyshev": "distance='linf'",
    "max": "distance='linf'",
    "maximum": "distance='linf'",
    "inf": "distance='linf'",
    "hamming": "distance='l0'",
    "sparsity": "distance='l0'",
    "gower": "distance='l1', which divides by ranges and averages as Gower does",
    "mad": "distance=mace.Distance(weights='mad', data=X_train)",
    "percentile": "distance=mace.Distance(weights='percentile', data=X_train)",
}
"""What others call distances."""


def about_distance(name: str, known: Iterable[str]) -> str:
    """Return what to write for a distance that is known by another name; empty where none is meant."""
    lowered = name.lower().strip()
    own = next((each for each in known if each == lowered), None)
    if own is not None:
        return f"write distance={own!r}."
    return instead(lowered, DISTANCES).strip().replace("Write", "write", 1)

"""Ways to tamper with a certificate, for the tests and the campaign, and brute force that says whether what it claims is still true.

Each way takes a certificate as plain data (arrays unpacked) and a random generator, and gives the changed data, the changed text, or
``None`` where it does not apply. Its kind says what must become of it:

- ``unreadable``: an :class:`~mace.InvalidCertificate`;
- ``refuted``: the verdict, with a reason that holds one of the words;
- ``true or refused``: it may still be valid, but only where brute force finds its claim to be true.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import mace
from mace.certify.certificate import Certificate
from mace.certify.statement import Statement
from mace.certify.verdict import Refuted
from mace.constraints.robust import RobustCondition
from mace.problem import Problem, in_domain
from mace.space import grid_values

Data = dict[str, Any]
Change = Callable[[Data, np.random.Generator], Data | str | None]

UNREADABLE, REFUTED, TRUE_OR_REFUSED = "unreadable", "refuted", "true or refused"


@dataclass(frozen=True)
class Tampering:
    """A way to tamper."""

    name: str
    kind: str
    change: Change
    words: str = ""


TAMPERINGS: list[Tampering] = []


def tampering(kind: str, words: str = "") -> Callable[[Change], Change]:
    """Add a way to the table."""

    def add(change: Change) -> Change:
        name = change.__name__.replace("_", " ")
        TAMPERINGS.append(Tampering(name, kind, change, words))
        return change

    return add


def parts_of(certificate: Certificate) -> Data:
    """Return a copy of a certificate as plain data, arrays unpacked and writable."""
    return {
        "version": certificate.version,
        "statement": copy.deepcopy(certificate.statement),
        "claim": copy.deepcopy(certificate.claim),
        "evidence": {
            key: value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value)
            for key, value in certificate.evidence.items()
        },
    }


def text_of(data: Data) -> str:
    """Return the JSON text of plain data with arrays."""
    return Certificate(**data).to_json()


def outcome_of(changed: Data | str, model: Any, forests: Sequence[Any] = ()) -> tuple[str, str]:
    """Return what becomes of a changed certificate: ``unreadable`` or the verdict, and the reason."""
    try:
        certificate = Certificate.from_json(changed if isinstance(changed, str) else text_of(changed))
        verdict = mace.verify(certificate, model, forests=forests)
    except mace.InvalidCertificate as error:
        return UNREADABLE, str(error)
    return verdict.outcome, verdict.reason


def is_true(certificate: Certificate, model: Any, forests: Sequence[Any] = ()) -> bool:
    """Return whether the claim holds, by looking at every point of a finite space."""
    try:
        problem, _ = Statement.from_dict(certificate.statement).with_forests(forests).problem(model)
    except Refuted:
        return False
    problem, sturdy = without_noise(problem)
    lower = certificate.claim["lower"]
    row = certificate.claim["counterfactual"]
    if row is not None:
        point = problem.space.point(row)
        if not problem.is_plausible(point) or not problem.is_reached(point):
            return False
        if sturdy is not None and not all(map(problem.is_reached, noise_around(problem, sturdy, point))):
            return False
        if problem.distance(point) > Fraction(certificate.claim["upper"]):
            return False
    nearer = [
        point
        for point in every_point(problem)
        if (lower is None or problem.distance(point) < Fraction(lower)) and problem.is_plausible(point)
    ]
    accepted = nearer and [
        point for point, said in zip(nearer, problem.ask(nearer), strict=True) if problem.goal.accepts(said)
    ]
    if sturdy is None:
        return not accepted
    return not any(all(map(problem.is_reached, noise_around(problem, sturdy, point))) for point in accepted)


def without_noise(problem: Problem) -> tuple[Problem, RobustCondition | None]:
    """Return a problem without what it says of noise, and that."""
    rest = tuple(each for each in problem.conditions if not isinstance(each, RobustCondition))
    return replace(problem, conditions=rest), next(
        (c for c in problem.conditions if isinstance(c, RobustCondition)), None
    )


def noise_around(problem: Problem, sturdy: RobustCondition, point: Any) -> Any:
    """Return every row that noise makes of a point of a finite space."""
    domains = []
    for (name, feature), value in zip(problem.space.items(), point, strict=True):
        radius = sturdy.radii.get(name, 0)
        near = [
            v
            for v in grid_values(feature)
            if value is not None and radius and abs(Fraction(repr(v)) - Fraction(repr(value))) <= radius
        ]
        domains.append([value, *(v for v in near if v != value)])
    return product(*domains)


def every_point(problem: Problem) -> Any:
    """Return every point of a finite space."""
    domains = []
    for feature, own in zip(problem.space.values(), problem.factual, strict=True):
        values: list[Any] = [*grid_values(feature), own, *([None] if feature.missing else [])]
        domains.append([value for value in dict.fromkeys(values) if in_domain(feature, value, own)])
    return product(*domains)


# ---- the counterfactual


def _numeric(data: Data, *, moves: bool = False) -> list[str]:
    """Return the names of numeric features whose value is not missing."""
    features = data["statement"]["space"]["features"]
    row = data["claim"]["counterfactual"] or {}
    kinds = ("real",) if moves else ("real", "integer")
    return [name for name in row if features[name]["kind"] in kinds and row[name] is not None]


@tampering(REFUTED, "claim.")
def counterfactual_moved_by_one_float(data: Data, rng: np.random.Generator) -> Data | None:
    names = _numeric(data, moves=True)
    if not names:
        return None
    row, name = data["claim"]["counterfactual"], str(rng.choice(names))
    feature = data["statement"]["space"]["features"][name]
    down = row[name] > feature["low"]
    row[name] = math.nextafter(row[name], -math.inf if down else math.inf)
    return data if feature["low"] < feature["high"] else None


@tampering(REFUTED, "claim.")
def counterfactual_is_the_factual(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["counterfactual"] is None:
        return None
    data["claim"]["counterfactual"] = dict(data["statement"]["factual"])
    return data


@tampering(REFUTED, "outside its range")
def counterfactual_out_of_range(data: Data, rng: np.random.Generator) -> Data | None:
    names = _numeric(data)
    if not names:
        return None
    name = str(rng.choice(names))
    data["claim"]["counterfactual"][name] = data["statement"]["space"]["features"][name]["high"] + 1
    return data


@tampering(REFUTED, "claim.counterfactual")
def counterfactual_without_a_feature(data: Data, rng: np.random.Generator) -> Data | None:
    row = data["claim"]["counterfactual"]
    if row is None:
        return None
    del row[str(rng.choice(list(row)))]
    return data


@tampering(REFUTED, "claim.counterfactual")
def counterfactual_with_an_unknown_level(data: Data, rng: np.random.Generator) -> Data | None:
    features = data["statement"]["space"]["features"]
    names = [name for name in data["claim"]["counterfactual"] or () if "levels" in features[name]]
    if not names:
        return None
    data["claim"]["counterfactual"][str(rng.choice(names))] = "no such level"
    return data


@tampering(UNREADABLE, "claim.counterfactual")
def counterfactual_holds_a_list(data: Data, rng: np.random.Generator) -> Data | None:
    row = data["claim"]["counterfactual"]
    if row is None:
        return None
    row[next(iter(row))] = [1]
    return data


# ---- the bounds and the status


@tampering(TRUE_OR_REFUSED)
def lower_raised_a_little(data: Data, rng: np.random.Generator) -> Data | None:
    if not data["claim"]["lower"]:
        return None
    data["claim"]["lower"] += 1e-9
    return data


@tampering(TRUE_OR_REFUSED)
def lower_raised_to_upper(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["upper"] is None:
        return None
    data["claim"]["lower"] = data["claim"]["upper"]
    return data


@tampering(REFUTED, "claim.lower")
def lower_raised_above_upper(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["upper"] is None:
        return None
    data["claim"]["lower"] = math.nextafter(data["claim"]["upper"], math.inf)
    return data


@tampering(REFUTED, "not optimal")
def lower_lowered_under_the_same_status(data: Data, rng: np.random.Generator) -> Data | None:
    claim, accuracy = data["claim"], data["statement"]["accuracy"]
    if claim["status"] != "optimal" or claim["upper"] < 3 * accuracy:
        return None
    claim["lower"] = max(0.0, claim["upper"] - 2 * accuracy)
    return data


@tampering(REFUTED, "claim.upper")
def upper_lowered_by_one_float(data: Data, rng: np.random.Generator) -> Data | None:
    if not data["claim"]["upper"]:
        return None
    data["claim"]["upper"] = math.nextafter(data["claim"]["upper"], 0.0)
    return data


@tampering(REFUTED, "claim.upper")
def upper_raised(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["upper"] is None:
        return None
    data["claim"]["upper"] += 0.001
    return data


@tampering(TRUE_OR_REFUSED)
def none_exists_instead(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["status"] == "infeasible":
        return None
    data["claim"] = {"status": "infeasible", "lower": None, "upper": None, "counterfactual": None}
    return data


@tampering(REFUTED, "claim")
def infeasible_with_a_counterfactual(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["counterfactual"] is None:
        return None
    data["claim"]["status"] = "infeasible"
    return data


@tampering(REFUTED, "claim")
def optimal_without_a_counterfactual(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["counterfactual"] is None:
        return None
    data["claim"]["counterfactual"] = None
    return data


@tampering(REFUTED, "claim.lower")
def no_lower(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["lower"] is None:
        return None
    data["claim"]["lower"] = None
    return data


@tampering(UNREADABLE, "claim.lower")
def lower_below_zero(data: Data, rng: np.random.Generator) -> Data:
    data["claim"]["lower"] = -0.5
    return data


@tampering(UNREADABLE, "claim.upper")
def upper_is_text(data: Data, rng: np.random.Generator) -> Data:
    data["claim"]["upper"] = "0.1"
    return data


@tampering(UNREADABLE, "claim.status")
def status_is_unknown_to_the_schema(data: Data, rng: np.random.Generator) -> Data:
    data["claim"]["status"] = "certain"
    return data


# ---- the statement


@tampering(REFUTED, "another model")
def fingerprint_changed(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["model"]["form"] = "0" * 64
    return data


@tampering(REFUTED, "another model")
def fingerprint_of_the_labels_changed(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["model"]["parameters"] = "f" * 64
    return data


@tampering(TRUE_OR_REFUSED)
def another_row(data: Data, rng: np.random.Generator) -> Data:
    for name, feature in data["statement"]["space"]["features"].items():
        if rng.random() < 0.5:
            continue
        own = feature["levels"][int(rng.integers(len(feature["levels"])))] if "levels" in feature else feature["low"]
        data["statement"]["factual"][name] = own
    return data


@tampering(TRUE_OR_REFUSED)
def a_constraint_removed(data: Data, rng: np.random.Generator) -> Data | None:
    constraints = data["statement"]["constraints"]
    if not constraints:
        return None
    constraints.pop(int(rng.integers(len(constraints))))
    return data


@tampering(TRUE_OR_REFUSED)
def a_constraint_added(data: Data, rng: np.random.Generator) -> Data:
    name = str(rng.choice(list(data["statement"]["factual"])))
    data["statement"]["constraints"].append({"kind": "fixed", "arguments": [name]})
    return data


@tampering(UNREADABLE, "constraints")
def a_constraint_of_no_kind(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["constraints"].append({"kind": "wishes", "arguments": []})
    return data


@tampering(TRUE_OR_REFUSED)
def another_distance(data: Data, rng: np.random.Generator) -> Data | None:
    distance = data["statement"]["distance"]
    if distance["kind"] != "norms":
        return None
    wanted = "linf" if distance["linf"] == 0 else "l0"
    data["statement"]["distance"] = {"kind": "norms", "l0": 0.0, "l1": 0.0, "linf": 0.0, "l2": 0.0, "weights": {}} | {
        wanted: 1.0
    }
    return data


@tampering(TRUE_OR_REFUSED)
def other_weights(data: Data, rng: np.random.Generator) -> Data | None:
    distance = data["statement"]["distance"]
    if distance["kind"] != "norms":
        return None
    distance["weights"] = {str(rng.choice(list(data["statement"]["factual"]))): 7.0}
    return data


@tampering(UNREADABLE, "distance")
def a_distance_that_is_none(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["distance"] = {"kind": "norms", "l0": 2.0, "l1": 0.0, "linf": 0.0, "l2": 0.0, "weights": {}}
    return data


@tampering(TRUE_OR_REFUSED)
def another_target(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["target"] = {"kind": "any_of", "labels": [int(rng.integers(3))]}
    return data


@tampering(REFUTED, "cannot be asked")
def a_target_that_the_model_does_not_know(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["target"] = {"kind": "any_of", "labels": ["no such label"]}
    return data


@tampering(UNREADABLE, "target")
def a_target_between_nothing(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["target"] = {"kind": "between", "low": 0.9, "high": 0.1, "label": None}
    return data


@tampering(REFUTED, "another model")
def a_wider_space(data: Data, rng: np.random.Generator) -> Data | None:
    wide = [feature for feature in data["statement"]["space"]["features"].values() if "high" in feature]
    if not wide:
        return None
    wide[0]["high"] += 1
    return data


@tampering(TRUE_OR_REFUSED)
def an_earlier_counterfactual_removed(data: Data, rng: np.random.Generator) -> Data | None:
    if not data["statement"]["earlier"]:
        return None
    data["statement"]["earlier"].pop()
    return data


@tampering(TRUE_OR_REFUSED)
def an_earlier_counterfactual_added(data: Data, rng: np.random.Generator) -> Data | None:
    if data["claim"]["counterfactual"] is None:
        return None
    data["statement"]["earlier"].append(dict(data["claim"]["counterfactual"]))
    data["statement"]["diversity"] = {"features": 1, "by": 0.01, "distance": None}
    return data


@tampering(UNREADABLE, "accuracy")
def an_accuracy_of_nothing(data: Data, rng: np.random.Generator) -> Data:
    data["statement"]["accuracy"] = 0
    return data


# ---- the text


@tampering(UNREADABLE, "version")
def wrong_version(data: Data, rng: np.random.Generator) -> Data:
    data["version"] = 3
    return data


@tampering(UNREADABLE, "JSON")
def truncated_file(data: Data, rng: np.random.Generator) -> str:
    text = text_of(data)
    return text[: int(rng.integers(1, len(text) - 1))]


@tampering(UNREADABLE, "keys")
def a_key_lost(data: Data, rng: np.random.Generator) -> str:
    plain = json.loads(text_of(data))
    del plain["claim" if rng.random() < 0.5 else "statement"]
    return json.dumps(plain)


@tampering(UNREADABLE, "keys")
def a_key_more(data: Data, rng: np.random.Generator) -> Data:
    data["claim"]["really"] = True
    return data


@tampering(UNREADABLE, "twice")
def the_same_key_twice(data: Data, rng: np.random.Generator) -> str:
    return text_of(data).replace('"claim": {', '"claim": {"status": "optimal", ', 1)


@tampering(UNREADABLE, "number")
def not_a_number(data: Data, rng: np.random.Generator) -> str:
    return json.dumps(
        json.loads(text_of(data)) | {"claim": data["claim"] | {"lower": float(rng.choice([np.nan, np.inf]))}}
    )


@tampering(UNREADABLE, "too large")
def a_huge_number(data: Data, rng: np.random.Generator) -> str:
    return text_of(data).replace('"version": 2', '"version": 2, "size": 1e999', 1)


@tampering(UNREADABLE, "too long")
def a_long_number(data: Data, rng: np.random.Generator) -> str:
    return text_of(data).replace('"version": 2', '"version": 2' + "0" * 100_000, 1)


@tampering(UNREADABLE, "")
def deep_nesting(data: Data, rng: np.random.Generator) -> str:
    deep = int(rng.choice([30, 100_000]))
    return text_of(data).replace('"evidence": {', '"evidence": {"deep": ' + "[" * deep + "]" * deep + ", ", 1)


@tampering(UNREADABLE, "array")
def an_array_that_unpacks_to_gigabytes(data: Data, rng: np.random.Generator) -> str:
    plain = json.loads(text_of(data))
    plain["evidence"]["bomb"] = {"dtype": "<i8", "shape": [2**32, 8], "data": "eJwDAAAAAAE="}
    return json.dumps(plain)


@tampering(UNREADABLE, "bytes")
def an_array_longer_than_its_shape(data: Data, rng: np.random.Generator) -> str:
    import base64
    import zlib

    plain = json.loads(text_of(data))
    bomb = base64.b64encode(zlib.compress(bytes(10_000_000), 9)).decode()
    plain["evidence"]["bomb"] = {"dtype": "|u1", "shape": [8], "data": bomb}
    return json.dumps(plain)


@tampering(UNREADABLE, "")
def an_array_of_objects(data: Data, rng: np.random.Generator) -> str:
    plain = json.loads(text_of(data))
    plain["evidence"]["odd"] = {"dtype": "|O", "shape": [1], "data": ""}
    return json.dumps(plain)


@tampering(UNREADABLE, "damaged")
def an_array_that_is_damaged(data: Data, rng: np.random.Generator) -> str:
    plain = json.loads(text_of(data))
    plain["evidence"]["odd"] = {"dtype": "|u1", "shape": [1], "data": "!!!!"}
    return json.dumps(plain)


@tampering(UNREADABLE, "lane")
def no_lane(data: Data, rng: np.random.Generator) -> Data:
    del data["evidence"]["lane"]
    return data


# ---- the proof of the tree lane: a changed proof may still be one, of the same claim


def _is_trees(data: Data) -> bool:
    evidence = data["evidence"]
    return evidence["lane"] == "trees" and len(evidence.get("code", ())) > 2


@tampering(TRUE_OR_REFUSED)
def a_closed_box_dropped(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    code = data["evidence"]["code"]
    data["evidence"]["code"] = np.delete(code, rng.choice(np.flatnonzero(code == -1)))
    return data


@tampering(TRUE_OR_REFUSED)
def a_cut_moved(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data) or not len(data["evidence"]["values"]):
        return None
    values = data["evidence"]["values"]
    values[int(rng.integers(len(values)))] += float(rng.choice([-1, 1])) * float(rng.choice([1e-9, 0.5, 3]))
    return data


@tampering(TRUE_OR_REFUSED)
def two_sides_swapped(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    code = data["evidence"]["code"]
    code[rng.choice(np.flatnonzero(code >= 0))] ^= 1
    return data


@tampering(TRUE_OR_REFUSED)
def a_cut_of_another_feature(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    code = data["evidence"]["code"]
    code[rng.choice(np.flatnonzero(code >= 0))] = 2 * int(rng.integers(len(data["statement"]["factual"])))
    return data


@tampering(TRUE_OR_REFUSED)
def a_part_dropped(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    last = data["evidence"]["parts"].pop()
    data["evidence"]["code"] = data["evidence"]["code"][: -last["nodes"]]
    return data


@tampering(TRUE_OR_REFUSED)
def everything_closed_at_once(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    evidence = data["evidence"]
    evidence["parts"] = [part | {"nodes": 1} for part in evidence["parts"]]
    evidence["code"], evidence["cut"] = np.full(len(evidence["parts"]), -1), np.empty(0, dtype=np.int64)
    return data


@tampering(TRUE_OR_REFUSED)
def random_nodes(data: Data, rng: np.random.Generator) -> Data | None:
    if not _is_trees(data):
        return None
    code = data["evidence"]["code"]
    data["evidence"]["code"] = rng.integers(-3, 2**31, len(code)) if rng.random() < 0.5 else rng.permutation(code)
    return data


@tampering(TRUE_OR_REFUSED)
def a_part_of_the_proof_of_another_type(data: Data, rng: np.random.Generator) -> Data:
    evidence = data["evidence"]
    name = str(rng.choice([key for key in evidence if key != "lane"]))
    evidence[name] = [None, "text", {"a": 1}, 10**30, -1.5, [[]]][int(rng.integers(6))]
    return data


@tampering(TRUE_OR_REFUSED)
def a_part_of_the_proof_lost(data: Data, rng: np.random.Generator) -> Data:
    evidence = data["evidence"]
    del evidence[str(rng.choice([key for key in evidence if key != "lane"]))]
    return data


@tampering(TRUE_OR_REFUSED)
def a_lane_that_does_not_exist(data: Data, rng: np.random.Generator) -> Data:
    data["evidence"]["lane"] = "oracle of Delphi"
    return data

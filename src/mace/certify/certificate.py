"""The certificate itself: four parts, written to and read from JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mace.certify.arrays import Unpacking, encoded, is_packed, narrowed, pack
from mace.disk import MOST_DIGITS, parse_json, read_bytes, said, whole_text
from mace.errors import InvalidCertificate

VERSION = 2
"""What is written. Version 1 reads numbers in constraints as binary fractions, version 2 as the decimals that are written."""

VERSIONS = (1, VERSION)
"""What is read."""

LARGEST_CERTIFICATE = 2**28
"""A file larger than this is not read."""

DEEPEST_CERTIFICATE = 12
"""Objects and lists inside each other."""

STATUSES = ("optimal", "feasible", "infeasible", "unknown")
CLAIM_KEYS = {"status", "lower", "upper", "counterfactual"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """An answer with its proof.

    Attributes
    ----------
    version : int
        Of the schema, which ``docs/certificates.md`` describes.
    statement : dict
        The question: fingerprint of the model, space, factual, target, distance, constraints, earlier counterfactuals, accuracy.
    claim : dict
        ``status``, ``lower``, ``upper``, ``counterfactual``: nothing nearer than ``lower`` reaches the target, and the counterfactual, at
        distance ``upper``, does. With status ``infeasible`` nothing does at any distance, and the others are ``None``. With causes also
        ``actions``: what is set; all else of the counterfactual follows from it, or is the factual's own.
        Of a reason also ``reason``: a row of the target for each of its features, which shows that it cannot be left out. Of its ranges
        ``ranges``: by feature the ends or levels in which no row of the target lies, ``None`` for the row's own value. Of all reasons
        ``reasons``: their ``sets`` of features, and ``rows`` of the target, of whose changes no other sets have a feature each.
    evidence : dict
        The proof of ``lower``: ``lane`` names its kind; values are those of JSON and arrays of integers and floats.
    """

    version: int
    statement: dict[str, Any]
    claim: dict[str, Any]
    evidence: dict[str, Any]

    def __repr__(self) -> str:
        lower, upper = self.claim.get("lower"), self.claim.get("upper")
        bounds = "" if lower is None else f", nothing nearer than {lower:.6g}"
        reached = "" if upper is None else f", a counterfactual at {upper:.6g}"
        return f"<Certificate: {self.claim.get('status')}{bounds}{reached}; proof of kind {self.evidence.get('lane')}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data for JSON, arrays packed."""
        return {
            "version": self.version,
            "statement": self.statement,
            "claim": self.claim,
            "evidence": _packed(self.evidence),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """Return the certificate that :meth:`to_dict` wrote.

        Raises
        ------
        InvalidCertificate
            Something is not as the schema says; the message names the place.
        """
        if not isinstance(data, Mapping):
            raise InvalidCertificate(
                f"A certificate is an object of JSON, not {type(data).__name__}: mace.verify(certificate, model). An answer has "
                "one with explain(certify=True): explanation[0].certificate."
            )
        version = data.get("version")
        if type(version) is not int or version not in VERSIONS:
            raise InvalidCertificate(
                f"version: {version!r:.40} is not known; this version of MACE reads versions {' and '.join(map(str, VERSIONS))}."
            )
        check_keys(data, {"version", "statement", "claim", "evidence"}, "the certificate")
        parts = {name: expect(data[name], dict, name) for name in ("statement", "claim", "evidence")}
        unpacking = Unpacking()
        clean = {name: _clean(part, name, 1, unpacking) for name, part in parts.items()}
        _check_claim(clean["claim"])
        if not isinstance(clean["evidence"].get("lane"), str):
            raise InvalidCertificate("evidence: 'lane' must name the kind of proof.")
        return cls(version, clean["statement"], clean["claim"], clean["evidence"])

    def to_json(self, indent: int | None = None) -> str:
        """Return the certificate as JSON text."""
        text = "".join(self._pieces())
        return text if indent is None else json.dumps(parse_json(text), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Return the certificate that :meth:`to_json` wrote; anything else is an :class:`InvalidCertificate`."""
        if len(text) > LARGEST_CERTIFICATE:
            raise InvalidCertificate(
                f"A text of {len(text)} characters is no certificate; at most {LARGEST_CERTIFICATE} are read."
            )
        try:
            data = parse_json(text)
        except (ValueError, TypeError) as error:
            raise InvalidCertificate(f"Not JSON: {str(error)[:200]}.") from error
        return cls.from_dict(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to a file for its owner alone, piece by piece; it appears once it is whole."""
        with whole_text(path) as file:
            for piece in self._pieces():
                file.write(piece)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a certificate from a file."""
        try:
            return cls.from_json(read_bytes(path, LARGEST_CERTIFICATE))
        except OSError as error:
            raise InvalidCertificate(f"cannot read {os.fspath(path)}: {said(error)}.") from error

    def _pieces(self) -> Iterator[str]:
        yield from _pieces(
            {"version": self.version, "statement": self.statement, "claim": self.claim, "evidence": self.evidence}
        )
        yield "\n"


def expect(value: object, kind: type | tuple[type, ...], place: str) -> Any:
    """Return a value of JSON of the right type; any other is an :class:`InvalidCertificate` that names the place."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise InvalidCertificate(f"{place}: {value!r:.60} is a {type(value).__name__}; {wanted} is needed.")
    return value


def check_keys(value: Mapping[str, Any], keys: set[str], place: str) -> None:
    """Refuse an object that lacks a key, or has one more."""
    if set(value) != keys:
        stray = sorted(map(str, set(value) ^ keys))[:5]
        raise InvalidCertificate(f"{place}: the keys must be {', '.join(sorted(keys))}; see {', '.join(stray)}.")


def _check_claim(claim: dict[str, Any]) -> None:
    check_keys(claim, CLAIM_KEYS | (set(claim) & {"actions", "reason", "ranges", "reasons"}), "claim")
    if claim["status"] not in STATUSES:
        raise InvalidCertificate(f"claim.status: {claim['status']!r:.40} is not one of {', '.join(STATUSES)}.")
    for name in ("lower", "upper"):
        if claim[name] is not None and not 0 <= expect(claim[name], (int, float), f"claim.{name}") < math.inf:
            raise InvalidCertificate(f"claim.{name}: {claim[name]!r} is no distance; a number of at least 0 is needed.")
    if claim.get("actions") is not None:
        for number, name in enumerate(expect(claim["actions"], list, "claim.actions")):
            expect(name, str, f"claim.actions[{number}]")
    if claim["counterfactual"] is not None:
        _check_row(claim["counterfactual"], "claim.counterfactual")
    for name, row in expect(claim.get("reason", {}), dict, "claim.reason").items():
        _check_row(row, f"claim.reason.{name}")
    for name, ends in expect(claim.get("ranges", {}), dict, "claim.ranges").items():
        _check_ends(ends, f"claim.ranges.{name}")
    if "reasons" in claim:
        _check_reasons(claim["reasons"])


def _check_reasons(found: Any) -> None:
    check_keys(expect(found, dict, "claim.reasons"), {"sets", "rows"}, "claim.reasons")
    for number, names in enumerate(expect(found["sets"], list, "claim.reasons.sets")):
        for name in expect(names, list, f"claim.reasons.sets[{number}]"):
            expect(name, str, f"claim.reasons.sets[{number}]")
    for number, row in enumerate(expect(found["rows"], list, "claim.reasons.rows")):
        _check_row(row, f"claim.reasons.rows[{number}]")


def _check_ends(ends: Any, place: str) -> None:
    """Refuse what is neither ``None``, nor a list of levels (``None``: that of missing values), nor two ends."""
    if ends is None:
        return
    if isinstance(ends, dict):
        check_keys(ends, {"low", "high"}, place)
        values = list(ends.values())
    else:
        values = [level for level in expect(ends, list, place) if level is not None]
    for value in values:
        expect(value, (str, int, float, bool), place)


def _check_row(row: Any, place: str) -> None:
    for name, value in expect(row, dict, place).items():
        if value is not None:
            expect(value, (str, int, float, bool), f"{place}.{name}")


# ---- reading


def _clean(value: Any, place: str, depth: int, unpacking: Unpacking) -> Any:
    """Return a value with its arrays unpacked; what no certificate holds is refused."""
    if depth > DEEPEST_CERTIFICATE:
        raise InvalidCertificate(f"{place[:60]}: nested more than {DEEPEST_CERTIFICATE} deep.")
    if isinstance(value, dict):
        if is_packed(value):
            return unpacking.array(value, place)
        for key in value:
            expect(key, str, f"{place}: a key")
        return {key: _clean(part, f"{place}.{key}", depth + 1, unpacking) for key, part in value.items()}
    if isinstance(value, list):
        return [_clean(part, f"{place}[{number}]", depth + 1, unpacking) for number, part in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidCertificate(f"{place}: {value} is not a number of JSON.")
    if isinstance(value, int) and abs(value) >= 10**MOST_DIGITS:
        raise InvalidCertificate(f"{place}: the number is too long.")
    if value is not None and not isinstance(value, str | int | float | bool):
        raise InvalidCertificate(f"{place}: a {type(value).__name__} is no part of JSON.")
    return value


# ---- writing


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return pack(value)
    if isinstance(value, dict):
        return {key: _packed(part) for key, part in value.items()}
    return [_packed(part) for part in value] if isinstance(value, list | tuple) else value


def _pieces(value: Any) -> Iterator[str]:
    """Yield the JSON text of a value; large arrays in parts, so that the whole is never in memory twice."""
    if isinstance(value, np.ndarray):
        narrow = narrowed(value)
        yield f'{{"dtype": "{narrow.dtype.str}", "shape": {list(narrow.shape)}, "data": "'
        yield from encoded(narrow)
        yield '"}'
    elif isinstance(value, dict):
        yield "{"
        for number, (key, part) in enumerate(value.items()):
            yield f"{', ' if number else ''}{json.dumps(key, ensure_ascii=False)}: "
            yield from _pieces(part)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for number, part in enumerate(value):
            if number:
                yield ", "
            yield from _pieces(part)
        yield "]"
    else:
        yield json.dumps(value, ensure_ascii=False, allow_nan=False)

"""The JSON schemas of what MACE writes: an explanation, a certificate, a space. ``make generate`` writes them to docs/reference/.

A test holds them against what this version writes, and against files of earlier versions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "reference"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

VALUE = {
    "type": ["string", "number", "boolean", "null"],
    "description": "a value of a feature; null where it is missing",
}
LABEL = {"type": ["string", "number", "boolean", "null"]}
ROW = {"type": "object", "additionalProperties": VALUE}
TEXTS = {"type": "array", "items": {"type": "string"}}
STATUS = ["optimal", "feasible", "infeasible", "unknown", "reached", "error"]
HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def said(schema: dict[str, Any], words: str) -> dict[str, Any]:
    """Return a schema with its description."""
    return schema | {"description": words}


def record(properties: dict[str, Any], optional: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Return the schema of an object: every property is there but the optional ones; later versions may add others."""
    needed = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": needed, **more}


CHANGE = record(
    {
        "feature": {"type": "string"},
        "before": VALUE,
        "after": VALUE,
        "dtype": said({"type": "string"}, "of a real feature that is not float64"),
    },
    optional=("dtype",),
)

COUNTERFACTUAL = record(
    {
        "values": said(ROW, "the whole row, feature to value"),
        "changes": {"type": "array", "items": CHANGE},
        "distance": said({"type": "number", "minimum": 0}, "from the factual, rounded up"),
        "lower": said({"type": "number", "minimum": 0}, "proved: nothing nearer; rounded down"),
        "status": {"enum": ["optimal", "feasible"]},
        "prediction": said(LABEL, "what the real model says of this row"),
        "solver": said({"type": "string"}, "which lane answered"),
        "seconds": said({"type": "number", "minimum": 0}, "wall time inside the solver"),
        "calls": said({"type": "integer", "minimum": 0}, "questions that the lane asked"),
        "score": said({"type": ["number", "null"]}, "what the model reports of this row; from version 2"),
        "actions": said(TEXTS, "with causes: what is acted upon"),
        "held_by": said(
            {"type": "array", "items": {"type": ["string", "integer"]}},
            "of a set of models: those in which the row reaches the target",
        ),
    },
    optional=("score", "actions", "held_by"),
)

EXPLANATION = record(
    {
        "version": said({"enum": [1, 2]}, "of this format"),
        "status": {"enum": STATUS},
        "factual": said(ROW, "the row as it is"),
        "prediction": said(LABEL, "what the model says of it"),
        "target": said({"type": "string"}, "what was asked for, in words"),
        "distance": said({"type": "string"}, "the distance, in words"),
        "lower": said({"type": "number", "minimum": 0}, "proved: nothing nearer reaches the target"),
        "reason": said({"type": "string"}, "why a gap is open, or why there is no answer"),
        "seconds": said({"type": "number", "minimum": 0}, "wall time of everything"),
        "exhausted": said({"type": "boolean"}, "proved: no further counterfactual exists"),
        "solver": said({"type": "string"}, "which lane answered, and why"),
        "error": said({"type": "string"}, "in a batch: why the row was not explained"),
        "hints": said(TEXTS, "what to look at before the answer is shown"),
        "diversity": said({"type": "string"}, "how several answers differ"),
        "conflict": said(TEXTS, "the constraints that are to blame where there is no answer"),
        "round_to": said(
            {"type": "object", "additionalProperties": {"type": "number"}}, "of what the answers' numbers are multiples"
        ),
        "rounds_changes": said({"type": "boolean"}, "whether only the features that change are round"),
        "rounds_next": said({"type": "boolean"}, "whether only the round rows next to the nearest row count"),
        "fixed": said(TEXTS, "the features that constraints keep by name"),
        "outside": said({"type": "string"}, "what of a row outside the space was let in"),
        "lower_unrounded": said({"type": ["number", "null"]}, "proved of all rows, round or not"),
        "score": said({"type": ["number", "null"]}, "what the model reports of the row"),
        "score_of": said({"type": "string"}, "what is scored"),
        "threshold": said(
            {"type": ["number", "array", "null"], "items": {"type": "number"}}, "where the target begins on that scale"
        ),
        "counterfactuals": said({"type": "array", "items": COUNTERFACTUAL}, "nearest first"),
    },
    optional=(
        [
            "error",
            "hints",
            "diversity",
            "conflict",
            "round_to",
            "rounds_changes",
            "rounds_next",
            "fixed",
            "outside",
            "lower_unrounded",
            "score",
            "score_of",
            "threshold",
        ]
    ),
)

FEATURE = {
    "oneOf": [
        record(
            {
                "kind": {"enum": ["real", "integer", "date"]},
                "low": said({"type": ["number", "string"]}, "the least value; of a date, text"),
                "high": {"type": ["number", "string"]},
                "step": said({"type": ["number", "null"]}, "allowed are low + k * step"),
                "missing": said({"type": "boolean"}, "whether a missing value is one of its values"),
                "observed": said(
                    {"type": "array", "items": {"type": ["number", "string"]}},
                    "the range before it was widened for a row",
                ),
                "unit": said({"type": "string"}, "of a date: what it is counted in"),
                "dtype": {"type": "string"},
            },
            optional=("step", "missing", "observed", "unit", "dtype"),
        ),
        record(
            {
                "kind": {"enum": ["ordinal", "categorical"]},
                "levels": said(
                    {"type": "array", "items": LABEL},
                    "of an ordinal feature in ascending order",
                ),
                "missing": {"type": "boolean"},
                "dtype": said({"type": ["string", "object"]}, "of the column; an object for pandas categories"),
            },
            optional=("missing", "dtype"),
        ),
    ]
}

SPACE = record(
    {
        "version": {"const": 1},
        "features": said(
            {"type": "object", "additionalProperties": FEATURE, "minProperties": 1}, "name to feature, in order"
        ),
        "round_to": said(
            {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
            "how round answers are",
        ),
        "protected": said(TEXTS, "features that nobody should be asked to change"),
    },
    optional=("round_to", "protected"),
)

CERTIFICATE = record(
    {
        "version": {"enum": [1, 2]},
        "statement": said(
            record(
                {
                    "model": said(record({"form": HASH, "parameters": HASH}), "the fingerprint of the model"),
                    "space": {"$ref": "#/$defs/space"},
                    "factual": ROW,
                    "target": record({"kind": {"enum": ["other", "any_of", "between"]}}),
                    "distance": record({"kind": {"enum": ["norms", "function"]}}),
                    "constraints": {"type": "array", "items": record({"kind": {"type": "string"}})},
                    "diversity": said({"type": ["object", "null"]}, "how it differs from the earlier ones"),
                    "earlier": {"type": "array", "items": ROW},
                    "accuracy": {"type": "number", "minimum": 1e-15, "maximum": 1e6},
                    "causes": said(
                        {"type": "object", "additionalProperties": {"type": "string"}},
                        "effect to the text of its equation",
                    ),
                },
                optional=("causes",),
            ),
            "the question, in full",
        ),
        "claim": said(
            record(
                {
                    "status": {"enum": ["optimal", "feasible", "infeasible", "unknown"]},
                    "lower": said({"type": ["number", "null"]}, "nothing nearer reaches the target"),
                    "upper": said({"type": ["number", "null"]}, "the distance of the counterfactual"),
                    "counterfactual": {"anyOf": [ROW, {"type": "null"}]},
                    "actions": said(
                        {"type": ["array", "null"], "items": {"type": "string"}}, "with causes: what is set"
                    ),
                },
                optional=("actions",),
            ),
            "what is claimed",
        ),
        "evidence": said(
            record({"lane": {"type": "string"}}), "the proof of lower; by its kind as docs/certificates.md says"
        ),
    },
    additionalProperties=False,
)

SCHEMAS: dict[str, dict[str, Any]] = {
    "explanation": {"$schema": DIALECT, "title": "An explanation of MACE", **EXPLANATION},
    "certificate": {"$schema": DIALECT, "title": "A certificate of MACE", **CERTIFICATE, "$defs": {"space": SPACE}},
    "space": {"$schema": DIALECT, "title": "A feature space of MACE", **SPACE},
}


def written(name: str) -> str:
    """Return the text of a schema's file."""
    return json.dumps(SCHEMAS[name], indent=2) + "\n"


def file_of(name: str) -> Path:
    """Return where a schema is kept."""
    return HERE / f"{name}.schema.json"


def table(name: str) -> str:
    """Return the properties of a schema as a Markdown table."""
    rows = ["| key | type | what it is |", "| --- | --- | --- |"]
    needed = SCHEMAS[name]["required"]
    for key, part in SCHEMAS[name]["properties"].items():
        kinds = part.get("type", "one of " + ", ".join(f"`{each}`" for each in part.get("enum", [part.get("const")])))
        kinds = " or ".join(kinds) if isinstance(kinds, list) else kinds
        rows.append(
            f"| `{key}` | {kinds}{'' if key in needed else ', may be left out'} | {part.get('description', '')} |"
        )
    return "\n".join(rows)

"""The bodies of requests, with their limits and the examples that the schema shows and the tests send."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mace.service.limits import ServiceLimits

MOST_FEATURES = 10_000
LIMITS = ServiceLimits()

Text = Annotated[str, Field(max_length=1000)]
Scalar = str | bool | int | float | None
Row = Annotated[dict[Text, Scalar], Field(min_length=1, max_length=MOST_FEATURES)]
Weights = Annotated[dict[Text, Annotated[float, Field(gt=0, le=1e9)]], Field(max_length=MOST_FEATURES)]
Rule = Annotated[str, Field(max_length=LIMITS.constraint)]
Rules = Annotated[list[Rule], Field(max_length=LIMITS.constraints)]
Seconds = Annotated[float, Field(gt=0, le=LIMITS.time_limit)]
Share = Annotated[float, Field(ge=0, le=1)]
Step = Annotated[float, Field(gt=0, le=1e12)]

EXAMPLE_ROW: dict[str, Any] = {
    "checking_status": "below 0 DM",
    "duration_months": 24,
    "credit_history": "past delays",
    "purpose": "car (new)",
    "credit_amount": 4870,
    "savings": "below 100 DM",
    "employment_since": "1 to 4 years",
    "installment_rate": 3,
    "personal_status_sex": "male single",
    "other_debtors": "none",
    "residence_since": 4,
    "property": "none known",
    "age": 53,
    "other_installment_plans": "none",
    "housing": "free",
    "existing_credits": 2,
    "job": "skilled",
    "dependents": 2,
    "telephone": "none",
    "foreign_worker": "yes",
}
"""An applicant of the demo."""


class Body(BaseModel):
    """A body: what it does not know is refused, and no type is guessed."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def shown(*examples: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a body with examples."""
    return ConfigDict(extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": list(examples)})


class ScoreBound(Body):
    """A bound on the probability of a label, or on a prediction."""

    label: Scalar = None
    at_least: float | None = None
    at_most: float | None = None


class NormShares(Body):
    """A mixture of norms."""

    l0: Share = 0.0
    l1: Share = 0.0
    linf: Share = 0.0
    l2: Share = 0.0


class Diversity(Body):
    """How several answers differ."""

    sets: Literal["incomparable"] | None = None
    features: Annotated[int, Field(ge=1, le=MOST_FEATURES)] | None = None
    by: Share | None = None
    distance: Annotated[float, Field(gt=0, le=1e9)] | None = None


class AskedOptions(Body):
    """What is asked of a row, or of each of several."""

    target: ScoreBound | Scalar = Field(
        None, description="A label, or a bound on its probability; the service's own where left out."
    )
    distance: Literal["l0", "l1", "l2", "linf"] | NormShares = "l1"
    weights: Weights = Field(default_factory=dict)
    constraints: Rules = Field(default_factory=list, description="Texts of the constraint language.")
    time_limit: Seconds = LIMITS.default_time_limit
    round_to: Literal["auto"] | Step | Annotated[dict[Text, Step | None], Field(max_length=MOST_FEATURES)] | None = (
        "auto"
    )

    def plain(self) -> dict[str, Any]:
        """Return what was given, as plain data; a target that was left out stays out."""
        return without_default_target(self)


def without_default_target(body: Body) -> dict[str, Any]:
    """Return what a body holds, as plain data; a target that was left out stays out."""
    made = body.model_dump()
    if "target" not in body.model_fields_set:
        del made["target"]
    return made


class Several(AskedOptions):
    """Several answers of one row."""

    count: Annotated[int, Field(ge=1, le=LIMITS.count)] = 1
    diversity: Diversity | None = None


class ExplainBody(Several):
    """A question about a row."""

    model_config = shown(
        {"row": EXAMPLE_ROW},
        {
            "row": EXAMPLE_ROW,
            "target": {"label": "good", "at_least": 0.6},
            "weights": {"credit_amount": 4},
            "constraints": ["savings stays", "duration_months within [6, 24]"],
            "count": 2,
            "certify": True,
        },
        {"row": EXAMPLE_ROW, "constraints": ["only telephone changes"]},
    )
    row: Row
    certify: bool = False
    margin: bool = Field(False, description="Whether to say how much noise the nearest answer stands, proved.")


class LetterBody(Several):
    """A question about a row, and how the letter about it reads."""

    model_config = shown(
        {"row": EXAMPLE_ROW, "name": "Mr Smith", "sender": "The bank"},
        {"row": EXAMPLE_ROW, "html": True},
        {"row": EXAMPLE_ROW, "about": "reasons"},
    )
    row: Row
    about: Literal["changes", "reasons"] = Field("changes", description="What would have to change, or what decided.")
    number: Annotated[int, Field(ge=1, le=LIMITS.count)] = 1
    margin: bool = False
    html: bool = False
    name: Text = ""
    sender: Text = ""
    language: Literal["en", "de", "fr"] = "en"
    names: Annotated[dict[Text, Text], Field(max_length=MOST_FEATURES)] = Field(default_factory=dict)
    units: Annotated[dict[Text, Text], Field(max_length=MOST_FEATURES)] = Field(default_factory=dict)
    outcomes: Annotated[dict[Text, Text], Field(max_length=MOST_FEATURES)] = Field(default_factory=dict)


class ReasonsBody(Body):
    """A question about what holds a decision."""

    model_config = shown({"row": EXAMPLE_ROW}, {"row": EXAMPLE_ROW, "target": "good", "count": 2, "certify": True})
    row: Row
    target: ScoreBound | Scalar = Field(None, description="As of an explanation; the service's own where left out.")
    constraints: Rules = Field(default_factory=list, description="What the other features may be.")
    count: Annotated[int, Field(ge=1, le=LIMITS.count)] = 10
    smallest: bool = False
    ranges: bool = True
    time_limit: Seconds = LIMITS.default_time_limit
    certify: bool = False

    def plain(self) -> dict[str, Any]:
        """Return what was given, as plain data; a target that was left out stays out."""
        return without_default_target(self)


class LeversBody(AskedOptions):
    """A question about sets of features."""

    model_config = shown({"row": EXAMPLE_ROW, "most": 3})
    row: Row
    most: Annotated[int, Field(ge=1, le=100)] = 20


class RegionBody(Body):
    """A row, and which of its features may vary."""

    model_config = shown({"row": EXAMPLE_ROW, "features": ["duration_months", "housing"]})
    row: Row
    features: Annotated[list[Text], Field(min_length=1, max_length=50)]
    time_limit: Seconds = LIMITS.default_time_limit


class PredictBody(Body):
    """One row or several."""

    model_config = shown({"row": EXAMPLE_ROW}, {"rows": [EXAMPLE_ROW, EXAMPLE_ROW], "target": "good"})
    row: Row | None = None
    rows: Annotated[list[Row], Field(min_length=1, max_length=LIMITS.rows)] | None = None
    target: ScoreBound | Scalar = None

    @model_validator(mode="after")
    def _one_of_both(self) -> PredictBody:
        if (self.row is None) == (self.rows is None):
            raise ValueError("give row or rows, one of the two")
        return self

    def plain(self) -> dict[str, Any]:
        """Return the rows, and the target where it was given."""
        made = self.model_dump()
        rows = [made["row"]] if self.rows is None else made["rows"]
        return {"rows": rows} | ({"target": made["target"]} if "target" in self.model_fields_set else {})


class VerifyBody(Body):
    """A certificate."""

    certificate: dict[str, Any]


class PeoplePage(Body):
    """Which people, and in what order."""

    decision: Text | None = None
    sort: Literal["number", "-number", "id", "-id", "score", "-score", "decision", "-decision"] = "number"
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    limit: Annotated[int, Field(ge=1, le=LIMITS.page)] = 50


class PeopleBody(PeoplePage):
    """The same, and what to search for: words that the id or the values contain."""

    model_config = shown({"search": "rent", "limit": 5}, {"decision": "bad", "sort": "-score", "offset": 10})
    search: Annotated[str, Field(max_length=200)] = ""


class BatchBody(Several):
    """What is asked of each row of a file."""

    model_config = shown({"target": "good", "time_limit": 2}, {"about": "reasons", "id": "customer", "count": 3})
    id: Text | None = None
    about: Literal["changes", "reasons"] = Field("changes", description="What would have to change, or what decided.")
    smallest: bool = Field(False, description="Of reasons: those of the fewest features first, proved.")
    ranges: bool = Field(True, description="Of reasons: how far each reaches.")

    @model_validator(mode="after")
    def _of_one_kind(self) -> BatchBody:
        measured = {"distance", "weights", "diversity", "round_to"}
        foreign = {"smallest", "ranges"} if self.about == "changes" else measured
        if given := sorted(foreign & self.model_fields_set):
            raise ValueError(f"{', '.join(given)}: not for a batch about {self.about}")
        return self

    def plain(self) -> dict[str, Any]:
        """Return what was given, as plain data; of reasons there are ten where no number is given."""
        made = super().plain()
        return made | {"count": 10} if self.about == "reasons" and "count" not in self.model_fields_set else made


class AuditBody(AskedOptions):
    """What is asked of the people, and by what they are compared."""

    model_config = shown({"groups": ["personal_status_sex"], "rows": 60, "resamples": 100})
    groups: Annotated[list[Text], Field(max_length=20)] = Field(default_factory=list)
    protected: Annotated[list[Text], Field(max_length=MOST_FEATURES)] | None = None
    rows: Annotated[int, Field(ge=1, le=LIMITS.batch_rows)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    resamples: Annotated[int, Field(ge=1, le=10_000)] = 1000

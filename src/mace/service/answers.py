"""What a worker answers: plain data in, plain data out, one function for each kind of request."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

from mace.answer.counterfactual import Counterfactual
from mace.answer.explanation import Explanation
from mace.answer.plain import plain
from mace.answer.reasons import Reasons
from mace.certify import Certificate, verify
from mace.errors import MaceError
from mace.problem import Status
from mace.registry import resolve
from mace.service.about import about
from mace.service.asking import OWN, distance_of, question_of, reasons_asked, row_of, rules_of, target_of_request
from mace.service.opened import Opened, Rules
from mace.service.people import NoSuchPerson, People
from mace.service.scores import RowScores

Report = Callable[[dict[str, Any]], None]
"""Receives progress; raises where the request is given up."""

BETWEEN_REPORTS = 0.1
"""Seconds between two reports of one question."""


class Handler:
    """Answers the requests of one worker."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened

    @cached_property
    def people(self) -> People | None:
        """Those of the data, read when they are first wanted."""
        return People.of(self.opened)

    # ---- what is quick

    def model(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return what is served."""
        if self.people is None:
            return about(self.opened, None, 0)
        return about(self.opened, self.people.points, len(self.people.rows))

    def list_people(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return a page of people."""
        return self._people().page(given)

    def person(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return one person."""
        return self._people().person(given["number"])

    def _people(self) -> People:
        if self.people is None:
            raise NoSuchPerson("the service was started without --data: there are no people.")
        return self.people

    def predict(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return decision and score of rows."""
        target = target_of_request(self.opened, given.get("target", OWN))
        scores = RowScores(self.opened.explainer, target)
        points = []
        for number, row in enumerate(given["rows"]):
            try:
                points.append(self.opened.explainer.space.point(row_of(row)))
            except MaceError as error:
                if len(given["rows"]) == 1:
                    raise
                raise type(error)(f"row {number}: {error}") from error
        shown = None if target is None else str(target)
        return {**scores.head, "target": shown, "predictions": scores.of(points)}

    # ---- what searches

    def explain(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return the nearest counterfactuals of a row."""
        made, rules = self._explained(given, report)
        margin = made.margin if given.get("margin") else None
        data = made.to_dict()
        if given.get("certify"):
            for one, own in zip(data["counterfactuals"], made, strict=True):
                one["certificate"] = None if own.certificate is None else own.certificate.to_dict()
        whole = made.certificate if given.get("certify") else None
        return data | {
            "conflict_rules": self._to_blame(made, rules),
            "why": made.why() if made.status != Status.ERROR else "",
            "certificate": None if whole is None else whole.to_dict(),
            **({} if margin is None else {"margin": margin.to_dict() | {"text": str(margin)}}),
        }

    def _explained(self, given: dict[str, Any], report: Report) -> tuple[Explanation, Rules]:
        question, rules = question_of(self.opened, given, throttled(report))
        return self.opened.explainer._answer(row_of(given["row"]), question), rules

    def _to_blame(self, made: Explanation, rules: Rules) -> list[dict[str, Any]]:
        own = len(self.opened.rules)
        return [
            {"text": text, "from": "service", "number": number}
            if number < own
            else {"text": text, "from": "request", "number": number - own}
            for number, (text, constraint) in enumerate(rules)
            if constraint in made.conflict
        ]

    def levers(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return the smallest sets of features that suffice."""
        found = self.opened.explainer.levers(
            row_of(given["row"]),
            target_of_request(self.opened, given.get("target", OWN)),
            distance_of(given["distance"], given.get("weights") or {}),
            [constraint for _, constraint in rules_of(self.opened, given["constraints"])],
            most=given["most"],
            time_limit=given["time_limit"],
            round_to=given.get("round_to", "auto"),
        )
        return {
            "levers": [
                {"features": list(one.features), "counterfactual": one.counterfactual.to_dict()} for one in found
            ],
            "insufficient": [list(names) for names in found.insufficient],
            "complete": found.complete,
            "reason": found.reason,
            "round_to": found.round_to,
        }

    def reasons(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return what holds the decision about a row."""
        made = self._reasons(given)
        return made.to_dict() | {"text": str(made)}

    def _reasons(self, given: dict[str, Any]) -> Reasons:
        return self.opened.explainer.reasons(row_of(given["row"]), **reasons_asked(self.opened, given))

    def region(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return the proved region around a row."""
        explainer = self.opened.explainer
        row = explainer.space.validate(row_of(given["row"]))
        said = explainer.predict(row)
        found = explainer.region(_at(row, said), given["features"], time_limit=given["time_limit"])
        ends = {
            name: {"levels": [plain(level) for level in each.levels]}
            if each.levels is not None
            else {"low": each.low, "high": each.high}
            for name, each in found.items()
        }
        return {"prediction": said, "ends": ends, "complete": found.complete, "text": str(found)}

    def letter(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return a letter about a question that is asked anew."""
        is_why = given["about"] == "reasons"
        made = self._reasons(given) if is_why else self._explained(given, report)[0]
        fields = {name: given[name] for name in ("name", "sender") if given.get(name)}
        told = {name: given[name] for name in ("html", "language", "names", "units", "outcomes", "number")}
        told |= {} if is_why else {"margin": given["margin"]}
        text = made.letter(**told, **fields)
        status = "" if isinstance(made, Reasons) else str(made.status)
        return {"letter": text, "html": given["html"], "status": status}

    def verify(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Return the verdict about a certificate."""
        read = Certificate.from_dict(given["certificate"])
        verdict = verify(read, self.opened.explainer.model, progress=lambda share: report({"share": share}))
        return {
            "outcome": verdict.outcome,
            "valid": verdict.valid,
            "reason": verdict.reason,
            "claim": read.claim,
        }

    # ---- jobs

    def batch(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Explain the rows of a file."""
        made: dict[str, Any] = resolve("mace.service.work:run_batch_job")(self.opened, given, report)
        return made

    def audit(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Compare groups of people."""
        made: dict[str, Any] = resolve("mace.service.work:run_audit_job")(self.opened, given, report)
        return made

    def ready(self) -> None:
        """Ask a question, so that what is loaded once is loaded before anybody waits for it."""
        explainer = self.opened.explainer
        target = self.opened.target if explainer.classes is None else None
        try:
            explainer.explain(next(iter(self._people().rows)), target, time_limit=1.0)
        except (MaceError, StopIteration):
            return


def _at(row: dict[str, Any], said: Any) -> Counterfactual:
    """Return a row as an answer that changes nothing."""
    return Counterfactual(
        values=row,
        changes=(),
        distance=0.0,
        lower=0.0,
        status=Status.FEASIBLE,
        prediction=said,
        solver="",
        seconds=0.0,
        calls=0,
    )


def _finite(bound: float) -> float | None:
    """Return a bound for JSON, which has no infinity: a lower one is infinite where it is proved that there is no answer."""
    return None if math.isinf(bound) else float(bound)


def throttled(report: Report) -> Callable[[float, float, int], None]:
    """Return what ``on_progress`` takes: it reports the bounds, a few times a second."""
    begun, last = time.monotonic(), -math.inf

    def progress(lower: float, upper: float, calls: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= BETWEEN_REPORTS:
            last = now
            ends = {"lower": _finite(lower), "upper": _finite(upper)}
            report({**ends, "calls": calls, "seconds": now - begun})

    return progress

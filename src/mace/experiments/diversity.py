"""Table 5: diverse suggestions for the borrower of the paper's example."""

from __future__ import annotations

from typing import Any

from mace.answer.counterfactual import show_value
from mace.answer.explanation import Explanation
from mace.constraints import fixed
from mace.constraints.differ import differ
from mace.experiments.setting import Setting, setting_of
from mace.experiments.table import PaperTable
from mace.experiments.tables import paper

JOHN: dict[str, Any] = {
    "is_male": "yes",
    "is_married": "yes",
    "age_group": "40 to 59",
    "education_level": "university",
    "max_bill_over_6_months": 500.0,
    "max_payment_over_6_months": 60.0,
    "months_with_zero_balance": 0,
    "months_with_low_spending": 0,
    "months_with_high_spending": 1,
    "most_recent_bill": 370.0,
    "most_recent_payment": 40.0,
    "has_history_of_overdue_payments": "yes",
}
"""What the paper's Appendix says of him."""

UNSAID = ("total_overdue_counts", "total_months_overdue")
"""Features that the paper does not give for him."""

FEATURES_SHOWN = ("most_recent_bill", "most_recent_payment", "education_level")
COUNT = 3


def borrower(setting: Setting) -> dict[str, Any]:
    """Return the borrower; what the paper leaves out is the median of the training rows like him in sex, marriage, age and history."""
    frame = setting.train_frame
    for name in ("is_male", "is_married", "age_group", "has_history_of_overdue_payments"):
        frame = frame[frame[name] == JOHN[name]]
    return JOHN | {name: int(frame[name].median()) for name in UNSAID}


def suggestions(setting: Setting) -> Explanation:
    """Return three suggestions, each with at least one other value than every earlier one."""
    return setting.explainer.explain(
        borrower(setting),
        distance="l1",
        constraints=[fixed("age_group", "is_male", "is_married")],
        count=COUNT,
        diversity=differ(),
        accuracy=1e-3,
        round_to=None,
    )


def diversity(_: object = None) -> PaperTable:
    """Return Table 5."""
    setting = setting_of("credit", "lr")
    explanation = suggestions(setting)
    john = borrower(setting)
    rows = [
        (
            "factual",
            *(_beside(john[name], paper()["diversity"][0][name]) for name in FEATURES_SHOWN),
            "",
            "yes (yes)",
            "",
        )
    ]
    for number, found in enumerate(explanation, start=1):
        said = paper()["diversity"][number]
        cells = (_beside(found.values[name], said[name]) for name in FEATURES_SHOWN)
        others = "; ".join(str(change) for change in found.changes if change.feature not in FEATURES_SHOWN)
        default = "no (no)" if found.prediction == 1 else "yes (no)"
        rows.append((f"CF #{number}", *cells, others, default, f"{found.distance:.5f}"))
    assumed = ", ".join(f"{name} {john[name]}" for name in UNSAID)
    notes = (
        "In parentheses the paper's row with the same number; it shows 3 of an unknown number of suggestions, so rows need not correspond.",
        f"Assumed, because the paper does not say: {assumed} (medians of training rows like him).",
        f"Logistic regression, l1, ε 1e-03; age, sex and marital status fixed; status {explanation.status}. "
        "A further suggestion differs from each earlier one in some feature, a real one by a hundredth of its range.",
    )
    head = ("", "latest bill", "latest payment", "university degree", "other changes", "will default", "distance")
    return PaperTable(
        "diversity", "Table 5: diverse suggestions for the paper's borrower (Credit)", head, tuple(rows), notes
    )


def _beside(ours: object, paper_value: object) -> str:
    shown = f"{ours:.0f}" if isinstance(ours, float) else show_value(ours)
    return f"{shown} ({show_value(paper_value)})"

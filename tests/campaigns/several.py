"""Several answers, each with other changes than the ones before: random questions on finite spaces against going through all rows."""

from __future__ import annotations

import sys

from runner import SKIPPED, Group, run


def ensembles(seed: int) -> tuple[str, str | None]:
    from random_ensembles import random_ensemble
    from random_several import disagreement

    try:
        case = random_ensemble(seed)
    except Exception:  # a library may refuse to learn from random data
        return "not learnt", SKIPPED
    return case.family, disagreement(case, seed)


def models(seed: int) -> tuple[str, str | None]:
    from random_problems import random_case
    from random_several import disagreement

    case = random_case(seed)
    return case.family, disagreement(case, seed)


if __name__ == "__main__":
    groups = {"ensembles": Group(600, 500_000, ensembles), "models": Group(300, 510_000, models)}
    sys.exit(
        run(
            "several",
            "answers whose sets of changes are like none before, against going through all rows; certificates",
            groups,
        )
    )

"""A browser, and two services: the demo, and a network whose proofs take a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import PATIENCE, SETTLED, read_axe, serving, why_no_browser

collect_ignore = [] if not why_no_browser() else [path.name for path in Path(__file__).parent.glob("test_[!t]*.py")]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(jobs=tmp_path_factory.mktemp("jobs")) as address:
        yield address


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A network of three layers on the demo's data, without names for people."""
    import skops.io
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import mace

    folder = tmp_path_factory.mktemp("network")
    data = mace.datasets.load("german")
    layers = MLPClassifier((100, 100, 60), max_iter=30, random_state=0)
    model = make_pipeline(mace.Encoder(data.space), StandardScaler(), layers).fit(data.frame, data.labels)
    skops.io.dump(model, folder / "network.skops")
    (folder / "space.json").write_text(data.space.to_json(), encoding="utf-8")
    data.frame.head(60).assign(customer=[f"C-{row:04}" for row in range(60)]).to_csv(folder / "people.csv", index=False)
    (folder / "rules.toml").write_text(
        'constraints = ["age, personal_status_sex, foreign_worker stay"]\n', encoding="utf-8"
    )
    files = {"model": "network.skops", "space": "space.json", "data": "people.csv", "constraints": "rules.toml"}
    options = [part for name, file in files.items() for part in (f"--{name}", str(folder / file))]
    with serving(*options, "--target", "good", "--id", "customer", jobs=folder / "jobs") as address:
        yield address


@pytest.fixture(scope="session")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A model that predicts numbers, with a date, a long name, and a space that says what people call things."""
    import numpy as np
    import pandas as pd
    import skops.io
    from sklearn.pipeline import make_pipeline
    from sklearn.tree import DecisionTreeRegressor

    import mace

    folder = tmp_path_factory.mktemp("numbers")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "member_since": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, 80), "D"),
            "income": rng.integers(10, 90, 80) * 1000,
            "plan": pd.Categorical(rng.choice(["free", "basic", "pro"], 80), ["free", "basic", "pro"], ordered=True),
        }
    )
    worth = frame["income"] / 20 + 500 * frame["plan"].cat.codes.astype(float)
    space = mace.FeatureSpace.from_frame(frame)
    model = make_pipeline(mace.Encoder(space), DecisionTreeRegressor(max_depth=5, random_state=0)).fit(frame, worth)
    skops.io.dump(model, folder / "worth.skops")
    named = space.describe(
        names={"income": "Yearly income"}, units={"income": "EUR"}, levels={"plan": {"pro": "premium"}}
    )
    (folder / "space.json").write_text(named.to_json(), encoding="utf-8")
    frame.to_csv(folder / "people.csv", index=False)
    options = ["--model", "worth.skops", "--space", "space.json", "--data", "people.csv"]
    files = [part if part.startswith("--") else str(folder / part) for part in options]
    with serving(*files, "--target", ">= 4000", jobs=folder / "jobs") as address:
        yield address


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open the page; errors in the console but those expected, and requests to another host, fail the test at its end."""
    made: list[Any] = []
    wrong: list[str] = []

    def opened(
        address: str, *, width: int = 1440, height: int = 1000, query: str = "", expected: str = "\0", **options: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **{"locale": "en-GB"} | options)
        context.set_default_timeout(PATIENCE)
        made.append(context)
        page = context.new_page()
        page.on(
            "console",
            lambda said: (
                wrong.append(said.text) if said.type in ("error", "warning") and expected not in said.text else None
            ),
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: None if _is_own(asked.url, address) else wrong.append(asked.url))
        page.goto(f"{address}/{query}")
        page.wait_for_selector(SETTLED)
        return page

    yield opened
    for context in made:
        context.close()
    assert wrong == []


def _is_own(url: str, address: str) -> bool:
    return url.startswith((f"{address}/", "blob:", "data:"))


@pytest.fixture
def cut() -> Callable[[Any, float], None]:
    """Give the questions of a page less time than it asks for; what the service answers is real."""

    def shorter(page: Any, seconds: float) -> None:
        def handle(route: Any) -> None:
            body = json.loads(route.request.post_data) | {"time_limit": seconds}
            route.continue_(post_data=json.dumps(body))

        page.unroute("**/v1/explain/stream")
        page.route("**/v1/explain/stream", handle)

    return shorter


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = read_axe(tmp_path_factory.mktemp("axe"))
    if not source:
        pytest.skip("axe-core cannot be fetched with npm here: what it checks is not checked")
    return source

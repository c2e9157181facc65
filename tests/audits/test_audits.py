"""Audits: every figure against brute force over a space small enough to list."""

from __future__ import annotations

import datetime
import io
import itertools
import json
import math
import sys
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import mace
from mace.audits import audit as make_audit
from mace.audits.report import _number, _points
from mace.audits.summary import LEAST_FOR_INTERVAL, chance, holm, means
from mace.cli.main import run

SPACE = mace.FeatureSpace(
    {
        "sex": mace.categorical(["f", "m"]),
        "income": mace.integer(0, 20),
        "housing": mace.categorical(["rent", "own"]),
        "age": mace.integer(18, 30),
    }
)


def decide(sex, income, housing, age):  # type: ignore[no-untyped-def]
    if age < 20:
        return "no"
    if sex == "m":
        return "yes" if income >= 8 else "no"
    return "yes" if income >= 18 and housing == "own" else "no"


POINTS = [dict(zip(SPACE, values, strict=True)) for values in product("fm", range(21), ["rent", "own"], range(18, 31))]
TRAIN = pd.DataFrame(POINTS)
MODEL = make_pipeline(mace.Encoder(SPACE, categorical="codes"), DecisionTreeClassifier(random_state=0)).fit(
    TRAIN, [decide(**point) for point in POINTS]
)
EXPLAINER = mace.Explainer(MODEL, SPACE)
PEOPLE = TRAIN.sample(90, random_state=0).assign(region=lambda frame: np.where(frame["age"] > 24, "north", "south"))
AUDIT = make_audit(
    EXPLAINER, PEOPLE, ["sex", "region"], target="yes", constraints=["age stays"], protected=["sex"], resamples=200
)


def distance(a: Any, b: Any) -> float:
    moved = (a["sex"] != b["sex"]) + (a["housing"] != b["housing"])
    return float((moved + abs(a["income"] - b["income"]) / 20 + abs(a["age"] - b["age"]) / 12) / 4)


def nearest(row: Any, *held: str) -> float:
    fits = [p for p in POINTS if p["age"] == row["age"] and all(p[name] == row[name] for name in held)]
    return min((distance(row, point) for point in fits if decide(**point) == "yes"), default=math.inf)


def test_the_tree_is_the_rule() -> None:
    assert MODEL.predict(TRAIN).tolist() == [decide(**point) for point in POINTS]


def test_every_person_is_as_brute_force_says() -> None:
    seen = set()
    for person, (index, row) in zip(AUDIT.people, PEOPLE.iterrows(), strict=True):
        assert person.row == index
        assert person.groups == {"sex": row["sex"], "region": row["region"]}
        own = {name: row[name] for name in SPACE}
        free, held = nearest(own), nearest(own, "sex")
        if decide(**own) == "yes":
            assert person.outcome == "granted"
        elif free == math.inf:
            assert person.outcome == person.held_outcome == "none"
            assert person.is_fixed
        else:
            assert person.outcome == "recourse"
            assert person.distance == pytest.approx(free)
            assert person.held_outcome == ("none" if held == math.inf else "recourse")
            assert person.held_distance == pytest.approx(held)
            assert person.price == pytest.approx(held - free)
            assert bool(person.touches) == ("sex" in person.changed)
        seen.add((person.outcome, bool(person.touches)))
    assert seen == {("granted", False), ("none", False), ("recourse", False), ("recourse", True)}


def test_the_figures_of_a_group_are_those_of_its_people() -> None:
    assert [group.name for group in AUDIT.groups] == ["sex f", "sex m", "region north", "region south"]
    for group in (AUDIT.everyone, *AUDIT.groups):
        people = [p for p in AUDIT.people if not group.column or p.groups[group.column] == group.value]
        found = [p for p in people if p.outcome == "recourse"]
        assert group.people == len(people)
        assert group.outcomes["none"] == sum(p.is_fixed for p in people)
        assert group.proved_nearest == len(found)
        assert group.measures["distance"].value == pytest.approx(np.mean([p.distance for p in found]))
        assert group.distances["50%"] == pytest.approx(np.median([p.distance for p in found]))
        assert group.lowers["mean"] <= group.distances["mean"]
        assert group.levers["income"] == pytest.approx(np.mean(["income" in p.changed for p in found]))
        assert list(group.levers.values()) == sorted(group.levers.values(), reverse=True)
        assert group.protected["sex"] == pytest.approx(np.mean([bool(p.touches) for p in found]))
        touching = [p for p in found if p.touches]
        assert sum(group.held.values()) == len(touching)
        if touching:
            assert group.relative_price == pytest.approx(np.mean([p.price / p.distance for p in touching]))
    assert len(AUDIT.fixed) == AUDIT.everyone.outcomes["none"] > 0


def test_disparities_are_differences_of_means_against_the_largest_group() -> None:
    largest = PEOPLE["sex"].value_counts().idxmax()
    made = [each for each in AUDIT.disparities if each.column == "sex"]
    assert {each.reference for each in made} == {largest}
    by_name = {group.value: group for group in AUDIT.groups if group.column == "sex"}
    for each in made:
        own, other = by_name[each.value].measures[each.measure], by_name[largest].measures[each.measure]
        assert each.difference.value == pytest.approx(own.value - other.value)
        if not math.isnan(each.difference.low):
            assert each.difference.low <= each.difference.high
    granted = next(each for each in made if each.measure == "granted")
    assert granted.is_clear, "women are granted far less often by this model"


def test_the_bootstrap_covers_and_is_seeded() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 400)
    first, again, other = means(values, 2000, 1), means(values, 2000, 1), means(values, 2000, 2)
    assert (first == again).all()
    assert (first != other).any()
    assert np.std(first) == pytest.approx(values.std() / 20, rel=0.1)
    options: dict[str, Any] = {"target": "yes", "constraints": ["age stays"], "protected": ["sex"], "resamples": 200}
    assert make_audit(EXPLAINER, PEOPLE, ["sex", "region"], **options).to_json() == AUDIT.to_json()


def test_few_people_get_no_interval() -> None:
    audit = make_audit(EXPLAINER, PEOPLE.head(12), ["sex"], target="yes", resamples=20)
    assert all(math.isnan(each.difference.low) for each in audit.disparities)
    assert not any(each.is_clear for each in audit.disparities)
    assert "few: " in str(audit)


def test_protected_are_the_groups_that_are_features_where_not_given() -> None:
    audit = make_audit(EXPLAINER, PEOPLE.head(20), ["sex", "region"], target="yes", resamples=10)
    assert audit.protected == ("sex",)
    assert make_audit(EXPLAINER, PEOPLE.head(5), target="yes", resamples=10).groups == ()


def test_a_bad_row_is_counted_and_loses_no_other() -> None:
    people = PEOPLE.head(20).reset_index(drop=True)
    people.loc[3, "income"] = 999
    audit = make_audit(EXPLAINER, people, ["sex"], target="yes", resamples=10)
    assert audit.everyone.outcomes["error"] == 1
    assert "999" in audit.people[3].error
    assert audit.everyone.people == 20


@pytest.mark.slow
def test_a_row_out_of_time_is_undecided_and_not_fixed() -> None:
    audit = make_audit(EXPLAINER, PEOPLE, ["sex"], target="yes", solver="smt", time_limit=0.001, resamples=10)
    assert audit.everyone.outcomes["unknown"] > 0
    assert "undecided" in str(audit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": ["sexx"]}, "no column 'sexx'"),
        ({"protected": ["sexx"]}, "no feature 'sexx'"),
        ({"target": None}, "which outcome"),
        ({"resamples": 0}, "resamples=0"),
        ({"date": "28.2.2026"}, "date='2026-02-28'"),
        ({"frame": [1]}, "data frame"),
        ({"frame": PEOPLE.drop(columns="income")}, "'income'"),
        ({"frame": PEOPLE.assign(id=[f"p{row}" for row in range(90)]), "groups": ["id"]}, "at most 50"),
    ],
)
def test_a_wrong_audit_is_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"frame": PEOPLE, "groups": ["sex"], "target": "yes", **options}
    with pytest.raises(mace.InvalidOption, match=message):
        make_audit(EXPLAINER, **given)


class Balanced(HTMLParser):
    """Checks that every element is closed, and nothing is fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attributes:
            assert name not in ("src",), value
            assert name not in ("href", "xlink:href") or (value or "").startswith("#"), value
            assert not name.startswith("on")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow
def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    AUDIT.save(tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert text.count("<svg") == 3
    assert AUDIT.to_html() == AUDIT.to_html()
    assert AUDIT._repr_html_().count("<svg") == 0
    with pytest.raises(mace.InvalidOption, match="unknown kind"):
        AUDIT.save(tmp_path / "audit.pdf")


def test_what_people_are_called_is_escaped() -> None:
    people = PEOPLE.head(20).assign(region="<script>alert(1)</script>")
    page = make_audit(EXPLAINER, people, ["region"], target="yes", resamples=10).to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_json_and_terminal_say_the_same() -> None:
    data = json.loads(AUDIT.to_json())
    assert data["everyone"]["outcomes"] == AUDIT.everyone.outcomes
    assert len(data["people"]) == 90
    assert f"{AUDIT.everyone.outcomes['none']} are proved to have none" in str(AUDIT)
    assert "Decisions that are fixed" in str(AUDIT)
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(AUDIT)
    assert "The price of protection" in console.export_text()
    assert "90 people" in repr(AUDIT)


@pytest.mark.slow
def test_the_command_line_audits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skops.io.dump(MODEL, tmp_path / "model.skops")
    (tmp_path / "space.json").write_text(SPACE.to_json())
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    paths = ["--data", "people.csv", "--model", "model.skops", "--space", "space.json", "--out", "report.json"]
    options = [str(tmp_path / each) if "." in each else each for each in paths]
    more = [
        "--target",
        "yes",
        "--groups",
        "sex,region",
        "--rule",
        "age stays",
        "--protect",
        "sex",
        "--resamples",
        "200",
        "--date",
        "2026-02-28",
    ]
    assert run(["audit", *options, *more]) == 0
    assert "The price of protection" in capsys.readouterr().out
    found, wanted = json.loads((tmp_path / "report.json").read_text()), json.loads(AUDIT.to_json())
    for each in (found, wanted):
        for person in each["people"]:
            del person["row"]
    assert found.pop("setting") == {
        "model": "model.skops: DecisionTreeClassifier, 4 features, predicts no or yes",
        "data": "people.csv, 90 rows",
        "date": "2026-02-28",
        "version": mace.__version__,
    }
    del wanted["setting"]
    assert found == wanted
    assert run(["audit", *options, *more, "--rows", "10"]) == 0
    assert "10 people" in capsys.readouterr().out
    assert run(["audit", *options, "--target", "yes", "--groups", "sexx"]) == 2
    assert "Did you mean 'sex'" in capsys.readouterr().err
    assert run(["audit", *options, "--target", "yes", "--out", str(tmp_path / "report.pdf")]) == 2


def test_the_summary_is_three_sentences() -> None:
    assert [sentence.count(". ") for sentence in AUDIT.summary] == [0, 0, 0]
    assert all(sentence.endswith(".") for sentence in AUDIT.summary)
    assert AUDIT.summary[1].startswith(f"Of {AUDIT.comparisons} comparisons between groups")
    assert "change sex" in AUDIT.summary[2]
    alone = make_audit(EXPLAINER, PEOPLE.head(20), target="yes", resamples=10)
    assert alone.summary[1] == "No groups were compared."
    assert "must change most often is" in alone.summary[2]


def test_the_report_says_what_it_is_about() -> None:
    audit = make_audit(
        EXPLAINER, PEOPLE.head(30), ["sex"], target="yes", resamples=10, model_name="m.skops", date="2026-02-28"
    )
    for text in (audit.to_html(pictures=False), " ".join(str(audit).split())):
        for said in ("m.skops: DecisionTreeClassifier", "30 rows", "2026-02-28", f"MACE {mace.__version__}", "Holm"):
            assert said in text
    assert audit.to_dict()["setting"]["date"] == "2026-02-28"
    assert audit.to_dict()["correction"] == "Holm"


def test_a_small_group_is_said_to_be_small_and_gets_no_curve() -> None:
    people = PEOPLE.assign(region=["tiny"] * 5 + ["large"] * 85)
    audit = make_audit(EXPLAINER, people, ["region"], target="yes", resamples=10)
    assert [group.is_small for group in audit.groups] == [False, True]
    assert not any(each.is_compared for each in audit.disparities)
    page = audit.to_html()
    assert "region tiny (small)" in page
    curves = page.split("<h2>Distance</h2>")[1].split("</figure>")[0]
    assert "region large (" in curves.split("<svg")[1]
    assert "region tiny" not in curves.split("<svg")[1]


def test_nothing_is_cut_in_a_terminal_of_80_columns() -> None:
    lines = str(AUDIT).splitlines()
    assert max(map(len, lines)) <= 80
    assert "\u2026" not in str(AUDIT)
    words = " ".join(str(AUDIT).split())
    for head in ("none: proved", "change one", "farther, relative", "clear"):
        assert all(word in words for word in head.split())


def test_chance_is_counted_as_by_enumeration() -> None:
    own, other = np.array([0.1, 0.9] * 5), np.array([0.2, 0.4, 0.3] * 5)
    pooled, rng = np.concatenate([own, other]), np.random.default_rng(7)
    dealt = [rng.permutation(pooled) for _ in range(20_000)]
    wanted = np.mean([abs(each[:10].mean() - each[10:].mean()) >= own.mean() - other.mean() - 1e-12 for each in dealt])
    assert chance(own, other, 20_000, 0) == pytest.approx(wanted, abs=0.015)
    assert math.isnan(chance(own[: LEAST_FOR_INTERVAL - 1], other, 100, 0))
    assert math.isnan(chance(np.ones(20), np.ones(30), 100, 0))
    one_of_ten = chance(np.array([1.0] + [0.0] * 9), np.zeros(300), 100, 0)
    assert one_of_ten == pytest.approx(10 / 310)


def test_holm_is_the_least_of_its_definition() -> None:
    found = holm([0.02, 0.001, 0.8, 0.02])
    assert found == pytest.approx([0.06, 0.004, 0.8, 0.06])
    rng = np.random.default_rng(0)
    alarms = sum(min(holm(rng.uniform(size=12).tolist())) <= 0.05 for _ in range(2000))
    assert 0.03 < alarms / 2000 < 0.07, "one alarm at all in 5 % of audits without any difference"


def test_without_matplotlib_the_page_says_how_to_go_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(mace.MissingPackage, match=r"pip install 'mace-xai\[plot\]', or leave the pictures out"):
        AUDIT.to_html()
    AUDIT.save(tmp_path / "audit.html", pictures=False)
    assert "<svg" not in (tmp_path / "audit.html").read_text()


def test_a_column_of_many_numbers_is_compared_in_bands_of_about_as_many_people() -> None:
    ages = PEOPLE["age"].astype(object)
    people = PEOPLE.assign(years=[math.nan if row < 5 else age for row, age in enumerate(ages)])
    made = make_audit(EXPLAINER, people, ["years"], target="yes", resamples=20, protected=["sex"])
    counts = {group.value: group.people for group in made.groups}
    *bands, missing = counts
    assert (missing, counts["missing"], len(bands)) == ("missing", 5, 4)
    assert min(counts[band] for band in bands) >= 10
    ends = [tuple(map(int, band.split(" to "))) for band in bands]
    assert ends == sorted(ends)
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ends))
    inside = {band: sum(low <= age <= high for age in ages[5:]) for band, (low, high) in zip(bands, ends, strict=True)}
    assert inside == {band: counts[band] for band in bands}


@pytest.mark.parametrize("kind", ["text", "datetime64[s]", "python"])
def test_dates_are_compared_in_bands_too_and_shown_as_dates(kind: str) -> None:
    days = pd.Timestamp("1960-01-01") + pd.to_timedelta(np.arange(len(PEOPLE)) * 37 % 20_000, "D")
    born = pd.Series(days, index=PEOPLE.index)
    column = {
        "text": born.dt.strftime("%Y-%m-%d"),
        "datetime64[s]": born.astype("datetime64[s]"),
        "python": born.dt.date,
    }
    given = column[kind].astype(object).where(np.arange(len(PEOPLE)) >= 5, None if kind == "python" else math.nan)
    people = PEOPLE.assign(born=given if kind != "datetime64[s]" else column[kind].where(np.arange(len(PEOPLE)) >= 5))
    made = make_audit(EXPLAINER, people, ["born"], target="yes", resamples=20, protected=["sex"])
    *bands, missing = [group.value for group in made.groups]
    assert (missing, len(bands)) == ("missing", 4)
    ends = [tuple(map(datetime.date.fromisoformat, band.split(" to "))) for band in bands]
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(ends))
    inside = [sum(low <= day <= high for day in born.dt.date[5:]) for low, high in ends]
    assert inside == [group.people for group in made.groups[:-1]]
    assert min(inside) >= 10


def test_few_dates_are_groups_of_their_own() -> None:
    people = PEOPLE.assign(
        since=pd.to_datetime(["2020-01-31" if row % 2 else "2021-07-01" for row in range(len(PEOPLE))])
    )
    made = make_audit(EXPLAINER, people, ["since"], target="yes", resamples=20, protected=["sex"])
    assert [group.value for group in made.groups] == ["2020-01-31", "2021-07-01"]


def test_groups_stand_below_their_column_on_a_terminal() -> None:
    lines = str(AUDIT).splitlines()
    column = AUDIT.groups[0].column
    place = lines.index(next(line for line in lines if line.startswith(column) and not line[len(column) :].strip()))
    assert lines[place + 1].startswith(f"  {AUDIT.groups[0].value}")
    assert max(map(len, lines)) <= 80


def test_the_first_sentence_has_no_zeros_and_no_broken_plural() -> None:
    first = AUDIT.summary[0]
    assert f"reach the target, {AUDIT.target}, already" in first
    assert ", 0 are" not in first


def test_a_long_name_of_a_column_is_broken_in_no_table_of_a_terminal() -> None:
    long = "personal_status_and_sex_of_the_applicant"
    people = PEOPLE.assign(**{long: np.where(PEOPLE.index == PEOPLE.index[0], "few", PEOPLE["sex"])})
    audit = make_audit(
        EXPLAINER, people, [long], target="yes", constraints=["age stays"], protected=["sex"], resamples=20
    )
    lines = str(audit).splitlines()
    assert any(group.is_small for group in audit.groups)
    assert lines.count(long) == 6
    words = " ".join(str(audit).split())
    for table in ("Coverage", "Distance", "What must change", "Protected features", "Differences between groups"):
        assert long in words.partition(table)[2]
    assert words.count(long) == "".join(str(audit).split()).count(long)
    assert max(map(len, lines)) <= 80


def test_reports_use_the_names_that_people_know_and_json_those_of_the_data() -> None:
    space = SPACE.describe(
        names={"sex": "the sex", "income": "your pay", "age": "your age"},
        units={"age": "years"},
        outcomes={"yes": "approved"},
        levels={"sex": {"f": "women", "m": "men"}, "housing": {"rent": "at home", "own": "at home"}},
    )
    groups, options = ["sex", "age", "housing"], {"constraints": ["age stays"], "resamples": 200, "date": "2026-02-28"}
    plain = make_audit(EXPLAINER, PEOPLE, groups, target="yes", protected=["sex"], **options)
    named = make_audit(mace.Explainer(MODEL, space), PEOPLE, groups, target="yes", protected=["sex"], **options)
    assert named.to_json() == plain.to_json()
    assert named == plain
    pictures = [part.partition("</svg>")[0] for part in named.to_html().split("<svg")]
    assert [sum(name in part for part in pictures[1:]) for name in ("your pay", "the sex women", "the sex f")] == [
        1,
        3,
        0,
    ]
    text = " ".join(str(named).split())
    for shown in (text, named.to_html(pictures=False), named._repr_html_()):
        assert "reach the target, approved, already" in shown
        assert "approved (in the data: yes)" in shown
        for said in (
            "change the sex",
            "your pay",
            "your age",
            "women",
            "18 to 21 years",
            "at home (own)",
            "at home (rent)",
        ):
            assert said in shown, said
        assert not [said for said in ("sex f", "change sex", "income") if said in shown]
    assert [line for line in str(named).splitlines() if line in ("the sex", "your age", "housing")][:3] == [
        "the sex",
        "your age",
        "housing",
    ]
    assert "of the sex women the" in named.summary[1]
    assert named.summary[1].endswith("than of men.")


def test_whole_numbers_beside_missing_ones_are_groups_by_whole_numbers() -> None:
    people = PEOPLE.assign(dependents=[math.nan if row < 5 else float(row % 2) for row in range(len(PEOPLE))])
    made = make_audit(EXPLAINER, people, ["dependents"], target="yes", resamples=20, protected=["sex"])
    assert [group.name for group in made.groups] == ["dependents 0", "dependents 1", "dependents missing"]


def test_no_figure_is_a_negative_zero() -> None:
    assert [_points(value) for value in (-0.0004, 0.0, -0.0006, 0.2)] == ["0.0", "0.0", "-0.1", "+20.0"]
    assert _number(-0.0) == "0"

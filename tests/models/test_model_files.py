"""Model files: every honest one loads without trust, a forged one runs nothing, a damaged one is refused in one line."""

from __future__ import annotations

import contextlib
import io
import json
import math
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from forged_files import (
    attributes,
    edited_arrays,
    keyed,
    listed,
    made,
    packed,
    pickle_alone,
    pickled_array,
    plain,
    system,
    touching,
    unpacked,
    with_attribute,
    written,
)
from saved_models import NUMBERS, TREE, fitted, numbers, people, unfitted
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import mace
from mace.errors import UnsupportedModel
from mace.models import MODELS, read
from mace.models.files import child
from mace.models.files.archive import check_archive
from mace.models.preprocessing.steps import STEPS

pytestmark = [
    pytest.mark.filterwarnings("ignore:Found unknown categories:UserWarning"),
    pytest.mark.filterwarnings("ignore:Class PassiveAggressive:FutureWarning"),
]

COMMAND = "touch {}"


def refused(file: Path) -> str:
    """Return the message of a file that is refused, which is one line."""
    with pytest.raises(UnsupportedModel) as caught:
        mace.load_model(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- honest files


@pytest.mark.parametrize("name", list(unfitted()))
def test_a_model_of_every_family_loads_without_trust(name: str, tmp_path: Path) -> None:
    model, X = fitted(name)
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = mace.load_model(tmp_path / "model.skops")
    assert (loaded.predict(X) == model.predict(X)).all()


def test_an_encoder_of_a_space_with_every_dtype_and_with_names_loads_without_trust(tmp_path: Path) -> None:
    frame = people()[0].assign(
        school=lambda rows: pd.Categorical(rows["school"], ["low", "middle", "high"], ordered=True),
        home=lambda rows: rows["home"].astype("category"),
        since=pd.Timestamp("2020-01-01") + pd.to_timedelta(people()[0]["age"], "D"),
        paid=lambda rows: rows["paid"].astype("Int64"),
        debt=lambda rows: rows["debt"].astype("float32"),
    )
    space = mace.FeatureSpace.from_frame(frame).describe(names={"home": "Housing"}, levels={"home": {"own": "owned"}})
    model = make_pipeline(mace.Encoder(space.protect("age")), clone(TREE)).fit(frame, people()[1])
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = mace.load_model(tmp_path / "model.skops")
    assert (loaded.predict(frame) == model.predict(frame)).all()
    assert mace.Explainer(loaded, loaded[0].space).explain(frame.iloc[0]).status in ("optimal", "reached")


def test_every_family_and_step_of_scikit_learn_is_among_them() -> None:
    held = {name for each in unfitted() for name in check_archive(skops.io.dumps(fitted(each)[0]), each)}
    classes = {name.rpartition(".")[2] for name in held}
    meant = {key.partition(":")[2] for key in (*MODELS, *STEPS) if key.startswith("sklearn:")}
    assert meant - classes == {"SparseRandomProjection"}, "it holds a sparse matrix, which needs trust"


def test_compressed_files_load(tmp_path: Path) -> None:
    model, X = fitted("RandomForestClassifier")
    skops.io.dump(model, tmp_path / "model.skops", compression=zipfile.ZIP_DEFLATED, compresslevel=9)
    assert (mace.load_model(tmp_path / "model.skops").predict(X) == model.predict(X)).all()


# ---- files that would run code


@pytest.mark.parametrize("name", list(touching("")))
def test_a_forged_file_runs_nothing(name: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    node = touching(COMMAND.format(canary))[name]
    file = written(tmp_path, with_attribute(fitted("DecisionTreeClassifier")[0], node))
    refused(file)
    assert not canary.exists()
    with contextlib.suppress(UnsupportedModel):
        mace.load_model(file, trust=True)
    deadline = time.monotonic() + 20
    while not canary.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert canary.exists(), "the forgery is a real one: whoever trusts it, runs it"


@pytest.mark.parametrize("forge", [pickled_array, pickle_alone])
def test_an_array_that_is_a_pickle_is_refused(forge: Callable[[str], bytes], tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    schema, files = unpacked(skops.io.dumps(fitted("LogisticRegression")[0]))
    files = dict.fromkeys(files, forge(COMMAND.format(canary)))
    refused(written(tmp_path, packed(schema, files)))
    assert not canary.exists()


def test_a_module_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil_on_import.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\nfire = print\n")
    monkeypatch.syspath_prepend(tmp_path)
    for loader in ("FunctionNode", "TypeNode", "RandomStateNode", "ObjectNode"):
        parts = {"content": plain(0)} if loader in ("RandomStateNode", "ObjectNode") else {}
        node = made(loader, "evil_on_import", "fire", **parts)
        refused(written(tmp_path, with_attribute(TREE, node)))
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("sklearn.metrics._classification", "np"),
        ("sklearn.metrics._scorer", "warnings"),
        ("sklearn.model_selection._split", "numbers"),
        ("mace.space.space", "json"),
        ("mace.space.encoder", "pd"),
        ("sklearn.tree._tree", "Tree.evil"),
        ("numpy", "load"),
        ("numpy.random", "seed"),
        ("builtins", "eval"),
        ("builtins", "map"),
    ],
)
def test_a_name_beside_a_known_one_is_not_known(module: str, name: str, tmp_path: Path) -> None:
    for loader in ("FunctionNode", "TypeNode", "ObjectNode", "ListNode", "MethodNode", "CachedNode"):
        node = made(loader, module, name, **({"content": []} if loader == "ListNode" else {}))
        assert f"{module}.{name}" in refused(written(tmp_path, with_attribute(TREE, node)))


def _forged(change: Callable[[dict[str, Any]], None]) -> bytes:
    schema, files = unpacked(skops.io.dumps(fitted("DecisionTreeClassifier")[0]))
    change(schema)
    return packed(schema, files)


def _twins(schema: dict[str, Any]) -> None:
    """Let a short node stand for a long one: skops would take the first that it meets."""
    long = listed(*(plain(k) for k in range(9)))
    attributes(schema)["evil"] = listed(long, {**listed(), "__id__": long["__id__"]})


def _growing(schema: dict[str, Any]) -> None:
    """Sixty lists, each twice inside the next: 2^60 nodes for whoever walks them."""
    node = listed(plain(0))
    for _ in range(60):
        node = listed(node, {**listed(), "__id__": node["__id__"]})
    attributes(schema)["evil"] = node


def _deep(schema: dict[str, Any]) -> None:
    node = plain(0)
    for _ in range(400):
        node = listed(node)
    attributes(schema)["evil"] = node


def _within_itself(schema: dict[str, Any]) -> None:
    attributes(schema)["evil"] = {**schema["content"], "content": {}}


def _generator(name: str, pool: int) -> dict[str, Any]:
    def state(**values: Any) -> dict[str, Any]:
        types = listed(*(made("TypeNode", "builtins", "str") for _ in values))
        content = {key: plain(value) for key, value in values.items()}
        return made("DictNode", "builtins", "dict", key_types=types, content=content)

    seed = state(entropy=1, spawn_key=None, pool_size=pool, n_children_spawned=0)
    content = {"bit_generator": state(bit_generator=name), "seed_seq": seed}
    return made("RandomGeneratorNode", "numpy.random._generator", "Generator", content=content)


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "the oldest protocol": lambda schema: schema.update(protocol=0),
    "a protocol to come": lambda schema: schema.update(protocol=9),
    "a protocol that is true": lambda schema: schema.update(protocol=True),
    "a function of the oldest protocol": lambda schema: attributes(schema).update(
        evil=made("FunctionNode", "numpy", "log", content={"module_path": "os", "function": "system"})
    ),
    "a node that is two": _twins,
    "nodes that double": _growing,
    "nodes too deep": _deep,
    "a node within itself": _within_itself,
    "no identity": lambda schema: attributes(schema).update(evil={**plain(0), "__id__": None}),
    "a list as a name": lambda schema: attributes(schema).update(evil={**plain(0), "__class__": ["str"]}),
    "a value that is a list": lambda schema: attributes(schema).update(evil={**plain(0), "content": "[[[]]]"}),
    "a slice of functions": lambda schema: attributes(schema).update(
        evil=made("SliceNode", "builtins", "slice", content={"start": system(), "stop": None, "step": None})
    ),
    "another generator": lambda schema: attributes(schema).update(evil=_generator("seed", 4)),
    "a seed too large": lambda schema: attributes(schema).update(evil=_generator("PCG64", 10**9)),
    "no array": lambda schema: attributes(schema)["classes_"].update(file="none.npy"),
    "an array that is the schema": lambda schema: attributes(schema)["classes_"].update(file="schema.json"),
    "a text instead of a node": lambda schema: schema.update(content="text"),
    "a partial of its own": lambda schema: attributes(schema).update(
        evil=made("PartialNode", "functools", "partial", content={
            "func": made("FunctionNode", "sklearn.utils.validation", "check_array"),
            "args": listed(plain(1), kind="tuple"),
            "kwds": keyed(made("TypeNode", "builtins", "str"), "dtype"),
            "namespace": plain(None),
        })
    ),
    "nothing but a list": lambda schema: schema.update(listed()),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_a_forged_schema_is_refused(name: str, tmp_path: Path) -> None:
    refused(written(tmp_path, _forged(FORGED[name])))


def test_a_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    schema, files = unpacked(skops.io.dumps(fitted("DecisionTreeClassifier")[0]))
    data = packed(schema, {**files, "zeros": bytes(2**27)}, zipfile.ZIP_DEFLATED)
    assert len(data) < 2**20
    assert "would unpack to" in refused(written(tmp_path, data))


def test_an_array_that_says_it_is_huge_is_refused(tmp_path: Path) -> None:
    schema, files = unpacked(skops.io.dumps(fitted("LogisticRegression")[0]))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    files = dict.fromkeys(files, stream.getvalue())
    assert "as long as it says" in refused(written(tmp_path, packed(schema, files)))


def test_a_model_that_is_not_read_says_why(tmp_path: Path) -> None:
    skops.io.dump(SVC().fit(*numbers()[:2]), tmp_path / "model.skops")
    assert "not piecewise linear" in refused(tmp_path / "model.skops")


# ---- damaged arrays


def damaged(model: Any, change: Callable[[str, Any], Any]) -> bytes:
    return edited_arrays(skops.io.dumps(model), change)


def nodes_with(field: str, value: Any, where: int = 0) -> Callable[[str, Any], Any]:
    def change(name: str, array: Any) -> Any:
        if array.dtype.names and field in array.dtype.names:
            array[field][where] = value
        return array

    return change


TREES = {
    "tree": TREE,
    "forest": RandomForestClassifier(3, max_depth=3, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3),
    "isolation": IsolationForest(n_estimators=3, max_samples=32, random_state=0),
    "ada": AdaBoostClassifier(n_estimators=3, random_state=0),
}


@pytest.mark.parametrize("family", TREES)
@pytest.mark.parametrize(
    ("field", "value"),
    [("left_child", -5), ("left_child", 0), ("left_child", 10**6), ("left_child", 2), ("left_child", -1),
     ("right_child", -2), ("right_child", 10**9), ("right_child", 1), ("feature", -3), ("feature", 4), ("feature", 10**6),
     ("threshold", np.nan)],
)  # fmt: skip
def test_a_damaged_tree_is_refused(family: str, field: str, value: Any, tmp_path: Path) -> None:
    model = TREES[family].fit(*numbers()[:2])
    assert "damaged" in refused(written(tmp_path, damaged(model, nodes_with(field, value))))


@pytest.mark.parametrize(
    ("field", "value"),
    [("feature_idx", -3), ("feature_idx", 10**6), ("is_categorical", 1), ("left", 10**6), ("left", 0), ("right", 1),
     ("is_leaf", 1)],
)  # fmt: skip
def test_a_damaged_histogram_tree_is_refused(field: str, value: Any, tmp_path: Path) -> None:
    model = HistGradientBoostingClassifier(max_iter=3).fit(*numbers()[:2])
    assert "damaged" in refused(written(tmp_path, damaged(model, nodes_with(field, value))))


@pytest.mark.parametrize(("field", "value"), [("bitset_idx", 99), ("feature_idx", 5)])
def test_a_damaged_set_of_categories_is_refused(field: str, value: int, tmp_path: Path) -> None:
    frame, _ = people()
    frame = frame.astype({"school": "category", "home": "category"})
    labels = (frame["home"] == "own") ^ (frame["school"] == "low")
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=3).fit(frame, labels)
    assert model._predictors[0][0].nodes["is_categorical"][0]
    skops.io.dump(model, tmp_path / "model.skops")
    assert (mace.load_model(tmp_path / "model.skops").predict(frame) == model.predict(frame)).all()
    assert "damaged" in refused(written(tmp_path, damaged(model, nodes_with(field, value))))


def changed(model: Any, name: str, value: Any) -> bytes:
    if not hasattr(model, name):
        return with_attribute(model, plain(value), name)
    schema, files = unpacked(skops.io.dumps(model))
    attributes(schema)[name] = value(attributes(schema)[name]) if callable(value) else plain(value)
    return packed(schema, files)


@pytest.mark.parametrize(
    ("family", "name", "value"),
    [
        ("DecisionTreeClassifier", "n_features_in_", 3),
        ("DecisionTreeClassifier", "n_features_in_", 10**12),
        ("DecisionTreeClassifier", "n_features_in_", "four"),
        ("DecisionTreeClassifier", "n_outputs_", 2),
        ("RandomForestClassifier", "n_features_in_", 2),
        ("RandomForestClassifier", "n_jobs", 10**6),
        ("GradientBoostingClassifier", "n_trees_per_iteration_", 1),
        ("GradientBoostingClassifier", "init_", "zero text"),
        ("HistGradientBoostingClassifier", "n_trees_per_iteration_", 2),
        ("HistGradientBoostingClassifier", "n_features_in_", 2),
        ("HistGradientBoostingClassifier", "_in_fit", True),
        ("LogisticRegression", "n_features_in_", 9),
        ("LogisticRegression", "coef_", None),
        ("LogisticRegression", "intercept_", lambda node: plain(None)),
        ("MLPClassifier", "n_layers_", 9),
        ("MLPClassifier", "n_outputs_", 9),
        ("BaggingClassifier", "n_features_in_", 3),
    ],
)
def test_numbers_that_do_not_fit_each_other_are_refused(family: str, name: str, value: Any, tmp_path: Path) -> None:
    file = written(tmp_path, changed(fitted(family)[0], name, value))
    with pytest.raises(UnsupportedModel):
        mace.Explainer(mace.load_model(file), NUMBERS).explain(dict.fromkeys("abcd", 0.5))


def test_a_one_hot_encoder_that_would_set_columns_beyond_its_last_is_refused(tmp_path: Path) -> None:
    """Its sparse rows go to compiled code, which looks nothing up."""
    frame, labels = people()
    levels = frame[["school", "home"]]
    model = make_pipeline(OneHotEncoder(min_frequency=25, handle_unknown="infrequent_if_exist"), LogisticRegression())
    model.fit(levels, labels)
    mappings = model[0]._default_to_infrequent_mappings
    assert any(each is not None for each in mappings)
    model[0]._default_to_infrequent_mappings = [None if each is None else each + 10**6 for each in mappings]
    skops.io.dump(model, tmp_path / "model.skops")
    assert "damaged" in refused(tmp_path / "model.skops")


@pytest.mark.parametrize("labels", [[0, 0, 2], [0.0, np.nan, 2.0]])
def test_classes_that_are_the_same_are_refused(labels: list[float], tmp_path: Path) -> None:
    model = clone(TREE).fit(*numbers()[:2])
    model.classes_ = np.array(labels)
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(UnsupportedModel, match="has a class twice, or one that is NaN"):
        mace.Explainer(mace.load_model(tmp_path / "model.skops"), NUMBERS)


def test_more_labels_than_scores_are_refused() -> None:
    X, labels = numbers()[0], (numbers()[2] > 0).astype(int)
    for model in (HistGradientBoostingClassifier(max_iter=3), LogisticRegression()):
        model.fit(X, labels)
        model.classes_ = np.array([0, 1, 2])
        with pytest.raises(UnsupportedModel, match="3 labels and 1 scores"):
            mace.Explainer(model, NUMBERS)


def test_a_start_that_is_infinite_is_refused() -> None:
    model = HistGradientBoostingClassifier(max_iter=3).fit(*numbers()[:2])
    model._baseline_prediction = np.full_like(model._baseline_prediction, np.inf)
    with pytest.raises(UnsupportedModel, match="no finite number"):
        mace.Explainer(model, NUMBERS)


# ---- MACE's own objects


def _inner(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the node of the encoder of a pipeline."""
    return attributes(schema)["steps"]["content"][0]["content"][1]


def _drop(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(schema: dict[str, Any]) -> None:
        for name in names:
            attributes(_inner(schema))[name] = plain(None)

    return change


def _first_feature(schema: dict[str, Any], low: Any) -> None:
    space = attributes(_inner(schema))["space_"]
    attributes(space)["_features"]["content"]["age"]["content"]["content"][0] = plain(low)


BROKEN: dict[str, Callable[[dict[str, Any]], None]] = {
    "no space": _drop("space_"),
    "no columns": _drop("columns_"),
    "neither": _drop("space_", "columns_", "space"),
    "another encoding": lambda schema: attributes(_inner(schema)).update(categorical=plain("codes")),
    "an unknown encoding": lambda schema: attributes(_inner(schema)).update(ordinal=plain("none")),
    "a space without features": lambda schema: attributes(attributes(_inner(schema))["space_"]).clear(),
    "a range upside down": lambda schema: _first_feature(schema, 10**4),
    "a range that is text": lambda schema: _first_feature(schema, "low"),
    "a feature half built": lambda schema: attributes(attributes(_inner(schema))["space_"])["_features"]["content"][
        "age"
    ].pop("content"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_broken_encoder_or_space_is_refused(name: str, tmp_path: Path) -> None:
    schema, files = unpacked(skops.io.dumps(fitted("people: Encoder, logistic")[0]))
    BROKEN[name](schema)
    refused(written(tmp_path, packed(schema, files)))


# ---- a damaged model that loads


def test_an_exception_of_the_models_own_predict_is_reported_in_a_line() -> None:
    X, labels, _ = numbers()
    model = MLPClassifier((4,), max_iter=30, random_state=0).fit(X, labels)
    reading = read(model, NUMBERS)
    model.coefs_[0] = model.coefs_[0][:2]
    with pytest.raises(UnsupportedModel, match=r"the model's own predict fails.*ValueError"):
        reading.ask([(0.5, 0.5, 0.5, 0.5)])


def test_parts_that_do_not_fit_are_reported_in_a_line() -> None:
    X, labels, _ = numbers()
    model = MLPClassifier((4,), max_iter=30, random_state=0).fit(X, labels)
    del model._label_binarizer
    with pytest.raises(UnsupportedModel, match=r"its parts do not fit together \(AttributeError"):
        mace.Explainer(model, NUMBERS)


# ---- boosters, in a child process


def saved(name: str, folder: Path) -> Path:
    X, _, score = numbers()
    labels = (score > 0).astype(int)
    if name in (".json", ".ubj"):
        xgboost = pytest.importorskip("xgboost")
        xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, labels).save_model(folder / f"model{name}")
    elif name == ".txt":
        lightgbm = pytest.importorskip("lightgbm")
        data = lightgbm.Dataset(X, labels, params={"verbose": -1})
        lightgbm.train({"objective": "binary", "verbose": -1}, data, 5).save_model(folder / "model.txt")
    else:
        catboost = pytest.importorskip("catboost")
        model = catboost.CatBoostClassifier(iterations=5, depth=3, verbose=False, allow_writing_files=False)
        model.fit(X, labels).save_model(str(folder / "model.cbm"))
    return folder / f"model{name}"


@pytest.mark.parametrize("kind", [".json", ".ubj", ".txt", ".cbm"])
def test_a_truncated_booster_file_is_refused(kind: str, tmp_path: Path) -> None:
    file = saved(kind, tmp_path)
    data = file.read_bytes()
    for part in (0.3, 0.6):
        file.write_bytes(data[: int(part * len(data))])
        assert "cannot be read" in refused(file)


def test_a_threshold_that_is_no_number_is_refused(tmp_path: Path) -> None:
    file = saved(".json", tmp_path)
    model = json.loads(file.read_text())
    model["learner"]["gradient_booster"]["model"]["trees"][0]["split_conditions"][0] = math.nan
    file.write_text(json.dumps(model))
    with pytest.raises(UnsupportedModel, match="threshold is no number"):
        mace.Explainer(mace.load_model(file), NUMBERS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[path_smooth: 0]", "[path_"),
        ("\nend of trees", "\n"),
        ("\nleaf_value=", "\nleaf_value=1 "),
        ("\nleft_child=", "\nleft_child=1 "),
        ("\nnum_leaves=", "\nnum_leaves=1"),
        ("\nnum_cat=0", "\nnum_cat=3"),
        ("\nshrinkage=", "\nshrink="),
    ],
)
def test_a_text_whose_lists_are_shorter_than_it_says_is_refused(old: str, new: str, tmp_path: Path) -> None:
    """LightGBM itself reads on into whatever lies behind them in memory."""
    file = saved(".txt", tmp_path)
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    assert "it is cut off, a list in it is not as long as it says" in refused(file)


def test_a_parser_that_dies_takes_nobody_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(".txt", tmp_path)
    opening = tmp_path / "child.py"
    monkeypatch.setattr(child, "__file__", str(opening))
    for code, said in (
        (f"import os; os.kill(os.getpid(), {signal.SIGSEGV.value})", "is killed by signal 11"),
        ("raise SystemExit(7)", "ends with exit code 7"),
        ("print('x' * 10**7); import sys; sys.stderr.write('refused: no'); raise SystemExit(1)", "cannot be read: no"),
    ):
        (tmp_path / "opening.py").write_text(code)
        assert said in refused(file)
    monkeypatch.setattr(child, "CHILD_SECONDS", 1)
    (tmp_path / "opening.py").write_text("while True: pass")
    assert "did not open it within 1 seconds" in refused(file)


@pytest.mark.parametrize("kind", [".json", ".ubj", ".txt", ".cbm"])
def test_opening_needs_little_memory(kind: str, tmp_path: Path) -> None:
    """The limit holds: a child that may take next to nothing is refused, one with the usual limit opens the file."""
    if sys.platform != "linux":
        pytest.skip("other systems have no limit of memory")
    file = saved(kind, tmp_path)
    script = Path(child.__file__).with_name("opening.py")
    command = [sys.executable, "-P", str(script), kind, str(file), str(tmp_path)]
    assert subprocess.run([*command, str(2**26), "30"], capture_output=True, check=False).returncode != 0
    assert subprocess.run([*command, str(child.CHILD_MEMORY), "30"], capture_output=True, check=False).returncode == 0


def test_a_trusted_file_is_opened_without_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(".json", tmp_path)
    monkeypatch.setattr("mace.models.files.load.opened_in_child", None)
    assert mace.load_model(file, trust=True).predict(numbers()[0]).shape == (len(numbers()[0]),)


def test_trust_still_loads_what_it_did(tmp_path: Path) -> None:
    model = SVC().fit(*numbers()[:2])
    skops.io.dump(model, tmp_path / "model.skops")
    joblib.dump(model, tmp_path / "model.joblib")
    for name in ("model.skops", "model.joblib"):
        assert isinstance(mace.load_model(tmp_path / name, trust=True), SVC)

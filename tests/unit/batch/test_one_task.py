"""Tasks are run once, stored whole, carried on after a stop, and counted whatever came of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.batch import one_task as module
from sparsecv_mio.batch.batch_plan import Task, make_tasks
from sparsecv_mio.batch.collected import BatchFolder, collect
from sparsecv_mio.batch.dispatch import run_batch
from sparsecv_mio.batch.one_task import check_with_data, run_task, task_rows
from sparsecv_mio.batch.run_tables import read_table, relative, settings_columns, write_table
from sparsecv_mio.certificate import verify as verify_module
from sparsecv_mio.certificate.accuracy import class_quality, count_quality
from sparsecv_mio.certificate.checked_fields import VerifyReport
from sparsecv_mio.certificate.concordance import assess_times
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput
from sparsecv_mio.problem.cox_objective import terms_of

PLAN = {
    "data": [{"design": "toeplitz", "n": 24, "p": 4, "support": 2, "snr": 5.0, "beta": ["even", "weak"]}],
    "vary": {
        "folds": "3", "gamma": "0.1", "test": 0.25, "split": [0, 1],
        "estimator": ["sparsecv", "lasso", "ridge", "relaxed-lasso", "forward", "omp", "elastic-net"],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> BatchFolder:
    folder = BatchFolder(tmp_path_factory.mktemp("batch"))
    assert run_batch(make_tasks(PLAN), folder) == 28
    return folder


def test_failures_and_limits_are_outcomes_and_may_be_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_tasks({**PLAN, "vary": {"folds": "99"}})[0]
    assert run_task(task).state == "failed" and "99" in run_task(task).reason
    limits: list[object] = []

    def fake(name: str, data: object, plan: object, settings: dict[str, object], refit: str) -> object:
        limits.append(settings.get("time_limit"))
        raise ValueError("two\nlines")

    monkeypatch.setattr(module, "run_estimator", fake)
    slow = make_tasks({**PLAN, "vary": {"folds": "3", "time_limit": 2.0}})[:1]
    folder = BatchFolder(tmp_path)
    for expected in (1, 0):
        assert run_batch(slow, folder) == expected
    assert run_batch(slow, folder, retry=True) == 1
    found = folder.read(slow[0].address)
    assert found is not None and found.reason == "ValueError: two" and found.attempt == 2
    assert "in fake" in found.traceback and not run_task(task).traceback
    assert limits == [2.0, 8.0]


def test_rows_are_held_out_the_same_way_every_time() -> None:
    tasks = make_tasks(PLAN)
    first, again = task_rows(tasks[0]), task_rows(tasks[0])
    assert first.test is not None and again.test is not None
    assert np.array_equal(first.test.X, again.test.X) and first.train.n + first.test.n == 24
    both = np.vstack([first.train.X, first.test.X])
    assert np.array_equal(np.sort(both[:, 0]), np.sort(tasks[0].source.load().X[:, 0]))
    with pytest.raises(BadInput, match="is not a share"):
        task_rows(Task(tasks[0].source, {**tasks[0].settings, "test": 1.5}))
    with pytest.raises(BadInput, match="leaves"):
        task_rows(Task(tasks[0].source, {**tasks[0].settings, "test": 0.95}))


def test_tables(done: BatchFolder) -> None:
    table = collect(done)
    assert len(table) == 28 and table["verified"].sum() == 4 and table["verified"].notna().sum() == 4
    assert {"data", "folds", "estimator", "test_error", "fingerprint", "version_numpy"} <= set(table.columns)
    pairs = collect(done, "pairs", check=False)
    assert len(pairs) == 4 * 4 and set(pairs["tau"]) == {1, 2, 3, 4}
    assert len(collect(done, "folds", check=False)) == 4 * 3
    assert set(pairs["folds"]) == {"3"} and set(pairs["folds_of_pair"]) == {3}  # what was asked for, and their number
    for frame in (table, pairs):
        assert frame["folds_digest"].notna().all() and set(frame["design_beta"]) == {"even", "weak"}
    with pytest.raises(BadInput, match="--level"):
        collect(done, "cells")


def test_what_a_task_says_is_checked_against_its_record(done: BatchFolder, tmp_path: Path) -> None:
    ours = [one for one in done.outcomes() if one.record is not None][:2]
    other = make_tasks({**PLAN, "vary": {**PLAN["vary"], "estimator": "sparsecv", "seed": 1}})[0]  # type: ignore[dict-item]
    altered = [
        (
            replace(ours[0], numbers={**ours[0].numbers, "test_error": 0.1}),
            "test_error differs from the value of the record",
        ),
        (replace(ours[0], numbers={**ours[0].numbers, "upper": 0.1}), "upper differs from the value of the record"),
        (replace(ours[0], record=ours[1].record), "fingerprint"),
        (replace(ours[0], record=run_task(other).record), "the folds of the record differ"),
        (ours[1], ""),
    ]
    for k, (outcome, message) in enumerate(altered):
        folder = BatchFolder(tmp_path / str(k))
        folder.store(outcome)
        table = collect(folder)
        assert bool(table["verified"][0]) == (not message) and message in table["reason"][0], table["reason"][0]


def test_a_result_is_verified_once_on_a_machine(
    done: BatchFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outcome = next(one for one in done.outcomes() if one.record is not None)
    folder, calls = BatchFolder(tmp_path / "results"), list[str]()
    real = verify_module.verify

    def counted(record: Record, *given: Any) -> VerifyReport:
        calls.append(record.data.fingerprint)
        return real(record, *given)

    monkeypatch.setattr(verify_module, "verify", counted)
    folder.store(outcome)
    for _ in range(2):
        assert collect(folder)["verified"].tolist() == [True] and len(calls) == 1
    folder.store(replace(outcome, numbers={**outcome.numbers, "test_error": 0.1}))
    for times in (2, 3):  # a result that fails is not remembered
        assert collect(folder)["verified"].tolist() == [False] and len(calls) == times
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    folder.store(outcome)
    assert collect(folder)["verified"].tolist() == [True] and len(calls) == 4


def test_columns_of_numbers_and_words_are_words(done: BatchFolder, tmp_path: Path) -> None:
    folder = BatchFolder(tmp_path / "mixed")
    run_batch(make_tasks({**PLAN, "vary": {"folds": "3", "gamma": [0.1, "0.1,1"], "gap": [0, 0.01]}})[:4], folder)
    write_table(collect(folder), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert set(table["gammas"]) == {"0.1", "0.1,1"} and set(table["gap_asked"]) == {0.0, 0.01}
    assert (table["gap"] <= table["gap_asked"] + 1e-9).all()


FILE = {"file": "a.csv", "target": "y"}


def written(folder: Path) -> None:
    rows = "".join(f"{i},{i * i % 7},{i % 3},{i % 2}\n" for i in range(20))
    (folder / "a.csv").write_text(f"a,b,y,which\n{rows}")


@pytest.mark.parametrize(
    ("data", "vary", "message"),
    [
        ({}, {"tau": 99}, "data 'a': tau 99 is out of range; give a number from 0 to 3"),
        ({}, {"tau": ["1:2", "1:99"]}, "data 'a': tau: '1:99' is out of range; give a number from 0 to 3"),
        ({"target": "z"}, {}, "data 'a': .*target.*'z'"),
        ({"drop": "z"}, {}, "data 'a': .*drop.*'z'"),
        ({}, {"folds": ["5", "500"]}, "data 'a': folds '500' need 500 rows but the data have 20"),
        ({}, {"folds": "five"}, "data 'a': folds 'five' are unknown"),
        ({}, {"folds": "groups:z"}, "fold, group, weight, exposure or offset column 'z' is not in the data"),
        ({}, {"folds": "15", "test": 0.5}, "data 'a': folds '15' need 15 rows but the data have 10"),
        ({}, {"test": 0.9}, "data 'a': test: a share of 0.9 leaves only 2 training rows"),
        ({}, {"refit": "training"}, "data 'a': refit training: requires a single fold, but the plan has 10"),
        ({}, {"folds": "holdout:0.3", "one_se": True}, "data 'a': one_se: a single fold has no standard error"),
        ({}, {"force_in": "z"}, "data 'a': force_in"),
        (
            {},
            {"estimator": "abess", "folds": "forward:3"},
            "data 'a': estimator abess: needs folds that hold out every row exactly once",
        ),
    ],
)
def test_what_data_do_not_allow(data: dict[str, str], vary: dict[str, Any], message: str, tmp_path: Path) -> None:
    written(tmp_path)
    tasks = make_tasks({"data": [{**FILE, **data}], "vary": vary}, tmp_path)
    with pytest.raises(BadInput, match=message) as caught:
        check_with_data(tasks)
    assert "\n" not in str(caught.value)


def test_two_classes_of_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 2))
    ill = np.where(X[:, 0] + rng.logistic(size=60) > 0.5, "yes", "no")
    rows = [f"{a},{b},{word}" for (a, b), word in zip(X.tolist(), ill.tolist(), strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,ill", *rows]) + "\n")
    data = [{"file": str(tmp_path / "d.csv"), "target": "ill"}]
    how = {"folds": "3", "gamma": "0.1", "tau": "1:2", "test": 0.3, "estimator": "sparsecv"}
    ours = {"loss": "logistic", "class_weight": "balanced", "positive": "no", "one_se": "both"}
    (task,) = make_tasks({"data": data, "vary": {**how, **ours}})
    check_with_data([task])
    outcome = run_task(task)
    assert outcome.state == "done" and outcome.record is not None, outcome.reason
    record = Record.from_json(outcome.record)
    assert record.classes is not None and record.classes.positive == "no" and record.data.class_weight == "balanced"
    assert record.folds.spec == "stratified:3"
    test = task_rows(task).test
    assert test is not None
    found = class_quality(test.y, record.predict(test.X))
    assert outcome.numbers["test_error"] == pytest.approx(found.log_loss)
    assert outcome.numbers["test_accuracy"] == found.accuracy and outcome.numbers["test_auc"] == found.auc
    assert outcome.numbers["accuracy"] == record.classes.accuracy and "one_se_test_auc" in outcome.numbers
    (plain,) = make_tasks({"data": data, "vary": how})
    with pytest.raises(
        BadInput, match=r"has text values .no and yes.; give loss = \"logistic\", or encode = \"onehot\""
    ):
        check_with_data([plain])
    once = {"folds": "holdout:0.3", "refit": "training", "one_se": False}
    for name in ("sparsecv", "ridge"):
        (single,) = make_tasks({"data": data, "vary": {**how, **ours, **once, "estimator": name}})
        assert "not supported with refit training" in run_task(single).reason
    peers = make_tasks({"data": data, "vary": {**how, "loss": "logistic", "estimator": ["lasso", "ridge"]}})
    for task in peers:
        numbers = run_task(task).numbers
        assert numbers["test_error"] == pytest.approx(found.log_loss, rel=0.3) and numbers["alpha"] > 0.0
        assert numbers["cv_error"] < record.classes.null_error and numbers["test_auc"] > 0.5
    assert [task.settings["loss"] for task in peers] == ["logistic", "logistic"]
    with pytest.raises(
        BadInput, match="omp: does not support loss logistic; use sparsecv, lasso, elastic-net, ridge, mcp, scad, abess"
    ):
        make_tasks({"data": data, "vary": {**how, "loss": "logistic", "estimator": "omp"}})


def test_tables_name_the_loss_of_every_search_and_peer(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame.assign(ill=(frame["a"] + rng.normal(size=60) > 0).astype(int)).to_csv(tmp_path / "d.csv", index=False)
    data = [{"file": str(tmp_path / "d.csv"), "target": "ill"}]
    how = {"folds": "4", "gamma": "0.1", "tau": "1:2", "loss": ["squared", "logistic"]}
    tasks = make_tasks({"data": data, "vary": {**how, "estimator": ["ridge", "sparsecv"]}})
    assert [task.settings.get("loss") for task in tasks].count(None) == 1  # of the peer: squares are what it fits
    folder = BatchFolder(tmp_path / "b")
    assert run_batch(tasks, folder) == 4
    table = collect(folder, check=False)
    assert sorted(zip(table["estimator"], table["loss"], strict=True)) == [
        ("ridge", "logistic"), ("ridge", "squared"), ("sparsecv", "logistic"), ("sparsecv", "squared"),
    ]  # fmt: skip
    assert {"loss", "gammas", "taus", "estimator"} <= {*settings_columns(table)}
    with pytest.raises(
        BadInput, match="several rows for 'd 4 0': these rows differ in loss; .*--problem data,folds,seed,loss"
    ):
        relative(table, ["cv_error"], "estimator=ridge")
    ratios = relative(table, ["cv_error"], "estimator=ridge", ["data", "loss"])["cv_error"]
    assert ratios.notna().all() and (ratios == 1.0).sum() == 2


def test_counts_with_exposures(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    X, days = rng.normal(size=(80, 3)), rng.uniform(0.5, 9.0, 80)
    frame = pd.DataFrame(X, columns=list("abc")).assign(days=days, claims=rng.poisson(days * np.exp(0.7 * X[:, 0])))
    frame.to_csv(tmp_path / "d.csv", index=False)
    data = [{"file": str(tmp_path / "d.csv"), "target": "claims"}]
    how = {"folds": "4", "gamma": "0.1", "tau": "1:2", "test": 0.25, "loss": "poisson", "exposure": "days"}
    ours, ridge = make_tasks({"data": data, "vary": {**how, "estimator": ["sparsecv", "ridge"], "one_se": "both"}})
    check_with_data([ours, ridge])
    assert ridge.settings["exposure"] == "days" and "gamma" not in ridge.settings
    folder = BatchFolder(tmp_path / "b")
    assert run_batch([ours, ridge], folder) == 2
    outcome, peer = folder.read_outcomes([ours, ridge])
    test = task_rows(ours).test
    assert outcome.record is not None and test is not None, outcome.reason
    found = count_quality(test.y, Record.from_json(outcome.record).predict(test), test.row_exposure)
    assert outcome.numbers["test_error"] == pytest.approx(found.half_deviance)
    assert outcome.numbers["one_se_test_error"] < outcome.numbers["null_error"]
    assert peer.numbers["test_error"] == pytest.approx(found.half_deviance, rel=0.2) and peer.numbers["p"] == 3
    assert 0.5 < peer.numbers["test_r_squared"] < 1.0
    row = collect(folder).set_index("estimator").loc["sparsecv"]
    assert row["verified"] and row["state"] == "done", row["reason"]
    for wrong, words in (("day", "exposure.*'day'"), ("a", "exposure: column 'a' is -.* give numbers from 1e-12")):
        with pytest.raises(BadInput, match=words):
            check_with_data(make_tasks({"data": data, "vary": {**how, "exposure": wrong, "estimator": "ridge"}}))
    words = "omp: does not support loss poisson; use sparsecv, lasso, elastic-net, ridge, abess"
    with pytest.raises(BadInput, match=words):
        make_tasks({"data": data, "vary": {**how, "estimator": "omp"}})
    with pytest.raises(BadInput, match="exposure days: requires loss poisson, not squared"):
        make_tasks({"data": data, "vary": {**how, "loss": "squared"}})


def total_partial_loss(data: Dataset, beta: Any) -> float:
    return terms_of(data, np.arange(data.n)).loss(data.X @ beta, 9.0)[0]


def test_survival_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    frame["days"] = np.ceil(9.0 * rng.exponential(size=90) * np.exp(-frame["a"]))
    frame = frame.assign(status=1 + (rng.random(90) < 0.7), centre=np.arange(90) % 2)
    frame.to_csv(tmp_path / "d.csv", index=False)
    data = [{"file": str(tmp_path / "d.csv"), "target": "days"}]
    how = {"folds": "4", "gamma": "0.1", "tau": "1:2", "test": 0.3, "loss": "cox", "event": "status=2"}
    how |= {"strata": "centre", "estimator": "sparsecv", "one_se": "both"}
    tasks = make_tasks({"data": data, "vary": {**how, "ties": ["efron", "Breslow"]}})
    check_with_data(tasks)
    folder = BatchFolder(tmp_path / "b")
    assert run_batch(tasks, folder) == 2
    for task, outcome in zip(tasks, folder.read_outcomes(tasks), strict=True):
        rows = task_rows(task)
        assert outcome.record is not None and rows.test is not None, outcome.reason
        record = Record.from_json(outcome.record)
        beta = np.array([record.coefficients.get(name, 0.0) for name in "abc"])
        both, numbers = rows.train.join_rows(rows.test), outcome.numbers
        lost = [
            total_partial_loss(both, slopes) - total_partial_loss(rows.train, slopes) for slopes in (beta, 0 * beta)
        ]
        assert numbers["test_error"] == pytest.approx(lost[0] / rows.test.survival.is_event.sum())
        assert numbers["test_gain"] == pytest.approx((lost[1] - lost[0]) / rows.test.survival.is_event.sum())
        assert numbers["gain"] == record.null_error - record.cv_error  # type: ignore[operator]
        assert numbers["test_r_squared"] == pytest.approx(1.0 - lost[0] / lost[1])
        assert numbers["test_concordance"] == assess_times(rows.test, rows.test.X @ beta).concordance > 0.6
        assert numbers["null_error"] == record.null_error and record.data.ties == task.settings["ties"].lower()
        assert 0.0 < numbers["one_se_test_r_squared"] < 1.0
    table = collect(folder)
    assert table["verified"].all() and (table["state"] == "done").all(), table["reason"]
    for wrong, words in (
        ({"event": "status"}, "event: column 'status' has the values 1, 2"),
        ({"ties": "x"}, "ties: "),
    ):
        with pytest.raises(BadInput, match=words):
            check_with_data(make_tasks({"data": data, "vary": {**how, **wrong}}))
    with pytest.raises(BadInput, match="ridge: does not support loss cox; use sparsecv"):
        make_tasks({"data": data, "vary": {**how, "estimator": "ridge"}})

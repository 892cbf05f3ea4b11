"""Oracles as tasks of a batch: their errors against those of the full way, what is dropped, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparsecv_mio.batch.batch_plan import Task, make_tasks
from sparsecv_mio.batch.collected import collect
from sparsecv_mio.batch.dispatch import run_batch
from sparsecv_mio.batch.one_task import check_with_data, run_task
from sparsecv_mio.batch.run_tables import write_table
from sparsecv_mio.batch.task_folder import BatchFolder
from sparsecv_mio.cli import run
from sparsecv_mio.errors import BadInput

SETTINGS = {"lam": 0.1, "iterations": 3}


def tasks(design: dict[str, Any], **vary: Any) -> list[Task]:
    return make_tasks({"data": [design], "vary": vary})


def numbers(design: dict[str, Any], **vary: Any) -> dict[str, Any]:
    (task,) = tasks(design, **vary)
    found = run_task(task)
    assert found.state == "done" and found.seconds > 0.0 and found.record is None, found.reason
    return dict(found.numbers)


def test_iterates_of_left_out_fits_come_near_the_exact_ones() -> None:
    design = {"design": "logistic", "n": 60, "p": 4, "support": 2}
    asked = {"estimator": "iacv", "lam": 0.01, "step": 0.5, "per_row": True, "exact": True}
    early, late = (numbers(design, iterations=t, **asked) for t in (5, 300))
    assert early["distance_iacv"] < 0.01 * early["distance_newton"] and late["relative_error_iacv"] < 0.01
    assert late["distance_iacv"] == pytest.approx(late["distance_newton"], rel=0.01)  # at the limit they are one
    plain = numbers(design, estimator="iacv", iterations=5, lam=0.6, step=0.5 / 60)
    assert plain["cv_error"] == pytest.approx(early["cv_error"]) and "distance_iacv" not in plain
    assert early["cv_error_exact"] == pytest.approx(early["cv_error"], rel=0.01)
    batches = numbers(design, iterations=5, solver="sgd", batch=20, doubling=2, **asked)
    assert 0.0 < batches["distance_iacv"] < batches["distance_newton"]


def test_settings_that_mean_nothing_are_dropped() -> None:
    design = {"design": "toeplitz", "n": 20, "p": 3, "support": 1}
    vary = {
        **SETTINGS, "estimator": ["treecv", "glru", "iacv", "lasso", "sparsecv"], "folds": ["3", "4"], "gamma": 0.1,
        "learner": "lsqsgd", "test": 0.2, "split": [0, 1], "loss": "logistic",
    }  # fmt: skip
    found = {}
    for task in tasks(design, **vary):
        found.setdefault(task.estimator, []).append(dict(task.settings))
    assert found["treecv"] == [
        {"folds": folds, "seed": 0, "estimator": "treecv", "learner": "lsqsgd"} for folds in ("3", "4")
    ]
    assert found["glru"] == [{"folds": "loo", "estimator": "glru", "loss": "logistic", "lam": 0.1}]
    assert found["iacv"] == [{"folds": "loo", "estimator": "iacv", "loss": "logistic", **SETTINGS}]
    assert len(found["lasso"]) == len(found["sparsecv"]) == 4 and "lam" not in found["sparsecv"][0]


@pytest.mark.parametrize(
    ("estimator", "vary", "message"),
    [
        ("glru", {"lam": None}, "lam is missing: estimator glru needs this setting"),
        ("iacv", {"iterations": None}, "iterations is missing"),
        ("glru", {"lam": 0}, "lam: 0 is not a number above 0"),
        ("treecv", {"learner": "ridge", "lam": "1"}, "lam: '1' is not a number of at least 0"),
        ("treecv", {"learner": "tree"}, "learner: unknown word 'tree'; use pegasos"),
        ("treecv", {"order": "radnom"}, "order: unknown word 'radnom'.*random"),
        ("treecv", {"way": "naive"}, "way: unknown word 'naive'; use tree, standard"),
        ("glru", {"way": "tree"}, "way: unknown word 'tree'; use steps"),
        ("glru", {"loss": "poisson"}, "loss: unknown word 'poisson'"),
        ("iacv", {"loss": "hinge"}, "loss: unknown word 'hinge'"),
        ("iacv", {"penalty": "l1"}, "penalty l1: requires solver proxgd"),
        ("iacv", {"iterations": 2.5}, "iterations: 2.5 is not a whole number"),
        ("iacv", {"solver": "sgd", "batch": 0}, "batch: 0 is not a whole number of at least 1"),
        ("iacv", {"step": -1}, "step: -1 is not a number above 0"),
        ("iacv", {"exact": "yes"}, "exact: 'yes' is unknown; use true or false"),
        ("glru", {"scale": "lenght"}, "scale: unknown word 'lenght'.*length"),
        (
            "treecv",
            {"learner": "naive-bayes", "intercept": "fold"},
            "intercept fold: not supported with learner naive-b",
        ),
        ("iacv", {"iteratons": 2}, "unknown key 'iteratons'.*iterations"),
    ],
)
def test_wrong_settings_are_refused_as_the_plan_is_read(estimator: str, vary: dict[str, Any], message: str) -> None:
    given = {name: value for name, value in {**SETTINGS, "estimator": estimator, **vary}.items() if value is not None}
    with pytest.raises(BadInput, match=message) as caught:
        tasks({"design": "logistic", "n": 20, "p": 3, "support": 1}, **given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("design", "vary", "message"),
    [
        ({"design": "year", "n": 20}, {"estimator": "treecv", "learner": "pegasos"}, "has 20 different values"),
        ({"design": "year", "n": 20}, {"estimator": "treecv", "folds": "2x3"}, "treecv"),
        ({"design": "year", "n": 20}, {"estimator": "glru", "lam": 1.0}, "has 20 different values"),
        (
            {"design": "logistic", "n": 20}, {"estimator": "iacv", **SETTINGS, "solver": "sgd", "batch": 21},
            "batch: 21 exceeds the 20 rows",
        ),
    ],
)  # fmt: skip
def test_rows_that_an_oracle_cannot_be_asked_about(design: dict[str, Any], vary: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_with_data(tasks(design, **vary))


def test_a_plan_of_all_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = {
        "data": [{"design": "covertype", "n": 80}, {"design": "logistic", "n": 24, "p": 3, "support": 2}],
        "vary": {
            **SETTINGS, "estimator": ["treecv", "glru", "iacv"], "folds": ["4", "loo"], "learner": "pegasos",
            "order": ["fixed", "random"], "way": ["tree", "standard", "steps"], "scale": "variance",
        },
        "exclude": [
            {"design": "covertype", "estimator": ["glru", "iacv"]},
            {"n": 24, "estimator": "treecv"},
            {"estimator": "treecv", "way": "steps"},
            {"estimator": "glru", "way": ["tree", "standard"]},
        ],
    }  # fmt: skip
    folder = BatchFolder(tmp_path / "out")
    assert run_batch(make_tasks(plan), folder) == 2 * 2 * 2 + 1 + 1
    table = collect(folder)
    assert set(table["state"]) == {"done"} and table["verified"].isna().all() and table["cv_error"].notna().all()
    write_table(table, tmp_path / "runs.parquet")
    words = ["--rows", "folds,order", "--columns", "way", "--where", "estimator=treecv", "--values", "rows_learned"]
    assert run(["table", str(tmp_path / "runs.parquet"), *words]) == 0
    assert "| 4 fixed" in capsys.readouterr().out

"""From where a run stands to its record: every number inside its interval, or no record."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import record_of, to_end

from sparsecv_mio.certificate.parts import relative_gap
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.result import UNWEIGHED, build_record, check_cells, check_intervals, compiling_took, names_of
from sparsecv_mio.search.state.deadline import Deadline


def test_a_finished_run_is_proved_and_verifies() -> None:
    run = to_end(drawn_run())
    record = record_of(run)
    verify(record, run.context.data.dataset)
    assert record.status == "proved" and {"x0", "x3"} <= set(record.support)
    assert names_of(run.context.data, np.array([3, 0])) == ("x0", "x3")


def test_what_may_still_win_elsewhere_is_no_proof() -> None:
    run = to_end(drawn_run())
    record = build_record(replace(run.snapshot(), complete=False, notes=("a note",)), SearchOptions())
    assert record.status == "limit" and "a note" in record.warnings


def test_the_interval_of_the_grid_ends_at_the_least_upper_bound_of_all_pairs() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 7))
    X[:, 4] = X[:, 0] + 0.3 * rng.normal(size=24)
    data = Dataset.from_arrays(X, X[:, 0] + 0.5 * X[:, 2] + rng.normal(size=24))
    record = cross_validate(data, "4", gammas=[0.02, 0.5, 5.0], taus=range(1, 6), method="bounds", threads=1)
    own, least = record.own_row, min(row.upper for row in record.table)
    assert own is not None and own.upper > 1.05 * least
    assert record.cv_error <= record.upper == least and record.gap == relative_gap(record.lower, least)
    assert verify(record, data).failures == ()
    wider = replace(record, upper=own.upper, gap=relative_gap(record.lower, own.upper))
    assert [failure.field for failure in verify(wider, data).failures] == ["upper"]


def test_a_number_outside_of_its_interval_is_refused() -> None:
    run = to_end(drawn_run())
    record = record_of(run)
    with pytest.raises(Inconsistent, match="cv_error"):
        check_intervals(replace(record, cv_error=record.upper * 2.0))
    cells = run.run.state.cells.copy()
    cells.nominal[0, 0, 0] = cells.upper[0, 0, 0] * 2.0 + 1.0
    with pytest.raises(Inconsistent, match="fold 0"):
        check_cells(cells)


def test_a_limit_that_leaves_no_time_to_weigh_stability_is_said() -> None:
    run = to_end(drawn_run(stability=1.0))
    assert record_of(run).stability is not None and record_of(run).warnings == ()
    run.context.deadline.abandoned.set()
    record = record_of(run)
    assert record.stability is None and record.status == "limit"
    assert verify(record, run.context.data.dataset, run.context.folds).ok
    assert record.warnings == (UNWEIGHED,) and "stability" in UNWEIGHED


def test_what_went_into_compiling_is_said_where_it_is_a_good_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("sparsecv_mio.search.state.deadline.time", SimpleNamespace(monotonic=lambda: now[0]))
    deadline = Deadline(60.0, None)
    now[0] = 10.0
    deadline.compiling(True)
    now[0] = 11.0
    assert compiling_took(deadline) == ()
    now[0] = 60.0
    (words,) = compiling_took(deadline)
    assert words.startswith("50 of 60 s went into compiling, once on this machine, ")
    assert words.endswith("which had not ended: `sparsecv warmup` ends it")
    deadline.compiling(False)
    now[0] = 100.0
    assert deadline.compiled == 50.0
    assert compiling_took(deadline) == ("50 of 100 s went into compiling, once on this machine",)


@pytest.mark.parametrize("intercept", ["none", "fold"])
def test_errors_that_a_limit_leaves_open_keep_their_digits_at_any_offset(intercept: str) -> None:
    """By moments alone those of columns far from zero would be wrong by up to a thousandth of their value."""
    rng, scored = np.random.default_rng(5), 0
    for case in range(12):
        n, p = int(rng.integers(9, 25)), int(rng.integers(2, 6))
        X = rng.normal(size=(n, p)) + 10.0 ** rng.uniform(1, 6) * rng.choice([-1.0, 0.5, 1.0], size=p)
        y = X[:, 0] - X[:, 1] + rng.normal(size=n) * 10.0 ** rng.uniform(-3, 0)
        data, gamma = Dataset.from_arrays(X, y), float(10.0 ** rng.uniform(-4, 1))
        folds = make_folds(("loo", "4", "3x2")[case % 3], data)
        method = ("auto", "joint", "grid")[case // 3 % 3]
        record = cross_validate(
            data, folds, gammas=[gamma], taus=range(1, p + 1), intercept=intercept, method=method,
            time_limit=0.02, threads=1,
        )  # fmt: skip
        for fold in record.chosen_folds:
            columns = [data.names.index(name) for name in fold.support]
            model = fit(X, y, columns, record.gamma, intercept=intercept, rows=folds.train_rows(fold.fold))
            true, size = held_out_error(model, X, y, folds.scored_rows(fold.fold)), int(folds.sizes[fold.fold])
            scored += 1
            assert abs(fold.error - true) <= 1e-8 * (true + size * record.cv_error)
    assert scored > 100

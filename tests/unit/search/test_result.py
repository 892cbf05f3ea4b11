"""From where a run stands to its record: every number inside its interval, or no record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn_search import drawn_run
from runs import record_of, to_end

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import Inconsistent
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.result import UNWEIGHED, build_record, check_cells, check_intervals, names_of


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

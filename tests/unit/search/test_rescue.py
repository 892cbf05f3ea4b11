"""An answer from whatever a search has left, without a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_search import drawn, drawn_run

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import OutOfTime
from sparsecv_mio.search.heuristics.plain import plain_answer
from sparsecv_mio.search.hooks import Hooks
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.rescue import Course, Question, filled
from sparsecv_mio.search.state.deadline import Deadline


def course() -> Course:
    data, folds, grid = drawn()
    return Course(Deadline(60.0, None), Question(data.dataset, folds, grid, SearchOptions(), Hooks()))


def test_nothing_is_known_before_the_data_are_prepared() -> None:
    with pytest.raises(OutOfTime):
        course().answer()


def test_an_answer_without_any_method() -> None:
    made = course()
    made.begin()
    made.prepare(made.deadline.at)
    record = made.answer()
    assert record.estimate and record.status == "limit" and record.work.engine == "forward selection"
    verify(record, made.question.dataset)


def test_the_state_of_a_method_is_an_answer() -> None:
    made, run = course(), drawn_run()
    made.begin()
    run.begin()
    run.step()
    made.method = run
    record = made.answer()
    assert record.lower <= record.cv_error <= record.upper
    verify(record, made.question.dataset)


def test_what_is_scored_is_not_overwritten() -> None:
    run = drawn_run()
    run._fit_all_rows()
    standing, (data, folds, grid) = run.standing(), drawn()
    plain = plain_answer(data, folds, grid, float("inf"))
    full = filled(standing, plain)
    g = int(np.flatnonzero(grid.gammas == plain.gamma)[0])
    assert np.isfinite(full.cells.nominal[g]).all() and full.best[:2] == standing.best
    assert filled(full, None) is full

"""What a certificate covers, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsecv_mio.certificate.record import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.report.region import covered, open_rows, region_lines, span
from sparsecv_mio.search.api import cross_validate


def record(method: str) -> Record:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 6))
    data = Dataset.from_arrays(X, X[:, 0] - X[:, 1] + rng.normal(size=30))
    return cross_validate(data, make_folds("5", data), gammas=[0.1, 1.0], taus=[1, 2, 3], method=method, threads=1)


def test_a_proved_grid_needs_no_words() -> None:
    proved = record("rounds")
    assert proved.status == "proved" and region_lines(proved) == [] and open_rows(proved) == []


def test_pairs_that_may_win_are_counted_and_compared() -> None:
    part = record("bounds")
    while_open = [row for row in part.table if row.status == "open" and (row.gamma, row.tau) != (part.gamma, part.tau)]
    assert part.status == "limit" and open_rows(part) == while_open
    lines = region_lines(part)
    assert any(line.startswith("not excluded:") for line in lines) is bool(while_open)
    rows = tuple(replace(row, status="open", cv_error=2.0 * part.cv_error) for row in part.table)
    text = region_lines(replace(part, table=rows, region=None))
    assert len(text) == 1 and "5 other pairs (tau 1:3, gamma 0.1:1)" in text[0] and "100% worse" in text[0]


def test_the_part_is_named_by_its_sides() -> None:
    assert covered(3, None, [1, 2, 3]) == "the whole grid"
    assert covered(2, None, [1, 2, 3]) == "tau 1:2 at every gamma"
    assert covered(None, 0.5, [1, 2]) == "every tau at gamma >= 0.5"
    assert span({4}) == "4" and span([2, 7]) == "2:7"

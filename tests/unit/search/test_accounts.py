"""What each source of bounds cost and brought: the table adds up, repeats itself, and is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run, record_of, to_end

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.two_classes import as_two_classes
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.search.accounts import OTHER_WORK
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.sources.registry import SOURCES
from sparsecv_mio.search.sources.subproblem_trees import SubproblemTrees

COUNTS = ("slices", "problems", "nodes", "decided", "ruled_out", "gap_closed")
METHODS = ("rounds", "joint", "algorithm1", "grid", "bounds", "descent")


def correlated(n: int, p: int, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return Dataset.from_arrays(X, X[:, :4] @ np.ones(4) + 2.0 * rng.normal(size=n))


@pytest.mark.parametrize("method", METHODS)
def test_the_table_adds_up(method: str) -> None:
    run = to_end(drawn_run(method))
    record = record_of(run)
    sources = record.work.sources
    assert len({work.source for work in sources}) == len(sources)
    assert sum(work.nodes for work in sources) == record.work.nodes
    assert all(getattr(work, name) >= 0 for work in sources for name in COUNTS)
    assert sum(work.seconds for work in sources) <= record.work.seconds
    if method != "descent":  # of which the table of the record has one row of several
        assert sum(work.decided for work in sources) == sum(row.folds_decided for row in record.table)
        gap = 1.0 - record.lower / record.upper if np.isfinite(record.upper) else 1.0
        assert sum(work.gap_closed for work in sources) == pytest.approx(1.0 - gap, abs=1e-9)
        assert record.work.course[-1].gap == pytest.approx(gap, abs=1e-9)
    assert verify(record, run.context.data.dataset).ok


@pytest.mark.parametrize(
    ("threads", "folds", "limit"), [(1, "5", None), (3, "5", None), (1, "30", None), (2, "5", 1.0)]
)
def test_the_table_of_two_classes_adds_up(threads: int, folds: str, limit: float | None) -> None:
    data = as_two_classes(two_classes(60, 40 if limit else 7))
    record = cross_validate(
        data, make_folds(folds, data), gammas=[0.1, 1.0, 10.0], taus=range(1, 6), loss="logistic", threads=threads,
        time_limit=limit,
    )  # fmt: skip
    work, sources = record.work, record.work.sources
    assert sum(each.nodes for each in sources) == work.nodes
    assert sum(each.decided for each in sources) == sum(row.folds_decided for row in record.table)
    assert sum(each.gap_closed for each in sources) == pytest.approx(record.lower / record.upper, abs=1e-9)
    assert sum(each.ruled_out for each in sources) >= sum(
        row.folds - row.folds_decided for row in record.table if row.status == "excluded"
    )
    assert all(getattr(each, name) >= 0 for each in sources for name in (*COUNTS, "seconds", "cpu_seconds"))
    assert 0.5 * work.seconds <= sum(each.seconds for each in sources) <= work.seconds
    assert {each.source for each in sources} <= {*SOURCES, OTHER_WORK}
    assert all(each.problems for each in sources if each.source != OTHER_WORK)


def two_classes(n: int, p: int) -> Dataset:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return Dataset.from_arrays(X, (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.0).astype(float))


def test_what_was_booked_before_a_run_was_stored_is_kept(tmp_path: Path) -> None:
    data = correlated(60, 40, 3)
    folds, path = make_folds("4", data), tmp_path / "run.ck"
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": range(4), "threads": 1, "gap": 0.0}
    whole = cross_validate(data, folds, checkpoint=path, **asked)
    again = cross_validate(data, folds, resume=path, **asked)
    before, after = ({work.source: work for work in record.work.sources} for record in (whole, again))
    for source, work in before.items():
        if source != OTHER_WORK:
            assert after[source].decided == work.decided and after[source].nodes >= work.nodes
    run = drawn_run()
    for wrong in ("{}", '[{"source": "a", "nodes": -1}]', '[{"nodes": 1}]', "[3]"):
        with pytest.raises(CorruptStore):
            run.accounts.check({"accounts": np.array(wrong)})


def test_who_reads_a_run_from_another_thread_gets_its_slice_so_far() -> None:
    search = new_run(*drawn(), seconds=60.0)
    accounts = search.accounts
    accounts.turn_to(SubproblemTrees.name)
    search.state.counts.nodes += 11
    assert {work.source: work.nodes for work in accounts.table()}[SubproblemTrees.name] == 11
    search.state.counts.nodes += 1
    accounts.book(1, 0.0)
    assert {work.source: work.nodes for work in accounts.table()}[SubproblemTrees.name] == 12

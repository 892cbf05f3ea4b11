"""The same MIOs by several backends: what is judged, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import numpy as np
import problems
import pytest

from sparsecv_mio.batch.mio_comparison import Cell, Contender, cells_of, compare
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BackendFailed, BackendUnavailable, BadInput
from sparsecv_mio.formulation.outcome import Limits, Start


def made() -> Dataset:
    return problems.linear(1, 20, 5, {0: 1.0, 4: -1.0})


def cells() -> list[Cell]:
    return list(cells_of("here", made(), None, taus=[2, 1], gammas=[0.3]))


class Fake:
    """A backend that says what it is told to, and remembers its starts."""

    name = "fake"

    def __init__(self, contender: Contender, *, trouble: Exception | None = None, worse: bool = False) -> None:
        self.real, self.trouble, self.worse = contender.backend, trouble, worse
        self.capabilities, self.available = self.real.capabilities, self.real.available
        self.starts: list[Start | None] = []

    def solve(self, problem, tau, **how):  # type: ignore[no-untyped-def]
        self.starts.append(how.get("start"))
        if self.trouble is not None:
            raise self.trouble
        return self.real.solve(problem, tau - 1 if self.worse else tau, **how)


def fake(trouble: Exception | None = None, worse: bool = False) -> tuple[Contender, Fake]:
    real = Contender.of("native")
    backend = Fake(real, trouble=trouble, worse=worse)
    return replace(real, label="fake", backend=backend), backend  # type: ignore[arg-type]


def test_cells_are_the_problems_of_the_folds() -> None:
    data = made()
    assert [(cell.fold, cell.tau) for cell in cells()] == [(-1, 1), (-1, 2)]
    plan = make_folds("4", data)
    split = list(cells_of("here", data, plan, taus=[1], gammas=[1.0, 0.1]))
    assert [(cell.fold, cell.gamma) for cell in split] == [(fold, gamma) for fold in range(4) for gamma in (0.1, 1.0)]
    assert all(cell.problem.n == 15 and cell.names == data.names for cell in split)
    for given in ({"taus": [6], "gammas": [1.0]}, {"taus": [1], "gammas": [-0.1]}):
        with pytest.raises(BadInput, match="out of range"):
            list(cells_of("here", data, None, **given))  # type: ignore[arg-type]


def test_a_worse_answer_is_judged_by_the_best() -> None:
    rows = compare(cells()[1:], [Contender.of("native"), fake(worse=True)[0]], repeats=1)
    good, bad = rows
    assert good.same_support and good.true_gap == 0.0
    assert not bad.same_support and bad.true_gap == pytest.approx(bad.objective / good.objective - 1.0)


@pytest.mark.parametrize(
    ("error", "status"),
    [(BackendUnavailable("no licence"), "unavailable: no licence"), (BackendFailed("it broke"), "failed: it broke")],
)
def test_trouble_costs_a_row_and_no_second_try(error: Exception, status: str) -> None:
    contender, backend = fake(trouble=error)
    rows = compare(cells(), [contender, Contender.of("native")], repeats=3)
    assert [row.status for row in rows] == [status, "optimal", status, "optimal"]
    assert len(backend.starts) == 1 + len(cells()) and np.isnan(rows[0].seconds)  # the toy, then once a cell


def test_progress_and_cancel() -> None:
    seen: list[tuple[int, int]] = []
    compare(cells(), [Contender.of("native")], repeats=2, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    stop = Event()
    stop.set()
    rows = compare(cells(), [Contender.of("native")], repeats=1, limits=Limits(cancel=stop))
    assert [row.status for row in rows] == ["not run", "not run"]


def test_what_is_refused() -> None:
    for label, message in (("cplex", "no backend 'cplex'"), ("highs:benders", "formulation of highs")):
        with pytest.raises(BadInput, match=message):
            Contender.of(label)
    with pytest.raises(BadInput, match="^repeats: 0"):
        compare(cells(), [], repeats=0)
    with pytest.raises(BadInput, match="^gap: "):
        compare(cells(), [], limits=Limits(gap=2.0))

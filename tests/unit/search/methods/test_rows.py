"""Runs over other pairs: which kind, how many threads, whose ledger."""

from __future__ import annotations

import pytest
from drawn_search import drawn_run

from sparsecv_mio.search.methods import by_rows
from sparsecv_mio.search.methods.by_rows import ByRows
from sparsecv_mio.search.methods.rounds import Rounds
from sparsecv_mio.search.methods.rows import RowMaker
from sparsecv_mio.search.methods.saddle import SaddleRun


def test_the_kind_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    context = drawn_run().context
    rows = RowMaker(context)
    one, other = rows.make([0.3], [1, 2]), rows.make([0.3, 0.5], [2])
    assert isinstance(one.method, Rounds) and one.context.grid.gammas.tolist() == [0.3]
    assert one.run.accelerators.ledger is other.run.accelerators.ledger is rows.ledger
    assert isinstance(RowMaker(context, saddle=True).make([1.0], [1]).method, SaddleRun)
    monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 1)
    wide = drawn_run().context.data.only(range(6))
    assert not by_rows.by_rows(wide, 5)  # fewer columns than rows never go by rows


def test_by_rows_where_products_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    from drawn_search import drawn
    from runs import new_run

    monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 1)
    data, folds, grid = drawn(p=40, n=20)
    run = new_run(data, folds, grid)
    assert isinstance(run.method, ByRows)
    assert isinstance(RowMaker(run.context).make([1.0], [1]).method, ByRows)

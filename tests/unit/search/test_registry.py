"""Methods by their words, what `auto` means, and how many threads a run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawn_search import drawn, drawn_run
from runs import new_run

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import BadInput
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.search.methods import by_rows
from sparsecv_mio.search.methods.by_rows import ByRows
from sparsecv_mio.search.methods.descent import Descent
from sparsecv_mio.search.methods.one_by_one import OneByOne
from sparsecv_mio.search.methods.rounds import Rounds
from sparsecv_mio.search.methods.saddle import SaddleRun
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.registry import ORDERS, RowMaker, method_for
from sparsecv_mio.words import Method

KINDS = {
    "rounds": Rounds, "joint": OneByOne, "algorithm1": OneByOne, "grid": OneByOne, "bounds": OneByOne,
    "descent": Descent,
}  # fmt: skip


def test_every_word_has_its_kind() -> None:
    assert set(KINDS) | {"auto"} == {str(word) for word in Method}
    assert set(ORDERS) == {Method(word) for word, kind in KINDS.items() if kind is OneByOne and word != "joint"}
    for word, kind in KINDS.items():
        assert isinstance(drawn_run(word) if kind is Descent else drawn_run(word).method, kind), word


@pytest.mark.parametrize("backend", ["highs", "scip"])
def test_auto_hands_vendors_to_joint(backend: str) -> None:
    assert method_for(SearchOptions.of(backend=backend)) is Method.JOINT


def test_a_descent_estimates_many_columns() -> None:
    data, folds, grid = drawn(p=520, n=12, folds="3")
    assert new_run(data, folds, grid, method="descent").saddle
    assert not drawn_run("descent").saddle


def test_a_run_is_carried_on_without_its_limit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    data = Dataset.from_arrays(X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=60))
    asked: dict[str, Any] = {"gammas": [0.1, 1.0], "taus": range(4), "threads": 1}
    path = tmp_path / "run.ck"
    folds = make_folds("4", data)
    cross_validate(data, folds, time_limit=600.0, checkpoint=path, **asked)
    carried_on, afresh = cross_validate(data, folds, resume=path, **asked), cross_validate(data, folds, **asked)
    assert carried_on.status == afresh.status == "proved"
    assert (carried_on.tau, carried_on.gamma) == (afresh.tau, afresh.gamma)
    for method in ("joint", "grid"):
        with pytest.raises(BadInput, match="its method differs"):
            cross_validate(data, folds, resume=path, method=method, **asked)


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
    monkeypatch.setattr(by_rows, "PRODUCT_BYTES", 1)
    data, folds, grid = drawn(p=40, n=20)
    run = new_run(data, folds, grid)
    assert isinstance(run.method, ByRows)
    assert isinstance(RowMaker(run.context).make([1.0], [1]).method, ByRows)

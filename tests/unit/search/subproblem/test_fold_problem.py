"""A fold at one gamma, and the store of the folds used last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from sparsecv_mio.problem.accumulate import Moments, training_moments
from sparsecv_mio.search.subproblem import fold_problem
from sparsecv_mio.search.subproblem.fold_problem import FoldProblem, FoldStore

from .drawn import context_of, fold_of, held_out_error, moments_of


def test_a_fold_at_its_gamma() -> None:
    context = context_of()
    here = fold_of(context, 2, 1)
    assert here.fold == 2 and here.problem.lam == context.grid.gammas[1] / 2.0
    assert here.held_out.count == len(context.folds.test_rows(2))
    fits = here.refit([np.array([0, 1])])
    assert fits.held_out[0] == pytest.approx(held_out_error(context, (1, 2, 2), (0, 1)), rel=1e-9)
    assert 0.0 < here.negligible < 1e-6 * fits.held_out[0]


def test_columns_of_a_restricted_problem() -> None:
    context, columns = context_of(), np.array([1, 3, 4])
    small = context.data.only(columns)
    moments = next(training_moments(small, context.folds, [0]))[1]
    part = FoldProblem.of(small, context.folds, 0, moments, columns).with_gamma(0.1)
    whole = fold_of(context, 0, 0)
    assert part.in_data(np.array([0, 2])).tolist() == [1, 4] and whole.in_data(np.array([0, 2])).tolist() == [0, 2]
    assert part.refit([np.array([0, 2])]).held_out[0] == pytest.approx(whole.refit([np.array([1, 4])]).held_out[0])


def test_the_store_makes_again_what_it_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    context, asked = context_of(), []

    def source(wanted: Sequence[int]) -> Iterator[tuple[int, Moments]]:
        asked.extend(wanted)
        return training_moments(context.data, context.folds, wanted)

    monkeypatch.setattr(fold_problem, "STORE_BYTES", 1)  # room for two
    store = FoldStore(context.data, context.folds, source)
    kept = store.keep(0, moments_of(context, 0))
    assert store.get(0) is kept and asked == []
    first = store.get(1)
    assert store.get(0) is kept and store.get(2).fold == 2 and asked == [1, 2]  # 1 was not used for longest
    again = store.get(1)
    assert asked == [1, 2, 1] and np.array_equal(again.problem.Q, first.problem.Q)

"""A problem on some rows and columns of a matrix is the problem on the smaller matrix; what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecv_mio.oracles.glru import (
    Loss,
    Method,
    Regularizer,
    assess,
    change_columns,
    change_rows,
    make_problem,
    prediction_intervals,
    train,
)

from .fits import LOSSES, RIDGES, fitted


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("regularizer", [*RIDGES, Regularizer(0.3, intercept=True)], ids=str)
def test_a_masked_problem_is_the_smaller_problem(loss: Loss, regularizer: Regularizer) -> None:
    whole = fitted(loss, regularizer).problem
    rows, columns = np.delete(np.arange(14), [1, 5]), np.delete(np.arange(6), [2])
    masked = train(replace(whole.without_rows([1, 5]), column_mask=np.arange(whole.design.d) != 2), tol=1e-12)
    X = whole.design.X[np.ix_(rows, columns)]
    small = train(make_problem(X, whole.y[rows], loss, regularizer), tol=1e-12)
    tail = [6] if regularizer.intercept else []
    assert np.allclose(masked.w[[*columns, *tail]], small.w, atol=1e-5) and masked.w[2] == 0.0
    position, x = 3, np.ones((1, 5))
    one = change_rows(assess(masked.problem, masked.w), [rows[position]])
    two = change_rows(assess(small.problem, masked.w[[*columns, *tail]]), [position])
    assert one.gap == pytest.approx(two.gap, rel=1e-6)
    for method in Method:
        a, b = prediction_intervals(one, x, method), prediction_intervals(two, x, method)
        assert np.allclose(a.lower, b.lower, rtol=1e-5) and np.allclose(a.upper, b.upper, rtol=1e-5)
    a, b = (prediction_intervals(change_columns(f, [c]), x[:, 1:]) for f, c in ((masked, 0), (small, 0)))
    assert np.allclose(a.lower, b.lower, atol=1e-4) and np.allclose(a.upper, b.upper, atol=1e-4)

"""Standard cross-validation of incremental learners, one training for each fold."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.oracles.base import ProgressHook
from sparsecv_mio.oracles.treecv.protocol import CvResult, FoldRows, Learner
from sparsecv_mio.oracles.treecv.tree import feed_rows, warm_up


def standard_cv(
    learner: Learner,
    X: FloatArray,
    y: FloatArray,
    folds: FoldPlan,
    *,
    shuffle_seed: int | None = None,
    progress: ProgressHook | None = None,
) -> CvResult:
    """Train on every fold's rows from scratch (k-repetition cross-validation).

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    X : (n, p) array
        Rows.
    y : (n,) array
        Their targets.
    folds : FoldPlan
        Folds.
    shuffle_seed : int, optional
        Feed the training rows of each fold in a random order; without it in the order of the folds.
    progress : callable, optional
        Called with (folds scored, k).

    Returns
    -------
    CvResult
        `updates` is k n minus the held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.folds import folds_from_labels
    >>> from sparsecv_mio.oracles.treecv import RidgeLearner
    >>> folds = folds_from_labels([0, 0, 1, 1])
    >>> standard_cv(RidgeLearner(0.0), np.ones((4, 1)), np.array([1.0, 3.0, 4.0, 6.0]), folds).scores.round(9).tolist()
    [10.0, 10.0]
    """
    rows = FoldRows.of(X, y, folds)
    warm_up(learner, rows, shuffle_seed)
    begin, scores, fed = perf_counter(), np.empty(rows.k), 0
    for j in range(rows.k):
        lo, hi = int(rows.starts[j]), int(rows.starts[j + 1])
        model = learner.copy()
        if shuffle_seed is not None:
            order = np.concatenate([np.arange(lo), np.arange(hi, rows.n)])
            np.random.Generator(np.random.Philox(key=shuffle_seed, counter=j)).shuffle(order)
            feed_rows(model, rows, 0, order.size, order)
        else:
            for first, last in ((0, lo), (hi, rows.n)):
                if last > first:
                    feed_rows(model, rows, first, last, None)
        fed += rows.n - (hi - lo)
        scores[j] = model.score(rows.X[lo:hi], rows.y[lo:hi])
        if progress is not None:
            progress(j + 1, rows.k)
    return CvResult(scores, np.diff(rows.starts), fed, perf_counter() - begin)

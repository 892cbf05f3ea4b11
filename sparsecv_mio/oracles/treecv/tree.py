"""The TreeCV recursion (Joulani, Gyorgy, Szepesvari 2015, Algorithm 1), on one thread or many.

The model of a range of folds has learned every row outside it. Its left half gets a copy that learns the right half's
rows, then the model itself learns the left half's rows and serves the right half. A range of one fold is scored. Every
level of the tree feeds each row once, so all k folds cost `ceil(log2 k)` passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import row_chunks
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import ProgressHook
from sparsecv_mio.oracles.treecv.protocol import CvResult, Learner, Recursive, Revertible, RowsByFold
from sparsecv_mio.words import one_of

PROGRESS_PARTS = 64  # subtrees that compiled code runs between two calls of the progress hook
TASKS_PER_JOB = 4  # subtrees per worker, so that unequal ones even out
STRATEGIES = ("copy", "revert")


@dataclass(frozen=True)
class Feeding:
    """How rows are fed to models and how a model serves both halves of a range of folds.

    Parameters
    ----------
    shuffle_seed : int or None
        Seed of the order of the rows of every update; None feeds them in the order of the folds.
    strategy : {"copy", "revert"}
        Copy a model before it learns more, or undo what it learned.
    """

    shuffle_seed: int | None
    strategy: str


def tree_cv(
    learner: Learner,
    X: FloatArray,
    y: FloatArray,
    folds: FoldPlan,
    *,
    shuffle_seed: int | None = None,
    strategy: str = "copy",
    jobs: int = 1,
    progress: ProgressHook | None = None,
) -> CvResult:
    """Cross-validate an incremental learner over all folds in `ceil(log2 k)` passes.

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    X : (n, p) array
        Rows; those never held out are learned first.
    y : (n,) array
        Their targets.
    folds : FoldPlan
        Up to k = n folds.
    shuffle_seed : int, optional
        Feed the rows of every update in a random order; without it in the order of the folds. The order depends on the
        seed and on the rows of the update alone: strategy and jobs do not change the result.
    strategy : {"copy", "revert"}
        Copy the model before each branch, or undo the branch's updates (the learner must be
        :class:`~sparsecv_mio.oracles.treecv.protocol.Revertible`).
    jobs : int
        Workers, by joblib with threads unless a joblib context (`parallel_config`) names another backend.
    progress : callable, optional
        Called with (folds scored, k).

    Returns
    -------
    CvResult
        `updates <= n ceil(log2 k)` beyond the rows never held out, so at most `n (1 + log2 k)`; O(log k) models in
        memory on one job. The estimate equals standard cross-validation where the order of rows has no effect.

    Raises
    ------
    BadInput
        An option does not fit the learner.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.folds import folds_from_labels
    >>> from sparsecv_mio.oracles.treecv import RidgeLearner, standard_cv, tree_cv
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.standard_normal((16, 2)), rng.standard_normal(16)
    >>> folds = folds_from_labels(np.arange(16))
    >>> tree, standard = (cv(RidgeLearner(1.0), X, y, folds) for cv in (tree_cv, standard_cv))
    >>> tree.updates, standard.updates, abs(tree.estimate - standard.estimate) < 1e-12
    (64, 240, True)
    """
    strategy = one_of(strategy, STRATEGIES, "strategy")
    if strategy == "revert" and not isinstance(learner, Revertible):
        raise BadInput(f"{type(learner).__name__} cannot revert an update: use the copy strategy")
    if jobs < 1:
        raise BadInput(f"--jobs must be at least 1, not {jobs}")
    rows, feeding = RowsByFold.of(X, y, folds), Feeding(shuffle_seed, strategy)
    warm_up(learner, rows, shuffle_seed)
    begin = perf_counter()
    model = learner.copy()
    fixed = _feed(model, rows, int(rows.starts[-1]), rows.n, shuffle_seed)
    if jobs == 1:
        scores, fed = _run_subtree(model, rows, 0, rows.k, feeding, progress)
    else:
        scores, fed = _run_parallel(model, rows, feeding, jobs, progress)
    return CvResult(scores, np.diff(rows.starts), fixed + fed, perf_counter() - begin)


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
    rows = RowsByFold.of(X, y, folds)
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


def warm_up(learner: Learner, rows: RowsByFold, shuffle_seed: int | None) -> None:
    """Load compiled code before the clock starts.

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    rows : RowsByFold
        Rows of the run; two of them are learned by a copy.
    shuffle_seed : int or None
        As for :func:`tree_cv`.
    """
    _order(0, 1, shuffle_seed)
    if isinstance(learner, Recursive):
        starts = np.arange(3)
        starts.setflags(write=rows.starts.flags.writeable)  # code is compiled for each type, which this is part of
        scrap, few = learner.copy(), RowsByFold(rows.X[:2], rows.y[:2], starts)
        feed_rows(scrap, few, 0, 1, None)
        scrap.score(few.X, few.y)
        scrap.subtree(few, 0, 2, shuffle_seed)


def _middle(first: int, last: int) -> int:
    return first + (last - first + 1) // 2


def feed_rows(model: Learner, rows: RowsByFold, first: int, last: int, order: IntArray | None) -> None:
    """Update a model with some of the rows.

    Parameters
    ----------
    model : Learner
        Changed in place.
    rows : RowsByFold
        All rows.
    first, last : int
        Without an order, rows first .. last-1 are learned in one piece.
    order : (m,) int array or None
        Rows to learn, in blocks of 8 MB.
    """
    if order is None:
        model.update(rows.X[first:last], rows.y[first:last])
        return
    for block in row_chunks(last - first, rows.X.shape[1]):
        model.update(rows.X[order[block]], rows.y[order[block]])


def _order(first: int, last: int, shuffle_seed: int | None) -> IntArray | None:
    if shuffle_seed is None:
        return None
    from sparsecv_mio.kernels.treecv_order import shuffled_range

    order = np.empty(last - first, dtype=np.int64)
    shuffled_range(first, last, shuffle_seed, order)
    return order


def _feed(model: Learner, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> int:
    if last > first:
        feed_rows(model, rows, first, last, _order(first, last, shuffle_seed))
    return last - first


def _feed_saving(model: Revertible, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> object:
    order = _order(first, last, shuffle_seed)
    chosen = slice(first, last) if order is None else order
    return model.update_saving(rows.X[chosen], rows.y[chosen])


@dataclass
class _Walk:
    """The recursion over one subtree on one thread, with the scores and the number of rows fed."""

    rows: RowsByFold
    shuffle_seed: int | None
    first: int
    scores: FloatArray
    tick: Callable[[int], None]
    grain: int
    fed: int = 0

    def copying(self, model: Learner, first: int, last: int) -> None:
        """Score folds first .. last-1 from a model of all others; the model is used up."""
        if last - first == 1:
            self._score(model, first)
        elif last - first <= self.grain and isinstance(model, Recursive):
            found, fed = model.subtree(self.rows, first, last, self.shuffle_seed)
            self.scores[first - self.first : last - self.first] = found
            self.fed += fed
            self.tick(last - first)
        else:
            halves, fed = _split(model, self.rows, first, last, self.shuffle_seed)
            self.fed += fed
            while halves:  # taken out, so that a model is let go when its half is done
                self.copying(*halves.pop(0))

    def reverting(self, model: Revertible, first: int, last: int) -> None:
        """Do the same on one model, which is left as it was found."""
        if last - first == 1:
            self._score(model, first)
            return
        middle = _middle(first, last)
        for learn, hold in (((middle, last), (first, middle)), ((first, middle), (middle, last))):
            lo, hi = int(self.rows.starts[learn[0]]), int(self.rows.starts[learn[1]])
            change = _feed_saving(model, self.rows, lo, hi, self.shuffle_seed)
            self.fed += hi - lo
            self.reverting(model, *hold)
            model.revert(change)

    def _score(self, model: Learner, j: int) -> None:
        lo, hi = self.rows.starts[j], self.rows.starts[j + 1]
        self.scores[j - self.first] = model.score(self.rows.X[lo:hi], self.rows.y[lo:hi])
        self.tick(1)


def _run_subtree(
    model: Learner, rows: RowsByFold, first: int, last: int, feeding: Feeding, progress: ProgressHook | None = None
) -> tuple[FloatArray, int]:
    """Return the scores of folds first .. last-1 and the rows fed, from a model of all others, which is used up."""
    done = 0

    def tick(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, last - first)

    grain = last - first if progress is None else max(1, (last - first) // PROGRESS_PARTS)
    walk = _Walk(rows, feeding.shuffle_seed, first, np.empty(last - first), tick, grain)
    if feeding.strategy == "revert" and isinstance(model, Revertible):
        walk.reverting(model, first, last)
    else:
        walk.copying(model, first, last)
    return walk.scores, walk.fed


def _split(
    model: Learner, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None
) -> tuple[list[tuple[Learner, int, int]], int]:
    """Return the children of one node, each with its own model, and the rows fed to them."""
    if last - first == 1:
        return [(model, first, last)], 0
    middle, starts = _middle(first, last), rows.starts
    left = model.copy()
    fed = _feed(left, rows, int(starts[middle]), int(starts[last]), shuffle_seed)
    fed += _feed(model, rows, int(starts[first]), int(starts[middle]), shuffle_seed)
    return [(left, first, middle), (model, middle, last)], fed


def _run_parallel(
    model: Learner, rows: RowsByFold, feeding: Feeding, jobs: int, progress: ProgressHook | None
) -> tuple[FloatArray, int]:
    """Split level by level until there are enough subtrees, then run these; both in parallel."""
    from joblib import Parallel, delayed

    pool = Parallel(n_jobs=jobs, prefer="threads")
    nodes: list[tuple[Learner, int, int]] = [(model, 0, rows.k)]
    fed = 0
    while len(nodes) < min(TASKS_PER_JOB * jobs, rows.k):
        grown = pool(delayed(_split)(*node[:1], rows, *node[1:], feeding.shuffle_seed) for node in nodes)
        nodes = [node for children, _ in grown for node in children]
        fed += sum(count for _, count in grown)
    scores = np.empty(rows.k)
    finish = pool if progress is None else Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    tasks = (delayed(_run_subtree)(*node[:1], rows, *node[1:], feeding) for node in nodes)
    for (_, first, last), (found, count) in zip(nodes, finish(tasks), strict=True):
        scores[first:last] = found
        fed += count
        if progress is not None:
            progress(last, rows.k)
    return scores, fed

"""The TreeCV recursion over folds, the protocol of its learners, and rows sorted by fold.

The recursion is Algorithm 1 of Joulani, Gyorgy and Szepesvari (2015), on one or more threads.

A call of the recursion gets a range of folds and a model that has learned all rows outside of the range. A copy of the
model learns the rows of the right half, and the recursion continues with this copy for the left half. Then the model
learns the rows of the left half, and the recursion continues with the model for the right half. For a range of one
fold, the model is scored on the rows of this fold. At each depth of the recursion every row is learned once, so all k
folds cost `ceil(log2 k)` passes over the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BadInput, naming_extras
from sparsecv_mio.oracles.answers import ProgressHook

__all__ = ["CvResult", "Learner", "Recursive", "RowsByFold", "standard_cv", "tree_cv"]


@runtime_checkable
class Learner(Protocol):
    """An incremental learner: a model that can be fed more rows, copied, and scored.

    A new instance is the untrained model. `update` may use its rows one by one, in the order given, or all at once.
    """

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Learn m more rows (m, p), (m,)."""
        ...

    def copy(self) -> Self:
        """Return an independent model in the same state."""
        ...

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Return the mean loss over rows (m, p), (m,) that were not learned."""
        ...


@runtime_checkable
class Recursive(Learner, Protocol):
    """A learner that runs a whole subtree in compiled code."""

    def subtree(self, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> tuple[FloatArray, int]:
        """Run the recursion over some of the folds, without changing the model.

        Parameters
        ----------
        rows : RowsByFold
            All rows.
        first, last : int
            Range of folds, first .. last-1; this model has learned all other folds.
        shuffle_seed : int or None
            Seed of :func:`tree_cv`.

        Returns
        -------
        scores : (last - first,) array
            Scores of these folds.
        fed : int
            Number of rows that the models of the subtree learned.
        """
        ...


@dataclass(frozen=True, eq=False)
class RowsByFold:
    """Rows sorted by fold, so that consecutive folds are one slice.

    Attributes
    ----------
    X : (n, p) array
        Rows of fold 0, fold 1, ..., followed by the rows never held out.
    y : (n,) array
        Targets of the rows.
    starts : (k + 1,) int array
        First positions of the folds: fold j is `X[starts[j]:starts[j + 1]]`.
    """

    X: FloatArray
    y: FloatArray
    starts: IntArray

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.shape[0])

    @property
    def k(self) -> int:
        """Number of folds."""
        return int(self.starts.shape[0]) - 1

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, folds: FoldPlan) -> RowsByFold:
        """Return the rows sorted by fold, without a copy if they are already sorted.

        Parameters
        ----------
        X : (n, p) array
            Rows.
        y : (n,) array
            Targets of the rows.
        folds : FoldPlan
            Folds of the same rows.

        Returns
        -------
        RowsByFold

        Raises
        ------
        BadInput
            If the plan has another number of rows, or is not a partition.
        """
        folds.check_partition("treecv")
        if X.shape[0] != folds.n or y.shape != (folds.n,):
            raise BadInput(
                f"the folds have {folds.n} rows, X has {X.shape[0]} and y has {y.shape[0]}; give all three the same "
                "rows"
            )
        if np.array_equal(folds.order, np.arange(folds.n)):
            return cls(np.ascontiguousarray(X), y, folds.starts)
        return cls(X[folds.order], y[folds.order], folds.starts)


@dataclass(frozen=True, eq=False)
class CvResult:
    """A cross-validation estimate.

    Attributes
    ----------
    scores : (k,) array
        Mean loss of every fold.
    sizes : (k,) int array
        Number of rows of every fold.
    updates : int
        Number of rows that learners learned; a row counts each time it is learned.
    seconds : float
        Wall time in seconds, without the time for loading compiled code.
    """

    scores: FloatArray
    sizes: IntArray
    updates: int
    seconds: float

    @property
    def estimate(self) -> float:
        """The estimate of the paper: the mean of the mean losses of the folds."""
        return float(self.scores.mean())

    @property
    def pooled(self) -> float:
        """Mean loss over all held-out rows; equal to `estimate` if all folds have the same size."""
        return float(self.scores @ self.sizes / self.sizes.sum())


PROGRESS_PARTS = 64  # subtrees that compiled code runs between two calls of the progress hook
TASKS_PER_JOB = 4  # subtrees per worker, so that subtrees of different size balance


def tree_cv(
    learner: Learner,
    X: FloatArray,
    y: FloatArray,
    folds: FoldPlan,
    *,
    shuffle_seed: int | None = None,
    jobs: int = 1,
    progress: ProgressHook | None = None,
) -> CvResult:
    """Return the cross-validation of an incremental learner over all folds, in `ceil(log2 k)` passes.

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    X : (n, p) array
        Rows; rows that are never held out are learned first.
    y : (n,) array
        Targets of the rows.
    folds : FoldPlan
        Folds, at most k = n.
    shuffle_seed : int, optional
        Seed of a random order of the rows of every update; by default, rows are learned in the order of the folds. The
        order depends only on the seed and the rows of the update, so `jobs` does not change the result.
    jobs : int
        Number of joblib workers, which are threads unless a joblib context (`parallel_config`) names another backend.
    progress : callable, optional
        Function called with (folds scored, k).

    Returns
    -------
    CvResult
        Result with `updates <= n ceil(log2 k)` in addition to the rows never held out, so at most `n (1 + log2 k)`.
        One job has O(log k) models in memory. If the order of rows has no effect, the estimate equals that of standard
        cross-validation.

    Raises
    ------
    BadInput
        If an option does not suit the learner.

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
    if jobs < 1:
        raise BadInput(f"--jobs must be at least 1, not {jobs}")
    tree = _Tree(RowsByFold.of(X, y, folds), shuffle_seed)
    rows = tree.rows
    warm_up_learner(learner, rows, shuffle_seed)
    begin = perf_counter()
    model = learner.copy()
    fixed = tree.feed(model, int(rows.starts[-1]), rows.n)
    scores, fed = tree.scores(model, 0, rows.k, progress) if jobs == 1 else _run_parallel(tree, model, jobs, progress)
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
    """Return the cross-validation of a learner that is trained from scratch for every fold (k repetitions).

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    X : (n, p) array
        Rows.
    y : (n,) array
        Targets of the rows.
    folds : FoldPlan
        Folds.
    shuffle_seed : int, optional
        Seed of a random order of the training rows of each fold; by default, the order of the folds.
    progress : callable, optional
        Function called with (folds scored, k).

    Returns
    -------
    CvResult
        Result with `updates` equal to k n minus the held-out rows.

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
    warm_up_learner(learner, rows, shuffle_seed)
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
        scores[j] = _score_fold(model, rows, j)
        if progress is not None:
            progress(j + 1, rows.k)
    return CvResult(scores, np.diff(rows.starts), fed, perf_counter() - begin)


def warm_up_learner(learner: Learner, rows: RowsByFold, shuffle_seed: int | None) -> None:
    """Load compiled code before the time is measured.

    Parameters
    ----------
    learner : Learner
        The untrained model; it is copied, not changed.
    rows : RowsByFold
        Rows of the run; a copy of the model learns two of them.
    shuffle_seed : int or None
        Seed of :func:`tree_cv`.
    """
    _order(0, 1, shuffle_seed)
    if isinstance(learner, Recursive):
        starts = np.arange(3)
        starts.setflags(write=rows.starts.flags.writeable)  # code is compiled for each type, which this is part of
        scrap, few = learner.copy(), RowsByFold(rows.X[:2], rows.y[:2], starts)
        feed_rows(scrap, few, 0, 1, None)
        scrap.score(few.X, few.y)
        scrap.subtree(few, 0, 2, shuffle_seed)


def feed_rows(model: Learner, rows: RowsByFold, first: int, last: int, order: IntArray | None) -> None:
    """Update a model with some of the rows.

    Parameters
    ----------
    model : Learner
        Model to update in place.
    rows : RowsByFold
        All rows.
    first, last : int
        Range of rows, first .. last-1, which are learned in one piece if `order` is None.
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
    from sparsecv_mio.kernels.pegasos import shuffled_range

    order = np.empty(last - first, dtype=np.int64)
    shuffled_range(first, last, shuffle_seed, order)
    return order


@dataclass(frozen=True)
class _Tree:
    """The recursion over ranges of folds.

    Parameters
    ----------
    shuffle_seed : int or None
        Seed of :func:`tree_cv`.
    """

    rows: RowsByFold
    shuffle_seed: int | None

    def feed(self, model: Learner, first: int, last: int) -> int:
        """Let a model learn rows first .. last-1; return their number."""
        if last > first:
            feed_rows(model, self.rows, first, last, _order(first, last, self.shuffle_seed))
        return last - first

    def split(self, model: Learner, first: int, last: int) -> tuple[list[tuple[Learner, int, int]], int]:
        """Return the children of one node, each with a model, and the number of rows that the models learned."""
        if last - first == 1:
            return [(model, first, last)], 0
        half = first + (last - first + 1) // 2
        low, middle, high = self.rows.starts[[first, half, last]].tolist()
        first_model = model.copy()
        fed = self.feed(first_model, middle, high) + self.feed(model, low, middle)
        return [(first_model, first, half), (model, half, last)], fed

    def scores(
        self, model: Learner, first: int, last: int, progress: ProgressHook | None = None
    ) -> tuple[FloatArray, int]:
        """Return the scores of folds first .. last-1 and the number of rows learned.

        The model has learned all other rows and is used up.
        """
        scores, fed, done = np.empty(last - first), 0, 0
        grain = last - first if progress is None else max(1, (last - first) // PROGRESS_PARTS)
        for scores_of, count in self._walk(model, first, last, grain):
            scores[done : done + len(scores_of)] = scores_of
            done, fed = done + len(scores_of), fed + count
            if progress is not None and len(scores_of):
                progress(done, last - first)
        return scores, fed

    def _walk(self, model: Any, first: int, last: int, grain: int) -> Iterator[tuple[FloatArray | list[float], int]]:
        """Yield scores in the order of the folds, and numbers of rows learned."""
        if last - first == 1:
            yield [_score_fold(model, self.rows, first)], 0
        elif last - first <= grain and isinstance(model, Recursive):
            yield model.subtree(self.rows, first, last, self.shuffle_seed)
        else:
            halves, fed = self.split(model, first, last)
            yield [], fed
            while halves:  # taken out, so that the memory of a model is freed when its half is done
                yield from self._walk(*halves.pop(0), grain)


def _score_fold(model: Any, rows: RowsByFold, fold: int) -> float:
    """Return the mean loss of a model on the rows of a fold; an error names the fold."""
    lo, hi = rows.starts[fold], rows.starts[fold + 1]
    try:
        return float(model.score(rows.X[lo:hi], rows.y[lo:hi]))
    except BadInput as error:
        raise BadInput(f"fold {fold + 1}: {error}") from None


def _run_parallel(tree: _Tree, model: Learner, jobs: int, progress: ProgressHook | None) -> tuple[FloatArray, int]:
    """Split level by level until there are enough subtrees, then run the subtrees; both steps run in parallel."""
    with naming_extras():
        from joblib import Parallel, delayed

    pool, k = Parallel(n_jobs=jobs, prefer="threads"), tree.rows.k
    nodes: list[tuple[Learner, int, int]] = [(model, 0, k)]
    fed = 0
    while len(nodes) < min(TASKS_PER_JOB * jobs, k):
        grown = pool(delayed(tree.split)(*node) for node in nodes)
        nodes = [node for children, _ in grown for node in children]
        fed += sum(count for _, count in grown)
    scores = np.empty(k)
    finish = pool if progress is None else Parallel(n_jobs=jobs, prefer="threads", return_as="generator")
    for (_, first, last), (scores_of, count) in zip(
        nodes, finish(delayed(tree.scores)(*node) for node in nodes), strict=True
    ):
        scores[first:last] = scores_of
        fed += count
        if progress is not None:
            progress(last, k)
    return scores, fed

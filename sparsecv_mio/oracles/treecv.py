"""TreeCV (Joulani, Gyorgy, Szepesvari 2015): k-fold cross-validation of incremental learners in O(log k) passes.

The results of TreeCV are estimates, never certificates. If the order of rows has no effect on a learner, the results
equal those of standard cross-validation (docs/oracles/treecv.md).

The recursion is Algorithm 1 of the paper, on one or more threads. A call of the recursion gets a range of folds and a
model that has learned all rows outside of the range. A copy of the model learns the rows of the right half of the
range, and the recursion continues with this copy on the left half. Then the model learns the rows of the left half, and
the recursion continues with the model on the right half. For a range of one fold, the model is scored on the rows of
this fold. At each depth of the recursion every row is learned once, so all k folds cost `ceil(log2 k)` passes over the
data.

The learners are linear models trained by stochastic gradient steps, ridge regression from moments, and naive Bayes from
counts. :class:`PegasosLearner` and :class:`LeastSquaresSgd` change their arrays when they learn a row, in compiled code
that processes whole subtrees. The other learners replace an array by a new one instead of changing it. A copy of such a
model may therefore share the arrays of the original.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import BadInput, match_keyword, naming_extras
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS
from sparsecv_mio.oracles.answers import ProgressHook, binary_labels, design_matrix
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.words import Intercept

__all__ = [
    "BernoulliNaiveBayes", "CvResult", "GaussianNaiveBayes", "Learner", "LearnerTask", "LeastSquaresSgd",
    "PartialFitLearner", "PegasosLearner", "Recursive", "RidgeLearner", "RowsByFold", "make_task", "standard_cv",
    "tree_cv",
]  # fmt: skip

RowLoss = Callable[[Any, FloatArray], FloatArray]


@runtime_checkable
class Learner(Protocol):
    """An incremental learner: a model that can learn further rows, be copied, and be scored.

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
            feed_rows(model, rows, 0, lo, None)
            feed_rows(model, rows, hi, rows.n, None)
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
    if order is not None:
        for block in row_chunks(last - first, rows.X.shape[1]):
            model.update(rows.X[order[block]], rows.y[order[block]])
    elif last > first:
        model.update(rows.X[first:last], rows.y[first:last])


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


def squared_error(predicted: Any, y: FloatArray) -> FloatArray:
    """Return `(y - predicted)^2` (m,)."""
    return np.asarray((y - np.asarray(predicted, dtype=np.float64)) ** 2)


def wrong_class(predicted: Any, y: FloatArray) -> FloatArray:
    """Return an array (m,) with 1 where the class is wrong, else 0."""
    return np.asarray(np.asarray(predicted) != y, dtype=np.float64)


class _Scored:
    """A learner whose score is the mean loss of its predictions, by default the share of wrong classes.

    Updates replace the state of the learner, so copies share it.
    """

    loss: RowLoss = staticmethod(wrong_class)

    def predict(self, X: FloatArray) -> Any:
        """Return predictions (m,)."""
        raise NotImplementedError

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Return the mean loss of the predictions."""
        return float(np.mean(self.loss(self.predict(X), y)))

    def copy(self) -> Self:
        """Return an independent learner in the same state."""
        return copy.copy(self)


class RidgeLearner(_Scored):
    """Ridge regression `min sum_i (y_i - b0 - x_i'b)^2 + lam ||b||^2`, by moments and one Cholesky solve per score.

    Updates add the moments of the new rows (theory section 8). Without subtractions there is no cancellation, and the
    result depends on the order of the rows only by rounding. Moments are immutable, so a copy costs no memory.

    Parameters
    ----------
    lam : float
        Ridge weight, >= 0 (gamma / 2 of theory section 0).
    intercept : bool
        True to profile out an unpenalised intercept.

    Raises
    ------
    BadInput
        If lam is negative or, at the first score, the fit is not unique.

    Examples
    --------
    >>> import numpy as np
    >>> learner = RidgeLearner(0.0, intercept=True)
    >>> learner.update(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]))
    >>> learner.fit()[0].round(12).tolist(), round(learner.fit()[1], 12)
    ([2.0], 1.0)
    """

    loss = staticmethod(squared_error)

    def __init__(self, lam: float, *, intercept: bool = False) -> None:
        if not (np.isfinite(lam) and lam >= 0.0):
            raise BadInput(f"ridge needs lam >= 0, not {lam}")
        self.lam, self.intercept = lam, intercept
        self.state: TrainingMoments | None = None

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Add the moments of m rows. O(m p^2)."""
        new = TrainingMoments.from_block(np.column_stack([X, y]))
        self.state = new if self.state is None else self.state + new

    def fit(self) -> tuple[FloatArray, float]:
        """Return the coefficients (p,) and the intercept. O(p^3)."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        m = self.state
        if m is None:
            raise BadInput("ridge has no training rows; every fold needs training rows")
        full = m.scatter if self.intercept else m.scatter + m.n * np.outer(m.mean, m.mean)
        p = full.shape[0] - 1
        try:
            factor = cho_factor(full[:p, :p] + self.lam * np.eye(p), lower=True)
        except LinAlgError:
            raise BadInput(
                "the ridge fit is not unique on these training rows; give lam > 0 or drop redundant columns"
            ) from None
        b = cho_solve(factor, full[:p, p])
        return b, float(m.mean[p] - m.mean[:p] @ b) if self.intercept else 0.0

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predictions (m,)."""
        b, b0 = self.fit()
        return np.asarray(X @ b + b0)


class GaussianNaiveBayes(_Scored):
    """Gaussian naive Bayes, with a share of the rows and a mean and variance of every column for each class.

    Counts, means and centred sums of squares are merged by additions. `smoothing` times the largest variance of a
    column over all learned rows is added to the variances. The loss is the share of wrong classes.

    Parameters
    ----------
    p : int
        Number of columns.
    classes : (c,) array
        Values of the target, ascending.
    smoothing : float
        Share of the largest variance added to all, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> learner = GaussianNaiveBayes(1, np.array([-1.0, 1.0]))
    >>> learner.update(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([-1.0, -1.0, 1.0, 1.0]))
    >>> learner.predict(np.array([[0.4], [5.2]])).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, p: int, classes: FloatArray, smoothing: float = 1e-9) -> None:
        if not (np.isfinite(smoothing) and smoothing >= 0.0):
            raise BadInput(f"naive Bayes needs a smoothing >= 0, not {smoothing}")
        self.classes = np.asarray(classes, dtype=np.float64)
        self.smoothing = smoothing
        c = self.classes.size
        self.state: tuple[FloatArray, FloatArray, FloatArray] = (np.zeros(c), np.zeros((c, p)), np.zeros((c, p)))

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Merge the moments of m rows by class. O(m p)."""
        counts, means, squares = (array.copy() for array in self.state)
        for c, value in enumerate(self.classes):
            block = X[y == value]
            if block.shape[0] == 0:
                continue
            mean = block.mean(axis=0)
            n = counts[c] + block.shape[0]
            step = mean - means[c]
            squares[c] += ((block - mean) ** 2).sum(axis=0) + step**2 * (counts[c] * block.shape[0] / n)
            means[c] += step * (block.shape[0] / n)
            counts[c] = n
        self.state = counts, means, squares

    def log_joint(self, X: FloatArray) -> FloatArray:
        """Return the log (m, c) of the joint density with each class; -inf for a class without rows. O(m c p)."""
        counts, means, squares = self.state
        n = max(counts.sum(), 1.0)
        seen = np.maximum(counts, 1.0)[:, None]
        middle = (counts[:, None] * means).sum(axis=0) / n
        spread = (squares + counts[:, None] * (means - middle) ** 2).sum(axis=0) / n
        variance = squares / seen + self.smoothing * max(float(spread.max(initial=0.0)), np.finfo(float).tiny)
        variance = np.maximum(variance, np.finfo(float).tiny)
        with np.errstate(divide="ignore"):
            prior = np.log(counts / n)
        out = np.empty((X.shape[0], self.classes.size))
        for c in range(self.classes.size):
            terms = np.log(2.0 * np.pi * variance[c]) + (X - means[c]) ** 2 / variance[c]
            out[:, c] = prior[c] - 0.5 * terms.sum(axis=1)
        return out

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the predicted classes (m,); the first class wins a tie."""
        return np.asarray(self.classes[np.argmax(self.log_joint(X), axis=1)])


class BernoulliNaiveBayes(_Scored):
    """Naive Bayes on the indicators `x > 0` with Laplace smoothing.

    Counts are integers, so the order of rows does not change a bit of the result.

    Parameters
    ----------
    p : int
        Number of columns.
    classes : (c,) array
        Values of the target, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> learner = BernoulliNaiveBayes(1, np.array([-1.0, 1.0]))
    >>> learner.update(np.array([[0.0], [1.0], [1.0]]), np.array([-1.0, 1.0, 1.0]))
    >>> learner.predict(np.array([[0.0], [1.0]])).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, p: int, classes: FloatArray) -> None:
        self.classes = np.asarray(classes, dtype=np.float64)
        self.state: IntArray = np.zeros((self.classes.size, p + 1), dtype=np.int64)

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Count the indicators of m rows by class. O(m p)."""
        masks = [y == value for value in self.classes]
        self.state = self.state + np.stack([np.append((X[own] > 0.0).sum(axis=0), own.sum()) for own in masks])

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the predicted classes (m,); the first class wins a tie."""
        rows = self.state[:, -1]
        share = (self.state[:, :-1] + 1.0) / (rows[:, None] + 2.0)
        on = X > 0.0
        prior = np.log((rows + 1.0) / (rows.sum() + self.classes.size))
        joint = prior + on @ np.log(share).T + ~on @ np.log1p(-share).T
        return np.asarray(self.classes[np.argmax(joint, axis=1)])


class PartialFitLearner(_Scored):
    """Adapter for estimators with `partial_fit`: classifiers, regressors, and clusterings with a user-defined loss.

    Parameters
    ----------
    estimator : object
        Untrained estimator; it is deep-copied, not changed.
    classes : (c,) array, optional
        All values of the target; classifiers need them at the first `partial_fit`.
    loss : callable, optional
        Function `loss(predictions, y) -> (m,)`. The default is wrong classes if `classes` is given, else squared
        errors.

    Raises
    ------
    BadInput
        If the estimator has no `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDRegressor
    >>> learner = PartialFitLearner(SGDRegressor(random_state=0))
    >>> learner.update(np.ones((4, 1)), np.ones(4))
    >>> learner.score(np.ones((2, 1)), np.ones(2)) < 1.0
    True
    """

    def __init__(self, estimator: Any, *, classes: FloatArray | None = None, loss: RowLoss | None = None) -> None:
        if not hasattr(estimator, "partial_fit"):
            raise BadInput(
                f"{type(estimator).__name__} has no method partial_fit, which incremental learning needs; use another "
                "estimator"
            )
        self.estimator = copy.deepcopy(estimator)
        self.classes = classes
        self.loss: RowLoss = loss or (squared_error if classes is None else wrong_class)

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Call `partial_fit` once on the rows."""
        if self.classes is None:
            self.estimator.partial_fit(X, y)
        else:
            self.estimator.partial_fit(X, y, classes=self.classes)

    def copy(self) -> Self:
        """Return an independent learner by a deep copy of the estimator."""
        return type(self)(self.estimator, classes=self.classes, loss=self.loss)

    def predict(self, X: FloatArray) -> Any:
        """Return the predictions of the estimator."""
        return self.estimator.predict(X)


class _LinearSgd:
    """Base class of the two learners whose model is one array, updated by :mod:`sparsecv_mio.kernels.pegasos`."""

    kind: ClassVar[int]

    def __init__(self, p: int, model: FloatArray, rate: float) -> None:
        self.p, self.model, self.rate = p, model, rate  # the kernel's parameter: lam or the step

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Learn rows one by one in the given order. O(m p)."""
        from sparsecv_mio.kernels.pegasos import learn_rows

        learn_rows(self.kind, self.model, np.ascontiguousarray(X), y, self.rate)

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Return the mean loss. O(m p)."""
        from sparsecv_mio.kernels.pegasos import score_rows

        return float(score_rows(self.kind, self.model, np.ascontiguousarray(X), y, 0, X.shape[0]))

    def subtree(self, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> tuple[FloatArray, int]:
        """Run the recursion over some of the folds in compiled code, without changing the model.

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
        from sparsecv_mio.kernels.pegasos import Sgd, tree

        scores = np.empty(last - first)
        sgd = Sgd(self.kind, self.rate, shuffle_seed is not None, shuffle_seed or 0)
        fed = tree(sgd, self.model, rows.X, rows.y, rows.starts, first, last, scores)
        return scores, int(fed)

    def copy(self) -> Self:
        """Return an independent model in the same state."""
        twin = copy.copy(self)
        twin.model = self.model.copy()
        return twin


class PegasosLearner(_LinearSgd):
    """Linear support vector machine by PEGASOS (Shalev-Shwartz et al. 2011), with batches of one row, no projection.

    Step t is `w <- (1 - 1/t) w + [y w'x < 1] y x / (lam t)`. So `w = v / (lam t)` with v the sum of `y x` over the rows
    inside the margin, and no rescaling is needed. The model is the last hypothesis, the loss the share of wrong signs.

    Parameters
    ----------
    p : int
        Number of columns.
    lam : float
        Weight of `(lam / 2) ||w||^2` against the mean hinge loss, > 0.

    Raises
    ------
    BadInput
        If lam is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> learner = PegasosLearner(1, lam=0.1)
    >>> learner.update(np.array([[1.0], [-2.0]]), np.array([1.0, -1.0]))
    >>> learner.coefficients.tolist(), learner.score(np.array([[3.0]]), np.array([1.0]))
    ([5.0], 0.0)
    """

    kind = 0

    def __init__(self, p: int, lam: float = 1e-6) -> None:
        if not (np.isfinite(lam) and lam > 0.0):
            raise BadInput(f"PEGASOS needs lam > 0, not {lam}")
        super().__init__(p, np.zeros(p + 1), lam)

    @property
    def coefficients(self) -> FloatArray:
        """Weights w (p,)."""
        t = float(self.model[-1])
        return np.zeros(self.p) if t == 0.0 else np.asarray(self.model[: self.p] / (self.rate * t))

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the predicted signs (m,); +1 on the boundary."""
        return np.where(X @ self.coefficients >= 0.0, 1.0, -1.0)


class LeastSquaresSgd(_LinearSgd):
    """Averaged least-squares SGD in the unit ball: the robust stochastic approximation of Nemirovski et al. (2009).

    A step is `w <- P(w - 2 a (x'w - y) x)`, with P the projection on `||w||_2 <= 1`. The model is the mean of the
    iterates after each row, and the loss is `(x'w - y)^2`. The paper takes `a = n^(-1/2)`.

    Parameters
    ----------
    p : int
        Number of columns.
    step : float
        Step length a, > 0.

    Raises
    ------
    BadInput
        If the step is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> learner = LeastSquaresSgd(1, step=0.5)
    >>> learner.update(np.array([[1.0], [1.0]]), np.array([0.5, 0.5]))
    >>> learner.coefficients.tolist(), learner.score(np.array([[2.0]]), np.array([1.5]))
    ([0.5], 0.25)
    """

    kind = 1

    def __init__(self, p: int, step: float) -> None:
        if not (np.isfinite(step) and step > 0.0):
            raise BadInput(f"least-squares SGD needs a step > 0, not {step}")
        super().__init__(p, np.zeros(2 * p + 1), step)

    @property
    def coefficients(self) -> FloatArray:
        """Averaged weights (p,)."""
        return np.asarray(self.model[self.p : 2 * self.p] / max(float(self.model[-1]), 1.0))

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predictions (m,)."""
        return np.asarray(X @ self.coefficients)


PEGASOS_LAM = 1e-6  # value of the paper
RIDGE_LAM = 1.0


@dataclass(frozen=True, eq=False)
class LearnerTask:
    """A learner and the rows for its cross-validation.

    Attributes
    ----------
    learner : Learner
        Untrained model.
    X : (n, p) array
        Rows in the form that the learner requires.
    y : (n,) array
        Targets of the rows, in the form that the learner requires.
    loss : str
        Name of the loss, `misclassification` or `squared error`.
    """

    learner: Learner
    X: FloatArray
    y: FloatArray
    loss: str


def make_task(
    dataset: Dataset,
    learner: str,
    *,
    lam: float | None = None,
    step: float | None = None,
    scale: str = "none",
    intercept: str = "none",
) -> LearnerTask:
    """Return a learner and the rows of a data set, by default without scaling or centring.

    Parameters
    ----------
    dataset : Dataset
        Columns and target; classifiers map its two values to -1 (the smaller) and +1.
    learner : {"pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb"}
        Name of the learner.
    lam : float, optional
        Weight of the penalty of PEGASOS (default 1e-6) or ridge (default 1).
    step : float, optional
        Step length of least-squares SGD; `n ** -0.5` by default.
    scale : {"none", "length", "variance"}
        Column scale.
    intercept : {"none", "global", "fold"}
        Kind of intercept. `global` centres the columns once on all rows, and the target of a regression. `fold` is an
        unpenalised intercept for ridge; for PEGASOS and least-squares SGD it is a column of ones, treated like any
        other column.

    Returns
    -------
    LearnerTask
        Learner and rows.

    Raises
    ------
    BadInput
        If a word is unknown, an option does not suit the learner, or the target has more than two values.

    Examples
    --------
    >>> task = make_task(Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0]), "naive-bayes")
    >>> task.y.tolist(), task.loss
    ([-1.0, -1.0, 1.0, 1.0], 'misclassification')
    """
    learner = match_keyword(learner, LEARNERS, "--learner")
    if lam is not None and learner not in ("pegasos", "ridge"):
        raise BadInput(
            f"--lam: not supported with --learner {learner}; use learner pegasos or ridge, or leave --lam out"
        )
    if step is not None and learner != "lsqsgd":
        raise BadInput(f"--step: not supported with --learner {learner}; use learner lsqsgd, or leave --step out")
    if intercept == Intercept.FOLD and learner in ("naive-bayes", "bernoulli-nb"):
        raise BadInput(
            f"--intercept fold: not supported with --learner {learner}, which uses class shares; leave --intercept out"
        )
    X, free, classifies = design_matrix(dataset, scale, intercept), intercept == Intercept.FOLD, learner in CLASSIFIERS
    y = binary_labels(dataset)[0] if classifies else dataset.y
    if not classifies and intercept == Intercept.GLOBAL:
        y = y - y.mean()
    if free and learner != "ridge":
        X = np.column_stack([X, np.ones(dataset.n)])
    n, p = X.shape
    signs = np.array([-1.0, 1.0])
    learners: dict[str, Callable[[], Learner]] = {
        "pegasos": lambda: PegasosLearner(p, PEGASOS_LAM if lam is None else lam),
        "lsqsgd": lambda: LeastSquaresSgd(p, n**-0.5 if step is None else step),
        "ridge": lambda: RidgeLearner(RIDGE_LAM if lam is None else lam, intercept=free),
        "naive-bayes": lambda: GaussianNaiveBayes(p, signs),
        "bernoulli-nb": lambda: BernoulliNaiveBayes(p, signs),
    }
    return LearnerTask(learners[learner](), X, y, "misclassification" if classifies else "squared error")

"""Naive Bayes classifiers by accumulation; the order of rows has no effect."""

from __future__ import annotations

from typing import Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.errors import BadInput

Stats = tuple[FloatArray, FloatArray, FloatArray]


class GaussianNaiveBayes:
    """Gaussian naive Bayes: per class a share of the rows, and a mean and variance of every column.

    Counts, means and centred sums of squares are merged by additions; variances get `smoothing` times the largest
    variance of a column over all rows learned. The loss is the share of wrong classes.

    Parameters
    ----------
    p : int
        Columns.
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
        self.stats: Stats = (np.zeros(c), np.zeros((c, p)), np.zeros((c, p)))

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Merge the moments of m rows, class by class. O(m p)."""
        counts, means, squares = (part.copy() for part in self.stats)
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
        self.stats = counts, means, squares

    def update_saving(self, X: FloatArray, y: FloatArray) -> Stats:
        """Update and return the former moments."""
        before = self.stats
        self.update(X, y)
        return before

    def revert(self, change: Stats) -> None:
        """Restore the former moments."""
        self.stats = change

    def copy(self) -> Self:
        """Return an independent learner; the moments are shared, updates replace them."""
        twin = type(self)(self.stats[1].shape[1], self.classes, self.smoothing)
        twin.stats = self.stats
        return twin

    def log_joint(self, X: FloatArray) -> FloatArray:
        """(m, c) log of the joint density with each class; -inf for a class without rows. O(m c p)."""
        counts, means, squares = self.stats
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
        """(m,) classes; the first of those that tie."""
        return np.asarray(self.classes[np.argmax(self.log_joint(X), axis=1)])

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Share of wrong classes. O(m c p)."""
        return float(np.mean(self.predict(X) != y))


class BernoulliNaiveBayes:
    """Naive Bayes on the indicators `x > 0` with Laplace smoothing: integer counts, so every order gives the same bits.

    Its updates are undone exactly by subtraction: the change of an update is a table of counts.

    Parameters
    ----------
    p : int
        Columns.
    classes : (c,) array
        Values of the target, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> learner = BernoulliNaiveBayes(1, np.array([-1.0, 1.0]))
    >>> change = learner.update_saving(np.array([[0.0], [1.0], [1.0]]), np.array([-1.0, 1.0, 1.0]))
    >>> learner.predict(np.array([[0.0], [1.0]])).tolist()
    [-1.0, 1.0]
    >>> learner.revert(change)
    >>> int(learner.counts.sum())
    0
    """

    def __init__(self, p: int, classes: FloatArray) -> None:
        self.classes = np.asarray(classes, dtype=np.float64)
        self.counts: IntArray = np.zeros((self.classes.size, p + 1), dtype=np.int64)

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Count. O(m p)."""
        self.update_saving(X, y)

    def update_saving(self, X: FloatArray, y: FloatArray) -> IntArray:
        """Update and return the counts that were added."""
        added = np.empty_like(self.counts)
        for c, value in enumerate(self.classes):
            rows = X[y == value]
            added[c, :-1] = (rows > 0.0).sum(axis=0)
            added[c, -1] = rows.shape[0]
        self.counts += added
        return added

    def revert(self, change: IntArray) -> None:
        """Subtract the counts again."""
        self.counts -= change

    def copy(self) -> Self:
        """Return an independent learner in the same state."""
        twin = type(self)(self.counts.shape[1] - 1, self.classes)
        twin.counts = self.counts.copy()
        return twin

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) classes; the first of those that tie."""
        rows = self.counts[:, -1]
        share = (self.counts[:, :-1] + 1.0) / (rows[:, None] + 2.0)
        on = X > 0.0
        prior = np.log((rows + 1.0) / (rows.sum() + self.classes.size))
        joint = prior + on @ np.log(share).T + ~on @ np.log1p(-share).T
        return np.asarray(self.classes[np.argmax(joint, axis=1)])

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Share of wrong classes. O(m c p)."""
        return float(np.mean(self.predict(X) != y))

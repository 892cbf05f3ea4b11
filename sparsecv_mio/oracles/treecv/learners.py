"""Incremental learners for TreeCV, chosen by name for a data set, and their predictions of held-out rows.

The learners are linear models by stochastic gradients, ridge regression by moments, and naive Bayes by counts.

An update of :class:`PegasosLearner` and :class:`LeastSquaresSgd` changes their arrays in place, in compiled code that
processes whole trees; the others replace their state, so their copies share it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, one_of
from sparsecv_mio.oracles.answers import binary_labels, design_matrix
from sparsecv_mio.oracles.treecv.recursion import Learner, RowsByFold
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.words import CLASSIFIERS, LEARNERS, Intercept

__all__ = [
    "BernoulliNaiveBayes", "GaussianNaiveBayes", "LearnerTask", "LeastSquaresSgd", "PartialFitLearner",
    "PegasosLearner", "RidgeLearner", "make_task",
]  # fmt: skip

RowLoss = Callable[[Any, FloatArray], FloatArray]


def squared_error(predicted: Any, y: FloatArray) -> FloatArray:
    """(m,) `(y - predicted)^2`."""
    return np.asarray((y - np.asarray(predicted, dtype=np.float64)) ** 2)


def wrong_class(predicted: Any, y: FloatArray) -> FloatArray:
    """(m,) one where the class is wrong."""
    return np.asarray(np.asarray(predicted) != y, dtype=np.float64)


def _twin(learner: Any) -> Any:
    """Return a learner of the same attributes; `copy.copy` takes several times as long."""
    twin = object.__new__(type(learner))
    twin.__dict__.update(learner.__dict__)
    return twin


class _Scored:
    """A learner whose score is the mean loss of its predictions, wrong classes unless it says otherwise.

    Its updates replace its state, so that copies share it.
    """

    loss: RowLoss = staticmethod(wrong_class)

    def predict(self, X: FloatArray) -> Any:
        """(m,) predictions."""
        raise NotImplementedError

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Mean loss of the predictions."""
        return float(np.mean(self.loss(self.predict(X), y)))

    def copy(self) -> Self:
        """Return an independent learner in the same state."""
        return _twin(self)


class RidgeLearner(_Scored):
    """`min sum_i (y_i - b0 - x_i'b)^2 + lam ||b||^2` by Gram accumulation and one Cholesky solve per score.

    Updates add the moments of the new rows (theory section 8: nothing is subtracted, so nothing cancels); the result
    does not depend on their order beyond rounding. Moments are immutable, so a copy is free.

    Parameters
    ----------
    lam : float
        Ridge weight, >= 0 (gamma / 2 of theory section 0).
    intercept : bool
        Profile out an unpenalised intercept.

    Raises
    ------
    BadInput
        lam is negative; at the first score, the fit is not unique.

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
        new = TrainingMoments.of(np.column_stack([X, y]))
        self.state = new if self.state is None else self.state + new

    def fit(self) -> tuple[FloatArray, float]:
        """Coefficients (p,) and intercept. O(p^3)."""
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        m = self.state
        if m is None:
            raise BadInput("ridge has learned no rows: every fold needs training rows")
        full = m.scatter if self.intercept else m.scatter + m.n * np.outer(m.mean, m.mean)
        p = full.shape[0] - 1
        try:
            factor = cho_factor(full[:p, :p] + self.lam * np.eye(p), lower=True)
        except LinAlgError:
            raise BadInput("the ridge fit of a fold is not unique: give lam > 0 or drop redundant columns") from None
        b = cho_solve(factor, full[:p, p])
        return b, float(m.mean[p] - m.mean[:p] @ b) if self.intercept else 0.0

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) predictions."""
        b, b0 = self.fit()
        return np.asarray(X @ b + b0)


class GaussianNaiveBayes(_Scored):
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
        self.state: tuple[FloatArray, FloatArray, FloatArray] = (np.zeros(c), np.zeros((c, p)), np.zeros((c, p)))

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Merge the moments of m rows, class by class. O(m p)."""
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
        """(m, c) log of the joint density with each class; -inf for a class without rows. O(m c p)."""
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
        """(m,) classes; the first of those that tie."""
        return np.asarray(self.classes[np.argmax(self.log_joint(X), axis=1)])


class BernoulliNaiveBayes(_Scored):
    """Naive Bayes on the indicators `x > 0` with Laplace smoothing: integer counts, so every order gives the same bits.

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
    >>> learner.update(np.array([[0.0], [1.0], [1.0]]), np.array([-1.0, 1.0, 1.0]))
    >>> learner.predict(np.array([[0.0], [1.0]])).tolist()
    [-1.0, 1.0]
    """

    def __init__(self, p: int, classes: FloatArray) -> None:
        self.classes = np.asarray(classes, dtype=np.float64)
        self.state: IntArray = np.zeros((self.classes.size, p + 1), dtype=np.int64)

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Count. O(m p)."""
        masks = [y == value for value in self.classes]
        self.state = self.state + np.stack([np.append((X[own] > 0.0).sum(axis=0), own.sum()) for own in masks])

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) classes; the first of those that tie."""
        rows = self.state[:, -1]
        share = (self.state[:, :-1] + 1.0) / (rows[:, None] + 2.0)
        on = X > 0.0
        prior = np.log((rows + 1.0) / (rows.sum() + self.classes.size))
        joint = prior + on @ np.log(share).T + ~on @ np.log1p(-share).T
        return np.asarray(self.classes[np.argmax(joint, axis=1)])


class PartialFitLearner(_Scored):
    """Adapter for estimators with `partial_fit`: classifiers, regressors, and clusterings with a loss of your own.

    Parameters
    ----------
    estimator : object
        Untrained estimator; it is deep-copied, not changed.
    classes : (c,) array, optional
        All values of the target; classifiers need them at the first `partial_fit`.
    loss : callable, optional
        `loss(predictions, y) -> (m,)`; wrong classes when `classes` are given, squared errors otherwise.

    Raises
    ------
    BadInput
        The estimator has no `partial_fit`.

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
            raise BadInput(f"{type(estimator).__name__} has no partial_fit: it cannot learn incrementally")
        self.estimator = copy.deepcopy(estimator)
        self.classes = classes
        self.loss: RowLoss = loss or (squared_error if classes is None else wrong_class)

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """One `partial_fit` on the rows."""
        if self.classes is None:
            self.estimator.partial_fit(X, y)
        else:
            self.estimator.partial_fit(X, y, classes=self.classes)

    def copy(self) -> Self:
        """Return an independent learner by a deep copy of the estimator."""
        return type(self)(self.estimator, classes=self.classes, loss=self.loss)

    def predict(self, X: FloatArray) -> Any:
        """Return the estimator's predictions."""
        return self.estimator.predict(X)


class _LinearSgd:
    """What both learners share: the model is one array, fed by :mod:`sparsecv_mio.kernels.pegasos`."""

    kind: ClassVar[int]

    def __init__(self, p: int, model: FloatArray, rate: float) -> None:
        self.p, self.model, self.rate = p, model, rate  # the kernel's parameter: lam or the step

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Learn rows one by one in the order given. O(m p)."""
        from sparsecv_mio.kernels.pegasos import learn_rows

        learn_rows(self.kind, self.model, np.ascontiguousarray(X), y, self.rate)

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Mean loss. O(m p)."""
        from sparsecv_mio.kernels.pegasos import score_rows

        return float(score_rows(self.kind, self.model, np.ascontiguousarray(X), y, 0, X.shape[0]))

    def subtree(self, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> tuple[FloatArray, int]:
        """Run the recursion over some of the folds in compiled code; the model itself is not changed.

        Parameters
        ----------
        rows : RowsByFold
            All rows.
        first, last : int
            Folds first .. last-1; this model has learned all the others.
        shuffle_seed : int or None
            As for :func:`~sparsecv_mio.oracles.treecv.recursion.tree_cv`.

        Returns
        -------
        scores : (last - first,) array
            Scores of these folds.
        fed : int
            Rows learned by the models in between.
        """
        from sparsecv_mio.kernels.pegasos import Sgd, tree

        scores = np.empty(last - first)
        sgd = Sgd(self.kind, self.rate, shuffle_seed is not None, shuffle_seed or 0)
        fed = tree(sgd, self.model, rows.X, rows.y, rows.starts, first, last, scores)
        return scores, int(fed)

    def copy(self) -> Self:
        """Return an independent model in the same state."""
        twin = _twin(self)
        twin.model = self.model.copy()
        return twin


class PegasosLearner(_LinearSgd):
    """PEGASOS (Shalev-Shwartz et al. 2011), batches of one row, no projection: a linear support vector machine.

    Step t: `w <- (1 - 1/t) w + [y w'x < 1] y x / (lam t)`, which keeps `w = v / (lam t)` with v the sum of the `y x` of
    the rows inside the margin: no rescaling. The model is the last hypothesis, the loss the share of wrong signs.

    Parameters
    ----------
    p : int
        Columns.
    lam : float
        Weight of `(lam / 2) ||w||^2` against the mean hinge loss, > 0.

    Raises
    ------
    BadInput
        lam is not positive.

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
        """(p,) weights w."""
        t = float(self.model[-1])
        return np.zeros(self.p) if t == 0.0 else np.asarray(self.model[: self.p] / (self.rate * t))

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) signs, +1 on the boundary."""
        return np.where(X @ self.coefficients >= 0.0, 1.0, -1.0)


class LeastSquaresSgd(_LinearSgd):
    """Averaged least-squares SGD in the unit ball: the robust stochastic approximation of Nemirovski et al. (2009).

    Step: `w <- P(w - 2 a (x'w - y) x)`, P the projection on `||w||_2 <= 1`; the model is the mean of the iterates after
    each row, the loss `(x'w - y)^2`. The paper takes `a = n^(-1/2)`.

    Parameters
    ----------
    p : int
        Columns.
    step : float
        Step length a, > 0.

    Raises
    ------
    BadInput
        The step is not positive.

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
        """(p,) averaged weights."""
        return np.asarray(self.model[self.p : 2 * self.p] / max(float(self.model[-1]), 1.0))

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) predictions."""
        return np.asarray(X @ self.coefficients)


PEGASOS_LAM = 1e-6  # the paper's
RIDGE_LAM = 1.0
SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, eq=False)
class LearnerTask:
    """A learner with the rows to cross-validate it on.

    Attributes
    ----------
    learner : Learner
        Untrained model.
    X : (n, p) array
    y : (n,) array
        Rows as the learner takes them.
    loss : str
        `misclassification` or `squared error`.
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
    """Return a learner for a data set's columns as they are, unless asked otherwise.

    Parameters
    ----------
    dataset : Dataset
        Columns and target; classifiers map its two values to -1 (the smaller) and +1.
    learner : {"pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb"}
        Name.
    lam : float, optional
        Of PEGASOS (1e-6 unless given) or ridge (1).
    step : float, optional
        Of least-squares SGD; `n ** -0.5` unless given.
    scale : {"none", "length", "variance"}
        Column scale.
    intercept : {"none", "global", "fold"}
        `global` centres the columns once on all rows, and the target of a regression; `fold` is an unpenalised
        intercept for ridge and a column of ones, learned like any other, for PEGASOS and least-squares SGD.

    Returns
    -------
    LearnerTask
        Learner and rows.

    Raises
    ------
    BadInput
        A word is unknown, an option does not suit the learner, or the target takes more than two values.

    Examples
    --------
    >>> task = make_task(Dataset.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 1.0, 1.0]), "naive-bayes")
    >>> task.y.tolist(), task.loss
    ([-1.0, -1.0, 1.0, 1.0], 'misclassification')
    """
    learner = one_of(learner, LEARNERS, "--learner")
    if lam is not None and learner not in ("pegasos", "ridge"):
        raise BadInput(f"--lam does not go with --learner {learner}: it is for pegasos and ridge")
    if step is not None and learner != "lsqsgd":
        raise BadInput(f"--step does not go with --learner {learner}: it is for lsqsgd")
    if intercept == Intercept.FOLD and learner in ("naive-bayes", "bernoulli-nb"):
        raise BadInput(f"--intercept fold does not go with --learner {learner}: it has class shares instead")
    X = design_matrix(dataset, scale, intercept)
    classifies = learner in CLASSIFIERS
    y = binary_labels(dataset)[0] if classifies else dataset.y
    if not classifies and intercept == Intercept.GLOBAL:
        y = y - y.mean()
    if intercept == Intercept.FOLD and learner != "ridge":
        X = np.column_stack([X, np.ones(dataset.n)])
    n, p = X.shape
    model = _untrained(learner, n, p, lam, step, intercept == Intercept.FOLD)
    return LearnerTask(model, X, y, "misclassification" if classifies else "squared error")


def _untrained(learner: str, n: int, p: int, lam: float | None, step: float | None, intercept: bool) -> Learner:
    if learner == "pegasos":
        return PegasosLearner(p, PEGASOS_LAM if lam is None else lam)
    if learner == "lsqsgd":
        return LeastSquaresSgd(p, n**-0.5 if step is None else step)
    if learner == "ridge":
        return RidgeLearner(RIDGE_LAM if lam is None else lam, intercept=intercept)
    return GaussianNaiveBayes(p, SIGNS) if learner == "naive-bayes" else BernoulliNaiveBayes(p, SIGNS)

"""Incremental learners for TreeCV and their predictions of held-out rows.

The learners are linear models by stochastic gradients, ridge regression by moments, and naive Bayes by counts.

:class:`PegasosLearner` and :class:`LeastSquaresSgd` change their arrays when they learn a row, in compiled code that
processes whole subtrees. The other learners never change a state, but replace it by a new state. A copy may therefore
share the state of its original.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.errors import BadInput, match_keyword
from sparsecv_mio.oracles import CLASSIFIERS, LEARNERS
from sparsecv_mio.oracles.answers import binary_labels, design_matrix
from sparsecv_mio.oracles.treecv.recursion import Learner, RowsByFold
from sparsecv_mio.problem.training_moments import TrainingMoments
from sparsecv_mio.words import Intercept

__all__ = [
    "BernoulliNaiveBayes", "GaussianNaiveBayes", "LearnerTask", "LeastSquaresSgd", "PartialFitLearner",
    "PegasosLearner", "RidgeLearner", "make_task",
]  # fmt: skip

RowLoss = Callable[[Any, FloatArray], FloatArray]


def squared_error(predicted: Any, y: FloatArray) -> FloatArray:
    """Return `(y - predicted)^2` (m,)."""
    return np.asarray((y - np.asarray(predicted, dtype=np.float64)) ** 2)


def wrong_class(predicted: Any, y: FloatArray) -> FloatArray:
    """Return an array (m,) with 1 where the class is wrong, else 0."""
    return np.asarray(np.asarray(predicted) != y, dtype=np.float64)


def _twin(learner: Any) -> Any:
    """Return a learner with the same attributes; `copy.copy` takes several times as long."""
    twin = object.__new__(type(learner))
    twin.__dict__.update(learner.__dict__)
    return twin


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
        return _twin(self)


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
            Seed of :func:`~sparsecv_mio.oracles.treecv.recursion.tree_cv`.

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
        twin = _twin(self)
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
SIGNS = np.array([-1.0, 1.0])


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
    X = design_matrix(dataset, scale, intercept)
    classifies = learner in CLASSIFIERS
    y = binary_labels(dataset)[0] if classifies else dataset.y
    if not classifies and intercept == Intercept.GLOBAL:
        y = y - y.mean()
    if intercept == Intercept.FOLD and learner != "ridge":
        X = np.column_stack([X, np.ones(dataset.n)])
    n, p = X.shape
    model = _make_learner(learner, n, p, lam, step, intercept == Intercept.FOLD)
    return LearnerTask(model, X, y, "misclassification" if classifies else "squared error")


def _make_learner(learner: str, n: int, p: int, lam: float | None, step: float | None, intercept: bool) -> Learner:
    if learner == "pegasos":
        return PegasosLearner(p, PEGASOS_LAM if lam is None else lam)
    if learner == "lsqsgd":
        return LeastSquaresSgd(p, n**-0.5 if step is None else step)
    if learner == "ridge":
        return RidgeLearner(RIDGE_LAM if lam is None else lam, intercept=intercept)
    return GaussianNaiveBayes(p, SIGNS) if learner == "naive-bayes" else BernoulliNaiveBayes(p, SIGNS)

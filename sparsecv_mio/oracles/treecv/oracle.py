"""TreeCV for a data set: rows and untrained model by the name of a learner, predictions of rows that are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Estimate, Guarantee, binary_labels, design_matrix
from sparsecv_mio.oracles.treecv.learners import (
    BernoulliNaiveBayes,
    GaussianNaiveBayes,
    LeastSquaresSgd,
    PegasosLearner,
    RidgeLearner,
)
from sparsecv_mio.oracles.treecv.protocol import Learner
from sparsecv_mio.oracles.treecv.tree import tree_cv
from sparsecv_mio.words import one_of

LEARNERS = ("pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb")
CLASSIFIERS = ("pegasos", "naive-bayes", "bernoulli-nb")
PEGASOS_LAM = 1e-6  # the paper's
RIDGE_LAM = 1.0
SIGNS = np.array([-1.0, 1.0])


class Predictor(Learner, Protocol):
    """A learner that predicts."""

    def predict(self, X: FloatArray) -> Any:
        """(m,) predictions."""
        ...


class _Predictions:
    """A learner that keeps the predictions of the rows it is scored on; the tree scores the folds in order."""

    def __init__(self, inner: Predictor, kept: list[FloatArray]) -> None:
        self.inner, self.kept = inner, kept

    def update(self, X: FloatArray, y: FloatArray) -> None:
        self.inner.update(X, y)

    def copy(self) -> Self:
        return type(self)(self.inner.copy(), self.kept)

    def score(self, X: FloatArray, y: FloatArray) -> float:
        self.kept.append(np.asarray(self.inner.predict(X), dtype=np.float64))
        return 0.0


def held_out_predictions(
    learner: Predictor, X: FloatArray, y: FloatArray, folds: FoldPlan, *, shuffle_seed: int | None = None
) -> FloatArray:
    """Predict every row by the model that did not learn its fold, in `ceil(log2 k)` passes.

    Parameters
    ----------
    learner : Predictor
        The untrained model; it is copied, not changed.
    X : (n, p) array
        Rows.
    y : (n,) array
        Their targets.
    folds : FoldPlan
        Folds.
    shuffle_seed : int, optional
        As for :func:`~sparsecv_mio.oracles.treecv.tree.tree_cv`.

    Returns
    -------
    (n,) array
        NaN for rows never held out.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsecv_mio.data.folds import folds_from_labels
    >>> from sparsecv_mio.oracles.treecv import RidgeLearner
    >>> X, y = np.ones((4, 1)), np.array([1.0, 2.0, 3.0, 6.0])
    >>> held_out_predictions(RidgeLearner(0.0), X, y, folds_from_labels([0, 1, 0, 1])).round(9).tolist()
    [4.0, 2.0, 4.0, 2.0]
    """
    kept: list[FloatArray] = []
    tree_cv(_Predictions(learner, kept), X, y, folds, shuffle_seed=shuffle_seed)
    out = np.full(folds.n, np.nan)
    out[folds.order[: folds.starts[-1]]] = np.concatenate(kept)
    return out


@dataclass(frozen=True, eq=False)
class TreeCvOracle:
    """Predictions of left-out folds by an incremental learner; exact where the order of rows has no effect on it.

    Parameters
    ----------
    learner : Predictor
        Untrained model.
    X : (n, p) array
        Rows.
    y : (n,) array
        Their targets.
    folds : FoldPlan
        What can be left out.
    """

    guarantee: ClassVar[Guarantee] = Guarantee.ESTIMATE  # it may order a search, not prune it

    learner: Predictor
    X: FloatArray
    y: FloatArray
    folds: FoldPlan

    @cached_property
    def _predictions(self) -> FloatArray:
        return held_out_predictions(self.learner, self.X, self.y, self.folds)

    def leave_out(self, rows: IntArray) -> Estimate:
        """Return predictions of the rows (m,) of one fold; the first call computes those of all folds.

        Raises
        ------
        BadInput
            The rows are not those of one fold.
        """
        j = int(self.folds.labels[rows[0]]) if rows.size else -1
        if j < 0 or not np.array_equal(np.sort(rows), self.folds.scored_rows(j)):
            raise BadInput("TreeCV leaves out whole folds of its plan: ask for the rows of one")
        return Estimate(self._predictions[rows])


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

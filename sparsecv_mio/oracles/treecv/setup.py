"""The rows and the untrained model for a data set and the name of a learner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import Intercept
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.inputs import binary_labels, design_matrix
from sparsecv_mio.oracles.treecv.learners.linear import LeastSquaresSgd, PegasosLearner
from sparsecv_mio.oracles.treecv.learners.naive_bayes import BernoulliNaiveBayes, GaussianNaiveBayes
from sparsecv_mio.oracles.treecv.learners.ridge import RidgeLearner
from sparsecv_mio.oracles.treecv.protocol import Learner
from sparsecv_mio.words import one_of

LEARNERS = ("pegasos", "lsqsgd", "ridge", "naive-bayes", "bernoulli-nb")
CLASSIFIERS = ("pegasos", "naive-bayes", "bernoulli-nb")
PEGASOS_LAM = 1e-6  # the paper's
RIDGE_LAM = 1.0
SIGNS = np.array([-1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Task:
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
) -> Task:
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
    Task
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
    return Task(model, X, y, "misclassification" if classifies else "squared error")


def _untrained(learner: str, n: int, p: int, lam: float | None, step: float | None, intercept: bool) -> Learner:
    if learner == "pegasos":
        return PegasosLearner(p, PEGASOS_LAM if lam is None else lam)
    if learner == "lsqsgd":
        return LeastSquaresSgd(p, n**-0.5 if step is None else step)
    if learner == "ridge":
        return RidgeLearner(RIDGE_LAM if lam is None else lam, intercept=intercept)
    return GaussianNaiveBayes(p, SIGNS) if learner == "naive-bayes" else BernoulliNaiveBayes(p, SIGNS)

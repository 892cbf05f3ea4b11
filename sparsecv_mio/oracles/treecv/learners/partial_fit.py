"""Any scikit-learn estimator with `partial_fit` as a learner."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput

RowLoss = Callable[[Any, FloatArray], FloatArray]


def squared_error(predicted: Any, y: FloatArray) -> FloatArray:
    """(m,) `(y - predicted)^2`."""
    return np.asarray((y - np.asarray(predicted, dtype=np.float64)) ** 2)


def wrong_class(predicted: Any, y: FloatArray) -> FloatArray:
    """(m,) one where the class is wrong."""
    return np.asarray(np.asarray(predicted) != y, dtype=np.float64)


class PartialFitLearner:
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

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Mean loss of the predictions."""
        return float(np.mean(self.loss(self.predict(X), y)))

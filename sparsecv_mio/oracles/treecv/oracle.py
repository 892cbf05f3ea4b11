"""TreeCV as an oracle: predictions for rows that were not learned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.base import Guarantee, Guess
from sparsecv_mio.oracles.treecv.protocol import Learner
from sparsecv_mio.oracles.treecv.tree import tree_cv


class Predictor(Learner, Protocol):
    """A learner that predicts."""

    def predict(self, X: FloatArray) -> Any:
        """(m,) predictions."""
        ...


class _Recorder:
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
    tree_cv(_Recorder(learner, kept), X, y, folds, shuffle_seed=shuffle_seed)
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

    def leave_out(self, rows: IntArray) -> Guess:
        """Return predictions of the rows (m,) of one fold; the first call computes those of all folds.

        Raises
        ------
        BadInput
            The rows are not those of one fold.
        """
        j = int(self.folds.labels[rows[0]]) if rows.size else -1
        if j < 0 or not np.array_equal(np.sort(rows), self.folds.scored_rows(j)):
            raise BadInput("TreeCV leaves out whole folds of its plan: ask for the rows of one")
        return Guess(self._predictions[rows])

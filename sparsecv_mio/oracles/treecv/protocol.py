"""What a learner must provide for TreeCV, the rows in the order in which they are fed, and the estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.errors import BadInput


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
        """Mean loss over rows (m, p), (m,) that were not learned."""
        ...


@runtime_checkable
class Revertible(Learner, Protocol):
    """A learner that can undo its updates, the last one first: the save/revert strategy of the paper's section 4.1."""

    def update_saving(self, X: FloatArray, y: FloatArray) -> Any:
        """As `update`; return what `revert` needs."""
        ...

    def revert(self, change: Any) -> None:
        """Go back to the state before the update that returned `change`, bit for bit."""
        ...


@runtime_checkable
class Recursive(Learner, Protocol):
    """A learner that runs a whole subtree in compiled code."""

    def subtree(self, rows: RowsByFold, first: int, last: int, shuffle_seed: int | None) -> tuple[FloatArray, int]:
        """Run the recursion over some of the folds; the model itself is not changed.

        Parameters
        ----------
        rows : RowsByFold
            All rows.
        first, last : int
            Folds first .. last-1; this model has learned all the others.
        shuffle_seed : int or None
            As for :func:`tree_cv`.

        Returns
        -------
        scores : (last - first,) array
            Scores of these folds.
        fed : int
            Rows learned by the models in between.
        """
        ...


@dataclass(frozen=True, eq=False)
class RowsByFold:
    """Rows sorted by fold, so that consecutive folds are one slice.

    Attributes
    ----------
    X : (n, p) array
    y : (n,) array
        Rows of fold 0, fold 1, ..., then those never held out.
    starts : (k + 1,) int array
        Fold j is `X[starts[j]:starts[j + 1]]`.
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
        """Sort rows by fold; nothing is copied where they are sorted already.

        Parameters
        ----------
        X : (n, p) array
            Rows.
        y : (n,) array
            Their targets.
        folds : FoldPlan
            Of the same rows.

        Returns
        -------
        RowsByFold

        Raises
        ------
        BadInput
            The plan has another number of rows, or is no partition.
        """
        folds.check_partition("treecv")
        if X.shape[0] != folds.n or y.shape != (folds.n,):
            raise BadInput(f"the folds are of {folds.n} rows, the data has {X.shape[0]} and the target {y.shape[0]}")
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
        Rows of every fold.
    updates : int
        Rows fed to learners, each counted every time.
    seconds : float
        Wall time, without loading compiled code.
    """

    scores: FloatArray
    sizes: IntArray
    updates: int
    seconds: float

    @property
    def estimate(self) -> float:
        """The paper's estimate: the mean of the folds' mean losses."""
        return float(self.scores.mean())

    @property
    def pooled(self) -> float:
        """Mean loss over all held-out rows; equals `estimate` when the folds are of one size."""
        return float(self.scores @ self.sizes / self.sizes.sum())

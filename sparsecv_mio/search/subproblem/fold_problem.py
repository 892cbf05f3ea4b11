"""One fold at one gamma, and a store of the folds used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.accumulate import Moments
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.search.subproblem.held_out_fold import HeldOutFold, Refits

MomentSource = Callable[[Sequence[int]], Iterator[tuple[int, Moments]]]

NEGLIGIBLE_ERROR = 1e-9  # of the mean square of the response: no held-out error needs to be known more accurately
STORE_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class FoldProblem:
    """One fold at one gamma: the problem on its training rows and the rows it leaves out.

    Attributes
    ----------
    problem : SparseProblem
        Training rows, in standard coordinates.
    held_out : HeldOutFold
        Rows left out.
    columns : (q,) int array, optional
        Where the problem is on some columns of the data only, these columns in ascending order; all of them by default.
    """

    problem: SparseProblem
    held_out: HeldOutFold
    columns: IntArray | None = None

    @classmethod
    def of(
        cls, data: StandardData, folds: FoldPlan, fold: int, moments: Moments, columns: IntArray | None = None
    ) -> FoldProblem:
        """Make a fold, at gamma 1, from its training moments.

        Parameters
        ----------
        data : StandardData
            Already restricted to `columns` where these are given.
        folds : FoldPlan
        fold : int
        moments : Moments
            Of the training rows of `data`.
        columns : (q,) int array, optional
            See the class.

        Returns
        -------
        FoldProblem
        """
        problem = moments.problem(data, 1.0)
        return cls(problem, HeldOutFold(data, folds, fold, problem), columns)

    @property
    def fold(self) -> int:
        """Number of the fold."""
        return self.held_out.fold

    @property
    def negligible(self) -> float:
        """Held-out sum of squares below which an error is not worth knowing more accurately."""
        return NEGLIGIBLE_ERROR * self.problem.yy / self.problem.n * self.held_out.count

    def with_gamma(self, gamma: float) -> FoldProblem:
        """Return the same fold at another gamma; the arrays are shared."""
        return replace(self, problem=self.problem.with_gamma(gamma))

    def refit(self, supports: Sequence[IntArray]) -> Refits:
        """Fit supports on the training rows and score them on the rows left out."""
        return self.held_out.refit(self.problem, supports)

    def in_data(self, support: IntArray) -> IntArray:
        """Return the columns of the data that a support of the problem stands for."""
        return support if self.columns is None else self.columns[support]


class FoldStore:
    """The folds used last, as many as fit into `STORE_BYTES`. Safe to use from several threads.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    source : callable
        Yields the training moments of some folds; always by the same additions, so that a fold made twice is equal to
        the last bit.
    """

    def __init__(self, data: StandardData, folds: FoldPlan, source: MomentSource) -> None:
        self.data, self.folds, self.source = data, folds, source
        self._most = max(2, STORE_BYTES // (24 * (data.q + 1) ** 2 + 1))
        self._held: OrderedDict[int, FoldProblem] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, fold: int) -> FoldProblem:
        """Return a fold at gamma 1. O(n q^2) where it is not held."""
        with self._lock:
            if fold in self._held:
                self._held.move_to_end(fold)
                return self._held[fold]
        _, moments = next(self.source([fold]))
        return self.keep(fold, moments)

    def keep(self, fold: int, moments: Moments) -> FoldProblem:
        """Make a fold from its training moments and hold it in place of the one that was not used for longest."""
        made = FoldProblem.of(self.data, self.folds, fold, moments)
        with self._lock:
            self._held[fold] = made
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return made

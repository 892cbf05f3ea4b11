"""Values of supports of logistic loss, and lists of all with a small one: what `collecting` is to squared loss.

The trees of two classes list supports by the training objective (:mod:`sparsecv_mio.trees.glm_tree`), level by
level as the threshold falls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.near.collecting import NEGLIGIBLE, SquaredValues, SupportTaker
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.search.glm_folds import subsets_of
from sparsecv_mio.trees.glm_subsets import GlmSubsets
from sparsecv_mio.trees.glm_tree import SizeSearch
from sparsecv_mio.trees.subsets import UNLIMITED
from sparsecv_mio.words import Loss


def values_of(data: StandardData, plan: FoldPlan | None, who: str) -> SquaredValues | ClassValues:
    """Return the values of supports by the loss of the data, at any gamma.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan or None
        Of the folds that share a support; None for the training objective.
    who : str
        What needs it.
    """
    return ClassValues(data) if data.loss is Loss.LOGISTIC else SquaredValues(data, plan, who)


class ClassValues:
    """Values of logistic loss at any gamma.

    Parameters
    ----------
    data : StandardData
    """

    def __init__(self, data: StandardData) -> None:
        self.data, self.whole = data, subsets_of(data, np.arange(data.n))

    def at(self, gamma: float, largest: int) -> ClassObjective:
        """Return them at one gamma.

        Parameters
        ----------
        gamma : float
        largest : int
            Most columns of a support.
        """
        return ClassObjective(self.data, self.whole.with_gamma(gamma))


class ClassObjective:
    """F_S on all rows; see `collecting.SupportValue`.

    Parameters
    ----------
    data : StandardData
    subsets : GlmSubsets
        Of all rows, at one gamma.
    """

    def __init__(self, data: StandardData, subsets: GlmSubsets) -> None:
        self.data, self.subsets = data, subsets

    @property
    def q(self) -> int:
        """Number of columns."""
        return self.subsets.p

    @property
    def forced(self) -> IntArray:
        """Columns in every support."""
        return np.array(self.subsets.fits.forced, dtype=np.int64)

    def likely(self, taus: Sequence[int], expired: Callable[[], bool]) -> list[IntArray]:
        """Return a support of each size with a small training objective."""
        best = self.subsets.solve(taus, effort=0, expired=expired)
        return [cell.support for tau, cell in best.by_size.items() if len(cell.support) == tau]

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Value supports; see `collecting.SupportValue`."""
        fits = self.subsets.refit(supports)
        return self._from_bounds(supports, fits.lower, fits.upper, limit)

    def of_bounds(self, support: IntArray, lower: float, upper: float, limit: float) -> tuple[float, float]:
        """Value a support of which bounds are known."""
        value, error = self._from_bounds([support], np.array([lower]), np.array([upper]), limit)
        return float(value[0]), float(error[0])

    def _from_bounds(
        self, supports: Sequence[IntArray], lower: FloatArray, upper: FloatArray, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        value, error = 0.5 * (lower + upper), 0.5 * (upper - lower)
        for a in np.flatnonzero(~(error <= NEGLIGIBLE * value)).tolist():
            if not lower[a] > limit:
                fit = refit_glm(self.data, np.arange(self.data.n), supports[a], self.subsets.fits.problem.gamma)
                value[a], error[a] = fit.objective, fit.objective_error
        return value, error

    def level(self, threshold: float) -> float:
        """Return up to which F all supports with a value up to a threshold are."""
        return threshold

    def lists(self, wanted: SupportTaker, expired: Callable[[], bool]) -> ClassLists:
        """Return what hands over supports; see `collecting.SupportValue`."""
        return ClassLists(self, wanted, expired)


class ClassLists:
    """All supports at one gamma with a value up to the threshold of their size; see `collecting.Lists`.

    Parameters
    ----------
    criterion : ClassObjective
    wanted : SupportTaker
    expired : callable
    """

    def __init__(self, criterion: ClassObjective, wanted: SupportTaker, expired: Callable[[], bool]) -> None:
        self.criterion, self.wanted, self.expired = criterion, wanted, expired
        self.finished, self.nodes = False, 0
        fits = criterion.subsets.fits
        self._floor = fits.fit_of_all(fits.varies, fits.start(), expired)[1]
        self._searches: dict[int, SizeSearch] = {}

    def run(self) -> None:
        """List one size after the other; see `collecting.Lists`."""
        for tau in self.wanted.taus:
            if self.expired():
                return
            search = self.criterion.subsets.listing(tau, OfSize(self.criterion, self.wanted, tau), self.expired)
            self._searches[tau] = search
            search.run(tau, UNLIMITED, np.inf)
            self.nodes += search.nodes
        self.finished = all(self.unseen(tau) == np.inf for tau in self.wanted.taus)

    def unseen(self, tau: int) -> float:
        """No support of a size that was not handed over has a value below this; see `collecting.Lists`.

        Parameters
        ----------
        tau : int
        """
        search = self._searches.get(tau)
        return max(self._floor, 0.0 if search is None else search.unseen)


class OfSize:
    """Takes the supports of one size from its tree; see `trees.glm_tree.Listing`.

    Parameters
    ----------
    criterion : ClassObjective
    wanted : SupportTaker
    tau : int
    """

    def __init__(self, criterion: ClassObjective, wanted: SupportTaker, tau: int) -> None:
        self.criterion, self.wanted, self.tau = criterion, wanted, tau

    @property
    def level(self) -> float:
        """Up to which F supports are wanted."""
        return self.criterion.level(self.wanted.threshold(self.tau))

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Take a support with bounds of its F.

        Parameters
        ----------
        support : int array
        lower, upper : float
        """
        limit = self.wanted.threshold(self.tau)
        self.wanted.take(support, *self.criterion.of_bounds(support, lower, upper, limit))

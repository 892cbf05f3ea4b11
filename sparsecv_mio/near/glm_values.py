"""Values of supports for logistic and Poisson loss, and lists of all supports whose value is at most a threshold.

The value of a support is its training objective, or its CV error if all folds share the support. For squared-error
loss, see :mod:`sparsecv_mio.near.collecting`. The trees of this module list supports by their training objective
(:mod:`sparsecv_mio.trees.glm_tree`), up to a cutoff that is lowered whenever the threshold is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sparsecv_mio.arrays import STORE_BYTES, FloatArray, IntArray
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.fits.fit_options import PathOptions
from sparsecv_mio.near.collecting import (
    CommonError,
    FoldRows,
    SupportTaker,
    SupportValue,
    TrainingObjective,
    WholeTerms,
    all_rows,
    times_held_out,
)
from sparsecv_mio.problem.glm_refit import refit_glm
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.row_losses import encode_row_targets, row_loss
from sparsecv_mio.search.answer.answer_fits import SmoothAnswerFits, make_answer_fits
from sparsecv_mio.thresholds import FEWEST_FOLDS
from sparsecv_mio.trees.glm_left_out import SETTLED
from sparsecv_mio.trees.glm_subsets import GlmSubsets, make_held_out_folds, make_subsets, rows_in_units
from sparsecv_mio.trees.glm_tree import SizeSearch
from sparsecv_mio.trees.subsets import UNLIMITED
from sparsecv_mio.trees.without_ridge import standardize_and_check
from sparsecv_mio.units import FROM_ROWS, LOSS_ROUNDING, ROUNDING, SHAVED

PENALTY_SHARE = 0.1  # share of gamma at which supports are listed to bound their CV errors


def prepare_values(
    dataset: Dataset, options: PathOptions, gammas: Sequence[float], taus: Sequence[int], folds: FoldPlan | None,
    plan: FoldPlan | None, who: str,
) -> tuple[StandardData, list[int], Callable[[float], SupportValue]]:  # fmt: skip
    """Return the data in standard coordinates, the distinct sizes of supports, and their values by gamma.

    Parameters
    ----------
    dataset : Dataset
        Data set.
    options : PathOptions
        Options, with restrictions by the names of the data.
    gammas, taus : sequences
        Ridge weights and sizes.
    folds : FoldPlan or None
        Folds for which fits at gamma 0 are checked.
    plan : FoldPlan or None
        Folds that share a support; None for the training objective.
    who : str
        Name of the feature that needs the values, for error messages.
    """
    data = standardize_and_check(dataset, options, gammas, taus, folds)
    _ = dataset.fingerprint  # computed now, because there is no time for it after the limit
    terms = WholeTerms.from_data(data)
    sizes = sorted({min(tau, terms.count(np.arange(data.q))) for tau in taus})
    return data, sizes, make_support_values(data, plan, who, terms.most_columns(sizes[-1]))


def make_support_values(
    data: StandardData, plan: FoldPlan | None, who: str, largest: int
) -> Callable[[float], SupportValue]:
    """Return a function from gamma to the values of supports for the loss of the data.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan or None
        Folds that share a support; None for the training objective.
    who : str
        Name of the feature that needs the values, for error messages.
    largest : int
        Maximum number of columns of a support.
    """
    if data.loss.is_quadratic:
        problem = all_rows(data, who)
        if plan is None:
            return lambda gamma: TrainingObjective(data, problem.with_gamma(gamma))
        rows = FoldRows(data, plan, problem)
        return lambda gamma: CommonError(rows, problem.with_gamma(gamma), largest)
    fits = make_answer_fits(data)
    assert isinstance(fits, SmoothAnswerFits)
    whole = fits.whole
    if plan is None:
        return lambda gamma: GlmObjective(data, whole.with_gamma(gamma))
    held_out = GlmHeldOut(data, plan)
    return lambda gamma: GlmCommonError(data, whole.with_gamma(gamma), held_out)


class GlmHeldOut:
    """Training rows and scored rows of every fold.

    Parameters
    ----------
    data : StandardData
        Data set.
    plan : FoldPlan
        Folds that hold out every row, all equally often.
    """

    def __init__(self, data: StandardData, plan: FoldPlan) -> None:
        times_held_out(plan)
        self.data, self.plan = data, plan
        self.total = float(Scored.of(data.dataset, plan).total)
        self._kept: dict[int, GlmSubsets] = {}

    def fold_fits(self, fold: int, gamma: float) -> GlmSubsets:
        """Return the fits of a fold at one gamma; they are stored if they take little memory.

        Parameters
        ----------
        fold : int
            Index of the fold.
        gamma : float
            Ridge weight.
        """
        made = self._kept.get(fold) or make_subsets(self.data, self.plan.train_rows(fold))
        if 8 * self.plan.k * self.data.n * self.data.q <= STORE_BYTES:
            self._kept[fold] = made
        return made.with_gamma(gamma)


class GlmObjective(SupportValue):
    """The training objective F_S on all rows, as a value; see `collecting.SupportValue`.

    Parameters
    ----------
    data : StandardData
        Data set.
    subsets : GlmSubsets
        Best-subset problem of all rows, at one gamma.

    Attributes
    ----------
    listed : GlmSubsets
        Best-subset problem by whose F supports are listed.
    """

    def __init__(self, data: StandardData, subsets: GlmSubsets) -> None:
        self.data, self.subsets, self.listed = data, subsets, subsets
        self.forced = np.array(subsets.fits.forced, dtype=np.int64)
        # terms of several columns are supported with squared-error loss only
        self.terms = WholeTerms(np.arange(subsets.fits.problem.p), data.adjusting)
        self.nothing = float(subsets.refit([self.forced]).upper[0]) * (1.0 + SHAVED)

    def likely(self, taus: Sequence[int], is_expired: Callable[[], bool]) -> list[IntArray]:
        """Return a support of each size with a small training objective."""
        self.is_expired = is_expired
        best, terms = self.subsets.solve(taus, node_limit=0, is_expired=is_expired), self.terms
        return [cell.support for tau, cell in best.by_size.items() if terms.count(cell.support) == tau]

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the values of supports; see `collecting.SupportValue`."""
        fits = self.subsets.refit(supports)
        return self._from_bounds(supports, fits.lower, fits.upper, limit)

    def value_from_bounds(self, support: IntArray, lower: float, upper: float, limit: float) -> tuple[float, float]:
        """Return the value of a support whose objective has known bounds."""
        value, error = self._from_bounds([support], np.array([lower]), np.array([upper]), limit)
        return float(value[0]), float(error[0])

    def _from_bounds(
        self, supports: Sequence[IntArray], lower: FloatArray, upper: FloatArray, limit: float
    ) -> tuple[FloatArray, FloatArray]:
        value, error = np.where(upper < np.inf, 0.5 * (lower + upper), lower), 0.5 * (upper - lower)
        for a in np.flatnonzero(~((upper < np.inf) & (error <= FROM_ROWS * value))).tolist():
            if not lower[a] > limit:
                fit = refit_rows(self.data, slice(0, self.data.n), supports[a], self.subsets.fits.problem.gamma)
                value[a], error[a] = fit.objective, fit.objective_error
        return value, error

    def level(self, threshold: float) -> float:
        """Return a level of F for all supports with a value up to a threshold; no F exceeds that of the null model."""
        return min(threshold, self.nothing)

    def value_lower_bound(self, level: float) -> float:
        """Return a lower bound on the values of supports whose F is at least `level`; the inverse of `level`."""
        return level

    def lists(self, wanted: SupportTaker, is_expired: Callable[[], bool]) -> GlmLists:
        """Return a search that passes supports to a taker; see `collecting.SupportValue`."""
        self.is_expired = is_expired
        return GlmLists(self, wanted, is_expired)


class GlmCommonError(GlmObjective):
    """H(S), the mean loss of held-out rows if all folds share S, as a value.

    Let b be the fit of S on all rows, P its penalty and `L = F_S - P` the losses of all rows at b. The fit without a
    fold has a held-out loss of at least that of b, because it is better on the other rows. So `W H(S) >= L`, with W the
    weight of all rows. Since b is one point of F at a share of the penalty, `F_S(share gamma) <= L + share P`, with `P
    <= F_0 - L` and F_0 the minimum objective of the columns in every support. With log loss, also `P <= 0.1393 W`:
    along b the slope of F is 0, so `2 P = sum v_i m_i / (1 + exp(m_i))`, whose terms are at most 0.2785 v_i
    (`RowLoss.most_pull`; more with offsets). Hence supports with `H <= T` are among those with `F_S(share gamma) <= W T
    + share min(F_0 - W T, 0.1393 W)`.

    Parameters
    ----------
    data : StandardData
        Data set.
    subsets : GlmSubsets
        Best-subset problem of all rows, at the gamma.
    folds : GlmHeldOut
        Folds.
    """

    def __init__(self, data: StandardData, subsets: GlmSubsets, folds: GlmHeldOut) -> None:
        super().__init__(data, subsets)
        self.folds, self.gamma = folds, subsets.fits.problem.gamma
        self.listed = subsets.with_gamma(PENALTY_SHARE * self.gamma)
        self.weight = data.dataset.weight_of(slice(0, data.n))
        targets = encode_row_targets(data, slice(0, data.n))[0]
        self.most_penalty = row_loss(data.loss).most_pull(targets) * self.weight

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Return the values of supports; see `collecting.SupportValue`."""
        plan = self.folds.plan
        low, high = self._bound_held_out_losses(supports, limit)
        mean = np.where(high < np.inf, high, 0.0).sum(axis=1, keepdims=True) / plan.k
        wide = ~((high < np.inf) & (high - low <= FROM_ROWS * np.maximum(mean, high)))
        beyond = low.sum(axis=1) > limit * self.folds.total * (1.0 + SHAVED)  # whatever their upper bounds
        high[beyond], wide[beyond] = low[beyond], False
        for fold in np.flatnonzero(wide.any(axis=0)).tolist():
            if self.is_expired():
                high[wide] = np.inf  # unknown
                break
            rows, at = plan.scored_rows(fold), np.flatnonzero(wide[:, fold])
            some = [supports[a] for a in at.tolist()]
            _, least, most = self.folds.fold_fits(fold, self.gamma).score_supports(
                some, *rows_in_units(self.data, rows)
            )
            least, most = np.where(least > 0.0, least, 0.0), np.where(most < np.inf, most, np.inf)
            for a in np.flatnonzero(~((most < np.inf) & (most - least <= FROM_ROWS * most))).tolist():
                if self.is_expired():
                    break
                loss, off = refit_glm(self.data, plan.train_rows(fold), some[a], self.gamma).held_out(self.data, rows)
                least[a], most[a] = max(least[a], loss - off), min(most[a], loss + off)
            low[at, fold], high[at, fold], wide[at, fold] = least, most, False
        least, most = low.sum(axis=1) / self.folds.total, high.sum(axis=1) / self.folds.total
        rounding = (LOSS_ROUNDING + plan.k * ROUNDING) * most
        return np.where(most < np.inf, 0.5 * (least + most), least), 0.5 * (most - least) + rounding

    def _bound_held_out_losses(self, supports: Sequence[IntArray], limit: float) -> tuple[FloatArray, FloatArray]:
        """Return (L, k) bounds on held-out losses by Newton steps from full-data fits; wide above the limit."""
        plan, fits = self.folds.plan, self.subsets.fits
        folds_out = make_held_out_folds(self.data, plan, fits)
        low, high = np.zeros((2, len(supports), plan.k))
        for a, support in enumerate(supports):
            if self.is_expired():
                high[a:] = np.inf
                break
            here = folds_out.evaluate_support(fits.mask(support), fits.fit(support)[0])
            losses = here.held_out()
            if plan.k >= FEWEST_FOLDS and not losses.lower.sum() > limit * self.folds.total * (1.0 + SHAVED):
                here.settle(np.arange(plan.k), SETTLED, self.is_expired)
                losses = here.held_out()
            low[a], high[a] = np.fmax(losses.lower, 0.0), np.where(losses.upper < np.inf, losses.upper, np.inf)
        return low, high

    def value_from_bounds(self, support: IntArray, lower: float, upper: float, limit: float) -> tuple[float, float]:
        """Return the value of a support, given bounds on an objective with a smaller penalty."""
        value, error = self.values([support], limit)
        return float(value[0]), float(error[0])

    def level(self, threshold: float) -> float:
        """Return a level of F, at the smaller penalty, for all supports with a value up to a threshold."""
        losses = threshold * self.weight
        most = min(max(self.nothing - losses, 0.0), self.most_penalty)
        return min((losses + PENALTY_SHARE * most) * (1.0 + SHAVED), self.nothing)

    def value_lower_bound(self, level: float) -> float:
        """Return a lower bound on the values of supports whose F is at least `level`; see `GlmObjective`."""
        if level == np.inf:
            return level
        plain = level - PENALTY_SHARE * self.most_penalty
        losses = max((level - PENALTY_SHARE * self.nothing) / (1.0 - PENALTY_SHARE), plain, 0.0)
        return losses / self.weight * (1.0 - SHAVED)


class GlmLists:
    """A search for all supports at one gamma with a value up to the threshold of their size; see `collecting.Lists`.

    Parameters
    ----------
    criterion : GlmObjective
        Values.
    wanted : SupportTaker
        Taker of the supports.
    is_expired : callable
        Function that returns True when time is over.
    """

    def __init__(self, criterion: GlmObjective, wanted: SupportTaker, is_expired: Callable[[], bool]) -> None:
        self.criterion, self.wanted, self.is_expired = criterion, wanted, is_expired
        self.finished, self.nodes = False, 0
        fits = criterion.listed.fits
        self._floor = fits.fit_of_all(fits.varies, fits.start(), is_expired)[1]
        self._searches: dict[int, SizeSearch] = {}

    def run(self) -> None:
        """List one size after the other; see `collecting.Lists`."""
        for tau in self.wanted.taus:
            if self.is_expired():
                return
            search = self.criterion.listed.listing(tau, OfSize(self.criterion, self.wanted, tau), self.is_expired)
            self._searches[tau] = search
            search.solve(tau, UNLIMITED, np.inf)
            self.nodes += search.nodes
        self.finished = all(self.unseen(tau) == np.inf for tau in self.wanted.taus)

    def unseen(self, tau: int) -> float:
        """Return a lower bound on the values of supports of a size that were not passed; see `collecting.Lists`.

        Parameters
        ----------
        tau : int
            Size.
        """
        search = self._searches.get(tau)
        return self.criterion.value_lower_bound(max(self._floor, 0.0 if search is None else search.unseen))


class OfSize:
    """The taker of the supports of one size from its tree; see `trees.glm_tree.Listing`.

    Parameters
    ----------
    criterion : GlmObjective
        Values.
    wanted : SupportTaker
        Taker to which supports are passed on.
    tau : int
        Size.
    """

    def __init__(self, criterion: GlmObjective, wanted: SupportTaker, tau: int) -> None:
        self.criterion, self.wanted, self.tau = criterion, wanted, tau
        self._taken: set[bytes] = set()

    @property
    def level(self) -> float:
        """Level of F up to which supports are wanted."""
        return self.criterion.level(self.wanted.threshold(self.tau))

    def take(self, support: IntArray, lower: float, upper: float) -> None:
        """Take a support with bounds on its F.

        Parameters
        ----------
        support : int array
            Columns.
        lower, upper : float
            Bounds on F.
        """
        if support.tobytes() in self._taken:
            return
        self._taken.add(support.tobytes())
        limit = self.wanted.useful(self.tau)
        value, error = self.criterion.value_from_bounds(support, lower, upper, limit)
        if not value - error > limit:
            self.wanted.take(support, value, error)

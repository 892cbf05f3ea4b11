"""Training objectives or CV errors of supports, to check near-optimal lists and the subset that all folds share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.design import Design, Support
from sparsecv_mio.certificate.fit_records import NearRecord, NearSize
from sparsecv_mio.certificate.glm_design import GlmDesign, TooManyFits
from sparsecv_mio.certificate.ridge_design import IDENTITY_ROWS, NO_ROWS, RidgeDesign
from sparsecv_mio.certificate.unit_columns import gram_fits, moments
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.units import CROSSING_RTOL

FITS_OF_FOLDS = MOST_FITS // 4  # fits in the verification of a common subset, about 5 ms each
LEAST_RIDGE = 1e-3  # share of gamma, for fits of all columns that bound the losses of supports
Listed = dict[Support, float]  # values of the listed models of one size


class SupportValues(ABC):
    """The value of any support at one gamma: its training objective, or its CV error with one support for all folds.

    Parameters
    ----------
    design : Design
        Columns, folds and fits.
    gamma : float
        Ridge weight.
    plan : FoldPlan or None
        Folds; None for the training objective.
    """

    def __init__(self, design: Design, gamma: float, plan: FoldPlan | None) -> None:
        self.design, self.gamma, self.plan = design, gamma, plan
        self.total = 1.0 if plan is None else float(design.scored.total)

    def exact(self, support: Sequence[int]) -> float:
        """Return the value of a support from fits of the rows.

        Parameters
        ----------
        support : sequence of int
            Positions in `design.columns`.
        """
        if self.plan is None:
            return float(self.design.refit(support, self.gamma, None).objective)
        return self._sum_held_out(tuple(support)) / self.total

    @abstractmethod
    def _sum_held_out(self, support: Support) -> float:
        """Return the sum of the held-out losses of a support over all folds."""

    def evaluate_support(self, support: Sequence[int], exact: bool) -> float:
        """Return the value of a support, from fits of the rows if requested or if these are few.

        Parameters
        ----------
        support : sequence of int
            Positions in `design.columns`.
        """
        if exact or self.plan is None:
            return self.exact(support)
        return float(self.evaluate_all(np.array([support], dtype=np.int64).reshape(1, len(support)))[0])

    def slack(self, value: float, tau: int) -> float:
        """Return a bound on the rounding error of a value of the search."""
        if self.plan is None:
            return self.design.objective_slack(value)
        return self.design.slack(value, self.gamma, tau, CROSSING_RTOL)

    @abstractmethod
    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are."""

    @abstractmethod
    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size."""

    def check_completeness(self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed) -> bool:
        """Check by enumeration that the list of a size is complete; return True if this was possible."""
        supports, truths = [], []
        for table in self.design.exactly(size.tau):
            truths.append(self.evaluate_all(table))
            supports += list(map(tuple, table.tolist()))
        truth = np.concatenate(truths)
        self._check_list(checks, record, size, path, listed, (truth, supports), math.inf)
        return True

    def _check_list(
        self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed,
        true_values: tuple[FloatArray, list[Support]], above: float,
    ) -> None:  # fmt: skip
        """Check the minimum of a size, and that no support below the stated value is missing.

        Parameters
        ----------
        true_values : (C,) array, list of tuple of int
            Values and their supports.
        above : float
            Lower bound on the value of every other support.
        """
        truth, supports = true_values
        room = self.check_minimum(checks, size, path, float(truth.min(initial=above)))
        for i in np.flatnonzero(truth < size.complete_to - (1.0 + record.within) * room).tolist():
            if supports[i] not in listed:
                checks.require(False, "models", f"{self.design.join_names(supports[i])} is missing")
                break

    def check_minimum(self, checks: Checks, size: NearSize, path: str, least: float) -> float:
        """Check the minimum value of a size against the true one; return the allowance for rounding."""
        room = CROSSING_RTOL * least + 2.0 * self.slack(least, size.tau)
        checks.require_at_most(f"{path}lower", size.lower, least, f"the true minimum {least!r}", room)
        checks.require_at_least(f"{path}best", size.best, least, f"the true minimum {least!r}", room)
        return room

    @property
    def can_branch(self) -> bool:
        """True if `lowest` needs few supports even if there are many."""
        return False

    def lowest(self, tau: int, level: float) -> float | None:
        """Return the minimum value of a size, or `level` if none is below it; None if this would take long.

        Parameters
        ----------
        tau : int
            Maximum number of features.
        level : float
            Level of the objective.
        """
        return min(float(self.evaluate_all(table).min()) for table in self.design.exactly(tau))


class EnumeratedValues(SupportValues):
    """Values with squared-error loss, by closed forms for many supports.

    Parameters
    ----------
    design : RidgeDesign
        Columns, folds and fits.
    """

    design: RidgeDesign

    def _sum_held_out(self, support: Support) -> float:
        errors, *_ = self.design.held_out_errors([support] * self.design.folds.k, self.gamma)
        return float(errors.sum())

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are."""
        return self.design.enumeration_obstacle(taus, gammas, 1 if self.plan is None else self.plan.k)

    def _check_list(
        self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed,
        true_values: tuple[FloatArray, list[Support]], above: float,
    ) -> None:  # fmt: skip
        if self.plan is None:
            self._refit_contradictions(*true_values, size, listed)
        super()._check_list(checks, record, size, path, listed, true_values, above)

    def _refit_contradictions(
        self, truth: FloatArray, supports: Sequence[Support], size: NearSize, listed: Listed
    ) -> None:
        """Refit rows if objectives from moments contradict a record, since moments lose digits in nearly perfect fits.

        The check stops at the first support that still contradicts the record.
        """
        is_listed = np.array([support in listed for support in supports], dtype=bool)
        best, least = min(listed, key=listed.__getitem__, default=()), max(size.lower, 0.0) * (1.0 - CROSSING_RTOL)
        first = np.array([support == best for support in supports], dtype=bool)
        for i in np.flatnonzero((truth < least) | first | (~is_listed & (truth < size.complete_to))).tolist():
            claimed = least if is_listed[i] else max(least, size.complete_to * (1.0 - CROSSING_RTOL))
            truth[i] = self.exact(supports[i])
            if truth[i] < claimed - 2.0 * self.slack(claimed, size.tau):
                return

    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size, by closed forms if these are accurate enough."""
        unit = self.design.unit.y_unit**2
        if self.plan is None:
            train = moments(self.design.unit, NO_ROWS)
            fits = list(gram_fits(self.design.unit, train, self.gamma, supports))
            values = np.concatenate([chunk.objective for chunk in fits]) * unit
            for a in np.flatnonzero(np.concatenate([chunk.by_rows for chunk in fits])).tolist():
                values[a] = self.exact(supports[a].tolist())
            return np.asarray(values)
        totals, doubt = np.zeros(len(supports)), np.full(len(supports), not self.plan.scores_all_left_out.all())
        if int(self.plan.left_sizes.max()) > IDENTITY_ROWS:
            for fold in range(self.plan.k):
                self._add_gram_errors(supports, fold, totals, doubt)
        else:
            for _, _, error, sure in self.design.all_objectives(self.gamma, supports):
                totals += error
                doubt |= ~sure
        values = totals * unit / self.total
        for a in np.flatnonzero(doubt).tolist():
            values[a] = self.exact(supports[a].tolist())
        return np.asarray(values)

    def _add_gram_errors(self, supports: IntArray, fold: int, totals: FloatArray, doubt: BoolArray) -> None:
        assert self.plan is not None
        unit, test, train = self.design.unit, self.plan.scored_rows(fold), self.plan.train_rows(fold)
        Z, t, root = unit.Z[test], unit.t[test], unit.root[test]
        if unit.intercept == "fold":
            heft = unit.root[train]
            share = heft / float(heft @ heft)
            Z, t = Z - np.outer(root, share @ unit.Z[train]), t - root * float(share @ unit.t[train])
        at = 0
        for value, beta, _, by_rows in gram_fits(unit, moments(unit, test), self.gamma, supports):
            some = slice(at, at + len(value))
            residual = t - np.einsum("ics,cs->ci", Z[:, supports[some]], beta)
            totals[some] += np.einsum("ci,ci->c", residual, residual)
            doubt[some] |= by_rows
            at = some.stop


class BranchedValues(SupportValues):
    """Values with logistic or Poisson loss, by a fit for each support and fold.

    Parameters
    ----------
    design : GlmDesign
        Columns, folds and fits.
    """

    design: GlmDesign

    def _sum_held_out(self, support: Support) -> float:
        design, plan = self.design, self.design.folds
        models = (design.refit(support, self.gamma, plan.train_rows(fold)) for fold in range(plan.k))
        return sum(design.held_out(model, plan.scored_rows(fold))[0] for fold, model in enumerate(models))

    def evaluate_all(self, supports: IntArray) -> FloatArray:
        """Return the values of all supports of one size."""
        return np.array([self.exact(support) for support in supports.tolist()])

    @property
    def can_branch(self) -> bool:
        """True if branching can exclude supports by full-data fits: one fold holds out every row."""
        plan = self.plan
        return plan is not None and plan.is_partition and plan.scored == plan.n

    def lowest(self, tau: int, level: float) -> float | None:
        """Return the minimum CV error of a size, or `level` if none is below it; None if this takes too many fits.

        The held-out rows of a fold lose at least as much as under the full-data fit. With F the full-data objective and
        G that without these rows, `F(b) = G(b) + l(b)`; let b be the full-data fit and c the fit of the fold. Then
        `G(c) + l(c) >= F(b) >= G(c) + l(b)`. H(S) is therefore at least the loss L_S of the full-data fit. For a set A
        of columns that contains S and a ridge weight `r gamma`, the minimum objective is at most `L_S + r (F_0 - L_S)`,
        with F_0 the objective without columns, for every S.
        """
        if not self.can_branch:
            return super().lowest(tau, level)
        share, design, total = LEAST_RIDGE, self.design, self.total
        of_none, least, most = design.refit((), self.gamma).objective, level, FITS_OF_FOLDS - design.store.count
        below = (1.0 - share) * level * total + share * of_none
        try:
            for model in design.leaves(share * self.gamma, tau, None, lambda: below, most):
                least = min(least, self._evaluate_until_level(design.places(model), least))
        except TooManyFits:
            return None
        return least

    def _evaluate_until_level(self, support: Support, level: float) -> float:
        """Return the value of a support, or a lower bound at or above a level; folds with large losses come first."""
        assert self.plan is not None
        design, plan = self.design, self.plan
        losses, _ = design.refit(support, self.gamma).compute_row_losses(design.dataset, slice(0, plan.n))
        at_least = np.array([float(losses[plan.scored_rows(fold)].sum()) for fold in range(plan.k)])
        for fold in np.argsort(-at_least, kind="stable").tolist():
            if at_least.sum() >= level * self.total:
                break
            model = design.refit(support, self.gamma, plan.train_rows(fold))
            at_least[fold] = design.held_out(model, plan.scored_rows(fold))[0]
        return float(at_least.sum()) / self.total

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are, or branching applies."""
        if self.plan is None:
            return ""
        forced = len(self.design.forced)
        sizes = (max(self.design.most_columns(tau) - forced, 0) for tau in taus)
        fits = gammas * self.plan.k * sum(math.comb(self.design.q - forced, size) for size in sizes)
        return f"it takes more than {MOST_FITS:,} fits" if fits > MOST_FITS else ""

    def check_completeness(self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed) -> bool:
        """Check by branching that the list of a size is complete; return True if this was possible."""
        if self.plan is not None:
            return super().check_completeness(checks, record, size, path, listed)
        design, best = self.design, size.best if math.isfinite(size.best) else 0.0
        level = max(size.complete_to, best) * (1.0 + CROSSING_RTOL)
        try:
            supports = list(map(design.places, design.leaves(self.gamma, size.tau, None, lambda: level, MOST_FITS)))
        except TooManyFits:
            checks.caveat = f"optimality not verified ({design.limit_words})"
            return False
        truth = np.array([self.exact(support) for support in supports])
        self._check_list(checks, record, size, path, listed, (truth, supports), level)
        return True


def make_values(design: Design, gamma: float, plan: FoldPlan | None) -> SupportValues:
    """Return the values of supports at one gamma; see `SupportValues`."""
    if isinstance(design, GlmDesign):
        return BranchedValues(design, gamma, plan)
    assert isinstance(design, RidgeDesign)
    return EnumeratedValues(design, gamma, plan)

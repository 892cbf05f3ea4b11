"""Values of supports by refitting the rows, for the checks of near-optimal lists and common subsets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.enumeration import UnitColumns
from sparsecv_mio.certificate.fit_records import NearRecord, NearSize
from sparsecv_mio.certificate.glm_records import GlmDesign, Support, TooManyFits, fit_limit_message
from sparsecv_mio.certificate.lists_and_fits import Listed, SupportValues
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.units import CROSSING_RTOL

FITS_OF_FOLDS = MOST_FITS // 4  # fits in the verification of a common subset, about 5 ms each
LEAST_RIDGE = 1e-3  # share of gamma, for fits of all columns that bound the losses of supports


class RefittedValues(SupportValues):
    """The value of any support at one gamma: its training objective, or its mean log loss of held-out rows.

    Parameters
    ----------
    design : UnitColumns
        Columns in the coordinates of the checks.
    gamma : float
        Ridge weight.
    plan : FoldPlan or None
        Folds; None for the training objective.
    classes : GlmDesign
        Design that computes the fits.
    """

    how = "branching over"

    def __init__(self, design: UnitColumns, gamma: float, plan: FoldPlan | None, classes: GlmDesign) -> None:
        super().__init__(design, gamma, plan)
        self.classes = classes

    def exact(self, support: Sequence[int]) -> float:
        """Return the value of a support from fits of the rows; see `SupportValues`."""
        columns = tuple(int(self.design.columns[place]) for place in support)
        if self.plan is None:
            return self.classes.fit(columns, self.gamma).objective
        losses = 0.0
        for fold in range(self.plan.k):
            model = self.classes.fit(columns, self.gamma, self.plan.train_rows(fold))
            losses += self.classes.held_out(model, self.plan.scored_rows(fold))[0]
        return losses / self.total

    def evaluate_support(self, support: Sequence[int], exact: bool) -> float:
        """Return the value of a support; see `SupportValues`."""
        return self.exact(support)

    def slack(self, value: float, tau: int) -> float:
        """Return a bound on the rounding error of a value of the search."""
        return CROSSING_RTOL * value

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
        share, design, total = LEAST_RIDGE, self.classes, self.total
        of_none, least, most = design.fit((), self.gamma).objective, level, FITS_OF_FOLDS - design.fits
        below = (1.0 - share) * level * total + share * of_none
        try:
            for model in design.leaves(tau, share * self.gamma, None, lambda: below, most):
                least = min(least, self._evaluate_until_level(model.support, least))
        except TooManyFits:
            return None
        return least

    def _evaluate_until_level(self, columns: Support, level: float) -> float:
        """Return the value of a support, or a lower bound at or above a level; folds with large losses come first."""
        assert self.plan is not None
        design, plan = self.classes, self.plan
        losses, _ = design.fit(columns, self.gamma).compute_row_losses(design.dataset, slice(0, plan.n))
        at_least = np.array([float(losses[plan.scored_rows(fold)].sum()) for fold in range(plan.k)])
        for fold in np.argsort(-at_least, kind="stable").tolist():
            if at_least.sum() >= level * self.total:
                break
            model = design.fit(columns, self.gamma, plan.train_rows(fold))
            at_least[fold] = design.held_out(model, plan.scored_rows(fold))[0]
        return float(at_least.sum()) / self.total

    def enumeration_obstacle(self, taus: Sequence[int], gammas: int) -> str:
        """Return the reason why supports of some sizes are not enumerated; empty if they are, or branching applies."""
        if self.plan is None:
            return ""
        free, forced = self.design.q - len(self.classes.forced), len(self.classes.forced)
        sizes = (max(self.design.most_columns(tau) - forced, 0) for tau in taus)
        fits = gammas * self.plan.k * sum(math.comb(free, size) for size in sizes)
        return f"it takes more than {MOST_FITS:,} fits" if fits > MOST_FITS else ""

    def check_completeness(self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed) -> bool:
        """Check by branching that the list of a size is complete; return True if this was possible."""
        if self.plan is not None:
            return super().check_completeness(checks, record, size, path, listed)
        level = max(size.complete_to, size.best if math.isfinite(size.best) else 0.0) * (1.0 + CROSSING_RTOL)
        place = {column: i for i, column in enumerate(self.design.columns.tolist())}
        try:
            models = list(self.classes.leaves(size.tau, self.gamma, None, lambda: level, MOST_FITS))
        except TooManyFits:
            checks.caveat = f"optimality not verified ({fit_limit_message(record)})"
            return False
        leaves = [(self.classes.fit(model.support, self.gamma).objective, model.support) for model in models]
        least = min((value for value, _ in leaves), default=level)
        room = self.check_minimum(checks, size, path, least)
        for value, columns in leaves:
            support = tuple(sorted(place[j] for j in columns))
            if value < size.complete_to - (1.0 + record.within) * room and support not in listed:
                checks.require(False, "models", f"{self.design.join_names(support)} is missing")
                break
        return True

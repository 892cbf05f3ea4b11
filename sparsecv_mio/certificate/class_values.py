"""Values of supports of two classes, for the checks of near-optimal lists and common subsets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.enumeration import UnitColumns
from sparsecv_mio.certificate.fit_records import NearRecord, NearSize
from sparsecv_mio.certificate.glm_records import MOST_FITS, GlmDesign, TooManyFits
from sparsecv_mio.certificate.lists_and_fits import Listed, SupportValues
from sparsecv_mio.certificate.optimality import H_RTOL
from sparsecv_mio.data.fold_plan import FoldPlan


class RefittedValues(SupportValues):
    """The value of any support at one gamma: its training objective, or its mean log loss of held-out rows.

    Parameters
    ----------
    design : UnitColumns
    gamma : float
    plan : FoldPlan or None
        None for the training objective.
    classes : GlmDesign
        What fits.
    """

    how = "branching over"

    def __init__(self, design: UnitColumns, gamma: float, plan: FoldPlan | None, classes: GlmDesign) -> None:
        super().__init__(design, gamma, plan)
        self.classes = classes

    def exact(self, support: Sequence[int]) -> float:
        """Value of a support by fits of the rows; see `SupportValues`."""
        columns = tuple(int(self.design.columns[place]) for place in support)
        if self.plan is None:
            return self.classes.fit(columns, self.gamma).objective
        losses = 0.0
        for fold in range(self.plan.k):
            model = self.classes.fit(columns, self.gamma, self.plan.train_rows(fold))
            losses += self.classes.held_out(model, self.plan.scored_rows(fold))[0]
        return losses / self.total

    def one(self, support: Sequence[int], exact: bool) -> float:
        """Value of a support; see `SupportValues`."""
        return self.exact(support)

    def slack(self, value: float, tau: int) -> float:
        """Bound what rounding may do to a value of the search."""
        return H_RTOL * value

    def every(self, supports: IntArray) -> FloatArray:
        """Values of all supports of one size."""
        return np.array([self.exact(support) for support in supports.tolist()])

    def too_many(self, taus: Sequence[int], gammas: int) -> str:
        """Say why not all supports of some sizes are tried; empty where they are, or branching may leave them out."""
        if self.plan is None:
            return ""
        free, forced = self.design.q - len(self.classes.forced), len(self.classes.forced)
        fits = gammas * self.plan.k * sum(math.comb(free, max(min(tau, self.design.q) - forced, 0)) for tau in taus)
        return f"it takes more than {MOST_FITS:,} fits" if fits > MOST_FITS else ""

    def none_missing(self, checks: Checks, record: NearRecord, size: NearSize, path: str, listed: Listed) -> bool:
        """Check by branching that none is missing in the list of a size; returns whether it could be done."""
        if self.plan is not None:
            return super().none_missing(checks, record, size, path, listed)
        level = max(size.complete_to, size.best if math.isfinite(size.best) else 0.0) * (1.0 + H_RTOL)
        place = {column: i for i, column in enumerate(self.design.columns.tolist())}
        try:
            leaves = list(self.classes.leaves(size.tau, self.gamma, None, lambda: level, MOST_FITS))
        except TooManyFits:
            checks.caveat = f"optimality not verified (it takes more than {MOST_FITS:,} fits)"
            return False
        least = min((value for value, _ in leaves), default=level)
        room = self.bounded(checks, size, path, least)
        for value, columns in leaves:
            support = tuple(sorted(place[j] for j in columns))
            if value < size.complete_to - (1.0 + record.within) * room and support not in listed:
                checks.that(False, "models", f"{self.design.named(support)} is missing")
                break
        return True

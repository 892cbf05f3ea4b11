"""The root node of every tree that serves all folds: all columns, fitted on all rows at one gamma."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.problem.elimination import Choice
from sparsecv_mio.search.shared_tree.leave_out import LeaveOut
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports, Scores

KEPT_SCORES = 1 << 21  # of a fold and a tau, 36 bytes each, that are kept from one pass to the next
LEVERAGE_ROUNDING = 1e-9  # relative rounding error of leverages, beside that of the trees


class RootNode:
    """The fit of all columns on all rows, what it leaves in every fold, and the folds' incumbents.

    Parameters
    ----------
    leave_out : LeaveOut
    g : int
        Index of gamma.
    wanted : sequence of int
        Indices of the taus of which incumbents are wanted.

    Attributes
    ----------
    problem, form : SparseProblem, NormalForm
        All rows at the gamma.
    choice : Choice
        Columns that are forced in, which `form` is without, and its own.
    V, beta, value : (m, m), (m,) arrays, float
        `M^{-1}`, coefficients and objective of the fit on all columns, in the coordinates of `form`.
    lower : float
        That objective less what rounding may have added to it.
    leverage, residual : (K,) arrays
        At least the largest eigenvalue of `H_NN`, and the length of the held-out residuals, by fold.
    supports, tau_index : lists
        Supports scored in every fold as incumbents, and the index of the tau that each is for.
    incumbents : ListedSupports
        The same, fitted.
    """

    def __init__(self, leave_out: LeaveOut, g: int, wanted: Sequence[int]) -> None:
        all_rows = leave_out.all_rows
        self.leave_out, self.g = leave_out, g
        self.problem, self.form = all_rows.problem(g), all_rows.normal_form(g)
        self.choice: Choice = all_rows.eliminated(g).choice
        self.V, self.beta, self.value = all_rows.solved(g)
        self.lower = self.value - self.form.slack
        self.leverage, self.residual = leave_out.leverages(self.problem, LEVERAGE_ROUNDING + self.form.keep)
        self.supports, self.tau_index = leave_out.supports_on_all_rows(g, wanted)
        self.incumbents = ListedSupports.of(self.problem, self.supports, self.tau_index)
        self._keep = len(leave_out.taus) * leave_out.folds.k <= KEPT_SCORES
        self._kept: dict[int, Scores] = {}

    @property
    def inner(self) -> BoolArray:
        """(T,): whether a tau leaves something to choose."""
        taus = self.leave_out.taus
        return np.asarray((taus > len(self.choice.forced)) & (taus < self.form.m + len(self.choice.forced)))

    def whole(self, mask: BoolArray) -> IntArray:
        """Return columns of `form` as a support, with the columns that are forced in."""
        return self.choice.whole(self.form.columns[mask])

    def scores(self, lo: int, hi: int) -> Scores:
        """Scores of the incumbents in folds lo..hi of a chunk; kept where they are not much, to be read only."""
        if lo in self._kept:
            return self._kept[lo]
        found = self.leave_out.score(self.incumbents, self.leave_out.rows(lo, hi))
        if self._keep:
            self._kept[lo] = found
        return found

    def cutoffs(self, lo: int, hi: int) -> FloatArray:
        """(T, hi - lo): the incumbents' objectives in folds lo..hi, raised by what the trees' rounding may hide."""
        return self.raised(self.scores(lo, hi))

    def raised(self, incumbents: Scores) -> FloatArray:
        """(T, K): cutoffs from the scores of the incumbents in K folds."""
        return np.asarray(incumbents.value * (1.0 + self.form.keep) + self.form.slack)


class Candidates:
    """The incumbents of a root node and more supports, to be scored in every fold together.

    Parameters
    ----------
    root : RootNode
    supports : sequence of int arrays
        The further ones.
    tau_index : sequence of int
        Index of the tau that each is for.

    Attributes
    ----------
    listing : ListedSupports
        The incumbents first.
    numbers : (L,) int array
        Their numbers in the pool of the cells.
    """

    def __init__(self, root: RootNode, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
        leave_out = root.leave_out
        self.root, self.first = root, len(root.supports)
        self.listing = ListedSupports.of(root.problem, [*root.supports, *supports], [*root.tau_index, *tau_index])
        self.numbers: NDArray[np.int32] = leave_out.pool_numbers(self.listing)

    def scores(
        self, lo: int, hi: int, limit: FloatArray | None = None, leverage: FloatArray | None = None,
        incumbents: Scores | None = None,
    ) -> Scores:  # fmt: skip
        """Scores of all of them in folds lo..hi of a chunk.

        Parameters
        ----------
        lo, hi : int
        limit : (T, hi - lo) array, optional
            A further support with an objective on all rows above it cannot win; no limit by default.
        leverage : (hi - lo,) array, optional
            At least the largest eigenvalue of every fold's `H_NN`, for any support.
        incumbents : Scores, optional
            What `root.scores(lo, hi)` returns, where it is at hand.
        """
        leave_out, mine = self.root.leave_out, (incumbents or self.root.scores(lo, hi)).copy()
        return leave_out.score(
            self.listing.after(self.first), leave_out.rows(lo, hi), limit, leverage, self.first, mine
        )

"""First supports and first intervals of every fold of a gamma, from the fits on all rows alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsecv_mio.arrays import BoolArray, IntArray
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.search.shared_tree.identities import OUTWARD, held_out_ceiling
from sparsecv_mio.search.shared_tree.listed_supports import Scores
from sparsecv_mio.search.shared_tree.root_node import Candidates, RootNode

KNOWN_ERROR = 1e-6  # relative rounding error of a held-out error up to which its support is shown in an open cell


def first_intervals(root: RootNode) -> None:
    """Show the best supports of all rows in every open cell of a gamma, and bound its held-out error.

    Their held-out errors are the estimates that order the search. Their objectives u are feasible in the fold: the
    training-loss bound, with the lower bounds found on all rows, bounds the held-out error from below
    (:func:`sparsecv_mio.bounds.training_loss.training_loss_bound`), the fold's ridge ball from above
    (:func:`sparsecv_mio.search.shared_tree.identities.held_out_ceiling`).

    Parameters
    ----------
    root : RootNode
        Whose wanted taus are all that have open cells.

    Raises
    ------
    Contradiction
        If an interval misses what is known of a cell.
    """
    leave_out, g, form = root.leave_out, root.g, root.form
    numbers = leave_out.pool_numbers(root.incumbents)
    best = leave_out.all_rows.best[g]
    lower = np.array([best.cells[int(tau)].lower for tau in leave_out.taus]) - form.slack
    cells = leave_out.cells

    def write(lo: int, hi: int) -> None:
        scores, cutoffs = root.scores(lo, hi), root.cutoffs(lo, hi)
        known = well_known(root, scores) & ~cells.final[g, :, lo:hi]
        part = (g, slice(None), slice(lo, hi))
        cells.offer(part, numbers[scores.which], scores.held_out, np.where(known, scores.value, np.nan))
        leverage = np.minimum(root.leverage[lo:hi], 1.0)
        residual = root.residual[lo:hi] * (1.0 + OUTWARD) + form.slack
        least = np.where(known, training_loss_bound(lower[:, None], cutoffs), 0.0)
        most = np.where(known, held_out_ceiling(cutoffs, root.lower, residual, leverage), np.inf)
        cells.narrow(part, least, most)

    leave_out.over_chunks(write)


def offer_supports(root: RootNode, supports: Sequence[IntArray], tau_index: Sequence[int]) -> None:
    """Show more supports in every open cell of a gamma where they have the least objective so far.

    Parameters
    ----------
    root : RootNode
    supports : sequence of int arrays
    tau_index : sequence of int
        Index of the tau that each is for.

    Notes
    -----
    O(n s^2) a support.
    """
    leave_out = root.leave_out
    candidates = Candidates(root, supports, tau_index)

    def write(lo: int, hi: int) -> None:
        scores = candidates.scores(lo, hi)
        part = (root.g, slice(None), slice(lo, hi))
        value = np.where(well_known(root, scores), scores.value, np.nan)
        leave_out.cells.offer(part, candidates.numbers[scores.which], scores.held_out, value)

    leave_out.over_chunks(write)


def well_known(root: RootNode, scores: Scores) -> BoolArray:
    """Where the held-out error of the best support is known well enough to be shown, in the shape of the scores."""
    return np.asarray((scores.which >= 0) & (scores.error <= KNOWN_ERROR * scores.held_out + root.form.slack))

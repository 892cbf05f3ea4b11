"""The quick answer: forward selection at one gamma, reported if a limit ends the search before it has scored a pair.

If the problem is small, forward selection runs on the training rows of every fold. Otherwise forward selection runs
once, on the full data, and every fold uses the selected columns. The held-out rows of a fold are scored by fits without
these rows. All CV errors of the quick answer are estimates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.moment_fits import ForwardSelection, WeightedRows
from sparsecv_mio.problem.problem import capped_penalty, gamma_to_lam
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.answer.answer_fits import make_answer_fits
from sparsecv_mio.search.deadline import GRACE
from sparsecv_mio.search.state.cells import ALL_ROWS
from sparsecv_mio.search.state.pairs import Grid
from sparsecv_mio.thresholds import QUICK_WORK
from sparsecv_mio.trees.allowed_supports import Family, columns_in_mask
from sparsecv_mio.words import Intercept

LIKELY_SIZE = 5  # number of features of the model that is scored first
MOST_ROWS_BY_FOLD = 1 << 18  # training rows beyond which the full data select: a fit of ten columns takes 4 us a row


@dataclass(frozen=True, eq=False)
class QuickAnswer:
    """Supports of one gamma by (tau, fold) with their scores, and supports of all rows.

    Attributes
    ----------
    gamma : float
        Ridge weight.
    supports : list of lists of int arrays
        Supports by size and fold.
    nominal, value : (T, K) arrays
        Held-out losses and training objectives in standard units; inf where a size was not fitted.
    on_all_rows : list of int arrays
        Supports of all rows, by size.
    value_on_all_rows : (T,) array
        Training objectives of these supports.
    """

    gamma: float
    supports: list[list[IntArray]]
    nominal: FloatArray
    value: FloatArray
    on_all_rows: list[IntArray]
    value_on_all_rows: FloatArray


def find_quick_answer(data: StandardData, folds: FoldPlan, grid: Grid, until: float) -> QuickAnswer:
    """Select and score supports of every size and fold, at the middle gamma.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds of the data.
    grid : Grid
        Grid of the search.
    until : float
        Time of `time.monotonic` after which only one size is scored; on large data it is the size of the null model.

    Returns
    -------
    QuickAnswer

    Raises
    ------
    BadInput
        If no model of some tau satisfies the restrictions.

    Notes
    -----
    O(n q tau) for the order of columns, in each fold while that is `QUICK_WORK`; O(n tau^2 + K tau^3) to score a size.
    """
    gamma, taus = float(grid.gammas[len(grid.gammas) // 2]), grid.taus.tolist()
    by_fold = folds.k * data.n * data.q <= QUICK_WORK and folds.k * data.n <= MOST_ROWS_BY_FOLD
    every = [ALL_ROWS, *range(folds.k if by_fold else 0)]
    is_large = data.n * data.q > QUICK_WORK
    if is_large and time.monotonic() > until - GRACE:
        orders = [data.forced]  # the least model of every size: the null model, or columns that are forced in
    else:
        orders = order_columns(data, folds, every, gamma, max(taus), lambda: time.monotonic() > until)
    selected = select_supports(data, orders, taus)
    made = QuickAnswer(
        gamma, [rows[1:] if by_fold else rows * folds.k for rows in selected],
        np.full((len(taus), folds.k), np.inf), np.full((len(taus), folds.k), np.inf),
        [rows[0] for rows in selected], np.full(len(taus), np.inf),
    )  # fmt: skip
    has_moments = data.loss.is_quadratic and data.coefficient_bounds is None
    score = _SquaredFits(data, folds, gamma).score if has_moments else _score_by_rows
    # few columns take less time, here and in the record
    first_size = 1 if is_large and time.monotonic() > until else LIKELY_SIZE
    for done, t in enumerate(sorted(range(len(taus)), key=lambda t: abs(taus[t] - first_size))):
        if done and time.monotonic() > until:
            break
        score(data, folds, made, t)
    return made


def select_on_all_rows(data: StandardData, gamma: float, taus: Sequence[int], until: float) -> dict[int, IntArray]:
    """Return a support of all rows for some sizes, by forward selection.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    gamma : float
        Ridge weight.
    taus : sequence of int
        Sizes.
    until : float
        Moment of `time.monotonic` after which columns are ranked by the reduction that each adds to the
        columns chosen so far.
    """
    orders = order_columns(data, None, [ALL_ROWS], gamma, max(taus), lambda: time.monotonic() > until)
    selected = select_supports(data, orders, taus)
    return {tau: support for tau, (support,) in zip(taus, selected, strict=True)}


def order_columns(
    data: StandardData, folds: FoldPlan | None, which: Sequence[int], gamma: float, top: int,
    is_expired: Callable[[], bool],
) -> list[IntArray]:  # fmt: skip
    """Return the columns in the order in which some folds would take them into a model, forced ones first.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan, optional
        Folds; not needed for all rows.
    which : sequence of int
        Indices of folds; `ALL_ROWS` for all rows.
    gamma : float
        Ridge weight.
    top : int
        Number of columns to select one after the other, with squared-error loss only.
    is_expired : callable
        Function that returns True to end the selection; the other columns follow in the order of their separate
        effects.
    """
    if not data.loss.is_quadratic:
        rows = [slice(0, data.n) if folds is None or fold < 0 else folds.train_rows(fold) for fold in which]
        return list(map(make_answer_fits(data).order_by_slope, rows))
    weighted, orders = WeightedRows(data, folds), list[IntArray]()
    at_once = max(CHUNK_ELEMENTS // (data.n * (min(top, data.q) + len(data.forced) + 1)), 1)
    for begin in range(0, len(which), at_once):
        some = which[begin : begin + at_once]
        sums = weighted.squares_and_slopes(some)
        selection = ForwardSelection(weighted, some, *sums, gamma_to_lam(gamma), min(top, data.q))
        if not is_expired():
            selection.pick_columns(is_expired)
        orders += selection.order()
    return orders


def select_supports(data: StandardData, orders: Sequence[IntArray], taus: Sequence[int]) -> list[list[IntArray]]:
    """Return, by size, the support to which each order of columns leads under the restrictions.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates, with their restrictions.
    orders : sequence of int arrays
        Orders of columns.
    taus : sequence of int
        Sizes.
    """
    if not data.restrictions.side_constraints:
        return [[np.sort(order[:size]) for order in orders] for size in map(data.choice.n_columns, taus)]
    constraints, selected = constraints_of(data), list[list[IntArray]]()
    for tau in taus:
        family, least = Family.require_support(data.q, tau, constraints)
        supports_by_order: dict[bytes, IntArray] = {}  # folds share the order of their columns
        for order in orders:
            if order.tobytes() not in supports_by_order:
                chosen = family.greedily(order.tolist())
                supports_by_order[order.tobytes()] = np.array(
                    list(columns_in_mask(least if chosen is None else chosen)), dtype=np.int64
                )
        selected.append([supports_by_order[order.tobytes()] for order in orders])
    return selected


class _SquaredFits:
    """Fits at one gamma in many folds at once, by products of few columns over all rows less the held-out rows."""

    def __init__(self, data: StandardData, folds: FoldPlan, gamma: float) -> None:
        self.data, self.folds = data, folds
        self.root = np.ones(data.n) if data.root is None else data.root
        self.lam = gamma_to_lam(gamma)
        self.low, self.high = np.full(data.q, -np.inf), np.full(data.q, np.inf)
        if data.restrictions.side_constraints:
            self.low, self.high = constraints_of(data).interval(data.q)

    def score(self, data: StandardData, folds: FoldPlan, made: QuickAnswer, t: int) -> None:
        """Fit and score the supports of a size; a column whose coefficient has a wrong sign leaves its support."""
        supports = [made.on_all_rows[t], *made.supports[t]]
        places: dict[bytes, list[int]] = {}
        for fold, support in enumerate(supports, start=ALL_ROWS):
            places.setdefault(support.tobytes(), []).append(fold)
        for which in places.values():
            support = supports[which[0] - ALL_ROWS]
            at_once = max(CHUNK_ELEMENTS // (len(support) + 1) ** 2, 1)
            for begin in range(0, len(which), at_once):
                some = np.array(which[begin : begin + at_once])
                for fold, loss, value, stays in zip(some.tolist(), *self._fit(support, some), strict=True):
                    fitted = support if stays.all() else support[stays]
                    if fold == ALL_ROWS:
                        made.on_all_rows[t], made.value_on_all_rows[t] = fitted, value
                    else:
                        made.supports[t][fold] = fitted
                        made.nominal[t, fold], made.value[t, fold] = loss, value

    def _weights(self, folds: IntArray) -> FloatArray:
        """(m or 1, q): penalty weights of the columns in some folds; one row if all folds have the same."""
        if self.data.dataset.scales is None:
            return self.data.weight[None, :]
        everything = slice(0, self.data.n)
        rows = [everything if fold == ALL_ROWS else self.folds.train_rows(fold) for fold in folds.tolist()]
        return np.stack([self.data.weight_of(each) for each in rows])

    def _fit(self, columns: IntArray, folds: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (m,) held-out losses, (m,) objectives and (m, s) which columns stay. O(n s^2 + m s^3)."""
        k, s, centred = len(folds), len(columns), self.data.intercept is Intercept.FOLD
        rows, root = np.column_stack([*self.data.only(columns).rows(slice(0, self.data.n))]), self.root
        left_out, label = self._list_rows(folds, scored=False)
        gone, ones = rows[left_out], root[left_out]
        total = root @ rows - np.stack([np.bincount(label, ones * gone[:, i], k) for i in range(s + 1)], axis=1)
        second = rows.T @ rows - _products_by_fold(gone, label, k)
        n = root @ root - np.bincount(label, ones * ones, k)
        mean = total / n[:, None] if centred else np.zeros((k, s + 1))
        second -= n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        M, c, stay = second[:, :s, :s].copy(), second[:, :s, s], np.ones((k, s), dtype=bool)
        M[:, np.arange(s), np.arange(s)] += capped_penalty(self.lam, self._weights(folds)[:, columns])
        while True:
            stay_pairs = stay[:, :, None] & stay[:, None, :]
            inverse = np.linalg.pinv(np.where(stay_pairs, M, 0.0), hermitian=True)
            beta = (inverse @ (c * stay)[:, :, None])[:, :, 0] * stay
            wrong = (beta < self.low[columns]) | (beta > self.high[columns])
            if not wrong.any():
                break
            stay &= ~wrong
        value = np.maximum(second[:, s, s] - np.sum(c * beta, axis=1), 0.0)
        scored, scoring = self._list_rows(folds, scored=True)
        scored_rows = rows[scored] - root[scored, None] * mean[scoring]
        residual = scored_rows[:, s] - np.sum(scored_rows[:, :s] * beta[scoring], axis=1)
        return np.asarray(np.bincount(scoring, residual**2, k), dtype=float), value, stay

    def _list_rows(self, folds: IntArray, scored: bool) -> tuple[IntArray, IntArray]:
        """Return the rows that some folds score, or leave out, fold by fold, and the place of the fold of each."""
        lists = RowLists(self.folds.order, self.folds.starts)
        lists = lists if scored or self.folds.left is None else self.folds.left
        rows, sizes = lists.concatenate_folds(folds[folds >= 0])
        return rows, np.repeat(np.flatnonzero(folds >= 0), sizes)


def _products_by_fold(rows: FloatArray, label: IntArray, k: int) -> FloatArray:
    """Return the (k, s, s) sums of products of columns over the rows of each fold; rows are in the order of folds.

    A loop over folds, or over pairs of columns if these are fewer: either loop alone may be long.
    """
    s = rows.shape[1]
    products = np.empty((k, s, s))
    if k <= s * s:
        starts = np.searchsorted(label, np.arange(k + 1))
        for fold, (begin, end) in enumerate(pairwise(starts.tolist())):
            products[fold] = rows[begin:end].T @ rows[begin:end]
    else:
        for i, j in np.ndindex(s, s):
            products[:, i, j] = np.bincount(label, rows[:, i] * rows[:, j], k)
    return products


def _score_by_rows(data: StandardData, folds: FoldPlan, made: QuickAnswer, t: int) -> None:
    """Fit and score the supports of a size, by rows; one of all folds in one fit with each row left out by a step."""
    support = made.on_all_rows[t]
    can_step = make_answer_fits(data).has_steps and data.coefficient_bounds is None
    if can_step and all(fold_support is support for fold_support in made.supports[t]):
        made.value_on_all_rows[t], made.nominal[t], made.value[t] = _leave_out(data, folds, support, made.gamma)
        return
    for fold in range(folds.k):
        fit = refit_rows(data, folds.train_rows(fold), made.supports[t][fold], made.gamma)
        made.nominal[t, fold], made.value[t, fold] = fit.held_out(data, folds.scored_rows(fold))[0], fit.objective
    made.value_on_all_rows[t] = refit_rows(data, slice(0, data.n), support, made.gamma).objective


def _leave_out(
    data: StandardData, folds: FoldPlan, support: IntArray, gamma: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the objective of a support on all rows, and by fold its held-out loss and its objective, about.

    A loss is that after one Newton step without its row alone, the objective that of all rows' fit: O(n s^2).
    """
    from sparsecv_mio.problem.glm_refit import make_design_rows, refit_glm  # loads what squares need not
    from sparsecv_mio.problem.row_losses import row_loss

    made = refit_glm(data, slice(0, data.n), support, gamma)
    Z, y, w = make_design_rows(data, slice(0, data.n), support, made.first)
    loss, theta = row_loss(data.loss), made.theta
    margins, leverage = loss.signs(y) * (Z @ theta), np.einsum("ij,ij->i", Z @ made.root.T, Z @ made.root.T)
    stays = np.maximum(1.0 - leverage * loss.curvatures(margins, y, w), np.finfo(float).eps)
    alone = w * loss.losses(margins - leverage * loss.negative_gradient(margins, y, w) / stays, y)
    inside = w * loss.losses(margins, y)
    held_out = np.array([float(alone[folds.scored_rows(fold)].sum()) for fold in range(folds.k)])
    out = np.array([float(inside[folds.left_out(fold)].sum()) for fold in range(folds.k)])
    return made.objective, held_out, made.objective - out

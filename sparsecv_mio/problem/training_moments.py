"""Training moments of every fold, computed by additions only, and training rows about their means.

The training set of a fold consists of all rows except the rows that it holds out. Subtracting the moments of the
held-out rows from those of all rows would lose digits, so the moments of each training set are built by *adding*. The
folds are the leaves of a binary tree. A node of the tree is a range of folds, and has the moments of all rows outside
of this range. Similarly, a node of TreeCV has a model of all rows outside of its range (theory section 8). With k
folds, each row is read `log2 k` times. Each leaf has the moments of one training set.

`AllColumnFits` has the ridge fits on all columns at many gammas, from these moments or, if there are fewer rows than
columns, from the rows. Pairs (tau, gamma) with tau = p need no search, because their support is the set of all columns
(docs/theory/average.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CHUNK_ELEMENTS, FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData, find_constant_columns
from sparsecv_mio.problem.problem import SparseProblem, gamma_to_lam
from sparsecv_mio.units import ALIKE_PENALTIES
from sparsecv_mio.words import Intercept


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows in standard coordinates, minus their means if the intercept is `fold`.

    `||r - V b||^2 + lam sum_j weight_j b_j^2` is the training objective of b; a new row v is predicted by
    `r_mean + (v - v_mean)' b`. Rows are multiplied by the square roots of their weights, means are not. The moments of
    these rows are those of :class:`sparsecv_mio.problem.problem.SparseProblem`.

    Attributes
    ----------
    V : (n, q) array
        Rows, owned by the caller, who may scale them in place.
    r : (n,) array
        Responses.
    v_mean, r_mean : (q,) array, float
        Subtracted means; zero unless the intercept is `fold`.
    """

    V: FloatArray
    r: FloatArray
    v_mean: FloatArray
    r_mean: float

    @classmethod
    def from_data(cls, data: StandardData, rows: slice | IntArray) -> CentredRows:
        """Return the centred copies of some rows; O(n q).

        Parameters
        ----------
        data : StandardData
            Data in standard coordinates.
        rows : slice or (n,) int array
            Rows.

        Examples
        --------
        >>> from sparsecv_mio.data.dataset import Dataset
        >>> from sparsecv_mio.data.standard import standardize
        >>> data = standardize(Dataset.from_arrays([[0.0], [3.0], [6.0]], [1.0, 2.0, 4.0]))
        >>> float(CentredRows.from_data(data, slice(0, 2)).V.sum())
        0.0
        """
        V, r = data.rows(rows)
        if not V.flags.writeable:  # the data own this view of the rows
            V = V.copy()
        if data.intercept is not Intercept.FOLD:
            return cls(V, r, np.zeros(data.q), 0.0)
        root = data.root_of(rows)
        v_mean = _centre_in_place(V, root)
        r_mean = float(r.mean()) if root is None else float(root @ r) / float(root @ root)
        return cls(V, r - (r_mean if root is None else root * r_mean), v_mean, r_mean)


def _centre_in_place(block: FloatArray, root: FloatArray | None) -> FloatArray:
    """Subtract the weighted mean of rows, which are multiplied by roots of their weights, and return this mean."""
    mean: FloatArray = block.mean(axis=0) if root is None else root @ block / float(root @ root)
    block -= mean if root is None else root[:, None] * mean
    return mean


WORN = 8.0  # maximum distance of a mean from zero, in spreads, before too few digits remain


@dataclass(frozen=True, eq=False)
class TrainingMoments:
    """Count, weight, mean and centred scatter matrix of rows `(v, r)`: q columns, then the response.

    Attributes
    ----------
    n : int
        Number of rows.
    total : float
        Total weight of the rows; n if each row counts once.
    mean : (q + 1,) array
        Weighted mean of the rows; zero if the intercept is not free.
    scatter : (q + 1, q + 1) array
        Matrix `sum w (row - mean)(row - mean)'`; exactly zero for columns known to be constant.
    own : StandardData, optional
        Coordinates of mean and scatter, if those of the search would lose digits.
    weight : (q,) array, optional
        Penalty weights of fits to these rows, if scales differ between folds.
    """

    n: int
    total: float
    mean: FloatArray
    scatter: FloatArray
    own: StandardData | None = None
    weight: FloatArray | None = None

    @classmethod
    def empty(cls, size: int) -> TrainingMoments:
        """Return the moments of no rows."""
        return cls(0, 0, np.zeros(size), np.zeros((size, size)))

    @classmethod
    def from_block(cls, block: FloatArray, root: FloatArray | None = None, centred: bool = True) -> TrainingMoments:
        """Return the moments of some rows. O(m q^2).

        Parameters
        ----------
        block : (m, q + 1) array
            Rows multiplied by the square roots of their weights; overwritten.
        root : (m,) array, optional
            Square roots of the weights; None if each row counts once.
        centred : bool
            True for moments about the mean; otherwise the mean is taken as zero.
        """
        n, q = block.shape
        mean = _centre_in_place(block, root) if centred else np.zeros(q)
        return cls(n, n if root is None else float(root @ root), mean, block.T @ block)

    def __add__(self, other: TrainingMoments) -> TrainingMoments:
        """Return the moments of both sets of rows, a sum of semidefinite terms without cancellation. O(q^2)."""
        if self.n == 0:
            return other
        if other.n == 0:
            return self
        total = self.total + other.total
        step = other.mean - self.mean
        scatter = self.scatter + other.scatter
        scatter += np.outer(step * (self.total * other.total / total), step)
        return TrainingMoments(self.n + other.n, total, self.mean + step * (other.total / total), scatter)

    def problem(self, data: StandardData, gamma: float) -> SparseProblem:
        """Return the inner problem of these moments for one gamma."""
        q = data.q
        return SparseProblem(
            Q=self.scatter[:q, :q].copy(),
            c=self.scatter[:q, q].copy(),
            yy=float(self.scatter[q, q]),
            weight=data.weight if self.weight is None else self.weight,
            lam=gamma_to_lam(gamma),
            n=self.n,
            row_weight=self.total,
            v_mean=self.mean[:q].copy(),
            r_mean=float(self.mean[q]),
            copy_of=data.copy_of,
            copy_off=data.copy_off,
            copy_length=data.copy_length,
            own=self.own,
            forced=data.forced,
        )


def row_moments(data: StandardData, rows: slice | NDArray[np.intp]) -> TrainingMoments:
    """Return the moments of some rows, read in blocks; O(rows q^2) time, and O(q^2) memory plus one block."""
    total = TrainingMoments.empty(data.q + 1)
    index: slice | NDArray[np.intp]
    if isinstance(rows, slice):
        start, stop, _ = rows.indices(data.n)
    else:
        start, stop = 0, len(rows)
    step = max(1, CHUNK_ELEMENTS // (data.q + 1))
    for lo in range(start, stop, step):
        index = slice(lo, min(lo + step, stop)) if isinstance(rows, slice) else rows[lo : lo + step]
        v, r = data.rows(index)
        block = np.empty((v.shape[0], data.q + 1))
        block[:, :-1] = v
        block[:, -1] = r
        total = total + TrainingMoments.from_block(block, data.root_of(index), data.intercept is Intercept.FOLD)
    return total


def recentre_moments(data: StandardData, moments: TrainingMoments, rows: Callable[[], IntArray]) -> TrainingMoments:
    """Return the moments of training rows, recentred at their means if other centres lose digits.

    The rounding error of a row is relative to its distance from the mean of all rows, and so are those of means and
    sums. Recentring applies if the intercept is free and the mean of a column, or of the target, is more than `WORN`
    spreads from that centre. The column is then checked in the file: if it is constant on these rows, its moments are
    zero. Otherwise all columns are centred about the means of these rows and multiplied again; with a free intercept
    any centre is valid. Without a free intercept, additions lose no digits.

    Parameters
    ----------
    data : StandardData
        Data in the coordinates of the search.
    moments : TrainingMoments
        Moments computed by additions.
    rows : callable
        Function that returns the training rows.

    Notes
    -----
    O(q) if no digits are lost, O(m) for each column that seems constant, otherwise O(m q^2), for m rows.
    """
    if data.intercept is not Intercept.FOLD:
        return moments
    worn = worn_means(moments.mean, np.diag(moments.scatter), moments.total)
    if not len(worn):
        return moments
    train = rows()
    still = find_constant_columns(data, train, worn)
    if len(still) < len(worn):
        own = data.about_own_centres(train)
        moments = replace(row_moments(own, train), own=own)
    scatter = moments.scatter.copy()
    scatter[still], scatter[:, still] = 0.0, 0.0
    return replace(moments, scatter=scatter)


def worn_means(mean: FloatArray, squares: FloatArray, total: float) -> IntArray:
    """Return the positions of means that are more than `WORN` spreads from zero; `squares` are about the means."""
    return np.flatnonzero(~(np.abs(mean) <= WORN * np.sqrt(squares / total))).astype(np.int64)


def moments_of_training(data: StandardData, rows: IntArray) -> TrainingMoments:
    """Return the moments of training rows, computed from the rows with the treatment of `recentre_moments`."""
    return weigh_columns(data, recentre_moments(data, row_moments(data, rows), lambda: rows), lambda: rows)


def weigh_columns(data: StandardData, moments: TrainingMoments, rows: Callable[[], IntArray]) -> TrainingMoments:
    """Return the moments of training rows with the penalty weights of their fold, if scales differ between folds."""
    return moments if data.dataset.scales is None else replace(moments, weight=data.weight_of(rows()))


def full_problem(data: StandardData, gamma: float) -> SparseProblem:
    """Return the inner problem on all rows."""
    return row_moments(data, slice(0, data.n)).problem(data, gamma)


def training_moments(
    data: StandardData, folds: FoldPlan, wanted: Sequence[int] | None = None
) -> Iterator[tuple[int, TrainingMoments]]:
    """Yield `(fold, moments of its training rows)` in fold order.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds.
    wanted : sequence of int, optional
        Folds to visit; subtrees without any are skipped. All by default.

    Notes
    -----
    O(n q^2 log2 k) time and O(q^2 log2 k) memory for folds that hold out disjoint rows. Small folds are grouped into
    ranges by halving, so leave-one-out costs two additions of q x q matrices for each fold. Repeated folds take one
    tree for each repeat. Growing training sets, as in forward chaining, cost O(n q^2) in total; other overlapping folds
    cost O(n q^2) each.
    """
    flags = np.zeros(folds.k + 1, dtype=np.int64)
    chosen = np.arange(folds.k) if wanted is None else np.asarray(sorted(wanted), dtype=np.int64)
    flags[chosen + 1] = 1
    before = np.cumsum(flags)
    for first, end, nested in folds.pieces:
        if before[end] > before[first]:
            source = _nested if nested else _disjoint
            for fold, moments in source(data, folds, (first, end), before):
                yield fold, weigh_columns(data, moments, partial(folds.train_rows, fold))


def _disjoint(
    data: StandardData, folds: FoldPlan, piece: tuple[int, int], before: IntArray
) -> Iterator[tuple[int, TrainingMoments]]:
    """Yield the moments of wanted folds that hold out disjoint rows, by a binary tree over the folds.

    `before[j]` is the number of wanted folds before fold j.
    """
    rows, starts = folds.left or (folds.order, folds.starts)
    if folds.is_partition:
        unscored = folds.order[folds.scored :]
    else:
        inside = np.ones(folds.n, dtype=bool)
        inside[rows[starts[piece[0]] : starts[piece[1]]]] = False
        unscored = np.flatnonzero(inside)

    def visit(lo: int, hi: int, outside: TrainingMoments) -> Iterator[tuple[int, TrainingMoments]]:
        if before[hi] == before[lo]:
            return
        if hi - lo == 1:
            yield lo, recentre_moments(data, outside, partial(folds.train_rows, lo))
            return
        mid = (lo + hi) // 2
        for a, b, c, d in ((lo, mid, mid, hi), (mid, hi, lo, mid)):
            if before[b] > before[a]:
                others = row_moments(data, rows[starts[c] : starts[d]])
                yield from visit(a, b, outside + others)

    yield from visit(*piece, row_moments(data, unscored))


def _nested(
    data: StandardData, folds: FoldPlan, piece: tuple[int, int], before: IntArray
) -> Iterator[tuple[int, TrainingMoments]]:
    """Yield the moments of wanted folds with growing training sets: each adds its new rows to the previous moments."""
    total, train = TrainingMoments.empty(data.q + 1), np.zeros(folds.n, dtype=bool)
    for fold in range(*piece):
        if before[fold] == before[piece[1]]:
            break
        rows = folds.train_rows(fold)
        rows = rows[~train[rows]]
        total = total + row_moments(data, rows)
        train[rows] = True
        if before[fold + 1] > before[fold]:
            yield fold, recentre_moments(data, total, partial(folds.train_rows, fold))


@dataclass(frozen=True, eq=False)
class AllColumnFits:
    """Fits of all columns on some rows, in standard coordinates: `r_mean + (v - v_mean)' beta` predicts a row v.

    Attributes
    ----------
    beta : (G, q) array
        Coefficients by gamma; NaN if the system is singular to rounding.
    v_mean, r_mean : (q,) array, float
        Means of the columns and of the response.
    own : StandardData, optional
        Coordinates as in :class:`sparsecv_mio.problem.problem.SparseProblem`.
    """

    beta: FloatArray
    v_mean: FloatArray
    r_mean: float
    own: StandardData | None = None


def _fit_few_rows(data: StandardData, rows: IntArray | slice, gammas: FloatArray) -> AllColumnFits:
    """Return the fits for fewer rows than columns, without a Gram matrix: O(n^2 (q + n))."""
    centred = CentredRows.from_data(data, rows)
    root = np.sqrt(data.weight_of(rows))
    Q, R = np.linalg.qr((centred.V / root).T)
    U, values, Wt = np.linalg.svd(R.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        dual = (U.T @ centred.r) * np.where(values > 0.0, values / (values**2 + gamma_to_lam(gammas)[:, None]), 0.0)
    return AllColumnFits(dual @ Wt @ Q.T / root, centred.v_mean, centred.r_mean)


def _fit_from_moments(data: StandardData, moments: TrainingMoments, gammas: FloatArray) -> AllColumnFits:
    """Return the fits from moments: O(q^3 G)."""
    problem, beta = moments.problem(data, 1.0), np.full((len(gammas), data.q), np.nan)
    for i, gamma in enumerate(gammas.tolist()):
        M = problem.with_gamma(gamma).M
        unit = 1.0 / np.sqrt(np.diag(M))  # a penalty weight may span hundreds of orders of magnitude
        with suppress(np.linalg.LinAlgError):
            beta[i] = unit * np.linalg.solve(M * unit[:, None] * unit, unit * problem.c)
    return AllColumnFits(beta, problem.v_mean, problem.r_mean, problem.own)


def _has_similar_penalties(data: StandardData) -> bool:
    """Return True if the penalties of columns are similar, so that products of rows keep the digits of all columns."""
    return bool(data.weight.max() <= ALIKE_PENALTIES**2 * data.weight.min())


def fits_of_all_rows(data: StandardData, gammas: FloatArray) -> AllColumnFits:
    """Return the full-data fits of all columns.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    gammas : (G,) array
        Ridge weights.
    """
    every = slice(0, data.n)
    few = data.n < data.q and _has_similar_penalties(data)
    return _fit_few_rows(data, every, gammas) if few else _fit_from_moments(data, row_moments(data, every), gammas)


def fits_without_folds(data: StandardData, folds: FoldPlan, gammas: FloatArray) -> Iterator[tuple[int, AllColumnFits]]:
    """Yield each fold, in any order, with the fits of all columns on its training rows.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds.
    gammas : (G,) array
        Ridge weights.
    """
    few = (folds.n - folds.left_sizes < data.q) & _has_similar_penalties(data)
    for fold in np.flatnonzero(few).tolist():
        yield fold, _fit_few_rows(data, folds.train_rows(fold), gammas)
    for fold, moments in () if few.all() else training_moments(data, folds, np.flatnonzero(~few).tolist()):
        yield fold, _fit_from_moments(data, moments, gammas)


def squared_errors_of_all_columns(
    data: StandardData, folds: FoldPlan, gammas: FloatArray, is_expired: Callable[[], bool]
) -> FloatArray | None:
    """Return (G, n) squared held-out errors of rows for all columns, in standard units; None after the limit.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds.
    gammas : (G,) array
        Ridge weights.
    is_expired : callable
        Function that returns True after the time limit.
    """
    errors, weights = np.zeros((len(gammas), data.n)), data.dataset.row_weights
    for fold, fits in fits_without_folds(data, folds, gammas):
        if is_expired():
            return None
        rows = folds.scored_rows(fold)
        V, r = (fits.own or data).about(rows, fits.v_mean, fits.r_mean)
        errors[:, rows] += (r - fits.beta @ V.T) ** 2 / (1.0 if weights is None else weights[rows])
    return np.asarray(errors / np.maximum(np.bincount(folds.all_scored, minlength=data.n), 1))

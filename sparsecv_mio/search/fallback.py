"""Supports where nothing else is known when the time is over, in plain NumPy: forward selection in every fold.

It runs while kernels are still being compiled or a long set-up goes on, so it calls no kernel and forms nothing larger
than a few columns by a few columns. First comes the best single column of every fold, from sums over rows (with many
folds, no column at all); then, fold by fold while there is time, forward selection among the columns that promise most.
Under restrictions it is the least support that is allowed, in every fold, then columns by what each explains alone. The
rows that a fold leaves out are used for its score only. Everything is an estimate: nothing is proved.

`ForwardSelection`, by rows and in several folds at once, serves the working sets of first supports as well.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import CHUNK_ELEMENTS, BoolArray, FloatArray, IntArray, row_chunks
from sparsecv_mio.data.fold_plan import FoldPlan, RowLists
from sparsecv_mio.data.standard import StandardData, about_means
from sparsecv_mio.problem.constraints import constraints_of
from sparsecv_mio.problem.moment_fits import NULL, forward_selection
from sparsecv_mio.problem.problem import lam_of, penalty_of
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import CentredRows, RidgeFits, fits_of_all_rows, fits_without_folds
from sparsecv_mio.search.cells import ALL_ROWS
from sparsecv_mio.search.pairs import Grid
from sparsecv_mio.thresholds import QUICK_WORK
from sparsecv_mio.trees.allowed_supports import Family, columns_of
from sparsecv_mio.words import Intercept, Loss


class WeightedRows:
    """All rows, each times the root of its weight, with a 0 for those that a fold leaves out.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    """

    def __init__(self, data: StandardData, folds: FoldPlan) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD

    def products(self, R: FloatArray) -> FloatArray:
        """Return `R V` (m, q) for `R` (m, n), V the standard rows. O(m n q), by BLAS."""
        out: FloatArray | None = None
        for rows in row_chunks(self.data.n, self.data.q):
            product = R[:, rows] @ self.data.rows(rows)[0]
            out = product if out is None else np.add(out, product, out=out)
        assert out is not None
        return out

    def inside(self, folds: Sequence[int]) -> FloatArray:
        """Return (m, n): 1 where a row trains the fold."""
        out = np.ones((len(folds), self.folds.n))
        for line, fold in zip(out, folds, strict=True):
            line[self.folds.left_out(fold)] = 0.0
        return out

    def squares(self, folds: Sequence[int]) -> FloatArray:
        """Return (m, q): each column's sum of squares over the training rows, about its mean with a fold intercept."""
        inside = self.inside(folds)
        total = np.zeros((len(folds), self.data.q))
        for rows in row_chunks(self.data.n, self.data.q):
            total += inside[:, rows] @ self.data.rows(rows)[0] ** 2
        if self.centred:
            ones = inside if self.data.root is None else inside * self.data.root
            total -= self.products(ones) ** 2 / np.einsum("ij,ij->i", ones, ones)[:, None]
        return np.maximum(total, 0.0)

    def centre(self, values: FloatArray, inside: FloatArray) -> FloatArray:
        """Return values (m, n) less their training mean, with a fold intercept, and 0 on the rows left out."""
        out = values * inside
        if self.centred:
            ones, parts = (inside, out) if self.data.root is None else (inside * self.data.root, out * self.data.root)
            out -= ones * (parts.sum(axis=1) / np.einsum("ij,ij->i", ones, ones))[:, None]
        return out


class ForwardSelection:
    """Forward selection in several folds at once, at one gamma; columns that are forced in come first.

    In the augmented rows `(x_j; sqrt(penalty_j) e_j)` the picks are made orthonormal; a column not picked meets only
    their parts in the data rows, so that one product `u V` a step keeps all gains exact. O(m n q) a step.

    Parameters
    ----------
    rows : WeightedRows
    folds : sequence of m int
    squares : (m, q) array
        Of the columns over the training rows of each fold; see `WeightedRows.squares`.
    lam : float
        Half of gamma.
    top : int
        Columns to pick.

    Attributes
    ----------
    picked : list of m lists of int
        Columns in the order in which they were picked, without those that are forced in.
    """

    def __init__(self, rows: WeightedRows, folds: Sequence[int], squares: FloatArray, lam: float, top: int) -> None:
        self.rows, self.top = rows, top
        self.picked: list[list[int]] = [[] for _ in folds]
        self._inside = rows.inside(folds)
        self._response = rows.centre(rows.data.targets(slice(None)), self._inside)
        self._curvature = squares + penalty_of(lam, rows.data.weight)  # beside the picks
        self._null = NULL * self._curvature
        self._slope = rows.products(self._response)  # of every column, with what the picks leave of the response
        self._forced = rows.data.forced
        self._basis = np.zeros((len(folds), top + len(self._forced), rows.data.n))

    def run(self, expired: Callable[[], bool]) -> None:
        """Pick `top` columns a fold; one, even where the time is over."""
        for step, j in enumerate(self._forced.tolist()):
            picks = np.full(len(self.picked), j)
            self._pick(step, picks, self._curvature[:, j] > self._null[:, j])
        for picked in self.picked:
            picked.clear()
        for step in range(self.top):
            if step and expired():
                return
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.where(self._curvature > self._null, self._slope**2 / self._curvature, -1.0)
            going = gain.max(axis=1) >= 0.0
            if not going.any():
                return
            self._pick(step + len(self._forced), gain.argmax(axis=1), going)

    def _pick(self, step: int, columns: NDArray[np.intp], going: BoolArray) -> None:
        """Add one column a fold to the basis."""
        m = len(columns)
        x = self.rows.centre(np.stack([self.rows.data.column(int(j)) for j in columns]), self._inside)
        before = self._basis[:, :step]
        x -= np.einsum("fs,fsn->fn", np.einsum("fsn,fn->fs", before, x), before)
        x *= (going / np.sqrt(np.where(going, self._curvature[np.arange(m), columns], 1.0)))[:, None]
        self._basis[:, step] = x
        share = np.einsum("fn,fn->f", x, self._response)
        products = self.rows.products(x)
        self._slope -= share[:, None] * products
        self._curvature -= products**2
        self._curvature[np.arange(m), columns] = 0.0
        for f in np.flatnonzero(going).tolist():
            self.picked[f].append(int(columns[f]))


FOLDS_AT_ONCE = 256  # folds whose columns are ordered before their supports are fitted
CHOSEN_FROM = 64  # columns of a fold that forward selection chooses from, at least; or twice the largest size


@dataclass(frozen=True, eq=False)
class FallbackSupports:
    """Supports of one gamma by (tau, fold) with their scores, and supports of all rows.

    Attributes
    ----------
    gamma : float
    supports : list of lists of int arrays
    nominal, value : (T, K) arrays
        Held-out sums of squares and training objectives, standard units.
    on_all_rows : list of int arrays
        By tau, on all rows.
    value_on_all_rows : (T,) array
        Their training objectives.
    """

    gamma: float
    supports: list[list[IntArray]]
    nominal: FloatArray
    value: FloatArray
    on_all_rows: list[IntArray]
    value_on_all_rows: FloatArray


@dataclass(frozen=True, eq=False)
class _Sums:
    """Weighted sums over some rows: of 1, of columns v, of v^2, of v times the response r, of r and of r^2."""

    n: float
    v: FloatArray
    vv: FloatArray
    vr: FloatArray
    r: float
    rr: float

    @classmethod
    def of(cls, V: FloatArray, r: FloatArray, root: FloatArray | None) -> _Sums:
        squares, products, rr = np.einsum("ij,ij->j", V, V), r @ V, float(r @ r)
        if root is None:
            return cls(len(r), V.sum(axis=0), squares, products, float(r.sum()), rr)
        return cls(float(root @ root), root @ V, squares, products, float(root @ r), rr)

    def plus(self, other: _Sums, sign: int = 1) -> _Sums:
        """Add other rows, or subtract them with `sign` -1: accurate enough to choose columns by."""
        s = sign
        return _Sums(
            self.n + s * other.n, self.v + s * other.v, self.vv + s * other.vv, self.vr + s * other.vr,
            self.r + s * other.r, self.rr + s * other.rr,
        )  # fmt: skip


def fallback_supports(data: StandardData, folds: FoldPlan, grid: Grid, until: float) -> FallbackSupports:
    """Find and score supports at one gamma, the middle one, for every tau and fold.

    Parameters
    ----------
    data : StandardData
    folds : FoldPlan
    grid : Grid
    until : float
        Moment of `time.monotonic` after which no fold is improved any more.

    Returns
    -------
    FallbackSupports

    Raises
    ------
    BadInput
        For a tau of which no model keeps to the restrictions.

    Notes
    -----
    O(n q + K q) for the best single columns; O(n q^2 + K q^3) for all columns, where the grid has them and they are
    few; then O(n m^2) a fold with m = max(64, 2 tau), tau below q.
    """
    if data.loss is not Loss.SQUARED:
        return _of_rows(data, folds, grid, until)
    if data.restrictions.beyond_forcing:
        return _within_restrictions(data, folds, grid, until)
    made, taus = _nothing_known(data, folds, grid), grid.taus.tolist()
    fits = _Folds(data, folds, made.gamma, max(taus))
    order = [ALL_ROWS, *range(folds.k)]
    made.nominal[:], made.value[:], _ = fits.fit_in_folds(data.forced, np.arange(folds.k))
    for done, fold in enumerate(order):
        if done * data.n * data.q > QUICK_WORK and time.monotonic() > until:
            break
        _write(made, fold, taus, fits.first(fold))
    searched = [tau for tau in taus if tau < data.q]
    quick = data.q**2 * (data.n + data.q) <= QUICK_WORK
    if len(searched) == len(taus) or not quick or not _fit_all_columns(made, fits, len(searched), until):
        searched = taus
    for fold in order if searched else ():
        if fold not in fits.promising or time.monotonic() > until:
            break
        _write(made, fold, searched, fits.forward(fold, searched))
    return made


def _nothing_known(data: StandardData, folds: FoldPlan, grid: Grid) -> FallbackSupports:
    """Return the columns that are forced in, of unknown scores, at the middle gamma."""
    shape, least = (len(grid.taus), folds.k), data.forced
    return FallbackSupports(
        float(grid.gammas[len(grid.gammas) // 2]), [[least] * folds.k for _ in grid.taus], np.full(shape, np.inf),
        np.full(shape, np.inf), [least] * shape[0], np.full(shape[0], np.inf),
    )  # fmt: skip


def _fit_all_columns(made: FallbackSupports, fits: _Folds, first: int, until: float) -> bool:
    """Score all columns in every fold, for the taus from a place on, unless time runs out or a fit is not finite."""
    data, folds, gammas = fits.data, fits.folds, np.array([made.gamma])
    assert folds is not None
    every, fits_by_fold = np.arange(data.q), dict[int, _Fit]()

    def fit(rows: IntArray, ridge: RidgeFits, scored: IntArray) -> _Fit:
        beta = ridge.beta[0]
        train, scored_rows = (data.about(some, ridge.v_mean, ridge.r_mean) for some in (rows, scored))
        residual, miss = train[1] - train[0] @ beta, scored_rows[1] - scored_rows[0] @ beta
        return _Fit(every, float(residual @ residual + fits.penalty @ beta**2), float(miss @ miss))

    for fold, ridge in fits_without_folds(data, folds, gammas):
        if time.monotonic() > until:
            return False
        fits_by_fold[fold] = fit(folds.train_rows(fold), ridge, folds.scored_rows(fold))
    fits_by_fold[ALL_ROWS] = fit(np.arange(data.n), fits_of_all_rows(data, gammas), every[:0])
    if not all(np.isfinite(fit_made.value) and np.isfinite(fit_made.held_out) for fit_made in fits_by_fold.values()):
        return False
    for fold, fit_of_fold in fits_by_fold.items():
        for t in range(first, len(made.supports)):
            _put(made, fold, t, fit_of_fold)
    return True


def supports_on_all_rows(
    data: StandardData, gammas: Sequence[float], taus: Sequence[int], until: float
) -> list[dict[int, tuple[IntArray, float]]]:
    """Find supports of all rows by forward selection; within restrictions by what each column explains alone.

    Parameters
    ----------
    data : StandardData
    gammas : sequence of G floats
    taus : sequence of int
    until : float
        Moment of `time.monotonic` after which a gamma takes the supports of the previous gamma.

    Returns
    -------
    list of dicts of int to (int array, float)
        By gamma and tau, a support and its objective; inf where that needs a fit.

    Notes
    -----
    O(n q + G n m^2) with m = max(64, 2 tau); where the time is over, O(n q) and `QUICK_WORK`.
    """
    if data.loss is not Loss.SQUARED:
        order = _marginal_order(data, slice(0, data.n))
        return [{tau: (np.sort(order[:tau]), np.inf) for tau in taus}] * len(gammas)
    sums, found = _Folds(data, None, gammas[0], max(taus)), list[dict[int, tuple[IntArray, float]]]()
    families: dict[int, Family] = {}
    if data.restrictions.beyond_forcing:
        constraints = constraints_of(data)
        families = {tau: Family(data.q, tau, constraints) for tau in taus}
    work = data.n * (max(taus) + 1) ** 2 * len(taus) if families else data.n * sums.chosen_from**2
    for done, gamma in enumerate(gammas):
        late = (done + 1) * work > QUICK_WORK and time.monotonic() > until
        if late and found:
            found.append({tau: (support, np.inf) for tau, (support, _) in found[-1].items()})
        elif families:
            found.append(_greedily(sums.at(gamma), families))
        else:
            fits = sums.at(gamma)
            best_first = fits.first(ALL_ROWS)
            best_first = best_first if late else fits.forward(ALL_ROWS, taus)
            best = {tau: _largest(best_first, tau) for tau in taus}
            found.append({tau: (fit.support, fit.value) for tau, fit in best.items()})
    return found


@dataclass(frozen=True, eq=False)
class _Fit:
    """A support, its training objective and its held-out sum of squares."""

    support: IntArray
    value: float
    held_out: float


def _largest(fits: list[_Fit], tau: int) -> _Fit:
    """Return the largest of some fits, from the smallest allowed on, that has at most tau columns."""
    return next((fit for fit in reversed(fits) if len(fit.support) <= tau), fits[0])


def _write(made: FallbackSupports, fold: int, taus: list[int], fits: list[_Fit]) -> None:
    """Keep, for every tau, the largest support that is not larger."""
    for t, tau in enumerate(taus):
        _put(made, fold, t, _largest(fits, tau))


def _put(made: FallbackSupports, fold: int, t: int, fit: _Fit) -> None:
    if fold == ALL_ROWS:
        made.on_all_rows[t], made.value_on_all_rows[t] = fit.support, fit.value
    else:
        made.supports[t][fold], made.value[t, fold], made.nominal[t, fold] = fit.support, fit.value, fit.held_out


class _Folds:
    """Fits of every fold at one gamma, of at most so many columns, from the sums over all rows less those left out."""

    def __init__(self, data: StandardData, folds: FoldPlan | None, gamma: float, most: int) -> None:
        self.data, self.folds, self.chosen_from = data, folds, min(max(CHOSEN_FROM, 2 * most), data.q)
        self.centred = data.intercept is Intercept.FOLD
        self.penalty = penalty_of(lam_of(gamma), data.weight)
        self.low, self.high = np.full(data.q, -np.inf), np.full(data.q, np.inf)
        if data.restrictions.beyond_forcing:
            self.low, self.high = constraints_of(data).interval(data.q)
        self.promising: dict[int, IntArray] = {}
        parts = [_Sums.of(*data.rows(rows), data.root_of(rows)) for rows in row_chunks(data.n, data.q)]
        self.all = parts[0]
        for moments in parts[1:]:
            self.all = self.all.plus(moments)

    def at(self, gamma: float) -> _Folds:
        """Return the same sums at another gamma."""
        copied = copy.copy(self)
        copied.penalty, copied.promising = penalty_of(lam_of(gamma), self.data.weight), {}
        return copied

    def _left_out(self, fold: int) -> IntArray:
        return self.folds.left_out(fold) if self.folds is not None and fold >= 0 else np.zeros(0, dtype=np.int64)

    def _scored(self, fold: int) -> IntArray:
        return self.folds.scored_rows(fold) if self.folds is not None and fold >= 0 else np.zeros(0, dtype=np.int64)

    def fit_in_folds(self, columns: IntArray, folds: IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Fit some columns in several folds at once, without those whose coefficient would be outside of its bounds.

        Returns (m,) held-out sums of squares, (m,) training objectives and (m, s) which columns each fold keeps.
        O(n s^2 + m s^3), beside the rows left out.
        """
        rows = np.column_stack([*self.data.only(columns).rows(slice(0, self.data.n))])
        root = np.ones(len(rows)) if self.data.root is None else self.data.root
        at_once = max(CHUNK_ELEMENTS // (len(columns) + 1) ** 2, 1)
        parts = [folds[lo : lo + at_once] for lo in range(0, len(folds), at_once)]
        fits = [self._fit_in_some(columns, rows, root, part) for part in parts]
        return tuple(np.concatenate(arrays) for arrays in zip(*fits, strict=True))  # type: ignore[return-value]

    def _fit_in_some(
        self, columns: IntArray, rows: FloatArray, root: FloatArray, folds: IntArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Fit some columns as `fit_in_folds`, in folds whose moments fit into memory."""
        k, s = len(folds), len(columns)
        left_out, label = self._listed(folds, scored=False)
        gone, ones = rows[left_out], root[left_out]
        total = root @ rows - np.stack([np.bincount(label, ones * gone[:, i], k) for i in range(s + 1)], axis=1)
        second = np.empty((k, s + 1, s + 1))
        for i, j in np.ndindex(s + 1, s + 1):
            second[:, i, j] = rows[:, i] @ rows[:, j] - np.bincount(label, gone[:, i] * gone[:, j], k)
        n = self.all.n - np.bincount(label, ones * ones, k)
        mean = total / n[:, None] if self.centred else np.zeros((k, s + 1))
        second -= n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        M, c, stay = second[:, :s, :s] + np.diag(self.penalty[columns]), second[:, :s, s], np.ones((k, s), dtype=bool)
        while True:
            both = stay[:, :, None] & stay[:, None, :]
            beta = (np.linalg.pinv(np.where(both, M, 0.0), hermitian=True) @ (c * stay)[:, :, None])[:, :, 0] * stay
            wrong = (beta < self.low[columns]) | (beta > self.high[columns])
            if not wrong.any():
                break
            stay &= ~wrong
        value = np.maximum(second[:, s, s] - np.sum(c * beta, axis=1), 0.0)
        scored, scoring = self._listed(folds, scored=True)
        scored_rows = rows[scored] - root[scored, None] * mean[scoring]
        residual = scored_rows[:, s] - np.sum(scored_rows[:, :s] * beta[scoring], axis=1)
        return np.asarray(np.bincount(scoring, residual**2, k), dtype=float), value, stay

    def _listed(self, folds: IntArray, scored: bool) -> tuple[IntArray, IntArray]:
        """Return the rows that some folds score, or leave out, fold by fold, and the place of the fold of each."""
        none = np.zeros(0, dtype=np.int64)
        if self.folds is None:
            return none, none
        lists = RowLists(self.folds.order, self.folds.starts)
        lists = lists if scored or self.folds.left is None else self.folds.left
        rows, sizes = lists.of_several(folds[folds >= 0])
        return rows, np.repeat(np.flatnonzero(folds >= 0), sizes)

    def gains(self, fold: int) -> tuple[FloatArray, FloatArray, tuple[FloatArray, float], float]:
        """Return slope and curvature of every column alone, the training means, and the sum of squares of the response.

        O(q) beside the rows left out.
        """
        left_out = self._left_out(fold)
        sums = self.all.plus(_Sums.of(*self.data.rows(left_out), self.data.root_of(left_out)), -1)
        mean, level = (sums.v / sums.n, sums.r / sums.n) if self.centred else (np.zeros(self.data.q), 0.0)
        c, yy = sums.vr - sums.n * mean * level, max(sums.rr - sums.n * level**2, 0.0)
        return c, np.maximum(sums.vv - sums.n * mean**2, 0.0) + self.penalty, (mean, level), yy

    def order(self, fold: int) -> IntArray:
        """Return the columns with a positive gain alone, largest first; a coefficient of a forbidden sign has none."""
        c, M, _, _ = self.gains(fold)
        c = np.clip(c, np.where(self.low == 0.0, 0.0, -np.inf), np.where(self.high == 0.0, 0.0, np.inf))
        gain = c**2 / np.maximum(M, np.finfo(float).tiny)
        order = np.argsort(-gain, kind="stable")
        return order[gain[order] > 0.0].astype(np.int64)

    def first(self, fold: int) -> list[_Fit]:
        """Fit the empty support and the best single column. O(q) beside the rows left out."""
        c, M, (mean, level), yy = self.gains(fold)
        gain = c**2 / M
        best = np.argpartition(-gain, self.chosen_from - 1)[: self.chosen_from]
        self.promising[fold] = best[np.argsort(-gain[best], kind="stable")].astype(np.int64)
        if len(self.data.forced):
            return self.forward(fold, [len(self.data.forced)])
        j, scored = int(self.promising[fold][0]), self._scored(fold)
        column = self.data.only(np.array([j])).rows(scored)
        centred, residual = about_means(*column, self.data.root_of(scored), mean[[j]], level)
        none = _Fit(np.zeros(0, dtype=np.int64), yy, float(residual @ residual))
        residual = residual - centred[:, 0] * (c[j] / M[j])
        return [none, _Fit(np.array([j]), max(yy - float(gain[j]), 0.0), float(residual @ residual))]

    def forward(self, fold: int, taus: Sequence[int]) -> list[_Fit]:
        """Run forward selection among the promising columns; fits of some sizes, from the least support allowed on."""
        most = max(taus)
        among = np.union1d(self.promising[fold][: max(CHOSEN_FROM, 2 * most)], self.data.forced).astype(np.int64)
        least = np.searchsorted(among, self.data.forced)
        rows = np.setdiff1d(np.arange(self.data.n), self._left_out(fold))
        few = self.data.only(among)
        train = CentredRows.of(few, rows)
        V, r = train.V, train.r
        H, u = few.about(self._scored(fold), train.v_mean, train.r_mean)
        M, c = V.T @ V, r @ V
        M.flat[:: len(among) + 1] += self.penalty[among]
        chosen = forward_selection(M, c, max(min(most, len(among), len(rows)), len(least)), least)
        yy = float(r @ r)
        fits = [] if len(least) else [_Fit(among[:0], yy, float(u @ u))]
        sizes = {min(max(tau, len(least), 1), len(chosen)) for tau in (0, *taus)}
        for size in sorted(sizes - {0}):
            some = chosen[:size]
            try:
                beta = np.linalg.solve(M[np.ix_(some, some)], c[some])
            except np.linalg.LinAlgError:
                if fits:
                    break
                beta = np.linalg.lstsq(M[np.ix_(some, some)], c[some], rcond=None)[0]
            residual = u - H[:, some] @ beta
            fits.append(_Fit(np.sort(among[some]), max(yy - float(c[some] @ beta), 0.0), float(residual @ residual)))
        return fits


def _within_restrictions(data: StandardData, folds: FoldPlan, grid: Grid, until: float) -> FallbackSupports:
    """Of `fallback_supports`: the least support that is allowed, then columns by what each explains alone."""
    constraints, made, taus = constraints_of(data), _nothing_known(data, folds, grid), grid.taus.tolist()
    fits = _Folds(data, folds, made.gamma, max(taus))
    families = [Family.some(data.q, tau, constraints) for tau in taus]
    order, work = np.arange(ALL_ROWS, folds.k), 0
    for least in dict.fromkeys(support for _, support in families):
        _write_to_folds(made, fits, least, {t: order for t, (_, other) in enumerate(families) if other == least})
    for lo in range(0, len(order), FOLDS_AT_ONCE):
        greedy: dict[bytes, list[int]] = {}  # folds share the order of their columns
        chosen: dict[int, dict[int, list[int]]] = {}  # by support and tau, the folds
        for fold in order[lo : lo + FOLDS_AT_ONCE].tolist():
            work += data.n * data.q
            if work > QUICK_WORK and time.monotonic() > until:
                return made
            columns = fits.order(fold)
            if columns.tobytes() not in greedy:
                greedy[columns.tobytes()] = [family.greedily(columns.tolist()) or 0 for family, _ in families]
            for t, support in enumerate(greedy[columns.tobytes()]):
                chosen.setdefault(support, {}).setdefault(t, []).append(fold)
        for support, by_tau in chosen.items():
            if work > QUICK_WORK and time.monotonic() > until:
                return made
            _write_to_folds(made, fits, support, {t: np.array(which) for t, which in by_tau.items()})
    return made


def _write_to_folds(made: FallbackSupports, fits: _Folds, support: int, by_tau: dict[int, IntArray]) -> None:
    """Fit a support in several folds at once; store it for each tau and fold where it fits better than before."""
    columns, folds = np.array(list(columns_of(support)), dtype=np.int64), np.unique(np.concatenate([*by_tau.values()]))
    held_out, value, stay = fits.fit_in_folds(columns, folds)
    supports = [columns if mask.all() else columns[mask] for mask in stay]
    for t, which in by_tau.items():
        places = np.searchsorted(folds, which)
        known = np.where(which < 0, made.value_on_all_rows[t], made.value[t, which])
        for place in places[value[places] < known].tolist():
            _put(made, int(folds[place]), t, _Fit(supports[place], float(value[place]), float(held_out[place])))


def _greedily(fits: _Folds, families: dict[int, Family]) -> dict[int, tuple[IntArray, float]]:
    """Return a support of every size on all rows, chosen by the gain of each column alone, and its objective."""
    order, found = fits.order(ALL_ROWS).tolist(), dict[int, tuple[IntArray, float]]()
    for tau, family in families.items():
        columns = np.array(list(columns_of(family.greedily(order) or 0)), dtype=np.int64)
        _, value, stay = fits.fit_in_folds(columns, np.array([ALL_ROWS]))
        found[tau] = columns[stay[0]], float(value[0])
    return found


def _marginal_order(data: StandardData, rows: IntArray | slice) -> IntArray:
    """Return the columns in the order of what each tells of the target alone; O(m q), no kernel.

    Parameters
    ----------
    data : StandardData
    rows : int array or slice
        Training rows.
    """
    from sparsecv_mio.problem.responses import response_of  # loads what squares need not

    V, (y, w) = data.of_columns(rows, np.arange(data.q)), response_of(data, rows)
    centred = V - np.average(V, axis=0, weights=w)
    slope = (w * (y - np.average(y, weights=w))) @ centred
    score = slope**2 / np.maximum((w @ centred**2), np.finfo(float).tiny)
    order = np.argsort(-score, kind="stable")
    forced = np.isin(order, data.forced)
    return np.concatenate([order[forced], order[~forced]]).astype(np.int64)


LIKELY_SIZE = 5  # of a model, which is scored first
MOST_ROWS_BY_FOLD = 1 << 18  # in training, beyond which all rows choose and fit: 4 microseconds of a fit of ten columns


def _of_rows(data: StandardData, folds: FoldPlan, grid: Grid, until: float) -> FallbackSupports:
    """Return supports of the middle gamma, of the columns that tell most by themselves; no kernel is called.

    One size is scored in every fold, the others while there is time.
    """
    gamma, taus = float(grid.gammas[len(grid.gammas) // 2]), grid.taus.tolist()
    nominal, value = np.full((len(taus), folds.k), np.inf), np.full((len(taus), folds.k), np.inf)
    order, rows = _marginal_order(data, slice(0, data.n)), folds.k * data.n
    by_fold = rows <= MOST_ROWS_BY_FOLD and rows * data.q <= QUICK_WORK
    whole, on_all_rows = [np.sort(order[:tau]) for tau in taus], np.full(len(taus), np.inf)
    supports = [[support] * folds.k for support in whole]
    if by_fold:
        orders = [_marginal_order(data, folds.train_rows(fold)) for fold in range(folds.k)]
        supports = [[np.sort(order[:tau]) for order in orders] for tau in taus]
    for done, t in enumerate(sorted(range(len(taus)), key=lambda t: abs(taus[t] - LIKELY_SIZE))):
        if done and time.monotonic() > until:
            break
        if not by_fold:
            on_all_rows[t], nominal[t], value[t] = _left_out_of_all(data, folds, whole[t], gamma)
            continue
        for fold in range(folds.k):
            fit = refit_rows(data, folds.train_rows(fold), supports[t][fold], gamma)
            nominal[t, fold], value[t, fold] = fit.held_out(data, folds.scored_rows(fold))[0], fit.objective
        on_all_rows[t] = refit_rows(data, slice(0, data.n), whole[t], gamma).objective
    return FallbackSupports(gamma, supports, nominal, value, whole, on_all_rows)


def _left_out_of_all(
    data: StandardData, folds: FoldPlan, support: IntArray, gamma: float
) -> tuple[float, FloatArray, FloatArray]:
    """Return the objective of a support on all rows, and by fold its held-out loss and its objective, about.

    A loss is that after one Newton step without its row alone, the objective that of all rows' fit: O(n s^2).
    """
    from sparsecv_mio.problem.glm_refit import refit_glm, rows_of  # loads what squares need not
    from sparsecv_mio.problem.responses import row_loss

    made = refit_glm(data, slice(0, data.n), support, gamma)
    Z, y, w = rows_of(data, slice(0, data.n), support, made.first)
    loss, theta = row_loss(data.loss), made.theta
    margins, leverage = loss.signs(y) * (Z @ theta), np.einsum("ij,ij->i", Z @ made.root.T, Z @ made.root.T)
    stays = np.maximum(1.0 - leverage * loss.curvatures(margins, y, w), np.finfo(float).eps)
    alone = w * loss.losses(margins - leverage * loss.falls(margins, y, w) / stays, y)
    inside = w * loss.losses(margins, y)
    held_out = np.array([float(alone[folds.scored_rows(fold)].sum()) for fold in range(folds.k)])
    out = np.array([float(inside[folds.left_out(fold)].sum()) for fold in range(folds.k)])
    return made.objective, held_out, made.objective - out

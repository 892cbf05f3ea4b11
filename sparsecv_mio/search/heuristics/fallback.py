"""Supports where nothing else is known when the time is over: forward selection in every fold, in plain NumPy.

It runs while kernels are still being compiled or a long set-up goes on, so it calls no kernel and forms nothing larger
than a few columns by a few columns. First comes the best single column of every fold, from sums over rows (with many
folds, no column at all); then, fold by fold while there is time, forward selection among the columns that promise most.
The rows that a fold leaves out are used for its score only. Everything is an estimate: nothing is proved.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray, row_chunks
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.scaling import about_means
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.problem.centred_rows import CentredRows
from sparsecv_mio.problem.problem import LARGEST_PENALTY
from sparsecv_mio.search.grid import Grid
from sparsecv_mio.search.heuristics.forward_selection import NULL
from sparsecv_mio.units import TINY

PROMISING = 64  # columns of a fold that forward selection chooses from, at least; or twice the largest size
MOST_PROMISING = 512  # columns of a fold that are kept in order
ALL_ROWS = -1  # in place of a fold: no row is left out
FIRST_WORK = 1 << 19  # folds times columns for which the best single column is found even where the time is over


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

    Notes
    -----
    O(n q + K q) for the best single columns, then O(n m^2) a fold with m = max(64, 2 tau).
    """
    gamma, taus = float(grid.gammas[len(grid.gammas) // 2]), grid.taus.tolist()
    least = data.forced
    made = FallbackSupports(
        gamma, [[least] * folds.k for _ in taus], np.full((len(taus), folds.k), np.inf),
        np.full((len(taus), folds.k), np.inf), [least] * len(taus), np.full(len(taus), np.inf),
    )  # fmt: skip
    fits = _Folds(data, folds, gamma)
    order = [ALL_ROWS, *range(folds.k)]
    made.nominal[:], made.value[:] = fits.least() if len(least) else fits.empty()
    for done, fold in enumerate(order):
        if done * data.q > FIRST_WORK and time.monotonic() > until:
            break
        _write(made, fold, taus, fits.first(fold))
    for fold in order:
        if fold not in fits.promising or time.monotonic() > until:
            break
        _write(made, fold, taus, fits.forward(fold, max(taus)))
    return made


def supports_on_all_rows(
    data: StandardData, gammas: Sequence[float], taus: Sequence[int]
) -> list[dict[int, tuple[IntArray, float]]]:
    """Find supports of all rows by forward selection.

    Parameters
    ----------
    data : StandardData
    gammas : sequence of G floats
    taus : sequence of int

    Returns
    -------
    list of dicts of int to (int array, float)
        By gamma and tau, a support and its objective.

    Notes
    -----
    O(n q + G n m^2) with m = max(64, 2 tau).
    """
    out = []
    fits: _Folds | None = None
    for gamma in gammas:
        fits = _Folds(data, None, gamma) if fits is None else fits.at(gamma)
        fits.first(ALL_ROWS)
        found = fits.forward(ALL_ROWS, max(taus))
        best = {tau: found[min(tau - len(data.forced), len(found) - 1)] for tau in taus}
        out.append({tau: (fit.support, fit.value) for tau, fit in best.items()})
    return out


@dataclass(frozen=True, eq=False)
class _Fit:
    """A support, its training objective and its held-out sum of squares."""

    support: IntArray
    value: float
    held_out: float


def _write(made: FallbackSupports, fold: int, taus: list[int], fits: list[_Fit]) -> None:
    """Keep, for every tau, the largest support that is not larger; `fits` by size, from the smallest allowed on."""
    for t, tau in enumerate(taus):
        fit = fits[min(tau - len(fits[0].support), len(fits) - 1)]
        if fold == ALL_ROWS:
            made.on_all_rows[t], made.value_on_all_rows[t] = fit.support, fit.value
        else:
            made.supports[t][fold], made.value[t, fold], made.nominal[t, fold] = fit.support, fit.value, fit.held_out


class _Folds:
    """Fits of every fold at one gamma, from the sums over all rows less those over the rows left out."""

    def __init__(self, data: StandardData, folds: FoldPlan | None, gamma: float) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD
        self.penalty = np.minimum(gamma / 2.0 * data.weight, LARGEST_PENALTY)
        self.promising: dict[int, IntArray] = {}
        parts = [_Sums.of(*data.rows(rows), data.root_of(rows)) for rows in row_chunks(data.n, data.q)]
        self.all = parts[0]
        for part in parts[1:]:
            self.all = self.all.plus(part)

    def at(self, gamma: float) -> _Folds:
        """Return the same sums at another gamma."""
        other = copy.copy(self)
        other.penalty, other.promising = np.minimum(gamma / 2.0 * self.data.weight, LARGEST_PENALTY), {}
        return other

    def _left_out(self, fold: int) -> IntArray:
        return self.folds.left_out(fold) if self.folds is not None and fold >= 0 else np.zeros(0, dtype=np.int64)

    def _scored(self, fold: int) -> IntArray:
        return self.folds.scored_rows(fold) if self.folds is not None and fold >= 0 else np.zeros(0, dtype=np.int64)

    def empty(self) -> tuple[FloatArray, FloatArray]:
        """Return held-out sums of squares of every fold by the empty support, and its training objectives. O(n)."""
        assert self.folds is not None
        folds, r = self.folds, self.data.rows(slice(0, self.data.n))[1]
        root = np.ones(len(r)) if self.data.root is None else self.data.root
        k, scored = folds.k, folds.order[: folds.scored]
        scoring = np.repeat(np.arange(k), folds.sizes)
        label, left = (
            (scoring, scored) if folds.left is None else (np.repeat(np.arange(k), folds.left_sizes), folds.left.rows)
        )
        ones, mine = root[left], r[left]
        count, total, square = (np.bincount(label, weight, k) for weight in (ones * ones, ones * mine, mine * mine))
        n = self.all.n - count
        level = (self.all.r - total) / n if self.centred else np.zeros(k)
        yy = np.maximum(self.all.rr - square - n * level**2, 0.0)
        scores = np.bincount(scoring, (r[scored] - root[scored] * level[scoring]) ** 2, k)
        return np.asarray(scores, dtype=float), np.asarray(yy, dtype=float)

    def least(self) -> tuple[FloatArray, FloatArray]:
        """Return what `empty` does for the support of the columns that are forced in alone. O(n f^2)."""
        assert self.folds is not None
        folds, k, forced = self.folds, self.folds.k, self.data.forced
        rows = np.column_stack([*self.data.only(forced).rows(slice(0, self.data.n))])
        f, left = len(forced), folds.order if folds.left is None else folds.left.rows
        left = left[: int(folds.left_sizes.sum())]
        label = np.repeat(np.arange(k), folds.left_sizes)
        root = np.ones(len(rows)) if self.data.root is None else self.data.root
        gone, ones = rows[left], root[left]
        count = np.bincount(label, ones * ones, k)
        total = root @ rows - np.stack([np.bincount(label, ones * gone[:, i], k) for i in range(f + 1)], axis=1)
        second = np.empty((k, f + 1, f + 1))
        for i, j in np.ndindex(f + 1, f + 1):
            second[:, i, j] = rows[:, i] @ rows[:, j] - np.bincount(label, gone[:, i] * gone[:, j], k)
        n = self.all.n - count
        mean = total / n[:, None] if self.centred else np.zeros((k, f + 1))
        second -= n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        M, c = second[:, :f, :f] + np.diag(self.penalty[forced]), second[:, :f, f]
        beta = (np.linalg.pinv(M, hermitian=True) @ c[:, :, None])[:, :, 0]
        value = np.maximum(second[:, f, f] - np.sum(c * beta, axis=1), 0.0)
        scored, scoring = folds.order[: folds.scored], np.repeat(np.arange(k), folds.sizes)
        held = rows[scored] - root[scored, None] * mean[scoring]
        rest = held[:, f] - np.sum(held[:, :f] * beta[scoring], axis=1)
        return np.asarray(np.bincount(scoring, rest**2, k), dtype=float), value

    def first(self, fold: int) -> list[_Fit]:
        """Fit the empty support and the best single column. O(q) beside the rows left out."""
        left = self._left_out(fold)
        (V, r), root = self.data.rows(left), self.data.root_of(left)
        sums = self.all.plus(_Sums.of(V, r, root), -1)
        mean, level = (sums.v / sums.n, sums.r / sums.n) if self.centred else (np.zeros(self.data.q), 0.0)
        c, yy = sums.vr - sums.n * mean * level, max(sums.rr - sums.n * level**2, 0.0)
        M = np.maximum(sums.vv - sums.n * mean**2, 0.0) + self.penalty
        gain = c**2 / M
        width = min(self.data.q, MOST_PROMISING)
        best = np.argpartition(-gain, width - 1)[:width]
        self.promising[fold] = best[np.argsort(-gain[best], kind="stable")].astype(np.int64)
        if len(self.data.forced):
            return self.forward(fold, len(self.data.forced))
        j = int(self.promising[fold][0])
        scored = np.isin(left, self._scored(fold))
        root = None if root is None else root[scored]
        centred, rest = about_means(V[scored][:, [j]], r[scored], root, mean[[j]], level)
        none = _Fit(np.zeros(0, dtype=np.int64), yy, float(rest @ rest))
        rest = rest - centred[:, 0] * (c[j] / M[j])
        return [none, _Fit(np.array([j]), max(yy - float(gain[j]), 0.0), float(rest @ rest))]

    def forward(self, fold: int, most: int) -> list[_Fit]:
        """Run forward selection among the promising columns; fits by size, from the least support allowed on."""
        among = np.union1d(self.promising[fold][: max(PROMISING, 2 * most)], self.data.forced).astype(np.int64)
        least = np.searchsorted(among, self.data.forced)
        rows = np.setdiff1d(np.arange(self.data.n), self._left_out(fold))
        few = self.data.only(among)
        train = CentredRows.of(few, rows)
        V, r = train.V, train.r
        H, u = few.about(self._scored(fold), train.v_mean, train.r_mean)
        M, c = V.T @ V, r @ V
        M.flat[:: len(among) + 1] += self.penalty[among]
        chosen = _greedy(M, c, max(min(most, len(among), len(rows)), len(least)), least)
        yy = float(r @ r)
        fits = [] if len(least) else [_Fit(among[:0], yy, float(u @ u))]
        for size in range(max(len(least), 1), len(chosen) + 1):
            some = chosen[:size]
            try:
                beta = np.linalg.solve(M[np.ix_(some, some)], c[some])
            except np.linalg.LinAlgError:
                if fits:
                    break
                beta = np.linalg.lstsq(M[np.ix_(some, some)], c[some], rcond=None)[0]
            rest = u - H[:, some] @ beta
            fits.append(_Fit(np.sort(among[some]), max(yy - float(c[some] @ beta), 0.0), float(rest @ rest)))
        return fits


def _greedy(M: FloatArray, c: FloatArray, most: int, first: IntArray) -> IntArray:
    """Return some columns, then those that lower `yy - c_S' M_S^{-1} c_S` most. O(m^2 most)."""
    left, own = c.copy(), np.diag(M).copy()
    least = NULL * own
    rows = np.zeros((most, len(c)))
    chosen: list[int] = []
    for step in range(most):
        gain = np.where(own > least, left**2 / np.maximum(own, TINY), -1.0)
        gain[chosen] = -1.0
        pick = int(first[step]) if step < len(first) else int(np.argmax(gain))
        if gain[pick] < 0.0 and step >= len(first):
            break
        chosen.append(pick)
        if not own[pick] > least[pick]:  # forced in, and nothing beside those before
            continue
        root = np.sqrt(own[pick])
        rows[step] = (M[pick] - rows[:step, pick] @ rows[:step]) / root
        left = left - rows[step] * (left[pick] / root)
        own = own - rows[step] ** 2
    return np.array(chosen, dtype=np.int64)

"""First supports where a Gram matrix of all columns is too large: from the rows, on a working set of columns per fold.

A working set holds what a forward selection on the training rows picked and nearly picked; it grows by the columns that
are most correlated with the residuals of the supports found on it, and by columns of supports found in other folds.
Held-out rows have no say. Products with all columns go through BLAS, many residuals at once; nothing is q x q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.data.dataset import row_chunks
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.problem.accumulate import row_moments
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.search.heuristics.fold_search import FoldSearch, IntArray

NEAR = 16  # columns a step of forward selection nominates
FIRST_COLUMNS, MORE_COLUMNS = 240, 120  # of a working set, and by how many it may grow at a time
NOMINATED = 3  # columns a residual nominates
GAMMAS_LOOKED_AT = 5
LOOKS = 4  # at all columns
DROPPED = 150  # residuals of a fold with one column left out
GRAM_BYTES = 256 << 20  # of all working sets
BATCH = 1 << 22  # numbers in a (folds, columns) array worked on at a time


class Rows:
    """Products of the training rows of every fold with all columns."""

    def __init__(self, data: StandardData, folds: FoldPlan) -> None:
        self.data, self.folds = data, folds
        self.centred = data.intercept is Intercept.FOLD

    def products(self, R: FloatArray) -> FloatArray:
        """`R V` for `R` (m, n): (m, q). O(m n q)."""
        out: FloatArray | None = None
        for rows in row_chunks(self.data.n, self.data.q):
            part = R[:, rows] @ self.data.rows(rows)[0]
            out = part if out is None else np.add(out, part, out=out)
        assert out is not None
        return out

    def training(self, wanted: Sequence[int]) -> FloatArray:
        """(m, n): 1 where a row trains the fold."""
        return (self.folds.labels != np.asarray(wanted)[:, None]).astype(float)

    def spread(self, wanted: Sequence[int]) -> FloatArray:
        """(m, q): sum of squares of every column over the training rows, about its mean there if that is taken off."""
        inside = self.training(wanted)
        total = np.zeros((len(wanted), self.data.q))
        for rows in row_chunks(self.data.n, self.data.q):
            total += inside[:, rows] @ self.data.rows(rows)[0] ** 2
        if self.centred:
            total -= self.products(inside) ** 2 / inside.sum(axis=1)[:, None]
        return np.maximum(total, 0.0)

    def trimmed(self, values: FloatArray, inside: FloatArray) -> FloatArray:
        """Values (m, n), zero on held-out rows and less their training mean where the intercept takes it off."""
        out = values * inside
        if self.centred:
            out -= inside * (out.sum(axis=1) / inside.sum(axis=1))[:, None]
        return out

    def target(self) -> FloatArray:
        """(n,) response of all rows."""
        return (self.data.dataset.y - self.data.y_center) / self.data.y_unit - self.data.r_rest


class Forward:
    """Forward selection in several folds at once, at one gamma.

    In the augmented rows `(x_j; sqrt(penalty_j) e_j)` the picks are made orthonormal; a column not picked meets only
    their parts in the data rows, so that one product `u V` a step keeps all gains exact. O(folds n q) a step.
    """

    def __init__(self, rows: Rows, wanted: Sequence[int], spread: FloatArray, lam: float, top: int) -> None:
        self.rows, self.top = rows, top
        self.inside = rows.training(wanted)
        self.r = rows.trimmed(rows.target(), self.inside)
        penalty = np.minimum(lam * rows.data.weight, 1e290)
        self.diag = spread + penalty
        self.floor = 1e-12 * self.diag
        self.left = rows.products(self.r)
        self.picked: list[list[int]] = [[] for _ in wanted]
        self.named: list[dict[int, int]] = [{} for _ in wanted]  # column -> its best rank in any step
        self.basis = np.zeros((len(wanted), top, rows.data.n))

    def run(self, expired: Callable[[], bool]) -> None:
        """Pick `top` columns a fold, at least one."""
        for step in range(self.top):
            if step and expired():
                return
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.where(self.diag > self.floor, self.left**2 / self.diag, -1.0)
            going = gain.max(axis=1) >= 0.0
            if not going.any():
                return
            self._name(gain)
            self._pick(step, gain.argmax(axis=1), going)

    def _name(self, gain: FloatArray) -> None:
        """Remember the columns with the largest gains."""
        near = min(NEAR, gain.shape[1])
        best = np.argpartition(-gain, near - 1, axis=1)[:, :near]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(gain, best, axis=1), axis=1), axis=1)
        for named, columns in zip(self.named, best.tolist(), strict=True):
            for rank, j in enumerate(columns):
                named[j] = min(rank, named.get(j, rank))

    def _pick(self, step: int, columns: NDArray[np.intp], going: NDArray[np.bool_]) -> None:
        m = len(columns)
        x = self.rows.trimmed(np.stack([self.rows.data.column(int(j)) for j in columns]), self.inside)
        before = self.basis[:, :step]
        x -= np.einsum("fs,fsn->fn", np.einsum("fsn,fn->fs", before, x), before)
        x *= (going / np.sqrt(self.diag[np.arange(m), columns]))[:, None]
        self.basis[:, step] = x
        share = np.einsum("fn,fn->f", x, self.r)
        products = self.rows.products(x)
        self.left -= share[:, None] * products
        self.diag -= products**2
        self.diag[np.arange(m), columns] = 0.0
        for f in np.flatnonzero(going).tolist():
            self.picked[f].append(int(columns[f]))


def working_search(
    data: StandardData, folds: FoldPlan, fold: int, lams: FloatArray, top: int, among: IntArray
) -> FoldSearch:
    """The search of a fold on some columns (ascending), by their Gram matrix over its training rows."""
    part = data.only(among)
    return FoldSearch(fold, row_moments(part, folds.train_rows(fold)).problem(part, 1.0), lams, top, among)


def largest_working_set(k: int, q: int, top: int) -> int:
    """Columns of a working set at first."""
    return min(q, max(min(FIRST_COLUMNS, int(np.sqrt(GRAM_BYTES / 8 / k))), 2 * top))


def residuals(search: FoldSearch, rows: Rows) -> FloatArray:
    """(m, n): residuals on the training rows of a fold's supports, at some gammas, and with one column left out."""
    G = len(search.lams)
    some = sorted({int(g) for g in np.linspace(0, G - 1, min(G, GAMMAS_LOOKED_AT)).round()})
    asked = [(g, search.columns[g, s, :s]) for g, s in product(some, range(search.top + 1)) if search.known(g, s)]
    dropped = 0
    for s in range(1, search.top + 1):
        if search.known(G // 2, s) and dropped + s <= DROPPED:
            S = search.columns[G // 2, s, :s]
            asked += [(G // 2, np.delete(S, a)) for a in range(s)]
            dropped += s
    V, r = rows.data.only(search.among).rows(slice(0, rows.data.n))
    out = np.broadcast_to(r - search.r_mean, (len(asked), len(r))).copy()
    for row, (g, S) in zip(out, asked, strict=True):
        M = search.Q[np.ix_(S, S)] + np.diag(search.lams[g] * search.weight[S])
        row -= (V[:, S] - search.v_mean[S]) @ np.linalg.lstsq(M, search.c[S], rcond=None)[0]
    return out * rows.training([search.fold])


def columns_to_add(search: FoldSearch, rows: Rows, spread: NDArray[np.float32]) -> IntArray:
    """Columns outside the working set that residuals of its supports are most correlated with."""
    length = spread + search.lams[0] * rows.data.weight
    products = rows.products(residuals(search, rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(length > 0.0, products**2 / length, 0.0)
    inside = gain[:, search.among].max(axis=1, initial=0.0)
    gain[:, search.among] = -1.0
    best = np.argpartition(-gain, min(NOMINATED, gain.shape[1]) - 1, axis=1)[:, :NOMINATED]
    share = np.take_along_axis(gain, best, axis=1) / np.maximum(inside, 1e-300)[:, None]
    order = np.argsort(-share, axis=None, kind="stable")
    named = best.ravel()[order][share.ravel()[order] > 0.0]
    _, first = np.unique(named, return_index=True)
    return named[np.sort(first)][:MORE_COLUMNS].astype(np.int64)


def at_least(size: int, columns: Sequence[int] | IntArray, q: int) -> IntArray:
    """The columns given, ascending, with the first others where they are fewer than `size`; -1 is none."""
    chosen = np.unique(np.asarray(columns, dtype=np.int64))
    chosen = chosen[chosen >= 0]
    if len(chosen) >= size:
        return chosen
    others = np.setdiff1d(np.arange(min(q, size + len(chosen))), chosen)
    return np.union1d(chosen, others[: size - len(chosen)])


def fold_batches(folds: FoldPlan, q: int) -> Iterator[list[int]]:
    """Folds in groups whose (folds, columns) arrays stay small."""
    size = max(1, BATCH // max(q, 1))
    for lo in range(0, folds.k, size):
        yield list(range(lo, min(lo + size, folds.k)))

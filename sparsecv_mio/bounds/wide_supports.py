"""Best supports known of every size, for many more columns than rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.kernels import starts
from sparsecv_mio.units import TINY

CANDIDATES = 150  # columns that swaps may use, beside those of known supports
SPENT = 1e-12  # of a column's own curvature: what is left of it beside the chosen ones is rounding


class WideSupports:
    """Incumbents of one fold by size.

    Parameters
    ----------
    rows : WideRows
    expired : callable
        Once it is True a search ends with what it holds.

    Attributes
    ----------
    best, support : dict
        f and columns by size.
    """

    def __init__(self, rows: WideRows, expired: Callable[[], bool]) -> None:
        self.rows, self.expired = rows, expired
        self.best: dict[int, float] = {}
        self.support: dict[int, IntArray] = {}

    def take(self, supports: Iterable[NDArray[np.integer]]) -> list[float]:
        """Try supports and keep each that is the best of its size; their values. O(n s^2) each."""
        return [self._try(np.sort(np.asarray(support, dtype=np.int64))) for support in supports]

    def _try(self, support: IntArray) -> float:
        """Keep a support if it is the best of its size; its value, inf where there is none."""
        rows, size = self.rows, len(support)
        if size == 0:
            return np.inf
        M = rows.matrix(support)
        try:
            half = solve_triangular(np.linalg.cholesky(M), rows.c[support], lower=True, check_finite=False)
        except np.linalg.LinAlgError:  # singular to rounding: no incumbent
            return np.inf
        value = rows.yy - float(half @ half)
        if value < self.best.get(size, np.inf):
            self.best[size], self.support[size] = value, np.sort(support)
        return value

    def search(self, sizes: Sequence[int], swap_rounds: int = 0) -> None:
        """Select forward over all columns, then swap among the promising ones."""
        rows = self.rows
        top = min(max([size for size in sizes if size < rows.q], default=0), rows.n)
        factor = np.zeros((top, rows.q))
        left, diag = rows.c.copy(), rows.square.copy()
        chosen: list[int] = []
        for step in range(top):
            if self.expired():
                break
            gain = np.where(diag > SPENT * rows.square, left**2 / np.maximum(diag, TINY), 0.0)
            gain[chosen] = -1.0
            pick = int(np.argmax(gain))
            chosen.append(pick)
            row = rows.Xt @ rows.Xt[pick]
            row[pick] += 1.0
            row -= factor[:step, pick] @ factor[:step]
            factor[step] = row / np.sqrt(diag[pick])
            left -= factor[step] * (left[pick] / np.sqrt(diag[pick]))
            diag -= factor[step] ** 2
            self._try(np.array(chosen))
        if swap_rounds:
            self._swap(sizes, np.argsort(-np.abs(rows.c))[:CANDIDATES], swap_rounds)

    def round(self, tau: int, b: FloatArray, g: FloatArray) -> None:
        """Try the largest entries of a relaxation's point, then swaps among what it found promising.

        Parameters
        ----------
        tau : int
        b, g : (q,) arrays
            The point and its slope.
        """
        self._try(np.argsort(-np.abs(b))[:tau])
        extra = np.argsort(-np.abs(g))[:CANDIDATES]
        self._swap([tau], np.union1d(extra, np.flatnonzero(b)), 2)

    def _swap(self, sizes: Iterable[int], extra: IntArray, rounds: int) -> None:
        """Try swaps among `extra` and the columns of all incumbents."""
        rows = self.rows
        among = np.unique(np.concatenate([extra, *self.support.values()])).astype(np.int64)
        M, c = rows.matrix(among), rows.c[among]
        best = np.full(len(among) + 1, np.inf)
        masks = np.zeros((len(among) + 1, len(among)), dtype=np.bool_)
        for size, support in self.support.items():
            best[size] = self.best[size]
            masks[size] = np.isin(among, support)
        starts.forward_selection(M, c, rows.yy, min(max(self.best, default=1), len(among)), best, masks)
        for size in sizes:
            starts.improve_by_swaps(M, c, rows.yy, size, best, masks, rounds)
            if size < len(best) and best[size] < self.best.get(size, np.inf):
                self._try(among[masks[size]])

"""h(gamma) by trying every support at every gamma of a dense grid, refined by local search; plain numpy, raw rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.fold_plan import FoldPlan

TIES = 1e-9  # relative: supports that may be tied, of which the best one counts


class EveryGamma:
    """CV errors of every size at any gammas, columns scaled to unit length, an intercept in every fold.

    Parameters
    ----------
    X, y : (n, p), (n,) arrays
    folds : FoldPlan
    taus : list of int
    """

    def __init__(self, X: FloatArray, y: FloatArray, folds: FoldPlan, taus: list[int]) -> None:
        Z = X - X.mean(axis=0)
        Z = Z / np.linalg.norm(Z, axis=0)
        self.n = folds.scored
        self.folds = []
        for fold in range(folds.k):
            train, test = folds.train_rows(fold), folds.scored_rows(fold)
            A, mean, t = Z[train] - Z[train].mean(axis=0), Z[train].mean(axis=0), y[train] - y[train].mean()
            by_tau = []
            for tau in taus:
                supports = np.array(list(combinations(range(X.shape[1]), tau)))
                U, s, Vt = np.linalg.svd(np.moveaxis(A[:, supports], 1, 0), full_matrices=False)
                part = np.einsum("lnk,n->lk", U, t) * s
                held = np.einsum("mls,lks->lmk", (Z[test] - mean)[:, supports], Vt) * part[:, None, :]
                by_tau.append((s * s, part * part, held))
            self.folds.append((t @ t, y[test] - y[train].mean(), by_tau))
        self.taus = taus

    def h(self, gammas: FloatArray, worst: bool = False) -> FloatArray:
        """(T, G): the CV errors; of supports that are tied the best, or the worst."""
        out = np.zeros((len(self.taus), len(gammas)))
        for yy, r, by_tau in self.folds:
            for t, (square, part, held) in enumerate(by_tau):
                inverse = 1.0 / (square[:, None, :] + gammas[None, :, None] / 2.0)
                f = yy - np.einsum("lk,lgk->lg", part, inverse)
                error = ((r[None, :, None] - np.einsum("lmk,lgk->lmg", held, inverse)) ** 2).sum(axis=1)
                tied = f <= f.min(axis=0) * (1.0 + TIES)
                most, least = np.where(tied, error, -np.inf).max(axis=0), np.where(tied, error, np.inf).min(axis=0)
                out[t] += most if worst else least
        return out / self.n

    def least(self, low: float, high: float, points: int = 2000, rounds: int = 12) -> float:
        """Least CV error of any tau on an interval: a dense grid, then finer ones around its best places."""
        gammas = np.geomspace(low, high, points)
        h = self.h(gammas)
        best = float(h.min())
        for place in np.argsort(h.min(axis=0))[:3]:
            a, b = gammas[max(place - 1, 0)], gammas[min(place + 1, points - 1)]
            for _ in range(rounds):
                inner = np.linspace(a, b, 21)
                found = self.h(inner).min(axis=0)
                best = min(best, float(found.min()))
                at = int(found.argmin())
                a, b = inner[max(at - 1, 0)], inner[min(at + 1, 20)]
        return best

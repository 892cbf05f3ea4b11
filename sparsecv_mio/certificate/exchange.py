"""Whether a support can be optimal where there are too many to try: one column exchanged for another, in every fold.

With V = M_S^{-1}, B = V G_S. and b the fit of S, dropping j and adding i changes the objective by (theory sections 4
and 10)

    b_j^2 / V_jj  -  (e_i + B_ji b_j / V_jj)^2 / (d_i + B_ji^2 / V_jj),     e = c - G b,  d_i = M_ii - G_iS B_i
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.enumeration import SINGULAR, UnitColumns
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.units import TIE_RTOL

EXCHANGE_LIMIT = 2e10  # elementary operations
OTHERS_LIMIT = 20_000  # refits of other supports of the record


class Exchanges:
    """Training objectives of the neighbours of a support, from the moments of all rows less those left out.

    Parameters
    ----------
    design : UnitColumns
        All columns that vary.
    gamma : float
    """

    def __init__(self, design: UnitColumns, gamma: float) -> None:
        self.design, self.gamma = design, gamma
        self.penalty = gamma / 2.0 * design.weight
        Z, t = design.Z, design.t
        root = design.root
        self.sums, self.total, self.weight = root @ Z, float(root @ t), float(root @ root)
        self.moment, self.squares = Z.T @ t, np.einsum("ij,ij->j", Z, Z)
        self._rows: dict[tuple[int, ...], FloatArray] = {}

    def cost(self, supports: list[tuple[int, ...]]) -> float:
        """Elementary operations of all folds, roughly."""
        size = max((len(s) for s in supports), default=0) + 1.0
        n, q = self.design.Z.shape
        return q * size * (len(set(supports)) * n + n + len(supports) * 4.0 * size)

    def beats(self, train: IntArray, other: tuple[int, ...], support: tuple[int, ...]) -> bool:
        """Whether another support fits the training rows better, by more than a tie.

        Parameters
        ----------
        train : int array
            Training rows.
        other, support : tuple of int
            Positions in `design.columns`.
        """
        mine = self.design.refit(support, self.gamma, train).objective
        theirs = self.design.refit(other, self.gamma, train).objective
        return theirs * (1.0 + 2.0 * TIE_RTOL) + self.design.rounding(theirs) < mine

    def best(self, test: IntArray, support: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the best support one column away without the rows `test`; None if, by moments, none is better."""
        S = np.array(support, dtype=np.int64)
        Z, t = self.design.Z[test], self.design.t[test]
        cross = self._full_rows(support) - Z[:, S].T @ Z
        c, d = self.moment - Z.T @ t, self.squares - np.einsum("ij,ij->j", Z, Z)
        if self.design.intercept == "fold":
            root = self.design.root[test]
            n = self.weight - float(root @ root)
            s, y = self.sums - root @ Z, self.total - float(root @ t)
            cross, c, d = cross - np.outer(s[S], s) / n, c - s * (y / n), d - s * s / n
        M = cross[:, S] + np.diag(self.penalty[S])
        values, vectors = np.linalg.eigh(M)
        if values.size and not values[0] > SINGULAR**2 * values[-1]:
            return None
        V = (vectors / values) @ vectors.T
        b, B = V @ c[S], V @ cross
        e, whole = c - cross.T @ b, d + self.penalty
        d = whole - np.einsum("ij,ij->j", cross, B)
        v = np.diag(V)[:, None]
        gain = (e + B * b[:, None] / v) ** 2 / np.maximum(d + B * B / v, SINGULAR * whole)
        change = b[:, None] ** 2 / v - gain
        change[:, S] = np.inf
        change[np.isin(S, self.design.forced)] = np.inf
        if change.size == 0 or not change.min() < 0.0:
            return None
        j, i = np.unravel_index(int(np.argmin(change)), change.shape)
        return tuple(sorted({*support, int(i)} - {int(S[j])}))

    def _full_rows(self, support: tuple[int, ...]) -> FloatArray:
        if support not in self._rows:
            if len(self._rows) > 8:
                self._rows.clear()
            self._rows[support] = self.design.Z[:, list(support)].T @ self.design.Z
        return self._rows[support]


def improvable_folds(
    design: UnitColumns,
    folds: FoldPlan,
    gamma: float,
    supports: list[tuple[int, ...]],
    others: list[tuple[int, ...]],
    wanted: list[int],
) -> Iterator[tuple[int, str]]:
    """Folds whose support is not the best of its neighbours and of other supports, and what beats it.

    Parameters
    ----------
    design : UnitColumns
        All columns that vary.
    folds : FoldPlan
    gamma : float
    supports : list of tuple of int
        One per fold, as sorted positions in `design.columns`.
    others : list of tuple of int
        Of the same size or smaller, tried in every fold as far as `OTHERS_LIMIT` allows, first ones first.
    wanted : list of int
        The folds to check.

    Yields
    ------
    fold, words
    """
    exchanges = Exchanges(design, gamma)
    others = others[: max(1, OTHERS_LIMIT // folds.k)]
    names = [design.dataset.names[j] for j in design.columns.tolist()]
    least = _least_others(design, folds, gamma, others, wanted)
    for fold in wanted:
        support = supports[fold]
        found, train = exchanges.best(folds.left_out(fold), support), folds.train_rows(fold)
        if found is not None and exchanges.beats(train, found, support):
            new, old = set(found) - set(support), set(support) - set(found)
            yield fold, f"{names[new.pop()]} in place of {names[old.pop()]} has a smaller training objective"
            continue
        other = least.get(fold)
        if other is not None and other != support and exchanges.beats(train, other, support):
            listed = ", ".join(names[j] for j in other)
            yield fold, f"{listed}: another support of the record, has a smaller training objective"


def _least_others(
    design: UnitColumns, folds: FoldPlan, gamma: float, others: list[tuple[int, ...]], wanted: list[int]
) -> dict[int, tuple[int, ...]]:
    """For every fold the one of some supports with the least training objective, by refits of the training rows."""
    if len(others) < 2:
        return dict.fromkeys(range(folds.k), others[0]) if others else {}
    best: dict[int, tuple[int, ...]] = {}
    for fold in wanted:
        train = folds.train_rows(fold)
        values = [design.refit(other, gamma, train).objective for other in others]
        best[fold] = others[int(np.argmin(values))]
    return best

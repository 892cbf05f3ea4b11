"""Held-out errors of listed supports, and the statements that carry a tree to the folds of a pair."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Array
from .fits import Fits, Parts, Penalty, fits
from .moments import Design, Moments
from .reading import integers, need, support
from .tree import Tree


class Scores(NamedTuple):
    """Of L supports in one fold, or of one support in K folds: intervals of the training objective and of h_N."""

    lower: Array
    upper: Array
    held_low: Array
    held_high: Array

    @staticmethod
    def joined(parts: list[Scores]) -> Scores:
        """Stack the scores of several supports in the same folds."""
        return Scores(*(np.stack(ends) for ends in zip(*parts, strict=True)))


class Residuals(NamedTuple):
    """Residuals of some rows and their leverages, each off by at most its error."""

    rest: Array
    error: Array
    leverage: Array
    leverage_error: Array


class Folds:
    """The folds of a proof: rows that each leaves out of its training, and rows it scores."""

    def __init__(self, design: Design, left: list[list[int]], scored: list[list[int]]) -> None:
        self.design, self.left, self.scored = design, left, scored
        self.count = sum(map(len, scored))
        need(self.count > 0, "no fold scores a row")
        self.moments = lru_cache(maxsize=len(left) + 1)(self._moments)
        self.penalty = lru_cache(maxsize=64)(lambda gamma: Penalty.of(design, gamma))
        both = zip(left, scored, strict=True)
        self.alone = np.array([len(rows) == 1 and rows == other for rows, other in both], dtype=bool)
        self.one_row = lru_cache(maxsize=100_000)(self._one_row)
        self.several = lru_cache(maxsize=100_000)(self._several)
        self.columns = lru_cache(maxsize=64)(self._columns)

    def _moments(self, fold: int) -> Moments:
        return self.design.of_rows([] if fold < 0 else self.left[fold])

    def _rows(self, rows: list[int], columns: Array, m: Moments) -> tuple[Array, Array, Any]:
        """Return some rows of some columns about the centre of m, their targets, and the error of every entry."""
        Z = self.design.Z[rows] - m.center
        return Z[:, columns], Z[:, -1], m.center_error + 2 * self.design.kind.u

    def _residuals(self, rows: list[int], columns: Array, found: Fits, i: int, m: Moments) -> Residuals:
        """Return what fit i leaves of some rows, and their leverages without the intercept's share."""
        kind, a = self.design.kind, len(columns)
        u, (X, y, off) = kind.u, self._rows(rows, columns, m)
        if not a:
            return Residuals(y, 0 * y + off, 0 * y, 0 * y)
        s, reach, norm, far = abs(found.beta[i]).sum(), abs(X).sum(1) * (1 + (a + 4) * u), found.norm[i], found.far[i]
        W = kind.product(X, found.V[i])
        rounded = (a + 4) * u * reach * norm  # of an entry of W
        size = (abs(W).sum(1) + a * rounded) / (1 - far) * (1 + (a + 8) * u)  # sum of |x'V|, V the true inverse
        moved = (size + a * off * norm) * found.rest[i] * (1 + 8 * u)
        rest = y - kind.product(X, found.beta[i][:, None])[:, 0]
        h_error = size * far * abs(X).max(1) + reach * rounded + 2 * off * size + off**2 * a * a * norm
        error = (off + (a + 6) * u) * (1 + s) + moved
        return Residuals(*map(kind.finite, (rest, error, (W * X).sum(1), h_error * (1 + 8 * u))))

    def _leverages(self, found: Residuals) -> tuple[Array, Array]:
        """Return the leverages of rows with the intercept's share, and their errors."""
        u, one = self.design.kind.u, self.design.kind.of(np.array([1.0]))[0]
        share = one / self.design.n if self.design.intercept == "fold" else 0 * one
        return found.leverage + share, found.leverage_error + 4 * u

    def _one_row(self, gamma: float, columns: tuple[int, ...]) -> Scores:
        """Score a support in all folds of one row, by the leave-one-out identities (theory section 5)."""
        design, u, m = self.design, self.design.kind.u, self.moments(-1)
        sets = np.array([columns], dtype=np.int64)
        found = fits(Parts.of(m, self.penalty(gamma), sets), design.kind)
        rows = [self.left[k][0] for k in np.flatnonzero(self.alone).tolist()]
        left = self._residuals(rows, sets[0], found, 0, m)
        rest, error, (h, h_error) = left.rest, left.error, self._leverages(left)
        least, most = np.maximum(abs(rest) - error, 0 * rest), abs(rest) + error
        short = np.maximum(1 - np.maximum(h - h_error, 0 * h), 0 * h)
        tall = 1 - (h + h_error)
        sound = tall * 2**20 > 1
        safe = np.where(sound, tall, 0 * tall + 1)
        short = np.where(short > 0, short, 0 * short + 1)
        gain_low, gain_high = least**2 / short * (1 - 8 * u), most**2 / safe * (1 + 8 * u)
        lower = np.where(sound, found.lower[0] - gain_high - 4 * u, 0 * gain_high)
        upper = found.upper[0] - gain_low + 4 * u
        held_low, held_high = gain_low / short * (1 - 4 * u), gain_high / safe * (1 + 4 * u)
        infinite = np.full(len(h), np.inf, dtype=object if u == 0 else float)
        return Scores(lower, upper, held_low, np.where(sound, held_high, infinite))

    def _several(self, gamma: float, fold: int, supports: tuple[tuple[int, ...], ...]) -> Scores:
        """Score supports of one size in one fold, each by its own fit there."""
        kind, m = self.design.kind, self.moments(fold)
        sets = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
        found = fits(Parts.of(m, self.penalty(gamma), sets), kind)
        low, high = [], []
        for i in range(len(supports)):
            left = self._residuals(self.scored[fold], sets[i], found, i, m)
            rest, error = left.rest, left.error
            size = (len(rest) + 8) * kind.u
            low.append((np.maximum(abs(rest) - error, 0 * rest) ** 2).sum() * (1 - size))
            high.append(((abs(rest) + error) ** 2).sum() * (1 + size))
        return Scores(found.lower, found.upper, np.array(low), np.array(high))

    def upper(self, gamma: float, folds: list[int], columns: tuple[int, ...]) -> Array:
        """Return upper bounds of the training objective of a support without each of some folds.

        Parameters
        ----------
        gamma : float
        folds : list of int
        columns : tuple of int
            The support.
        """
        if all(self.alone[folds]):
            return self.one_row(gamma, columns).upper[(np.cumsum(self.alone) - 1)[folds]]
        at = np.array(columns, dtype=np.int64)
        parts = Parts.of_rows([self.moments(fold) for fold in folds], self.penalty(gamma), at)
        return fits(parts, self.design.kind).upper

    def _columns(self, gamma: float) -> tuple[Any, Array, Array]:
        """Return a lower bound of f(all columns) on all rows and, for every row, bounds of |e| and of the leverage."""
        design, m = self.design, self.moments(-1)
        sets = np.arange(design.q)[None, :]
        found = fits(Parts.of(m, self.penalty(gamma), sets), design.kind)
        left = self._residuals(list(range(design.n)), sets[0], found, 0, m)
        h, h_error = self._leverages(left)
        return found.lower[0], abs(left.rest) + left.error, h + h_error

    def left_out_threshold(self, gamma: float, above: Any, fold: int) -> Any:
        """Return T so that `f >= above` on all rows gives `f^(-N) >= T`, by the joint test at all columns; 0 for none.

        `f^(-N) >= g - (|e_N| + sqrt(eta (g - f_A)))^2 / (1 - eta)` for `g = f(S)`, which grows with g from
        `sqrt(g - f_A) = |e_N| sqrt(eta) / (1 - 2 eta)` on.

        Parameters
        ----------
        gamma : float
        above : number
            Threshold on all rows.
        fold : int
        """
        kind, rows = self.design.kind, self.left[fold]
        base, e, h = self.columns(gamma)
        size = 1 + (len(rows) + 4) * kind.u
        eta, square = h[rows].sum() * size, (e[rows] ** 2).sum() * size
        further = (above - base) * (1 + 2 * kind.u)
        if not (eta * 2 < 1 and further > 0):
            return 0 * kind.u
        if further * (1 - 2 * eta) ** 2 * (1 - 16 * kind.u) < square * eta * (1 + 16 * kind.u):
            return 0 * kind.u
        cross = kind.root_above(np.array([square * eta * further * (1 + 8 * kind.u)]))[0]
        lost = (square + 2 * cross + eta * further) / (1 - eta) * (1 + 32 * kind.u)
        return above - lost - 8 * kind.u * (abs(above) + lost)


class Cells:
    """Intervals of h_N of the folds of one pair, in scaled units; they only tighten."""

    def __init__(self, folds: Folds, gamma: float, tau: int) -> None:
        self.folds, self.gamma, self.tau = folds, gamma, tau
        kind, k = folds.design.kind, len(folds.left)
        self.low, self.high = [0 * kind.u] * k, [np.inf] * k
        self.by: dict[str, int] = {}

    def add(self, part: dict[str, Any], trees: list[Tree], g: int) -> None:
        """Take in one statement of the proof about some folds.

        Parameters
        ----------
        part : dict
            The statement.
        trees : list of Tree
            Those that hold.
        g : int
            Index of the gamma.
        """
        mine = integers(part.get("folds", [*range(len(self.low))]), 0, len(self.low), "the folds of a statement")
        need(len(set(mine)) == len(mine), "a statement names a fold twice")
        word = part["by"]
        if word == "own":
            named = integers(part["trees"], 0, len(trees), "the trees of a statement")
            need(len(named) == len(mine), "a statement needs a tree for each of its folds")
            for fold, i in zip(mine, named, strict=True):
                need(trees[i].rows == fold, "a statement names the tree of other rows")
                self._decide([fold], self._tree(trees[i], g), lambda fold, above: above)
        elif word in ("list", "loss"):
            tree = self._tree(trees[integers([part["tree"]], 0, len(trees), "the tree of a statement")[0]], g)
            need(tree.rows == -1, "a statement names a tree that is not of all rows")
            if word == "list":
                design = self.folds.design
                need(design.n > 0, "no rows")
                self._decide(mine, tree, lambda fold, above: self.folds.left_out_threshold(self.gamma, above, fold))
            else:
                self._loss(mine, tree, part)
        else:
            need(False, f"{word!r} is no statement of this format")
        self.by[word] = self.by.get(word, 0) + len(mine)

    def _tree(self, tree: Tree, g: int) -> Tree:
        need(tree.gamma == g and tree.first <= self.tau < tree.first + len(tree.above), "a tree is of other pairs")
        return tree

    def _scores(self, mine: list[int], supports: list[tuple[int, ...]]) -> Scores:
        """Score supports (L) in folds (K): arrays (L, K)."""
        folds = self.folds
        need(supports, "no support is listed where one is needed")
        number = np.cumsum(folds.alone) - 1
        alone = all(folds.alone[fold] for fold in mine)
        if alone:
            place = number[mine]
            return Scores.joined([Scores(*(end[place] for end in folds.one_row(self.gamma, s))) for s in supports])
        found = [folds.several(self.gamma, fold, tuple(supports)) for fold in mine]
        return Scores(*(np.stack(ends, axis=1) for ends in zip(*found, strict=True)))

    def _decide(self, mine: list[int], tree: Tree, threshold: Any) -> None:
        """Enclose h_N by all listed supports that may be optimal, where no other one can be."""
        supports = tree.listed[self.tau]
        scores = self._scores(mine, supports)
        above = tree.above[self.tau - tree.first]
        for k, fold in enumerate(mine):
            best = min(scores.upper[:, k].tolist())
            need(best < threshold(fold, above), f"the list of a tree does not decide fold {fold}")
            optimal = [i for i in range(len(supports)) if scores.lower[i, k] <= best]
            self.low[fold] = max(self.low[fold], min(scores.held_low[i, k] for i in optimal))
            self.high[fold] = min(self.high[fold], max(scores.held_high[i, k] for i in optimal))

    def _loss(self, mine: list[int], tree: Tree, part: dict[str, Any]) -> None:
        """Bound h_N by what the fit without N leaves on all rows, or where its support is listed by its own error."""
        folds, u = self.folds, self.folds.design.kind.u
        chosen = [support(values, folds.design.q) for values in part["supports"]]
        need(all(len(found) <= self.tau for found in chosen), "a support is larger than tau")
        which = integers(part.get("which", [0] * len(mine)), 0, len(chosen), "the supports of a statement")
        need(len(which) == len(mine), "a statement needs a support for each of its folds")
        above, listed = tree.above[self.tau - tree.first], tree.listed[self.tau]
        for i, found in enumerate(chosen):
            those = [fold for fold, number in zip(mine, which, strict=True) if number == i]
            if those:
                upper = folds.upper(self.gamma, those, found)
                low = above - upper - 4 * u * (abs(above) + abs(upper))
                if listed:
                    scores = self._scores(those, listed)
                    possible = (scores.lower <= upper).astype(bool)
                    low = np.minimum(low, np.where(possible, scores.held_low, low).min(0))
                for fold, value in zip(those, low.tolist(), strict=True):
                    if set(folds.left[fold]) == set(folds.scored[fold]):
                        self.low[fold] = max(self.low[fold], value)

    def interval(self) -> tuple[Any, Any]:
        """Return the interval of h, per scored row, in units of the file."""
        design, u = self.folds.design, self.folds.design.kind.u
        unit, size = design.y_unit**2, (len(self.low) + 8) * u
        low = sum(self.low) * (1 - size) / self.folds.count * unit
        high = np.inf if np.inf in self.high else sum(self.high) * (1 + size) / self.folds.count * unit
        return low, high


def least_of(folds: Folds, tree: Tree, gamma: float, tau: int) -> Any:
    """Return a lower bound of the training objective over all supports of a size: those listed, and the others.

    Parameters
    ----------
    folds : Folds
    tree : Tree
        Of some rows.
    gamma : float
    tau : int
        The size.
    """
    supports, above = tree.listed[tau], tree.above[tau - tree.first]
    if not supports:
        return above
    sets = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
    found = fits(Parts.of(folds.moments(tree.rows), folds.penalty(gamma), sets), folds.design.kind)
    return min(above, min(found.lower.tolist()))

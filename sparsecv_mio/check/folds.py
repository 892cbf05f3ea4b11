"""Listed supports in the folds: their training objectives and held-out errors; what a tree on all rows says there."""

from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Array
from .fits import Fits, fits, leverages, residuals
from .moments import Design, Moments
from .reading import need
from .tree import Tree, blocks

Support = tuple[int, ...]


class Scores(NamedTuple):
    """Of L supports in K folds (K, L): intervals of the training objective and of the held-out error h_N."""

    lower: Array
    upper: Array
    held_low: Array
    held_high: Array


class Folds:
    """The folds of a proof, rows that each leaves out and rows it scores; the trees that hold; cells by statement."""

    def __init__(self, design: Design, left: list[list[int]], scored: list[list[int]]) -> None:
        self.design, self.left, self.scored = design, left, scored
        self.trees, self.by, self.count = list[Tree](), Counter[str](), sum(map(len, scored))
        need(self.count > 0, "no fold scores a row")
        self.same = np.array([set(rows) == set(other) for rows, other in zip(left, scored, strict=True)], dtype=bool)
        self.alone = self.same & np.array([len(rows) == 1 for rows in left], dtype=bool)
        self.moments = lru_cache(maxsize=len(left) + 1)(lambda fold: design.of_rows([] if fold < 0 else left[fold]))
        self.penalty = lru_cache(maxsize=64)(design.penalty)
        self.columns = lru_cache(maxsize=64)(self._columns)

    def _rows(self, rows: list[int], center: Array, sets: Array, *several: Moments) -> tuple[Array, Array, Any]:
        """Return columns of some rows about the centres of moments, their targets, and the error of every entry."""
        Z = self.design.Z[rows] - center
        return Z[:, :-1][:, sets], Z[:, -1], max(m.center_error for m in several) + 2 * self.design.kind.u

    def _by_rows(self, found: Fits, rows: tuple[Array, Array, Any]) -> tuple[Array, Array, Array, Array]:
        """Return bounds of |residual| and of leverages, with the share of the intercept, of rows of the training."""
        kind, n = self.design.kind, self.design.n
        share = kind.of(np.ones(1))[0] / n if self.design.intercept == "fold" else 0 * kind.u
        low, high = leverages(found, rows[0], rows[2], kind)
        least, most = residuals(found.beta, found.excess, kind.root_above(high), rows, kind)
        return least, most, low + (share - 4 * kind.u), high + (share + 4 * kind.u)

    def scores(self, gamma: float, mine: list[int], supports: list[Support]) -> Scores:
        """Score supports of one size (L) in some folds (K).

        Parameters
        ----------
        gamma : float
        mine : list of int
            The folds.
        supports : list of tuple of int
        """
        sets = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
        alone, a = self.alone[mine].all(), sets.shape[1] + 4
        parts = blocks(np.arange(len(sets)), len(mine) * a * (1 if alone else a))
        found = [(self._alone if alone else self._several)(gamma, mine, sets[part]) for part in parts]
        return Scores(*(np.concatenate(ends, axis=1) for ends in zip(*found, strict=True)))

    def _alone(self, gamma: float, mine: list[int], sets: Array) -> Scores:
        """Score supports in folds of one row, by the leave-one-out identities from the fit on all rows."""
        kind, u, m, found = self.design.kind, self.design.kind.u, self.moments(-1), self.fits(gamma, [-1], sets)
        rows = self._rows([self.left[fold][0] for fold in mine], m.center, sets, m)
        least, most, h_low, h_high = self._by_rows(found, rows)
        short, tall = 1 - np.maximum(h_low, 0 * h_low), 1 - h_high
        sound = (tall * 2**20 > 1).astype(bool)
        safe, short = np.where(sound, tall, 0 * tall + 1), np.where(short > 0, short, 0 * short + 1)
        gain_low, gain_high = -kind.above(-(least**2) / short) * (1 - 8 * u), kind.above(most**2 / safe) * (1 + 8 * u)
        lower, upper = np.where(sound, found.lower - gain_high - 4 * u, 0 * gain_high), found.upper - gain_low + 4 * u
        held_low, held_high = -kind.above(-gain_low / short) * (1 - 4 * u), kind.above(gain_high / safe) * (1 + 4 * u)
        return Scores(lower, upper, held_low, np.where(sound, held_high, np.inf))

    def _several(self, gamma: float, mine: list[int], sets: Array) -> Scores:
        """Score supports in folds, each by its own fit there."""
        kind, shape, several = self.design.kind, (len(mine), len(sets)), [self.moments(fold) for fold in mine]
        found, rows = self.fits(gamma, mine, sets), [row for fold in mine for row in self.scored[fold]]
        place = np.repeat(np.arange(len(mine)), [len(self.scored[fold]) for fold in mine])
        held = self._rows(rows, np.stack([m.center for m in several])[place], sets, *several)
        beta, excess, norm = (field.reshape(*shape, *field.shape[1:])[place] for field in found[2:5])
        reach = kind.inner(abs(held[0]), norm) + held[2] * norm.sum(-1)
        least, most = residuals(beta, excess, reach, held, kind)
        sums, size = kind.of(np.arange(len(mine))[:, None] == place), (len(rows) + 8) * kind.u
        low, high = kind.product(sums, least**2) * (1 - size), kind.product(sums, most**2) * (1 + size)
        return Scores(found.lower.reshape(shape), found.upper.reshape(shape), low, high)

    def fits(self, gamma: float, mine: list[int], sets: Array) -> Fits:
        """Fit every support `sets` (L, a) on the training rows of every fold (K), -1 for all rows: K L fits.

        Parameters
        ----------
        gamma : float
        mine : list of int
            The folds.
        sets : (L, a) array
        """
        return fits([self.moments(fold) for fold in mine], self.penalty(gamma), sets, self.design.kind)

    def objectives(self, gamma: float, supports: list[Support]) -> tuple[Array, Array]:
        """Return bounds of the objective of supports of one size on all rows."""
        sets = np.array(supports, dtype=np.int64).reshape(len(supports), -1)
        found = [self.fits(gamma, [-1], sets[part]) for part in blocks(np.arange(len(sets)), sets.shape[1] ** 2)]
        return np.concatenate([one.lower for one in found]), np.concatenate([one.upper for one in found])

    def _columns(self, gamma: float) -> tuple[Any, Array, Array]:
        """Return a lower bound of f(all columns) on all rows and, of every fold, bounds of eta and |e_N|^2."""
        kind, m, every = self.design.kind, self.moments(-1), np.arange(len(self.design.scale))[None, :]
        found, rows = self.fits(gamma, [-1], every), self._rows(list(range(self.design.n)), m.center, every, m)
        _, most, _, high = self._by_rows(found, rows)
        both = np.concatenate([high, most**2], axis=1)
        sums = np.array([both[rows].sum(0) * (1 + (len(rows) + 4) * kind.u) for rows in self.left])
        return found.lower[0], sums[:, 0], sums[:, 1]

    def left_out_thresholds(self, gamma: float, above: Any, mine: list[int]) -> Array:
        """Return T (K,) so that `f >= above` on all rows gives `f^(-N) >= T`, by the test at all columns; 0 for none.

        `f^(-N) >= g - (|e_N| + sqrt(eta (g - f_A)))^2 / (1 - eta)` for `g = f(S)`, which grows with g from
        `sqrt(g - f_A) = |e_N| sqrt(eta) / (1 - 2 eta)` on.

        Parameters
        ----------
        gamma : float
        above : number
            Threshold on all rows.
        mine : list of int
            The folds.
        """
        kind, u = self.design.kind, self.design.kind.u
        base, eta, square = self.columns(gamma)
        eta, square = eta[mine], square[mine]
        further = (above - base) * (1 + 2 * u)
        sound = (eta * 2 < 1) & (further > 0)
        sound &= further * (1 - 2 * eta) ** 2 * (1 - 16 * u) >= square * eta * (1 + 16 * u)
        sound = sound.astype(bool)
        if not sound.any():
            return 0 * eta
        cross = kind.root_above(square * eta * max(further, 0 * further) * (1 + 8 * u))
        lost = (square + 2 * cross + eta * further) / np.where(sound, 1 - eta, 0 * eta + 1) * (1 + 32 * u)
        return np.where(sound, above - lost - 8 * u * (abs(above) + lost), 0 * lost)

"""What is known of every cell (gamma, tau, fold), and what the sums over folds say of every pair (gamma, tau)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.errors import Contradiction
from sparsecv_mio.problem.problem import FloatArray

BoolArray = NDArray[np.bool_]
Where = tuple[int, int, int]  # gamma, tau, fold
State = dict[str, NDArray[Any]]
STORED = ("lower", "upper", "nominal", "decided", "final", "branched", "support")


class SupportPool:
    """Distinct supports by number; number 0 is the empty one. Safe to use from several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.supports: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)]
        self._numbers: dict[bytes, int] = {b"": 0}

    def number(self, support: NDArray[np.int64]) -> int:
        """Return the number of a support, giving it one if it is new."""
        columns = np.sort(np.asarray(support, dtype=np.int64))
        key = columns.tobytes()
        with self.lock:
            if key not in self._numbers:
                self._numbers[key] = len(self.supports)
                self.supports.append(columns)
            return self._numbers[key]


@dataclass(frozen=True, eq=False)
class CellTable:
    """Intervals of the held-out sum of squares by (gamma, tau, fold), in standard units; filled in place by the search.

    Attributes
    ----------
    lower, upper : (G, T, K) arrays
        `lower <= h_j <= upper` for every optimum of the cell.
    nominal : (G, T, K) array
        Held-out sum of squares of the support in `support`.
    ties : dict of (gamma, tau, fold) to float
        Width of a decided cell that is due to ties; cells without are left out.
    decided, final, branched : (G, T, K) bool arrays
        Optimal supports completely known; no further work can change the cell; a tree was needed.
    support : (G, T, K) int32 array
        Position in `pool` of the support behind `nominal`.
    pool : SupportPool
        The distinct supports: folds share few.
    """

    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    ties: dict[Where, float]
    decided: BoolArray
    final: BoolArray
    branched: BoolArray
    support: NDArray[np.int32]
    pool: SupportPool

    @classmethod
    def empty(cls, gammas: int, taus: int, folds: int) -> CellTable:
        """Return a table in which nothing is known."""
        shape = (gammas, taus, folds)
        return cls(
            lower=np.zeros(shape),
            upper=np.full(shape, np.inf),
            nominal=np.full(shape, np.inf),
            ties={},
            decided=np.zeros(shape, dtype=bool),
            final=np.zeros(shape, dtype=bool),
            branched=np.zeros(shape, dtype=bool),
            support=np.zeros(shape, dtype=np.int32),
            pool=SupportPool(),
        )

    def settle(
        self, where: Where, support: int, nominal: float, lower: float, upper: float, tie: float
    ) -> None:
        """Store a cell whose optimal supports are completely known; `tie` is the width that ties account for."""
        g, t, fold = where
        self.support[where] = support
        self.nominal[where] = nominal
        self.narrow(g, t, fold, max(lower, 0.0), upper)
        if tie > 0.0:
            self.ties[where] = tie
        self.decided[where] = self.final[where] = True

    def allowances(self, g: int, t: int) -> tuple[float, float]:
        """Tie width and rounding, both sides, in the decided cells of a pair: at least the sum of their widths.

        Summed in the order of the folds, so that it does not depend on who decided them when. O(K).
        """
        width = np.where(self.decided[g, t], self.upper[g, t] - self.lower[g, t], 0.0)
        mine = sorted((where[2], tie) for where, tie in self.ties.items() if where[:2] == (g, t))
        tie = float(np.array([tie for _, tie in mine]).sum())
        return tie, max(float(width.sum()) - tie, 0.0)

    def narrow(self, g: int, t: int, fold: int, lower: float, upper: float) -> None:
        """Tighten the interval of a cell; bounds only ever tighten.

        Raises
        ------
        Contradiction
            If the new interval misses the old one by more than rounding.
        """
        low, high = max(self.lower[g, t, fold], lower), min(self.upper[g, t, fold], upper)
        if low > high:
            if low > high * (1.0 + 1e-7) + 1e-300:
                where = f"cell (gamma {g}, tau {t}, fold {fold})"
                raise Contradiction(f"{where}: lower bound {low!r} exceeds upper bound {high!r}")
            low = high
        self.lower[g, t, fold], self.upper[g, t, fold] = low, high

    def archive(self) -> State:
        """What is known, as arrays."""
        where = sorted(self.ties)
        return {name: getattr(self, name) for name in STORED} | {
            "ties": np.array(where, dtype=np.int64).reshape(-1, 3),
            "tie_width": np.array([self.ties[place] for place in where]),
            "pool_sizes": np.array([len(support) for support in self.pool.supports], dtype=np.int64),
            "pool_columns": np.concatenate(self.pool.supports).astype(np.int64),
        }

    def fill(self, state: State) -> None:
        """The inverse of `archive`, for an empty table of the same shape."""
        for name in STORED:
            getattr(self, name)[...] = state[name]
        for (g, t, fold), width in zip(state["ties"].tolist(), state["tie_width"].tolist(), strict=True):
            self.ties[g, t, fold] = width
        ends = np.cumsum(state["pool_sizes"])
        for support in np.split(state["pool_columns"], ends[:-1]):
            self.pool.number(support)


@dataclass(frozen=True, eq=False)
class PairBounds:
    """Sums over folds by (gamma, tau): `lower <= sum_j h_j <= upper`; `best` indexes the smallest upper sum."""

    lower: FloatArray
    upper: FloatArray
    nominal: FloatArray
    best: tuple[int, int]
    cells: CellTable

    @property
    def floor(self) -> float:
        """Certified lower bound of the smallest h over the grid."""
        return float(self.lower.min())

    @property
    def ceiling(self) -> float:
        """Certified upper bound of the reported pair's h."""
        return float(self.upper[self.best])

    def allowances(self) -> tuple[float, float]:
        """Tie width and rounding allowance of the certificate: those of the pair that attains the lower bound.

        With every cell decided, `upper[best] <= upper[lowest] = lower[lowest] + ties + rounding`.
        """
        g, t = (int(i) for i in np.unravel_index(int(np.argmin(self.lower)), self.lower.shape))
        tie, rounding = self.cells.allowances(g, t)
        # what the difference of the sums may lose: ties can make the upper one much the larger
        size = self.ceiling if np.isfinite(self.ceiling) else float(self.lower[g, t])
        return tie, rounding + 1e-14 * size

    def proved(self, gap: float) -> bool:
        """Whether `upper - lower <= gap * upper + tie_width + allowance`."""
        tie, allowance = self.allowances()
        return bool(np.isfinite(self.ceiling)) and self.ceiling - self.floor <= gap * self.ceiling + tie + allowance


def pair_bounds(cells: CellTable, gammas: FloatArray, taus: NDArray[np.int64]) -> PairBounds:
    """Sum the cells over folds; ties between pairs go to the smallest tau, then the largest gamma. O(G T K)."""
    upper = cells.upper.sum(axis=2)
    low = upper.min()
    rows, cols = np.nonzero(upper <= low * (1.0 + 1e-15) if np.isfinite(low) else upper == low)
    pick = np.lexsort((-gammas[rows], taus[cols]))[0]
    best = (int(rows[pick]), int(cols[pick]))
    if not np.isfinite(low):
        nominal = cells.nominal.sum(axis=2)
        place = np.unravel_index(int(np.argmin(nominal)), nominal.shape)
        best = (int(place[0]), int(place[1]))
    return PairBounds(
        lower=cells.lower.sum(axis=2),
        upper=upper,
        nominal=cells.nominal.sum(axis=2),
        best=best,
        cells=cells,
    )

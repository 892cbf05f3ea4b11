"""What `compute_bounds` returns: certified intervals, or the printed (invalid) ones as estimates, by cell.

The two tables are different types on purpose. A `BoundsTable` hands out `Interval`s, which may prune; a `PrintedTable`
holds estimates and has no method that makes an `Interval` of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.bounds.fold import OUTWARD, Origin
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.units import CROSSING_RTOL, Interval

SCHEMA = "sparsecv-bounds/1"


@dataclass(frozen=True, eq=False)
class _Grid:
    """Axes that both tables share; arrays are (gammas, taus, folds) in squared standard units."""

    gammas: tuple[float, ...]
    taus: tuple[int, ...]
    folds: int
    rows: float  # that some fold holds out, by their weights
    unit: float  # squared: what turns a squared standard unit into the file's
    seconds: FloatArray  # (gammas,) wall time, all threads together
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray
    which: str
    certified: ClassVar[bool]

    @property
    def per_row(self) -> float:
        """What turns a sum over folds into h in units of the file."""
        return self.unit / self.rows

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        """Return what the record says of h at a pair."""
        raise NotImplementedError

    def _bound(self, where: tuple[int, int, int]) -> str:
        """Return the name of the bound of one h_j."""
        return self.which

    def to_dict(self) -> dict[str, Any]:
        """Return the record: h and h_j in squared units of the file, an unknown end as null."""
        table, folds = [], []
        for g, t in np.ndindex(len(self.gammas), len(self.taus)):
            pair = {"gamma": self.gammas[g], "tau": self.taus[t]}
            table.append(pair | self._pair(g, t))
            for j in range(self.folds):
                where = (g, t, j)
                ends = _ends(self.lower[where], self.upper[where], self.estimate[where], self.unit)
                folds.append(pair | {"fold": j} | ends | {"bound": self._bound(where)})
        seconds = [{"gamma": gamma, "seconds": float(s)} for gamma, s in zip(self.gammas, self.seconds, strict=True)]
        return {
            "schema": SCHEMA,
            "bounds": self.which,
            "certified": self.certified,
            "seconds": seconds,
            "table": table,
            "folds": folds,
        }


@dataclass(frozen=True, eq=False)
class BoundsTable(_Grid):
    """Certified intervals of every h_j.

    Attributes
    ----------
    lower, upper : (G, T, K) arrays
        `lower <= h_j <= upper`, ties included; inf where nothing is known.
    estimate : (G, T, K) array
        h_j at the relaxation's solution; no bound.
    objective_lower, objective_upper : (G, T, K) arrays
        Around the optimum of the inner problem.
    low_origin, high_origin : (G, T, K) int8 arrays
        Which bound each end comes from, see `Origin`.
    left : (G, T, K) int32 array
        Columns whose membership is open; 0 where the support is decided.
    which : str
    """

    certified: ClassVar[bool] = True

    objective_lower: FloatArray
    objective_upper: FloatArray
    low_origin: NDArray[np.int8]
    high_origin: NDArray[np.int8]
    left: NDArray[np.int32]

    @classmethod
    def empty(
        cls, data: StandardData, folds: FoldPlan, gammas: tuple[float, ...], taus: tuple[int, ...], which: str
    ) -> BoundsTable:
        """Return a table that knows nothing yet.

        Parameters
        ----------
        data : StandardData
        folds : FoldPlan
        gammas, taus : tuples
            The grid.
        which : str
            Word of the bounds.
        """
        shape = (len(gammas), len(taus), folds.k)
        return cls(
            gammas=gammas,
            taus=taus,
            folds=folds.k,
            rows=Scored.of(data.dataset, folds).total,
            unit=data.y_unit**2,
            seconds=np.zeros(len(gammas)),
            lower=np.zeros(shape),
            upper=np.full(shape, np.inf),
            estimate=np.full(shape, np.nan),
            objective_lower=np.zeros(shape),
            objective_upper=np.full(shape, np.inf),
            low_origin=np.full(shape, Origin.TRIVIAL, dtype=np.int8),
            high_origin=np.full(shape, Origin.TRIVIAL, dtype=np.int8),
            left=np.full(shape, data.q, dtype=np.int32),
            which=which,
        )

    def put(self, g: int, fold: int, numbers: FloatArray) -> None:
        """Write one fold and gamma.

        Parameters
        ----------
        g, fold : int
        numbers : (T, 8) array
            A row of `FoldBounds.numbers` for every tau.
        """
        columns: tuple[NDArray[Any], ...] = (
            self.objective_lower, self.objective_upper, self.lower, self.upper, self.low_origin, self.high_origin,
            self.estimate, self.left,
        )  # fmt: skip
        for place, column in enumerate(columns):
            column[g, :, fold] = numbers[:, place]

    def raise_lower(self, g: int, floor: FloatArray, origin: Origin) -> None:
        """Raise the lower ends of a gamma where a floor is higher.

        Parameters
        ----------
        g : int
        floor : (T, K) array
        origin : Origin
            Where the floor comes from.

        Raises
        ------
        Contradiction
            If a floor exceeds an upper end by more than rounding.
        """
        upper = self.upper[g]
        if np.any(floor > upper * (1.0 + CROSSING_RTOL)):
            t, fold = (int(i) for i in np.argwhere(floor > upper * (1.0 + CROSSING_RTOL))[0])
            raise Contradiction(
                f"gamma {self.gammas[g]:g}, tau {self.taus[t]}, fold {fold}: "
                f"lower bound {floor[t, fold]!r} exceeds upper bound {upper[t, fold]!r}"
            )
        higher = floor > self.lower[g]
        self.lower[g] = np.where(higher, np.minimum(floor, upper), self.lower[g])
        self.low_origin[g][higher] = origin

    def interval(self, g: int, t: int, fold: int) -> Interval:
        """Certified interval of one h_j, in squared standard units.

        Parameters
        ----------
        g, t, fold : int
            Indices of gamma and tau, and the fold.
        """
        return Interval(float(self.lower[g, t, fold]), float(self.upper[g, t, fold]))

    def cv_interval(self, g: int, t: int) -> Interval:
        """Certified interval of h(gamma, tau), in squared units of the file."""
        slack = OUTWARD + 2.0**-52 * self.folds
        low, high = self.lower[g, t].sum(), self.upper[g, t].sum()
        return Interval(float(low * (1.0 - slack)) * self.per_row, float(high * (1.0 + slack)) * self.per_row)

    def cv_estimate(self, g: int, t: int) -> float:
        """Return h at the relaxations' solutions, in squared units of the file."""
        return float(self.estimate[g, t].sum()) * self.per_row

    def won(self, g: int, t: int) -> str:
        """Return the bounds most of the ends of a pair come from: `exact`, or `lower/upper` where they differ."""
        return bound_name(*(int(np.bincount(x[g, t]).argmax()) for x in (self.low_origin, self.high_origin)))

    def decided(self, g: int, t: int) -> int:
        """Folds whose support is decided."""
        return int((self.left[g, t] == 0).sum())

    def best(self) -> tuple[int, int]:
        """Return the pair (g, t) with the least upper bound of h."""
        g, t = np.unravel_index(np.argmin(self.upper.sum(axis=2)), self.upper.shape[:2])
        return int(g), int(t)

    def minimum(self) -> Interval:
        """Certified interval of the least h of the grid, in squared units of the file."""
        ends = [self.cv_interval(g, t) for g, t in np.ndindex(len(self.gammas), len(self.taus))]
        return Interval(min(end.lower for end in ends), min(end.upper for end in ends))

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        ends = self.cv_interval(g, t)
        return _ends(ends.lower, ends.upper, self.cv_estimate(g, t)) | {"bound": self.won(g, t)}

    def _bound(self, where: tuple[int, int, int]) -> str:
        return bound_name(int(self.low_origin[where]), int(self.high_origin[where]))


@dataclass(frozen=True, eq=False)
class PrintedTable(_Grid):
    """Corollary 2.7 as printed in the paper: estimates, wrong in some cells (docs/theory/bounds.md 6).

    Attributes
    ----------
    lower, upper, estimate : (G, T, K) arrays
        Of h_j, squared standard units.
    """

    certified: ClassVar[bool] = False

    def cv_estimates(self, g: int, t: int) -> tuple[float, float, float]:
        """Return the printed lower and upper end and the relaxation's estimate of h, in squared units of the file."""
        low, high, middle = (float(x[g, t].sum()) * self.per_row for x in (self.lower, self.upper, self.estimate))
        return low, high, middle

    def _pair(self, g: int, t: int) -> dict[str, Any]:
        return _ends(*self.cv_estimates(g, t)) | {"bound": self.which}


def bound_name(low: int, high: int) -> str:
    """Name of the bounds behind the two ends.

    Examples
    --------
    >>> bound_name(Origin.EXACT, Origin.EXACT), bound_name(Origin.TRAINING, Origin.CONIC)
    ('exact', 'training/conic')
    """
    names = Origin(low).name.lower(), Origin(high).name.lower()
    return names[0] if names[0] == names[1] else "/".join(names)


def _ends(lower: float, upper: float, estimate: float, unit: float = 1.0) -> dict[str, float | None]:
    values = {"lower": lower, "upper": upper, "estimate": estimate}
    return {name: float(x) * unit if math.isfinite(x) else None for name, x in values.items()}

"""The gamma step: with the supports of the folds fixed, h is a smooth function of gamma (theory section 7).

One eigen-decomposition per fold, `W^{-1/2} (X_S'X_S) W^{-1/2} = U diag(d) U'`, writes the prediction of every held-out
row as `r_mean + sum_k B_k / (d_k + lam)`; h and its derivatives then cost O(n tau) for all folds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import IntArray
from sparsecv_mio.data.folds import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.accumulate import training_moments
from sparsecv_mio.search.state.state import SearchState

LEAST, MOST = 1e-3, 10.0  # the interval of the paper
STARTS = 7
PROGRESS = 1e-9  # relative fall of the CV error below which a move is no improvement
FLAT = 1e-12  # relative width in log gamma at which a root is found


def log_uniform(least: float, most: float) -> list[float]:
    """Return the ends of an interval and the seven points that divide it evenly in log gamma."""
    return [least, *np.geomspace(least, most, STARTS + 2)[1:-1].tolist(), most]


@dataclass(frozen=True)
class GammaPoint:
    """A gamma and the sum of h_j there, standard units squared, supports as they are."""

    gamma: float
    total: float


class GammaCurve:
    """The sum of h_j as a function of gamma for fixed supports.

    Parameters
    ----------
    data, folds : StandardData, FoldPlan
    supports : one int array per fold
        Columns in standard coordinates.

    Notes
    -----
    O(k tau^3 + n tau^2) once, after the moments of the folds; O(n tau) memory.
    """

    def __init__(self, data: StandardData, folds: FoldPlan, supports: Sequence[IntArray]) -> None:
        width = max((len(s) for s in supports), default=0)
        scored = int(folds.starts[-1])
        # the supports may be few columns of many: everything is done among these
        used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *supports])).astype(np.int64)
        place = np.searchsorted(used, np.arange(data.q))
        data = data.only(used)
        self.target = np.empty(scored)
        self.part = np.zeros((scored, width))
        self.pole = np.ones((scored, width))
        for fold, moments in training_moments(data, folds):
            problem = moments.problem(data, 1.0)
            support = place[np.asarray(supports[fold], dtype=np.int64)]
            rows = slice(int(folds.starts[fold]), int(folds.starts[fold + 1]))
            V, self.target[rows] = data.about(folds.scored_rows(fold), problem.v_mean, problem.r_mean)
            if len(support) == 0:
                continue
            root = np.sqrt(problem.weight[support])
            values, vectors = np.linalg.eigh(problem.Q[np.ix_(support, support)] / np.outer(root, root))
            turned = (V[:, support] / root) @ vectors
            self.part[rows, : len(support)] = turned * (vectors.T @ (problem.c[support] / root))
            self.pole[rows, : len(support)] = np.maximum(values, 0.0)

    def at(self, gamma: float) -> tuple[float, float, float]:
        """Sum of h_j, and its first and second derivative by `log gamma`. O(n tau)."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # extreme units: nothing is proposed
            lam = gamma / 2.0
            inverse = 1.0 / (self.pole + lam)
            residual = self.target - (self.part * inverse).sum(axis=1)
            first = (self.part * inverse**2).sum(axis=1)
            second = -2.0 * (self.part * inverse**3).sum(axis=1)
            slope = 2.0 * float(residual @ first)
            bend = 2.0 * float(first @ first + residual @ second)
            return float(residual @ residual), lam * slope, lam * slope + lam * lam * bend

    def minima(self, gamma: float, least: float = LEAST, most: float = MOST) -> list[GammaPoint]:
        """Local minima on `[least, most]` that the starts lead to, best first.

        Parameters
        ----------
        gamma : float
            The gamma before: a start beside seven log-uniform ones and the two ends.
        least, most : float
            The interval to stay in.

        Notes
        -----
        Between neighbouring starts where the slope turns from down to up, its root is found by Newton steps kept inside
        of the bracket by bisection.

        Examples
        --------
        >>> from sparsecv_mio.data.dataset import Dataset
        >>> from sparsecv_mio.data.folds import make_folds
        >>> from sparsecv_mio.data.standard import standardize
        >>> rng = np.random.default_rng(0)
        >>> data = Dataset.from_arrays(rng.normal(size=(20, 3)), rng.normal(size=20))
        >>> curve = GammaCurve(standardize(data), make_folds("4", data), [np.array([0, 2])] * 4)
        >>> best = curve.minima(0.1)[0]
        >>> best.total <= curve.at(0.1)[0]
        True
        """
        ends = np.log([least, most])
        inner = ends[0] + (ends[1] - ends[0]) * (np.arange(STARTS) + 1.0) / (STARTS + 1.0)
        starts = np.unique(np.clip(np.concatenate([ends, inner, [np.log(gamma)]]), *ends))
        slopes = [self.at(float(np.exp(t)))[1] for t in starts]
        found = [float(starts[0])] if slopes[0] >= 0.0 else []
        for (a, down), (b, up) in zip(
            zip(starts, slopes, strict=True), zip(starts[1:], slopes[1:], strict=False), strict=False
        ):
            if down < 0.0 <= up:
                found.append(self._root(float(a), float(b)))
        if slopes[-1] < 0.0:
            found.append(float(starts[-1]))
        exact = {float(ends[0]): least, float(ends[1]): most}  # exp(log(x)) is not x
        gammas = [exact.get(t) or float(np.clip(np.exp(t), least, most)) for t in found]
        points = [GammaPoint(gamma, self.at(gamma)[0]) for gamma in gammas]
        return sorted(points, key=lambda point: (point.total, point.gamma))

    def _root(self, low: float, high: float) -> float:
        """Where the slope turns from down (at `low`) to up (at `high`)."""
        t = 0.5 * (low + high)
        for _ in range(200):
            _, slope, bend = self.at(float(np.exp(t)))
            if slope < 0.0:
                low = t
            else:
                high = t
            if high - low <= FLAT * max(1.0, abs(low)):
                break
            step = t - slope / bend if bend > 0.0 else low
            # a Newton step that leaves the bracket, or barely moves an end, gives way to bisection
            inside = low + 1e-3 * (high - low) < step < high - 1e-3 * (high - low)
            if not inside and bend > 0.0 and abs(step - t) < FLAT:
                return t
            t = step if inside else 0.5 * (low + high)
        return t


def proposals(state: SearchState, at: tuple[int, int], interval: tuple[float, float]) -> list[GammaPoint]:
    """Gammas that lower h at the supports of a solved pair, best first.

    Parameters
    ----------
    state : SearchState
    at : tuple of int
        Indices of gamma and tau.
    interval : tuple of float
        Least and largest gamma.

    Returns
    -------
    list of GammaPoint
    """
    cells, context = state.cells, state.context
    supports: list[IntArray] = [cells.pool.supports[number] for number in cells.support[at].tolist()]
    curve, gamma = GammaCurve(context.data, context.folds, supports), float(context.grid.gammas[at[0]])
    bar = curve.at(gamma)[0] * (1.0 - PROGRESS)
    return [point for point in curve.minima(gamma, *interval) if point.total < bar]

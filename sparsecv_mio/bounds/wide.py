"""One fold with many more columns than training rows: everything from the rows, no q x q matrix."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.fold import OUTWARD, TIE, FoldCell, Origin, Which
from sparsecv_mio.bounds.wide_held_out import Ends, of_all_columns, of_few_columns, squared_error
from sparsecv_mio.bounds.wide_relaxation import ACCURACY, WideRelaxation
from sparsecv_mio.bounds.wide_rows import WideRows
from sparsecv_mio.bounds.wide_supports import WideSupports
from sparsecv_mio.bounds.wide_tree import WideTree
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels.conic import allowance
from sparsecv_mio.kernels.forms import Candidates
from sparsecv_mio.kernels.held_out_interval import blurred
from sparsecv_mio.kernels.screening import screen
from sparsecv_mio.kernels.status import DROPPED, FREE
from sparsecv_mio.problem.elimination import stripped

BEYOND = 1e200  # times the penalty: products that floats cannot square
DENSE_COLUMNS = 300  # survivors of screening that are worth a matrix of their own
SPLIT_GAP, SPLIT_COLUMNS = 0.1, 600  # a wider relative gap is split, when so few columns survive


@dataclass(frozen=True, eq=False)
class Survivors:
    """Bounds of the optimum of one tau, and the columns that screening leaves.

    Every support of tau columns that is optimal, or tied with one that is, lies in these columns.
    """

    lower: float
    upper: float
    columns: IntArray


@dataclass(frozen=True)
class Level:
    """One size relaxed: dual and primal value, allowance, and the level that every optimum is below (inf: unknown)."""

    dual: float
    primal: float
    slip: float
    level: float

    @property
    def lower(self) -> float:
        """Certified lower bound of f."""
        return self.dual - self.slip


def never() -> bool:
    """Return False: the clock that never stops anything."""
    return False


class WideFold:
    """Bounds of one fold at one gamma, from rows.

    Columns that are forced in are eliminated in `rows` (:class:`~sparsecv_mio.bounds.wide_rows.WideRows`): what is held
    is without them, while methods take and return whole supports and their sizes.

    Parameters
    ----------
    rows : WideRows
    expired : callable, optional
        Once it is True searches end with what they hold and predictions that are left keep their trivial bounds.
    """

    def __init__(self, rows: WideRows, expired: Callable[[], bool] = never) -> None:
        self.rows, self.expired = rows, expired
        self.known = WideSupports(rows, expired)
        self.relaxation = WideRelaxation(rows)

    @property
    def u(self) -> FloatArray:
        """Held-out targets about the training mean."""
        return self.rows.u

    # -- incumbents -------------------------------------------------------------------------------------------------

    def try_supports(self, supports: Iterable[NDArray[np.integer]]) -> None:
        """Try given supports (standard columns) as incumbents. O(n s^2) each."""
        self.known.take(stripped(self.rows.choice, list(supports)))

    def search(self, sizes: Sequence[int], swap_rounds: int = 0) -> None:
        """Forward selection over all columns; swaps among the promising ones."""
        self.known.search(self.rows.choice.sizes(sizes), swap_rounds)

    def incumbents(self) -> list[IntArray]:
        """Supports held, in standard columns."""
        return [self.rows.choice.whole(support) for support in self.known.support.values()]

    def incumbent(self, tau: int) -> IntArray | None:
        """As `FoldBounds.incumbent`."""
        size = self.rows.choice.size(tau)
        found = np.zeros(0, dtype=np.int64) if size == 0 else self.known.support.get(size)
        return None if found is None else self.rows.choice.whole(found)

    def upper(self, tau: int) -> float:
        """Return f of the incumbent of a size; inf where there is none."""
        size = self.rows.choice.size(tau)
        return self.rows.yy if size == 0 else self.known.best.get(size, np.inf)

    # -- bounds -----------------------------------------------------------------------------------------------------

    def cells(self, taus: Sequence[int], which: Which = Which.SAFE) -> list[FoldCell]:
        """Bound every tau; see `FoldBounds.cells`."""
        return [FoldCell.of(tau, row) for tau, row in zip(taus, self.numbers(taus, which), strict=True)]

    def numbers(self, taus: Sequence[int], which: Which = Which.SAFE) -> FloatArray:
        """As `FoldBounds.numbers`."""
        found: dict[int, FloatArray] = {}
        sizes = self.rows.choice.sizes(taus)
        for size in sorted(set(sizes)):
            unknown = self.expired()
            trivial = (0.0, np.inf), Ends(), self.rows.q
            found[size] = self._finish(size, *trivial) if unknown else self._bound(size, which)
        return np.array([found[size] for size in sizes])

    def survivors(self, tau: int) -> Survivors:
        """Bound the optimum by one relaxation, and screen: no bound of the held-out error."""
        found = self._survivors(self.rows.choice.size(tau))
        return replace(found, columns=self.rows.choice.whole(found.columns))

    def _survivors(self, tau: int) -> Survivors:
        rows = self.rows
        if tau == 0 or not rows.yy > 0.0:  # any columns will do: none of them gets a coefficient
            return Survivors(rows.yy, rows.yy, np.arange(min(max(tau, 1), rows.q)))
        everything = np.arange(rows.q)
        if tau >= rows.q:
            return Survivors(0.0, np.inf, everything)
        at = self._relax(tau)
        if not np.isfinite(at.level):
            return Survivors(max(at.lower, 0.0), np.inf, everything)
        return Survivors(max(at.lower, 0.0), at.level, np.flatnonzero(self._screen(tau, at) != DROPPED))

    def branch(self, tau: int, enough: float = np.inf, most: int = sys.maxsize) -> tuple[Survivors, int]:
        """Bound the optimum by a tree on the rows, and the columns that its supports leave where it comes to an end.

        Parameters
        ----------
        tau : int
        enough : float
            A lower bound from which on nothing more is asked for.
        most : int
            Nodes.

        Returns
        -------
        survivors : Survivors
        nodes : int
        """
        rows, known, size = self.rows, self.known, self.rows.choice.size(tau)
        if size == 0 or not rows.yy > 0.0 or size >= rows.q:
            return self.survivors(tau), 0
        at = self._relax(size)
        if not np.isfinite(at.level) or at.lower >= enough:
            return self.survivors(tau), 0
        left = np.flatnonzero(self._screen(size, replace(at, level=min(at.level, enough))) != DROPPED)
        if len(left) <= size or not np.isfinite(WideTree.error_of(rows, size)):  # or no digit is left
            return self.survivors(tau), 0
        tree = WideTree(rows, known, size, left, self.relaxation.b).grow(enough, most, self.expired)
        lower = max(at.lower, tree.lower)
        columns = np.arange(rows.q)
        if tree.supports is not None:
            columns = np.unique(np.concatenate(tree.supports))
        elif at.level <= enough:
            columns = left
        return Survivors(lower, self.known.best[size] * (1.0 + TIE) + at.slip, rows.choice.whole(columns)), tree.nodes

    def _relax(self, tau: int) -> Level:
        """Solve the relaxation of a size, round its point, and say what is known of the optimum."""
        known = self.known
        if not self.rows.largest < BEYOND:
            return Level(-np.inf, np.inf, 0.0, np.inf)
        dual, primal = self.relaxation.solve(tau, ACCURACY * known.best.get(tau, self.rows.yy))
        known.round(tau, self.relaxation.b, self.relaxation.g)
        slip = float(allowance(self.rows.allowance_of(tau), self.relaxation.b))
        level = known.best[tau] * (1.0 + TIE) + slip if tau in known.best else np.inf
        if dual - slip > level:
            raise Contradiction("a certified lower bound exceeds the value of a known support")
        return Level(dual, primal, slip, level)

    def _screen(self, tau: int, at: Level) -> NDArray[np.int8]:
        """Fix columns by the last point."""
        q = self.rows.q
        status = np.zeros(q, dtype=np.int8)
        screen(self.relaxation.g**2, q, np.arange(q), tau, at.level + at.slip - at.dual, status)
        return status

    def _bound(self, tau: int, which: Which) -> FloatArray:
        rows, known = self.rows, self.known
        if tau == 0 or not rows.yy > 0.0:
            return self._finish(tau, (rows.yy, rows.yy), Ends.exact(float(rows.u @ rows.u)), 0)
        if tau >= rows.q:
            return self._finish(tau, (0.0, np.inf), Ends(), rows.q)
        at = self._relax(tau)
        if not np.isfinite(at.level):
            return self._finish(tau, (at.lower, np.inf), Ends(), rows.q)
        lower = at.lower
        status = self._screen(tau, at) if which is Which.SAFE else np.zeros(rows.q, dtype=np.int8)
        left = np.flatnonzero(status != DROPPED)
        if known.best[tau] - lower > SPLIT_GAP * known.best[tau] and 1 < tau < len(left) <= SPLIT_COLUMNS:
            lower = max(lower, self.relaxation.split(tau, left) - at.slip)
        estimate = squared_error(rows, self.relaxation.b)
        if len(rows.u) == 0:
            ends = Ends()
        elif len(left) <= DENSE_COLUMNS:
            ends, better = of_few_columns(rows, known, tau, left)
            lower = max(lower, better)
        else:
            candidates = Candidates(tau, at.level + at.slip, at.primal)
            ends = of_all_columns(self.relaxation, candidates, at.dual, which, self.expired)
        if np.isnan(ends.estimate):
            ends = replace(ends, estimate=estimate)
        level = min(at.level, known.best[tau] * (1.0 + TIE) + at.slip)
        return self._finish(tau, (min(lower, known.best[tau]), level), ends, int((status == FREE).sum()))

    def _finish(self, tau: int, objective: tuple[float, float], ends: Ends, left: int) -> FloatArray:
        rows = self.rows
        inner = 0 < tau < rows.q
        rounding = rows.allowance_of(tau if inner else rows.q)
        if not inner:
            rounding = rounding._replace(prior=float(np.linalg.norm(rows.u)))
        low, high = blurred(max(ends.lower, 0.0), ends.upper, len(rows.u), rounding)
        interval = low * (1.0 - OUTWARD), high * (1.0 + OUTWARD)
        origins, open_columns = (ends.low_origin, ends.high_origin), 0 if ends.low_origin is Origin.EXACT else left
        return np.array([max(objective[0], 0.0), objective[1], *interval, *origins, ends.estimate, open_columns])

    def printed(self, tau: int) -> tuple[float, float, FloatArray, FloatArray]:
        """Level, relaxation value, its predictions and `x'M^{-1}x` of the held-out rows: what `as_printed` needs."""
        rows, X, tau = self.rows, self.rows.X_test, self.rows.choice.size(tau)
        dual, _ = self.relaxation.solve(tau, ACCURACY * self.known.best.get(tau, rows.yy))
        self.known.round(tau, self.relaxation.b, self.relaxation.g)
        half = X @ rows.Xt
        K = rows.Xt.T @ rows.Xt
        K.flat[:: rows.n + 1] += 1.0
        reach = np.einsum("ij,ij->i", X, X) - np.einsum("ij,ji->i", half, np.linalg.solve(K, half.T))
        return self.known.best[tau], dual, X @ self.relaxation.b, np.maximum(reach, 0.0)

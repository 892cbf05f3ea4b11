"""A tau step without MIOs, for many columns: the saddle-point problem of every cell, its supports refitted exactly.

Bertsimas, Pauphilet and Van Parys: the concave dual `D_tau(r)` of the perspective relaxation is ascended by products
with X alone (:mod:`sparsecv_mio.bounds.saddle`); the columns it favours are the candidates of the cell, its rounded
average and forward selection among them are polished by swaps. What comes out is an *estimate*: h at supports that may
not be optimal. Only lower bounds are certified here, `h_N >= D(all rows) - f^(-N)(S)` (theory section 3), so no run of
this kind is ever proved.

A support that is not optimal must not have seen the rows it is scored on: nothing found on all rows, neither a support
nor a dual point, goes into a fold.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.bounds.saddle import saddle_point
from sparsecv_mio.bounds.training_loss import training_loss_bound
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.formulation.backends.native.path import PathCell, PathResult
from sparsecv_mio.kernels import starts
from sparsecv_mio.problem.problem import FloatArray
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.methods.by_rows import threads_for
from sparsecv_mio.search.methods.rounds import CrossValidation, for_every_gamma

IntArray = NDArray[np.int64]

COLD_ITERATIONS, WARM_ITERATIONS = 500, 150  # of the first tau; of the next ones, from the point of the one before
FAVOURITES = 3  # candidate columns per column of the support, at least `FEWEST`
FEWEST = 30
MOST_CANDIDATES = 400
SWAP_ROUNDS = 2
ROUNDING = 1e-10  # of y'y: what centring and standard coordinates may leave between a dual value and a refit


@dataclass(eq=False)
class Rows:
    """Training rows about their means, columns over the root of their penalty weight."""

    X: FloatArray
    y: FloatArray
    yy: float = field(init=False)

    def __post_init__(self) -> None:
        self.yy = float(self.y @ self.y)

    @classmethod
    def of(cls, data: StandardData, rows: slice | IntArray) -> Rows:
        """Gather; O(n q)."""
        V, r = data.rows(np.arange(data.n)[rows])  # numbered rows are copied, and changed in place
        if data.intercept is Intercept.FOLD:
            V -= V.mean(axis=0)
            r = r - r.mean()
        V /= np.sqrt(data.weight)
        return cls(V, np.asarray(r))


@dataclass(frozen=True, eq=False)
class Guess:
    """What the saddle point of one tau leaves: dual point, certified value, the columns it favours, best first."""

    r: FloatArray
    dual: float
    favourites: IntArray
    rounded: IntArray


def guess(
    rows: Rows,
    lam: float,
    tau: int,
    iterations: int,
    start: FloatArray | None,
    expired: Callable[[], bool] | None = None,
) -> Guess:
    """Solve the saddle-point problem of one tau."""
    q = rows.X.shape[1]
    if tau == 0:
        none = np.zeros(0, dtype=np.int64)
        return Guess(rows.y, rows.yy, none, none)
    if tau >= q:
        everything = np.arange(q)
        return Guess(rows.y, 0.0, everything, everything)
    point = saddle_point(rows.X, rows.y, lam, tau, iterations=iterations, start=start, expired=expired)
    width = min(max(FAVOURITES * tau, FEWEST), q)
    by_average = np.argsort(-point.z, kind="stable")[:width]
    by_score = np.argsort(-np.abs(rows.X.T @ point.r), kind="stable")[:width]
    return Guess(point.r, float(point.dual), np.stack([by_average, by_score], axis=1).ravel(), by_average[:tau])


def supports_of(rows: Rows, lam: float, guesses: dict[int, Guess]) -> dict[int, IntArray]:
    """The best support found for every tau among the favourites of all of them. O(C^2 n + taus C tau^2 rounds)."""
    q = rows.X.shape[1]
    must = [one.rounded for tau, one in guesses.items() if tau < q]
    liked = np.concatenate([np.zeros(0, dtype=np.int64), *(one.favourites for one in guesses.values() if len(one.r))])
    first = np.unique(liked[liked < q], return_index=True)[1]
    order = liked[np.sort(first)][:MOST_CANDIDATES]
    among = np.unique(np.concatenate([order, *must])).astype(np.int64)
    A = rows.X[:, among]
    M, c = A.T @ A, A.T @ rows.y
    M.flat[:: len(among) + 1] += lam
    best = np.full(len(among) + 1, np.inf)
    masks = np.zeros((len(among) + 1, len(among)), dtype=np.bool_)
    inner = [tau for tau in guesses if 0 < tau < min(q, len(among))]
    for tau in inner:
        _try(M, c, rows.yy, np.searchsorted(among, np.sort(guesses[tau].rounded)), best, masks)
    if inner:
        starts.forward_selection(M, c, rows.yy, max(inner), best, masks)
    found = {}
    for tau, one in guesses.items():
        if tau in inner:
            starts.improve_by_swaps(M, c, rows.yy, tau, best, masks, SWAP_ROUNDS)
        found[tau] = among[masks[tau]] if tau in inner else np.sort(one.rounded)
    return found


def _try(
    M: FloatArray, c: FloatArray, yy: float, place: IntArray, best: FloatArray, masks: NDArray[np.bool_]
) -> None:
    value = yy - float(c[place] @ np.linalg.solve(M[np.ix_(place, place)], c[place]))
    size = len(place)
    if value < best[size]:
        best[size] = value
        masks[size] = False
        masks[size, place] = True


class SaddleRun(CrossValidation):
    """Every cell of a grid by the saddle point: supports and their exact held-out errors, lower bounds of h.

    What a cell gets depends on gamma, the sizes asked for and the fold alone: a row is the same however it was reached.
    """

    name = "saddle"
    row_wise = True

    def begin(self) -> None:
        """Guesses on all rows, for every gamma: where the folds start, and the bound of the training loss."""
        self.threads = threads_for(self.data, self.threads)
        self.whole = Rows.of(self.data, slice(0, self.data.n))
        found: dict[int, PathResult] = {}
        for g, gamma in enumerate(self.grid.gammas.tolist()):
            if found and self.clock.expired():
                break
            mine = self._guesses(self.whole, gamma / 2.0)
            supports = supports_of(self.whole, gamma / 2.0, mine)
            cells = {tau: self._on_all_rows(gamma, tau, mine[tau], support) for tau, support in supports.items()}
            found[g] = PathResult(cells, 0, False)
        self.full = for_every_gamma(found, len(self.grid.gammas))

    def _guesses(self, rows: Rows, lam: float) -> dict[int, Guess]:
        found: dict[int, Guess] = {}
        last: FloatArray | None = None
        for tau in self.grid.taus.tolist():
            steps = 1 if self.clock.expired() else COLD_ITERATIONS if last is None else WARM_ITERATIONS
            found[tau] = guess(rows, lam, tau, steps, last, self.clock.expired)
            last = found[tau].r if 0 < tau < self.data.q else None
        return found

    def _on_all_rows(self, gamma: float, tau: int, one: Guess, support: IntArray) -> PathCell:
        fit = refit_rows(self.data, slice(0, self.data.n), support, gamma)
        upper = fit.objective + fit.objective_error
        lower = min(max(one.dual - ROUNDING * self.whole.yy, 0.0), fit.objective)
        return PathCell(tau, support, lower, upper, (), (), 0.0, complete=False, branched=False)

    def all_folds(self) -> None:
        """Nothing: folds are solved one by one."""

    def show_estimates(self) -> None:
        """Nothing: every cell has its estimate, from its fold and gamma alone."""

    @property
    def finished(self) -> bool:
        """Whether every cell has its estimate."""
        return self.clock.expired() or bool(self.cells.final.all())

    def step(self) -> None:
        """The next folds, one a thread."""
        left = np.flatnonzero(~self.cells.final.all(axis=(0, 1)))[: self.threads].tolist()
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1):
            if len(left) == 1:
                self._fold(left[0])
            else:
                with ThreadPoolExecutor(len(left)) as pool:
                    list(pool.map(self._fold, left))
        self._report()
        self._safe()

    def _fold(self, fold: int) -> None:
        """Supports of every gamma and tau of a fold, refitted and scored."""
        rows = Rows.of(self.data, self.folds.train_rows(fold))
        for g, gamma in enumerate(self.grid.gammas.tolist()):
            mine = self._guesses(rows, gamma / 2.0)
            if self.clock.expired():
                return
            for tau, support in supports_of(rows, gamma / 2.0, mine).items():
                self._score(g, tau, fold, support)

    def _score(self, g: int, tau: int, fold: int, support: IntArray) -> None:
        t = int(np.searchsorted(self.grid.taus, tau))
        where = (g, t, fold)
        fit = refit_rows(self.data, self.folds.train_rows(fold), support, float(self.grid.gammas[g]))
        held, _ = fit.held_out(self.data, self.folds.test_rows(fold))
        rounding = fit.objective_error, ROUNDING * self.whole.yy
        lower = training_loss_bound(self.full[g].cells[tau].lower, fit.objective, *rounding)
        self.cells.offer(where, self.cells.pool.number(support), held, fit.objective)
        self.cells.narrow(where, lower, np.inf)
        self.cells.finish(where)

    def engines(self) -> str:
        """The mode, in words."""
        return "saddle point"

    def score_last(self) -> None:
        """A limit that comes first: forward selection in the folds that are missing, at the pair that misses fewest."""
        missing = (~np.isfinite(self.cells.nominal)).sum(axis=2)
        if missing.min() == 0:
            return
        g, t = (int(i) for i in np.unravel_index(int(np.argmin(missing)), missing.shape))
        tau, lam = int(self.grid.taus[t]), float(self.grid.gammas[g]) / 2.0
        for fold in np.flatnonzero(~np.isfinite(self.cells.nominal[g, t])).tolist():
            if self.clock.abandoned.is_set():
                return
            rows = Rows.of(self.data, self.folds.train_rows(fold))
            found = supports_of(rows, lam, {tau: guess(rows, lam, tau, 1, None)})
            self._score(g, tau, fold, found[tau])

"""A tau step without MIOs, for many columns: the saddle-point problem of every cell, its supports refitted exactly.

Bertsimas, Pauphilet and Van Parys: the concave dual `D_tau(r)` of the perspective relaxation is ascended by products
with X alone (`saddle_point`); the columns it favours are the candidates of the cell, its rounded
average and forward selection among them are polished by swaps. What comes out is an *estimate*: h at supports that may
not be optimal. Only lower bounds are certified here, `h_N >= D(all rows) - f^(-N)(S)` (theory section 3), so no run of
this kind is ever proved.

A support that is not optimal must not have seen the rows it is scored on: nothing found on all rows, neither a support
nor a dual point, goes into a fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING, training_loss_bound
from sparsecv_mio.bounds.wide_rows import without_forced
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.kernels import starts
from sparsecv_mio.parallel import blas_on_one_thread, on_threads
from sparsecv_mio.problem.elimination import ForcedColumns
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.training_moments import CentredRows
from sparsecv_mio.search.run import GridMethod, Run
from sparsecv_mio.trees.subsets import BestSubset, BestSubsets

COLD, WARM = 0.3, 0.01  # first guess of what is left to gain, beside y'y


@dataclass(frozen=True, eq=False)
class SaddlePoint:
    """The best dual point found, and the average of the supports it answered with.

    Attributes
    ----------
    r : (n,) array
        Dual point; its residual form, theory section 1.
    dual : float
        `D_tau(r)` less the rounding allowance.
    z : (p,) array
        Average indicator, in [0, 1] with sum tau: round it to the tau largest.
    """

    r: FloatArray
    dual: float
    z: FloatArray


def saddle_point(
    X: FloatArray,
    y: FloatArray,
    lam: float,
    tau: int,
    *,
    iterations: int = 500,
    start: FloatArray | None = None,
    expired: Callable[[], bool] | None = None,
) -> SaddlePoint:
    """Ascend the concave `D_tau(r) = 2 r'y - ||r||^2 - (tau largest (x_j'r)^2) / lam` by supergradients.

    Steps are Polyak's, towards a target above the best value so far.

    Parameters
    ----------
    X : (n, p) array
        Centred as the intercept asks, columns over the root of their penalty weight.
    y : (n,) array
    lam : float
    tau : int
        0 < tau < p.
    iterations : int
    start : (n,) array, optional
        Dual point of a neighbouring problem (another tau, all rows); any is valid.
    expired : callable, optional
        True ends the ascent with what it holds.

    Notes
    -----
    O(n p) an iteration and no matrix beside X. The supergradient answers with the support S of the tau largest |x_j'r|:
    `2 (y - r - X_S X_S'r / lam)`. Slower to high accuracy than the Newton steps of `WideRelaxation`, which it checks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 50)) / 4
    >>> point = saddle_point(X, X[:, 0] + X[:, 1], 0.5, 2)
    >>> bool(np.argsort(-point.z)[:2].max() < 2 and point.dual > 0.0)
    True
    """
    n, p = X.shape
    squares = np.einsum("ij,ij->j", X, X)
    r = y * (lam / (lam + float(np.mean(squares)))) if start is None else start
    best, best_r, average = -np.inf, r, np.zeros(p)
    stall = (COLD if start is None else WARM) * float(y @ y)
    for i in range(iterations):
        score = X.T @ r
        top = np.argpartition(-(score**2), tau - 1)[:tau]
        value = float(2.0 * (r @ y) - r @ r - np.sum(score[top] ** 2) / lam)
        average[top] += 1.0
        if value > best:
            best, best_r = value, r
        elif i % 20 == 19:
            stall *= 0.7
        slope = 2.0 * (y - r - X[:, top] @ score[top] / lam)
        square = float(slope @ slope)
        if square <= 1e-30 * float(y @ y) or (expired is not None and expired()):
            break
        r = r + slope * ((best + stall - value) / square)
    size = float(np.linalg.norm(best_r)) * (float(np.linalg.norm(y)) + float(np.linalg.norm(best_r)))
    size += tau * float(np.max(squares) * (best_r @ best_r)) / lam
    allowance = np.finfo(float).eps * (n + tau + 16) * size
    return SaddlePoint(best_r, best - allowance, average / average.sum() * tau)


COLD_ITERATIONS, WARM_ITERATIONS = 500, 150  # of the first tau; of the next ones, from the point of the one before
FAVOURITES = 3  # candidate columns per column of the support, at least `FEWEST`
FEWEST = 30
MOST_CANDIDATES = 400
SWAP_ROUNDS = 2


@dataclass(eq=False)
class Rows:
    """Training rows about their means, columns over the root of their penalty weight."""

    X: FloatArray
    y: FloatArray
    yy: float = field(init=False)

    def __post_init__(self) -> None:
        self.yy = float(self.y @ self.y)

    def without(self, choice: ForcedColumns, lam: float) -> Rows:
        """Return the rows at one gamma without the columns that are forced in. O(n q f)."""
        if not len(choice.forced):
            return self
        root = np.sqrt(lam)
        X, y, *_ = without_forced(self.X / root, self.y, self.X[:0], self.y[:0], choice)
        return Rows(X * root, y)

    @classmethod
    def of(cls, data: StandardData, rows: slice | IntArray) -> Rows:
        """Gather; O(n q)."""
        centred = CentredRows.of(data, rows)
        X = centred.V
        X /= np.sqrt(data.weight)
        return cls(X, centred.r)


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
    """Solve the saddle-point problem of one tau.

    Parameters
    ----------
    rows : Rows
        Training rows.
    lam : float
        gamma / 2.
    tau, iterations : int
    start : (n,) array or None
        Dual point to start from.
    expired : callable, optional
        True ends it with the point it has.
    """
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
    """Return the best support found for every tau among the favourites of all. O(C^2 n + taus C tau^2 rounds).

    Parameters
    ----------
    rows : Rows
        Training rows.
    lam : float
        gamma / 2.
    guesses : dict of int to Guess
        By tau.
    """
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


def _try(M: FloatArray, c: FloatArray, yy: float, place: IntArray, best: FloatArray, masks: BoolArray) -> None:
    value = yy - float(c[place] @ np.linalg.solve(M[np.ix_(place, place)], c[place]))
    size = len(place)
    if value < best[size]:
        best[size] = value
        masks[size] = False
        masks[size, place] = True


class SaddleRun(GridMethod):
    """Every cell of a grid by the saddle point: supports and their exact held-out errors, lower bounds of h.

    What a cell gets depends on gamma, the sizes asked for and the fold alone: a row is the same however it was reached.

    Parameters
    ----------
    run : Run
    """

    name = "saddle"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.choice = ForcedColumns.of(run.context.data.q, run.context.data.forced)

    def begin(self) -> None:
        """Solve the saddle-point problems of all rows: where the folds start, and the bound of the training loss."""
        whole = Rows.of(self.context.data, slice(0, self.context.data.n))
        found: dict[int, BestSubsets] = {}
        for g, gamma in enumerate(self.context.grid.gammas.tolist()):
            if found and self.exhausted:
                break
            rows = whole.without(self.choice, gamma / 2.0)
            mine = self._guesses(rows, gamma / 2.0)
            supports = supports_of(rows, gamma / 2.0, mine)
            cells = {tau: self._on_all_rows(gamma, tau, mine[size], supports[size]) for tau, size in self._sizes()}
            found[g] = BestSubsets(cells, 0, False)
        self.run.all_rows.keep(found)

    def _sizes(self) -> list[tuple[int, int]]:
        """Return every tau with the size of what is chosen beside the columns that are forced in."""
        taus = self.context.grid.taus.tolist()
        return list(zip(taus, self.choice.sizes(taus), strict=True))

    @cached_property
    def _squares(self) -> float:
        """`y'y` of all rows: what rounding is measured by."""
        return Rows.of(self.context.data, slice(0, self.context.data.n)).yy

    def _guesses(self, rows: Rows, lam: float) -> dict[int, Guess]:
        """Solve the saddle-point problems of rows without the columns forced in, by size."""
        found: dict[int, Guess] = {}
        last: FloatArray | None = None
        for _, size in self._sizes():
            steps = 1 if self.exhausted else COLD_ITERATIONS if last is None else WARM_ITERATIONS
            found[size] = guess(rows, lam, size, steps, last, self.context.deadline.expired)
            last = found[size].r if 0 < size < len(self.choice.others) else None
        return found

    def _on_all_rows(self, gamma: float, tau: int, one: Guess, support: IntArray) -> BestSubset:
        support = self.choice.whole(support)
        fit = refit_rows(self.context.data, slice(0, self.context.data.n), support, gamma)
        upper = fit.objective + fit.objective_error
        lower = min(max(one.dual - ROWS_ROUNDING * self._squares, 0.0), fit.objective)
        return BestSubset.unproved(tau, support, upper, lower)

    @property
    def finished(self) -> bool:
        """Whether every cell has its estimate."""
        return self.exhausted or bool(self.run.cells.final.all())

    def step(self) -> None:
        """Estimate the cells of the next folds, one a thread."""
        left = np.flatnonzero(~self.run.cells.final.all(axis=(0, 1)))[: self.context.threads].tolist()
        with blas_on_one_thread():
            on_threads(self._fold, left, len(left))
        self.run.signals.progressed()
        self.run.signals.safe_point()

    def work_on(self, pairs: BoolArray) -> None:
        """Estimate the cells of the next folds."""
        self.step()

    def finish(self) -> None:
        """Do nothing: every cell has its estimate, from its fold and gamma alone."""

    def _fold(self, fold: int) -> None:
        """Find supports of every gamma and tau of a fold, refit and score them."""
        rows = Rows.of(self.context.data, self.context.folds.train_rows(fold))
        for g, gamma in enumerate(self.context.grid.gammas.tolist()):
            chosen = rows.without(self.choice, gamma / 2.0)
            mine = self._guesses(chosen, gamma / 2.0)
            if self.exhausted:
                return
            supports = supports_of(chosen, gamma / 2.0, mine)
            for tau, size in self._sizes():
                self._score(g, tau, fold, self.choice.whole(supports[size]))

    def _score(self, g: int, tau: int, fold: int, support: IntArray) -> None:
        context, cells = self.context, self.run.cells
        t = int(np.searchsorted(context.grid.taus, tau))
        where = (g, t, fold)
        fit = refit_rows(context.data, context.folds.train_rows(fold), support, float(context.grid.gammas[g]))
        held, _ = fit.held_out(context.data, context.folds.scored_rows(fold))
        best = self.run.all_rows.best[g].by_size[tau]
        rounding = fit.objective_error, ROWS_ROUNDING * self._squares
        cells.offer(where, cells.pool.number(support), held, fit.objective)
        if context.folds.scores_all_left_out[fold]:
            cells.narrow(where, training_loss_bound(best.lower, fit.objective, *rounding), np.inf)
        cells.mark(where)

    # -- what is known now -------------------------------------------------------------------------------------------

    def mios(self) -> int:
        """Return 0: no mixed-integer problem is solved."""
        return 0

    def engine(self) -> str:
        """Return who solved the cells, in words."""
        return "saddle point"

    def recompute(self) -> None:
        """Solve the saddle-point problems of all rows again."""
        self.begin()

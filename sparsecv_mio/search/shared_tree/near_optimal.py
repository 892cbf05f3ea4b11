"""One listing on all rows that speaks for every fold of a pair (gamma, tau).

Let L hold every support of tau columns with `f(S) <= T` on all rows, and let `ubar` be a feasible value of fold N. Any
optimum b of the fold, on a support S, satisfies (docs/theory.md, the training-loss bound with a list)

    f(S) <= f^(-N)(b) + h_N(b) <= ubar + h_N(b),

so either S is in L with `f^(-N)(S) <= ubar`, or `h_N(b) >= T - ubar`. T just below the optimum needs no support at all
and gives the training-loss bound of the paper; a larger T proves more; and where `T - ubar` exceeds a certified upper
bound of `h_N` the optimum is in L, and the cell is decided, without a tree of the fold's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.formulation.backends.native.listing import supports_below
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm, normal_form
from sparsecv_mio.problem.problem import FloatArray, SparseProblem
from sparsecv_mio.search.state.cells import Where
from sparsecv_mio.search.subproblem.cell_solver import CellSolver
from sparsecv_mio.search.subproblem.held_out_fold import Refits
from sparsecv_mio.units import TIE_RTOL

IntArray = NDArray[np.int64]

LISTED = 1024  # supports worth refitting in every fold
WIDEST_KEEP = 1e-6  # rounding of the trees beyond which a bar means little
MOST_COLUMNS = 128  # beyond, the path tree rarely closes without the perspective
ROUNDING = 1e-10  # of y'y: what moments, refits and centring may leave between the rows of a fold and all rows
BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Listed:
    """Supports of tau columns with `f <= reach` on all rows: all of them."""

    supports: tuple[IntArray, ...]
    reach: float


class NearOptimal:
    """Lists on all rows of one gamma, tau by tau.

    Parameters
    ----------
    problem : SparseProblem
        All rows at the gamma.
    """

    def __init__(self, problem: SparseProblem) -> None:
        self.problem = problem
        self.form: NormalForm = normal_form(problem)
        self.allowance = ROUNDING * problem.yy
        self.usable = self.form.keep <= WIDEST_KEEP and 0 < self.form.m <= MOST_COLUMNS
        self.solved = self.form.solved() if self.usable else None

    def room(self, bar: float) -> float:
        """How far above a value a bar must be for rounding not to spoil what it proves."""
        return 4.0 * (self.form.keep * bar + self.form.slack + self.allowance)

    def below(
        self, tau: int, bar: float, budget: int, expired: Callable[[], bool]
    ) -> tuple[Listed | None, int]:
        """Every support of tau columns below `bar`, and the nodes spent; None where the budget did not suffice.

        Where fewer than tau columns vary, only the support of all of them is left.
        """
        assert self.solved is not None
        form, size = self.form, min(tau, self.form.m)
        bars = np.full(form.m + 1, -np.inf)
        bars[size] = bar
        found, nodes = supports_below(form, self.solved, bars, budget, LISTED, expired)
        if found is None:
            return None, nodes
        supports = tuple(form.columns[mask] for mask in found.get(size, []))
        reach = np.inf if size in (0, form.m) else bar * (1.0 - form.keep) - form.slack - self.allowance
        return Listed(supports, reach), nodes


def incumbents(solver: CellSolver, g: int, t: int, folds: IntArray) -> FloatArray:
    """Certified values of the supports the cells hold, by fold: at least the optimum and all its ties."""
    values = np.empty(len(folds))
    for a, fold in enumerate(folds.tolist()):
        support = solver.cells.pool.supports[solver.cells.support[g, t, fold]]
        values[a] = _ceiling(solver.at(g, fold).refit([support]))
    return values


def _ceiling(fits: Refits) -> float:
    """Value that every optimum and every tie of it stays below."""
    return float((fits.value + fits.value_error).min()) * (1.0 + TIE_RTOL)


def bar_to_lift(lower: FloatArray, nominal: FloatArray, ubar: FloatArray, goal: float) -> float:
    """Least T for which `sum_j min(max(lower_j, T - ubar_j), nominal_j)` reaches `goal`; inf where none does.

    The sum is what a listing below T is expected to prove: increasing in T, found by bisection.
    """
    if float(np.maximum(lower, nominal).sum()) < goal:
        return np.inf
    low, high = float(ubar.min()), float((ubar + nominal).max())
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if float(np.maximum(lower, np.minimum(middle - ubar, nominal)).sum()) >= goal:
            high = middle
        else:
            low = middle
    return high


def apply_list(solver: CellSolver, g: int, t: int, folds: IntArray, listed: Listed, goal: float = np.inf) -> None:
    """Write what a listing says of the open cells of a pair, until its lower sum reaches `goal`.

    O(|L| (s^3 + rows s)) a fold; those with most to gain come first.
    """
    cells = solver.cells
    gain = np.minimum(cells.nominal[g, t, folds], cells.upper[g, t, folds]) - cells.lower[g, t, folds]
    for fold in folds[np.argsort(-gain, kind="stable")].tolist():
        if float(cells.lower[g, t].sum()) >= goal:
            break
        _tell(solver, (g, t, fold), listed)


def _tell(solver: CellSolver, where: Where, listed: Listed) -> None:
    g, _, fold = where
    cells = solver.cells
    here = solver.at(g, fold)
    known = cells.pool.supports[cells.support[where]]
    supports = [*listed.supports, known]
    fits = here.refit(supports)
    if not np.all(np.isfinite(fits.value_error)):
        return
    ubar = _ceiling(fits)
    outside = listed.reach - ubar
    near = fits.value - fits.value_error <= ubar
    inside = np.flatnonzero(near[:-1])
    if len(inside) and outside > cells.upper[where]:
        optimal = [supports[i] for i in inside]
        solver.intervals.decide(here, where, optimal, fits.at(inside), branched=True)
        return
    best = int(np.argmin(fits.value))
    least = float((fits.held_out - fits.held_out_error)[near].min())
    cells.narrow(where, min(outside, least), np.inf)
    cells.offer(where, cells.pool.number(supports[best]), float(fits.held_out[best]), float(fits.value[best]))

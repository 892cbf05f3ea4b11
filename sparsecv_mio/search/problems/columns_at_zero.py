"""Columns whose coefficient is at a bound of 0 up to rounding, in fits within bounds on coefficients.

Trees identify a support S by the columns whose coefficients are not at a bound of 0. Trees omit a column if its
coefficient would lower the training objective f by less than the margin of ties, or by less than rounding errors. The
coefficient of an omitted column may still change the prediction of a held-out row with very large features.

**Theorem.** Let b be the fit of S, x the nearest point within the bounds, and b' the minimiser of f within the bounds
on S and some columns E. Let p_j be the rate at which f / 2 decreases at b if the coefficient of column j of E leaves
its bound, or 0 if f does not decrease. Let M be the matrix of f on S and E. With `t = sum p_j (M^{-1})_jj^(1/2)` and
`u = sum M_jj^(1/2) |x_j - b_j|`,

    ||b' - b||_M <= 2 t + u.

*Proof.* The slope of f at b in the columns of S is zero, or points out of the bounds. Hence
`f(b') >= f(b) - 2 p'|b' - b| + ||b' - b||_M^2 >= f(b) - 2 t ||b' - b||_M + ||b' - b||_M^2`. If b is within the bounds,
`f(b') <= f(b)`. Otherwise the slope is zero in S and `f(b') <= f(x) = f(b) + ||x - b||_M^2 <= f(b) + u^2`. QED.

Between b and b', the predictions of the held-out rows H change by at most `tr(H M^{-1} H')^(1/2) (2 t + u)` in
Euclidean norm. M^{-1} is smaller for fewer columns, so the bound holds for every subset of E. A coefficient whose slope
at b points out of the bounds by more than `M_jj^(1/2) (2 t + u)` stays at its bound, because this slope changes by at
most `M_jj^(1/2) (2 t + u)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsecv_mio.arrays import LONG, FloatArray, IntArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.problem.constraints import SideConstraints
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.problem.refit import SOLVE_ROUNDING, TOLD, refit_squares
from sparsecv_mio.trees.allowed_supports import Family, make_mask
from sparsecv_mio.trees.fits_with_rounding import fit_from_moments
from sparsecv_mio.units import TIE_RTOL

MAX_SUPPORTS = 64  # maximum number of supports that replace a bound on the change


@lru_cache(maxsize=1)
def find_inward_signs(constraints: SideConstraints, q: int) -> FloatArray:
    """Return (q,) signs of the coefficients within their bounds, 0 for columns without a bound of 0, or with two."""
    low, high = constraints.interval(q)
    return np.asarray(1.0 * ((low == 0.0) & (high > 0.0)) - 1.0 * ((high == 0.0) & (low < 0.0)))


@dataclass(frozen=True, eq=False)
class ColumnsAtZero:
    """The columns of a training set whose coefficients have a bound of 0 on one side.

    Attributes
    ----------
    data : StandardData
        Data in standard coordinates.
    training_rows : int array or slice
        Training rows.
    problem : SparseProblem
        Problem of the training rows.
    constraints : SideConstraints
        Restrictions on supports and coefficients.
    """

    data: StandardData
    training_rows: IntArray | slice
    problem: SparseProblem
    constraints: SideConstraints

    @property
    def inward(self) -> FloatArray:
        """(q,) sign of the coefficients within their bounds, 0 for columns without a bound of 0, or with two."""
        return find_inward_signs(self.constraints, self.problem.q)

    @property
    def ignores_signs(self) -> bool:
        """True if all bounds are signs: then a fit has no bounds, and a support has the columns of the right sign."""
        return self.data.coefficient_bounds is None

    def find_unclear(self, supports: Sequence[IntArray]) -> IntArray:
        """Return the positions of supports for which the moments leave open which columns are at zero. O(q s) each.

        Parameters
        ----------
        supports : sequence of int arrays
            Supports, without columns at a bound of 0.
        """
        problem, bounds, inward = self.problem, self.data.coefficient_bounds, self.inward
        made, squares = fit_from_moments(problem, supports, bounds), np.diag(problem.Q)
        is_listed = np.arange(made.table.shape[1]) < made.sizes[:, None]
        at = np.repeat(np.arange(len(supports)), made.sizes), made.table[is_listed]
        beta, spread = np.zeros((2, len(supports), problem.q))
        beta[at], spread[at] = made.beta[is_listed], made.spread[is_listed]
        norm = np.sqrt(squares)
        with np.errstate(invalid="ignore"):  # a spread may be infinite
            slope, reach = inward * (problem.c - beta @ problem.Q), np.sqrt(problem.yy) + np.abs(beta) @ norm
            error = 2.0 * problem.rounding * reach[:, None] * norm + spread @ np.abs(problem.Q)
            most = np.sqrt(TIE_RTOL * np.maximum(made.value, 0.0)[:, None] * (squares + problem.penalty))
            is_open = ~(slope + error <= 0.0) & ~(slope - error > most)
            is_open[at] = ~(inward[at[1]] * beta[at] > spread[at]) if self.ignores_signs else False
        return np.flatnonzero((is_open & (inward != 0.0)).any(axis=1)).astype(np.int64)

    def bound_change(self, support: IntArray, tau: int, held_out: FloatArray) -> tuple[float, IntArray]:
        """Return the bound of the theorem on the change of the held-out predictions, and the columns that may matter.

        Parameters
        ----------
        support : int array
            Support S.
        tau : int
            Maximum number of features of a support with these columns.
        held_out : (q, q) array
            Moments of the held-out rows about the training means.

        Returns
        -------
        change : float
            Bound on the norm of the change.
        columns : int array
            Columns outside S that may leave their bound, and columns of S that may meet a sign if fits ignore signs.

        Notes
        -----
        O(n q s). The slopes are computed from residuals of the rows. A column that lowers f by more than the margin of
        ties is in other listed supports.
        """
        data, problem, rows = self.data, self.problem, np.arange(self.data.n)[self.training_rows]
        fit, root = refit_squares(data, rows, support, 2.0 * problem.lam), data.root_of(rows)
        e, off = fit.residuals_with_errors(data, rows)
        if not np.linalg.norm(off) <= TOLD * np.linalg.norm(e) and fit.exact is not None:
            e[:] = fit.residuals(data, rows)
            off = np.asarray(SOLVE_ROUNDING * np.abs(e), dtype=LONG)
        V, norm = problem.centre_rows(data, rows)[0], np.sqrt(np.diag(problem.M))
        size = np.abs(V) + np.outer(np.ones(len(V)) if root is None else root, np.abs(problem.v_mean))
        error = np.asarray(np.abs(V).T @ off + SOLVE_ROUNDING * (size.T @ np.abs(e)), dtype=float)
        slope = self.inward * np.asarray(V.T @ e, dtype=float)
        may_enter = np.zeros(problem.q, dtype=np.bool_)
        can_hold = self._is_part_of_support(tau)
        may_enter[[j for j in np.flatnonzero(self.inward).tolist() if can_hold(np.append(support, j))]] = True
        may_enter &= ~(slope - error > np.sqrt(TIE_RTOL * (fit.objective + fit.objective_error)) * norm)
        may_enter &= np.diag(problem.Q) > 0.0  # other columns are constant
        may_enter[support] = False
        signs = self.inward[support] * self.ignores_signs
        wrong = np.maximum(fit.spread - signs * fit.beta, 0.0) * (signs != 0.0)
        if not wrong.any() and not np.any(may_enter & (slope + error > 0.0)):
            return 0.0, support[:0]
        u, n_entering = float(norm[support] @ wrong), -1
        length, columns, factor = u, support, np.zeros((0, 0))
        while (entering := np.flatnonzero(may_enter & (slope + error > -norm * length))).size > n_entering:
            n_entering, columns = entering.size, np.append(support, entering)
            inverse = self._invert(V, columns)
            if inverse is None or not np.isfinite(u):
                return np.inf, np.append(support[signs != 0.0], np.flatnonzero(may_enter))
            p = np.maximum((slope + error)[entering], 0.0)
            length, factor = 2.0 * float(p @ np.linalg.norm(inverse[len(support) :], axis=1)) + u, inverse
        squares = float((held_out[np.ix_(columns, columns)] * (factor @ factor.T)).sum())
        reach = fit.spread + 2.0 * length * np.linalg.norm(factor[: len(support)], axis=1)
        unclear = np.append(support[(signs != 0.0) & (signs * fit.beta <= reach)], columns[len(support) :])
        return 2.0 * length * float(np.sqrt(max(squares, 0.0))), unclear  # twice, since the factor is rounded

    def _is_part_of_support(self, tau: int) -> Callable[[IntArray], bool]:
        """Return a function that is True for columns that columns with a bound of 0 complete to an allowed support."""
        family = Family(self.problem.q, tau, self.constraints)
        low, high = self.constraints.interval(self.problem.q)
        others = make_mask(np.flatnonzero((low == 0.0) | (high == 0.0)).tolist())
        return lambda columns: family.complete_mask(make_mask(columns.tolist()), others) is not None

    def _invert(self, V: FloatArray, columns: IntArray) -> FloatArray | None:
        """Return a matrix whose product with its transpose is the inverse of M; None if M is singular to rounding."""
        A = np.vstack([V[:, columns], np.diag(np.sqrt(self.problem.penalty[columns]))])
        norm = np.linalg.norm(A, axis=0)
        norm[norm == 0.0] = 1.0
        _, values, basis = np.linalg.svd(A / norm, full_matrices=False)
        if len(columns) and not values[-1] > 4.0 * SOLVE_ROUNDING * len(columns) * values[0]:
            return None
        return np.asarray(basis.T / values / norm[:, None])

    def list_choices(self, support: IntArray, columns: IntArray, tau: int) -> list[IntArray] | None:
        """Return the columns off a bound of 0 of allowed supports that differ from a support in some columns.

        Supports whose fit has a wrong sign are left out. None is returned for more than `MAX_SUPPORTS` supports.

        Parameters
        ----------
        support : int array
            Support.
        columns : int array
            Columns to choose from, inside and outside of the support.
        tau : int
            Maximum number of features.
        """
        rest, is_part = np.setdiff1d(support, columns), self._is_part_of_support(tau)
        choices = [rest]
        for j in columns.tolist():
            larger = (np.union1d(some, [j]).astype(np.int64) for some in choices)
            choices += list(filter(is_part, larger))
            if len(choices) > MAX_SUPPORTS:
                return None
        return [some for some in choices if not self._has_wrong_sign(some)]

    def _has_wrong_sign(self, support: IntArray) -> bool:
        if not self.ignores_signs:
            return False
        fit = refit_squares(self.data, self.training_rows, support, 2.0 * self.problem.lam)
        return bool(np.any(self.inward[support] * fit.beta < -fit.spread))

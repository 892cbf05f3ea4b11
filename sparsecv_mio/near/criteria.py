"""By which number supports are compared, and which training objective bounds it from below.

A criterion values supports at one gamma and names a problem, its tree, and a rate with `f(S) <= rate * value(S)` for
the f of that problem and every support: all supports with a value up to v are among those with f up to `rate * v`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import Intercept, StandardData
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.errors import BadInput
from sparsecv_mio.kernels import common_error
from sparsecv_mio.kernels.leave_out import HeldOutRows, Listed
from sparsecv_mio.problem.problem import EIGEN_LIMIT, SparseProblem
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.search.shared_tree.listed_supports import ListedSupports
from sparsecv_mio.search.subproblem.moment_fits import fit_from_moments

NEGLIGIBLE = 1e-10  # relative rounding error of a value; beyond, the support is fitted again from the rows
PIECE = 1 << 20  # numbers of the factors of supports that are valued at once
SHAVED = 1e-9  # relative, off a penalty or a rate: rounding of an eigenvalue


class Criterion(Protocol):
    """A number of a support, in standard units."""

    tree: SparseProblem
    rate: float

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Value supports: numbers, and bounds on their rounding errors.

        Parameters
        ----------
        supports : sequence of int arrays
        limit : float
            Of a support whose value exceeds it any number above it will do.
        """
        ...


class TrainingObjective:
    """f(S) on all rows.

    Parameters
    ----------
    data : StandardData
    problem : SparseProblem
        All rows at one gamma.
    """

    rate = 1.0

    def __init__(self, data: StandardData, problem: SparseProblem) -> None:
        self.data, self.tree = data, problem

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Value supports; see `Criterion`."""
        found = fit_from_moments(self.tree, supports)
        value, error = found.value.copy(), found.value_error.copy()
        for a in np.flatnonzero(~(error <= NEGLIGIBLE * value)).tolist():
            if not value[a] - error[a] > limit:
                fit = refit_rows(self.data, slice(0, self.data.n), supports[a], 2.0 * self.tree.lam)
                value[a], error[a] = fit.objective, fit.objective_error
        return value, error


class CommonError:
    """H(S), the mean of squared held-out residuals of one support in all folds, at one gamma.

    Parameters
    ----------
    folds : FoldRows
    problem : SparseProblem
        All rows at the gamma.
    largest : int
        Most columns of a support.
    """

    def __init__(self, folds: FoldRows, problem: SparseProblem, largest: int) -> None:
        self.folds, self.problem = folds, problem
        self.tree = problem.with_gamma(2.0 * residual_penalty(problem, largest))
        self.rate = folds.residual_rate

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Value supports; see `Criterion`."""
        value, error = np.empty(len(supports)), np.empty(len(supports))
        longest = max(map(len, supports), default=1)
        step = max(PIECE // max(longest, 1) ** 2, 1)
        for lo in range(0, len(supports), step):
            some = supports[lo : lo + step]
            value[lo : lo + step], error[lo : lo + step] = self.folds.errors(self.problem, some, limit)
        for a in np.flatnonzero(~(error <= NEGLIGIBLE * value)).tolist():
            if not value[a] - error[a] > limit:
                value[a], error[a] = self.folds.refitted(supports[a], 2.0 * self.problem.lam)
        return value, error


class FoldRows:
    """The rows that folds hold out, ready to value supports that all folds share.

    Parameters
    ----------
    data : StandardData
    plan : FoldPlan
        Every row is held out by a fold, all equally often.
    problem : SparseProblem
        All rows, at any gamma.

    Raises
    ------
    BadInput
        For other folds.

    Attributes
    ----------
    unit : float
        What turns values into squared units of the target.
    residual_rate : float
        The residuals of the fit on all rows have a sum of squares of at most this times H.
    """

    def __init__(self, data: StandardData, plan: FoldPlan, problem: SparseProblem) -> None:
        times = np.bincount(plan.order[: plan.scored], minlength=plan.n)
        if plan.left is not None or not np.all(times == times[0]) or not times[0]:
            raise BadInput(
                f"folds {plan.spec!r}: one support for all folds needs folds that hold out every row, all equally "
                "often, and train on the others: give 10, 5x10 or loo"
            )
        self.data, self.plan = data, plan
        index = plan.order[: plan.scored]
        V, r = data.about(index, problem.v_mean, problem.r_mean)
        root = data.root_of(index)
        root = np.ones(len(r)) if root is None else np.ascontiguousarray(root)
        self.rows = HeldOutRows(np.asfortranarray(V), np.ascontiguousarray(r), plan.starts, root)
        self.base = 1.0 / problem.total if data.intercept is Intercept.FOLD else 0.0
        self.total = float(Scored.of(data.dataset, plan).total)
        self.unit = data.y_unit**2
        by_row = plan.k == plan.scored
        least = (1.0 - self.base * float(np.min(root)) ** 2) ** 2 if by_row else 1.0
        self.residual_rate = least * self.total / float(times[0]) * (1.0 + SHAVED)
        self._sum = common_error.common_errors_by_row if by_row else common_error.common_errors

    def errors(
        self, problem: SparseProblem, supports: Sequence[IntArray], limit: float
    ) -> tuple[FloatArray, FloatArray]:
        """H of supports in standard units, by closed form, with bounds on the rounding errors.

        Parameters
        ----------
        problem : SparseProblem
            All rows at one gamma.
        supports : sequence of int arrays
        limit : float
            See `Criterion`.
        """
        fitted = ListedSupports.of(problem, supports, [0] * len(supports))
        listed = Listed(
            fitted.supports, fitted.sizes, fitted.tau_index, fitted.value, fitted.beta, fitted.beta_error,
            fitted.residual_error, fitted.half_inverse, fitted.leverage_error,
        )  # fmt: skip
        value, error = np.empty(len(supports)), np.empty(len(supports))
        self._sum(self.rows, self.base, listed, limit * self.total, value, error)
        error[~np.isfinite(value)] = np.inf
        return value / self.total, error / self.total

    def refitted(self, support: IntArray, gamma: float) -> tuple[float, float]:
        """H of one support from a fit of the rows of every fold, where closed forms lose digits.

        Parameters
        ----------
        support : int array
        gamma : float
        """
        sums = np.zeros(2)
        for fold in range(self.plan.k):
            fit = refit_rows(self.data, self.plan.train_rows(fold), support, gamma)
            sums += fit.held_out(self.data, self.plan.scored_rows(fold))
        return float(sums[0]) / self.total, float(sums[1]) / self.total


def residual_penalty(problem: SparseProblem, largest: int) -> float:
    """Return a mu for which the residuals of every ridge fit have a sum of squares of at least f_mu of its support.

    `mu = lam^2 / (2 lam + s)` with s at least the largest eigenvalue of any `X_S'X_S`, in columns of equal penalty:
    with eigenvalues t of that matrix the two are sums of the same squares times `(lam / (lam + t))^2` and
    `mu / (mu + t)`, and the first factor is at least the second where `t <= lam^2 / mu - 2 lam`.

    Parameters
    ----------
    problem : SparseProblem
    largest : int
        Most columns of a support.
    """
    root = 1.0 / np.sqrt(problem.weight)
    squares = np.diag(problem.Q) * root**2
    most = float(np.sort(squares)[::-1][:largest].sum())
    if problem.q < EIGEN_LIMIT:
        scaled = problem.Q * root[:, None] * root
        with np.errstate(all="ignore"):
            whole = float(np.linalg.eigvalsh(scaled)[-1]) if np.all(np.isfinite(scaled)) else np.inf
        most = min(most, whole) if np.isfinite(whole) else most
    most = max(most, 0.0) * (1.0 + SHAVED)
    lam = problem.lam
    return lam / (2.0 + most / lam) * (1.0 - SHAVED)

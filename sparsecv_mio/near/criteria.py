"""By which number supports are compared, and which training objective bounds it from below.

A criterion values supports at one gamma. For the supports of a branch, those with some columns and without others, it
names a problem with `f(S) <= rate * value(S) + offset`: all supports with a value up to v are among those with f up to
`rate * v + offset` (docs/theory/near_optimal.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

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

NEGLIGIBLE = 1e-8  # relative rounding error of a value; beyond, the support is fitted again from the rows
PIECE = 1 << 20  # numbers of the factors of supports that are valued at once
VALUE_ROUNDING = 1e-12  # of yy: rounding of an objective from moments
SHAVED = 1e-9  # relative, off a penalty or a rate: rounding of an eigenvalue


MOST_MIDDLE = 1.9  # of a mean eigenvalue
LEAST_REST = 1e-6  # of 1 less a leverage: larger leverages count as this one
LOSS, LEAST_SHARE = 2e-4, 1e-8  # of a bound given up for a penalty that keeps its matrix regular; of lam, at least


class Branch(NamedTuple):
    """The supports that contain some columns and none of some others, both ascending."""

    inside: IntArray
    outside: IntArray


class Part(NamedTuple):
    """A problem below the values of a branch: `f(S) <= rate * value(S) + offset`.

    Attributes
    ----------
    problem : SparseProblem
        In the columns `columns`, those of the branch that every support contains forced in.
    columns : int array
    rate, offset : float
    """

    problem: SparseProblem
    columns: IntArray
    rate: float
    offset: float


class Criterion(Protocol):
    """A number of a support, in standard units; `splits`: smaller branches have tighter problems."""

    problem: SparseProblem
    splits: bool

    def part(self, branch: Branch) -> Part:
        """Return a problem below the values of a branch."""
        ...

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

    splits = False

    def __init__(self, data: StandardData, problem: SparseProblem) -> None:
        self.data, self.problem = data, problem

    def part(self, branch: Branch) -> Part:
        """Return the problem itself on the columns of a branch."""
        return part_of(self.problem, branch, 1.0)

    def values(self, supports: Sequence[IntArray], limit: float = np.inf) -> tuple[FloatArray, FloatArray]:
        """Value supports; see `Criterion`."""
        found = fit_from_moments(self.problem, supports)
        value, error = found.value.copy(), found.value_error.copy()
        for a in np.flatnonzero(~(error <= NEGLIGIBLE * value)).tolist():
            if not value[a] - error[a] > limit:
                fit = refit_rows(self.data, slice(0, self.data.n), supports[a], 2.0 * self.problem.lam)
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

    splits = True

    def __init__(self, folds: FoldRows, problem: SparseProblem, largest: int) -> None:
        self.folds, self.problem = folds, problem
        self.below = problem.with_gamma(2.0 * residual_penalty(problem, largest))
        self._least = max(least_objective(self.below) * (1.0 - SHAVED) - VALUE_ROUNDING * problem.size, 0.0)

    def part(self, branch: Branch) -> Part:
        """Return the in-sample residuals' problem, or the one that knows the leverages of the branch's own columns.

        Whichever says more of all columns of the branch together.
        """
        plain = part_of(self.below, branch, self.folds.residual_rate)
        weighted = self.weighted(branch)
        if weighted is None:
            return plain
        least = [(least_objective(one.problem) - one.offset) / one.rate for one in (plain, weighted)]
        return weighted if least[1] > least[0] else plain

    def weighted(self, branch: Branch) -> Part | None:
        """Return the problem of residuals weighed by the leverages of the columns that all supports have.

        None where its penalty would have to be next to nothing.
        """
        problem, own = self.problem, branch.inside
        M = problem.M[np.ix_(own, own)]
        try:
            factor = np.linalg.inv(np.linalg.cholesky(M))
        except np.linalg.LinAlgError:
            return None
        value = problem.yy - float(np.sum((factor @ problem.c[own]) ** 2))
        most = min(problem.yy / 4.0, value - self._least)  # of lam ||b||^2 of any support of the branch
        share = min(LOSS * self._least / most, 1.0) if most > 0.0 else 1.0
        if not share > LEAST_SHARE:
            return None
        Z, t = self.folds.weighted_rows(own, factor)
        scatter = replace(
            problem, Q=Z.T @ Z, c=t @ Z, yy=float(t @ t), lam=share * problem.lam, n=len(t), copy_of=None,
            _gamma_free={},
        )  # fmt: skip
        return part_of(scatter, branch, self.folds.total * (1.0 + SHAVED), share * most * (1.0 + SHAVED))

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

    def weighted_rows(self, own: IntArray, factor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows whose residuals e, of any support that contains some columns, have a sum of squares of at most m H.

        With `B = (I - H_NN)^{-1}` of these columns alone: times the root of `B^2` where a fold is one row, else of
        `2 a B - a^2 I`, a the mean eigenvalue of B, below 2 so that this is positive definite (B is at least I).

        Parameters
        ----------
        own : int array
            The columns.
        factor : (s, s) array
            C with `C'C` the inverse of their matrix M.
        """
        rows, starts = self.rows, self.plan.starts
        Z = rows.V[:, own] @ factor.T
        if self.plan.k == self.plan.scored:
            leverage = np.einsum("ij,ij->i", Z, Z) + self.base * rows.root**2
            weight = 1.0 / np.maximum(1.0 - leverage * (1.0 - SHAVED), LEAST_REST)
            return np.asarray(rows.V * weight[:, None]), rows.r * weight
        V, r = np.empty(rows.V.shape), np.empty(len(rows.r))
        for lo, hi in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            root = rows.root[lo:hi]
            H = Z[lo:hi] @ Z[lo:hi].T + self.base * np.outer(root, root)
            values, vectors = np.linalg.eigh(H)
            B = 1.0 / np.maximum(1.0 - np.clip(values, 0.0, None) * (1.0 - SHAVED), LEAST_REST)
            middle = min(float(B.mean()), MOST_MIDDLE)
            half = vectors * np.sqrt(2.0 * middle * B - middle**2)
            V[lo:hi], r[lo:hi] = half.T @ rows.V[lo:hi], half.T @ rows.r[lo:hi]
        return V, r

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


def part_of(problem: SparseProblem, branch: Branch, rate: float, offset: float = 0.0) -> Part:
    """Return a problem on the columns of a branch.

    Parameters
    ----------
    problem : SparseProblem
    branch : Branch
    rate, offset : float
        See `Part`.
    """
    columns = np.setdiff1d(np.arange(problem.q), branch.outside).astype(np.int64)
    return Part(replace(problem, forced=branch.inside).only(columns), columns, rate, offset)


def least_objective(problem: SparseProblem) -> float:
    """Return f of all columns together, which no support is below, up to rounding; 0 where it is not known."""
    try:
        factor = np.linalg.cholesky(problem.M)
        return max(problem.yy - float(np.sum(np.linalg.solve(factor, problem.c) ** 2)), 0.0)
    except np.linalg.LinAlgError:
        return 0.0


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

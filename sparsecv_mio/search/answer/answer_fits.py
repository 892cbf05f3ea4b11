"""Fits of one support that the parts of an answer need: one class for squared-error loss, one for the other losses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import Centre
from sparsecv_mio.bounds.model_changes import LossesOfRows, Residuals, losses_without_rows, residuals_without_rows
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.implementations import find_implementation
from sparsecv_mio.problem.beyond_floats import objective_slack
from sparsecv_mio.problem.objective import fit, ridge_weights
from sparsecv_mio.problem.problem import SparseProblem, capped_penalty, gamma_to_lam
from sparsecv_mio.problem.refit import refit_rows
from sparsecv_mio.problem.row_losses import OVERFLOWN, encode_row_targets, row_loss
from sparsecv_mio.problem.training_moments import CentredRows, full_problem, moments_of_training
from sparsecv_mio.thresholds import QUICK_WORK, has_large_matrices
from sparsecv_mio.trees.subsets import BestSubsets
from sparsecv_mio.units import ACCURATE_RTOL, LOSS_SLACK, MOMENTS_RTOL

if TYPE_CHECKING:
    from sparsecv_mio.trees.glm_subsets import GlmSubsets

LITTLE_WORK = 1 << 25  # numbers that fits read in a fifth of a second
OF_A_COLUMN, OF_STEPS, LEAST_ROWS = 32, 400, 1000  # work of a fit: of a row and column by QR, of a row by Newton; rows
NEWTON_COST = 50.0  # cost of a fit by Newton's method, relative to a fit by moments


def column_names(data: StandardData, columns: IntArray) -> tuple[str, ...]:
    """Return the names of columns in standard numbering, in file order."""
    return tuple(data.dataset.names[j] for j in np.sort(data.columns[columns]).tolist())


@dataclass(frozen=True, eq=False)
class AllRowsFit:
    """Fit of one support on all rows, in standard coordinates; `blurred` is True if its coefficients lack digits."""

    support: IntArray
    beta: FloatArray
    objective: float
    error: float
    v_mean: FloatArray
    r_mean: float
    blurred: bool = False

    def convert_to_file_units(self, data: StandardData, gamma: float) -> tuple[float, dict[str, float], float]:
        """Return objective, coefficients and intercept; computed in twice the precision if the fit lacks digits.

        Parameters
        ----------
        data : StandardData
            Data in standard coordinates.
        gamma : float
            Ridge weight of the fit.
        """
        if not self.blurred:
            return self.objective * data.loss_unit, *data.coefficients(
                self.support, self.beta, self.v_mean, self.r_mean
            )
        source, columns = data.dataset, np.sort(data.columns[self.support]).tolist()
        model = fit(
            source.X, source.y, columns, ridge_weights(columns, data.free, gamma), scale=str(data.scale),
            intercept=str(data.intercept),
            weights=source.row_weights,
        )  # fmt: skip
        coefficients = dict(zip(column_names(data, self.support), model.beta.tolist(), strict=True))
        return model.objective, coefficients, model.intercept


class AnswerFits(ABC):
    """Fits of single supports to the full data, and without some rows.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.

    Attributes
    ----------
    has_steps : bool
        True if held-out losses of all folds follow by Newton steps from a full-data fit.
    cost_without_rows : float
        Cost of a fit without some rows, relative to a fit by moments.
    """

    has_steps: ClassVar[bool]
    cost_without_rows: ClassVar[float]

    def __init__(self, data: StandardData) -> None:
        self.data = data

    @abstractmethod
    def count_numbers(self, size: int) -> int:
        """Return the work of a fit by rows, as a count of numbers read: `LITTLE_WORK` of them take 0.2 s.

        Parameters
        ----------
        size : int
            Number of columns.
        """

    @abstractmethod
    def takes_long(self, size: int) -> bool:
        """Return True if a fit by rows, with bounds on its errors, takes a twentieth of a second or longer.

        Parameters
        ----------
        size : int
            Number of columns.
        """

    def fit_support(self, gamma: float, problem: SparseProblem | None, support: IntArray) -> AllRowsFit:
        """Fit by QR of the rows, or, with many rows, from stored moments if these are accurate enough.

        Parameters
        ----------
        gamma : float
            Ridge weight.
        problem : SparseProblem or None
            Problem of all rows at gamma, if their moments are stored.
        support : int array
            Columns in standard coordinates.
        """
        data = self.data
        if problem is not None and data.coefficient_bounds is None and data.n * len(support) ** 2 > QUICK_WORK:
            from sparsecv_mio.trees.fits_with_rounding import fit_from_moments

            fit_by_moments = fit_from_moments(problem, [support])
            value, error = float(fit_by_moments.value[0]), float(fit_by_moments.value_error[0])
            if value < np.inf and error <= MOMENTS_RTOL * value:
                beta = fit_by_moments.coefficients(0)
                return AllRowsFit(support, beta, value, error, problem.v_mean, problem.r_mean)
        made = refit_rows(data, slice(0, data.n), support, gamma)
        v_mean = np.zeros(data.q)
        v_mean[support] = made.v_mean
        is_blurred = self._is_blurred(made.beta, made.spread)
        return AllRowsFit(support, made.beta, made.objective, made.objective_error, v_mean, made.r_mean, is_blurred)

    @abstractmethod
    def _is_blurred(self, beta: FloatArray, spread: FloatArray) -> bool:
        """Return True if coefficients with these errors are to be computed in twice the precision."""

    @abstractmethod
    def fit_without_bounds(self, gamma: float, support: IntArray) -> AllRowsFit:
        """Fit in double precision; f at any coefficients is an upper bound on the optimum, however accurate they are.

        Parameters
        ----------
        gamma : float
            Ridge weight.
        support : int array
            Columns in standard coordinates.
        """

    @abstractmethod
    def bound_rounding(self, objective: float) -> float:
        """Return the largest rounding error of an objective that `verify` allows.

        Parameters
        ----------
        objective : float
            Objective of a fit.
        """

    @property
    @abstractmethod
    def rounding_scale(self) -> float:
        """Scale of the rounding errors of objectives."""

    @abstractmethod
    def bound_objective(self, rows: IntArray, gamma: float) -> float:
        """Return a lower bound on the objectives of all supports on some rows; 0 if there is none.

        Parameters
        ----------
        rows : int array
            Training rows.
        gamma : float
            Ridge weight.
        """

    @abstractmethod
    def fit_without_rows(self, support: IntArray, gamma: float, left_out: Sequence[IntArray]) -> LossesOfRows:
        """Return the losses, or residuals, of all rows for one support fitted without each of some sets of rows.

        Parameters
        ----------
        support : int array
            Columns in standard coordinates.
        gamma : float
            Ridge weight.
        left_out : sequence of int arrays
            Rows removed from each fit; an empty array gives the full-data fit.
        """

    def order_by_slope(self, rows: IntArray | slice) -> IntArray:
        """Return the columns in the order of their marginal effect on the targets, forced ones first.

        Parameters
        ----------
        rows : int array or slice
            Rows whose targets count.
        """
        order = np.argsort(-self._score_columns(rows), kind="stable")
        forced = np.isin(order, self.data.forced)
        return np.concatenate([order[forced], order[~forced]]).astype(np.int64)

    def _score_columns(self, rows: IntArray | slice) -> FloatArray:
        """Return the (q,) squared slopes of the loss in single columns at the null model, by curvature. O(rows q)."""
        raise NotImplementedError("squared-error loss selects columns one after the other")

    @property
    @abstractmethod
    def problem(self) -> SparseProblem | None:
        """Problem of all rows at a gamma of 1, if their moments describe it and fit in memory."""

    @abstractmethod
    def solve(
        self, gamma: float, taus: list[int], starts: list[IntArray], node_limit: int, is_expired: Callable[[], bool]
    ) -> BestSubsets:
        """Find the best subsets of some sizes on all rows.

        Parameters
        ----------
        gamma : float
            Ridge weight.
        taus : list of int
            Sizes.
        starts : list of int arrays
            Supports to try first.
        node_limit : int
            Node limit of a size.
        is_expired : callable
            Function that returns True to end the search with its best supports so far.
        """


class SquaredAnswerFits(AnswerFits):
    """Fits with squared-error loss."""

    has_steps, cost_without_rows = False, 1.0

    def count_numbers(self, size: int) -> int:
        return max(self.data.n, LEAST_ROWS) * OF_A_COLUMN * (size + 1)

    def takes_long(self, size: int) -> bool:
        return self.data.n * size**2 > QUICK_WORK

    def _is_blurred(self, beta: FloatArray, spread: FloatArray) -> bool:
        is_bounded = self.data.coefficient_bounds is not None
        return not is_bounded and bool(spread.max(initial=0.0) > ACCURATE_RTOL * np.abs(beta).max(initial=0.0))

    def fit_without_bounds(self, gamma: float, support: IntArray) -> AllRowsFit:
        data = self.data
        if data.coefficient_bounds is not None:
            return self.fit_support(gamma, None, support)
        rows = CentredRows.from_data(data.only(support), slice(0, data.n))
        V, r = rows.V, rows.r
        penalty = capped_penalty(gamma_to_lam(gamma), data.weight[support])
        if data.n * len(support) ** 2 <= QUICK_WORK:
            A = np.vstack((V, np.diag(np.sqrt(penalty))))
            size = np.linalg.norm(A, axis=0)
            size[size == 0.0] = 1.0
            beta = np.linalg.lstsq(A / size, np.append(r, np.zeros(len(support))), rcond=None)[0] / size
        else:
            beta = np.linalg.lstsq(V.T @ V + np.diag(penalty), r @ V, rcond=None)[0]
        residual = r - V @ beta
        v_mean = np.zeros(data.q)
        v_mean[support] = rows.v_mean
        objective = float(residual @ residual + penalty @ beta**2)
        return AllRowsFit(support, beta, objective, MOMENTS_RTOL * float(r @ r), v_mean, rows.r_mean)

    def bound_rounding(self, objective: float) -> float:
        unit = self.data.loss_unit
        return objective_slack(objective * unit, self.data.dataset, str(self.data.intercept)) / unit

    @property
    def rounding_scale(self) -> float:
        r = self.data.rows(slice(0, self.data.n))[1]
        return float(r @ r)

    def bound_objective(self, rows: IntArray, gamma: float) -> float:
        problem = moments_of_training(self.data, rows).problem(self.data, gamma)
        centre = Centre.from_problem(problem, problem.rounding)
        return 0.0 if centre is None else centre.objective_lower_bound

    def fit_without_rows(self, support: IntArray, gamma: float, left_out: Sequence[IntArray]) -> Residuals:
        return residuals_without_rows(self.data, support, gamma, left_out)

    @cached_property
    def problem(self) -> SparseProblem | None:
        return None if has_large_matrices(self.data, 1) else full_problem(self.data, 1.0)

    def solve(
        self, gamma: float, taus: list[int], starts: list[IntArray], node_limit: int, is_expired: Callable[[], bool]
    ) -> BestSubsets:
        from sparsecv_mio.search.problems.all_rows import solve_all_rows  # loads kernels

        problem = None if self.problem is None else self.problem.with_gamma(gamma)
        return solve_all_rows(self.data, gamma, problem, taus, starts, node_limit, is_expired)


class SmoothAnswerFits(AnswerFits):
    """Fits with logistic or Poisson loss, by Newton's method."""

    has_steps, cost_without_rows, rounding_scale, problem = True, NEWTON_COST, 0.0, None

    def count_numbers(self, size: int) -> int:
        return max(self.data.n, LEAST_ROWS) * OF_STEPS

    def takes_long(self, size: int) -> bool:
        return self.count_numbers(size) > LITTLE_WORK // 4

    def _is_blurred(self, beta: FloatArray, spread: FloatArray) -> bool:
        return False

    def fit_without_bounds(self, gamma: float, support: IntArray) -> AllRowsFit:
        from sparsecv_mio.problem.glm_refit import fit_glm_quickly  # squared-error loss does not need this import

        data = self.data
        theta, level, value = fit_glm_quickly(data, slice(0, data.n), support, gamma)
        return AllRowsFit(support, theta, value, MOMENTS_RTOL * value, np.zeros(data.q), level)

    def bound_rounding(self, objective: float) -> float:
        return LOSS_SLACK * objective

    def bound_objective(self, rows: IntArray, gamma: float) -> float:
        return 0.0

    def fit_without_rows(self, support: IntArray, gamma: float, left_out: Sequence[IntArray]) -> LossesOfRows:
        return losses_without_rows(self.data, support, gamma, left_out)

    def _score_columns(self, rows: IntArray | slice) -> FloatArray:
        data, (y, w), loss = self.data, encode_row_targets(self.data, rows), row_loss(self.data.loss)
        V = data.of_columns(rows, np.arange(data.q))
        centred, signs = V - np.average(V, axis=0, weights=w), loss.signs(y)
        slope = (signs * loss.negative_gradient(signs * loss.origin(y, w), y, w)) @ centred
        return np.asarray(slope**2 / np.maximum((w @ centred**2), np.finfo(float).tiny))

    @cached_property
    def whole(self) -> GlmSubsets:
        """The problem of all rows at a gamma of 1."""
        from sparsecv_mio.trees.glm_subsets import make_subsets  # loads kernels

        return make_subsets(self.data, np.arange(self.data.n))

    def solve(
        self, gamma: float, taus: list[int], starts: list[IntArray], node_limit: int, is_expired: Callable[[], bool]
    ) -> BestSubsets:
        return self.whole.with_gamma(gamma).solve(
            taus, warm_starts=starts, node_limit=node_limit, is_expired=is_expired
        )


def make_answer_fits(data: StandardData) -> AnswerFits:
    """Return the fits with the loss of the data."""
    if data.loss.target.has_times:
        fits: AnswerFits = find_implementation("CoxAnswerFits")(data)
        return fits
    return SquaredAnswerFits(data) if data.loss.is_quadratic else SmoothAnswerFits(data)


MAX_OVERFLOW_FITS = 50  # maximum number of fits that look for the row


def is_overflown(lower: FloatArray) -> BoolArray:
    """Return True where a lower bound on held-out losses shows that the loss exceeds the largest number."""
    return np.asarray(lower >= OVERFLOWN * (1.0 - 1e-9))


def describe_overflow(
    data: StandardData, folds: FoldPlan, gamma: float, errors: FloatArray, decided: BoolArray,
    supports: Iterable[IntArray],
) -> str:  # fmt: skip
    """Return a line that names a fold and a row whose held-out loss exceeds the largest number; empty if none does.

    Parameters
    ----------
    data : StandardData
        Data in standard coordinates.
    folds : FoldPlan
        Folds.
    gamma : float
        Ridge weight of the reported pair.
    errors, decided : (K,) arrays
        Held-out losses of the folds, infinite where no model has a finite loss, and mask of solved folds.
    supports : iterable of int arrays
        Supports to fit in these folds.
    """
    if not make_answer_fits(data).has_steps:
        return ""
    from sparsecv_mio.problem.glm_refit import refit_glm  # squared-error loss does not need this import

    undefined = np.flatnonzero(~np.isfinite(errors) & ~decided).tolist()
    for fold, support in islice(product(undefined, supports), MAX_OVERFLOW_FITS):
        scored = folds.scored_rows(fold)
        with np.errstate(all="ignore"):
            losses, _ = refit_glm(data, folds.train_rows(fold), support, gamma).losses(data, scored)
        if np.isinf(losses).any():
            row = int(data.dataset.places[scored[int(np.argmax(np.isinf(losses)))]]) + 1
            return (
                f"fold {fold + 1}: the held-out loss of row {row} exceeds the largest number, because its "
                "prediction is too large, so the CV error of this pair is undefined; give a larger gamma, or "
                "check the row"
            )
    return ""

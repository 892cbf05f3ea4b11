"""Bounds on the held-out error of one fold for every tau at one gamma, computed without branch and bound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.relaxation import UnitDiagonal, held_out_loss, unit_diagonal
from sparsecv_mio.data.standard import subtract_means
from sparsecv_mio.errors import Contradiction
from sparsecv_mio.kernels import fold_bounds, starts
from sparsecv_mio.kernels import held_out_sums as kernel
from sparsecv_mio.kernels.nodes import DROPPED, INSIDE, Incumbents, Rounding, size_of_candidates
from sparsecv_mio.kernels.perspective_newton import new_factor
from sparsecv_mio.kernels.reduced_forms import SHARP_COLUMNS
from sparsecv_mio.kernels.starts import eliminate
from sparsecv_mio.problem.problem import SparseProblem, eliminate_forced_columns, strip_forced_columns
from sparsecv_mio.thresholds import LARGEST_FOLD, MANY
from sparsecv_mio.units import OUTWARD, TIE_RTOL, Interval

TIE = 2.0 * TIE_RTOL  # every support within TIE_RTOL of the best counts as optimal
RELAXED_AT_MOST = 5  # maximum number of relaxations for one bound
FIELDS = 8  # bounds on f, bounds on the held-out sum of squares, the two origins of the latter, estimate, columns left
NO_DIGIT = 1.0  # rounding unit from which on no digit of the moments is accurate


class Origin(IntEnum):
    """Method that gave a bound of an interval."""

    TRIVIAL = kernel.NOTHING
    CONIC = kernel.ROWS
    AGGREGATED = kernel.TOGETHER
    EXACT = kernel.EXACT
    TRAINING = 4


UNKNOWN = np.array([0.0, np.inf, 0.0, np.inf, Origin.TRIVIAL, Origin.TRIVIAL, np.nan, 0.0])


@dataclass(frozen=True, eq=False)
class FoldCell:
    """Bounds of one (tau, gamma, fold) from relaxations, in squared standard coordinates.

    Attributes
    ----------
    objective_lower, objective_upper : float
        Bounds on the optimum of the inner problem; the upper one is f of the incumbent.
    lower, upper : float
        Bounds on the held-out sum of squares, ties included.
    low_origin, high_origin : Origin
        Methods that gave these bounds.
    estimate : float
        Held-out sum of squares of the relaxation's solution; not a bound.
    left : int
        Number of columns that may or may not be in the support; 0 if the support is known.
    """

    tau: int
    objective_lower: float
    objective_upper: float
    lower: float
    upper: float
    low_origin: Origin
    high_origin: Origin
    estimate: float
    left: int

    @classmethod
    def from_array(cls, tau: int, numbers: FloatArray) -> FoldCell:
        """Return the bounds of a size from their (FIELDS,) array."""
        f_low, f_high, low, high, low_origin, high_origin, estimate, columns_left = numbers.tolist()
        origins = Origin(int(low_origin)), Origin(int(high_origin))
        return cls(tau, f_low, f_high, low, high, *origins, estimate, int(columns_left))

    @property
    def interval(self) -> Interval:
        """Certified interval of the held-out sum of squares."""
        return Interval(self.lower, self.upper)


class FoldBounds:
    """Bounds of one fold at one gamma.

    Parameters
    ----------
    problem : SparseProblem
        Problem of the training rows. Forced columns are eliminated first: attributes refer to the other columns, while
        methods take and return whole supports and their sizes.
    V_test, r_test : (N, q), (N,) arrays
        Held-out rows in standard coordinates.
    near : (m,) array, optional
        Diagonal of a similar problem, see `unit_diagonal`.
    root : (N,) array, optional
        Square roots of the weights of the held-out rows, by which these are multiplied; None if each row counts once.

    Attributes
    ----------
    problem, choice : SparseProblem, Choice
        Problem without forced columns, and the split of the columns.
    best, supports : (m + 1,), (m + 1, m) bool
        Incumbents by size.
    rows : (N, m), (N,) arrays
        Held-out rows and their targets in the coordinates of `form`.
    lever : float
        Length of `ReducedProblem.solution_l1_norms` of the held-out rows: the rounding error from forced columns.
    """

    def __init__(
        self,
        problem: SparseProblem,
        V_test: FloatArray,
        r_test: FloatArray,
        near: FloatArray | None = None,
        root: FloatArray | None = None,
    ) -> None:
        reduced = eliminate_forced_columns(problem)
        self.problem, self.choice, self.lever = reduced.problem, reduced.choice, 0.0
        if len(self.choice.forced):
            about = subtract_means(V_test, r_test, root, reduced.means, problem.r_mean)[0]
            self.lever = float(np.linalg.norm(reduced.solution_l1_norms(about)))
        V_test, r_test = reduced.rows(V_test, r_test, root)
        problem = self.problem
        self.form: UnitDiagonal | None = unit_diagonal(problem, near)
        if self.form is not None and root is not None:
            loss = held_out_loss(root, problem.total)
            self.form = replace(self.form, rounding=self.form.rounding * loss)
        self.u = np.asarray(r_test - (problem.r_mean if root is None else root * problem.r_mean), dtype=float)
        self.N = len(self.u)
        self.m = 0 if self.form is None else self.form.m
        self.best = np.full(self.m + 1, np.inf)
        self.supports = np.zeros((self.m + 1, self.m), dtype=np.bool_)
        if self.form is not None:
            self.X, self.u = self.rows = self.form.rows(problem, V_test, r_test, root)
            self.compressed = len(self.u) > self.m + 1
            if self.compressed:
                self.X, self.u = compress(self.X, self.u)

    # -- incumbents -------------------------------------------------------------------------------------------------

    def try_supports(self, supports: Iterable[NDArray[np.integer]]) -> None:
        """Try given supports (columns of the problem) as incumbents. O(s^3) for each support of s columns."""
        if self.form is None:
            return
        masks = make_masks(strip_forced_columns(self.choice, list(supports)), self.m)
        if len(masks):
            starts.try_supports(self.form.M, self.form.c, self.form.yy, masks, self.best, self.supports)

    def search(self, taus: Sequence[int], swap_rounds: int = 0) -> None:
        """Search for incumbents by backward elimination and, if requested, forward selection and swaps."""
        form, sizes = self.form, self.choice.sizes(taus)
        if form is None or self.m == 0:
            return
        if self.m <= MANY:
            eliminate(form.M, form.c, form.yy, self.best, self.supports)
        if swap_rounds:
            top = min(max(sizes), self.m)
            starts.forward_selection(form.M, form.c, form.yy, top, self.best, self.supports)
            for size in sizes:
                starts.improve_by_swaps(
                    form.M, form.c, form.yy, min(size, self.m), self.best, self.supports, swap_rounds
                )
            self._recompute()

    def _recompute(self) -> None:
        form = self.form
        assert form is not None
        masks = self.supports[np.isfinite(self.best)].copy()
        self.best[1:] = np.inf
        starts.try_supports(form.M, form.c, form.yy, masks, self.best, self.supports)

    def incumbents(self) -> list[IntArray]:
        """Return the incumbents of all sizes."""
        sizes = np.flatnonzero(np.isfinite(self.best))
        return [self.choice.make_support(np.flatnonzero(self.supports[k])) for k in sizes if k > 0]

    def improve(self, tau: int, support: IntArray, value: float) -> None:
        """Replace the incumbent of at most `tau` features if the given support is better.

        Parameters
        ----------
        tau : int
            Maximum size of the support.
        support : int array
            Columns.
        value : float
            Upper bound on its f.
        """
        size = self.choice.size(tau)
        if 0 < size <= self.m and value < self.best[size]:
            self.best[size] = value
            self.supports[size] = False
            self.supports[size, self.choice.inside(support)] = True

    def incumbent(self, tau: int) -> IntArray | None:
        """Return the support of at most tau features with the smallest known value; None if there is none."""
        size = min(self.choice.size(tau), self.m)
        if size == 0 or self.form is None or not self.form.yy > 0.0:
            return self.choice.make_support(np.zeros(0, dtype=np.int64))
        if size == self.m:
            return self.choice.make_support(np.arange(self.m))
        columns = np.flatnonzero(self.supports[size])
        return self.choice.make_support(columns) if len(columns) else None

    # -- bounds -----------------------------------------------------------------------------------------------------

    def cells(self, taus: Sequence[int]) -> list[FoldCell]:
        """Return the bounds for every tau.

        Parameters
        ----------
        taus : sequence of int
            Sizes from 0 up.

        Raises
        ------
        Contradiction
            If a certified lower bound exceeds the value of an incumbent by more than the rounding allowance.
        """
        return [FoldCell.from_array(tau, row) for tau, row in zip(taus, self.numbers(taus), strict=True)]

    def numbers(self, taus: Sequence[int]) -> FloatArray:
        """Return the bounds of `cells` as an array with a row of `FIELDS` for every tau."""
        table = np.empty((len(taus), FIELDS))
        if self.form is None:
            table[:] = UNKNOWN
            table[:, 7] = self.problem.q
            return table
        # with a constant target in training, every optimum predicts its mean
        sizes = np.asarray(self.choice.sizes(taus) if self.form.yy > 0.0 else np.zeros(len(taus)), dtype=np.int64)
        inner = np.unique(sizes[(sizes > 0) & (sizes < self.m)])
        if len(inner):
            solved = self._run_kernel(inner)
            at = np.minimum(np.searchsorted(inner, sizes), len(inner) - 1)
            table[:] = solved[at]
        for t in np.flatnonzero((sizes <= 0) | (sizes >= self.m)):
            table[t] = self._bound_trivial_size(int(sizes[t]))
        table[:, 0] = np.maximum(table[:, 0], 0.0)
        table[:, 2] = np.maximum(table[:, 2], 0.0) * (1.0 - OUTWARD)
        table[:, 3] *= 1.0 + OUTWARD
        return table

    def _run_kernel(self, sizes: IntArray) -> FloatArray:
        form = self.form
        assert form is not None
        if form.rounding >= NO_DIGIT:
            return np.tile([*UNKNOWN[:7], self.problem.q], (len(sizes), 1))
        mode = fold_bounds.DO_REDUCE
        if self.N and not (self.compressed or self.N > LARGEST_FOLD):
            mode |= fold_bounds.DO_ROWS
        if self.N > 1:
            mode |= fold_bounds.DO_TOGETHER
        out = np.zeros((len(sizes), FIELDS))
        ends = np.empty((len(sizes), len(self.u), 2))
        broken = fold_bounds.bound_fold(
            form.fold(self.X, self.u), sizes, fold_bounds.BoundTask(mode, RELAXED_AT_MOST, SHARP_COLUMNS, TIE,
                form.rounding),
            Incumbents(self.best, self.supports), out, ends,
        )  # fmt: skip
        if broken:
            raise Contradiction(
                f"{broken} certified lower bounds of a fold exceed the objective of a known support; please report this"
            )
        if self.lever:
            reach = 1.0 / form.w
            for row, size in zip(out, sizes.tolist(), strict=True):
                off = form.rounding * float(size_of_candidates(form.yy, reach, size)) * self.lever
                row[2:4] = kernel.widen_interval(row[2], row[3], off)
        return out

    def _bound_trivial_size(self, tau: int) -> FloatArray:
        """Return the bounds for no column or all columns, which leave no choice."""
        form = self.form
        assert form is not None
        status = np.full(self.m, INSIDE if tau > 0 else DROPPED, dtype=np.int8)
        prior = size_of_candidates(form.yy, 1.0 / form.w, self.m)
        size, slip = self.m if tau > 0 else 0, form.rounding * prior * prior
        prior += float(np.sqrt(self.problem.total)) * abs(self.problem.r_mean) if not form.yy > 0.0 else 0.0
        interval = self.bound_one_support(status, size, Rounding(form.rounding, prior, 0.0, form.w))
        if interval is None:
            return np.array([*UNKNOWN[:7], self.problem.q])
        value = form.yy - float(form.c @ np.linalg.solve(form.M, form.c)) if size else form.yy
        return np.array([value - slip, value + slip, *interval])

    def bound_one_support(self, status: NDArray[np.int8], size: int, rounding: Rounding) -> list[float] | None:
        """Return interval, origins and estimate of the only support left, and 0 open columns; None if it is singular.

        Parameters
        ----------
        status : (m,) int8 array
            Columns in and out.
        size : int
            Number of columns of the support.
        rounding : Rounding
            Rounding allowance in units of the form.
        """
        assert self.form is not None
        lo, hi = np.empty(len(self.u)), np.empty(len(self.u))
        fold, factor = self.form.fold(self.X, self.u), new_factor(self.m, self.m)
        if not kernel.one_support(fold, status, size, rounding, lo, hi, factor):
            return None
        low, high = kernel.distances(self.u, lo, hi)
        off = float(kernel.off_by_means(self.N, rounding)) + rounding.unit * rounding.prior * self.lever
        return [*kernel.widen_interval(low, high, off), Origin.EXACT, Origin.EXACT, 0.5 * (low + high), 0.0]


def make_masks(supports: Iterable[NDArray[np.integer]], m: int) -> BoolArray:
    """Return supports as rows of a bool array.

    Examples
    --------
    >>> make_masks([np.array([0, 2])], 3).tolist()
    [[True, False, True]]
    """
    listed = list(supports)
    masks = np.zeros((len(listed), m), dtype=np.bool_)
    for row, support in zip(masks, listed, strict=True):
        row[np.asarray(support, dtype=np.int64)] = True
    return masks


def compress(X: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return at most m + 1 rows with the same `||u - X b||` for every b. O(N m^2).

    Examples
    --------
    >>> X, u = compress(np.ones((4, 1)), np.arange(4.0))
    >>> X.shape, bool(np.isclose(np.linalg.norm(u - X @ [0.5]), np.linalg.norm(np.arange(4.0) - 0.5)))
    ((2, 1), True)
    """
    R = np.asarray(np.linalg.qr(np.column_stack([X, u]), mode="r"))
    return np.ascontiguousarray(R[:, :-1]), np.ascontiguousarray(R[:, -1])
